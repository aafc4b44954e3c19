"""The sparse functions of the C ABI as ctypes sees them: the end of mgpu_functions.def, in its order."""

from __future__ import annotations

from ctypes import c_int32, c_ssize_t, c_void_p
from typing import Any

_handle = _memory = _stream = c_void_p
_size = c_ssize_t
_type = _mode = _flag = c_int32

SPARSE_FUNCTIONS: tuple[tuple[Any, str, tuple[Any, ...]], ...] = (
    (None, "mgpuCreateSparseEnv", ()),
    (None, "mgpuDestroySparseEnv", ()),
    (_handle, "mgpuCreateDnVec", (_size, _memory, _type, _stream)),
    (None, "mgpuDestroyDnVec", (_handle, _stream)),
    (_handle, "mgpuCreateDnMat", (_size, _size, _memory, _type, _stream)),
    (None, "mgpuDestroyDnMat", (_handle, _stream)),
    (_handle, "mgpuCreateCoo", (_size, _size, _size, _memory, _memory, _memory, _type, _type, _stream)),
    (_handle, "mgpuCreateCooAoS", (_size, _size, _size, _memory, _memory, _type, _type, _stream)),
    (_handle, "mgpuCreateCsr", (_size, _size, _size, _memory, _memory, _memory, _type, _type, _type, _stream)),
    (_handle, "mgpuCreateCsc", (_size, _size, _size, _memory, _memory, _memory, _type, _type, _type, _stream)),
    (
        _handle,
        "mgpuCreateBsr",
        (_size, _size, _size, _size, _size, _memory, _memory, _memory, _type, _type, _type, _stream),
    ),
    (None, "mgpuDestroySpMat", (_handle, _stream)),
    (_size, "mgpuSpMVBufferSize", (_mode, _handle, _handle, _handle, _type, _stream)),
    (None, "mgpuSpMV", (_mode, _handle, _handle, _handle, _type, _memory, _stream)),
    (_size, "mgpuSpMMBufferSize", (_mode, _mode, _handle, _handle, _handle, _type, _stream)),
    (None, "mgpuSpMM", (_mode, _mode, _handle, _handle, _handle, _type, _memory, _stream)),
    (_size, "mgpuSDDMMBufferSize", (_mode, _mode, _handle, _handle, _handle, _type, _stream)),
    (None, "mgpuSDDMM", (_mode, _mode, _handle, _handle, _handle, _type, _memory, _stream)),
    (_handle, "mgpuSpGEMMCreateDescr", (_stream,)),
    (None, "mgpuSpGEMMDestroyDescr", (_handle, _stream)),
    (
        _size,
        "mgpuSpGEMMWorkEstimation",
        (_handle, _mode, _mode, _handle, _handle, _handle, _type, _size, _memory, _stream),
    ),
    (_size, "mgpuSpGEMMCompute", (_handle, _mode, _mode, _handle, _handle, _handle, _type, _size, _memory, _stream)),
    (None, "mgpuSpGEMMCopy", (_handle, _mode, _mode, _handle, _handle, _handle, _type, _stream)),
    (None, "mgpuSpMatGetSize", (_handle, _memory, _memory, _memory, _stream)),
    (None, "mgpuSetCsrPointers", (_handle, _memory, _memory, _memory, _stream)),
    (None, "mgpuCreateSparseLtEnv", ()),
    (None, "mgpuDestroySparseLtEnv", ()),
    (None, "mgpuCreateCuSparseLtDnMat", (_handle, _size, _size, _memory, _type, _stream)),
    (None, "mgpuDestroyCuSparseLtDnMat", (_handle, _stream)),
    (None, "mgpuCusparseLtCreate2To4SpMat", (_handle, _size, _size, _memory, _type, _stream)),
    (None, "mgpuDestroyCuSparseLtSpMat", (_handle, _stream)),
    (None, "mgpuCuSparseLtSpMMBufferSize", (_memory, _mode, _mode, _handle, _handle, _handle, _type, _flag, _stream)),
    (None, "mgpuCuSparseLtSpMM", (_handle, _handle, _handle, _memory, _memory, _memory, _stream)),
)
