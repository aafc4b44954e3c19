"""The command line: argument handling alone. Exit codes: 0 done, 1 wrong input, 2 usage, 3 a tool is missing,
141 nobody reads the output any more."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from offload._version import __version__
from offload.commands.streams import READER_GONE, let_output_go, open_streams
from offload.errors import BuildWarning, OffloadError, did_you_mean

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``offload`` with the given arguments (default: the process's) and returns the exit code."""
    open_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        parser = _parser(words[0] if words else "")
        try:
            if any("\0" in word for word in words):  # none from a shell
                parser.error("an argument has a NUL in it")
            options = parser.parse_args(words)
        except SystemExit:  # the end of --help and --version, too
            sys.stdout.flush()
            raise
        if options.command is None:
            parser.print_help(sys.stderr)
            return USAGE_ERROR
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            if options.command != "doctor":  # which lists them
                _warn_of_variables()
            code = int(options.run(options))
        sys.stdout.flush()  # here, where a reader that went away is noticed in time
        return code
    except OffloadError as error:
        show_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        let_output_go()  # what is still buffered goes nowhere
        return READER_GONE
    except OSError as error:
        if error.filename is not None:
            raise
        let_output_go()
        print(f"offload: error: cannot write the output: {error.strerror}", file=sys.stderr)
        return 1


def _warn_of_variables() -> None:
    from offload.config import unknown_variables

    for name, like in unknown_variables().items():
        if like is not None:
            print(f"offload: warning: {name} is not read; did you mean {like}?", file=sys.stderr)


def show_error(error: OffloadError) -> None:
    """Diagnostics come with their own position and severity, as tools that read them want."""
    print(error if getattr(error, "diagnostics", None) else f"offload: error: {error}", file=sys.stderr)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """As our errors look; the line of Python that a warning comes from tells users nothing."""
    # One about a program has its own position and severity.
    print(message if category is BuildWarning else f"offload: warning: {message}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Says what a misspelt word was meant to be, with the usage of the command that it was given to."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """There is no use for words that are not known: argparse would refuse them in the name of all commands."""
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            options = [word for word in self._option_string_actions if word.startswith("--")]
            near = (did_you_mean(word.partition("=")[0], options) for word in rest if word.startswith("-"))
            self.error(f"unrecognized arguments: {' '.join(rest)}{next(filter(None, near), '')}")
        return known, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(str(value), map(str, action.choices or ()))
            raise


def _parser(command: str) -> argparse.ArgumentParser:
    """The parser for a line that begins with that command: the arguments of others are not wanted, and take time."""
    parser = _Parser(
        prog="offload", description="GPU kernels as ordinary Python packages: MLIR in, one shared library out."
    )
    parser.add_argument("--version", action="version", version=f"offload {__version__}")
    # Said, or argparse would ask how wide the terminal is to find out, with a module that takes time to import.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog=parser.prog)
    for name, (meaning, add_arguments) in _COMMANDS.items():
        if name == command or command not in _COMMANDS:
            add_arguments(commands.add_parser(name, help=meaning))
    return parser


def _file(text: str) -> str:
    """The name of a file or folder. What an empty variable of a shell leaves would be the current folder, or none."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty, where the name of a file belongs")
    return text


class _Once(argparse.Action):
    """An option that is stored, and refused when it comes again: the last would count, and the others be dropped."""

    def __call__(self, parser: Any, given: argparse.Namespace, value: Any, word: str | None = None) -> None:
        if getattr(given, self.dest) is not None:
            parser.error(f"argument {word}: it is given twice, and there is one of it")
        setattr(given, self.dest, value)


def _add_build(build: argparse.ArgumentParser) -> None:
    programs = "MLIR text or bytecode; - is standard input"
    build.add_argument("sources", nargs="*", type=_file, metavar="SRC", help=programs)
    written = "the library; with --emit, a folder or -"
    build.add_argument("-o", "--output", action=_Once, type=_file, metavar="OUT.so", help=written)
    _add_build_options(build)
    build.add_argument(
        "--emit",
        action=_Once,
        metavar="STAGE[:TARGET]",
        help="stop at a stage and print it, for all targets or one: isa, isa:nvvm:sm_90 (--emit help lists the stages)",
    )
    build.add_argument(
        "--dump", action=_Once, type=_file, metavar="DIR", help="also write the output of every stage into a folder"
    )
    build.add_argument("--print-pipeline", action="store_true", help="print the passes that a build runs, and stop")
    build.add_argument(
        "--executor",
        action=_Once,
        metavar="URL",
        help="compile there: dask://HOST:PORT is the scheduler of a Dask cluster",
    )
    build.add_argument("--timing", action="store_true", help="print how long each stage and each pass of MLIR took")
    build.add_argument("-q", "--quiet", action="store_true", help="no progress")
    build.set_defaults(run=_build, usage_error=build.error)


def _add_run(run: argparse.ArgumentParser) -> None:
    from offload.config import BACKEND_ALIASES, BACKENDS

    run.add_argument("sources", nargs="+", type=_file, metavar="FILE.mlir", help="- is standard input")
    run.add_argument("--entry", default="main", help="the function to run; it takes no arguments (default: main)")
    names = (*BACKENDS, *BACKEND_ALIASES)
    run.add_argument("--backend", choices=names, help="where to run (default: the best there is)")
    _add_build_options(run)
    run.set_defaults(run=_run)


def _add_inspect(inspect: argparse.ArgumentParser) -> None:
    inspect.add_argument("file", type=_file, metavar="FILE", help="a library that offload built")
    shown = inspect.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="as JSON")
    shown.add_argument("--disassemble", action="store_true", help="show the machine code of each image")
    inspect.add_argument("--extract", action=_Once, type=_file, metavar="DIR", help="write each image into a folder")
    inspect.set_defaults(run=_inspect)


def _add_stubs(stubs: argparse.ArgumentParser) -> None:
    stubs.add_argument("file", type=_file, metavar="FILE", help="a library that offload built")
    written = "the file to write (default, and with '-': print it)"
    stubs.add_argument("-o", "--output", action=_Once, type=_file, metavar="OUT.pyi", help=written)
    stubs.set_defaults(run=_stubs)


def _add_targets(targets: argparse.ArgumentParser) -> None:
    targets.add_argument("--json", action="store_true", help="as JSON")
    targets.set_defaults(run=_targets)


def _add_doctor(doctor: argparse.ArgumentParser) -> None:
    doctor.add_argument("--json", action="store_true", help="as JSON")
    doctor.set_defaults(run=_doctor)


def _add_matrix(matrix: argparse.ArgumentParser) -> None:
    matrix.add_argument("--format", choices=("json", "github", "gitlab", "tox"), default="json", help="default: json")
    here = "default: the one here"
    matrix.add_argument("--pyproject", type=_file, default="pyproject.toml", metavar="FILE", help=here)
    matrix.add_argument(
        "--python",
        action="append",
        default=[],
        type=_python_versions,
        metavar="3.X,…",
        help="instead of those that the package declares (repeatable)",
    )
    said = "print nothing; say where a tox.ini lacks a job"
    matrix.add_argument("--check-tox", type=_file, metavar="TOX.INI", help=said)
    matrix.set_defaults(run=_matrix)


def _python_versions(text: str) -> list[str]:
    from offload.hooks.python_versions import is_version, ordered

    versions = [word.strip() for word in text.split(",")]
    for version in versions:
        if not is_version(version):
            raise argparse.ArgumentTypeError(f"{version!r} is no version of Python; write 3.12 or 3.12,3.13")
    return ordered(versions)


def _size(text: str) -> int:
    from offload.config import parse_size

    try:
        return parse_size(text, "it")
    except OffloadError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _days(text: str) -> float:
    """Of nan and less than 0, every entry would be older, or none."""
    with contextlib.suppress(ValueError):
        if (number := float(text)) >= 0:
            return number
    raise argparse.ArgumentTypeError(f"it is a number of days, not {text}")


def _add_cache(cache: argparse.ArgumentParser) -> None:
    actions = cache.add_subparsers(dest="action", required=True, metavar="ACTION")
    info = actions.add_parser("info", help="the folder, what is in it, its limit, and of what use it was")
    clear = actions.add_parser("clear", help="remove everything")
    prune = actions.add_parser("prune", help="remove what was not used for longest, and what killed builds left")
    left = "until no more than this is left: 500M, 2G (default: the limit)"
    prune.add_argument("--size", type=_size, metavar="N", help=left)
    prune.add_argument("--older-than", type=_days, metavar="DAYS", help="what was not used for so many days")
    for action in (info, clear, prune):
        action.add_argument("--json", action="store_true", help="as JSON")
        action.set_defaults(run=_cache)


def _add_build_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-t",
        "--target",
        action="append",
        default=[],
        metavar="T",
        help="nvvm:sm_90, rocdl:gfx942, host, native, …, with options: nvvm:sm_90a,O=3,fast (repeatable; default: "
        "OFFLOAD_TARGETS, else host)",
    )
    parser.add_argument(
        "-O", type=int, default=3, choices=range(4), dest="opt", help="level of the host code (default: 3)"
    )
    parser.add_argument("-g", action="store_true", dest="debug", help="line information in host code and kernels")
    parser.add_argument(
        "--bare-pointers", action="store_true", help="kernels take plain pointers for memrefs (static shapes alone)"
    )
    parser.add_argument(
        "--bare-pointers-for-host",
        action="store_true",
        help="host functions take and return plain pointers for memrefs where C calls them, and C's where they call",
    )
    parser.add_argument(
        "--link",
        type=_file,
        action="append",
        default=[],
        metavar="FILE.bc",
        help="bitcode or LLVM IR for the kernels of every target (for one: TARGET,link=FILE.bc)",
    )
    of_host = "object file for the host code"
    parser.add_argument("--object", type=_file, action="append", default=[], metavar="FILE.o", help=of_host)
    parser.add_argument(
        "--arch",
        default="",
        metavar="ARCH",
        help="the library's CPU architecture: x86_64, aarch64 (default: that of its host targets, else this machine's)",
    )
    parser.add_argument(
        "--runtime",
        choices=("static", "shared"),
        default="static",
        help="mgpu runtime: inside (the default), or libmgpu.so",
    )
    parser.add_argument(
        "--gpu-binary-annotation",
        action="append",
        default=[],
        metavar="NAME",
        help="attribute of gpu.modules that holds compiled code, besides nvvm.cubin and rocdl.hsaco (repeatable)",
    )
    said = "where a pass fails, write the IR before it and its pipeline there"
    parser.add_argument("--reproducer", type=_file, metavar="DIR", help=said)
    parser.add_argument("--verify-each", action="store_true", help="verify the IR after every pass")
    parser.add_argument(
        "--no-cache", action="store_false", dest="cache", help="compile everything, and keep nothing in the cache"
    )


def _build(options: argparse.Namespace) -> int:
    from offload.commands.build import build

    return build(options)


def _run(options: argparse.Namespace) -> int:
    from offload.commands.run import run

    return run(options)


def _inspect(options: argparse.Namespace) -> int:
    from offload.commands.inspect import inspect

    return inspect(options)


def _stubs(options: argparse.Namespace) -> int:
    from offload.commands.stubs import stubs

    return stubs(options)


def _cache(options: argparse.Namespace) -> int:
    from offload.commands.cache import cache

    return cache(options)


def _targets(options: argparse.Namespace) -> int:
    from offload.commands.machine import targets

    return targets(options)


def _doctor(options: argparse.Namespace) -> int:
    from offload.commands.machine import doctor

    return doctor(options)


def _matrix(options: argparse.Namespace) -> int:
    from offload.commands.matrix import matrix

    return matrix(options)


_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "build": ("build MLIR files into one shared library", _add_build),
    "run": ("build a program and run one of its functions", _add_run),
    "inspect": ("show what a shared library carries, without running it", _add_inspect),
    "stubs": ("write the types of a shared library's functions and kernels as a .pyi file", _add_stubs),
    "cache": ("show or empty the folder of what was compiled", _add_cache),
    "targets": ("list targets, their chips and the devices in this machine", _add_targets),
    "doctor": ("check what is installed, what is missing and how to get it", _add_doctor),
    "matrix": ("print the CI jobs of a package: for each target and Python, with and without a device", _add_matrix),
}


if __name__ == "__main__":
    sys.exit(main())
