"""The text of the module that loads a compiled library, and of the stub that tells type checkers what is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.artifact.meta import Metadata, is_name
from offload.errors import CompileError, Diagnostic

MARK = "# Made by offload; changes are lost."
_DIGEST = "# digest: "
_TARGETS = "# targets: "
_LIBRARY = "# library: "

_MODULE = '''\
"""Kernels. The compiled library is loaded when one of its functions is first used."""
{mark}
{digest}
{targets}
{contents}
from _thread import RLock as __Lock
{check}
__globals = globals()
__before = __globals.get("__all__", ())
__all__ = {names}
for __name in __before:  # importlib.reload() keeps the values of before
    __globals.pop(__name, None)
__lock = __Lock()


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}; it has: {{', '.join(__all__)}}")
    with __lock:
        if "library" not in __globals:
            from offload import load

            __library = load(__file__.rpartition("/")[0] + "/{library}")
            __globals.setdefault("library", __library)  # a signal's handler may have loaded it meanwhile
    value = library if name == "library" else library.functions.get(name)  # noqa: F821 - a global, set above
    if value is None:
        raise AttributeError(f"{{__name__}}.{{name}} is gone: its library was built again; import it in a new process")
    __globals[name] = value
    return value


def __dir__():
    return __all__
'''

_REFRESH = "from offload.hooks.editable import refresh"
_CHECK = f"""
{_REFRESH} as __refresh
"""
_IN_PLACE = "# Compiled among the sources: for this machine alone.\n"


@dataclass(frozen=True)
class Editable:
    """What an editable installation needs to build again: the project, as the module's folder finds it, and targets
    that replace the declared ones. ``module`` is the table's: the module may be imported by another name, as pytest
    does with files of packages without an ``__init__.py``."""

    module: str
    pyproject: Path
    targets: Sequence[str] | None


@dataclass(frozen=True)
class Origin:
    """What a module was made from, and the library that it was made with: a loader may be copied without it.

    ``digest`` is that of its sources, ``targets`` are the spellings of those it was built for, ``contents`` is the
    SHA-256 of the library. Empty where a file does not say."""

    digest: str = ""
    targets: str = ""
    contents: str = ""


def module_text(
    metadata: Metadata, library: str, origin: Origin, editable: Editable | None, in_place: bool = False
) -> str:
    """The loader, of functions whose names :func:`check_names` has seen. ``in_place``: no package may have it."""
    names = exported_names(metadata)
    listed = repr(names)
    if editable is not None:
        chosen = None if editable.targets is None else list(editable.targets)
        built_from = f"{str(editable.pyproject)!r}, {chosen!r}, {origin.digest!r}"
        listed = f"__refresh({editable.module!r}, __file__, {built_from}, {names!r})"
    text = _MODULE.format(
        mark=MARK,
        digest=_DIGEST + origin.digest,
        targets=_TARGETS + origin.targets,
        contents=_LIBRARY + origin.contents,
        check="" if editable is None else _CHECK,
        names=listed,
        library=library,
    )
    return text + _IN_PLACE if in_place else text


def exported_names(metadata: Metadata) -> list[str]:
    """``library`` and the functions that Python can name."""
    return ["library", *(function.name for function in metadata.functions if is_name(function.name))]


def check_names(module: str, metadata: Metadata, sources: Sequence[tuple[str, bytes]]) -> None:
    """Raises CompileError for a function whose name the module needs for itself: at its line, if one of ``sources``
    (names and contents) has it as text."""
    for name in exported_names(metadata)[1:]:
        if name == "library" or name.startswith("__"):
            said = (
                f"{module}: a function cannot be called {name!r}, which the module uses itself; rename it in its source"
            )
            found = [place for file, data in sources for place in _defined(name, said, file, data)][:1]
            raise CompileError("" if found else said, found)


def _defined(name: str, said: str, file: str, data: bytes) -> Iterator[Diagnostic]:
    definition = re.compile(rf'[^/]*\bfunc\s[^@/]*@"?{re.escape(name)}"?\s*\(')
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        if definition.match(line):
            column = len(line[: line.index("@")].encode()) + 1
            yield Diagnostic(file, number, column, "error", said, source_line=line.rstrip())


def names_in(text: str) -> list[str]:
    """The names that an editable loader's text exports."""
    (call,) = [node.value for node in ast.parse(text).body if isinstance(node, ast.Assign) and _assigns_all(node)]
    assert isinstance(call, ast.Call)
    return [str(name) for name in ast.literal_eval(call.args[-1])]


def _assigns_all(node: ast.Assign) -> bool:
    return ast.unparse(node.targets[0]) == "__all__"


def is_ours(text: str) -> bool:
    """Whether a file's text was made here."""
    return text.split("\n", 2)[1:2] == [MARK]


def is_in_place(text: str) -> bool:
    """Whether it is the loader of a module that setuptools or hatchling compiled among the sources."""
    return is_ours(text) and (f"\n{_REFRESH}" in text or f"\n{_IN_PLACE.rstrip()}" in text)


def stub_text(metadata: Metadata, targets: str) -> str:
    """The stub: types of the library and of the functions that the module exports."""
    # Loaded where a stub is made: setuptools loads this file for every package that is built where offload is.
    from offload.runtime.stubs import module_stub

    head = f'"""Kernels, compiled for: {targets}."""\n{MARK}'
    return module_stub(head, exported_names(metadata), metadata)
