"""Builds side by side, on this machine and through executors: the same bytes, the first error, and Ctrl-C."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Timer, get_ident
from typing import Any

import pytest
from compiling import EXAMPLES, HERE, python
from faulty_target import FaultyTarget
from unsendable_target import UnsendableTarget

import offload
from offload import executors
from offload.compiler import isolation, parallel

NAMES = ("saxpy", "reduce", "linear", "scale")
TARGETS = ["nvvm:sm_90", "host"]


pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Each library as it is when built alone."""
    folder = tmp_path_factory.mktemp("alone")
    return {
        name: offload.build(EXAMPLES / f"{name}.mlir", folder / f"{name}.so", targets=TARGETS).read_bytes()
        for name in NAMES
    }


def requests(folder: Path) -> list[dict[str, object]]:
    return [
        {"sources": EXAMPLES / f"{name}.mlir", "output": folder / f"{name}.so", "targets": TARGETS} for name in NAMES
    ]


def libraries(paths: list[Path]) -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in paths}


def test_all_are_built(expected: dict[str, bytes], tmp_path: Path) -> None:
    assert libraries(offload.build_all(requests(tmp_path))) == expected
    assert offload.build_all([]) == []


def test_two_builds_of_one_output(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    builds = [
        {"sources": EXAMPLES / "saxpy.mlir", "output": tmp_path / "a.so"},
        {"sources": EXAMPLES / "scale.mlir", "output": f"{tmp_path}/folder/../a.so"},
    ]
    with pytest.raises(offload.OffloadError, match=r"two builds write .*/a\.so, one over the other"):
        offload.build_all(builds)
    assert not (tmp_path / "a.so").exists()


@pytest.fixture(scope="module", params=["processes", "threads"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "threads":
        with ThreadPoolExecutor(2) as threads:
            yield threads
    else:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
            yield processes


def test_executors(expected: dict[str, bytes], executor: Executor, tmp_path: Path) -> None:
    assert libraries(offload.build_all(requests(tmp_path), executor=executor)) == expected
    lines: list[str] = []
    path = offload.build(
        EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", targets=TARGETS, executor=executor, progress=lines.append
    )
    assert path.read_bytes() == expected["saxpy"]
    assert lines[0] == "parsing"
    assert lines[-1] == "linking"
    library = offload.compile((EXAMPLES / "saxpy.mlir").read_text() + "\n// of an executor\n", executor=executor)
    assert list(library.functions) == ["saxpy"]


def test_errors_of_executors(executor: Executor, tmp_path: Path) -> None:
    """A crash costs no process of the pool."""
    (tmp_path / "wrong.mlir").write_text("func.func @f() { foo.bar }\n")
    with pytest.raises(offload.CompileError, match=r"wrong.mlir:1:18: error: unknown operation 'foo.bar': "):
        offload.build(tmp_path / "wrong.mlir", tmp_path / "x.so", executor=executor)
    with pytest.raises(offload.CompilerCrash, match="crashed with SIGABRT"):
        offload.build(
            EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=[FaultyTarget(fault="abort")], executor=executor
        )
    assert offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", executor=executor).exists()


@pytest.mark.parametrize("error", ["TypeError", "RecursionError", "ValueError"])
def test_a_build_that_cannot_be_sent(executor: Executor, error: str, tmp_path: Path) -> None:
    """What pickle raises came through as it is, from pools and, but for a TypeError, from workers."""
    target = UnsendableTarget(error=error)
    with pytest.raises(offload.OffloadError, match=r"this build cannot be sent to the (executor|worker): no way\n"):
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=[target], executor=executor)
    with pytest.raises(offload.OffloadError, match=r"this build cannot be sent to the worker: no way\n"):
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=[target])


def test_an_executor_that_is_no_more(tmp_path: Path) -> None:
    """concurrent.futures' errors came through as they are."""
    code = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import offload
executor = ProcessPoolExecutor(1, mp_context=get_context("fork"))
for ends in (lambda: executor.submit(os._exit, 3), lambda: time.sleep(0.5), executor.shutdown):
    try:
        ends()
        offload.build(sys.argv[1], "x.so", executor=executor)
    except offload.OffloadError as error:
        print(str(error).partition(":")[0])
"""
    lost, broken, shut = python(code, EXAMPLES / "saxpy.mlir", cwd=tmp_path).splitlines()
    assert lost in ("the executor has lost its processes, and this build with them", "the executor takes no builds")
    assert broken == shut == "the executor takes no builds"


def test_words_of_executors(
    executor: Executor,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """They are for who asked, once, whether the build goes well or not."""
    with caplog.at_level(logging.DEBUG, logger="offload.tools"):
        offload.build(
            EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=[FaultyTarget(fault="talk")], executor=executor
        )
    assert caplog.messages.count("a logged command") == 1
    assert sorted(capfd.readouterr().err.splitlines()) == ["a word on stderr", "a word on stdout"]
    lines: list[str] = []
    (tmp_path / "wrong.mlir").write_text(
        "func.func private @nowhere()\nfunc.func @f() { call @nowhere() : () -> ()\n return }\n"
    )
    with pytest.raises(offload.LinkError):
        offload.build(tmp_path / "wrong.mlir", tmp_path / "x.so", executor=executor, progress=lines.append)
    assert lines[-1] == "linking"


def test_the_first_error_is_raised(tmp_path: Path) -> None:
    (tmp_path / "first.mlir").write_text("func.func @f() { foo.first }\n")
    (tmp_path / "second.mlir").write_text("func.func @f() { foo.second }\n")
    some = requests(tmp_path)[:1]
    some += [{"sources": tmp_path / f"{name}.mlir", "output": tmp_path / f"{name}.so"} for name in ("first", "second")]
    with pytest.raises(offload.CompileError, match=r"first.mlir:1:18"):
        offload.build_all(some)


INTERRUPTED = """
import os, signal, sys, threading, time, offload
from faulty_target import FaultyTarget
from offload.compiler import processes

started = processes.spawned
sources = [sys.argv[1]] * 4

{prelude}

if __name__ == "__main__":
    targets = [FaultyTarget(fault="sleep")]
    offload.build_all(
        [{{"sources": source, "output": f"{{n}}.so", "targets": targets}} for n, source in enumerate(sources)]
    )
"""
FROM_OUTSIDE = ""
TO_ANOTHER_THREAD = """
def late():
    found = started()
    threading.Timer(1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
    return found

processes.spawned = late
"""
"""Where the system puts Ctrl-C when another thread is about to start a process."""
WHILE_A_WORKER_STARTS = """
first = threading.Lock()

def late():
    if first.acquire(blocking=False):  # a second Ctrl-C would end Python while it waits for its threads
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    time.sleep(2)
    return started()

processes.spawned = late
"""
WHILE_BUILDS_ARE_HANDED_OVER = """
from concurrent.futures import ThreadPoolExecutor

submit = ThreadPoolExecutor.submit

def interrupted(*arguments):
    found = submit(*arguments)
    interrupted.times += 1
    if interrupted.times == 3:
        signal.raise_signal(signal.SIGINT)
    return found

interrupted.times = 0
ThreadPoolExecutor.submit = interrupted
"""
AFTER_AN_ERROR = """
from concurrent.futures import Future

sources[:] = ["wrong.mlir", sys.argv[1]]
cancel = Future.cancel

def cancelled(future):
    threading.Timer(1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
    Future.cancel = cancel
    return cancel(future)

Future.cancel = cancelled
"""
"""One build has failed, and the others are waited for."""


@pytest.mark.parametrize(
    "prelude",
    [FROM_OUTSIDE, TO_ANOTHER_THREAD, WHILE_A_WORKER_STARTS, WHILE_BUILDS_ARE_HANDED_OVER, AFTER_AN_ERROR],
    ids=["outside", "another thread", "while a worker starts", "while builds are handed over", "after an error"],
)
def test_an_interrupt_ends_all(prelude: str, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "wrong.mlir").write_text("func.func @f( {\n")
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(prelude=prelude), EXAMPLES / "saxpy.mlir"], cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "TMPDIR": str(tmp_path / "temporary")}, start_new_session=True,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + 30
    while prelude == FROM_OUTSIDE and not list((tmp_path / "temporary").glob("*/offload-*")) and time.monotonic() < end:
        time.sleep(0.05)
    if prelude == FROM_OUTSIDE:
        os.killpg(process.pid, signal.SIGINT)
    try:
        said = process.communicate(timeout=30)[1]
    finally:
        process.kill()
    assert said.endswith("KeyboardInterrupt\n"), said
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not list(tmp_path.glob("*.so"))


def test_builds_inside_of_builds_are_given_up_with_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function for progress may build; its workers may not be there yet when Ctrl-C ends all that are."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    token = isolation.given_up.set(lambda: True)
    try:
        assert parallel.each(lambda _: isolation.given_up.get()(), [0, 1]) == [True, True]
    finally:
        isolation.given_up.reset(token)


def test_workers_that_were_idle_when_builds_were_given_up_build_no_more(tmp_path: Path) -> None:
    """They are there for a moment yet, and the next build would be given up, too."""
    offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "first.so", targets=["host"])
    for _ in range(5):
        isolation.stop()
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "next.so", targets=["host"])


def test_the_words_of_an_executor_that_has_lost_its_threads() -> None:
    """Each kind of executor ends its sentence in another way."""
    for words in ("no stop", "a stop."):
        future: Future[None] = Future()
        future.set_exception(BrokenExecutor(words))
        with ThreadPoolExecutor(1) as pool, pytest.raises(offload.OffloadError, match=r" stop\. Where memory runs"):
            executors.result(pool, future)


class Late(Executor):
    """Jobs that cannot be taken back, as those under way on another machine, and end after a while."""

    _max_workers = 4

    def submit(self, *_: object, **__: object) -> Future[Any]:  # type: ignore[override]
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        end = Timer(30, future.set_exception, [RuntimeError("late")])
        end.daemon = True
        end.start()
        return future


def test_an_interrupt_does_not_wait_for_other_machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(executors, "_PATIENCE", 0.05)
    begun = time.monotonic()
    # To this thread: a signal for the process may find another one, and does not wake this one then.
    Timer(0.5, signal.pthread_kill, [get_ident(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        offload.build_all(requests(tmp_path), executor=Late())
    assert time.monotonic() - begun < 20


def test_the_modules_of_a_project(expected: dict[str, bytes], tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.mlir").write_bytes((EXAMPLES / f"{name}.mlir").read_bytes())
    table = '[[tool.offload.kernels]]\nmodule = "pkg.{0}"\nsources = ["{0}.mlir"]\ntargets = ["host"]\n'
    (tmp_path / "pyproject.toml").write_text("".join(table.format(name) for name in NAMES))
    words = [sys.executable, "-m", "offload.hooks", "build", "pyproject.toml", "--output", "out"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    # What is said comes in the order of the tables.
    said = [line.split(":")[0] for line in done.stdout.splitlines() if line.startswith("pkg.")]
    assert said == [f"pkg.{name}" for name in NAMES]
    assert {path.name for path in (tmp_path / "out" / "pkg").glob("*.so")} == {f"{name}.offload.so" for name in NAMES}
    # Again: nothing is built.
    again = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert again.stdout.count("(as it was)") == len(NAMES)
