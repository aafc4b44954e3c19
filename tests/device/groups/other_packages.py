"""Arrays and streams of torch, cupy, jax, Numba and cuda.core; launches captured into their graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from device.checks import CUDA, HOST, Check, NotRun
from device.groups.examples import numbers, program
from offload.runtime import Library

N = 1000


def operands() -> tuple[Any, Any, Any]:
    """x, y and 2 x + y."""
    x, y = numbers(N), numbers(N + 1)[:N].copy()
    return x, y, 2 * x + y


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def torch_with(library: Library) -> tuple[Any, str]:
    """torch, and where its tensors have to be for the library."""
    import torch

    if library.backend == CUDA and not torch.cuda.is_available():
        raise NotRun("torch without CUDA")
    return torch, "cuda" if library.backend == CUDA else "cpu"


def cupy_here() -> Any:
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NotRun("cupy without a device") from error
    return cupy


def torch_arrays(library: Library) -> None:
    torch, place = torch_with(library)
    x, y, expected = operands()
    there, out = torch.tensor(x, device=place), torch.tensor(y, device=place)
    library.saxpy(2.0, there, out)
    near(out.cpu().numpy(), expected)
    ours = library.device.array(x)
    near(torch.from_dlpack(ours).cpu().numpy(), x)


def torch_streams(library: Library) -> None:
    torch, _ = torch_with(library)
    x, y, expected = operands()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        there, out = torch.tensor(x, device="cuda"), torch.tensor(y, device="cuda")
        pending = library.kernels.saxpy_kernel[4, 256, stream](there, out, 2.0)
        more = out + 1  # torch's own work behind ours
    pending.wait()
    stream.synchronize()  # for torch's work behind ours
    near(more.cpu().numpy(), expected + 1)
    library.saxpy(2.0, there, out, stream=stream)
    near(out.cpu().numpy(), expected + 2 * x)


def torch_graphs(library: Library) -> None:
    torch, _ = torch_with(library)
    x, y, expected = operands()
    there, out = torch.tensor(x, device="cuda"), torch.tensor(y, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # the first launch of all: it loads the module in the capture
        kept = library.kernels.saxpy_kernel[4, 256, torch.cuda.current_stream()](there, out, 2.0)
    near(out.cpu().numpy(), y)
    for turn in range(1, 4):
        graph.replay()
        torch.cuda.synchronize()
        near(out.cpu().numpy(), y + 2 * turn * x)
    assert "graph" in repr(kept)
    near(expected, y + 2 * x)


def cupy_arrays(library: Library) -> None:
    cupy = cupy_here()
    x, y, expected = operands()
    there, out = cupy.asarray(x), cupy.asarray(y)
    library.saxpy(2.0, there, out)
    near(out.get(), expected)
    near(cupy.from_dlpack(library.device.array(x)).get(), x)
    near(cupy.asarray(library.device.array(x)).get(), x)


def cupy_streams_and_graphs(library: Library) -> None:
    cupy = cupy_here()
    x, y, expected = operands()
    there, out = cupy.asarray(x), cupy.asarray(y)
    stream = cupy.cuda.Stream(non_blocking=True)
    kernel = library.kernels.saxpy_kernel
    kernel[4, 256, stream](there, out, 2.0).wait()
    near(out.get(), expected)
    stream.begin_capture()
    kept = kernel[4, 256, stream](there, out, 2.0)
    graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    near(out.get(), expected + 2 * x)
    del kept


def jax_arrays(library: Library) -> None:
    import jax

    if library.backend == CUDA and jax.default_backend() != "gpu":
        raise NotRun("jax without CUDA")
    if library.backend == HOST:
        jax.config.update("jax_platforms", "cpu")
    x, y, expected = operands()
    there, out = jax.numpy.asarray(x), library.device.array(y)
    library.saxpy(2.0, there, out)
    near(out.numpy(), expected)
    near(np.asarray(jax.numpy.from_dlpack(out)), expected)


def numba_arrays(library: Library) -> None:
    from numba import cuda

    if not cuda.is_available():
        raise NotRun("numba without CUDA")
    x, y, expected = operands()
    there, out = cuda.to_device(x), cuda.to_device(y)
    stream = cuda.stream()
    library.kernels.saxpy_kernel[4, 256, stream](there, out, 2.0).wait()
    near(out.copy_to_host(), expected)


def cuda_core_streams(library: Library) -> None:
    try:
        from cuda.core import Device
    except ImportError:
        from cuda.core.experimental import Device

    device = Device(0)
    device.set_current()
    x, y, expected = operands()
    there, out = library.device.array(x), library.device.array(y)
    stream = device.create_stream()
    library.kernels.saxpy_kernel[4, 256, stream](there, out, 2.0).wait()
    near(out.numpy(), expected)
    assert library.device(device).index == 0


def own_streams(library: Library) -> None:
    x, y, expected = operands()
    there, out = library.device.array(x), library.device.array(y)
    stream = library.stream()
    kernel = library.kernels.saxpy_kernel
    kernel[4, 256, stream](there, out, 2.0).wait()
    near(out.numpy(), expected)

    async def awaited() -> None:
        await kernel[4, 256, stream](there, out, 2.0)

    asyncio.run(awaited())
    near(out.numpy(), expected + 2 * x)
    with stream:
        library.saxpy(2.0, there, out)
    library.saxpy.start(2.0, there, out).wait()
    near(out.numpy(), expected + 6 * x)
    # Copies wait for the stream, whatever is still on it.
    for _ in range(50):
        kernel[4, 256, stream](there, out, 1.0)
    np.testing.assert_allclose(out.numpy(), expected + 56 * x, rtol=1e-4, atol=1e-3)


def staging(library: Library) -> None:
    import offload

    x, y, expected = operands()
    library.saxpy(2.0, offload.stage(x, back=False), offload.stage(y))
    near(y, expected)
    pinned = library.device.pinned(N, np.float32)
    pinned[...] = x
    shared = library.device.managed(N, np.float32)
    shared.host_view()[...] = x
    library.saxpy(2.0, library.device.array(pinned), shared)
    near(shared.numpy(), 3 * x)


def occupancy(library: Library) -> None:
    known = library.kernels.saxpy_kernel.occupancy()
    assert known.blocks >= 1
    assert known.threads >= 1
    asked = library.kernels.saxpy_kernel.occupancy(256)
    assert asked.grid == asked.blocks * library.device.info.multiprocessors


CHECKS: tuple[tuple[str, Callable[[Library], None], tuple[str, ...], tuple[str, ...]], ...] = (
    ("torch: arrays", torch_arrays, ("torch",), (HOST, CUDA)),
    ("torch: streams", torch_streams, ("torch",), (CUDA,)),
    ("torch: graphs", torch_graphs, ("torch",), (CUDA,)),
    ("cupy: arrays", cupy_arrays, ("cupy",), (CUDA,)),
    ("cupy: streams and graphs", cupy_streams_and_graphs, ("cupy",), (CUDA,)),
    ("jax: arrays", jax_arrays, ("jax",), (HOST, CUDA)),
    ("numba: arrays and streams", numba_arrays, ("numba.cuda",), (CUDA,)),
    ("cuda.core: streams and devices", cuda_core_streams, ("cuda.core",), (CUDA,)),
    ("streams of ours", own_streams, (), (HOST, CUDA)),
    ("staging, pinned and shared memory", staging, (), (HOST, CUDA)),
    ("occupancy", occupancy, (), (HOST, CUDA)),
)


def checks() -> Iterator[Check]:
    for name, run, needs, backends in CHECKS:
        # A capture's first launch loads the module: a process of its own.
        yield Check("packages", name, [program("saxpy")], run, backends, needs, alone="graphs" in name)
