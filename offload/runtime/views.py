"""What memory an object stands for: NumPy arrays, buffers, DLPack and device arrays, seen alike."""

from __future__ import annotations

from typing import Any, NamedTuple

from offload.runtime import interchange
from offload.runtime.array import WITHOUT_MASK, DeviceArray, is_masked
from offload.runtime.dtypes import Mismatch
from offload.runtime.memory import row_major


class View(NamedTuple):
    """The memory of an array. ``strides`` count bytes, None stands for row-major; ``places`` are the backends
    that can use the memory ("host" is the CPU); ``owner`` keeps it alive, the object that was given or a tuple that
    begins with it. ``native`` is false for foreign byte order, ``copied`` true for a copy that was made for who asked.
    ``device`` is the index of the GPU whose memory it is, where that is known, ``wait_for`` a foreign stream whose work
    has to be done first, of that GPU if it is a default stream."""

    pointer: int
    dtype: str
    itemsize: int
    alignment: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    places: tuple[str, ...]
    owner: object
    readonly: bool = False
    native: bool = True
    copied: bool = False
    device: int | None = None
    wait_for: int | None = None

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def bounds(self) -> tuple[int, int]:
        """The first address, and the first after it; at least one byte apart."""
        low = high = 0
        if 0 in self.shape:
            return self.pointer, self.pointer + 1
        steps = self.strides or [step * self.itemsize for step in row_major(self.shape)]
        for size, step in zip(self.shape, steps, strict=True):
            reach = (size - 1) * step
            low, high = low + min(reach, 0), high + max(reach, 0)
        return self.pointer + low, self.pointer + high + self.itemsize

    def changed(self, how: str, name: str, dtype: str = "", writes: bool = False) -> str:
        """What makes another array of this one, in words that its package has. ``how`` is "astype" or "view", with a
        ``dtype``, "copy" or "contiguous"; ``name`` is the argument's, which a call ``writes``."""
        given = self.owner[0] if isinstance(self.owner, tuple) else self.owner
        if callable(getattr(given, "contiguous", None)):  # torch's; a memoryview's is a bool
            words = {"astype": f"to(torch.{dtype})", "view": f"view(torch.{dtype})", "copy": "clone()"}
            return f"{name}.{words.get(how, 'contiguous()')}"
        if isinstance(given, DeviceArray):
            name = f"{name}.numpy()"  # which is a copy, and contiguous
            changed = name if how in ("copy", "contiguous") else f"{name}.{how}('{dtype}')"
            return changed if "host" in self.places else f"lib.device.array({changed})"
        made = f"numpy.from_dlpack({name})" if "host" in self.places and _only_dlpack(given) else ""
        if how == "contiguous":
            return f"{name}.copy()" if "host" not in self.places else f"numpy.ascontiguousarray({made or name})"
        if isinstance(given, bytes):  # to NumPy a string
            return f"numpy.frombuffer({name}, '{dtype or self.dtype}')" + (".copy()" if how == "copy" or writes else "")
        if how == "astype" and self.dtype == "uint8" and len(self.shape) == 1 and not hasattr(given, "dtype"):
            return f"numpy.frombuffer({name}, '{dtype}')"  # of a bytearray or a file in memory: the same bytes
        array = name if hasattr(given, how) else made or f"numpy.asarray({name})"
        return f"{array}.copy()" if how == "copy" else f"{array}.{how}('{dtype}')"


def _only_dlpack(value: object) -> bool:
    """Whether NumPy takes an object's memory by `numpy.from_dlpack` alone: its other functions would make an array of
    the object."""
    return hasattr(value, "__dlpack__") and not (hasattr(value, "__array__") or hasattr(value, "__array_interface__"))


def view_of(value: Any, ordered: bool = True, before: tuple[str, int] | None = None) -> View:
    """The view of an array-like object; raises `Mismatch` for anything that owns no memory of its own. With ``ordered``
    other packages are asked to finish what they do with it first, those that can ``before`` what is put on that
    driver's stream of a backend from now on."""
    import numpy

    if type(value) is View:
        return value

    if isinstance(value, numpy.ndarray):
        if is_masked(value):
            raise Mismatch("a masked array", f"kernels see no mask: {WITHOUT_MASK}")
        return _of_numpy(value, value)
    if isinstance(value, DeviceArray):
        size = value.dtype.itemsize
        strides = None if value.strides is None else tuple(stride * size for stride in value.strides)
        return View(
            value.pointer,
            value.dtype.name,
            size,
            value.dtype.alignment,
            value.shape,
            strides,
            (value.backend, "host") if value.shared else (value.backend,),
            value,
        )
    foreign = interchange.foreign_memory(value, ordered, before)
    if foreign is not None:
        return View(*foreign)
    if isinstance(value, numpy.generic):
        raise Mismatch(f"a scalar of type {type(value).__name__}", "pass an array, numpy.array(...) of it")
    with interchange.sound(value, "__array_interface__"):
        described = getattr(value, "__array_interface__", None)
        if described is not None:
            array = numpy.asarray(value)
            interchange.refuse_mask(value, described)
            return _of_numpy(array, value)
    try:
        buffer = memoryview(value)
    except TypeError:
        raise Mismatch(f"a {type(value).__name__}", "pass an array, for instance numpy.asarray(...) of it") from None
    except (BufferError, ValueError) as error:  # what it was over has been released or closed
        raise Mismatch(f"a {type(value).__name__} without memory ({error})", "pass an array that is in use") from None
    try:
        array = numpy.asarray(buffer)
    except ValueError:  # of pointers, for instance, a pointer of ctypes itself among them
        said = f"a {type(value).__name__} whose elements have no dtype (format {buffer.format!r})"
        raise Mismatch(said, "pass an array, for instance numpy.ctypeslib.as_array(pointer, shape)") from None
    return _of_numpy(array, value)


def gpu_of(value: Any, backend: str) -> int | None:
    """The GPU of that backend whose memory alone an array or a `View` is in, where that is known; others do not reach
    it."""
    if type(value) is DeviceArray:
        return None if value.shared or backend == "host" or value.backend != backend else value.device
    return value.device if type(value) is View and value.places == (backend,) else None


def _of_numpy(array: Any, owner: object) -> View:
    dtype = array.dtype
    return View(
        array.ctypes.data,
        dtype.name,
        dtype.itemsize,
        dtype.alignment,
        array.shape,
        array.strides,
        ("host",),
        (owner, array),
        not array.flags.writeable,
        bool(dtype.isnative),
    )
