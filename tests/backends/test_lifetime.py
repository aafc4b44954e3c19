"""Forks, threads and ends of processes, on the CPU and on stand-in drivers: a child of a fork gets a clear error,
its parent goes on; the interpreter, the artifact and the driver go down in any order without a crash or a word."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import HERE

BEGIN = """
import atexit, gc, os, sys, threading, time
import numpy as np
from stage import attempt, backend, open_driver, open_library, offload

library = open_library()
driver = open_driver(library) if backend != "host" else None

def work():
    return attempt(library, "saxpy")

def hold():  # arrays, a stream and work on it, which nobody gives back
    global held
    x, y = library.device.array(np.ones(1000, np.float32)), library.device.zeros(1000, np.float32)
    stream = library.stream()
    library.kernels.saxpy_kernel[4, 256, stream](x, y, 2.0)
    held = x, y, stream

def in_child(run):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        run()
        sys.exit(0)  # with all that the end of an interpreter does
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def forked():
    said = work()
    if backend == "host":
        assert said == "right", said
    else:
        wanted = "This process was forked after " + backend.upper() + " had been used"
        assert said.startswith("DeviceError: " + wanted) and "spawn" in said, said
"""
PROGRAMS = {
    "fork before first use": """
def first():
    assert work() == "right"
for _ in range(3):
    assert in_child(first) == 0
assert work() == "right"
""",
    "fork after use": """
assert work() == "right"
hold()
for _ in range(3):
    assert in_child(forked) == 0
    assert in_child(lambda: [forked(), forked()]) == 0
    assert in_child(lambda: None) == 0
    assert work() == "right"
""",
    "a child of a child": """
assert work() == "right"
def child():
    forked()
    assert in_child(forked) == 0
assert in_child(child) == 0
assert work() == "right"
""",
    "fork while threads work": """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about exactly this
stop, wrong = threading.Event(), []
def busy():
    while not stop.is_set():
        said = work()
        if said != "right":
            wrong.append(said)
threads = [threading.Thread(target=busy) for _ in range(4)]
for thread in threads:
    thread.start()
assert work() == "right"
for _ in range(10):
    assert in_child(forked) == 0
stop.set()
for thread in threads:
    thread.join()
assert not wrong, wrong[0]
assert work() == "right"
""",
    "end with all alive": "assert work() == 'right'\nhold()\n",
    "end by an exception": "hold()\ntry:\n    raise SystemExit(0)\nfinally:\n    assert work() == 'right'\n",
    "end without goodbye": "hold()\nos._exit(0)\n",
    "end in a cycle": """
hold()
class Cycle:
    pass
cycle = Cycle()
cycle.self, cycle.held, cycle.library = cycle, held, library
""",
    "arrays outlive their library": """
hold()
x = held[0]
del library
gc.collect()
assert (x.numpy() == 1).all()
""",
    "end while daemons call": """
def busy():
    while True:
        work()
for _ in range(4):
    threading.Thread(target=busy, daemon=True).start()
time.sleep(0.2)
""",
    "end of main before its threads": """
def late():
    time.sleep(0.3)
    assert work() == "right"
threading.Thread(target=late).start()
""",
    "exit without goodbye while threads call": """
def busy():
    while True:
        work()
for _ in range(4):
    threading.Thread(target=busy, daemon=True).start()
time.sleep(0.2)
os._exit(0)
""",
    "handlers at exit call": """
def last():
    said = work()
    print(said, file=sys.stderr if said != "right" else sys.stdout)
atexit.register(last)
hold()
atexit.register(last)
""",
    "loaded in a thread": """
done = []
def load():
    global library, driver
    library = open_library()
    done.append(work())
    hold()
thread = threading.Thread(target=load)
thread.start()
thread.join()
assert done == ["right"], done
assert work() == "right"
""",
    "the driver is gone first": """
assert work() == "right"
hold()
if driver:  # every call of the driver answers from now on that it has shut down
    atexit.register(driver.standin_fail, 4)
""",
}


@pytest.mark.parametrize("backend", ["host", "cuda", "hip"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_process(built: dict[str, Path], drivers: Path, tmp_path: Path, name: str, backend: str) -> None:
    copy = shutil.copy(built["saxpy"], tmp_path / "copy.so")
    words = [built["saxpy"], copy, drivers / "kernels.so", backend]
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + PROGRAMS[name], *words],
        env=os.environ
        | {"LD_LIBRARY_PATH": str(drivers), "PYTHONPATH": f"{HERE / 'standin'}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if name == "handlers at exit call":
        assert done.stdout.split() == ["right", "right"]
