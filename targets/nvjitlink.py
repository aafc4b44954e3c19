"""NVIDIA's nvJitLink library, which makes machine code of PTX as ptxas does, where only the library is installed.

Its C API, as in nvJitLink.h; functions have their version in the name, `__nvJitLinkCreate_13_0`, and each library has
those since the first of its major version.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from offload.targets.tools import Found, SearchStep, from_site_packages, search

from offload.errors import CompileError, ToolkitError

_MAJORS = (13, 12)
_INPUT_PTX = 2
_TEXT = "kernels.ptx"


def find(steps: Sequence[SearchStep], remedy: str) -> Found:
    """The library in those places, or in the wheel nvidia-nvjitlink-cu12."""
    names = [f"{folder}/libnvJitLink.so.{major}" for major in _MAJORS for folder in ("lib", "lib64")]
    return search("nvJitLink (CUDA)", names, [*steps, from_site_packages("nvidia/nvjitlink")], remedy)


def is_library(path: Path) -> bool:
    """Whether it is what `find` found, and no program."""
    return path.name.startswith("libnvJitLink.so.")


@functools.cache
def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ToolkitError(f"{path}: the system's loader refuses it: {error}") from error


class _Link:
    """One use of the library; `call` raises CompileError with what the library's log says."""

    def __init__(self, path: Path, options: Sequence[str], purpose: str) -> None:
        self._library = _load(path)
        self._major = path.name.rpartition(".")[2]
        self._what = (
            f"cannot {purpose}: {{}} of nvJitLink failed with code {{}}\n"
            f"  library: {path}\n  options: {' '.join(options)}\n  output:\n{{}}"
        )
        self._handle = ctypes.c_void_p()
        words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        self.call("Create", ctypes.byref(self._handle), ctypes.c_uint32(len(options)), words, itself=False)

    def call(self, name: str, *arguments: Any, itself: bool = True) -> None:
        function = getattr(self._library, f"__nvJitLink{name}_{self._major}_0", None)
        if function is None:
            raise ToolkitError(f"{self._library._name}: it has no nvJitLink{name}; install another nvJitLink")
        code = function(*([self._handle] if itself else []), *arguments)
        if code:
            log = self.text("ErrorLog") if self._handle and not name.startswith("GetErrorLog") else ""
            log = log.rstrip().replace("ptxas application ptx input,", f"ptxas {_TEXT},")
            raise CompileError(self._what.format(f"nvJitLink{name}", code, log))

    def data(self, name: str) -> bytes:
        """What the functions nvJitLinkGet...Size and nvJitLinkGet... give."""
        size = ctypes.c_size_t()
        self.call(f"Get{name}Size", ctypes.byref(size))
        room = ctypes.create_string_buffer(size.value + 1)
        if size.value:
            self.call(f"Get{name}", room)
        return room.raw[: size.value]

    def text(self, name: str) -> str:
        return self.data(name).rstrip(b"\0").decode(errors="replace")

    def close(self) -> None:
        if self._handle:
            self.call("Destroy", ctypes.byref(self._handle), itself=False)
            self._handle = ctypes.c_void_p()


def assemble(path: Path, source: bytes, options: Sequence[str], purpose: str) -> tuple[bytes, str]:
    """Machine code of a PTX text, and what the library reports of it in ptxas' words. Raises CompileError with the
    library's log where it refuses the text, ToolkitError where it cannot be used."""
    link = _Link(path, options, purpose)
    try:
        text = source + b"\0"
        link.call("AddData", ctypes.c_int(_INPUT_PTX), text, ctypes.c_size_t(len(text)), _TEXT.encode())
        link.call("Complete")
        report = [line for line in link.text("InfoLog").splitlines() if line.startswith("ptxas")]
        return link.data("LinkedCubin"), "\n".join(report)
    finally:
        link.close()
