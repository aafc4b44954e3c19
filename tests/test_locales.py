"""In a locale that has no letters but ASCII's, as cron's and those of small containers: files, names, messages."""

from __future__ import annotations

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
