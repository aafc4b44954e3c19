"""The command line and packages' builds with a compiler that crashes; Ctrl-C; processes that end without a word."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from compiling import EXAMPLES, command, python
from faulty_target import install

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that finds the target ``faulty``, and folders of its own."""
    (tmp_path / "plugin").mkdir()
    (tmp_path / "temporary").mkdir()
    install(tmp_path / "plugin")
    path = os.pathsep.join(filter(None, [str(tmp_path / "plugin"), os.environ.get("PYTHONPATH")]))
    return {
        "PYTHONPATH": path,
        "OFFLOAD_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "temporary"),
    }


AT = (
    "offload: error: the compiler crashed with SIGABRT, while it was at object of saxpy_kernel for faulty:x86-64,fault="
)


@pytest.mark.parametrize(
    "words",
    [
        ["build", "-q"],
        ["build", "-q", "--emit", "object"],
        ["build", "-q", "--dump", "stages"],
        ["run"],
        ["build", "-q", "--arch", "x86_64"],
    ],
    ids=["build", "emit", "dump", "run", "arch"],
)
def test_a_crash_is_an_error(words: list[str], plugin: dict[str, str], tmp_path: Path) -> None:
    done = command(*words, SAXPY, "-t", "faulty:x86-64,fault=abort", cwd=tmp_path, environment=plugin)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{AT}abort\n")
    assert done.stdout == ""
    (kept,) = (tmp_path / "cache" / "crashes").iterdir()
    script = (kept / "repeat.sh").read_text()
    assert ("--emit object" in script) == ("--emit" in words)
    assert ("--arch x86_64" in script) == ("--arch" in words)
    again = subprocess.run(
        ["sh", kept / "repeat.sh"], env=os.environ | plugin, capture_output=True, text=True, check=False
    )
    assert again.returncode == 1
    assert f"{AT}abort\n" in again.stderr
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not list(tmp_path.glob("*.so"))


def test_a_program_that_takes_more_memory_than_there_is(plugin: dict[str, str], tmp_path: Path) -> None:
    """LLVM writes the constant out."""
    (tmp_path / "large.mlir").write_text(
        "memref.global constant @x : memref<3000000000xf32> = dense<1.5>\n"
        "func.func @f(%i: index) -> f32 {\n"
        "  %x = memref.get_global @x : memref<3000000000xf32>\n"
        "  %v = memref.load %x[%i] : memref<3000000000xf32>\n"
        "  return %v : f32\n}\n"
    )
    code = """
import resource, sys, offload
resource.setrlimit(resource.RLIMIT_AS, (2500 << 20, 2500 << 20))
try:
    offload.build("large.mlir", "large.so")
except offload.CompilerCrash as error:
    print(str(error).splitlines()[0])
offload.build(sys.argv[1], "saxpy.so")
"""
    said = python(code, SAXPY, cwd=tmp_path, environment=plugin)
    assert said == "the compiler ran out of memory, while it was at host-llvm of the host code\n"
    assert (tmp_path / "saxpy.so").exists()


def test_a_compiler_that_memory_has_no_room_for(tmp_path: Path) -> None:
    code = """
import resource, sys
from offload.cli import main
resource.setrlimit(resource.RLIMIT_AS, (120 << 20, 120 << 20))
sys.exit(main(["build", sys.argv[1], "-o", "x.so", "-q", "-t", "host", "--no-cache"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, SAXPY], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 3
    assert done.stderr.startswith("offload: error: offload's compiler cannot be loaded: ")
    assert "the limits of memory (ulimit -v, a container's) leave no room for it" in done.stderr


def test_what_needs_no_machine_code_works(plugin: dict[str, str], tmp_path: Path) -> None:
    target = ["-t", "faulty:x86-64,fault=abort"]
    done = command("build", SAXPY, *target, "--print-pipeline", cwd=tmp_path, environment=plugin)
    assert done.returncode == 0, done.stderr
    assert "builtin.module(" in done.stdout
    done = command("build", SAXPY, *target, "--emit", "isa", cwd=tmp_path, environment=plugin)
    assert done.returncode == 0, done.stderr
    assert "saxpy_kernel" in done.stdout


def test_a_reproducer_of_a_pass_is_written_by_the_worker(tmp_path: Path) -> None:
    (tmp_path / "wrong.mlir").write_text(
        'gpu.module @m { gpu.func @k() kernel { "nvvm.barrier0"() : () -> ()\n gpu.return } }\n'
    )
    done = command("build", "-q", "wrong.mlir", "--reproducer", "kept", cwd=tmp_path)
    assert done.returncode == 1
    isolated = sorted((path.name, path.read_text()) for path in (tmp_path / "kept").glob("*"))
    again = command(
        "build", "-q", "wrong.mlir", "--reproducer", "again", cwd=tmp_path, environment={"OFFLOAD_ISOLATE": "0"}
    )
    assert again.stderr.replace("again/", "kept/") == done.stderr
    assert sorted((path.name, path.read_text()) for path in (tmp_path / "again").glob("*")) == isolated


def test_a_package_whose_build_crashes(plugin: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "saxpy.mlir").write_bytes(SAXPY.read_bytes())
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.offload.kernels]]\nmodule = "pkg.kernels"\nsources = ["saxpy.mlir"]\n'
        'targets = ["faulty:x86-64,fault=null"]\n'
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "offload.hooks", "module", "pkg.kernels"),
            *("--pyproject", "pyproject.toml", "--output", "pkg"),
        ],
        cwd=tmp_path, env=os.environ | plugin, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("offload: error: the compiler crashed with SIGSEGV, while it was at object of")
    assert not (tmp_path / "pkg").exists()


def test_ctrl_c_before_the_worker_has_begun(tmp_path: Path) -> None:
    """Python would go on with it where its handlers are not the worker's yet, and print what it raises there."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nos.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), 2))\n"
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = command("build", "--no-cache", SAXPY, "-o", "x.so", cwd=tmp_path, environment={"PYTHONPATH": path})
    assert done.returncode == 1
    assert done.stderr.startswith("offload: error: the compiler crashed with SIGINT")


BUILD = [sys.executable, "-m", "offload", "build", "-q", SAXPY, "-t", "faulty:x86-64,fault=tool", "-o", "x.so"]
CODE = "import offload, sys; offload.build(sys.argv[1], 'x.so', targets=['faulty:x86-64,fault=tool'])"
IN_PYTHON = [sys.executable, "-c", CODE, SAXPY]
LIBRARY = [
    *(sys.executable, "-m", "offload.hooks", "library", "x.so", "--header", "x.h", "--root", EXAMPLES),
    *("--target", "faulty:x86-64,fault=tool", SAXPY.name),
]


@pytest.mark.parametrize("words", [BUILD, LIBRARY, IN_PYTHON], ids=["command", "hook", "python"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_is_stopped(
    words: Sequence[str | Path], number: int, plugin: dict[str, str], tmp_path: Path
) -> None:
    """Its worker, which waits for a tool, and that tool go with it, and nothing is left behind."""
    process = subprocess.Popen(
        list(map(str, words)), cwd=tmp_path, env=os.environ | plugin, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert until(lambda: bool(running(tmp_path))), "the tool was not started"
        assert list((tmp_path / "temporary").iterdir())
        assert pruned(plugin) == 0, "it is in use"
        os.killpg(process.pid, number)  # as a terminal does
        said = process.communicate(timeout=20)[1]
    finally:
        process.kill()
        process.wait()
    assert until(lambda: not running(tmp_path)), running(tmp_path)
    assert not (tmp_path / "x.so").exists()
    if number == signal.SIGINT or (number == signal.SIGTERM and words is not IN_PYTHON):
        assert list((tmp_path / "temporary").iterdir()) == []
        if words is not IN_PYTHON:
            assert (process.returncode, said) == (128 + number, "")
        else:
            assert said.count("Traceback") == 1
            assert said.endswith("KeyboardInterrupt\n")
    else:  # nobody was left who could remove it
        assert len(list((tmp_path / "temporary").iterdir())) == 1
        if words is BUILD:
            assert until(lambda: not left_by_the_next_build(tmp_path, plugin))
        else:
            assert until(lambda: pruned(plugin) == 1)
        assert list((tmp_path / "temporary").iterdir()) == []


def left_by_the_next_build(folder: Path, environment: dict[str, str]) -> list[Path]:
    done = command("build", "-q", SAXPY, "-o", "y.so", "--no-cache", cwd=folder, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return list((folder / "temporary").iterdir())


def pruned(environment: dict[str, str]) -> int:
    done = command("cache", "prune", "--json", cwd=Path(environment["TMPDIR"]), environment=environment)
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["folders"])


def test_a_folder_of_another_name_or_kind_is_not_pruned(plugin: dict[str, str], tmp_path: Path) -> None:
    for name in ("temporary/offload-workshop", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "file").write_text("")
    (tmp_path / "temporary" / "offload-worker-link").symlink_to(tmp_path / "mine")
    (tmp_path / "temporary" / "offload-worker-file").write_text("")
    os.mkfifo(tmp_path / "temporary" / "offload-worker-pipe")
    assert pruned(plugin) == 0
    assert len(list((tmp_path / "temporary").iterdir())) == 4
    assert (tmp_path / "mine" / "file").exists()


def test_libraries_that_no_cache_keeps(plugin: dict[str, str], tmp_path: Path) -> None:
    """Their files go with the process that compiled them: not with its forks, and not never after a kill -9."""
    code = (
        "import os, sys, offload; found = [offload.compile(sys.argv[1], opt=level) for level in (1, 2)]\n"
        "if os.fork() == 0:\n"
        "    sys.exit()\n"
        "os.wait(); print([os.path.exists(each.path) for each in found])\n"
        "if len(sys.argv) > 2:\n"
        "    sys.stdout.flush(); os.kill(os.getpid(), 9)"
    )
    uncached = {**plugin, "OFFLOAD_CACHE_DIR": ""}
    assert python(code, SAXPY, cwd=tmp_path, environment=uncached) == "[True, True]\n"
    assert list((tmp_path / "temporary").iterdir()) == []
    forks = (
        "import multiprocessing, sys, offload\n"
        "def child(): offload.compile(sys.argv[1])\n"
        "process = multiprocessing.get_context('fork').Process(target=child)\n"
        "process.start(); process.join(); print(process.exitcode)"
    )
    assert python(forks, SAXPY, cwd=tmp_path, environment=uncached) == "0\n"
    assert list((tmp_path / "temporary").iterdir()) == []
    killed = subprocess.run(
        [sys.executable, "-c", code, SAXPY, "kill"], cwd=tmp_path, env=os.environ | uncached, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert [path.name[:17] for path in (tmp_path / "temporary").iterdir()] == ["offload-uncached-"]
    assert pruned(plugin) == 1
    assert list((tmp_path / "temporary").iterdir()) == []


def until(condition: object, seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


def running(folder: Path) -> list[str]:
    """The tools of the target's fault that work in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if (entry / "cwd").readlink() == folder and words[:2] == [b"sleep", b"1000"]:
                    found.append(f"{entry.name} {words!r}")
            except OSError:
                continue
    return found


MORE_PROCESSES = "allow more processes (ulimit -u, a container's limit)"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("os.fork", f"cannot start a worker: Resource temporarily unavailable; {MORE_PROCESSES}\n"),
        ("os.pipe", f"cannot start a worker: Resource temporarily unavailable; {MORE_PROCESSES}\n"),
        (
            "tempfile.mkdtemp",
            "cannot write temporary files: Resource temporarily unavailable; make room there, or set TMPDIR to another "
            "folder\n",
        ),
    ],
)
def test_what_a_worker_needs_and_the_system_refuses(function: str, reason: str, tmp_path: Path) -> None:
    code = f"""
import errno, os, sys, tempfile
from offload.cli import main
def refuse(*_, **__):
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
{function} = refuse
sys.exit(main(["build", sys.argv[1], "-o", "x.so", "-q", "-t", "host", "--no-cache"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, SAXPY], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (1, f"offload: error: {reason}")


def test_the_command_is_one_fork(tmp_path: Path) -> None:
    """No second Python is started for a command that builds and ends."""
    code = """
import os, subprocess, sys
from offload.cli import main
def refuse(*_, **__):
    raise AssertionError("another Python")
subprocess.Popen = refuse
sys.exit(main(["build", sys.argv[1], "-o", "x.so", "-t", "host"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, SAXPY], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.so").exists()
