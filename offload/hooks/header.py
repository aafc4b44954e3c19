"""The C++ header of a library: its functions with typed arguments, errors as exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from offload.artifact.meta import Argument, Metadata, Signature, mark, own_symbol
from offload.errors import OffloadError
from offload.hooks.c_names import FUNCTIONS, HEADERS

_BITS = (8, 16, 32, 64)
_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    "complex64": "std::complex<float>",
    "complex128": "std::complex<double>",
    **{f"int{bits}": f"std::int{bits}_t" for bits in _BITS},
    **{f"uint{bits}": f"std::uint{bits}_t" for bits in _BITS},
}
_STORED = {**_TYPES, "float16": "std::uint16_t", "bfloat16": "std::uint16_t"}
"""Elements of arrays: floats that C++ has no type for are their bits."""
_SYMBOLS = "offload_symbols"
"""The namespace, inside of the library's, of what the library exports."""
_RESERVED = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char8_t", "char16_t", "char32_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
    "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "return", "short", "signed",
    "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
    "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq", "main", "runtime",
    "offload_result", "offload_symbols",
    # Macros of the C library, and of GNU's compilers where no strict standard is asked for.
    "EOF", "INFINITY", "NAN", "NULL", "alloca", "assert", "errno", "linux", "offsetof", "stderr", "stdin",
    "stdout", "unix",
}  # fmt: skip


def namespace_of(name: str) -> str:
    """The namespace of a library's functions. Raises OffloadError for a name that cannot be."""
    space = re.sub(r"\W", "_", name)
    if name == "mgpu":
        raise OffloadError("its header would be mgpu.h, which is the runtime's; give the library another name")
    if name in HEADERS:  # before the folders of the system, compilers look into that of this header
        why = f"its header would be {name}.h, which others would include in place of the C library's"
        raise OffloadError(f"{why}; give the library another name")
    if space != "runtime" and (not _is_name(space) or space == "std"):
        where = f'the header\'s functions would be in a namespace "{space}", which is none in C++'
        raise OffloadError(f"{where}; give the library another name")
    return f"{space}_" if space in FUNCTIONS else space


def header_text(
    name: str, soname: str, metadata: Metadata, undescribed: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The header of the library that programs look for under ``soname``. A function that C++ cannot call with these
    types is named in a comment, with the reason; so are those that the library has ``undescribed``, by name with
    their symbols.

    Raises OffloadError for a name that makes no namespace."""
    space = namespace_of(name)
    # One namespace may be that of two libraries (a-b and a_b): a program that includes both headers has both.
    own = f"offload_{mark(name)}"
    guard = f"{own}_LIBRARY_H".upper()
    functions = [(function, _obstacle(function)) for function in metadata.functions]
    callable_ = [function for function, obstacle in functions if not obstacle]
    parts = [f"// Functions of lib{name}.so. Made by offload; changes are lost.\n#ifndef {guard}\n#define {guard}\n"]
    parts.append("#include <offload/memref.h>\n")
    parts += [f"// {function.name} is not here: {obstacle}.\n" for function, obstacle in functions if obstacle]
    parts += [
        f"// {function} is not here: it has a type that is not described; C calls {symbol}.\n"
        for function, symbol in undescribed.items()
    ]
    if callable_:
        parts.append(f"namespace {space} {{\ninline namespace {own} {{\n")
        declared = f'const mgpuApi *offload_api(std::uint32_t) __asm__("{own_symbol(soname, "offload_api")}");\n'
        declared += "".join(_declaration(function, soname) for function in callable_)
        parts.append(f"namespace {_SYMBOLS} {{\n{declared}}} // namespace {_SYMBOLS}\n")
        parts.append(
            "/// The runtime inside the library: devices, memory, streams (mgpu.h).\n"
            "inline const mgpuApi &runtime() {\n"
            f"  static const mgpuApi &api = offload::checked({_SYMBOLS}::offload_api(MGPU_ABI_VERSION));\n"
            "  return api;\n}\n"
        )
        parts += [_wrapper(function) for function in callable_]
        parts.append(f"}} // namespace {own}\n}} // namespace {space}\n")
    parts.append("#endif\n")
    return "\n".join(parts)


def _is_name(text: str) -> bool:
    return text.isidentifier() and text not in _RESERVED  # Python's letters and digits are C++'s


def _obstacle(function: Signature) -> str:
    if not _is_name(function.name):
        return "its name is none in C++, or taken"
    for argument in function.args:
        if argument.dtype not in (_STORED if argument.kind == "memref" else _TYPES):
            return f"{argument.name} is {argument}, for which C++ has no type"
        if argument.kind == "scalar" and argument.dtype.startswith("complex"):
            return f"{argument.name} is {argument}, which C++ does not pass as MLIR takes it"
    if len(function.results) > 1 or any(
        result.kind != "scalar" or result.dtype not in _TYPES or result.dtype.startswith("complex")
        for result in function.results
    ):
        return "it returns something else than one plain number; write results into an argument"
    return ""


def _type(argument: Argument) -> str:
    if argument.kind == "scalar":
        return _TYPES[argument.dtype]
    return f"offload::Memref<{_STORED[argument.dtype]}, {argument.rank}>"


def _names(function: Signature) -> list[str]:
    names = [argument.name for argument in function.args]
    plain = all(_is_name(name) for name in names)
    return names if plain and len(set(names)) == len(names) else [f"arg{number}" for number in range(len(names))]


def _declaration(function: Signature, soname: str) -> str:
    types = [f"{_type(argument)}{' *' if argument.kind == 'memref' else ''}" for argument in function.args]
    symbol = own_symbol(soname, function.symbol)
    return f'{_returned(function)} {function.name}({", ".join(types)}) __asm__("{symbol}");\n'


def _returned(function: Signature) -> str:
    return _TYPES[function.results[0].dtype] if function.results else "void"


def _wrapper(function: Signature) -> str:
    names = _names(function)
    parameters = ", ".join(f"{_type(value)} {name}" for name, value in zip(names, function.args, strict=True))
    passed = ", ".join(
        f"&{name}" if value.kind == "memref" else name for name, value in zip(names, function.args, strict=True)
    )
    checks = "".join(_checks(function.name, name, value) for name, value in zip(names, function.args, strict=True))
    checks += "".join(_equal_checks(function, names))
    call = f"{_SYMBOLS}::{function.name}({passed});\n  offload::check(runtime());\n"
    body = f"  auto offload_result = {call}  return offload_result;\n" if function.results else f"  {call}"
    types = ", ".join(f"{name}: {value}" for name, value in zip(names, function.args, strict=True))
    # A backslash at its end would make the next line a part of the comment.
    lines = [f"/// {line}".rstrip("\\ ") for line in function.doc.splitlines()]
    documented = "\n".join([*lines, "///", ""]) if lines else ""
    return (
        f"{documented}/// {types or 'no arguments'}. Throws offload::Error.\n"
        f"inline {_returned(function)} {function.name}({parameters}) {{\n{checks}{body}}}\n"
    )


def _checks(function: str, name: str, argument: Argument) -> str:
    """Statements that refuse arrays of other sizes and strides than the function's code takes for granted."""
    if argument.kind == "scalar":
        return ""
    what = _what(function, name, argument)
    lines = []
    if any(size is not None for size in argument.shape):
        sizes = ", ".join("-1" if size is None else str(size) for size in argument.shape)
        lines.append(f"check_sizes({name}, {{{sizes}}}, {what})")
    if argument.strides is None and argument.rank:
        lines.append(f"check_row_major({name}, {what})")
    if any(stride is not None for stride in argument.strides or ()):
        strides = ", ".join("offload::any" if stride is None else str(stride) for stride in argument.strides or ())
        lines.append(f"check_strides({name}, {{{strides}}}, {what})")
    if argument.offset is not None:
        lines.append(f"set_offset({name}, {argument.offset})")
    return "".join(f"  offload::{line};\n" for line in lines)


def _equal_checks(function: Signature, names: list[str]) -> Iterator[str]:
    """The same for arrays that the function goes through together, whose types leave these sizes open."""
    for equal in function.equal:
        first, place = equal.dimensions[0]
        wanted, like = str(equal.size), ""
        if equal.size is None:
            wanted, like = f"{names[first]}.sizes[{place}]", f", as dimension {place} of {names[first]} is"
        for index, dimension in equal.dimensions:
            if equal.size is not None or (index, dimension) != (first, place):
                what = _what(function.name, names[index], function.args[index])
                yield f'  offload::check_size({names[index]}, {dimension}, {wanted}, "{like}", {what});\n'


def _what(function: str, name: str, argument: Argument) -> str:
    """The start of an error about an argument, as a C++ string."""
    return f'"{function}(): {name} is {argument}"'
