"""Settings that the command of one build gives: ``pip wheel -C offload.targets=…``, CMake's cache, a command line."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from offload.config import split_targets, with_variable
from offload.errors import OffloadError

PREFIX = "offload."
SETTINGS = ("targets",)


@contextlib.contextmanager
def from_config_settings(settings: Mapping[str, Any] | None) -> Iterator[dict[str, Any] | None]:
    """Takes the settings named ``offload.…`` for the time of a build, and yields those of the build tool.

    They stand in place of the variables of the same meaning, which CMake and Meson hand on, too. Raises OffloadError
    for a setting that there is not, or that is empty."""
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
    chosen = ";".join(given) if isinstance(given, list) else given
    if chosen is not None and not split_targets(chosen):
        raise OffloadError(f"config setting {PREFIX}targets names no target; leave it out, or name some")
    with with_variable("OFFLOAD_TARGETS", chosen):
        yield {key: value for key, value in settings.items() if key not in ours}
