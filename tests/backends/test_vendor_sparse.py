"""Sparse operations through the vendors' libraries, with stand-ins of these: every case of tests/operations that the
CPU runs, against NumPy; what a library does not have is its own answer, in Python; nothing is left behind."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiling import HERE, ROOT
from operations import sparse, sparse_handles

LIBRARIES = {
    "libcuda": ".so.1",
    "libcusparse": ".so.12",
    "libcusparseLt": ".so.0",
    "libamdhip64": ".so.6",
    "libhipsparse": ".so.4",
}
CASES = [f"{case.op}, {case.form}" for case in (*sparse.CASES, *sparse_handles.CASES) if case.run]

NOT_SUPPORTED = "STATUS_NOT_SUPPORTED (10): operation not supported."


def refusal(backend: str, case: str) -> tuple[str, ...]:
    """What the backend says to a case, in parts; nothing where it computes."""
    op, _, form = case.partition(", ")
    call, status = ("cusparse", "CUSPARSE_") if backend == "cuda" else ("hipsparse", "HIPSPARSE_")
    answer = f"failed with {status}{NOT_SUPPORTED}"
    library = "cuSPARSE" if backend == "cuda" else "hipSPARSE"
    if "2to4" in op or "2:4" in form:
        if backend == "hip":
            return ("hipSPARSE has no 2:4 sparse matrices",)
        return ("cuSPARSELt multiplies i8 with A as it is and B transposed",) if form == "i8 to i32, pruned" else ()
    if form == "indices i16":
        return (f"{call}SpMV_bufferSize", answer)
    if op in ("gpu.spmv", "gpu.spmm", "gpu.sddmm") and form.split(", ")[-1] == "i32":
        name = {"gpu.spmv": "SpMV", "gpu.spmm": "SpMM", "gpu.sddmm": "SDDMM"}[op]
        return (f"{call}{name}_bufferSize", answer)
    if op == "gpu.sddmm" and "conjugate" in form and not form.startswith("f"):
        return (f"{library} has no SDDMM with a conjugated operand: conjugate its values in memory",)
    if op == "gpu.spmv" and ((form.startswith("bsr") and "transpose" in form) or form == "f32 to complex<f32>"):
        return (f"{call}SpMV_bufferSize", answer)
    sampled = ("csr", "csc", "bsr") if backend == "cuda" else ("csr", "csc", "coo", "coo_aos")
    if op == "gpu.sddmm" and form.endswith(", f64") and form.removesuffix(", f64") not in sampled:
        return (f"{call}SDDMM_bufferSize", answer)
    if op.startswith("gpu.spgemm") and ("transpose" in form or form == "of COO and CSC, f64"):
        return (f"{call}SpGEMM_workEstimation", answer)
    if form == "onto entries of its own, i32 indices":
        return (f"On {backend} an SpGEMM computes into a matrix without entries; this one has 11.",)
    return ()


def make(source: str, to: Path) -> None:
    command = ["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-I", ROOT / "runtime_c", HERE / "standin" / source]
    subprocess.run([*command, "-o", to], check=True)


Drive = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Drive:
    """Runs cases on a backend with the stand-ins; all of them once."""
    folder = tmp_path_factory.mktemp("libraries")
    for name, suffix in LIBRARIES.items():
        make(f"{name}.c", folder / f"{name}{suffix}")

    def run(backend: str, *names: str, **environment: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, HERE / "standin" / "drive_sparse.py", backend, *names],
            env=os.environ | {"LD_LIBRARY_PATH": str(folder)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    once = functools.cache(run)
    return lambda *arguments, **environment: (run if environment else once)(*arguments, **environment)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_case(drive: Drive, backend: str, case: str) -> None:
    said, expected = drive(backend)["said"][case], refusal(backend, case)
    assert all(part in said for part in expected), said
    assert expected or said == ""


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_nothing_is_left(drive: Drive, backend: str) -> None:
    """No handle and no descriptor of a library, after all cases, with the ones that were refused."""
    left = drive(backend)["left"]
    assert left
    assert all(counts == [0, 0] for counts in left.values())


ONE_OF_EACH = (
    "gpu.spmv, sync", "gpu.spmm, async", "gpu.sddmm, async, after one", "gpu.spgemm_copy, async, after several",
    "gpu.create_coo, sync", "gpu.create_coo_aos, sync", "gpu.create_csc, sync", "gpu.create_bsr, sync",
)  # fmt: skip


@pytest.mark.parametrize("backend", ["cuda", "hip"])
@pytest.mark.parametrize(
    ("function", "first"),
    [
        ("Create", 0), ("SetStream", 0), ("CreateCsr", 0), ("CreateCoo", 4), ("CreateCsc", 6), ("CreateBsr", 7),
        ("CreateDnVec", 0), ("CreateDnMat", 1), ("SpMV_bufferSize", 0), ("SpMV", 0), ("SpMM_bufferSize", 1),
        ("SpMM", 1), ("SDDMM_bufferSize", 2), ("SDDMM", 2), ("SpGEMM_createDescr", 3), ("SpGEMM_workEstimation", 3),
        ("SpGEMM_compute", 3), ("SpMatGetSize", 3), ("CsrSetPointers", 3), ("SpGEMM_copy", 3), ("DestroySpMat", 0),
        ("DestroyDnVec", 0), ("DestroyDnMat", 1), ("SpGEMM_destroyDescr", 3),
    ],
)  # fmt: skip
def test_a_call_that_fails_is_an_exception(drive: Drive, backend: str, function: str, first: int) -> None:
    """The exception has the call, the status and its text; programs that do not need the call run."""
    prefix, status = ("cusparse", "CUSPARSE_") if backend == "cuda" else ("hipsparse", "HIPSPARSE_")
    seen = drive(backend, *ONE_OF_EACH, STANDIN_SPARSE_FAIL=f"{prefix}{function} 6 1")
    message = f"{prefix}{function} failed with {status}STATUS_EXECUTION_FAILED (6): stand-in."
    said = [seen["said"][case] for case in ONE_OF_EACH]
    assert said[first] == message
    assert set(said[:first]) <= {""}
    assert set(said) <= {"", message}
    assert all(counts == [0, 0] for counts in seen["left"].values())


@pytest.mark.parametrize(
    "function",
    ["cusparseLtInit", "cusparseLtStructuredDescriptorInit", "cusparseLtDenseDescriptorInit",
     "cusparseLtMatmulDescriptorInit", "cusparseLtMatmulAlgSelectionInit", "cusparseLtMatmulPlanInit",
     "cusparseLtSpMMAPrune", "cusparseLtSpMMAPruneCheck", "cusparseLtMatmulGetWorkspace",
     "cusparseLtSpMMACompressedSize", "cusparseLtSpMMACompress", "cusparseLtMatmul", "cusparseLtMatmulPlanDestroy",
     "cusparseLtMatmulAlgSelectionDestroy", "cusparseLtMatDescriptorDestroy"],
)  # fmt: skip
def test_a_call_for_2to4_matrices_that_fails_is_an_exception(drive: Drive, function: str) -> None:
    case = "gpu.create_2to4_spmat, sync"
    seen = drive("cuda", case, STANDIN_SPARSE_FAIL=f"{function} 2 1")
    assert seen["said"][case] == f"{function} failed with CUSPARSE_STATUS_ALLOC_FAILED (2): stand-in."
    assert all(counts == [0, 0] for counts in seen["left"].values())


def wheel(library: str) -> Path:
    """A library as pip installs it; skips where it is not installed."""
    folders = [Path(entry) / "nvidia" / folder / "lib" for entry in sys.path for folder in ("cu13", "cusparselt")]
    for folder in folders:
        if (folder / library).is_file():
            return folder / library
    pytest.skip(f"{library} is not installed; pip install 'offload[sparse]'")


@pytest.mark.parametrize(
    ("library", "list", "prefix", "least"),
    [("libcusparse.so.12", "sparse/gpu.def", "cusparse", 25), ("libcusparseLt.so.0", "cuda/cusparselt.def", "", 16)],
)
def test_the_vendor_exports_every_function(library: str, list: str, prefix: str, least: int) -> None:
    text = "".join(f"#define {kind}(name, ...) @name\n" for kind in ("SPARSE_FUNCTION", "LT_FUNCTION"))
    text += "".join(
        f"#define {kind}(name, ...) @name\n" for kind in ("SPARSE_OPTIONAL", "SPARSE_TEXT", "LT_OPTIONAL", "LT_TEXT")
    )
    text += f'#include "{ROOT / "runtime_c" / list}"\n'
    output = subprocess.run(["cc", "-E", "-P", "-"], input=text, capture_output=True, text=True, check=True).stdout
    names = {prefix + word[1:] for word in output.split() if word.startswith("@")}
    symbols = subprocess.run(["nm", "-D", "--defined-only", wheel(library)], capture_output=True, text=True, check=True)
    exported = {line.split()[-1].partition("@")[0] for line in symbols.stdout.splitlines()}
    assert len(names) > least
    assert names - exported == set()


def test_the_vendor_is_found_beside_the_packages_in_use(tmp_path: Path) -> None:
    """No driver that it could work with is here: its answer says that it was loaded and called."""
    wheel("libcusparse.so.12")
    make("libcuda.c", tmp_path / "libcuda.so.1")
    code = """
import offload, sparse_programs
library = offload.compile(sparse_programs.spmv(), targets=["host"])
library.use("cuda")
try:
    sparse_programs.run_spmv()(library)
except offload.DeviceError as error:
    print(error)
"""
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join([*sys.path, str(HERE)])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("cusparseCreate failed with CUSPARSE_STATUS_"), done.stdout + done.stderr
