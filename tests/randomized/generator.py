"""Writes one random host program as MLIR text, with the computation that it must do.

Every operation names the tokens that it needs, directly or through others, and now and then more; nothing else orders
it. Text and computation are made together: `Generator.effects` is a list of functions on an environment that maps SSA
names to values."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from randomized import kernels
from randomized.state import State, Use

Env = dict[str, Any]
Effect = Callable[[Env], None]
TOKEN = "!gpu.async.token"
LAUNCH = "blocks in (%blocks, %c1, %c1) threads in (%c32, %c1, %c1)"

PROLOGUE = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %blocks = arith.ceildivui %n, %c32 : index
    %last = arith.subi %n, %c1 : index"""


def execute(effects: Sequence[Effect], env: Env) -> None:
    for effect in effects:
        effect(env)


@dataclass(frozen=True)
class Helper:
    """A private function: element types of its buffers, and which of its tokens each belongs to."""

    name: str
    kinds: list[str]
    groups: list[int]
    tokens: int
    formals: list[str]
    effects: list[Effect]


@dataclass
class Options:
    """``synchronous``: no tokens. ``drop``: the number of a stated set of dependencies that is left out."""

    kinds: Sequence[str] = tuple(kernels.TYPES)
    synchronous: bool = False
    operations: int = 20
    drop: int | None = None


@dataclass
class Generator:
    """The straight-line part of the generator; `randomized.flow.Flow` adds control flow."""

    name: str
    rng: random.Random
    options: Options
    lines: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    kind_of: dict[str, str] = field(default_factory=dict)  # element type by buffer
    place: dict[str, str] = field(default_factory=dict)  # host, device or shared, by buffer
    helpers: list[Helper] = field(default_factory=list)
    numbers: int = 0
    stated: int = 0  # sets of dependencies that operations needed

    # Names, numbers, text.

    def fresh(self, prefix: str) -> str:
        self.numbers += 1
        return f"%{prefix}{self.numbers}"

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def line(self, text: str) -> None:
        self.lines.append("    " + text)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def memref(self, name: str) -> str:
        return f"memref<?x{self.kind_of[name]}>"

    def dtype(self, name: str) -> Any:
        return kernels.TYPES[self.kind_of[name]]

    # Dependencies.

    def cover(self, state: State, needs: set[int]) -> list[str]:
        """Tokens that together cover what is needed, as few or as many as it happens."""
        left, chosen = set(needs), list[str]()
        while left:
            number = self.rng.choice(sorted(left))
            able = [token for token, covered in state.tokens.items() if number in covered]
            token = self.rng.choice(able)
            if self.chance(0.75):
                token = min(able, key=lambda name: len(state.tokens[name]))
            chosen.append(token)
            left -= state.tokens[token]
        return chosen

    def dependencies(self, state: State, needs: set[int]) -> list[str]:
        tokens = self.cover(state, needs)
        while state.tokens and self.chance(0.1):
            tokens.append(self.rng.choice(list(state.tokens)))
        self.rng.shuffle(tokens)
        return tokens

    def state_dependencies(self, tokens: Sequence[str], needed: bool) -> str:
        """The tokens as text; where these are the ones to drop, nothing."""
        if needed:
            self.stated += 1
            if self.stated - 1 == self.options.drop:
                return ""
        return f"[{', '.join(tokens)}] " if tokens else ""

    def wait(self, state: State, needs: set[int]) -> None:
        """The host waits for these operations."""
        if needs:
            tokens = self.dependencies(state, needs)
            self.line(f"gpu.wait [{', '.join(tokens)}]")
            state.done |= state.covered(tokens)

    def joined(self, state: State, needs: set[int]) -> str:
        """One token that covers these operations."""
        tokens = self.dependencies(state, needs)
        if len(tokens) == 1 and self.chance(0.7):
            return tokens[0]
        return self.wait_async(state, tokens)

    def wait_async(self, state: State, tokens: list[str]) -> str:
        token = self.fresh("t")
        stated = f" [{', '.join(tokens)}]" if tokens else ""
        self.line(f"{token} = gpu.wait async{stated}")
        state.tokens[token] = state.covered(tokens)
        return token

    def issue(
        self,
        state: State,
        operation: str,
        rest: str,
        effect: Effect,
        *,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        result: str = "",
    ) -> None:
        """One operation of the gpu dialect, with or without a token."""
        needs, number = state.needs(reads, writes), self.number()
        results = [result] if result else []
        droppable = bool(needs) and operation != "gpu.dealloc"  # which comes behind what uses the memory anyway
        if self.options.synchronous or self.chance(0.08):
            tokens: list[str] = []
            if self.chance(0.5) and state.tokens:
                tokens = self.dependencies(state, needs)
            else:
                self.wait(state, needs)
            stated = self.state_dependencies(tokens, droppable and bool(tokens))
            state.done |= {number} | state.covered(tokens)
        else:
            tokens = self.dependencies(state, needs)
            stated = f"async {self.state_dependencies(tokens, droppable)}"
            token = self.fresh("t")
            results.append(token)
            state.tokens[token] = frozenset({number}) | state.covered(tokens)
        self.line(f"{', '.join(results)}{' = ' if results else ''}{operation} {stated}{rest}")
        self.effects.append(effect)
        state.note(number, reads, writes)

    # Values.

    def constant(self, kind: str) -> str:
        """A constant, or a visible scalar as that type."""
        name = self.fresh("v")
        value = self.rng.randrange(-100, 100)
        literal = f"{value}.0" if kind.startswith("f") else str(value)
        self.line(f"{name} = arith.constant {literal} : {kind}")
        number = kernels.TYPES[kind](value)
        self.effects.append(lambda env: env.update({name: number}))
        return name

    def scalar(self, state: State, kind: str) -> str:
        if not state.scalars or self.chance(0.4):
            return self.constant(kind)
        source = self.rng.choice(state.scalars)
        cast = {"i8": "trunci", "i16": "trunci", "i64": "extsi", "f32": "sitofp", "f64": "sitofp"}.get(kind)
        if cast is None:
            return source
        name, dtype = self.fresh("v"), kernels.TYPES[kind]
        self.line(f"{name} = arith.{cast} {source} : i32 to {kind}")
        self.effects.append(lambda env: env.update({name: env[source].astype(dtype)}))
        return name

    def pick(self, state: State, *places: str, kind: str | None = None, defined: bool = True) -> str | None:
        """A buffer of one of those places and of that element type; with values, where ``defined``."""
        able = [
            name
            for name, use in state.uses.items()
            if self.place[name] in places and kind in (None, self.kind_of[name]) and (use.defined or not defined)
        ]
        return self.rng.choice(able) if able else None

    # Operations. Each returns whether it could be written here.

    def alloc(self, state: State) -> bool:
        name = self.fresh("m")
        self.kind_of[name] = self.rng.choice(list(self.options.kinds))
        shared = self.chance(0.25)
        self.place[name] = "shared" if shared else "device"
        dtype = self.dtype(name)
        state.uses[name] = Use()
        state.local.append(name)
        self.issue(
            state,
            "gpu.alloc",
            f"{'host_shared ' if shared else ''}(%n) : {self.memref(name)}",
            lambda env: env.update({name: np.zeros(env["%n"], dtype)}),
            writes=[name],
            result=name,
        )
        state.uses[name].defined = False
        return True

    def dealloc(self, state: State, name: str | None = None) -> bool:
        if name is None:
            if not state.local:
                return False
            name = self.rng.choice(state.local)
        self.issue(state, "gpu.dealloc", f"{name} : {self.memref(name)}", lambda env: None, writes=[name])
        state.local.remove(name)
        del state.uses[name]
        return True

    def memset(self, state: State) -> bool:
        to = self.pick(state, "device", "shared", defined=False)
        if to is None:
            return False
        value = self.scalar(state, self.kind_of[to])

        def fill(env: Env) -> None:
            env[to][:] = env[value]

        self.issue(state, "gpu.memset", f"{to}, {value} : {self.memref(to)}, {self.kind_of[to]}", fill, writes=[to])
        return True

    def memcpy(self, state: State) -> bool:
        to = self.pick(state, "host", "device", "shared", defined=False)
        if to is None:
            return False
        source = self.pick(state, "host", "device", "shared", kind=self.kind_of[to])
        if source is None or source == to or self.place[to] == self.place[source] == "host":
            return False
        self.write_memcpy(state, to, source)
        return True

    def write_memcpy(self, state: State, to: str, source: str) -> None:
        def copy(env: Env) -> None:
            env[to][:] = env[source]

        types = f"{self.memref(to)}, {self.memref(source)}"
        self.issue(state, "gpu.memcpy", f"{to}, {source} : {types}", copy, reads=[source], writes=[to])

    def launch(self, state: State) -> bool:
        which = self.rng.choice(["scale", "scale", "join", "mix", "turn"])
        to = self.pick(state, "device", "shared", defined=which != "mix")
        if to is None:
            return False
        kind = self.kind_of[to]
        inputs = {"join": 1, "mix": 2}.get(which, 0)
        read = [self.pick(state, "device", "shared", kind=kind) for _ in range(inputs)]
        if None in read:
            return False
        reads = [name for name in read if name is not None]
        scalars = [self.scalar(state, kind) for _ in range(2 if which == "scale" else 0)]
        arguments = [to, *reads, *scalars]
        typed = [f"{name} : {kind if name in scalars else self.memref(name)}" for name in arguments]
        function = getattr(kernels, which)
        self.issue(
            state,
            "gpu.launch_func",
            f"@work::@{which}_{kind} {LAUNCH} args({', '.join(typed)})",
            lambda env: function(*(env[name] for name in arguments)),
            reads=[name for name in reads if name != to],
            writes=[to],
        )
        return True

    def host_load(self, state: State) -> bool:
        source = self.pick(state, "host", "shared", kind="i32")
        if source is None:
            return False
        self.wait(state, state.needs([source], []))
        name = self.fresh("v")
        first = self.chance(0.5)
        self.line(f"{name} = memref.load {source}[{'%c0' if first else '%last'}] : {self.memref(source)}")
        self.effects.append(lambda env: env.update({name: env[source][0 if first else -1]}))
        state.scalars.append(name)
        return True

    def host_store(self, state: State) -> bool:
        to = self.pick(state, "host", "shared", kind="i32")
        if to is None:
            return False
        value = self.scalar(state, "i32")
        self.wait(state, state.needs([], [to]))
        self.line(f"memref.store {value}, {to}[%last] : {self.memref(to)}")

        def store(env: Env) -> None:
            env[to][-1] = env[value]

        self.effects.append(store)
        return True

    def some_wait(self, state: State) -> bool:
        tokens = list(state.tokens)
        if self.options.synchronous or not tokens:
            self.line("gpu.wait")
        elif self.chance(0.25):
            self.wait(state, set(self.rng.choice([state.tokens[token] for token in tokens])))
        else:
            self.wait_async(state, self.rng.sample(tokens, self.rng.randint(0, min(3, len(tokens)))))
        return True

    def select(self, state: State) -> bool:
        if len(state.tokens) < 2:
            return False
        one, two = self.rng.sample(list(state.tokens), 2)
        token = self.fresh("t")
        self.line(f"{token} = arith.select %p0, {one}, {two} : {TOKEN}")
        state.tokens[token] = state.tokens[one] & state.tokens[two]
        return True
