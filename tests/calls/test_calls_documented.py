"""The examples of the README and of docs/calling.md run, one after the other."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES, ROOT, on_host, python

BACKENDS = ("host", "cuda", "hip")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_readme_runs_wherever_it_is_read(backend: str, drivers: Path, tmp_path: Path) -> None:
    """Where a GPU is, too, whose kernels do not reach NumPy's arrays; the stand-in drivers run no kernels."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    given = {} if backend == "host" else {"LD_LIBRARY_PATH": str(drivers), "STANDIN_DEVICES": "1"}
    said = python(block, cwd=tmp_path, environment={"OFFLOAD_BACKEND": backend, **given})
    assert said.split()[0] == backend
    if backend == "host":
        assert said == "host [1. 5. 9.]\n"


def test_the_examples_run() -> None:
    text = (ROOT / "docs" / "calling.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 9
    names: dict[str, Any] = {"lib": on_host(EXAMPLES / "saxpy.mlir")}
    for block in blocks:
        exec(compile(block, "docs/calling.md", "exec"), names)
    asyncio.run(names["run"]())
