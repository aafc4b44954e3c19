"""The text of a module: its variables, functions and their instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from emulator.errors import EmulationError

from ptx.syntax import (
    Address,
    Function,
    Instruction,
    Number,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Variable,
    Vector,
)

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?|\d+\.\d+|\d+U?)
      | (?P<name>[%$_A-Za-z][\w$]*(?:(?:\.|::)[A-Za-z0-9_]+)*)
      | (?P<directive>\.[A-Za-z_]\w*(?:::\w+)?)
      | (?P<sign>[{}()\[\],;:@!|<>=+\-*])""",
    re.VERBOSE | re.DOTALL,
)
KINDS = {kind: size for size in (1, 2, 4, 8) for kind in (f"b{8 * size}", f"u{8 * size}", f"s{8 * size}")} | {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f16x2": 4, "bf16x2": 4, "b128": 16, "pred": 0,
}  # fmt: skip


class Module:
    """``registers`` has the kind of each, by key."""

    def __init__(self, text: str) -> None:
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.functions: dict[str, Function] = {}
        self.chip = ""
        _Reader(self, text).read()


class _Scope:
    def __init__(self, prefix: str, above: _Scope | None) -> None:
        self.prefix, self.above = prefix, above
        self.names: dict[str, str] = {}
        self.counted: list[tuple[str, str]] = []

    def find(self, name: str) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.above
        return None


class _Reader:
    def __init__(self, module: Module, text: str) -> None:
        self.module, self.text = module, text
        self.tokens = list(_tokens(text))
        self.at = self.scopes = 0
        self.scope = _Scope("", None)

    # Tokens

    @property
    def next(self) -> str:
        return self.tokens[self.at][1]

    def take(self, wanted: str | None = None) -> str:
        _, text, line = self.tokens[self.at]
        if wanted is not None and text != wanted:
            raise EmulationError(f"PTX line {line}: {text!r} where {wanted!r} is expected")
        self.at += 1
        return text

    def skip(self, text: str) -> bool:
        if self.next == text:
            self.at += 1
            return True
        return False

    def until(self, ends: str) -> list[str]:
        found = []
        while self.next != ends:
            found.append(self.take())
        return found

    # The module

    def read(self) -> None:
        linkage = {".visible", ".extern", ".weak", ".common"}
        while self.tokens[self.at][0] != "end":
            word = self.take()
            if word in linkage:
                continue
            if word in (".version", ".address_size"):
                self.take()
            elif word == ".target":
                self.module.chip = self.take()
                while self.skip(","):
                    self.take()
            elif word in (".global", ".const", ".shared"):
                self.module.variables += self.variables(word[1:], "")
            elif word in (".func", ".entry"):
                self.function(word == ".entry")
            elif word in (".file", ".pragma"):
                while self.tokens[self.at][0] in ("number", "text") or self.next in (",", ";"):
                    self.take()
            elif word == ".section":
                self.braces()
            elif word == ".alias":
                self.until(";")
                raise EmulationError("aliases are not known")
            elif word != ";":
                raise EmulationError(f"PTX line {self.tokens[self.at - 1][2]}: {word!r} is not known")

    def braces(self) -> None:
        self.until("{")
        self.take("{")
        self.until("}")
        self.take("}")

    def variables(self, space: str, prefix: str) -> list[Variable]:
        """``.align 4 .b8 name[16] = {…}, name;`` after the space."""
        align = kind = 0
        attributes = True
        while attributes and self.tokens[self.at][0] == "directive":
            word = self.take()[1:]
            if word == "align":
                align = int(self.take())
            elif word == "attribute":
                self.take("(")
                self.until(")")
                self.take(")")
            elif word == "ptr":  # of a parameter: what it points to
                while self.tokens[self.at][0] == "directive":
                    if self.take() == ".align":
                        self.take()
            elif word in KINDS:
                kind = KINDS[word]
        found = []
        while True:
            name = self.take()
            count, open_ended = 1, False
            while self.skip("["):
                if self.skip("]"):
                    open_ended = True
                else:
                    count *= int(self.take())
                    self.take("]")
            values: tuple[tuple[Operand, int | None], ...] = ()
            if self.skip("="):
                values = tuple(self.initial())
            key = prefix + name
            self.scope.names[name] = key
            found.append(Variable(key, space, kind * count, align or kind, kind, values, open_ended))
            if space == "param" or not self.skip(","):
                break
        return found

    def initial(self) -> Iterator[tuple[Operand, int | None]]:
        if self.skip("{"):
            while not self.skip("}"):
                yield from self.initial()
                self.skip(",")
            return
        mask = None
        if self.tokens[self.at + 1][1] == "(" and self.tokens[self.at][0] == "number":
            mask = int(self.take(), 16)
            self.take("(")
        yield self.operand(), mask
        if mask is not None:
            self.take(")")

    def function(self, is_kernel: bool) -> None:
        self.scope = _Scope("", self.scope)
        results = self.parameters() if self.next == "(" else []
        name = self.take()
        prefix = f"{name}:"
        function = Function(name, is_kernel, results)
        for result in results:
            result.key = prefix + result.key
            self.scope.names[result.key.removeprefix(prefix)] = result.key
        if self.next == "(":
            function.params = self.parameters(prefix)
        while self.tokens[self.at][0] == "directive":
            word = self.take()
            function.limits[word] = [int(text) for text in self.limit()]
        if self.next == "{":
            function.has_body = True
            self.scope.prefix = prefix
            self.body(function)
        else:
            self.take(";")
        assert self.scope.above is not None
        self.scope = self.scope.above
        if function.has_body or name not in self.module.functions:
            self.module.functions[name] = function

    def limit(self) -> Iterator[str]:
        while self.tokens[self.at][0] == "number":
            yield self.take()
            if not self.skip(","):
                return

    def parameters(self, prefix: str = "") -> list[Variable]:
        self.take("(")
        found = []
        while not self.skip(")"):
            self.take(".param")
            found += self.variables("param", prefix)
            self.skip(",")
        return found

    # A function's body

    def body(self, function: Function) -> None:
        """One scope, from its brace to its brace."""
        self.take("{")
        self.scopes += 1
        self.scope = _Scope(f"{function.name}:{self.scopes}:", self.scope)
        self.find_labels(function)
        while not self.skip("}"):
            kind, word, line = self.tokens[self.at]
            if word == "{":
                self.body(function)
            elif kind == "directive":
                self.directive(function, self.take())
            elif kind == "name" and self.tokens[self.at + 1][1] == ":":
                label = self.scope.names[word]
                function.labels[label] = len(function.body)
                self.at += 2
                if self.next == ".callprototype":
                    self.until(";")
                    self.take(";")
                elif self.skip(".branchtargets"):
                    function.targets[label] = [each.key for each in self.list(";") if isinstance(each, Symbol)]
            else:
                self.instruction(function, line)
        assert self.scope.above is not None
        self.scope = self.scope.above

    def find_labels(self, function: Function) -> None:
        """Labels of this scope, which instructions may name before they come."""
        depth, at = 0, self.at
        while depth >= 0:
            _, text, _ = self.tokens[at]
            depth += (text == "{") - (text == "}")
            before, after = self.tokens[at - 1][1], self.tokens[at + 1][1]
            if depth == 0 and after == ":" and before in (";", "{", "}", ":") and self.tokens[at][0] == "name":
                self.scope.names[text] = self.scope.prefix + text
            at += 1

    def directive(self, function: Function, word: str) -> None:
        if word == ".reg":
            kind = self.take()[1:]
            while True:
                name = self.take()
                if self.skip("<"):
                    self.scope.counted.append((name, kind))
                    self.take()
                    self.take(">")
                else:
                    self.register(self.scope, name, kind)
                if not self.skip(","):
                    break
            self.take(";")
        elif word in (".local", ".shared", ".param"):
            function.variables += self.variables(word[1:], self.scope.prefix)
            self.take(";")
        elif word == ".loc":
            while self.tokens[self.at][0] == "number" or self.next in (",", "function_name", "inlined_at"):
                if self.take() == "function_name":
                    self.take()
        elif word == ".pragma":
            self.until(";")
            self.take(";")
        else:
            raise EmulationError(f"PTX line {self.tokens[self.at][2]}: {word!r} in a function is not known")

    def register(self, scope: _Scope, name: str, kind: str) -> str:
        key = scope.names[name] = scope.prefix + name
        self.module.registers[key] = kind
        return key

    def instruction(self, function: Function, line: int) -> None:
        guard = None
        begin = self.at
        if self.skip("@"):
            negated = self.skip("!")
            found = self.operand()
            assert isinstance(found, Register)
            guard = Register(found.key, negated)
        op = tuple(self.take().split("."))
        operands = []
        while not self.skip(";"):
            operands.append(self.operand())
            self.skip(",")
        text = " ".join(token[1] for token in self.tokens[begin : self.at])
        function.body.append(Instruction(op, tuple(operands), guard, line, text))

    def operand(self) -> Operand:
        if self.skip("{"):
            return Vector(self.list("}"))
        if self.skip("("):
            return Vector(self.list(")"))
        if self.skip("["):
            base, *rest = self.list("]")
            offset = 0
            if isinstance(base, Symbol):
                base, offset = Symbol(base.key), base.offset
            elif isinstance(base, Address):
                base, offset = base.base, base.offset
            return Address(base, offset, tuple(rest))
        if self.skip("!"):
            found = self.operand()
            assert isinstance(found, Register)
            return Register(found.key, negated=True)
        found = self.simple()
        if self.skip("|"):
            return Pair((found, self.simple()))
        if self.next in ("+", "-") and not isinstance(found, Number):
            sign = -1 if self.take() == "-" else 1
            offset = sign * int(self.signed())
            return Symbol(found.key, offset) if isinstance(found, Symbol) else Address(found, offset)
        return found

    def signed(self) -> str:
        return ("-" if self.skip("-") else "") + self.take().rstrip("U")

    def list(self, end: str) -> tuple[Operand, ...]:
        found = []
        while not self.skip(end):
            found.append(self.operand())
            self.skip(",")
        return tuple(found)

    def simple(self) -> Operand:
        kind, text, line = self.tokens[self.at]
        if kind == "number" or text == "-":
            return Number(self.signed())
        self.at += 1
        if kind != "name":
            raise EmulationError(f"PTX line {line}: {text!r} is no operand")
        if text == "generic" and self.skip("("):
            found = self.operand()
            self.take(")")
            return found
        key = self.scope.find(text) or self.counted(text)
        if key in self.module.registers:
            return Register(key)
        if text.startswith("%") or text == "WARP_SZ":
            return Special(text)
        return Symbol(key or text)

    def counted(self, name: str) -> str | None:
        """A register of ``.reg .b32 %r<5>``."""
        scope: _Scope | None = self.scope
        stem = name.rstrip("0123456789")
        while scope is not None and stem != name:
            for prefix, kind in scope.counted:
                if prefix == stem:
                    return self.register(scope, name, kind)
            scope = scope.above
        return None


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    at, line = 0, 1
    while at < len(text) and text[at] != "\0":
        found = _TOKEN.match(text, at)
        if not found:
            raise EmulationError(f"PTX line {line}: {text[at : at + 20]!r} is not known")
        if found.lastgroup != "skip":
            yield str(found.lastgroup), found.group(), line
        line += found.group().count("\n")
        at = found.end()
    yield "end", "", line
