"""What a build is at, on stderr: a line each, or with a spinner where rich is installed and a terminal listens."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def shown(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Called with what begins now. Each line has the seconds since the beginning."""
    started = time.perf_counter()

    def line(text: str) -> str:
        return f"[{time.perf_counter() - started:6.2f} s] {text}"

    if quiet:
        yield lambda text: None
        return
    if sys.stderr.isatty():
        try:
            from rich.console import Console
            from rich.live import Live
            from rich.spinner import Spinner
            from rich.text import Text
        except ImportError:
            pass
        else:
            console = Console(stderr=True)
            spinner = Spinner("dots")
            # Standard output may be a file, which gets what is printed; the other one would be rich's to break up.
            live = Live(spinner, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)

            def begun(text: str) -> None:
                console.print(line(text), markup=False, emoji=False, highlight=False)
                spinner.update(text=Text(f"{text} …"))
                live.start()  # now, and not before: it is a thread, and a process with threads is not forked

            try:
                yield begun
            finally:
                live.stop()
            return
    yield lambda text: print(line(text), file=sys.stderr)
