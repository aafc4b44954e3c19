"""Files that this installation carries besides Python code."""

from __future__ import annotations

from pathlib import Path

from offload.errors import LinkError


def package_file(relative: str) -> Path:
    """A file of this installation (an editable one has two roots). Raises LinkError where it is missing."""
    import offload

    for root in offload.__path__:
        candidate = Path(root) / relative
        if candidate.exists():
            return candidate
    raise LinkError(f"this installation of offload lacks {relative}; reinstall it")
