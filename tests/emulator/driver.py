"""Emulators behind the stand-in drivers: artifacts run with ``library.use("hip")`` on emulated devices."""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import subprocess
import tempfile
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from emulator.errors import EmulationError
from emulator.memory import Memory

_HERE = Path(__file__).resolve().parent
_Pointer, _Text, _Three = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint)
_CALLBACKS: dict[str, Any] = {
    "load": ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer),
    "unload": ctypes.CFUNCTYPE(None, _Pointer),
    "has": ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Text),
    "shared": ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Text),
    "launch": ctypes.CFUNCTYPE(
        ctypes.c_int, _Pointer, _Text, _Three, _Three, _Three, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p)
    ),
    "memory": ctypes.CFUNCTYPE(None, _Pointer, ctypes.c_size_t),
}
_LAUNCH_FAILURE = 719  # of both vendors


class _Functions(ctypes.Structure):
    """``struct emulator`` of the stand-in library."""

    _fields_ = (("chip", _Text), ("lanes", ctypes.c_int), *_CALLBACKS.items())


def build(folder: Path, source: str, name: str) -> Path:
    """Compiles a stand-in library so that the runtime's search for its driver finds it in this process."""
    result = folder / name
    command = ["cc", "-shared", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", f"-Wl,-soname,{result.name}"]
    path = _HERE.parent / "standin" / source
    subprocess.run([*command, "-I", _HERE.parents[1] / "runtime_c", path, "-o", result], check=True)
    return result


def shared(backend: str = "hip") -> Driver:
    """The driver of this process for one backend of the runtime: its library is loaded once."""
    return _loaded(backend)


@functools.cache
def _loaded(backend: str) -> Driver:
    driver: Driver = importlib.import_module(f"emulator.{backend}_driver").DRIVER()
    return driver


class Driver(ABC):
    """Emulated devices of one chip. Subclasses say what a vendor's programs are and how they run."""

    LIBRARY: ClassVar[tuple[str, str]]
    """The source of the stand-in library and the name under which the runtime looks for it."""
    INVALID_IMAGE: ClassVar[int]
    CODES: ClassVar[dict[type[EmulationError], int]] = {}
    """What the vendor's API calls failures of a launch, where it has more than one name for them."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="emulated-")
        self._library = ctypes.CDLL(str(build(Path(self._folder.name), *self.LIBRARY)))
        self.memory = Memory()
        self.programs: dict[int, Any] = {}
        self.failures: list[BaseException] = []
        self.launches = self.instructions = 0
        self._functions = _Functions(None, 0, *(kind(getattr(self, f"_{name}")) for name, kind in _CALLBACKS.items()))
        self._library.standin_emulate(ctypes.byref(self._functions))
        atexit.register(self._library.standin_emulate, None)

    # Of a vendor

    output: str
    """What kernels have printed."""

    @abstractmethod
    def described(self, chip: str) -> tuple[str, int]:
        """How the driver calls the chip, and the lanes of its waves."""

    @abstractmethod
    def program(self, image: int) -> Any:
        """The program of the image at an address; it has ``kernels`` by name and ``unload``."""

    @abstractmethod
    def workgroup_memory(self, kernel: Any) -> int:
        """Bytes that each block has, those of the launch aside."""

    @abstractmethod
    def run(
        self,
        program: Any,
        kernel: Any,
        sizes: Sequence[Sequence[int]],
        dynamic: int,
        params: Params,
    ) -> int:
        """Runs a grid of blocks in clusters, ``sizes`` of it, and returns how many instructions that took."""

    def failed(self, code: int) -> int:
        """What a launch answers whose kernel has failed."""
        return code

    # Of all

    @contextmanager
    def chip(self, name: str) -> Iterator[Driver]:
        """Devices of this chip from here on, until the end of the block."""
        title, self._functions.lanes = self.described(name)
        self._functions.chip = title.encode()
        try:
            yield self
        finally:
            self._functions.chip = None
            self._library.standin_fail(0)

    def check(self) -> None:
        """Raises the first failure since the last time."""
        failures, self.failures = self.failures, []
        if failures:
            raise failures[0]

    def _kept(self, action: Callable[[], object], usual: int) -> int:
        """0, or the code of a failure, which is kept for the test to find."""
        try:
            action()
        except Exception as error:
            if not isinstance(error, EmulationError):
                traceback.print_exception(error)
            self.failures.append(error)
            return next((code for kind, code in self.CODES.items() if isinstance(error, kind)), usual)
        return 0

    def _load(self, module: int, image: int) -> int:
        def load() -> None:
            self.programs[module] = self.program(image)

        return self._kept(load, self.INVALID_IMAGE)

    def _unload(self, module: int) -> None:
        if module in self.programs:
            self.programs.pop(module).unload()

    def _has(self, module: int, name: bytes) -> int:
        return name.decode() in self.programs[module].kernels

    def _shared(self, module: int, name: bytes) -> int:
        return self.workgroup_memory(self.programs[module].kernels[name.decode()])

    def _launch(self, module: int, name: bytes, grid: Any, block: Any, cluster: Any, dynamic: int, params: Any) -> int:
        def launch() -> None:
            program = self.programs[module]
            self.launches += 1
            sizes = (grid[:3], block[:3], cluster[:3])
            self.instructions += self.run(program, program.kernels[name.decode()], sizes, dynamic, Params(params))

        code = self._kept(launch, _LAUNCH_FAILURE)
        return self.failed(code) if code else 0

    def _memory(self, begin: int, size: int) -> None:
        if size:  # of whole words, which atomic operations on parts of one read
            self.memory.add(begin, -(-size // 4) * 4, "an allocation")
        else:
            self.memory.remove(begin)


class Params:
    """The addresses of a kernel's arguments; how many there are the kernel knows."""

    def __init__(self, pointers: Any) -> None:
        self.pointers = pointers

    def __getitem__(self, index: int) -> int:
        address: int = self.pointers[index]
        return address

    def __iter__(self) -> Iterator[int]:
        index = 0
        while True:
            yield self[index]
            index += 1
