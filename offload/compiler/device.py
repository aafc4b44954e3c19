"""One gpu.module for one target: runs the target's stages on a clone of the module."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from offload.compiler.native import failures, native
from offload.compiler.request import BuildRequest
from offload.targets import Image, Stage, Target
from offload.targets.base import FINAL_STAGE, Work


@dataclass
class DeviceBuild:
    """The stages of one module for one target; each runs once, when first asked for."""

    request: BuildRequest
    target: Target
    name: str
    kernels: tuple[str, ...]
    module: Any
    folder: Path
    limits: Mapping[str, int]
    _results: dict[str, Any] = field(default_factory=dict)

    def stage(self, name: str) -> Any:
        """The output of a stage. Raises CompileError or ToolkitError."""
        if name not in self._results:
            stages: Mapping[str, Stage] = self.target.stages()
            stage = stages[name]
            before = self.stage(stage.after) if stage.after else self.module
            work = Work(native(), self.folder, self.name, self.kernels, self.request.link, self.stage)
            work = replace(work, limits=self.limits, verify_each=self.request.verify_each)
            with failures(self.request.sources, f"{self.name} for {self.target}"):
                self._results[name] = stage.run(work, before)
        return self._results[name]

    def translate(self) -> None:
        """Runs the stages that work on MLIR, in the session's context: :meth:`image` may then run in any thread.

        A target whose LLVM stage gives something else than LLVM IR is compiled to the end here.
        """
        if not isinstance(self.stage("llvm"), native().LLVMModule):
            self.image()

    def image(self) -> Image:
        """The image in the target's format."""
        result = self.stage(FINAL_STAGE[self.target.format])
        if self.target.format == "offload":
            return Image(result.bitcode())
        return result if isinstance(result, Image) else Image(result)


def device_builds(request: BuildRequest, module: Any, scratch: tempfile.TemporaryDirectory[str]) -> list[DeviceBuild]:
    """One build per module and target; nothing is compiled yet."""
    builds: list[DeviceBuild] = []
    for name in module.device_modules():
        kernels = tuple(module.kernels_of(name))
        for number, target in enumerate(request.targets):
            folder = Path(scratch.name) / f"{len(builds)}-{number}"
            folder.mkdir()
            attribute = target.attribute()
            with failures(request.sources, f"attaching {target}"):
                clone = module.device_module(name, f"[{attribute}]" if attribute else "")
                limits = dict(clone.limit_threads(target.max_threads))
            builds.append(DeviceBuild(request, target, name, kernels, clone, folder, limits))
    return builds
