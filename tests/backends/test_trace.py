"""OFFLOAD_TRACE: what ran, read back from the file, on the CPU and over stand-in drivers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from compiling import python
from traces import calls, read

import offload

N = 100_000
PROGRAM = """
import os, sys, numpy, offload
library = offload.load(sys.argv[1])
library.use(sys.argv[2])
x = library.device.array(numpy.arange(100_000, dtype=numpy.float32))
y = library.device.zeros((100_000,), numpy.float32)
library.saxpy(2, x, y)
library.kernels.saxpy_kernel[391, 256](x, y, 2.0)
print(float(y.numpy()[1]))
"""


def works(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What streams of devices did, in order."""
    return sorted((event for event in events if event.get("cat") == "work"), key=lambda event: event["ts"])


def lanes(events: Iterable[dict[str, Any]], kind: str) -> dict[tuple[int, int], str]:
    return {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == kind
    }


def run(artifact: Path, backend: str, folder: Path, code: str = PROGRAM, **environment: str) -> list[dict[str, Any]]:
    path = folder / "trace.json"
    python(code, artifact, backend, cwd=folder, environment={"OFFLOAD_TRACE": str(path)} | environment)
    return read(path)


@pytest.mark.parametrize("backend", ["host", "cuda", "hip"])
def test_what_ran_is_there_in_order(drivers: Path, built: dict[str, Path], backend: str, tmp_path: Path) -> None:
    events = run(built["saxpy"], backend, tmp_path, LD_LIBRARY_PATH=str(drivers))
    made = [event for event in calls(events) if event["cat"] not in ("wait", "order")]
    assert [event["name"] for event in made] == [
        "allocate", "copy", "allocate", "set", "load module", "launch saxpy_kernel", "launch saxpy_kernel", "copy",
        "free", "free",
    ]  # fmt: skip
    assert [made[i]["args"]["bytes"] for i in (0, 1, 2, 3, 7)] == [4 * N] * 5
    for launch in made[5:7]:
        assert launch["args"]["grid"] == [391, 1, 1]
        assert launch["args"]["block"] == [256, 1, 1]
        assert launch["args"]["dynamic_memory"] == 0
        assert launch["args"]["device"] == f"{backend}:0"
    assert {event["args"]["address"] for event in made[8:]} == {made[i]["args"]["address"] for i in (0, 2)}
    assert any(event["name"] == "wait for stream" for event in calls(events))
    # The same work again where it ran, each on its call's stream.
    ran = works(events)
    assert [event["name"] for event in ran] == ["copy", "set", "saxpy_kernel", "saxpy_kernel", "copy"]
    streams = {event["args"]["call"]: event["args"]["stream"] for event in made if "stream" in event["args"]}
    assert all(event["args"]["stream"] == streams[event["args"]["call"]] for event in ran)


@pytest.mark.parametrize("backend", ["host", "cuda", "hip"])
def test_every_lane_has_its_name_and_no_overlap(
    drivers: Path, built: dict[str, Path], backend: str, tmp_path: Path
) -> None:
    events = run(built["saxpy"], backend, tmp_path, LD_LIBRARY_PATH=str(drivers))
    processes, threads = lanes(events, "process_name"), lanes(events, "thread_name")
    timed = [event for event in events if event["ph"] == "X"]
    assert {(event["pid"], event["tid"]) for event in timed} == set(threads)
    assert {event["pid"] for event in timed} == {process for process, _ in processes}
    chip = {"host": "host:0 ", "cuda": "cuda:0 Stand-in 0 (sm_90)", "hip": "hip:0 Stand-in 0 (gfx942"}[backend]
    (device,) = {event["pid"] for event in works(events)}
    assert processes[device, 0].startswith(chip)
    assert "main thread" in threads.values()
    ends: dict[int, float] = {}
    for event in works(events):
        assert event["dur"] >= 0
        assert event["ts"] + 0.002 >= ends.get(event["tid"], 0)
        assert threads[event["pid"], event["tid"]] == f"stream {event['args']['stream']}"
        ends[event["tid"]] = event["ts"] + event["dur"]


def test_blocks_are_in_the_lanes_of_their_threads(built: dict[str, Path], tmp_path: Path) -> None:
    events = run(built["saxpy"], "host", tmp_path)
    parts = [event for event in events if event.get("cat") == "blocks"]
    assert sum(part["args"]["blocks"] for part in parts) == 2 * 391
    (first, second) = [event for event in works(events) if event["name"] == "saxpy_kernel"]
    for part in parts:
        inside = second if part["ts"] >= second["ts"] else first
        assert inside["ts"] <= part["ts"]
        assert part["ts"] + part["dur"] <= inside["ts"] + inside["dur"] + 0.002


def test_a_thread_that_launches_is_no_worker(built: dict[str, Path], tmp_path: Path) -> None:
    code = PROGRAM.replace(
        "library.kernels.saxpy_kernel[391, 256](x, y, 2.0)",
        "import threading\n"
        "kernel = library.kernels.saxpy_kernel[391, 256]\n"
        "thread = threading.Thread(target=kernel, args=(x, y, 2.0))\n"
        "thread.start()\n"
        "thread.join()",
    )
    events = run(built["saxpy"], "host", tmp_path, code)
    names = lanes(events, "thread_name")
    launching = {names[event["pid"], event["tid"]] for event in calls(events) if event["cat"] == "launch"}
    assert len(launching) == 2
    assert "offload worker" not in launching


def test_threads_on_a_stream_do_not_overlap(built: dict[str, Path], tmp_path: Path) -> None:
    """A launch that waited for another thread's was there as if it had run all the while."""
    code = """
import sys, threading, numpy, offload
library = offload.load(sys.argv[1])
library.use(sys.argv[2])
x = library.device.zeros((4_000_000,), numpy.float32)
kernel = library.kernels.saxpy_kernel[15625, 256, library.stream()]

def launch():
    for _ in range(20):
        kernel(x, x, 2.0)

threads = [threading.Thread(target=launch) for _ in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
    ran = [event for event in works(run(built["saxpy"], "host", tmp_path, code)) if event["name"] == "saxpy_kernel"]
    assert len(ran) == 60
    assert len({event["tid"] for event in ran}) == 1
    for event, later in itertools.pairwise(ran):
        assert event["ts"] + event["dur"] <= later["ts"] + 0.002


def test_names_are_what_the_program_calls_them(tmp_path: Path) -> None:
    (tmp_path / "named.mlir").write_text("""
gpu.module @m {
  gpu.func @"größe" () kernel { gpu.return }
}
""")
    artifact = offload.build(tmp_path / "named.mlir", tmp_path / "named.so", targets=["host"])
    code = """
import sys, offload
library = offload.load(sys.argv[1])
library.use(sys.argv[2])
getattr(library.kernels, "größe")[1, 1]()
"""
    assert [event["name"] for event in works(run(artifact, "host", tmp_path, code))] == ["größe"]


def test_tracing_adds_no_wait_to_the_program(drivers: Path, built: dict[str, Path], tmp_path: Path) -> None:
    code = (
        PROGRAM
        + """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
driver.standin_log.restype = ctypes.c_char_p
print(driver.standin_log().decode())
"""
    )
    logs = [
        python(code, built["saxpy"], "cuda", cwd=tmp_path, environment={"LD_LIBRARY_PATH": str(drivers)} | extra)
        for extra in ({}, {"OFFLOAD_TRACE": str(tmp_path / "trace.json")})
    ]
    kinds = [[line.split()[0] for line in log.splitlines() if line] for log in logs]
    assert kinds[0] == kinds[1]  # marks are not in the log
    assert "sync" in kinds[0]


def test_default_streams_have_lanes_of_their_own(drivers: Path, built: dict[str, Path], tmp_path: Path) -> None:
    """The legacy one of CUDA and the thread's, which are other queues, were in one lane."""
    code = """
import sys, numpy, offload
library = offload.load(sys.argv[1])
library.use(sys.argv[2])
x = library.device.zeros(1000, numpy.float32)
for handle in (1, 2):
    library.kernels.saxpy_kernel[4, 256, library.stream(handle)](x, x, 2.0).wait()
"""
    events = run(built["saxpy"], "cuda", tmp_path, code, LD_LIBRARY_PATH=str(drivers))
    names = lanes(events, "thread_name")
    launches = [event for event in works(events) if event["name"] == "saxpy_kernel"]
    assert [names[event["pid"], event["tid"]] for event in launches] == ["stream 0x1", "stream 0x2"]


def test_work_that_is_put_off_is_where_it_ran(built: dict[str, Path], tmp_path: Path) -> None:
    events = run(built["saxpy"], "host", tmp_path, OFFLOAD_HOST_SCHEDULE="5")
    launches = {event["args"]["call"]: event for event in calls(events) if event["cat"] == "launch"}
    ran = {event["args"]["call"]: event for event in works(events) if event["args"]["call"] in launches}
    assert len(ran) == 2
    assert all(ran[call]["ts"] >= launches[call]["ts"] + launches[call]["dur"] for call in ran)


RACE = """
module attributes {gpu.container_module} {
gpu.module @m {
gpu.func @k(%x: memref<?xi32>, %digit: i32) kernel {
  %c0 = arith.constant 0 : index
  %ten = arith.constant 10 : i32
  %old = memref.load %x[%c0] : memref<?xi32>
  %shifted = arith.muli %old, %ten : i32
  %new = arith.addi %shifted, %digit : i32
  memref.store %new, %x[%c0] : memref<?xi32>
  gpu.return
}
}
func.func @f(%x: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %a = gpu.launch_func async @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    args(%x : memref<?xi32>, %one : i32)
  %b = gpu.launch_func async @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    args(%x : memref<?xi32>, %two : i32)
  %c = gpu.launch_func async @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    args(%x : memref<?xi32>, %three : i32)
  gpu.wait [%a, %b, %c]
  return
}
}
"""


def test_a_seed_means_the_same_order_with_a_trace(tmp_path: Path) -> None:
    """Three kernels that nothing orders, each adding its digit: the order in which they ran is in the results."""
    (tmp_path / "race.mlir").write_text(RACE)
    artifact = offload.build(tmp_path / "race.mlir", tmp_path / "race.so", targets=["host"])
    code = """
import sys, numpy, offload
library = offload.load(sys.argv[1])
library.use("host")
results = []
for _ in range(12):
    x = numpy.zeros(1, numpy.int32)
    library.f(x)
    results.append(int(x[0]))
print(results)
"""
    seen = set()
    for seed in ("2", "5", "12"):
        settings = {"OFFLOAD_HOST_SCHEDULE": seed}
        plain = python(code, artifact, cwd=tmp_path, environment=settings)
        traced = python(code, artifact, cwd=tmp_path, environment=settings | {"OFFLOAD_TRACE": "trace.json"})
        assert plain == traced
        seen.add(plain)
    assert len(seen) == 3
