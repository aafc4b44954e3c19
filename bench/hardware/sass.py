"""What the machine code of a kernel for NVIDIA's sm_90 tells without running it: a reading of nvdisasm's text.

The limits of a multiprocessor are those of compute capability 9.0 in the CUDA programming guide.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REGISTERS, THREADS, BLOCKS, SHARED_BYTES = 65536, 2048, 32, 228 << 10
"""What a multiprocessor has."""
RESERVED_BYTES = 1024
"""Workgroup memory that each block takes besides its own."""

_FUNCTION = re.compile(r"^\.text\.(\S+):$")
_LABEL = re.compile(r"^(\.L_x_\d+):$")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][A-Z0-9_]*)((?:\.[A-Z0-9_]+)*)(.*);")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_GLOBAL = ("LDG", "STG", "LD", "ST")


@dataclass(frozen=True)
class Instruction:
    """``LDG.E.128``: the name LDG with the modifiers E and 128."""

    name: str
    modifiers: tuple[str, ...]
    rest: str
    conditional: bool

    @property
    def bits(self) -> int:
        """Of an access to memory."""
        return next((int(each) for each in self.modifiers if each in ("64", "128")), 32)


@dataclass(frozen=True)
class Code:
    """A kernel's instructions, and the index that each label stands before."""

    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]

    def loops(self) -> list[range]:
        """The instructions from a label to a branch back to it; without what waits or ends by jumping to itself."""
        found = []
        for index, each in enumerate(self.instructions):
            target = _TARGET.search(each.rest) if each.name == "BRA" else None
            if target and self.labels.get(target[1], index + 1) < index:
                found.append(range(self.labels[target[1]], index + 1))
        return found

    def count(self, *names: str) -> int:
        return sum(each.name in names for each in self.instructions)


def read(text: str) -> dict[str, Code]:
    """The functions of ``nvdisasm -c``, by name. Raises ValueError for a text without one."""
    found: dict[str, tuple[list[Instruction], dict[str, int]]] = {}
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            instructions, labels = [], {}
            found[match[1]] = instructions, labels
        elif match := _LABEL.match(line):
            labels[match[1]] = len(instructions)
        elif match := _INSTRUCTION.match(line):
            condition, name, modifiers, rest = match.groups()
            if name != "NOP":
                instructions.append(Instruction(name, tuple(modifiers.split(".")[1:]), rest, condition is not None))
    if not found:
        raise ValueError("no function in what nvdisasm printed; is it a cubin?")
    return {name: Code(tuple(each), labels) for name, (each, labels) in found.items()}


def resident(registers: int, shared_bytes: int, threads: int) -> int:
    """Blocks of so many threads that a multiprocessor runs at a time."""
    warps = -(-threads // 32)
    by_registers = REGISTERS // (-(-registers // 8) * 8 * 32 * warps)
    by_memory = SHARED_BYTES // (-(-shared_bytes // 128) * 128 + RESERVED_BYTES)
    return min(by_registers, by_memory, THREADS // (32 * warps), BLOCKS)


def _main_loop(code: Code) -> Sequence[Instruction]:
    """Of the innermost loops the one with most products of matrices or, failing that, loads; else the whole kernel."""
    loops = code.loops()
    inner = [each for each in loops if not any(each != other and set(other) < set(each) for other in loops)]
    bodies = [[code.instructions[index] for index in loop] for loop in inner]
    for name in ("HGMMA", "LDG"):
        body = max(bodies, key=lambda body: sum(each.name == name for each in body), default=[])
        if any(each.name == name for each in body):
            return body
    return code.instructions


def _apart(body: Sequence[Instruction]) -> int:
    """The most instructions between two neighbouring products of matrices."""
    places = [index for index, each in enumerate(body) if each.name == "HGMMA"]
    return max((after - before - 1 for before, after in itertools.pairwise(places)), default=0)


def _waits(body: Sequence[Instruction]) -> int:
    """Products of matrices after which, in the loop's body, all that are under way are waited for."""
    return sum(each.name == "WARPGROUP" and each.rest.rstrip().endswith("0x0") for each in body)


def facts(code: Code, resources: Mapping[str, int], threads: int, dynamic_bytes: int = 0) -> dict[str, int]:
    """Numbers of one kernel; ``resources`` are what ptxas says of it."""
    accesses = [each for each in code.instructions if each.name in _GLOBAL]
    body = _main_loop(code)
    blocks = resident(resources["registers"], resources["shared_bytes"] + dynamic_bytes, threads)
    return {
        "registers": resources["registers"],
        "spill_bytes": resources["spill_store_bytes"] + resources["spill_load_bytes"],
        "local_accesses": code.count("LDL", "STL"),
        "shared_bytes": resources["shared_bytes"] + dynamic_bytes,
        "blocks": blocks,
        "warps": blocks * -(-threads // 32),
        "widest_load": max((each.bits for each in accesses if each.name in ("LDG", "LD")), default=0),
        "widest_store": max((each.bits for each in accesses if each.name in ("STG", "ST")), default=0),
        "accesses": len(accesses),
        "instructions": len(code.instructions),
        "loop": len(body),
        "loop_loads": sum(each.name == "LDG" for each in body),
        "loop_products": sum(each.name == "HGMMA" for each in body),
        "between_products": _apart(body),
        "full_waits": _waits(body) if any(each.name == "HGMMA" for each in body) else 0,
        "bulk_loads": code.count("UTMALDG"),
        "elections": code.count("ELECT"),
    }
