"""Descriptions of the ISA manuals as Python functions over all lanes of a wave.

``compiled(op)`` gives a :class:`Meaning`: a function of the sources, the old destination and the lane's bit of the mask
read, which returns the new destination and masks. Divergence inside a description becomes selection by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator import manual_math
from emulator.manual_text import ManualError, Node, parse
from emulator.manual_types import convert, is_float, literal, split
from emulator.manual_values import LANE, Values, plain, root


@dataclass
class Meaning:
    """What an instruction does.

    ``run(w, i, S0, S1, S2, D0, MASK)`` takes the wave, the instruction, raw sources, the old destination and the mask
    that is read (VCC or src2), and returns values for ``outputs``: "D0" raw bits, "D0M", "VCC" and "EXEC" masks, "SCC".
    ``narrow``: D0 is 16 bits that leave the other half of the register alone, where the family does so.
    """

    run: Callable[..., tuple[Any, ...]]
    outputs: tuple[str, ...]
    narrow: bool
    text: str
    reads: frozenset[str] = frozenset()


def meaning(name: str, text: str, widths: Mapping[str, int], others: Callable[[str], str]) -> Meaning:
    """Compiles a description. ``widths``: bits of S0… and D0; ``others`` gives the description of another operation."""
    writer = _Writer(dict(widths), others)
    writer.body(parse(text))
    outputs = tuple(writer.outputs)
    lines = ["def run(w, i, S0, S1, S2, D0, MASK):", *(f"    {line}" for line in writer.lines)]
    lines.append(f"    return ({''.join(f'{writer.variables[o][0]}, ' for o in outputs)})")
    scope: dict[str, Any] = {"np": np, "f": manual_math}
    source = "\n".join(lines)
    exec(compile(source, f"<{name}>", "exec"), scope)  # the tables of the manual, not anybody's input
    return Meaning(scope["run"], outputs, writer.narrow, source, frozenset(writer.reads))


class _Writer(Values):
    """Compiles the statements of a description."""

    def body(self, statements: list[Node]) -> None:
        for statement in statements:
            getattr(self, f"do_{statement[0]}")(*statement[1:])

    def active(self) -> str:
        if self.live:
            return f"({self.mask} & {self.live})" if self.mask else self.live
        return self.mask

    def do_if(self, branches: list[tuple[Node, list[Node]]], otherwise: list[Node]) -> None:
        outer = self.mask
        remaining = outer
        for test, statements in branches:
            constant = self.constant(test)
            if constant is not None:
                if constant:
                    self.mask = remaining
                    self.body(statements)
                    self.mask = outer
                    return
                continue
            condition = self.fresh(self.truth(test))
            self.mask = self.fresh(f"{remaining} & {condition}") if remaining else condition
            self.body(statements)
            remaining = self.fresh(f"{remaining} & ~{condition}") if remaining else self.fresh(f"~{condition}")
        self.mask = remaining
        self.body(otherwise)
        self.mask = outer

    def do_for(self, name: str, first: Node, last: Node, statements: list[Node]) -> None:
        start, end = self.constant(first), self.constant(last)
        if start is None or end is None:
            raise ManualError(f"a loop over {first} to {last}")
        outer = self.live
        if any("break" in repr(statement) for statement in statements):
            self.live = self.fresh("w.all_lanes")
            if outer:
                self.lines.append(f"{self.live} = {outer}")
        for value in range(int(start), int(end) + 1):
            self.variables[name] = (str(value), "literal")
            self.body(statements)
        self.live = outer

    def do_break(self) -> None:
        self.lines.append(f"{self.live} = {self.live} & ~{self.mask}" if self.mask else f"{self.live} = ~w.all_lanes")

    def do_return(self, value: Node) -> None:
        code, kind = self.value(value)
        known = self.variables.get(self.result)
        wanted = known[1] if known else "i32" if kind == "literal" else kind
        self.store(self.result, self.typed(code, kind, wanted), wanted)
        if self.live:
            self.do_break()

    def do_declare(self, name: str, kind: str, count: int) -> None:
        if count:
            self.arrays[name] = ([f"{name}_{index}" for index in range(count)], kind)
            if name == "S":
                self.arrays[name] = (["S0", "S1", "S2"], "b32")
        else:
            self.variables[name] = (literal(0, kind), kind)

    def do_lambda(self, name: str, parameters: list[str], statements: list[Node]) -> None:
        self.lambdas[name] = (parameters, statements)

    def do_set(self, targets: list[Node], operator: str, value: Node) -> None:
        if root(targets[0]) in ("ROUND_MODE", "prev_mode", "TRAPSTS"):
            if value == ("name", "ROUND_TOWARD_ZERO"):
                raise ManualError("rounding towards zero")
            return
        if operator:
            value = ("binary", operator, targets[0], value)
        code, kind = self.value(value)
        for target in targets:
            self.assign(target, code, kind)

    def assign(self, target: Node, code: str, kind: str) -> None:
        target = plain(target)
        if target[0] == "join":  # { D1.u1, D0.u64 } = …: the carry, then the rest
            rest = target[1][1]
            self.assign(rest, f"{code}[1]", "u64")
            self.assign(("bit", ("as", ("name", "VCC"), "u64"), LANE), f"{code}[0]", "u1")
            return
        if (target[0] == "bit" and target[2] == LANE) or target == ("name", "VCC"):
            name = {"D0": "D0M"}.get(root(target), root(target))
            self.store(name, self.as_mask(code, kind), "u1", output=True)
            return
        if target[0] == "as" and target[1][0] == "name":
            name, wanted = target[1][1], target[2]
            if name in ("D0", "SCC", "EXEC"):
                self.store_output(name, code, kind, wanted)
            else:
                self.store(name, self.typed(code, kind, wanted), wanted)
        elif target[0] == "name":
            if target[1] in ("D0", "SCC", "EXEC"):
                self.store_output(target[1], code, kind, "")
            else:
                known = self.variables.get(target[1])
                wanted = known[1] if known and known[1] != "literal" else kind
                if kind == "literal":
                    wanted = wanted if wanted != "literal" else "i32"
                self.store(target[1], self.typed(code, kind, wanted), wanted)
        elif target[0] in ("bits", "bit", "as"):
            self.assign_bits(target, code, kind)
        else:
            raise ManualError(f"an assignment to {target}")

    def store_output(self, name: str, code: str, kind: str, wanted: str) -> None:
        width = 1 if name == "SCC" else 64 if name == "EXEC" else self.widths["D0"]
        if name == "D0" and wanted and split(wanted)[1] == 16:
            self.narrow = True
        if wanted:
            code, kind = self.typed(code, kind, wanted), wanted
        if kind == "literal":
            code, kind = literal(int(code), f"u{width}"), f"u{width}"
        self.store(name, convert(code, kind, f"u{width}"), f"u{width}", output=True)

    def store(self, name: str, code: str, kind: str, output: bool = False) -> None:
        if output and name not in self.outputs:
            self.outputs.append(name)
        active = self.active()
        variable = f"v_{name}"
        if active:
            old = self.variables.get(name)
            if old is None and output:
                old = self.old(name)
            if old is not None and old[1] != kind:
                old = (self.typed(*old, kind), kind)
            if old is not None:
                code = f"np.where({active}, {code}, {old[0]})"
        self.lines.append(f"{variable} = {code}")
        self.variables[name] = (variable, kind)

    def old(self, name: str) -> tuple[str, str] | None:
        """What an output is before the instruction."""
        self.reads.add(name)
        if name == "D0":
            return "D0", f"u{self.widths['D0']}"
        return {"SCC": ("w.scc_value()", "u1"), "EXEC": ("w.exec_value()", "u64")}.get(name)

    def assign_bits(self, target: Node, code: str, kind: str) -> None:
        wanted = ""
        if target[0] == "as":
            target, wanted = target[1], target[2]
        if target[0] not in ("bits", "bit"):
            raise ManualError(f"an assignment to {target}")
        base = target[1][1] if target[1][0] == "as" else target[1]
        if base[0] == "bit" and base[1][1] in self.arrays:
            raise ManualError("bits of an array")
        name = base[1]
        if target[0] == "bit" and name in self.arrays:
            names, element = self.arrays[name]
            self.store(names[int(self.constant(target[2]) or 0)], self.typed(code, kind, element), element)
            return
        high = target[2]
        low = target[3] if target[0] == "bits" else high
        width = self.width(high, low)
        if name not in self.variables:
            if name in ("D0", "EXEC", "SCC"):
                self.variables[name] = self.old(name) or ("", "")
            else:
                self.variables[name] = ("np.uint64(0)", "u64")
        variable, held = self.variables[name]
        full = f"u{split(held)[1]}"
        if width == split(held)[1] and self.constant(low) == 0:
            bits = self.typed(code, kind, wanted) if wanted else code
            self.store(name, convert(bits, wanted or kind, full), full, output=name == "D0")
            return
        bits = self.typed(code, kind, wanted) if wanted and kind != wanted else code
        kind = wanted or kind
        if kind == "literal":
            bits, kind = literal(int(code), full), full
        else:
            bits = convert(convert(bits, kind, f"u{width}"), f"u{width}", full)
        shift = self.amount(low, full)
        ones = literal((1 << width) - 1, full)
        before = convert(variable, held, full)
        code = f"(({before}) & ~({ones} << {shift})) | ({bits} << {shift})"
        if is_float(held):
            code = convert(f"({code})", full, held)
            full = held
        self.store(name, code, full, output=name in ("D0", "EXEC", "SCC"))
