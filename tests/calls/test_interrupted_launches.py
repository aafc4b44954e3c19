"""Signals that come while the extension launches: what the kernel uses is kept. And what other threads may be at in the
meantime, where there is no extension: collections of garbage, forks."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import EXAMPLES, python

import offload
from offload.runtime import FAST

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return offload.build(SAXPY, tmp_path_factory.mktemp("saxpy") / "saxpy.so", targets=["host"])


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import offload

class Told(Exception):
    pass

error = {"KeyboardInterrupt": KeyboardInterrupt, "Told": Told}[sys.argv[2]]
library = offload.load(sys.argv[1])
library._native.api.mgpuHostSchedule(7)
stream, x = library.stream(), np.ones(8, np.float32)
launch = library.kernels.saxpy_kernel[1, 256, stream]
for _ in range(5):  # now it has its plan
    launch(x, np.ones(8, np.float32), 2.0).wait()
armed = ended = False

def raises(number, frame):
    global armed
    if armed:
        armed = False
        raise error

def send():
    while not ended:
        time.sleep(0.0002)
        os.kill(os.getpid(), signal.SIGUSR1)

def interrupted(traceback):
    names = []
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return names[-2]  # the handler is the last

signal.signal(signal.SIGUSR1, raises)
sender = threading.Thread(target=send)
sender.start()
raised, lost, wrong, until = 0, 0, 0, time.monotonic() + 20
while raised < 30 and time.monotonic() < until:
    try:
        try:
            armed = True
            while armed:
                y = np.ones(8, np.float32)
                launch(x, y, 2.0)
        finally:
            armed = False
    except error as caught:
        if interrupted(caught.__traceback__) != "keep":  # where Python first runs after the launch
            continue
    else:
        continue  # a finalizer had it
    raised += 1
    lost += not any(each is y for _, kept in [*stream._pending] for each in kept)
    stream.synchronize()
    wrong += int((y != 3).any())
ended = True
sender.join()
print(raised > 0, lost, wrong)
"""


@pytest.mark.skipif(not FAST, reason="the extension is about it")
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "Told"])
def test_a_signal_while_the_extension_launches(error: str, built: Path, tmp_path: Path) -> None:
    """What its handler raises comes up in the first code of Python after the launch, which is the stream's that keeps
    the arrays: they are kept all the same."""
    assert python(INTERRUPTED, built, error, cwd=tmp_path) == "True 0 0\n"


COLLECTED = """
import faulthandler, gc, sys, threading, time
import numpy as np
import offload
from offload.runtime import turns
from offload.runtime.pending import Mark
faulthandler.dump_traceback_later(30, exit=True)
library = offload.load(sys.argv[1])
launched, later = library.stream(), library.stream()
x, y = (library.device.array(np.ones(8, np.float32)) for _ in range(2))
gc.disable()
library.kernels.saxpy_kernel[1, 256, launched](x, y, 1.0)
mark, circle = launched.open, [x]
circle.append(circle)
del x, circle  # garbage, which work is using
in_turn, putting = threading.Event(), threading.Event()
numbers, replace = turns._serials, turns._replace

def collecting():
    in_turn.set()
    putting.wait()
    gc.collect()  # as it may happen anywhere
    while True:
        yield next(numbers)

def slow(*arguments):
    putting.set()
    time.sleep(0.2)
    return replace(*arguments)

def opening():
    made = Mark(later.native, later.handle, later)
    turns._serials = collecting()
    turns.opened(later, made)

def put():
    in_turn.wait()
    turns._replace = slow
    mark.put()

threads = [threading.Thread(target=each) for each in (opening, put)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print((y.numpy() == 2).all())
"""

FORKED = """
import os, signal, sys, threading
import numpy as np
import offload
from offload.runtime import turns
library = offload.load(sys.argv[1])
held, end = threading.Event(), threading.Event()

def hold():
    with turns._lock:
        held.set()
        end.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(30)
    library = offload.load(sys.argv[2])
    x, y = (library.device.array(np.ones(8, np.float32)) for _ in range(2))
    library.kernels.saxpy_kernel[1, 256, library.stream()](x, y, 2.0)
    os._exit(0 if (y.numpy() == 3).all() else 1)
end.set()
thread.join()
print(os.waitpid(child, 0)[1])
"""


def test_garbage_is_collected_while_marks_are_put(built: Path, tmp_path: Path) -> None:
    """What is in it waits for no other thread that waits for this one."""
    assert python(COLLECTED, built, cwd=tmp_path, environment={"OFFLOAD_FAST_CALLS": "0"}) == "True\n"


@pytest.mark.parametrize("fast", ["0", "1"])
def test_a_child_of_a_fork_needs_no_lock_of_its_parent(fast: str, built: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.so"
    other.write_bytes(built.read_bytes())
    printed = python(FORKED, built, other, cwd=tmp_path, environment={"OFFLOAD_FAST_CALLS": fast})
    assert printed == "0\n"
