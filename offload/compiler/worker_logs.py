"""The log of a worker: its records go to the parent, whose handlers decide what becomes of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

LOGGER = "offload"
"""Our loggers have names of their own below it."""


def levels() -> dict[str, int]:
    """In the parent: the levels of our loggers that somebody set, by name."""
    known = logging.root.manager.loggerDict
    ours = {name: each.level for name, each in list(known.items()) if isinstance(each, logging.Logger)}
    found = {name: level for name, level in ours.items() if name.startswith(f"{LOGGER}.") and level}
    return {**found, LOGGER: logging.getLogger(LOGGER).getEffectiveLevel()}


def handle(record: Mapping[str, Any]) -> None:
    """In the parent: a record that was sent."""
    if (logger := logging.getLogger(record["name"])).isEnabledFor(record["levelno"]):
        logger.handle(logging.makeLogRecord(record))


def adopt(levels: Mapping[str, int], send: Callable[[dict[str, Any]], None]) -> None:
    """In the worker: has records of these levels sent."""
    logger = logging.getLogger(LOGGER)
    if not any(isinstance(handler, _Sending) for handler in logger.handlers):
        logger.addHandler(_Sending(send))
        logger.propagate = False
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


class _Sending(logging.Handler):
    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        plain = logging.makeLogRecord({**record.__dict__, "msg": record.getMessage(), "args": (), "exc_info": None})
        self._send(plain.__dict__)
