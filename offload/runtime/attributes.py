"""Attributes that a library does not have: what is said where one is asked for, or set."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

_INSTEAD = {"backend": "call use(...) of it", "device": "enter one of its devices, as in `with lib.device(1):`"}
_MAPPINGS = ("functions", "kernels", "signatures")


def unknown(owner: str, kind: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error for a name that is none of ``names``."""
    known = sorted(names)
    close = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return AttributeError(f"{owner} has no {kind} {name!r}{hint} It has: {', '.join(known) or 'none'}")


def _stands_for(name: str, value: Any, old: Any) -> bool:
    """Whether it is what tests and profilers put in the place of a function, or of all kernels, and put back."""
    if name in _MAPPINGS:
        return callable(value) or isinstance(value, Mapping)
    return callable(value) and callable(old)


def check_set(library: object, called: str, name: str, value: Any) -> None:
    """Raises AttributeError for an attribute that a library does not have, or that cannot be set."""
    if name.startswith("_"):
        return
    kind = getattr(type(library), name, None)
    has = vars(library)
    old = has.get(name, kind)
    if old is None:
        old = has["functions"].get(name)  # deleted for a while
    if isinstance(kind, property):
        if kind.fset is not None:
            return
    elif old is None:
        settable = [word for word, what in vars(type(library)).items() if isinstance(what, property) and what.fset]
        raise unknown(called, "attribute to be set", name, settable)
    elif _stands_for(name, value, old):
        return
    advice = _INSTEAD.get(name, "it stays as it was loaded")
    raise AttributeError(f"{name!r} of {called} is not to be set to {value!r}: {advice}")
