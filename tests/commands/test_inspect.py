"""``offload inspect``: what it tells of an artifact as JSON and as text, its images as files and as machine code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES, command
from offload.targets import registry

import offload

SAXPY = EXAMPLES / "saxpy.mlir"
HOST_CHIP = registry().get("host").default_chip()
ARGUMENT_KEYS = ["name", "kind", "dtype", "rank", "shape"]


def inspected(path: Path, tmp_path: Path) -> Any:
    done = command("inspect", path, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_inspect_as_json(built: dict[str, Path], tmp_path: Path) -> None:
    found = inspected(built["saxpy"], tmp_path)
    assert list(found) == ["functions", "kernels", "images", "producer"]
    (function,), (kernel,) = found["functions"], found["kernels"]
    assert list(function) == ["name", "args", "results"]
    assert list(kernel) == ["name", "module", "args"]
    for argument in (*function["args"], *kernel["args"]):
        assert list(argument) == ARGUMENT_KEYS
    assert function == {
        "name": "saxpy",
        "args": [
            {"name": "a", "kind": "scalar", "dtype": "float32", "rank": 0, "shape": []},
            {"name": "x", "kind": "memref", "dtype": "float32", "rank": 1, "shape": [None]},
            {"name": "y", "kind": "memref", "dtype": "float32", "rank": 1, "shape": [None]},
        ],
        "results": [],
    }
    assert (kernel["name"], kernel["module"]) == ("saxpy_kernel", "saxpy_kernel")
    for image in found["images"]:
        assert list(image) == ["target", "chip", "format", "size", "kernels", "resources"]
        assert image["kernels"] == ["saxpy_kernel"]
        assert image["format"] == "bin"
        assert image["size"] > 500
    assert [(i["target"], i["chip"]) for i in found["images"]] == [
        ("nvvm", "sm_90"), ("rocdl", "gfx942"), ("host", HOST_CHIP),
    ]  # fmt: skip
    assert {"registers", "shared_bytes", "spill_store_bytes"} <= set(found["images"][0]["resources"]["saxpy_kernel"])
    assert {"vgpr", "sgpr"} <= set(found["images"][1]["resources"]["saxpy_kernel"])
    assert found["producer"]["offload"] == offload.__version__
    assert found["producer"]["llvm"].startswith("22.")


def test_inspect_as_text(built: dict[str, Path], tmp_path: Path) -> None:
    done = command("inspect", built["saxpy"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{built['saxpy']}: made by llvm 22.")
    assert "  saxpy(a: float32, x: float32[?], y: float32[?]) -> None" in lines
    assert any(line.startswith("  saxpy_kernel           ") and " nvvm " in line for line in lines)
    assert any(line.startswith("      saxpy_kernel: ") and "registers " in line for line in lines)


FOR_C = """
func.func @lanes(%v: vector<4xf32>) -> vector<4xf32> { return %v : vector<4xf32> }
func.func @plain(%v: f32) -> f32 { return %v : f32 }
func.func @narrow(%a: f32, %x: memref<8xi4>) { return }
gpu.module @m { gpu.func @k(%x: memref<?xvector<4xf32>>, %n: i7) kernel { gpu.return } }
"""


def test_inspect_names_what_python_cannot_call(tmp_path: Path) -> None:
    (tmp_path / "c.mlir").write_text(FOR_C)
    path = offload.build(tmp_path / "c.mlir", tmp_path / "c.so", targets="host")
    lines = command("inspect", path, cwd=tmp_path).stdout.splitlines()
    lanes, narrow = "vector<4xf32> of argument 'v' (1 of 1)", "memref<8xi4> of argument 'x' (2 of 2)"
    packed = "memref<?xvector<4xf32>> of argument 'x' (1 of 2)"
    assert lines[1:6] == [
        "functions:",
        "  plain(v: float32) -> float32",
        f"  for C alone: lanes ({lanes}), narrow ({narrow})",
        "kernels:",
        f"  m::k: for host code alone, with a type that has no counterpart in Python ({packed})",
    ]
    assert inspected(path, tmp_path)["without_signature"] == {
        "functions": ["lanes", "narrow"],
        "kernels": [{"name": "k", "module": "m"}],
        "why": [
            {"name": "lanes", "module": "", "why": lanes},
            {"name": "narrow", "module": "", "why": narrow},
            {"name": "k", "module": "m", "why": packed},
        ],
    }
    library = offload.load(path)
    told = f"^c.so has a function 'narrow' with a type that has no counterpart in Python: {re.escape(narrow)}; it is"
    with pytest.raises(AttributeError, match=told):
        library.narrow(1)
    told = f"has a kernel 'k' that Python .* whose type has no counterpart there, {re.escape(packed)}: launch it from"
    with pytest.raises(AttributeError, match=told):
        library.kernels.k(1)


def test_resources_are_those_of_kernels_alone(tmp_path: Path) -> None:
    """ptxas reports on functions of libdevice that it leaves as calls, too."""
    (tmp_path / "power.mlir").write_text("""
gpu.module @m {
  gpu.func @power(%x: memref<?xf64>, %e: f64) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf64>
    %r = math.powf %v, %e : f64
    memref.store %r, %x[%t] : memref<?xf64>
    gpu.return
  }
}
""")
    path = offload.build(tmp_path / "power.mlir", tmp_path / "power.so", targets=["nvvm:sm_90", "rocdl:gfx942", "host"])
    for image in inspected(path, tmp_path)["images"]:
        assert list(image["resources"]) == image["kernels"] == ["power"]


def test_inspect_extracts_images(built: dict[str, Path], tmp_path: Path) -> None:
    done = command("inspect", built["linear"], "--extract", "images", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    names = {path.name for path in (tmp_path / "images").iterdir()}
    modules = {image.module for image in offload.load(built["linear"]).metadata.images}
    suffixes = ("nvvm.sm_90.cubin", "rocdl.gfx942.hsaco", f"host.{HOST_CHIP}.o")
    assert names == {f"{module}.{suffix}" for module in modules for suffix in suffixes}
    assert set(done.stdout.splitlines()) == {f"images/{name}" for name in names}
    done = command("inspect", built["linear"], "--extract", "images", "--json", cwd=tmp_path)
    assert len(json.loads(done.stdout)["images"]) == len(names)


def test_inspect_disassembles(tmp_path: Path) -> None:
    targets = ["rocdl:gfx942", "rocdl:gfx90a,format=fatbin", "host", "nvvm:sm_90,format=isa"]
    path = offload.build(SAXPY, tmp_path / "saxpy.so", targets=targets)
    done = command("inspect", path, "--disassemble", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("file format elf64-amdgpu") == done.stdout.count("s_endpgm") == 2
    assert "v_fma" in done.stdout or "v_mul_f32" in done.stdout or "v_pk" in done.stdout
    assert ".visible .entry saxpy_kernel" in done.stdout
    assert "mulss" in done.stdout or "fmul" in done.stdout or "mulps" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_inspect_that_is_ended_leaves_nothing(number: int, tmp_path: Path) -> None:
    """Neither its temporary files nor the disassembler, which here takes its time."""
    (tmp_path / "bin").mkdir()
    for name in ("llvm-objdump-22", "llvm-objdump"):
        slow = tmp_path / "bin" / name
        slow.write_text("#!/bin/sh\necho $$ > pid.part && mv pid.part pid\nexec sleep 600\n")
        slow.chmod(0o755)
    (tmp_path / "temporary").mkdir()
    variables = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(tmp_path / "temporary")}
    library = offload.build(SAXPY, tmp_path / "saxpy.so", targets=["host"])
    with subprocess.Popen(
        [sys.executable, "-m", "offload", "inspect", "--disassemble", library],
        cwd=tmp_path,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
    ) as running:
        deadline = time.monotonic() + 60
        while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(number)
        assert running.wait(60) == 128 + number
    disassembler = Path("/proc", (tmp_path / "pid").read_text().strip())
    while disassembler.exists() and time.monotonic() < deadline:  # init may take its time to forget what has ended
        time.sleep(0.01)
    assert not disassembler.exists()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_inspect_without_a_disassembler_is_exit_code_three(built: dict[str, Path], tmp_path: Path) -> None:
    given = {"PATH": str(tmp_path), "CUDA_HOME": str(tmp_path)}
    done = command("inspect", built["saxpy"], "--disassemble", cwd=tmp_path, environment=given)
    assert done.returncode == 3
    assert done.stderr == (
        f"offload: error: cuobjdump (CUDA) was not found\n  looked in:\n    CUDA_HOME: {tmp_path}/bin/cuobjdump\n"
        "    nowhere else, because CUDA_HOME is set\n  to get it: pip install nvidia-cuda-cuobjdump "
        "nvidia-cuda-nvdisasm, or set CUDA_HOME to a CUDA toolkit\n"
    )


def test_inspect_finds_the_vendors_disassembler_in_its_toolkit(built: dict[str, Path], tmp_path: Path) -> None:
    """Where its wheel puts it, too, which is not on PATH; and LLVM's for the others."""
    program = tmp_path / "bin" / "cuobjdump"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "of the toolkit: $1 ${2##*/}"\n')
    program.chmod(0o755)
    done = command("inspect", built["saxpy"], "--disassemble", cwd=tmp_path, environment={"CUDA_HOME": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert "of the toolkit: -sass saxpy_kernel.nvvm.sm_90.cubin" in done.stdout
    assert "v_fma" in done.stdout or "v_mul_f32" in done.stdout or "v_pk" in done.stdout


def test_inspect_takes_the_disassembler_alone_for_plain_images(built: dict[str, Path], tmp_path: Path) -> None:
    """nvdisasm is a wheel of its own, and many have it without cuobjdump; it reads no fat binaries."""
    program = tmp_path / "bin" / "nvdisasm"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "alone: $1 ${2##*/}"\n')
    program.chmod(0o755)
    done = command("inspect", built["saxpy"], "--disassemble", cwd=tmp_path, environment={"CUDA_HOME": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert "alone: --print-code saxpy_kernel.nvvm.sm_90.cubin" in done.stdout
    path = offload.build(SAXPY, tmp_path / "fat.so", targets=["nvvm:sm_90,format=fatbin"])
    done = command("inspect", path, "--disassemble", cwd=tmp_path, environment={"CUDA_HOME": str(tmp_path)})
    assert done.returncode == 3
    assert done.stderr.startswith("offload: error: cuobjdump (CUDA) was not found\n")


@pytest.mark.parametrize("where", ["/proc/images", "file"])
def test_inspect_extracts_into_no_folder(where: str, built: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = command("inspect", built["saxpy"], "--extract", where, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"offload: error: cannot write into {where}: ")
