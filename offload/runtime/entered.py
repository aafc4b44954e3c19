"""What `with` has made a thread's: a device, a stream."""

from __future__ import annotations

import threading
from typing import Any

NOT_ENTERED = "this thread is in no 'with' of a device or stream: one is left in the thread that has entered it"


class Entered(threading.local):
    """The devices and streams in whose ``with`` the calling thread is, of each backend: those of another backend than
    the one in use mean nothing until that is in use again."""

    def __init__(self, api: Any) -> None:
        self._api = api
        # Device and stream by backend: those of before, and then of each `with`, the innermost last.
        self._places: dict[str, list[tuple[int, int | None]]] = {}
        self.streams: list[object] = []
        """The streams, since the runtime knows their handles alone."""

    def stream(self) -> int | None:
        """The handle of the stream that the thread's work goes to; None for its own."""
        stream: int | None = self._api.mgpuSetThreadStream(None)
        self._api.mgpuSetThreadStream(stream)
        return stream

    def _now(self) -> tuple[int, int | None]:
        return int(self._api.mgpuGetDefaultDevice()), self.stream()

    def _set(self, device: int, stream: int | None) -> None:
        self._api.mgpuSetDefaultDevice(device)
        self._api.mgpuSetThreadStream(stream)

    def _used(self) -> str:
        """The backend in use; nothing after a failure, which is kept."""
        name: bytes | None = self._api.mgpuBackendName()
        return (name or b"").decode()

    def enter_device(self, backend: str, device: int) -> None:
        """A stream that is set stays where it is on that device: work on one of another would be done there."""
        _, stream = before = self._now()
        self._api.mgpuSetDefaultDevice(device)
        elsewhere = stream is not None and self._api.mgpuStreamDevice(stream) != device
        self._enter(backend, before, (device, None if elsewhere else stream))

    def enter_stream(self, backend: str, device: int | None, stream: int | None) -> None:
        """``device`` is None for a stream that every device has."""
        before = self._now()
        self._enter(backend, before, (before[0] if device is None else device, stream))

    def _enter(self, backend: str, before: tuple[int, int | None], place: tuple[int, int | None]) -> None:
        self._places.setdefault(backend, [before])[-1] = before  # a program may have chosen another device
        self._places[backend].append(place)
        self._set(*place)

    def leave(self, backend: str) -> None:
        """The innermost ``with`` of that backend. Raises RuntimeError where the thread is in none."""
        places = self._places.get(backend)
        if places is None:
            raise RuntimeError(NOT_ENTERED)
        places.pop()
        if self._used() == backend:
            self._set(*places[-1])
        if len(places) == 1:
            del self._places[backend]

    def step_out(self) -> None:
        """Before another backend is chosen: the device and stream of before, which that of now has when it is in use
        without the ``with``."""
        if self._places and (places := self._places.get(self._used())):
            self._set(*places[0])

    def step_in(self) -> None:
        """After one was chosen."""
        if self._places and (places := self._places.get(self._used())):
            self._set(*places[-1])
