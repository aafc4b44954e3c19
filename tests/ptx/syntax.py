"""What a module's text consists of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Register:
    """``key`` is unique in the module; ``%p1``'s opposite where ``negated``."""

    key: str
    negated: bool = False


@dataclass(frozen=True)
class Special:
    """A special register, as ``%tid.x``."""

    name: str


@dataclass(frozen=True)
class Number:
    text: str


@dataclass(frozen=True)
class Symbol:
    """The address of a variable or function, or a label; ``key`` is unique in the module."""

    key: str
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    parts: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """``%p1|%p2``: two results."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True)
class Address:
    """``[base+offset]``; ``rest`` are what follows a comma inside of the brackets."""

    base: Operand
    offset: int = 0
    rest: tuple[Operand, ...] = ()


Operand = Register | Special | Number | Symbol | Vector | Pair | Address


@dataclass
class Variable:
    """``size`` in bytes; ``values`` are numbers of ``step`` bytes, or symbols, of which ``mask`` takes a byte."""

    key: str
    space: str
    size: int
    align: int
    step: int = 1
    values: tuple[tuple[Operand, int | None], ...] = ()
    open_ended: bool = False  # [] : dynamic workgroup memory


@dataclass(frozen=True)
class Instruction:
    op: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    line: int
    text: str


@dataclass
class Function:
    name: str
    is_kernel: bool
    results: list[Variable] = field(default_factory=list)
    params: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)
    limits: dict[str, list[int]] = field(default_factory=dict)
    has_body: bool = False
