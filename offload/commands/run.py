"""``offload run``: builds a program and runs one of its functions, as mlir-runner does."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from offload.api import load
from offload.commands.build import request_from
from offload.errors import BuildWarning, DeviceError, OffloadError, did_you_mean
from offload.runtime import DeviceArray
from offload.runtime.library import for_c_alone


def run(options: argparse.Namespace) -> int:
    """Runs the entry function and prints its results, if any; returns the exit code. Raises OffloadError."""
    from offload.compiler import places
    from offload.compiler.cache import library_file
    from offload.compiler.warned import NOTHING_TO_CALL

    # That is said below, of the function that is to be run.
    warnings.filterwarnings("ignore", message=f".*{NOTHING_TO_CALL}", category=BuildWarning)
    with places.short_lived(once=True), library_file(request_from(options)) as path:
        library = load(path)
    if options.backend:
        try:
            library.use(options.backend)
        except DeviceError as error:
            raise OffloadError(str(error).replace("use() asks", "--backend asks", 1)) from error
    if options.entry not in library.functions:
        if reason := for_c_alone(library, options.entry):
            raise OffloadError(reason)
        names = ", ".join(library.functions) or "none (private functions do not count)"
        near = did_you_mean(options.entry, library.functions)
        raise OffloadError(f"the program has no function {options.entry!r} to run; it has: {names}{near}")
    function = library.functions[options.entry]
    if any(not argument.optional for argument in function.signature.args):
        raise OffloadError(f"{options.entry}() takes arguments; 'offload run' calls functions without any")
    sys.stdout.flush()
    # The program prints through C's buffer, which would otherwise come out last.
    try:
        with _ends_at_ctrl_c():
            result = function()
    except BaseException:
        with contextlib.suppress(OSError, OffloadError):  # what the program failed at is to be told
            _flush()
        raise
    _flush()
    if result is not None:
        print(tuple(map(_shown, result)) if isinstance(result, tuple) else _shown(result))
    return 0


def _flush() -> None:
    """Raises OSError and OffloadError where what the program has printed could not be written."""
    libc = ctypes.CDLL(None, use_errno=True)
    stdout = ctypes.c_void_p.in_dll(libc, "stdout")
    failed = libc.fflush(stdout) != 0
    number = ctypes.get_errno()
    libc.fflush(None)
    if failed:
        raise OSError(number, os.strerror(number))
    if not libc.ferror(stdout):
        return
    # It was more than C's buffer holds, or nothing is buffered: that has failed before, and why is not known any more.
    reader = select.poll()
    reader.register(1, 0)
    if any(event & select.POLLERR for _, event in reader.poll(0)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    raise OffloadError("cannot write the output: a part of what the program has printed is lost")


def _shown(result: Any) -> Any:
    """A result as it is printed: an array as its values, wherever they are."""
    return result.numpy() if isinstance(result, DeviceArray) else result


@contextlib.contextmanager
def _ends_at_ctrl_c() -> Iterator[None]:
    """Python would do what Ctrl-C means to it once the program has returned, which one that hangs never does."""
    if threading.current_thread() is not threading.main_thread():  # which may not say what signals do
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
