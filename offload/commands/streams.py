"""Standard streams: those that are closed, those whose encoding lacks a character, those whose reader goes away."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import TextIO

READER_GONE = 128 + signal.SIGPIPE
"""The exit code of a command whose reader has gone (``| head``): what a shell says of one that the signal ends."""


class _Errors(io.TextIOWrapper):
    """Standard error. Where its reader has gone, what is said is lost: the command goes on, and ends with its own
    code."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            _let_go(self)
            return len(text)

    def close(self) -> None:
        self.flush()  # what is below it is Python's own stream's, too, which may be used when this has gone

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            _let_go(self)


def open_streams() -> None:
    """Gives standard streams that are closed (``>&-``) somewhere to go: a file opened later would have their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # What reads a closed input is told so: an end of file would be an empty program.
            os.open(os.devnull, os.O_RDWR if number else os.O_WRONLY)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # and not what a test puts there
            stream.reconfigure(errors="backslashreplace")


def go_on_unread() -> None:
    """Lets the process go on where nobody reads its standard error. Of a program that calls `main`, it is its own."""
    errors = sys.stderr
    if type(errors) is io.TextIOWrapper and errors is sys.__stderr__:
        errors.flush()
        sys.stderr = _Errors(
            errors.buffer,
            encoding=errors.encoding,
            errors="backslashreplace",
            line_buffering=errors.line_buffering,
            write_through=errors.write_through,
        )


def let_output_go() -> None:
    """What is still buffered for standard output would be tried again at the end of the process."""
    _let_go(sys.stdout)


def _let_go(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
