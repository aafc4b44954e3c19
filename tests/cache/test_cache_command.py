"""``offload cache``, and the cache in ``offload build`` and in builds of packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from caching import entries
from compiling import EXAMPLES, command, python
from packaging_tools import copy_of

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "temporary").mkdir()
    return {"OFFLOAD_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "temporary")}


def info(tmp_path: Path, given: dict[str, str]) -> dict[str, dict[str, dict[str, int]]]:
    done = command("cache", "info", "--json", cwd=tmp_path, environment=given)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def test_build_goes_through_the_cache(tmp_path: Path, given: dict[str, str]) -> None:
    said, data = [], set()
    for options in ([], [], ["--no-cache"]):
        done = command("build", SAXPY, "-o", "a.so", *options, cwd=tmp_path, environment=given)
        assert done.returncode == 0, done.stderr
        said.append(re.sub(r"\[ .*? s\] |\d", "", done.stderr))
        data.add((tmp_path / "a.so").read_bytes())
        (tmp_path / "a.so").unlink()
    assert len(data) == 1
    assert "compiling host code\n" in said[0]
    assert said[1].splitlines()[0] == "taking the library from the cache"
    assert len(said[1].splitlines()) == 2
    assert said[2] == said[0]
    found = info(tmp_path, given)["stages"]
    assert found["library"] == {"entries": 1, "bytes": found["library"]["bytes"], "hits": 1, "misses": 1}


def test_what_one_front_end_built_the_others_find(tmp_path: Path, given: dict[str, str]) -> None:
    """The file's name is not in the library; a source's name is, for messages."""
    made = command("build", SAXPY, "-o", "a.so", cwd=tmp_path, environment=given)
    assert made.returncode == 0, made.stderr
    code = (
        f"import offload; offload.build({str(SAXPY)!r}, 'b.so'); offload.compile({str(SAXPY)!r});"
        "from offload.compiler import isolation; print(len(isolation._state.pool._idle), 'workers')"
    )
    assert python(code, cwd=tmp_path, environment=given) == "0 workers\n"
    assert (tmp_path / "a.so").read_bytes() == (tmp_path / "b.so").read_bytes()
    assert info(tmp_path, given)["stages"]["library"]["entries"] == 1


@pytest.mark.parametrize("option", [["--emit", "so"], ["--dump", "all"], ["--reproducer", "r"], ["--verify-each"]])
def test_who_looks_at_the_way_goes_it(option: list[str], tmp_path: Path, given: dict[str, str]) -> None:
    done = command(
        "build", SAXPY, "-o", "a.so" if "--emit" not in option else "out", *option, cwd=tmp_path, environment=given
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "cache").exists()


def test_info_prune_and_clear(tmp_path: Path, given: dict[str, str]) -> None:
    done = command("cache", "info", cwd=tmp_path, environment=given)
    assert done.stdout.startswith(f"{tmp_path / 'cache'}: 0 bytes of 2,147,483,648\n")
    assert not (tmp_path / "cache").exists()
    for level in ("1", "2"):
        assert command("build", SAXPY, "-O", level, "-q", cwd=tmp_path, environment=given).returncode == 0
    found = info(tmp_path, given)
    assert {name: stage["entries"] for name, stage in found["stages"].items()} == {"library": 2, "image": 1, "host": 2}
    assert found["folder"] == str(tmp_path / "cache")
    total = sum(path.stat().st_size for paths in entries(tmp_path / "cache").values() for path in paths)
    assert found["bytes"] == total
    done = command("cache", "info", cwd=tmp_path, environment=given)
    assert re.search(r"^  image +1 entries +[\d,]+ bytes +1 hits +1 misses$", done.stdout, re.MULTILINE)

    old = entries(tmp_path / "cache")["library"][0]
    os.utime(old, (0, 0))
    done = command("cache", "prune", "--older-than", "30", cwd=tmp_path, environment=given)
    assert re.fullmatch(r"removed 1 entries, [\d,]+ bytes, from .*/cache\n", done.stdout), done.stdout
    assert not old.exists()
    assert command("cache", "prune", cwd=tmp_path, environment=given).stdout.startswith("removed 0 entries, 0 bytes,")
    done = command("cache", "prune", "--size", "1k", "--json", cwd=tmp_path, environment=given)
    assert json.loads(done.stdout)["entries"] >= 2
    assert info(tmp_path, given)["bytes"] <= 1024
    assert command("cache", "clear", cwd=tmp_path, environment=given).returncode == 0
    assert info(tmp_path, given)["bytes"] == 0


def test_a_folder_that_is_not_ours_is_not_emptied(tmp_path: Path, given: dict[str, str]) -> None:
    (tmp_path / "cache" / "image").mkdir(parents=True)
    (tmp_path / "cache" / "image" / "photo").write_text("not ours to keep private, nor to remove")
    (tmp_path / "cache").chmod(0o777)
    done = command("cache", "clear", cwd=tmp_path, environment=given)
    assert done.returncode == 1
    assert "other users may write into it" in done.stderr
    assert (tmp_path / "cache" / "image" / "photo").exists()


@pytest.mark.parametrize("action", ["info", "prune", "clear"])
def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(action: str, tmp_path: Path, given: dict[str, str]) -> None:
    """As one of root's is for other users; root may list every folder, and so it is a file here."""
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / "image").write_text("")
    done = command("cache", action, cwd=tmp_path, environment=given)
    assert (done.returncode, done.stdout) == (1, "")
    why = "Not a directory; set OFFLOAD_CACHE_DIR to another folder"
    assert done.stderr == f"offload: error: the cache folder {tmp_path / 'cache'} is not used: {why}\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["cache"], 2, "the following arguments are required: ACTION"),
        (["cache", "prune", "--size", "much"], 2, "argument --size: it is a size such as 500M or 2G, not 'much'"),
        (["cache", "prune", "--older-than", "long"], 2, "argument --older-than: it is a number of days, not long"),
        (["cache", "prune", "--older-than", "-1"], 2, "argument --older-than: it is a number of days, not -1"),
        (["cache", "prune", "--older-than", "nan"], 2, "argument --older-than: it is a number of days, not nan"),
    ],
)
def test_wrong_commands(words: list[str], code: int, said: str, tmp_path: Path, given: dict[str, str]) -> None:
    done = command(*words, cwd=tmp_path, environment=given)
    assert done.returncode == code
    assert said in done.stderr


def test_without_a_cache(tmp_path: Path) -> None:
    done = command("cache", "info", cwd=tmp_path, environment={"OFFLOAD_CACHE_DIR": ""})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "offload: error: the cache is switched off: OFFLOAD_CACHE_DIR is empty\n"


@pytest.mark.parametrize("action", ["prune", "clear"])
def test_what_killed_builds_left_goes_without_a_cache(action: str, tmp_path: Path, given: dict[str, str]) -> None:
    """There it is that `offload.compile` has folders among the temporary files."""
    (tmp_path / "temporary" / "offload-uncached-12345678").mkdir()
    done = command("cache", action, cwd=tmp_path, environment={**given, "OFFLOAD_CACHE_DIR": ""})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "the cache is switched off: OFFLOAD_CACHE_DIR is empty\n"
        f"removed 1 folders of killed builds from {tmp_path / 'temporary'}\n"
    )
    assert not list((tmp_path / "temporary").iterdir())


def test_a_folder_of_no_use_is_a_line_on_stderr(tmp_path: Path, given: dict[str, str]) -> None:
    (tmp_path / "cache").write_text("")
    done = command("build", SAXPY, "-q", "-o", "a.so", cwd=tmp_path, environment=given)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"offload: warning: the cache folder {tmp_path / 'cache'} is not used: ")
    assert (tmp_path / "a.so").exists()


def test_a_size_of_more_digits_than_a_number_has(tmp_path: Path, given: dict[str, str]) -> None:
    environment = given | {"OFFLOAD_CACHE_SIZE": "9" * 400}
    done = command("build", SAXPY, "-q", "-o", "a.so", cwd=tmp_path, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert info(tmp_path, environment)["stages"]["library"]["entries"] == 1


SLOW = (
    "importlib.metadata",
    "email",
    "logging",
    "subprocess",
    "tempfile",
    "ctypes",
    "hmac",
    "concurrent.futures",
    "numpy",
)
"""Modules that take long to import, and that nothing needs where all is there already."""


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942", "host"])
def test_a_cached_build_imports_little(target: str, tmp_path: Path, given: dict[str, str]) -> None:
    code = f"""
import sys
at_first = set(sys.modules)
from offload.cli import main
assert main(["build", "-q", {str(SAXPY)!r}, "-o", "a.so", "-t", {target!r}]) == 0
slow = set({SLOW!r}) & (set(sys.modules) - at_first)
print("compiled" if "offload.compiler.parallel" in sys.modules else sorted(slow))
"""
    assert python(code, cwd=tmp_path, environment=given) == "compiled\n"
    assert python(code, cwd=tmp_path, environment=given) == "[]\n"


def test_packages_go_through_the_cache(tmp_path: Path, given: dict[str, str]) -> None:
    """The same package built in two folders, as in two environments of build isolation, is compiled once."""
    code = """
import sys
from pathlib import Path
from offload.hooks.build import build_module
from offload.hooks.project import read_tables
for table in read_tables(Path("pyproject.toml")):
    build_module(table, Path("out"), targets=["host"])
print("offload.mlir._native" in sys.modules)
"""
    printed, data = [], set()
    for place in ("here", "there"):
        package = copy_of("setuptools", tmp_path / place)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=package,
            env=os.environ | given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.strip())
        data.add(b"".join(path.read_bytes() for path in sorted((package / "out").glob("*.so"))))
    assert printed == ["True", "False"]
    assert len(data) == 1
