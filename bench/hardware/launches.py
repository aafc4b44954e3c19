"""What a launch costs that nobody waits for, with 0, 4 and 16 arrays: ours beside other packages and C."""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from device.checks import HOST, Program
from device.store import Store
from host.engine import Missing

from offload import artifact

COUNTS = (0, 4, 16)
BATCH = 200
"""Launches between two waits: fewer than the driver's queue holds."""
SOURCE = Path(__file__).resolve().parents[1] / "peers" / "hardware" / "launch.c"
Step = Callable[[], object]


def program() -> Program:
    """A kernel that does nothing for each number of arrays."""
    kernels = "".join(
        f"gpu.func @k{count}({', '.join(f'%x{i}: memref<?xf32>' for i in range(count))}) kernel {{\ngpu.return\n}}\n"
        for count in COUNTS
    )
    return Program(f"gpu.module @empty {{\n{kernels}}}\n", ("nvvm:sm_90", "host"))


def costs(step: Step, wait: Step, batches: int) -> list[float]:
    """Seconds of a launch, per batch."""
    found = []
    for batch in range(-2, batches):
        start = time.perf_counter()
        for _ in range(BATCH):
            step()
        if batch >= 0:
            found.append((time.perf_counter() - start) / BATCH)
        wait()
    return found


def ours(store: Store, backend: str, count: int) -> tuple[Step, Step]:
    library = store.load(program(), backend)
    stream = library.stream()
    arrays = [library.device.zeros(32, "float32") for _ in range(count)]
    launch = library.kernels[f"k{count}"][1, 32, stream]
    return (lambda: launch(*arrays)), stream.synchronize


def _module(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise Missing(f"no {name}") from None


def _cuda(name: str) -> Any:
    module = _module(name)
    torch = _module("torch")
    if not torch.cuda.is_available():
        raise Missing(f"{name} without a device")
    return module


def source(count: int) -> str:
    """The kernel in CUDA C++."""
    arguments = ", ".join(f"float *x{i}" for i in range(count))
    return f'extern "C" __global__ void k({arguments}) {{}}'


def with_cupy(count: int) -> tuple[Step, Step]:
    cupy = _cuda("cupy")
    kernel = cupy.RawKernel(source(count), "k")
    arrays = tuple(cupy.zeros(32, "float32") for _ in range(count))
    return (lambda: kernel((1,), (32,), arrays)), cupy.cuda.get_current_stream().synchronize


def with_triton(count: int) -> tuple[Step, Step]:
    _cuda("triton")
    import torch

    from hardware import triton_empty

    kernel = getattr(triton_empty, f"k{count}")
    arrays = [torch.zeros(32, device="cuda") for _ in range(count)]
    return (lambda: kernel[(1,)](*arrays, num_warps=1)), torch.cuda.synchronize


def with_numba(count: int) -> tuple[Step, Step]:
    cuda = _module("numba.cuda")
    if not cuda.is_available():
        raise Missing("numba without a device")
    arguments = ", ".join(f"x{i}" for i in range(count))
    scope: dict[str, Any] = {}
    exec(f"def k({arguments}):\n    pass\n", scope)
    kernel, stream = cuda.jit(scope["k"]), cuda.stream()
    arrays = [cuda.device_array(32, "float32") for _ in range(count)]
    launch = kernel[1, 32, stream]
    return (lambda: launch(*arrays)), stream.synchronize


def with_cuda_core(count: int) -> tuple[Step, Step]:
    _cuda("cuda.core")
    try:
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    except ImportError:
        from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch
    import torch

    device = Device(0)
    device.set_current()
    made = Program(source(count), code_type="c++", options=ProgramOptions(arch="sm_90")).compile("cubin")
    kernel, stream = made.get_kernel("k"), device.create_stream()
    arrays = [torch.zeros(32, device="cuda").data_ptr() for _ in range(count)]
    config = LaunchConfig(grid=1, block=32)
    return (lambda: launch(stream, config, kernel, *arrays)), stream.sync


PEERS: dict[str, Callable[[int], tuple[Step, Step]]] = {
    "CuPy RawKernel": with_cupy, "Triton": with_triton, "numba-cuda": with_numba, "cuda.core": with_cuda_core,
}  # fmt: skip


def with_c(store: Store, count: int, batches: int) -> list[float]:
    """cuLaunchKernel from C, with the same kernel and its parameters. Raises Missing."""
    (image,) = [image for image in artifact.read(store.path(program())).images if image.target == "nvvm"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "launch.so"
        command = ["cc", "-O2", "-shared", "-fPIC", SOURCE, "-o", path, "-ldl"]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except FileNotFoundError:
            raise Missing("no C compiler") from None
        except subprocess.CalledProcessError as error:
            raise Missing(f"cc fails: {error.stderr.strip()[-300:]}") from None
        library = ctypes.CDLL(str(path))
        found = (ctypes.c_double * batches)()
        status = library.launch_costs(image.data, f"k{count}".encode(), 5 * count, batches, found)
    if status:
        raise Missing(f"CUDA's status is {status}" if status > 0 else "no driver")
    return [cost / 1e9 for cost in found]


def report(store: Store, backend: str, size: str, turns: int) -> Iterator[dict[str, Any]]:
    """What is known after each number of arrays."""
    batches = 3 * turns if size == "small" else 20 * turns
    missing: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for count in COUNTS:
        row: dict[str, Any] = {}

        def take(name: str, figures: Sequence[float], row: dict[str, Any] = row) -> None:
            row[name] = {"median": statistics.median(figures), "min": min(figures), "max": max(figures)}

        take("offload", costs(*ours(store, backend, count), batches))
        for name, make in PEERS.items():
            try:
                take(name, costs(*make(count), batches))
            except Missing as why:
                missing[name] = str(why)
            except Exception as error:  # another package's failure is not ours, and is told
                row[name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        try:
            if backend == HOST:
                raise Missing("it is for NVIDIA's driver")
            take("C", with_c(store, count, batches))
        except Missing as why:
            missing["C"] = str(why)
        rows.append({"arrays": count, "engines": row})
        print(count, *(f"{name} {1e6 * each.get('median', 0):.2f}" for name, each in row.items()), flush=True)
        yield {"size": size, "problems": rows, "missing": missing, "wrong": []}
