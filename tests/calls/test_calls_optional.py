"""None where the signature allows it, and keywords: the same through the extension and through ctypes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiling import program

import offload
from offload.artifact.meta import Argument
from offload.errors import ArtifactError, SignatureError
from offload.runtime import FAST, Library


@pytest.fixture(params=["fast", "ctypes"])
def call(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """How to call; the fast way fails where ctypes would do it."""

    def through(function: Any, *args: Any, **kwargs: Any) -> Any:
        if request.param == "ctypes":
            return function._call(*args, **kwargs)
        assert FAST, "the extension offload.runtime._fast is not built"
        with monkeypatch.context() as patch:
            patch.setattr(function, "_call", None)
            return function(*args, **kwargs)

    return through


def library() -> Library:
    """With plans for its functions, which the first call makes."""
    lib = program("described")
    x = np.zeros(2, np.float32)
    lib.axpy(0, x, x.copy())
    lib.seen(None, 0, np.zeros(4, np.int64))
    lib.kernels.fill[1, 4](None, 0, 0)
    return lib


def test_none_is_an_empty_array(call: Callable[..., Any]) -> None:
    lib = library()
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    copy = np.zeros(4, np.float32)
    assert call(lib.axpy, 2, x, y, copy) == 4
    assert np.array_equal(copy, 2 * x + 1)
    for arguments in ((2, x, y, None), (2, x, y)):
        assert call(lib.axpy, *arguments) == 0
    assert np.array_equal(y, 6 * x + 1)


def test_none_keeps_the_promises_of_the_type(call: Callable[..., Any]) -> None:
    sizes = np.full(4, 77)
    assert call(library().seen, None, 1, sizes) == 0
    assert sizes.tolist() == [0, 4, 4, 2]


def test_none_comes_back_as_an_empty_array() -> None:
    same = library().same()
    assert (same.shape, same.dtype) == ((0,), np.float32)


def test_none_for_kernels(call: Callable[..., Any]) -> None:
    launch = library().kernels.fill[1, 4]
    x = np.zeros(4, np.float32)
    assert call(launch, None, 3.0, 4) is None
    assert call(launch, x, 3.0, 2) is None
    assert x.tolist() == [3, 3, 0, 0]


def test_none_with_staging() -> None:
    lib = library()
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    lib.auto_stage = True
    try:
        assert lib.axpy(2, x, offload.stage(y)) == 0
    finally:
        lib.auto_stage = False
    assert np.array_equal(y, 2 * x + 1)


def test_none_is_refused_elsewhere() -> None:
    lib = library()
    x, sizes = np.zeros(4, np.float32), np.zeros(4, np.int64)
    refused = {
        lambda call: call(
            lib.axpy, 2, None, x
        ): "argument 'x' (2 of 4): expected array float32[?], given None; pass an "
        "array: only an argument with the attribute offload.optional takes None",
        lambda call: call(lib.axpy, None, x, x): "argument 'a' (1 of 4): expected float32, given a NoneType",
        lambda call: call(lib.axpy, 2, x): "missing: y",
        lambda call: call(lib.seen, n=1, sizes=sizes): "missing: x",  # it may be None, and has to be said
    }
    for attempt, message in refused.items():
        texts = []
        for way in (lambda f, *a, **k: f(*a, **k), lambda f, *a, **k: f._call(*a, **k)):
            with pytest.raises(SignatureError, match=re.escape(message)) as error:
                attempt(way)
            texts.append(str(error.value))
        assert texts[0] == texts[1]


def test_keywords(call: Callable[..., Any]) -> None:
    lib = library()
    x, y, copy = np.arange(4, dtype=np.float32), np.ones(4, np.float32), np.zeros(4, np.float32)
    assert call(lib.axpy, y=y, x=x, a=1) == 0
    assert call(lib.axpy, 1, x, copy=copy, **{"".join("y"): y}) == 4  # a name that is not the interned one
    assert np.array_equal(copy, 2 * x + 1)
    launch = lib.kernels.fill[1, 4]
    assert call(launch, x, n=4, value=9.0) is None
    assert x.tolist() == [9] * 4
    stream = lib.stream()
    assert call(lib.axpy, 0, x, y, stream=stream) == 0
    assert lib._native.api.mgpuSetThreadStream(None) is None, "the thread has its own stream again"


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {"a": 2}, "got two values for the argument 'a'; pass it once"),
        ((1,), {"z": 2}, "has no argument 'z'; it takes 4 arguments (a, x, y, copy)"),
        ((1, 2, 3, 4, 5), {}, "takes 4 arguments (a, x, y, copy), given 5"),
        ((), {"x": 2}, "given 1; missing: a, y"),
        ((1,), {"stream": "s"}, "expected a stream of lib.stream()"),
    ],
)
def test_refused_keywords(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    function = library().axpy
    texts = []
    for way in (function, function._call):
        with pytest.raises(SignatureError, match=re.escape(message)) as error:
            way(*args, **kwargs)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_artifacts_that_promise_what_cannot_be() -> None:
    record = Argument("x", "memref", "float32", (4,)).to_json() | {"optional": True}
    with pytest.raises(ArtifactError, match=r"an optional argument needs a dynamic size, the shape is \[4\]"):
        Argument.from_json(record)
    record = Argument("x", "memref", "float32", (None,), optional=True).to_json()
    assert Argument.from_json(record).optional
    with pytest.raises(ArtifactError, match="expected bool in the field 'optional', found int"):
        Argument.from_json(record | {"optional": 1})


class Tensor:
    """As torch's: what it exports has the wrong signs while its negative bit is set."""

    def __init__(self, array: Any, negative: bool) -> None:
        self._array, self._negative = array, negative

    def is_neg(self) -> bool:
        return self._negative

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)


def test_tensors_with_other_signs_are_refused(call: Callable[..., Any]) -> None:
    lib = library()
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    assert call(lib.axpy, 2, Tensor(x, False), Tensor(y, False)) == 0
    assert np.array_equal(y, 2 * x + 1)
    for way in (lib.axpy, lib.axpy._call):
        with pytest.raises(SignatureError, match=r"refuses DLPack \(its numbers are stored with the opposite sign\)"):
            way(2, Tensor(x, True), y)
