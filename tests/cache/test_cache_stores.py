"""Stores of shared caches behind servers: web servers, S3, Redis, and those that do not answer."""

from __future__ import annotations

import http.server
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from caching import OTHER, PROGRAM, Machines, works
from fakeredis import TcpFakeServer
from fsspec.implementations.memory import MemoryFileSystem
from moto.server import ThreadedMotoServer

import offload
from offload.cache import cache as layers
from offload.cache import shared
from offload.cache.shared import SharedStore, Unreachable


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """An HTTP server of a folder: its URL, the folder, and what was asked of it."""
    asked: list[str] = []
    folder = tmp_path / "www"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, form: str, *words: object) -> None:
            asked.append(str(words[0]))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        thread = threading.Thread(target=http_server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http_server.server_port}/cache", folder, asked
        http_server.shutdown()
        thread.join()


def test_a_web_server_is_a_cache_to_read(
    server: tuple[str, Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caught: Callable[[], list[str]],
    no_compiler: Callable[[], None],
) -> None:
    url, folder, asked = server
    builder = Machines(tmp_path, f"file://{folder}/cache", monkeypatch)
    builder.use("builder", "readwrite")
    offload.compile(PROGRAM, targets=["host"])
    users = Machines(tmp_path, url, monkeypatch)
    users.use("other")
    assert works(offload.compile(OTHER, targets=["host"]), "other")
    assert any("GET /cache/1/library/" in line for line in asked)
    users.use("user")
    no_compiler()
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert caught() == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/cache", "nosuch://store", "file:///proc/self/nothing/here"])
def test_a_store_that_cannot_be_reached_is_a_warning(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]
) -> None:
    machines = Machines(tmp_path, url, monkeypatch)
    machines.use("user", "readwrite")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert works(offload.compile(OTHER, targets=["host"]), "other")
    (said,) = caught()
    assert said.startswith(f"the shared cache {url} is not used: ")


def test_without_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]) -> None:
    Machines(tmp_path, f"file://{tmp_path}/store", monkeypatch).use("user", "readwrite")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert "pip install 'offload[shared-cache]'" in said


def test_a_store_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]
) -> None:
    """A server that takes connections and then says nothing."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/cache"
        Machines(tmp_path, url, monkeypatch).use("user", "readwrite")
        monkeypatch.setattr(shared, "_PATIENCE", 0.5)
        monkeypatch.setenv("OFFLOAD_ISOLATE", "0")  # a worker has its own patience
        assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert said == f"the shared cache {url} is not used: TimeoutError: no answer within 0.5 seconds"


def test_a_store_that_takes_long_to_have_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer came in time, and all of them together took longer than a build may."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            time.sleep(0.3)
            self.send_error(404)

        def log_message(self, form: str, *words: object) -> None:
            pass

    monkeypatch.setattr(shared, "_PATIENCE", 0.5)
    monkeypatch.setattr(shared, "_SLOW", 0.2)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        thread = threading.Thread(target=http_server.serve_forever)
        thread.start()
        store = SharedStore(f"http://127.0.0.1:{http_server.server_port}/cache", writes=False)
        assert store.read("image", "0" * 64) == (None, "")
        with pytest.raises(Unreachable, match=r"^it has taken 0\.\d seconds to say that it lacks what was asked for$"):
            store.read("image", "1" * 64)
        http_server.shutdown()
        thread.join()
    assert len(asked) == 2


def test_threads_that_wait_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts how long was waited, not by how many; what is found shows that asking is worth it."""
    answer, here = MemoryFileSystem.cat_file, "f" * 64

    def slowly(self: MemoryFileSystem, path: str, **options: object) -> bytes:
        if here not in path:
            time.sleep(1)
        return bytes(answer(self, path, **options))

    monkeypatch.setattr(MemoryFileSystem, "cat_file", slowly)
    monkeypatch.setattr(shared, "_PATIENCE", 1.8)
    monkeypatch.setattr(shared, "_SLOW", 0.2)
    store = SharedStore("memory://threads", writes=True)
    store.write("image", here, b"payload")

    def ask() -> None:
        with ThreadPoolExecutor(8) as pool:
            assert [*pool.map(store.read, ["image"] * 8, [f"{i:064}" for i in range(8)])] == [(None, "")] * 8

    ask()
    assert store.read("image", here) == (b"payload", "")
    ask()
    with pytest.raises(Unreachable, match=r"^it has taken \d\.\d seconds to say that it lacks what was asked for$"):
        ask()


def test_a_folder_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]
) -> None:
    """Of a disk that is not mounted: every build compiled everything, and nobody was told. Who writes makes it."""
    machines = Machines(tmp_path, f"file://{tmp_path}/net/store", monkeypatch)
    machines.use("user")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert said.endswith(f"/net/store is not used: NotADirectoryError: there is no folder {tmp_path}/net/store")
    layers._given_up.clear()
    machines.use("ci", "readwrite")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    machines.use("another")
    assert works(offload.compile(OTHER, targets=["host"]), "other")
    assert len(caught()) == 1


def test_a_worker_does_not_ask_a_store_that_gave_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]
) -> None:
    """It would wait as long as its parent has waited."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(500)

        def log_message(self, form: str, *words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        thread = threading.Thread(target=http_server.serve_forever)
        thread.start()
        Machines(tmp_path, f"http://127.0.0.1:{http_server.server_port}/cache", monkeypatch).use("user")
        assert works(offload.compile(PROGRAM, targets=["host"]))
        assert works(offload.compile(OTHER, targets=["host"]), "other")
        http_server.shutdown()
        thread.join()
    assert [path.rpartition("/")[0] for path in asked] == ["/cache/1/library"]
    assert len(caught()) == 1


def test_a_store_that_failed_in_a_worker_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]
) -> None:
    """Reads find nothing there and writes fail, as of a server that only reads: the worker's is the only attempt."""
    written = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_PUT(self) -> None:
            written.append(self.path)
            self.send_error(501)

        def log_message(self, form: str, *words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        thread = threading.Thread(target=http_server.serve_forever)
        thread.start()
        Machines(tmp_path, f"http://127.0.0.1:{http_server.server_port}/cache", monkeypatch).use("user", "readwrite")
        assert works(offload.compile(PROGRAM, targets=["host"]))
        assert works(offload.compile(OTHER, targets=["host"]), "other")
        http_server.shutdown()
        thread.join()
    # The worker's threads were at these two when the first of them failed.
    assert {path.split("/")[3] for path in written} <= {"host", "image"}
    assert len(written) <= 2
    assert len(caught()) == 1


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """A bucket of a server that speaks S3, and what is in it."""
    import boto3

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        settings = {"ENDPOINT_URL": f"http://{host}:{port}", "ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "mine"}
        for name, value in (settings | {"DEFAULT_REGION": "us-east-1"}).items():
            monkeypatch.setenv(f"AWS_{name}", value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="team")
        yield (
            "s3://team/offload",
            lambda: [each["Key"] for each in client.list_objects_v2(Bucket="team").get("Contents", [])],
        )
    finally:
        server.stop()


@pytest.fixture
def redis() -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """A Redis server, and its keys."""
    import redis

    server = TcpFakeServer(("127.0.0.1", 0))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"redis://127.0.0.1:{server.server_address[1]}/0"
        client = redis.Redis.from_url(url)
        yield url, lambda: [key.decode() for key in client.scan_iter()]
        client.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("kind", ["s3", "redis"])
def test_a_store_that_is_written(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caught: Callable[[], list[str]],
    no_compiler: Callable[[], None],
) -> None:
    url, names = request.getfixturevalue(kind)
    machines = Machines(tmp_path, url, monkeypatch)
    machines.use("reader")
    assert works(offload.compile(OTHER, targets=["host"]), "other")
    assert names() == []
    machines.use("builder", "readwrite", secret="ours")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert sorted(name.rpartition("/")[0] for name in names()) == [
        "offload/1/host", "offload/1/image", "offload/1/library"
    ]  # fmt: skip
    machines.use("stranger", secret="theirs")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert caught() and all("is not used" in text and "sign" in text for text in caught())
    machines.use("user", secret="ours")
    no_compiler()
    assert works(offload.compile(PROGRAM, targets=["host"]))


def test_passwords_are_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caught: Callable[[], list[str]]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    Machines(tmp_path, f"redis://team:hidden@127.0.0.1:{port}/0", monkeypatch).use("user")
    assert works(offload.compile(PROGRAM, targets=["host"]))
    (said,) = caught()
    assert said.startswith(f"the shared cache redis://team:…@127.0.0.1:{port}/0 is not used: ConnectionError")
    assert shared.without_password("s3://bucket/a:b@c") == "s3://bucket/a:b@c"
    assert shared.without_password("https://:hidden@host/x") == "https://:…@host/x"
    assert shared.without_password("redis://:hid/den#@host:1/0") == "redis://:…@host:1/0"
    assert shared.without_password("https://host:80/a@b?hidden") == "https://host:80/a@b?…"
    assert shared.without_password("redis://host/?db=1&password=a/b@c") == "redis://host/?db=…&password=…"
    said = "403, url='https://store/x?sig=hid%20den', of <https://a:b@store/?sig=hidden&sv=1>"
    assert shared.without_password(said) == "403, url='https://store/x?sig=…', of <https://a:…@store/?sig=…&sv=…"
