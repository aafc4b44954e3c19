"""The text of the module that loads a compiled library, and of the stub that tells type checkers what is in it."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.artifact.meta import Argument, Metadata, Signature
from offload.errors import OffloadError

MARK = "# Made by offload; changes are lost."
_DIGEST = "# digest: "
_TARGETS = "# targets: "

_MODULE = '''\
"""Kernels. The compiled library is loaded when one of its functions is first used."""
{mark}
{digest}
{targets}
import threading
{check}
__all__ = {names}
_lock = threading.Lock()


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}; it has: {{', '.join(__all__)}}")
    with _lock:
        if "library" not in globals():
            from offload import load

            globals()["library"] = load(__file__.rpartition("/")[0] + "/{library}")
    value = library if name == "library" else library.functions[name]  # noqa: F821 - a global, set above
    globals()[name] = value
    return value


def __dir__():
    return __all__
'''

_CHECK = """
from offload.hooks.editable import refresh
"""
_STUB = '''\
"""Kernels, compiled for: {targets}."""
{mark}
from typing import Any

{imports}from offload.runtime import Library

__all__ = {names}

library: Library
"""The loaded library: kernels, devices, streams, and functions with all their methods."""
'''
_SCALARS = {"bool": "bool", "float": "float", "bfloat": "float", "int": "int", "uint": "int", "complex": "complex"}
_NUMPY_RESULTS = {"bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
                  "float16", "float32", "float64", "complex64", "complex128"}  # fmt: skip


@dataclass(frozen=True)
class Editable:
    """What an editable installation needs to build again: the project, and targets that replace the declared ones."""

    pyproject: Path
    targets: Sequence[str] | None


def module_text(
    table_module: str, metadata: Metadata, library: str, targets: str, digest: str, editable: Editable | None
) -> str:
    """The loader. Raises OffloadError for a function whose name the module needs for itself."""
    names = exported_names(table_module, metadata)
    listed = repr(names)
    if editable is not None:
        chosen = None if editable.targets is None else list(editable.targets)
        listed = f"refresh(__name__, __file__, {str(editable.pyproject)!r}, {chosen!r}, {digest!r}, {names!r})"
    return _MODULE.format(
        targets=_TARGETS + targets,
        mark=MARK,
        digest=_DIGEST + digest,
        check="" if editable is None else _CHECK,
        names=listed,
        library=library,
    )


def exported_names(module: str, metadata: Metadata) -> list[str]:
    """``library`` and the functions that Python can name. Raises OffloadError for a name that is taken."""
    names = [function.name for function in metadata.functions if _is_name(function.name)]
    taken = [name for name in names if name in ("library", "threading", "_lock", "refresh") or name.startswith("__")]
    if taken:
        raise OffloadError(
            f"{module}: a function cannot be called {taken[0]!r}, which the module uses itself; rename it in its source"
        )
    return ["library", *names]


def origin_of(text: str) -> tuple[str, str]:
    """The digest and the targets in a loader's text; empty where there are none."""
    lines = text.split("\n", 4)
    if len(lines) < 5 or not lines[2].startswith(_DIGEST) or not lines[3].startswith(_TARGETS):
        return "", ""
    return lines[2].removeprefix(_DIGEST), lines[3].removeprefix(_TARGETS)


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


def stub_text(module: str, metadata: Metadata, targets: str) -> str:
    """The stub: functions with their arguments, and their types in the docstrings."""
    body = "".join(_stub(function) for function in metadata.functions if _is_name(function.name))
    imports = "import numpy as np\nfrom numpy.typing import NDArray\n" if "NDArray[" in body else ""
    names = exported_names(module, metadata)
    return _STUB.format(targets=targets, mark=MARK, imports=imports, names=names) + body


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _stub(function: Signature) -> str:
    names = [argument.name for argument in function.args]
    usable = len(set(names)) == len(names) and all(map(_is_name, names))
    if not usable:
        names = [f"arg{number}" for number in range(len(names))]
    words = [f"{name}: {_argument_type(value)}" for name, value in zip(names, function.args, strict=True)]
    if words and not usable:
        words.append("/")
    if "stream" not in names:
        words += ["*", "stream: Any = None"]
    results = [_result_type(result) for result in function.results]
    returned = "None" if not results else results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
    types = ", ".join(f"{name}: {value}" for name, value in zip(names, function.args, strict=True))
    answer = ", ".join(map(str, function.results)) or "None"
    return (
        f'\ndef {function.name}({", ".join(words)}) -> {returned}:\n    """{types or "no arguments"} -> {answer}"""\n'
    )


def _argument_type(argument: Argument) -> str:
    # Arrays of any package that speaks DLPack, the buffer protocol or an array interface: no type says that.
    return "Any" if argument.kind == "memref" else _scalar(argument)


def _result_type(result: Argument) -> str:
    if result.kind == "scalar":
        return _scalar(result)
    if result.dtype not in _NUMPY_RESULTS or result.space == "device":
        return "Any"
    return f"NDArray[np.{'bool_' if result.dtype == 'bool' else result.dtype}]"


def _scalar(value: Argument) -> str:
    kind = re.match("[a-z]+", value.dtype)
    return _SCALARS.get(kind.group() if kind else "", "Any")
