"""What goes between a process and its worker: pickled objects over a socket, each with its length before it."""

from __future__ import annotations

import pickle
import socket
import struct
import time
from typing import Any

_LENGTH = struct.Struct("<Q")


class Closed(Exception):
    """The other side is gone."""


def send(connection: socket.socket, value: Any) -> None:
    """Raises what pickle raises, before a byte is sent, and OSError where the other side is gone."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    connection.sendall(_LENGTH.pack(len(data)))
    connection.sendall(data)


def receive(connection: socket.socket, deadline: float | None = None) -> Any:
    """The next object. Raises Closed, and TimeoutError once time.monotonic() is past the deadline."""
    (length,) = _LENGTH.unpack(_receive(connection, _LENGTH.size, deadline))
    return pickle.loads(_receive(connection, length, deadline))


def _receive(connection: socket.socket, size: int, deadline: float | None) -> bytearray:
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
        try:
            got = connection.recv_into(view[done:])
        except ConnectionResetError:
            got = 0
        if got == 0:
            raise Closed
        done += got
    return data
