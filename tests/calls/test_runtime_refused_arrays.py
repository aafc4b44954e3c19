"""Arrays that host functions refuse, and what each refusal says."""

from __future__ import annotations

import array
import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
from runtime_support import real, refusal

from offload.runtime.interchange import Tensor


@pytest.mark.parametrize(
    ("value", "given", "advice"),
    [
        (np.ones(3), "float64[3]", "convert it, for instance with x.astype('float32')"),
        (np.ones(3, ">f4"), "float32[3] in foreign byte order", "x.astype('float32')"),
        (np.ones((2, 2), np.float32), "float32[2, 2] of rank 2", "pass an array of rank 1"),
        (np.array(1, np.float32), "float32[] of rank 0", "pass an array of rank 1"),
        (np.ones(8, np.float32)[::2], "float32[4] that is not contiguous (strides (8,) bytes)",
         "pass numpy.ascontiguousarray(x)"),
        (np.frombuffer(bytes(9), np.uint8)[1:].view(np.float32), "at an address that is no multiple of 4",
         "pass an aligned copy, x.copy()"),
        (np.broadcast_to(np.float32(1), 1), "a read-only float32[1]", "pass a writeable array, for instance"),
        ([1.0, 2.0], "a list", "pass an array, for instance numpy.asarray(...) of it"),
        (np.ma.masked_array(np.ones(2, np.float32), [True, False]), "a masked array", "pass its .data, or"),
        (np.float32(1), "a scalar of type float32", "pass an array"),
        (None, "None", "only an argument with the attribute offload.optional"),
        (np.array([object()]), "object[1]", "convert it"),
    ],
)  # fmt: skip
def test_refused_arrays(value: Any, given: str, advice: str) -> None:
    message = refusal(real().scale, 1, value)
    assert message.startswith("scale(): argument 'x' (2 of 2): expected array float32[?], given ")
    assert given in message
    assert advice in message


@pytest.mark.parametrize("value", [bytearray(8), mmap.mmap(-1, 8), memoryview(bytearray(8))])
def test_bytes_stay_as_they_are(value: Any) -> None:
    """Of files in memory and shared memory: as numbers from 0 to 255 nobody means them. No copy is needed."""
    advice = "convert it, for instance with numpy.frombuffer(x, 'float32')"
    assert refusal(real().scale, 2, value).endswith(f"given uint8[8]; {advice}")
    numbers = np.frombuffer(value, "float32")
    numbers[:] = 1
    real().scale(2, numbers)
    assert bytes(value) == np.full(2, 2, np.float32).tobytes()


def exporter(**interfaces: Any) -> Any:
    return type("Odd", (), interfaces)()


def raising(*_: Any, **__: Any) -> Any:
    raise KeyError("lost")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (exporter(__array_interface__=3), "__array_interface__ is of no use (ValueError: "),
        (exporter(__array_interface__={"shape": (2,), "typestr": "<f4"}), "__array_interface__ is of no use ("),
        (exporter(__array_interface__=property(raising)), "__array_interface__ is of no use (KeyError: 'lost')"),
        (exporter(__cuda_array_interface__={"shape": (2,)}), "__cuda_array_interface__ is of no use (KeyError: "),
        (exporter(__cuda_array_interface__=property(raising)), "__cuda_array_interface__ is of no use (KeyError: "),
        (exporter(__dlpack__=raising, __dlpack_device__=lambda self: (1, 0)), "__dlpack__ is of no use (KeyError: "),
    ],
)
def test_interfaces_that_lead_nowhere(value: Any, said: str) -> None:
    assert f"given a Odd whose {said}" in refusal(real().scale, 1, value)
    assert f"given a Odd whose {said}" in refusal(real().kernels.saxpy[1, 2], 1, value, value)


FLOATS = np.ones(8, np.float32)
ON_GPU = {"shape": (8,), "typestr": "<f4", "data": (FLOATS.ctypes.data, False), "version": 3}


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"shape": (-8,)}, "ValueError: its shape is (-8,)"),
        ({"shape": "8"}, "TypeError: 'str' object cannot be interpreted as an integer"),
        ({"shape": (8.0,)}, "TypeError: 'float' object cannot be interpreted as an integer"),
        ({"shape": (1 << 62,)}, "ValueError: its shape is (4611686018427387904,), more than any memory holds"),
        ({"strides": (4, 4)}, "ValueError: its strides are (4, 4), of shape (8,)"),
        ({"strides": (None,)}, "TypeError: 'NoneType' object cannot be interpreted as an integer"),
        ({"data": ("here", False)}, "TypeError: 'str' object cannot be interpreted as an integer"),
        ({"data": (0, False)}, "ValueError: its address is 0"),
        ({"data": (1 << 64, False)}, "ValueError: its address is 18446744073709551616"),
        ({"stream": 0}, "ValueError: its stream is 0"),
        ({"stream": "1"}, "TypeError: 'str' object cannot be interpreted as an integer"),
    ],
)
def test_interfaces_that_tell_of_no_array(field: dict[str, Any], said: str) -> None:
    value = exporter(__cuda_array_interface__=ON_GPU | field)
    wanted = f"given a Odd whose __cuda_array_interface__ is of no use ({said})"
    assert wanted in refusal(real().scale, 1, value)
    assert wanted in refusal(real().kernels.saxpy[1, 2], 1, value, value)


def test_a_mask_of_another_package() -> None:
    """The array interfaces have one, too, and kernels see none."""
    said = "given a Odd with a mask; kernels see no mask: pass an array without one"
    numpys = np.zeros(4, np.float32).__array_interface__
    for value in (
        exporter(__cuda_array_interface__=ON_GPU | {"mask": exporter()}),
        exporter(__array_interface__=numpys | {"mask": np.zeros(4, bool)}),
    ):
        assert said in refusal(real().scale, 1, value)
        assert said in refusal(real().kernels.saxpy[1, 2], 1, value, value)
    told = refusal(real().scale, 1, exporter(__cuda_array_interface__=ON_GPU | {"mask": None}))
    assert "mask" not in told, told


new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def tensor(shape: tuple[int, ...] | None, **fields: Any) -> Any:
    """An object that exports a DLPack tensor of floats, over FLOATS where nothing else is said."""
    sizes = (ctypes.c_int64 * len(shape or ()))(*(shape or ()))
    made = Tensor(FLOATS.ctypes.data, 1, 0, len(shape or ()), 2, 32, 1)
    if shape is not None:
        made.shape = sizes
    for name, value in fields.items():
        setattr(made, name, value)
    keep = (sizes, made)
    return exporter(
        __dlpack__=lambda self, **_: new_capsule(ctypes.addressof(keep[1]), b"dltensor", None),
        __dlpack_device__=lambda self: (1, 0),
    )


@pytest.mark.parametrize(
    ("shape", "fields", "said"),
    [
        ((-8,), {}, "its shape is (-8,)"),
        (None, {"ndim": 1}, "its rank is 1, and its shape not given"),
        ((8,), {"ndim": -1}, "its rank is -1, and its shape none"),
        ((1 << 62,), {}, "its shape is (4611686018427387904,), more than any memory holds"),
        ((8,), {"data": None}, "its address is 0"),
        ((8,), {"byte_offset": (1 << 64) - 4}, f"its address is {FLOATS.ctypes.data + (1 << 64) - 4}"),
    ],
    ids=["negative size", "no shape", "negative rank", "too large", "no address", "offset past the end"],
)
def test_tensors_that_are_none(shape: tuple[int, ...] | None, fields: dict[str, Any], said: str) -> None:
    """The fast calls do not take them, either: a missing shape ended the process."""
    value = tensor(shape, **fields)
    wanted = f"given a Odd whose __dlpack__ is of no use (ValueError: {said})"
    for _ in range(2):  # the second time, a launch is a fast call
        assert wanted in refusal(real().scale, 1, value)
        assert wanted in refusal(real().kernels.saxpy[1, 2], 1, value, value)
    real().scale(1, tensor((8,)))
    real().scale(1, tensor((0,), data=None))


def of_torch(array: np.ndarray[Any, Any]) -> Any:
    """What exports an array and has the methods of torch's tensors."""
    return exporter(
        __dlpack__=lambda self, **options: array.__dlpack__(**options),
        __dlpack_device__=lambda self: (1, 0),
        contiguous=lambda self: self,
    )


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (of_torch(np.ones(3)), "convert it, for instance with x.to(torch.float32)"),
        (of_torch(np.ones(8, np.float32)[::2]), "pass x.contiguous()"),
        (of_torch(np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float32)), "pass an aligned copy, x.clone()"),
        (array.array("d", [1.0]), "convert it, for instance with numpy.asarray(x).astype('float32')"),
        (bytes(4), "convert it, for instance with numpy.frombuffer(x, 'float32').copy()"),
        (memoryview(np.ones(8, np.float32))[::2], "pass numpy.ascontiguousarray(x)"),
        (memoryview(np.ones(8, np.float32)).toreadonly(), "a writeable array, for instance numpy.asarray(x).copy()"),
        (real().device.array(np.ones(3)), "convert it, for instance with x.numpy().astype('float32')"),
    ],
)
def test_advice_that_an_array_of_that_package_can_follow(value: Any, advice: str) -> None:
    assert refusal(real().scale, 1, value).endswith(f"{advice}; what the call writes is in that copy then")


def test_an_array_that_is_traced_is_told_from_one_that_refuses() -> None:
    def refuses(self: object, **options: Any) -> Any:
        raise TypeError("Abstract tracer value encountered where concrete value is expected")

    tracer = type("DynamicJaxprTracer", (), {"__dlpack__": refuses})()
    said = "given a DynamicJaxprTracer, which has no numbers yet; call it through jax.pure_callback"
    assert refusal(real().scale, 1, tracer).endswith(said)


def test_buffers_that_were_released() -> None:
    released = memoryview(array.array("f", [1, 2]))
    released.release()
    assert "given a memoryview without memory (operation forbidden on released" in refusal(real().scale, 1, released)


def test_elements_without_a_dtype() -> None:
    numbers = (ctypes.c_float * 2)(1, 2)
    pointer = ctypes.cast(numbers, ctypes.POINTER(ctypes.c_float))
    said = "given a LP_c_float whose elements have no dtype (format '&<f'); pass an array, for instance numpy.ctypeslib"
    assert said in refusal(real().scale, 1, pointer)
    records = np.zeros(2, [("x", np.float32), ("y", np.float32)])
    said = "given void64[2] of records; pass one of the fields, or convert it to an array of float32"
    assert said in refusal(real().scale, 1, records)
    assert said.replace("void", "record") in refusal(real().scale, 1, records.view(np.recarray))


def test_refused_shape_and_types_without_a_counterpart() -> None:
    message = refusal(real().weigh, np.ones((2, 5), np.float32))
    assert message == ("weigh(): argument 'x' (1 of 1): expected array float32[?, 4], given float32[2, 5]; "
                       "dimension 1 has to be 4, it is 5")  # fmt: skip
    assert "given uint16[2]; convert it" in refusal(real().brain, np.ones(2, np.uint16))
    message = refusal(real().from_the_future, np.ones(2))
    assert "given a type that this version does not know (float3); update offload" in message


@pytest.mark.parametrize("method", ["__dlpack__", "is_neg"])
def test_an_interrupt_in_an_arrays_own_code_is_not_lost(method: str) -> None:
    """Where the extension asks, too, which otherwise leaves what an array's code raises to Python, which asks again."""

    class Interrupted:
        def __init__(self) -> None:
            self.array = np.ones(4, np.float32)
            self.asked = 0

        def __dlpack__(self, **options: Any) -> Any:
            self.interrupt("__dlpack__")
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def is_neg(self) -> bool:
            self.interrupt("is_neg")
            return False

        def interrupt(self, asked: str) -> None:
            self.asked += asked == method
            if asked == method and self.asked == 4:
                raise KeyboardInterrupt

    x = Interrupted()
    for _ in range(3):  # now the extension does it
        real().scale(2, x)
    with pytest.raises(KeyboardInterrupt):
        real().scale(2, x)
    assert x.asked == 4
    real().scale(2, x)
    assert x.array.tolist() == [16] * 4


def test_an_interface_that_raises() -> None:
    class Raises:
        @property
        def __dlpack__(self) -> Any:
            raise ZeroDivisionError("by design")

    said = "given a Raises whose __dlpack__ is of no use (ZeroDivisionError: by design); pass a NumPy array"
    for _ in range(3):
        assert said in refusal(real().scale, 1, Raises())
