"""Launches that are written anew for each call: they share what has been prepared, and keep no stream."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import numpy as np
import pytest
from compiling import EXAMPLES, on_host

from offload.errors import SignatureError
from offload.runtime import FAST, Kernel

SLOW = 2 if FAST else 6
"""Calls of six that Python has to do itself: the first prepares the kernel, the second the launches of a stream."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The launches that Python does, by their kernels' names."""
    seen: list[str] = []
    launch = Kernel.launch

    def counted(kernel: Kernel, *rest: Any) -> Any:
        seen.append(kernel.signature.name)
        return launch(kernel, *rest)

    monkeypatch.setattr(Kernel, "launch", counted)
    return seen


def test_written_anew_for_each_call(calls: list[str]) -> None:
    # A library that no other test has launched from.
    library = on_host((EXAMPLES / "saxpy.mlir").read_text() + "func.func private @launched_anew()\n")
    kernel = library.kernels.saxpy_kernel
    stream = library.stream()
    x, y = np.ones(300, np.float32), np.zeros(300, np.float32)
    for _ in range(6):
        kernel[2, 256, stream](x, y, 2.0).wait()
    np.testing.assert_array_equal(y, np.full(300, 12, np.float32))
    assert len(calls) == SLOW
    kernel[1, 256, stream](x, y, 2.0).wait()  # another grid is another launch
    np.testing.assert_array_equal(y, np.where(np.arange(300) < 256, 14, 12))
    assert len(calls) == SLOW + 1


def test_a_stream_that_went_is_gone(calls: list[str]) -> None:
    library = on_host(EXAMPLES / "saxpy.mlir")
    x, y = np.ones(256, np.float32), np.zeros(256, np.float32)
    for number in range(100):  # more than are kept
        stream = library.stream()
        for _ in range(4):
            library.kernels.saxpy_kernel[1, 256, stream](x, y, 1.0).wait()
        went = weakref.ref(stream)
        del stream
        gc.collect()
        assert went() is None
        np.testing.assert_array_equal(y, np.full(256, 4 * (number + 1), np.float32))


def test_integers_of_numpy() -> None:
    kernel = on_host(EXAMPLES / "saxpy.mlir").kernels.saxpy_kernel
    x, y = np.ones(256, np.float32), np.zeros(256, np.float32)
    kernel[np.array(1), (np.int16(256), np.int64(1)), None, np.int64(16)](x, y, 1.0)
    assert y.sum() == 256
    assert kernel.occupancy(np.int32(64), shared=np.int64(16)).threads == 64


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ((np.array([1, 1]), 1), "the grid as a positive integer or a tuple of one to three, given array([1, 1])"),
        ((1, np.array(1.0)), "the block as a positive integer or a tuple of one to three, given array(1.)"),
        ((1, np.True_), "the block as a positive integer or a tuple of one to three, given np.True_"),
        ((1, 1, None, np.float32(1)), "a number of bytes of dynamic workgroup memory, given np.float32(1.0)"),
        ((1, 1, None, 2**31), "of dynamic workgroup memory, given 2147483648; it is at most 2,147,483,647"),
    ],
)
def test_sizes_that_are_none(launch: Any, message: str) -> None:
    with pytest.raises(SignatureError, match=re.escape(message) + "$"):
        on_host(EXAMPLES / "saxpy.mlir").kernels.saxpy_kernel[launch]


@pytest.mark.parametrize("number", [3, 520, np.int64(48 << 10), 327_680])
def test_bytes_of_memory_are_no_stream(number: Any) -> None:
    """Behind grid and block, where CUDA's launches have them: a driver would take them for an address."""
    library = on_host(EXAMPLES / "saxpy.mlir")
    message = re.escape(f"{number} is no handle of a stream, which is an address (0, 1 and 2 are a driver's default")
    for _ in range(2):
        with pytest.raises(SignatureError, match=rf"^kernel saxpy_kernel: {message}.*, None, shared_bytes\]$"):
            library.kernels.saxpy_kernel[1, 256, number]
    with pytest.raises(TypeError, match=f"^{message}"):
        library.stream(number)
    for default in (0, 1, 2):
        library.saxpy(1, np.ones(4, np.float32), np.zeros(4, np.float32), stream=default)


def test_launches_say_what_they_are() -> None:
    library = on_host(EXAMPLES / "saxpy.mlir")
    kernel, stream = library.kernels.saxpy_kernel, library.stream()
    assert repr(kernel[4, 256]) == "<offload launch of saxpy_kernel: grid=(4, 1, 1), block=(256, 1, 1)>"
    assert repr(kernel[(1, 2), 256, stream, 16]) == (
        f"<offload launch of saxpy_kernel: grid=(1, 2, 1), block=(256, 1, 1), on {stream!r}, shared_bytes=16>"
    )
    assert repr(kernel[1, 256, None, 0, (2, 1)]).endswith(", block=(256, 1, 1), cluster=(2, 1, 1)>")


def test_no_stream_is_the_one_that_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """As wrappers pass it on: not a stream of its own for each call."""
    from offload.runtime import function

    def unwanted(*_: object) -> object:
        raise AssertionError("a stream was made")

    library = on_host(EXAMPLES / "saxpy.mlir")
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    monkeypatch.setattr(function, "as_stream", unwanted)
    library.saxpy(1, x, y, stream=None)
    with library.stream():
        library.saxpy(1, x, y, stream=None)
    np.testing.assert_array_equal(y, np.full(4, 2))
