"""What the tests of the compiler share: programs compiled for the CPU, command lines, LLVM's tools, builds on disk."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from offload.targets import registry

import offload
from offload.compiler.driver import Emitted, Program
from offload.compiler.request import Source
from offload.runtime import Library

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAMS = HERE / "programs"
EXAMPLES = ROOT / "examples"
ALL_TARGETS = ("nvvm:sm_90", "rocdl:gfx942", "host")


def backends_here() -> list[str]:
    """The runtime's backends that have a device in this machine."""
    return [cls.backend for cls in registry().all().values() if cls.devices()]


@functools.cache
def on_host(source: str | Path, opt: int = 3, target: str = "host") -> Library:
    """A program (text or path) compiled for the CPU and loaded; kept, since many tests call one program."""
    library = offload.compile(source, targets=[target], opt=opt)
    library.use("host")
    return library


@contextmanager
def running_late(name: str) -> Iterator[Library]:
    """Saxpy on the CPU, whose streams run their work as late as they may; a library of that name, because others count
    how often Python does their launches."""
    library = on_host((EXAMPLES / "saxpy.mlir").read_text() + f"func.func private @{name}()\n")
    library._native.api.mgpuHostSchedule(7)
    yield library
    library._native.api.mgpuHostSchedule(0)


def program(name: str) -> Library:
    """A program of tests/programs on the CPU."""
    return on_host(PROGRAMS / f"{name}.mlir")


def emit(source: str | Path, stage: str, targets: Sequence[str] = ("host",), **options: object) -> list[Emitted]:
    """The outputs of one stage of a program, given as text or path."""
    read = Source.read(source) if isinstance(source, Path) else Source("<string>", source.encode())
    request = offload.api.make_request([read], targets, **options)  # type: ignore[arg-type]
    with Program(request) as made:
        return list(made.emit(stage))


def emit_text(source: str | Path, stage: str, targets: Sequence[str] = ("host",)) -> str:
    """The one text that a stage gives."""
    (item,) = emit(source, stage, targets)
    assert item.is_text
    return item.data.decode()


def command(
    *arguments: str | Path, cwd: Path, environment: dict[str, str] | None = None, without: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs ``python -m offload`` in a folder of the test's own; no output may ever be a Python traceback."""
    variables = {name: value for name, value in os.environ.items() if name not in without}
    done = subprocess.run(
        [sys.executable, "-m", "offload", *map(str, arguments)],
        cwd=cwd,
        env=variables | (environment or {}),
        capture_output=True,
        check=False,
        timeout=60,
    )
    text = subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )
    assert "Traceback" not in text.stderr, text.stderr
    assert "Traceback" not in text.stdout, text.stdout
    return text


def python(
    code: str, *arguments: str | Path, cwd: Path, environment: dict[str, str] | None = None, timeout: float = 60
) -> str:
    """Runs a Python program in a process of its own and returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tool(name: str, *arguments: str | Path, given: str | None = None) -> str:
    """Runs one of LLVM 22's tools and returns its output; fails with what it said."""
    done = subprocess.run(
        [f"{name}-22", *map(str, arguments)], input=given, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, f"{name} {arguments}: {done.stderr}\n{done.stdout}"
    return done.stdout
