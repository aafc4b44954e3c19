"""``offload cache``: what the folder of compiled programs holds, and how to get rid of it."""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from pathlib import Path

from offload.cache import upkeep
from offload.cache.folder import STAGES, Unusable, check
from offload.cache.ledger import Ledger
from offload.cache.shared import without_password
from offload.cache.store import Store
from offload.compiler.scratch import remove_abandoned
from offload.config import cache_folder, cache_limit, shared_cache
from offload.errors import OffloadError

_DAY = 86400.0


def cache(options: argparse.Namespace) -> int:
    """Does what ``options.action`` says; returns the exit code. Raises OffloadError."""
    folder = cache_folder()
    if folder is None:
        if options.action == "info":
            raise OffloadError("the cache is switched off: OFFLOAD_CACHE_DIR is empty")
        # What killed builds left among the temporary files is there all the same.
        return _finish(options, upkeep.Removed(0, 0, 0), None)
    try:
        if folder.exists():
            check(folder)  # or someone else's files would be counted, or removed
            _list(folder)
    except Unusable as error:
        raise OffloadError(f"the cache folder {folder} is not used: {error}") from error
    except OSError as error:
        raise OffloadError(
            f"the cache folder {folder} is not used: {error.strerror or error}; set OFFLOAD_CACHE_DIR to another folder"
        ) from error
    store, ledger = Store(folder), Ledger(folder)
    if options.action == "info":
        _info(store, ledger, options.json)
        return 0
    if options.action == "clear":
        removed = upkeep.prune(store, ledger, size=0)
    else:
        size = cache_limit() or None if options.size is None else options.size
        seconds = None if options.older_than is None else options.older_than * _DAY
        if options.size is None and seconds is not None:
            size = None
        removed = upkeep.prune(store, ledger, size, seconds)
    return _finish(options, removed, folder)


def _list(folder: Path) -> None:
    """Raises OSError where this user may not list the entries: they would be none, and 'cleared'."""
    for place in (folder, *(folder / name for name in STAGES)):
        with contextlib.suppress(FileNotFoundError):
            next(place.iterdir(), None)


def _finish(options: argparse.Namespace, removed: upkeep.Removed, place: Path | None) -> int:
    """Removes what is no part of the cache, too, and tells of all; returns the exit code."""
    folders = remove_abandoned()
    if options.json:
        print(json.dumps({**removed._asdict(), "folders": folders}))
    else:
        if place is None:
            print("the cache is switched off: OFFLOAD_CACHE_DIR is empty")
        else:
            leftovers = f" and {removed.leftovers} files of killed builds" if removed.leftovers else ""
            print(f"removed {removed.entries} entries, {removed.bytes:,} bytes,{leftovers} from {place}")
        if folders:
            print(f"removed {folders} folders of killed builds from {tempfile.gettempdir()}")
    if removed.refused:
        entries = "1 entry stays" if removed.refused == 1 else f"{removed.refused} entries stay"
        raise OffloadError(f"{entries} in {place}: {removed.why}")
    return 0


def _info(store: Store, ledger: Ledger, as_json: bool) -> None:
    usage, limit, shared = upkeep.usage(store, ledger), cache_limit(), shared_cache()
    url = without_password(shared[0]) if shared else ""
    total = sum(stage.bytes for stage in usage.values())
    if as_json:
        described = {
            "folder": str(store.folder),
            "bytes": total,
            "limit": limit,
            "stages": {name: stage._asdict() for name, stage in usage.items()},
            "shared": None if shared is None else {"url": url, "writes": shared[1], "signed": bool(shared[2])},
        }
        print(json.dumps(described, indent=2))
        return
    print(f"{store.folder}: {total:,} bytes of {f'{limit:,}' if limit else 'any number'}")
    for name, stage in usage.items():
        use = f"{stage.hits:>8,} hits {stage.misses:>8,} misses"
        print(f"  {name:<8} {stage.entries:>6,} entries {stage.bytes:>14,} bytes {use}")
    if shared is not None:
        signed = "signed entries alone" if shared[2] else "entries that nobody signed, too"
        print(f"shared: {url}, {'read and written' if shared[1] else 'read'}, {signed}")
