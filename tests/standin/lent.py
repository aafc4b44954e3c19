"""``lent.py ARTIFACT COPY KERNELS BACKEND``: memory that another package has been given and lets go of, on a stand-in
driver with two devices (see stage.py): it is given back behind what that package has put on the default stream; and
memory that another package gives, on one device or the other. Prints "right", or fails."""

import ctypes
import json
import re
from typing import Any

import numpy as np
from stage import backend, open_driver, open_library

import offload

library = open_library()
library.use(backend)
driver = open_driver(library)
driver.standin_log.restype = ctypes.c_char_p
driver.standin_capture.argtypes = (ctypes.c_void_p,)
default = "-1" if backend == "cuda" else "0"


def waits(*arrays: list[Any]) -> list[str]:
    """What the driver is told of events when arrays go that are in lists and nowhere else."""
    driver.standin_clear()
    for array in arrays:
        array.clear()
    log = driver.standin_log().decode().splitlines()
    return [line for line in log if re.match("record|wait", line)]


def lent() -> None:
    for device in (library.device, library.device(1)):
        assert waits([device.zeros(4, np.float32)]) == [], "nobody else has had it"
        array: list[Any] = [device.zeros(4, np.float32)]
        array[0].__dlpack__(stream=-1)
        recorded, waited = waits(array)
        assert re.match(rf"record E\d+ S{default} on {device.index}$", recorded), recorded
        assert re.match(rf"wait S\d+ {recorded.split()[1]}$", waited), waited
        array = [device.zeros(4, np.float32)]
        assert array[0].__cuda_array_interface__["version"] == 3
        assert len(waits(array)) == 2
        assert library.device.index == 0


def consumed() -> None:
    """Who takes an array that work uses goes on behind that, on the array's device, whatever the thread's is."""
    with library.device(1):
        there, out = (library.device.array(np.ones(1000, np.float32)) for _ in range(2))
        pending = library.kernels.saxpy_kernel[4, 256, library.stream()](there, out, 1)
    if backend == "cuda":  # for the other, exporting waits
        driver.standin_clear()
        out.__dlpack__(stream=1)
        (waited,) = driver.standin_log().decode().splitlines()
        assert re.match(r"wait S-1 E\d+ on 1$", waited), waited
    library.use("host")
    driver.standin_clear()
    out.__dlpack__(stream=1 if backend == "cuda" else 0)
    assert re.match(r"sync E\d+$", driver.standin_log().decode()), driver.standin_log()
    library.use(backend)
    pending.wait()


def captured() -> None:
    """Nothing is asked of a default stream that a graph is made of."""
    array = [library.device.zeros(4, np.float32)]
    array[0].__dlpack__(stream=-1)
    driver.standin_capture(1 if backend == "cuda" else 0)
    told = waits(array)
    driver.standin_capture(None)
    assert told == [], told


def on_the_cpu() -> None:
    array = [library.device.zeros(4, np.float32)]
    array[0].__dlpack__(stream=-1)
    library.use("host")
    assert waits(array) == []
    of_cpu = library.device.zeros(4, np.float32)
    assert np.from_dlpack(of_cpu).tolist() == [0] * 4
    library.use(backend)


def borrowed() -> None:
    kernel = library.kernels.saxpy_kernel
    with library.device(1):
        theirs = library.device.array(np.ones(1000, np.float32))
        stream = library.stream()

    class Other:
        def __dlpack__(self, **options: Any) -> Any:
            return theirs.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return theirs.__dlpack_device__()

    ours = library.device.zeros(1000, np.float32)
    for _ in range(3):
        for launch, other in ((kernel[4, 256], ours), (kernel[4, 256, library.stream()], ours)):
            try:
                launch(Other(), other, 2)
            except offload.SignatureError as error:
                assert "float32[1000] on device 1, but the kernel runs on device 0; launch it " in str(error), error
            else:
                raise AssertionError("it was launched on the other device")
        driver.standin_clear()
        kernel[4, 256, stream](Other(), Other(), 1).wait()
    assert theirs.numpy().tolist() == [8] * 1000
    # Its work is on the default stream of its device, whatever the thread's is; the stream waits for it once.
    recorded, waited, launched, *_ = driver.standin_log().decode().splitlines()
    assert re.match(rf"record E\d+ S{default} on 1$", recorded), recorded
    (number,) = re.findall(r" stream (\d+)", launched)
    assert waited == f"wait S{number} {recorded.split()[1]}", (waited, launched)
    assert library.device.index == 0
    # What goes on a stream that others know, the other package orders before that itself.
    driver.standin_clear()
    for _ in range(3):
        kernel[4, 256, stream.handle](Other(), Other(), 1).wait()
    log = driver.standin_log().decode()
    assert not re.search(rf" S{default}\b", log), log
    assert theirs.numpy().tolist() == [64] * 1000


lent()
borrowed()
consumed()
if backend == "cuda":  # whose default stream has a handle that can be captured here
    captured()
on_the_cpu()
print(json.dumps("right"))
