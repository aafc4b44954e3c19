"""The examples of docs/calling.md run, one after the other."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from compiling import EXAMPLES, ROOT, on_host


def test_the_examples_run() -> None:
    text = (ROOT / "docs" / "calling.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 9
    names: dict[str, Any] = {"lib": on_host(EXAMPLES / "saxpy.mlir")}
    for block in blocks:
        exec(compile(block, "docs/calling.md", "exec"), names)
    asyncio.run(names["run"]())
