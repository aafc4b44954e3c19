"""Targets that a program attaches to its gpu.modules (``[#nvvm.target<…>]``): a build is for those that it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from offload.compiler.native import warn_at
from offload.compiler.ready import ReadyBuild, all_vendors, vendor_of
from offload.compiler.request import BuildRequest
from offload.errors import TargetError


def warn_of_unread(request: BuildRequest, module: Any, ready: Mapping[str, Sequence[ReadyBuild]]) -> None:
    """A BuildWarning for each gpu.module with targets that get no image because nobody named any for the build."""
    if request.targets != request.optional:
        return
    for name, position, attributes in module.attached_targets():
        there = [(image.target_name, image.chip) for image in ready.get(name, ())]
        there += [(target.name, target.settled_chip()) for target in request.targets]
        unread = {attribute: _spelled(attribute) for attribute in attributes}
        unread = {attribute: target for attribute, target in unread.items() if target not in there}
        if not unread:
            continue
        spellings = [":".join(target) for target in unread.values() if target]
        advice = f"; name what you want, such as {', '.join(spellings)}" if spellings else ""
        warn_at(
            position,
            f"gpu.module @{name} gets no image for {', '.join(unread)}: no target was named, so the build is for "
            f"{', '.join(target.name for target in request.targets)}{advice}",
            request.sources,
        )


def _spelled(attribute: str) -> tuple[str, str] | None:
    """A target and its chip; None where there is no such target here."""
    try:
        found = vendor_of(attribute, all_vendors())
    except TargetError:  # of another package, which costs a hint
        return None
    return None if found is None else (found[0].name, found[1])
