"""``defaults.py ARTIFACT COPY KERNELS BACKEND``: launches on drivers' default streams, of which every device has one,
and every thread for handle 2, on a stand-in driver with two devices (see stage.py). Prints "right", or fails."""

import ctypes
import gc
import json
import re
import threading
import weakref
from typing import Any

import numpy as np
from stage import backend, open_driver, open_library

from offload.runtime import FAST, Kernel

library = open_library()
library.use(backend)
driver = open_driver(library)
driver.standin_log.restype = ctypes.c_char_p
kernel = library.kernels.saxpy_kernel
first, second = library.device(0), library.device(1)


def told() -> list[str]:
    """The waits and the launches that the driver was told of."""
    lines = [line for line in driver.standin_log().decode().splitlines() if re.match("wait|launch", line)]
    driver.standin_clear()
    return [re.sub(r"launch .*", "launch", re.sub(r"wait .*", "wait", line)) for line in lines]


class Other:
    """Another package's array."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**{**options, "stream": -1})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def on_two_devices(handle: int) -> None:
    """Memory that both reach is not free on the one because the other's stream of that handle has its work in order."""
    stream = library.stream(handle)
    launch = kernel[4, 256, stream]
    x, y = (first.managed(1000, np.float32) for _ in range(2))
    x.host_view()[...] = 1
    for _ in range(4):  # now it has its plan
        launch(x, y, 1)
    told()
    launch(x, y, 1)
    assert told() == ["launch"], "the same stream"
    with second:
        launch(x, y, 1)
        assert told() in (["wait", "launch"], ["wait", "wait", "launch"]), "the other device's"
        launch(x, y, 1)
        assert told() == ["launch"]
        launch(x, y, 1)
        assert told() == ["launch"]
    launch(x, y, 1)
    assert told()[-2:] == ["wait", "launch"]
    assert y.numpy().tolist() == [9] * 1000


def kept_on_two_devices(handle: int) -> None:
    stream = library.stream(handle)
    launch = kernel[4, 256, stream]
    kept = []
    for device in (first, second):
        with device:
            out = device.zeros(1000, np.float32)
            other = Other(device.array(np.ones(1000, np.float32)))
            launch(other, out, 1)
            kept.append(weakref.ref(other))
            del other
    gc.collect()
    assert [ref() is None for ref in kept] == [False, False]
    with second:
        stream.synchronize()
    gc.collect()
    assert [ref() is None for ref in kept] == [False, True], "the first one's work may still be on"
    stream.synchronize()
    gc.collect()
    assert [ref() is None for ref in kept] == [True, True]


def in_two_threads() -> None:
    """A thread's default stream is another one in each thread; the legacy one is everybody's."""
    x, y = first.array(np.ones(1000, np.float32)), first.zeros(1000, np.float32)
    for handle, waits in ((1, False), (2, True)):
        launch = kernel[4, 256, library.stream(handle)]
        for _ in range(3):
            launch(x, y, 1)
        y.numpy()
        launch(x, y, 1)
        told()

        def work(launch: Any = launch) -> None:
            launch(x, y, 1)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        seen = told()
        assert seen[-1] == "launch"
        assert ("wait" in seen) == waits, (handle, seen)
    assert y.numpy().tolist() == [10] * 1000


def a_thread_that_ends() -> None:
    """What its work uses is kept until that is done, and no longer."""
    stream, kept = library.stream(2), []

    def work() -> None:
        other = Other(first.array(np.ones(1000, np.float32)))
        kernel[4, 256, stream](other, first.zeros(1000, np.float32), 1)
        kept.append(weakref.ref(other))
        del other
        gc.collect()
        assert kept[-1]() is not None
        driver.standin_clear()

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        gc.collect()
        assert "sync E" in driver.standin_log().decode(), driver.standin_log()
        assert kept[-1]() is None
    assert len(kept) == 3


def by_the_extension() -> None:
    """It takes those of the calling thread."""
    called = []
    x, y = first.array(np.ones(1000, np.float32)), first.zeros(1000, np.float32)
    start = Kernel._start
    for handle in (0, 1, 2):
        launch = kernel[4, 256, library.stream(handle)]
        for _ in range(3):  # now it has its plan
            launch(x, y, 1).wait()
        Kernel._start = lambda *rest: (called.append(rest), start(*rest))  # type: ignore[method-assign]
        launch(x, y, 1)
        Kernel._start = start  # type: ignore[method-assign]
        assert len(called) == (0 if FAST else 1), handle
        called.clear()
        y.numpy()


for handle in (0, 1, 2) if backend == "cuda" else (0, 2):
    on_two_devices(handle)
    kept_on_two_devices(handle)
in_two_threads()
a_thread_that_ends()
by_the_extension()
print(json.dumps("right"))
