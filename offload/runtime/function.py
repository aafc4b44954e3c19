"""Host functions of an artifact as Python callables, through MLIR's C interface and ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from offload.artifact.meta import Argument, Signature
from offload.runtime.arguments import MemrefPacker, base_of, bounds, sizes_of
from offload.runtime.array import DeviceArray
from offload.runtime.calls import Callee, InstanceSignature
from offload.runtime.dtypes import Mismatch, find, scalar
from offload.runtime.native import Native
from offload.runtime.pending import Running
from offload.runtime.pickled import function_of
from offload.runtime.plans import Caller, arm_function
from offload.runtime.pointers import PointerPacker
from offload.runtime.results import Input, ScalarResult, StructResult, by_value_type, half_argument, is_half
from offload.runtime.staging import Staging, wanted
from offload.runtime.streams import as_stream
from offload.runtime.views import View, gpu_of, view_of

# Appends the C values of one argument; the second list is for what has to stay alive during the call.
_Converter = Callable[[Any, list[Any], list[object]], None]


class Function(Caller):
    """A function of a loaded library.

    Calling it checks every argument against the signature, passes arrays without copying them, and releases
    the GIL while the function runs, but for a brief one, whose few operations take less. Arrays: NumPy, DLPack, the
    buffer protocol, `DeviceArray`. ``stream=`` says on which stream its work goes, which is done when the call
    returns. Results: None, one value or a tuple; memrefs come back as NumPy arrays that own their memory, or as views
    of the argument that they lie in. Raises `SignatureError` for arguments that do not fit, `DeviceError` for what
    failed on the device."""

    def __init__(self, signature: Signature, pointer: Any, native: Native) -> None:
        """``pointer`` is the ctypes function of ``signature.symbol``."""
        self.signature = signature
        self._callee = Callee(
            signature.name, f"{signature.name}()", signature.args, signature.results, signature.doc, signature.equal,
            signature.result_sizes,
        )  # fmt: skip
        self._pointer = pointer
        self._native = native
        self._converters: list[_Converter] | None = None
        self._packers: list[MemrefPacker | PointerPacker | None] = []
        self._result: ScalarResult | StructResult | None = None
        self._views = False  # whether a result may lie in an argument
        # Of arrays that kernels use; where the program chooses its devices itself, it knows what is where.
        self._placed = [argument.space == "device" and not signature.any_device for argument in signature.args]
        self.__name__ = self.__qualname__ = signature.name
        self.__doc__ = self._callee.help()

    def _call(self, /, *args: Any, **kwargs: Any) -> Any:
        if "stream" in kwargs and "stream" not in self._callee.names:
            stream = kwargs.pop("stream")
            if stream is None:  # as if it had not been given
                return self._call(*args, **kwargs)
            with as_stream(self._native, stream, self._callee.label):
                return self._call(*args, **kwargs)
        converters = self._converters if self._converters is not None else self._prepare()
        if kwargs or len(args) != len(converters):
            args = self._callee.bind(args, kwargs)
        if not wanted(self._native, args):
            return self._run(converters, args)
        staging = Staging(self._native)
        returned = self._run(converters, staging.take_all(self._callee, self._packers, args))
        staging.finish()
        return returned

    def _run(self, converters: list[_Converter], args: tuple[Any, ...]) -> Any:
        for value in args:
            if type(value) is DeviceArray:
                value.settle()
        result = self._result
        keep: list[object] = []
        held: list[object] = []  # what each argument's memory lives as long as
        values: list[Any] = []
        if isinstance(result, StructResult):
            values.append(result.buffer())
        index = 0
        try:
            for convert in converters:
                seen = len(keep)
                convert(args[index], values, keep)
                held.append(keep[seen] if len(keep) > seen else args[index])
                if self._placed[index]:
                    self._check_place(held[index])
                index += 1
        except Mismatch as mismatch:
            raise self._callee.refuse(index, mismatch) from None
        if self.signature.equal:
            self._check_sizes(values, args)
        returned = self._pointer(*values)
        if result is None:
            self._native.check()
            return None
        if isinstance(result, ScalarResult):
            self._native.check()
            return result(returned)
        # Arrays are made before the error is raised, so that what the function allocated is freed either way.
        returned = result(values[0], self._inputs(values, args, held) if self._views else ())
        self._native.check()
        return returned

    def _check_place(self, value: Any) -> None:
        """Of an array on one GPU, ours or another package's."""
        there = gpu_of(value, self._native.backend())
        if there is not None and there != (here := self._native.device_of_work()):
            raise Mismatch(
                f"{view_of(value)} on device {there}, but the function runs on device {here}",
                f"call it inside 'with lib.device({there}):' or on a stream of device {there}, or copy the array to "
                f"device {here}",
            )

    def _check_sizes(self, values: list[Any], args: tuple[Any, ...]) -> None:
        """Of arrays that the function goes through together."""
        descriptors = iter([value for value in values if isinstance(value, bytes)])
        sizes = [
            sizes_of(next(descriptors), argument.rank) if argument.kind == "memref" else ()
            for argument in self.signature.args
        ]
        for equal in self.signature.equal:
            first, place = equal.dimensions[0]
            wanted = sizes[first][place] if equal.size is None else equal.size
            for index, dimension in equal.dimensions:
                if (size := sizes[index][dimension]) != wanted:
                    name = self._callee.names[first]
                    like = f", as dimension {place} of {name!r} is" if equal.size is None else ""
                    advice = f"dimension {dimension} has to be {wanted}{like}; it is {size}"
                    given = "None" if args[index] is None else str(view_of(args[index]))
                    raise self._callee.refuse(index, Mismatch(given, advice))

    def start(self, /, *args: Any, **kwargs: Any) -> Running:
        """Calls in a thread of its own, on the calling thread's device and stream, and returns at once. The result, or
        what it raises, comes from ``wait()`` or from ``await``."""
        return Running(self._native, lambda: self(*args, **kwargs))

    def _inputs(self, values: list[Any], args: tuple[Any, ...], held: list[object]) -> list[Input]:
        """The memory of each array that was passed. What another package has exported stays so as long as results
        lie in it: its owner alone may resize it, or have made it for this call."""
        import numpy

        descriptors = iter([value for value in values if isinstance(value, bytes)])
        inputs = []
        for argument, value, view in zip(self.signature.args, args, held, strict=True):
            owner = value if isinstance(value, (DeviceArray, numpy.ndarray)) else view
            if argument.kind == "memref":
                descriptor = next(descriptors)
                low, high = bounds(descriptor, find(argument.dtype).size)
                inputs.append(Input(low, high, base_of(descriptor), owner))
            elif argument.pointer and isinstance(view, View):
                inputs.append(Input(*view.bounds(), view.pointer, owner))
        return inputs

    def _prepare(self) -> list[_Converter]:
        """Does once what all calls share; where several threads are at it, each does it by itself."""
        types: list[Any] = []
        converters: list[_Converter] = []
        packers: list[MemrefPacker | PointerPacker | None] = []
        results = self.signature.results
        result: ScalarResult | StructResult | None = None
        try:
            if len(results) == 1 and results[0].kind == "scalar" and find(results[0].dtype).family != "complex":
                result = ScalarResult(results[0])
            elif results:
                result = StructResult(results, self._native)
                types.append(ctypes.c_void_p)
        except Mismatch as mismatch:
            raise self._callee.refuse_results(mismatch) from None
        for index, argument in enumerate(self.signature.args):
            try:
                converters.append(self._converter(argument, types, packers))
            except Mismatch as mismatch:
                raise self._callee.refuse(index, mismatch) from None
        self._pointer.argtypes = types
        self._pointer.restype = result.restype if isinstance(result, ScalarResult) else None
        self._views = any(entry.kind == "memref" for entry in results)
        self._result = result
        self._packers = packers
        self._converters = converters  # the last: with it, others take the rest
        address = ctypes.cast(self._pointer, ctypes.c_void_p).value
        arm_function(self, self._native, address or 0, self.signature, self._callee.names)
        return converters

    def _failed(self, code: int) -> None:
        raise self._native.error(code)

    def _converter(
        self, argument: Argument, types: list[Any], packers: list[MemrefPacker | PointerPacker | None]
    ) -> _Converter:
        if argument.kind == "memref":
            pack = MemrefPacker(argument, self._native, argument.space)
            packers.append(pack)
            types.append(ctypes.c_void_p)
            return lambda value, values, keep: values.append(pack(value, keep))
        if argument.pointer:
            address = PointerPacker(argument, self._native, argument.space)
            packers.append(address)
            types.append(ctypes.c_void_p)
            return lambda value, values, keep: values.append(address(value, keep))
        packers.append(None)
        dtype = find(argument.dtype)
        check = scalar(dtype)
        if dtype.family == "complex":  # LLVM splits the struct of two floats into two registers.
            types.extend([ctypes.c_float if dtype.size == 8 else ctypes.c_double] * 2)

            def split(value: Any, values: list[Any], keep: list[object]) -> None:
                number = check(value)
                values += (number.real, number.imag)

            return split
        types.append(by_value_type(dtype))
        if is_half(dtype):
            carry = half_argument(dtype)
            return lambda value, values, keep: values.append(carry(check(value)))
        return lambda value, values, keep: values.append(check(value))

    __signature__ = InstanceSignature()

    def __reduce__(self) -> tuple[Any, ...]:
        return function_of, (self._native.file, self.signature.name)

    def __repr__(self) -> str:
        return f"<offload function {self._callee.text()}>"
