"""What `with` has made a thread's: a device, a stream."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

NOT_ENTERED = "this thread is in no 'with' of a device or stream: one is left in the thread that has entered it"


class _Kept:
    """Instead of a stream, of a ``with`` of a device: the stream that is set, where that is on the device."""


_KEPT = _Kept()


class _With:
    """One ``with``: whose it is, what it asks for, and the device and stream that are the thread's in it; `stale`
    where these are to be found again, as a ``with`` around it was left."""

    __slots__ = ("device", "owner", "place", "stale", "stream")

    def __init__(self, owner: object, device: int | None, stream: int | _Kept | None, place: tuple[int, int | None]):
        self.owner, self.device, self.stream, self.place, self.stale = owner, device, stream, place, False


class Entered(threading.local):
    """The devices and streams in whose ``with`` the calling thread is, of each backend: those of another backend than
    the one in use mean nothing until that is in use again."""

    def __init__(self, api: Any) -> None:
        self._api = api
        # By backend: what was before, and then each `with`, the innermost last.
        self._withs: dict[str, list[_With]] = {}
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

    def enter_device(self, backend: str, owner: object, device: int) -> None:
        """A stream that is set stays where it is on that device: work on one of another would be done there."""
        self._enter(backend, owner, device, _KEPT)

    def enter_stream(self, backend: str, owner: object, device: int | None, stream: int | None) -> None:
        """``device`` is None for a stream that every device has."""
        self._enter(backend, owner, device, stream)

    def _enter(self, backend: str, owner: object, device: int | None, stream: int | _Kept | None) -> None:
        before = self._now()
        withs = self._withs.setdefault(backend, [_With(None, None, None, before)])
        withs[-1].place = before  # a program may have chosen another device
        withs.append(_With(owner, device, stream, self._place(before, device, stream)))
        self._set(*withs[-1].place)

    def _place(
        self, before: tuple[int, int | None], device: int | None, stream: int | _Kept | None
    ) -> tuple[int, int | None]:
        """What a ``with`` makes of the device and stream of before."""
        here, kept = before[0] if device is None else device, before[1]
        if not isinstance(stream, _Kept):
            return here, stream
        self._api.mgpuSetDefaultDevice(here)  # that of a default stream
        return here, None if kept is not None and self._api.mgpuStreamDevice(kept) != here else kept

    def leave(self, backend: str, owner: object) -> None:
        """The innermost ``with`` of that backend and owner. It need not be the innermost of all: tasks of asyncio and
        generators leave theirs in any order; what others have entered stays. Raises RuntimeError where the thread is in
        none of that owner."""
        withs = self._withs.get(backend, [])
        at = next((index for index in reversed(range(1, len(withs))) if withs[index].owner is owner), None)
        if at is None:
            raise RuntimeError(NOT_ENTERED)
        del withs[at]
        for each in withs[at:]:
            each.stale = True
        if self._used() == backend:
            self._step_in(withs)
        if len(withs) == 1:
            del self._withs[backend]

    def step_out(self) -> None:
        """Before another backend is chosen: the device and stream of before, which that of now has when it is in use
        without the ``with``."""
        if self._withs and (withs := self._withs.get(self._used())):
            self._set(*withs[0].place)

    def step_in(self) -> None:
        """After one was chosen."""
        if self._withs and (withs := self._withs.get(self._used())):
            self._step_in(withs)

    def _step_in(self, withs: list[_With]) -> None:
        for before, each in pairwise(withs):
            if each.stale:
                each.place, each.stale = self._place(before.place, each.device, each.stream), False
        self._set(*withs[-1].place)
