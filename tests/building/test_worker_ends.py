"""What is left of a worker: no descriptor where one cannot be started, and no process that waits for nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from compiling import EXAMPLES, python

from offload.compiler import places, processes

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


def test_a_command_in_one_thread_is_no_other_threads() -> None:
    """Two that overlap, as a program's that calls the command line in threads, and what others build meanwhile."""
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with places.short_lived(once=True):
            first_is_in.set()
            assert second_is_in.wait(60)
        first_is_out.set()

    def second() -> None:
        assert first_is_in.wait(60)
        with places.short_lived(once=True):
            second_is_in.set()
            assert first_is_out.wait(60)

    threads = [threading.Thread(target=function) for function in (first, second)]
    for thread in threads:
        thread.start()
    assert second_is_in.wait(60)
    assert not places.is_short_lived()
    assert not places.is_for_one_build()
    for thread in threads:
        thread.join()
    assert not places.is_short_lived()
    assert not places.is_for_one_build()


FROZEN = """
import multiprocessing, sys
sys.frozen = True  # PyInstaller and others say so
import offload
from offload.compiler import processes
if sys.argv[3:]:
    multiprocessing.set_executable(sys.argv[3])
offload.build(sys.argv[1], sys.argv[2], targets=["host"], cache=False)
print(len(processes.alive()))
"""


def test_a_frozen_program_has_no_python_to_start(tmp_path: Path) -> None:
    """It would start itself, which starts itself."""
    assert python(FROZEN, EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", cwd=tmp_path).split() == ["0"]
    (tmp_path / "an interpreter").symlink_to(sys.executable)
    given = [EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", tmp_path / "an interpreter"]
    assert python(FROZEN, *given, cwd=tmp_path).split() == ["1"]


EMBEDDED = """
import multiprocessing, sys
import offload
multiprocessing.set_executable(sys.argv[0] + ".sh")
try:
    offload.build({source!r}, {output!r}, targets=["host"], cache=False)
except offload.CompilerCrash as error:
    print(error)
"""


def test_a_program_that_is_no_python_is_not_started_again_and_again(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(EMBEDDED.format(source=str(EXAMPLES / "saxpy.mlir"), output=str(tmp_path / "saxpy.so")))
    script = tmp_path / "program.py.sh"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {program} "$@"\n')
    script.chmod(0o755)
    said = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert f"cannot start a worker: {script} is no Python interpreter, it runs this program again" in said


CLOSED = """
import os, sys
import offload
from offload.compiler import processes
for descriptor in range(3):
    os.close(descriptor)
if sys.argv[3:]:
    processes.spawned = processes.forked
offload.build(sys.argv[1], sys.argv[2], targets=["host"], cache=False)
"""


@pytest.mark.parametrize("words", [[], ["fork"]], ids=["spawned", "forked"])
def test_a_program_without_standard_streams(words: list[str], tmp_path: Path) -> None:
    """What was opened for the worker had their numbers, which are another thing there: it waited without end."""
    python(CLOSED, EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", *words, cwd=tmp_path)
    assert (tmp_path / "saxpy.so").exists()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EMFILE, "Too many open files; allow more open files (ulimit -n)"),
        (errno.EACCES, f"{sys.executable} cannot be run: Permission denied"),
    ],
)
def test_a_python_that_is_not_started(number: int, said: str, tmp_path: Path) -> None:
    code = f"""
import os, subprocess, sys
import offload
def refuse(*_, **__):
    raise OSError({number}, os.strerror({number}))
subprocess.Popen = refuse
try:
    offload.build(sys.argv[1], "x.so", targets=["host"], cache=False)
except offload.OffloadError as error:
    print(error)
"""
    assert python(code, EXAMPLES / "saxpy.mlir", cwd=tmp_path) == f"cannot start a worker: {said}\n"
