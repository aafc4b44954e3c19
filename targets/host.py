"""The CPU as a device: kernels become native functions that run blocks, in a small shared object per module."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from offload.targets.base import STRUCTURE_PIPELINE, Target, Work, numeric_pipeline
from offload.targets.images import Image
from offload.targets.options import option
from offload.targets.sysroot import Sysroot, here

from offload.errors import TargetError
from offload.paths import for_system

if TYPE_CHECKING:
    from offload.targets.devices import Device
    from offload.targets.native import LLVMModule, MachineOptions, Native

_LEVELS = {
    "x86_64": ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"),
    "aarch64": ("aarch64", "armv8.1-a", "armv9-a"),
}

# LLVM has no processors of these names: they are levels of the architecture, which it spells as features.
_ARM_LEVELS = {"aarch64": "", "armv8.1-a": "+v8.1a", "armv9-a": "+v9a"}

# How LLVM's names of processors for AArch64 begin; gracemont is one of Intel's.
_ARM_PROCESSORS = (
    "a64fx", "ampere", "apple-", "c1-", "carmel", "cortex-", "exynos-", "falkor", "fujitsu-", "gb10", "kryo",
    "neoverse-", "olympus", "oryon-", "saphira", "thunderx", "tsv110",
)  # fmt: skip
_ARM_NAMES = (*_ARM_LEVELS, "grace")

_DEFINED_LATER = "offload.far."
"""Functions that the optimizer defines: see ``far_math.cpp``."""


@dataclass(frozen=True)
class HostTarget(Target):
    """The CPU: ``host``, ``host:x86-64-v3``, ``host:native`` (this machine's) or any processor name of LLVM.

    ``host:aarch64``, its levels and processors make a library for that architecture, on whatever machine."""

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
    def default_chip_on(cls, architecture: str) -> str:
        return _LEVELS[architecture][0] if architecture in _LEVELS else cls.default_chip()

    @classmethod
    def chips(cls) -> Sequence[str]:
        return [*_LEVELS[here()], *(chip for name, chips in _LEVELS.items() if name != here() for chip in chips)]

    def architecture(self) -> str:
        if self.chip in ("native", "generic"):
            return here()
        arm = self.chip in _ARM_NAMES or self.chip.startswith(_ARM_PROCESSORS)
        return "aarch64" if arm else "x86_64"

    def check_chip(self) -> None:
        # Other names are LLVM's to judge, which is not loaded here: see machine().
        if self.format == "fatbin":
            raise TargetError("target host has no fatbin format: one image holds one processor's code; use bin")

    @classmethod
    def devices(cls) -> list[Device]:
        import platform  # which no build needs

        from offload.targets.devices import Device

        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        threads = len(os.sched_getaffinity(0))  # of these the runtime makes its pool
        return [Device("host", "native", platform.processor() or platform.machine(), 0, memory, threads)]

    def triple(self) -> str:
        return f"{self.architecture()}-unknown-linux-gnu"

    def check_pipeline(self) -> str:
        return "gpu.module(offload-choose-products{target=host}),offload-check-device{target=host}"

    def lowers_like(self, other: Target) -> bool:
        return self.same_lowering(other)

    def pipeline(self) -> str:
        return (
            f"gpu.module(offload-spread-fragments{{target=host subgroup-size={self.warp}}},{numeric_pipeline('libm')}),"
            "offload-repair-math,convert-math-to-llvm,convert-math-to-libm,"
            f"gpu.module(offload-prepare-device{{target=host subgroup-size={self.warp}}},"
            f"offload-number-spaces,{STRUCTURE_PIPELINE},"
            f"offload-gpu-to-host{{{self.conversion_options()} subgroup-size={self.warp}}},"
            "offload-plain-declarations,offload-repair-lowered,canonicalize,cse,reconcile-unrealized-casts),"
            "offload-check-lowered{target=host}"
        )

    def settled_chip(self) -> str:
        """With the features that it asks for besides, as the runtime reads them: ``x86-64:+avx2``."""
        return ":".join([self.chip, *self._added()])

    def image_chip(self, native: Native) -> str:
        """The same, of this very processor for ``native``."""
        return ":".join([self._processor(native), *self._added()])

    def named(self, native: Native) -> HostTarget:
        return replace(self, chip=self._processor(native))

    def _added(self) -> list[str]:
        return [word for word in self.features.split(",") if word.startswith("+")]

    def _processor(self, native: Native) -> str:
        return native.host_processor() if self.chip == "native" else self.chip

    def check_machine(self, native: Native) -> None:
        super().check_machine(native)
        self.machine(native)

    def machine(self, native: Native) -> MachineOptions:
        chip = self._processor(native)
        if chip in _ARM_LEVELS:
            features = ",".join(filter(None, (_ARM_LEVELS[chip], self.features)))
            return native.MachineOptions(self.triple(), "generic", features, self.O, self.fast)
        if not chip.isascii() or not native.is_known_processor(self.triple(), chip):
            raise self.unknown_chip(
                chip, ("native", "LLVM's processors"), ["native", *native.known_processors(self.triple())]
            )
        if self.architecture() == "x86_64" and "64bit" not in native.features_of(self.triple(), chip, ""):
            raise TargetError(f"{self}: {chip} runs 32-bit code alone, and libraries are of 64-bit code")
        return native.MachineOptions(self.triple(), chip, self.features, self.O, self.fast)

    def prepare(self, work: Work, code: LLVMModule) -> None:
        if not self.libm:
            code.use_vector_math()
        code.lower_kernels_for_host(list(work.kernels), dict(work.limits), self.coroutines, self.warp)
        if self.fast:  # LLVM's 1 / sqrt(0) would be NaN: it makes estimates better by products with infinity
            code.add_function_attribute("reciprocal-estimates", "none")

    def provided_functions(self, code: LLVMModule) -> list[str]:
        """Those of the libraries that images are linked with: an archive holds its symbols between zero bytes."""
        sysroot = Sysroot(self.architecture())
        builtins = sysroot.runtime("liboffload_builtins.a").read_bytes()
        return [
            name
            for name in [*code.undefined_functions(), *code.undefined_variables()]
            if name.startswith(_DEFINED_LATER) or f"\0{name}\0".encode() in builtins or sysroot.defines(name)
        ]

    def assemble(self, work: Work) -> Image:
        code: LLVMModule = work.stage("llvm")
        sysroot = Sysroot(self.architecture())
        result = work.folder / "kernels.so"
        sources = []
        for number, code_of_some in enumerate(code.emit_objects()):
            sources.append(work.folder / f"kernels.{number}.o")
            sources[-1].write_bytes(code_of_some)
        work.native.link_elf(
            [
                *("-shared", "-z", "now", "-z", "noexecstack", "--no-undefined", "--build-id=none"),
                *("--hash-style=gnu", "--gc-sections", "-soname", for_system(f"{work.module_name}.host")),
                *map(str, sources),
                *(str(sysroot.runtime("liboffload_builtins.a")), "--as-needed"),
                *map(str, sysroot.system_libraries()),
                *(*self.lld.split(), "-o", str(result)),
            ]
        )
        resources = {kernel: dict(values) for kernel, values in code.host_resources()}
        return Image(result.read_bytes(), resources)
