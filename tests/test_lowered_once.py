"""Targets that lower alike have a module lowered once, and the same images as when each has it done by itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from compiling import EXAMPLES, PROGRAMS, emit

import offload
from offload.compiler import steps
from offload.compiler.driver import Program
from offload.compiler.request import Source
from offload.errors import CompileError

ALIKE = ("nvvm:sm_90", "nvvm:sm_100", "nvvm:sm_120")
PASS = "convert-gpu-to-nvvm"


def images(source: Path, targets: tuple[str, ...], folder: Path) -> dict[str, bytes]:
    path = offload.build(source, folder / "all.so", targets=targets, cache=False)
    return {f"{image.module} {image.target}:{image.chip}": image.data for image in offload.artifact.read(path).images}


@pytest.mark.parametrize(
    "source", [EXAMPLES / "saxpy.mlir", EXAMPLES / "reduce.mlir", PROGRAMS / "lanes.mlir"], ids=lambda path: path.stem
)
@pytest.mark.parametrize(
    "targets",
    [
        ("nvvm:sm_75", "nvvm:sm_80", "nvvm:sm_86", *ALIKE),
        ("host:x86-64", "nvvm:sm_90", "host:x86-64-v3", "rocdl:gfx942", "nvvm:sm_100"),
    ],
    ids=["nvvm", "mixed"],
)
def test_the_same_images(source: Path, targets: tuple[str, ...], tmp_path: Path) -> None:
    alone = {name: data for target in targets for name, data in images(source, (target,), tmp_path).items()}
    assert images(source, targets, tmp_path) == alone


def runs_of(name: str, *targets: str) -> int:
    """How often a pass runs in a build."""
    seen: Counter[str] = Counter()

    def count(event: steps.Event) -> None:
        if isinstance(event, steps.Passes):
            seen.update(name for name, _ in event.times)

    request = offload.api.make_request([Source.read(EXAMPLES / "saxpy.mlir")], list(targets), cache=False)
    with steps.told_to(count), Program(request) as program:
        program.build()
    return seen[name]


@pytest.mark.parametrize(
    ("targets", "runs"),
    [
        (ALIKE, 1),
        (("nvvm:sm_75", "nvvm:sm_80", "nvvm:sm_90"), 3),
        (("nvvm:sm_80", "nvvm:sm_86,index=32", "nvvm:sm_89,max_threads=512"), 3),
        (("nvvm:sm_80,O=1", "nvvm:sm_86,fast", "nvvm:sm_89,ptxas=--warn-on-spills"), 1),
    ],
)
def test_how_often_it_is_lowered(targets: tuple[str, ...], runs: int) -> None:
    assert runs_of(PASS, *targets) == runs


def test_each_stage_is_printed_with_its_own_target() -> None:
    alone = [item for target in ALIKE for item in emit(EXAMPLES / "saxpy.mlir", "lowered", [target])]
    assert emit(EXAMPLES / "saxpy.mlir", "lowered", ALIKE) == alone


FENCE = """
gpu.module @m {
  gpu.func @k() kernel {
    nvvm.wgmma.fence.aligned
    gpu.return
  }
}
"""


def test_each_chip_is_checked(tmp_path: Path) -> None:
    """What one has and another has not is refused for that one, in whatever order they are."""
    (tmp_path / "p.mlir").write_text(FENCE)
    offload.build(tmp_path / "p.mlir", tmp_path / "x.so", targets=["nvvm:sm_90a"])
    for targets in (["nvvm:sm_90a", "nvvm:sm_90"], ["nvvm:sm_90", "nvvm:sm_90a"]):
        with pytest.raises(
            CompileError, match=r"'nvvm\.wgmma\.fence\.aligned' needs sm_90a and is built for sm_90 here"
        ):
            offload.build(tmp_path / "p.mlir", tmp_path / "x.so", targets=targets)
