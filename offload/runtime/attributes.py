"""Attributes that a library does not have: what is said where one is asked for, or set."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

_INSTEAD = {"backend": "call use(...) of it", "device": "enter one of its devices, as in `with lib.device(1):`"}


def unknown(owner: str, kind: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error for a name that is none of ``names``."""
    known = sorted(names)
    close = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return AttributeError(f"{owner} has no {kind} {name!r}{hint} It has: {', '.join(known) or 'none'}")


def check_set(library: object, called: str, name: str, value: Any) -> None:
    """Raises AttributeError for an attribute that a library does not have, or that cannot be set."""
    if name.startswith("_"):
        return
    kind = getattr(type(library), name, None)
    has = vars(library)
    if isinstance(kind, property):
        if kind.fset is not None:
            return
    elif name not in has and kind is None:
        settable = [word for word, what in vars(type(library)).items() if isinstance(what, property) and what.fset]
        raise unknown(called, "attribute to be set", name, settable)
    elif callable(has.get(name, kind)) and callable(value):  # as tests and profilers put in a function's place
        return
    advice = _INSTEAD.get(name, "it stays as it was loaded")
    raise AttributeError(f"{name!r} of {called} is not to be set to {value!r}: {advice}")
