"""Checks that go wrong in every way, which the tests of the suite itself run."""

from __future__ import annotations

import os
import sys
import time

import pytest

from device.checks import Check, NotRun


def _raises() -> None:
    print("said before it failed", flush=True)
    raise ValueError("wrong on purpose")


def _not_run() -> None:
    raise NotRun("no such thing")


def checks() -> tuple[Check, ...]:
    return (
        Check("planted", "first", [], lambda: None),
        Check("planted", "raises", [], _raises),
        Check("planted", "after it", [], lambda: None),
        Check("planted", "crashes", [], os.abort),
        Check("planted", "before what hangs", [], lambda: None),
        Check("planted", "hangs", [], lambda: time.sleep(600), seconds=1),
        Check("planted", "leaves", [], lambda: os._exit(3)),
        Check("planted", "alone", [], lambda: sys.modules.update(marked=sys), alone=True),
        Check("planted", "after what was alone", [], lambda: None if "marked" not in sys.modules else _raises()),
        Check("planted", "not run", [], _not_run),
        Check("planted", "needs", [], _raises, needs=["no_package_of_this_name"]),
        Check("planted", "needs a part", [], _raises, needs=["no_package_of_this_name.part"]),
        Check("planted", "pytest's failure", [], lambda: pytest.fail("it did not raise")),
    )
