"""The extension module, loaded when first needed, and its failures as CompileError with source lines."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from offload.compiler.request import Source
from offload.errors import CompileError, Diagnostic, ToolkitError


@functools.cache
def native() -> Any:
    """``offload.mlir._native``. Raises ToolkitError where the compiler half is not installed or LLVM is missing."""
    try:
        from offload.mlir import _native
    except ImportError as error:
        raise ToolkitError(
            f"offload's compiler cannot be loaded: {error}\n"
            "  this installation holds the runtime half only, or LLVM 22 is gone from the machine\n"
            "  to get it: apt-get install libmlir-22-dev mlir-22-tools llvm-22-dev liblld-22-dev, then "
            "pip install --force-reinstall offload (from source)"
        ) from error
    return _native


def find_native() -> Path:
    """The extension's file; it is not loaded. Raises ToolkitError where there is none."""
    spec = importlib.util.find_spec("offload.mlir._native")
    return Path(spec.origin) if spec and spec.origin else Path(native().__file__)


@contextlib.contextmanager
def failures(sources: Sequence[Source], doing: str) -> Iterator[None]:
    """Turns a Failure of the extension into a CompileError that shows the lines it speaks of."""
    try:
        yield
    except native().Failure as error:
        message, diagnostics = error.args
        found = [_diagnostic(item, sources) for item in diagnostics]
        found.sort(key=lambda item: item.severity != "error")
        text = "\n".join(item.render() for item in found) or f"{doing}: {message}"
        raise CompileError(text, tuple(found)) from error


def error_at(position: Sequence[Any], message: str, sources: Sequence[Source]) -> CompileError:
    """The error that stands at a position of the extension's (a diagnostic whose message does not count)."""
    _, _, file, line, column, notes = position
    found = _diagnostic(("error", message, file, line, column, notes), sources)
    return CompileError(found.render(), [found])


# MLIR's messages are written for its developers; these say the same to the author of a program, and what to do.
_PLAINER = (
    (
        re.compile(r"operation being parsed with an unregistered dialect\..*", re.DOTALL),
        "unknown operation: its dialect is not one that MLIR 22 has; lower it to one that is, before offload sees it",
    ),
    (
        re.compile(r"unsupported memory space Attribute"),
        "a memory space cannot be of this kind: write #gpu.address_space<global>, <workgroup> or <private>, or their "
        "numbers 1, 3 and 5, or none",
    ),
    (
        re.compile(r"failed to legalize operation 'gpu.all_reduce'.*"),
        "'gpu.all_reduce' can be lowered where it is marked 'uniform': all threads of the block must reach it",
    ),
    (
        re.compile(r"failed to legalize operation '([^']+)' that was explicitly marked illegal"),
        r"'\1' has no lowering here; use operations that have one, or lower it before offload sees it",
    ),
)


def _plainer(message: str) -> str:
    for pattern, replacement in _PLAINER:
        message = pattern.sub(replacement, message)
    return message


def _diagnostic(item: Sequence[Any], sources: Sequence[Source]) -> Diagnostic:
    severity, message, file, line, column, notes = item
    return Diagnostic(
        file=file,
        line=line,
        column=column,
        severity=severity,
        message=_plainer(message),
        notes=tuple(_diagnostic(note, sources) for note in notes),
        source_line=_source_line(file, line, column, sources),
    )


_LONGEST_LINE = 200


def _source_line(file: str, line: int, column: int, sources: Sequence[Source]) -> str | None:
    for source in sources:
        if source.name == file and line > 0:
            lines = source.data.split(b"\n")
            if line <= len(lines):
                text = lines[line - 1].decode(errors="replace")
                shown = max(_LONGEST_LINE, column + _LONGEST_LINE // 4)  # a line may hold a whole binary
                return text if len(text) <= shown else f"{text[:shown]} …"
    return None
