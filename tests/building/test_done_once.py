"""Targets that lower alike have a module lowered once, those of one instruction set have its assembly written once, and
all have the same images as when each has it done by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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


SOURCES = [
    *(EXAMPLES / "saxpy.mlir", EXAMPLES / "reduce.mlir"),
    *(PROGRAMS / f"{name}.mlir" for name in ("lanes", "numbers", "math_rules", "barriers")),
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "targets",
    [
        ("nvvm:sm_75", "nvvm:sm_86", "nvvm:sm_80", "nvvm:sm_89", *ALIKE),
        ("host:x86-64", "nvvm:sm_90", "host:x86-64-v3", "rocdl:gfx942", "nvvm:sm_100"),
    ],
    ids=["nvvm", "mixed"],
)
def test_the_same_images(source: Path, targets: tuple[str, ...], tmp_path: Path) -> None:
    alone = {name: data for target in targets for name, data in images(source, (target,), tmp_path).items()}
    assert images(source, targets, tmp_path) == alone


def seen(source: str, targets: Sequence[str]) -> Counter[str]:
    """How often each pass and each stage of a device module runs in a build."""
    found: Counter[str] = Counter()

    def count(event: steps.Event) -> None:
        if isinstance(event, steps.Passes):
            found.update(name for name, _ in event.times)
        elif isinstance(event, steps.Begun):
            found[event.name] += 1

    request = offload.api.make_request([Source("p.mlir", source.encode())], list(targets), cache=False)
    with steps.told_to(count), Program(request) as program:
        program.build()
    return found


SAXPY = (EXAMPLES / "saxpy.mlir").read_text()


@pytest.mark.parametrize(
    ("targets", "runs"),
    [
        (ALIKE, 1),
        (("nvvm:sm_75", "nvvm:sm_80", "nvvm:sm_90"), 2),
        (("nvvm:sm_80", "nvvm:sm_86,index=32", "nvvm:sm_89,max_threads=512"), 3),
        (("nvvm:sm_80,O=1", "nvvm:sm_86,fast", "nvvm:sm_89,ptxas=--warn-on-spills"), 1),
    ],
)
def test_how_often_it_is_lowered(targets: tuple[str, ...], runs: int) -> None:
    assert seen(SAXPY, targets)[PASS] == runs


@pytest.mark.parametrize(("kind", "value"), [("bf16", "arith.constant 1.0 : bf16"), ("index", "gpu.cluster_id x")])
def test_what_chips_lower_differently_is_lowered_for_each(kind: str, value: str) -> None:
    body = f"%v = {value}\n    memref.store %v, %x[] : memref<{kind}>\n    gpu.return"
    text = f"gpu.module @m {{\n  gpu.func @k(%x: memref<{kind}>) kernel {{\n    {body}\n  }}\n}}\n"
    assert seen(text, ["nvvm:sm_80", "nvvm:sm_90", "nvvm:sm_100"])[PASS] == 2


@pytest.mark.parametrize(
    ("targets", "runs"),
    [
        (("nvvm:sm_86", "nvvm:sm_80", "nvvm:sm_89", "nvvm:sm_87", "nvvm:sm_90"), 2),
        (("nvvm:sm_80", "nvvm:sm_86,ptxas=--warn-on-spills", "nvvm:sm_89,format=isa"), 2),
        (("nvvm:sm_80", "nvvm:sm_86,fast", "nvvm:sm_89,ftz", "nvvm:sm_87,O=2"), 4),
        (("nvvm:sm_80,format=offload", "nvvm:sm_86,format=offload"), 0),
    ],
)
def test_how_often_assembly_is_written(targets: tuple[str, ...], runs: int) -> None:
    assert seen(SAXPY, targets)["isa"] == runs


def test_each_stage_is_printed_with_its_own_target() -> None:
    for stage, targets in (
        ("lowered", ALIKE),
        ("isa", ("nvvm:sm_80", "nvvm:sm_86")),
        ("isa", ("nvvm:sm_89", "nvvm:sm_80")),
        ("llvm", ALIKE),
    ):
        alone = [item for target in targets for item in emit(EXAMPLES / "saxpy.mlir", stage, [target])]
        assert emit(EXAMPLES / "saxpy.mlir", stage, targets) == alone


REFUSED = """
gpu.module @m {
  gpu.func @k(%x: memref<f32>) kernel {
    %v = memref.load %x[] : memref<f32>
    %r = llvm.inline_asm "nosuch.f32 $0, $1;", "=f,f" %v : (f32) -> f32
    memref.store %r, %x[] : memref<f32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("only", ["", ",ptxas=--nosuch"])
def test_errors_are_those_of_each(only: str, tmp_path: Path) -> None:
    """Where the assembler refuses it for both, it is the first one's; options may be one's own."""
    (tmp_path / "p.mlir").write_text(REFUSED if not only else SAXPY)
    targets = ["nvvm:sm_80", f"nvvm:sm_86{only}", "nvvm:sm_89"]
    expected = "Unknown option" if only else r"p\.mlir:5:10: error: ptxas refuses this for sm_80"
    with pytest.raises(CompileError, match=expected):
        offload.build(tmp_path / "p.mlir", tmp_path / "x.so", targets=targets, cache=False)
    if only:
        with pytest.raises(CompileError, match=r"for sm_86"):
            offload.build(tmp_path / "p.mlir", tmp_path / "x.so", targets=targets, cache=False)


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
