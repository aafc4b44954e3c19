"""External tools and files: how they are found, and how they are run. A tool and its use are two things."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from offload.errors import CompileError, ToolkitError
from offload.paths import import_path


class Found(NamedTuple):
    """The outcome of a search: ``path`` is None where nothing was found; ``looked`` names the places, in order."""

    what: str
    path: Path | None
    via: str
    looked: tuple[str, ...]
    remedy: str

    def need(self) -> Path:
        """The path; raises ToolkitError that says what was looked for, where, and how to get it."""
        if self.path is None:
            places = "\n".join(f"    {place}" for place in self.looked)
            raise ToolkitError(f"{self.what} was not found\n  looked in:\n{places}\n  to get it: {self.remedy}")
        return self.path


class Tool(NamedTuple):
    """A program that can be run."""

    path: Path
    version: str
    found_via: str


class SearchStep(NamedTuple):
    """A place to look: ``folders`` gives its folders, none where there is none.

    A ``decisive`` step that has a folder ends the search: who names a folder means that one, and no other.
    """

    via: str
    folders: Callable[[], Sequence[Path]]
    decisive: bool = False


def search(what: str, relative: Sequence[str], steps: Sequence[SearchStep], remedy: str) -> Found:
    """Looks for any of the ``relative`` paths below each step's folders, in order."""
    looked: list[str] = []
    for step in steps:
        folders = step.folders()
        if not folders:
            looked.append(f"{step.via}: not set or not there")
            continue
        for candidate in (folder / name for folder in folders for name in relative):
            looked.append(f"{step.via}: {candidate}")
            if _is_there(candidate):
                return Found(what, candidate, step.via, tuple(looked), remedy)
        if step.decisive:
            looked.append(f"nowhere else, because {step.via} is set")
            break
    return Found(what, None, "", tuple(looked), remedy)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in a folder that only others may enter
        return False


def from_environment(variable: str) -> SearchStep:
    """The folder that an environment variable names; where it is set, no other is searched."""

    def folders() -> list[Path]:
        from offload.config import environment

        value = environment(variable)
        return [Path(value)] if value else []

    return SearchStep(variable, folders, decisive=True)


def from_folder(path: str) -> SearchStep:
    """A fixed folder."""
    return SearchStep(path, lambda: [Path(path)] if _is_there(Path(path)) else [])


def from_site_packages(relative: str) -> SearchStep:
    """A folder that wheels install, several into one; the system's and a virtual environment's have each their own."""

    def folders() -> list[Path]:
        import site

        roots = dict.fromkeys([*import_path(), *site.getsitepackages()])
        return [Path(root, relative) for root in roots if root and _is_there(Path(root, relative))]

    return SearchStep(f"Python package folder {relative}", folders)


def from_path(program: str) -> SearchStep:
    """The folder two above a program on PATH (``…/bin/program``)."""

    def folders() -> list[Path]:
        import shutil

        found = shutil.which(program)
        return [Path(found).resolve().parent.parent] if found else []

    return SearchStep(f"{program} on PATH", folders)


LARGE_PAGES = "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=33554432:glibc.malloc.mmap_threshold=33554432"
"""glibc's tunables for tools: they ask for megabytes of memory, by pages of 4 KiB for a fifth of ptxas' time."""


class RunningTool:
    """A program that was started; it reads its standard input to the end. Raises ToolkitError where it cannot be
    started.

    Some take as long to start as to do their work: these are started while their input is still being made."""

    def __init__(self, command: Sequence[str | os.PathLike[str]], purpose: str) -> None:
        # Where nothing is to be compiled, no tool runs, and these take a tenth of the time.
        import subprocess

        from offload.config import whole_environment

        words = [os.fspath(word) for word in command]
        self._words, self._purpose = words, purpose
        if (logging := sys.modules.get("logging")) is not None:  # else nobody listens, and its import takes its time
            logging.getLogger("offload.tools").debug("%s", _joined(words))
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_in_our_folder(_of_large_pages(whole_environment())),
            )
        except OSError as error:
            raise ToolkitError(f"cannot {purpose}: {words[0]} cannot be started: {error}") from error

    def finish(self, data: bytes = b"", result: Path | None = None) -> str:
        """Gives it its input and returns its output (stdout and stderr together). ``result`` is the file it writes.

        Raises CompileError, with command, exit code and output, if it fails, and ToolkitError where it says that it
        has not and has written nothing.
        """
        try:
            output, _ = self._process.communicate(data)
        except BaseException:
            self.stop()
            raise
        # Names of files and strings of programs, which it quotes, have any bytes.
        text = output.decode(errors="replace")
        said = f"\n  command: {_joined(self._words)}\n  output:\n{text.rstrip()}"
        if code := self._process.returncode:
            raise CompileError(f"cannot {self._purpose}: {_ending(code)}{said}")
        if result is not None and not (result.is_file() and result.stat().st_size):
            what = "reports no error and has written nothing: another program may have its name"
            raise ToolkitError(f"cannot {self._purpose}: {self._words[0]} {what}{said}")
        return text

    def stop(self) -> None:
        """Ends it, if it has not ended; its output is lost."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    import signal  # for tools that crash

    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"ended by {name}" + (", as the system does where memory runs out" if name == "SIGKILL" else "")


def _joined(words: Sequence[str]) -> str:
    import shlex

    return shlex.join(words)


def run_tool(command: Sequence[str | os.PathLike[str]], purpose: str, result: Path | None = None) -> str:
    """Runs a program and returns its output (stdout and stderr together). ``result`` is the file that it writes.

    Raises ToolkitError if it cannot be started or writes nothing, and CompileError, with command, exit code and output,
    if it fails.
    """
    return RunningTool(command, purpose).finish(result=result)


def _in_our_folder(environment: dict[str, str]) -> dict[str, str]:
    """The same with a worker's folder for temporary files: what a tool that is ended leaves, as ptxas does, goes with
    it."""
    tempfile = sys.modules.get("tempfile")
    folder = tempfile.tempdir if tempfile is not None else None
    return environment if folder is None else {**environment, "TMPDIR": folder}


def _of_large_pages(environment: dict[str, str]) -> dict[str, str]:
    """The same with LARGE_PAGES; what the user has set there comes after it, and so before it."""
    theirs = environment.get("GLIBC_TUNABLES")
    return {**environment, "GLIBC_TUNABLES": f"{LARGE_PAGES}:{theirs}" if theirs else LARGE_PAGES}
