"""Every error that offload raises on purpose, with the exit code its command line gives for it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple


class OffloadError(Exception):
    """Base of all errors of this package. Besides, arguments of a wrong type or value are Python's own TypeError and
    ValueError; anything else that escapes is a bug in it."""

    exit_code: ClassVar[int] = 1


def did_you_mean(word: str, known: Iterable[str], most: int = 1) -> str:
    """``; did you mean 'x'?`` for a word that is none of those known; empty where none of them is near."""
    import difflib  # for who made a mistake; everyone else would wait for it

    close = difflib.get_close_matches(word, list(known), n=most)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


_FARTHEST = 1000
"""Columns behind the end of a line that a caret may stand in: a program may give any, up to 4 billion."""


class Diagnostic(NamedTuple):
    """One message about a source position.

    ``line`` and ``column`` count from 1 and are 0 where there is none; ``column`` counts bytes of UTF-8, as MLIR and
    clang do. ``severity`` is "error", "warning", "remark" or "note". ``source_line`` is the text of that line, without
    its newline, or None where it is not known."""

    file: str
    line: int
    column: int
    severity: str
    message: str
    notes: tuple[Diagnostic, ...] = ()
    source_line: str | None = None

    def render(self) -> str:
        """``file:line:col: severity: message``, the source line, a caret under the column, then the notes."""
        position = self.file
        if self.line > 0:
            position += f":{self.line}"
            if self.column > 0:
                position += f":{self.column}"
        lines = [f"{position}: {self.severity}: {self.message}" if position else f"{self.severity}: {self.message}"]
        if self.source_line is not None:
            lines.append(_harmless(self.source_line))
            if 0 < self.column <= len(self.source_line.encode(errors="replace")) + _FARTHEST:
                lines.append(_blank(self.source_line, self.column - 1) + "^")
        lines.extend(note.render() for note in self.notes)
        return "\n".join(lines)


def _harmless(line: str) -> str:
    """Without what a terminal would obey; each character stays one."""
    from unicodedata import category  # for errors alone

    return "".join("\N{REPLACEMENT CHARACTER}" if c != "\t" and category(c) in ("Cc", "Cf") else c for c in line)


def _blank(line: str, size: int) -> str:
    """What is as wide on a terminal as the first ``size`` bytes of a line."""
    from unicodedata import combining, east_asian_width  # for errors alone

    start = line.encode(errors="replace")[:size]
    # Tabs stay tabs, so that the caret stands under its column whatever the tab width.
    widths = (
        "\t" if letter == "\t" else "  " if east_asian_width(letter) in "WF" else " " * (not combining(letter))
        for letter in start.decode(errors="ignore")
    )
    return "".join(widths) + " " * (size - len(start))


class _ProgramError(OffloadError):
    """``diagnostics`` is the list of `Diagnostic`, in the order in which the compiler reported them; it is empty
    where the failure has no position, and the message alone tells what happened."""

    def __init__(self, message: str = "", diagnostics: Sequence[Diagnostic] = ()) -> None:
        self.diagnostics = list(diagnostics)
        super().__init__(message or "\n".join(diagnostic.render() for diagnostic in self.diagnostics))

    def __reduce__(self) -> tuple[type[_ProgramError], tuple[str, list[Diagnostic]]]:
        return type(self), (str(self), self.diagnostics)


class CompileError(_ProgramError):
    """The input cannot be compiled: the text of the error is its diagnostics, rendered.

    ``diagnostics`` is the list of `Diagnostic`, in the order in which the compiler reported them; it is empty
    where the failure has no position, and the message alone tells what happened."""

    exit_code: ClassVar[int] = 1


class BuildWarning(UserWarning):
    """Something in a program that a build leaves out of account: the text is a rendered `Diagnostic`."""


class CacheWarning(UserWarning):
    """The cache, or a part of it, is of no use; what is built is built all the same, every time."""


def warn(text: str, category: type[Warning]) -> None:
    """Warns at the line that called offload: Python shows that line, and filters by its module."""
    frame, level = sys._getframe(1), 2  # of the caller
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("offload", "contextlib"):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


class CompilerCrash(CompileError):
    """The compiler itself failed: it ended its process, ran out of memory or out of time. Other builds go on.

    ``reproducer`` is the folder with what repeats it, or None where it could not be written."""

    def __init__(self, message: str, reproducer: str | None = None) -> None:
        super().__init__(message)
        self.reproducer = reproducer

    def __reduce__(self) -> tuple[type[CompilerCrash], tuple[str, str | None]]:  # type: ignore[override]
        return type(self), (str(self), self.reproducer)


class UsageError(OffloadError):
    """What was asked for has no such spelling: an executor, an architecture. The message says what there is."""

    exit_code: ClassVar[int] = 2


class TargetError(OffloadError):
    """A target's spelling is wrong: an unknown target, chip or option. The message lists what there is."""

    exit_code: ClassVar[int] = 2


class ToolkitError(OffloadError):
    """A tool or toolkit is missing; the message says which, where it was looked for and how to install it."""

    exit_code: ClassVar[int] = 3


class LinkError(_ProgramError):
    """The shared library could not be linked; the message holds the linker's own output.

    ``diagnostics`` is as in CompileError: functions that are called and that nothing defines, where the program
    declares them."""

    exit_code: ClassVar[int] = 1


class ArtifactError(OffloadError):
    """A file is not an artifact of this package, or it is damaged or of another version."""

    exit_code: ClassVar[int] = 1


class SignatureError(OffloadError, TypeError):
    """A call's arguments do not fit the signature; the message names the function, the argument, both sides
    of the mismatch and what to do about it."""

    exit_code: ClassVar[int] = 1


class DeviceError(OffloadError):
    """A device, its driver or a kernel failed. ``code`` is the runtime's MGPU_ERROR_* number (see mgpu.h);
    the message has the driver's own name for the error and the call."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[DeviceError], tuple[str, int]]:
        return type(self), (str(self), self.code)
