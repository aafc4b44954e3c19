"""Machine code to steps: functions of a wave, decoded when first reached."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinygrad.renderer.amd import detect_format

from emulator import older
from emulator.code_object import CodeObject
from emulator.errors import EmulationError
from emulator.hostcalls import Hostcalls
from emulator.manual_text import ManualError
from emulator.memory import PRIVATE_BASE
from emulator.small_floats import SmallFloats

if TYPE_CHECKING:
    from emulator.wave import Wave

FAMILIES = {
    "gfx90a": "cdna",
    "gfx942": "cdna",
    "gfx950": "cdna",
    "gfx9-4-generic": "cdna",
    "gfx11": "rdna3",
    "gfx12": "rdna4",
}


@dataclass(frozen=True)
class Step:
    """An instruction ready to run. ``stops``: the wave may end or have to wait after it."""

    run: Callable[[Wave], None]
    size: int
    stops: bool = False


@dataclass(frozen=True)
class Tables:
    """What is known of a family of chips: descriptions and operands by operation."""

    descriptions: dict[Any, str]
    operands: dict[Any, dict[str, tuple[Any, int, Any]]]
    by_name: dict[str, str]
    later: Tables | None  # for operations that a description names and its family describes nowhere
    extra_formats: tuple[Any, ...]

    def other(self, name: str) -> str:
        """The description of an operation that another names, as ``v_min_f32``."""
        for ending in ("", "_E32", "_E64"):
            if name.upper() + ending in self.by_name:
                return self.by_name[name.upper() + ending]
        if self.later:
            return self.later.other(name)
        raise ManualError(f"no description of {name}")


@functools.cache
def tables(family: str) -> Tables:
    """The tables of a family, from tinygrad."""
    package = f"tinygrad.runtime.autogen.amd.{family}"
    descriptions = importlib.import_module(f"{package}.str_pcode").PCODE
    operands = importlib.import_module(f"{package}.operands").OPERANDS
    formats = importlib.import_module(f"{package}.ins")
    extra = tuple(getattr(formats, name) for name in ("MUBUF", "VBUFFER") if hasattr(formats, name))
    by_name = {op.name: text for op, text in descriptions.items()}
    return Tables(descriptions, operands, by_name, None if family == "rdna4" else tables("rdna4"), extra)


def plain_name(inst: Any) -> str:
    """``V_ADD_F32`` of every encoding of it."""
    return str(inst.op.name).removesuffix("_E32").removesuffix("_E64")


class Program:
    """The code of a code object for one chip."""

    def __init__(self, code: CodeObject, hostcalls: Hostcalls | None = None) -> None:
        self.code = code
        self.chip = code.target.rpartition("--")[2].split(":")[0]
        found = [family for prefix, family in FAMILIES.items() if self.chip.startswith(prefix)]
        if not found:
            raise EmulationError(f"no tables for {self.chip}; there are: {', '.join(FAMILIES)}")
        self.family = found[0]
        self.tables = tables(self.family)
        self.steps: dict[int, Step] = {}
        self.hostcalls = hostcalls or Hostcalls(code.memory)
        self.private_base = PRIVATE_BASE
        self.small_floats = SmallFloats(self.chip)
        self.kernels = code.kernels
        self.unload = code.unload

    def instruction(self, address: int) -> Any:
        """The instruction there, as tinygrad's decoder gives it."""
        data, instead = self.code.bytes_at(address, 16), None
        if self.chip in older.CHIPS:
            data, instead = older.known(data)
        try:
            form = detect_format(data, self.family)
        except ValueError:
            for form in self.tables.extra_formats:
                if (int.from_bytes(data, "little") >> 26 & 0x3F) == form.encoding.default:
                    break
            else:
                raise EmulationError(f"no instruction: {data[:8].hex(' ')} at {address - self.code.base:#x}") from None
        inst = form.from_bytes(data)
        if instead is not None:
            inst.instead = instead
        return inst

    def decode(self, address: int) -> Step:
        """The step at an address of this process."""
        from emulator import flow, scalar, vector
        from emulator.memory_steps import memory_step

        if self.chip in older.CHIPS and older.is_invalidate(self.code.bytes_at(address, 4)):
            self.steps[address] = Step(lambda wave: None, older.INVALIDATE_SIZE)
            return self.steps[address]
        inst = self.instruction(address)
        kind = type(inst).__name__
        try:
            if kind.startswith(("SOPP", "SOP1", "SOP2", "SOPC", "SOPK")):
                run = flow.step(self, inst, address) or scalar.step(self, inst)
            elif kind.startswith("VOPD"):
                run = vector.dual_step(self, inst)
            elif kind.startswith("VOP"):
                run = vector.step(self, inst)
            else:
                run = memory_step(self, inst)
        except (EmulationError, ManualError) as error:
            raise EmulationError(f"{error}\n  {self.describe(address)}") from error
        stops = kind.startswith(("SOPP", "SOP1")) and plain_name(inst).startswith(("S_ENDPGM", "S_BARRIER"))
        step = Step(run, inst.size(), stops)
        self.steps[address] = step
        return step

    def describe(self, address: int) -> str:
        """An instruction for people: kernel, offset and text."""
        kernels = [kernel for kernel in self.code.kernels.values() if kernel.entry <= address]
        kernel = max(kernels, key=lambda kernel: kernel.entry) if kernels else None
        place = f"{kernel.name}+{address - kernel.entry:#x}" if kernel else f"{address - self.code.base:#x}"
        try:
            return f"{self.chip} {place}: {self.instruction(address)!r}"
        except Exception as error:  # the text is for an error already
            return f"{self.chip} {place}: {error}"
