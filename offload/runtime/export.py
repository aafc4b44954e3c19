"""DLPack capsules over device memory, for other packages. Source: DLPack 1.1 (dmlc.github.io/dlpack)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from offload.runtime.interchange import CODES, Tensor, Versioned

_NAME, _VERSIONED = b"dltensor", b"dltensor_versioned"
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


# What consumers still use, by the address of the struct that they have.
_exported: dict[int, tuple[Any, ...]] = {}

_python = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _python)
)
# A capsule that is going away must not be counted as an object again: its address is passed.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_clear = ctypes.PYFUNCTYPE(None)(("PyErr_Clear", _python))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))


# A consumer may let go while an error is set: that with which it refuses the capsule, or any that comes in the midst of
# an expression, as that of `numpy.from_dlpack(x)[100]`. No function of Python can bring that back, which is why the
# extension has some of C. With these, where there is no extension, it is lost: that expression is then a "SystemError:
# error return without exception set". The memory is let go of all the same.
def _delete(address: int) -> None:
    """The consumer is done."""
    _clear()
    _exported.pop(address, None)


def _unused(capsule: int) -> None:
    """The capsule goes; one that was consumed has another name."""
    _clear()
    for name in (_NAME, _VERSIONED):
        if _is_valid(capsule, name):
            _exported.pop(_pointer(capsule, name), None)


# Kept, since consumers have their addresses.
_callbacks = _Deleter(_delete), _Deleter(_unused)
_delete_address, _destructor = (ctypes.cast(callback, ctypes.c_void_p) for callback in _callbacks)


def release_with(destructor: int, deleter_of: Callable[[dict[int, tuple[Any, ...]]], int]) -> None:
    """Capsules, and what consumers use, are let go of through C functions of the extension from now on."""
    global _destructor, _delete_address
    _destructor, _delete_address = ctypes.c_void_p(destructor), ctypes.c_void_p(deleter_of(_exported))


def capsule(
    pointer: int,
    dtype: str,
    itemsize: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    device: tuple[int, int],
    owner: object,
    versioned: bool,
) -> Any:
    """A capsule over memory that ``owner`` keeps; ``strides`` count elements. Raises BufferError for types that DLPack
    has no code for."""
    if dtype not in _BY_NAME:
        raise BufferError(f"DLPack has no code for {dtype}")
    rank = len(shape)
    sizes = (ctypes.c_int64 * (2 * rank + 1))(*shape, *strides)
    address = ctypes.addressof(sizes)
    at = ctypes.POINTER(ctypes.c_int64)
    tensor = Tensor(
        data=pointer or None,
        device_type=device[0],
        device_id=device[1],
        ndim=rank,
        code=_BY_NAME[dtype],
        bits=8 * itemsize,
        lanes=1,
        shape=ctypes.cast(address, at),
        strides=ctypes.cast(address + 8 * rank, at),
        byte_offset=0,
    )
    deleter = _delete_address
    managed = Versioned(1, 1, None, deleter, 0, tensor) if versioned else _Managed(tensor, None, deleter)
    key = ctypes.addressof(managed)
    _exported[key] = (managed, sizes, owner)
    return _new(key, _VERSIONED if versioned else _NAME, _destructor)


_BY_NAME = {
    text.format(bits): code for code, text in CODES.items() for bits in ((8, 16, 32, 64, 128) if "{}" in text else (8,))
}


def dlpack_code(dtype: str) -> int | None:
    """DLPack's code of the kind of type; None for types that it has no code for."""
    return _BY_NAME.get(dtype)
