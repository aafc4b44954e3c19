"""The cache of compiled programs: what hits, what makes another key, and what happens where it cannot be used."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from compiling import EXAMPLES

import offload
from offload.compiler import cache
from offload.runtime import Library

PROGRAM = (EXAMPLES / "saxpy.mlir").read_text()
OTHER = PROGRAM.replace("@saxpy", "@other")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


class Refused(Exception):
    """A build that should not have been."""


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Once called, every build fails."""

    def refuse(*_: object, **__: object) -> None:
        raise Refused

    def forbid() -> None:
        monkeypatch.setattr(cache.parallel, "build", refuse)

    return forbid


def works(library: Library, name: str = "saxpy") -> bool:
    library.use("host")
    x, y = np.arange(10, dtype=np.float32), np.ones(10, np.float32)
    library.functions[name](2, x, y)
    return bool((y == 2 * x + 1).all())


def test_a_program_is_compiled_once(folder: Path, no_compiler: Callable[[], None], tmp_path: Path) -> None:
    assert works(offload.compile(PROGRAM, targets=["host"]))
    (entry,) = folder.iterdir()
    assert entry.suffix == ".so"
    data = entry.read_bytes()
    no_compiler()
    assert works(offload.compile(PROGRAM, targets=["host"]))
    # The key is made from contents: a file with the same text is the same program, wherever it lies.
    for name in ("a.mlir", "b.mlir"):
        (tmp_path / name).write_text(PROGRAM)
        assert works(offload.compile(tmp_path / name, targets=["host"]))
    assert [path.read_bytes() for path in folder.iterdir()] == [data]


def test_whatever_decides_the_bytes_is_in_the_key(folder: Path) -> None:
    def key(source: str = PROGRAM, targets: tuple[str, ...] = ("host",), **options: object) -> str:
        from offload.compiler.request import Source

        request = offload.api.make_request([Source("<string>", source.encode())], targets, **options)  # type: ignore[arg-type]
        return cache._key(request)

    link, same = folder.parent / "a.bc", folder.parent / "b.bc"
    folder.parent.mkdir(parents=True)
    link.write_bytes(b"one")
    same.write_bytes(b"one")
    keys = [
        key(),
        key(OTHER),
        key(PROGRAM + "\n"),
        key(opt=1),
        key(targets=("host:O=1",)),
        key(targets=("host:native",)),
        key(targets=("nvvm:sm_90",)),
        key(targets=("nvvm:sm_80",)),
        key(targets=("nvvm:sm_90,ftz",)),
        key(targets=("rocdl:gfx942",)),
        key(targets=("host", "nvvm:sm_90")),
        key(runtime="shared"),
        key(link=[link]),
    ]
    assert len(set(keys)) == len(keys)
    assert key(link=[link]) == key(link=[same])
    linked = key(link=[link])
    link.write_bytes(b"two")
    assert key(link=[link]) != linked
    assert key(link=[link]) != key(objects=[link])


def test_another_program_is_compiled(folder: Path, no_compiler: Callable[[], None]) -> None:
    offload.compile(PROGRAM, targets=["host"])
    assert works(offload.compile(OTHER, targets=["host"]), "other")
    assert len(list(folder.iterdir())) == 2
    no_compiler()
    with pytest.raises(Refused):
        offload.compile(PROGRAM, targets=["host"], opt=0)


def test_without_a_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert list(tmp_path.iterdir()) == []


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from offload.config import cache_folder

    monkeypatch.delenv("OFFLOAD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "offload"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == Path("/home/someone/.cache/offload")


def test_a_cache_folder_that_is_a_file(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("")
    with pytest.raises(offload.OffloadError, match=rf"cannot use the cache folder {folder}: .*OFFLOAD_CACHE_DIR"):
        offload.compile(PROGRAM, targets=["host"])


def test_a_cache_folder_below_a_file(folder: Path) -> None:
    folder.parent.write_text("")
    with pytest.raises(offload.OffloadError, match=r"cannot use the cache folder .*: Not a directory; set OFFLOAD_"):
        offload.compile(PROGRAM, targets=["host"])


def test_a_cache_folder_that_nobody_may_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc refuses new files to root as well."""
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "/proc/self")
    with pytest.raises(offload.OffloadError, match=r"cannot write /proc/self/\w+\.so: "):
        offload.compile(PROGRAM, targets=["host"])


def test_a_damaged_entry_is_built_again(folder: Path) -> None:
    offload.compile(PROGRAM, targets=["host"])
    (entry,) = folder.iterdir()
    copy = folder / "copy"
    shutil.copy(entry, copy)
    entry.unlink()
    entry.write_bytes(copy.read_bytes()[:5000])
    offload.compile(PROGRAM, targets=["host"])
    assert entry.read_bytes() == copy.read_bytes()


def test_failed_builds_leave_nothing(folder: Path) -> None:
    with pytest.raises(offload.CompileError):
        offload.compile("module { this is no operation }\n", targets=["host"])
    assert not folder.exists() or list(folder.iterdir()) == []


def test_text_and_paths_are_told_apart(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "saxpy.mlir").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    for source in ("saxpy.mlir", Path("saxpy.mlir"), PROGRAM):
        assert works(offload.compile(source, targets=["host"]))
    with pytest.raises(offload.OffloadError, match=r"^cannot read gone\.mlir: No such file or directory$"):
        offload.compile("gone.mlir", targets=["host"])
