"""Settings: environment variables, and what comes before what. The only module that reads the environment.

``[tool.offload]`` of a package is read in ``hooks/project.py``."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from offload.errors import UsageError

VARIABLES = {
    "OFFLOAD_TARGETS": "targets to build for, separated by ';' (overrides pyproject.toml, not the command line); "
    "empty is as not set",
    "OFFLOAD_BACKEND": "the backend to run on: cuda, hip (also called rocm) or host (read by the C runtime)",
    "OFFLOAD_HOST_SCHEDULE": "a seed: work on the CPU's streams runs as late as a driver may run it, in an order drawn "
    "from the seed, so that a missing wait or dependency shows as a wrong result (read by the C runtime)",
    "OFFLOAD_TRACE": "a file to write what ran to, for Perfetto or chrome://tracing: launches, copies, allocations and "
    "waits of the host's threads and of each device's streams; %p in the name stands for the process's id (read by the "
    "C runtime; docs/tracing.md)",
    "OFFLOAD_PRINT_ERRORS": "1: each failure is also printed on stderr when it happens, for programs in C or under "
    "mlir-runner that do not ask mgpuGetLastError; 0 or empty: none; others are refused (read by the C runtime)",
    "OFFLOAD_FAST_CALLS": "0: calls from Python go through ctypes, even where the extension for fast calls is built",
    "OFFLOAD_CACHE_DIR": "folder for what was compiled (default: ~/.cache/offload, or offload-cache-UID among the "
    "temporary files where there is no home folder); empty switches the cache off",
    "OFFLOAD_CACHE_SIZE": "most bytes that folder holds, as 500M or 2G (default: 2G; 0: no limit); what was not used "
    "for longest is removed",
    "OFFLOAD_SHARED_CACHE": "URL of a cache that several machines use: file://, https://, s3://, redis:// and whatever "
    "fsspec knows (docs/caching.md)",
    "OFFLOAD_SHARED_CACHE_MODE": "read (the default) or readwrite: whether what is compiled here goes there",
    "OFFLOAD_SHARED_CACHE_KEY": "a secret: entries of the shared cache are signed with it, and others not used",
    "OFFLOAD_ISOLATE": "0: builds run in this process and not in a worker, for debuggers; where LLVM crashes, so does "
    "the process",
    "OFFLOAD_TIME_LIMIT": "seconds that a build may take in its worker, 600 where it is not set; 0: any time",
    "CUDA_HOME": "a CUDA toolkit; where it is set, no other is used (also read by the C runtime; docs/sparse.md)",
    "ROCM_PATH": "a ROCm installation, or a folder with amdgcn/bitcode; where it is set, no other is used (also "
    "read by the C runtime; docs/sparse.md)",
    "LLVM_DIR": "lib/cmake/llvm of an LLVM 22 (at build time of offload)",
    "MLIR_DIR": "lib/cmake/mlir of an MLIR 22 (at build time of offload)",
}
"""Every variable that offload reads, with its meaning; the documentation is made from this table."""

DEFAULT_TARGETS = ("host",)

BACKENDS = ("cuda", "hip", "host")
"""The runtime's backends, in the order in which it tries them."""
BACKEND_ALIASES = {"rocm": "hip"}
"""What users may call a backend besides; the C runtime has the same names."""


def environment(variable: str) -> str | None:
    """The value of one of :data:`VARIABLES`; None where it is not set."""
    if variable not in VARIABLES:
        raise KeyError(f"{variable} is not among offload's variables")
    return os.environ.get(variable)


_PREFIX = "OFFLOAD_"


def unknown_variables() -> dict[str, str | None]:
    """Variables of the process that are named as ours are and that nothing here reads, each with the one of
    :data:`VARIABLES` that was likely meant, or None: a program's own may begin so."""
    unknown = sorted(name for name in os.environ if name.startswith(_PREFIX) and name not in VARIABLES)
    if not unknown:
        return {}
    import difflib  # for misspelt ones alone

    ours = {name.removeprefix(_PREFIX): name for name in VARIABLES if name.startswith(_PREFIX)}
    found: dict[str, str | None] = {}
    for name in unknown:
        close = difflib.get_close_matches(name.removeprefix(_PREFIX), ours, 1, cutoff=0.8)
        found[name] = ours[close[0]] if close else None
    return found


def whole_environment() -> dict[str, str]:
    """Every variable of the process: tools and drivers read some that offload does not."""
    return dict(os.environ)


def set_environment(variables: dict[str, str]) -> None:
    """Makes these the process's variables, and no others. One without a name, which no system call sets or removes,
    stays as it is."""
    for name in os.environ.keys() - variables.keys() - {""}:
        del os.environ[name]
    os.environ.update({name: value for name, value in variables.items() if name})


@contextlib.contextmanager
def with_variable(variable: str, value: str | None) -> Iterator[None]:
    """One of :data:`VARIABLES` is this inside of the ``with``, for processes that are started there, too; None leaves
    it."""
    before = environment(variable)
    if value is not None:
        os.environ[variable] = value
    try:
        yield
    finally:
        if value is not None:
            os.environ.pop(variable, None)
            if before is not None:
                os.environ[variable] = before


def target_specs(given: list[str] | tuple[str, ...]) -> list[str]:
    """The targets to build for: those given, else OFFLOAD_TARGETS where it has any, else the CPU."""
    if given:
        return list(given)
    return split_targets(environment("OFFLOAD_TARGETS") or "") or list(DEFAULT_TARGETS)


def split_targets(text: str) -> list[str]:
    """Targets as OFFLOAD_TARGETS and other settings of one line spell them: separated by ';'."""
    return [word.strip() for word in text.split(";") if word.strip()]


def targets_instead() -> list[str] | None:
    """The targets that replace those which a package declares: those of OFFLOAD_TARGETS.

    None where it is not set, or has none, as CI systems leave it."""
    return split_targets(environment("OFFLOAD_TARGETS") or "") or None


def forget_targets_instead() -> None:
    """From here on, OFFLOAD_TARGETS is not set."""
    os.environ.pop("OFFLOAD_TARGETS", None)


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DEFAULT_CACHE_SIZE = "2G"
_MOST_BYTES = 2.0**62
"""More than any disk has, where a number of many digits would be infinite."""


def parse_size(text: str, what: str) -> int:
    """Bytes of ``500M``, ``2G``, ``2GiB`` or a plain number. Raises UsageError that names ``what`` holds it."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    if not found:
        raise UsageError(f"{what} is a size such as 500M or 2G, not {text!r}")
    return int(min(float(found[1]) * _UNITS[found[2]], _MOST_BYTES))


def cache_limit() -> int:
    """The most bytes that the cache folder holds; 0 is no limit. Raises UsageError."""
    return parse_size(environment("OFFLOAD_CACHE_SIZE") or _DEFAULT_CACHE_SIZE, "OFFLOAD_CACHE_SIZE")


def shared_cache() -> tuple[str, bool, bytes | None] | None:
    """URL, whether it is written to, and the secret that signs it; None where there is none. Raises UsageError."""
    url = environment("OFFLOAD_SHARED_CACHE")
    if not url:
        return None
    scheme, separator, path = url.partition("://")
    # fsspec takes what is none, and file://net, for a folder below the current one, of which each project has its own.
    if not (path if separator and scheme in ("file", "local") else separator or url).startswith(("/", "://")):
        raise UsageError(
            f"OFFLOAD_SHARED_CACHE is a URL, as file:///net/offload or s3://bucket/offload, not {url!r}; "
            "that of a folder has three slashes"
        )
    mode = environment("OFFLOAD_SHARED_CACHE_MODE") or "read"
    if mode not in ("read", "readwrite"):
        raise UsageError(f"OFFLOAD_SHARED_CACHE_MODE is 'read' or 'readwrite', not {mode!r}")
    secret = environment("OFFLOAD_SHARED_CACHE_KEY")
    return url, mode == "readwrite", secret.encode() if secret else None


def check_settings() -> None:
    """Raises UsageError where a variable that builds read means nothing, whether or not this one comes to it."""
    cache_limit()
    shared_cache()
    isolated()
    time_limit()


def loader_settings() -> list[str | None]:
    """What makes the system's loader take another library than it would."""
    return [os.environ.get(name) for name in ("LD_LIBRARY_PATH", "LD_PRELOAD")]


def isolated() -> bool:
    """Whether builds run in a worker. Raises UsageError for a value that means nothing."""
    return _is_on("OFFLOAD_ISOLATE") and not _is_frozen()


def _is_frozen() -> bool:
    """Whether the program has no Python that a worker could be started with: one that PyInstaller or others packed
    would run itself again, unless `multiprocessing.set_executable` has named an interpreter."""
    if not getattr(sys, "frozen", False):
        return False
    from multiprocessing import spawn

    return os.fsdecode(spawn.get_executable() or sys.executable) == sys.executable


def fast_calls() -> bool:
    """Whether calls may go through the extension. Raises UsageError for a value that means nothing."""
    return _is_on("OFFLOAD_FAST_CALLS")


def _is_on(name: str) -> bool:
    value = environment(name) or "1"
    if value not in ("0", "1"):
        raise UsageError(f"{name} is 0 or 1, not {value!r}")
    return value == "1"


_LONGEST = 1e9
"""Seconds. Sockets refuse to wait for as long as a float can say."""


def time_limit() -> float | None:
    """The seconds that a build may take in its worker; None for any time. Raises UsageError for no number."""
    value = environment("OFFLOAD_TIME_LIMIT") or "600"
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"OFFLOAD_TIME_LIMIT is a number of seconds, or 0 for no limit, not {value!r}")
    return min(seconds, _LONGEST) or None


def crash_folder() -> Path:
    """The folder for what repeats a crash of the compiler: in the cache's, or with the temporary files without one."""
    import tempfile

    cache = cache_folder()
    return cache / "crashes" if cache else Path(tempfile.gettempdir()) / f"offload-crashes-{os.getuid()}"


def cache_folder() -> Path | None:
    """The folder for compiled programs; None where the cache is switched off."""
    value = environment("OFFLOAD_CACHE_DIR")
    if value is not None:
        # Files of CI systems and containers leave ~ as it is. Path.expanduser() raises for users that there are not.
        return Path(os.path.expanduser(value)) if value else None  # noqa: PTH111
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):  # noqa: PTH117 -- the XDG specification has relative ones ignored
        return Path(base) / "offload"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a name and without HOME, as containers run programs
        home = None
    # Users of services have a home that is not there, as /nonexistent, and which is not for us to make.
    if home is not None and os.path.isdir(home):  # noqa: PTH112 -- is_dir() raises where it may not look
        return home / ".cache" / "offload"
    import tempfile

    return Path(tempfile.gettempdir()) / f"offload-cache-{os.getuid()}"
