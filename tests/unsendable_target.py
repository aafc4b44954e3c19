"""Targets that cannot be pickled, each for another reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

from offload.targets.host import HostTarget


@dataclass(frozen=True)
class UnsendableTarget(HostTarget):
    name: ClassVar[str] = "unsendable"
    error: str = "TypeError"

    def __reduce__(self) -> NoReturn:
        raise {"TypeError": TypeError, "RecursionError": RecursionError, "ValueError": ValueError}[self.error]("no way")
