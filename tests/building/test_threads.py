"""The threads of one build: as many at a time as was said, each result to who asks for it."""

from __future__ import annotations

import contextvars
import threading
import time

import pytest

from offload.compiler.threads import Pool

HERE = contextvars.ContextVar("here", default="nowhere")


def test_results_and_errors_come_to_who_asks() -> None:
    def fail() -> None:
        raise KeyError("this one")

    with Pool(2) as pool:
        promised = [pool.begin(lambda number=number: number * number) for number in range(50)]  # type: ignore[misc]
        failing = pool.begin(fail)
        assert [each.result() for each in promised] == [number * number for number in range(50)]
        with pytest.raises(KeyError, match="this one"):
            failing.result()


def test_no_more_at_a_time() -> None:
    lock, at_work, most = threading.Lock(), 0, 0

    def work() -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.01)
        with lock:
            at_work -= 1

    with Pool(3) as pool:
        for _ in range(20):
            pool.begin(work)
    assert (at_work, most) == (0, 3)


def test_a_pool_that_was_idle_works_again() -> None:
    with Pool(1) as pool:
        for number in range(20):
            assert pool.begin(lambda number=number: number).result() == number  # type: ignore[misc]
            time.sleep(0.001 * (number % 3))


def test_a_function_has_the_context_of_who_began_it() -> None:
    token = HERE.set("in the test")
    try:
        with Pool(1) as pool:
            assert pool.begin(HERE.get).result() == "in the test"
    finally:
        HERE.reset(token)


def test_the_threads_that_there_are_do_what_others_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of the system, reached with the second thread."""
    go, start = threading.Event(), threading.Thread.start
    started: list[threading.Thread] = []

    def limited(self: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with Pool(2) as pool:
        first, second = pool.begin(go.wait), pool.begin(lambda: "done")
        go.set()
        assert (first.result(), second.result()) == (True, "done")


def test_where_there_can_be_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Pool(2) as pool, pytest.raises(RuntimeError, match="can't start new thread"):
        pool.begin(int)
