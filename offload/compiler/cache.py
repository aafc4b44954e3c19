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

if TYPE_CHECKING:
    from offload.cache.cache import Cache
    from offload.compiler.isolation import Progress


def library(request: BuildRequest, progress: Progress = lambda text: None) -> bytes:
    """The shared library. Raises what a build raises."""
    cache = cache_for(request)
    if cache is None:
        return _build(request, progress)
    return _claimed(cache, _key(request), request, progress)


def cache_for(request: BuildRequest) -> Cache | None:
    """The cache that the request may use; None without one, and then what hashes and locks is not imported."""
    if not request.uses_cache:
        return None
    from offload.cache.cache import open_cache

    return open_cache()


def _key(request: BuildRequest) -> str:
    from offload.compiler.keys import Keys

    return Keys(request).library()


_LENGTH = struct.Struct("<I")


def _packed(data: bytes, texts: list[str]) -> bytes:
    """A library, which the system's loader takes with what is behind it, and what its build warned of."""
    import json  # builds without a cache do without

    text = json.dumps(texts).encode()
    return data + text + _LENGTH.pack(len(text))


def _unpacked(payload: bytes) -> bytes:
    """The library; what its build warned of is said again."""
    import json

    (length,) = _LENGTH.unpack_from(payload, len(payload) - _LENGTH.size)
    end = len(payload) - _LENGTH.size - length
    for text in json.loads(payload[end : end + length]):
        say(text)
    return payload[:end]


def _claimed(cache: Cache, key: str, request: BuildRequest, progress: Progress) -> bytes:
    claim = cache.claim("library", key)
    if claim.found is not None:
        progress("taking the library from the cache")
        return _unpacked(claim.found)
    try:
        with heard() as texts:
            data = _build(request, progress)
        claim.keep(_packed(data, texts))
    finally:
        claim.release()
    return data


@contextlib.contextmanager
def library_file(request: BuildRequest) -> Iterator[Path]:
    """The file of the library, which stays where it is inside of the ``with``. Raises what a build raises."""
    cache = cache_for(request)
    if cache is None:
        data = _build(request, lambda text: None)
    else:
        key = _key(request)
        with cache.file("library", key) as found:
            if found is not None:
                path, payload = found
                _unpacked(payload)
                yield path
                return
        data = _claimed(cache, key, request, lambda text: None)
        with cache.file("library", key) as found:
            if found is not None:
                yield found[0]
                return
    # Nothing was kept: the file goes when the process ends, since loaded code stays mapped.
    from offload.compiler.scratch import kept_folder

    path = Path(kept_folder()) / "program.so"
    write_atomically(path, data)
    yield path


def _build(request: BuildRequest, progress: Progress) -> bytes:
    from offload.compiler import parallel  # what is in the cache is there sooner than this is imported

    return parallel.build(request, progress)
