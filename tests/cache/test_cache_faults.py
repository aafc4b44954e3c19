"""Builds that are killed, run beside each other, or meet a full disk: what is there afterwards is whole."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from caching import all_whole, entries, leftovers, numbers
from compiling import EXAMPLES, command

import offload

SAXPY = EXAMPLES / "saxpy.mlir"
TARGETS = ("-t", "host", "-t", "rocdl:gfx942")


def start(source: Path, output: Path, cache: Path, *options: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "offload", "build", "-q", str(source), "-o", str(output), *TARGETS, *options]
    environment = os.environ | {"OFFLOAD_CACHE_DIR": str(cache)}
    return subprocess.Popen(words, cwd=output.parent, env=environment, stderr=subprocess.PIPE, start_new_session=True)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What builds without a cache give, for the names of the examples."""
    folder = tmp_path_factory.mktemp("wanted")
    found = {}
    for path in sorted(EXAMPLES.glob("*.mlir")):
        output = folder / f"{path.stem}.so"
        offload.build(path, output, targets=TARGETS[1::2], cache=False)
        found[path.stem] = output.read_bytes()
    return found


def test_killed_at_random_moments(full: bool, tmp_path: Path, wanted: dict[str, bytes]) -> None:
    """One cache and one output. The source changes between builds, so that there is always something to write."""
    cache, output, chance = tmp_path / "cache", tmp_path / "out" / "k.so", random.Random(8)
    output.parent.mkdir()

    def source_with(threads: int) -> Path:
        path = tmp_path / str(threads) / "k.mlir"  # the library has its name
        path.parent.mkdir(exist_ok=True)
        path.write_text(SAXPY.read_text().replace("constant 256", f"constant {threads}"))
        return path

    assert "constant 256" in SAXPY.read_text()
    started = time.perf_counter()
    assert start(source_with(256), output, cache).wait() == 0
    longest = time.perf_counter() - started
    usual = output.read_bytes()
    possible = {usual}
    killed = 0
    turns = 200 if full else 10
    for turn in range(turns):
        source = source_with(turn + 1)
        build = start(source, output, cache)
        time.sleep(chance.uniform(0.05, 1.1 * longest))
        build.kill()
        killed += build.wait() == -signal.SIGKILL
        build.stderr.close()  # type: ignore[union-attr]
        # What is at the output is one of the libraries that were asked for, whole.
        if output.read_bytes() not in possible:
            reference = tmp_path / "reference" / "k.so"
            reference.parent.mkdir(exist_ok=True)
            offload.build(source, reference, targets=TARGETS[1::2], cache=False)
            possible.add(reference.read_bytes())
            assert output.read_bytes() in possible
        assert all_whole(cache) or not entries(cache)
    assert killed >= turns // 5, f"most builds were over before they were killed: {turns - killed} of {turns}"
    assert start(source_with(256), output, cache).wait() == 0
    assert output.read_bytes() == usual
    environment = {"OFFLOAD_CACHE_DIR": str(cache), "TMPDIR": str(tmp_path)}
    assert command("cache", "prune", cwd=tmp_path, environment=environment).returncode == 0
    assert leftovers(cache) == []
    assert list(output.parent.iterdir()) == [output]
    assert numbers(cache)["bytes"] == sum(path.stat().st_size for paths in entries(cache).values() for path in paths)


def test_killed_while_an_entry_is_half_written(tmp_path: Path) -> None:
    """A process that dies with a lock and a temporary file; the next one waits for nobody and cleans up."""
    code = """
import os, signal, sys
from pathlib import Path
from offload.cache.cache import open_cache
from offload import files
cache = open_cache()
claim = cache.claim("image", "ab" * 32)
assert claim.found is None
original = Path.replace
def die(self, target):
    if target.name == "ab" * 32:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, target)
Path.replace = die
cache.write("image", "ab" * 32, bytes(100_000))
"""
    environment = {"OFFLOAD_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.parent.name for path in leftovers(tmp_path / "cache")] == ["locks", "tmp"]
    code = """
from offload.cache.cache import open_cache
claim = open_cache().claim("image", "ab" * 32)
assert claim.found is None
claim.keep(b"payload")
assert open_cache().claim("image", "ab" * 32).found == b"payload"
"""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=os.environ | environment, check=True)
    assert time.perf_counter() - started < 20, "it waited for the dead"
    assert leftovers(tmp_path / "cache") == []


def test_sixteen_processes(tmp_path: Path, wanted: dict[str, bytes]) -> None:
    """The same and different programs at once: each stage of each is compiled once."""
    cache = tmp_path / "cache"
    builds = []
    for number in range(16):
        source = sorted(EXAMPLES.glob("*.mlir"))[number % 5]
        output = tmp_path / str(number) / f"{source.stem}.so"
        output.parent.mkdir()
        builds.append((output, start(source, output, cache)))
    for output, build in builds:
        _, said = build.communicate(timeout=300)
        assert build.returncode == 0, said
        assert said == b""
        assert output.read_bytes() == wanted[output.stem]
    counted = numbers(cache)
    assert counted["library miss"] == 5
    assert counted["library hit"] == 11
    assert counted["image miss"] == len(entries(cache)["image"])
    assert all_whole(cache)
    assert leftovers(cache) == []


def test_sixteen_processes_and_a_cache_that_is_too_small(tmp_path: Path, wanted: dict[str, bytes]) -> None:
    """Others remove what a process is about to use: it is made once more."""
    builds = []
    for number in range(16):
        source = sorted(EXAMPLES.glob("*.mlir"))[number % 5]
        output = tmp_path / str(number) / f"{source.stem}.so"
        output.parent.mkdir()
        builds.append((output, start(source, output, tmp_path / "cache")))
    clearing = time.monotonic() + 2
    while time.monotonic() < clearing:
        shutil.rmtree(tmp_path / "cache" / "image", ignore_errors=True)
        time.sleep(0.05)
    for output, build in builds:
        _, said = build.communicate(timeout=300)
        assert build.returncode == 0, said
        assert output.read_bytes() == wanted[output.stem]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of half a megabyte, where this process may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_disk_that_nothing_may_be_run_from(small_disk: Path, tmp_path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,noexec,size=4m", small_disk], check=True)
    words = ("run", EXAMPLES.parent / "tests" / "programs" / "main.mlir")
    done = command(*words, cwd=tmp_path, environment={"OFFLOAD_CACHE_DIR": str(small_disk / "cache")})
    assert done.returncode == 1
    assert "nothing in that file system may be run (noexec): put it elsewhere; OFFLOAD_CACHE_DIR says" in done.stderr


def test_a_read_only_disk_under_the_output(small_disk: Path, tmp_path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    (tmp_path / "wrong.mlir").write_text("func.func @f() { foo.op }\n")
    done = command("build", tmp_path / "wrong.mlir", "-o", small_disk / "k.so", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        f"offload: error: cannot write {small_disk / 'k.so'}: Read-only file system\n",
    )


def test_a_full_disk_under_the_output(small_disk: Path, tmp_path: Path) -> None:
    output = small_disk / "k.so"
    assert command("build", SAXPY, "-o", output, "--no-cache", "-q", cwd=tmp_path).returncode == 0
    data = output.read_bytes()
    (small_disk / "rest").write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize - 8192))
    done = command("build", SAXPY, "-o", output, "-O1", "--no-cache", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"offload: error: cannot write {output}: No space left on device\n"
    assert output.read_bytes() == data
    assert sorted(path.name for path in small_disk.iterdir()) == ["k.so", "rest"]


def test_a_full_disk_under_the_cache(small_disk: Path, tmp_path: Path, wanted: dict[str, bytes]) -> None:
    cache = small_disk / "cache"
    environment = {"OFFLOAD_CACHE_DIR": str(cache)}
    assert command("build", EXAMPLES / "scale.mlir", "-q", cwd=tmp_path, environment=environment).returncode == 0
    (small_disk / "rest").write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize - 8192))
    done = command("build", SAXPY, *TARGETS, "-q", cwd=tmp_path, environment=environment)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line == (
        f"offload: warning: what was compiled is not kept in the cache folder {cache}: No space left on device; make "
        "room there ('offload cache prune'), or set OFFLOAD_CACHE_DIR to another folder"
    )
    assert (tmp_path / "saxpy.so").read_bytes() == wanted["saxpy"]
    assert all_whole(cache)
    assert leftovers(cache) == []


@pytest.mark.parametrize("room", [16, 200])
def test_a_full_disk_under_the_temporary_files(room: int, small_disk: Path, tmp_path: Path) -> None:
    """Too small for any object file, and for the library alone, into whose mapped file the linker writes."""
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize
    (small_disk / "rest").write_bytes(bytes(free - room * 1024))
    done = command("build", SAXPY, "-q", cwd=tmp_path, environment={"TMPDIR": str(small_disk), "OFFLOAD_CACHE_DIR": ""})
    assert done.returncode == 1
    first = done.stderr.splitlines()[0]
    if room == 16:
        assert re.fullmatch(
            rf"offload: error: cannot write temporary files in {small_disk}\S*: No space left on device; make room "
            "there, or set TMPDIR to another folder",
            first,
        )
    else:
        assert first == (
            "offload: error: the compiler crashed with SIGBUS, as it does where the disk with the temporary files is "
            "full, while it was at linking"
        )
    assert not (tmp_path / "saxpy.so").exists()


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """The limit of the process instead of the disk's, which needs no rights."""
    output = tmp_path / "k.so"
    assert command("build", SAXPY, "-o", output, "-q", "--no-cache", cwd=tmp_path).returncode == 0
    data = output.read_bytes()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) - 4096, len(data) - 4096))

    words = [
        sys.executable,
        "-m",
        "offload",
        "build",
        "-q",
        "-t",
        "host",
        "-O2",
        str(SAXPY),
        "-o",
        str(output),
        "--no-cache",
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    assert output.read_bytes() == data
    assert list(tmp_path.iterdir()) == [output]


def test_a_read_only_cache_serves(tmp_path: Path) -> None:
    """Filled, and then mounted read-only, as in an image of a container."""
    cache = tmp_path / "cache"
    environment = {"OFFLOAD_CACHE_DIR": str(cache)}
    for options in ([], ["-O1"]):
        assert command("build", SAXPY, "-q", *options, cwd=tmp_path, environment=environment).returncode == 0
        if not options:
            shutil.copytree(cache, tmp_path / "copy")
    if subprocess.run(["mount", "-o", "bind,ro", cache, cache], capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a folder read-only here")
    try:
        done = command("build", SAXPY, cwd=tmp_path, environment=environment)
        assert "taking the library from the cache" in done.stderr
        assert "warning" not in done.stderr
        done = command("build", SAXPY, "-q", "-O2", cwd=tmp_path, environment=environment)
        assert done.returncode == 0
        (line,) = done.stderr.splitlines()
        assert line.startswith(
            f"offload: warning: what was compiled is not kept in the cache folder {cache}: Read-only"
        )
        for words in (["clear"], ["prune", "--size", "1k"], ["clear", "--json"]):
            done = command("cache", *words, cwd=tmp_path, environment=environment)
            said = re.fullmatch(rf"offload: error: (\d+) entries stay in {cache}: Read-only file system\n", done.stderr)
            assert done.returncode == 1
            assert said
            assert int(said[1]) >= 2
        assert json.loads(done.stdout)["refused"] == int(said[1])
    finally:
        subprocess.run(["umount", cache], check=True)


def test_pipes_in_place_of_files_are_not_waited_for(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    words = ("build", EXAMPLES / "saxpy.mlir", "-q", "-o", "a.so", "-t", "host")
    environment = {"OFFLOAD_CACHE_DIR": str(cache), "TMPDIR": str(tmp_path)}
    assert command(*words, cwd=tmp_path, environment=environment).returncode == 0
    built = (tmp_path / "a.so").read_bytes()
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"contents.json", "ledger.json"}
    for path in [*files, cache / "tmp" / ".a.offload-tmp"]:
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o600)
    for action in ("info", "prune"):
        assert command("cache", action, cwd=tmp_path, environment=environment).returncode == 0
    done = command(*words, cwd=tmp_path, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.so").read_bytes() == built
    assert all_whole(cache)
