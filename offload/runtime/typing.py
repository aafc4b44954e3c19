"""Types for annotations: what functions and kernels take. The stubs of ``offload stubs`` use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import ctypes
    from _ctypes import CFuncPtr

    import numpy
    from typing_extensions import Buffer

    from offload.runtime.staging import Staged


class SupportsDLPack(Protocol):
    """Arrays of NumPy, torch, cupy, jax, and of ``lib.device``."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class SupportsArrayInterface(Protocol):
    """Other arrays in host memory."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class SupportsCudaArrayInterface(Protocol):
    """Other arrays in the memory of a GPU."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


ArrayLike: TypeAlias = "SupportsDLPack | SupportsArrayInterface | SupportsCudaArrayInterface | Buffer | Staged"
"""Whatever is taken for a memref."""

Bool: TypeAlias = "bool | numpy.bool_"
Int: TypeAlias = "int | numpy.integer[Any]"
Float: TypeAlias = "float | numpy.floating[Any] | numpy.integer[Any]"
Complex: TypeAlias = "complex | numpy.number[Any]"

Pointer: TypeAlias = (
    "Int | ArrayLike | ctypes.c_void_p | ctypes.c_char_p | ctypes.c_wchar_p | ctypes._Pointer[Any] | CFuncPtr"
)
"""Whatever is taken for an address."""

Size: TypeAlias = "int | tuple[int] | tuple[int, int] | tuple[int, int, int]"
"""Of a grid, a block or a cluster."""

# Each in one string: pyright takes no type from several, and had Any here, so that no launch had a handle.
_WithoutMore: TypeAlias = "tuple[Size, Size] | tuple[Size, Size, None]"
Waiting: TypeAlias = "_WithoutMore | tuple[Size, Size, None, int] | tuple[Size, Size, None, int, Size | None]"
"""What a launch is given between brackets where the call waits for the kernel: no stream."""
