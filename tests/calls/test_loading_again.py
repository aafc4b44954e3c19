"""A file that a build replaced is loaded as what it is now; libraries that were loaded before stay what they are."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import offload
from offload.artifact import Artifact
from offload.errors import ArtifactError
from offload.runtime import library as libraries
from offload.runtime.library import _forget_files, _name_for_loader


def built(path: Path, value: float, kind: str = "f64") -> Path:
    source = path.with_suffix(".mlir")
    source.write_text(f"func.func @f() -> {kind} {{ %c = arith.constant {value} : {kind} return %c : {kind} }}")
    return offload.build(source, path, targets=["host"])


def test_a_library_that_was_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.so"
    one = offload.load(built(path, 1.5))
    two = offload.load(built(path, 2.5))
    monkeypatch.chdir(tmp_path)
    again = offload.load("k.so")
    three = offload.load(built(Path("k.so"), 3.5))
    assert [library.f() for library in (one, two, again, three)] == [1.5, 2.5, 2.5, 3.5]
    assert {library.path.resolve() for library in (one, two, three)} == {path}


def test_a_library_that_another_process_builds_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of one was called as the description of the other said."""
    path = built(tmp_path / "k.so", 0.5)
    files = [built(tmp_path / "1.so", 1, "i32"), built(tmp_path / "2.so", 2, "i64")]
    read = libraries.read_artifact

    def read_and_replace(file: Path) -> Artifact:
        found = read(file)
        if files:
            files.pop(0).rename(path)
        return found

    monkeypatch.setattr(libraries, "read_artifact", read_and_replace)
    library = offload.load(path)
    assert (library.f(), library.f.signature.results[0].dtype) == (2, "int64")

    others = [built(tmp_path / "3.so", 3, "i32"), built(tmp_path / "4.so", 4.5)]

    def always(file: Path) -> Artifact:
        found = read(file)
        others.reverse()
        shutil.copy(others[0], tmp_path / "next.so").rename(path)
        return found

    monkeypatch.setattr(libraries, "read_artifact", always)
    with pytest.raises(
        ArtifactError, match="another file came in its place each time that it was loaded; load it when"
    ):
        offload.load(path)


def test_a_library_that_another_process_uses_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of the cache are marked as used; it was loaded again each time, and refused in the end."""
    path = built(tmp_path / "k.so", 1.5)
    read, times = libraries.read_artifact, []

    def read_and_use(file: Path) -> Artifact:
        found = read(file)
        times.append(len(times) + 1)
        os.utime(path, (times[-1], times[-1]))
        return found

    monkeypatch.setattr(libraries, "read_artifact", read_and_use)
    assert offload.load(path).f() == 1.5
    assert len(times) == 2  # the second one finds that it says the same


def test_a_library_that_is_written_over_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file, and of the same size."""
    path, other = built(tmp_path / "k.so", 1, "i32"), built(tmp_path / "other.so", 2, "i64")
    read, texts = libraries.read_artifact, [other.read_bytes()]

    def read_and_write(file: Path) -> Artifact:
        found = read(file)
        if texts:
            path.write_bytes(texts.pop())
        return found

    monkeypatch.setattr(libraries, "read_artifact", read_and_write)
    library = offload.load(path)
    assert (library.f(), library.f.signature.results[0].dtype) == (2, "int64")


def test_a_library_that_goes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a FileNotFoundError."""
    path = built(tmp_path / "k.so", 1.5)
    read = libraries.read_artifact

    def read_and_remove(file: Path) -> Artifact:
        found = read(file)
        path.unlink()
        return found

    monkeypatch.setattr(libraries, "read_artifact", read_and_remove)
    with pytest.raises(ArtifactError, match=r"k\.so: the system's loader refuses it: .*No such file"):
        offload.load(path)


def test_another_file_under_a_name(tmp_path: Path) -> None:
    """A link that points somewhere else now."""
    link = tmp_path / "current.so"
    found = []
    for value in (1.5, 2.5):
        link.unlink(missing_ok=True)
        link.symlink_to(built(tmp_path / f"{value}.so", value))
        found.append(offload.load(link))
    assert [library.f() for library in found] == [1.5, 2.5]


def test_a_library_that_is_built_again_and_again(tmp_path: Path) -> None:
    """As who tries many forms of a kernel does; the name that the loader is given was too long for the 2040th."""
    names = set()
    for value in range(3000):
        (tmp_path / "k.so").write_bytes(b"")
        (tmp_path / "k.so").rename(tmp_path / f"{value}.so")  # its inode stays, as that of a loaded file does
        (tmp_path / "k.so").write_bytes(b"")
        names.add(_name_for_loader(tmp_path / "k.so"))
    assert len(names) == 3000
    assert max(map(len, names)) < len(str(tmp_path)) + 50
    assert all(Path(name).samefile(tmp_path / "k.so") for name in names)


def test_threads_that_load_what_another_finds_replaced(tmp_path: Path) -> None:
    """Between any two lines of theirs: it was a ValueError."""
    path, others = tmp_path / "k.so", []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is not _name_for_loader.__code__:
            return None
        if event == "line":
            others.append(threading.Thread(target=_forget_files, args=[path]))
            others[-1].start()
            others[-1].join()
        return trace

    path.write_bytes(b"")
    before = _name_for_loader(path)
    tracing = sys.gettrace()
    sys.settrace(trace)
    try:
        name = _name_for_loader(path)
    finally:
        sys.settrace(tracing)
    assert others
    assert Path(name).samefile(path)
    assert name not in (before, _name_for_loader(path))
