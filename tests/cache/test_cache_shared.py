"""A cache that several machines use: found after the local one, believed only where it is what it should be."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest
from caching import OTHER, PROGRAM, Machines, entries, works
from fsspec.implementations.local import LocalFileSystem

import offload
from offload.cache.entry import seal
from offload.compiler import parallel


@pytest.fixture(params=["file", "memory"])
def machines(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    url = f"file://{tmp_path}/store" if request.param == "file" else f"memory://{tmp_path.name}"
    if request.param == "memory":  # which is a process's own
        monkeypatch.setenv("OFFLOAD_ISOLATE", "0")
    return Machines(tmp_path, url, monkeypatch)


def stored(machines: Machines) -> dict[str, bytes]:
    """What the shared store holds, by name."""
    store, root = fsspec.core.url_to_fs(machines.url)
    return {path: store.cat_file(path) for path in store.find(root)} if store.exists(root) else {}


def test_what_one_machine_compiles_another_one_loads(machines: Machines, no_compiler: Callable[[], None]) -> None:
    machines.use("builder", "readwrite")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    before = stored(machines)
    assert len(before) == 3
    machines.use("user")
    no_compiler()
    library = offload.compile(PROGRAM, targets=["host"])
    assert works(library)
    # Once fetched, it is a local entry.
    assert len(entries(machines.folder / "user")["library"]) == 1
    machines.url = "memory://empty"
    machines.use("user")
    assert works(offload.compile(PROGRAM, targets=["host"]))


def test_stages_are_shared_too(machines: Machines) -> None:
    machines.use("builder", "readwrite")
    offload.compile(PROGRAM, targets=["host"])
    machines.use("user")
    said: list[str] = []
    (machines.folder / "p.mlir").write_text(PROGRAM)
    offload.build(machines.folder / "p.mlir", machines.folder / "p.so", targets=["host"], progress=said.append)
    assert said[-3:] == [
        "taking saxpy_kernel for host:x86-64 from the cache",
        "taking host code from the cache",
        "linking",
    ]


@pytest.mark.parametrize("mode", [None, "read"])
def test_who_only_reads_adds_nothing(mode: str | None, machines: Machines, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()  # one that is not there is not asked
    machines.use("user", mode)
    offload.compile(PROGRAM, targets=["host"])
    assert stored(machines) == {}


@pytest.mark.parametrize("harm", ["cut", "changed", "another key's", "not an entry", "code under its own hash"])
def test_what_is_not_what_it_should_be_is_not_used(
    harm: str, machines: Machines, caught: Callable[[], list[str]]
) -> None:
    machines.use("builder", "readwrite", "secret")
    offload.compile(PROGRAM, targets=["host"])
    good = stored(machines)
    offload.compile(OTHER, targets=["host"])
    others = iter([data for name, data in stored(machines).items() if name not in good])
    store, _ = fsspec.core.url_to_fs(machines.url)
    evil = {
        "cut": lambda data, key: data[: len(data) // 2],
        "changed": lambda data, key: bytes([data[0] ^ 1]) + data[1:],
        "another key's": lambda data, key: next(others),
        "not an entry": lambda data, key: b"<html>Please log in.</html>",
        "code under its own hash": lambda data, key: b"evil" + seal(key, b"evil"),
    }
    for name, data in good.items():
        store.pipe_file(name, evil[harm](data, name.rpartition("/")[2]))
    user = machines.use("user", "read", "secret")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert any("is not used (library/" in line for line in caught())
    (mine,) = entries(user)["library"]
    assert mine.read_bytes() == (machines.folder / "builder" / "library" / mine.name).read_bytes()


@pytest.mark.parametrize(
    ("stage", "payload"),
    [
        *(
            (stage, payload)
            for stage in ("library", "image", "host")
            for payload in (b"", b"\1", bytes(4), b"\xff" * 4)
        ),
        *(("library", payload) for payload in (b"\x7fELF", b"\x7fELF{{{{\4\0\0\0", b"\x7fELF[1]\3\0\0\0")),
        ("library", b"evil[]\2\0\0\0"),
        *(("image", payload) for payload in (b"\4\0\0\0{{{{", b"\2\0\0\0[]", b"\1\0\0\0\xff", b'\7\0\0\0{"k":1}')),
    ],
)
def test_what_no_build_has_kept_is_built_again(
    stage: str, payload: bytes, machines: Machines, caught: Callable[[], list[str]]
) -> None:
    """Under its own hash, and unsigned, anything may come."""
    machines.use("builder", "readwrite")
    offload.compile(PROGRAM, targets=["host"])
    store, _ = fsspec.core.url_to_fs(machines.url)
    for name in stored(machines):
        if f"/{stage}/" in name:
            store.pipe_file(name, payload + seal(name.rpartition("/")[2], payload))
        elif "/library/" in name:
            store.rm_file(name)
    user = machines.use("user", "read")
    for _ in range(2):  # the second time its own is there
        assert works(offload.compile(PROGRAM, targets=["host"]))
    said = caught()
    assert all(line.startswith(f"an entry of the cache is not used ({stage}/") for line in said)
    assert len(said) == 1 or stage != "library"  # of stages a worker says it once
    (mine,) = entries(user)["library"]
    assert mine.read_bytes() == (machines.folder / "builder" / "library" / mine.name).read_bytes()


def test_entries_are_signed_where_there_is_a_key(machines: Machines, caught: Callable[[], list[str]]) -> None:
    machines.use("stranger", "readwrite")
    offload.compile(PROGRAM, targets=["host"])
    unsigned = stored(machines)
    machines.use("builder", "readwrite", "secret")
    offload.compile(PROGRAM, targets=["host"])
    assert len(caught()) == 3
    assert all("it is unsigned" in line for line in caught())
    signed = stored(machines)
    assert signed.keys() == unsigned.keys()
    assert all(signed[name] != unsigned[name] for name in signed)
    machines.use("user", "read", "secret")
    offload.compile(PROGRAM, targets=["host"])
    assert len(caught()) == 3
    machines.use("other", "read", "another secret")
    offload.compile(PROGRAM, targets=["host"])
    assert any("it is signed with another key" in line for line in caught()[3:])
    # Signatures are for whoever asks for them.
    machines.use("careless", "read")
    before = len(caught())
    offload.compile(PROGRAM, targets=["host"])
    assert len(caught()) == before


def test_a_file_that_is_being_written_is_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]
) -> None:
    """Another machine reads it at that moment, or the disk becomes full."""
    machines = Machines(tmp_path, f"file://{tmp_path}/store", monkeypatch)
    written = LocalFileSystem.pipe_file

    def half(self: LocalFileSystem, path: str, value: bytes, **options: object) -> None:
        written(self, path, value[: len(value) // 2], **options)
        assert Path(path).exists() and Path(path).name.startswith(".")  # and no key, as others look for
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(LocalFileSystem, "pipe_file", half)
    machines.use("builder", "readwrite")
    monkeypatch.setenv("OFFLOAD_ISOLATE", "0")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert said.endswith("No space left on device")
    assert stored(machines) == {}


def test_a_wrong_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Machines(tmp_path, "memory://store", monkeypatch).use("user", "write")
    with pytest.raises(
        offload.OffloadError, match=r"^OFFLOAD_SHARED_CACHE_MODE is 'read' or 'readwrite', not 'write'$"
    ):
        offload.compile(PROGRAM, targets=["host"])


@pytest.mark.parametrize("url", ["store", "net/offload", "file://", "file://net/offload", "local://net"])
def test_what_is_no_url(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fsspec takes these for folders below the current one, of which each project would have one of its own."""
    monkeypatch.chdir(tmp_path)
    Machines(tmp_path, url, monkeypatch).use("user", "readwrite")
    with pytest.raises(
        offload.OffloadError, match=rf"^OFFLOAD_SHARED_CACHE is a URL, as file:///.* not '{url}'; that of a"
    ):
        offload.compile(PROGRAM, targets=["host"])
    assert list(tmp_path.iterdir()) == []


def test_with_a_local_folder_of_no_use(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    machines.use("builder", "readwrite")
    offload.compile(PROGRAM, targets=["host"])
    machines.use("user")
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "/proc/self")
    monkeypatch.setattr(parallel, "build", None)
    with pytest.warns(offload.CacheWarning, match="the cache folder /proc/self is not used"):
        assert works(offload.compile(PROGRAM, targets=["host"]))
