"""NVIDIA GPUs: gpu dialect to NVVM to PTX by LLVM, PTX to machine code by ptxas or nvJitLink."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from offload.targets import nvjitlink, nvvm_images, ptxas_output
from offload.targets.base import STRUCTURE_PIPELINE, Target, Work, numeric_pipeline
from offload.targets.images import Image, ReadyImage, chip_in_attribute
from offload.targets.options import option
from offload.targets.tools import (
    Found,
    RunningTool,
    SearchStep,
    from_environment,
    from_folder,
    from_path,
    from_site_packages,
    run_tool,
    search,
)

from offload.errors import CompileError, TargetError, ToolkitError

if TYPE_CHECKING:
    from offload.targets.devices import Device, Discovery
    from offload.targets.native import LLVMModule, MachineOptions, Native

_UNKNOWN_CHIP = r"is not defined for option 'gpu-name'|NVJITLINK_ERROR_UNSUPPORTED_ARCH"

# What LLVM 22 generates code for (a test compares); ptxas 13 begins at sm_75.
CHIPS = (
    *(f"sm_{number}" for number in (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, "90a")),
    *(f"sm_{number}{variant}" for number in (100, 101, 103, 110, 120, 121) for variant in ("", "a", "f")),
)

_SM_8 = ("sm_80", "sm_86", "sm_87", "sm_89")
"""The chips that PTX has one instruction set for, but for operations on 8-bit floats; the oldest is the first."""

_PTX = {90: "+ptx83", 100: "+ptx87", 101: "+ptx87"}
"""Of newer chips those whose first PTX lacks some of their operations: conversions with random bits came with 8.7, and
the drivers of CUDA 12.8 take it, the first for sm_100. Code for families (sm_100f) begins later."""

_TOOLKIT: tuple[SearchStep, ...] = (
    from_environment("CUDA_HOME"),
    from_site_packages("nvidia/cu13"),
    from_site_packages("nvidia/cuda_nvcc"),
    from_folder("/usr/local/cuda"),
    from_path("ptxas"),
)
_CUBIN = "kernels.cubin"
_WHEELS = "pip install nvidia-cuda-nvcc nvidia-nvvm (or 'offload[cuda]'), or set CUDA_HOME to a CUDA toolkit"


@dataclass(frozen=True)
class NvvmTarget(Target):
    """NVIDIA: ``nvvm:sm_90``."""

    ftz: bool = option(False, "flushes denormal numbers of 32 and 16 bits to zero")
    ptxas: str = option("", "options of ptxas, separated by spaces")
    min_blocks: int = option(0, "blocks that should fit a multiprocessor at once; needs max_threads", least=1, most=32)
    maxregs: int = option(0, "most registers of a thread", least=16, most=255)

    name: ClassVar[str] = "nvvm"
    backend: ClassVar[str] = "cuda"
    blocks: ClassVar[tuple[str, ...]] = (*Target.blocks, "nvvm.reqntid")
    kernel_mark: ClassVar[str] = "nvvm.kernel"
    instead: ClassVar[Mapping[str, tuple[str, ...]]] = {"nvvm.maxntid": ("nvvm.reqntid",)}  # ptxas takes one of them
    debug_kind: ClassVar[str] = "DebugDirectivesOnly"  # ptxas refuses more in optimized code
    suffixes: ClassVar[Mapping[str, str]] = {
        "bin": "cubin",
        "isa": "ptx",
        "offload": "bc",
        "fatbin": "fatbin",
    }
    annotations: ClassVar[tuple[str, ...]] = ("nvvm.cubin",)
    library: ClassVar[tuple[str, ...]] = ("__nv_",)
    packages: ClassVar[tuple[str, ...]] = ("cuda-core", "cuda-bindings", "nvidia-nvjitlink")

    @classmethod
    def default_chip(cls) -> str:
        return "sm_75"

    @classmethod
    def chips(cls) -> Sequence[str]:
        return CHIPS

    def check_chip(self) -> None:
        if self.chip not in CHIPS:
            raise self.unknown_chip(self.chip)
        if self.min_blocks and not self.max_threads:
            raise TargetError(f"{self}: min_blocks says how many blocks of max_threads fit: give max_threads too")

    @classmethod
    def toolkit(cls) -> list[Found]:
        return [cls._assembler(), cls._libdevice()]

    def inputs(self) -> list[Found]:
        return [*self.toolkit(), *([self._fatbinary()] if self.format == "fatbin" else [])]

    @classmethod
    def _fatbinary(cls) -> Found:
        return search("fatbinary (CUDA)", ["bin/fatbinary"], _TOOLKIT, _WHEELS)

    @classmethod
    def _ptxas(cls) -> Found:
        return search("ptxas (CUDA)", ["bin/ptxas"], _TOOLKIT, _WHEELS)

    @classmethod
    def _assembler(cls) -> Found:
        """ptxas, or the library that does the same where there is only that."""
        ptxas = cls._ptxas()
        library = nvjitlink.find(_TOOLKIT, _WHEELS) if ptxas.path is None else ptxas
        return ptxas if library.path is None else library

    @classmethod
    def _libdevice(cls) -> Found:
        return search("libdevice (CUDA)", ["nvvm/libdevice/libdevice.10.bc"], _TOOLKIT, _WHEELS)

    @classmethod
    def disassembler(cls, form: str) -> tuple[Found, Sequence[str]]:
        places = [*_TOOLKIT, from_site_packages("nvidia/cuda_cuobjdump"), from_path("cuobjdump")]
        remedy = "pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm, or set CUDA_HOME to a CUDA toolkit"
        found = search("cuobjdump (CUDA)", ["bin/cuobjdump"], places, remedy)
        if found.path is None and form == "bin":
            # What cuobjdump runs itself; a wheel of its own, which reads no fat binaries.
            inner = [*_TOOLKIT, from_site_packages("nvidia/cuda_nvdisasm"), from_path("nvdisasm")]
            alone = search("nvdisasm (CUDA)", ["bin/nvdisasm"], inner, remedy)
            if alone.path is not None:
                return alone, ["--print-code"]
        return found, ["-sass"]

    @classmethod
    def devices(cls) -> list[Device]:
        return list(cls.discover().devices)

    @classmethod
    def discover(cls) -> Discovery:
        from offload.targets import nvvm_devices  # with ctypes, which no build needs

        return nvvm_devices.discover()

    @classmethod
    def chip_of(cls, attribute: str) -> str | None:
        return chip_in_attribute(attribute, "nvvm", "sm_50")

    @classmethod
    def ready_image(cls, native: Native, data: bytes) -> ReadyImage | None:
        return nvvm_images.read(native, data)

    def triple(self) -> str:
        return "nvptx64-nvidia-cuda"

    def attribute(self) -> str:
        flags = [flag for flag in ("fast", "ftz") if getattr(self, flag)]
        words = [f"O = {self.O}", f'chip = "{self.chip}"']
        if self.features:
            words.append(f'features = "{self.features}"')
        if flags:
            words.append("flags = {" + ", ".join(f'"{flag}"' for flag in flags) + "}")
        return f"#nvvm.target<{', '.join(words)}>"

    def limit_attributes(self) -> Mapping[str, str]:
        limits = {"nvvm.maxntid": f"array<i32: {self.max_threads}>"} if self.max_threads else {}
        if self.min_blocks:
            limits["nvvm.minctasm"] = f"{self.min_blocks} : i32"
        if self.maxregs:
            limits["nvvm.maxnreg"] = f"{self.maxregs} : i32"
        return limits

    def provided_functions(self, code: LLVMModule) -> list[str]:
        return ["vprintf", "malloc", "free", "__assertfail", "__nvvm_reflect"]  # by the driver; by LLVM

    def check_pipeline(self) -> str:
        # What asks for the alignment of addresses does not go with narrow indices: the code for all does.
        narrow = " narrow-index=true" if self.index == 32 else ""
        choice = f"offload-choose-products{{target=nvvm chip={self.chip}{narrow}}}"
        return f"gpu.module({choice}),offload-check-device{{target=nvvm chip={self.chip}}}"

    def lowers_like(self, other: Target) -> bool:
        return self.same_lowering(other)

    def as_lowered(self, text: str) -> Target:
        # What sm_90 brought to the passes below are conversions to bf16, and clusters.
        if self._number() < 90 or "bf16" in text or "cluster" in text:
            return self
        return dataclasses.replace(self, chip=_SM_8[0])

    def assembly_like(self, other: Target) -> bool:
        # LLVM tells these chips apart by intrinsics alone, which lowering would have to choose.
        if not isinstance(other, NvvmTarget) or not {self.chip, other.chip} <= {*_SM_8}:
            return False
        return dataclasses.replace(self, chip=other.chip, ptxas=other.ptxas) == other

    def with_head(self, assembly: bytes) -> bytes:
        assembly = re.sub(rb"(?m)^\.target sm_\d+", f".target {self.chip}".encode(), assembly, count=1)
        if version := self._ptx().removeprefix("+ptx"):
            assembly = re.sub(rb"(?m)^\.version .*", f".version {version[0]}.{version[1:]}".encode(), assembly, count=1)
        return assembly

    def pipeline(self) -> str:
        # The oldest chip that is lowered like this one.
        number = max(known for known in (0, 70, 75, 80, 90) if known <= self._number())
        redux = "true" if number >= 80 else "false"
        numbers = numeric_pipeline("nvvm", bf16_fma=number >= 80, bf16_casts=number >= 90)
        return (
            "gpu.module(offload-join-steps{leave-numbers=true}),"
            "offload-prepare-products,gpu.module(offload-align-tiles),offload-nvgpu-to-nvvm,"
            f"gpu.module({numbers},"
            f"offload-prepare-device{{target=nvvm chip=sm_{number} subgroup-size=32}},"
            f"offload-number-spaces{{global=1 workgroup=3}},{STRUCTURE_PIPELINE},"
            f"convert-gpu-to-nvvm{{{self.conversion_options()} has-redux={redux}}},"
            "offload-inline-constants,convert-nvvm-to-llvm,"
            "offload-plain-declarations,offload-repair-lowered{device-scope=device block-scope=block fences},"
            "canonicalize,cse,reconcile-unrealized-casts),"
            "offload-check-lowered{target=nvvm}"
        )

    def machine(self, native: Native) -> MachineOptions:
        features = self.features
        # By default LLVM writes the first PTX that knows the chip; shuffles, sparse products, memory whose size the
        # run tells and TMA came later.
        if wanted := self._ptx():
            features = ",".join(word for word in (features, wanted) if word)
        return native.MachineOptions(self.triple(), self.chip, features, self.O, self.fast)

    def _ptx(self) -> str:
        """The feature for the version of PTX, where it is neither LLVM's choice nor the user's."""
        if "+ptx" in self.features:
            return ""
        if self.chip in _SM_8:  # PTX 7.8 is the first that knows them all, 8.4 that has all of sm_89's operations
            return "+ptx84" if self.chip == "sm_89" else "+ptx78"
        number = self._number()
        if number < 80:
            return "+ptx62" if number < 75 else "+ptx73"
        return "" if self.chip.endswith("f") else _PTX.get(number, "")

    def _number(self) -> int:
        return int(re.sub(r"\D", "", self.chip))

    def prepare(self, work: Work, code: LLVMModule) -> None:
        if any(name.startswith("__nv_") for name in code.undefined_functions()):
            code.link_needed(str(self._libdevice().need()))
        code.add_module_flag("nvvm-reflect-ftz", int(self.ftz))
        # LLVM answers 0 to what it does not know: an approximate square root, which only `fast` asks for.
        code.answer_reflection("__CUDA_PREC_SQRT", int(not self.fast))
        code.answer_reflection("__CUDA_PREC_DIV", int(not self.fast))
        if self.ftz:
            code.add_function_attribute("denormal-fp-math-f32", "preserve-sign")
        # Nothing else is called from outside: a function whose calls are all expanded is not compiled on its own.
        # Variables stay what they are: assembly may change them. Without kernels, the functions are what is asked for.
        if work.kernels:
            code.internalize_functions(list(work.kernels))

    def ahead(self, folder: Path) -> RunningTool | None:
        tool = self._assembler().path
        if tool is None or nvjitlink.is_library(tool):
            return None
        return RunningTool(self._assembling(tool, "-", folder / _CUBIN), f"assemble for {self.chip}")

    def _assembling(self, tool: Path, source: Path | str, result: Path) -> list[str | Path]:
        """The command that makes ``result`` of PTX."""
        if nvjitlink.is_library(tool):
            words = [f"-arch={self.chip}", "-verbose", *(["-lineinfo"] if self.debug else [])]
            words += [f"-Xptxas={word}" for word in (f"-O{self.O}", *self.ptxas.split())]
            return nvjitlink.command(tool, source, result, words)
        options = [f"-O{self.O}", *(["-lineinfo"] if self.debug else []), *self.ptxas.split()]
        return [tool, "-v", f"-arch={self.chip}", *options, source, "-o", result]

    def assemble(self, work: Work) -> Image:
        source, result = work.folder / "kernels.ptx", work.folder / _CUBIN
        text: bytes = work.stage("isa")
        if work.ahead is not None:
            with contextlib.suppress(CompileError):  # below it is said with the place in the program
                report = work.ahead.finish(text, result)
                return self._image(work, result, report)
        source.write_bytes(text)
        command = self._assembling(self._assembler().need(), source, result)
        purpose = f"assemble {work.module_name} for {self.chip}"

        try:
            report = run_tool(command, purpose, result)
        except CompileError as error:
            if re.search(_UNKNOWN_CHIP, str(error)):
                raise self._without_assembler() from error
            code: LLVMModule = work.stage("llvm")
            # Once more with line directives, which say where in the program the refused instructions come from.
            text = code.emit_with_lines()
            source.write_bytes(text)
            try:
                run_tool(command, purpose)
            except CompileError as again:
                if found := ptxas_output.errors(str(again), text.decode(errors="replace"), self.chip, code):
                    raise work.native.Failure(purpose, found) from error
            raise
        return self._image(work, result, report)

    def _image(self, work: Work, result: Path, report: str) -> Image:
        return ptxas_output.image_of(result.read_bytes(), report, self.chip, work)

    def _without_assembler(self) -> ToolkitError:
        """What to say where the assembler that is here is too old or too new for the chip."""
        found, instead = self._assembler(), dataclasses.replace(self, format="isa")
        return ToolkitError(
            f"{found.what} makes no machine code for {self.chip}: {found.need()} (via {found.via})\n"
            f"  to get it: set CUDA_HOME to a CUDA toolkit that has {self.chip} (CUDA 13 begins at sm_75, and calls "
            f"sm_110 what was sm_101), or build PTX, which the driver compiles: {instead}"
        )

    def bundle(self, work: Work) -> Image:
        """The machine code and its PTX in one: newer chips compile the PTX when it is loaded."""
        tool = self._fatbinary().need()
        image: Image = work.stage("object")
        cubin, ptx, result = (work.folder / f"bundle.{kind}" for kind in ("cubin", "ptx", "fatbin"))
        cubin.write_bytes(image.data)
        ptx.write_bytes(work.stage("isa"))
        number = self.chip.removeprefix("sm_")
        run_tool(
            [
                tool,
                "-64",
                f"--create={result}",
                f"--image3=kind=elf,sm={number},file={cubin}",
                f"--image3=kind=ptx,sm={number},file={ptx}",
            ],
            f"bundle {work.module_name} for {self.chip}",
            result,
        )
        return image._replace(data=result.read_bytes())
