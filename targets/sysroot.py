"""What libraries for a CPU architecture are linked with: its C library, and the runtime that offload brings for it."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import NamedTuple

from offload.errors import OffloadError, TargetError, ToolkitError
from offload.paths import package_file

ARCHITECTURES = ("x86_64", "aarch64")
"""The architectures that code can be generated for."""

_CROSS_FOLDERS = ("/usr/{0}-linux-gnu/lib", "/lib/{0}-linux-gnu", "/usr/lib/{0}-linux-gnu", "/usr/{0}-linux-gnu/lib64")
_C_LIBRARIES = ("libc.so.6", "libm.so.6")


def here() -> str:
    """The architecture of this process. Raises TargetError where it is none of :data:`ARCHITECTURES`."""
    machine = os.uname().machine
    if machine not in ARCHITECTURES:
        raise TargetError(f"target host does not know this machine's architecture: {machine}")
    return machine


class Sysroot(NamedTuple):
    """The libraries for one architecture."""

    architecture: str

    def runtime(self, name: str) -> Path:
        """One of offload's own libraries, such as ``libmgpu.a``. Raises ToolkitError for an architecture without."""
        if self.architecture == here():
            return package_file(f"lib/{name}")
        try:
            return package_file(f"lib/{self.architecture}/{name}")
        except OffloadError as error:
            raise ToolkitError(
                f"this installation of offload has no runtime for {self.architecture} ({name}): it was built where "
                f"clang 22 or the C library's headers for {self.architecture} were missing\n"
                "  to get it: apt-get install clang-22 libc6-dev-arm64-cross, then "
                "pip install --force-reinstall offload (from source)"
            ) from error

    def system_libraries(self) -> list[Path]:
        """The C library and libm, as files: linking against them needs no development packages.

        Those of this process, or those of a cross toolchain. Raises ToolkitError where there is none.
        """
        return _of_this_process() if self.architecture == here() else _of_a_toolchain(self.architecture)

    def defines(self, name: str) -> bool:
        """Does the C library or libm have that function?"""
        if self.architecture == here():
            import ctypes

            return any(hasattr(ctypes.CDLL(str(path)), name) for path in self.system_libraries())
        # A table of strings may hold a name as the end of a longer one; the linker has the last word.
        return any(f"{name}\0".encode() in content for content in _contents(self.architecture))


@functools.cache
def _of_this_process() -> list[Path]:
    found = _mapped()
    if not any(name.startswith("libm.") for name in found):  # not every Python has it loaded
        import ctypes

        ctypes.CDLL("libm.so.6")
        found = _mapped()
    if not any(name.startswith("libc.") for name in found):
        raise OffloadError("this process has no C library mapped: static Python is not supported")
    return [Path(path) for path in sorted(found.values())]


def _mapped() -> dict[str, str]:
    found = {}
    maps = Path("/proc/self/maps")
    try:
        lines = maps.read_bytes().splitlines()
    except OSError as error:  # in a chroot without it, say
        raise OffloadError(
            f"cannot see which C library is in use: cannot read {maps}: {error.strerror}; mount /proc here"
        ) from error
    for line in lines:
        # Other files that are mapped may have any name. One that was replaced since, as upgrades do, is there anew.
        path = os.fsdecode(line.split(maxsplit=5)[-1]).removesuffix(" (deleted)")
        name = path.rpartition("/")[2]
        if name.startswith(("libc.so.", "libm.so.", "libc.musl-")):
            found[name] = path
    return found


def _of_a_toolchain(architecture: str) -> list[Path]:
    folders = [Path(pattern.format(architecture)) for pattern in _CROSS_FOLDERS]
    for folder in folders:
        libraries = [folder / name for name in _C_LIBRARIES]
        if all(library.exists() for library in libraries):
            return libraries
    looked = ", ".join(map(str, folders))
    raise ToolkitError(
        f"no C library for {architecture}: looked for {' and '.join(_C_LIBRARIES)} in {looked}\n"
        "  to get it: apt-get install libc6-arm64-cross"
    )


@functools.cache
def _contents(architecture: str) -> list[bytes]:
    return [library.read_bytes() for library in _of_a_toolchain(architecture)]
