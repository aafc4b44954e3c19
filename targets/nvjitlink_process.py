"""A program that makes machine code with nvJitLink: nvjitlink_process.py LIBRARY SOURCE RESULT [OPTION …]

nvJitLink's C API, as in nvJitLink.h; functions have their version in the name, `__nvJitLinkCreate_13_0`, and each
library has those since the first of its major version. Needs nothing but Python.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_INPUT_PTX = 2
_TEXT = "kernels.ptx"


def main(library: str, source: str, result: str, *options: str) -> str:
    """Makes ``result``, a cubin, of ``source``, PTX. Returns what is to be printed; ends the process where the library
    refuses."""
    try:
        link = _Link(Path(library), options)
    except OSError as error:
        sys.exit(f"{library}: the system's loader refuses it: {error}")
    text = Path(source).read_bytes() + b"\0"
    link.call("AddData", ctypes.c_int(_INPUT_PTX), text, ctypes.c_size_t(len(text)), _TEXT.encode())
    link.call("Complete")
    report = [line for line in link.text("InfoLog").splitlines() if line.startswith("ptxas")]
    Path(result).write_bytes(link.data("LinkedCubin"))
    return "\n".join(report)


class _Link:
    """The one use of the library in a process; `call` ends it with what the library's log says."""

    def __init__(self, path: Path, options: Sequence[str]) -> None:
        self._library = ctypes.CDLL(str(path))
        self._major = path.name.rpartition(".")[2]
        self._handle = ctypes.c_void_p()
        words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        self.call("Create", ctypes.byref(self._handle), ctypes.c_uint32(len(options)), words, itself=False)

    def call(self, name: str, *arguments: Any, itself: bool = True) -> None:
        function = getattr(self._library, f"__nvJitLink{name}_{self._major}_0", None)
        if function is None:
            sys.exit(f"{self._library._name}: it has no nvJitLink{name}; install another nvJitLink")
        code = function(*([self._handle] if itself else []), *arguments)
        if code:
            log = self.text("ErrorLog") if self._handle and not name.startswith("GetErrorLog") else ""
            log = log.rstrip().replace("ptxas application ptx input,", f"ptxas {_TEXT},")
            sys.exit(f"nvJitLink{name} failed with code {code}\n{log}")

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


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
