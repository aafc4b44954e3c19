"""External programs: how they are run, and started before there is anything for them to do."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES, emit, python
from offload.targets import run_tool, tools
from offload.targets.tools import RunningTool

import offload
from offload.errors import CompileError, ToolkitError

MATRIX = '!gpu.mma_matrix<64x64xf16, "COp">'
NO_SUCH_MATRIX = f"""
gpu.module @m {{
  gpu.func @k(%x: memref<64x64xf16>) kernel {{
    %c0 = arith.constant 0 : index
    %a = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {{leadDimension = 64 : index}} : memref<64x64xf16> -> {MATRIX}
    gpu.subgroup_mma_store_matrix %a, %x[%c0, %c0] {{leadDimension = 64 : index}} : {MATRIX}, memref<64x64xf16>
    gpu.return
  }}
}}
"""


def test_a_tool_that_fails_shows_its_command_and_output(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho to stdout\necho to stderr >&2\nexit 5\n")
    program.chmod(0o755)
    with pytest.raises(CompileError) as caught:
        run_tool([program, "--flag", "a b"], "do it")
    assert str(caught.value) == (
        f"cannot do it: exit code 5\n  command: {program} --flag 'a b'\n  output:\nto stdout\nto stderr"
    )


@pytest.mark.parametrize(
    ("name", "said"), [("SEGV", "SIGSEGV"), ("KILL", "SIGKILL, as the system does where memory runs out")]
)
def test_a_tool_that_crashes(name: str, said: str) -> None:
    with pytest.raises(CompileError, match=rf"^cannot do it: ended by {said}\n  command: sh -c"):
        run_tool(["sh", "-c", f"kill -{name} $$"], "do it")


@pytest.mark.parametrize("does", ["true", ": > cubin"])
def test_a_tool_that_writes_nothing(does: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library without an image would be kept, and refused by the driver on another machine."""
    monkeypatch.chdir(tmp_path)
    message = (
        r"^cannot do it: sh reports no error and has written nothing: another program may have its name\n  command: "
    )
    with pytest.raises(ToolkitError, match=message):
        run_tool(["sh", "-c", does], "do it", tmp_path / "cubin")
    tool = tmp_path / "bin" / "ptxas"
    tool.parent.mkdir()
    tool.write_text(
        '#!/bin/sh\nwhile [ "$1" ]; do [ "$1" = -o ] && cubin=$2; shift; done\n' + does.replace("cubin", '"$cubin"')
    )
    tool.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(ToolkitError, match=rf"^cannot assemble for sm_90: {tool} reports no error"):
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets="nvvm:sm_90")


def test_a_tool_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match=f"cannot do it: {tmp_path}/gone cannot be started: "):
        run_tool([tmp_path / "gone"], "do it")


def test_tools_take_large_pages_and_what_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = [sys.executable, "-c", "import os; print(os.environ['GLIBC_TUNABLES'])"]
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert run_tool(asks, "ask").strip() == tools.LARGE_PAGES
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0")
    assert run_tool(asks, "ask").strip() == f"{tools.LARGE_PAGES}:glibc.malloc.hugetlb=0"


def test_tools_have_their_temporary_files_where_ours_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker's are in a folder that is removed with it, however it and its tools end."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asks = [sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"]
    assert run_tool(asks, "ask").strip() == str(tmp_path)


def test_a_tool_that_waits_for_its_input() -> None:
    tool = RunningTool([sys.executable, "-c", "import sys; print(sys.stdin.read().upper())"], "shout")
    assert tool.finish(b"so much " * 100_000) == "SO MUCH " * 100_000 + "\n"
    tool.stop()  # it has ended


def test_a_tool_that_does_not_read_its_input() -> None:
    tool = RunningTool(["sh", "-c", "echo no; exit 3"], "ask")
    with pytest.raises(CompileError, match=r"(?s)cannot ask: exit code 3.*  output:\nno$"):
        tool.finish(b"please " * 100_000)


def test_a_tool_that_is_stopped() -> None:
    tool = RunningTool(["sleep", "600"], "wait")
    tool.stop()
    assert tool._process.returncode is not None


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes of tools that builds in this process start."""
    monkeypatch.setenv("OFFLOAD_ISOLATE", "0")
    found: list[subprocess.Popen[bytes]] = []
    start = RunningTool.__init__

    def noted(self: RunningTool, *arguments: object) -> None:
        start(self, *arguments)  # type: ignore[arg-type]
        found.append(self._process)

    monkeypatch.setattr(RunningTool, "__init__", noted)
    return found


def test_the_assembler_is_there_before_its_text(started: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """And makes of it what it makes of a file."""
    offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets="nvvm:sm_90", cache=False)
    ((process, command),) = ((each, list(map(str, each.args))) for each in started)  # type: ignore[arg-type]
    assert process.returncode == 0
    ptx, cubin = tmp_path / "saxpy.ptx", tmp_path / "saxpy.cubin"
    (emitted,) = emit(EXAMPLES / "saxpy.mlir", "isa", ["nvvm:sm_90"])
    ptx.write_bytes(emitted.data)
    words = command[: command.index("-")]
    subprocess.run([*words, ptx, "-o", cubin], check=True, capture_output=True)
    (image,) = offload.artifact.read(tmp_path / "x.so").images
    assert image.data == cubin.read_bytes()


def test_an_assembler_that_is_not_needed_after_all(started: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text(NO_SUCH_MATRIX)
    with pytest.raises(offload.CompileError, match=r"gpu\.subgroup_mma_load_matrix"):
        offload.build(tmp_path / "p.mlir", tmp_path / "x.so", targets="nvvm:sm_90", cache=False)
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_an_assembler_that_cannot_be_started(tmp_path: Path) -> None:
    """Chips whose assembly is alike wait for the one that has it written, which has none: they waited for ever."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ptxas").write_text("no program")
    code = """if True:
        import os
        import sys

        import offload
        from offload.errors import ToolkitError

        os.cpu_count = lambda: 1  # for the first target alone the assembler is started ahead
        targets = ["nvvm:sm_80", "nvvm:sm_86"]
        try:
            offload.build(sys.argv[1], "x.so", targets=targets, cache=False)
        except ToolkitError as error:
            print(error)
    """
    where = {"CUDA_HOME": str(tmp_path), "OFFLOAD_ISOLATE": "0"}
    said = python(code, EXAMPLES / "saxpy.mlir", cwd=tmp_path, environment=where)
    assert said.startswith(f"cannot assemble for sm_80: {tmp_path}/bin/ptxas cannot be started: ")
