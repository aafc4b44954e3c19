"""The CPU as a device: kernels become native functions that run blocks, in a small shared object per module."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from offload.targets.base import STRUCTURE_PIPELINE, Device, Image, Target, Work, numeric_pipeline
from offload.targets.options import option

from offload.errors import OffloadError, TargetError
from offload.paths import package_file

if TYPE_CHECKING:
    from offload.targets.native import LLVMModule, MachineOptions, Native

_LEVELS = {
    "x86_64": ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"),
    "aarch64": ("generic",),
}


_DEFINED_LATER = "offload.far."
"""Functions that the optimizer defines: see ``far_math.cpp``."""


@dataclass(frozen=True)
class HostTarget(Target):
    """The CPU: ``host``, ``host:x86-64-v3``, ``host:native`` (this machine's) or any processor name of LLVM."""

    lld: str = option("", "options of lld, separated by spaces")
    coroutines: bool = option(
        False, "threads that wait for others are always coroutines, never loops over a block between its barriers"
    )
    warp: int = option(32, "threads of a warp", choices=(32, 64))
    libm: bool = option(
        False, "functions of mathematics are those of this system's libm, instead of our own, which vectorize"
    )

    name: ClassVar[str] = "host"
    backend: ClassVar[str] = "host"
    suffixes: ClassVar[Mapping[str, str]] = {"bin": "o", "isa": "s", "offload": "bc", "fatbin": "o"}

    @classmethod
    def default_chip(cls) -> str:
        return cls.chips()[0]

    @classmethod
    def chips(cls) -> Sequence[str]:
        try:
            return _LEVELS[platform.machine()]
        except KeyError:
            raise TargetError(f"target host does not know this machine's architecture: {platform.machine()}") from None

    def check_chip(self) -> None:
        # Other names are LLVM's to judge, which is not loaded here: see machine().
        if self.format == "fatbin":
            raise TargetError("target host has no fatbin format: one image holds one processor's code; use bin")

    @classmethod
    def devices(cls) -> list[Device]:
        return [Device("host", "native", platform.processor() or platform.machine())]

    def triple(self) -> str:
        return f"{platform.machine()}-unknown-linux-gnu"

    def pipeline(self) -> str:
        return (
            f"offload-check-device{{target=host}},gpu.module({numeric_pipeline('libm')}),"
            "offload-repair-math,convert-math-to-llvm,convert-math-to-libm,"
            f"gpu.module(offload-prepare-device{{target=host subgroup-size={self.warp}}},"
            f"{STRUCTURE_PIPELINE},"
            f"offload-gpu-to-host{{{self.conversion_options()} subgroup-size={self.warp}}},"
            "offload-plain-declarations,offload-repair-lowered,canonicalize,cse,reconcile-unrealized-casts),"
            "offload-check-lowered{target=host}"
        )

    def image_chip(self, native: Native) -> str:
        return native.host_processor() if self.chip == "native" else self.chip

    def machine(self, native: Native) -> MachineOptions:
        chip = self.image_chip(native)
        if not native.is_known_processor(self.triple(), chip):
            known = ", ".join(self.chips())
            raise TargetError(f"unknown chip {chip!r} for target host; there are: {known}, native, LLVM's processors")
        return native.MachineOptions(self.triple(), chip, self.features, self.O, self.fast)

    def prepare(self, work: Work, code: LLVMModule) -> None:
        if not self.libm:
            code.use_vector_math()
        code.lower_kernels_for_host(list(work.kernels), dict(work.limits), self.coroutines, self.warp)

    def provided_functions(self, code: LLVMModule) -> list[str]:
        """Those of the libraries that images are linked with: an archive holds its symbols between zero bytes."""
        builtins = package_file("lib/liboffload_builtins.a").read_bytes()
        libraries = [ctypes.CDLL(path) for path in system_libraries()]
        return [
            name
            for name in code.undefined_functions()
            if name.startswith(_DEFINED_LATER)
            or f"\0{name}\0".encode() in builtins
            or any(hasattr(library, name) for library in libraries)
        ]

    def assemble(self, work: Work) -> Image:
        code: LLVMModule = work.stage("llvm")
        source, result = work.folder / "kernels.o", work.folder / "kernels.so"
        source.write_bytes(code.emit(assembly=False))
        work.native.link_elf(
            [
                *("-shared", "-z", "now", "-z", "noexecstack", "--no-undefined", "--build-id=none"),
                *("--hash-style=gnu", "--gc-sections", "-soname", f"{work.module_name}.host", str(source)),
                *(str(package_file("lib/liboffload_builtins.a")), "--as-needed", *system_libraries()),
                *(*self.lld.split(), "-o", str(result)),
            ]
        )
        resources = {kernel: dict(values) for kernel, values in code.host_resources()}
        return Image(result.read_bytes(), resources)


def system_libraries() -> list[str]:
    """The C library and libm of this process, as files: linking against them needs no development packages."""
    ctypes.CDLL("libm.so.6")  # not every Python has it loaded
    found: dict[str, str] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        name = Path(path).name
        if name.startswith(("libc.so.", "libm.so.", "libc.musl-")):
            found[name] = path
    if not any(name.startswith("libc.") for name in found):
        raise OffloadError("this process has no C library mapped: static Python is not supported")
    return sorted(found.values())
