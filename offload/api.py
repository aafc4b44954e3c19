"""``build()``, ``compile()``, ``load()``: the Python front door."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from offload.errors import OffloadError, TargetError
from offload.paths import named, output_named

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from offload.compiler.programs import Program
    from offload.compiler.request import BuildRequest, Source
    from offload.runtime import Library
    from offload.runtime.backends import Backend
    from offload.runtime.staging import Staged
    from offload.targets import Target

    PathLike = str | os.PathLike[str]
    Targets = str | Target | Iterable[str | Target] | None

Item = TypeVar("Item")


def build(
    sources: Program | Sequence[Program],
    output: PathLike,
    *,
    targets: Targets = (),
    opt: int = 3,
    link: PathLike | Iterable[PathLike] = (),
    objects: PathLike | Iterable[PathLike] = (),
    runtime: str = "static",
    gpu_binary_annotation: str | Iterable[str] = (),
    debug: bool = False,
    bare_pointers: bool = False,
    bare_pointers_for_host: bool = False,
    reproducer: PathLike | None = None,
    arch: str = "",
    cache: bool = True,
    executor: Executor | str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Builds MLIR files (text or bytecode), or modules of MLIR's Python bindings, into one shared library and returns
    its path. Several are one program: what one declares, another may define, and kernels of one are launched by others.

    ``targets`` are spellings such as ``"nvvm:sm_90"`` (default, and for a list of none: OFFLOAD_TARGETS, else the CPU);
    ``opt`` is the level of the host code, 0 to 3; ``link`` are bitcode files for the device, ``objects`` object files
    for the host.
    ``runtime`` is "static", the mgpu runtime inside of the library, or "shared": it needs libmgpu.so. Compiled
    code that a program carries (gpu.binary, nvvm.cubin, rocdl.hsaco) is taken as it is; ``gpu_binary_annotation`` names
    further attributes of gpu.modules that hold such. ``debug`` adds line information to host code and kernels. With
    ``bare_pointers`` kernels take a plain pointer for each memref; they need static shapes and identity layouts then.
    With ``bare_pointers_for_host`` so do the symbols of host functions, which C calls, and declared functions that the
    program calls; how Python calls does not change.
    ``arch`` is the library's CPU architecture ("x86_64", "aarch64"); by default that of its ``host`` targets, else
    this machine's. Where a pass fails and ``reproducer`` names a folder, the IR before that pass is written there, and
    the cache is not used; nor is it with ``cache=False``. The output is replaced at once or, on failure, left as it
    was.
    The compiler runs in a worker, a process of its own that stays for the next build: where it crashes, runs out of
    memory or takes longer than OFFLOAD_TIME_LIMIT, that is a CompilerCrash. ``progress`` is called here.
    With ``executor``, any of concurrent.futures' or the URL of a Dask cluster ("dask://HOST:PORT"), it runs there, in
    workers of its processes, in parts where it does several jobs at a time; files of ``link`` and ``objects`` must be
    found there, and ``reproducer`` is a folder there. Its progress, and what it logs, prints and warns of, come here
    when it is done.
    Raises CompileError, ToolkitError, LinkError, OffloadError.
    """
    from offload.compiler import programs
    from offload.compiler.output import check_output, write_atomically

    target_path = output_named(output)
    request = make_request(
        programs.sources(sources),
        targets,
        opt=opt,
        link=link,
        objects=objects,
        runtime=runtime,
        gpu_binary_annotation=gpu_binary_annotation,
        debug=debug,
        bare_pointers=bare_pointers,
        bare_pointers_for_host=bare_pointers_for_host,
        reproducer=reproducer,
        arch=arch,
        cache=cache,
    )
    check_output(target_path, request)
    from offload.compiler.cache import library
    from offload.compiler.places import through
    from offload.executors import opened

    with opened(executor) as used, through(used):
        write_atomically(target_path, library(request, progress))
    return target_path


def build_all(builds: Iterable[Mapping[str, Any]], *, executor: Executor | str | None = None) -> list[Path]:
    """Builds several libraries side by side and returns their paths, in order.

    Each of ``builds`` has the arguments of :func:`build` by name: ``{"sources": "a.mlir", "output": "a.so"}``. Without
    an executor there is a worker for each processor. Raises the first error, in the order of ``builds``, when those
    before it are done; libraries that are done by then stay. Raises OffloadError for two of one output, and TypeError
    where arguments are missing or have names that :func:`build` does not know, before any of them begins.
    """
    from offload.compiler import parallel
    from offload.compiler.places import through
    from offload.executors import opened

    if isinstance(builds, Mapping):
        raise TypeError("builds is a list with the arguments of each build, not those of one")
    todo = list(builds)
    for number, arguments in enumerate(todo):
        _check_arguments(number, arguments)
    outputs: set[str] = set()
    for output in (os.path.realpath(arguments["output"]) for arguments in todo):
        if output in outputs:
            raise OffloadError(f"two builds write {output}, one over the other; give each an output of its own")
        outputs.add(output)
    with opened(executor) as used, through(used):
        return parallel.each(lambda arguments: build(**{"executor": used, **arguments}), todo)


def _check_arguments(number: int, arguments: object) -> None:
    """Whether ``build`` takes these, of the build of that number."""
    if not isinstance(arguments, Mapping):
        raise TypeError(
            f"builds[{number}] is of type {type(arguments).__name__}; each is a dict of build's arguments by name: "
            '{"sources": "a.mlir", "output": "a.so"}'
        )
    try:
        inspect.signature(build).bind(**arguments)
    except TypeError as error:
        raise TypeError(f"builds[{number}]: {error}") from None


def compile(
    source: Program | bytes,
    *,
    targets: Targets = (),
    opt: int = 3,
    link: PathLike | Iterable[PathLike] = (),
    objects: PathLike | Iterable[PathLike] = (),
    gpu_binary_annotation: str | Iterable[str] = (),
    debug: bool = False,
    bare_pointers: bool = False,
    bare_pointers_for_host: bool = False,
    name: str | None = None,
    cache: bool = True,
    executor: Executor | str | None = None,
) -> Library:
    """Builds a program, or finds it in the cache, and loads it.

    ``source`` is the path of an MLIR file or a program: its text (a string with a line break, or with a brace where
    it names no file), its bytes, text or bytecode, or a module of MLIR's Python bindings, any project's. The arguments
    and errors are those of :func:`build` and :func:`load`; ``name`` is what diagnostics call the program.
    """
    from offload.compiler import programs
    from offload.compiler.cache import library_file
    from offload.compiler.places import through
    from offload.executors import opened

    request = make_request(
        [programs.source(source, name)],
        targets,
        opt=opt,
        link=link,
        objects=objects,
        gpu_binary_annotation=gpu_binary_annotation,
        debug=debug,
        bare_pointers=bare_pointers,
        bare_pointers_for_host=bare_pointers_for_host,
        cache=cache,
    )
    with opened(executor) as used, through(used), library_file(request) as path:
        return load(path)


def load(path: PathLike) -> Library:
    """Loads a shared library that offload built. Touches no driver. Raises ArtifactError for any other file."""
    from offload.runtime import load as load_library

    return load_library(path)


def stage(array: Any, *, back: bool = True) -> Staged:
    """Lets one call copy a host array to the device where a kernel uses it, and back after the call.

    ``array`` is anything that calls take. With ``back=False`` nothing is copied back, and it may be read-only. On the
    CPU, and for arguments that the host reads, nothing is copied, but for a read-only array that the call may write to:
    it writes to a copy then, as everywhere. ``library.auto_stage = True`` does the same for every call."""
    from offload.runtime.staging import Staged

    return Staged(array, back)


def backend() -> Backend:
    """The backend that libraries use here: a string, "cuda", "hip" or "host", whose ``why`` says how it came to be.

    A library without code for its device does not fall back to another: its calls raise. Raises DeviceError where the
    backend that `use` or OFFLOAD_BACKEND names is unknown or has no device here, and LinkError where the installation
    is not whole."""
    from offload.runtime.backends import backend_in_use
    from offload.runtime.library import chosen_backend

    return backend_in_use(chosen_backend())


def use(backend: str | None) -> None:
    """Fixes the backend ("cuda", "hip", also called "rocm", or "host") of all libraries, loaded and to come; None lets
    each choose again.

    Raises DeviceError where the backend is unknown or has no device here."""
    from offload.runtime import use as use_backend

    use_backend(backend)


def make_request(
    sources: Sequence[Source],
    targets: Targets = (),
    *,
    opt: int = 3,
    link: PathLike | Iterable[PathLike] = (),
    objects: PathLike | Iterable[PathLike] = (),
    runtime: str = "static",
    verify_each: bool = False,
    gpu_binary_annotation: str | Iterable[str] = (),
    debug: bool = False,
    bare_pointers: bool = False,
    bare_pointers_for_host: bool = False,
    reproducer: PathLike | None = None,
    arch: str = "",
    soname: str = "",
    cache: bool = True,
) -> BuildRequest:
    """A BuildRequest from what a front end has: spellings become targets, missing ones the configured default.

    ``debug`` and ``bare_pointers`` become options of every target; bare pointers that all targets ask for are the
    build's.
    """
    from offload.compiler.request import BuildRequest
    from offload.config import check_settings

    check_settings()
    _check_flags(
        debug=debug,
        bare_pointers=bare_pointers,
        bare_pointers_for_host=bare_pointers_for_host,
        verify_each=verify_each,
        cache=cache,
    )
    chosen, optional = _chosen_targets(targets, arch, debug, bare_pointers)
    if isinstance(gpu_binary_annotation, str):
        gpu_binary_annotation = [gpu_binary_annotation]
    return BuildRequest(
        sources=tuple(sources),
        targets=chosen,
        opt=opt,
        link=_paths("link", link),
        objects=_paths("objects", objects),
        runtime=runtime,
        verify_each=verify_each,
        optional=optional,
        gpu_binary_annotation=tuple(_texts("gpu_binary_annotation", gpu_binary_annotation)),
        debug=debug,
        bare_pointers=bare_pointers or (bool(chosen) and all(target.bare_pointers for target in chosen)),
        bare_pointers_for_host=bare_pointers_for_host,
        reproducer=named(reproducer) if reproducer is not None else None,
        arch=arch,
        soname=soname,
        cache=cache,
    )


def _chosen_targets(
    targets: Targets, arch: str, debug: bool, bare_pointers: bool
) -> tuple[tuple[Target, ...], tuple[Target, ...]]:
    """The targets of a build, and those of them that nobody named. Raises TargetError."""
    from offload.config import target_specs, targets_instead
    from offload.targets import Target, parse_targets

    if isinstance(targets, (str, Target)):
        targets = [targets]
    given = _listed("targets is a spelling, a Target or a list of them", targets or ())
    for target in given:
        if not isinstance(target, (str, Target)):
            raise TargetError(f"a target is a spelling ('offload targets' lists them) or a Target, not {target!r}")
    ready = [target for target in given if isinstance(target, Target)]
    specs = [target for target in given if isinstance(target, str)]
    by_default = not given and targets_instead() is None
    specs = specs if ready else target_specs(specs)
    by_name = [] if by_default else [spec for spec in specs if spec.strip() != "native"]

    def with_flags(targets: Iterable[Target]) -> list[Target]:
        return [
            dataclasses.replace(each, debug=each.debug or debug, bare_pointers=each.bare_pointers or bare_pointers)
            for each in targets
        ]

    try:
        parsed = with_flags(parse_targets(specs, arch))
        ready = with_flags(ready)
        named = with_flags(parse_targets(by_name, arch))
    except TargetError as error:
        if given or by_default:
            raise
        raise TargetError(f"OFFLOAD_TARGETS: {error}") from error
    return (*ready, *parsed), tuple(target for target in parsed if target not in named)


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise OffloadError(f"{name} is True or False, not {value!r}")


def _listed(what: str, items: Iterable[Item]) -> list[Item]:
    try:
        return list(items)
    except TypeError:
        raise OffloadError(f"{what}, not {items!r}") from None


def _texts(what: str, items: Iterable[str]) -> list[str]:
    texts = _listed(f"{what} is a text or a list of texts", items)
    if not all(isinstance(text, str) for text in texts):
        raise OffloadError(f"{what} is a text or a list of texts, not {texts!r}")
    return texts


def _paths(what: str, paths: PathLike | Iterable[PathLike]) -> tuple[Path, ...]:
    """One path is a list of one: text is not a list of its letters."""
    try:
        return tuple(map(named, [paths] if isinstance(paths, (str, os.PathLike)) else paths))
    except TypeError:
        raise OffloadError(f"{what} is a path or a list of paths, not {paths!r}") from None
