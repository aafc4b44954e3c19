"""The ctypes mirror of the C ABI against the files that define it."""

from __future__ import annotations

import ctypes
import re
import subprocess
from ctypes import POINTER
from pathlib import Path
from typing import Any

from runtime_sources import RUNTIME
from runtime_support import compile_c, folder

from offload.runtime import abi

_TYPES: dict[str, Any] = {
    "void": None,
    "bool": ctypes.c_bool,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "unsigned short": ctypes.c_ushort,
    "unsigned char": ctypes.c_ubyte,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "intptr_t": ctypes.c_ssize_t,
    "uint32_t": ctypes.c_uint32,
    "int64_t *": POINTER(ctypes.c_int64),
    "const uint64_t *": POINTER(ctypes.c_uint64),
    "const uint32_t *": POINTER(ctypes.c_uint32),
    "size_t": ctypes.c_size_t,
    "void *": ctypes.c_void_p,
    "float *": ctypes.c_void_p,
    "int32_t *": ctypes.c_void_p,
    "mgpuMemref1d": abi.Memref1d,
    "void **": POINTER(ctypes.c_void_p),
    "const char *": ctypes.c_char_p,
    "const void *": ctypes.c_void_p,
    "const int64_t *": POINTER(ctypes.c_int64),
    "mgpuGlobalSlot *": POINTER(abi.GlobalSlot),
    "mgpuKernelSlot *": POINTER(abi.KernelSlot),
    "mgpuScope *": POINTER(abi.Scope),
    "mgpuDeviceInfo *": POINTER(abi.RawDeviceInfo),
    "mgpuKeptError *": POINTER(abi.KeptError),
}


def _type(text: str, named: bool) -> Any:
    """The ctypes type of a C type, or of a declaration with a name after it."""
    match = re.fullmatch(r"\s*((?:const )?(?:unsigned )?\w+)\s*(\**)\s*(\w*)\s*", text)
    assert match is not None, text
    assert bool(match[3]) == named, text
    return _TYPES[f"{match[1]} {match[2]}".strip()]


def test_functions_are_those_of_the_def_file() -> None:
    text = (RUNTIME / "mgpu_functions.def").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    entries = re.findall(r"MGPU_FUNCTION\(([^,]+),\s*(\w+),\s*\((.*?)\)\)", text, flags=re.DOTALL)
    assert len(entries) == text.count("MGPU_FUNCTION(")
    expected = []
    for result, name, parameters in entries:
        types = () if parameters.strip() == "void" else tuple(_type(p, True) for p in parameters.split(","))
        expected.append((_type(result, False), name, types))
    assert [entry[1] for entry in abi.FUNCTIONS] == [entry[1] for entry in expected]
    assert list(abi.FUNCTIONS) == expected


def test_layouts_are_those_of_the_c_compiler() -> None:
    structs = {
        "mgpuApi": abi.Api,
        "mgpuModuleSlot": abi.ModuleSlot,
        "mgpuKernelSlot": abi.KernelSlot,
        "mgpuScope": abi.Scope,
        "mgpuGlobalSlot": abi.GlobalSlot,
        "mgpuMemref1d": abi.Memref1d,
        "mgpuDeviceInfo": abi.RawDeviceInfo,
        "mgpuKeptError": abi.KeptError,
    }
    lines = ['#include "mgpu.h"', "#include <stdio.h>", "int main(void) {"]
    expected = []
    for name, struct in structs.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        expected.append(ctypes.sizeof(struct))
        for field, *_ in struct._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
            expected.append(getattr(struct, field).offset)
    lines.append('printf("%u\\n", MGPU_ABI_VERSION); }')
    expected.append(abi.ABI_VERSION)
    source: Path = folder() / "layout.c"
    source.write_text("\n".join(lines))
    compile_c("-o", folder() / "layout", source)
    printed = subprocess.run([folder() / "layout"], check=True, capture_output=True, text=True).stdout
    assert [int(line) for line in printed.split()] == expected


def test_error_codes_are_those_of_the_header() -> None:
    header = (RUNTIME / "mgpu.h").read_text()
    codes = {name: int(value) for name, value in re.findall(r"MGPU_(SUCCESS|ERROR_\w+) = (\d+)", header)}
    assert codes == {name: getattr(abi, name) for name in codes}
    assert len(codes) == 9
