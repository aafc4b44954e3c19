"""Memref arguments: checked against the signature, packed as the descriptors of MLIR's C interface.

A descriptor is {allocated pointer, aligned pointer, i64 offset, i64 sizes[rank], i64 strides[rank]}, strides
in elements: "Target LLVM IR" of the MLIR documentation, section "C-compatible wrapper emission".
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Callable
from typing import Any

from offload.artifact.meta import Argument
from offload.runtime.array import DeviceArray
from offload.runtime.dtypes import Mismatch, find, numpy_dtype
from offload.runtime.memory import row_major
from offload.runtime.native import Native
from offload.runtime.views import View, view_of

_address = ctypes.addressof
_byte_at: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer


class MemrefPacker:
    """Turns arrays into the descriptor bytes of one argument.

    Calling it with an array and a list returns the bytes; what has to stay alive during the call, besides the
    array itself, is put into the list. Raises `Mismatch`. NumPy and device arrays that fit exactly take
    the short ways; everything else, and every refusal, goes through `View`."""

    def __init__(self, argument: Argument, native: Native, space: str) -> None:
        """``space`` overrides the argument's: kernels read device memory whatever their type says. Raises
        `Mismatch` where the element type is unknown or needs a package that is missing."""
        import numpy

        self.argument = argument
        self.space = space
        self.native = native
        self.element = find(argument.dtype)
        self.rank = argument.rank
        self.array_type = numpy.ndarray
        # Small floats need ml_dtypes only where an array is seen, and then it is there.
        self.dtype = numpy_dtype(self.element) if self.element.family != "small" else None
        self.fixed = tuple((i, size) for i, size in enumerate(argument.shape) if size is not None)
        self.pack = struct.Struct(f"@PPq{2 * self.rank}q").pack
        self.short = argument.strides is None and self.dtype is not None
        self.on_device = space == "device"

    def __call__(self, value: Any, keep: list[object]) -> bytes:
        if (
            self.short
            and type(value) is self.array_type
            and value.dtype == self.dtype
            and value.ndim == self.rank
            and value.flags.carray  # contiguous, aligned and writeable
            and not (self.on_device and self.native.backend() != "host")
        ):
            shape = value.shape
            for index, size in self.fixed:
                if shape[index] != size:
                    break
            else:
                try:
                    pointer = _address(_byte_at(value))
                except (ValueError, TypeError, BufferError):  # empty
                    pointer = value.ctypes.data
                if self.rank == 1:
                    return self.pack(pointer, pointer, 0, shape[0], 1)
                return self.pack(pointer, pointer, 0, *shape, *row_major(shape))
        elif (
            type(value) is DeviceArray
            and self.short
            and value.strides is None
            and value.dtype == self.dtype
            and len(value.shape) == self.rank
            and self.space != "host"
            and value.backend == self.native.backend()
        ):
            shape = value.shape
            if all(shape[index] == size for index, size in self.fixed):
                return self.pack(value.pointer, value.pointer, 0, *shape, *row_major(shape))
        if value is None:
            return self._pack_nothing()
        view = view_of(value)
        keep.append(view)
        return self._pack_view(view)

    def _pack_nothing(self) -> bytes:
        """None: an array with 0 for each dynamic size, at no address."""
        if not self.argument.optional:
            raise Mismatch("None", "pass an array: only an argument with the attribute offload.optional takes None")
        shape = tuple(0 if size is None else size for size in self.argument.shape)
        strides = row_major(shape)
        if self.argument.strides is not None:
            pairs = zip(strides, self.argument.strides, strict=True)
            strides = [stride if wanted is None else wanted for stride, wanted in pairs]
        return self.pack(0, 0, self.argument.offset or 0, *shape, *strides)

    def array_dtype(self, view: View) -> Any:
        """The NumPy dtype of an array that fits. Raises `Mismatch` where it needs a package that is missing."""
        return self.dtype if self.dtype is not None else numpy_dtype(self.element)

    def check(self, view: View, writes: bool = True) -> None:
        """Raises `Mismatch` where an array does not fit, whatever memory it is in."""
        name = self.argument.name or "x"
        self._check_type(view, name, writes)
        check_use(view, name, writes)
        self._strides(view, name, writes)

    def _pack_view(self, view: View) -> bytes:
        name = self.argument.name or "x"
        writes = not self.argument.read_only
        self._check_type(view, name, writes)
        check_place(view, name, self.space, self.native)
        check_use(view, name, writes)
        strides = self._strides(view, name, writes)
        # The type of a strided memref fixes the offset; the base moves so that it lands on the first element.
        offset = self.argument.offset or 0
        base = view.pointer - offset * view.itemsize
        return self.pack(base % (1 << 64), base % (1 << 64), offset, *view.shape, *strides)

    def _check_type(self, view: View, name: str, writes: bool) -> None:
        if view.dtype.startswith(("void", "record")):
            raise Mismatch(
                f"{view} of records", f"pass one of the fields, or convert it to an array of {self.element.name}"
            )
        if view.dtype != self.element.name:
            # What differs in its sign alone needs no copy, which would lose what the function writes.
            same = view.dtype.removeprefix("u") == self.element.name.removeprefix("u")
            made = _changed(view, "view" if same else "astype", name, writes, self.element.name)
            raise Mismatch(str(view), f"convert it, for instance with {made}")
        if not view.native:
            raise Mismatch(
                f"{view} in foreign byte order",
                f"convert it to this machine's with {_changed(view, 'astype', name, writes, self.element.name)}",
            )
        if len(view.shape) != self.rank:
            raise Mismatch(
                f"{view} of rank {len(view.shape)}",
                f"pass an array of rank {self.rank}, for instance with reshape",
            )
        for index, size in self.fixed:
            if view.shape[index] != size:
                raise Mismatch(str(view), f"dimension {index} has to be {size}, it is {view.shape[index]}")

    def _strides(self, view: View, name: str, writes: bool) -> list[int]:
        strides = row_major(view.shape)
        steps = view.strides
        if steps is None:
            steps = tuple(stride * view.itemsize for stride in strides)
        wanted: tuple[int | None, ...] = tuple(strides) if self.argument.strides is None else self.argument.strides
        empty = 0 in view.shape
        for index, (size, step, want) in enumerate(zip(view.shape, steps, wanted, strict=True)):
            if size == 1 or empty:  # The stride is never used; keep the type's promise.
                strides[index] = strides[index] if want is None else want
                continue
            if step % view.itemsize:
                raise Mismatch(
                    f"{view} with {step} bytes between elements of {view.itemsize}",
                    f"pass a copy, {_changed(view, 'copy', name, writes)}",
                )
            strides[index] = step // view.itemsize
            if want is not None and strides[index] != want:
                if self.argument.strides is None:
                    raise Mismatch(
                        f"{view} that is not contiguous (strides {steps} bytes)",
                        f"pass {_changed(view, 'contiguous', name, writes)}",
                    )
                raise Mismatch(
                    f"{view} with stride {strides[index]} in dimension {index}",
                    f"pass an array with a stride of {want} element{'' if want == 1 else 's'} there",
                )
        return strides


def _changed(view: View, how: str, name: str, writes: bool, dtype: str = "") -> str:
    """What to pass in place of an array. Who passes a copy that is made in the call itself would not find what that
    ``writes``."""
    made = view.changed(how, name, dtype, writes)
    is_copy = made.endswith(".copy()") or not (how == "view" or made.startswith("numpy.frombuffer"))
    return f"{made}; what the call writes is in that copy then" if writes and is_copy else made


def check_use(view: View, name: str, writes: bool = True) -> None:
    """Raises `Mismatch` where code cannot use the memory as it is, wherever it is; ``name`` is the argument's."""
    if view.pointer % view.alignment:
        raise Mismatch(
            f"{view} at an address that is no multiple of {view.alignment} bytes",
            f"pass an aligned copy, {_changed(view, 'copy', name, writes)}",
        )
    if view.readonly and writes:
        made = _changed(view, "copy", name, writes)
        raise Mismatch(f"a read-only {view}", f"pass a writeable array, for instance {made}")
    if view.copied and writes:
        raise Mismatch(
            f"a {view} that its package exports as a copy, where nobody would find what the call writes",
            f"pass an array of your own, for instance {_changed(view, 'copy', name, writes)}",
        )


def captured(view: View) -> Mismatch:
    """The refusal of an array whose package's stream goes into a graph: to wait for that would spoil the graph."""
    return Mismatch(
        f"{view} whose stream is being captured into a graph",
        "launch a kernel on that stream, which goes into the graph then, or call this when the graph is made",
    )


def check_place(view: View, name: str, space: str, native: Native) -> None:
    """Raises `Mismatch` where code that wants memory of ``space`` does not reach it. Waits for another package that is
    at work on it."""
    if view.places == ("host",) and space != "device":
        return
    backend = native.backend()
    if space == "host":
        if "host" not in view.places:
            raise Mismatch(
                f"{view} in the memory of {view.places[0]}",
                f"the host reads this argument: pass {name}.numpy() or another copy in host memory",
            )
    elif backend not in view.places and (backend == "host" or space == "device" or "host" not in view.places):
        if view.places == ("host",):
            raise Mismatch(
                f"{view} in host memory, but the kernels run on {backend}",
                f"copy it to the device with lib.device.array({name}), or pass offload.stage({name}), which "
                "copies it there and back",
            )
        raise Mismatch(
            f"{view} in the memory of {view.places[0]}, but the backend in use is {backend}",
            f"make it anew with lib.device.array(...), or choose lib.use('{view.places[0]}')",
        )
    if view.wait_for is not None and backend != "host":
        with contextlib.nullcontext() if view.device is None else native.on_device(view.device):
            if native.api.mgpuStreamCapturing(view.wait_for):
                raise captured(view)
            native.api.mgpuStreamSynchronize(view.wait_for)
        native.check()


def bounds(descriptor: bytes, itemsize: int) -> tuple[int, int]:
    """The first address of the array behind a descriptor, and the first after it; at least one byte apart."""
    words = struct.unpack(f"@{len(descriptor) // 8}q", descriptor)
    rank = (len(words) - 3) // 2
    start = words[1] % (1 << 64) + words[2] * itemsize
    low = high = 0
    for size, stride in zip(words[3 : 3 + rank], words[3 + rank :], strict=True):
        if size == 0:
            return start, start + 1
        reach = (size - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return start + low * itemsize, start + (high + 1) * itemsize


def base_of(descriptor: bytes) -> int:
    """Where a descriptor says that its array's memory was allocated."""
    return int(struct.unpack_from("@P", descriptor)[0])


def sizes_of(descriptor: bytes, rank: int) -> tuple[int, ...]:
    """The sizes of the array behind a descriptor."""
    return struct.unpack_from(f"@{rank}q", descriptor, struct.calcsize("@PPq"))
