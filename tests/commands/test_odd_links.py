"""Files that are linked: what is none, what was cut, what is for another processor, and what nothing defines."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from compiling import ALL_TARGETS, EXAMPLES, command

import offload
from offload.errors import LinkError


@pytest.mark.parametrize("content", [b"int f(void) { return 1; }\n", b"", b"func.func @f() { return }\n"])
def test_what_is_nothing_to_link(content: bytes, tmp_path: Path) -> None:
    """lld takes any text for a script of its own."""
    (tmp_path / "f.o").write_bytes(content)
    done = command("build", EXAMPLES / "saxpy.mlir", "-q", "-o", "a.so", "--object", "f.o", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "offload: error: cannot link f.o: it is no object file, archive or shared library of "
    )
    (tmp_path / "script.so").write_text("/* a script of GNU ld */\n")
    done = command("build", EXAMPLES / "saxpy.mlir", "-q", "-o", "a.so", "--object", "script.so", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_linked_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "f.o").write_bytes(b"f")
    for words in (("--object", "f.o"), ("--link", "f.o"), ("-t", "host:link=f.o")):
        done = command("build", EXAMPLES / "saxpy.mlir", "-q", "-o", "f.o", *words, cwd=tmp_path)
        said = "offload: error: cannot write f.o: it is one of the files that are linked; name another output\n"
        assert (done.returncode, done.stderr) == (1, said)
        assert (tmp_path / "f.o").read_bytes() == b"f"


CALLS = """
func.func private @addone(f32) -> f32
func.func @f(%a: f32) -> f32 {
  %0 = call @addone(%a) : (f32) -> f32
  return %0 : f32
}
"""


@pytest.mark.parametrize("isolated", ["0", "1"])
@pytest.mark.parametrize("size", [64, 300, 700])
def test_an_object_file_that_was_cut(size: int, isolated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lld leaves its process there, with the reason unsaid, unless it is told to come back; the next link works."""
    monkeypatch.setenv("OFFLOAD_ISOLATE", isolated)
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "")
    (tmp_path / "f.mlir").write_text(CALLS)
    (tmp_path / "f.c").write_text("float addone(float x) { return x + 1; }\n")
    subprocess.run(["cc", "-fPIC", "-c", "f.c"], cwd=tmp_path, check=True)
    whole, cut = tmp_path / "f.o", tmp_path / "cut.o"
    cut.write_bytes(whole.read_bytes()[:size])
    for _ in range(2):
        with pytest.raises(LinkError, match=rf"^linking: lld failed: ld\.lld: error: {re.escape(str(cut))}: \S"):
            offload.build(tmp_path / "f.mlir", tmp_path / "f.so", objects=[cut])
        path = offload.build(tmp_path / "f.mlir", tmp_path / "f.so", objects=[whole])
    assert offload.load(path).f(2.0) == 3.0


def test_an_object_file_for_another_processor(tmp_path: Path) -> None:
    """The message has no name of a temporary folder in it, and says which processor it is for."""
    (tmp_path / "f.mlir").write_text(CALLS)
    header = struct.pack("<HHIIIIIHHHHHH", 1, 3, 1, 0, 0, 0, 0, 52, 0, 0, 40, 0, 0)  # an object file for i386
    (tmp_path / "f.o").write_bytes(b"\x7fELF\1\1\1" + bytes(9) + header)
    done = command("build", "f.mlir", "-q", "--object", "f.o", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "offload: error: linking: lld failed: ld.lld: error: f.o is incompatible with host.o\n"
        f"  this library is for {os.uname().machine}, and so must its object files be\n"
    )


def test_a_device_function_of_memrefs_that_nothing_defines(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text(
        """
gpu.module @m {
  func.func private @gone(memref<?xf32>)
  gpu.func @k(%x: memref<?xf32>) kernel {
    func.call @gone(%x) : (memref<?xf32>) -> ()
    gpu.return
  }
}
"""
    )
    for target in ALL_TARGETS:
        done = command("build", "p.mlir", "-q", "-t", target, cwd=tmp_path)
        assert done.returncode == 1
        said = (
            "error: 'gone', which takes memrefs and so is to link as '_mlir_ciface_gone', is called here, and nothing "
        )
        assert said in done.stderr
