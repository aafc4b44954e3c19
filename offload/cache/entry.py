"""An entry: the payload as it is, then a trailer that says whose it is and what it must hash to.

The payload comes first so that the entry of a shared library is one: the system's loader does not look behind what
the ELF headers speak of.
"""

from __future__ import annotations

import hashlib
import struct

_MAGIC = b"OFFLOAD1"
_TRAILER = struct.Struct("<8sQ32s32s32s")  # magic, length of the payload, key, SHA-256 of the payload, signature
_UNSIGNED = bytes(32)


class BadEntry(Exception):
    """The bytes are no entry, or not the one that was asked for; the message says why."""


def seal(key: str, payload: bytes, secret: bytes | None = None) -> bytes:
    """The trailer of an entry. ``key`` is a SHA-256 in hexadecimal; with a ``secret`` the entry is signed."""
    digest = hashlib.sha256(payload).digest()
    name = bytes.fromhex(key)
    signature = _signature(len(payload), name, digest, secret) if secret else _UNSIGNED
    return _TRAILER.pack(_MAGIC, len(payload), name, digest, signature)


def unseal(data: bytes, key: str, secret: bytes | None = None) -> bytes:
    """The payload. Raises BadEntry unless all of it is there, is this key's and, with a ``secret``, signed with it."""
    if len(data) < _TRAILER.size:
        raise BadEntry(f"{len(data)} bytes are too few")
    magic, length, name, digest, signature = _TRAILER.unpack_from(data, len(data) - _TRAILER.size)
    if magic != _MAGIC or length != len(data) - _TRAILER.size:
        raise BadEntry("it is cut, or no entry")
    if name != bytes.fromhex(key):
        raise BadEntry("it is another key's")
    payload = data[:length]
    if hashlib.sha256(payload).digest() != digest:
        raise BadEntry("its bytes have changed")
    if secret:
        import hmac  # few caches are shared

        if not hmac.compare_digest(signature, _signature(length, name, digest, secret)):
            raise BadEntry("it is unsigned" if signature == _UNSIGNED else "it is signed with another key")
    return payload


def _signature(length: int, name: bytes, digest: bytes, secret: bytes) -> bytes:
    import hmac

    return hmac.digest(secret, _TRAILER.pack(_MAGIC, length, name, digest, _UNSIGNED), "sha256")
