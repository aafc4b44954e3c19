"""Fast calls: prepared once per function, they run in the extension `_fast`; ctypes serves where there is none.

The extension takes the common case alone. Whatever it does not take goes to the method ``_call`` of the object that
was called, which does the whole work through ctypes, so both ways agree on results and errors."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from offload.artifact.meta import Argument, Signature
from offload.config import fast_calls
from offload.errors import ArtifactError
from offload.runtime import abi, turns
from offload.runtime.array import DeviceArray
from offload.runtime.dtypes import Mismatch, find, numpy_dtype
from offload.runtime.export import dlpack_code, release_with
from offload.runtime.interchange import DEFAULT_STREAMS, DLPACK_DEVICES
from offload.runtime.memory import DeviceAllocation, Uses
from offload.runtime.native import DeviceMemory, Native
from offload.runtime.pending import Mark, Pending, end_events_with
from offload.runtime.streams import MOST_OPEN, Stream

_FREE = not getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether this is a free-threaded Python and runs without its lock. The extension relies on the lock: importing it
would switch that on for the whole process."""


def _in_subinterpreter() -> bool:
    """The extension is for the main interpreter: in another, importing it waits for itself (Python 3.11) or fails."""
    # Prototypes of our own: those of ctypes.pythonapi's attributes are the whole process's.
    current = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyInterpreterState_Get", ctypes.pythonapi))
    number = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(("PyInterpreterState_GetID", ctypes.pythonapi))
    return bool(number(current()))


def _extension() -> Any:
    if not fast_calls() or _FREE or _in_subinterpreter():
        return None
    try:
        # A statement, which tools that freeze programs (PyInstaller) find.
        import offload.runtime._fast as extension
    except ModuleNotFoundError:  # One that is there and cannot be loaded is an error.
        return None
    if extension.ABI_VERSION != abi.ABI_VERSION:
        raise ArtifactError(
            f"{extension.__file__} speaks version {extension.ABI_VERSION} of the runtime's ABI, offload version "
            f"{abi.ABI_VERSION}; install offload again"
        )
    return extension


_fast: Any = _extension()

FAST = _fast is not None
"""Whether calls go through the extension."""
if FAST:
    release_with(_fast.dlpack_destructor(), _fast.dlpack_deleter)
    end_events_with(_fast.end_event)
    turns.take_with(_fast.opened, _fast.replace, _fast.next_serial, _fast.thread_number)


def where() -> str:
    """The extension's file, or why there is none."""
    if FAST:
        return str(_fast.__file__)
    if not fast_calls():
        return "OFFLOAD_FAST_CALLS is 0"
    if _FREE:
        return "this Python runs without its lock"
    return "in a subinterpreter" if _in_subinterpreter() else "offload was installed without a C++ compiler"


if TYPE_CHECKING:
    # With Any as its base, a function of a stub would be Any for pyright, which then checks no call of it.
    _Base = object
else:
    _Base = _fast.Caller if FAST else object


class Caller(_Base):
    """Called, it runs its plan where that takes the arguments, and its method ``_call`` otherwise."""

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
        def _call(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def __init_subclass__(cls) -> None:
        if FAST:
            _fast.inherit_call(cls)
        else:
            type.__setattr__(cls, "__call__", cls._call)


@functools.cache
def _know_types() -> None:
    import numpy

    from offload.runtime.launch import Launch  # which is a Caller

    _fast.set_stream(Stream, MOST_OPEN)
    _fast.set_mark(Mark)
    _fast.set_launch(Launch, Pending)
    _fast.set_memories([(backend, kind, DEFAULT_STREAMS.get(kind, -1)) for backend, kind in DLPACK_DEVICES.items()])
    _fast.set_numpy(numpy.ndarray, numpy.generic, numpy.floating, numpy.integer)
    _fast.set_device_array(DeviceArray, DeviceMemory, Uses, DeviceAllocation)


def arm_function(
    caller: object,
    native: Native,
    address: int,
    signature: Signature,
    names: Sequence[str],
) -> None:
    """Gives a function at ``address`` its plan, where the extension takes such a signature. ``names`` are those that
    arguments may be passed by."""
    arguments, results = signature.args, signature.results
    if not FAST or len(results) > 1:
        return
    _know_types()
    described = [_describe(argument, argument.space) for argument in (*arguments, *results)]
    if None in described:
        return
    result = described.pop() if results else None
    try:
        _fast.arm_function(
            *(caller, native, native.table, address, described, result, names),
            *("stream" not in names, signature.brief, signature.any_device, signature.equal),
        )
    except ValueError:  # Too many arguments, or results in memory.
        return


def arm_launch(
    caller: object,
    native: Native,
    slot: int,
    arguments: Sequence[Argument],
    how: tuple[Any, ...],
    names: Sequence[str],
) -> Any:
    """Gives a launch a plan, and returns it for :func:`share_plan`; None where the extension has none for it.

    ``how`` has the sizes of the grid and the block, the cluster's, the bytes of workgroup memory, whether memrefs are
    bare pointers, and whether the launch has a stream, for which the call does not wait."""
    if not FAST:
        return None
    _know_types()
    described = [
        _describe(argument, "host" if argument.space == "host" else "device")
        if argument.kind == "memref"
        else _describe(argument, "")
        for argument in arguments
    ]
    if None in described:
        return None
    plan = _fast.Caller()
    try:
        _fast.arm_launch(plan, native.table, slot, described, *how, names)
    except ValueError:
        return None
    share_plan(plan, caller)
    return plan


def share_plan(plan: Any, caller: object) -> None:
    """Gives a launch the plan that one like it has; for None it stays without."""
    if plan is not None:
        _fast.share_plan(plan, caller)


def _describe(argument: Argument, space: str) -> dict[str, Any] | None:
    """What the extension has to know; None for element types whose scalars it does not convert."""
    dtype = find(argument.dtype)
    if argument.kind == "memref":
        return {
            "kind": "memref",
            "size": dtype.size,
            "shape": argument.shape,
            "strides": argument.strides,
            "offset": argument.offset or 0,
            "space": space,
            "optional": argument.optional,
            "read_only": argument.read_only,
            "alignment": dtype.alignment,
            "dlpack": dlpack_code(argument.dtype),
            "dtypes": _dtypes(argument.dtype),
        }
    kind = {"int": "int" if dtype.code.islower() else "uint", "float": dtype.name, "small": dtype.name}
    name = kind.get(dtype.family, dtype.family)
    return None if name.startswith("float8") else {"kind": name, "size": dtype.size}


def _dtypes(name: str) -> tuple[Any, ...]:
    """The dtype objects of that name, of which NumPy has one or, for 64-bit integers, two."""
    import numpy

    try:
        known = numpy_dtype(find(name))
    except Mismatch:  # Needs a package that is missing: then no array has it.
        return ()
    twins = {"int64": "longlong", "uint64": "ulonglong"}
    return (known, numpy.dtype(twins[name])) if name in twins else (known,)
