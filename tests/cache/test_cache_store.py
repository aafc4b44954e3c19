"""The folder of the cache: entries in use stay, the least used go first, and what killed processes left is removed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from caching import PROGRAM, entries, leftovers, numbers, works

import offload
from offload.cache import cache as layers
from offload.cache import upkeep
from offload.cache.cache import Cache
from offload.cache.contents import Contents
from offload.cache.entry import BadEntry, seal, unseal
from offload.cache.folder import prepare
from offload.cache.ledger import Ledger
from offload.cache.store import Store
from offload.compiler import keys
from offload.config import cache_limit
from offload.files import replace

KEY = "ab" * 32


def key(number: int) -> str:
    return f"{number:064x}"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    prepare(tmp_path / "cache")
    return Store(tmp_path / "cache")


def test_an_entry_is_its_payload_and_a_trailer() -> None:
    for payload in (b"", b"x", os.urandom(5000)):
        data = payload + seal(KEY, payload)
        assert unseal(data, KEY) == payload
        for wrong in (data[:-1], data + b"\0", data[1:], b"", data[:100], data.replace(b"OFFLOAD1", b"OFFLOAD0")):
            with pytest.raises(BadEntry):
                unseal(wrong, KEY)
        with pytest.raises(BadEntry, match="another key's"):
            unseal(data, key(5))


def test_every_changed_bit_is_noticed() -> None:
    data = b"payload" + seal(KEY, b"payload", b"secret")
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(BadEntry):
            unseal(bytes(changed), KEY, b"secret")


def test_signatures() -> None:
    signed, unsigned = (b"p" + seal(KEY, b"p", secret) for secret in (b"secret", None))
    assert unseal(signed, KEY) == unseal(signed, KEY, b"secret") == unseal(unsigned, KEY) == b"p"
    with pytest.raises(BadEntry, match="it is unsigned"):
        unseal(unsigned, KEY, b"secret")
    with pytest.raises(BadEntry, match="signed with another key"):
        unseal(signed, KEY, b"guess")


def test_the_least_used_goes_first(store: Store) -> None:
    for number in range(10):
        store.write("image", key(number), bytes(1000))
        os.utime(store.path("image", key(number)), (number, number))
    assert store.read("image", key(0)) is not None  # which makes it the last one used
    removed = upkeep.prune(store, Ledger(store.folder), size=3 * 1200)
    assert removed.entries == 7
    assert {path.name for path in entries(store.folder)["image"]} == {key(0), key(8), key(9)}


def test_a_cache_stays_below_its_limit(store: Store) -> None:
    cache = Cache(store, None, limit=50_000)
    for number in range(200):
        cache.write("image", key(number), bytes(1000))
        assert sum(path.stat().st_size for path in entries(store.folder)["image"]) <= 50_000
    assert store.read("image", key(199)) is not None
    assert store.read("image", key(0)) is None
    assert len(entries(store.folder)["image"]) > 35


def test_a_count_that_is_lost_is_made_again(store: Store) -> None:
    cache = Cache(store, None, limit=50_000)
    for number in range(30):
        cache.write("image", key(number), bytes(1000))
    counted = numbers(store.folder)["bytes"]
    assert counted == sum(path.stat().st_size for path in entries(store.folder)["image"])
    for damage in (b"", b"{", b"[]", b'{"bytes": "many"}', b'{"bytes": -99999}', b"\0" * 512, b"[" * 2000):
        (store.folder / "ledger.json").write_bytes(damage)
        cache.write("image", key(0), bytes(1000))
        assert numbers(store.folder)["bytes"] == counted


@pytest.mark.parametrize("limit", [0, 1])
def test_no_limit_and_one_that_is_too_small(store: Store, limit: int) -> None:
    cache = Cache(store, None, limit)
    for number in range(5):
        cache.write("image", key(number), bytes(1000))
    assert len(entries(store.folder)["image"]) == (0 if limit else 5)


def test_what_is_being_loaded_stays(store: Store) -> None:
    for number in range(3):
        store.write("library", key(number), bytes(1000))
    with store.held("library", key(1)) as payload:
        assert payload == bytes(1000)
        assert upkeep.prune(store, Ledger(store.folder), size=0).entries == 2
        assert store.path("library", key(1)).exists()
    assert upkeep.prune(store, Ledger(store.folder), size=0).entries == 1


def test_a_limit_that_is_too_small_for_a_library_that_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("OFFLOAD_CACHE_SIZE", "1")
    for _ in range(2):
        assert works(offload.compile(PROGRAM, targets=["host"]))
    assert entries(tmp_path) == {"library": [], "image": [], "host": []}


def test_locks_and_temporary_files_of_the_dead_are_removed(store: Store) -> None:
    abandoned = store.folder / "tmp" / f".{KEY}.0123456789ab.offload-tmp"
    abandoned.write_bytes(b"half")
    busy = store.folder / "tmp" / f".{KEY}.ba9876543210.offload-tmp"
    busy.write_bytes(b"half")
    dead, held = (store.lock("image", key(number)) for number in (1, 2))
    dead.touch()
    held.touch()
    with busy.open("rb") as writing, held.open("rb") as making:
        fcntl.flock(writing, fcntl.LOCK_EX)
        fcntl.flock(making, fcntl.LOCK_EX)
        store.write("image", KEY, b"whole")
        assert leftovers(store.folder) == [held, busy]
        dead.touch()
        abandoned.write_bytes(b"half")
        assert store.remove_leftovers() == 2
        assert leftovers(store.folder) == [held, busy]
    assert store.remove_leftovers() == 2
    assert leftovers(store.folder) == []


def test_files_of_others_are_not_removed(store: Store) -> None:
    """OFFLOAD_CACHE_DIR may name a folder that was there before, with folders of these names."""
    theirs = ["library/libz.so", "library/" + "a" * 64, "image/photo.png", "host/notes.txt", "locks/door.key"]
    theirs += ["tmp/draft", f"image/{KEY}.so", f"locks/{KEY}"]
    for name in theirs:
        (store.folder / name).write_bytes(b"precious")
    cache = Cache(store, None, 100)
    for number in range(3):
        cache.write("image", key(number), bytes(100))
    upkeep.prune(store, Ledger(store.folder), size=0, seconds=0)
    assert sorted(str(path.relative_to(store.folder)) for path in store.folder.glob("*/*")) == sorted(theirs)
    assert [stage.entries for stage in upkeep.usage(store, Ledger(store.folder)).values()] == [0, 0, 0]


def test_what_a_killed_build_left_beside_its_output_is_removed(tmp_path: Path) -> None:
    output = tmp_path / "k.so"
    (tmp_path / ".k.so.0123456789ab.offload-tmp").write_bytes(b"half")
    others = [tmp_path / ".other.so.0123456789ab.offload-tmp", tmp_path / ".k.so.notes"]
    for other in others:
        other.write_bytes(b"someone's")
    replace(output, (b"who", b"le"), 0o755)
    assert output.read_bytes() == b"whole"
    assert sorted(tmp_path.iterdir()) == sorted([output, *others])


def test_one_makes_it_the_others_wait(store: Store) -> None:
    cache, made = Cache(store, None, 0), []

    def ask() -> None:
        claim = cache.claim("image", KEY)
        if claim.found is None:
            made.append(threading.get_ident())
            time.sleep(0.2)
            claim.keep(b"payload")
        else:
            assert claim.found == b"payload"

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert numbers(store.folder)["image hit"] == 7
    assert numbers(store.folder)["image miss"] == 1
    assert leftovers(store.folder) == []


def test_whoever_waits_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process may have been stopped, with Ctrl-Z."""
    monkeypatch.setattr(layers, "_MOMENT", 0.01)
    first = Cache(store, None, 0).claim("image", KEY)
    told, found = threading.Event(), []
    cache = Cache(store, None, 0)
    thread = threading.Thread(target=lambda: found.append(cache.claim("image", KEY, told.set).found))
    thread.start()
    assert told.wait(10)
    first.keep(b"payload")
    thread.join()
    assert found == [b"payload"]


def test_who_gives_up_lets_the_next_one(store: Store) -> None:
    cache = Cache(store, None, 0)
    first = cache.claim("image", KEY)
    assert first.found is None
    found = []
    thread = threading.Thread(target=lambda: found.append(cache.claim("image", KEY)))
    thread.start()
    time.sleep(0.1)
    assert not found
    first.release()
    first.release()
    thread.join()
    assert found[0].found is None
    found[0].release()
    assert leftovers(store.folder) == []


def test_a_build_that_was_interrupted_keeps_nobody_waiting(store: Store) -> None:
    """As Ctrl-C in a notebook: the process lives on, and nobody says that the claim is over."""
    cache = Cache(store, None, 0)

    def interrupted() -> None:
        claim = cache.claim("image", KEY)
        assert claim.found is None
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert leftovers(store.folder) == []


def test_a_process_that_was_stopped_holds_up_nobody(store: Store) -> None:
    """Its numbers are not worth waiting for."""
    cache = Cache(store, None, 0)
    cache.write("image", KEY, b"payload")
    before = numbers(store.folder)
    with (store.folder / "ledger.json").open("rb") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        assert cache.claim("image", KEY).found == b"payload"
    assert numbers(store.folder) == before


def test_entries_that_others_could_have_written(store: Store) -> None:
    store.write("image", KEY, b"payload")
    path = store.path("image", KEY)
    path.chmod(0o620)
    assert store.read("image", KEY) is None
    assert not path.exists()
    target = store.folder / "target"
    target.write_bytes(b"payload" + seal(KEY, b"payload"))
    path.symlink_to(target)
    assert store.read("image", KEY) is None


def test_contents_are_taken_from_their_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was parsed for each key, thousands of lines for each call of offload.compile."""
    read: list[Path] = []
    monkeypatch.setattr(keys, "_contents", {})
    monkeypatch.setattr(keys, "Contents", lambda path: read.append(path) or object())
    assert keys.contents() is keys.contents()
    assert len(read) == 1


def test_contents_are_read_again_when_they_change(tmp_path: Path) -> None:
    kept, file = tmp_path / "contents.json", tmp_path / "file"
    file.write_bytes(b"one")
    digests = {Contents(kept).digest(file)}
    # A file of this very moment is not remembered: it may change once more with the same stamp.
    contents = Contents(kept)
    contents.digest(file)
    contents.save()
    assert not kept.exists()
    old = time.time() - 100
    os.utime(file, (old, old))
    file.write_bytes(b"two")
    digests.add(Contents(kept).digest(file))
    assert len(digests) == 2
    for damage in (b"", b"[]", b'{"file x": 5}', b"\xff"):
        kept.write_bytes(damage)
        assert Contents(kept).digest(file) in digests
    with pytest.raises(offload.OffloadError, match=r"^cannot read .*gone: No such file or directory$"):
        Contents(kept).digest(tmp_path / "gone")


def test_contents_that_a_disk_has_damaged(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("some")
    for damage in (b"", b"{", b"[]", b"\xff" * 99, b"[" * 100_000, b'{"file": 1}'):
        (tmp_path / "contents.json").write_bytes(damage)
        assert Contents(tmp_path / "contents.json").digest(tmp_path / "file") == hashlib.sha256(b"some").hexdigest()


def test_facts_are_found_once(tmp_path: Path) -> None:
    found = []

    def find() -> str:
        found.append(1)
        return "zen5"

    for _ in range(2):
        contents = Contents(tmp_path / "contents.json")
        assert contents.fact("processor", ["a", 1], find) == "zen5"
        contents.save()
    assert len(found) == 1
    contents.fact("processor", ["b", 1], find)
    assert len(found) == 2
    assert stat.S_IMODE((tmp_path / "contents.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 2 << 30),
        ("0", 0),
        ("1000", 1000),
        ("500M", 500 << 20),
        ("2G", 2 << 30),
        ("1.5 GiB", 3 << 29),
        ("2kb", 2048),
    ],
)
def test_sizes(text: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_SIZE", text)
    assert cache_limit() == number


@pytest.mark.parametrize("text", ["-1", "much", "2 G B", "M"])
def test_wrong_sizes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_SIZE", text)
    with pytest.raises(offload.OffloadError, match=f"^OFFLOAD_CACHE_SIZE is a size such as 500M or 2G, not '{text}'$"):
        offload.compile(PROGRAM, targets=["host"])


@pytest.mark.parametrize("when", ["removed", "being removed"])
def test_an_entry_that_goes_while_it_is_opened(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is told of a file finds it there: not one that another process removes between its opening and its lock."""
    from offload.cache import locks

    store = Store(tmp_path)
    (tmp_path / "library").mkdir()
    (tmp_path / "tmp").mkdir()
    key = "a" * 64
    store.write("library", key, b"payload")
    real = locks.try_lock

    def late(handle: int, shared: bool = False) -> bool:
        if when == "removed":
            store.path("library", key).unlink()
        return real(handle, shared) and when == "removed"

    monkeypatch.setattr(locks, "try_lock", late)
    with store.held("library", key) as payload:
        assert payload is None
    monkeypatch.setattr(locks, "try_lock", real)
    store.write("library", key, b"payload")
    with store.held("library", key) as payload:
        assert payload == b"payload"
