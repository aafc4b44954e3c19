"""Environment variables that mean nothing: usage, whatever the command does."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import EXAMPLES, command

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OFFLOAD_CACHE_SIZE", "much"), ("OFFLOAD_TIME_LIMIT", "soon"), ("OFFLOAD_SHARED_CACHE", "store"),
        ("OFFLOAD_ISOLATE", "no"),
    ],
)  # fmt: skip
def test_wrong_settings(name: str, value: str, tmp_path: Path) -> None:
    """Each is usage, also where the build does not come to it: what this one takes from the cache needs no worker."""
    assert command("build", SAXPY, "-q", cwd=tmp_path).returncode == 0
    done = command("build", SAXPY, "-q", cwd=tmp_path, environment={name: value})
    assert done.returncode == 2
    assert done.stderr.startswith(f"offload: error: {name} is ")
