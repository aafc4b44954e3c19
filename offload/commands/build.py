"""``offload build``: MLIR files into a shared library, or one stage of the way printed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from offload.api import make_request
from offload.errors import OffloadError

if TYPE_CHECKING:
    from offload.compiler.driver import Program
    from offload.compiler.request import BuildRequest


def request_from(options: argparse.Namespace) -> BuildRequest:
    """A BuildRequest from command-line options."""
    from offload.compiler.request import Source

    return make_request(
        [Source.read(Path(path)) for path in options.sources],
        options.target,
        opt=options.opt,
        link=options.link,
        objects=options.object,
        runtime=options.runtime,
        verify_each=options.verify_each,
        gpu_binary_annotation=options.gpu_binary_annotation,
        reproducer=options.reproducer,
    )


def build(options: argparse.Namespace) -> int:
    """Builds, or emits a stage; returns the exit code. Raises OffloadError."""
    from offload.compiler.driver import STAGES, Program
    from offload.compiler.output import check_output, write_atomically

    if options.emit == "help":
        print("\n".join(STAGES))
        return 0
    if not options.sources:
        options.usage_error("the following arguments are required: SRC")
    if options.emit is not None and options.emit not in STAGES:
        known = ", ".join(STAGES)
        print(f"offload build: unknown stage {options.emit!r}; stages are: {known}", file=sys.stderr)
        return 2
    output = _output(options)
    request = request_from(options)
    if output is not None:
        check_output(output, request.sources)
    started = time.perf_counter()
    with Program(request, Path(options.sources[0]).stem, _progress(options.quiet)) as program:
        if options.emit is not None:
            return _emit(program, options.emit, output)
        assert output is not None
        data = program.build()
    write_atomically(output, data)
    if not options.quiet:
        taken = time.perf_counter() - started
        print(f"{output}: {len(data):,} bytes in {taken:.2f} s", file=sys.stderr)
    return 0


def _output(options: argparse.Namespace) -> Path | None:
    if options.output is not None:
        return Path(options.output)
    return None if options.emit is not None else Path(Path(options.sources[0]).stem + ".so")


def _progress(quiet: bool) -> Callable[[str], None]:
    if quiet:
        return lambda text: None
    started = time.perf_counter()
    return lambda text: print(f"[{time.perf_counter() - started:6.2f} s] {text}", file=sys.stderr)


def _emit(program: Program, stage: str, folder: Path | None) -> int:
    """Prints a stage, or writes it into a folder, a file per output."""
    count = 0
    for item in program.emit(stage):
        count += 1
        if folder is not None:
            path = folder / f"{item.label}.{item.suffix}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_bytes(item.data)
            except OSError as error:
                raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error
            print(path)
        elif item.is_text:
            comment = {"ll": ";", "s": "#"}.get(item.suffix, "//")
            print(f"{comment} ----- {stage}: {item.label}\n{item.data.decode(errors='replace').rstrip()}\n")
        elif sys.stdout.isatty():
            raise OffloadError(f"stage {stage} is binary ({item.label}.{item.suffix}); give a folder with -o")
        else:
            sys.stdout.buffer.write(item.data)
    if count == 0:
        raise OffloadError(f"this program has nothing at stage {stage} for these targets")
    return 0
