"""``calls.py ARTIFACT COPY KERNELS BACKEND``: what calls of saxpy do with arrays, streams and memory, on a stand-in
driver with two devices that runs kernels by the CPU's code (see stage.py). Prints "right", or fails."""

import asyncio
import ctypes
import gc
import json
import re
import sys
from typing import Any

import numpy as np
from stage import backend, open_driver, open_library, refusal

import offload

library = open_library()
library.use(backend)
driver = open_driver(library)
driver.standin_log.restype = ctypes.c_char_p
kernel = library.kernels.saxpy_kernel
x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
expected = 2 * x + 1


def staged() -> None:
    assert "pass offload.stage(x), which copies it there and back" in refusal(library.saxpy, 2, x, y)
    out = y.copy()
    assert library.saxpy(2, offload.stage(x, back=False), offload.stage(out)) is None
    assert np.array_equal(out, expected)
    frozen = x.copy()
    frozen.flags.writeable = False
    assert "read-only" in refusal(library.saxpy, 2, offload.stage(out), offload.stage(frozen))
    out = y.copy()
    library.saxpy(2, offload.stage(frozen), offload.stage(out))  # it only reads that one
    assert np.array_equal(out, expected)
    out = y.copy()
    kernel[4, 256](offload.stage(frozen, back=False), offload.stage(out), 2)
    assert np.array_equal(out, expected)
    both = np.ones(1000, np.float32)
    library.saxpy(2, offload.stage(both), offload.stage(both))  # one array, staged once
    assert both.tolist() == [3] * 1000
    assert "shares memory" in refusal(library.saxpy, 2, offload.stage(both[1:]), offload.stage(both[:-1]))
    assert "not contiguous" in refusal(library.saxpy, 2, offload.stage(both[::2]), offload.stage(out[:500]))
    assert "float64[3]" in refusal(library.saxpy, 2, offload.stage(np.ones(3)), offload.stage(out))
    library.auto_stage = True
    try:
        out = y.copy()
        library.saxpy(2, x, out)
        assert np.array_equal(out, expected)
        there = library.device.array(y)
        library.saxpy(2, x, there)  # what is there already stays there
        assert np.array_equal(there.numpy(), expected)
        out = y.copy()
        pending = kernel[4, 256, library.stream()](x, out, 2)
        assert np.array_equal(out, expected), "what is copied back is done when the launch returns"
        pending.wait()
    finally:
        library.auto_stage = False


def on_streams() -> None:
    there, out = library.device.array(x), library.device.array(y)
    stream = library.stream()
    driver.standin_clear()
    pending = kernel[4, 256, stream](there, out, 2)
    assert "launch saxpy_kernel" in driver.standin_log().decode()
    pending.wait()
    assert np.array_equal(out.numpy(), expected)

    async def twice() -> None:
        await kernel[4, 256, stream](there, out, 1)
        await asyncio.gather(kernel[4, 256, stream](there, out, 1), library.saxpy.start(0, there, out))

    out.copy_from(y)
    asyncio.run(twice())
    assert np.array_equal(out.numpy(), expected)
    out.copy_from(y)
    library.saxpy(2, there, out, stream=stream)
    with stream:
        library.saxpy(0, there, out)
    assert np.array_equal(out.numpy(), expected)
    assert "expected a stream" in refusal(lambda: library.saxpy(2, there, out, stream="s"))
    # Work on another stream waits for the array; dropping the array gives its memory back behind the work.
    driver.standin_clear()
    kernel[4, 256, stream](there, out, 2)
    other = library.stream()
    kernel[4, 256, other](there, out, 2)
    log = driver.standin_log().decode().splitlines()
    launches = [index for index, line in enumerate(log) if line.startswith("launch")]
    assert any(line.startswith("wait") for line in log[launches[0] : launches[1]]), log
    there = out = None
    gc.collect()
    stream.synchronize()
    other.synchronize()


def again() -> None:
    """A launch on a stream that is called again runs through the extension: in order on its stream, behind others'."""
    there, out = library.device.array(x), library.device.zeros(1000, np.float32)
    first, second = library.stream(), library.stream()
    launches = [kernel[4, 256, stream] for stream in (first, second)]
    for launch in launches:
        for _ in range(2):  # with the second call it has its plan
            launch(there, out, 1)
    total = 4
    for launch in launches:
        launch(there, out, 1)  # arrays that another stream uses are waited for by Python
        launch._call = None
        driver.standin_clear()
        pending = [launch(there, out, 1) for _ in range(3)]
        assert not any(line.startswith("wait") for line in driver.standin_log().decode().splitlines())
        del launch._call
        total += 4
        pending[-1].wait()
        assert np.array_equal(out.numpy(), total * x)
        launch(there, out, 0)
    driver.standin_clear()
    launches[0](there, out, 0)
    assert any(line.startswith("wait") for line in driver.standin_log().decode().splitlines())
    live, before = driver.standin_live, driver.standin_live(2)
    pending = launches[0](there, out, 1)
    there = out = None
    gc.collect()
    assert live(2) == before
    pending.wait()
    for stream in (first, second):
        stream.synchronize()
    pending = None
    gc.collect()
    assert live(2) == before - 2
    assert "float32[?], given float64[3]" in refusal(launches[0], library.device.zeros(3, "f8"), x, 1)


def marks() -> None:
    """A mark that cannot be put is told by what asks for it, not by what its thread does next: by the wait, or by the
    launch that has to put it first. On a stream that others know, each launch asks."""
    there, out = library.device.array(x), library.device.zeros(1000, np.float32)
    stream = library.stream()
    launch, known = kernel[4, 256, stream], kernel[4, 256, stream.handle]
    name = b"cuEventRecord" if backend == "cuda" else b"hipEventRecord"

    def refused(call: Any) -> None:
        driver.standin_count(name, 1, 999)
        try:
            call()
        except offload.DeviceError as error:
            assert name.decode() in str(error), error
        else:
            raise AssertionError("nothing was told")
        driver.standin_count(None, 0, 0)
        library.saxpy(0, there, there)  # which has nothing to do with it

    for _ in range(4):  # from the third on through the extension
        refused(lambda: known(there, out, 1))
        pending = launch(there, out, 1)
        refused(pending.wait)
        pending.wait()
        pending = launch(there, out, 1)
        refused(lambda: launch(there, out, 1))  # not launched: the mark of the one before comes first
        pending.wait()
    stream.synchronize()
    assert np.array_equal(out.numpy(), 12 * x)


def unasked() -> None:
    """Nobody asks for the marks of launches on a stream of ours that nobody else knows, and whose handles are dropped:
    but for one now and then, the driver is told of the launches alone."""
    arrays, stream = [library.device.array(x), library.device.zeros(1000, np.float32)], library.stream()
    launch = kernel[4, 256, stream]

    def told(count: int) -> list[str]:
        driver.standin_clear()
        for _ in range(count):
            launch(*arrays, 1)
        return [line.split()[0] for line in driver.standin_log().decode().splitlines()]

    told(3)
    stream.synchronize()
    assert told(8) == ["launch"] * 8
    log = told(64)
    assert log.count("launch") == 64
    assert 3 <= log.count("record") <= 5, log
    driver.standin_clear()
    pending = [launch(*arrays, 1) for _ in range(4)]
    log = [line.split()[0] for line in driver.standin_log().decode().splitlines()]
    assert log == ["launch", *["record", "launch"] * 3], "each is put before the next launch"
    stream.synchronize()
    driver.standin_clear()
    pending[-1].wait()
    assert not driver.standin_log(), "it is known to be done"
    assert np.array_equal(arrays[1].numpy(), 79 * x)
    assert told(1) == ["launch"]
    pending = [launch(*arrays, 1)]
    stream = launch = None
    gc.collect()
    pending[0].wait()  # it was put when the stream went
    assert np.array_equal(arrays[1].numpy(), 81 * x)


def frees() -> None:
    """Memory that the driver does not take back is told on stderr, and not by what the thread does next."""
    told: list[str] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda said: told.append(str(said.exc_value))
    names = ("cuMemFreeAsync", "cuMemHostUnregister") if backend == "cuda" else ("hipFreeAsync", "hipHostUnregister")
    there, live = library.device.zeros(1000, np.float32), driver.standin_live(2)
    for name, make in zip(names, (library.device.zeros, library.device.pinned), strict=True):
        gone = make(1000, np.float32)
        driver.standin_count(name.encode(), 1, 999)
        del gone
        driver.standin_count(None, 0, 0)
        library.saxpy(0, there, there)
        assert [line.partition(" ")[0] for line in told] == [name], told
        told.clear()
    sys.unraisablehook = hook
    assert driver.standin_live(2) >= live


def foreign_streams() -> None:
    raw = library.stream()

    class Torch:
        cuda_stream = raw.handle

    class Handle:
        handle = ctypes.c_void_p(raw.handle)

    class HipPython:
        def as_c_void_p(self) -> ctypes.c_void_p:
            return ctypes.c_void_p(raw.handle)

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, raw.handle

    there = library.device.array(x)
    for foreign in (raw.handle, Torch(), Handle(), HipPython(), Protocol()):
        out = library.device.array(y)
        kernel[4, 256, foreign](there, out, 2).wait()
        assert np.array_equal(out.numpy(), expected), foreign
        assert library.stream(foreign).handle == raw.handle
    out, default = library.device.array(y), library.stream(0)
    assert default.handle == 1, "the driver's default stream is not the thread's own"
    driver.standin_clear()
    kernel[4, 256, default](there, out, 2).wait()
    assert re.search("launch .* stream (-1|0)\\b", driver.standin_log().decode()), driver.standin_log()


def memory() -> None:
    live = driver.standin_live
    pinned = library.device.pinned((10, 10), np.float32)
    pinned[...] = 3
    assert library.device.array(pinned).numpy().sum() == 300
    assert library.device.pinned(0, np.float32).shape == (0,)
    managed = library.device.managed(1000, np.float32)
    managed.host_view()[...] = y
    library.saxpy(2, library.device.array(x), managed)
    assert np.array_equal(managed.host_view(), expected)
    assert ".numpy() copies it" in refusal(library.device.zeros(3, "f4").host_view)
    before = live(2)
    del managed, pinned
    gc.collect()
    assert live(2) == before - 1


def dlpack() -> None:
    there = library.device.array(x.reshape(10, 100))
    kind = 2 if backend == "cuda" else 10
    assert there.__dlpack_device__() == (kind, 0)

    class Other:
        """Another package's array on the device. Like older versions of torch, it orders nothing for a stream that is
        not named, nor for None."""

        def __dlpack__(self, *, stream: Any = -1, **options: Any) -> Any:
            assert stream == (1 if backend == "cuda" else 0), stream
            return there.__dlpack__(stream=stream, **options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return there.__dlpack_device__()

    flat = library.device.array(x)
    there, out = flat, library.device.array(y)
    driver.standin_clear()
    library.saxpy(2, Other(), out)
    assert np.array_equal(out.numpy(), expected)
    waited = "sync S-1" if backend == "cuda" else "sync S0"  # for what it has put on the default stream
    assert waited in driver.standin_log().decode().partition("launch")[0], driver.standin_log()
    refused = (*((0,) if backend == "cuda" else (1, 2)), -7, 1 << 64, "1")
    for stream in (None, -1, 1, 2, 0, -7, 1 << 64, "1"):
        try:
            there.__dlpack__(stream=stream)
            assert stream not in refused
        except ValueError:
            assert stream in refused
    for options in ({"copy": True}, {"dl_device": (1, 0)}):
        try:
            there.__dlpack__(**options)
        except BufferError:
            continue
        raise AssertionError(options)


for part in (staged, on_streams, again, marks, unasked, foreign_streams, memory, dlpack, frees):
    part()
print(json.dumps("right"))
