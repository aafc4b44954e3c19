"""``lent.py ARTIFACT COPY KERNELS BACKEND``: memory that another package has been given and lets go of, on a stand-in
driver with two devices (see stage.py): it is given back behind what that package has put on the default stream; and
memory that another package gives, on one device or the other. Prints "right", or fails."""

import ctypes
import json
import re
from typing import Any

import numpy as np
from stage import backend, open_driver, open_library, refusal

import offload
from offload.runtime import FAST, interchange

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
    known = kernel[4, 256, stream.handle]
    for _ in range(3):
        kernel[4, 256, stream.handle](Other(), Other(), 1).wait()
        known(Other(), Other(), 1).wait()
    log = driver.standin_log().decode()
    assert not re.search(rf" S{default}\b", log), log
    assert theirs.numpy().tolist() == [512] * 1000


class Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32))


class Functions(ctypes.Structure):
    """DLPackExchangeAPI of DLPack 1.3."""

    _fields_ = (
        *(("version", Version), ("previous", ctypes.c_void_p), ("allocate", ctypes.c_void_p)),
        *(("from_object", ctypes.c_void_p), ("to_object", ctypes.c_void_p), ("view", ctypes.c_void_p)),
        ("current_stream", ctypes.c_void_p),
    )


def exchanged() -> None:
    """What a type has C functions for costs no call of its methods: the launch is behind the package's stream."""
    stream, other = library.stream(), library.stream()
    current, asked, released = [other.__cuda_stream__()[1]], [], []
    default = "-1" if backend == "cuda" else "0"

    class Tensor:
        requires_grad = False

        def __init__(self, array: Any, device: int = 0, flags: int = 0) -> None:
            self.array, self.device, self.flags = array, device, flags
            self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)

        def __dlpack__(self, **options: Any) -> Any:
            asked.append(options)
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    @ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    def release(managed: int) -> None:
        released.append(made.pop(managed))

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
    def from_object(value: Any, out: Any) -> int:
        managed = interchange.Versioned(major=1, minor=3, deleter=ctypes.cast(release, ctypes.c_void_p).value)
        managed.flags, tensor = value.flags, managed.tensor
        tensor.data, tensor.ndim, tensor.shape = value.array.pointer, value.array.ndim, value.shape
        tensor.device_type, tensor.device_id = value.array.__dlpack_device__()[0], value.device
        tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
        made[ctypes.addressof(managed)] = managed
        out[0] = ctypes.addressof(managed)
        return 0

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    def current_stream(kind: int, device: int, out: Any) -> int:
        out[0] = current[0]
        return 0

    made: dict[int, Any] = {}
    functions = Functions(Version(1, 3))
    for name, function in (("from_object", from_object), ("current_stream", current_stream)):
        setattr(functions, name, ctypes.cast(function, ctypes.c_void_p))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    Tensor.__dlpack_c_exchange_api__ = new(ctypes.addressof(functions), b"dlpack_exchange_api", None)

    kernel = library.kernels.saxpy_kernel
    x, out = library.device.array(np.ones(1000, np.float32)), library.device.zeros(1000, np.float32)
    there, here = Tensor(x), Tensor(out)

    def told(launch: Any, *arguments: Any) -> list[str]:
        driver.standin_clear()
        asked.clear()
        released.clear()
        launch(*arguments, 1)
        return [
            re.sub("launch .* (stream .\\d*).*", r"\1", line) for line in driver.standin_log().decode().splitlines()
        ]

    launch, waiting = kernel[4, 256, stream], kernel[4, 256]
    known = kernel[4, 256, current[0]]
    for _ in range(3):
        for each in (launch, waiting, known):
            each(there, here, 1)
    total = 9
    log = told(launch, there, here)
    assert not asked, "the functions do"
    assert len(released) == 2
    assert not made
    record, wait, started = log
    assert record.split()[0] == "record", log
    assert wait.split()[0] == "wait", log
    assert wait.split()[1] == "S" + started.split()[1], log
    log = told(waiting, there, here)
    assert [line.split()[0] for line in log] == ["record", "wait", "stream", "sync"], log
    log = told(known, there, here)
    assert [line.split()[0] for line in log] == ["stream", "record"], "its work is on that stream"
    total += 3
    assert not asked
    library.saxpy(0, there, here)
    driver.standin_clear()
    asked.clear()
    library.saxpy(1, there, here)
    log = driver.standin_log().decode().splitlines()
    assert log[0] == f"sync {record.split()[2]}", log
    assert sum(line.startswith("launch") for line in log) == 1, log
    assert not asked
    total += 1
    current[0] = None  # the default stream
    log = told(launch, there, here)
    assert re.match(rf"record E\d+ S{default} on 0", log[0]), log
    assert not asked
    total += 1
    for odd in ("requires_grad", "is_neg", "flags", "device"):
        tensor = Tensor(out, **({"flags": {"flags": 1}, "device": {"device": 1}}.get(odd, {})))
        if odd == "requires_grad":
            tensor.requires_grad = True
        if odd == "is_neg":
            tensor.is_neg = lambda: True
            assert "opposite sign" in refusal(launch, there, tensor, 1)
            continue
        told(launch, there, tensor)
        assert asked, odd
        total += 1

    class Derived(Tensor):
        pass

    told(launch, there, Derived(out))
    assert asked, "it may be no memory at all"
    total += 1
    assert "float32[?], given float32[10, 10]" in refusal(
        launch, there, Tensor(library.device.zeros((10, 10), "f4")), 1
    )
    if backend == "cuda":
        current[0] = other.__cuda_stream__()[1]
        driver.standin_capture(current[0])
        told(launch, there, here)
        driver.standin_capture(None)
        assert asked, "the stream of the launch is not to go into the other's graph"
        total += 1
    assert out.numpy().tolist() == [total] * 1000


def kept() -> None:
    """A stream that nobody waits for keeps other packages' arrays, but not without end."""
    array, out = library.device.zeros(1000, np.float32), library.device.zeros(1000, np.float32)
    gone: list[int] = []

    class Other:
        def __init__(self, number: int) -> None:
            self.number = number

        def __dlpack__(self, **options: Any) -> Any:
            return array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return array.__dlpack_device__()

        def __del__(self) -> None:
            gone.append(self.number)

    stream = library.stream()
    launch = library.kernels.saxpy_kernel[4, 256, stream]
    for number in range(3000):
        launch(Other(number), out, 1)
        assert len(gone) >= number - 1024
    assert sorted(gone) == list(range(len(gone))), "those of the first launches"
    assert len(gone) < 3000 - 256, "without waiting for the last ones"
    stream.synchronize()
    assert len(gone) == 3000


lent()
borrowed()
if FAST:
    exchanged()
kept()
consumed()
if backend == "cuda":  # whose default stream has a handle that can be captured here
    captured()
on_the_cpu()
print(json.dumps("right"))
