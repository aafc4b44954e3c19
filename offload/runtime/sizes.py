"""Grids, blocks and bytes of workgroup memory that a launch is given."""

from __future__ import annotations

import operator
from typing import Any

from offload.errors import SignatureError

_LIMIT = 2**31 - 1


def _whole(value: Any) -> int | None:
    """The integer that ``value`` is, of whatever type; None for others, booleans and arrays of several among them."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def sizes_of(label: str, what: str, given: Any) -> tuple[int, int, int]:
    """The sizes along x, y and z of a ``grid``, ``block`` or ``cluster``. Raises `SignatureError`, which begins with
    ``label``."""
    if type(given) is int and 0 < given <= _LIMIT:
        return given, 1, 1
    sizes = given if isinstance(given, tuple) else (given,)
    checked = tuple(number for number in map(_whole, sizes) if number is not None)
    if not checked or len(checked) != len(sizes) or len(checked) > 3 or not all(0 < size <= _LIMIT for size in checked):
        most = f", each at most {_LIMIT:,}" if any(size > _LIMIT for size in checked) else ""
        raise SignatureError(
            f"{label}: expected the {what} as a positive integer or a tuple of one to three{most}, given {given!r}"
        )
    x, y, z = (*checked, 1, 1)[:3]
    return x, y, z


def check_known(label: str, what: str, sizes: tuple[int, ...], known: tuple[int, ...]) -> None:
    """Raises `SignatureError` where a kernel was built for other sizes: its code counts on them, and no GPU's driver
    sees it."""
    if known and sizes != known:
        raise SignatureError(
            f"{label}: launched with a {what} of {sizes}; its code counts on {known}, its known_{what}_size: launch it "
            "with that, or build it without (sizes of a gpu.launch that are constants are known ones, too)"
        )


def shared_memory(label: str, given: Any) -> int:
    """The bytes of dynamic workgroup memory. Raises `SignatureError`."""
    number = _whole(given)
    if number is None or not 0 <= number <= _LIMIT:
        most = f"; it is at most {_LIMIT:,}" if number is not None and number > 0 else ""
        raise SignatureError(f"{label}: expected a number of bytes of dynamic workgroup memory, given {given!r}{most}")
    return number


def flat(launch: tuple[Any, ...]) -> list[Any]:
    """The numbers of a launch without a stream."""
    values: list[Any] = []
    for value in launch:
        values += value if isinstance(value, tuple) else () if value is None else (value,)
    return values
