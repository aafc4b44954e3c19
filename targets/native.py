"""The compiler extension as targets see it, for annotations alone: importing a target loads no LLVM.

A target is handed the extension as ``Work.native`` and code as ``LLVMModule``; ``offload/mlir/_native.pyi`` says what
they offer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from offload.mlir._native import ElfFile, LLVMModule, MachineOptions, Module


class Native(Protocol):
    """The extension module ``offload.mlir._native``."""

    @property
    def LLVMModule(self) -> type[LLVMModule]: ...

    @property
    def MachineOptions(self) -> type[MachineOptions]: ...

    @property
    def Failure(self) -> type[Exception]: ...

    def is_known_processor(self, triple: str, cpu: str) -> bool:
        """Does LLVM know the processor?"""

    def known_processors(self, triple: str) -> list[str]:
        """LLVM's names of a triple's processors."""

    def known_features(self, triple: str) -> list[str]:
        """LLVM's names of a triple's features."""

    def features_of(self, triple: str, cpu: str, features: str) -> list[str]:
        """Those that a processor has, and what is asked for besides."""

    def host_processor(self) -> str:
        """LLVM's name of this machine's processor."""

    def link_elf(self, arguments: list[str]) -> None:
        """Runs lld; raises Failure with its messages."""

    def read_elf(self, data: bytes) -> ElfFile:
        """An ELF file; raises Failure for bytes that are none or are damaged."""

    def amdgpu_parameters(self, elf: bytes) -> list[tuple[str, list[int]]]:
        """The bytes of each parameter, by kernel, from the same."""

    def amdgpu_resources(self, elf: bytes) -> list[tuple[str, list[tuple[str, int]]]]:
        """Kernel resources from the metadata of an AMDGPU code object."""


__all__ = ["ElfFile", "LLVMModule", "MachineOptions", "Module", "Native"]
