"""The C ABI of the mgpu runtime as ctypes sees it: mgpu.h and mgpu_functions.def, in their order."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_bool,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_ssize_t,
    c_ubyte,
    c_uint,
    c_uint32,
    c_uint64,
    c_ushort,
    c_void_p,
)
from typing import Any

from offload.config import BACKENDS as BACKENDS
from offload.runtime.abi_sparse import SPARSE_FUNCTIONS

ABI_VERSION = 1

# Codes of mgpuGetLastError.
SUCCESS, ERROR_INVALID, ERROR_NO_DEVICE, ERROR_NO_IMAGE, ERROR_BAD_IMAGE = range(5)
ERROR_MEMORY, ERROR_UNSUPPORTED, ERROR_DRIVER, ERROR_ASSERT = range(5, 9)

# A driver's default stream, wherever a stream is named.
DEFAULT_STREAM = 1

# What mgpuCount counts.
COUNT_STREAMS, COUNT_EVENTS, COUNT_POOLED_STREAMS, COUNT_POOLED_EVENTS = range(4)
COUNT_ALLOCATIONS, COUNT_MODULES, COUNT_QUEUED, COUNT_LATE_WRITES, COUNT_DESCRIPTORS, COUNT_OPERANDS = range(4, 10)


class ModuleSlot(ctypes.Structure):
    """mgpuModuleSlot: one gpu.module of an artifact; ``state`` belongs to the runtime."""

    _fields_ = (
        ("images_begin", c_void_p),
        ("images_end", c_void_p),
        ("name", c_char_p),
        ("state", c_void_p),
    )


class KernelSlot(ctypes.Structure):
    """mgpuKernelSlot: one kernel of such a module; ``state`` belongs to the runtime."""

    _fields_ = (("module", POINTER(ModuleSlot)), ("name", c_char_p), ("state", c_void_p))


class GlobalSlot(ctypes.Structure):
    """mgpuGlobalSlot: a global of host code that kernels use; ``state`` belongs to the runtime."""

    _fields_ = (("initial", c_void_p), ("size", c_uint64), ("state", c_void_p))


class Scope(ctypes.Structure):
    """mgpuScope: the streams of one activation of a host function."""

    _fields_ = (("count", c_uint32), ("next", c_uint32), ("outer", c_void_p), ("streams", c_void_p * 14))


class RawDeviceInfo(ctypes.Structure):
    """mgpuDeviceInfo: a device as bindings see it."""

    _fields_ = (
        ("backend", c_char * 16),
        ("name", c_char * 128),
        ("chip", c_char * 64),
        ("memory_bytes", c_uint64),
        ("warp_size", c_uint32),
        ("multiprocessors", c_uint32),
    )


class KeptError(ctypes.Structure):
    """mgpuKeptError: a thread's kept error."""

    _fields_ = (("code", c_int32), ("message", c_char * 1024))


class Memref1d(ctypes.Structure):
    """mgpuMemref1d: a memref of rank 1; offset, size and stride in elements."""

    _fields_ = (
        ("allocated", c_void_p),
        ("aligned", c_void_p),
        ("offset", c_int64),
        ("size", c_int64),
        ("stride", c_int64),
    )


_stream = _event = _module = _memory = c_void_p
_index = c_ssize_t
_sizes = POINTER(c_int64)

# (return type, name, parameter types), append only like the file that it mirrors; a test compares the two.
FUNCTIONS: tuple[tuple[Any, str, tuple[Any, ...]], ...] = (
    (_module, "mgpuModuleLoad", (c_void_p, c_size_t)),
    (_module, "mgpuModuleLoadJIT", (c_void_p, c_int)),
    (None, "mgpuModuleUnload", (_module,)),
    (c_void_p, "mgpuModuleGetFunction", (_module, c_char_p)),
    (
        None,
        "mgpuLaunchKernel",
        (c_void_p, *(_index,) * 6, c_int32, _stream, POINTER(c_void_p), POINTER(c_void_p), c_size_t),
    ),
    (_stream, "mgpuStreamCreate", ()),
    (None, "mgpuStreamDestroy", (_stream,)),
    (None, "mgpuStreamSynchronize", (_stream,)),
    (None, "mgpuStreamWaitEvent", (_stream, _event)),
    (_event, "mgpuEventCreate", ()),
    (None, "mgpuEventDestroy", (_event,)),
    (None, "mgpuEventSynchronize", (_event,)),
    (None, "mgpuEventRecord", (_event, _stream)),
    (_memory, "mgpuMemAlloc", (c_uint64, _stream, c_bool)),
    (None, "mgpuMemFree", (_memory, _stream)),
    (None, "mgpuMemcpy", (_memory, _memory, c_size_t, _stream)),
    (None, "mgpuMemset32", (_memory, c_uint, c_size_t, _stream)),
    (None, "mgpuMemset16", (_memory, c_ushort, c_size_t, _stream)),
    (None, "mgpuMemHostRegister", (c_void_p, c_uint64)),
    (None, "mgpuMemHostRegisterMemRef", (c_int64, c_void_p, c_int64)),
    (None, "mgpuMemHostUnregister", (c_void_p,)),
    (None, "mgpuMemHostUnregisterMemRef", (c_int64, c_void_p, c_int64)),
    (None, "mgpuSetDefaultDevice", (c_int32,)),
    (
        None,
        "mgpuKernelLaunch",
        (POINTER(KernelSlot), *(_index,) * 9, c_int32, _stream, POINTER(c_void_p), c_size_t, c_int32),
    ),
    (_stream, "mgpuScopeStream", (POINTER(Scope),)),
    (None, "mgpuScopeEnd", (POINTER(Scope),)),
    (None, "mgpuStreamWaitStream", (_stream, _stream)),
    (None, "mgpuMemset8", (_memory, c_ubyte, c_size_t, _stream)),
    (None, "mgpuMemset64", (_memory, c_uint64, c_size_t, _stream)),
    (c_int32, "mgpuGetLastError", ()),
    (c_char_p, "mgpuGetLastErrorMessage", ()),
    (c_int32, "mgpuDeviceCount", (c_char_p,)),
    (c_int32, "mgpuDeviceGetInfo", (c_char_p, c_int32, POINTER(RawDeviceInfo))),
    (c_int32, "mgpuBackendUse", (c_char_p,)),
    (c_char_p, "mgpuBackendName", ()),
    (c_int32, "mgpuGetDefaultDevice", ()),
    (_stream, "mgpuSetThreadStream", (_stream,)),
    (
        None,
        "mgpuLaunchClusterKernel",
        (c_void_p, *(_index,) * 9, c_int32, _stream, POINTER(c_void_p), POINTER(c_void_p)),
    ),
    (None, "mgpuMemcpyStrided", (_memory, _sizes, _memory, _sizes, _sizes, c_int64, c_size_t, _stream)),
    (None, "mgpuMemsetStrided", (_memory, _sizes, _sizes, c_int64, c_void_p, c_size_t, _stream)),
    (_memory, "mgpuSharedGlobal", (POINTER(GlobalSlot),)),
    (c_void_p, "mgpuGuardEnter", (c_void_p,)),
    (None, "mgpuGuardLeave", (c_void_p,)),
    (None, "mgpuAssertFail", (c_char_p, c_char_p)),
    (c_int64, "mgpuCount", (c_int32,)),
    (None, "mgpuHostSchedule", (c_uint64,)),
    *SPARSE_FUNCTIONS,
    (
        None,
        "mgpuTensorMapEncodeTiled",
        (
            *(c_void_p, c_int32, c_uint32, c_void_p, POINTER(c_uint64), POINTER(c_uint64)),
            *(POINTER(c_uint32), POINTER(c_uint32), c_int32, c_int32, c_int32, c_int32),
        ),
    ),
    (_memory, "mgpuTensorMapEncodeTiledMemref", (c_int64, c_void_p, *(c_int64,) * 5, POINTER(c_int64))),
    (None, "mgpuCheckShapes", (c_int64, _sizes, _sizes, c_char_p)),
    (Memref1d, "mgpuMemGetDeviceMemRef1dFloat", (_memory, _memory, c_int64, c_int64, c_int64)),
    (Memref1d, "mgpuMemGetDeviceMemRef1dInt32", (_memory, _memory, c_int64, c_int64, c_int64)),
    (None, "mgpuCheckAllocation", (c_void_p, c_uint64)),
    (
        None,
        "mgpuLaunchKernelCooperative",
        (c_void_p, *(_index,) * 9, c_int32, _stream, POINTER(c_void_p), POINTER(c_void_p)),
    ),
    (None, "mgpuCheckSizes", (c_int64, _sizes, c_int64, c_bool, c_char_p)),
    (None, "mgpuCheckMemory", (c_bool, c_char_p)),
    (c_int32, "mgpuKernelOccupancy", (POINTER(KernelSlot), c_int32, c_void_p, c_void_p)),
    (c_bool, "mgpuStreamCapturing", (_stream,)),
    (None, "mgpuScopeWait", (POINTER(Scope),)),
    (None, "mgpuErrorExchange", (POINTER(KeptError),)),
    (_event, "mgpuStreamMark", (_stream,)),
    (c_int32, "mgpuStreamDevice", (_stream,)),
    (_stream, "mgpuStreamDriver", (_stream,)),
    (None, "mgpuSizesFail", (c_char_p, c_char_p, c_int64, c_int64)),
    (None, "mgpuWaitForLater", ()),
    (_memory, "mgpuMemAllocLater", (c_uint64,)),
    (None, "mgpuMemFreeLater", (_memory,)),
)


class Api(ctypes.Structure):
    """mgpuApi: the function table of an artifact. Calls through it release the GIL."""

    _fields_ = (
        ("abi_version", c_uint32),
        ("size", c_uint32),
        *((name, ctypes.CFUNCTYPE(result, *parameters)) for result, name, parameters in FUNCTIONS),
    )
