"""A loaded artifact: its functions and kernels by name, its backend, devices, arrays and streams."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import platform
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from offload.artifact import INTERFACE, Artifact, KernelSignature, Metadata, Signature, functions_for_c
from offload.artifact import read as read_artifact
from offload.artifact.elf import MACHINES, machine_name
from offload.errors import ArtifactError
from offload.runtime import abi
from offload.runtime.attributes import check_set, unknown
from offload.runtime.backends import check_backend, choosing
from offload.runtime.device import Device, DeviceInfo, all_devices
from offload.runtime.function import Function
from offload.runtime.kernel import Kernel
from offload.runtime.native import Native
from offload.runtime.plans import FAST
from offload.runtime.streams import Stream

_runtimes: weakref.WeakSet[Native] = weakref.WeakSet()
"""Those of loaded libraries: a function that is kept without its library has its runtime."""
_chosen: str | None = None


def use(backend: str | None) -> None:
    """Fixes the backend ("cuda", "hip", which may be called "rocm", or "host") of every loaded library and of those
    loaded from now on; None lets each choose again at its next use. OFFLOAD_BACKEND does the same for a process.

    Raises `DeviceError` where the backend is unknown or has no device here; nothing is chosen then."""
    global _chosen
    with choosing():
        if backend is not None:
            check_backend(backend)
        for native in list(_runtimes):
            native.use(backend)
        _chosen = backend


def chosen_backend() -> str | None:
    """What `use` was last given."""
    return _chosen


def load(path: str | os.PathLike[str]) -> Library:
    """Loads the artifact at ``path``. Touches no driver and needs no compiler.

    The file is read and checked before it is loaded. Raises `ArtifactError` for a file that is missing,
    damaged, no artifact, for another machine, or that the system's loader refuses, and where others replace it all the
    while."""
    for _ in range(_MOST_TRIES):
        before = _state(path)
        artifact = read_artifact(path)
        library = _opened(artifact)
        after = _state(path)
        if after == before or (before and after and before[:2] == after[:2] and _says_the_same(path, artifact)):
            return Library(artifact, library)
        # Code and description may be of two files, and nobody knows which files the loader has by these names.
        _forget_files(artifact.path)
    raise ArtifactError(
        f"{path}: another file came in its place each time that it was loaded; load it when it is built"
    )


_MOST_TRIES = 20


def _state(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """What tells the file at a path from another that comes in its place, or is written over it; None where there is
    none."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):  # who reads it says why
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _says_the_same(path: str | os.PathLike[str], artifact: Artifact) -> bool:
    """Whether a file of which something has changed describes what was read: an entry of the cache has another time
    whenever it is used."""
    try:
        return read_artifact(path) == artifact
    except ArtifactError:  # it is on its way
        return False


def _opened(artifact: Artifact) -> ctypes.CDLL:
    here = platform.machine()
    if MACHINES.get(here, artifact.machine) != artifact.machine:
        raise ArtifactError(
            f"{artifact.path}: it was built for {machine_name(artifact.machine)}, this process runs on "
            f"{here}; build it for this machine"
        )
    try:
        return ctypes.CDLL(_name_for_loader(artifact.path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    except OSError as error:
        said = f"{artifact.path}: the system's loader refuses it: {error}"
        with contextlib.suppress(OSError):  # it has gone
            if os.statvfs(artifact.path).f_flag & os.ST_NOEXEC:
                said += (
                    "\n  nothing in that file system may be run (noexec): put it elsewhere; OFFLOAD_CACHE_DIR says "
                    "where what offload.compile and offload run make lies, TMPDIR where it lies without a cache"
                )
        raise ArtifactError(said) from error


_files: dict[str, tuple[dict[tuple[int, int], int], Iterator[int]]] = {}
"""By path, the numbers of the files that were loaded from it, and those that are left; a build puts a new one there.
Several threads use this at once, without a lock: each step is one that Python does as a whole."""


def _files_at(path: Path) -> tuple[dict[tuple[int, int], int], Iterator[int]]:
    return _files.setdefault(str(path), ({}, itertools.count()))


def _forget_files(path: Path) -> None:
    """Every file gets a number that none had at that path."""
    _files_at(path.absolute())[0].clear()


def _name_for_loader(path: Path) -> str:
    """A path of a file under which dlopen has loaded no other: what it has loaded by a name it does not look for again.

    Absolute, or dlopen would search the system's folders for a bare name. Of one file it makes one library, whatever
    its name; the file of a library that is loaded keeps its inode. Raises OSError."""
    status, absolute = path.stat(), path.absolute()
    numbers, left = _files_at(absolute)
    identity = status.st_dev, status.st_ino
    number = numbers.get(identity)
    if number is None:
        number = numbers.setdefault(identity, next(left))
    # A number in steps that lead nowhere: as many of them as it has digits, since a path has at most 4096 bytes.
    steps = "".join("./" if digit == "1" else "/" for digit in f"{number:b}".lstrip("0"))
    return f"{absolute.parent}/{steps}{absolute.name}"


def _called(path: Path) -> str:
    """What messages call a library: the name of one in the cache is a hash, which tells nobody anything."""
    return "the program" if re.fullmatch(r"[0-9a-f]{64}\.so", path.name) else path.name


def for_c_alone(library: Library, name: str) -> str | None:
    """Why Python cannot call a function that the library has for C; None where there is none of that name."""
    return _for_c_alone(library.path, library.metadata, library._loaded, name)


def _for_c_alone(path: Path, metadata: Metadata, loaded: ctypes.CDLL, name: str) -> str | None:
    advice = "give Python one that takes and returns scalars and ranked memrefs"
    if hasattr(loaded, f"{INTERFACE}{name}"):
        why = metadata.why_refused(name)
        return (
            f"{_called(path)} has a function {name!r} with a type that has no counterpart in Python: "
            f"{f'{why}; ' if why else ''}it is there for C ({INTERFACE}{name}); {advice}"
        )
    # The loader finds functions of the C library under a library's handle, too: the file knows its own.
    if hasattr(loaded, name):
        with contextlib.suppress(ArtifactError):
            if name in functions_for_c(path, metadata):
                why = metadata.why_refused(name)
                because = f", because of a type that has no counterpart in Python: {why}" if why else ""
                return f"{_called(path)} has a function {name!r} for C alone{because}; {advice}"
    return None


class _Functions(dict[str, Function]):
    """Of a library that is called ``owner`` in messages; one that is not there is told as an attribute is.

    ``why`` tells of a function that Python cannot call."""

    def __init__(self, owner: str, why: Callable[[str], str | None]) -> None:
        super().__init__()
        self._owner, self._why = owner, why

    def __missing__(self, name: object) -> NoReturn:
        if not isinstance(name, str):
            raise KeyError(name)
        raise KeyError(self._why(name) or str(unknown(self._owner, "function", name, self)))


class Kernels(Mapping[str, Kernel]):
    """``lib.kernels``: kernels as attributes, or by name as items. A kernel whose name occurs in several
    modules is found as ``lib.kernels["module.kernel"]``, which works for every kernel."""

    def __init__(
        self,
        owner: str,
        kernels: Mapping[tuple[str, str], Kernel],
        carried: Iterable[tuple[str, str]],
        metadata: Metadata,
    ) -> None:
        """``carried`` are the kernels of all images, by module and name, callable from Python or not."""
        self._owner = owner
        silent = set(carried) - kernels.keys()
        reasons = {(entry.name, entry.module): entry.why for entry in metadata.refused}
        self._silent = {
            word: reasons.get((name, module), "")
            for module, name in sorted(silent)
            for word in (name, f"{module}.{name}")
        }
        self._placed = kernels
        self._qualified = {f"{module}.{name}": kernel for (module, name), kernel in kernels.items()}
        names = Counter(name for _, name in kernels)
        self._kernels = {
            name if names[name] == 1 else f"{module}.{name}": kernel for (module, name), kernel in kernels.items()
        }

    def __getitem__(self, name: str) -> Kernel:
        if not isinstance(name, str):
            raise KeyError(name)
        found = self._kernels.get(name) or self._qualified.get(name)
        if found is None:
            raise KeyError(str(self._missing(name)))
        return found

    def _at(self, module: str, name: str) -> Kernel:
        """By both: ``a.b`` is as well a kernel ``a.b`` as one ``b`` of the module ``a``."""
        found = self._placed.get((module, name))
        if found is None:
            raise KeyError(str(self._missing(f"{module}.{name}")))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__") or "_kernels" not in self.__dict__:
            raise AttributeError(name)
        if name not in self._kernels:
            raise self._missing(name)
        return self._kernels[name]

    def _missing(self, name: str) -> AttributeError:
        if name in self._silent:
            why = self._silent[name]
            lack = f"has no counterpart there, {why}" if why else "has no counterpart there or is not known"
            return AttributeError(
                f"{self._owner} has a kernel {name!r} that Python cannot launch, because of an argument whose type "
                f"{lack}: launch it from a function of the program, or give it arguments that are scalars and memrefs "
                "of scalars"
            )
        return unknown(self._owner, "kernel", name, self._kernels)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._kernels})

    def __repr__(self) -> str:
        return f"<kernels of {self._owner}: {', '.join(self._kernels) or 'none'}>"


class Library:
    """A loaded artifact. Its functions are attributes; one whose name is taken (``use``, ``device`` ...) is
    in `functions` all the same. Loaded code stays in the process."""

    def __init__(self, artifact: Artifact, library: ctypes.CDLL) -> None:
        """Raises `ArtifactError` where the library lacks what its metadata promises."""
        self.path: Path = artifact.path
        self.metadata = artifact.metadata
        self._native = Native(library, str(self.path))
        self.auto_stage = False
        why = functools.partial(_for_c_alone, self.path, self.metadata, library)
        functions = _Functions(_called(self.path), why)
        for signature in self.metadata.functions:
            try:
                pointer = library[signature.symbol]
            except AttributeError:
                raise ArtifactError(
                    f"{self.path}: it does not export {signature.symbol}, which its metadata names as "
                    f"the function {signature.name}; build it again"
                ) from None
            functions[signature.name] = Function(signature, pointer, self._native)
        self._loaded = library
        self.functions: Mapping[str, Function] = MappingProxyType(functions)
        self.signatures: Mapping[str, Signature] = MappingProxyType({s.name: s for s in self.metadata.functions})
        carried = [(image.module, kernel) for image in self.metadata.images for kernel in image.kernels]
        self.kernels = Kernels(_called(self.path), self._load_kernels(library), carried, self.metadata)
        self.device = Device(self._native)
        with choosing():
            # A file that is loaded again has the runtime that it had, in which something may have been chosen since.
            again = any(native.table == self._native.table for native in _runtimes)
            _runtimes.add(self._native)
            if _chosen is not None and not again:
                self.use(_chosen)
        for name, function in functions.items():
            if name not in self.__dict__ and not hasattr(Library, name):
                self.__dict__[name] = function

    def _load_kernels(self, library: ctypes.CDLL) -> dict[tuple[str, str], Kernel]:
        kernels: dict[tuple[str, str], Kernel] = {}
        slots = _module_slots(library) if self.metadata.kernels else {}
        for kernel in self.metadata.kernels:
            if kernel.module not in slots:
                raise ArtifactError(
                    f"{self.path}: its metadata names the kernel {kernel.name} of the module "
                    f"{kernel.module}, its module table has {', '.join(slots) or 'none'}; "
                    "build it again"
                )
            kernels[kernel.module, kernel.name] = self._kernel(kernel, slots[kernel.module])
        return kernels

    def _kernel(self, signature: KernelSignature, slot: Any) -> Kernel:
        return Kernel(signature, slot, self._native)

    @property
    def backend(self) -> str:
        """The backend in use: "cuda", "hip" or "host"; chosen now if none was. Raises `DeviceError`."""
        return self._native.backend()

    @property
    def auto_stage(self) -> bool:
        """Whether calls copy host arrays to the device and back wherever a kernel uses them, as `offload.stage` does
        for one array. False at first: then such arrays are refused."""
        return self._native.auto_stage

    @auto_stage.setter
    def auto_stage(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"auto_stage is True or False, not {value!r}")
        self._native.auto_stage = value
        self.__dict__["auto_stage"] = value  # where unittest.mock looks for what it has to put back

    if not TYPE_CHECKING:  # type checkers would let any attribute be set

        def __setattr__(self, name: str, value: Any) -> None:
            """Of what a library has, auto_stage can be set, and what stands for a function or the kernels. Raises
            AttributeError."""
            if type(self) is Library and "device" in self.__dict__:  # the last that is made
                check_set(self, _called(self.path), name, value)
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self._native.file,)

    def use(self, backend: str | None) -> None:
        """Fixes the backend, by a name that `offload.use` takes; None chooses again at the next use. Raises
        `DeviceError` where the backend is unknown or has no device here."""
        self._native.use(backend)

    def devices(self) -> list[DeviceInfo]:
        """The devices of all backends that are here, in the order in which backends are tried."""
        return all_devices(self._native)

    def stream(self, foreign: Any = None) -> Stream:
        """A new stream on the device in use, or a wrapper of another package's stream or of a driver's
        handle. Raises `DeviceError` where the driver refuses, TypeError for what is no stream."""
        return Stream(self._native, foreign)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "functions" not in self.__dict__:
            raise AttributeError(name)
        if reason := for_c_alone(self, name):
            raise AttributeError(reason)
        raise unknown(_called(self.path), "function", name, self.functions)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.functions})

    def __repr__(self) -> str:
        calls = "fast calls" if FAST else "calls through ctypes"
        return f"<offload library {str(self.path)!r} ({calls}): {', '.join(self.functions) or 'no functions'}>"


def _module_slots(library: ctypes.CDLL) -> dict[str, Any]:
    """The table offload_modules by module name; it ends with an all-zero slot. Empty where there is no
    table."""
    try:
        first = abi.ModuleSlot.in_dll(library, "offload_modules")
    except ValueError:
        return {}
    slots: dict[str, Any] = {}
    address = ctypes.addressof(first)
    while (slot := abi.ModuleSlot.from_address(address)).name is not None:
        slots[slot.name.decode()] = slot
        address += ctypes.sizeof(abi.ModuleSlot)
    return slots
