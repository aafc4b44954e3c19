"""What one of the processes of a run of tests makes, and all of them use."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def of_the_run(factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a run have."""
    run = factory.getbasetemp()
    if run.name == f"popen-{os.environ.get('PYTEST_XDIST_WORKER')}":
        run = run.parent  # each worker has a folder in that of the run; a pytest that a test starts is no worker
    folder = run / "once"
    folder.mkdir(exist_ok=True)
    return folder


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name, which the first process to ask has filled with ``make``; the others wait for it."""
    folder = of_the_run(factory) / name
    complete = folder.with_name(f"{name}.complete")
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that failed
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder
