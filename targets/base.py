"""The interface of a target: one frozen dataclass per vendor whose fields are its options."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from offload.targets.images import Image, ReadyImage
from offload.targets.left_over import loading_errors, undefined_errors
from offload.targets.options import check, option, plain_features, plain_format, spelled
from offload.targets.tools import Found, RunningTool

from offload.errors import TargetError, did_you_mean
from offload.paths import folder_of_build

if TYPE_CHECKING:
    from offload.targets.devices import Device, Discovery
    from offload.targets.native import LLVMModule, MachineOptions, Module, Native

FORMATS = ("bin", "isa", "fatbin", "offload")
"""What an image may be: machine code, assembly text, a bundle of both, LLVM bitcode (MLIR's names)."""

FINAL_STAGE = {"offload": "llvm", "isa": "isa", "bin": "object", "fatbin": "fat"}
"""The last stage that a format needs."""


def numeric_pipeline(library: str, *, bf16_fma: bool = False, bf16_casts: bool = False) -> str:
    """The passes that bring numbers to what every lowering takes; first of a pipeline for device or host code.

    ``library`` is the one that the target's lowering of math calls: nvvm, rocdl or libm. ``bf16_fma`` and
    ``bf16_casts``: the processor has that operation, and conversions of integers to that type.
    """
    bf16 = f"{' bf16-fma=true' if bf16_fma else ''}{' bf16-casts=true' if bf16_casts else ''}"
    # Not every processor has an instruction that rounds once.
    split = "{split-products=true}" if library == "libm" else ""
    return (
        f"offload-prepare-memory,offload-prepare-vectors{split},"
        "offload-prepare-complex,convert-complex-to-standard{complex-range=improved},"
        f"offload-prepare-math{{library={library}{bf16}}},offload-prepare-small-floats"
    )


STRUCTURE_PIPELINE = (
    "convert-vector-to-scf,expand-strided-metadata,lower-affine,"
    # MLIR's default compares the places of a partly filled vector in 32 bits: wrong in arrays of 2^31 elements.
    "convert-vector-to-llvm{force-32bit-vector-indices=false},offload-loop-memory,convert-scf-to-cf"
)
"""The passes that lower vectors, views, affine maps and loops, between those for numbers and those for a dialect."""


STAGES = ("lowered", "llvm", "isa", "object", "fat")
"""The stages of a device module, in order. Each is printed by ``offload build --emit STAGE``."""


def debug_pipeline(kind: str) -> str:
    """The passes that give functions of the LLVM dialect the lines of the source."""
    return f"offload-settle-positions,ensure-debug-info-scope-on-llvm-func{{emission-kind={kind}}}"


class Work(NamedTuple):
    """What a stage works with, besides its input: the compiler, a scratch folder, the module's name and kernels.

    ``libraries`` are bitcode files to link into every device module; ``limits`` are the most threads of a block, for
    kernels that have such a limit; ``stage`` runs (once) and returns another stage of the same module.
    ``reproducer`` is a file for the IR before a pass that fails, or empty. ``ahead`` is what `Target.ahead` began.
    """

    native: Native
    folder: Path
    module_name: str
    kernels: tuple[str, ...]
    libraries: tuple[Path, ...]
    stage: Callable[[str], Any]
    limits: Mapping[str, int] = {}
    verify_each: bool = False
    reproducer: str = ""
    ahead: RunningTool | None = None


class Stage(NamedTuple):
    """A step from the output of stage ``after`` to this stage's own; ``run`` may raise any OffloadError."""

    after: str
    run: Callable[[Work, Any], Any]


@dataclass(frozen=True)
class Target:
    """A chip to compile for, with options. Subclasses live in one module each and enter the registry by name.

    The fields are the options that every target has; :func:`option` says what each means.
    """

    chip: str = option("", "the chip to compile for; `offload targets` lists them")
    O: int = option(3, "optimization level", least=0, most=3)  # noqa: E741 - MLIR's name for it, and what users type
    fast: bool = option(False, "allows reassociation, contraction and approximations of floating-point operations")
    features: str = option("", "features of LLVM's code generator: `+ptx80`, `-xnack`, `+avx2`")
    format: str = option("bin", "what the image is: machine code, assembly text, a bundle, bitcode", choices=FORMATS)
    link: tuple[str, ...] = option((), "bitcode (or LLVM IR text) linked into the kernels of this target alone")
    max_threads: int = option(
        0, "most threads of a block: the registers are shared out for this many (not set: the chip's limit)",
        least=1, most=1024,
    )  # fmt: skip
    index: int = option(
        64, "bits of `index` inside kernels; 32 is the author's promise that every index, size, stride and offset fits",
        choices=(32, 64),
    )  # fmt: skip
    debug: bool = option(False, "line information: the lines of the MLIR source (`-g` sets it for everything)")
    bare_pointers: bool = option(
        False, "kernels take a plain pointer for each memref; all targets of a build alike (`--bare-pointers`)"
    )

    name: ClassVar[str] = ""
    backend: ClassVar[str] = ""
    """The runtime's backend that runs these images."""
    debug_kind: ClassVar[str] = "LineTablesOnly"
    """The kind of line information that the vendor's tools take (MLIR's name)."""
    blocks: ClassVar[tuple[str, ...]] = ("known_block_size", "gpu.known_block_size")
    """Attributes of a kernel that say the sizes of its blocks."""
    threads_mark: ClassVar[str] = ""
    """The attribute by which the vendor's code generator gets to know how many threads that is: "64,64"."""
    kernel_mark: ClassVar[str] = ""
    """The attribute that makes a lowered function a kernel of the vendor's."""
    instead: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # of an attribute for kernels: others, which say it as well
    suffixes: ClassVar[Mapping[str, str]] = {}  # of printed files, by format: {"isa": "s"}; else the format's name
    annotations: ClassVar[tuple[str, ...]] = ()  # attributes of a gpu.module that hold compiled code of the vendor's
    library: ClassVar[tuple[str, ...]] = ()  # how names of functions of the vendor's own device library begin
    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions of the vendor's whose devices, streams and tools are used where they are installed."""

    def __post_init__(self) -> None:
        if not self.chip:
            object.__setattr__(self, "chip", self.default_chip())
        object.__setattr__(self, "format", plain_format(self.format))
        object.__setattr__(self, "features", plain_features(self.features))
        check(self)
        self.check_chip()

    def __str__(self) -> str:
        options = [field for field in dataclasses.fields(self) if field.name != "chip"]
        words = [word for field in options for word in spelled(field, getattr(self, field.name))]
        return ",".join([f"{self.name}:{self.chip}", *words])

    # What a vendor says of itself.

    @classmethod
    def default_chip(cls) -> str:
        """The chip of a spelling without one (``nvvm``)."""
        raise NotImplementedError

    @classmethod
    def default_chip_on(cls, architecture: str) -> str:
        """The same for libraries of that CPU architecture."""
        return cls.default_chip()

    @classmethod
    def chips(cls) -> Sequence[str]:
        """The chips that can be named."""
        raise NotImplementedError

    def check_chip(self) -> None:
        """Raises TargetError for a chip that does not exist: LLVM would abort the process on some."""
        raise NotImplementedError

    def unknown_chip(self, chip: str, besides: Sequence[str] = (), unlisted: Sequence[str] = ()) -> TargetError:
        """The error for a chip that is none of :meth:`chips`; ``besides`` is shown with these, ``unlisted`` is not."""
        there, near = ", ".join([*self.chips(), *besides]), did_you_mean(chip, [*self.chips(), *unlisted])
        return TargetError(f"unknown chip {chip!r} for target {self.name}; there are: {there}{near}")

    @classmethod
    def toolkit(cls) -> list[Found]:
        """Looks for what serialization needs besides LLVM; each entry says where it was looked for."""
        return []

    def inputs(self) -> Sequence[Found]:
        """The files of the toolkit that decide the bytes of this target's images; a cache compares what they hold."""
        return self.toolkit()

    @classmethod
    def disassembler(cls, form: str) -> tuple[Found, Sequence[str]] | None:
        """The program, with its options, that shows machine code of images of a format; None where LLVM's does."""
        return None

    @classmethod
    def machine_code(cls, form: str, data: bytes) -> Sequence[bytes]:
        """The files inside of an image of a format that the disassembler reads."""
        return (data,)

    @classmethod
    def devices(cls) -> list[Device]:
        """The devices in this machine. Never raises: no driver means none."""
        return []

    @classmethod
    def discover(cls) -> Discovery:
        """The same devices with what they were found through, or why there are none. Never raises."""
        from offload.targets.devices import Discovery

        return Discovery(tuple(cls.devices()))

    def architecture(self) -> str | None:
        """The CPU architecture whose processes alone can run the images; None where any can."""
        return None

    # Compiled code that a program carries.

    @classmethod
    def chip_of(cls, attribute: str) -> str | None:
        """The chip that an MLIR target attribute, given as text, names; None where it is not the vendor's."""
        return None

    @classmethod
    def ready_image(cls, native: Native, data: bytes) -> ReadyImage | None:
        """What compiled code is by its bytes; None where it is not the vendor's.

        Raises CompileError for code of the vendor's that is damaged."""
        return None

    # How a gpu.module becomes an image.

    def triple(self) -> str:
        """LLVM's triple of the images."""
        raise NotImplementedError

    def settled_chip(self) -> str:
        """The chip, with the settings that the images are for where devices of one chip differ in them."""
        return self.chip

    def image_chip(self, native: Native) -> str:
        """The chip that the artifact names: never ``native``, which means another one on another machine."""
        return self.settled_chip()

    def named(self, native: Native) -> Target:
        """The same target for who builds it on another machine, where ``native`` would be another chip."""
        return self

    def attribute(self) -> str:
        """The MLIR target attribute to attach to the module, as text; empty where MLIR has none."""
        return ""

    def kernel_attributes(self) -> Mapping[str, str]:
        """Attributes for every kernel that has not its own, set before the pipeline: name to MLIR text."""
        return {}

    def limit_attributes(self) -> Mapping[str, str]:
        """Attributes for every kernel that has not its own, set after the pipeline: name to MLIR text."""
        return {}

    def check_pipeline(self) -> str:
        """The passes that choose among code for several chips and refuse what the chip does not have: the first."""
        return ""

    def pipeline(self) -> str:
        """The passes that lower a clone of the gpu.module, in a builtin.module of its own, to the LLVM dialect."""
        raise NotImplementedError

    def lowers_like(self, other: Target) -> bool:
        """Whether both lower alike what passes both their checks, but for the target attribute: it is lowered once.

        Targets whose stage ``lowered`` does what the passes and attributes here say call :meth:`same_lowering`."""
        return self is other

    def as_lowered(self, text: str) -> Target:
        """The target whose lowering of a module this one's is, too: another one where chips differ in what the module,
        given as text, has nothing of."""
        return self

    def assembly_like(self, other: Target) -> bool:
        """Whether the assembly of what both lower alike differs in its head alone: one of them has it written."""
        return self is other

    def with_head(self, assembly: bytes) -> bytes:
        """The assembly of a target that is :meth:`assembly_like` this one, with this one's head."""
        return assembly

    def same_lowering(self, other: Target) -> bool:
        """Whether both have the same passes, besides those that check, and the same attributes."""
        mine, theirs = (
            (type(each), each.lowering_pipelines(), each.kernel_attributes(), each.limit_attributes())
            for each in (self, other)
        )
        return mine == theirs

    def conversion_options(self) -> str:
        """The options of the pass that makes gpu.func a function of LLVM's, from the target's own."""
        return f"index-bitwidth={self.index}" + (" use-bare-ptr-memref-call-conv=true" if self.bare_pointers else "")

    def pipelines(self) -> list[str]:
        """All passes up to the stage ``lowered``, as textual pipelines that run one after the other."""
        return [*filter(None, [self.check_pipeline()]), *self.lowering_pipelines()]

    def lowering_pipelines(self) -> list[str]:
        """Those that lower the module. Targets that have the same here make the same choices before."""
        return [self.pipeline(), *([debug_pipeline(self.debug_kind)] if self.debug else [])]

    def provided_functions(self, code: LLVMModule) -> list[str] | None:
        """What kernels may use without a definition; None where the linker of the images decides."""
        return None

    def check_machine(self, native: Native) -> None:
        """Raises TargetError for what LLVM alone knows to be wrong: a feature, a chip; before a program is parsed."""
        self.check_features(native)

    def machine(self, native: Native) -> MachineOptions:
        """What LLVM generates code for."""
        return native.MachineOptions(self.triple(), self.chip, self.features, self.O, self.fast)

    def check_features(self, native: Native) -> None:
        """Raises TargetError for a feature that LLVM does not know: it would go on without it."""
        words = self.features.split(",") if self.features else []
        known = native.known_features(self.triple()) if words else []
        for word in words:
            if word[0] not in "+-":
                raise TargetError(f"{self}: write the feature {word!r} as +{word} or -{word}")
            if word[1:] not in known:
                near = did_you_mean(word[1:], known, most=3)
                raise TargetError(f"{self}: LLVM has no feature {word[1:]!r} for {self.triple()}{near}")

    def prepare(self, work: Work, code: LLVMModule) -> None:
        """Completes the translated LLVM IR before optimization: libraries, attributes. May raise ToolkitError."""

    def ahead(self, folder: Path) -> RunningTool | None:
        """The program that :meth:`assemble` will need, where it can be started before there is code; ``folder`` is
        that of the work. What is not used is stopped."""
        return None

    def assemble(self, work: Work) -> Image:
        """The machine code (stage ``object``)."""
        raise TargetError(f"target {self.name} makes no machine code: use format=isa or format=offload")

    def bundle(self, work: Work) -> Image:
        """The bundle (stage ``fat``)."""
        raise TargetError(f"target {self.name} has no fatbin format: use another one")

    def stages(self) -> Mapping[str, Stage]:
        """Stage name to step; the names are :data:`STAGES`, and those in between that nobody prints.

        Where ``checked`` is among them, targets that lower alike share what comes after it, the stage ``lowered``.
        Where ``translated`` is among them, it is the last stage that works on MLIR, and LLVM IR is its output: what
        comes after it runs side by side for all targets.
        """
        return {
            "checked": Stage("", self._check),
            "lowered": Stage("checked", self._lower),
            "translated": Stage("lowered", self._translate),
            "llvm": Stage("translated", self._optimize),
            "isa": Stage("llvm", lambda work, code: code.emit(assembly=True)),
            "object": Stage("llvm", lambda work, code: self.assemble(work)),
            "fat": Stage("llvm", lambda work, code: self.bundle(work)),
        }

    def _check(self, work: Work, module: Module) -> Module:
        if passes := self.check_pipeline():
            module.run(passes, work.verify_each, reproducer=work.reproducer)
        if self.index == 32:  # of the code that the passes have chosen
            module.check_narrow_index()
        return module

    def _lower(self, work: Work, module: Module) -> Module:
        if self.threads_mark:
            module.set_kernel_threads(self.threads_mark, self.blocks, self.instead.get(self.threads_mark, ()))
        for name, value in self.kernel_attributes().items():
            module.set_kernel_attribute(name, value, self.instead.get(name, ()))
        for pipeline in self.lowering_pipelines():
            module.run(pipeline, work.verify_each, reproducer=work.reproducer)
        if self.kernel_mark:  # Kernels that came in the LLVM dialect lack it and would be functions nobody can launch.
            module.set_kernel_attribute(self.kernel_mark, "unit")
        for name, value in self.limit_attributes().items():
            module.set_kernel_attribute(name, value, self.instead.get(name, ()))
        return module

    def _translate(self, work: Work, module: Module) -> LLVMModule:
        code = work.native.LLVMModule.translate(module, self.machine(work.native))
        if self.debug:
            code.set_debug_folder(folder_of_build())
        return code

    def _optimize(self, work: Work, code: LLVMModule) -> LLVMModule:
        for library in (*work.libraries, *self.link):
            code.link_library(str(library))
        code.drop_unseen_loading()
        self.prepare(work, code)
        provided = self.provided_functions(code)
        if provided is not None:
            names = [*code.undefined_functions(), *code.undefined_variables()]
            missing = [name for name in names if name not in provided]
            if missing:
                linked = bool(work.libraries or self.link)
                raise work.native.Failure("undefined functions", undefined_errors(code, missing, self, linked))
        code.optimize()
        if functions := code.functions_of_loading():
            raise work.native.Failure("functions of loading", loading_errors(code, functions, self))
        return code
