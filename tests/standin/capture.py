"""``capture.py ARTIFACT COPY KERNELS BACKEND``: launches of saxpy on another package's stream that is captured into a
graph. The stand-in refuses whatever might wait or allocate in a capture, and launches that go into the graph do not run
(see stage.py). Prints "right", or fails."""

import ctypes
import gc
import json
from typing import Any

import numpy as np
from stage import backend, open_driver, open_library

import offload


def foreign_stream() -> int:
    """A stream that the runtime has not made."""
    stream, context = ctypes.c_void_p(), ctypes.c_void_p()
    if backend == "cuda":
        assert driver.cuInit(0) == 0
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxSetCurrent(context) == 0
        assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
        assert driver.cuCtxSetCurrent(None) == 0
    else:
        assert driver.hipStreamCreateWithFlags(ctypes.byref(stream), 1) == 0
    assert stream.value
    return stream.value


asked: list[dict[str, Any]] = []


class Other:
    """Another package's array on the device, whose own work has nothing to do with the graph."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        asked.append(options)
        assert options.get("stream") == -1, "it would put an event on the captured stream"
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._array.__dlpack_device__()
        return device


class Interface:
    def __init__(self, array: Any, stream: int = 1) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__ | {"stream": stream}


library = open_library()
library.use(backend)
driver = open_driver(library)
driver.standin_capture.argtypes = (ctypes.c_void_p,)
kernel = library.kernels.saxpy_kernel
x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
expected = 2 * x + 1
there, out = library.device.array(x), library.device.array(y)
raw = foreign_stream()

# The first launch of all loads the module; work of before, on another stream, uses the arrays.
other = library.stream()
driver.standin_capture(raw)
graph = [kernel[4, 256, raw](there, out, 2)]
assert driver.standin_capture(None) == 1
earlier = kernel[4, 256, other](there, out, 0)

driver.standin_capture(raw)
stream = library.stream(raw)
launch = kernel[4, 256, stream]
for arguments in ((there, out, 2), (Other(there), out, 2), (Interface(there), out, 2), (there, Other(out), 2)):
    graph.append(launch(*arguments))
graph.append(launch(a=2, x=there, y=out) if "a" in kernel._callee.names else launch(there, out, 2))
library.auto_stage = True
graph.append(launch(there, out, 2))
for attempt, message in (
    (lambda: launch(there, offload.stage(y), 2), "put it on the device before the capture"),
    (lambda: launch(there, y, 2), "copy it to the device"),
    (lambda: launch(there, out, "2"), "expected float32"),
):
    try:
        attempt()
        raise AssertionError(message)
    except offload.SignatureError as error:
        assert message in str(error), error
library.auto_stage = False
assert driver.standin_capture(None) == 6
assert len(asked) == 2
assert np.array_equal(out.numpy(), y), "what goes into a graph does not run"
for pending in graph:
    try:
        pending.wait()
        raise AssertionError("it has not run")
    except offload.DeviceError as error:
        assert "launch the graph, and wait for that" in str(error)
    assert repr(pending) == "<offload launch in a graph>"

# What works on a stream that is captured has not run, and to wait for it would put others into the graph, or end it.
elsewhere, function = kernel[4, 256, other], library.saxpy
calls = [(call, arguments) for call, arguments in (
    (elsewhere, (Interface(there, raw), out, 2)), (elsewhere, (there, Interface(out, raw), 2)),
    (kernel[4, 256], (Interface(there, raw), out, 2)), (function, (2, Interface(there, raw), out)),
)]  # fmt: skip
driver.standin_capture(raw)
for call, arguments in calls:
    for _ in range(3):
        try:
            call(*arguments)
            raise AssertionError("it would wait for the captured stream")
        except offload.SignatureError as error:
            assert "whose stream is being captured into a graph; launch" in str(error), error
assert driver.standin_capture(None) == 0
for call, arguments in calls:
    call(*(0 if argument == 2 else argument for argument in arguments))
other.synchronize()
assert np.array_equal(out.numpy(), y)

# Outside, the same launch runs, and nothing waits for what went into the graph.
launch(there, out, 2).wait()
assert np.array_equal(out.numpy(), expected)
# Without a stream, and on streams of ours, launches in a capture of others are as before where the driver allows them.
earlier.wait()
live = driver.standin_live
temporary = library.device.array(x)
driver.standin_capture(raw)
held = launch(temporary, out, 2)
driver.standin_capture(None)
before = live(2)
temporary = None
gc.collect()
assert live(2) == before, "the handle keeps what the graph uses"
held = None
gc.collect()
assert live(2) == before - 1
print(json.dumps("right"))
