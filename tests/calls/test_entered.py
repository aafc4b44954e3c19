"""`with` of devices and streams that are left in another order than the one in which they were entered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES, on_host, python


def inside(entered: AbstractContextManager[Any]) -> Iterator[None]:
    with entered:
        yield


def test_a_generator_leaves_its_own() -> None:
    library = on_host(EXAMPLES / "saxpy.mlir")
    first, second, now = library.stream(), library.stream(), library._native.entered.stream
    generator = inside(first)
    next(generator)
    with second:
        generator.close()  # it was the second that was left, for the first
        assert now() == second.handle
        with library.device(0):
            assert now() == second.handle
        with first, first:
            assert now() == first.handle
        assert now() == second.handle
    assert now() is None
    assert library._native.entered.streams == []


def test_what_a_device_kept_goes_with_its_stream() -> None:
    """A device that is entered keeps the stream that is set; it may be gone when that is left."""
    library = on_host(EXAMPLES / "saxpy.mlir")
    stream, now = library.stream(), library._native.entered.stream
    generator = inside(stream)
    next(generator)
    with library.device(0):
        assert now() == stream.handle
        generator.close()
        assert now() is None
    assert now() is None


def test_tasks_of_asyncio() -> None:
    library = on_host(EXAMPLES / "saxpy.mlir")
    first, second, now = library.stream(), library.stream(), library._native.entered.stream
    seen = []

    async def run() -> None:
        entered, left = asyncio.Event(), asyncio.Event()

        async def one() -> None:
            with first:
                await entered.wait()
            left.set()

        async def other() -> None:
            with second:
                entered.set()
                await left.wait()
                seen.append(now())

        await asyncio.gather(one(), other())

    asyncio.run(run())
    assert seen == [second.handle]
    assert now() is None


def test_one_that_was_not_entered() -> None:
    library = on_host(EXAMPLES / "saxpy.mlir")
    first, second = library.stream(), library.stream()
    with first:
        with pytest.raises(RuntimeError, match=r"^this thread is in no 'with'"):
            second.__exit__(None, None, None)
        assert library._native.entered.stream() == first.handle


DEVICES = """
import sys, offload
library = offload.load(sys.argv[1])
def inside(entered):
    with entered:
        yield library.device.index
stream = library.stream()
def place():
    return library.device.index, library._native.entered.stream() == stream.handle
one = inside(library.device(1))
print(next(one), end=" ")
other = inside(stream)
print(next(other), end=" ")
two = inside(library.device(2))
print(next(two), end=" ")
other.close()
print(place(), end=" ")
one.close()
print(place(), end=" ")
with library.device(1):
    two.close()
    print(place(), end=" ")
print(place())
"""


def test_devices(drivers: Path, built: dict[str, Path], tmp_path: Path) -> None:
    there = {"LD_LIBRARY_PATH": str(drivers), "STANDIN_DEVICES": "3"}
    said = python(DEVICES, built["saxpy"], cwd=tmp_path, environment=there)
    assert said == "1 0 2 (2, False) (2, False) (1, False) (0, False)\n"


ANOTHER_BACKEND = """
import sys, offload
library = offload.load(sys.argv[1])
library.use("host")
def inside(entered):
    with entered:
        yield
def place():
    return library.device.index, library._native.entered.stream() is not None
one, stream = inside(library.device(0)), inside(library.stream())
next(stream), next(one)
with library.device(0):
    library.use("cuda")
    with library.device(1):
        stream.close()
        print(place(), end=" ")
    print(place(), end=" ")
    library.use("host")
    print(place(), end=" ")
    one.close()
print(place())
"""


def test_one_that_is_left_while_another_backend_is_in_use(
    drivers: Path, built: dict[str, Path], tmp_path: Path
) -> None:
    """What was entered after a stream kept it, and had it again with its backend, when it was gone."""
    there = {"LD_LIBRARY_PATH": str(drivers), "STANDIN_DEVICES": "2"}
    said = python(ANOTHER_BACKEND, built["saxpy"], cwd=tmp_path, environment=there)
    assert said == "(1, False) (0, False) (0, False) (0, False)\n"
