"""Builds on a Dask cluster: the same bytes, errors and progress, also where a process is lost midway."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, InvalidStateError
from pathlib import Path
from threading import Timer
from types import SimpleNamespace

import pytest
from compiling import EXAMPLES, command
from distributed import Client, LocalCluster

import offload
from offload import executors

NAMES = ("saxpy", "reduce", "linear", "scale")


pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Each library as it is when built here."""
    folder = tmp_path_factory.mktemp("alone")
    return {
        name: offload.build(EXAMPLES / f"{name}.mlir", folder / f"{name}.so").read_bytes() for name in NAMES
    }  # fmt: skip


def built(names: tuple[str, ...], folder: Path, url: str) -> dict[str, bytes]:
    with executors.opened(url) as executor:
        requests = [{"sources": EXAMPLES / f"{name}.mlir", "output": folder / f"{name}.so"} for name in names]
        return {path.stem: path.read_bytes() for path in offload.build_all(requests, executor=executor)}


@pytest.mark.parametrize("workers", [2, 4])
def test_a_local_cluster(workers: int, expected: dict[str, bytes], tmp_path: Path) -> None:
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
    ) as cluster:
        assert built(NAMES, tmp_path, cluster.scheduler_address.replace("tcp:", "dask:")) == expected


def started(*words: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]], cwd=folder,
        stdout=(folder / f"{words[0]}.log").open("ab"), stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process of its own, over loopback."""
    processes = [started("dask_scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1", folder=tmp_path)]
    try:
        end, found = time.monotonic() + 60, None
        while found is None and time.monotonic() < end:
            time.sleep(0.1)
            found = re.search(r"tcp://127\.0\.0\.1:\d+", (tmp_path / "dask_scheduler.log").read_text())
        assert found, (tmp_path / "dask_scheduler.log").read_text()
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            processes.append(
                started(
                    *("dask_worker", found[0], "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name),
                    *("--local-directory", str(tmp_path / name)),
                    folder=tmp_path,
                )
            )
        with Client(found[0], timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
        yield found[0].replace("tcp:", "dask:"), processes
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def test_a_process_that_is_lost(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], expected: dict[str, bytes], tmp_path: Path
) -> None:
    url, processes = cluster
    with executors.opened(url) as executor:
        assert executor is not None
        # Both have compiled once, and know that the next builds take a moment.
        paths = offload.build_all(_many(tmp_path, processes[1]), executor=executor)
    assert processes[1].poll() == -signal.SIGKILL
    assert [path.read_bytes() for path in paths] == [expected[path.stem] for path in paths]


def test_a_process_that_is_lost_within_a_build(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    url, processes = cluster
    targets = ["nvvm:sm_80", "nvvm:sm_90", "rocdl:gfx90a", "rocdl:gfx942", "rocdl:gfx1100", "host"]
    source, lines = EXAMPLES / "linear.mlir", []
    (kill,) = _kill_midway(processes[1], 1, at=0)

    def progress(text: str) -> None:
        kill(text)
        lines.append(text)

    alone = offload.build(source, tmp_path / "alone.so", targets=targets)
    spread = offload.build(source, tmp_path / "spread.so", targets=targets, executor=url, progress=progress)
    assert processes[1].poll() == -signal.SIGKILL
    assert spread.read_bytes() == alone.read_bytes()
    assert len(lines) == 4 + 4 * len(targets), lines


def test_a_scheduler_that_is_lost(cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path) -> None:
    url, processes = cluster
    with pytest.raises(offload.OffloadError, match=f"^the cluster {url} was lost: its scheduler does not answer"):
        offload.build_all(_many(tmp_path, processes[0]), executor=url)


def test_a_job_that_was_handed_over_while_its_scheduler_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's client forgets it: its future never ends. A job's own timeout is another matter."""
    monkeypatch.setattr(executors, "_PATIENCE", 0.01)
    lost = SimpleNamespace(_client=SimpleNamespace(status="closed"))
    with pytest.raises(CancelledError):
        executors.result(lost, Future())  # type: ignore[arg-type]
    late: Future[int] = Future()
    late.set_exception(TimeoutError("too late"))
    with pytest.raises(TimeoutError, match="too late"):
        executors.result(lost, late)  # type: ignore[arg-type]
    there = SimpleNamespace(_client=SimpleNamespace(status="running"))
    slow: Future[int] = Future()
    Timer(0.1, slow.set_result, [7]).start()
    assert executors.result(there, slow) == 7  # type: ignore[arg-type]


def test_a_job_that_ends_as_the_wait_for_it_does() -> None:
    class Ending(Future[int]):
        def result(self, timeout: float | None = None) -> int:
            if timeout is None:
                return super().result()
            self.set_result(7)
            raise TimeoutError

    there = SimpleNamespace(_client=SimpleNamespace(status="running"))
    assert executors.result(there, Ending()) == 7  # type: ignore[arg-type]


def test_a_build_that_ends_its_processes(tmp_path: Path) -> None:
    """As one does that takes more memory than there is."""
    with LocalCluster(
        n_workers=1, processes=True, dashboard_address=None, local_directory=str(tmp_path),
        scheduler_kwargs={"allowed_failures": 0},
    ) as cluster:  # fmt: skip
        url = cluster.scheduler_address.replace("tcp:", "dask:")
        message = f"^the cluster {url} has given a build up: "
        with pytest.raises(offload.OffloadError, match=message), executors.opened(url) as executor:
            assert executor is not None
            executor.submit(os._exit, 1).result()


def _many(folder: Path, process: subprocess.Popen[bytes]) -> list[dict[str, object]]:
    """Builds of which one ends a process midway."""
    names = [name for _ in range(6) for name in NAMES]
    for number, _ in enumerate(names):
        (folder / str(number)).mkdir()
    return [
        {"sources": EXAMPLES / f"{name}.mlir", "output": folder / str(number) / f"{name}.so", "progress": lost}
        for number, (name, lost) in enumerate(zip(names, _kill_midway(process, len(names)), strict=True))
    ]


def _kill_midway(process: subprocess.Popen[bytes], count: int, at: int = 2) -> list[Callable[[str], None]]:
    """Progress of as many builds; that of one of them, the third, ends a process."""

    def kill(text: str) -> None:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()

    return [kill if number == at else (lambda text: None) for number in range(count)]


def test_results_of_jobs_that_were_given_up_are_no_news(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], caplog: pytest.LogCaptureFixture
) -> None:
    def logged() -> list[type[BaseException]]:
        caplog.clear()
        for error in (InvalidStateError("late"), ValueError("another")):
            logging.getLogger("tornado.application").error("in a callback", exc_info=error)
        return [type(record.exc_info[1]) for record in caplog.records if record.exc_info and record.exc_info[1]]

    with executors.opened(cluster[0]):
        assert logged() == [ValueError]
    assert logged() == [InvalidStateError, ValueError]


def test_the_command(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], expected: dict[str, bytes], tmp_path: Path
) -> None:
    url, _ = cluster
    done = command("build", EXAMPLES / "saxpy.mlir", "--executor", url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "saxpy.so").read_bytes() == expected["saxpy"]
    assert "linking" in done.stderr
    path = offload.build(EXAMPLES / "linear.mlir", tmp_path / "linear.so", executor=url)
    assert path.read_bytes() == expected["linear"]
    (path,) = offload.build_all([{"sources": EXAMPLES / "scale.mlir", "output": tmp_path / "scale.so"}], executor=url)
    assert path.read_bytes() == expected["scale"]
    assert "saxpy" in offload.compile(EXAMPLES / "saxpy.mlir", executor=url).functions
    (tmp_path / "saxpy.mlir").write_bytes((EXAMPLES / "saxpy.mlir").read_bytes())
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "pkg.k"\nsources = ["saxpy.mlir"]\n')
    words = [sys.executable, "-m", "offload.hooks", "build", "pyproject.toml", "--output", "out", "--executor", url]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "out" / "pkg" / "k.offload.so").exists()
    (tmp_path / "wrong.mlir").write_text("func.func @f() { foo.bar }\n")
    done = command("build", "-q", "wrong.mlir", "--executor", url, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("wrong.mlir:1:18: error: unknown operation 'foo.bar': ")


@pytest.mark.parametrize(
    "url", ["dask://", "tcp://127.0.0.1:1", "dask://127.0.0.1", "dask://127.0.0.1:x", "here", "dask://[::1"]
)
def test_urls_that_are_none(url: str, tmp_path: Path) -> None:
    done = command("build", EXAMPLES / "saxpy.mlir", "--executor", url, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"offload: error: no executor {url!r}: write dask://HOST:PORT, the address of a Dask cluster's scheduler\n"
    )
    source = EXAMPLES / "saxpy.mlir"
    for made in (
        lambda: offload.build(source, tmp_path / "a.so", executor=url),
        lambda: offload.compile(source, executor=url),
        lambda: offload.build_all([{"sources": source, "output": tmp_path / "a.so"}], executor=url),
    ):
        with pytest.raises(offload.OffloadError, match=f"^no executor {re.escape(repr(url))}: write dask://HOST:PORT"):
            made()


@pytest.mark.parametrize("executor", [4, b"dask://127.0.0.1:1", ["dask://127.0.0.1:1"]])
def test_what_is_no_executor(executor: object, tmp_path: Path) -> None:
    said = rf"^executor is one of concurrent.futures', the URL of a Dask .* or None, not {re.escape(repr(executor))}$"
    with pytest.raises(TypeError, match=said):
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "a.so", executor=executor)  # type: ignore[arg-type]
