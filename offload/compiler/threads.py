"""Threads for what is compiled side by side in one build.

concurrent.futures has the same, and takes longer to import (with logging and more) than a small kernel to compile."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Promised(Generic[Result]):
    """What a function will have returned or raised; it is called with the context of who made this."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function, self._context = function, copy_context()
        self._ended = threading.Event()
        self._value: Result
        self._error: BaseException | None = None

    def keep(self) -> None:
        """Calls the function."""
        try:
            self._value = self._context.run(self._function)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()

    def result(self) -> Result:
        """Waits for it. Raises what the function raised."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._value


class Pool:
    """At most so many functions at a time. It is left, as a context manager, when all that were begun have ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[Promised[Any]] = deque()
        self._threads: list[threading.Thread] = []
        self._at_work = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    def begin(self, function: Callable[[], Result]) -> Promised[Result]:
        """Calls it in another thread. Raises RuntimeError where the system has none for us."""
        promised = Promised(function)
        with self._lock:
            self._waiting.append(promised)
            if self._at_work == self._most:
                return promised
            thread = threading.Thread(target=self._work)
            try:
                thread.start()
            except RuntimeError:
                if not self._at_work:
                    raise
                return promised  # the threads that there are come to it
            self._at_work += 1
            self._threads.append(thread)
        return promised

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._at_work -= 1
                    return
                promised = self._waiting.popleft()
            promised.keep()
