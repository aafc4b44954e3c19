"""What a process with very many libraries needs: threads that go when idle, and no use of what runs out; and one with a
library of very many kernels."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from compiling import EXAMPLES, python

import offload
from offload.artifact.meta import KernelSignature, Metadata, Refused
from offload.runtime.library import Kernels
from offload.runtime.stubs import library_stub

RUN = """
import ctypes, os, sys, time, numpy, offload, offload.runtime  # whose extension takes a key
from concurrent.futures import ThreadPoolExecutor
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
key, libc = ctypes.c_uint(), ctypes.CDLL(None)
def next_key():
    failed = libc.pthread_key_create(ctypes.byref(key), None)
    return failed or (key.value, libc.pthread_key_delete(key))
for _ in range(int(sys.argv[2])):
    libc.pthread_key_create(ctypes.byref(key), None)
free = next_key()
library = offload.load(sys.argv[1])
library.use("host")
def call(value):
    x, y = numpy.arange(100_000, dtype=numpy.float32), numpy.ones(100_000, numpy.float32)
    for _ in range(20):
        library.saxpy(value, x, y)
    return bool((y == 20 * value * x + 1).all())
with ThreadPoolExecutor(4) as pool:
    print(all(pool.map(call, range(8))))
print(threads() > before)
for _ in range(100):
    if threads() == before:
        break
    time.sleep(0.1)
print(threads() == before)
print(call(1.0), next_key() == free)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="one processor: there are no other threads")
@pytest.mark.parametrize("taken", [0, 256, 2000])
def test_threads_go_and_keys_are_left_to_others(built: dict[str, Path], taken: int, tmp_path: Path) -> None:
    """A process has 1024. Libraries, which never go, took all: then matplotlib could not be imported, and OpenMP ended
    the process."""
    said = python(RUN, built["saxpy"], str(taken), cwd=tmp_path)
    assert said.split() == ["True"] * 4 + [str(taken > 0)]


ENDED = """
import ctypes, os, sys, threading, offload, offload.runtime
libc, key = ctypes.CDLL(None), ctypes.c_uint()
libc.pthread_self.restype = ctypes.c_void_p
for _ in range(int(sys.argv[2])):
    libc.pthread_key_create(ctypes.byref(key), None)
api, kept = offload.load(sys.argv[1])._native.api, []
def fail():
    kept.append((libc.pthread_self(), api.mgpuGetLastError() != 0))
    api.mgpuModuleLoad(b"nothing", 7)
for _ in range(5):
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
print(len({name for name, _ in kept}) < 5, any(failed for _, failed in kept))
api.mgpuModuleLoad(b"nothing", 7)
if not (child := os.fork()):
    os._exit(7 if api.mgpuGetLastError() else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), api.mgpuGetLastError() != 0)
"""


@pytest.mark.parametrize("taken", [0, 256])
def test_a_new_thread_begins_without_what_another_had(built: dict[str, Path], taken: int, tmp_path: Path) -> None:
    """The system names new threads as those that have ended; in the child of a fork a thread is who it was."""
    said = python(ENDED, built["saxpy"], str(taken), cwd=tmp_path).splitlines()[-2:]
    assert said == ["True False", "7 True"]


DESCRIPTORS = """
import os, sys, numpy, offload
def descriptors():
    return len(os.listdir("/proc/self/fd"))
libraries = [offload.load(path) for path in sys.argv[1:]]
before, x = descriptors(), numpy.ones((2, 3), numpy.float32)
for library in [*libraries, *libraries]:
    library.use("host")
    library.scale(2.0, x)
print(*numpy.unique(x), descriptors() - before)
"""


def test_libraries_hold_no_open_files(tmp_path: Path) -> None:
    """A process may open 1024 files, as most systems are set up, and load more libraries. Their kernels differ: the
    system's loader would take one for another if both came from one path."""
    times = (EXAMPLES / "scale.mlir").read_text()
    paths = []
    for number, text in enumerate([times, times.replace("arith.mulf", "arith.addf")] * 4):
        source = tmp_path / f"scale{number}.mlir"
        source.write_text(text)
        paths.append(offload.build(source, source.with_suffix(".so"), targets=["host"]))
    assert python(DESCRIPTORS, *paths, cwd=tmp_path).split() == ["766.0", "0"]


def test_many_kernels_are_told_apart_at_once() -> None:
    """Each was compared with all others: 8000 took 3 seconds to load."""
    compared = []

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return str.__eq__(self, other)

    count = 300
    known, silent = ([Name(f"{word}_{number}") for number in range(count)] for word in ("known", "silent"))
    metadata = Metadata(
        kernels=tuple(KernelSignature(name, "m") for name in known),
        refused=tuple(Refused(name, "m", "of its type") for name in silent),
    )
    kernels = Kernels(
        "k.so", dict.fromkeys((("m", name) for name in known), None), [("m", name) for name in silent], metadata
    )  # type: ignore[arg-type]
    assert len(kernels) == count
    assert len(kernels._silent) == 2 * count
    library_stub("k.so", metadata)
    assert len(compared) < 30 * count
