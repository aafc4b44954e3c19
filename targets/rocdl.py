"""AMD GPUs: gpu dialect to ROCDL to machine code by LLVM, linked with AMD's device libraries and lld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from offload.targets import rocdl_images
from offload.targets.base import STRUCTURE_PIPELINE, Target, Work, numeric_pipeline
from offload.targets.images import Image, ReadyImage, chip_in_attribute
from offload.targets.options import option
from offload.targets.tools import Found, SearchStep, from_environment, from_folder, from_site_packages, search

from offload.errors import CompileError, TargetError

if TYPE_CHECKING:
    from offload.targets.devices import Device, Discovery
    from offload.targets.native import LLVMModule, MachineOptions, Native

# What LLVM 22 generates code for (a test compares), without processors that HIP does not run on.
CHIPS = (
    *(f"gfx{number}" for number in (900, 902, 904, 906, 908, 909, "90a", "90c", 942, 950)),
    *(f"gfx{number}" for number in (1010, 1011, 1012, 1013, 1030, 1031, 1032, 1033, 1034, 1035, 1036)),
    *(f"gfx{number}" for number in (1100, 1101, 1102, 1103, 1150, 1151, 1152, 1153)),
    *(f"gfx{number}" for number in (1200, 1201, 1250, 1251)),
    *(f"gfx{family}-generic" for family in ("9", "9-4", "10-1", "10-3", "11", "12")),
)

_BITCODE: tuple[SearchStep, ...] = (
    from_environment("ROCM_PATH"),
    from_folder("/opt/rocm"),
    from_folder("/usr/lib/x86_64-linux-gnu"),
    from_folder("/usr/lib/aarch64-linux-gnu"),
    *(from_folder(f"/usr/lib/llvm-{version}/lib/clang/{version}") for version in range(22, 16, -1)),
    from_site_packages("offload_llvm"),
)
# LLVM's default; generic chips exist since the next one only, and LLVM aborts without it.
_CODE_OBJECT_VERSION, _CODE_OBJECT_VERSION_OF_GENERIC = 500, 600
_CONSTANT_SPACE = 4
# The chips whose drivers may run with a setting on or off, which code can be made for (LLVM's AMDGPUUsage).
_WITH_SETTING = {
    "sramecc": ("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx9-4-generic"),
    "xnack": (
        *(f"gfx{number}" for number in (900, 902, 904, 906, 908, 909, "90a", "90c", 942, 950)),
        *(f"gfx{number}" for number in (1010, 1011, 1012, 1013)),
        *("gfx9-generic", "gfx9-4-generic", "gfx10-1-generic"),
    ),
}
_WITH_UNIFIED_REGISTERS = ("gfx90a", "gfx942", "gfx950", "gfx9-4-generic")


@dataclass(frozen=True)
class RocdlTarget(Target):
    """AMD: ``rocdl:gfx942``."""

    wave64: bool = option(False, "waves of 64 threads, where the chip has both sizes (gfx10 and later)")
    wave32: bool = option(False, "waves of 32 threads, the default of these chips")
    daz: bool = option(False, "lets instructions take denormal numbers of 32 bits for zero")
    own_memory: bool = option(
        False,
        "atomic operations only find the GPU's own memory, none that the CPU shares (`host_shared`, managed, pinned)",
    )
    waves_per_eu: int = option(0, "waves that should fit an execution unit at once", least=1, most=16)
    code_object: int = option(0, "version of the code object (not set: 5, generic chips 6)", choices=(4, 5, 6))
    lld: str = option("", "options of lld, separated by spaces")

    name: ClassVar[str] = "rocdl"
    backend: ClassVar[str] = "hip"
    blocks: ClassVar[tuple[str, ...]] = (*Target.blocks, "rocdl.reqd_work_group_size")
    threads_mark: ClassVar[str] = "rocdl.flat_work_group_size"
    kernel_mark: ClassVar[str] = "rocdl.kernel"
    instead: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rocdl.max_flat_work_group_size": (
            "known_block_size", "rocdl.flat_work_group_size", "amdgpu-flat-work-group-size",
        ),
        # Of a gpu.func with a known_block_size the lowering says it.
        "rocdl.flat_work_group_size": (
            "known_block_size", "amdgpu-flat-work-group-size", "rocdl.max_flat_work_group_size",
        ),
        "rocdl.waves_per_eu": ("amdgpu-waves-per-eu",),
    }  # fmt: skip
    suffixes: ClassVar[Mapping[str, str]] = {"bin": "hsaco", "isa": "s", "offload": "bc", "fatbin": "fatbin"}
    annotations: ClassVar[tuple[str, ...]] = ("rocdl.hsaco",)
    library: ClassVar[tuple[str, ...]] = ("__ocml_", "__ockl_")
    packages: ClassVar[tuple[str, ...]] = ("hip-python", "rocm-bootstrap")

    @classmethod
    def default_chip(cls) -> str:
        return "gfx90a"

    @classmethod
    def chips(cls) -> Sequence[str]:
        return CHIPS

    def check_chip(self) -> None:
        chip, _, features = self.chip.partition(":")
        if features and chip in CHIPS:  # as AMD's tools and images spell it
            given = filter(None, features.split(":"))
            words = ",".join(("-" if "-" in (word[0], word[-1]) else "+") + word.strip("+-") for word in given)
            raise TargetError(f"{self.name}:{self.chip}: features are an option: {self.name}:{chip},features={words}")
        if self.chip not in CHIPS:
            raise self.unknown_chip(self.chip)
        if self.wave32 and (self.wave64 or self.chip.startswith("gfx9")):
            why = "with wave64" if self.wave64 else f"on {self.chip}, whose waves have 64 threads"
            raise TargetError(f"{self.name}:{self.chip}: wave32 is not possible {why}")
        if self.wave64 and self.chip in ("gfx1250", "gfx1251"):
            why = f"on {self.chip}, whose waves have 32 threads"
            raise TargetError(f"{self.name}:{self.chip}: wave64 is not possible {why}")
        if "wavefrontsize" in self.features:
            raise TargetError(f"{self}: the size of waves is an option of its own: write wave64 or wave32")
        most = 16 if not self.chip.startswith("gfx9") else 8 if self.chip in _WITH_UNIFIED_REGISTERS else 10
        if self.waves_per_eu > most:  # LLVM would leave it out
            raise TargetError(f"{self}: an execution unit of {self.chip} has room for {most} waves")
        for setting in self._settings():
            if self.chip not in _WITH_SETTING[setting[:-1]]:
                raise TargetError(f"{self}: {self.chip} has no setting {setting[:-1]}")
        if self.chip.endswith("-generic") and self.code_object not in (0, 6):
            raise TargetError(f"{self}: generic chips exist since code object version 6")

    @classmethod
    def toolkit(cls) -> list[Found]:
        return [cls._library("ocml"), cls._library("ockl")]

    @classmethod
    def _library(cls, name: str) -> Found:
        return search(
            f"{name}.bc (AMD device libraries)",
            [f"amdgcn/bitcode/{name}.bc", f"lib/llvm/lib/clang/22/lib/amdgcn/bitcode/{name}.bc"],
            _BITCODE,
            "apt-get install rocm-device-libs (on newer systems rocm-device-libs-17 or -21), "
            "pip install 'offload[compiler]', or set ROCM_PATH to that of ROCm",
        )

    @classmethod
    def devices(cls) -> list[Device]:
        return list(cls.discover().devices)

    @classmethod
    def discover(cls) -> Discovery:
        from offload.targets import rocdl_devices  # which no build needs

        return rocdl_devices.discover()

    @classmethod
    def chip_of(cls, attribute: str) -> str | None:
        return chip_in_attribute(attribute, "rocdl", "gfx900")

    @classmethod
    def machine_code(cls, form: str, data: bytes) -> Sequence[bytes]:
        return [code for _, code in rocdl_images.entries(data)] if form == "fatbin" else (data,)

    @classmethod
    def ready_image(cls, native: Native, data: bytes) -> ReadyImage | None:
        return rocdl_images.read(native, data)

    def triple(self) -> str:
        return "amdgcn-amd-amdhsa"

    def attribute(self) -> str:
        flags = [word for word in ("fast", "daz") if getattr(self, word)]
        words = [f"O = {self.O}", f'chip = "{self.chip}"', f'abi = "{self._code_object_version()}"']
        features = self._features()
        if features:
            words.append(f'features = "{features}"')
        if flags:
            words.append("flags = {" + ", ".join(f'"{flag}"' for flag in flags) + "}")
        return f"#rocdl.target<{', '.join(words)}>"

    def _code_object_version(self) -> int:
        if self.code_object:
            return 100 * self.code_object
        return _CODE_OBJECT_VERSION_OF_GENERIC if self.chip.endswith("-generic") else _CODE_OBJECT_VERSION

    def _settings(self) -> list[str]:
        """What the features say of settings that drivers tell apart, as in target ids: ``sramecc+``, ``xnack-``."""
        said = {word[1:]: word[0] for word in self.features.split(",") if word[1:] in _WITH_SETTING}
        return [name + said[name] for name in sorted(said)]

    def settled_chip(self) -> str:
        return ":".join([self.chip, *self._settings()])

    def _wave64(self) -> bool:
        return self.wave64 or self.chip.startswith("gfx9")

    def _features(self) -> str:
        words = [self.features] if self.features else []
        if not self.chip.startswith("gfx9"):
            words.append("+wavefrontsize64,-wavefrontsize32" if self.wave64 else "+wavefrontsize32,-wavefrontsize64")
        return ",".join(words)

    def kernel_attributes(self) -> Mapping[str, str]:
        # Without it the translation writes 256, and HIP refuses larger blocks.
        return {"rocdl.max_flat_work_group_size": f"{self.max_threads or 1024} : i32"}

    def limit_attributes(self) -> Mapping[str, str]:
        return {"rocdl.waves_per_eu": f"{self.waves_per_eu} : i32"} if self.waves_per_eu else {}

    def provided_functions(self, code: LLVMModule) -> list[str]:
        return []

    def check_pipeline(self) -> str:
        model = self._model()
        said = f" said={self.chip}" if model != self.chip else ""
        # What asks for the alignment of addresses does not go with narrow indices: the code for all does.
        narrow, size = " narrow-index=true" if self.index == 32 else "", 64 if self._wave64() else 32
        choice = f"offload-choose-products{{target=rocdl chip={model} subgroup-size={size}{narrow}}}"
        return f"gpu.module({choice}),offload-check-device{{target=rocdl chip={model}{said}}}"

    def _model(self) -> str:
        return _MODEL_OF_GENERIC.get(self.chip, self.chip)

    def pipeline(self) -> str:
        chip, size = self._model(), 64 if self._wave64() else 32
        return (
            f"gpu.module(offload-spread-fragments{{target=rocdl chip={chip} subgroup-size={size}}},"
            f"offload-join-steps,{numeric_pipeline('rocdl')},"
            f"offload-prepare-device{{target=rocdl chip={chip} subgroup-size={size}}},"
            f"offload-number-spaces{{global=1 workgroup=3 private=5}},{STRUCTURE_PIPELINE},"
            f"convert-amdgpu-to-rocdl{{chipset={chip}}},"
            f"convert-gpu-to-rocdl{{chipset={chip} {self.conversion_options()} runtime=HIP}},"
            f"offload-plain-declarations,{self._repair()},canonicalize,cse,reconcile-unrealized-casts),"
            "offload-check-lowered{target=rocdl}"
        )

    def _repair(self) -> str:
        """Some instructions are lost on the way to the CPU's memory: LLVM makes loops of them unless it is told that
        none is meant."""
        told = ["no_fine_grained_memory", "no_remote_memory"] if self.own_memory else []
        if told and (self.daz or self.fast):
            told.append("ignore_denormal_mode")
        atomics = " atomics=" + ",".join(f"{self.name}.{word}" for word in told) if told else ""
        return f"offload-repair-lowered{{device-scope=agent block-scope=workgroup{atomics}}}"

    def machine(self, native: Native) -> MachineOptions:
        return native.MachineOptions(self.triple(), self.chip, self._features(), self.O, self.fast)

    def prepare(self, work: Work, code: LLVMModule) -> None:
        wanted = code.undefined_functions()
        if any(name.startswith("__ocml_") for name in wanted):
            code.link_needed(str(self._library("ocml").need()))
            wanted = code.undefined_functions()
        if any(name.startswith(("__ockl_", "__ocml_")) for name in wanted):
            code.link_needed(str(self._library("ockl").need()))
        # The device libraries read these; AMD ships them as one bitcode file per value.
        for name, value in (
            ("__oclc_wavefrontsize64", self._wave64()),
            ("__oclc_finite_only_opt", False),  # `fast` leaves infinity and NaN their meaning
            ("__oclc_unsafe_math_opt", self.fast),
            ("__oclc_daz_opt", self.daz),
            ("__oclc_correctly_rounded_sqrt32", not self.fast),
        ):
            code.define_constant(name, 8, int(value), _CONSTANT_SPACE)
        code.define_constant("__oclc_ISA_version", 32, _isa_version(self.chip), _CONSTANT_SPACE)
        code.define_constant("__oclc_ABI_version", 32, self._code_object_version(), _CONSTANT_SPACE)
        code.add_module_flag("amdhsa_code_object_version", self._code_object_version())
        if self.daz:
            code.add_function_attribute("denormal-fp-math-f32", "preserve-sign")
        code.internalize(list(work.kernels))

    def assemble(self, work: Work) -> Image:
        code: LLVMModule = work.stage("llvm")
        source, result = work.folder / "kernels.o", work.folder / "kernels.hsaco"
        source.write_bytes(code.emit(assembly=False))
        work.native.link_elf(["-shared", "--no-undefined", *self.lld.split(), str(source), "-o", str(result)])
        data = result.read_bytes()
        resources = {kernel: dict(values) for kernel, values in work.native.amdgpu_resources(data)}
        if set(resources) != set(work.kernels):
            raise CompileError(f"the code object of {work.module_name} for {self.chip} describes {sorted(resources)}")
        return Image(data, resources)

    def bundle(self, work: Work) -> Image:
        """The code object in clang's offload bundle, which hipModuleLoadData takes too."""
        image: Image = work.stage("object")
        entries = [
            ("host-x86_64-unknown-linux-gnu-", b""),
            (f"hipv4-{self.triple()}--{self.settled_chip()}", image.data),
        ]
        return image._replace(data=_bundle(entries))


# MLIR's lowerings know single chips only: the oldest of a family stands for it.
_MODEL_OF_GENERIC = {
    "gfx9-generic": "gfx900",
    "gfx9-4-generic": "gfx942",
    "gfx10-1-generic": "gfx1010",
    "gfx10-3-generic": "gfx1030",
    "gfx11-generic": "gfx1100",
    "gfx12-generic": "gfx1200",
}


def _isa_version(chip: str) -> int:
    """The number that the device libraries compare: gfx90a is 9010, gfx942 is 9402, gfx1100 is 11000."""
    digits = _MODEL_OF_GENERIC.get(chip, chip).removeprefix("gfx")
    major, minor, stepping = int(digits[:-2]), int(digits[-2], 16), int(digits[-1], 16)
    return major * 1000 + minor * 100 + stepping


def _bundle(entries: list[tuple[str, bytes]], alignment: int = 4096) -> bytes:
    """clang's uncompressed offload bundle: magic, count, (offset, size, id size, id) each, then the aligned images."""
    magic = b"__CLANG_OFFLOAD_BUNDLE__"
    header = len(magic) + 8 + sum(24 + len(name) for name, _ in entries)
    table, body, position = bytearray(), bytearray(), header
    for name, data in entries:
        start = -(-position // alignment) * alignment
        body += bytes(start - position) + data
        position = start + len(data)
        for number in (start, len(data), len(name)):
            table += number.to_bytes(8, "little")
        table += name.encode()
    return bytes(magic + len(entries).to_bytes(8, "little") + table + body)
