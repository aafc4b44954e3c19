"""What is left of a worker: no descriptor where one cannot be started, and no process that waits for nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES

from offload.compiler import processes

DESCRIPTORS = Path("/proc/self/fd")


@pytest.mark.parametrize(
    ("function", "calls"), [("pipe", 0), ("pipe", 1), ("pipe", 2), ("memfd_create", 0), ("fork", 0)]
)
def test_no_descriptor_is_left(function: str, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system refuses the call after so many."""
    before = len(list(DESCRIPTORS.iterdir()))
    real, done = getattr(os, function), 0

    def refused_at_last(*arguments: object, **options: object) -> object:
        nonlocal done
        done += 1
        if done > calls:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(*arguments, **options)

    monkeypatch.setattr(os, function, refused_at_last)
    with pytest.raises(OSError, match="Too many open files"):
        processes.forked()
    assert len(list(DESCRIPTORS.iterdir())) == before


ONE_BUILD = """
import os, sys
import offload
from offload.compiler import isolation, places

with places.short_lived(once=True):
    offload.build(sys.argv[1], sys.argv[2], targets="host", cache=False)
(worker,) = isolation._state.pool._leaving
assert os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1]) == 0
worker._status = 0  # who waits for it otherwise
print("it has ended")
"""
THEN_ANOTHER = """
import sys
import offload
from offload.compiler import places, processes

with places.short_lived(once=True):
    offload.build(sys.argv[1], sys.argv[2], targets="host", cache=False)
offload.build(sys.argv[1], sys.argv[2], targets="host", cache=False)
(worker,) = processes.alive()
assert worker.is_there()
print("it has ended")
"""


@pytest.mark.parametrize("program", [ONE_BUILD, THEN_ANOTHER], ids=["by itself", "and is waited for by the next build"])
def test_a_worker_of_one_build_ends(program: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", program, EXAMPLES / "saxpy.mlir", tmp_path / "x.so"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "it has ended\n", "")
