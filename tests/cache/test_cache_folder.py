"""The folder of the cache: where it is, and what happens where it cannot be used."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from caching import PROGRAM, entries, works
from compiling import command

import offload


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def test_without_a_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert works(offload.compile(PROGRAM, targets=["host"]))
    monkeypatch.delenv("OFFLOAD_CACHE_DIR")
    assert works(offload.compile(PROGRAM, targets=["host"], cache=False))
    assert list(tmp_path.iterdir()) == []


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from offload.config import cache_folder

    monkeypatch.delenv("OFFLOAD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "offload"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")  # the XDG specification has relative paths ignored
    assert cache_folder() == tmp_path / ".cache" / "offload"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "offload"
    # No shell has read what the files of CI systems say.
    for given, meant in (("~/c", tmp_path / "c"), ("~nobody-here/c", Path("~nobody-here/c"))):
        monkeypatch.setenv("OFFLOAD_CACHE_DIR", given)
        assert cache_folder() == meant


def test_the_default_place_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As containers run programs: a number for a user, and no HOME. The folder is checked like any other."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("OFFLOAD_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert len(entries(tmp_path / f"offload-cache-{os.getuid()}")["library"]) == 1


def test_the_default_place_of_a_user_whose_home_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As users of services have one, /nonexistent: it is not made, and there is a cache all the same."""
    for name in ("OFFLOAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for home in (tmp_path / "nowhere", Path("/proc/self/nowhere")):
        monkeypatch.setenv("HOME", str(home))
        assert works(offload.compile(PROGRAM, targets=["host"]))
    assert [path.name for path in tmp_path.iterdir()] == [f"offload-cache-{os.getuid()}"]


def test_a_cache_folder_that_cannot_even_be_looked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]], tmp_path: Path
) -> None:
    """As one below another user's home: whether it is there is not for this user to know."""
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(folder / ("x" * 300)))
    assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert said.endswith("is not used: File name too long; set OFFLOAD_CACHE_DIR to another folder")
    done = command("cache", "info", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("is not used: File name too long; set OFFLOAD_CACHE_DIR to another folder\n")


@pytest.mark.parametrize("above", [False, True])
def test_a_cache_folder_that_is_a_file(folder: Path, above: bool, caught: Callable[[], list[str]]) -> None:
    """What can be built is built; that it is built again each time is said, once."""
    if above:
        folder.parent.write_text("")
    else:
        folder.parent.mkdir(parents=True)
        folder.write_text("")
    for _ in range(2):
        assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert said.startswith(f"the cache folder {folder} is not used: ")
    assert said.endswith("set OFFLOAD_CACHE_DIR to another folder")


def test_a_cache_folder_that_nobody_may_write(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]
) -> None:
    """/proc refuses new files to root as well."""
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "/proc/self")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert said.startswith("the cache folder /proc/self is not used: ")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_write_is_not_used(folder: Path, mode: int, caught: Callable[[], list[str]]) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert said == (
        f"the cache folder {folder} is not used: other users may write into it, and so could put code there; "
        f"chmod go-w {folder}"
    )
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert len(entries(folder)["library"]) == 1
    assert len(caught()) == 1


def test_what_is_kept_is_for_its_owner_alone(folder: Path) -> None:
    offload.compile(PROGRAM, targets=["host"])
    folders = [path for path in folder.rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in (folder, *folders)} == {0o700}
    assert {path.stat().st_mode & 0o777 for paths in entries(folder).values() for path in paths} == {0o600}
