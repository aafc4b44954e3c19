"""Options of targets: what each means, which values it takes, and how a target's spelling says it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from offload.errors import TargetError

_FORMATS_OF_MLIR = {
    "binary": "bin",
    "assembly": "isa",
    "fatbinary": "fatbin",
    "offloading": "offload",
    "llvm": "offload",
}


def plain_format(name: Any) -> Any:
    """The format of an image that MLIR's pass ``gpu-module-to-binary`` calls so besides; else what it is given."""
    return _FORMATS_OF_MLIR.get(str(name), name)


def plain_features(text: Any) -> Any:
    """Features without blanks, which LLVM takes for a part of their names; what is no text is for :func:`check`."""
    return ",".join(filter(None, map(str.strip, text.split(",")))) if isinstance(text, str) else text


def option(
    default: Any, meaning: str, *, least: int | None = None, most: int | None = None, choices: Sequence[object] = ()
) -> Any:
    """A field of a target. The documentation is made from ``meaning`` and the values that it takes.

    A number is at least ``least`` and at most ``most``; the default is always allowed, so that it can mean "not set".
    """
    return dataclasses.field(
        default=default, metadata={"meaning": meaning, "least": least, "most": most, "choices": tuple(choices)}
    )


def meaning(field: dataclasses.Field[Any]) -> str:
    """What the option does, in one sentence; empty for a field that was not made by :func:`option`."""
    return str(field.metadata.get("meaning", ""))


def values(field: dataclasses.Field[Any]) -> str:
    """Which values an option takes, for people."""
    least, most = field.metadata.get("least"), field.metadata.get("most")
    if choices := field.metadata.get("choices"):
        return ", ".join(map(str, choices))
    if least is not None:
        return f"{least} to {most}" if most is not None else f"{least} and more"
    return {"bool": "a flag", "str": "text", "int": "a number"}.get(kind(field), "text, may be repeated")


def kind(field: dataclasses.Field[Any]) -> str:
    """The type of an option's values: ``bool``, ``int``, ``str`` or ``tuple``, whether it is given as text or not."""
    name = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    return name.partition("[")[0]


_IN_PYTHON = {"bool": "True or False", "tuple": "a tuple of texts"}


def check(target: Any) -> None:
    """Raises TargetError for a value that its option does not take, and says what it takes."""
    for field in dataclasses.fields(target):
        value, least, most = getattr(target, field.name), field.metadata.get("least"), field.metadata.get("most")
        choices = field.metadata.get("choices")
        fits = _is_of(kind(field), value)
        if fits and not all(map(_is_word, value if isinstance(value, tuple) else (value,))):
            raise TargetError(
                f"{target.name}: {field.name} is {value!r}, which has a character that programs and files cannot be "
                "given"
            )
        if fits and value == field.default:
            continue
        if choices and not (fits and value in choices):
            raise TargetError(f"{target}: unknown {field.name} {value!r}; it is one of {', '.join(map(str, choices))}")
        if not fits or (least is not None and (value < least or (most is not None and value > most))):
            taken = _IN_PYTHON.get(kind(field)) or values(field)
            raise TargetError(f"{target}: {field.name} is {taken}, not {value!r}")


def _is_word(value: Any) -> bool:
    """Whether it is no text, or one that programs can be given and files be called."""
    try:
        return not isinstance(value, (str, os.PathLike)) or b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _is_of(kind: str, value: Any) -> bool:
    """Python's True and 1.0 are equal to 1, and no numbers of an option."""
    if kind == "tuple":
        return isinstance(value, tuple) and all(isinstance(item, (str, os.PathLike)) for item in value)
    known = {"bool": bool, "int": int, "str": str}.get(kind)
    return known is None or (isinstance(value, known) and (known is bool or not isinstance(value, bool)))


def spelled(field: dataclasses.Field[Any], value: Any) -> list[str]:
    """The words of a target's spelling that give the option this value; none for the default."""
    if value == field.default:
        return []
    if isinstance(value, tuple):
        return [f"{field.name}={item}" for item in value]
    return [field.name if value is True else f"{field.name}={value}"]
