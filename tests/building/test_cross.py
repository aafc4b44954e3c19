"""Libraries for AArch64, built on another architecture: what they are, what they compute, what is refused."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
from compiling import EXAMPLES, HERE
from conformance import Theme, all_themes
from conformance.replay import replay
from cross import EMULATOR, build_program, run_program
from offload.targets import sysroot

import offload
from offload import artifact
from offload.artifact.elf import ElfFile, machine_name
from offload.cli import main

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="here, the other architecture is this one")


@pytest.fixture(scope="module")
def saxpy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("saxpy") / "saxpy.so"
    return offload.build(EXAMPLES / "saxpy.mlir", output, targets=["host:aarch64", "nvvm:sm_90"])


def test_what_it_is(saxpy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = artifact.read(saxpy)
    assert machine_name(read.machine) == "aarch64"
    assert main(["inspect", "--json", str(saxpy)]) == 0
    images = json.loads(capsys.readouterr().out)["images"]
    assert [(image["target"], image["chip"]) for image in images] == [("host", "aarch64"), ("nvvm", "sm_90")]
    assert sorted(ElfFile(saxpy.read_bytes(), "saxpy.so").needed()) == ["libc.so.6"]
    with pytest.raises(offload.ArtifactError, match="built for aarch64, this process runs on x86_64"):
        offload.load(saxpy)


def test_what_it_computes(saxpy: Path, tmp_path: Path) -> None:
    caller = build_program(HERE / "cross" / "caller.c", tmp_path / "caller")
    printed = run_program(caller, saxpy, "_mlir_ciface_saxpy", "f32:2", "f32[]:1,2,3", "f32[]:10,20,30")
    assert printed.split("\n") == ["1 2 3 ", "12 24 36 ", ""]


@pytest.fixture(scope="module")
def replayer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runtime = sysroot.Sysroot("aarch64").runtime("libmgpu.a")
    return build_program(HERE / "conformance" / "replay.c", tmp_path_factory.mktemp("replay") / "replay", runtime)


@pytest.mark.parametrize("theme", all_themes(), ids=lambda theme: theme.name)
def test_kernels(theme: Theme, replayer: Path, tmp_path: Path, full: bool) -> None:
    """Every kernel of the conformance suite, on every level of the architecture that the emulator has."""
    source = tmp_path / "theme.mlir"
    source.write_text(theme.source)
    for target in ("host:aarch64", *(("host:armv9-a", "host:aarch64,coroutines", "host:cortex-a72") if full else ())):
        library = artifact.read(offload.build(source, tmp_path / "theme.so", targets=[target]))
        (image,) = library.images
        file = tmp_path / "image.so"
        file.write_bytes(image.data)
        launches = [
            (kernel.name, launch, answer)
            for kernel in theme.kernels
            for launch, answer in kernel.launches(32, count=3 if full else 1)
        ]
        replay(replayer, file, launches, EMULATOR)


def test_the_architecture_of_targets_without_a_chip(tmp_path: Path) -> None:
    output = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "host.so", targets=["host"], arch="aarch64")
    assert [image.chip for image in artifact.read(output).images] == ["aarch64"]
    output = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "gpu.so", targets=["nvvm:sm_90"], arch="aarch64")
    assert [image.chip for image in artifact.read(output).images] == ["sm_90"]
    assert machine_name(artifact.read(output).machine) == "aarch64"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["-t", "host:aarch64", "-t", "host:x86-64-v3"],
            "host:x86-64-v3 is code for x86_64, and this library is for aa",
        ),
        (
            ["-t", "host:haswell", "--arch", "aarch64"],
            "host:haswell is code for x86_64, and this library is for aarch64",
        ),
        (["-t", "host:cortex-b1"], "unknown chip 'cortex-b1' for target host"),
        (["-t", "nvvm", "--arch", "vax"], "unknown architecture 'vax'; there are: x86_64, aarch64"),
        (["-t", "host:neoverse-n1", "--runtime", "shared"], "a library for aarch64 carries its runtime"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(EXAMPLES / "saxpy.mlir"), "-o", str(tmp_path / "out.so"), *arguments]) in (1, 2)
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["build", str(EXAMPLES / "saxpy.mlir"), "-o", str(tmp_path / "out.so"), "-t", "host:aarch64"]
    sysroot._contents.cache_clear()
    monkeypatch.setattr(sysroot, "_CROSS_FOLDERS", ("/nowhere/{0}",))
    assert main(command) == 3
    assert "no C library for aarch64" in (said := capsys.readouterr().err) and "apt-get install libc6-arm64" in said
    monkeypatch.setattr(sysroot, "package_file", lambda name: offload.paths.package_file(f"{name}.lost"))
    assert main(command) == 3
    assert "has no runtime for aarch64" in capsys.readouterr().err


def test_where_proc_is_not_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysroot, "Path", lambda path: Path(f"/nowhere{path}"))
    with pytest.raises(offload.OffloadError, match=r"cannot read /nowhere/proc/self/maps: No .*; mount /proc here$"):
        sysroot._mapped()
