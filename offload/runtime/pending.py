"""Work in flight: marks on streams, and handles that can be waited for or awaited."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from os import getpid
from sys import getrefcount
from typing import TYPE_CHECKING, Any
from weakref import ref

from offload.errors import DeviceError
from offload.runtime import turns
from offload.runtime.abi import ERROR_INVALID
from offload.runtime.native import Native

if TYPE_CHECKING:
    import asyncio

    from offload.runtime.streams import Stream


# The extension's way of ending an event where the object goes that has it.
_end_event: Callable[[int, int], tuple[int, bytes] | None] | None = None


def end_events_with(function: Callable[[int, int], tuple[int, bytes] | None]) -> None:
    """Lets marks end their events by the extension."""
    global _end_event
    _end_event = function


class _Seen:
    """Tells how many references its finalizer sees where nothing refers to it any more."""

    __slots__ = ("_told",)

    def __init__(self, told: list[int]) -> None:
        self._told = told

    def __del__(self, references: Callable[[object], int] = getrefcount) -> None:
        self._told.append(references(self))


def _references_at_end() -> int:
    told: list[int] = []
    _Seen(told)
    return told[0]


_AT_END = _references_at_end()


class Mark:
    """A point of a stream's work: an event of the runtime, which stays valid when the stream is gone.

    It is a promise until somebody asks for it, and most are not asked: `put` puts the event on the stream. Until then
    the mark is the stream's ``open`` one, and stands for all launches that it has got so far. The stream puts it before
    a further launch where a handle counts on it, or where it has got many; and when the stream goes."""

    __slots__ = (
        *("__weakref__", "_event", "_handle", "_lock", "_native", "_process", "_stream"),
        *("done", "launches", "number", "pendings", "serial", "token"),
    )

    def __init__(self, native: Native, handle: int | None, stream: Stream) -> None:
        """After what is on the stream of that handle when it is put. Marks with the token of one `Stream` are in
        order."""
        self._native = native
        self._process = native.process()
        self._handle = handle
        self._stream = ref(stream)
        self._lock = stream.lock
        self._event: int | None = None
        self.token = stream.token
        self.serial = turns.next_serial()
        """Of two marks in order, the later one has the larger: all launches of the other came before this was made."""
        self.number = stream.kept
        """Of what the stream keeps for the launches before it, the last."""
        self.launches = 0
        self.pendings = object()
        """Each handle that counts on the mark has a reference to it."""
        self.done = False
        """Whether the work before it is known to be done."""

    @property
    def event(self) -> int | None:
        """The runtime's event; None where the mark is not put."""
        return self._event

    def put(self, going: Stream | None = None) -> None:
        """Puts the event on the stream, if it is not there: what is launched later is not before the mark. What fails
        is kept for the thread's next call, and tried again by the next `put`, as long as the stream is there. ``going``
        is the stream where it goes, which nobody finds any more."""
        if self._event or self.done:
            return
        if self._native.process() != self._process:  # the parent's lock may be held for ever; the runtime refuses
            self._native.api.mgpuStreamMark(self._handle)
            return
        with self._lock:
            stream = going or self._stream()
            if stream is not None:  # before the event: a launch of another thread may come behind that
                turns.replace(stream, "open", self, None)
            if self._event or self.done or stream is None or not stream.is_here():
                return
            if stream.lazy and self._native.api.mgpuStreamCapturing(self._handle):
                raise DeviceError(
                    "The stream is captured into a graph: what has been launched on it before cannot be waited for.",
                    ERROR_INVALID,
                )
            number = stream.kept  # what is kept has been launched
            event = self._native.api.mgpuStreamMark(self._handle)
            if self._event:  # the extension, which needs no lock, was faster
                self._native.api.mgpuEventDestroy(event)
            else:
                self._event, self.number = event, number

    def wait(self) -> None:
        """Returns when the work before the mark is done. Raises `DeviceError`."""
        self.put()
        if self._event:
            self._native.api.mgpuEventSynchronize(self._event)
        self._native.check()  # an error that was kept before would have hindered the wait
        self._check_put()
        self.done = True
        stream = self._stream()
        if stream is not None:
            stream.let_go(self.number)

    def hold(self, stream: int | None, native: Native) -> None:
        """Lets work that is put on ``stream`` from now on start after the mark. ``native`` is whose stream it is. The
        caller waits only where that is another library, whose streams the mark's does not know. Raises `DeviceError`
        there."""
        self._order(stream, native)
        if not self._knows(native):
            self._native.check()
        if not self._event:
            self._native.check()
            self._check_put()

    def hold_foreign(self, stream: int, backend: str, device: int) -> None:
        """The same for a driver's stream, which may be the default one of that device. The caller waits where another
        backend is in use, to which streams would belong. Raises `DeviceError`."""
        if self._native.backend() != backend:
            self.wait()
            return
        with self._native.on_device(device):
            self._order(stream, self._native)
        self._native.check()
        self._check_put()

    def hold_at_end(self, stream: int | None, native: Native) -> DeviceError | None:
        """The same where an object goes, whatever the thread is at. Returns what failed."""
        return self._native.at_end(lambda: self._order(stream, native), self._process, each=False)

    def _check_put(self) -> None:
        if not self._event and not self.done:
            if self._native.process() != self._process:
                raise DeviceError(
                    "This was launched in the parent of this process, and cannot be waited for here: wait for it "
                    "before the fork.",
                    ERROR_INVALID,
                )
            raise DeviceError(
                "The driver refused to mark what was on a stream that has gone, or is another one here: that cannot be "
                "waited for.",
                ERROR_INVALID,
            )

    def _knows(self, native: Native) -> bool:
        return native.table == self._native.table

    def _order(self, stream: int | None, native: Native) -> None:
        if self.done:
            return
        self.put()
        if not self._event:
            return
        if self._knows(native):
            self._native.api.mgpuStreamWaitEvent(stream, self._event)
        else:
            self._native.api.mgpuEventSynchronize(self._event)

    def __del__(self, references: Callable[[object], int] = getrefcount, alone: int = _AT_END) -> None:
        # Of a circle of garbage, which the collector finalizes in any order, memory may still have to go after this
        # mark: it has not where the work is done.
        wanted = not getattr(self, "done", True) and references(self) > alone
        event: int | None = getattr(self, "_event", None)
        if not wanted and not event:
            return
        if event and not wanted and _end_event is not None:
            self._event, self.done = None, True
            failed = _end_event(self._native.table, event)
            if failed is not None and (told := self._native.told(*failed, self._process, each=False)) is not None:
                raise told
            return
        wanted = wanted and self._native.process() == self._process
        error = self._native.at_end(self._end_done if wanted else self._end, self._process, each=False)
        if error is not None:
            raise error

    def _end_done(self) -> None:
        self.put()
        if self._event:
            self._native.api.mgpuEventSynchronize(self._event)
        self._end()

    def _end(self) -> None:
        event, self._event, self.done = self._event, None, True
        if event:
            self._native.api.mgpuEventDestroy(event)


def _loop() -> asyncio.AbstractEventLoop:
    import asyncio  # half of what loading a library would take, and who awaits has it

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "this is awaited in asyncio, and none of its loops runs here; elsewhere call wait(), in a thread, as "
            "trio.to_thread.run_sync(pending.wait) does"
        ) from None


class Pending:
    """A launch on a stream: ``wait()`` for it, or ``await`` it in asyncio. It keeps the arguments alive.

    One that went into a graph, because the stream was captured, cannot be waited for: wait for the graph, and keep this
    as long as the graph may run."""

    __slots__ = ("__weakref__", "_counts", "_keep", "_mark", "_native")

    def __init__(self, native: Native, mark: Mark | None, keep: tuple[Any, ...]) -> None:
        self._native = native
        self._mark = mark
        self._counts = None if mark is None else mark.pendings
        self._keep = keep

    def wait(self) -> None:
        """Returns when the kernel is done, and lets the arguments go. Raises `DeviceError`."""
        if self._mark is None:
            raise DeviceError(
                "The launch went into a graph and has not run: launch the graph, and wait for that.", ERROR_INVALID
            )
        self._mark.wait()
        self._counts = None
        self._keep = ()

    def __await__(self) -> Generator[Any, None, None]:
        """Waits in a thread of asyncio's, so that the loop goes on."""
        loop = _loop()
        device = self._native.device_of_thread()
        yield from loop.run_in_executor(None, self._wait_there, device).__await__()

    def _wait_there(self, device: int) -> None:
        with self._native.on_device(device):
            self.wait()

    def __repr__(self) -> str:
        return f"<offload launch {'in a graph' if self._mark is None else 'on a stream'}>"


class _Outcome:
    """Of a call in a thread of its own, which keeps this and not its `Running`: an exception keeps what it has passed,
    and a `Running` that is dropped is to tell of it."""

    def __init__(self, streams: tuple[object, ...]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.alone = False  # whether the `Running` is gone
        self.streams = streams  # they may be dropped by the caller before the call has ended
        self._lock = threading.Lock()
        self.ended = False
        self._process = getpid()
        self._listeners: list[Callable[[], object]] = []

    def run(self, native: Native, call: Callable[[], Any], device: int, stream: int | None) -> None:
        try:
            with native.on_device(device):
                native.api.mgpuSetThreadStream(stream)
                self.result = call()
        except BaseException as error:
            self.error = error
            if self.alone:
                raise
        finally:
            self.streams = ()
            with self._lock:
                self.ended = True
            for listener in self._listeners:
                listener()

    def check_here(self) -> None:
        """Raises `DeviceError` in the child of a fork, where no thread of the parent's goes on, and none ends."""
        if not self.ended and self._process != getpid():
            raise DeviceError(
                "The call was started in the parent of this process and ends there: wait for it there, or start it "
                "again here.",
                ERROR_INVALID,
            )

    def at_end(self, listener: Callable[[], object]) -> None:
        """Calls it once the call has ended: in its thread, or here where it has already."""
        with self._lock:
            if not self.ended:
                self._listeners.append(listener)
                return
        listener()

    def forget(self, listener: Callable[[], object]) -> None:
        """It need not be called any more; it may be being called."""
        with self._lock:
            if not self.ended:
                self._listeners.remove(listener)


class Running:
    """A call in a thread of its own: ``wait()`` or ``await`` gives its result, or raises what it raised."""

    def __init__(self, native: Native, call: Callable[[], Any]) -> None:
        """Starts it, on the calling thread's device and stream."""
        self._told = False
        self._outcome = _Outcome(tuple(native.entered.streams))
        device = native.device_of_thread()
        stream = native.api.mgpuSetThreadStream(None)
        native.api.mgpuSetThreadStream(stream)
        arguments = (native, call, device, stream)
        self._thread = threading.Thread(target=self._outcome.run, args=arguments, name="offload call")
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it has ended. Raises `DeviceError` in the child of a fork, where it would never end."""
        self._outcome.check_here()
        return self._outcome.ended

    def wait(self) -> Any:
        """The result, once there is one. Raises what the call raised, and `DeviceError` in the child of a fork."""
        self._outcome.check_here()
        self._thread.join()
        self._told = True
        if self._outcome.error is not None:
            raise self._outcome.error
        return self._outcome.result

    def __await__(self) -> Generator[Any, None, Any]:
        """Takes no thread of asyncio's, of which there are few for all that a program waits for."""
        loop = _loop()
        self._outcome.check_here()
        ended = loop.create_future()

        def tell() -> None:
            if not ended.done():  # it is where the waiting was given up
                ended.set_result(None)

        def tell_loop() -> None:
            with contextlib.suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(tell)

        self._outcome.at_end(tell_loop)
        try:
            yield from ended
        finally:  # it may be given up
            self._outcome.forget(tell_loop)
        return self.wait()

    def __del__(self) -> None:
        outcome = getattr(self, "_outcome", None)
        if outcome is None or self._told:
            return
        outcome.alone = True
        if outcome.error is not None:
            raise outcome.error  # nobody has waited: Python tells on stderr what a `__del__` raises, and a thread

    def __repr__(self) -> str:
        return f"<offload call, {'done' if self._outcome.ended else 'running'}>"
