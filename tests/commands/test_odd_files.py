"""Files with odd names, in odd places and with odd bytes at their beginning: built, or refused with a sentence."""

from __future__ import annotations

import codecs
import errno
import gzip
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from compiling import ALL_TARGETS, EXAMPLES, command
from offload.targets.sysroot import Sysroot, here
from operations import kernel

import offload
from offload.cli import main
from offload.hooks.build import build_modules
from offload.hooks.project import read_tables

SAXPY = (EXAMPLES / "saxpy.mlir").read_bytes()
ODD = os.fsdecode(b"caf\xe9")
"""Latin-1, which UTF-8 has no such bytes for."""


def test_a_source_whose_name_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / f"{ODD}.mlir").write_bytes(SAXPY)
    done = command("build", f"{ODD}.mlir", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / f"{ODD}.so").exists()
    done = command("build", f"{ODD}.mlir", "-o", f"{ODD}.mlir", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert "it is one of the sources" in done.stderr
    (tmp_path / f"{ODD}.mlir").write_text("func.func @f() {\n")
    done = command("build", f"{ODD}.mlir", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("caf\N{REPLACEMENT CHARACTER}.mlir:1:17: error: ")


@pytest.mark.parametrize("text", [b"", b" \n", codecs.BOM_UTF8, bytes(300)])
def test_an_empty_source(text: bytes, tmp_path: Path) -> None:
    """What a tool leaves that failed, or a disk that lost the file: a library of it would be one without a function."""
    (tmp_path / "a.mlir").write_bytes(text)
    done = command("build", "a.mlir", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "offload: error: a.mlir is empty: it is to hold a program, MLIR text or bytecode\n"
    assert not (tmp_path / "a.so").exists()


@pytest.mark.parametrize("mark", ["\N{ZERO WIDTH NO-BREAK SPACE}", ""])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_source_in_utf_16(encoding: str, mark: str, tmp_path: Path) -> None:
    """As PowerShell's redirection has written it, and iconv without a byte order mark."""
    text = f"{mark}func.func @f() {{ return }}\n"
    (tmp_path / "a.mlir").write_bytes(text.encode(encoding))
    done = command("build", "a.mlir", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "offload: error: a.mlir is text in UTF-16: save it as UTF-8, which MLIR reads\n"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_source_that_is_compressed(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_bytes(pack(SAXPY))
    said = r"compressed \((gzip|xz)\), where MLIR is needed, text or bytecode; unpack it$"
    with pytest.raises(offload.OffloadError, match=f"^cannot compile {tmp_path}/a.mlir: it is {said}"):
        offload.build(tmp_path / "a.mlir", tmp_path / "a.so")
    with pytest.raises(offload.OffloadError, match=f"^cannot compile <bytes>: it is {said}"):
        offload.compile(pack(SAXPY))


def test_a_line_that_a_terminal_would_obey(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_bytes(b"\t\x1b[2J\x07\xc2\x9bfunc.func @f() { return }\r\n")
    done = command("build", "a.mlir", "-q", cwd=tmp_path)
    assert done.returncode == 1
    shown = "\t\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}func.func @f() { return }"
    assert done.stderr.splitlines()[1:] == [shown, "\t^"]


def test_line_information_in_a_folder_whose_name_is_not_utf8(tmp_path: Path) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    targets = [word for target in ALL_TARGETS for word in ("-t", target)]
    done = command("build", EXAMPLES / "saxpy.mlir", "-g", "-q", *targets, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_temporary_files_and_options_whose_names_are_not_utf8(tmp_path: Path) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    targets = [word for target in ALL_TARGETS for word in ("-t", target)]
    words = ["build", EXAMPLES / "saxpy.mlir", "-q", "-o", "a.so", *targets, "--runtime", "shared"]
    done = command(*words, cwd=folder, environment={"TMPDIR": str(folder), "OFFLOAD_CACHE_DIR": ""})
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "wrong.bc").write_bytes(b"no bitcode")
    done = command(*words, "--link", folder / "wrong.bc", "--reproducer", folder / "why", cwd=folder)
    assert done.returncode == 1
    assert "cannot read the bitcode library" in done.stderr


def test_a_target_that_is_linked_with_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / ODD).mkdir()
    target = "host,link=" + f"{ODD}/a.ll"
    (tmp_path / ODD / "a.ll").write_text("define void @own() { ret void }\n")
    done = command("build", EXAMPLES / "saxpy.mlir", "-q", "-o", "a.so", "-t", target, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mapped_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    """A build looks for LLVM's libraries, and for C's, among the files that are mapped."""
    (tmp_path / ODD).write_bytes(bytes(4096))
    code = """
import mmap, os, sys, offload
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(*offload.compile(sys.argv[2], targets=["host"]).functions)
"""
    for isolate in "10":
        environment = {**os.environ, "OFFLOAD_CACHE_DIR": str(tmp_path / isolate), "OFFLOAD_ISOLATE": isolate}
        words = [sys.executable, "-c", code, tmp_path / ODD, EXAMPLES / "saxpy.mlir"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
        assert (done.stdout, done.stderr) == ("saxpy\n", "")


def test_a_c_library_that_is_replaced_while_a_program_runs(tmp_path: Path) -> None:
    """As an upgrade of the system does it to a notebook: the name of what is mapped then ends with " (deleted)"."""
    code = """
import ctypes, os, pathlib, sys, offload
folder, library = pathlib.Path.cwd(), ctypes.CDLL("libm.so.6")
(folder / "new").write_bytes((folder / "libm.so.6").read_bytes())
(folder / "new").replace(folder / "libm.so.6")
assert f"{folder}/libm.so.6 (deleted)" in pathlib.Path("/proc/self/maps").read_text()
print(*offload.compile(sys.argv[1], targets=["host"]).functions)
"""
    libm = next(path for path in Sysroot(here()).system_libraries() if path.name.startswith("libm"))
    (tmp_path / "libm.so.6").write_bytes(libm.read_bytes())
    given = {"OFFLOAD_CACHE_DIR": str(tmp_path / "cache"), "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, EXAMPLES / "saxpy.mlir"], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ, **given},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("saxpy\n", "")


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_messages_that_quote_what_is_not_utf8(target: str) -> None:
    body = """%c0 = arith.constant 0 : index
      %w = llvm.inline_asm "frob\\FFnicate $0;", "=r" : () -> i32
      memref.store %w, %x[%c0] : memref<?xi32>"""
    with pytest.raises(offload.CompileError, match=r"frob.nicate|non-ASCII character"):
        offload.compile(kernel(body, "%x: memref<?xi32>"), targets=[target])


def test_line_information_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    code = (
        "import os, sys; os.chdir('gone'); os.rmdir('../gone'); from offload.cli import main;"
        f"main(['build', {str(EXAMPLES / 'saxpy.mlir')!r}, '-q', '-o', {str(tmp_path / 'a.so')!r}]);"
        f"sys.exit(main(['build', {str(EXAMPLES / 'saxpy.mlir')!r}, '-q', '-g', '-o', {str(tmp_path / 'b.so')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "offload: error: line information names the folder of the build, and the current one cannot be had: No such "
        "file or directory\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.so"]


def test_a_mark_of_the_byte_order_before_a_program(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_bytes(codecs.BOM_UTF8 + SAXPY)
    assert "saxpy" in offload.compile(tmp_path / "a.mlir", targets=["host"]).functions
    assert "saxpy" in offload.compile("\ufeff" + SAXPY.decode(), targets=["host"]).functions


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("x" * 300, "File name too long"),
        ("a.mlir/b.so", "Not a directory"),
        ("gone/b.so", "No such"),
        ("", "it is there and no regular file; name another output"),
    ],
)
def test_an_output_that_cannot_be_there(name: str, reason: str, tmp_path: Path) -> None:
    """Whether there is something to keep cannot always be told, as in a folder that only others may enter.

    It is told before anything is compiled: this program cannot be."""
    (tmp_path / "a.mlir").write_text("func.func @f() { foo.op }\n")
    with pytest.raises(offload.OffloadError, match=f"^cannot write {tmp_path}.*: {reason}"):
        offload.build(tmp_path / "a.mlir", tmp_path / name, targets=["host"])
    done = command("build", tmp_path / "a.mlir", "-q", "-o", tmp_path / name, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"offload: error: cannot write {tmp_path / name}: {reason}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mlir"]


def test_an_output_that_is_a_pipe(tmp_path: Path) -> None:
    """As /dev/stdout before a `|`: of the name that /proc has for it, it was said that there is no such file."""
    output = f"/dev/fd/{(ends := os.pipe())[1]}"
    with pytest.raises(offload.OffloadError, match=f"^cannot write {output}: it is there and no regular file"):
        offload.build(EXAMPLES / "saxpy.mlir", output, targets=["host"])
    for end in ends:
        os.close(end)


def test_an_output_whose_name_is_as_long_as_names_can_be(tmp_path: Path) -> None:
    output = tmp_path / ("\u6f22" * 84 + ".so")  # 255 bytes
    assert "saxpy" in offload.load(offload.build(EXAMPLES / "saxpy.mlir", output)).functions


def test_an_output_that_is_called_as_folders_are(tmp_path: Path) -> None:
    """It was a file without an ending, where the folder was not there."""
    (tmp_path / "a.mlir").write_bytes(SAXPY)
    said = f"cannot write {tmp_path}/out/: this is the name of a folder; name the library in it"
    done = command("build", "a.mlir", "-q", "-o", f"{tmp_path}/out/", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, f"offload: error: {said}\n")
    with pytest.raises(offload.OffloadError, match=f"^{said}$"):
        offload.build(tmp_path / "a.mlir", f"{tmp_path}/out/", targets=["host"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.mlir"]
    assert command("build", "a.mlir", "-q", "--emit", "isa", "-o", "out/", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("option", [["--emit", "llvm", "-o"], ["--dump"]])
def test_a_folder_of_outputs_that_cannot_be_there(option: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text("func.func @f() { foo.op }\n")
    done = command("build", "a.mlir", "-q", *option, "a.mlir/out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "offload: error: cannot write into a.mlir/out: Not a directory\n")
    done = command("build", "a.mlir", "-q", *option, "new/out", cwd=tmp_path)
    assert done.stderr.startswith("a.mlir:1:18: error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mlir"]


def test_an_output_that_links_to_itself_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.so").symlink_to("b.so")
    (tmp_path / "b.so").symlink_to("a.so")
    offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "a.so", targets=["host"])
    assert "saxpy" in offload.load(tmp_path / "a.so").functions


def test_a_toolkit_that_may_not_be_looked_into(tmp_path: Path) -> None:
    """A folder that only others may enter fails as a name does that is too long."""
    variables = {"CUDA_HOME": str(tmp_path / ("x" * 300))}
    done = command("build", EXAMPLES / "saxpy.mlir", "-t", "nvvm", cwd=tmp_path, environment=variables)
    assert done.returncode == 3
    assert "nowhere else, because CUDA_HOME is set" in done.stderr


NAMED = """gpu.module @"{0}" {{
  gpu.func @k(%x: memref<4xf32>) kernel {{
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<4xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%t] : memref<4xf32>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("module", "stem"),
    [("../../up", ".._.._up"), ("{0}/absolute", None), ("x" * 300, f"{'x' * 100}~"), ("ß" * 200, f"{'ß' * 50}~")],
)
def test_modules_whose_names_are_no_names_of_files(module: str, stem: str | None, tmp_path: Path) -> None:
    """Stages went to where the name led, out of the folder that was asked for."""
    module = module.format(tmp_path)
    stem = stem or str(tmp_path / "absolute").replace("/", "_")
    (tmp_path / "a.mlir").write_text(NAMED.format(module))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    here = {"deep", "a.mlir", "a.so"}
    for words, suffix in (
        (["build", "a.mlir", "-q", "--dump", "deep/er/dump", "-o", "a.so"], ".isa.s"),
        (["build", "a.mlir", "-q", "--emit", "isa", "-o", "deep/er/emit"], ".s"),
        (["inspect", "a.so", "--extract", "deep/er/extract"], ".o"),
    ):
        done = command(*words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
        (written,) = (tmp_path / words[-3 if "--dump" in words else -1]).glob(f"*{suffix}")
        assert written.name.startswith(stem)
        assert ".host." in written.name
        assert {path.name for path in tmp_path.iterdir()} == here
        assert {path.name for path in (tmp_path / "deep").iterdir()} == {"er"}
    assert command("inspect", "a.so", "--disassemble", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_names_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    source = tmp_path / "s.mlir"
    source.write_text("func.func @f() { return }")
    said = re.escape(f"{name!r} is no name of a file: it has a character that file names cannot have")
    for arguments in ({"output": name}, {"link": name}, {"objects": [name]}, {"reproducer": name}, {"sources": name}):
        with pytest.raises(offload.OffloadError, match=said):
            offload.build(**{"sources": source, "output": tmp_path / "x.so", "targets": "host"} | arguments)
    with pytest.raises(offload.ArtifactError, match=said):
        offload.load(name)


@pytest.mark.parametrize(
    "word", ["nvvm:sm_90,ptxas=/a\0b", "rocdl:gfx942,lld=\0", "host,link=a\0b", "nvvm,link=\udfff1"]
)
def test_words_of_targets_that_no_program_can_be_given(word: str, tmp_path: Path) -> None:
    """They ended as errors of subprocess, of pybind11 and of the system."""
    with pytest.raises(offload.TargetError, match=r"which has a character that programs and files cannot be given"):
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=word)


def test_devices_that_have_no_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They were read until memory was full."""
    said = "/dev/zero: (cannot read the artifact: )?it is a device, whose bytes have no end"
    with pytest.raises(offload.OffloadError, match=f"cannot read {said}"):
        offload.build("/dev/zero", tmp_path / "x.so")
    with pytest.raises(offload.ArtifactError, match=said):
        offload.load("/dev/zero")
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path / "cache"))
    for given in ({"link": "/dev/zero"}, {"targets": "host,link=/dev/zero"}):
        with pytest.raises(offload.OffloadError, match=f"cannot read {said}"):
            offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", **given)
    command = [sys.executable, "-m", "offload", "build", "-", "-o", tmp_path / "x.so"]
    with Path("/dev/zero").open("rb") as zero:
        done = subprocess.run(command, stdin=zero, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "offload: error: cannot read standard input: it is a device, whose bytes have no end\n",
    )
    with pytest.raises(offload.OffloadError, match=r"/dev/null is empty: it is to hold a program"):
        offload.build("/dev/null", tmp_path / "x.so")


def test_a_file_system_that_knows_no_modes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As some of object stores and of other systems: what was built was not written."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "fchmod", refused)
    monkeypatch.setattr(os, "chmod", refused)
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path / "cache"))
    offload.load(offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so"))
    assert [path.suffix for path in (tmp_path / "cache" / "library").iterdir()] == [".so"]
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "kernels"\nsources = ["saxpy.mlir"]\n')
    (tmp_path / "saxpy.mlir").write_bytes(SAXPY)
    build_modules([(table, tmp_path) for table in read_tables(tmp_path / "pyproject.toml")])
    assert (tmp_path / "kernels.py").is_file()


def test_a_nul_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["inspect", "a\0b"])
    assert ended.value.code == 2
    assert "offload: error: an argument has a NUL in it" in capsys.readouterr().err
