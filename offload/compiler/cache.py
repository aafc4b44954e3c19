"""Whole libraries: from the cache, or built and kept there."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from offload.compiler.output import write_atomically
from offload.compiler.request import BuildRequest
from offload.compiler.warned import heard, say
from offload.errors import OffloadError

if TYPE_CHECKING:
    from offload.cache.cache import Cache
    from offload.compiler.isolation import Progress


def library(request: BuildRequest, progress: Progress = lambda text: None) -> bytes:
    """The shared library. Raises what a build raises."""
    cache = _cache_of_whole(request)
    if cache is None:
        return _build(request, progress)
    return _claimed(cache, _key(request), request, progress)


def cache_for(request: BuildRequest) -> Cache | None:
    """The cache that the request may use; None without one, and then what hashes and locks is not imported."""
    if not request.uses_cache:
        return None
    from offload.cache.cache import open_cache

    return open_cache()


def _cache_of_whole(request: BuildRequest) -> Cache | None:
    """That for whole libraries, of which a key tells all that is linked."""
    return cache_for(request) if all(map(_says_all, request.objects)) else None


def _says_all(path: Path) -> bool:
    """Whether an object file is all that is linked: thin archives and linker scripts name further files."""
    with contextlib.suppress(OSError), path.open("rb") as file:  # what is wrong with it is told where it is read
        return file.read(8).startswith((ELF, b"!<arch>\n", b"BC"))
    return True


def _key(request: BuildRequest) -> str:
    from offload.compiler.keys import Keys

    return Keys(request).library()


def _is_key(request: BuildRequest, key: str) -> bool:
    """Whether it is the request's key now, too."""
    try:
        return _key(request) == key
    except OffloadError:  # a file is gone
        return False


_LENGTH = struct.Struct("<I")
ELF = b"\x7fELF"
"""How libraries and object files begin."""


def _packed(data: bytes, texts: list[str]) -> bytes:
    """A library, which the system's loader takes with what is behind it, and what its build warned of."""
    import json  # builds without a cache do without

    text = json.dumps(texts).encode()
    return data + text + _LENGTH.pack(len(text))


def _unpacked(payload: bytes) -> bytes | None:
    """The library; what its build warned of is said again. None for what no build has kept, which a shared store may
    hold under its own hash."""
    import json

    end = len(payload) - _LENGTH.size
    if end >= 0:
        end -= _LENGTH.unpack_from(payload, end)[0]
    try:
        texts = json.loads(payload[end : -_LENGTH.size]) if end >= 0 and payload.startswith(ELF) else None
    except (ValueError, RecursionError):
        texts = None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    for text in texts:
        say(text)
    return payload[:end]


def _claimed(cache: Cache, key: str, request: BuildRequest, progress: Progress) -> bytes:
    claim = cache.claim("library", key, lambda: progress("waiting for another process, which builds this library"))
    if claim.found is not None:
        if (kept := _unpacked(claim.found)) is not None:
            progress("taking the library from the cache")
            return kept
        claim.refuse("no library")
    try:
        with heard() as texts:
            data = _build(request, progress)
        if _is_key(request, key):  # else a file that it is made of has changed since
            claim.keep(_packed(data, texts))
    finally:
        claim.release()
    return data


@contextlib.contextmanager
def library_file(request: BuildRequest) -> Iterator[Path]:
    """The file of the library, which stays where it is inside of the ``with``. Raises what a build raises."""
    cache = _cache_of_whole(request)
    if cache is None:
        data = _build(request, lambda text: None)
    else:
        key = _key(request)
        with cache.file("library", key) as found:
            if found is not None and _unpacked(found[1]) is not None:
                yield found[0]
                return
        data = _claimed(cache, key, request, lambda text: None)
        with cache.file("library", key) as found:
            if found is not None and found[1].startswith(data):  # where it cannot be written, it is what it was
                yield found[0]
                return
    # Nothing was kept: the file goes when the process ends, since loaded code stays mapped.
    from offload.compiler import places
    from offload.compiler.scratch import kept_folder, remove_kept

    path = Path(kept_folder()) / "program.so"
    write_atomically(path, data)
    yield path
    if places.is_for_one_build():  # nobody asks for it again, and a program that runs may be ended in any way
        remove_kept()


def _build(request: BuildRequest, progress: Progress) -> bytes:
    from offload.compiler import parallel  # what is in the cache is there sooner than this is imported

    return parallel.build(request, progress)
