"""Errors about what is left in a device module where nothing can come of it: its own line, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offload.targets.base import Target
    from offload.targets.native import LLVMModule


def undefined_errors(code: LLVMModule, names: Sequence[str], target: Target, linked: bool) -> list[tuple[Any, ...]]:
    """Diagnostics for functions and variables that nothing defines, at their first uses; ``linked``: bitcode was."""
    errors: list[tuple[Any, ...]] = []
    variables = code.undefined_variables()
    for name in names:
        plain, place = name.removeprefix("_mlir_ciface_"), code.position_of(name)[2:5]
        called = f"{plain!r}" if plain == name else f"{plain!r}, which takes memrefs and so is to link as {name!r},"
        if library := code.library_of(name):
            why = f"{library} has it, but nothing called it when that was linked: name it behind the file that does"
        elif owner := _owner(plain, target):
            why = (
                f"it has a name of the library of {owner}, which {target} has not: write an operation of math or "
                "arith, which every target has, or link bitcode that defines it (--link)"
            )
        else:
            why = f"nothing defines it for {target}: define it in this gpu.module, or link bitcode that has it (--link)"
        where = " here" if place[1] else " by code that is linked" if linked and not place[0] else ""  # no position
        said = f"{called} is {'used' if name in variables else 'called'}{where}, and {why}"
        errors.append(("error", said, *place, []))
    return errors


def _owner(name: str, target: Target) -> str:
    """The target whose own library has a function of this name; empty for nobody's and for the target's own."""
    from offload.targets.registry import registry

    if name.startswith(target.library):
        return ""
    return next((other for other, cls in registry().all().items() if name.startswith(cls.library)), "")


def loading_errors(code: LLVMModule, names: Sequence[str], target: Target) -> list[tuple[Any, ...]]:
    """Diagnostics for constructors and destructors of a device module that LLVM could not run itself."""
    why = (
        f"is to run when the kernels of {target} are loaded or unloaded (llvm.mlir.global_ctors, global_dtors), which "
        "no device does: give variables their values where they are declared, or write them in a kernel"
    )
    return [("error", f"{name!r} {why}", *code.position_of(name)[2:5], []) for name in names]
