"""The language of the ISA manuals' descriptions of instructions: text to a tree.

The nodes are tuples whose first item names them: ``("name", n)``, ``("number", value, type)``, ``("as", x, type)`` for
``x.f32``, ``("bit", x, i)``, ``("bits", x, high, low)``, ``("cast", type, x)`` for ``32'F(x)``, ``("call", f, args)``,
``("unary", op, x)``, ``("binary", op, x, y)``, ``("choose", c, x, y)``, ``("join", parts)`` for ``{ high, low }``.
Statements: ``("set", targets, op, x)``, ``("if", [(condition, body)…], otherwise)``,
``("for", name, first, last, body)``, ``("declare", name, type, count)``,
``("lambda", name, parameters, body)``, ``("return", x)``, ``("break",)``.
"""

from __future__ import annotations

import re
from typing import Any

Node = tuple[Any, ...]

_TOKEN = re.compile(
    r"""\s*(?:(?P<cast>\d+'(?:BF|[UIFB])(?=\s*[(\[;]|\s*$))
      | (?P<number>(?:\d+')?(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)(?:ULL|LL|U|F|I|L)?)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign>\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|\+:|[-+*/%&|^~!<>=?:;,.(){}\[\]]))""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"(?:(\d+)')?(0x[0-9a-fA-F]+|\d+\.\d+|\d+)(ULL|LL|U|F|I|L)?")
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", "<=", ">", ">="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"), ("**",),
)  # fmt: skip
_ENDS = ("endif", "endfor", "elsif", "else", ")")


class ManualError(Exception):
    """A description that cannot be read or has no meaning here."""


def parse(text: str) -> list[Node]:
    """The statements of a description."""
    parser = _Parser(re.sub(r"//[^\n]*", "", text))
    body = parser.statements()
    if parser.ahead:
        raise ManualError(f"cannot read {parser.ahead!r} in: {text}")
    return body


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position, text = 0, text.strip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if not found:
                raise ManualError(f"cannot read: {text[position:]}")
            self.tokens.append(found.group().strip())
            position = found.end()
        self.at = 0

    @property
    def ahead(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.ahead
        if not token or (wanted and token != wanted):
            raise ManualError(f"{token!r} where {wanted or 'more'!r} was expected: {' '.join(self.tokens)}")
        self.at += 1
        return token

    def taken(self, wanted: str) -> bool:
        if self.ahead == wanted:
            self.at += 1
            return True
        return False

    def statements(self) -> list[Node]:
        body: list[Node] = []
        while self.ahead and self.ahead not in _ENDS:
            if not self.taken(";"):
                body.append(self.statement())
        return body

    def statement(self) -> Node:
        if self.taken("if"):
            return self.condition()
        if self.taken("for"):
            name = self.take()
            self.take("in")
            first = self.expression()
            self.take(":")
            last = self.expression()
            self.take("do")
            body = self.statements()
            self.take("endfor")
            return ("for", name, first, last, body)
        if self.taken("declare"):
            name = self.take()
            self.take(":")
            kind, count = _type_of_cast(self.take()), 0
            if self.taken("["):
                count = int(self.take())
                self.take("]")
            return ("declare", name, kind, count)
        if self.taken("return"):
            return ("return", self.expression())
        if self.taken("break"):
            return ("break",)
        return self.assignment()

    def condition(self) -> Node:
        branches = []
        otherwise: list[Node] = []
        while True:
            test = self.expression()
            self.take("then")
            branches.append((test, self.statements()))
            if self.taken("elsif"):
                continue
            if self.taken("else"):
                otherwise = self.statements()
            self.take("endif")
            return ("if", branches, otherwise)

    def assignment(self) -> Node:
        targets = [self.expression()]
        if self.ahead in ("+=", "-="):
            return ("set", targets, self.take()[0], self.expression())
        self.take("=")
        if self.taken("lambda"):
            self.take("(")
            parameters = []
            while not self.taken(")"):
                parameters.append(self.take())
                self.taken(",")
            self.take("(")
            start = self.at
            try:
                body = [("return", self.expression())]
                self.take(")")
            except ManualError:
                self.at = start
                body = self.statements()
                self.take(")")
            return ("lambda", targets[0][1], parameters, body)
        value = self.expression()
        while self.taken("="):
            targets.append(value)
            value = self.expression()
        return ("set", targets, "", value)

    def expression(self) -> Node:
        test = self.binary(0)
        if not self.taken("?"):
            return test
        yes = self.expression()
        self.take(":")
        return ("choose", test, yes, self.expression())

    def binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.ahead in _LEVELS[level]:
            left = ("binary", self.take(), left, self.binary(level + 1))
        return left

    def unary(self) -> Node:
        if self.ahead in ("-", "+", "~", "!"):
            return ("unary", self.take(), self.unary())
        return self.postfix(self.primary())

    def primary(self) -> Node:
        token = self.take()
        if token == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if token == "{":
            parts = [self.expression()]
            while self.taken(","):
                parts.append(self.expression())
            self.take("}")
            return ("join", parts)
        if re.fullmatch(r"\d+'(BF|[UIFB])", token):
            self.take("(")
            inner = self.expression()
            self.take(")")
            return ("cast", _type_of_cast(token), inner)
        if token[0].isdigit():
            return _number(token)
        if self.ahead == "(" and re.match(r"[A-Za-z_]", token):
            self.take("(")
            arguments = []
            while not self.taken(")"):
                arguments.append(self.expression())
                self.taken(",")
            return ("call", token, arguments)
        if re.match(r"[A-Za-z_]", token):
            return ("name", token)
        raise ManualError(f"unexpected {token!r}: {' '.join(self.tokens)}")

    def postfix(self, node: Node) -> Node:
        while True:
            if self.taken("."):
                node = ("as", node, self.take())
            elif self.taken("["):
                first = self.expression()
                if self.taken(":"):
                    node = ("bits", node, first, self.expression())
                elif self.taken("+:"):
                    count = self.expression()
                    last = ("binary", "-", ("binary", "+", first, count), ("number", 1, "literal"))
                    node = ("bits", node, last, first)
                else:
                    node = ("bit", node, first)
                self.take("]")
            else:
                return node


def _type_of_cast(token: str) -> str:
    bits, letter = token.split("'")
    return f"{letter.lower()}{bits}"


def _number(token: str) -> Node:
    width, digits, suffix = _NUMBER.fullmatch(token).groups()
    if "." in digits or (suffix == "F" and not digits.startswith("0x")):
        return ("number", float(digits), f"f{width or (32 if suffix == 'F' else 64)}")
    if digits.startswith("0x") and not suffix and token[-1] in "fF":
        suffix = None
    value = int(digits, 0)
    if width:
        return ("number", value, f"{'u' if suffix else 'b'}{width}")
    kind = {"U": "u32", "ULL": "u64", "LL": "i64"}.get(suffix or "", "literal")
    return ("number", value, kind)
