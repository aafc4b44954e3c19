"""Does AMD machine code wait for what it has asked memory for, before it uses it?

A load's registers are not there when its instruction is done. Code waits until no more than so many accesses of a kind
are on their way: kinds are counted apart, and come back in the order in which they went, those through the scalar cache
aside, and those to flat addresses, which count as two kinds and are of one. The emulator has every access done at once,
so this looks at the instructions alone: along every path, a register that is still on its way may be neither read nor
written, but by the next access of its kind. Registers whose number another one holds are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from amd_code_objects import CodeObject
from amd_disassembly import instructions

VECTOR, LOCAL, SCALAR = "vector", "local", "scalar"
"""Accesses to memory through vector addresses, to a block's own memory, and through the scalar cache."""

State = dict[str, dict[str, int]]
"""Of a register on its way: by kind, how many accesses of the kind came after its own."""

_ENOUGH = 64  # more than any counter holds
_REGISTERS = re.compile(r"\b([vas])(?:(\d+)\b|\[(\d+):(\d+)\])|\b(vcc|exec)(_lo|_hi)?\b|\b(m0)\b")
_READS_VCC = re.compile(r"s_cbranch_vcc|v_div_fmas|v_(dual_)?cndmask")  # though the text may not say so
_OLD = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_NEW = {
    "loadcnt": (VECTOR,), "dscnt": (LOCAL,), "kmcnt": (SCALAR,), "loadcnt_dscnt": (VECTOR, LOCAL), "samplecnt": (),
    "bvhcnt": (), "storecnt": (), "storecnt_dscnt": ("", LOCAL), "expcnt": (), "alu": (), "event": (), "idle": (),
}  # fmt: skip
"""What gfx12's waits count; of two, the first stands in the high byte."""


@dataclass(frozen=True)
class _Instruction:
    name: str
    operands: tuple[str, ...]
    text: str
    kinds: tuple[str, ...]  # of accesses that this is one of
    loads: bool  # into its first operand

    @property
    def read(self) -> set[str]:
        named = {name for operand in self.operands[int(self.loads) :] for name in _registers(operand)}
        return named | (_registers("vcc") if _READS_VCC.search(self.text) else set())

    @property
    def written(self) -> set[str]:
        return _registers(self.operands[0]) if self.loads else set()

    @property
    def in_order(self) -> bool:
        """Whether it comes back after all that went before it and is counted with it."""
        return len(self.kinds) == 1 and SCALAR not in self.kinds


def _registers(operand: str) -> set[str]:
    found = set()
    for kind, one, first, last, pair, part, special in _REGISTERS.findall(operand):
        if special:
            found.add(special)
        elif pair:
            found |= {f"{pair}{each}" for each in ([part] if part else ["_lo", "_hi"])}
        elif one:
            found.add(f"{kind}{one}")
        else:
            found |= {f"{kind}{number}" for number in range(int(first), int(last) + 1)}
    return found


def _parsed(text: str, chip: str) -> _Instruction:
    name, _, rest = text.split("//")[0].strip().partition(" ")
    operands = tuple(part.strip() for part in re.split(r",(?![^\[]*\])", rest)) if rest.strip() else ()
    kinds: tuple[str, ...] = ()
    if re.match(r"(global|buffer|scratch|tbuffer)_", name) and not re.search(r"wb|inv|_prefetch", name):
        kinds = (VECTOR,)
    elif name.startswith("flat_"):
        kinds = (VECTOR, LOCAL)
    elif re.match(r"s_(buffer_)?load_|s_memtime|s_memrealtime|s_sendmsg_rtn", name):
        kinds = (SCALAR,)
    elif re.match(r"ds_(?!nop)", name):
        kinds = (LOCAL,)
    answers = re.search(r"\b(glc|sc0|th:TH_ATOMIC_\w*RETURN)\b", rest)
    if "atomic" in name:
        loads = bool(answers)
    elif kinds == (LOCAL,):
        loads = bool(re.search(r"_rtn|^ds_(read|load|swizzle|permute|bpermute|consume|append|ordered)", name))
    else:
        loads = bool(kinds) and "store" not in name and not re.search(r"\blds\b|_lds_", f"{rest} {name}")
    if VECTOR in kinds and not loads and not chip.startswith("gfx9") and re.search("store|atomic", name):
        kinds = tuple(kind for kind in kinds if kind != VECTOR)  # these have a counter of their own
    return _Instruction(name, operands, text.strip(), kinds, loads)


def _after_wait(state: State, kind: str, most: int) -> State:
    """What is still on its way when no more than ``most`` accesses of a kind are."""
    most = most if kind != SCALAR or most == 0 else _ENOUGH  # these come in any order
    found = {}
    for register, ages in state.items():
        left = {each: age for each, age in ages.items() if each != kind or age < most}
        if left:
            found[register] = left
    return found


def _waited(state: State, instruction: _Instruction) -> State:
    if instruction.name == "s_waitcnt":
        most = {kind: int(count) for kind, count in _OLD.findall(instruction.text)}
        if "vmcnt" in most:
            state = _after_wait(state, VECTOR, most["vmcnt"])
        for kind in (LOCAL, SCALAR) if "lgkmcnt" in most else ():
            state = _after_wait(state, kind, most["lgkmcnt"])
    elif instruction.name.startswith("s_wait_"):
        kinds, value = _NEW[instruction.name.removeprefix("s_wait_")], instruction.operands[-1:]
        number = int(value[0], 0) if kinds else 0
        for place, kind in enumerate(reversed(kinds)):
            state = _after_wait(state, kind, number >> 8 * place & 0xFF)
    return state


def _issued(state: State, instruction: _Instruction) -> State:
    """What may come back before others are there lets nobody wait for these by its number."""
    counted = instruction.kinds if instruction.in_order else ()
    found = {
        register: {kind: min(age + (kind in counted), _ENOUGH) for kind, age in ages.items()}
        for register, ages in state.items()
    }
    for register in instruction.written:
        found[register] = dict.fromkeys(instruction.kinds, 0)
    return found


def unwaited(code: CodeObject, chip: str, wave: int) -> Iterator[str]:
    """Instructions of a code object's functions that use registers still on their way, in words."""
    for function, listed in instructions(code, chip, wave).items():
        yield from (f"{function}: {problem}" for problem in of_function(dict(listed), chip))


def of_function(listed: dict[int, tuple[str, int]], chip: str) -> Iterator[str]:
    """The same of instructions by their addresses: texts and sizes."""
    parsed = {place: _parsed(text, chip) for place, (text, _) in listed.items()}
    states: dict[int, State] = {min(listed): {}}
    left, told = [min(listed)], set()
    while left:
        place = left.pop()
        state, instruction, size = states[place], parsed[place], listed[place][1]
        own = set(instruction.kinds) if instruction.in_order else set()
        busy = {name for name in instruction.read if name in state}
        busy |= {name for name in instruction.written if name in state and set(state[name]) != own}
        if busy and not instruction.name.startswith("s_wait") and place not in told:
            told.add(place)
            yield f"{instruction.text!r} at {place:#x} does not wait for {', '.join(sorted(busy))}"
        after = _waited(state, instruction)
        if instruction.kinds:
            after = _issued(after, instruction)
        if re.match(r"s_(swappc|setpc|call)", instruction.name):
            after = {}  # functions begin and end with waits for everything
        for target in _next(instruction, place, size):
            if target in listed and _joined(states, target, after):
                left.append(target)


def _next(instruction: _Instruction, place: int, size: int) -> list[int]:
    if re.match(r"s_(endpgm|setpc|rfe)", instruction.name):
        return []
    if not re.match(r"s_(c?branch|call)", instruction.name) or instruction.name.startswith("s_call"):
        return [place + size]
    words = int(instruction.operands[-1], 0)
    target = place + size + 4 * (words - ((words & 0x8000) << 1))
    return [target] if instruction.name == "s_branch" else [place + size, target]


def _joined(states: dict[int, State], target: int, state: State) -> bool:
    """Adds what comes from one way into an instruction to what is known before it; whether that was news."""
    known = states.get(target)
    if known is None:
        states[target] = state
        return True
    news = False
    merged = {register: dict(ages) for register, ages in known.items()}
    for register, ages in state.items():
        before = merged.setdefault(register, {})
        for kind, age in ages.items():
            if age < before.get(kind, _ENOUGH + 1):
                before[kind], news = age, True
    states[target] = merged
    return news
