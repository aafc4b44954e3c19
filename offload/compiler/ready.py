"""Compiled code that a program carries: objects of a gpu.binary, attributes of a gpu.module. It is taken as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from offload.compiler.native import error_at, failures, native
from offload.compiler.request import BuildRequest
from offload.errors import CompileError, TargetError
from offload.targets import Image, ReadyImage, Target, registry
from offload.targets.registry import asked

_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
# The stage of the compiler that makes the same.
_STAGE_OF_FORMAT = {"bin": "object", "isa": "isa", "fatbin": "fat", "offload": "llvm"}


class ReadyBuild(NamedTuple):
    """A ready image of one module; to the driver, a build that needs no work. ``kernels`` are the image's."""

    name: str
    vendor: type[Target]
    chip: str
    ready: ReadyImage
    kernels: tuple[str, ...]
    jit_level: int | None

    @property
    def target_name(self) -> str:
        """The target in the registry."""
        return self.vendor.name

    @property
    def spelling(self) -> str:
        """The target and every chip that the image has code for."""
        chips = self.ready.chips if self.format == "fatbin" and self.ready.chips else (self.chip,)
        return f"{self.target_name}:{'+'.join(chips)}"

    @property
    def format(self) -> str:
        """What the bytes are."""
        return self.ready.format

    @property
    def triple(self) -> str:
        """LLVM's triple of the vendor's images."""
        return self.vendor().triple()

    def covers(self, target: Target) -> bool:
        """Is this what compiling for the target would be for?"""
        chips = (self.chip, *(self.ready.chips if self.format == "fatbin" else ()))
        return target.name == self.target_name and target.image_chip(native()) in chips

    def translate(self) -> None:
        """There is nothing to do."""

    def image(self) -> Image:
        """The author's bytes."""
        return self.ready.image

    def emit(self, stage: str) -> tuple[bytes, str] | None:
        """The bytes at the stage that would make such, and the suffix of their file."""
        if stage != _STAGE_OF_FORMAT[self.format]:
            return None
        return self.ready.image.data, self.vendor.suffixes.get(self.format, self.format)


def take_ready_builds(request: BuildRequest, module: Any) -> dict[str, list[ReadyBuild]]:
    """The ready images of a program by module, taken out of it. Raises CompileError at the operation that has them."""
    if not request.gpu_binary_annotation and not module.may_hold_ready_objects():
        return {}  # as most programs; targets that are not built for need not be imported
    vendors = all_vendors()
    annotations = [name for vendor in vendors for name in vendor.annotations]
    with failures(request.sources, "reading the program's compiled code"):
        objects = module.take_ready_objects(list(dict.fromkeys([*annotations, *request.gpu_binary_annotation])))
    for name in request.gpu_binary_annotation:
        if all(item.annotation != name for item in objects):
            raise CompileError(f"no gpu.module has the attribute {name!r}, which was said to hold compiled code")
    found: dict[str, list[ReadyBuild]] = {}
    for item in objects:
        try:
            builds = _of_object(item, vendors) if item.target else _of_annotation(item, vendors)
        except CompileError as error:
            raise error_at(item.position, str(error), request.sources) from error
        found.setdefault(item.module, []).extend(_with_kernels(request, module, item, builds))
    return found


def all_vendors() -> list[type[Target]]:
    """The targets of the registry that can be imported."""
    found = []
    for name in registry().names():
        try:
            found.append(registry().get(name))
        except TargetError:  # a package that is broken is no reason to build nothing; asking for its target says why
            continue
    return found


def vendor_of(attribute: str, vendors: Sequence[type[Target]]) -> tuple[type[Target], str] | None:
    """Whose of the vendors an MLIR target attribute is, and its chip. Raises TargetError where it is nobody's and one
    of them cannot tell."""
    failure = None
    for vendor in vendors:
        try:
            chip = asked(vendor, "chip_of", attribute)
        except TargetError as error:
            failure = failure or error
            continue
        if chip is not None:
            return vendor, chip
    if failure is not None:
        raise failure
    return None


def _of_object(item: Any, vendors: Sequence[type[Target]]) -> list[ReadyBuild]:
    what = f"the object for {item.target}"
    found = vendor_of(item.target, vendors)
    if found is None:
        names = ", ".join(vendor.name for vendor in vendors)
        raise CompileError(
            f"{what} would run nowhere: there are the targets {names}; take it out, or choose another with "
            "<#gpu.select_object<…>>"
        )
    vendor, chip = found
    if item.format == "offload":
        if not item.data.startswith(_BITCODE):
            raise CompileError(f"{what} should be LLVM bitcode (offload = …), and its bytes are not")
        try:
            native().check_bitcode(item.data)
        except native().Failure as error:
            raise CompileError(f"{what} is damaged bitcode, or of a later LLVM than 22: {error.args[0]}") from error
        ready = ReadyImage(Image(item.data), "offload")
    else:
        _, ready = _recognize(item.data, what, [vendor], vendors)
    chip, ready = _agree(what, chip, ready)
    return [_build(item, vendor, chip, ready)]


def _agree(what: str, chip: str, ready: ReadyImage) -> tuple[str, ReadyImage]:
    """The chip that both the target attribute and the bytes name, as exactly as either does."""
    if ready.format not in ("bin", "fatbin") or (ready.format == "fatbin" and not ready.parts):
        return chip, ready  # text and NVIDIA's bundles also run on chips that they do not name
    for part in ready.parts or (ready,):
        found = part.chips[0]
        if found.startswith(chip) or chip.startswith(found.split(":")[0]):
            image = Image(ready.image.data, part.image.resources)
            return max(found, chip, key=len), part._replace(image=image, format=ready.format, chips=ready.chips)
    raise CompileError(f"{what} holds code for {', '.join(ready.chips)}, not for {chip}: correct the chip")


def _of_annotation(item: Any, vendors: Sequence[type[Target]]) -> list[ReadyBuild]:
    what = f"the attribute '{item.annotation}'"
    own = [vendor for vendor in vendors if item.annotation in vendor.annotations]
    vendor, ready = _recognize(item.data, what, own or vendors, vendors)
    parts = ready.parts or (ready,)
    if not all(part.chips for part in parts):
        raise CompileError(f"{what} holds code for {vendor.name} that does not say for which chip")
    return [_build(item, vendor, part.chips[0], part) for part in parts]


def _recognize(
    data: bytes, what: str, vendors: Sequence[type[Target]], everyone: Sequence[type[Target]]
) -> tuple[type[Target], ReadyImage]:
    """Whose of the vendors the bytes are, and what. Raises CompileError that names whose code they are instead."""
    if not data:
        raise CompileError(f"{what} is empty")
    failure = None
    for vendor in vendors:
        try:
            ready = asked(vendor, "ready_image", native(), data)
        except CompileError as error:
            raise CompileError(f"{what} holds {error}") from error
        except TargetError as error:
            failure = failure or error
            continue
        if ready is not None:
            return vendor, ready
    if failure is not None:
        raise failure
    wanted = ", ".join(vendor.name for vendor in vendors)
    owner = next((vendor.name for vendor in everyone if _is_of(vendor, data)), None)
    instead = f" but for {owner}" if owner else ""
    raise CompileError(f"{what} holds no code for {wanted}{instead}; it begins with the bytes {data[:8].hex(' ')}")


def _is_of(vendor: type[Target], data: bytes) -> bool:
    try:
        return asked(vendor, "ready_image", native(), data) is not None
    except CompileError:
        return True  # damaged, but the vendor's
    except TargetError:
        return False


def _build(item: Any, vendor: type[Target], chip: str, ready: ReadyImage) -> ReadyBuild:
    level = item.jit_level if ready.format == "isa" else None
    if level is not None and level not in range(5):
        raise CompileError(f"the property O of assembly is 0 to 4, not {level}")
    return ReadyBuild(item.module, vendor, chip, ready, (), level)


def _with_kernels(request: BuildRequest, module: Any, item: Any, builds: list[ReadyBuild]) -> list[ReadyBuild]:
    """Names the kernels: by the kernel table, the bytes, or else what the program declares and launches.

    Raises CompileError at a launch of a kernel that the image certainly lacks.
    """
    launches = module.launches_of(item.module)
    named = []
    for build in builds:
        held = build.ready.kernels
        if held is not None:
            wanted = [(kernel, item.position) for kernel in item.kernels or ()]  # a table must not promise more
            for kernel, position in [*wanted, *launches]:
                if kernel not in held:
                    message = (
                        f"the compiled code of '{item.module}' for {build.spelling} has no kernel '{kernel}'; "
                        f"it has: {', '.join(held) or 'none'}"
                    )
                    raise error_at(position, message, request.sources)
        for kernel, sizes in build.ready.parameters.items():
            with failures(request.sources, f"looking at '{kernel}'"):
                module.note_parameters(item.module, kernel, list(sizes), build.spelling, request.bare_pointers)
        kernels = item.kernels if item.kernels is not None else held
        if kernels is None:
            kernels = dict.fromkeys([*module.kernels_of(item.module), *(kernel for kernel, _ in launches)])
        named.append(build._replace(kernels=tuple(kernels)))
    return named
