"""``calls.py ARTIFACT COPY KERNELS BACKEND``: what calls of saxpy do with arrays, streams and devices, on a stand-in
driver with two devices that runs kernels by the CPU's code (see stage.py). Prints "right", or fails."""

import asyncio
import ctypes
import gc
import itertools
import json
import re
import shutil
import sys
import tempfile
from typing import Any

import numpy as np
from stage import artifact, backend, open_driver, open_library

import offload


def refusal(call: Any, *args: Any) -> str:
    try:
        call(*args)
    except offload.SignatureError as error:
        return str(error)
    raise AssertionError("it was not refused")


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
    assert "read-only" in refusal(library.saxpy, 2, offload.stage(frozen), offload.stage(out))
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
    """A launch that no mark can be put behind is told by the launch, not by what its thread does next."""
    there, out = library.device.array(x), library.device.zeros(1000, np.float32)
    stream = library.stream()
    launch = kernel[4, 256, stream]
    name = b"cuEventRecord" if backend == "cuda" else b"hipEventRecord"
    for _ in range(4):  # from the third on through the extension
        driver.standin_count(name, 1, 999)
        try:
            launch(there, out, 1)
        except offload.DeviceError as error:
            assert name.decode() in str(error), error
        else:
            raise AssertionError("nothing was told")
        driver.standin_count(None, 0, 0)
        library.saxpy(0, there, there)  # which has nothing to do with it
    stream.synchronize()
    assert np.array_equal(out.numpy(), 4 * x)


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


def streams_of_another_backend() -> None:
    """Arrays are the CPU's there, and the work on the stream would be a GPU's; and the other way round."""
    stream, there = library.stream(), library.device.array(x)
    launch, out = kernel[4, 256, stream], y.copy()
    for _ in range(3):  # now it has its plan
        launch(there, library.device.array(y), 2)
    library.saxpy(2, there, library.device.array(y), stream=stream)
    stream.synchronize()
    library.use("host")
    try:
        calls = [
            lambda: launch(x, out, 2),
            lambda: kernel[4, 256, stream],
            lambda: library.saxpy(2, x, out, stream=stream),
            stream.__enter__,
        ]
        for call in calls:
            told = refusal(call)
            assert f"a stream of {backend}, but the backend in use is host; make another" in told, told
        of_host = library.stream()
    finally:
        library.use(backend)
    assert f"a stream of host, but the backend in use is {backend}" in refusal(lambda: kernel[4, 256, of_host])
    assert np.array_equal(out, y)
    launch(there, library.device.array(y), 2).wait()


def devices() -> None:
    second = library.device(1)
    assert (library.device.index, second.index, second.info.index) == (0, 1, 1)
    there, out = second.array(x), second.zeros(1000, np.float32)
    assert (there.device, library.device.zeros(1, "f4").device) == (1, 0)
    assert np.array_equal(there.numpy(), x)
    for _ in range(3):  # The third time, the launch has a plan.
        message = refusal(kernel[4, 256], there, out, 2)
        assert "float32[1000] on device 1, but the kernel runs on device 0" in message
        assert "launch it inside 'with lib.device(1):'" in message
        with second:
            assert library.device.index == 1
            kernel[4, 256](there, out, 1)
        assert library.device.index == 0
    assert np.array_equal(out.numpy(), 3 * x)
    with second:
        far = library.stream()
    near = library.stream()
    for _ in range(4):  # from the third on with a plan
        kernel[4, 256, far](there, out, 1).wait()  # whatever the thread's device is
        message = refusal(kernel[4, 256, near], there, out, 1)
        assert (
            "float32[1000] on device 1, but the kernel runs on device 0; launch it on a stream of device 1" in message
        )
    with far:  # what is done on it is done on its device
        assert library.device.index == library.device.zeros(1, np.float32).device == 1
        kernel[4, 256](there, out, 0)
    assert library.device.index == 0
    launch, on_first = kernel[4, 256, far], library.device.zeros(1000, np.float32)
    for _ in range(4):
        launch(there, out, 0)
    assert "on device 0, but the kernel runs on device 1" in refusal(launch, there, on_first, 1)
    assert "on device 0, but the kernel runs on device 1" in refusal(launch, on_first, out, 1)
    far.synchronize()
    assert np.array_equal(out.numpy(), 7 * x)
    # Every device has this stream: the thread's device says which one is meant.
    everywhere, to_first = kernel[4, 256, library.stream(0)], library.device.array(x)
    for _ in range(4):
        with second:
            everywhere(there, out, 0).wait()
            assert "on device 0, but the kernel runs on device 1" in refusal(everywhere, to_first, on_first, 1)
        everywhere(to_first, on_first, 2).wait()
        assert "on device 1, but the kernel runs on device 0" in refusal(everywhere, there, out, 1)
    assert np.array_equal(on_first.numpy(), 8 * x)
    try:
        library.device(7)
    except offload.DeviceError as error:
        assert "There is no device 7" in str(error)
    else:
        raise AssertionError("there are two")


def devices_of_functions() -> None:
    """A function, too, refuses arrays of another device than the one that its work goes to."""
    second, near = library.device(1), library.device.array(x)
    there, out = second.array(x), second.zeros(1000, np.float32)
    with second:
        far = library.stream()
    told = (
        "saxpy(): argument 'x' (2 of 3): expected array float32[?], given float32[1000] on device 1, but the function "
        "runs on device 0; call it inside 'with lib.device(1):' or on a stream of device 1, or copy the array to "
        "device 0"
    )
    for _ in range(3):  # from the second on, calls go through the extension
        assert refusal(library.saxpy, 2, there, out) == told
        with second:
            library.saxpy(1, there, out)
            assert "on device 0, but the function runs on device 1" in refusal(library.saxpy, 1, near, out)
        library.saxpy(1, there, out, stream=far)
        assert "on device 0, but" in refusal(lambda: library.saxpy(2, near, out, stream=far))
    assert np.array_equal(out.numpy(), 6 * x)
    # The innermost `with` counts.
    with far, library.device(0):
        assert refusal(library.saxpy, 2, there, out) == told
        assert "on device 1, but the kernel runs on device 0" in refusal(kernel[4, 256], there, out, 2)
        library.saxpy(1, near, near)
        with library.device(1), far:
            library.saxpy(1, there, out)
        driver.standin_clear()
        library.device.synchronize()
        synchronized = driver.standin_log()
        library.saxpy(1, near, near)
    driver.standin_clear()
    library.device.synchronize()
    assert synchronized == driver.standin_log() != b"", "outside of the stream's `with`, of the same device"
    assert np.array_equal(out.numpy(), 7 * x)
    assert np.array_equal(near.numpy(), 4 * x)
    shared = second.managed(1000, np.float32)  # which every device reaches
    shared.host_view()[...] = 1
    for _ in range(3):
        library.saxpy(0, shared, near)
        kernel[4, 256](shared, near, 0)

    class Foreign:
        def __dlpack__(self, **options: Any) -> Any:
            return there.__dlpack__(stream=-1)

        def __dlpack_device__(self) -> tuple[int, int]:
            return there.__dlpack_device__()

    assert refusal(library.saxpy, 2, Foreign(), out) == told


def chosen_inside() -> None:
    """Another backend is used inside of a `with`: it has a device and a stream of its own."""
    second, stream, there = library.device(1), library.stream(), library.device.array(x)

    def stream_of_launch() -> str:
        driver.standin_clear()
        library.saxpy(0, there, there)
        return re.search("launch .* (stream .*)", driver.standin_log().decode())[1]  # type: ignore[index]

    own = stream_of_launch()
    with second:
        library.use("host")
        assert library.device.index == 0
        library.use(backend)
        assert library.device.index == 1
        try:
            library.use("rocm" if backend == "cuda" else "cuda")
        except offload.DeviceError:
            assert library.device.index == 1
        offload.load(artifact).use("host")  # the same runtime
    assert library.device.index == 0
    library.use(backend)
    assert library.device.index == 0, "the `with` was left while another backend was in use"
    with stream:
        on_stream, out = stream_of_launch(), y.copy()
        assert on_stream != own
        library.use("host")
        library.saxpy(2, x, out)  # which a GPU would have done, with the addresses of the CPU
        assert np.array_equal(out, expected)
        library.use(backend)
        assert stream_of_launch() == on_stream
    assert stream_of_launch() == own


def lent_streams() -> None:
    """The protocol of cuda-python gives other packages the driver's stream, not the runtime's handle."""
    with tempfile.TemporaryDirectory() as folder:
        other = offload.load(shutil.copy(artifact, folder))
    other.use(backend)
    stream, there = library.stream(), library.device.array(x)

    class Theirs:
        def __cuda_stream__(self) -> tuple[int, int]:
            return stream.__cuda_stream__()

    driver.standin_clear()
    kernel[4, 256, stream](there, there, 0).wait()
    other.kernels.saxpy_kernel[4, 256, Theirs()](there, there, 0).wait()
    ours, others = re.findall("launch .* (stream .*)", driver.standin_log().decode())
    assert ours == others
    assert stream.__cuda_stream__()[1] not in (0, stream.handle)
    assert library.stream(0).__cuda_stream__() == (0, 1 if backend == "cuda" else 0)
    assert library.stream(Theirs()).__cuda_stream__() == stream.__cuda_stream__()
    library.use("host")
    assert not hasattr(library.stream(), "__cuda_stream__")
    library.use(backend)


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


def two_libraries() -> None:
    """Another library's runtime knows no stream of this one: its handle never comes to the driver, which would take it
    for a stream. What has to wait for the other's work waits all the same."""
    with tempfile.TemporaryDirectory() as folder:
        other = offload.load(shutil.copy(artifact, folder))
    other.use(backend)
    there, out = library.device.array(x), library.device.zeros(1000, np.float32)
    stream, others = library.stream(), other.stream()
    driver.standin_clear()
    for _ in range(4):  # from the third on through the extension
        kernel[4, 256, stream](there, out, 1)
        other.kernels.saxpy_kernel[4, 256, others](there, out, 1)
    library.saxpy(1, there, out)
    other.saxpy(1, there, out)
    assert np.array_equal(out.numpy(), 10 * x)
    other.kernels.saxpy_kernel[4, 256, others](there, out, 1)
    out = None
    stream.synchronize()  # which kept the array, as the other did
    others.synchronize()
    log = driver.standin_log().decode().splitlines()
    waits = [line for line in log if line.startswith("wait")]
    assert all(re.match(r"wait S\d{1,3} E\d{1,3}$", line) for line in waits), waits
    launches = [index for index, line in enumerate(log) if line.startswith("launch")]
    for before, after in itertools.pairwise(launches[:8]):
        assert any(line.startswith("sync E") for line in log[before:after]), log[before:after]
    assert any(line.startswith("sync E") for line in log[launches[-1] :]), log[launches[-1] :]
    out = library.device.array(y)
    told = f"a stream of another library, {library.path}: make one with lib.stream() of this library"
    for _ in range(3):  # from the second on through the extension
        assert told in refusal(lambda: other.saxpy(2, there, out, stream=stream))
        other.saxpy(0, there, out, stream=others)
    for call in (lambda: other.kernels.saxpy_kernel[4, 256, stream], lambda: other.stream(stream)):
        try:
            call()
        except (offload.SignatureError, TypeError) as error:
            assert told in str(error)
        else:
            raise AssertionError("it was not refused")
    again = offload.load(artifact)  # the same runtime
    again.kernels.saxpy_kernel[4, 256, stream](there, out, 2).wait()
    again.saxpy(0, there, out, stream=stream)
    assert np.array_equal(out.numpy(), expected)
    # Another package's is for both.
    other.saxpy(0, there, out, stream=library.stream(1))
    other.kernels.saxpy_kernel[4, 256, library.stream(1)](there, out, 0).wait()


parts = (staged, on_streams, again, marks, foreign_streams, streams_of_another_backend, devices, memory, dlpack, frees)
for part in (*parts, devices_of_functions, chosen_inside, lent_streams, two_libraries):
    part()
print(json.dumps("right"))
