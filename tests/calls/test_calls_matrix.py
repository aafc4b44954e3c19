"""Every producer of arrays with every element type, rank and layout: the right result or the right refusal, and the
same one from the fast path and from ctypes.

Functions copy their argument to a second array, so what arrives is what the callee reads, not what was written to a
descriptor. torch and jax are producers where they are installed, and are then in the tests' names."""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import offload
from offload.errors import SignatureError
from offload.runtime import FAST, DeviceArray, Library
from offload.runtime.memory import array_over

MLIR_TYPES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
    "float16": "f16", "float32": "f32", "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>",
    "bfloat16": "bf16", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3", "float8_e8m0fnu": "f8E8M0FNU",
}  # fmt: skip
RANKS = range(7)
SIZES = (3, 2, 4, 1, 2, 3)


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def _program() -> str:
    functions = []
    for (name, element), rank in itertools.product(MLIR_TYPES.items(), RANKS):
        sizes = "?x" * rank
        plain = f"memref<{sizes}{element}>"
        loose = f"memref<{sizes}{element}, strided<[{', '.join('?' * rank)}], offset: ?>>"
        for layout, given in (("plain", plain), ("loose", loose)):
            functions.append(
                f"func.func @{name}_{rank}_{layout}(%x: {given}, %out: {plain}) {{\n"
                f"  memref.copy %x, %out : {given} to {plain}\n  return\n}}"
            )
    return "\n".join(functions)


@functools.cache
def library() -> Library:
    made = offload.compile(_program(), targets=["host"], opt=0)
    made.use("host")
    return made


def values(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Every element another pattern of bits, as far as the type has so many."""
    count = int(np.prod(shape, dtype=int))
    if dtype.kind == "b":
        return (np.arange(count) % 3 == 0).reshape(shape)
    bits = np.arange(count * dtype.itemsize, dtype=np.uint8) % 113 + 1
    return bits.view(dtype).reshape(shape) if count else np.zeros(shape, dtype)


def layouts(dtype: np.dtype[Any], rank: int) -> Iterator[tuple[str, Any, str | None, str | None]]:
    """A name, an array, and what is wrong with it for a row-major and for a strided argument."""
    shape = SIZES[:rank]
    base = values(dtype, shape)
    big = values(dtype, tuple(2 * size for size in shape))
    yield "row-major", base, None, None
    frozen = base.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen, None, None  # nothing writes to it
    if dtype.itemsize > 1 and not hasattr(ml_dtypes, dtype.name):
        swapped = base.astype(dtype.newbyteorder())
        yield "foreign", swapped, "in foreign byte order", "in foreign byte order"
        room = np.zeros(base.nbytes + 1, np.uint8)
        odd = room[1:].view(dtype).reshape(shape)
        odd[...] = base
        wrong = f"at an address that is no multiple of {dtype.alignment} bytes"
        yield "unaligned", odd, wrong, wrong
    yield "one rank more", base[None], f"of rank {rank + 1}", f"of rank {rank + 1}"
    yield "another type", base.view(f"V{dtype.itemsize}"), "convert it", "convert it"
    if rank == 0:
        return
    yield "empty", base[:0], None, None
    contiguous = rank == 1
    yield "column-major", np.asfortranarray(base), None if contiguous else "not contiguous", None
    yield "every other", big[tuple(slice(None, None, 2) for _ in shape)], "not contiguous", None
    yield "backwards", base[::-1], "not contiguous", None
    yield "last backwards", base[..., ::-1], None if shape[-1] == 1 else "not contiguous", None
    yield "a part", big[tuple(slice(1, 1 + size) for size in shape)], None if contiguous else "not contiguous", None
    yield "one element", base[tuple(slice(0, 1) for _ in shape)], None, None


class Dlpack:
    """An array of another package, seen through DLPack alone."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape = array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Interface:
    """An array of another package, seen through NumPy's array interface alone."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__ = array.__array_interface__
        self._array = array
        self.shape = array.shape


def on_device(array: Any) -> DeviceArray:
    """In memory of the CPU's backend; strided where the array is."""
    if array.flags.c_contiguous:
        own: DeviceArray = library().device.array(array)
        return own
    steps = tuple(step // array.itemsize for step in array.strides)
    reach = [(size - 1) * step for size, step in zip(array.shape, steps, strict=True)]
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    own = library().device.zeros(high - low + 1, array.dtype)
    pointer = own.pointer - low * array.itemsize
    array_over(pointer, array.dtype, array.shape, array.strides, owner=own)[...] = array
    return DeviceArray(own._memory, pointer, own.dtype, array.shape, strides=steps, owner=own)


HAS_BUFFER = [name for name in MLIR_TYPES if not hasattr(ml_dtypes, name)]
PRODUCERS: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "numpy": (lambda array: array, list(MLIR_TYPES)),
    "subclass": (lambda array: array.view(np.recarray) if array.dtype.kind == "V" else array.view(Subclass),
                 HAS_BUFFER),
    "buffer": (memoryview, HAS_BUFFER),
    "dlpack": (Dlpack, HAS_BUFFER),
    "interface": (Interface, HAS_BUFFER),
    "device": (on_device, list(MLIR_TYPES)),
}  # fmt: skip


def torch_tensor(array: Any) -> Any:
    import torch

    plain = array.view(f"i{array.itemsize}") if hasattr(ml_dtypes, array.dtype.name) else array
    tensor = torch.from_numpy(plain)
    return tensor.view(getattr(torch, array.dtype.name)) if plain is not array else tensor


def jax_array(array: Any) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(array)


# The types that each has.
TORCH = [name for name in MLIR_TYPES if name not in ("float8_e4m3b11fnuz", "float8_e3m4", "float8_e4m3")]
OTHERS = {"torch": (torch_tensor, TORCH), "jax": (jax_array, list(MLIR_TYPES))}
INSTALLED = [name for name in OTHERS if importlib.util.find_spec(name)]
PRODUCERS |= {name: OTHERS[name] for name in INSTALLED}
# What a producer has not: memory of its own layouts, or a name for the type.
LACKS = {
    "dlpack": ("foreign", "unaligned", "another type", "read-only"),
    "device": ("foreign", "unaligned", "another type", "read-only"),
    "torch": ("foreign", "unaligned", "another type", "read-only", "backwards", "last backwards"),
    # Its arrays are row-major, and it exports them as if they could be written to.
    "jax": (
        *("foreign", "unaligned", "another type", "read-only"),
        *("column-major", "every other", "backwards", "last backwards", "a part"),
    ),
}


class Subclass(np.ndarray[Any, Any]):
    pass


def outcome(call: Callable[..., Any], given: Any, like: Any) -> Any:
    """What the function wrote, as bytes, or the text of its refusal."""
    out = np.zeros(like.shape, like.dtype)
    try:
        assert call(given, out) is None
    except SignatureError as error:
        return str(error)
    return out.tobytes()


@pytest.mark.parametrize(
    ("producer", "name"), [(producer, name) for producer, (_, names) in PRODUCERS.items() for name in names]
)
def test_matrix(producer: str, name: str) -> None:
    dtype = dtype_of(name)
    make = PRODUCERS[producer][0]
    seen = 0
    for rank in RANKS:
        for layout, array, plain_problem, loose_problem in layouts(dtype, rank):
            if layout in LACKS.get(producer, ()):
                continue
            given = make(array)
            for kind, problem in (("plain", plain_problem), ("loose", loose_problem)):
                function = library().functions[f"{name}_{rank}_{kind}"]
                like = array if array.dtype == dtype and array.ndim == rank else np.zeros(SIZES[:rank], dtype)
                results = [outcome(call, given, like) for call in (function, function._call)]
                where = f"{producer} {name} rank {rank} {layout} {kind}"
                assert results[0] == results[1], where
                if problem is None:
                    assert results[0] == array.tobytes(), where
                else:
                    assert isinstance(results[0], str), where
                    assert problem in results[0], where
                seen += 1
    assert seen >= 2 * len(RANKS)


@pytest.mark.parametrize("producer", ["numpy", "device", "dlpack"])
@pytest.mark.parametrize("name", MLIR_TYPES)
def test_what_fits_takes_the_fast_path(producer: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FAST, "the extension offload.runtime._fast is not built"
    for rank in RANKS:
        for layout, array, plain_problem, loose_problem in layouts(dtype_of(name), rank):
            if producer == "device" and layout != "row-major":
                continue
            if producer == "dlpack" and hasattr(ml_dtypes, name):
                continue  # NumPy exports its own types alone
            kinds = {"plain": plain_problem, "loose": "strided" if producer == "device" else loose_problem}
            for kind in (kind for kind, problem in kinds.items() if problem is None):
                function = library().functions[f"{name}_{rank}_{kind}"]
                given, out = PRODUCERS[producer][0](array), np.zeros(array.shape, array.dtype)
                function(given, out)  # The first call prepares it.
                out[...] = 0
                monkeypatch.setattr(function, "_call", None)
                function(given, out)
                monkeypatch.undo()
                assert out.tobytes() == array.tobytes(), f"{rank} {layout} {kind}"
