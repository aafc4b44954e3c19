"""The part of ``offload.mlir._native`` that targets use, as types: targets import no LLVM."""

from __future__ import annotations

from typing import Protocol


class Module(Protocol):
    """MLIR: one builtin.module. Failures raise ``_native.Failure``."""

    def run(self, pipeline: str, verify_each: bool = False) -> None:
        """Runs a textual pass pipeline on the module."""

    def text(self, locations: bool = False) -> str:
        """The module as MLIR text."""

    def set_kernel_attribute(self, name: str, value: str) -> None:
        """Sets an attribute, given as text, on every kernel that lacks it."""


class MachineOptions(Protocol):
    """What code is generated for."""


class LLVMModule(Protocol):
    """LLVM IR of one module, from translation to machine code. Failures raise ``_native.Failure``."""

    @staticmethod
    def translate(module: Module, options: MachineOptions) -> LLVMModule:
        """Translates a lowered module."""

    def text(self) -> str:
        """The module as LLVM IR text."""

    def bitcode(self) -> bytes:
        """The module as LLVM bitcode."""

    def add_function_attribute(self, name: str, value: str) -> None:
        """Adds a function attribute to every defined function."""

    def add_module_flag(self, name: str, value: int) -> None:
        """Adds an integer module flag."""

    def define_constant(self, name: str, bits: int, value: int, address_space: int) -> None:
        """Defines a constant that a device library reads."""

    def link_needed(self, path: str) -> None:
        """Links what is undefined here from a bitcode file."""

    def undefined_functions(self) -> list[str]:
        """Functions that are called but not defined."""

    def internalize(self, kept: list[str]) -> None:
        """Makes everything else internal."""

    def lower_kernels_for_host(self, kernels: list[str]) -> None:
        """Turns kernels into functions that run blocks on the CPU."""

    def optimize(self) -> None:
        """Runs LLVM's default pipeline."""

    def emit(self, assembly: bool) -> bytes:
        """Assembly text or an object file."""


class Native(Protocol):
    """The extension module."""

    LLVMModule: type[LLVMModule]

    def MachineOptions(  # noqa: N802 - a class there
        self, triple: str, cpu: str = "", features: str = "", level: int = 3, fast_math: bool = False
    ) -> MachineOptions:
        """What code is generated for."""

    def is_known_processor(self, triple: str, cpu: str) -> bool:
        """Does LLVM know the processor?"""

    def host_triple(self) -> str:
        """The triple of this machine."""

    def host_processor(self) -> str:
        """LLVM's name of this machine's processor."""

    def link_elf(self, arguments: list[str]) -> None:
        """Runs lld."""

    def amdgpu_resources(self, elf: bytes) -> list[tuple[str, list[tuple[str, int]]]]:
        """Kernel resources from the metadata of an AMDGPU code object."""
