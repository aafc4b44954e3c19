"""How the compiler's extension is loaded into a process where others load theirs."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

import offload
from offload.compiler import native


def test_threads_leave_the_flags_of_the_loader_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each puts back what it has found: of two at once, one would find what the other had set."""
    flags = sys.getdlopenflags()
    turns = iter((0.1, 0.3))

    def slowly(name: str) -> Any:
        time.sleep(next(turns))
        return SimpleNamespace(offload_version=offload.__version__)

    monkeypatch.setattr(importlib, "import_module", slowly)
    threads = [threading.Thread(target=native.native.__wrapped__) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getdlopenflags() == flags
