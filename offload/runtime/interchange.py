"""Arrays and streams of other packages: DLPack, the array interface of GPU packages, their stream handles.

Sources: DLPack 1.1 (dmlc.github.io/dlpack), the CUDA array interface, version 3 (numba.readthedocs.io), which
packages for AMD's GPUs use as well, and the `__cuda_stream__` protocol of cuda-python.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from numbers import Integral
from operator import index
from typing import Any

from offload.runtime.abi import DEFAULT_STREAM
from offload.runtime.dtypes import DTYPES, Mismatch

# DLPack device types by what can use their memory, and back.
_DEVICES = {
    1: ("host",),
    2: ("cuda",),
    3: ("host", "cuda"),
    10: ("hip",),
    11: ("host", "hip"),
    13: ("host", "cuda"),
}
DLPACK_DEVICES = {"host": 1, "cuda": 2, "hip": 10}

# The default stream of a driver as DLPack calls it, by device type.
DEFAULT_STREAMS = {2: 1, 10: 0, 13: 1}


def consumer_stream(backend: str, stream: int | None) -> int | None:
    """The handle of the stream that a consumer of DLPack names; None where the data has to be ready at once. Raises
    ValueError for a number that names none on that backend."""
    if backend == "host":
        if stream is not None:
            raise ValueError(f"memory of the CPU has no streams; pass stream=None, not {stream!r}")
        return None
    if stream is not None and not (isinstance(stream, int) and 0 <= stream < 1 << 64):
        raise ValueError(f"stream={stream!r} is no handle of a stream")
    if backend == "cuda":
        if stream == 0:
            raise ValueError("stream=0 might be either default stream: pass 1 for the legacy one, 2 for the thread's")
        return 1 if stream is None else stream
    if stream in (1, 2):
        raise ValueError(f"stream={stream} names no stream of {backend}; pass 0 for the default one")
    return stream or None


# Type codes of DLPack, with the names of the types that have them.
CODES = {0: "int{}", 1: "uint{}", 2: "float{}", 4: "bfloat{}", 5: "complex{}", 6: "bool"}
CODES |= {
    code: f"float8_{name}"
    for code, name in enumerate(("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"), 7)
}
_READ_ONLY, _IS_COPIED = 1, 2


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned; an unversioned one starts with its tensor."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


# Prototypes of our own: those of ctypes.pythonapi's attributes are the whole process's.
_named = (ctypes.py_object, ctypes.c_char_p)
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, *_named)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, *_named)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _capsule_pointer(capsule: object, name: bytes) -> int | None:
    if not _is_capsule(capsule, name):
        return None
    pointer: int | None = _pointer_in(capsule, name)
    return pointer


def foreign_memory(value: Any, ordered: bool, before: tuple[str, int] | None) -> tuple[Any, ...] | None:
    """The fields of a View of an object with `__dlpack__` or `__cuda_array_interface__`; None for other
    objects.

    The last field is the producer's stream that has to be waited for, or None. DLPack producers order their
    work ``before`` a driver's stream of that backend, or before its default stream. Without ``ordered`` nobody waits.
    Raises `Mismatch` where the object refuses, or holds what no argument can be."""
    # DLPack first: packages that give both may leave the stream out of the other.
    with sound(value, "__dlpack__"):
        if hasattr(value, "__dlpack__"):
            return _checked(_from_dlpack(value, ordered, before))
    with sound(value, "__cuda_array_interface__"):
        interface = getattr(value, "__cuda_array_interface__", None)
        if not isinstance(interface, dict):
            return None
        seen = _checked(_from_interface(value, interface))
    return seen if ordered else (*seen[:-1], None)


def _checked(seen: tuple[Any, ...]) -> tuple[Any, ...]:
    """The fields of a View, where there can be such an array. Raises TypeError and ValueError where there is none."""
    pointer, name, itemsize, alignment, given, steps, *others, stream = seen
    shape = tuple(map(index, given))
    strides = None if steps is None else tuple(map(index, steps))
    if any(size < 0 for size in shape):
        raise ValueError(f"its shape is {shape}")
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"its strides are {strides}, of shape {shape}")
    size = itemsize * math.prod(shape)
    if size >= 1 << 63:
        raise ValueError(f"its shape is {shape}, more than any memory holds")
    pointer = index(pointer)
    if not 0 <= pointer < 1 << 64 or (size and not pointer):
        raise ValueError(f"its address is {pointer}")
    if stream is not None and not 0 < index(stream) < 1 << 64:
        raise ValueError(f"its stream is {stream}")
    return (pointer, name, itemsize, alignment, shape, strides, *others, stream)


class sound:  # small letters, as contexts have; in calls, where a generator would take longer
    """What an object's own code raises, and what its answers lead to, is a `Mismatch`: it is no array."""

    __slots__ = ("interface", "value")

    def __init__(self, value: object, interface: str) -> None:
        self.value, self.interface = value, interface

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, Mismatch):
            raise Mismatch(
                f"a {type(self.value).__name__} whose {self.interface} is of no use ({type(error).__name__}: {error})",
                "pass a NumPy array, or what exports its memory as that interface says",
            ) from error


def refuse_mask(value: object, interface: dict[str, Any]) -> None:
    """Raises `Mismatch` where an interface, NumPy's or CUDA's, says that some elements are none."""
    if interface.get("mask") is not None:
        raise Mismatch(f"a {type(value).__name__} with a mask", "kernels see no mask: pass an array without one")


def _from_interface(value: object, interface: dict[str, Any]) -> tuple[Any, ...]:
    import numpy

    dtype = numpy.dtype(interface["typestr"])
    # Floats that NumPy does not have travel as raw bytes or integers here; the object knows better.
    name = str(getattr(value, "dtype", dtype.name)).rpartition(".")[2]
    if name not in DTYPES or DTYPES[name].size != dtype.itemsize:
        name = dtype.name
    refuse_mask(value, interface)
    pointer, readonly = interface["data"]
    return (
        pointer or 0,
        name,
        dtype.itemsize,
        dtype.alignment,
        interface["shape"],
        interface.get("strides"),
        ("cuda", "hip"),
        value,
        bool(readonly),
        bool(dtype.isnative),
        False,
        None,
        interface.get("stream"),
    )


def _negated(value: Any) -> bool:
    """Whether it is a tensor of torch whose signs are to be changed when it is read (x.conj().imag): torch's DLPack
    exports it as if they were not."""
    is_neg = getattr(value, "is_neg", None)
    return callable(is_neg) and is_neg() is True


def _consumer(value: Any, ordered: bool, before: tuple[str, int] | None) -> dict[str, int]:
    """Which stream a producer orders its work before, as an argument. It is named: not all versions of torch take None
    for the default stream, and what is not named for -1."""
    device = getattr(value, "__dlpack_device__", None)
    kind = None if device is None else device()[0]
    if kind not in DEFAULT_STREAMS:
        return {}
    if before is not None and before[0] in _DEVICES[kind]:
        return {"stream": before[1]}
    return {"stream": DEFAULT_STREAMS[kind] if ordered else -1}


def _exported(value: Any, options: dict[str, int]) -> object:
    """The DLPack capsule of an object. Raises `Mismatch` where it refuses."""
    try:
        if _negated(value):
            raise BufferError("its numbers are stored with the opposite sign")
        try:
            return value.__dlpack__(max_version=(1, 1), **options)
        except TypeError:  # Written before DLPack 1.0.
            return value.__dlpack__(**options)
    except (BufferError, RuntimeError, TypeError) as error:
        name = type(value).__name__
        if name.endswith("Tracer"):  # jax's error is a page on what a function may do with one
            raise Mismatch(f"a {name}, which has no numbers yet", "call it through jax.pure_callback") from None
        advice = "pass it detached, resolved, or a copy"
        raise Mismatch(f"a {name} that refuses DLPack ({error})", advice) from None


def _borrowed(value: object, capsule: object) -> tuple[Tensor, bool, bool]:
    """The tensor in a capsule, whether it is only to be read, and whether it is a copy. It is not consumed: the capsule
    keeps its name, so its own destructor releases the tensor."""
    pointer = _capsule_pointer(capsule, b"dltensor")
    if pointer is not None:
        return Tensor.from_address(pointer), False, False
    pointer = _capsule_pointer(capsule, b"dltensor_versioned")
    managed = Versioned.from_address(pointer) if pointer is not None else None
    if managed is None or managed.major != 1:
        raise Mismatch(f"a {type(value).__name__} with DLPack of an unknown version", "pass a NumPy array")
    return managed.tensor, bool(managed.flags & _READ_ONLY), bool(managed.flags & _IS_COPIED)


def _from_dlpack(value: Any, ordered: bool, before: tuple[str, int] | None) -> tuple[Any, ...]:
    options = _consumer(value, ordered, before)
    capsule = _exported(value, options)
    tensor, readonly, copied = _borrowed(value, capsule)
    name = CODES.get(tensor.code, "").format(tensor.bits)
    places = _DEVICES.get(tensor.device_type)
    if tensor.lanes != 1 or name not in DTYPES:
        raise Mismatch(
            f"a {type(value).__name__} of DLPack type code {tensor.code} with {tensor.bits} bits and "
            f"{tensor.lanes} lanes",
            "convert it to a type that NumPy or ml_dtypes has",
        )
    if places is None:
        raise Mismatch(
            f"a {type(value).__name__} on a device of DLPack type {tensor.device_type}", "copy it to the CPU"
        )
    dtype = DTYPES[name]
    if tensor.ndim < 0 or (tensor.ndim and not tensor.shape):
        raise ValueError(f"its rank is {tensor.ndim}, and its shape {'not given' if tensor.ndim > 0 else 'none'}")
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    strides = tuple(s * dtype.size for s in tensor.strides[: tensor.ndim]) if tensor.ndim and tensor.strides else None
    on_gpu = tensor.device_type in DEFAULT_STREAMS
    is_before = before is not None and options.get("stream") == before[1]
    return (
        (tensor.data or 0) + tensor.byte_offset,
        name,
        dtype.size,
        dtype.alignment,
        shape,
        strides,
        places,
        (value, capsule),
        readonly,
        True,
        copied,
        tensor.device_id if on_gpu else None,
        DEFAULT_STREAM if on_gpu and ordered and not is_before else None,
    )


def stream_handle(stream: Any, backend: Callable[[], str]) -> int | None:
    """The handle of a stream of another package, or of an integer, as the runtime takes it; raises TypeError for
    anything else. None is the calling thread's own stream."""
    handle = _driver_handle(stream)
    if handle:
        return handle
    # 0 is a driver's default stream, which the runtime, for which 0 is the thread's own, has to be told otherwise.
    return None if backend() == "host" else DEFAULT_STREAM


_LAST_DEFAULT = 2
_FIRST_ADDRESS = 1 << 20
"""Below it Linux puts nothing of a program, and no device has as much workgroup memory for one block."""


def _driver_handle(stream: Any) -> int:
    if isinstance(stream, Integral) and not isinstance(stream, bool):
        number = int(stream)
        if _LAST_DEFAULT < number < _FIRST_ADDRESS:
            raise TypeError(
                f"{number} is no handle of a stream, which is an address (0, 1 and 2 are a driver's default streams); "
                "a number of bytes of workgroup memory comes behind the stream: [grid, block, None, shared_bytes]"
            )
        if not -(1 << 63) <= number < 1 << 64:  # ctypes would pass what is left of it in 64 bits
            raise TypeError(f"{number} is no handle of a stream: these have 64 bits")
        return number % (1 << 64)  # an address may come with a sign
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    # torch, cupy, PyCUDA and Numba; then hip-python's ihipStream_t.
    for attribute in ("cuda_stream", "ptr", "handle"):
        handle: Any = getattr(stream, attribute, None)
        if isinstance(handle, ctypes.c_void_p):  # Numba's; None is that of its default stream
            return handle.value or 0
        if hasattr(handle, "__index__"):  # an integer, or one of cuda-python's
            return index(handle)
    if hasattr(stream, "as_c_void_p"):
        return int(stream.as_c_void_p().value or 0)
    raise TypeError(
        f"expected a stream of lib.stream(), a driver's handle or an object with one, given a {type(stream).__name__}"
    )


def device_index(device: Any) -> int:
    """The number of a device of another package; integers, as hip-python has, are their own. Raises TypeError for
    anything else."""
    for attribute in ("device_id", "id", "index"):  # cuda.core; cupy; torch
        number = getattr(device, attribute, device)
        if isinstance(number, Integral) and not isinstance(number, bool):  # NumPy's integers are no int
            return int(number)
    raise TypeError(f"expected the number of a device, or an object with one, given a {type(device).__name__}")
