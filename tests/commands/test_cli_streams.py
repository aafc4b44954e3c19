"""The command line with standard streams that are closed, full, or of another encoding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES

SAXPY = EXAMPLES / "saxpy.mlir"


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line of the shell; ``$offload`` is the command, ``$saxpy`` a program."""
    variables = {**os.environ, "offload": f"{sys.executable} -P -m offload", "saxpy": str(SAXPY), **environment}
    return subprocess.run(["sh", "-c", line], cwd=folder, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    """Files that are opened later must not get the numbers of these."""
    assert shell(f"$offload build $saxpy -o a.so {closed}", tmp_path).returncode == 0
    done = shell(f"$offload inspect a.so {closed} && $offload build $saxpy --emit isa {closed}", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize("given", ["<&-", "0>nothing"])
def test_a_program_from_a_closed_stream(given: str, tmp_path: Path) -> None:
    """It is not an empty program."""
    for command in ("build", "run"):
        done = shell(f"$offload {command} - {given}", tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "offload: error: cannot read standard input: Bad file descriptor\n"
    assert not (tmp_path / "stdin.so").exists()


def test_output_on_a_full_disk(tmp_path: Path) -> None:
    for command in ("targets --json", "build -q $saxpy --emit isa"):
        done = shell(f"$offload {command} >/dev/full", tmp_path)
        assert done.returncode == 1
        assert done.stderr == "offload: error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("words", ["--version", "--help", "build --help"])
def test_help_that_nobody_reads(words: str, tmp_path: Path) -> None:
    """Python itself ends with 120 and words of its own where it cannot write at the end."""
    variables = {"PYTHONUNBUFFERED": ""}
    done = shell(f"$offload {words} >/dev/full", tmp_path, **variables)
    assert (done.returncode, done.stderr) == (1, "offload: error: cannot write the output: No space left on device\n")
    done = shell(f"(sleep 1; $offload {words}; echo $? >&2) | true", tmp_path, **variables)
    assert done.stderr == "141\n"


def unread(*words: str, folder: Path, streams: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """A command nobody reads these streams of."""
    reading, writing = os.pipe()
    os.close(reading)
    given = {name: writing if name in streams else subprocess.PIPE for name in ("stdout", "stderr")}
    try:
        return subprocess.run(
            [sys.executable, "-P", "-m", "offload", *words], cwd=folder, text=True, check=False, **given
        )  # type: ignore[call-overload,no-any-return]
    finally:
        os.close(writing)


@pytest.mark.parametrize(
    "words",
    [("targets",), ("doctor",), ("cache", "info"), ("build", SAXPY, "--print-pipeline"), ("run", "loud.mlir"),
     ("build", SAXPY, "--emit", "isa", "-q"), ("inspect", "a.so", "--json")],
)  # fmt: skip
def test_output_that_nobody_reads(words: tuple[str, ...], tmp_path: Path) -> None:
    """It ends as commands do that the signal ends."""
    (tmp_path / "loud.mlir").write_text(
        "func.func @main() -> i32 {\n  %0 = arith.constant 7 : i32\n  return %0 : i32\n}\n"
    )
    shell("$offload build -q $saxpy -o a.so", tmp_path)
    done = unread(*map(str, words), folder=tmp_path, streams=("stdout",))
    assert done.returncode == 141
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("streams", [("stderr",), ("stdout", "stderr")])
def test_messages_that_nobody_reads(streams: tuple[str, ...], tmp_path: Path) -> None:
    """What is said is lost, what is done is done."""
    done = unread("build", str(SAXPY), "-o", "a.so", folder=tmp_path, streams=streams)
    assert done.returncode == 0
    assert (tmp_path / "a.so").is_file()
    for code, words in ((1, ("build", "nothing.mlir")), (2, ("nonsense",)), (2, ()), (2, ("build",))):
        assert unread(*words, folder=tmp_path, streams=streams).returncode == code


def test_output_in_ascii(tmp_path: Path) -> None:
    done = shell("$offload build --help", tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stage_without_a_name(tmp_path: Path) -> None:
    done = shell("$offload build $saxpy --emit ''", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("offload build: unknown stage ''; stages are: input, ")


def test_a_build_of_tables_whose_reader_goes_away(tmp_path: Path) -> None:
    """What it says is lost, what it builds is not."""
    source = f'module = "top"\nsources = ["{SAXPY.name}"]\noptional-targets = ["nvvm:sm_90"]\n'
    (tmp_path / SAXPY.name).write_bytes(SAXPY.read_bytes())
    (tmp_path / "pyproject.toml").write_text(f"[[tool.offload.kernels]]\n{source}")
    hooks = f"'{sys.executable}' -P -m offload.hooks module top --pyproject pyproject.toml --output out"
    # Where the toolkit is missing, it says so before it builds.
    done = shell(f"(sleep 1; {hooks}; echo $? >&2) | true", tmp_path, CUDA_HOME=str(tmp_path))
    assert done.stderr == "0\n"
    assert (tmp_path / "out" / "top.offload.so").is_file()
