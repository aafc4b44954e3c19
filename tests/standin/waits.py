"""``waits.py ARTIFACT COPY KERNELS BACKEND``: what functions of several kernels ask of a stand-in driver that runs
kernels by the CPU's code (see stage.py). Prints, as JSON, launches and waits by function, and what failures say and
leave behind."""

import ctypes
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from stage import backend, open_driver, open_library

import offload

library = open_library()
library.use(backend)
driver = open_driver(library)
driver.standin_log.restype = ctypes.c_char_p
WAIT, LAUNCH, ALLOCATE = {
    "cuda": (b"cuStreamSynchronize", b"cuLaunchKernel", b"cuMemAllocAsync"),
    "hip": (b"hipStreamSynchronize", b"hipModuleLaunchKernel", b"hipMallocAsync"),
}[backend]
ILLEGAL_ADDRESS, INVALID_VALUE, NO_MEMORY = 700, 1, 2


def array(*values: int) -> Any:
    return library.device.array(np.array(values, np.int32))


def told(call: Callable[[], object]) -> list[str]:
    """The kernels that a call launches, and its waits and work on memory, in their order."""
    driver.standin_clear()
    call()
    lines = [line.split() for line in driver.standin_log().decode().splitlines()]
    words = [words[1] if words[0] == "launch" else words[0] for words in lines]
    return [word for word in words if word in ("add", "times", "copy", "sync", "alloc", "free", "wait")]


def failure(call: Callable[[], object]) -> list[Any]:
    """What it says, and what the driver was asked."""
    said: list[str] = []

    def caught() -> None:
        try:
            call()
        except offload.DeviceError as error:
            said.append(str(error))

    asked = told(caught)
    driver.standin_count(None, 0, 0)
    return [*said, asked]


def failing(name: bytes, turn: int, code: int, call: Callable[[], object]) -> list[Any]:
    """The same where a call of the driver answers a code."""
    driver.standin_count(name, turn, code)
    return failure(call)


x, y, nothing = array(1, 2, 3), array(0, 0, 0), array()
library.one(x)  # which loads the module
seen = {
    "one": told(lambda: library.one(x)),
    "two": told(lambda: library.two(x)),
    "either": told(lambda: library.either(x, True)),
    "or": told(lambda: library.either(x, False)),
    "perhaps": told(lambda: library.perhaps(x, True)),
    "perhaps not": told(lambda: library.perhaps(x, False)),
    "loop of 0": told(lambda: library.loop(x, 0)),
    "loop of 3": told(lambda: library.loop(x, 3)),
    "load": told(lambda: library.load(x)),
    "store": told(lambda: library.store(x)),
    "transfers": told(lambda: library.transfers(x, y)),
    "memory": told(lambda: library.memory(x)),
    "temporary": told(lambda: library.temporary(x, True)),
    "no temporary": told(lambda: library.temporary(x, False)),
    "calls": told(lambda: library.calls(x)),
    "tokens": told(lambda: library.tokens(x, y)),
    "early": told(lambda: library.early(x, True)),
    "late": told(lambda: library.early(x, False)),
    "checked": told(lambda: library.checked(x, True)),
    "devices": told(lambda: library.on_device(x)),
    "on a stream": told(lambda: library.two(x, stream=library.stream())),
    "empty": told(lambda: library.two(nothing)),
}
failures = {
    "assertion": failure(lambda: library.checked(x, False)),
    "second launch": failing(LAUNCH, 2, INVALID_VALUE, lambda: library.two(x)),
    "kernel": failing(WAIT, 1, ILLEGAL_ADDRESS, lambda: library.two(x)),
    "kernel of several": failing(WAIT, 1, ILLEGAL_ADDRESS, lambda: library.memory(x)),
    "kernel told by a launch": failing(LAUNCH, 2, ILLEGAL_ADDRESS, lambda: library.two(x)),
    "kernel before an assertion": failing(WAIT, 1, ILLEGAL_ADDRESS, lambda: library.checked(x, False)),
    "kernel alone": failing(WAIT, 1, ILLEGAL_ADDRESS, lambda: library.one(x)),
    "no memory": failing(ALLOCATE, -2, NO_MEMORY, lambda: library.memory(x)),
    "memory behind a wait": failing(ALLOCATE, 2, NO_MEMORY, lambda: library.memory(x)),
    "afterwards": failure(lambda: library.two(x)),
}
print(json.dumps([seen, failures]))
