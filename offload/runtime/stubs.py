"""The types of an artifact's functions and kernels as the text of a ``.pyi`` file, for type checkers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from offload.artifact.meta import Argument, KernelSignature, Metadata, Signature, is_name
from offload.runtime.calls import Callee
from offload.runtime.library import Kernels, Library

_SCALARS = {"bool": "Bool", "int": "Int", "uint": "Int", "float": "Float", "bfloat": "Float", "complex": "Complex"}
_NUMPY = {"bool": "bool_"} | {
    name: name
    for name in (
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
_BUILTINS = ("bool", "int", "float", "complex", "tuple")
"""What results are."""
_HEADER = '''\
"""Functions and kernels of {name}. Made by `offload stubs`.

    lib = typing.cast("Library", offload.load({name!r}))
"""

'''
_IMPORTS = """\
from typing import Any, Generic, TypeVar, overload

import numpy
from numpy.typing import NDArray
from offload.runtime import DeviceArray, Function, Kernel, Launch, Pending
from offload.runtime import Library as _Library
from offload.runtime.library import Kernels as _AnyKernels
from offload.runtime.typing import ArrayLike, Bool, Complex, Float, Int, Pointer, Waiting

_Done = TypeVar("_Done")
"""


def library_stub(name: str, metadata: Metadata) -> str:
    """The stub of an artifact of that file name: a class ``Library``, which `offload.load` gives for it."""
    return _HEADER.format(name=name) + "\n".join(_types(metadata)) + "\n"


def module_stub(head: str, names: Sequence[str], metadata: Metadata) -> str:
    """The stub of a module that has a library, as ``library``, and its functions; ``names`` are what it exports."""
    types = "\n".join([*_types(metadata), "", "", f"__all__ = {list(names)!r}", "", "library: Library"])
    lines = [head, *_beside(names, types.split("\n"))]
    lines += [f"{name}: _function_{name}" for name in names if name != "library"]
    return "\n".join(lines) + "\n"


def _beside(names: Sequence[str], lines: Iterable[str]) -> Iterator[str]:
    """The lines, in which what the stub itself uses has another name where a function has the same."""
    imported = [line.split("import ")[1].split(", ") for line in _IMPORTS.splitlines() if "import " in line]
    used = {*_BUILTINS, *(word for words in imported for word in words), "Library"}
    taken = [name for name in names if name in used]
    for name in taken:
        if name in _BUILTINS:
            yield f"from builtins import {name} as _offload_{name}"
    for line in lines:
        yield _renamed(line, taken)


def _renamed(line: str, taken: Sequence[str]) -> str:
    """A line of a stub; names of arguments, attributes and modules, and documentation, stay as they are."""
    if line.startswith((" " * 8, "__all__")):
        return line
    module, imports, rest = line.rpartition("import ") if "import " in line else ("", "", line)
    for name in taken:
        other = f"{name} as _offload_{name}" if imports else f"_offload_{name}"
        rest = re.sub(rf"(?<![.\w]){name}\b(?!: | as )", other, rest)
    return f"{module}{imports}{rest}"


def _types(metadata: Metadata) -> Iterator[str]:
    """A class for each function and kernel, and for the library that has them."""
    functions = {function.name: function for function in metadata.functions}
    names = Counter(kernel.name for kernel in metadata.kernels)
    kernels = {kernel.name: kernel for kernel in metadata.kernels if names[kernel.name] == 1}
    yield _IMPORTS
    for function in functions.values():
        if is_name(function.name):
            yield from ["", *_function(function), ""]
    for kernel in kernels.values():
        if _is_attribute(kernel.name, Kernels):
            yield from ["", *_kernel(kernel), ""]
    yield from ["", "class _Kernels(_AnyKernels):", '    """Kernels by name."""']
    yield from _attributes(kernels, "_kernel_", Kernels, 'lib.kernels["{}"]')
    for kernel in metadata.kernels:
        if kernel.name not in kernels:
            yield f'    # lib.kernels["{kernel.module}.{kernel.name}"]'
    yield from ["", "", "class Library(_Library):", "    kernels: _Kernels"]
    yield from _attributes(functions, "_function_", Library, 'lib.functions["{}"]')


_OF_INSTANCES: dict[type, tuple[str, ...]] = {
    Library: ("path", "metadata", "functions", "signatures", "kernels", "device", "_native", "_loaded"),
    Kernels: ("_owner", "_silent", "_placed", "_qualified", "_kernels"),
}
"""Attributes that the classes do not have, but all that are made of them."""


def _is_attribute(name: str, owner: type) -> bool:
    return is_name(name) and not _is_taken(name, owner)


def _is_taken(name: str, owner: type) -> bool:
    return hasattr(owner, name) or name in _OF_INSTANCES[owner] or name.startswith("__")


def _attributes(names: Iterable[str], prefix: str, owner: type, otherwise: str) -> Iterator[str]:
    for name in names:
        if _is_attribute(name, owner):
            yield f"    {name}: {prefix}{name}"
        else:
            yield f"    # {otherwise.format(name)}: no attribute can have this name"


def _receiver(callee: Callee) -> str:
    """The first parameter of a method: a program's argument may be called self."""
    return "self" if "self" not in callee.names else "_offload_self"


def _function(function: Signature) -> list[str]:
    callee = Callee(function.name, function.name, function.args, function.results, function.doc)
    parameters = [_receiver(callee), *_parameters(callee)]
    if "stream" not in callee.names:
        parameters += ["*", "stream: Any = None"]
    head = f"    def __call__({', '.join(parameters)}) -> {_results(function)}:"
    return [f"class _function_{function.name}(Function):", head, *_docstring(callee)]


def _kernel(kernel: KernelSignature) -> list[str]:
    callee = Callee(kernel.name, kernel.name, kernel.args, (), kernel.doc)
    launch, name = f"_launch_{kernel.name}", f"_kernel_{kernel.name}"
    # What is no Waiting cannot be said, so the second overload takes everything; pyright minds, mypy does not.
    meant = "  # pyright: ignore[reportOverlappingOverload]"
    return [
        f"class {launch}(Launch, Generic[_Done]):",
        f"    def __call__({', '.join([_receiver(callee), *_parameters(callee)])}) -> _Done:",
        *_docstring(callee),
        "",
        "",
        f"class {name}(Kernel):",
        "    @overload",
        f"    def __getitem__(self, launch: Waiting) -> {launch}[None]: ...{meant}",
        "    @overload",
        f"    def __getitem__(self, launch: Any) -> {launch}[Pending]: ...",
    ]


def _parameters(callee: Callee) -> list[str]:
    pairs = enumerate(zip(callee.names, callee.arguments, strict=True))
    return [
        f"{name}: {_taken(argument)}{' = None' if index >= callee.required else ''}"
        for index, (name, argument) in pairs
    ]


def _taken(argument: Argument) -> str:
    if argument.kind == "memref":
        return "ArrayLike | None" if argument.optional else "ArrayLike"
    return "Pointer" if argument.pointer else _scalar(argument.dtype)


def _scalar(dtype: str) -> str:
    return _SCALARS.get(dtype.split("_")[0].rstrip("0123456789"), "Any")


def _results(function: Signature) -> str:
    arrays = any(argument.kind == "memref" for argument in function.args)
    results = [_result(result, arrays) for result in function.results]
    if len(results) == 1:
        return results[0]
    return f"tuple[{', '.join(results)}]" if results else "None"


def _result(result: Argument, may_be_argument: bool) -> str:
    if result.kind == "scalar":
        return {"Bool": "bool", "Int": "int", "Float": "float", "Complex": "complex"}.get(_scalar(result.dtype), "Any")
    element = f"numpy.{_NUMPY[result.dtype]}" if result.dtype in _NUMPY else "Any"
    array = "DeviceArray" if result.space == "device" else f"NDArray[{element}]"
    # A view of an argument is on the device where the argument is; no checker knows which.
    return f"{array} | Any" if may_be_argument else array


def _docstring(callee: Callee) -> list[str]:
    text = callee.help().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = text.replace("\0", "\\x00").splitlines()  # Python reads no file with such a byte
    if lines[-1].endswith('"'):
        lines.append("")
    body = [f"        {line}".rstrip() for line in lines]
    body[0] = f'        """{lines[0]}'
    if len(body) == 1:
        return [f'{body[0]}"""']
    return [*body, '        """']
