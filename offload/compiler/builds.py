"""The builds that front ends ask for, each in a worker unless OFFLOAD_ISOLATE is 0."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from offload.compiler.isolation import HERE, Ears, Job, Progress, run
from offload.compiler.request import BuildRequest
from offload.config import isolated
from offload.errors import OffloadError

if TYPE_CHECKING:
    from offload.compiler.driver import Emitted, Program
    from offload.compiler.made import Made, Share


def _silent(text: str) -> None:
    pass


def build(request: BuildRequest, progress: Progress = _silent, ears: Ears = HERE) -> bytes:
    """The shared library. Raises CompileError, ToolkitError, LinkError. ``ears`` take a worker's words."""
    (data,) = _done(Job(_build, request), progress, ears)
    return bytes(data)


def part(request: BuildRequest, share: Share, progress: Progress = _silent, ears: Ears = HERE) -> Made:
    """A share of a build. Raises CompileError, ToolkitError."""
    (made,) = _done(Job(_part, request, (share,)), progress, ears)
    return cast("Made", made)


def assemble(request: BuildRequest, parts: Sequence[Made], progress: Progress = _silent, ears: Ears = HERE) -> bytes:
    """The shared library of all its parts. Raises CompileError, LinkError, OffloadError."""
    (data,) = _done(Job(_assemble, request, (parts,)), progress, ears)
    return bytes(data)


def emit(request: BuildRequest, stage: str, progress: Progress = _silent) -> Iterator[Emitted]:
    """The outputs of one stage. Raises CompileError, ToolkitError, or OffloadError for an unknown stage."""
    return _done(Job(_emit, request, (stage,), ("--emit", stage)), progress)


def dump(request: BuildRequest, progress: Progress = _silent) -> Iterator[Emitted]:
    """The outputs of all stages of one build; the last one is the library."""
    return _done(Job(_dump, request), progress)


def pipelines(request: BuildRequest, progress: Progress = _silent) -> Iterator[tuple[str, list[str]]]:
    """What runs on which part of the program: the pass pipelines of a build, in order."""
    return _done(Job(_pipelines, request, (), ("--print-pipeline",)), progress)


def _done(job: Job, progress: Progress, ears: Ears = HERE) -> Iterator[Any]:
    return run(job, progress, ears) if isolated() else job.here(progress)


# What a worker does; it finds these by their names. Its parent has no use for what is imported here.


@contextlib.contextmanager
def _program(request: BuildRequest, progress: Progress) -> Iterator[Program]:
    from offload.compiler.driver import Program

    try:
        with Program(request, progress) as program:
            yield program
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise OffloadError(f"cannot compile here: {error.strerror}; allow more of them (ulimit -n)") from error
        advice = {
            errno.ENOSPC: "make room there, or set TMPDIR to another folder",
            errno.EDQUOT: "make room there, or set TMPDIR to another folder",
            errno.EFBIG: "allow larger files (ulimit -f)",
        }
        if error.errno not in advice:
            raise
        raise OffloadError(
            f"cannot write temporary files in {tempfile.gettempdir()}: {error.strerror}; {advice[error.errno]}"
        ) from error
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        raise OffloadError(
            "cannot compile here: the limits of memory or processes (ulimit -v, ulimit -u, a container's) leave no "
            "room for another thread"
        ) from error


def _build(request: BuildRequest, progress: Progress) -> Iterator[bytes]:
    with _program(request, progress) as program:
        yield program.build()


def _part(request: BuildRequest, share: Share, progress: Progress) -> Iterator[Made]:
    with _program(request, progress) as program:
        yield program.part(share)


def _assemble(request: BuildRequest, parts: Sequence[Made], progress: Progress) -> Iterator[bytes]:
    with _program(request, progress) as program:
        yield program.assemble(parts)


def _emit(request: BuildRequest, stage: str, progress: Progress) -> Iterator[Emitted]:
    with _program(request, progress) as program:
        yield from program.emit(stage)


def _dump(request: BuildRequest, progress: Progress) -> Iterator[Emitted]:
    with _program(request, progress) as program:
        yield from program.dump()


def _pipelines(request: BuildRequest, progress: Progress) -> Iterator[tuple[str, list[str]]]:
    with _program(request, progress) as program:
        yield from program.pipelines()
