"""Types of the manuals' language and how values of them are kept: one NumPy array per value, an element per lane.

``u16``, ``i32``, ``f64`` … are arrays of the smallest dtype that holds them, sign-extended where signed; ``u1`` is an
array of bool; ``bf16``, ``fp8`` and ``bf8`` are their bits; ``b…`` is unsigned. A Python number has the type
``literal`` and takes the type of what it meets.
"""

from __future__ import annotations

import re

from emulator.manual_text import ManualError

SMALL_FLOATS = ("bf16", "fp8", "bf8", "fp4", "fp6", "bf6")


def split(kind: str) -> tuple[str, int]:
    """Letter and width: ``i24`` is ("i", 24)."""
    if kind in SMALL_FLOATS:
        return "u", int(kind[2:])
    found = re.fullmatch(r"(bf|[uifb])(\d+)", kind)
    if not found or int(found.group(2)) > 64:
        raise ManualError(f"a type without a meaning here: {kind}")
    letter = found.group(1)
    return ("u" if letter == "b" else letter), int(found.group(2))


def is_float(kind: str) -> bool:
    """Is it a float that NumPy computes with?"""
    return kind in ("f16", "f32", "f64")


def container(kind: str) -> str:
    """The name of the dtype that keeps the type."""
    letter, width = split(kind)
    if width == 1:
        return "bool"
    size = next(size for size in (8, 16, 32, 64) if size >= width)
    return f"{ {'u': 'uint', 'i': 'int', 'f': 'float'}[letter] }{size}"


def literal(value: float, kind: str) -> str:
    """A Python number as a value of the type, wrapped to its width."""
    letter, width = split(kind)
    if is_float(kind):
        return f"np.{container(kind)}({float(value)!r})"
    if width == 1:
        return f"np.bool_({bool(value)})"
    wrapped = int(value) & ((1 << width) - 1)
    if letter == "i" and wrapped >> (width - 1):
        wrapped -= 1 << width
    return f"np.{container(kind)}({wrapped})"


def convert(code: str, kind: str, wanted: str) -> str:
    """The value with the bits (integers), or the number (between floats), in another type."""
    if kind == wanted:
        return code
    (letter, width), (to_letter, to_width) = split(kind), split(wanted)
    if is_float(kind) and is_float(wanted):
        return f"{code}.astype(np.{container(wanted)})"
    if is_float(kind):
        code, kind, letter = f"{code}.view(np.uint{width})", f"u{width}", "u"
    if is_float(wanted):
        code = convert(code, kind, f"u{to_width}")
        return f"{code}.view(np.float{to_width})"
    if to_width == 1:
        return code if width == 1 else f"(({code} & 1) != 0)"
    held = container(kind)
    if letter == "i" and to_letter == "u" and to_width > width:
        code, held = f"({code}.view(np.u{held}) & np.u{held}({(1 << width) - 1}))", f"u{held}"
    to_held = container(wanted)
    if held != to_held:
        code = f"{code}.astype(np.{to_held})"
    size = int(re.sub(r"\D", "", to_held) or 1)
    if to_letter == "i" and (to_width < size) and (width > to_width or letter == "u"):
        return f"(({code} << {size - to_width}) >> {size - to_width})"
    if to_letter == "u" and to_width < size and to_width < width:
        return f"({code} & np.{to_held}({(1 << to_width) - 1}))"
    if to_letter == "i" and letter == "u" and width < to_width:
        return code  # zero-extended by the wider container
    return code


def common(first: str, second: str) -> str:
    """The type that two values are brought to before an operation; narrow integers become 32 bits wide."""
    if first == "literal" and second == "literal":
        return "literal"
    if first == "literal" or second == "literal":
        kind = second if first == "literal" else first
        return kind if is_float(kind) else promoted(kind)
    if is_float(first) or is_float(second):
        floats = [kind for kind in (first, second) if is_float(kind)]
        if len(floats) < 2:
            raise ManualError(f"an operation on {first} and {second}")
        return max(floats, key=lambda kind: int(kind[1:]))
    first, second = promoted(first), promoted(second)
    width = max(int(first[1:]), int(second[1:]))
    signed = first[0] == second[0] == "i" or (
        first[0] != second[0] and f"i{width}" in (first, second) and f"u{width}" not in (first, second)
    )
    return f"{'i' if signed else 'u'}{width}"


def promoted(kind: str) -> str:
    """32 or 64 bits, as in C."""
    letter, width = split(kind)
    return f"{letter}{32 if width <= 32 else 64}"
