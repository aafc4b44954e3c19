"""A Redis server behind a shared cache; fsspec has no file system for one."""

from __future__ import annotations


class RedisStore:
    """A server as the file system that `shared.SharedStore` needs, of keys with slashes and of values.

    ``url`` is as redis-py takes it: ``redis://USER:PASSWORD@HOST:PORT/DATABASE``, or ``rediss://`` for TLS."""

    def __init__(self, url: str) -> None:
        import redis

        self._client = redis.Redis.from_url(url)

    def cat_file(self, path: str) -> bytes:
        """The value of a key. Raises FileNotFoundError where there is none, and redis.RedisError."""
        value = self._client.get(path)
        if not isinstance(value, bytes):
            raise FileNotFoundError(path)
        return value

    def makedirs(self, path: str, exist_ok: bool) -> None:
        """Keys need no folders."""

    def pipe_file(self, path: str, value: bytes) -> None:
        """Gives a key its value. Raises redis.RedisError."""
        self._client.set(path, value)
