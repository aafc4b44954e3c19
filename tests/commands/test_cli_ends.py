"""How the command line ends its process: at once, but not before everybody has had their say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES, command

LISTENED_TO = """
import atexit, sys
from offload.__main__ import script
atexit.register(print, "the end")
sys.argv[1:] = ["targets"]
script()
"""


def ended(*words: str, cwd: Path) -> list[str]:
    done = subprocess.run([sys.executable, *words], cwd=cwd, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_exit_handlers_run(tmp_path: Path) -> None:
    lines = ended("-c", LISTENED_TO, cwd=tmp_path)
    assert lines[-1] == "the end"
    assert lines[:-1] == command("targets", cwd=tmp_path).stdout.splitlines()


def test_who_runs_the_module_goes_on(tmp_path: Path) -> None:
    code = """
import runpy, sys
sys.argv[1:] = ["targets"]
try:
    runpy.run_module("offload", run_name="__main__", alter_sys=True)
except SystemExit as ended:
    print("code", ended.code)
"""
    assert ended("-c", code, cwd=tmp_path)[-1] == "code 0"


def test_a_profiler_prints_its_figures(tmp_path: Path) -> None:
    assert any(" function calls " in line for line in ended("-m", "cProfile", "-m", "offload", "targets", cwd=tmp_path))


@pytest.mark.parametrize("target", ["host", "nvvm:sm_80"])
def test_no_process_is_left(target: str, tmp_path: Path) -> None:
    """When the command has ended, so has its worker: nobody but the command would wait for it."""
    done = command("build", EXAMPLES / "saxpy.mlir", "-t", target, "-o", "x.so", "-q", cwd=tmp_path)
    left = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and works_in(entry, tmp_path)]
    assert (done.returncode, done.stdout, done.stderr, left) == (0, "", "", [])


def works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink() == folder
    except OSError:
        return False  # it ended, or is a zombie


CALLED = """
import sys

def call():
    from offload.{} import {} as function
    function()

before = sys.stderr
for words in (["targets"], ["cache", "info"], ["nonsense"]):
    sys.argv[1:] = words
    try:
        call()
    except SystemExit:
        pass
    sys.stderr = before
    print("still here", file=sys.stderr)
print(sys.stderr is sys.__stderr__ and not sys.stderr.closed)
"""


@pytest.mark.parametrize(("module", "name"), [("cli", "main"), ("__main__", "script")])
def test_standard_error_goes_on_after_a_call(module: str, name: str, tmp_path: Path) -> None:
    """Who calls it has put its own back."""
    done = subprocess.run(
        [sys.executable, "-c", CALLED.format(module, name)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "True"
    assert done.stderr.count("still here") == 3


def test_a_call_leaves_standard_error_as_it_is(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom offload.cli import main\nerrors = sys.stderr\nmain(['targets'])\nprint(sys.stderr is errors)"
    )
    assert ended("-c", code, cwd=tmp_path)[-1] == "True"
