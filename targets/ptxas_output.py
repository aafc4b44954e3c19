"""What ptxas and nvJitLink print: what kernels need, what they warn of, and errors, at their places in the program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from offload.targets.images import Image

if TYPE_CHECKING:
    from offload.targets.base import Work
    from offload.targets.native import LLVMModule

_MOST_STACK = 512 << 10
"""CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": local memory of a thread."""

_FUNCTION = r"Function properties for (\S+)|Compiling entry function '([^']+)'"
_SPILLS = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
_REGISTERS = r"Used (\d+) registers"
_SHARED = r"(\d+) bytes smem"


def image_of(data: bytes, report: str, chip: str, work: Work) -> Image:
    """The machine code ``data`` with what the assembler's ``report`` says of its kernels.

    Raises Failure for a kernel with more memory of a thread's own than any device gives: ptxas makes it."""
    resources = _resources(report)
    for kernel, values in resources.items():
        if (size := values.get("stack_bytes", 0)) > _MOST_STACK:
            _, _, file, line, column, _ = work.stage("llvm").position_of(kernel)
            said = (
                f"{chip}: stack frame size ({size}) exceeds limit ({_MOST_STACK}) in function '{kernel}': "
                "threads have this much memory of their own; larger arrays are arguments that the host allocates"
            )
            purpose = f"assemble {work.module_name} for {chip}"
            raise work.native.Failure(purpose, [("error", said, file, line, column, [])])
    return Image(data, resources, _warnings(report, chip, work))


def _resources(report: str) -> dict[str, dict[str, int]]:
    """Registers, spills and memory per kernel from the output of ``ptxas -v``."""
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in report.splitlines():
        if entry := re.search(_FUNCTION, line):
            current = found.setdefault(entry.group(1) or entry.group(2), {})
        if spills := re.search(_SPILLS, line):
            stack, stores, loads = map(int, spills.groups())
            current.update(stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads)
        if registers := re.search(_REGISTERS, line):
            shared = re.search(_SHARED, line)
            current.update(registers=int(registers.group(1)), shared_bytes=int(shared.group(1)) if shared else 0)
    # A function that kernels call, such as libdevice's of powers, has its stack told and no registers.
    return {name: values for name, values in found.items() if "registers" in values}


_WARNING = r"(?m)^ptxas (?:warning|.*?, line (\d+); warning)\s*: (.*)$"
_BODY = r"^[\s.\w]*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$.]+)"


def _warnings(report: str, chip: str, work: Work) -> list[tuple[Any, ...]]:
    """A diagnostic from each thing that ptxas warned of, at the function that it names, or that its line is of."""
    warned = re.findall(_WARNING, report)
    lines = work.stage("isa").decode(errors="replace").splitlines() if any(number for number, _ in warned) else []
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    for number, text in warned:
        if number:
            named = next((match for line in lines[: int(number)][::-1] if (match := re.match(_BODY, line))), None)
        else:
            named = re.search(r"\b(?:entry function|entry|function) '?([\w$.]+)", text)
        function = named[1] if named else ""
        _, _, file, line, column, _ = work.stage("llvm").position_of(function)
        found[function, text] = ("warning", f"ptxas warns for {chip}: {text.strip()}", file, line, column, [])
    return list(found.values())


_ASSEMBLER_ERROR = r"(?m)^ptxas \S+, line (\d+); (?:error|fatal)\s*: (.*)$"
_UNREADABLE = r"(?m)^ptxas (?:fatal|warning)\s*: (.*?) on line '?(\d+)(?:$|' which is conflicting)"
_KERNEL_ERROR = r"(?m)^ptxas error\s*: (Entry function '([^']+)'.*)$"
_ENTRY = r"\.entry (\S+)\("
_NEWER_PTX = r"requires PTX ISA \.version (\d+)\.(\d+) or later"
_FILE = r'(?m)^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?'
_PLACE = r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)"


def errors(output: str, text: str, chip: str, code: LLVMModule) -> list[tuple[str, str, str, int, int, list[object]]]:
    """Diagnostics from what ptxas printed about an assembly text with line directives."""
    files = {number: f"{first}/{second}" if second else first for number, first, second in re.findall(_FILE, text)}
    lines = text.splitlines()
    found: list[tuple[str, str, str, int, int, list[object]]] = []
    said_of = dict(re.findall(_ASSEMBLER_ERROR, output))
    said_of.update((number, message) for message, number in re.findall(_UNREADABLE, output))
    for number, message in said_of.items():
        before = lines[: int(number)]
        if len(before) > 1 and "// end inline asm" in before[-2]:  # the directive behind it takes the blame
            before.pop()
            message = "syntax error at its end; every instruction of PTX ends with ';'"
        said = f"ptxas refuses this for {chip}: {message.strip()}"
        if newer := re.search(_NEWER_PTX, message):
            said += f"; ask for it with features=+ptx{newer.group(1)}{newer.group(2)}"
        kernel = next((match for line in reversed(before) if (match := re.search(_ENTRY, line))), None)
        if kernel and "parameter" in message:  # the number is that of the kernel's last line
            _, _, file, line, column, _ = code.position_of(kernel.group(1))
        else:
            place = next((match for line in reversed(before) if (match := re.match(_PLACE, line))), None)
            which, *numbers = place.groups() if place else ("", "0", "0")
            file, (line, column) = files.get(which, ""), map(int, numbers)
        found.append(("error", said, file, line, column, []))
    for message, function in re.findall(_KERNEL_ERROR, output):
        _, _, file, line, column, _ = code.position_of(function)
        said = f"ptxas refuses this for {chip}: {message.strip()}"
        if "shared data" in message:
            said += "; a block can have more as gpu.dynamic_shared_memory, whose size its launch gives"
        found.append(("error", said, file, line, column, []))
    return found
