"""The emulator behind the stand-in HIP library: artifacts run with ``library.use("hip")`` on emulated devices."""

from __future__ import annotations

import ctypes
import functools
import struct
import subprocess
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.code_object import CodeObject
from emulator.dispatch import Launch
from emulator.errors import EmulationError
from emulator.hostcalls import Hostcalls
from emulator.memory import Memory
from emulator.program import Program

_HERE = Path(__file__).resolve().parent
_INVALID_IMAGE, _LAUNCH_FAILURE = 200, 719
_Pointer, _Text, _Three = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint)


class _Functions(ctypes.Structure):
    """``struct emulator`` of the stand-in library."""

    _fields_ = (
        ("chip", _Text),
        ("lanes", ctypes.c_int),
        ("load", ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer)),
        ("unload", ctypes.CFUNCTYPE(None, _Pointer)),
        ("has", ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Text)),
        (
            "launch",
            ctypes.CFUNCTYPE(
                ctypes.c_int, _Pointer, _Text, _Three, _Three, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
        ("memory", ctypes.CFUNCTYPE(None, _Pointer, ctypes.c_size_t)),
    )


def build(folder: Path) -> Path:
    """Compiles the stand-in library so that the runtime's search for HIP finds it in this process."""
    result = folder / "libamdhip64.so.6"
    source = _HERE.parent / "standin" / "libamdhip64.c"
    command = ["cc", "-shared", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", f"-Wl,-soname,{result.name}"]
    subprocess.run([*command, "-I", _HERE.parents[1] / "runtime_c", source, "-o", result], check=True)
    return result


@functools.cache
def shared() -> Driver:
    """The driver of this process: HIP is loaded once."""
    folder = tempfile.TemporaryDirectory(prefix="emulated-hip")
    driver = Driver(build(Path(folder.name)))
    driver.folder = folder
    return driver


class Driver:
    """Emulated devices of one chip."""

    folder: tempfile.TemporaryDirectory[str]  # of the library, for as long as the driver lives

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self.memory = Memory()
        self.hostcalls = Hostcalls(self.memory)
        self.programs: dict[int, Program] = {}
        self.failures: list[BaseException] = []
        self.launches = self.instructions = 0
        self._functions = _Functions()

    @contextmanager
    def chip(self, name: str) -> Iterator[Driver]:
        """Devices of this chip from here on, until the end of the block."""
        lanes = 64 if name.startswith("gfx9") else 32
        kinds = dict(_Functions._fields_)
        self._functions = _Functions(
            f"{name}:sramecc+:xnack-".encode() if name.startswith("gfx9") else name.encode(),
            lanes,
            kinds["load"](self._load),
            kinds["unload"](self._unload),
            kinds["has"](self._has),
            kinds["launch"](self._launch),
            kinds["memory"](self._memory),
        )
        self._library.standin_emulate(ctypes.byref(self._functions))
        try:
            yield self
        finally:
            self._library.standin_emulate(None)

    def check(self) -> None:
        """Raises the first failure since the last time."""
        failures, self.failures = self.failures, []
        if failures:
            raise failures[0]

    def _kept(self, error: BaseException, code: int) -> int:
        if not isinstance(error, EmulationError):
            traceback.print_exception(error)
        self.failures.append(error)
        return code

    def _load(self, module: int, image: int) -> int:
        try:
            sections, count = struct.unpack("<Q", ctypes.string_at(image + 40, 8))[0], ctypes.string_at(image + 60, 2)
            size = sections + 64 * struct.unpack("<H", count)[0]
            self.programs[module] = Program(CodeObject(ctypes.string_at(image, size), self.memory), self.hostcalls)
        except Exception as error:
            return self._kept(error, _INVALID_IMAGE)
        return 0

    def _unload(self, module: int) -> None:
        self.programs.pop(module).code.unload()

    def _has(self, module: int, name: bytes) -> int:
        return name.decode() in self.programs[module].code.kernels

    def _launch(self, module: int, name: bytes, grid: _Three, block: _Three, dynamic: int, params: object) -> int:
        try:
            program = self.programs[module]
            launch = Launch(program, program.code.kernels[name.decode()], grid[:3], block[:3], dynamic, _Params(params))
            self.launches += 1
            self.instructions += launch.run()
        except Exception as error:
            return self._kept(error, _LAUNCH_FAILURE)
        return 0

    def _memory(self, begin: int, size: int) -> None:
        if size:  # of whole words, which atomic operations on parts of one read
            self.memory.add(begin, -(-size // 4) * 4, "an allocation")
        else:
            self.memory.remove(begin)


class _Params:
    """The addresses of a kernel's arguments; how many there are its metadata tells."""

    def __init__(self, pointers: object) -> None:
        self.pointers = pointers

    def __iter__(self) -> Iterator[int]:
        index = 0
        while True:
            yield self.pointers[index]
            index += 1
