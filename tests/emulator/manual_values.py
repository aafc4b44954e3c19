"""Expressions of the manuals' descriptions as expressions of Python: what a description reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from emulator import manual_math
from emulator.manual_text import ManualError, Node, parse
from emulator.manual_types import common, container, convert, is_float, literal, promoted, split

LANE = ("name", "laneId")
_CONSTANTS = {
    "INF": ("np.float64(np.inf)", "f64"), "NAN": ("np.float64(np.nan)", "f64"), "PI": ("np.float64(np.pi)", "f64"),
    "OVERFLOW_F32": ("np.float32(np.inf)", "f32"), "UNDERFLOW_F32": ("np.float32(0)", "f32"),
    "OVERFLOW_F64": ("np.float64(np.inf)", "f64"), "UNDERFLOW_F64": ("np.float64(0)", "f64"),
    "MAX_FLOAT_F32": ("np.finfo(np.float32).max", "f32"),
}  # fmt: skip
_COMPARE = {"==": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass
class Values(ABC):
    """What is known while a description is compiled, and its expressions: each is code and a type."""

    widths: dict[str, int]
    others: Callable[[str], str]
    lines: list[str] = field(default_factory=list)
    variables: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: code, type
    arrays: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    lambdas: dict[str, tuple[list[str], list[Node]]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    mask: str = ""  # where statements take effect; empty: in all lanes
    live: str = ""  # the variable with the lanes that have not left the loop or returned
    result: str = ""
    narrow: bool = False
    count: int = 0
    inlined: int = 0

    @abstractmethod
    def body(self, statements: list[Node]) -> None:
        """Compiles statements."""

    @abstractmethod
    def store(self, name: str, code: str, kind: str, output: bool = False) -> None:
        """Assigns to a variable."""

    def fresh(self, code: str) -> str:
        """A new variable with the value of some code."""
        self.count += 1
        self.lines.append(f"t{self.count} = {code}")
        return f"t{self.count}"

    def constant(self, node: Node) -> float | bool | None:
        """The value where it is known now."""
        if node[0] == "number":
            return node[1]
        if node[0] == "name" and self.variables.get(node[1], ("", ""))[1] == "literal":
            return int(self.variables[node[1]][0])
        if node[0] == "binary":
            left, right = self.constant(node[2]), self.constant(node[3])
            if left is not None and right is not None and node[1] in "+-*":
                return {"+": left + right, "-": left - right, "*": left * right}[node[1]]
        return None

    def width(self, high: Node, low: Node) -> int:
        """How many bits ``[high : low]`` are; at least the difference must be constant."""
        first, last = self.constant(high), self.constant(low)
        if first is not None and last is not None:
            return abs(int(first) - int(last)) + 1
        if high == low:
            return 1
        if high[:2] == ("binary", "+") and high[2] == low:
            return int(self.constant(high[3]) or 0) + 1
        if high[:2] == ("binary", "-") and high[2][:3] == ("binary", "+", low):
            return int(self.constant(high[2][3]) or 0)
        raise ManualError(f"bits {high} to {low}")

    def amount(self, node: Node, kind: str) -> str:
        constant = self.constant(node)
        if constant is not None:
            return literal(constant, kind)
        return self.typed(*self.value(node), kind)

    def truth(self, node: Node) -> str:
        return self.as_mask(*self.value(node))

    def as_mask(self, code: str, kind: str) -> str:
        if kind == "literal":
            return f"(w.all_lanes if {code} else ~w.all_lanes)"
        return code if split(kind)[1] == 1 else f"({code} != 0)"

    def typed(self, code: str, kind: str, wanted: str) -> str:
        if kind == "literal":
            return literal(float(code) if is_float(wanted) else int(code), wanted)
        return convert(code, kind, wanted)

    def value(self, node: Node) -> tuple[str, str]:
        code, kind = getattr(self, f"get_{node[0]}")(*node[1:])
        return code, kind

    def get_number(self, value: float, kind: str) -> tuple[str, str]:
        if kind == "literal" or kind[0] == "b" or (kind[0] == "u" and split(kind)[1] not in (1, 32, 64)):
            return str(value), "literal"
        return literal(value, kind), kind

    def get_name(self, name: str) -> tuple[str, str]:
        if name in self.variables:
            return self.variables[name]
        if name in ("S0", "S1", "S2", "D0"):
            self.reads.add(name)
            return name, f"u{self.widths[name]}"
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        special = {
            "SCC": ("w.scc_value()", "u1"), "laneId": ("w.lane", "u32"), "EXEC": ("w.exec_value()", "u64"),
            "SIMM16": ("i.simm16", "i16"), "SIMM32": ("i.simm32", "u32"), "OPSEL": ("i.opsel", "u32"),
            "OPSEL_HI": ("i.opsel_hi", "u32"), "M0": ("w.m0_value()", "u32"), "NEG": ("i.neg", "u32"),
            "WAVE32": ("w.is_wave32", "u1"), "WAVE64": ("~w.is_wave32", "u1"),
            "SDWA_SRC0_SEL": ("i.src0_sel", "u32"), "BYTE1": ("np.uint32(1)", "u32"),
            "BYTE2": ("np.uint32(2)", "u32"), "BYTE3": ("np.uint32(3)", "u32"), "WORD1": ("np.uint32(5)", "u32"),
        }.get(name)  # fmt: skip
        if special is None:
            raise ManualError(f"an unknown name: {name}")
        return special

    def get_as(self, inner: Node, wanted: str) -> tuple[str, str]:
        if inner == ("name", "WAVE_MODE"):
            return f"w.mode_{wanted.lower()}", "u1"
        inner = plain(inner)
        if inner[0] == "unary" and inner[1] in "+-":  # -INF.f32
            return self.get_unary(inner[1], ("as", inner[2], wanted))
        code, kind = self.value(inner)
        if wanted == "u":
            wanted = "u32"
        return self.typed(code, kind, wanted), wanted

    def get_bit(self, inner: Node, index: Node) -> tuple[str, str]:
        register = plain(("bit", inner, index))
        if register[0] == "name":
            return self.value(register)
        if index == LANE and root(inner) in ("VCC", "S2"):
            return "MASK", "u1"
        if inner[0] == "name" and inner[1] in self.arrays:
            names, kind = self.arrays[inner[1]]
            position = self.constant(index)
            if position is not None:
                return self.variables.get(names[int(position)], (names[int(position)], kind))
            elements = ", ".join(self.variables[name][0] for name in names)
            return f"f.pick([{elements}], {self.typed(*self.value(index), 'u32')})", kind
        code, kind = self.value(inner)
        full = f"u{split(kind)[1]}"
        code = convert(code, kind, full)
        return f"(({code} >> {self.amount(index, full)}) & 1).astype(bool)", "u1"

    def get_bits(self, inner: Node, high: Node, low: Node) -> tuple[str, str]:
        code, kind = self.value(plain(inner))
        width = self.width(high, low)
        if kind == "literal":
            return code, kind
        full = f"u{split(kind)[1]}"
        code = convert(code, kind, full)
        first, last = self.constant(high), self.constant(low)
        if first is not None and last is not None and first < last:
            return f"f.reversed_bits({code}, {width})", f"b{width}"
        if last != 0:
            code = f"({code} >> {self.amount(low, full)})"
        return convert(code, full, f"u{width}"), f"u{width}"

    def get_cast(self, kind: str, inner: Node) -> tuple[str, str]:
        if kind in ("u65", "b65"):
            return self.wide(kind, inner)
        if kind == "bf16":
            raise ManualError("rounding to bf16 by a cast")
        code, given = self.value(inner)
        if given == "bf16" and is_float(kind):
            return convert(f"f.bf16_to_f32({code})", "f32", kind), kind
        if given == "literal" and is_float(kind):
            code, given = literal(int(code), f"u{split(kind)[1]}"), f"u{split(kind)[1]}"
        return self.typed(code, given, kind), kind

    def wide(self, kind: str, inner: Node) -> tuple[str, str]:
        """65 bits occur as a product and sum only."""
        if kind == "b65" or (kind == "u65" and inner[0] == "binary"):
            (_, _, (_, _, first, second), third) = inner
            signed = "I" in repr(inner) or "'i" in repr(inner)
            codes = [self.value(part[2] if part[0] == "cast" else part)[0] for part in (first, second, third)]
            return f"f.multiply_add_{'signed' if signed else 'unsigned'}({', '.join(codes)})", "u64"
        raise ManualError("65 bits")

    def get_join(self, parts: list[Node]) -> tuple[str, str]:
        pieces = []
        for part in reversed(parts):
            if part[0] == "number":
                pieces.append((str(part[1]), "literal", split(part[2])[1]))
            else:
                code, kind = self.value(part)
                pieces.append((code, kind, split(kind)[1]))
        total = sum(width for _, _, width in pieces)
        full, shift, terms = f"u{total}", 0, []
        for code, kind, width in pieces:
            bits = (
                literal(int(code), full)
                if kind == "literal"
                else convert(convert(code, kind, f"u{width}"), f"u{width}", full)
            )
            terms.append(f"({bits} << np.{container(full)}({shift}))" if shift else f"{bits}")
            shift += width
        return f"({' | '.join(terms)})", full

    def get_choose(self, test: Node, yes: Node, no: Node) -> tuple[str, str]:
        condition = self.truth(test)
        first, second = self.value(yes), self.value(no)
        kind = first[1] if first[1] == second[1] else common(first[1], second[1])
        if kind == "literal":
            kind = "i32"
        return f"np.where({condition}, {self.typed(*first, kind)}, {self.typed(*second, kind)})", kind

    def get_unary(self, operator: str, inner: Node) -> tuple[str, str]:
        code, kind = self.value(inner)
        if operator == "!":
            return f"~{self.as_mask(code, kind)}", "u1"
        if kind == "literal":
            return {"-": f"-{code}", "+": code, "~": str(~int(code))}[operator], kind
        if operator == "~" or is_float(kind) or operator == "+":
            return ({"+": code}.get(operator, f"({operator}{code})")), kind
        wide = promoted(kind)
        return f"({operator}{convert(code, kind, wide)})", wide

    def get_binary(self, operator: str, left: Node, right: Node) -> tuple[str, str]:
        if operator in ("&&", "||"):
            return f"({self.truth(left)} {operator[0]} {self.truth(right)})", "u1"
        known = self.constant(("binary", operator, left, right))
        if known is not None:
            return str(known), "literal"
        if operator == "==" and right[0] == "unary" and right[2][:2] == ("number", 0.0):  # of zeros this one
            (code, _), sign = self.value(left), "" if right[1] == "-" else "~"
            return f"(({code} == 0) & {sign}np.signbit({code}))", "u1"
        if operator == "*" and right[:2] == ("binary", "**"):
            return self.scaled(left, right)
        if operator == "*" and left[:2] == ("binary", "**"):
            return self.scaled(right, left)
        if operator == "*" and right[0] == "cast" and right[2][:2] == ("binary", "**"):
            return self.scaled(left, right[2])
        (first, kind), (second, other) = self.value(left), self.value(right)
        if operator in ("<<", ">>"):
            if kind == "literal":
                kind = "i32" if other == "literal" or split(other)[1] <= 32 else "i64"
                first = literal(int(first), kind)
            wide = promoted(kind)
            amount = literal(int(second), wide) if other == "literal" else convert(second, other, wide)
            return f"({convert(first, kind, wide)} {operator} {amount})", wide
        if kind == other == "u1" and operator in ("&", "|", "^", "==", "!="):
            return f"({first} {operator} {second})", "u1"
        if "u1" in (kind, other) and "literal" in (kind, other) and operator in ("==", "!="):
            truth = f"{first if kind == 'u1' else second}"
            same = bool(int(second if kind == "u1" else first)) == (operator == "==")
            return truth if same else f"(~{truth})", "u1"
        wanted = common(kind, other)
        if wanted == "literal":
            wanted = "i32"
        first, second = self.typed(first, kind, wanted), self.typed(second, other, wanted)
        if operator == "<>" and is_float(wanted):  # false where either is NaN
            return f"(({first} < {second}) | ({first} > {second}))", "u1"
        if operator in _COMPARE:
            return f"({first} {_COMPARE[operator]} {second})", "u1"
        if operator == "/" and not is_float(wanted):
            operator = "//"
        return f"({first} {operator} {second})", wanted

    def scaled(self, factor: Node, power: Node) -> tuple[str, str]:
        """x * 2.0 ** n in one step, since 2.0 ** n alone may overflow."""
        code, kind = self.value(factor)
        exponent, given = self.value(power[3])
        return f"f.ldexp({code}, {self.typed(exponent, given, 'i32')})", kind

    def get_call(self, name: str, arguments: list[Node]) -> tuple[str, str]:
        if name in self.lambdas:
            return self.inline(name, arguments)
        if name in ("isSignalNAN", "isQuietNAN", "isNAN", "cvtToQuietNAN") and arguments[0][0] == "cast":
            return self.get_call(name, [arguments[0][2]])  # a cast would quiet it first
        values = [self.value(argument) for argument in arguments]
        name = {"v_cvt_i16_f32": "f32_to_i16", "v_cvt_u16_f32": "f32_to_u16"}.get(name, name)  # described nowhere
        if name.startswith("v_"):
            return self.operation(name, values)
        codes = [
            literal(float(code), "f32")
            if kind == "literal" and "." in code
            else literal(int(code), "i32")
            if kind == "literal"
            else code
            for code, kind in values
        ]
        kinds = ["i32" if kind == "literal" else kind for _, kind in values]
        if name == "signext":
            return convert(codes[0], kinds[0], "i64"), "i64"
        small = any(kind in name for kind in ("fp8", "bf8", "fp4", "fp6", "bf6"))
        if not small and not hasattr(manual_math, name):
            raise ManualError(f"an unknown function: {name}")
        made = manual_math.RESULTS.get(name, "")
        if "_to_" in name:
            given, _, rest = name.partition("_to_")
            made = rest.split("_")[0]
            if given not in ("f32", "f16", "f64") and kinds[0] != given:
                codes[0] = convert(codes[0], kinds[0], given)
        return f"{'w.small' if small else 'f'}.{name}({', '.join(codes)})", made or kinds[0]

    def operation(self, name: str, values: list[tuple[str, str]]) -> tuple[str, str]:
        """An operation within another: v_min_f32(a, b)."""
        kind = values[0][1]
        inner = type(self)({"D0": max(32, split(kind)[1]), "S0": 32, "S1": 32, "S2": 32}, self.others)
        self.inlined += 1
        inner.count = self.count + 1000 * self.inlined
        inner.variables = {f"S{index}": (self.fresh(code), given) for index, (code, given) in enumerate(values)}
        width = inner.widths["D0"]
        inner.variables["D0"] = (literal(0, f"u{width}"), f"u{width}")
        inner.body(parse(self.others(name)))
        inner.lines = [line.replace("v_", f"v{inner.count}_") for line in inner.lines]
        self.lines += inner.lines
        code, held = inner.variables["D0"]
        return convert(code.replace("v_", f"v{inner.count}_"), held, kind), kind

    def inline(self, name: str, arguments: list[Node]) -> tuple[str, str]:
        parameters, statements = self.lambdas[name]
        saved = dict(self.variables), dict(self.arrays), self.mask, self.live, self.result
        for parameter, argument in zip(parameters, arguments, strict=True):
            code, kind = self.value(argument)
            self.variables[parameter] = (self.fresh(code), kind) if kind != "literal" else (code, kind)
        self.mask, self.live = "", ""
        self.count += 1
        self.result = f"result{self.count}"
        if len(statements) > 1 or statements[0][0] != "return":
            self.live = self.fresh("w.all_lanes")
        self.body(statements)
        code, kind = self.variables[self.result]
        self.variables, self.arrays, self.mask, self.live, self.result = saved
        return code, kind


def root(node: Node) -> str:
    """The name at the bottom of fields and bits."""
    while node[0] in ("as", "bit", "bits"):
        node = node[1]
    return str(node[1])


def plain(node: Node) -> Node:
    """VGPR[laneId][VDST.u32] is D0, and SRC0 the first source."""
    if node[0] == "bit" and node[1] == ("bit", ("name", "VGPR"), LANE):
        name = {"VDST": "D0", "SRC0": "S0", "SRC1": "S1", "SRC2": "S2"}.get(root(node[2]))
        if name:
            return ("name", name)
    if node[0] in ("as", "bits"):
        return (node[0], plain(node[1]), *node[2:])
    return node
