"""Keeping a cache small: what was not used for longest goes first."""

from __future__ import annotations

import time
from typing import NamedTuple

from offload.cache.folder import STAGES
from offload.cache.ledger import Ledger
from offload.cache.store import Store, remove_unused

_KEPT_BY_SWEEP = 0.9
"""Of the limit: room for what follows, so that not every new entry needs a sweep."""


class Removed(NamedTuple):
    """What a pruning removed: entries, their bytes, and files that killed processes had left; how many entries could
    not be removed, and why the first of them could not."""

    entries: int
    bytes: int
    leftovers: int
    refused: int = 0
    why: str = ""


class Usage(NamedTuple):
    """What a stage has: entries, their bytes, and how often one was found and not found."""

    entries: int
    bytes: int
    hits: int
    misses: int


def add_bytes(store: Store, ledger: Ledger, number: int, limit: int) -> None:
    """Notes new bytes, and prunes where they are too many. A ``limit`` of 0 is none."""
    total = ledger.add_bytes(number)
    if total is None or (limit and total > limit):
        prune(store, ledger, int(_KEPT_BY_SWEEP * limit) if limit else None, over=limit)


def prune(
    store: Store, ledger: Ledger, size: int | None = None, seconds: float | None = None, over: int | None = None
) -> Removed:
    """Removes entries until ``size`` bytes are left, and those that were not used for so many seconds.

    With ``over``, the size counts only where there are more bytes than that. An entry that a process is loading stays.
    """
    entries = sorted(store.entries(), key=lambda entry: entry.used)
    total = sum(entry.size for entry in entries)
    if size is not None and over is not None and total <= over:
        size = None
    oldest = None if seconds is None else time.time() - seconds
    removed = freed = refused = 0
    why = ""
    for entry in entries:
        too_old = oldest is not None and entry.used <= oldest
        too_much = size is not None and total - freed > size
        if not (too_old or too_much):
            continue
        try:
            if remove_unused(entry.path):
                removed, freed = removed + 1, freed + entry.size
        except OSError as error:
            refused, why = refused + 1, why or error.strerror or str(error)
    ledger.set_bytes(total - freed)
    return Removed(removed, freed, store.remove_leftovers(), refused, why)


def usage(store: Store, ledger: Ledger) -> dict[str, Usage]:
    """What there is, by stage."""
    numbers = ledger.read()
    entries = store.entries()
    found = {}
    for stage in STAGES:
        sizes = [entry.size for entry in entries if entry.stage == stage]
        hits, misses = (numbers.get(f"{stage} {event}", 0) for event in ("hit", "miss"))
        found[stage] = Usage(len(sizes), sum(sizes), hits, misses)
    return found
