"""What is known at a point of a random program: which operations each token covers, and what each buffer waits for.

Operations are numbers. A token covers an operation if that has finished once the token is done, on every path to this
point on which it was issued. An operation that may still be running and that a later use of a buffer must come after is
in that buffer's sets; every one of those is covered by a visible token, so that dependencies can always be stated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Use:
    """A buffer: the operations that wrote it last, those that read it since, and whether it holds values."""

    writers: set[int] = field(default_factory=set)
    readers: set[int] = field(default_factory=set)
    defined: bool = False

    def copy(self) -> Use:
        return Use(set(self.writers), set(self.readers), self.defined)

    def all(self) -> set[int]:
        return self.writers | self.readers


@dataclass
class State:
    """The buffers, tokens and 32-bit scalars that are visible, by their SSA names; the operations that the host has
    waited for (``done``) and those issued in the region (``issued``)."""

    uses: dict[str, Use] = field(default_factory=dict)
    tokens: dict[str, frozenset[int]] = field(default_factory=dict)
    scalars: list[str] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    issued: set[int] = field(default_factory=set)
    local: list[str] = field(default_factory=list)

    def inner(self) -> State:
        """The same for the start of a region in this one."""
        uses = {name: use.copy() for name, use in self.uses.items()}
        return State(uses, dict(self.tokens), list(self.scalars), set(self.done))

    def needs(self, reads: Iterable[str], writes: Iterable[str]) -> set[int]:
        """What an operation has to come after."""
        found: set[int] = set()
        for name in reads:
            found |= self.uses[name].writers
        for name in writes:
            found |= self.uses[name].all()
        return found - self.done

    def pending(self, names: Iterable[str]) -> set[int]:
        return self.needs((), names)

    def note(self, number: int, reads: Iterable[str], writes: Iterable[str]) -> None:
        """An operation was issued after what it needs."""
        self.issued.add(number)
        for name in reads:
            self.uses[name].readers.add(number)
        for name in writes:
            self.uses[name] = Use({number}, set(), True)

    def replace(self, names: Iterable[str], number: int) -> None:
        """One number now stands for all that these buffers wait for."""
        for name in names:
            self.uses[name] = Use({number}, set(), self.uses[name].defined)

    def covered(self, tokens: Iterable[str]) -> frozenset[int]:
        return frozenset().union(*(self.tokens[token] for token in tokens))

    def join(self, branches: list[State], results: list[tuple[str, list[str]]]) -> None:
        """Both branches of a condition meet. ``results``: each token that comes out, with what each branch gives."""

        def on_every_path(per_branch: list[set[int]]) -> set[int]:
            everything = set().union(*per_branch)
            return {
                number
                for number in everything
                if all(
                    number in mine
                    or (number not in branch.issued and any(number in other.issued for other in branches))
                    for branch, mine in zip(branches, per_branch, strict=True)
                )
            }

        for name, given in results:
            covers = [branch.done | branch.tokens[token] for branch, token in zip(branches, given, strict=True)]
            self.tokens[name] = frozenset(on_every_path(covers))
        self.done = on_every_path([branch.done for branch in branches])
        for branch in branches:
            self.issued |= branch.issued
        for name in self.uses:
            uses = [branch.uses[name] for branch in branches]
            self.uses[name] = Use(
                set().union(*(use.writers for use in uses)),
                set().union(*(use.readers for use in uses)),
                all(use.defined for use in uses),
            )
