"""A worker is as if the build ran here: errors, settings, folder, path, logs, threads and forks."""

from __future__ import annotations

import errno
import importlib
import logging
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from compiling import ALL_TARGETS, EXAMPLES, python
from faulty_target import FaultyTarget
from offload.targets.entry_points import entry_points
from offload.targets.host import HostTarget

import offload
from offload.compiler import driver, processes

SAXPY = EXAMPLES / "saxpy.mlir"

pytestmark = pytest.mark.usefixtures("no_cache")


def test_the_library_is_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolated = offload.build(SAXPY, tmp_path / "saxpy.so", targets=ALL_TARGETS).read_bytes()
    monkeypatch.setenv("OFFLOAD_ISOLATE", "0")
    assert offload.build(SAXPY, tmp_path / "saxpy.so", targets=ALL_TARGETS).read_bytes() == isolated


WRONG = {
    "parsing": ("func.func @f() { foo.bar }\n", ["host"]),
    "with notes": ("func.func @f() { return }\nfunc.func @f() { return }\n", ["host"]),
    "a toolkit": ((EXAMPLES / "saxpy.mlir").read_text(), ["nvvm:sm_90,format=fatbin,ptxas=--no-such-option"]),
    "linking": ("func.func private @nowhere()\nfunc.func @f() { call @nowhere() : () -> ()\n return }\n", ["host"]),
    "a feature": ((EXAMPLES / "saxpy.mlir").read_text(), ["host:x86-64,features=+nonsense"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_the_same(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text, targets = WRONG[case]
    source = tmp_path / "wrong.mlir"
    source.write_text(text)
    errors = []
    for isolate in ("1", "0"):
        monkeypatch.setenv("OFFLOAD_ISOLATE", isolate)
        with pytest.raises(offload.OffloadError) as caught:
            offload.build(source, tmp_path / "x.so", targets=targets)
        errors.append(caught.value)
    isolated, here = errors
    assert type(isolated) is type(here)
    assert _plain(str(isolated)) == _plain(str(here))
    assert str(here)
    assert getattr(isolated, "diagnostics", None) == getattr(here, "diagnostics", None)


def _plain(text: str) -> str:
    """Without the names of temporary folders."""
    return "\n".join(line for line in text.splitlines() if "/offload-" not in line)


def test_errors_of_a_target_that_are_bugs(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="a bug of the target's") as caught:
        offload.build(SAXPY, tmp_path / "x.so", targets=[FaultyTarget(fault="bug")])
    assert "in _bug" in str(caught.value.__cause__)  # the worker's traceback
    with pytest.raises(RuntimeError, match="Odd: 12"):
        offload.build(SAXPY, tmp_path / "x.so", targets=[FaultyTarget(fault="odd")])


EDITED = """
from dataclasses import dataclass
from typing import Any, ClassVar

from offload.targets.entry_points import entry_points
from offload.targets.host import HostTarget

from offload.errors import ToolkitError


@dataclass(frozen=True)
class Edited(HostTarget):
    name: ClassVar[str] = "edited"

    def stages(self):
        raise ToolkitError("as it was in VERSION")
"""


def test_the_code_of_a_target_that_was_edited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a notebook, whose worker has loaded what it was before."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for version in ("first", "second"):
        (tmp_path / "edited_target.py").write_text(EDITED.replace("VERSION", version))
        module = importlib.import_module("edited_target")
        with pytest.raises(offload.ToolkitError, match=f"as it was in {version}"):
            offload.build(SAXPY, tmp_path / "x.so", targets=[module.Edited()])
    monkeypatch.delitem(sys.modules, "edited_target")


def test_a_target_that_cannot_be_sent(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Local(HostTarget):
        name: ClassVar[str] = "local"

    with pytest.raises(
        offload.OffloadError, match=r"cannot be sent to the worker: .*Local.*\n  targets are classes of"
    ):
        offload.build(SAXPY, tmp_path / "x.so", targets=[Local()])


def test_a_target_of_the_main_program(tmp_path: Path) -> None:
    code = """
import sys
from dataclasses import dataclass
from typing import Any, ClassVar
import offload
from offload.targets.entry_points import entry_points
from offload.targets.host import HostTarget
@dataclass(frozen=True)
class Mine(HostTarget):
    name: ClassVar[str] = "mine"
try:
    offload.build(sys.argv[1], "x.so", targets=[Mine()])
except offload.OffloadError as error:
    print(error)
"""
    said = python(code, SAXPY, cwd=tmp_path)
    assert "the class Mine of the program's main module" in said
    assert "OFFLOAD_ISOLATE=0" in said


def test_folder_and_environment_are_those_of_the_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("WHERE", name)
        with pytest.raises(offload.ToolkitError) as caught:
            offload.build(SAXPY, "x.so", targets=[FaultyTarget(fault="where")])
        assert str(caught.value) == f"{tmp_path / name} {name} {sys.path[0]}"
    monkeypatch.delenv("WHERE")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(offload.ToolkitError) as caught:
        offload.build(SAXPY, "x.so", targets=[FaultyTarget(fault="where")])
    assert str(caught.value) == f"{tmp_path / 'second'} None {tmp_path}"


def test_a_toolkit_is_looked_for_where_the_environment_says_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offload.build(SAXPY, tmp_path / "x.so", targets=["nvvm:sm_90"])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(offload.ToolkitError, match="ptxas"):
        offload.build(SAXPY, tmp_path / "x.so", targets=["nvvm:sm_90"])


def test_a_folder_that_was_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert offload.build(SAXPY, tmp_path / "x.so").exists()


def test_a_folder_that_cannot_be_entered_by_its_name(tmp_path: Path) -> None:
    """As one of another user's, which a command of sudo's was started in: a worker is in it already."""
    code = """
import os, sys
import offload
from offload.compiler import places
enter = os.chdir
def refused(path):
    raise PermissionError(13, os.strerror(13), path)
os.chdir = refused
with places.short_lived():
    offload.build(sys.argv[1], "x.so", targets="host", cache=False)
    enter("..")
    try:
        offload.build(sys.argv[1], "y.so", targets="host", cache=False)
    except offload.OffloadError as error:
        print(type(error).__name__, error)
"""
    (tmp_path / "here").mkdir()
    said = f"OffloadError the worker cannot enter the current folder, {tmp_path}: Permission denied\n"
    assert python(code, SAXPY, cwd=tmp_path / "here") == said


def test_a_variable_without_a_name(tmp_path: Path) -> None:
    environment = {**os.environ, "": "of a program that sets such"}
    for isolate in "10":
        words = [sys.executable, "-m", "offload", "build", SAXPY, "-q", "-t", "host", "-o", "x.so", "--no-cache"]
        environment["OFFLOAD_ISOLATE"] = isolate
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_modules_in_the_folder_are_not_taken_for_pythons(tmp_path: Path) -> None:
    for name in ("socket", "pickle", "offload"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    code = "import sys; sys.path.pop(0); import offload; print(offload.build(sys.argv[1], 'x.so'))"
    assert python(code, SAXPY, cwd=tmp_path) == "x.so\n"


@pytest.mark.parametrize("place", [Path("/tmp"), b"/tmp", None, 3], ids=repr)
def test_what_is_no_text_on_the_path_is_passed_over(
    place: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As import does: a Path gets there easily."""
    monkeypatch.setattr(sys, "path", [*sys.path, place])
    assert offload.build(SAXPY, tmp_path / "x.so", targets=["nvvm:sm_90", "host"]).exists()
    targets = list(entry_points("offload.targets"))
    assert {"host", "nvvm", "rocdl"} <= {point.name for point in targets}


def test_what_is_printed_and_logged_comes_here(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with caplog.at_level(logging.DEBUG, logger="offload.tools"):
        offload.build(SAXPY, tmp_path / "x.so", targets=[FaultyTarget(fault="talk")])
    assert "a logged command" in caplog.messages
    out, err = capfd.readouterr()
    assert out == ""
    assert sorted(err.splitlines()) == ["a word on stderr", "a word on stdout"]
    caplog.clear()
    offload.build(SAXPY, tmp_path / "x.so", targets=[FaultyTarget(fault="talk")])
    assert caplog.messages == []


def test_progress_is_called_here(tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []
    offload.build(SAXPY, tmp_path / "x.so", progress=lambda text: seen.append((threading.get_ident(), text)))
    assert [text for _, text in seen] == [
        "parsing",
        "making kernels",
        "compiling saxpy_kernel for host:x86-64",
        "compiling host code",
        "linking",
    ]
    assert {thread for thread, _ in seen} == {threading.get_ident()}


def test_progress_may_build(tmp_path: Path) -> None:
    """Also where there is one processor, and so one worker at a time."""
    code = """
import os, sys
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import offload
def progress(text):
    if text.startswith("linking"):
        print(offload.build(sys.argv[1], "inner.so", targets="host"))
print(offload.build(sys.argv[1], "outer.so", targets="host", progress=progress))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, SAXPY], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("inner.so\nouter.so\n", "")


def test_an_error_of_progress_ends_the_build(tmp_path: Path) -> None:
    def refuse(text: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        offload.build(SAXPY, tmp_path / "x.so", progress=refuse)
    offload.build(SAXPY, tmp_path / "x.so")


def test_threads_build_side_by_side(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            if number % 3 == 0:
                with pytest.raises(offload.CompilerCrash):
                    offload.build(SAXPY, tmp_path / f"{number}.so", targets=[FaultyTarget(fault="abort")])
            else:
                offload.build(SAXPY, tmp_path / f"{number}.so")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(list(tmp_path.glob("*.so"))) == 4
    assert len(processes.alive()) <= len(os.sched_getaffinity(0))


def test_a_worker_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    code = """
import sys, threading, offload
from offload.compiler import processes
thread = threading.Thread(target=lambda: offload.build(sys.argv[1], "x.so"))
thread.start()
thread.join()
before = [worker.pid for worker in processes.alive()]
offload.build(sys.argv[1], "x.so")
print(before == [worker.pid for worker in processes.alive()], len(before))
"""
    assert python(code, SAXPY, cwd=tmp_path) == "True 1\n"


def test_a_fork_has_workers_of_its_own(tmp_path: Path) -> None:
    code = """
import os, sys, offload
from offload.compiler import processes
for name in "abc":
    os.mkdir(name)
offload.build(sys.argv[1], "a/x.so")
(worker,) = processes.alive()
pid = os.fork()
if pid == 0:
    assert processes.alive() == []
    offload.build(sys.argv[1], "b/x.so")
    assert processes.alive()[0].pid != worker.pid
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
offload.build(sys.argv[1], "c/x.so")
assert processes.alive()[0].pid == worker.pid
print(len({open(f"{name}/x.so", "rb").read() for name in "abc"}))
"""
    assert python(code, SAXPY, cwd=tmp_path) == "1\n"


def test_the_library_itself_loads_no_llvm(tmp_path: Path) -> None:
    """It is the worker that has it."""
    code = """
import sys, offload
offload.build(sys.argv[1], "x.so")
print("LLVM" in open("/proc/self/maps").read())
"""
    assert python(code, SAXPY, cwd=tmp_path) == "False\n"


def test_many_open_files(tmp_path: Path) -> None:
    """select.select() knows descriptors below 1024 alone."""
    code = """
import os, resource, sys, offload
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = [os.dup(0) for _ in range(1100)]
for _ in range(2):
    print(offload.build(sys.argv[1], "x.so"))
"""
    assert python(code, SAXPY, cwd=tmp_path) == "x.so\nx.so\n"


def test_no_poll(tmp_path: Path) -> None:
    """eventlet takes it away, and has a select.select() of its own."""
    code = "import select, sys, offload; del select.poll; print(offload.build(sys.argv[1], 'x.so'))"
    assert python(code, SAXPY, cwd=tmp_path) == "x.so\n"


def test_memory_of_builds_in_this_process(tmp_path: Path) -> None:
    """lld 22 keeps half a megabyte of each library until the thread ends that linked, and its own threads stay."""
    code = """
import os, sys, offload
def build(source, times):
    for _ in range(times):
        offload.build(source, "x.so", targets=["host"])
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
with open("empty.mlir", "w") as file:
    file.write("func.func @f() { return }")
before = build("empty.mlir", 8)
print((build("empty.mlir", 40) - before) // 40)
build(sys.argv[1], 1)
print(len(os.listdir("/proc/self/task")))
"""
    said = python(code, SAXPY, cwd=tmp_path, environment={"OFFLOAD_ISOLATE": "0"})
    each, threads = map(int, said.split())
    assert each < 200 << 10
    assert threads == 1


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EMFILE, r"^cannot compile here: Too many open files; .* \(ulimit -n\)$"),
        (errno.EFBIG, r"^cannot write temporary files in .*: File too large; allow larger files \(ulimit -f\)$"),
    ],
)
def test_limits_of_files(number: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where it is the worker's own files that are too many, or too large."""

    def build(program: object) -> bytes:
        raise OSError(number, os.strerror(number), str(tmp_path))

    monkeypatch.setenv("OFFLOAD_ISOLATE", "0")
    monkeypatch.setattr(driver.Program, "build", build)
    with pytest.raises(offload.OffloadError, match=said):
        offload.build(SAXPY, tmp_path / "saxpy.so", targets=["host"])
