"""A module of PTX on an emulated device: its functions one behind the other, its variables in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from emulator.errors import EmulationError
from emulator.memory import Memory

from ptx import access, async_copies, comparisons, conversions, floats, flow, integers, matrix, warpgroups, warps
from ptx.block import Block
from ptx.launch import Launch
from ptx.maker import Maker, Source, Step
from ptx.reader import Module
from ptx.syntax import Function, Instruction, Number, Operand, Symbol, Variable, Vector
from ptx.table import BUILDERS

Array = Any

INSTRUCTIONS = (
    access, async_copies, comparisons, conversions, flow, floats, integers, matrix, warpgroups, warps,
)  # fmt: skip
"""The rooms of instructions, which fill the table."""

CODE_BASE = 3 << 48
"""Where addresses of functions begin."""
_STACK = 16 * 1024
"""Bytes that alloca has for each thread."""
_FLOW = {"bra", "brx", "ret", "exit", "call", "bar", "barrier", "trap"}


@dataclass
class Kernel:
    """``offsets`` of the parameters by key, ``shared`` those of the variables in shared memory."""

    name: str
    function: Function
    entry: int
    offsets: dict[str, int] = field(default_factory=dict)
    size: int = 0
    shared: dict[str, int] = field(default_factory=dict)
    dynamic: list[str] = field(default_factory=list)
    shared_size: int = 0


class Program:
    """``print`` takes what printf writes."""

    def __init__(self, text: str, memory: Memory, print_: Callable[[str], None]) -> None:
        self.module = Module(text)
        self.memory, self.print = memory, print_
        self.steps: list[Step] = []
        self._places: list[tuple[Function, Instruction]] = []
        self.labels: dict[str, int] = {}
        self.targets: dict[str, list[str]] = {}
        self.entries: dict[str, int] = {}
        self._heap: dict[int, Any] = {}
        self.lane_params: dict[str, int] = {}
        self.local_size = 0
        self.locals: dict[str, int] = {}
        self.kernels: dict[str, Kernel] = {}
        bodies = [function for function in self.module.functions.values() if function.has_body]
        for function in sorted(bodies, key=lambda function: function.is_kernel):
            self._lay_out(function)
        self.names = list(self.entries)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        uses_stack = any(instruction.op[0] == "alloca" for _, instruction in self._places)
        self.stack = self.local_size + (_STACK if uses_stack else 0)
        self.globals: dict[str, int] = {}
        self._held: list[Any] = []
        self._place_variables()
        for function in bodies:
            if function.is_kernel:
                self._kernel(function)

    # Code

    def _lay_out(self, function: Function) -> None:
        self.entries[function.name] = len(self.steps)
        places = []
        for instruction in function.body:
            places.append(len(self.steps))
            for after in (False, True) if instruction.op[0] == "call" else (False,):
                self._places.append((function, instruction))
                self.steps.append(self._decoder(len(self.steps), function, instruction, after))
        places.append(len(self.steps))
        end = Instruction(("ret",), (), None, 0, f"the end of {function.name}")
        self._places.append((function, end))
        self.steps.append(self._decoder(len(self.steps), function, end, False))
        self.labels |= {key: places[index] for key, index in function.labels.items()}
        self.targets |= function.targets
        for variable in function.variables:
            if variable.space == "param":
                self.lane_params[variable.key] = variable.size
            elif variable.space == "local":
                self.local_size = -(-self.local_size // variable.align) * variable.align
                self.locals[variable.key] = self.local_size
                self.local_size += variable.size
        if not function.is_kernel:
            for variable in (*function.params, *function.results):
                self.lane_params[variable.key] = variable.size

    def _decoder(self, pc: int, function: Function, instruction: Instruction, after: bool) -> Step:
        """Makes the step when it is first reached."""

        def decode(block: Block) -> None:
            self.steps[pc] = self._step(function, instruction, after)
            self.steps[pc](block)

        return decode

    def _step(self, function: Function, instruction: Instruction, after: bool) -> Step:
        maker = Maker(self, function, instruction)
        if after:
            return flow.after_call(maker) or (lambda block: None)
        builder = BUILDERS.get(instruction.op[0])
        if builder is None:
            raise EmulationError(f"no instruction {'.'.join(instruction.op)}")
        step = builder(maker)
        if instruction.guard is None:
            return step
        return _guarded(step, maker.predicate(instruction.guard), instruction.op[0] in _FLOW)

    def describe(self, pc: int) -> str:
        """An instruction for people."""
        function, instruction = self._places[pc]
        return f"{function.name}, PTX line {instruction.line}: {instruction.text}"

    def has_body(self, name: str) -> bool:
        return name in self.entries

    def body(self, name: str) -> Function:
        """A function that can be called."""
        if name not in self.entries:
            raise EmulationError(f"no function {name}")
        return self.module.functions[name]

    def function_at(self, address: int) -> str:
        """The function that a pointer points to."""
        for name, entry in self.entries.items():
            if address == CODE_BASE + entry:
                return name
        raise EmulationError(f"no function at {address:#x}")

    # Memory

    def _place_variables(self) -> None:
        variables = [variable for variable in self.module.variables if variable.space != "shared"]
        for variable in variables:
            buffer = ctypes.create_string_buffer(variable.size + 256)
            start = -(-ctypes.addressof(buffer) // 256) * 256
            self._held.append(buffer)
            self.globals[variable.key] = start
            self.memory.add(start, variable.size, f"the variable {variable.key}")
        for variable in variables:
            for index, (value, mask) in enumerate(variable.values):
                data = self._initial(value, mask, variable.step)
                ctypes.memmove(self.globals[variable.key] + index * variable.step, data, variable.step)

    def _initial(self, value: Operand, mask: int | None, size: int) -> bytes:
        if isinstance(value, Symbol):
            number = self.fixed(value.key) + value.offset
        elif isinstance(value, Number):
            number = int(value.text[2:], 16) if value.text[:2] in ("0f", "0d") else int(value.text, 0)
        else:
            raise EmulationError(f"no initial value: {value}")
        if mask is not None:
            number = (number & mask) >> ((mask & -mask).bit_length() - 1)
        return (number & ((1 << (8 * size)) - 1)).to_bytes(size, "little")

    def fixed(self, key: str) -> int:
        """The address of what is not a launch's own."""
        if key in self.globals:
            return self.globals[key]
        if key in self.locals:
            return self.locals[key]
        if key in self.entries:
            return CODE_BASE + self.entries[key]
        raise EmulationError(f"no variable or function {key}")

    def _kernel(self, function: Function) -> None:
        kernel = Kernel(function.name, function, self.entries[function.name])
        for param in function.params:
            kernel.size = -(-kernel.size // param.align) * param.align
            kernel.offsets[param.key] = kernel.size
            kernel.size += param.size
        used = {key for each in (function, *self._called()) for instruction in each.body
                for operand in instruction.operands for key in _symbols(operand)}  # fmt: skip
        own = [variable for each in (function, *self._called()) for variable in each.variables]
        shared = [variable for variable in (*self.module.variables, *own) if variable.space == "shared"]
        for variable in sorted(shared, key=lambda variable: -variable.align):
            if variable.key in used and not variable.open_ended:
                self._share(kernel, variable)
        for variable in shared:
            if variable.key in used and variable.open_ended:
                kernel.dynamic.append(variable.key)
                kernel.shared[variable.key] = -(-kernel.shared_size // variable.align) * variable.align
        self.kernels[function.name] = kernel

    def _called(self) -> list[Function]:
        return [self.module.functions[name] for name in self.entries if not self.module.functions[name].is_kernel]

    @staticmethod
    def _share(kernel: Kernel, variable: Variable) -> None:
        kernel.shared_size = -(-kernel.shared_size // variable.align) * variable.align
        kernel.shared[variable.key] = kernel.shared_size
        kernel.shared_size += variable.size

    def heap_take(self, size: int) -> int:
        """malloc's memory."""
        buffer = ctypes.create_string_buffer(max(size, 1) + 16)
        start = -(-ctypes.addressof(buffer) // 16) * 16
        self._heap[start] = buffer
        self.memory.add(start, max(size, 1), "malloc's memory")
        return start

    def heap_give(self, address: int) -> None:
        """Its counterpart, free."""
        if address not in self._heap:
            raise EmulationError(f"free of {address:#x}, which malloc did not give")
        self.memory.remove(address)
        del self._heap[address]

    def unload(self) -> None:
        """Forgets the variables."""
        for start in (*self.globals.values(), *self._heap):
            self.memory.remove(start)

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        block: Sequence[int],
        dynamic: int,
        cluster: Sequence[int],
        params: Sequence[int],
    ) -> int:
        """Runs a kernel; returns how many instructions that took. ``params`` are the addresses of the arguments."""
        data = bytearray(kernel.size)
        for index, param in enumerate(kernel.function.params):
            begin = kernel.offsets[param.key]
            data[begin : begin + param.size] = ctypes.string_at(params[index], param.size)
        return Launch(self, kernel, tuple(grid), tuple(block), dynamic, tuple(cluster), bytes(data)).run()


def _symbols(operand: Operand) -> list[str]:
    if isinstance(operand, Symbol):
        return [operand.key]
    if isinstance(operand, Vector):
        return [key for part in operand.parts for key in _symbols(part)]
    base = getattr(operand, "base", None)
    return _symbols(base) if base is not None else []


def _guarded(step: Step, guard: Source, flows: bool) -> Step:
    """The step in those active lanes that have the predicate."""

    def run(block: Block) -> None:
        active = block.active
        chosen = active & guard(block)
        count = int(np.count_nonzero(chosen))
        if count == block.count:
            step(block)
        elif count and flows:
            block.send(active & ~chosen, block.pc)
            block.go(chosen)
            step(block)
        elif count:
            block.go(chosen)
            step(block)
            block.go(active)

    return run


__all__ = ["Kernel", "Program"]
