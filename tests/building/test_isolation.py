"""Builds in a worker: however the compiler ends, it is an error of that build, and the next one works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES, HERE
from faulty_target import FaultyTarget, install

import offload
from offload.cache import locks
from offload.cache.store import Store
from offload.compiler import crashes, isolation, processes, steps

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def crash(fault: str, output: Path) -> offload.CompilerCrash:
    with pytest.raises(offload.CompilerCrash) as caught:
        offload.build(SAXPY, output, targets=[FaultyTarget(fault=fault)])
    return caught.value


AT = "object of saxpy_kernel for faulty:x86-64,fault="


@pytest.mark.parametrize(
    ("fault", "first", "printed"),
    [
        ("abort", "the compiler crashed with SIGABRT", "LLVM ERROR: Cannot select: t1: i32 = made_up"),
        ("null", "the compiler crashed with SIGSEGV", ""),
        ("exit", "the compiler ended its process with exit code 3", ""),
        ("killed", "the compiler was ended by SIGKILL, as the system does where memory runs out", ""),
        ("memory", "the compiler ran out of memory", ""),
    ],
)
def test_a_crash_is_an_error(fault: str, first: str, printed: str, tmp_path: Path, cache: Path) -> None:
    output = tmp_path / "saxpy.so"
    output.write_bytes(b"as it was")
    error = crash(fault, output)
    lines = str(error).splitlines()
    said, _, doing = lines[0].partition(", while it was at ")
    assert said == first
    # Who ends a process without a word may have been any of its threads.
    assert f"{AT}{fault}" in (doing.split(" and ") if fault in ("exit", "killed") else [doing])
    assert printed in str(error)
    assert error.diagnostics == []
    assert error.exit_code == 1
    assert output.read_bytes() == b"as it was"
    # What repeats it.
    assert error.reproducer is not None
    kept = Path(error.reproducer)
    assert kept.parent == cache / "crashes"
    assert lines[-1] == f"  to repeat it: sh {kept / 'repeat.sh'}"
    assert (kept / "0-saxpy.mlir").read_bytes() == SAXPY.read_bytes()
    assert printed in (kept / "printed.txt").read_text()
    # The next build works.
    assert offload.load(offload.build(SAXPY, output)).functions


def test_the_kept_command_repeats_the_crash(tmp_path: Path) -> None:
    error = crash("abort", tmp_path / "saxpy.so")
    assert error.reproducer is not None
    (tmp_path / "plugin").mkdir()
    install(tmp_path / "plugin")
    path = os.pathsep.join([str(tmp_path / "plugin"), *sys.path])
    script = Path(error.reproducer) / "repeat.sh"
    script.write_text("".join(line for line in script.read_text().splitlines(True) if "PYTHONPATH" not in line))
    done = subprocess.run(
        ["sh", script], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert f"offload: error: the compiler crashed with SIGABRT, while it was at {AT}abort" in done.stderr


def test_the_kept_command_finds_what_a_target_is_linked_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.ll").write_text("define void @own() { ret void }\n")
    with pytest.raises(offload.CompilerCrash) as caught:
        offload.build(SAXPY, "saxpy.so", targets=[FaultyTarget(fault="abort", link=("own.ll",))])
    assert caught.value.reproducer is not None
    script = Path(caught.value.reproducer) / "repeat.sh"
    assert f",link={tmp_path / 'own.ll'}," in script.read_text()


def test_the_kept_command_finds_what_has_a_comma_in_its_name(tmp_path: Path) -> None:
    linked = tmp_path / "mine, yours" / "own,2.ll"
    linked.parent.mkdir()
    linked.write_text("define void @own() { ret void }\n")
    with pytest.raises(offload.CompilerCrash) as caught:
        offload.build(SAXPY, tmp_path / "saxpy.so", targets=[FaultyTarget(fault="abort", link=(str(linked),))])
    assert caught.value.reproducer is not None
    kept = Path(caught.value.reproducer)
    assert ",link=linked-0-0.ll," in (kept / "repeat.sh").read_text()
    assert (kept / "linked-0-0.ll").samefile(linked)


def test_a_worker_that_has_grown_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """LLVM and lld lose some memory with each build."""
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "")
    offload.build(SAXPY, tmp_path / "first.so")
    before = processes.alive()
    assert all(10 << 20 < worker.memory() < isolation.MOST_MEMORY for worker in before)
    with monkeypatch.context() as little:
        little.setattr(isolation, "MOST_MEMORY", 1 << 20)
        offload.build(SAXPY, tmp_path / "second.so")
    left = processes.alive()
    assert len(left) == len(before) - 1
    (gone,) = set(before) - set(left)
    assert gone.memory() == 0
    offload.build(SAXPY, tmp_path / "third.so")
    assert processes.alive()


def test_a_stack_that_overflows(tmp_path: Path) -> None:
    """A program that kills MLIR: its parser calls itself for each bracket."""
    with pytest.raises(offload.CompilerCrash, match="the compiler crashed with SIGSEGV, while it was at parsing"):
        offload.compile(f"module attributes {{a = {'[' * 300_000}{']' * 300_000}}} {{}}\n")
    assert offload.compile(SAXPY).functions


def test_a_pass_is_named(tmp_path: Path) -> None:
    """Where LLVM crashes inside of a pass, the words of its own crash dump tell which one."""
    said = "Stack dump:\n0.\toffload was at: lowered of k for host\n1.\toffload was at: the pass cse\nmore\n"
    from offload.api import make_request
    from offload.compiler.request import Source

    error = crashes.crash("crashed", make_request([Source.read(SAXPY)], ["host"]), (), said, ())
    assert str(error).splitlines()[:4] == [
        "the compiler crashed, while it was at the pass cse in lowered of k for host",
        "  it printed:",
        "    Stack dump:",
        "    more",
    ]


def test_steps_side_by_side_are_told_apart_from_steps_inside_each_other() -> None:
    begun: list[steps.Begun] = []

    def tell(event: steps.Event) -> None:
        if isinstance(event, steps.Begun):
            begun.append(event)

    with steps.told_to(tell):
        with steps.step("object", "the host code"):
            pass
        with steps.step("object", "k"), steps.step("isa", "k"):
            pass
    assert steps.spoken(begun) == "object of the host code and isa of k in object of k"
    assert steps.spoken(begun[1:2]) == "object of k"
    assert steps.spoken([]) == ""


@pytest.mark.parametrize("fault", ["sleep", "tool"])
def test_a_build_that_hangs_is_stopped(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offload.build(SAXPY, tmp_path / "warm.so")  # so that the limit is the build's, not the start's
    monkeypatch.setenv("OFFLOAD_TIME_LIMIT", "1.5")
    before = set(children_named("sleep"))
    started = time.monotonic()
    error = crash(fault, tmp_path / "saxpy.so")
    assert time.monotonic() - started < 20
    limit = "the compiler was stopped after 1.5 seconds, the limit that OFFLOAD_TIME_LIMIT sets"
    said, _, doing = str(error).splitlines()[0].partition(", while it was at ")
    assert said == limit
    assert f"{AT}{fault}" in doing.split(" and ")  # on a busy machine the host code is not ready either
    assert set(children_named("sleep")) <= before  # the tool has gone with the worker
    monkeypatch.setenv("OFFLOAD_TIME_LIMIT", "0")
    offload.build(SAXPY, tmp_path / "saxpy.so")


def test_waiting_for_another_process_is_no_part_of_the_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    """It compiles the same part, and has a limit of its own."""
    offload.build(SAXPY, tmp_path / "first.so")
    (kept,) = (cache / "image").iterdir()
    store = Store(cache)
    lock = store.lock("image", kept.stem)
    for stage in ("library", "image"):
        for entry in (cache / stage).iterdir():
            entry.unlink()
    monkeypatch.setenv("OFFLOAD_TIME_LIMIT", "2.5")
    handle = locks.acquire(lock, 0)
    assert handle is not None
    release = threading.Timer(4, locks.release, [lock, handle])
    release.start()
    said: list[str] = []
    offload.build(SAXPY, tmp_path / "second.so", progress=said.append)
    release.join()
    assert "waiting for another process, which compiles the same" in said
    assert (tmp_path / "second.so").read_bytes() == (tmp_path / "first.so").read_bytes()


def children_named(name: str) -> list[int]:
    """Processes that were started as ``sleep 1000``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [name.encode(), b"1000"]:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("value", ["soon", "-1", "inf", "nan"])
def test_a_limit_that_is_no_number(value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFLOAD_TIME_LIMIT", value)
    with pytest.raises(offload.OffloadError, match="OFFLOAD_TIME_LIMIT is a number of seconds, or 0 for no limit"):
        offload.build(SAXPY, tmp_path / "saxpy.so")


def test_a_limit_that_no_system_call_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFLOAD_TIME_LIMIT", "1e300")
    offload.build(SAXPY, tmp_path / "saxpy.so", cache=False)


def test_a_word_that_is_no_switch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFLOAD_ISOLATE", "no")
    with pytest.raises(offload.OffloadError, match="OFFLOAD_ISOLATE is 0 or 1, not 'no'"):
        offload.build(SAXPY, tmp_path / "saxpy.so")


def test_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setenv("OFFLOAD_ISOLATE", "0")
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(offload.OffloadError, match="leave no room for another thread"):
        offload.build(SAXPY, tmp_path / "x.so", targets=["host"])


def test_a_bounded_number_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    monkeypatch.setattr(crashes, "KEPT", 2)
    (cache / "crashes" / "of-somebody-else").mkdir(parents=True)
    last = [crash("exit", tmp_path / "x.so").reproducer for _ in range(3)][1:]
    names = {path.name for path in (cache / "crashes").iterdir()}
    assert names == {"of-somebody-else", *(Path(str(path)).name for path in last)}


def test_the_oldest_go_whatever_their_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    """The local time, which names begin with, goes back when summer ends; machines share a home and have clocks."""
    monkeypatch.setattr(crashes, "KEPT", 2)
    names = ["29990101-000001-1-0", "29990101-000000-1-0"]
    for age, name in enumerate(names):
        (cache / "crashes" / name).mkdir(parents=True)
        os.utime(cache / "crashes" / name, (2e9 + age, 2e9 + age))  # later than now: a clock that goes ahead
    last = crash("exit", tmp_path / "x.so").reproducer
    assert {path.name for path in (cache / "crashes").iterdir()} == {names[1], Path(str(last)).name}


def test_a_source_whose_name_is_as_long_as_names_can_be(tmp_path: Path) -> None:
    source = tmp_path / ("s" * 250 + ".mlir")
    source.write_bytes(SAXPY.read_bytes())
    with pytest.raises(offload.CompilerCrash) as caught:
        offload.build(source, tmp_path / "x.so", targets=[FaultyTarget(fault="exit")])
    (kept,) = Path(str(caught.value.reproducer)).glob("*.mlir")
    assert kept.read_bytes() == SAXPY.read_bytes()


def test_a_reproducer_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "/proc/self")
    error = crash("exit", tmp_path / "x.so")
    assert error.reproducer is None
    assert str(error).splitlines()[-1].startswith("  what repeats it could not be kept in /proc/self/crashes: ")


def test_a_folder_that_others_write_into_is_no_place_for_what_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import tempfile

    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    root = tmp_path / f"offload-crashes-{os.getuid()}"
    root.mkdir()
    root.chmod(0o777)
    error = crash("exit", tmp_path / "x.so")
    assert (error.reproducer, list(root.iterdir())) == (None, [])
    assert f"could not be kept in {root}: other users may write into it" in str(error)


def test_without_a_cache_it_is_kept_with_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tempfile

    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    error = crash("exit", tmp_path / "x.so")
    assert Path(str(error.reproducer)).parent == tmp_path / f"offload-crashes-{os.getuid()}"
    # Nothing else is left there: the scratch folder of a dead worker is its parent's to remove.
    assert [path.name for path in tmp_path.iterdir()] == [f"offload-crashes-{os.getuid()}"]


@pytest.mark.parametrize(("fault", "kind"), [("nothing", "NoneType"), ("text", "str")])
def test_a_target_whose_image_is_none(fault: str, kind: str, tmp_path: Path) -> None:
    said = f"^target faulty makes no image of 'saxpy_kernel': its stage 'object' ends with {kind}, where bytes belong"
    with pytest.raises(offload.OffloadError, match=said):
        offload.build(SAXPY, tmp_path / "x.so", targets=[FaultyTarget(fault=fault)])


def test_a_program_that_ends_while_a_thread_builds(tmp_path: Path) -> None:
    """It ends the worker, which was taken for a crash, and what would repeat it was kept."""
    code = """
import sys, threading, offload
from faulty_target import FaultyTarget
begun = threading.Event()
options = {"targets": [FaultyTarget(fault="sleep")], "progress": lambda text: begun.set()}
threading.Thread(target=lambda: offload.build(sys.argv[1], "x.so", **options), daemon=True).start()
begun.wait(60)
"""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    given = {**os.environ, "PYTHONPATH": path, "OFFLOAD_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code, SAXPY], cwd=tmp_path, env=given, timeout=60, check=False)
    assert done.returncode == 0
    assert not (tmp_path / "cache" / "crashes").exists()


def test_a_worker_stays_for_the_next_build(tmp_path: Path) -> None:
    offload.build(SAXPY, tmp_path / "x.so")
    first = {worker.pid for worker in processes.alive()}
    offload.build(SAXPY, tmp_path / "x.so")
    assert {worker.pid for worker in processes.alive()} == first
    isolation._state.pool.end()
    assert processes.alive() == []


def test_a_worker_that_does_not_listen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A pipe takes 64 KiB, and then whoever writes waits: the limit did not hold for a longer program."""
    offload.build(SAXPY, tmp_path / "x.so")
    (stopped,) = processes.alive()
    os.kill(stopped.pid, signal.SIGSTOP)
    (tmp_path / "long.mlir").write_text(SAXPY.read_text() + f"// {'long ' * 100_000}\n")
    monkeypatch.setenv("OFFLOAD_TIME_LIMIT", "1.5")
    with pytest.raises(offload.CompilerCrash, match=r"^the compiler was stopped after 1\.5 seconds"):
        offload.build(tmp_path / "long.mlir", tmp_path / "x.so")
    monkeypatch.setenv("OFFLOAD_TIME_LIMIT", "100")
    offload.build(tmp_path / "long.mlir", tmp_path / "x.so")


def test_a_worker_that_was_ended_while_it_waited(tmp_path: Path) -> None:
    """By the system, for its memory: it is no crash of the next build."""
    offload.build(SAXPY, tmp_path / "x.so")
    for worker in processes.alive():
        os.kill(worker.pid, signal.SIGKILL)
    time.sleep(0.2)
    offload.build(SAXPY, tmp_path / "x.so")


def test_workers_are_told_of_while_others_start() -> None:
    """Ctrl-C may come then: that a set had changed would be raised in its place, and the workers went on."""

    class Started:
        pass

    kept: list[Any] = []
    stopped = threading.Event()

    def start() -> None:
        while not stopped.is_set():
            kept.append(Started())
            processes._alive.add(kept[-1])
            if len(kept) > 1000:
                kept.clear()

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(1000):
            processes.alive()
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
        kept.clear()
