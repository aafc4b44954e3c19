"""Arguments that are addresses, which lowered programs take: integers, pointers of ctypes, or arrays, whose first
element is meant."""

from __future__ import annotations

import ctypes
from numbers import Integral
from typing import Any

from offload.artifact.meta import Argument
from offload.runtime.arguments import check_place, check_use
from offload.runtime.dtypes import Mismatch, find, numpy_dtype, to_int
from offload.runtime.memory import ADDRESSES, row_major
from offload.runtime.native import Native
from offload.runtime.views import View, view_of

_to_address = to_int(find("uint64"))


class PointerPacker:
    """Turns what is passed for one argument into an address.

    Nothing tells the elements' type or the shape that are meant: those of an array are its caller's to know, and its
    strides, which such programs are often given beside it."""

    def __init__(self, argument: Argument, native: Native, space: str) -> None:
        self.argument, self.native, self.space = argument, native, space

    def __call__(self, value: Any, keep: list[object]) -> int:
        """The address; what has to stay alive during the call is put into ``keep``. Raises `Mismatch`."""
        if value is None or isinstance(value, bool):
            raise Mismatch(str(value), "pass an array or an address, or 0 for none")
        if isinstance(value, Integral):
            return _to_address(value)
        if isinstance(value, ADDRESSES):
            keep.append(value)
            pointer: Any = value
            return ctypes.cast(pointer, ctypes.c_void_p).value or 0
        view = view_of(value)
        keep.append(view)
        name = self.argument.name or "x"
        check_place(view, name, self.space, self.native)
        check_use(view, name)
        return view.pointer

    def check(self, view: View, writes: bool = True) -> None:
        """Raises `Mismatch` for an array that a copy does not stand for."""
        check_use(view, self.argument.name or "x", writes)
        steps = tuple(step * view.itemsize for step in row_major(view.shape))
        if view.strides is not None and 0 not in view.shape:
            for size, step, wanted in zip(view.shape, view.strides, steps, strict=True):
                if size != 1 and step != wanted:
                    raise Mismatch(
                        f"{view} that is not contiguous (strides {view.strides} bytes)",
                        "its copy on the device would be: pass one that is contiguous, or put it there with "
                        "lib.device.array(...)",
                    )

    @staticmethod
    def array_dtype(view: View) -> Any:
        """The NumPy dtype of an array. Raises `Mismatch` for one of records, or where a package is missing."""
        if view.dtype.startswith(("void", "record")):
            raise Mismatch(f"{view} of records", "put its bytes there with lib.device.array(x.view('uint8'))")
        return numpy_dtype(find(view.dtype))
