"""Other ways of calling a function of C or C++ from Python with arrays, built where `build` says."""

from __future__ import annotations

import ctypes
import importlib
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

HERE = Path(__file__).resolve().parent
Functions = dict[int, Callable[..., Any]]
Run = Callable[[list[str], Path], None]


class Memref(ctypes.Structure):
    """A memref of rank 1, as MLIR's C interface has it."""

    _fields_ = (
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("stride", ctypes.c_int64),
    )


def by_hand(folder: Path, run: Run) -> Functions:
    """ctypes, as one would write it: dtype and rank checked, a descriptor made, the function called."""
    library = ctypes.CDLL(str(_plain(folder, run)))
    float32 = numpy.dtype("float32")

    def descriptor(array: Any) -> Any:
        if array.dtype != float32 or array.ndim != 1:
            raise TypeError("expected a vector of float32")
        address = array.ctypes.data
        return ctypes.byref(Memref(address, address, 0, array.shape[0], array.strides[0] // 4))

    def wrap(function: Any) -> Callable[..., None]:
        def call(*arrays: Any) -> None:
            function(*[descriptor(array) for array in arrays])

        return call

    return {count: wrap(library[f"memrefs{count}"]) for count in (0, 1, 3, 8)}


def with_cffi(folder: Path, run: Run) -> Functions:
    """cffi's compiled functions, given the addresses of the arrays; nothing is checked but that they are contiguous."""
    import cffi

    declarations = "\n".join(
        f"void memrefs{count}({', '.join(['const void *'] * count) or 'void'});" for count in (0, 1, 3, 8)
    )
    builder = cffi.FFI()
    builder.cdef(declarations)
    builder.set_source("with_cffi", (HERE / "plain.c").read_text(), extra_compile_args=["-O2"])
    builder.compile(tmpdir=str(folder))
    module = _imported("with_cffi", folder)
    address = module.ffi.from_buffer
    f0, f1, f3, f8 = (getattr(module.lib, f"memrefs{count}") for count in (0, 1, 3, 8))

    def call1(a: Any) -> None:
        f1(address(a))

    def call3(a: Any, b: Any, c: Any) -> None:
        f3(address(a), address(b), address(c))

    def call8(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> None:
        f8(address(a), address(b), address(c), address(d), address(e), address(f), address(g), address(h))

    return {0: f0, 1: call1, 3: call3, 8: call8}


def with_pybind11(folder: Path, run: Run) -> Functions:
    """pybind11's functions of py::array_t."""
    import pybind11

    flags = [f"-I{pybind11.get_include()}", str(HERE / "with_pybind11.cpp")]
    return _extension("with_pybind11", flags, folder, run)


def with_nanobind(folder: Path, run: Run) -> Functions:
    """nanobind's functions of nb::ndarray."""
    import nanobind

    root = Path(nanobind.__file__).parent
    includes = [f"-I{nanobind.include_dir()}", f"-I{root / 'ext' / 'robin_map' / 'include'}"]
    sources = [str(root / "src" / "nb_combined.cpp"), str(HERE / "with_nanobind.cpp")]
    return _extension("with_nanobind", ["-fno-strict-aliasing", "-DNDEBUG", *includes, *sources], folder, run)


def with_numba(folder: Path, run: Run) -> Functions:
    """Numba's dispatcher, its functions compiled for vectors of float32."""
    import numba

    vector = numba.float32[::1]

    def compiled(count: int) -> Callable[..., Any]:
        names = ", ".join("abcdefgh"[:count])
        function = eval(f"lambda {names}: None")
        made: Callable[..., Any] = numba.njit(numba.void(*[vector] * count))(function)
        return made

    return {count: compiled(count) for count in (0, 1, 3, 8)}


def with_tvm_ffi(folder: Path, run: Run) -> Functions:
    """tvm-ffi's functions of tensors, which takes NumPy's arrays through DLPack."""
    import tvm_ffi
    from tvm_ffi import libinfo

    includes = [f"-I{libinfo.find_include_path()}", f"-I{libinfo.find_dlpack_include_path()}"]
    library = folder / "with_tvm_ffi.so"
    link = ["-L", str(Path(libinfo.find_libtvm_ffi()).parent), "-ltvm_ffi"]
    run([*_compiler(), *includes, str(HERE / "with_tvm_ffi.cpp"), "-o", str(library), *link], folder)
    module = tvm_ffi.load_module(str(library))
    return {count: module[f"f{count}"] for count in (0, 1, 3, 8)}


PEERS: dict[str, Callable[[Path, Run], Functions]] = {
    "ctypes by hand": by_hand,
    "cffi": with_cffi,
    "pybind11": with_pybind11,
    "nanobind": with_nanobind,
    "Numba": with_numba,
    "tvm-ffi": with_tvm_ffi,
}


def _compiler() -> list[str]:
    include = sysconfig.get_paths()["include"]
    return ["c++", "-O3", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{include}"]


def _plain(folder: Path, run: Run) -> Path:
    library = folder / "plain.so"
    run(["cc", "-O2", "-shared", "-fPIC", str(HERE / "plain.c"), "-o", str(library)], folder)
    return library


def _extension(name: str, flags: list[str], folder: Path, run: Run) -> Functions:
    file = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    run([*_compiler(), *flags, "-o", str(file)], folder)
    module = _imported(name, folder)
    return {count: getattr(module, f"f{count}") for count in (0, 1, 3, 8)}


def _imported(name: str, folder: Path) -> Any:
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
