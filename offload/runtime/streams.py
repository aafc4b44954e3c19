"""Streams: ordered queues of work on a device, of the runtime's own making or of another package."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NoReturn

from offload.errors import DeviceError, SignatureError
from offload.runtime import interchange, turns
from offload.runtime.abi import DEFAULT_STREAM
from offload.runtime.native import Native
from offload.runtime.pending import Mark
from offload.runtime.pickled import refusal

if TYPE_CHECKING:
    from offload.runtime.array import DeviceArray

_MOST_KEPT, _MOST_KEPT_ON_CPU = 1024, 32
"""Launches whose arrays of other packages are kept, where nobody waits for any. Drivers let about as many wait; the CPU
has run them."""

MOST_OPEN = 16
"""Launches that one mark stands for, where nobody asks for any of them: what uses the arrays of the first may have to
wait for the last."""


class _Slot:
    __slots__ = ("of",)

    def __init__(self) -> None:
        self.of = object()


def _references_of_a_slot(references: Callable[[object], int] = getrefcount) -> int:
    slot = _Slot()
    return references(slot.of)


_OF_A_SLOT = _references_of_a_slot()
"""References that `getrefcount` sees of what one slot alone refers to; versions of Python differ."""


class _Thread(threading.local):
    """The calling thread's own default streams, by the one that stands for those of all threads and by device. They end
    with the thread."""

    def __init__(self) -> None:
        self.streams: weakref.WeakKeyDictionary[Stream, dict[int, Stream]] = weakref.WeakKeyDictionary()


_thread = _Thread()

_OF_A_THREAD = 2
"""The handle of a thread's default stream, as drivers have it."""


class Stream:
    """A stream of the backend in use when it was made.

    As a context manager it replaces the calling thread's own stream, and its device is the thread's, so that functions
    and copies inside use it. It keeps arrays of other packages that were passed to kernels on it alive until these are
    known to be done: it was synchronized, or a later launch on it was waited for. Its own driver stream goes back to
    the runtime when the object is dropped; a foreign one stays its creator's, whose object it keeps."""

    __slots__ = (
        *("__weakref__", "_device", "_entered", "_foreign", "_halfway", "_here", "_last", "_others", "_owned"),
        *("_pending", "_process", "_thread", "_waits"),
        *("backend", "handle", "kept", "lazy", "lock", "native", "open", "token"),
    )

    def __init__(self, native: Native, foreign: Any = None) -> None:
        """Raises `DeviceError` where the driver refuses, TypeError where ``foreign`` is no stream."""
        if isinstance(foreign, Stream):
            foreign = foreign.known_to(native)
        self.native = native
        self._owned = foreign is None
        self._foreign = foreign  # cupy, for one, destroys a stream with its object
        self.lock = threading.RLock()  # a finalizer may wait, too
        self.kept = 0
        """How many launches have left something to keep."""
        self._pending: deque[tuple[int, list[object]]] = deque()
        self._halfway: Mark | None = None  # of the launches whose arrays are kept
        self._last: Mark | None = None  # the same
        self.open: Mark | None = None
        """The mark of the last launches, while it is on no event."""
        self.lazy = self._owned
        """Whether marks may be put later. Not on a stream that others know: they may have it captured by then."""
        self.token = object()  # a handle may come again when its stream is gone; this does not
        self.handle: int | None = None
        self._device: int | None = None
        self._process = native.process()
        if foreign is None:
            self.handle = native.api.mgpuStreamCreate()
            native.check()
        else:
            self.handle = interchange.stream_handle(foreign, native.backend)
        self.backend = native.backend()
        """The backend whose stream it is."""
        # Of a default stream, which every device has: the device, and the others' streams. Of those that every thread
        # has, the thread; its streams are with it. The extension looks at both numbers.
        self._here: int | None = None
        self._others: dict[int, Stream] = {}
        self._thread: int | None = None
        self._entered: int | None = None
        self._waits = not self._owned and self.backend == "host"
        """Whether it waits, when it goes, for what uses what it keeps. Streams of our own do it by themselves; GPU
        packages give memory back behind what is on their streams."""
        if self.is_default():
            self._here = native.device_of_thread()
            self._thread = None if self.handle == DEFAULT_STREAM else turns.thread()

    def known_to(self, native: Native) -> Any:
        """What a library takes for this stream: the stream itself where it is its own, the other package's that it
        wraps. Raises TypeError for a stream that another library has made, whose handle means nothing here."""
        if native.table == self.native.table:
            return self
        if not self._owned:
            return self._foreign
        raise TypeError(
            f"a stream of another library, {self.native.file}: make one with lib.stream() of this library, or pass "
            "another package's stream to both"
        )

    def check(self, label: str) -> None:
        """Raises `SignatureError` where another backend is in use by now: arrays are looked at as that one's, and work
        on the stream would be done by this one's devices. ``label`` is what messages call who takes the stream."""
        if (now := self.native.backend()) != self.backend:
            raise SignatureError(
                f"{label}: a stream of {self.backend}, but the backend in use is {now}; make another one with "
                f"lib.stream(), or choose lib.use('{self.backend}')"
            )

    def device(self) -> int:
        """The index of the device that it is on; a driver's default stream is on that of the calling thread. Raises
        `DeviceError`."""
        if self._device is not None:
            return self._device
        index = int(self.native.api.mgpuStreamDevice(self.handle))
        self.native.check()
        if self._owned:
            self._device = index
        return index

    @property
    def __cuda_stream__(self) -> Callable[[], tuple[int, int]]:
        """The protocol of cuda-python: called, the version and the driver's stream, for other packages, which must not
        use it when this object is gone. A stream of the CPU has none."""
        if self.backend == "host":
            raise AttributeError("__cuda_stream__: a stream of the CPU is no driver's")
        return self._driver_stream

    def _driver_stream(self) -> tuple[int, int]:
        self.lazy = False
        if self.open is not None:
            self.open.put()
        handle = self.native.api.mgpuStreamDriver(self.handle)
        self.native.check()
        return 0, handle or 0

    def consumer(self) -> tuple[str, int] | None:
        """The backend and the driver's stream that other packages order their work before. None where they do it
        before the default stream: for the CPU, for our own, of which they would then know, and for a thread's default
        stream, which torch refuses."""
        if self._owned or self.backend == "host" or self.handle == _OF_A_THREAD:
            return None
        return self.backend, self._driver_stream()[1]

    def follow(self, stream: int, device: int | None) -> bool:
        """Lets what is put on it from now on start after what is on another driver's stream, of that device if it is a
        default one. False where that goes into a graph, which nothing outside can wait for. What fails is kept for the
        thread's next call."""
        api = self.native.api
        elsewhere = device is not None and device != self.native.device_of_thread()
        with self.native.on_device(device or 0) if elsewhere else contextlib.nullcontext():
            if api.mgpuStreamCapturing(stream):
                return False
            api.mgpuStreamWaitStream(self.handle, stream)
        return True

    def is_default(self) -> bool:
        """Whether it is a driver's default stream (NULL, 1, and 2, the thread's), which every device has."""
        return not self._owned and (self.handle or 0) <= 2

    def is_here(self) -> bool:
        """Whether the handle means this stream to the calling thread now."""
        if self._here is None:
            return True
        if self._here != self.native.device_of_thread() or self._thread not in (None, turns.thread()):
            return False
        return self.handle is not None or self.native.entered.stream() == self._entered

    def here(self) -> Stream:
        """The stream that the handle means to the calling thread now: this one, the one that the thread has entered, or
        the default one of another device or thread, with marks and arrays of its own."""
        if self.is_here():
            return self
        if self.handle is None and (entered := self.native.entered.stream()) is not None:
            return self._of_entered(entered)
        with self.lock:
            others = self._others if self._thread is None else _thread.streams.setdefault(self, {})
            device = self.native.device_of_thread()
            stream = others.get(device)
            if stream is None:
                stream = others[device] = Stream(self.native, self._foreign)
                stream._waits = stream._waits or self._thread is not None
        return stream

    def _of_entered(self, handle: int) -> Stream:
        for stream in reversed(self.native.entered.streams):
            if isinstance(stream, Stream) and stream.handle == handle and stream.backend == self.backend:
                return stream
        stream = Stream(self.native, self._foreign)  # C has set it, which may set another of the same handle later
        stream._entered = handle
        return stream

    def mark(
        self,
        native: Native,
        handle: int | None,
        arrays: Sequence[DeviceArray],
        others: Sequence[object],
        held: Sequence[Mark] = (),
    ) -> Mark:
        """A mark after what is on the stream now, which uses these: up to it, those are kept alive whose memory is not
        given back behind it. What is on the stream began behind the marks that are ``held``. Raises `DeviceError`; the
        arrays have the mark then, too."""
        kept = list(others)
        for array in arrays:
            if not array.is_ours():
                kept.append(array)
        mark = self.open if self.lazy else None
        if mark is None:
            mark = Mark(native, handle, self)
            if self.lazy:
                mark = turns.opened(self, mark)
        mark.launches += 1
        for array in arrays:
            array.used_until(mark, held)
        if kept:
            self.keep(mark, kept)  # may wait, and be interrupted
        if self.lazy:
            return mark
        try:
            mark.put()
            native.check()
        except BaseException:
            self.keep(mark, [*arrays])
            raise
        return mark

    def keep(self, mark: Mark, kept: list[object]) -> None:
        """Keeps what a launch uses until work up to the mark is done, which comes after it. Waits for what was launched
        long ago where so much is kept that memory would run out. Raises `DeviceError`."""
        with self.lock:
            self.kept += 1
            self._pending.append((self.kept, kept))
            if self._waits:
                self._last = mark
        count, most = len(self._pending), _MOST_KEPT_ON_CPU if self.backend == "host" else _MOST_KEPT
        if count > most:
            before, self._halfway = self._halfway or mark, mark
            before.wait()  # lets go of what is up to there
        elif 2 * count <= most:
            self._halfway = mark

    def before_launch(self, references: Callable[[object], int] = getrefcount) -> None:
        """Puts the mark of the last launches before a further one, where somebody counts on that. What fails is kept
        for the thread's next call."""
        mark = self.open
        if mark is not None and (mark.launches >= MOST_OPEN or references(mark.pendings) > _OF_A_SLOT):
            mark.put()

    def let_go(self, number: int) -> None:
        """Keeps no longer what launches up to that number have left: their work is done."""
        if not self._pending:
            return
        gone = []
        with self.lock:
            while self._pending and self._pending[0][0] <= number:
                gone.append(self._pending.popleft())
        gone.clear()  # outside of the lock: finalizers of other packages may do anything

    def synchronize(self) -> None:
        """Waits until all work on the stream is done. Raises `DeviceError` for what went wrong in it; what the work
        uses is kept then."""
        stream = self.here()
        self.native.check()  # what failed before would hinder the wait
        number, mark = stream.kept, stream.open
        try:
            if mark is not None and not turns.replace(stream, "open", mark, None):  # another thread puts it
                mark = None
            self.native.api.mgpuStreamSynchronize(self.handle)
            self.native.check()
        except BaseException:
            if mark is not None:  # somebody may ask for it when the stream has gone
                with contextlib.suppress(DeviceError):
                    self.native.at_end(mark.put, self._process)
            raise
        if mark is not None:
            mark.done = True
        stream.let_go(number)

    def __enter__(self) -> Stream:
        self.check("with")
        entered = self.native.entered
        entered.enter_stream(self.backend, self, None if self.is_default() else self.device(), self.handle)
        entered.streams.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self.native.entered.leave(self.backend, self)
        streams = self.native.entered.streams
        del streams[max(index for index, stream in enumerate(streams) if stream is self)]

    def __del__(self) -> None:
        if not getattr(self, "_owned", False):
            end = self._end_kept if getattr(self, "_pending", None) and self._waits else None
        else:
            end = self._end if self.handle else None
        error = None if end is None else self.native.at_end(end, self._process)
        if error is not None:  # of work that nobody has waited for: Python tells on stderr what a `__del__` raises
            raise error

    def _end(self, references: Callable[[object], int] = getrefcount, alone: int = _OF_A_SLOT) -> None:
        # Another thread may have found the stream by its mark, and be about to put that.
        with self.lock:
            if self.open is not None and references(self.open) > alone:  # an array or a handle may ask for it later
                self.open.put(self)
            if self._pending:
                self.native.api.mgpuStreamSynchronize(self.handle)
            self.native.api.mgpuStreamDestroy(self.handle)

    def _end_kept(self) -> None:
        # By the mark: to another thread, the handle means another stream.
        if self._last is not None and (event := self._last.event) is not None:
            self.native.api.mgpuEventSynchronize(event)

    def __reduce__(self) -> NoReturn:
        raise refusal("a stream", "make another one with lib.stream()")

    def __repr__(self) -> str:
        return f"<offload stream {self.handle or 0:#x}>"


def as_stream(native: Native, given: Any, label: str) -> Stream:
    """One of ours as it is, another package's wrapped. Raises `SignatureError` for what is no stream, and for one of
    another backend than the one in use: ``label`` is what messages call the function or kernel."""
    try:
        known = given.known_to(native) if isinstance(given, Stream) else given
        stream = known if isinstance(known, Stream) else Stream(native, known)
    except TypeError as error:
        raise SignatureError(f"{label}: {error}") from None
    stream.check(label)
    return stream
