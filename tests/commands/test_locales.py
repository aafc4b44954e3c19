"""In a locale that has no letters but ASCII's, as cron's and those of small containers: files, names, messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from compiling import EXAMPLES, command

import offload

SAXPY = (EXAMPLES / "saxpy.mlir").read_bytes()
ASCII_ALONE = {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "LC_ALL": "C"}


def test_files_in_a_locale_that_has_no_letters_for_their_names(tmp_path: Path) -> None:
    source = tmp_path / "gr\u00f6\u00dfe" / "\u00e4.mlir"
    source.parent.mkdir()
    source.write_bytes(SAXPY)
    for options in (["-q"], ["-q", "-g"], []):
        done = command("build", source, *options, "-o", "\u00e4.so", cwd=tmp_path, environment=ASCII_ALONE)
        assert done.returncode == 0, done.stderr
        assert "saxpy" in offload.load(tmp_path / "\u00e4.so").functions
    done = command("build", source, "-o", "gr\u00f6\u00dfe/\u00e4.mlir", cwd=tmp_path, environment=ASCII_ALONE)
    assert done.returncode == 1
    assert done.stderr.endswith(": it is one of the sources; name another output\n")
    assert source.read_bytes() == SAXPY


def test_names_in_a_locale_that_has_no_letters_for_them(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text(
        'func.func @"gr\u00f6\u00dfe"(%a: f32) -> f32 { return %a : f32 }', encoding="utf-8"
    )
    done = command("build", "a.mlir", "-q", cwd=tmp_path, environment=ASCII_ALONE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\u00f6\u00dfe" in offload.load(tmp_path / "a.so").functions


MODULE = """
gpu.module @"m\u00f6dul" { gpu.func @k() kernel { gpu.return } }
func.func @f() { return }
"""


def test_files_that_are_named_after_what_the_program_holds(tmp_path: Path) -> None:
    (tmp_path / "\u00e4.mlir").write_text(MODULE, encoding="utf-8")
    for words in (
        ["build", "\u00e4.mlir", "-q", "-t", "host", "-o", "a.so"],
        ["build", "\u00e4.mlir", "-q", "-t", "host", "--dump", "dumped"],
        ["build", "\u00e4.mlir", "-q", "-t", "host", "--emit", "isa", "-o", "emitted"],
        ["build", "\u00e4.mlir", "-q", "-t", "host", "--reproducer", "why", "-o", "b.so"],
        ["inspect", "a.so", "--extract", "extracted"],
        ["inspect", "a.so", "--disassemble"],
    ):
        done = command(*words, cwd=tmp_path, environment=ASCII_ALONE)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert (tmp_path / "dumped" / "\u00e4.input.mlir").is_file()
    assert (tmp_path / "dumped" / "m\u00f6dul.host.x86-64.object.o").is_file()
    assert [path.name for path in (tmp_path / "emitted").iterdir()] == ["m\u00f6dul.host.x86-64.s"]
    assert [path.name for path in (tmp_path / "extracted").iterdir()] == ["m\u00f6dul.host.x86-64.o"]


def test_what_repeats_a_crash(tmp_path: Path) -> None:
    code = (
        "from offload.api import make_request; from offload.compiler import crashes\n"
        "from offload.compiler.request import Source\n"
        "request = make_request([Source('\\u00e4.mlir', b'module {}')], 'host')\n"
        "print(crashes.crash('ended', request, [], '', []).reproducer is not None)\n"
    )
    environment = {**os.environ, **ASCII_ALONE, "OFFLOAD_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")
