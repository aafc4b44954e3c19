"""What CMake and Meson run: ``python -m offload.hooks``; ``build`` is for people: all modules of a project, side by
side. Exit codes are those of ``offload build``."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from offload.cli import show_error, show_warning
from offload.compiler import places
from offload.errors import OffloadError, TargetError, UsageError

if TYPE_CHECKING:
    from offload.hooks.build import Outputs


def main() -> int:
    """Runs one of the commands and returns the exit code."""
    options = _parser().parse_args()
    warnings.showwarning = show_warning
    try:
        with places.short_lived():
            options.run(options)
    except OffloadError as error:
        show_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m offload.hooks", description=__doc__)
    commands = parser.add_subparsers(required=True)

    listed = commands.add_parser(
        "list",
        help="the modules of a pyproject.toml: name and files, separated by ';'; before them a '*' and each pattern",
    )
    listed.add_argument("pyproject", type=Path)
    listed.set_defaults(run=_list)

    every = commands.add_parser("build", help="build all modules of a pyproject.toml, side by side")
    every.add_argument("pyproject", type=Path)
    every.add_argument("--output", type=Path, required=True, help="the folder of their packages")
    every.add_argument("--target", action="append", help="in place of the declared ones")
    every.add_argument("--executor", metavar="URL", help="compile on a Dask cluster: dask://HOST:PORT")
    every.set_defaults(run=_build)

    module = commands.add_parser("module", help="build one module of a pyproject.toml")
    module.add_argument("module")
    module.add_argument("--pyproject", type=Path, required=True)
    module.add_argument("--output", type=Path, required=True, help="the folder of its package")
    instead = module.add_mutually_exclusive_group()
    instead.add_argument("--target", action="append", help="in place of the declared ones")
    instead.add_argument("--environment", action="store_true", help="OFFLOAD_TARGETS is in place of the declared ones")
    module.add_argument("--arch", default="", help="the library's CPU architecture, where its table names none")
    module.add_argument("--wheel", action="store_true", help="for a wheel of this Python's platform, or fail")
    module.set_defaults(run=_module)

    library = commands.add_parser("library", help="build MLIR files into a library with a header for C++")
    library.add_argument("output", type=Path)
    library.add_argument("sources", nargs="+")
    library.add_argument("--root", type=Path, required=True, help="what sources are relative to")
    library.add_argument("--header", type=Path, required=True)
    library.add_argument("--target", action="append", default=[])
    library.add_argument("--optional-target", action="append", default=[])
    library.add_argument("--instead", action="store_true", help="the targets are in place of those of the project")
    library.add_argument("--opt", default="3")
    library.add_argument("--arch", default="", help="the library's CPU architecture")
    library.add_argument("--debug", action="store_true")
    library.add_argument("--link", action="append", default=[])
    library.add_argument("--objects", action="append", default=[])
    library.set_defaults(run=_library)
    return parser


def _say(text: str) -> None:
    """Prints; a reader that goes away (| head) is no error, and what is being built is built."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _list(options: argparse.Namespace) -> None:
    from offload.hooks.project import is_pattern, read_tables

    tables = read_tables(options.pyproject)
    for pattern in dict.fromkeys(pattern for table in tables for pattern in table.patterns if is_pattern(pattern)):
        _say(f"*;{pattern}")
    for table in tables:
        _say(";".join([table.module, *table.files]))


def _build(options: argparse.Namespace) -> None:
    from offload.compiler.places import through
    from offload.config import targets_instead
    from offload.executors import opened
    from offload.hooks.build import FOUND_UNTOLD, build_modules
    from offload.hooks.project import read_tables

    modules = [(table, options.output / table.folder) for table in read_tables(options.pyproject)]
    with opened(options.executor) as executor, through(executor):
        targets = options.target or targets_instead()
        build_modules(modules, targets=targets, found_in=FOUND_UNTOLD, say=_say)


def _module(options: argparse.Namespace) -> None:
    from offload.config import targets_instead
    from offload.hooks.build import FOUND_UNTOLD, build_module
    from offload.hooks.project import read_tables

    for table in read_tables(options.pyproject):
        if table.module == options.module:
            # CMake and Meson know what is older than its sources: what they ask for is to be built.
            targets = targets_instead() if options.environment else options.target
            if options.arch:
                table = dataclasses.replace(table, options={"arch": options.arch, **table.options})
            outputs = build_module(table, options.output, targets=targets, force=True, found_in=FOUND_UNTOLD, say=_say)
            if options.wheel:
                _check_wheel(table.where, outputs)
            return
    raise OffloadError(f"{options.pyproject} has no table for {options.module}; configure the project again")


def _check_wheel(where: str, outputs: Outputs) -> None:
    """Raises OffloadError, and leaves nothing that counts as built, where the wheel would be named for machines that
    cannot load the library: scikit-build-core names it after the Python that builds it."""
    from offload.hooks.report import check_platform

    try:
        check_platform(where, outputs.library, sysconfig.get_platform().replace("-", "_").replace(".", "_"))
    except OffloadError:
        for path in outputs:
            path.unlink()
        raise


def _library(options: argparse.Namespace) -> None:
    from offload.api import make_request
    from offload.artifact import without_signature
    from offload.compiler.output import check_output
    from offload.compiler.request import Source
    from offload.config import DEFAULT_TARGETS, check_settings, forget_targets_instead
    from offload.hooks.build import compiled, present_targets, with_root, write
    from offload.hooks.header import header_text, namespace_of
    from offload.hooks.report import size_table

    # CMake has read it when the project was configured, and passes what it found.
    forget_targets_instead()
    check_settings()  # here: the call has nothing to do with them
    root: Path = options.root
    name = options.header.stem
    where = f"offload_add_library({name})"
    try:
        namespace_of(name)
    except OffloadError as error:
        raise OffloadError(f"{where}: {error}") from error
    present, left_out = present_targets(name, options.optional_target, f"{where}: OPTIONAL_TARGETS")
    targets = [*(options.target or (DEFAULT_TARGETS if options.optional_target else ())), *present]
    for line in left_out:
        _say(line)
    sources = []
    for source in options.sources:
        path = root / source
        relative = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        sources.append(Source(relative, Source.read(path).data))
    if options.opt not in ("0", "1", "2", "3"):
        raise UsageError(f"{where}: OPT is 0 to 3, not {options.opt!r}")
    try:
        plain = make_request(
            sources,
            targets,
            opt=int(options.opt),
            debug=options.debug,
            arch=options.arch,
            link=[root / name for name in options.link],
            objects=[root / name for name in options.objects],
            soname=options.output.name,
        )
        request = with_root(plain, root)
    except TargetError as error:
        raise TargetError(f"{where}: TARGETS, or OFFLOAD_TARGETS in their place: {error}") from error
    except UsageError as error:
        raise UsageError(f"{where}: ARCH: {error}") from error
    except OffloadError as error:
        raise OffloadError(f"{where}: {error}") from error
    check_output(options.output, request, makes_folder=True)
    data, built = compiled(request, where, f"{where}: TARGETS", "name it in OPTIONAL_TARGETS", options.instead)
    write(options.output, data)
    undescribed, _ = without_signature(built._replace(path=options.output))
    header = header_text(name, options.output.name, built.metadata, undescribed)
    write(options.header, header.encode())
    _say(size_table(built, options.output, name))


if __name__ == "__main__":
    sys.exit(main())
