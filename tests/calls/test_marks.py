"""Threads that launch at once: what uses an array is the last of each stream's work, whoever comes first to say so. The
CPU runs work on streams as late as it may, so a wait that is too short shows in the numbers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import running_late

from offload.errors import DeviceError
from offload.runtime import FAST, Kernel, streams
from offload.runtime.pending import Mark


@pytest.fixture
def late() -> Iterator[Any]:
    with running_late("of_marks") as made:
        yield made


@pytest.fixture
def library(late: Any) -> Any:
    return late


@pytest.mark.skipif(not FAST, reason="this is it")
def test_without_the_extension(tmp_path: Path) -> None:
    """In a process of its own: what takes turns by a lock, and what the extension changes, are not for one."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__],
        cwd=tmp_path,
        env=os.environ | {"OFFLOAD_FAST_CALLS": "0", "TMPDIR": str(tmp_path), "PYTEST_XDIST_WORKER": "gw0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # It is no worker, whoever started it: its cache is in its own folder, and not in that of all runs.
    assert [path.parent.name for path in tmp_path.glob("pytest-of-*/**/once")] == ["pytest-0"]


def array(library: Any, value: float) -> Any:
    return library.device.array(np.full(8, value, np.float32))


def together(*calls: Callable[[], object]) -> None:
    failed: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def mark_of(stream: Any) -> Mark:
    return stream.mark(stream.native, stream.handle, [], [])  # type: ignore[no-any-return]


def test_an_older_mark_does_not_take_the_place_of_a_newer_one(library: Any) -> None:
    stream, x, y = library.stream(), array(library, 1), array(library, 1)
    kernel = library.kernels.saxpy_kernel
    kernel[1, 256, stream](x, y, 2.0)
    first = stream.open  # another thread is about to say that it uses y up to here
    first.put()
    kernel[1, 256, stream](x, y, 2.0)
    second = stream.open
    assert second.serial > first.serial
    y.used_until(first)
    assert y._uses.mark is second
    y.used_until(second)
    assert y._uses.mark is second
    assert (y.numpy() == 5).all()
    assert y._uses.mark is None


@pytest.mark.skipif(not FAST, reason="the extension is about it")
def test_nor_in_the_extension(late: Any) -> None:
    stream, x, y = late.stream(), array(late, 1), array(late, 1)
    launch = late.kernels.saxpy_kernel[1, 256, stream]
    for _ in range(3):  # now it has its plan
        launch(x, y, 0.0).wait()
    older = mark_of(stream)
    newer = Mark(stream.native, stream.handle, stream)
    y.used_until(newer)
    assert stream.open is older
    launch(x, y, 2.0)
    assert y._uses.mark is newer
    assert x._uses.mark is older


def marks_of_another(
    stream: Any, monkeypatch: pytest.MonkeyPatch, use: Callable[[Mark], object] = lambda mark: None
) -> list[Mark]:
    """While the next mark is being made another thread asks the stream for its mark, and uses it: where it comes."""
    others: list[Mark] = []
    asked = []

    class Slow(Mark):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            if not asked:
                asked.append(True)
                together(lambda: others.append(mark_of(stream)))
                use(others[0])

    monkeypatch.setattr(streams, "Mark", Slow)
    return others


def test_two_threads_make_the_first_mark(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = library.stream()
    others = marks_of_another(stream, monkeypatch)
    mark = mark_of(stream)
    assert mark is others[0]
    assert stream.open is mark
    assert mark.launches == 2


def test_a_mark_that_was_made_before_one_that_is_put_is_not_older(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches that come after that one count on it."""
    stream = library.stream()
    others = marks_of_another(stream, monkeypatch, lambda mark: mark.put())
    mark = mark_of(stream)
    assert mark is not others[0]
    assert mark.serial > others[0].serial


@contextlib.contextmanager
def at_once(monkeypatch: pytest.MonkeyPatch, count: int) -> Iterator[None]:
    """Launches begin when that many threads are about to."""
    start, barrier = Kernel._start, threading.Barrier(count)

    def wait(kernel: Kernel, *rest: Any) -> None:
        barrier.wait(timeout=60)
        start(kernel, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "_start", wait)
        yield


def test_several_streams_at_once(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are waited for, by copies and by later launches."""
    kernel, x, y = library.kernels.saxpy_kernel, array(library, 1), array(library, 1)
    launches = [kernel[1, 256, library.stream()] for _ in range(3)]
    with at_once(monkeypatch, 3):
        together(*(lambda launch=launch: launch._call(x, y, 2.0) for launch in launches))  # type: ignore[misc]
    assert len(x._uses.marks()) == len(y._uses.marks()) == 3
    assert (y.numpy() == 7).all()
    assert y._uses.mark is None
    with at_once(monkeypatch, 3):
        together(*(lambda launch=launch: launch._call(x, y, 2.0) for launch in launches))  # type: ignore[misc]
    later = kernel[1, 256, library.stream()]
    later(x, y, 2.0).wait()
    assert (y.host_view() == 15).all()
    launches[0](x, y, 1.0)
    assert isinstance(x._uses.mark, Mark), "the last is behind all others"
    with at_once(monkeypatch, 2):
        together(*(lambda launch=launch: launch._call(x, y, 2.0) for launch in launches[1:]))  # type: ignore[misc]
    kernel[1, 256](x, y, 1.0)  # waits
    assert (y.host_view() == 21).all()


def test_memory_goes_behind_all_that_uses_it(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, y = library.kernels.saxpy_kernel, array(library, 1)
    launches = [kernel[1, 256, library.stream()] for _ in range(2)]
    for _ in range(20):
        x = array(library, 1)
        with at_once(monkeypatch, 2):
            together(*(lambda launch=launch, x=x: launch._call(x, y, 1.0) for launch in launches))  # type: ignore[misc]
        del x
        again = array(library, 100)  # the same memory, if it was free
        del again
    assert (y.numpy() == 41).all()


def test_a_failed_synchronize_loses_nothing(library: Any) -> None:
    kernel, stream = library.kernels.saxpy_kernel, library.stream()
    x, y, there = np.ones(8, np.float32), np.ones(8, np.float32), array(library, 1)
    kernel[1, 256, stream](x, y, 2.0)
    kernel[1, 256, stream](x, there, 2.0)
    mark = stream.open
    library._native.api.mgpuBackendUse(b"metal")  # keeps an error
    with pytest.raises(DeviceError, match='the backend "metal", which is unknown'):
        stream.synchronize()
    assert stream._pending
    assert stream.open is mark
    assert not mark.done
    assert (y == 1).all()
    stream.synchronize()
    assert (y == 3).all()
    assert mark.done
    assert not stream._pending
    assert stream.open is None
    assert (there.numpy() == 3).all()


def test_what_the_driver_fails_in_while_synchronizing(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark is put then: the stream may be gone when somebody asks for it."""
    api, kernel, stream = library._native.api, library.kernels.saxpy_kernel, library.stream()
    x, y, there = np.ones(8, np.float32), np.ones(8, np.float32), array(library, 1)
    kernel[1, 256, stream](x, y, 2.0)
    kernel[1, 256, stream](x, there, 2.0)
    mark = stream.open
    with monkeypatch.context() as patch:
        patch.setattr(api, "mgpuStreamSynchronize", lambda handle: api.mgpuBackendUse(b"metal"))
        with pytest.raises(DeviceError, match="unknown"):
            stream.synchronize()
    library._native.check()
    assert stream._pending, "the work may still use them"
    assert not mark.done
    assert mark._event
    del stream
    assert (y == 3).all()
    assert (there.numpy() == 3).all()


def test_an_error_of_before_takes_no_mark_away(library: Any) -> None:
    kernel, stream = library.kernels.saxpy_kernel, library.stream()
    x, y = array(library, 1), array(library, 1)
    kernel[1, 256, stream](x, y, 2.0)
    library._native.api.mgpuBackendUse(b"metal")
    with pytest.raises(DeviceError, match="unknown"):
        y.numpy()
    assert y._uses.mark is not None
    assert (y.numpy() == 3).all()


def test_an_interrupt_when_the_kernel_is_on_the_stream(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is noticed when the driver has it: what it uses is waited for, and kept."""
    kernel, stream, start = library.kernels.saxpy_kernel, library.stream(), Kernel._start
    x, y, there = np.ones(8, np.float32), np.ones(8, np.float32), array(library, 1)

    def interrupted(kernel: Kernel, *rest: Any) -> None:
        start(kernel, *rest)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "_start", interrupted)
        for out in (there, y):
            with pytest.raises(KeyboardInterrupt):
                kernel[1, 256, stream]._call(x, out, 2.0)
    assert stream._pending
    assert there._uses.mark is stream.open
    assert (there.numpy() == 3).all()
    stream.synchronize()
    assert (y == 3).all()


@pytest.mark.parametrize("name", ["mgpuMemcpy", "mgpuMemset8"])
def test_an_interrupted_copy_is_over(library: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Nobody keeps the memory that it goes to."""
    api, there, called = library._native.api, array(library, 1), []
    copy, wait = getattr(api, name), api.mgpuStreamSynchronize

    def interrupted(*arguments: Any) -> None:
        copy(*arguments)
        called.append("copy")
        raise KeyboardInterrupt

    monkeypatch.setattr(api, name, interrupted)
    monkeypatch.setattr(api, "mgpuStreamSynchronize", lambda stream: (called.append("wait"), wait(stream)))
    with pytest.raises(KeyboardInterrupt):
        there.numpy() if name == "mgpuMemcpy" else there.clear()
    assert called == ["copy", "wait"]


def test_an_interrupted_synchronize_loses_nothing(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api, kernel, stream = library._native.api, library.kernels.saxpy_kernel, library.stream()
    x, y, there = np.ones(8, np.float32), np.ones(8, np.float32), array(library, 1)
    kernel[1, 256, stream](x, y, 2.0)
    kernel[1, 256, stream](x, there, 2.0)

    def interrupted(handle: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(api, "mgpuStreamSynchronize", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.synchronize()
    assert stream._pending
    del stream
    assert (y == 3).all()
    assert (there.numpy() == 3).all()


def test_what_the_driver_did_not_mark_is_not_taken_for_done(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream has gone, and with it what a later launch could wait for."""
    api, kernel, stream = library._native.api, library.kernels.saxpy_kernel, library.stream()
    x, y = array(library, 1), array(library, 1)
    kernel[1, 256, stream](x, y, 2.0)
    with monkeypatch.context() as patch:
        patch.setattr(api, "mgpuStreamMark", lambda handle: None)
        del stream
    refused = "The driver refused to mark what was on a stream"
    with pytest.raises(DeviceError, match=refused):
        kernel[1, 256, library.stream()](x, y, 2.0)
    with pytest.raises(DeviceError, match=refused):
        y.numpy()
