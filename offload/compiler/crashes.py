"""What is kept and said when the compiler crashes: its sources, the command that repeats it, its last words."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from offload.cache.folder import Unusable, check
from offload.compiler.request import BuildRequest
from offload.compiler.steps import Begun, spoken
from offload.config import VARIABLES, crash_folder, whole_environment
from offload.errors import CompilerCrash

KEPT = 20
"""How many reproducers are kept; older ones go."""

_NOTE = re.compile(r"^(?:\d+\.\s*)?offload was at: (.*)$", re.MULTILINE)  # crash_notes.cpp writes them
_LONGEST = 4000
_LONGEST_STEM = 100
_BYTECODE = b"ML\xefR"
_NAME = re.compile(r"\d{8}-\d{6}-\d+-\d+")
_CARRIED = {"PYTHONPATH", *(name for name in VARIABLES if not name.startswith("OFFLOAD_"))}


def crash(how: str, request: BuildRequest, words: Sequence[str], said: str, busy: Iterable[Begun]) -> CompilerCrash:
    """The error of a build that came to its end by no error.

    ``words`` are the arguments of ``offload build`` that the request does not hold, ``said`` is what the process
    printed, ``busy`` what it was doing."""
    doing = " in ".join(dict.fromkeys(reversed(_NOTE.findall(said)))) or spoken(busy)
    lines = [f"the compiler {how}" + (f", while it was at {doing}" if doing else "")]
    text = _NOTE.sub("", said).strip().removesuffix("Stack dump:").rstrip()
    if text:
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
        lines += ["  it printed:", *(f"    {line}" for line in shown.splitlines() if line.strip())]
    try:
        folder = _keep(request, words, said, lines[0])
    except (OSError, Unusable) as error:
        why = getattr(error, "strerror", None) or error
        lines.append(f"  what repeats it could not be kept in {crash_folder()}: {why}")
        return CompilerCrash("\n".join(lines))
    lines.append(f"  to repeat it: sh {shlex.quote(str(folder / 'repeat.sh'))}")
    return CompilerCrash("\n".join(lines), str(folder))


def ending(status: int) -> str:
    """How a process ended: ``status`` is its exit code, or a signal's number, negative."""
    if status >= 0:
        return f"ended its process with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    if status == -signal.SIGKILL:
        return f"was ended by {name}, as the system does where memory runs out"
    if status == -signal.SIGBUS:  # lld maps what it writes
        return f"crashed with {name}, as it does where the disk with the temporary files is full"
    return f"crashed with {name}"


def _keep(request: BuildRequest, words: Sequence[str], said: str, what: str) -> Path:
    """Writes what repeats a build into a new folder, and lets the oldest go. Raises OSError, Unusable."""
    root = crash_folder()
    root.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # a cache is its owner's alone
    root.mkdir(exist_ok=True, mode=0o700)
    check(root)  # among the temporary files it may be someone else's, who could change what is to be run
    number = 0
    while True:
        folder = root / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{number}"
        try:
            folder.mkdir(mode=0o700)
            break
        except FileExistsError:
            number += 1
    names = []
    for position, source in enumerate(request.sources):
        stem = re.sub(r"[^\w.-]", "_", Path(source.name).stem, flags=re.ASCII)[:_LONGEST_STEM] or "program"
        names.append(f"{position}-{stem}.{'mlirbc' if source.data.startswith(_BYTECODE) else 'mlir'}")
        (folder / names[-1]).write_bytes(source.data)
    (folder / "printed.txt").write_text(said, encoding="utf-8")
    command = shlex.join([sys.executable, "-m", "offload", "build", *names, *_options(request, folder), *words])
    variables = [
        f"export {name}={shlex.quote(value)}" for name, value in whole_environment().items() if name in _CARRIED
    ]
    head = ["#!/bin/sh", *(f"# {line}" for line in what.splitlines()), 'cd "$(dirname "$0")" || exit 2']
    text = "\n".join([*head, *variables, command, ""])
    (folder / "repeat.sh").write_text(text, encoding="utf-8", errors="surrogateescape")  # names of files have any bytes
    _let_go(root, folder)
    return folder


def _let_go(root: Path, new: Path) -> None:
    """Removes the oldest of what is kept. By their times: names have the local one, which goes back once a year."""
    others = []
    for path in root.iterdir():
        if _NAME.fullmatch(path.name) and path != new:
            with contextlib.suppress(OSError):  # another process may be at it
                others.append((path.stat().st_mtime_ns, path))
    for _, old in sorted(others, reverse=True)[max(KEPT - 1, 0) :]:
        shutil.rmtree(old, ignore_errors=True)


def _absolute(path: str | Path) -> str:
    """A file wherever the command is run; links stay links."""
    return os.path.abspath(path)  # noqa: PTH100


def _spellable(path: str | Path, folder: Path, stem: str) -> str:
    """The file as a target's spelling may name it: with a comma in its name, by a link in the folder of the command."""
    absolute = _absolute(path)
    if "," not in absolute:
        return absolute
    name = stem + Path(absolute).suffix.replace(",", "_")
    (folder / name).symlink_to(absolute)
    return name


def _options(request: BuildRequest, folder: Path) -> list[str]:
    """The request in the words of ``offload build``, which runs in this folder."""
    options = [f"-O{request.opt}", "--runtime", request.runtime]
    if request.arch:
        options += ["--arch", request.arch]
    for position, target in enumerate(request.targets):
        links = [_spellable(path, folder, f"linked-{position}-{number}") for number, path in enumerate(target.link)]
        options += ["--target", str(dataclasses.replace(target, link=tuple(links)))]
    for path in request.link:
        options += ["--link", _absolute(path)]
    for path in request.objects:
        options += ["--object", _absolute(path)]
    for name in request.gpu_binary_annotation:
        options += ["--gpu-binary-annotation", name]
    flags = {
        "-g": request.debug,
        "--verify-each": request.verify_each,
        "--bare-pointers": request.bare_pointers,
        "--bare-pointers-for-host": request.bare_pointers_for_host,
    }
    return [*options, *(flag for flag, given in flags.items() if given)]
