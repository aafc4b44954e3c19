"""The extension module, loaded when first needed, and its failures as CompileError with source lines."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from offload._version import __version__
from offload.compiler.request import Source
from offload.compiler.warned import say
from offload.errors import CompileError, Diagnostic, ToolkitError

_INSIDE, _BESIDE = "offload.mlir._native", "offload_llvm._native"


_loading = threading.Lock()
"""Of two threads that change the process's flags at once, one would put back what the other had set."""


@functools.cache
def native() -> Any:
    """The extension: that of this installation where it was built with one, else that of the distribution offload-llvm.

    Raises ToolkitError where there is none, where it cannot be loaded, and where it is of another version.
    """
    name = _found().name
    with _loading:
        flags = sys.getdlopenflags()
        sys.setdlopenflags(os.RTLD_LAZY)  # of the functions of LLVM and MLIR a build calls few: a fifth of the time
        try:
            extension = importlib.import_module(name)
        except ImportError as error:
            raise ToolkitError(_not_loaded(error, name == _INSIDE)) from error
        finally:
            sys.setdlopenflags(flags)
    if extension.offload_version != __version__:
        raise ToolkitError(_another_version(extension, name == _INSIDE))
    return extension


def find_native() -> Path:
    """The extension's file; it is not loaded. Raises ToolkitError where there is none."""
    origin = _found().origin
    return Path(origin) if origin else Path(native().__file__)


def _found() -> ModuleSpec:
    if spec := importlib.util.find_spec(_INSIDE):
        return spec
    if importlib.util.find_spec(_BESIDE.partition(".")[0]) is None:
        raise ToolkitError(
            f"offload's compiler is not installed; what is here of offload {__version__} runs what was compiled\n"
            f"  to get it: pip install 'offload[compiler]=={__version__}'; where a package is built, "
            "name that in [build-system] requires of its pyproject.toml"
        )
    if spec := importlib.util.find_spec(_BESIDE):
        return spec
    raise ToolkitError(_not_loaded(ImportError(f"No module named {_BESIDE!r}"), inside=False))


_FROM_SOURCE = "pip install --force-reinstall . (in the sources of offload)"


def _not_loaded(error: ImportError, inside: bool) -> str:
    if "failed to map segment" in str(error):  # no other LLVM would help
        return (
            f"offload's compiler cannot be loaded: {error}\n"
            "  the limits of memory (ulimit -v, a container's) leave no room for it, or nothing may be run from the "
            "file system that it is on (noexec)"
        )
    if inside:
        return (
            f"offload's compiler cannot be loaded: {error}\n"
            "  the LLVM 22 that it was built with is gone from this machine, or another build of it is there\n"
            f"  to get it: apt-get install libmlir-22-dev mlir-22-tools llvm-22-dev liblld-22-dev, then {_FROM_SOURCE}"
        )
    import platform

    return (
        f"offload's compiler cannot be loaded: {error}\n"
        f"  offload-llvm is there, but not for this Python ({platform.python_version()}) or this system\n"
        f"  to get it: pip install --force-reinstall offload-llvm=={__version__}"
    )


def _another_version(extension: ModuleType, inside: bool) -> str:
    remedy = _FROM_SOURCE if inside else f"pip install 'offload[compiler]=={__version__}'"
    return (
        f"offload {__version__} cannot use the compiler of offload {extension.offload_version}\n"
        f"  that is {extension.__file__}\n  to get the right one: {remedy}"
    )


@contextlib.contextmanager
def failures(sources: Sequence[Source], doing: str) -> Iterator[None]:
    """Turns a Failure of the extension into a CompileError that shows the lines it speaks of."""
    try:
        yield
    except native().Failure as error:
        message, diagnostics = error.args
        found = [_diagnostic(item, sources) for item in diagnostics]
        found.sort(key=lambda item: item.severity != "error")
        if doing == "parsing":
            found += _of_bytecode(found, sources)
        text = "\n".join(item.render() for item in found) or f"{doing}: {message}"
        raise CompileError(text, tuple(found)) from error


def _of_bytecode(found: Sequence[Diagnostic], sources: Sequence[Source]) -> list[Diagnostic]:
    """What to do where MLIR's reader of bytecode speaks of offsets and indices, at no line."""
    broken = {item.file for item in found if item.severity == "error" and item.line <= 0 and item.message[:1] != "'"}
    return [
        Diagnostic(source.name, 0, 0, "note", _why_unread(source.data))
        for source in sources
        if source.name in broken and source.data.startswith(_BYTECODE)
    ]


def _why_unread(bytecode: bytes) -> str:
    # Behind the magic number are the version of the format, one byte up to 127, and who wrote it.
    writer = bytecode[5:].partition(b"\0")[0][:40].decode("ascii", errors="ignore")
    if re.fullmatch(r"MLIR\d[\w.+-]*", writer) and not writer.startswith(
        f"MLIR{native().llvm_version.partition('.')[0]}."
    ):
        return (
            f"{writer} has written this bytecode, of which MLIR {native().llvm_version} does not read all: give the "
            "program as text, which changes less"
        )
    return "this is bytecode that is cut or damaged, or not of MLIR 22: write it again (mlir-opt --emit-bytecode)"


_BYTECODE = b"ML\xefR"


def error_at(position: Sequence[Any], message: str, sources: Sequence[Source]) -> CompileError:
    """The error that stands at a position of the extension's (a diagnostic whose message does not count)."""
    found = _at(position, "error", message, sources)
    return CompileError(found.render(), [found])


def warn_at(position: Sequence[Any], message: str, sources: Sequence[Source]) -> None:
    """Gives a BuildWarning that stands at a position of the extension's."""
    say(_at(position, "warning", message, sources).render())


def warn_of(module: Any, sources: Sequence[Source]) -> list[str]:
    """Gives a BuildWarning for each warning and remark of the passes that have run; their texts."""
    return say_all(module.take_warnings(), sources)


def say_all(found: Sequence[Sequence[Any]], sources: Sequence[Source]) -> list[str]:
    """Gives a BuildWarning for each of the extension's diagnostics; their texts."""
    texts = [_diagnostic(item, sources).render() for item in found]
    for text in texts:
        say(text)
    return texts


def _at(position: Sequence[Any], severity: str, message: str, sources: Sequence[Source]) -> Diagnostic:
    _, _, file, line, column, notes = position
    return _diagnostic((severity, message, file, line, column, notes), sources)


# MLIR's messages are written for its developers; these say the same to the author of a program, and what to do.
# Patterns of what most builds never print are compiled when they are needed, here and in other files.
_PLAINER = (
    (
        r"(?s)operation being parsed with an unregistered dialect\..*",
        "unknown operation: its dialect is not one that MLIR 22 has; lower it to one that is, before offload sees it",
    ),
    (
        r"op to_tensor ops without `restrict` are not supported by One-Shot Analysis",
        "does not say that this is the only tensor of its memory, and more is done with that: where nothing writes to "
        "it any more, write `restrict` behind its operand",
    ),
    (
        r"Dialect `(\S+)' not found for custom op '(\S+?)' ?",
        r"unknown operation '\2': MLIR 22 has no dialect '\1'; lower it to one that it has, before offload sees it",
    ),
    (
        r"`?[!#]\"?([A-Za-z_][\w$]*)\"?[.<].* (type|attribute) created with unregistered dialect\..*",
        r"unknown \2: MLIR 22 has no dialect '\1'; lower it to one that it has, before offload sees it",
    ),
    (r" ; for more info on dialect registration see .*", ""),
    (
        r"^('\S+') op ('\S+') does not reference a valid function$",
        r"\1 finds no \2 where it stands: define or declare it there; what a kernel calls is a func.func inside of its "
        r"gpu.module (a gpu.func cannot be called)",
    ),
    (
        r"^('\S+') op ('\S+') does not reference a (?:valid global memref|symbol in the current scope)$",
        r"\1 finds no \2 where it stands: what a kernel calls, or reads by name, is inside of its gpu.module",
    ),
    (
        r"unsupported memory space Attribute",
        "a memory space cannot be of this kind: write #gpu.address_space<global>, <workgroup> or <private>, or their "
        "numbers 1, 3 and 5, or none",
    ),
    (
        r"op was not bufferized",
        "MLIR 22 has no way to give the tensors of this operation memory: write it as linalg.generic, or on memrefs",
    ),
    (
        r"^'vector\.mask' op body must bufferize in-place$",
        "MLIR 22 copies no tensor in a vector.mask: what is written there is used again, so copy it in front of the "
        "mask (bufferization.alloc_tensor() copy(%tensor)) and write into the copy",
    ),
    (
        r"memory free side-effect on MemRef value not supported!",
        "a function with tensors frees what it has allocated by itself: leave the deallocation out",
    ),
    (
        r"Cannot copy noalias with non-bare pointers\.\s*",
        "llvm.noalias is left out: a memref comes as a descriptor, whose pointers cannot carry it; those of "
        "static shapes can with --bare-pointers",
    ),
    (
        r"failed to legalize operation 'gpu.all_reduce'.*",
        "'gpu.all_reduce' can be lowered where it is marked 'uniform': all threads of the block must reach it",
    ),
    (
        r"failed to legalize operation '([^']+)'(?: that was explicitly marked illegal)?$",
        r"'\1' has no lowering here; use operations that have one, or lower it before offload sees it",
    ),
)


def _plainer(message: str) -> str:
    for pattern, replacement in _PLAINER:
        message = re.sub(pattern, replacement, message)
    return message


def _diagnostic(item: Sequence[Any], sources: Sequence[Source]) -> Diagnostic:
    from offload.compiler import older  # for programs that are wrong alone

    severity, message, file, line, column, notes = item
    if not file and severity == "error" and len(sources) == 1:
        file = sources[0].name  # of an operation without a location, as those of bytecode may be
    return Diagnostic(
        file=file,
        line=line,
        column=column,
        severity=severity,
        message=_plainer(older.said(message, lambda: _before(file, line, column, sources), _operations_of)),
        notes=tuple(_diagnostic(note, sources) for note in notes),
        source_line=_source_line(file, line, column, sources),
    )


def _operations_of(dialect: str) -> list[str]:
    return list(native().Session().operations_of(dialect))


def _before(file: str, line: int, column: int, sources: Sequence[Source]) -> str:
    """The program up to a place."""
    data = next((source.data for source in sources if source.name == file), b"")
    lines = data.split(b"\n")[: max(line, 0)]
    return b"\n".join([*lines[:-1], lines[-1][: column - 1]]).decode(errors="replace") if lines else ""


_LONGEST_LINE = 200


def _source_line(file: str, line: int, column: int, sources: Sequence[Source]) -> str | None:
    if line <= 0:
        return None
    data = next((source.data for source in sources if source.name == file), None)
    if data is None:  # what a compiler of another language has read: loc("model.py":3:5)
        try:
            data = Path(file).read_bytes() if Path(file).is_file() else b""
        except (OSError, ValueError):
            return None
    lines = data.split(b"\n")
    if not data or line > len(lines):
        return None
    text = lines[line - 1].removesuffix(b"\r").decode(errors="replace")
    shown = max(_LONGEST_LINE, column + _LONGEST_LINE // 4)  # a line may hold a whole binary
    return text if len(text) <= shown else f"{text[:shown]} …"
