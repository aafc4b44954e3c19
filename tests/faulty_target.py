"""A target whose compiler fails in every way that LLVM may: it is the CPU's, with a fault at the stage ``object``."""

from __future__ import annotations

import ctypes
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from offload.targets import Device, Image
from offload.targets.base import Work
from offload.targets.host import HostTarget

from offload.errors import ToolkitError


def _abort() -> None:
    os.write(2, b"LLVM ERROR: Cannot select: t1: i32 = made_up\n")
    os.abort()


def _null() -> None:
    ctypes.string_at(0)


def _memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, resource.RLIM_INFINITY))
    bytearray(1 << 33)


def _tool() -> None:
    subprocess.run(["sleep", "1000"], check=True)


def _talk() -> None:
    print("a word on stdout")
    os.write(2, b"a word on stderr\n")
    logging.getLogger("offload.tools").debug("a %s command", "logged")


def _where() -> None:
    raise ToolkitError(f"{Path.cwd()} {os.environ.get('WHERE')} {sys.path[0]}")


class Odd(Exception):
    """An error that cannot be pickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def _odd() -> None:
    raise Odd("1", "2")


def _bug() -> None:
    raise KeyError("a bug of the target's")


FAULTS: dict[str, Callable[[], object]] = {
    "none": lambda: None,
    "abort": _abort,
    "null": _null,
    "exit": lambda: os._exit(3),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "sleep": lambda: time.sleep(1000),
    "tool": _tool,
    "memory": _memory,
    "talk": _talk,
    "where": _where,
    "odd": _odd,
    "bug": _bug,
}

MADE: dict[str, Any] = {"nothing": None, "text": "text"}
"""What a target has made instead of an image."""


@dataclass(frozen=True)
class FaultyTarget(HostTarget):
    """``faulty:x86-64,fault=abort``."""

    fault: str = "none"

    name: ClassVar[str] = "faulty"

    @classmethod
    def chips(cls) -> Sequence[str]:
        return HostTarget.chips()

    @classmethod
    def devices(cls) -> list[Device]:
        return []

    def assemble(self, work: Work) -> Image:
        if self.fault in MADE:
            return MADE[self.fault]
        FAULTS[self.fault]()
        return super().assemble(work)


def install(folder: Path) -> None:
    """Makes the folder one that has this target as an installed package, for processes with it on their path."""
    (folder / "faulty_target.py").write_text(Path(__file__).read_text())
    information = folder / "faulty_target-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty-target\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[offload.targets]\nfaulty = faulty_target:FaultyTarget\n")
