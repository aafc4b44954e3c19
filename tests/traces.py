"""Files of OFFLOAD_TRACE, read back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def read(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def calls(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What threads of the program did, in order."""
    made = [event for event in events if event["ph"] == "X" and event["cat"] not in ("work", "blocks")]
    return sorted(made, key=lambda event: event["ts"])
