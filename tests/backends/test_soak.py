"""From Python, very often: calls, arrays, streams, and loading an artifact; nothing is left behind and the process does
not grow. The C runtime alone has its own soak in test_runtime_c.py.

An artifact's code stays in the process once it is loaded: threads and thread-end handlers run in it. Loading the same
file again finds it there, so what is tested is that a `Library` and all that was made from it can go."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import python

BEGIN = """
import gc, os, sys
import numpy as np
import offload

artifact, backend, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
x = np.arange(1000, dtype=np.float32)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024

def often(one):
    for i in range(times):
        if i == times // 10:
            gc.collect()
            start, blocks = resident(), sys.getallocatedblocks()
        one()
    gc.collect()
    print(resident() - start, sys.getallocatedblocks() - blocks)

def use(library):
    there, out = library.device.array(x), library.device.zeros(1000, np.float32)
    library.saxpy(2, there, out)
    stream = library.stream()
    library.kernels.saxpy_kernel[4, 256, stream](there, out, 0.5)
    with stream:
        library.saxpy(2, there, out)
    stream.synchronize()
    if backend == "host":
        assert (out.numpy() == 4.5 * x).all()
"""
CALLS = """
library = offload.load(artifact)
library.use(backend)
often(lambda: use(library))
"""
LOADS = """
def load():
    library = offload.load(artifact)
    library.use(backend)
    use(library)
load()
often(load)
library = offload.load(artifact)
"""
END = """
print(*(library._native.api.mgpuCount(what) for what in range(5)))
"""


@pytest.mark.parametrize("backend", ["host", "cuda", "hip"])
@pytest.mark.parametrize("program", ["calls", "loads"])
def test_soak(built: dict[str, Path], drivers: Path, full: bool, tmp_path: Path, program: str, backend: str) -> None:
    code = BEGIN + (CALLS if program == "calls" else LOADS) + END
    times = {"calls": (4_000, 200_000), "loads": (4_000, 20_000)}[program][full]
    environment = {"LD_LIBRARY_PATH": str(drivers)}
    said = python(code, built["saxpy"], backend, str(times), cwd=tmp_path, environment=environment, timeout=1800)
    grown, blocks, streams, events, pooled_streams, pooled_events, allocations = map(int, said.split())
    # Python takes memory a MiB at a time. Its blocks count what is alive and what free lists keep, hundreds that come
    # and go; one more with each turn would be 3,600 and more.
    assert grown <= 2048, f"{grown} KiB more at the end"
    assert blocks <= 1_500, f"{blocks} Python objects more at the end"
    # The thread's own stream, and the one of the device's memory while its library lives.
    assert streams <= (2 if program == "calls" else 1)
    assert (events, allocations) == (0, 0)
    assert pooled_streams <= 64  # core/handle.c keeps so many for the next that are made
    assert pooled_events <= 1  # what lets an array's memory go behind the work that used it
