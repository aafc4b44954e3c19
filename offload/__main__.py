"""``offload`` and ``python -m offload``: the command line as a process of its own."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from offload.cli import main

NEW_OBJECTS = 100_000
"""Between two collections; a build leaves few circles, and looking for them took a twentieth of its time."""
LOADS_NOTHING = ("build", "inspect", "stubs", "targets", "matrix", "cache")
"""The commands that run no code but ours in this process, to which C's own end matters: what it has buffered, say."""


def script() -> None:
    """Runs the command line and ends the process, without freeing its objects one by one: that takes 10 ms."""
    gc.set_threshold(NEW_OBJECTS)
    code = main()
    watched = sys.getprofile() or sys.gettrace()  # by someone who has a word to say at the end
    if watched or not sys.argv[1:] or sys.argv[1] not in LOADS_NOTHING:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    script()
