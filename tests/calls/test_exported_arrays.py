"""Arrays of ours in other packages: when these let go of them, nothing else is lost, whatever happens just then. And of
others in calls of ours, by several threads."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import EXAMPLES, on_host, python

from offload.runtime import FAST, export

pytestmark = pytest.mark.skipif(not FAST, reason="it is lost where calls go through ctypes: see export.py")


def _refuse(*_: object) -> None:
    raise KeyError("mine")


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda x: np.from_dlpack(x).reshape(7), ValueError),
        (lambda x: np.from_dlpack(x)[100], IndexError),
        (lambda x: np.from_dlpack(x) + np.zeros(5), ValueError),
        (lambda x: [np.from_dlpack(x), _refuse()], KeyError),
    ],
)
def test_an_error_beside_an_array_that_goes(use: Callable[[Any], Any], error: type[Exception]) -> None:
    """It was a SystemError, "error return without exception set"."""
    exported = len(export._exported)
    x = on_host(EXAMPLES / "saxpy.mlir").device.array(np.zeros(4, np.float32))
    with pytest.raises(error):
        use(x)
    del x
    gc.collect()
    assert len(export._exported) == exported


CONSUMER = """
#include <stdint.h>
typedef struct Managed {
  uint8_t tensor[48];
  void *context;
  void (*deleter)(struct Managed *);
} Managed;
static Managed *kept;
void keep(Managed *managed) { kept = managed; }
__attribute__((destructor)) static void end(void) { kept->deleter(kept); }
"""

KEPT = """
import ctypes, sys, numpy, offload
library = offload.load(sys.argv[1])
library.use("host")
x = library.device.array(numpy.zeros(4, numpy.float32))
capsule = x.__dlpack__()
api, name, used = ctypes.pythonapi, b"dltensor", b"used_dltensor"
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
managed = api.PyCapsule_GetPointer(ctypes.py_object(capsule), name)
api.PyCapsule_SetName(ctypes.py_object(capsule), used)
ctypes.CDLL(sys.argv[2]).keep(ctypes.c_void_p(managed))
del capsule
print("done")
"""


def test_a_consumer_that_lets_go_when_python_has_ended(tmp_path: Path) -> None:
    """As C++ does in destructors of static objects; the process ended with a segmentation fault."""
    (tmp_path / "consumer.c").write_text(CONSUMER)
    consumer = tmp_path / "consumer.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "consumer.c", "-o", consumer], check=True)
    assert python(KEPT, on_host(EXAMPLES / "saxpy.mlir").path, consumer, cwd=tmp_path) == "done\n"


FIRST = """
import gc, sys, threading, time
import numpy, offload
library = offload.load(sys.argv[1])
library.use("host")
x = numpy.ones(4, numpy.float32)
library.saxpy(1.0, x, x)
class Other:
    def __dlpack__(self, **options):
        return x.__dlpack__(**options)
class Garbage:
    def __init__(self):
        self.itself = self
    def __del__(self):
        time.sleep(0.2)  # others go on
begin = threading.Event()
def second():
    begin.wait()
    library.saxpy(0.0, other, x)
other, thread = Other(), threading.Thread(target=second)
thread.start()
gc.disable()
gc.collect()
Garbage()
gc.set_threshold(gc.get_count()[0])
begin.set()
gc.enable()
library.saxpy(0.0, other, x)
thread.join()
print("done")
"""
"""Two threads are the first to pass an array of another package, while the garbage of one is collected."""


def test_the_first_array_of_another_package_in_two_threads(tmp_path: Path) -> None:
    """One waited, with Python's lock, for what the other was making in its call, which waited for the lock. (Python
    collects garbage where it makes objects before its version 3.12, later between them.)"""
    path = on_host(EXAMPLES / "saxpy.mlir").path
    assert python(FIRST, path, cwd=tmp_path, timeout=30) == "done\n"
