"""The folder of a cache: made for its owner alone, and not used where others could put code into it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

STAGES = ("library", "image", "host")
"""What is kept: whole libraries, images of one module for one target, object files of host code."""

LOCKS, TEMPORARIES = "locks", "tmp"
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by offload; can be removed at any time.\n"


class Unusable(Exception):
    """Why a folder cannot be a cache, and what to do about it."""


def prepare(folder: Path) -> None:
    """Makes the folder and those in it. Raises Unusable.

    What is there already may be read-only: then it serves, and nothing is added."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        check(folder)
        for name in (*STAGES, LOCKS, TEMPORARIES):
            (folder / name).mkdir(exist_ok=True, mode=0o700)
        tag = folder / "CACHEDIR.TAG"  # for programs that make backups
        if not tag.exists():
            tag.write_text(_TAG, encoding="ascii")
    except OSError as error:
        if not _has_entries(folder):
            raise Unusable(f"{error.strerror or error}; set OFFLOAD_CACHE_DIR to another folder") from error


def check(folder: Path) -> None:
    """Raises Unusable where someone else could put code there that this user would run. May raise OSError."""
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise Unusable("it is no folder; set OFFLOAD_CACHE_DIR to another one")
    if not owned(status):
        raise Unusable("it belongs to another user, who could put code there; set OFFLOAD_CACHE_DIR to one of your own")
    if status.st_mode & 0o022:
        raise Unusable(f"other users may write into it, and so could put code there; chmod go-w {folder}")


def owned(status: os.stat_result) -> bool:
    """Whether a file is this user's or root's."""
    return status.st_uid in (os.geteuid(), 0)


def _has_entries(folder: Path) -> bool:
    try:
        return any((folder / name).is_dir() for name in STAGES)
    except OSError:  # in a folder that may not be entered, another user's home for instance
        return False
