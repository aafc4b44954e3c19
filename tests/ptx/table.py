"""Instructions by their first name."""

from __future__ import annotations

from collections.abc import Callable

from ptx.maker import Maker, Step

Builder = Callable[[Maker], Step]
BUILDERS: dict[str, Builder] = {}


def instruction(*names: str) -> Callable[[Builder], Builder]:
    """Makes the steps of these."""

    def keep(builder: Builder) -> Builder:
        for name in names:
            BUILDERS[name] = builder
        return builder

    return keep
