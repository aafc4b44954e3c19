"""What callers of Python give for programs: paths, texts, bytes, and modules of MLIR's Python bindings."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from offload.compiler.request import Source
from offload.errors import OffloadError
from offload.paths import named


class Module(Protocol):
    """A module or an operation of MLIR's Python bindings: every project that has some has a copy of these in its own
    package."""

    @property
    def operation(self) -> Any:
        """What prints it: its ``get_asm``."""
        ...


Program = str | os.PathLike[str] | Module


def source(given: Any, name: str | None) -> Source:
    """One program. Raises OffloadError for an empty one or one that is no text, and TypeError for what is none."""
    printed = _printer(given)
    if not printed and not isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(
            "source is the path of one MLIR file, the text of a program or a module of MLIR's Python bindings, not "
            f"{type(given).__name__}; offload.build takes several, and str() of other packages' modules is their text"
        )
    if not isinstance(name, str | None):
        raise TypeError(f"name is what diagnostics call the program, a str, not {type(name).__name__}")
    if printed:
        return Source(name or "<module>", _text(printed))
    if isinstance(given, (str, bytes)) and not given:
        raise OffloadError("source is empty: it is the path of one MLIR file or the text of a program")
    if isinstance(given, bytes):
        return Source(name or "<bytes>", given)
    if isinstance(given, str) and _is_text(given):
        return Source(name or "<string>", _encoded(given))
    read = Source.read(Path(given))
    return Source(name, read.data) if name else read


def sources(given: Any | Sequence[Any]) -> list[Source]:
    """One program of several files or modules. Raises OffloadError for what is neither."""
    what = "sources is a path, a module of MLIR's Python bindings, or a list of such"
    # One path is a list of one: text is not a list of its letters. Bytes are none, and are told as what they are.
    one = isinstance(given, (str, bytes, os.PathLike)) or _printer(given)
    try:
        each: list[Any] = [given] if one else list(given)
    except TypeError:
        raise OffloadError(f"{what}, not {reprlib.repr(given)}") from None
    found: list[Source] = []
    modules = 0
    for item in each:
        if printed := _printer(item):
            modules += 1
            found.append(Source("<module>" if modules == 1 else f"<module {modules}>", _text(printed)))
            continue
        if isinstance(item, str) and _is_text(item):
            raise OffloadError(
                "sources are paths of files, and this is the text of a program, which offload.compile takes"
            )
        try:
            found.append(Source.read(named(item)))
        except TypeError:
            raise OffloadError(f"{what}, not {reprlib.repr(each)}") from None
    return found


def _is_text(given: str) -> bool:
    """Whether it is a program and no path of one, in which there may be braces, too."""
    return "\n" in given or ("{" in given and not os.path.exists(given))  # noqa: PTH110 -- of any text, and never raises


def _printer(given: Any) -> Callable[..., str] | None:
    """What prints a :class:`Module`; None for anything else."""
    printer = getattr(getattr(given, "operation", None), "get_asm", None)
    return printer if callable(printer) else None


def _text(printer: Callable[..., str]) -> bytes:
    """The module as text, which newer versions of MLIR write as MLIR 22 reads it where they can: of bytecode that is
    not so. The locations are in it, as diagnostics and debuggers are to name the lines of the program that made the
    module; what has none is told at its line of the text."""
    text = printer(enable_debug_info=True)
    if not isinstance(text, str):
        raise TypeError(f"the module's get_asm() gives no text but {type(text).__name__}")
    unknown = re.findall(r"^#(loc\d*) = loc\(unknown\)$", text, re.MULTILINE)
    places = "|".join(["unknown", *(f"#{alias}" for alias in unknown)])
    # Behind an operation or an argument; what is in a string, in a list or has a name is something else. A string may
    # be the weights of a network: of one letter after the other, it would take minutes.
    placed = rf'"[^"\\]*(?:\\.[^"\\]*)*"|(?<![=,]) loc\((?:{places})\)(?=[,): \n]|$)'
    return _encoded(re.sub(placed, lambda found: found[0] if found[0].startswith('"') else "", text))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise OffloadError(f"source is no text: {error.object[error.start]!r} at its character {error.start}") from None
