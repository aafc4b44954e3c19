"""From a BuildRequest to the bytes of a shared library, and the printing of stages on the way."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from offload.compiler import attached, frontend, host, steps
from offload.compiler.device import Build, DeviceBuild, Linked, device_builds
from offload.compiler.link import link
from offload.compiler.made import Made, MadeImage, Share, digest, joined
from offload.compiler.native import error_at, failures, native
from offload.compiler.objects import defined_names
from offload.compiler.ready import ReadyBuild, take_ready_builds
from offload.compiler.request import BuildRequest, distinct
from offload.compiler.stage_cache import StageCache
from offload.compiler.threads import Pool, Promised
from offload.errors import Diagnostic, OffloadError, did_you_mean
from offload.targets import Image
from offload.targets.base import STAGES as DEVICE_STAGES

STAGES = ("input", "kernels", "split", *DEVICE_STAGES, "host-llvm", "so")
"""Every stage that ``--emit`` prints, in order."""

Progress = Callable[[str], None]
HostCode = TypeVar("HostCode")


class Emitted(NamedTuple):
    """The output of one stage; ``label`` is ``module.target.chip``, ``host`` or the program's name."""

    stage: str
    label: str
    data: bytes
    suffix: str

    @property
    def is_text(self) -> bool:
        """Is it meant to be read?"""
        return self.suffix in ("mlir", "ll", "s", "ptx")


class Program:
    """One build under way. Stages are computed when asked for; the context is private to it."""

    def __init__(self, request: BuildRequest, progress: Progress = lambda text: None) -> None:
        for target in request.targets:
            target.check_machine(native())
        self.request, self._progress = distinct(request, native()), progress
        self._session = frontend.new_session()
        progress("parsing")
        with steps.step("parsing"):
            self.module = frontend.parse(request.sources, self._session)
        self._ready: dict[str, list[ReadyBuild]] = {}
        self._to_kernels: list[str] = []
        self._scratch = tempfile.TemporaryDirectory(prefix="offload-")

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        steps.passes(native().take_pass_times())
        self._scratch.cleanup()

    def make_kernels(self) -> None:
        """Brings the program to the stage ``kernels``. Raises CompileError."""
        self._progress("making kernels")
        with steps.step("making kernels"):
            self._make_kernels()

    def _make_kernels(self) -> None:
        self._ready = take_ready_builds(self.request, self.module)
        attached.warn_of_unread(self.request, self.module, self._ready)
        reproducer = self.request.reproducer_file("kernels")
        self._to_kernels = frontend.lower_to_kernels(
            self.module, self.request.sources, self.request.verify_each, reproducer, self.request.debug
        )
        with failures(self.request.sources, "making kernels"):
            if self.request.bare_pointers:
                self.module.check_bare_pointers()
            defined = defined_names(self.request.objects)
            if defined is not None:  # objects may define functions of the runtime's names
                self.module.check_declared(self.request.bare_pointers_for_host, defined)

    def emit(self, stage: str) -> Iterator[Emitted]:
        """The outputs of one stage. Raises CompileError, ToolkitError, or OffloadError for an unknown stage."""
        if stage not in STAGES:
            near = did_you_mean(stage, STAGES)
            raise OffloadError(f"unknown stage {stage!r}; stages are: {', '.join(STAGES)}{near}")
        if stage == "input":
            yield Emitted(stage, self.request.name, self.module.text().encode(), "mlir")
            return
        self.make_kernels()
        if stage == "kernels":
            yield Emitted(stage, self.request.name, self.module.text().encode(), "mlir")
        elif stage in ("split", *DEVICE_STAGES):
            if stage == "split":
                yield self._host_part()
            for build in self._device_builds():
                yield from _device_output(build, stage)
        elif stage == "host-llvm":
            yield Emitted(stage, "host", self._host_code().text().encode(), "ll")
        else:
            yield Emitted(stage, self.request.name, self.finish(), "so")

    def dump(self) -> Iterator[Emitted]:
        """The outputs of all stages of one build, in the order of :data:`STAGES` per module and target."""
        yield Emitted("input", self.request.name, self.module.text().encode(), "mlir")
        self.make_kernels()
        yield Emitted("kernels", self.request.name, self.module.text().encode(), "mlir")
        yield self._host_part()
        builds = self._device_builds()
        for build in builds:
            for stage in ("split", *DEVICE_STAGES):
                if stage != "fat" or build.format == "fatbin":  # any other build makes none
                    yield from _device_output(build, stage)
        code = self._host_code()
        yield Emitted("host-llvm", "host", code.text().encode(), "ll")
        images = [build.image() for build in builds]
        yield Emitted("so", self.request.name, self._link(builds, images, host.object_file(self.request, code)), "so")

    def _host_part(self) -> Emitted:
        return Emitted("split", "host", host.split(self.module).text().encode(), "mlir")

    def pipelines(self) -> Iterator[tuple[str, list[str]]]:
        """What runs on which part of the program: the pass pipelines of a build, in order."""
        self.make_kernels()
        yield "the program, to kernels", self._to_kernels
        for name in self.module.device_modules():
            for target in self.request.targets:
                yield f"gpu.module @{name} for {target}", target.pipelines()
        yield "the host code", host.pipelines(self.request)

    def build(self) -> bytes:
        """The shared library. Raises CompileError, ToolkitError, LinkError."""
        self.make_kernels()
        return self.finish()

    def finish(self) -> bytes:
        """The shared library of a program whose kernels are made."""
        builds = self._device_builds()
        return self._link(builds, *self._compile(builds, self._host_object))

    def part(self, share: Share) -> Made:
        """Some of the images, maybe host code. Raises CompileError, ToolkitError."""
        self.make_kernels()
        program = digest(self.module)
        # What the program carries is there where it is linked.
        builds = [build for build in self._device_builds(share) if isinstance(build, DeviceBuild)]
        has_code = len(self.request.targets) in share.numbers
        images, code = self._compile(builds, self._host_object if has_code else lambda stages: None)
        return Made(program, tuple(map(self._made, builds, images)), code)

    def _made(self, build: DeviceBuild, image: Image) -> MadeImage:
        number = self.request.targets.index(build.target)
        return MadeImage(
            build.name, number, build.target_name, build.chip, build.format, build.triple, build.kernels, image
        )

    def assemble(self, parts: Sequence[Made]) -> bytes:
        """The shared library, of all its parts. Raises CompileError, LinkError, OffloadError."""
        self.make_kernels()
        made = joined(parts, self.module)
        builds: list[Linked] = []
        images: list[Image] = []
        for name in self.module.device_modules():  # in the order in which one process has them
            carried, compiled = self._ready.get(name, []), [image for image in made.images if image.name == name]
            compiled.sort(key=lambda image: image.number)
            builds += [*carried, *compiled]
            images += [*(build.image() for build in carried), *(each.image for each in compiled)]
        assert made.code is not None
        return self._link(builds, images, made.code)

    def _link(self, builds: Sequence[Linked], images: list[Image], code: bytes) -> bytes:
        from offload.compiler.carried import container

        carried = container(self.request, self.module, builds, images)
        self._progress("linking")
        with steps.step("linking"):
            return link(
                code,
                carried,
                self.module.exported_symbols(),
                self.request,
                Path(self._scratch.name),
                self._said_of,
            )

    def _said_of(self, function: str, message: str) -> Diagnostic | None:
        position = self.module.position_of(function)
        return error_at(position, message, self.request.sources).diagnostics[0] if position[3] else None

    def _compile(
        self, builds: Sequence[Build], host_code: Callable[[StageCache], HostCode]
    ) -> tuple[list[Image], HostCode]:
        """Every image, in order, and what ``host_code`` returns. The first error in that order is raised."""
        stages, processors = StageCache(self.request, self._progress), os.cpu_count() or 1
        waiting: list[Promised[Image]] = []
        with contextlib.ExitStack() as after, Pool(processors) as pool:
            try:
                for number, build in enumerate(builds):
                    kept = stages.image(build)
                    after.callback(kept.stop)
                    self._progress(kept.doing)
                    if number < processors:
                        kept.start_ahead(pool)
                    kept.translate()
                    # From here on a build has an LLVM context of its own; the session's stays on this thread.
                    waiting.append(pool.begin(kept.image))
                code = host_code(stages)
                # This thread would now wait for the others; what it needs next takes a while to import.
                import offload.compiler.carried  # noqa: F401
            finally:
                images = [image.result() for image in waiting]
        return images, code

    def _device_builds(self, share: Share | None = None) -> list[Build]:
        return device_builds(self.request, self.module, self._ready, self._scratch, share)

    def _host_code(self) -> Any:
        lowered = host.lower(self.request, host.split(self.module))
        return host.translate(self.request, lowered, self.module.exported_symbols())

    def _host_object(self, stages: StageCache) -> bytes:
        lowered, exported = host.lower(self.request, host.split(self.module)), self.module.exported_symbols()

        def make() -> bytes:
            return host.object_file(self.request, host.translate(self.request, lowered, exported))

        return stages.host_object(lowered, exported, make)


def _device_output(build: Build, stage: str) -> Iterator[Emitted]:
    if stage == "split":
        if isinstance(build, DeviceBuild):
            yield Emitted(stage, _label(build), build.module.text().encode(), "mlir")
    elif (printed := build.emit(stage)) is not None:
        yield Emitted(stage, _label(build), *printed)


def _label(build: Build) -> str:
    chip = build.target.settled_chip() if isinstance(build, DeviceBuild) else build.chip
    return f"{build.name}.{build.target_name}.{chip}"
