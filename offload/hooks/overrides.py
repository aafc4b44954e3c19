"""Settings that the command of one build gives: ``pip wheel -C offload.targets=…``, CMake's cache, a command line."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from offload.config import targets_instead
from offload.errors import OffloadError

PREFIX = "offload."
SETTINGS = ("targets",)
_targets: ContextVar[str | None] = ContextVar("targets", default=None)


def targets() -> list[str] | None:
    """The targets that replace the declared ones in this build; None where no command and no variable names any."""
    return targets_instead(_targets.get())


@contextlib.contextmanager
def from_config_settings(settings: Mapping[str, Any] | None) -> Iterator[dict[str, Any] | None]:
    """Takes the settings named ``offload.…`` for the time of a build, and yields those of the build tool.

    Raises OffloadError for a setting that there is not."""
    if settings is None:
        yield None
        return
    ours = {key: value for key, value in settings.items() if key.startswith(PREFIX)}
    for key in ours:
        if key.removeprefix(PREFIX) not in SETTINGS:
            known = [PREFIX + name for name in SETTINGS]
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise OffloadError(f"unknown config setting {key}{hint} (there are: {', '.join(known)})")
    given = ours.get(f"{PREFIX}targets")
    # A setting given twice comes as a list.
    token = _targets.set(";".join(given) if isinstance(given, list) else given)
    try:
        yield {key: value for key, value in settings.items() if key not in ours}
    finally:
        _targets.reset(token)
