"""Numbers as arguments and results, and calls with many arguments: the fast path and ctypes agree, value for value."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import offload
from offload.errors import DeviceError, SignatureError
from offload.runtime import FAST, Library

TYPES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
    "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "float8_e4m3fn": "f8E4M3FN",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
}  # fmt: skip

VALUES: list[Any] = [
    0, 1, -1, 2, 127, 128, -128, -129, 255, 256, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63 - 1, 2**63, 2**64 - 1,
    2**64, -(2**63), -(2**63) - 1, 10**400, True, False, np.True_, np.int8(-3), np.uint64(2**64 - 1), np.int64(7),
    0.0, -0.0, 1.5, -2.25, 0.1, 1e-45, 65504.0, 65520.0, 3.4e38, 3.5e38, -1e300, math.inf, -math.inf, math.nan,
    np.float16(1.5), np.float32(0.1), np.float64(0.1), np.longdouble(2), ml_dtypes.bfloat16(3), 1 + 2j, 1e300j,
    np.complex64(1 - 1j), np.complex128(2j), None, "1", [1], np.ones(1), np.array(2), np.array(1.5), np.array(True),
    np.void(b"1"), object(),
]  # fmt: skip


def floats_then(count: int, integers: int) -> str:
    """A function of integers and floats in turn that writes each to an array."""
    kinds = [("i64", index) for index in range(integers)] + [("f64", index) for index in range(count)]
    kinds.sort(key=lambda kind: kind[1])
    arguments = ", ".join(f"%{kind}_{index}: {kind}" for kind, index in kinds)
    body = []
    for place, (kind, index) in enumerate(kinds):
        name = f"%{kind}_{index}"
        if kind == "i64":
            body.append(f"%c{place} = arith.sitofp {name} : i64 to f64")
            name = f"%c{place}"
        body.append(f"%p{place} = arith.constant {place} : index")
        body.append(f"memref.store {name}, %out[%p{place}] : memref<?xf64>")
    lines = "\n  ".join(body)
    return f"func.func @many_{integers}_{count}({arguments}, %out: memref<?xf64>) {{\n  {lines}\n  return\n}}"


MANY = [(0, 1), (5, 0), (6, 0), (15, 0), (16, 0), (15, 8), (5, 8), (5, 9), (15, 9), (3, 3), (0, 12), (20, 20)]


@functools.cache
def library() -> Library:
    echoes = [f"func.func @{name}(%x: {kind}) -> {kind} {{ return %x : {kind} }}" for name, kind in TYPES.items()]
    many = [floats_then(floats, integers) for integers, floats in MANY]
    fails = """
    func.func @fails(%n: i64) -> i64 {
      %zero = arith.constant 0 : i64
      %ok = arith.cmpi eq, %n, %zero : i64
      cf.assert %ok, "n is not 0"
      return %n : i64
    }
    func.func @none() { return }
    """
    made = offload.compile("\n".join([*echoes, *many, fails]), targets=["host"], opt=0)
    made.use("host")
    return made


def outcome(call: Callable[..., Any], *args: Any) -> tuple[str, str]:
    """The type and text of the result or of the refusal; -0.0 and nan have texts of their own."""
    try:
        result = call(*args)
    except SignatureError as error:
        return "refused", str(error)
    return type(result).__name__, repr(result)


@pytest.mark.parametrize("name", TYPES)
def test_numbers(name: str) -> None:
    function = library().functions[name]
    assert function(1) == 1
    taken = 0
    for value in VALUES:
        fast, slow = outcome(function, value), outcome(function._call, value)
        assert fast == slow, repr(value)
        taken += fast[0] != "refused"
    assert 0 < taken < len(VALUES)


@pytest.mark.parametrize("name", TYPES)
def test_what_is_no_number_though_numpy_has_one_for_it(name: str) -> None:
    """Under a mask NumPy keeps what was there, or 0; a class has its objects' shape and conversions."""
    function = library().functions[name]
    masked = [np.ma.masked, np.ma.array(1, mask=True), np.ma.array(1.0, mask=True), np.ma.array(1j, mask=True)]
    for call in (function, function._call):
        for value in masked:
            with pytest.raises(SignatureError, match="given a masked number; it stands for none: pass "):
                call(value)
        for value in (np.int8, np.float32, np.complex64):
            with pytest.raises(SignatureError, match=r"given .*type"):
                call(value)
        assert call(np.ma.array(1, mask=False)) == 1


def test_integers_of_types_that_say_so() -> None:
    """An array of one element among them, as PyTorch's and CuPy's are, and any number that has a shape."""

    class Element:
        shape = (1,)

        def __index__(self) -> int:
            return 1

    class Figure(int):
        shape = "square"

    for name in ("bool", "int8", "uint64"):
        function = library().functions[name]
        for call in (function, function._call):
            assert call(Element()) == call(Figure(1)) == 1


def test_random_bits_arrive() -> None:
    random = np.random.default_rng(5)
    for name in ("int64", "uint64", "float64", "float32", "float16", "bfloat16", "complex64", "complex128"):
        function = library().functions[name]
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        bits = random.integers(0, 256, (500, dtype.itemsize), np.uint8)
        for number in bits.view(dtype).ravel():
            given = number if name in ("float16", "bfloat16") else number.item()
            assert outcome(function, given) == outcome(function._call, given), number
            if given == given:  # no NaN
                assert function(given) == number


@pytest.mark.parametrize(("integers", "floats"), MANY)
def test_many_arguments(integers: int, floats: int) -> None:
    function = library().functions[f"many_{integers}_{floats}"]
    pairs = [(index, 1000 + index) for index in range(integers)] + [(index, index + 0.5) for index in range(floats)]
    order = sorted(pairs, key=lambda pair: (pair[0], pair[1] < 1000))
    given = [value for _, value in order]
    expected = [float(value) for value in given]
    for call in (function._call, function, function):
        out = np.zeros(len(given))
        call(*given, out)
        assert out.tolist() == expected


@pytest.mark.parametrize("name", ["none", "int64", "float32", "bfloat16", "complex64", "many_15_8"])
def test_plain_numbers_take_the_fast_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FAST, "the extension offload.runtime._fast is not built"
    function = library().functions[name]
    count = len(function.signature.args)
    given = [1] * (count - 1) + [np.zeros(count)] if name.startswith("many") else [1] * count
    expected = function(*given)
    if name.startswith("complex"):  # Its result is in memory, which ctypes reads.
        assert expected == 1
        return
    monkeypatch.setattr(function, "_call", None)
    assert function(*given) == expected


def test_failures_are_raised_and_do_not_stay() -> None:
    function = library().fails
    for _ in range(3):
        assert function(0) == 0
        texts = []
        for call in (function, function._call):
            with pytest.raises(DeviceError, match="n is not 0") as caught:
                call(1)
            texts.append((str(caught.value), caught.value.code))
        assert texts[0] == texts[1]
        assert texts[0][1] == 8


def test_keywords_and_counts_go_the_long_way() -> None:
    function = library().int64
    assert function(3) == function(x=3) == function(**{"x": 3}) == 3
    for args in ((), (1, 2)):
        assert outcome(function, *args) == outcome(function._call, *args)
        assert outcome(function, *args)[0] == "refused"


def test_many_threads_call_one_function() -> None:
    function = library().functions["many_15_8"]
    wrong: list[Any] = []

    def work(seed: int) -> None:
        out = np.zeros(23)
        # Integers and floats in turn for the first sixteen, then integers.
        given: list[Any] = [seed + 0.5 if index < 16 and index % 2 else seed for index in range(23)]
        for _ in range(500):
            function(*given, out)
            if out.tolist() != [float(value) for value in given]:
                wrong.append((given, out.copy()))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
