"""A target from another package: the CPU again, without optimization, and with an option of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from offload.targets import Device
from offload.targets.host import HostTarget


@dataclass(frozen=True)
class SlowHostTarget(HostTarget):
    """``slowhost``. ``reason`` is kept and does nothing."""

    O: int = 0  # noqa: E741
    reason: str = "debugging"

    name: ClassVar[str] = "slowhost"

    @classmethod
    def chips(cls) -> Sequence[str]:
        return HostTarget.chips()[:1]

    @classmethod
    def devices(cls) -> list[Device]:
        return []
