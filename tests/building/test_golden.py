"""Golden IR: what each stage of a build prints, and which golden file pins which rule of the lowering."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from compiling import ALL_TARGETS, EXAMPLES, HERE, PROGRAMS, ROOT, command, emit, tool
from offload.targets import registry
from operations import Case, amd, fragments, nvidia

GOLDEN = sorted((HERE / "golden").glob("*.check"))
ROOMS = ("input", "tensors", "loops", "device", "cpu", "host")
SOURCES = "\n".join(path.read_text() for room in ROOMS for path in sorted((ROOT / "offload/mlir" / room).iterdir()))


def program_of(check: Path) -> Path:
    """The program that a golden file is about."""
    name = check.stem.split(".")[0]
    (source,) = [folder / f"{name}.mlir" for folder in (EXAMPLES, PROGRAMS) if (folder / f"{name}.mlir").exists()]
    return source


def targets_of(source: Path) -> list[str]:
    """The targets that a program names in its first line, after ``// targets:``; all where it names none."""
    first = source.read_text().partition("\n")[0]
    return first.removeprefix("// targets:").split() if first.startswith("// targets:") else list(ALL_TARGETS)


WITH_TARGETS = sorted(
    source for source in {program_of(check) for check in GOLDEN} if targets_of(source) != list(ALL_TARGETS)
)


@pytest.mark.parametrize("check", GOLDEN, ids=lambda path: path.stem)
def test_golden_ir(check: Path, tmp_path: Path) -> None:
    """FileCheck of what ``offload build --emit`` prints, by ``golden/NAME.STAGE.check``.

    NAME is a program of examples or tests/programs; STAGE is what is emitted. The program is built for an NVIDIA
    chip, an AMD chip and the CPU. One that does not build for all of these (it has one vendor's operations, say) names
    its targets in its first line: ``// targets: nvvm:sm_90a``. A line ``// rule: NAME, NAME: …`` in a golden file says
    which rules the lines below it pin (see :func:`test_each_rule_has_a_golden`).

    To see what there is to check: ``offload build PROGRAM --emit STAGE -t TARGET …``
    """
    source, stage = program_of(check), check.stem.split(".")[1]
    targets = [word for target in targets_of(source) for word in ("-t", target)]
    done = command("build", source, "--emit", stage, "-q", *targets, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    tool("FileCheck", "--dump-input=fail", check, given=done.stdout)


@pytest.mark.parametrize("source", WITH_TARGETS, ids=lambda path: path.stem)
def test_programs_that_name_targets_compile(source: Path) -> None:
    """What their golden IR shows becomes machine code: a lowering that no chip can run is not worth pinning."""
    (library,) = emit(source, "so", targets_of(source))
    assert library.data.startswith(b"\x7fELF")


def patterns() -> set[str]:
    """Structs of rewrite patterns; those that others derive from are no rules themselves."""
    found = re.findall(r"(?:struct|class) (\w+) : public (?:mlir::)?(\w*Pattern)\b", SOURCES)
    return {name for name, _ in found} - {base for _, base in found}


def passes() -> set[str]:
    """Passes that change programs. Those that refuse programs say so in their descriptions, and test_diagnostics.py
    and test_operations.py compare what they print."""
    found = re.findall(r'getArgument\(\).*?return "(.*?)";.*?getDescription\(\).*?"(\w+)', SOURCES, re.DOTALL)
    return {name for name, verb in found if verb != "Refuse"}


def parts() -> set[str]:
    """The functions that offload-prepare-device is made of, without the one that refuses."""
    header = (ROOT / "offload/mlir/device/prepare_device.h").read_text()
    return set(re.findall(r"LogicalResult (lower\w+)\(", header))


def stand_ins() -> set[str]:
    """The functions that stand for operations of a GPU until the CPU's code is made (cpu/spmd.cpp)."""
    return set(re.findall(r'"(__offload_\w+)"', (ROOT / "offload/mlir/names.h").read_text()))


def upstream_patterns() -> set[str]:
    """The pattern sets of MLIR that device/ chooses from."""
    device = "\n".join(path.read_text() for path in (ROOT / "offload/mlir/device").iterdir())
    return set(re.findall(r"\b(populate\w+Patterns\w*)\(", device))


def upstream_passes() -> set[str]:
    """The passes of MLIR in the targets' pipelines that change what an operation becomes."""
    pipelines = " ".join(text for target in registry().all().values() for text in target().pipelines())
    return set(re.findall(r"\b(?:convert|expand|lower)-[\w-]+", pipelines))


RULES = patterns() | passes() | parts() | stand_ins() | upstream_patterns() | upstream_passes()


def test_rules_are_found() -> None:
    """One of each kind, so that a change of how the sources are written cannot empty the list unseen."""
    assert {"LoadRows", "Classify", "offload-tile-parallel", "lowerIds", "__offload_barrier"} < RULES
    assert {"populateVectorScanLoweringPatterns", "convert-gpu-to-nvvm", "convert-gpu-to-rocdl"} < RULES
    assert {"MathPattern", "HostPattern", "offload-check-input", "refuseRecursion"}.isdisjoint(RULES)


def rules_of(check: Path) -> list[str]:
    lines = re.findall(r"^(?://|;) rule: ([^:\n]+)", check.read_text(), re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


def test_each_rule_has_a_golden() -> None:
    named = {name for check in GOLDEN for name in rules_of(check)}
    assert sorted(RULES - named) == []


@pytest.mark.parametrize("check", GOLDEN, ids=lambda path: path.stem)
def test_goldens_name_rules_that_exist(check: Path) -> None:
    assert [name for name in rules_of(check) if name not in RULES] == []


VENDOR_OPERATION = re.compile(r"(?<![#!\w.])((?:nvgpu|nvvm|amdgpu|rocdl|gpu\.subgroup_mma)[\w.]*\w)")


@pytest.mark.parametrize(
    ("target", "cases"), [("nvvm", nvidia.CASES + fragments.CASES), ("rocdl", amd.CASES)], ids=["nvidia", "amd"]
)
def test_vendors_operations_are_in_goldens(target: str, cases: list[Case]) -> None:
    """Each operation that the table of operations has for one vendor alone is in a program with golden IR."""
    golden = "\n".join(program_of(check).read_text() for check in GOLDEN)
    known = set(VENDOR_OPERATION.findall(golden))
    wanted = {name for case in cases if target not in case.refused for name in VENDOR_OPERATION.findall(case.source)}
    assert len(wanted) > 20
    assert sorted(wanted - known) == []
