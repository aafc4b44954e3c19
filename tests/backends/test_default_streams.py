"""Default streams: each thread has its own, and `with` gives it another. The CPU runs work on streams as late as it
may, so a wait that is too short shows in the numbers."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compiling import running_late

from offload.runtime import FAST, Kernel, streams


@pytest.fixture
def library() -> Iterator[Any]:
    with running_late("of_default_streams") as made:
        yield made


def array(library: Any, value: float) -> Any:
    return library.device.array(np.full(8, value, np.float32))


def elsewhere(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_a_thread_that_ends_leaves_nothing(library: Any) -> None:
    """Its work is done by then, and what it used is not kept."""
    kernel, stream = library.kernels.saxpy_kernel, library.stream(0)
    arrays: list[Any] = []
    values: list[float] = []

    def launch() -> None:
        x, y = np.ones(8, np.float32), np.ones(8, np.float32)
        weakref.finalize(y, lambda where=y.ctypes.data: values.append(np.ctypeslib.as_array(seen(where), (1,))[0]))
        arrays.append(weakref.ref(y))
        kernel[1, 256, stream](x, y, 2.0)

    def seen(where: int) -> Any:
        import ctypes

        return ctypes.cast(where, ctypes.POINTER(ctypes.c_float))

    for _ in range(40):
        elsewhere(launch)
    gc.collect()
    assert not any(there() is not None for there in arrays)
    assert values == [3.0] * 40, "each went when its kernel was done"
    assert not stream._pending
    assert not stream._others


def test_a_stream_that_goes_first(library: Any) -> None:
    """A thread still has arrays on its part of it: they are waited for."""
    kernel, stream, y, go, there = library.kernels.saxpy_kernel, library.stream(0), np.ones(8, np.float32), [], []
    launched, end = threading.Event(), threading.Event()

    def launch() -> None:
        kernel[1, 256, stream_of()](np.ones(8, np.float32), y, 2.0)
        there.extend(streams._thread.streams.values())
        go.append((y == 1).all())
        launched.set()
        end.wait()

    holder = [stream]

    def stream_of() -> Any:
        return holder[0]

    thread = threading.Thread(target=launch)
    thread.start()
    launched.wait()
    assert go == [True], "the kernel is late"
    assert len(there) == 1
    there.clear()
    kernel._ready.clear()
    del stream
    holder.clear()
    gc.collect()
    assert (y == 3).all()
    end.set()
    thread.join()


def test_a_thread_has_one_stream_for_each(library: Any) -> None:
    stream, other = library.stream(0), library.stream(0)
    assert stream.here() is stream
    found: list[Any] = []
    elsewhere(lambda: found.extend([stream.here(), stream.here(), other.here()]))
    assert found[0] is found[1]
    assert len({id(each) for each in (stream, other, *found)}) == 4
    assert not found[0].is_here()
    assert found[0].here() is not found[0]


@pytest.mark.parametrize("kind", ["before", "inside"])
def test_a_stream_that_was_entered(library: Any, kind: str) -> None:
    """Handle 0 means it then, and later work on the thread's own stream waits for it."""
    kernel, mine = library.kernels.saxpy_kernel, library.stream(0)
    for _ in range(40):
        x, y, z, stream = array(library, 1), array(library, 1), array(library, 0), library.stream()
        with stream:
            default = mine if kind == "before" else library.stream(0)
            assert default.here() is stream
            kernel[1, 256, default](x, y, 1.0)  # y = 2
        assert default.here() is default
        kernel[1, 256, default](y, z, 1.0)  # z = 2
        with library.stream(), stream, default:
            assert default.here() is default
        assert (z.numpy() == 2).all()
        assert (y.numpy() == 2).all()


def test_a_stream_that_c_has_set(library: Any) -> None:
    api, stream, y = library._native.api, library.stream(0), array(library, 1)
    other = api.mgpuStreamCreate()
    api.mgpuSetThreadStream(other)
    try:
        there = stream.here()
        assert there is not stream
        assert there.is_here()
        library.kernels.saxpy_kernel[1, 256, stream](array(library, 1), y, 2.0)
    finally:
        api.mgpuSetThreadStream(None)
    assert not there.is_here()
    library.kernels.saxpy_kernel[1, 256, stream](array(library, 1), y, 2.0)
    assert (y.numpy() == 5).all()
    api.mgpuStreamDestroy(other)


@pytest.mark.skipif(not FAST, reason="the extension is about it")
def test_the_extension_takes_those_of_the_calling_thread(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, stream = library.kernels.saxpy_kernel, library.stream(0)
    launch = kernel[1, 256, stream]
    x, y = array(library, 1), array(library, 1)
    for _ in range(3):  # now it has its plan
        launch(x, y, 0.0).wait()
    called: list[int] = []
    start = Kernel._start
    monkeypatch.setattr(Kernel, "_start", lambda *rest: (called.append(threading.get_ident()), start(*rest)))
    for _ in range(5):
        launch(x, y, 1.0)
    assert not called
    assert (y.numpy() == 6).all()
    with library.stream():  # not there
        launch(x, y, 1.0)
    assert called == [threading.get_ident()]
    elsewhere(lambda: launch(x, y, 1.0))
    assert len(called) == 2
    assert (y.numpy() == 8).all()
    assert (x.numpy() == 1).all()
    launch(x, y, 1.0)
    assert len(called) == 2
    assert (y.numpy() == 9).all()


def test_what_is_kept_goes_with_the_stream(library: Any) -> None:
    """Arrays that are not ours are not freed before the kernel has used them."""
    kernel, y = library.kernels.saxpy_kernel, np.ones(8, np.float32)
    stream = library.stream(0)
    kernel[1, 256, stream](np.ones(8, np.float32), y, 2.0)
    assert (y == 1).all()
    kernel._ready.clear()
    del stream
    assert (y == 3).all()
