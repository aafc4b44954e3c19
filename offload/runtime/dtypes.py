"""Element types by name: their size, how a scalar of each is checked, and how its bits are laid out."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy


class Mismatch(Exception):
    """A value does not fit its argument; the caller knows the function and the argument and says so."""

    def __init__(self, given: str, advice: str) -> None:
        super().__init__(given, advice)
        self.given = given
        self.advice = advice


@dataclass(frozen=True)
class DType:
    """An element type. ``size`` and ``alignment`` are bytes; ``code`` is the struct format of its bits, of
    which a complex number has two. ``family`` is "bool", "int", "float", "complex", or "small" for floats
    that NumPy does not have."""

    name: str
    family: str
    size: int
    code: str

    @property
    def alignment(self) -> int:
        """What addresses of such elements are multiples of, in bytes."""
        return struct.calcsize(f"@{self.code[0]}")


def _table() -> dict[str, DType]:
    table = {"bool": DType("bool", "bool", 1, "B")}
    for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q")):
        table[f"int{bits}"] = DType(f"int{bits}", "int", bits // 8, code)
        table[f"uint{bits}"] = DType(f"uint{bits}", "int", bits // 8, code.upper())
    table["float16"] = DType("float16", "float", 2, "e")
    table["float32"] = DType("float32", "float", 4, "f")
    table["float64"] = DType("float64", "float", 8, "d")
    table["complex64"] = DType("complex64", "complex", 8, "ff")
    table["complex128"] = DType("complex128", "complex", 16, "dd")
    table["bfloat16"] = DType("bfloat16", "small", 2, "H")
    for name in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"):
        table[f"float8_{name}"] = DType(f"float8_{name}", "small", 1, "B")
    return table


DTYPES = _table()


def find(name: str) -> DType:
    """The type of that name; raises `Mismatch` where the runtime has none."""
    if name not in DTYPES:
        raise Mismatch(f"a type that this version does not know ({name})", "update offload")
    return DTYPES[name]


def numpy_dtype(dtype: DType) -> numpy.dtype[Any]:
    """The NumPy dtype; raises `Mismatch` where it takes the package ml_dtypes and that is not installed."""
    import numpy

    if dtype.family != "small":
        return numpy.dtype(dtype.name)
    try:
        import ml_dtypes  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise Mismatch(
            f"no NumPy type of the name {dtype.name}", "install the package ml_dtypes: pip install ml_dtypes"
        ) from None
    result: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, dtype.name))
    return result


def to_bool(value: Any) -> bool:
    """Python and NumPy booleans, and the integers 0 and 1."""
    if value is True or value is False:
        return bool(value)
    if type(value).__name__ in ("bool", "bool_") and hasattr(value, "__bool__"):
        return bool(value)
    number = _index(value, "True or False")
    if number not in (0, 1):
        raise Mismatch(f"the integer {number}", "pass True or False")
    return bool(number)


def _refuse_masked(value: Any, wanted: str) -> None:
    """Raises `Mismatch` for NumPy's number that there is none."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not shape and hasattr(value, "filled") and getattr(value, "mask", False):
        raise Mismatch("a masked number", f"it stands for none: pass {wanted}, for instance .filled(...) of it")


def _refuse_arrays(value: Any, wanted: str) -> None:
    """Raises `Mismatch` for an array that has dimensions."""
    if isinstance(value, type):  # whose shape tells how its objects find theirs
        return
    if getattr(value, "shape", None):
        raise Mismatch(f"an array of shape {tuple(value.shape)}", f"pass {wanted}")


def _index(value: Any, wanted: str) -> int:
    _refuse_masked(value, wanted)
    try:
        if _is_truth(value):
            return int(value)
        return operator.index(value)  # of an array with one element, too, if its package says so
    except TypeError:
        pass
    _refuse_arrays(value, wanted)
    if isinstance(value, float) or hasattr(value, "__float__"):
        raise Mismatch(f"{value!r} ({type(value).__name__})", f"pass {wanted}, for instance int(...) of it")
    raise Mismatch(f"a {type(value).__name__}", f"pass {wanted}") from None


def _is_truth(value: Any) -> bool:
    """Of NumPy: its boolean, or an array without dimensions that is one. Neither is an index."""
    return getattr(getattr(value, "dtype", None), "kind", "") == "b" and getattr(value, "shape", None) == ()


def to_int(dtype: DType) -> Callable[[Any], int]:
    """A converter of integers that fit ``dtype``; floats are refused, whole or not."""
    signed = dtype.code.islower()
    low = -(1 << dtype.size * 8 - 1) if signed else 0
    high = (1 << dtype.size * 8 - (1 if signed else 0)) - 1

    def convert(value: Any) -> int:
        number = value if type(value) is int else _index(value, "an integer")
        if not low <= number <= high:
            raise Mismatch(f"{number}, which does not fit", f"pass an integer from {low} to {high}")
        return number

    return convert


def to_float(value: Any) -> float:
    """Numbers of any real type."""
    if type(value) is float:
        return value
    _refuse_arrays(value, "a number")
    _refuse_masked(value, "a number")
    # NumPy's complex numbers convert to real ones, with a warning.
    is_complex = isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c"
    if is_complex or _is_text(value) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise Mismatch(f"a {type(value).__name__}", "pass a real number")
    try:
        number = float(value)
    except OverflowError:
        raise _too_large() from None
    except (TypeError, ValueError):
        raise Mismatch(f"a {type(value).__name__}", "pass a real number") from None
    if _overflows(number, value):
        raise _too_large()
    return number


def _is_text(value: Any) -> bool:
    """Of Python or NumPy, whose texts, and bytes of no type, convert to the numbers that they spell."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return True
    dtype = getattr(value, "dtype", None)
    kind = getattr(dtype, "kind", "")
    if kind == "O" and getattr(value, "shape", None) == ():
        return _is_text(value.item())
    return kind in ("S", "T", "U") or getattr(dtype, "char", "") == "V"  # the kind of ml_dtypes' floats, too


def _overflows(number: float, value: Any) -> bool:
    """Whether a part of a number became infinite that was not: of a longdouble or a Decimal."""
    return math.isinf(number) and type(value).__name__ in ("longdouble", "Decimal") and value != number


def _too_large() -> Mismatch:
    return Mismatch("a number past the range of float64", "pass a smaller number")


def _fits(dtype: DType, code: str) -> Callable[[Any], float]:
    # Little-endian, because struct checks the range of a native "f" not at all.
    pack = struct.Struct(f"<{code}").pack

    def convert(value: Any) -> float:
        number = to_float(value)
        try:
            pack(number)
        except OverflowError:
            raise Mismatch(f"{number!r}, which does not fit", f"pass a number in the range of {dtype.name}") from None
        return number

    return convert


def to_complex(dtype: DType) -> Callable[[Any], complex]:
    """A converter of real and complex numbers whose parts fit ``dtype``."""
    part = to_float if dtype.size == 16 else _fits(dtype, "f")

    def convert(value: Any) -> complex:
        _refuse_arrays(value, "a number")
        _refuse_masked(value, "a number")
        if _is_text(value) or not any(hasattr(value, f"__{kind}__") for kind in ("complex", "float", "index")):
            raise Mismatch(f"a {type(value).__name__}", "pass a number")
        if not (isinstance(value, complex) or hasattr(value, "__complex__")):
            value = to_float(value)
        try:
            number = complex(value)
        except OverflowError:
            raise _too_large() from None
        except (TypeError, ValueError):  # of a signalling Decimal
            raise Mismatch(f"a {type(value).__name__}", "pass a number") from None
        if type(value).__name__ == "clongdouble" and (
            _overflows(number.real, value.real) or _overflows(number.imag, value.imag)
        ):
            raise _too_large()
        part(number.real)
        part(number.imag)
        return number

    return convert


def bfloat16_bits(value: float) -> int:
    """The bits of the bfloat16 nearest to ``value``, ties to even, NaNs quiet."""
    if math.isnan(value):
        return 0x7FC0
    single = struct.pack("<f", value)
    bits: int = struct.unpack("<I", single)[0]
    if bits & 0xFFFF == 0x8000:  # the middle of two, where the number itself may be beside it
        near = abs(struct.unpack("<f", single)[0])
        bits += (abs(value) > near) - (abs(value) < near)
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16 & 0xFFFF


def _to_small_bits(dtype: DType) -> Callable[[Any], int]:
    back = from_bits(dtype)
    if dtype.name == "bfloat16":
        number, bits_of = _fits(dtype, "f"), bfloat16_bits
    else:
        kind = numpy_dtype(dtype).type

        def bits_of(value: float) -> int:
            return int.from_bytes(kind(value).tobytes(), "little")

        number = to_float

    def convert(value: Any) -> int:
        wanted = number(value)
        bits = bits_of(wanted)
        held = back(bits)
        if (math.isfinite(wanted) and not math.isfinite(held)) or (math.isinf(wanted) and wanted != held):
            raise Mismatch(f"{wanted!r}, which does not fit", f"pass a number in the range of {dtype.name}")
        return bits

    return convert


def scalar(dtype: DType) -> Callable[[Any], Any]:
    """A converter of a scalar argument: to int, float, complex, 0 or 1, or to the bits of a "small" float.

    The converter raises `Mismatch`, and so does this function where the type needs a package that is missing.
    """
    if dtype.family == "bool":
        return lambda value: int(to_bool(value))
    if dtype.family == "int":
        return to_int(dtype)
    if dtype.family == "float":
        return to_float if dtype.size == 8 else _fits(dtype, dtype.code)
    if dtype.family == "complex":
        return to_complex(dtype)
    return _to_small_bits(dtype)


def from_bits(dtype: DType) -> Callable[..., Any]:
    """A converter from what struct unpacks with ``dtype.code`` to the Python value."""
    if dtype.family == "bool":
        return lambda bits: bool(bits & 1)
    if dtype.family == "complex":
        return complex
    if dtype.family != "small":
        return lambda value: value
    if dtype.name == "bfloat16":
        return lambda bits: struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    kind = numpy_dtype(dtype)

    def convert(bits: int) -> float:
        import numpy

        return float(numpy.frombuffer(bytes([bits]), kind)[0])

    return convert
