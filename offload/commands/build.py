"""``offload build``: MLIR files into a shared library, or one stage of the way printed."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterable
from io import UnsupportedOperation
from pathlib import Path
from typing import TYPE_CHECKING

from offload.api import make_request
from offload.commands.progress import shown
from offload.errors import OffloadError, TargetError, UsageError, did_you_mean
from offload.executors import opened
from offload.files import check_end, free_name, plain_name
from offload.paths import output_named

if TYPE_CHECKING:
    from offload.compiler.driver import Emitted
    from offload.compiler.isolation import Progress
    from offload.compiler.request import BuildRequest, Source
    from offload.targets import Target


def request_from(options: argparse.Namespace) -> BuildRequest:
    """A BuildRequest from command-line options."""
    if options.sources.count("-") > 1:
        raise UsageError("- stands for standard input, which is read once: name it once")
    return make_request(
        [_source(path) for path in options.sources],
        options.target,
        opt=options.opt,
        link=options.link,
        objects=options.object,
        runtime=options.runtime,
        verify_each=options.verify_each,
        gpu_binary_annotation=options.gpu_binary_annotation,
        debug=options.debug,
        bare_pointers=options.bare_pointers,
        bare_pointers_for_host=options.bare_pointers_for_host,
        reproducer=options.reproducer,
        arch=options.arch,
        cache=options.cache,
    )


def _source(path: str) -> Source:
    from offload.compiler.request import Source

    if path != "-":
        return Source.read(Path(path))
    try:
        with contextlib.suppress(UnsupportedOperation):  # of what stands in its place
            check_end(sys.stdin.fileno())
        return Source("<stdin>", sys.stdin.buffer.read())
    except OSError as error:
        raise OffloadError(f"cannot read standard input: {error.strerror or error}") from error


def build(options: argparse.Namespace) -> int:
    """Builds, or emits a stage; returns the exit code. Raises OffloadError."""
    from offload.commands.timing import Timing
    from offload.compiler import places, steps
    from offload.compiler.output import write_atomically

    if options.emit == "help":
        print("\n".join(_stages()))
        return 0
    if not options.sources:
        options.usage_error("the following arguments are required: SRC")
    stage, named, only = (options.emit or "").partition(":")
    if options.emit is not None and stage not in _stages():
        known = ", ".join(_stages()) + did_you_mean(stage, _stages())
        print(f"offload build: unknown stage {stage!r}; stages are: {known}", file=sys.stderr)
        return 2
    _check_usage(options)
    output = _output(options)
    request = request_from(options)
    if named:  # isa:$TARGET of a shell's empty variable is none, and not all of them
        request = _for_one_target(request, stage, only)
    _check_outputs(options, output, request)
    if options.timing:  # of what is compiled; what is taken from the cache takes none
        request = dataclasses.replace(request, cache=False)
    timing = Timing() if options.timing else None
    started = time.perf_counter()
    with places.short_lived(once=True), shown(options.quiet) as progress, steps.told_to(timing):
        data = _made(options, request, stage, progress)
    if data is not None:
        assert output is not None
        write_atomically(output, data)
    taken = time.perf_counter() - started
    if timing is not None:
        print(timing.report(taken), file=sys.stderr)
    if data is not None and not options.quiet:
        print(f"{output}: {len(data):,} bytes in {taken:.2f} s", file=sys.stderr)
    return 0


def _check_usage(options: argparse.Namespace) -> None:
    """Ends the command, with exit code 2, where options do not go together."""
    if (options.emit is not None) + (options.dump is not None) + options.print_pipeline > 1:
        options.usage_error("one of --emit, --dump and --print-pipeline at a time")
    if options.print_pipeline and options.output not in (None, "-"):
        options.usage_error("--print-pipeline prints, and writes no file: not with -o")
    if options.output == "-" and options.emit is None and not options.print_pipeline:
        options.usage_error(
            "a library is not printed: -o names its file ('-o ./-' one called '-'); --emit prints a stage"
        )
    if options.executor is not None:
        for name in ("timing", "emit", "dump", "print_pipeline"):
            if getattr(options, name) not in (None, False):
                word = name.replace("_", "-")
                options.usage_error(f"--{word} is for builds on this machine: not with --executor")


def _check_outputs(options: argparse.Namespace, output: Path | None, request: BuildRequest) -> None:
    """Raises OffloadError for what cannot be written, before anything is compiled."""
    from offload.compiler.output import check_no_source, check_output, check_output_folder

    if output is not None and options.emit is not None:
        check_no_source(output, request)
        check_output_folder(output)
    elif output is not None:
        check_output(output, request)
    if options.dump is not None:
        check_output_folder(Path(options.dump))


def _stages() -> tuple[str, ...]:
    from offload.compiler.driver import STAGES

    return STAGES


def _made(options: argparse.Namespace, request: BuildRequest, stage: str, progress: Progress) -> bytes | None:
    """The library; None where something else was asked for, which is printed or written."""
    from offload.compiler.cache import library
    from offload.compiler.places import through

    if options.emit is None and options.dump is None and not options.print_pipeline:
        with opened(options.executor) as executor, through(executor):
            return library(request, progress)
    from offload.compiler import builds

    # Who looks at the way does not want to be told what came out the last time.
    request = dataclasses.replace(request, cache=False)
    if options.print_pipeline:
        _print_pipelines(builds.pipelines(request, progress))
        return None
    if options.emit is not None:
        _emit(builds.emit(request, stage, progress), stage, _output(options), request)
        return None
    return _dump(builds.dump(request, progress), Path(options.dump), request)


def _output(options: argparse.Namespace) -> Path | None:
    if options.emit is not None and options.output == "-":
        return None  # printed, as without -o
    if options.output is not None:
        return Path(options.output) if options.emit is not None else output_named(options.output)
    if options.emit is not None or options.print_pipeline:
        return None
    first = options.sources[0]
    return Path("stdin.so" if first == "-" else Path(first).stem + ".so")


def _print_pipelines(parts: Iterable[tuple[str, list[str]]]) -> None:
    """Prints each pipeline as mlir-opt's ``--pass-pipeline`` takes it."""
    # Now, where a reader that went away is noticed: what builds the first part flushes it, too.
    print("// Passes named offload-* are offload's own; mlir-opt has all others.", flush=True)
    for part, pipelines in parts:
        print(f"\n// {part}")
        for pipeline in pipelines:
            print(f"builtin.module({pipeline})")


def _dump(stages: Iterable[Emitted], folder: Path, request: BuildRequest) -> bytes:
    """Writes every stage as ``module.target.chip.stage.suffix`` and returns the library."""
    data = b""
    files = _Files(folder, request)
    for item in stages:
        data = item.data  # the last stage is the library
        files.write(f"{plain_name(item.label)}.{item.stage}", item.suffix, data)
    return data


class _Files:
    """What is written into a folder: nothing of it in the place of a source, or of another of these."""

    def __init__(self, folder: Path, request: BuildRequest) -> None:
        self.folder, self.request = folder, request
        self.taken: set[str] = set()

    def write(self, stem: str, suffix: str, data: bytes) -> Path:
        from offload.compiler.output import check_no_source

        path = self.folder / free_name(stem, f".{suffix}", self.taken)
        check_no_source(path, self.request)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error
        return path


def _for_one_target(request: BuildRequest, stage: str, only: str) -> BuildRequest:
    """The request for the target that ``--emit STAGE:TARGET`` names alone. Raises TargetError where there is none."""
    from offload.targets.base import STAGES as DEVICE_STAGES

    if stage not in DEVICE_STAGES:
        known = ", ".join(DEVICE_STAGES)
        raise TargetError(f"--emit {stage}:{only}: that stage is not one target's; these are: {known}")
    spelled = {f"{target.name}:{target.settled_chip()}": target for target in request.targets}
    exactly = _spelt_out(request, only)
    chosen = tuple(target for name, target in spelled.items() if only in (name, target.name) or target in exactly)
    if not chosen:
        raise TargetError(f"--emit {stage}:{only}: this build's targets are {', '.join(spelled)}")
    return dataclasses.replace(request, targets=chosen)


def _spelt_out(request: BuildRequest, only: str) -> tuple[Target, ...]:
    """The target that a spelling stands for in this build, with its options; none for what is no spelling."""
    try:
        return make_request(
            request.sources, [only], arch=request.arch, debug=request.debug, bare_pointers=request.bare_pointers
        ).targets
    except OffloadError:
        return ()


def _emit(items: Iterable[Emitted], stage: str, folder: Path | None, request: BuildRequest) -> None:
    """Prints a stage, or writes it into a folder, a file per output."""
    count = 0
    files = None if folder is None else _Files(folder, request)
    for item in items:
        count += 1
        if files is not None:
            print(files.write(plain_name(item.label), item.suffix, item.data))
        elif item.is_text:
            comment = {"ll": ";", "s": "#"}.get(item.suffix, "//")
            print(f"{comment} ----- {stage}: {item.label}\n{item.data.decode(errors='replace').rstrip()}\n")
        elif sys.stdout.isatty():
            raise OffloadError(f"stage {stage} is binary ({item.label}.{item.suffix}); give a folder with -o")
        else:
            sys.stdout.buffer.write(item.data)
    if count == 0:
        raise OffloadError(f"this program has nothing at stage {stage} for these targets")
