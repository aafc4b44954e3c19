"""``--timing``, and progress on terminals."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from compiling import EXAMPLES, command

SAXPY = EXAMPLES / "saxpy.mlir"
LINE = re.compile(r"^ *(\d+\.\d\d)  (.*)$", re.MULTILINE)


@pytest.mark.parametrize("isolate", ["1", "0"])
def test_stages_and_passes(isolate: str, tmp_path: Path) -> None:
    words = ["build", "-q", SAXPY, "--timing", "-t", "nvvm:sm_90", "-t", "host", "-o", "x.so"]
    done = command(*words, cwd=tmp_path, environment={"OFFLOAD_ISOLATE": isolate})
    assert done.returncode == 0, done.stderr
    stages, passes = done.stderr.split("pass of MLIR, within the stages; how often it ran\n")
    times = {name: float(taken) for taken, name in LINE.findall(stages)}
    kernel = "saxpy_kernel for nvvm:sm_90"
    wanted = [
        *("parsing", "making kernels", *(f"{stage} of {kernel}" for stage in ("lowered", "llvm", "isa", "object"))),
        *("lowered of the host code", "host-llvm of the host code", "object of the host code", "linking"),
        "the whole build",
    ]
    assert set(wanted) <= set(times)
    assert all(taken > 0 for taken in times.values())
    # Stages that call others do not count their time: what one thread does one after the other fits the whole.
    alone = [name for name in wanted[:-1] if kernel not in name]
    assert sum(times[name] for name in alone) <= times["the whole build"]
    ran = {name: float(taken) for taken, name in LINE.findall(passes)}
    assert "convert-gpu-to-nvvm (1)" in ran
    assert not [name for name in ran if "Adaptor" in name]  # what runs other passes has no time of its own
    assert list(ran.values()) == sorted(ran.values(), reverse=True)


def test_with_a_stage_that_is_printed(tmp_path: Path) -> None:
    done = command("build", "-q", SAXPY, "--timing", "--emit", "isa", "-t", "host", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "isa of saxpy_kernel for host:x86-64" in done.stderr
    assert "linking" not in done.stderr


def test_not_elsewhere(tmp_path: Path) -> None:
    done = command("build", SAXPY, "--timing", "--executor", "dask://here:1", cwd=tmp_path)
    assert done.returncode == 2
    assert "--timing is for builds on this machine: not with --executor" in done.stderr


LIBRARY = (SAXPY, "-o", "x.so", "--no-cache")


def on_a_terminal(folder: Path, environment: dict[str, str], words: Sequence[Path | str] = LIBRARY) -> str:
    """What a build prints where its standard error is a terminal; its standard output goes to the file out."""
    ours, theirs = pty.openpty()
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "offload", "build", *words, "-t", "host"],
            cwd=folder, stdout=out, stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"} | environment,
        )  # fmt: skip
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end was closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert process.wait() == 0, said
    return said.decode()


def test_a_spinner_on_a_terminal(tmp_path: Path) -> None:
    said = on_a_terminal(tmp_path, {})
    assert "\x1b[" in said
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", said)
    assert re.search(r"\[ *\d\.\d\d s\] parsing", plain)
    assert re.search(r"\[ *\d\.\d\d s\] linking", plain)


@pytest.mark.parametrize("option", [["--emit", "isa"], ["--print-pipeline"]], ids=["a stage", "the pipeline"])
def test_what_is_printed_goes_where_it_is_sent(option: list[str], tmp_path: Path) -> None:
    done = command("build", SAXPY, "-q", "-t", "host", *option, cwd=tmp_path)
    on_a_terminal(tmp_path, {}, [SAXPY, *option])
    assert (tmp_path / "out").read_text() == done.stdout != ""


def test_a_name_that_reads_as_markup(tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_text('gpu.module @"k[/x]:smile:" { gpu.func @k() kernel { gpu.return } }')
    said = on_a_terminal(tmp_path, {}, ["x.mlir", "-o", "x.so", "--no-cache"])
    assert said.count("k[/x]:smile:") > 1  # in a line and beside the spinner


def test_a_spinner_costs_no_second_python(tmp_path: Path) -> None:
    """It is a thread, and a process with threads would not be forked."""
    (tmp_path / "sitecustomize.py").write_text(
        "import subprocess\ndef refuse(*_, **__):\n    raise AssertionError('another Python')\n"
        "subprocess.Popen = refuse\n"
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    assert "linking" in on_a_terminal(tmp_path, {"PYTHONPATH": path})


def test_lines_without_rich(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise ImportError('not here')\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    said = on_a_terminal(tmp_path, {"PYTHONPATH": path})
    assert "\x1b[" not in said
    assert re.fullmatch(r"\[ *\d\.\d\d s\] parsing", said.splitlines()[0])
