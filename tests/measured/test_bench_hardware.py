"""bench/hardware: its kernels are compiled as they are meant to be, without spills and with wide loads; what it reports
becomes tables and a picture, and nothing where nothing was measured."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ROOT, emit, emit_text

import offload
from offload import artifact
from offload.errors import ToolkitError

sys.path.append(str(ROOT / "bench"))
import sass as sass_script
from hardware import first, launches, memory, ours, problems, products, sass
from host.engine import Missing

WIDE = {
    "triad": 8, "transpose": 4, "reduction": 5, "softmax": 8, "layer_norm": 16, "histogram": 5, "stencil": 4,
    "scan": 16, "spmv": 4,
}  # fmt: skip
"""Loads and stores of 16 bytes in the PTX of kernels that have some."""


def nvdisasm() -> bool:
    """Is it here?"""
    try:
        return bool(sass_script.tool("nvdisasm"))
    except ToolkitError:
        return False


def resources(program: Any, folder: Path) -> dict[str, Any]:
    (folder / "k.mlir").write_text(program.text)
    path = offload.build(folder / "k.mlir", folder / "k.so", targets=[program.targets[0]])
    found: dict[str, Any] = {}
    for image in artifact.describe(artifact.read(path))["images"]:
        found |= image["resources"]
    return found


@pytest.mark.parametrize("kernel", ours.KERNELS)
def test_kernels_do_not_spill_and_load_widely(kernel: str, tmp_path: Path) -> None:
    program = ours.kernel_program(kernel)
    for name, used in resources(program, tmp_path).items():
        assert (used["spill_store_bytes"], used["spill_load_bytes"]) == (0, 0), name
        assert used["registers"] <= 64, name  # four blocks of 256 threads at a time, or more
    text = emit_text(program.text, "isa", ["nvvm:sm_90"])
    assert len(re.findall(r"(?:ld|st)\.global(?:\.nc)?\.v4", text)) >= WIDE.get(kernel, 0)


@pytest.mark.skipif(not nvdisasm(), reason="no nvdisasm; pip install nvidia-cuda-nvdisasm")
def test_machine_code_of_products(tmp_path: Path) -> None:
    """Products of matrices follow one another: ptxas did not make them wait, none is waited for but the one before, and
    results are stored two at a time."""
    for element in ours.ELEMENTS:
        ((_, found),) = sass_script.of_program(ours.matmul_program(element), tmp_path)
        assert (found["spill_bytes"], found["local_accesses"]) == (0, 0)
        assert (found["loop_products"], found["full_waits"]) == (4, 0)
        assert (found["bulk_loads"], found["elections"]) == (5, 1)  # a loop around each load would elect in it
        assert found["between_products"] <= 12
        assert found["widest_store"] == 64
        assert (found["blocks"], found["warps"]) == (1, 12)


@pytest.mark.skipif(not nvdisasm(), reason="no nvdisasm; pip install nvidia-cuda-nvdisasm")
@pytest.mark.parametrize("kernel", WIDE)
def test_machine_code_of_streams(kernel: str, tmp_path: Path) -> None:
    """Accesses of 128 bits to global memory, nothing in local memory, and enough warps to have many under way."""
    found = dict(sass_script.of_program(ours.kernel_program(kernel), tmp_path))[kernel]
    assert found["widest_load"] == 128
    assert found["widest_store"] == {"reduction": 32, "histogram": 0, "spmv": 32}.get(kernel, 128)
    assert (found["spill_bytes"], found["local_accesses"]) == (0, 0)
    assert found["warps"] >= 40


SASS = """
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/                   HGMMA.64x256x16.F32 R24, gdesc[UR20].tnspB, R24 ;
        /*0030*/                   R2UR UR4, R0 ;
        /*0040*/                   HGMMA.64x256x16.F32 R24, gdesc[UR20].tnspB, R24, gsb0 ;
        /*0050*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0060*/               @P0 BRA `(.L_x_1) ;
        /*0070*/                   STL [R1], R4 ;
        /*0080*/                   STG.E desc[UR4][R2.64], R4 ;
        /*0090*/                   EXIT ;
.L_x_2:
        /*00a0*/                   BRA `(.L_x_2);
        /*00b0*/                   NOP;
"""


def test_what_is_read_of_machine_code() -> None:
    used = {"registers": 168, "shared_bytes": 8, "spill_store_bytes": 4, "spill_load_bytes": 0}
    found = sass.facts(sass.read(SASS)["k"], used, 384)
    assert found == {
        "registers": 168, "spill_bytes": 4, "local_accesses": 1, "shared_bytes": 8, "blocks": 1, "warps": 12,
        "widest_load": 128, "widest_store": 32, "accesses": 2, "instructions": 11, "loop": 6, "loop_loads": 1,
        "loop_products": 2, "between_products": 1, "full_waits": 1, "bulk_loads": 0,
        "elections": 0,
    }  # fmt: skip
    with pytest.raises(ValueError, match="no function"):
        sass.read("")


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "blocks"),
    [(32, 0, 256, 8), (33, 0, 256, 6), (255, 0, 256, 1), (16, 100 << 10, 128, 2), (16, 0, 32, 32)],
)
def test_blocks_that_fit_a_multiprocessor(registers: int, shared: int, threads: int, blocks: int) -> None:
    assert sass.resident(registers, shared, threads) == blocks


@pytest.mark.parametrize("element", ours.ELEMENTS)
def test_products_are_the_warpgroups_instructions(element: str, tmp_path: Path) -> None:
    program = ours.matmul_program(element)
    (used,) = resources(program, tmp_path).values()
    assert (used["spill_store_bytes"], used["spill_load_bytes"]) == (0, 0)
    assert used["registers"] == 168  # of 65536, for 384 threads; setmaxnreg gives them to those that multiply
    text = emit_text(program.text, "isa", ["nvvm:sm_90a"])
    for instruction in (
        f"wgmma.mma_async.sync.aligned.m64n256k16.f32.{element}.{element}",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "mbarrier.try_wait.parity", "setmaxnreg.inc.sync.aligned.u32 \t232", "setmaxnreg.dec.sync.aligned.u32 \t40",
        "wgmma.wait_group.sync.aligned \t1", "wgmma.wait_group.sync.aligned \t0",
    ):  # fmt: skip
        assert instruction in text, instruction


def test_descriptors_are_made_where_tokens_go_round_a_loop() -> None:
    """Host code that makes tensor descriptors and launches in a loop of its own."""
    text = emit_text(ours.matmul_program("f16").text, "host-llvm", ["nvvm:sm_90a"])
    assert text.count("call ptr @mgpuTensorMapEncodeTiledMemref(") == 2
    assert text.count("call void @mgpuKernelLaunch(") == 1
    assert [item.suffix for item in emit(launches.program().text, "object", ["nvvm:sm_90"])] == ["cubin"]


@pytest.mark.parametrize("kernel", list(problems.MEMORY)[1:])
def test_wrong_answers_are_found(kernel: str) -> None:
    problem = problems.MEMORY[kernel]("small")
    right = {name: np.array(values, problem.outputs[name].dtype) for name, values in problem.expected().items()}
    problem.check(right)
    for name, values in right.items():
        spoilt = values.copy()
        spoilt.flat[-1] = values.flat[-1] + max(1, np.abs(values).max() / 50)
        with pytest.raises(ValueError, match=rf"^{name}\[.*\] is .*, not "):
            problem.check({**right, name: spoilt})


def test_wrong_products_are_found() -> None:
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((128, 128), np.float32).astype(np.float16) for _ in range(2))
    right = a.astype(np.float32) @ b.astype(np.float32)
    products.check(right, a, b, "f16")
    products.check(right.astype(np.float16).astype(np.float32), a, b, "f16")
    with pytest.raises(ValueError, match="off by"):
        products.check(right + 1, a, b, "f16")
    right[0, 5] = np.nan
    with pytest.raises(ValueError, match="off by nan"):
        products.check(right, a, b, "f16")


def test_an_engine_with_wrong_answers_has_no_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Wrong:
        name = "wrong"

        def prepare(self, problem: Any) -> Any:
            return (lambda times: None), (lambda: {name: value + 1 for name, value in problem.outputs.items()})

    monkeypatch.setattr(memory, "engines", lambda names: ([Wrong()], {}))
    monkeypatch.setattr(memory, "MEMORY", {"copy": problems.copy})
    (found,) = memory.report(None, "host", "small", 1)
    assert "median" not in found["problems"][0]["engines"]["wrong"]
    assert found["wrong"][0].startswith("copy: wrong: out[")


class CompileError(Exception):
    """Of another package: no RuntimeError."""


class Failing:
    name = "failing"

    def __init__(self, *arguments: Any) -> None: ...

    def prepare(self, problem: Any) -> Any:
        raise CompileError("no such instruction")

    def product(self, *arguments: Any) -> Any:
        raise CompileError("no such instruction")

    layer = product


def test_an_engine_that_fails_costs_its_own_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever another package raises; a failure of ours is one of the stage."""

    class Ours:
        name = "offload"

        def __init__(self, *arguments: Any) -> None: ...

        def prepare(self, problem: Any) -> Any:
            raise offload.DeviceError("the context is lost", 1)

        def product(self, *arguments: Any) -> Any:
            raise offload.DeviceError("the context is lost", 1)

        layer = product

    for module in (memory, products):
        monkeypatch.setattr(module, "engines", lambda names: ([Failing()], {}))
        monkeypatch.setattr(module, "Ours", Ours)
    monkeypatch.setattr(products, "Linalg", Ours)
    monkeypatch.setattr(memory, "Tensors", Failing)
    monkeypatch.setattr(memory, "MEMORY", {"copy": problems.copy, "triad": problems.triad})
    monkeypatch.setattr(products, "SIDES", {"small": (8,)})
    why = "CompileError: no such instruction"
    found = list(memory.report(None, "cuda", "small", 1))
    assert len(found) == 2  # one for each problem, so that what is there can be kept
    assert found[-1]["missing"] == {"failing, copy": why, "failing, triad": why}
    assert found[-1]["wrong"] == ["triad: offload: the context is lost"]
    assert found[-1]["problems"][1]["engines"]["failing"] == {"failed": why}
    *_, last = products.report(None, "cuda", "small", 1)
    problems_of = [f"{element}, 8" for element in ours.LINALG_ELEMENTS]
    layers = [f"{element}, 2 rows" for element in ours.LAYER_ELEMENTS]
    assert last["missing"] == {f"failing, {problem}": why for problem in [*problems_of, *layers]}
    by_hand = [problem for element in ours.ELEMENTS for problem in problems_of if problem.startswith(element)]
    expected = sorted([*by_hand, *problems_of, *layers])
    assert sorted(last["wrong"]) == [f"{problem}: offload: the context is lost" for problem in expected]


def test_an_engine_that_cannot_start_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_engine.py").write_text(
        "class Solver:\n    name = 'broken'\n    def __init__(self): raise RuntimeError('nvcc fails')\n"
    )
    monkeypatch.setattr(sys.modules["hardware"], "__path__", [*sys.modules["hardware"].__path__, str(tmp_path)])
    assert memory.engines(["broken_engine"]) == ([], {"broken": "RuntimeError: nvcc fails"})


def test_a_program_that_never_ends_costs_its_own_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first, "SECONDS", 1)
    assert first.problem("import time; time.sleep(60)") == ({}, "it took longer than 1 s")
    assert first.problem("import no_such_package") == ({}, "No module named 'no_such_package'")
    assert first.problem("print('{\"first\": 2.5}')") == ({"first": 2.5}, "")
    fresh = "import json, os; print(json.dumps({'first': float(len(os.listdir(os.environ['CUPY_CACHE_DIR'])))}))"
    assert first.problem(fresh) == ({"first": 0.0}, "")


def test_without_a_c_compiler_c_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Store:
        def path(self, program: Any) -> Path:
            return tmp_path / "k.so"

    (tmp_path / "k.mlir").write_text(launches.program().text)
    offload.build(tmp_path / "k.mlir", tmp_path / "k.so", targets=["nvvm:sm_90"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match="no C compiler"):
        launches.with_c(Store(), 0, 1)
    (tmp_path / "cc").write_text("#!/bin/sh\necho no headers >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(Missing, match="cc fails: no headers"):
        launches.with_c(Store(), 0, 1)


def test_a_stage_that_is_ended_leaves_what_it_has_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def ended(*arguments: Any) -> Any:
        yield {"problems": ["first"], "missing": {}, "wrong": []}
        raise KeyboardInterrupt

    spec = importlib.util.spec_from_file_location("hardware_script", ROOT / "bench" / "hardware.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "where", lambda *arguments: {"driver": "1"})
    monkeypatch.setitem(script.STAGES, "kernels", ended)
    out = tmp_path / "kernels.json"
    with pytest.raises(KeyboardInterrupt):
        script.main(["kernels", "--artifacts", str(tmp_path), "--backend", "cuda", "--json", str(out)])
    found = json.loads(out.read_text())
    assert (found["problems"], found["unfinished"], found["driver"]) == (["first"], True, "1")


RESULT = {
    "date": "2030-01-01T00:00:00+00:00",
    "device": {"name": "NVIDIA Imaginary", "chip": "sm_90", "memory_bytes": 1 << 37, "backend": "cuda"},
    "driver": "1.2",
    "versions": {"offload": "0.1.0"},
    "missing": {"Triton": "no triton"},
    "wrong": [],
    "size": "large",
}
STAGES = {
    "kernels": {
        "copy": 4000.0,
        "problems": [
            {"kernel": "copy", "traffic": 8, "engines": {"torch": {"median": 1.0, "gigabytes_per_second": 4000.0}}},
            {
                "kernel": "triad", "traffic": 8, "engines": {
                    "offload": {"median": 1.0, "gigabytes_per_second": 3800.0},
                    "linalg": {"median": 1.0, "gigabytes_per_second": 3900.0},
                    "torch": {"median": 1.0, "gigabytes_per_second": 3600.0}, "CuPy": {"left_out": "no one operation"},
                },
            },
        ],
    },
    "matmul": {
        "problems": [
            {"kernel": "matmul f16", "side": 4096, "engines": {
                "offload": {"median": 1.0, "teraflops": 600.0}, "linalg": {"median": 1.0, "teraflops": 375.0},
                "torch": {"median": 1.0, "teraflops": 750.0}}},
        ],
        "layers": [
            {"kernel": "layer f16", "rows": 4, "engines": {
                "linalg": {"median": 1.0, "gigabytes_per_second": 2000.0},
                "torch": {"median": 1.0, "gigabytes_per_second": 2500.0}}},
        ],
    },
    "first": {"problems": [{"kernel": "triad", "engines": {"offload": {"import": 0.25, "first": 0.002}}}]},
    "launch": {"problems": [{"arrays": 4, "engines": {"offload": {"median": 2e-6}, "C": {"median": 1.5e-6}}}]},
}  # fmt: skip


def docs(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "docs_hardware.py", *arguments], cwd=out, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_the_documentation_has_what_was_measured(tmp_path: Path) -> None:
    for stage, found in STAGES.items():
        ended = {"unfinished": True} if stage == "matmul" else {}
        (tmp_path / f"{stage}.json").write_text(json.dumps({**RESULT, "stage": stage, **found, **ended}))
    (tmp_path / "summary.json").write_text(json.dumps({**RESULT, "bundle": {"commit": "0123abc"}}))
    outcomes = [("sparse/a", "passed", ""), ("sparse/b", "not run", "not in a library: b"), ("faults/c", "failed", "")]
    checked = [{"id": name, "outcome": outcome, "why": why} for name, outcome, why in outcomes]
    (tmp_path / "suite.json").write_text(json.dumps({"results": checked}))
    results, page = tmp_path / "results.json", tmp_path / "hardware.md"
    done = docs(tmp_path, "--take", str(tmp_path), "--results", str(results), "--page", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "Commit 0123abc." in text
    assert "| sparse | 1 | | 1 |\n| faults | | 1 | |\n" in text
    assert "Failed: faults/c." in text
    assert "Not run: not in a library (1)." in text
    assert text.count("offload 0.1.0") == 1
    assert "NVIDIA Imaginary, driver 1.2, 2030-01-01" in text
    assert "| triad | 3800 (0.95) | 3900 (0.97) | | 3600 (0.90) | - | | 1.06 |" in text
    assert "| matmul f16 | 4096 | 600 | 375 | 750 | 0.80 | 0.50 |" in text
    assert "| layer f16 | 4 | 2000 | 2500 | 0.80 |" in text
    assert "| 4 | 2.00 | 1.50 |" in text
    assert "| offload | 250.0 | 2.0 |" in text
    assert "Not measured: Triton (no triton)." in text
    assert text.count("The stage was ended before its last problem.") == 1
    assert "**NVIDIA**: measured on NVIDIA Imaginary, 2030-01-01." in text


def test_results_of_the_cpu_or_of_small_problems_are_not_taken(tmp_path: Path) -> None:
    for change, said in (
        ({"device": {**RESULT["device"], "backend": "host"}}, "ran on host"),  # type: ignore[dict-item]
        ({"size": "small"}, "of small problems"),
        ({"wrong": ["triad: offload: a[0] is 1, not 2"]}, "wrong answers"),
    ):
        (tmp_path / "kernels.json").write_text(
            json.dumps({**RESULT, "stage": "kernels", **STAGES["kernels"], **change})
        )
        done = docs(tmp_path, "--take", str(tmp_path), "--results", str(tmp_path / "r"), "--page", str(tmp_path / "p"))
        assert done.returncode == 1
        assert said in done.stderr
        assert not (tmp_path / "r").exists()


def test_the_page_is_made_from_the_results(tmp_path: Path) -> None:
    """Without results it says that nothing ran on hardware, and has no figure."""
    done = docs(tmp_path, "--page", str(tmp_path / "hardware.md"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "hardware.md").read_text() == (ROOT / "docs" / "hardware.md").read_text()
    done = docs(tmp_path, "--results", str(tmp_path / "none.json"), "--page", str(tmp_path / "hardware.md"))
    text = (tmp_path / "hardware.md").read_text()
    assert "not yet run on hardware" in text
    assert not re.search(r"\d+ (GB/s|TFLOP/s|µs)", text)
