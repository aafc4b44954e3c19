"""``placed.py ARTIFACT COPY KERNELS BACKEND``: which device and which stream work goes to, and whose they are, on a
stand-in driver with two devices that runs kernels by the CPU's code (see stage.py). Prints "right", or fails."""

import ctypes
import itertools
import json
import re
import shutil
import tempfile
from typing import Any

import numpy as np
from stage import artifact, backend, open_driver, open_library, refusal

import offload

library = open_library()
library.use(backend)
driver = open_driver(library)
driver.standin_log.restype = ctypes.c_char_p
kernel = library.kernels.saxpy_kernel
x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
expected = 2 * x + 1


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
        return re.findall("launch .* (stream .*)", driver.standin_log().decode())[0]

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


for part in (streams_of_another_backend, devices, devices_of_functions, chosen_inside, lent_streams, two_libraries):
    part()
print(json.dumps("right"))
