"""Looking into a build: every stage in a folder, one target's stage, the passes; and the pages made from the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import ALL_TARGETS, PROGRAMS, ROOT, command, emit, tool

OPTIONS = PROGRAMS / "options.mlir"


def test_dump_writes_every_stage(tmp_path: Path) -> None:
    targets = [word for target in ALL_TARGETS for word in ("-t", target)]
    done = command("build", OPTIONS, *targets, "--dump", "d", "-q", "-o", "x.so", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    stages = {
        "nvvm.sm_90": ("split.mlir", "lowered.mlir", "llvm.ll", "isa.ptx", "object.cubin"),
        "rocdl.gfx942": ("split.mlir", "lowered.mlir", "llvm.ll", "isa.s", "object.hsaco"),
        "host.x86-64": ("split.mlir", "lowered.mlir", "llvm.ll", "isa.s", "object.o"),
    }
    names = {f"m.{target}.{stage}" for target, suffixes in stages.items() for stage in suffixes}
    names |= {"options.input.mlir", "options.kernels.mlir", "host.split.mlir", "host.host-llvm.ll", "options.so.so"}
    assert {path.name for path in (tmp_path / "d").iterdir()} == names
    assert (tmp_path / "d" / "options.so.so").read_bytes() == (tmp_path / "x.so").read_bytes()
    assert command("build", OPTIONS, *targets, "-q", "-o", "plain.so", cwd=tmp_path).returncode == 0
    assert (tmp_path / "plain.so").read_bytes() == (tmp_path / "x.so").read_bytes()
    for stage in ("llvm", "isa"):
        (item,) = emit(OPTIONS, stage, ["nvvm:sm_90"])
        assert item.data == (tmp_path / "d" / f"m.nvvm.sm_90.{stage}.{item.suffix}").read_bytes()


def test_no_view_takes_the_place_of_a_source_or_of_another(tmp_path: Path) -> None:
    kernel = "{ gpu.func @k() kernel { gpu.return } }"
    texts = {"k.mlir": f'gpu.module @"a/b" {kernel}\ngpu.module @a_b {kernel}\n', "k.input.mlir": "module {}\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for words in (("k.mlir", "--emit", "kernels", "-o", "."), ("k.mlir", "k.input.mlir", "--dump", ".")):
        done = command("build", *words, "-t", "host", "-q", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert "it is one of the sources; name another output" in done.stderr
    assert {name: (tmp_path / name).read_text() for name in texts} == texts
    done = command("build", "k.mlir", "-t", "host", "--emit", "isa", "-o", "out", "-q", cwd=tmp_path)
    assert done.stdout.split() == ["out/a_b.host.x86-64.s", "out/a_b.host.x86-64.2.s"]
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_stage_of_one_target(tmp_path: Path) -> None:
    targets = ("-t", "nvvm:sm_90", "-t", "nvvm:sm_80", "-t", "host,O=2,fast")
    for only, labels in (
        ("nvvm", ["nvvm.sm_90", "nvvm.sm_80"]),
        ("nvvm:sm_80", ["nvvm.sm_80"]),
        ("host", ["host.x86-64"]),
        ("host,fast,O=2", ["host.x86-64"]),  # as -t has it, or means the same
    ):
        done = command("build", OPTIONS, *targets, "-g", "--emit", f"llvm:{only}", "-q", cwd=tmp_path)
        assert re.findall(r"^; ----- llvm: m\.(.*)$", done.stdout, re.MULTILINE) == labels
    spelt = ("--arch", "aarch64", "-t", "host,O=2", "--emit", "llvm:host,O=2")
    assert "; ----- llvm: m.host.aarch64" in command("build", OPTIONS, *spelt, "-q", cwd=tmp_path).stdout
    for wrong, message in (
        ("llvm:rocdl", "--emit llvm:rocdl: this build's targets are nvvm:sm_90, nvvm:sm_80, host:x86-64"),
        ("llvm:host,O=3", "--emit llvm:host,O=3: this build's targets are nvvm:sm_90, nvvm:sm_80, host:x86-64"),
        ("llvm:", "--emit llvm:: this build's targets are nvvm:sm_90, nvvm:sm_80, host:x86-64"),
        ("so:host", "--emit so:host: that stage is not one target's; these are: lowered, llvm, isa, object, fat"),
    ):
        done = command("build", OPTIONS, *targets, "--emit", wrong, "-q", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, f"offload: error: {message}\n")


def test_one_way_to_look_at_a_time(tmp_path: Path) -> None:
    done = command("build", OPTIONS, "--emit", "isa", "--dump", "d", cwd=tmp_path)
    assert done.returncode == 2
    assert "one of --emit, --dump and --print-pipeline at a time" in done.stderr


def test_printed_pipelines_run_in_mlir_opt(tmp_path: Path) -> None:
    """Without offload's own passes, which this program does not need for NVIDIA."""
    done = command(
        "build", OPTIONS, "--print-pipeline", "-g", "-q", "-t", "nvvm:sm_90", "-t", "host", cwd=tmp_path
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    parts = [part.split("\n") for part in done.stdout.split("\n\n// ")[1:]]
    assert [part[0] for part in parts] == [
        "the program, to kernels",
        "gpu.module @m for nvvm:sm_90,debug",
        "gpu.module @m for host:x86-64,debug",
        "the host code",
    ]
    (device,) = (item for item in emit(OPTIONS, "split", ["nvvm:sm_90"]) if item.label != "host")
    text = device.data.decode()
    for pipeline in filter(None, parts[1][1:]):
        pipeline = re.sub(r"offload-[\w-]+(\{[^}]*\})?", "", pipeline)
        pipeline = re.sub(r"gpu\.module\(,*\)", "", pipeline)  # where nothing but passes of offload ran
        pipeline = re.sub(r"(?<=\(),+|,+(?=\))", "", re.sub(r",+", ",", pipeline))
        text = tool("mlir-opt", f"--pass-pipeline={pipeline}", "--mlir-print-debuginfo", given=text)
    assert "nvvm.kernel" in text
    assert "emissionKind = DebugDirectivesOnly" in text


def test_verifying_covers_the_kernels() -> None:
    for target in ALL_TARGETS:
        assert emit(OPTIONS, "isa", [target], verify_each=True)


# The pages that are made from the code.


@pytest.mark.parametrize("name", ["settings", "targets", "operations"])
def test_generated_pages_are_up_to_date(name: str, tmp_path: Path) -> None:
    script = ROOT / "scripts" / f"docs_{name}.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run scripts/docs_{name}.py\n{done.stderr}"
    assert f"{name}.md" in (ROOT / "mkdocs.yml").read_text()
