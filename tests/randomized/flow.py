"""Control flow of random programs: branches, loops and calls that tokens go through, and whole functions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from randomized import kernels
from randomized.generator import PROLOGUE, TOKEN, Effect, Env, Generator, Helper, Options, execute
from randomized.state import State, Use


@dataclass(frozen=True)
class Program:
    """A function of a module. ``hosts``: element types of its host arrays; ``stated``: how many sets of dependencies
    it states, which is how many can be dropped."""

    name: str
    text: str
    hosts: list[str]
    effects: list[Effect]
    stated: int

    def arguments(self, seed: int, trips: tuple[int, int] | None = None) -> list[Any]:
        """Values of the parameters: the host arrays, their length, two numbers of iterations, two flags, a scalar."""
        rng = np.random.default_rng(seed)
        n = int(rng.choice([1, 2, 31, 32, 33, 70]))
        arrays = [rng.integers(-50, 50, n).astype(kernels.TYPES[kind]) for kind in self.hosts]
        outer, inner = trips or (int(rng.integers(0, 5)), int(rng.integers(0, 4)))
        flags = [bool(flag) for flag in rng.integers(0, 2, 2)]
        return [*arrays, n, outer, inner, *flags, np.int32(rng.integers(-100, 100))]

    def expect(self, arguments: list[Any]) -> list[Any]:
        """The host arrays after the call."""
        count = len(self.hosts)
        arrays = [array.copy() for array in arguments[:count]]
        env: Env = {f"%h{i}": array for i, array in enumerate(arrays)}
        env |= dict(zip(["%n", "%k0", "%k1", "%p0", "%p1", "%s"], arguments[count:], strict=True))
        execute(self.effects, env)
        return arrays


class Flow(Generator):
    """The generator with control flow. Tokens that go round loops and through calls stand for a group of buffers each:
    inside, one number stands for all that was issued before."""

    def region(self, state: State, budget: int, depth: int, top: bool = False) -> None:
        """Operations, and control flow down to a depth; frees what was allocated."""
        if top:
            self.begin(state)
        operations: list[tuple[Any, float]] = [
            (self.alloc, 2), (self.dealloc, 0.4), (self.memset, 2), (self.memcpy, 3), (self.launch, 5),
            (self.host_load, 0.3), (self.host_store, 0.3), (self.some_wait, 0.6),
        ]  # fmt: skip
        if not self.options.synchronous:
            operations.append((self.select, 0.3))
        while budget > 0:
            if depth and budget > 2 and self.chance(0.14):
                inside = self.rng.randint(2, max(2, budget // 2))
                self.rng.choice([self.branch, self.loop, self.call])(state, inside, depth, top)
                budget -= inside
            else:
                function = self.rng.choices([f for f, _ in operations], [weight for _, weight in operations])[0]
                budget -= bool(function(state))
                budget -= self.chance(0.05)  # where nothing fits, come to an end
        if top:
            self.show(state)
        for name in list(state.local):
            self.dealloc(state, name)

    def begin(self, state: State) -> None:
        """Some buffers with values, so that most operations have something to work on."""
        for _ in range(self.rng.randint(2, 4)):
            self.alloc(state)
            name = state.local[-1]
            source = self.pick(state, "host", kind=self.kind_of[name])
            if source is not None and self.chance(0.8):
                self.write_memcpy(state, name, source)

    def show(self, state: State) -> None:
        """Lets the results depend on what is in the buffers."""
        for name in list(state.local):
            to = self.pick(state, "host", kind=self.kind_of[name])
            if to is not None and state.uses[name].defined and self.chance(0.8):
                self.write_memcpy(state, to, name)

    def captured(self) -> list[Effect]:
        """Effects go to a new list from now on; returns the one that they went to."""
        before, self.effects = self.effects, []
        return before

    def divided(self, state: State, needs: set[int], tokens: int) -> list[str]:
        """So many tokens that together cover these operations; none, and the host waits."""
        if not tokens:
            self.wait(state, needs)
            return []
        groups: list[set[int]] = [set() for _ in range(tokens)]
        for number in sorted(needs):
            self.rng.choice(groups).add(number)
        return [self.joined(state, group) for group in groups]

    def tokens_wanted(self) -> int:
        return 0 if self.options.synchronous else self.rng.choice([0, 1, 1, 2, 2, 3])

    # Branches.

    def branch(self, state: State, budget: int, depth: int, top: bool) -> None:
        condition, tokens = self.rng.choice(["%p0", "%p1"]), self.tokens_wanted()
        if not self.options.synchronous and not tokens and self.chance(0.7):
            tokens = 1
        blocks = top and self.chance(0.4)
        name = self.fresh("r")
        label = "^" + name[1:]
        results = [f"{label[1:]}_{i}" for i in range(tokens)]
        results = [f"%{result}" for result in results] if blocks else [f"{name}#{i}" for i in range(tokens)]
        if blocks:
            self.line(f"cf.cond_br {condition}, {label}a, {label}b")
        else:
            types = f" -> ({', '.join([TOKEN] * tokens)})" if tokens else ""
            self.line(f"{f'{name}:{tokens} = ' if tokens else ''}scf.if {condition}{types} {{")
        branches, given, bodies = [], [], []
        outside = self.captured()
        for side in "ab":
            if blocks:
                self.lines.append(f"  {label}{side}:")
            inner = state.inner()
            self.region(inner, budget // 2 if side == "a" or self.chance(0.6) else 0, depth - 1)
            pending = inner.pending(inner.uses) & inner.issued
            yielded = self.divided(inner, pending, tokens)
            if blocks:
                typed = f"({', '.join(yielded)} : {', '.join([TOKEN] * tokens)})" if tokens else ""
                self.line(f"cf.br {label}c{typed}")
            else:
                if tokens:
                    self.line(f"scf.yield {', '.join(yielded)} : {', '.join([TOKEN] * tokens)}")
                self.line("} else {" if side == "a" else "}")
            branches.append(inner)
            given.append(yielded)
            bodies.append(self.captured())
        if blocks:
            arguments = ", ".join(f"{result}: {TOKEN}" for result in results)
            self.lines.append(f"  {label}c{f'({arguments})' if tokens else ''}:")
        self.effects = outside
        yes, no = bodies
        self.effects.append(lambda env: execute(yes if env[condition] else no, env))
        state.join(branches, [(result, [side[i] for side in given]) for i, result in enumerate(results)])

    # Loops.

    def enter(self, state: State, names: list[str], tokens: int) -> tuple[State, list[list[str]], list[str]]:
        """Divides buffers among the tokens that go into a region. The state inside without tokens of its own, the
        groups, and the tokens that are given."""
        groups: list[list[str]] = [[] for _ in range(tokens)]
        for name in names:
            if tokens:
                self.rng.choice(groups).append(name)
        if tokens:
            given = [self.joined(state, state.pending(group)) for group in groups]
        else:
            self.wait(state, state.pending(names))
            given = []
        inner = state.inner()
        inner.uses = {name: use for name, use in inner.uses.items() if name in names}
        return inner, groups, given

    def inside(self, inner: State, groups: list[list[str]], arguments: Sequence[str]) -> None:
        for group, argument in zip(groups, arguments, strict=True):
            number = self.number()
            inner.replace(group, number)
            inner.tokens[argument] = frozenset({number})

    def leave(self, inner: State, groups: list[list[str]]) -> list[str]:
        if not groups:
            self.wait(inner, inner.pending(inner.uses))
        return [self.joined(inner, inner.pending(group)) for group in groups]

    def outside(self, state: State, groups: list[list[str]], results: Sequence[str]) -> None:
        for group, result in zip(groups, results, strict=True):
            number = self.number()
            state.issued.add(number)
            state.replace(group, number)
            state.tokens[result] = frozenset({number})

    def loop(self, state: State, budget: int, depth: int, top: bool) -> None:
        form = self.rng.choice(["for", "while", "blocks"] if top else ["for", "while"])
        tokens = self.tokens_wanted()
        names = [name for name in state.uses if self.chance(0.75)]
        inner, groups, given = self.enter(state, names, tokens)
        trips = "%k0" if top else "%k1"
        name, index = self.fresh("r"), self.fresh("i")
        label = "^" + name[1:]
        arguments = [f"%a{name[2:]}_{i}" for i in range(tokens)]
        results = [f"{name}#{i}" for i in range(tokens)]
        types = [TOKEN] * tokens
        self.inside(inner, groups, arguments)
        pairs = ", ".join(f"{argument} = {value}" for argument, value in zip(arguments, given, strict=True))
        more, typed = "".join(f", {value}" for value in given), "".join(f", {kind}" for kind in types)
        if form == "for":
            carried = f" iter_args({pairs}) -> ({', '.join(types)})" if tokens else ""
            head = f"{name}:{tokens} = " if tokens else ""
            self.line(f"{head}scf.for {index} = %c0 to {trips} step %c1{carried} {{")
        elif form == "while":
            before, condition = [f"%b{argument[1:]}" for argument in arguments], self.fresh("q")
            pairs = ", ".join(f"{argument} = {value}" for argument, value in zip(before, given, strict=True))
            start = self.fresh("i")
            results = [f"{name}#{i + 1}" for i in range(tokens)]
            carried = ", ".join(["index", *types])
            self.line(f"{name}:{tokens + 1} = scf.while ({start} = %c0{', ' + pairs if pairs else ''}) : "
                      f"({carried}) -> ({carried}) {{")  # fmt: skip
            self.line(f"{condition} = arith.cmpi ult, {start}, {trips} : index")
            self.line(f"scf.condition({condition}) {', '.join([start, *before])} : {carried}")
            block = ", ".join([f"{index}: index", *(f"{argument}: {TOKEN}" for argument in arguments)])
            self.line("} do {")
            self.lines.append(f"  ^bb0({block}):")
        else:
            condition, results = self.fresh("q"), arguments
            block = ", ".join([f"{index}: index", *(f"{argument}: {TOKEN}" for argument in arguments)])
            self.line(f"cf.br {label}h(%c0{more} : index{typed})")
            self.lines.append(f"  {label}h({block}):")
            self.line(f"{condition} = arith.cmpi ult, {index}, {trips} : index")
            self.line(f"cf.cond_br {condition}, {label}b, {label}e")
            self.lines.append(f"  {label}b:")
        outside = self.captured()
        turn = self.fresh("v")
        self.line(f"{turn} = arith.index_cast {index} : index to i32")
        inner.scalars.append(turn)
        self.region(inner, budget, depth - 1)
        yielded = self.leave(inner, groups)
        if form == "for":
            if tokens:
                self.line(f"scf.yield {', '.join(yielded)} : {', '.join(types)}")
            self.line("}")
        else:
            following = self.fresh("i")
            self.line(f"{following} = arith.addi {index}, %c1 : index")
            values, kinds = ", ".join([following, *yielded]), ", ".join(["index", *types])
            if form == "while":
                self.line(f"scf.yield {values} : {kinds}")
                self.line("}")
            else:
                self.line(f"cf.br {label}h({values} : {kinds})")
                self.lines.append(f"  {label}e:")
        body, self.effects = self.effects, outside

        def run(env: Env) -> None:
            for i in range(env[trips]):
                env[turn] = np.int32(i)
                execute(body, env)

        self.effects.append(run)
        self.outside(state, groups, results)

    # Calls.

    def make_helper(self) -> None:
        """A private function of some device buffers; its text goes before the program's."""
        lines, self.lines = self.lines, []
        effects = self.captured()
        tokens = self.tokens_wanted()
        kinds = [self.rng.choice(list(self.options.kinds)) for _ in range(self.rng.randint(1, 3))]
        name = f"{self.name}_h{len(self.helpers)}"
        formals = [self.fresh("f") for _ in kinds]
        state = State(scalars=["%s"])
        for formal, kind in zip(formals, kinds, strict=True):
            self.kind_of[formal], self.place[formal] = kind, "device"
            state.uses[formal] = Use(defined=True)
        inner, groups, _ = self.enter(state, formals, 0)
        which = [self.rng.randrange(tokens) if tokens else 0 for _ in formals]
        groups = [[f for f, group in zip(formals, which, strict=True) if group == i] for i in range(tokens)]
        arguments = [self.fresh("t") for _ in range(tokens)]
        self.inside(inner, groups, arguments)
        self.region(inner, self.rng.randint(2, 6), 1)
        returned = self.leave(inner, groups)
        typed = [f"{formal}: {self.memref(formal)}" for formal in formals]
        typed += ["%n: index", "%k1: index", "%p0: i1", "%p1: i1", "%s: i32", *(f"{a}: {TOKEN}" for a in arguments)]
        types = ", ".join([TOKEN] * tokens)
        head = f"  func.func private @{name}({', '.join(typed)}){f' -> ({types})' if tokens else ''} {{{PROLOGUE}"
        self.line(f"return {', '.join(returned)} : {types}" if tokens else "return")
        body, self.effects = self.effects, effects
        self.lines = [head, *self.lines, "  }", *lines]
        self.helpers.append(Helper(name, kinds, which, tokens, formals, body))

    def call(self, state: State, budget: int, depth: int, top: bool) -> None:
        for helper in self.rng.sample(self.helpers, len(self.helpers)):
            actuals: list[str] = []
            for kind in helper.kinds:
                able = [
                    name for name, use in state.uses.items()
                    if use.defined and name not in actuals and self.kind_of[name] == kind and self.place[name] != "host"
                ]  # fmt: skip
                if able:
                    actuals.append(self.rng.choice(able))
            if len(actuals) == len(helper.kinds):
                self.write_call(state, helper, actuals)
                return
        self.launch(state)

    def write_call(self, state: State, helper: Helper, actuals: list[str]) -> None:
        groups: list[list[str]] = [[] for _ in range(helper.tokens)]
        for actual, group in zip(actuals, helper.groups, strict=True):
            if helper.tokens:
                groups[group].append(actual)
        if not helper.tokens:
            self.wait(state, state.pending(actuals))
        given = [self.joined(state, state.pending(group)) for group in groups]
        scalar, name = self.scalar(state, "i32"), self.fresh("r")
        values = [*actuals, "%n", "%k1", "%p0", "%p1", scalar, *given]
        types = [*map(self.memref, actuals), "index", "index", "i1", "i1", "i32", *([TOKEN] * helper.tokens)]
        head = f"{name}:{helper.tokens} = " if helper.tokens else ""
        results = ", ".join([TOKEN] * helper.tokens)
        self.line(f"{head}func.call @{helper.name}({', '.join(values)}) : ({', '.join(types)}) -> ({results})")

        def run(env: Env) -> None:
            inner = {formal: env[actual] for formal, actual in zip(helper.formals, actuals, strict=True)}
            inner |= {name: env[name] for name in ("%n", "%k1", "%p0", "%p1")} | {"%s": env[scalar]}
            execute(helper.effects, inner)

        self.effects.append(run)
        if not helper.tokens:
            for actual in actuals:
                state.uses[actual] = Use(defined=True)
        self.outside(state, groups, [f"{name}#{i}" for i in range(helper.tokens)])


def generate(seed: int, options: Options | None = None) -> Program:
    """The program of a seed. Functions of different seeds can stand in one module beside `kernels.module`."""
    options = options or Options()
    rng = random.Random(seed)
    options = replace(options, kinds=rng.sample(list(options.kinds), min(2, len(options.kinds))))
    flow = Flow(f"f{seed}", rng, options)
    for _ in range(flow.rng.randint(0, 2)):
        flow.make_helper()
    helpers, flow.lines = flow.lines, []
    hosts = [flow.rng.choice(list(options.kinds)) for _ in range(flow.rng.randint(2, 5))]
    state = State(scalars=["%s"])
    for i, kind in enumerate(hosts):
        flow.kind_of[f"%h{i}"], flow.place[f"%h{i}"] = kind, "host"
        state.uses[f"%h{i}"] = Use(defined=True)
    flow.region(state, options.operations, 3, top=True)
    # What is still running may use this function's own memory, never the caller's.
    flow.wait(state, state.pending(state.uses))
    typed = [f"%h{i}: memref<?x{kind}>" for i, kind in enumerate(hosts)]
    typed += ["%n: index", "%k0: index", "%k1: index", "%p0: i1", "%p1: i1", "%s: i32"]
    head = f"  func.func @{flow.name}({', '.join(typed)}) {{{PROLOGUE}"
    text = "\n".join([*helpers, head, *flow.lines, "    return", "  }"])
    return Program(flow.name, text, hosts, flow.effects, flow.stated)


def module(programs: Sequence[Program], kinds: Sequence[str] = tuple(kernels.TYPES)) -> str:
    """The programs as one module."""
    functions = "\n".join(program.text for program in programs)
    return f"module attributes {{gpu.container_module}} {{\n{kernels.module(kinds)}\n{functions}\n}}\n"
