"""``offload`` and ``python -m offload``: the command line as a process of its own."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from types import FrameType

NEW_OBJECTS = 100_000
"""Between two collections; a build leaves few circles, and looking for them took a twentieth of its time."""
LOADS_NOTHING = ("build", "inspect", "stubs", "targets", "matrix", "cache")
"""The commands that run no code but ours in this process, to which C's own end matters: what it has buffered, say."""


def script() -> None:
    """Runs the command line and ends the process, without freeing its objects one by one: that takes 10 ms."""
    gc.set_threshold(NEW_OBJECTS)
    from offload.cli import main
    from offload.commands.streams import go_on_unread, open_streams

    open_streams()
    go_on_unread()
    code = main()
    if not sys.argv[1:] or sys.argv[1] not in LOADS_NOTHING or _is_watched() or _is_called():
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


def _is_watched() -> bool:
    """Whether a profiler, a debugger or a prompt has a word to say at the end."""
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    tools = monitoring is not None and any(map(monitoring.get_tool, range(6)))
    return bool(sys.getprofile() or sys.gettrace() or tools or sys.flags.inspect or sys.flags.interactive)


def _is_called() -> bool:
    """Whether a function of somebody's goes on after `script`: below it is more than a script and what runs one."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name not in ("<module>", "_run_code", "_run_module_as_main"):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    script()
