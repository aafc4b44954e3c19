"""How long until the first result in a fresh process. Apart: importing, opening the device, two arrays there and, for
ours, loading the library; then the first launch of a kernel: its module is loaded, compiled before (ours) or then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from device.checks import HOST
from device.store import Store

from hardware import ours

HERE = Path(__file__).resolve().parent
N = 4096
SECONDS = 45
"""That a program may take."""
COMMON = f"""
import json, sys, time
import numpy as np
begin = time.perf_counter()
n = {N}
b, c = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
"""
END = """
done = time.perf_counter()
assert (result == b + 3 * c).all()
print(json.dumps({"import": ready - begin, "first": done - ready}))
"""
PROGRAMS = {
    "offload": """
import offload
library = offload.load(sys.argv[1])
library.use(sys.argv[2])
there = [library.device.array(x) for x in (b, c)]
ready = time.perf_counter()
out = library.device.zeros(n, np.float32)
library.kernels.triad[n // 2048, 256](*there, out, 3.0)
result = out.numpy()
""",
    "CuPy RawKernel": """
import cupy
there = [cupy.asarray(x) for x in (b, c)]
ready = time.perf_counter()
out = cupy.zeros(n, cupy.float32)
source = '''extern "C" __global__ void triad(const float *b, const float *c, float *a) {
  int i = blockIdx.x * 256 + threadIdx.x;
  a[i] = b[i] + 3.0f * c[i];
}'''
cupy.RawKernel(source, "triad")((n // 256,), (256,), (*there, out))
result = out.get()
""",
    "Triton": """
import torch
from hardware import triton_kernels
there = [torch.from_numpy(x).cuda() for x in (b, c)]
ready = time.perf_counter()
out = torch.zeros(n, device="cuda")
triton_kernels.triad(*there, out)
result = out.cpu().numpy()
""",
    "numba-cuda": """
from numba import cuda
there = [cuda.to_device(x) for x in (b, c)]
ready = time.perf_counter()
@cuda.jit
def triad(b, c, a):
    i = cuda.grid(1)
    a[i] = b[i] + np.float32(3) * c[i]
out = cuda.device_array(n, np.float32)
triad[n // 256, 256](*there, out)
result = out.copy_to_host()
""",
}


def problem(code: str, *arguments: str) -> tuple[dict[str, float], str]:
    """Runs a program, without what it or the driver has compiled before: its figures, or why there are none."""
    command = [sys.executable, "-c", code, *arguments]
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TRITON_CACHE_DIR": folder, "CUPY_CACHE_DIR": folder, "CUDA_CACHE_DISABLE": "1"}
        try:
            done = subprocess.run(
                command, env=os.environ | caches, capture_output=True, text=True, check=False, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return {}, f"it took longer than {SECONDS} s"
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {}, said[-1].removeprefix("ModuleNotFoundError: ")[-400:]
    return dict(json.loads(done.stdout.splitlines()[-1])), ""


def report(store: Store, backend: str, size: str, turns: int) -> Iterator[dict[str, Any]]:
    """What is known after each package. Seconds: the least of several processes, since caches of files warm up."""
    row: dict[str, Any] = {}
    missing: dict[str, str] = {}
    wrong: list[str] = []
    path = store.path(ours.kernel_program("triad"))
    for name, program in PROGRAMS.items():
        if backend == HOST and name != "offload":
            missing[name] = "it is for GPUs"
            continue
        found: list[dict[str, float]] = []
        for _ in range(min(turns, 3)):
            taken, why = problem(COMMON + program + END, str(path), backend)
            if why and (name == "offload" or why.startswith("AssertionError")):
                wrong.append(f"{name}: {why}")
            elif why:  # another package's failure is not ours, and is told
                missing[name] = why
            if why:
                break
            found.append(taken)
        if found:
            row[name] = {key: min(each[key] for each in found) for key in found[0]}
        yield {"size": size, "problems": [{"kernel": "triad", "engines": row}], "missing": missing, "wrong": wrong}
    print("first result, ms:", *(f"{name} {1e3 * each['first']:.1f}" for name, each in row.items()), flush=True)
