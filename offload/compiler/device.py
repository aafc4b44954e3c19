"""One gpu.module for one target: runs the target's stages on a clone of the module, unless its code is there."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from offload.compiler.made import MadeImage, Share
from offload.compiler.native import error_at, failures, native, say_all, warn_of
from offload.compiler.ready import ReadyBuild
from offload.compiler.request import BuildRequest
from offload.compiler.steps import step
from offload.errors import CompileError, OffloadError
from offload.targets import Image, Stage, Target
from offload.targets.base import FINAL_STAGE, Work
from offload.targets.left_over import undefined_errors
from offload.targets.tools import RunningTool


class Alike:
    """What the targets of one gpu.module share: it is lowered once for those that lower alike, and has its assembly
    written once for those whose assembly is alike, too."""

    def __init__(self, targets: Sequence[Target], module: Any, name: str) -> None:
        self._targets, self._module, self._name = targets, module, name
        self._made: list[tuple[Target, Any]] = []
        self._writers: list[DeviceBuild] = []

    def lowered(self, target: Target, make: Callable[[], Any]) -> Any:
        """The module for a target; ``make`` lowers it."""
        for like, kept in self._made:
            if self._lower_alike(like, target):
                return _for_target(kept, self._name, target)
        made = make()
        if any(other is not target and self._lower_alike(other, target) for other in self._targets):
            # Translation changes what it works on.
            self._made.append((target, _for_target(made, self._name, target)))
        return made

    def writer(self, build: DeviceBuild) -> DeviceBuild | None:
        """The build whose assembly serves for this one; None where that is its own."""
        for other in self._writers:
            if build.target.assembly_like(other.target) and self._lower_alike(build.target, other.target):
                return other
        self._writers.append(build)
        return None

    def _lower_alike(self, one: Target, other: Target) -> bool:
        if one.lowers_like(other) or type(one) is not type(other):
            return one.lowers_like(other)
        return one.as_lowered(self._text).lowers_like(other.as_lowered(self._text))

    @cached_property
    def _text(self) -> str:
        return str(_for_target(self._module, self._name, self._targets[0]).text())


def _for_target(module: Any, name: str, target: Target) -> Any:
    """A copy of one gpu.module, alone in a module, with this target's attribute."""
    attribute = target.attribute()
    return module.device_module(name, f"[{attribute}]" if attribute else "")


class DeviceBuild:
    """The stages of one module for one target; each runs once, when first asked for."""

    jit_level: None = None

    def __init__(
        self,
        request: BuildRequest,
        target: Target,
        name: str,
        kernels: tuple[str, ...],
        module: Any,
        folder: Path,
        limits: Mapping[str, int],
        alike: Alike,
    ) -> None:
        self.request, self.target, self.name, self.kernels = request, target, name, kernels
        self.module, self.folder, self.limits = module, folder, limits
        self.warned: list[str] = []
        self._of_tools: list[Any] = []
        self._results: dict[str, Any] = {}
        self._ahead: RunningTool | None = None
        self._alike = alike
        self._writer: DeviceBuild | None = None
        self._written, self._ended = threading.Event(), threading.Event()
        self._error: BaseException | None = None

    @property
    def target_name(self) -> str:
        """The target in the registry."""
        return self.target.name

    @property
    def chip(self) -> str:
        """The chip that the artifact names."""
        return self.target.image_chip(native())

    @property
    def format(self) -> str:
        """The image's format."""
        return self.target.format

    @property
    def triple(self) -> str:
        """LLVM's triple of the image."""
        return self.target.triple()

    def stage(self, name: str) -> Any:
        """The output of a stage. Raises CompileError or ToolkitError."""
        if self._writer is not None and name in ("llvm", "isa"):
            return self._writer.code() if name == "llvm" else self.target.with_head(self._writer.assembly())
        if name not in self._results:
            stages: Mapping[str, Stage] = self.target.stages()
            stage = stages[name]
            before = self.stage(stage.after) if stage.after else self.module
            reproducer = self.request.reproducer_file(f"{self.name}.{self.target.name}.{self.target.chip}")
            work = Work(
                native(), self.folder, self.name, self.kernels, self.request.link, self.stage, self.limits,
                self.request.verify_each, reproducer, self._ahead,
            )  # fmt: skip
            part = f"{self.name} for {self.target}"
            with failures(self.request.sources, part), step(name, part):
                try:
                    if (name, stage.after) == ("lowered", "checked"):
                        warn_of(before, self.request.sources)  # of passes that ran for others, too
                        made = self._alike.lowered(self.target, lambda: stage.run(work, before))
                        self.warned += warn_of(made, self.request.sources)
                    else:
                        made = stage.run(work, before)
                    if isinstance(made, Image):
                        self._warn_of_tool(made)
                    self._results[name] = made
                    if name == "isa":
                        self._written.set()
                except (CompileError, native().Failure) as error:
                    if found := self._undefined(str(error)):
                        raise native().Failure(str(error), found) from error
                    raise
        return self._results[name]

    def _undefined(self, message: str) -> list[tuple[Any, ...]]:
        """Diagnostics for functions without a body that a linker's or an assembler's message speaks of."""
        code = self._results.get("llvm")
        if not isinstance(code, native().LLVMModule):
            return []
        names = code.undefined_functions()
        named = [name for name in names if re.search(rf"(?<![\w.$]){re.escape(name)}(?![\w.$])", message)]
        return undefined_errors(code, named, self.target, bool(self.request.link or self.target.link))

    def start_ahead(self) -> None:
        """Starts what takes long to start; in any thread, before :meth:`image`. Raises ToolkitError: then there is no
        image, for those neither that wait for this one's assembly."""
        try:
            if FINAL_STAGE[self.target.format] in ("object", "fat"):
                self._ahead = self.target.ahead(self.folder)
        except BaseException as error:
            self._error = error
            self._written.set()
            self._ended.set()
            raise

    def stop(self) -> None:
        """Ends what was started and is not needed after all."""
        if self._ahead is not None:
            self._ahead.stop()

    def translate(self) -> None:
        """Runs the stages that work on MLIR, in the session's context: :meth:`image` may then run in any thread.

        A target that then has something else than LLVM IR is compiled to the end here. One whose assembly another one
        writes is only checked.
        """
        if FINAL_STAGE[self.target.format] != "llvm":
            self._writer = self._alike.writer(self)
        if self._writer is not None:
            self.stage("checked")
            return
        last = "translated" if "translated" in self.target.stages() else "llvm"
        if not isinstance(self.stage(last), native().LLVMModule):
            self.image()

    def image(self) -> Image:
        """The image in the target's format."""
        try:
            image = self._image(self.stage(FINAL_STAGE[self.target.format]))
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._written.set()
            self._ended.set()
        return image

    def _image(self, result: Any) -> Image:
        """What the last stage has made. Raises OffloadError for what no target may make."""
        if self.target.format == "offload":
            return Image(result.bitcode())
        image = result if isinstance(result, Image) else Image(result)
        if not isinstance(image.data, bytes):
            raise OffloadError(
                f"target {self.target_name} makes no image of '{self.name}': its stage "
                f"{FINAL_STAGE[self.target.format]!r} ends with {type(image.data).__name__}, where bytes belong, or an "
                f"Image of bytes; the fault is in {type(self.target).__module__}"
            )
        return image

    def _warn_of_tool(self, image: Image) -> None:
        """Says what a tool that made an image warned of; a bundle's image has what its parts had, too."""
        new = [each for each in image.warnings if each not in self._of_tools]
        self._of_tools += new
        self.warned += say_all(new, self.request.sources)

    def assembly(self) -> bytes:
        """The assembly, when it is there, for a build in another thread that began later. Raises what this one did."""
        self._written.wait()
        if "isa" not in self._results:
            raise self._error or AssertionError("an image without assembly")
        return bytes(self._results["isa"])

    def code(self) -> Any:
        """The LLVM IR, when this build needs it no more. Raises what this one did."""
        self._ended.wait()
        if "llvm" not in self._results:
            raise self._error or AssertionError("an image without LLVM IR")
        return self._results["llvm"]

    def emit(self, stage: str) -> tuple[bytes, str] | None:
        """The bytes that a stage prints and the suffix of their file; None where there is no such stage."""
        kind = type(self.target)
        lacks_object, lacks_bundle = kind.assemble is Target.assemble, kind.bundle is Target.bundle
        if (stage == "object" and lacks_object) or (stage == "fat" and lacks_bundle):
            return None  # the target makes no such thing
        result = self.stage(stage)
        suffixes = self.target.suffixes
        if stage == "lowered":
            return result.text().encode(), "mlir"
        if stage == "llvm":
            return result.text().encode(), "ll"
        if stage == "isa":
            return result, suffixes.get("isa", "isa")
        form = "bin" if stage == "object" else "fatbin"
        return result.data, suffixes.get(form, form)


Build = DeviceBuild | ReadyBuild
"""An image on its way: compiled, or carried by the program."""

Linked = Build | MadeImage
"""What a library has an image of: another process may have made it."""


def device_builds(
    request: BuildRequest,
    module: Any,
    ready: Mapping[str, list[ReadyBuild]],
    scratch: tempfile.TemporaryDirectory[str],
    share: Share | None = None,
) -> list[Build]:
    """The ready images of each module, and one build for each target that has none; nothing is compiled yet.

    Only those of the ``share`` are there, by default all.
    Raises CompileError at a module that has neither an image nor source for a target that was named.
    """
    builds: list[Build] = []
    for place, name in enumerate(module.device_modules()):
        carried = ready.get(name, [])
        builds += carried
        kernels, alike = tuple(module.kernels_of(name)), Alike(request.targets, module, name)
        for number, target in enumerate(request.targets):
            if any(image.covers(target) for image in carried):
                continue
            if carried and not module.has_source(name):
                if target in request.optional:
                    continue
                there = ", ".join(image.spelling for image in carried)
                raise error_at(
                    module.position_of(name),
                    f"'{name}' has no image for {target.name}:{target.image_chip(native())} and no source to compile; "
                    f"it carries: {there}",
                    request.sources,
                )
            if share is not None and not share.has(place, number):
                continue
            folder = Path(scratch.name) / f"{len(builds)}-{number}"
            folder.mkdir()
            with failures(request.sources, f"attaching {target}"):
                clone = _for_target(module, name, target)
                limits = dict(clone.limit_threads(target.max_threads, target.blocks))
            builds.append(DeviceBuild(request, target, name, kernels, clone, folder, limits, alike))
    return builds
