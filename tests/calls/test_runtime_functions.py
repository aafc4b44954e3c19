"""Calling host functions: what goes in, what comes out, and what each refusal says."""

from __future__ import annotations

import array
import gc
import inspect
import threading
import time
from typing import Any

import numpy as np
import pytest
from runtime_support import fake, real, refusal

from offload.artifact.meta import Argument
from offload.errors import DeviceError
from offload.runtime import DeviceArray, memory, results
from offload.runtime.calls import Callee, python_names


@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The addresses that results gave back to libc, as they are freed."""
    addresses: list[int] = []
    free = memory.c_free()

    def record(pointer: int) -> None:
        addresses.append(pointer)
        free(pointer)

    monkeypatch.setattr(results, "c_free", lambda: record)
    return addresses


# Arrays.


def test_arrays_are_passed_without_a_copy() -> None:
    x = np.arange(5, dtype=np.float32)
    assert real().scale(3, x) is None
    assert x.tolist() == [0, 3, 6, 9, 12]
    real().scale(2, x=x[1:3])
    assert x.tolist() == [0, 6, 12, 9, 12]


def test_ranks_and_empty_arrays() -> None:
    scalar = np.array(1, np.float32)
    real().increment(scalar)
    assert scalar == 2
    real().scale(2, np.empty(0, np.float32))
    assert real().weigh(np.empty((0, 4), np.float32)) == 0
    assert real().weigh(np.eye(4, dtype=np.float32)) == 11 + 22 + 33
    assert real().weigh(np.asfortranarray(np.ones((1, 4), np.float32))) == 6


def layout(x: np.ndarray[Any, Any]) -> list[int]:
    out = np.zeros(5, np.int64)
    real().layout(x, out)
    return out.tolist()


def test_strided_layouts() -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    weights = np.arange(4)[:, None] * 10 + np.arange(6)[None, :]
    assert real().weigh_strided(base) == (base * weights).sum()
    assert real().weigh_strided(base[::-1, ::2]) == (base[::-1, ::2] * weights[:, :3]).sum()
    assert real().weigh_strided(base.T) == (base.T * (weights.T // 10 + weights.T % 10 * 10)[:6, :4]).sum()
    assert layout(base[::2, :4]) == [0, 2, 4, 12, 1]
    assert layout(np.ones((1, 4), np.float32)[:, :]) == [0, 1, 4, 4, 1]
    assert layout(np.ones((0, 4), np.float32)) == [0, 0, 4, 4, 1]
    assert real().fourth(np.array([5, 6], np.float32)) == 5
    message = refusal(real().layout, base[:, 3::-1], np.zeros(5, np.int64))
    assert "stride -1 in dimension 1; pass an array with a stride of 1 element there" in message
    packed = np.zeros((3, 4), np.dtype([("a", np.float32), ("b", np.int8)]))
    assert "with 5 bytes between elements of 4" in refusal(real().weigh_strided, packed["a"])


def test_other_packages_arrays() -> None:
    class Dlpack:
        def __init__(self, values: np.ndarray[Any, Any]) -> None:
            self.values = values

        def __dlpack__(self, **options: Any) -> Any:
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    class Old(Dlpack):
        def __dlpack__(self) -> Any:  # type: ignore[override]
            return self.values.__dlpack__()

    class Interface:
        def __init__(self, values: np.ndarray[Any, Any]) -> None:
            self.__array_interface__ = values.__array_interface__
            self.values = values

    for wrap in (Dlpack, Old, Interface, memoryview):
        x = np.arange(3, dtype=np.float32)
        real().scale(2, wrap(x))
        assert x.tolist() == [0, 2, 4], wrap
    buffer = array.array("f", [1, 2])
    real().scale(2, buffer)
    assert buffer.tolist() == [2, 4]
    frozen = np.ones(2, np.float32)
    frozen.flags.writeable = False
    assert "a read-only float32[2]" in refusal(real().scale, 1, Dlpack(frozen))

    class Refusing(Dlpack):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it has gradients")

    message = refusal(real().scale, 1, Refusing(frozen))
    assert "a Refusing that refuses DLPack (it has gradients)" in message


def test_dlpack_memory_is_released() -> None:
    import sys

    class Dlpack:
        def __dlpack__(self, **options: Any) -> Any:
            return values.__dlpack__(**options)

    values = np.ones(2, np.float32)
    before = sys.getrefcount(values)
    for _ in range(20):
        real().scale(1, Dlpack())
    assert sys.getrefcount(values) == before


def test_types_of_ml_dtypes() -> None:
    import ml_dtypes

    real().brain(np.ones(2, ml_dtypes.bfloat16))
    assert real().brain_device(real().device.array([1, 2], ml_dtypes.bfloat16)) is None
    assert real().small(1.5) == 1.5
    assert real().small(ml_dtypes.float8_e4m3fn(-448)) == -448
    assert "given 1000.0, which does not fit; pass a number in the range" in refusal(real().small, 1000)
    assert "given inf, which does not fit; pass a number in the range" in refusal(real().small, np.inf)


# Results.


def test_results_own_their_memory(freed: list[int]) -> None:
    numbers = real().iota(1000)
    assert numbers.dtype == np.int32
    assert numbers.tolist() == list(range(1000))
    address = numbers.ctypes.data
    view = numbers[10:20][::2]
    del numbers
    gc.collect()
    assert freed == []
    assert view.tolist() == [10, 12, 14, 16, 18]
    del view
    assert freed == [address]
    assert real().iota(0).shape == (0,)
    assert len(freed) == 2


def test_several_results(freed: list[int]) -> None:
    flag, matrix, half, number, last = real().several(3)
    assert (flag, half, number, last) == (True, 1.5, 3 + 4j, -5)
    assert matrix.tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
    matrix[0, 0] = 1
    del matrix
    assert len(freed) == 1


def test_two_results_in_one_allocation(freed: list[int]) -> None:
    first, second = real().twice(4)
    first[0] = 9
    assert second.tolist() == [9, 1, 2, 3]
    del first
    assert freed == []
    del second
    assert len(freed) == 1


def test_results_inside_an_argument_are_views(freed: list[int]) -> None:
    x = np.arange(4, dtype=np.float32)
    y = real().same(x)
    y[0] = 7
    assert x[0] == 7
    tail = real().tail(x)
    del x, y
    gc.collect()
    assert tail.tolist() == [1, 2, 3]
    assert real().same(np.empty(0, np.float32)).shape == (0,)
    buffer = array.array("f", [1, 2])
    assert real().same(buffer).tolist() == [1, 2]
    del tail
    assert freed == []


def test_constants_are_read_only_and_never_freed(freed: list[int]) -> None:
    constant = real().constant()
    assert constant.tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match="read-only"):
        constant[0] = 1
    del constant
    assert freed == []


def test_device_results() -> None:
    made = real().device_made(3)
    assert isinstance(made, DeviceArray)
    assert made.numpy().tolist() == [1, 1, 1]
    again = real().same(made)
    assert isinstance(again, DeviceArray)
    del made
    assert again.numpy().tolist() == [1, 1, 1]


# Calls.


def test_binding() -> None:
    x = np.ones(2, np.float32)
    real().scale(x=x, a=2)
    assert x.tolist() == [2, 2]
    assert refusal(real().scale, 1) == "scale() takes 2 arguments (a, x), given 1; missing: x"
    assert refusal(real().scale) == "scale() takes 2 arguments (a, x), given 0; missing: a, x"
    assert refusal(real().scale, 1, x, x) == "scale() takes 2 arguments (a, x), given 3"
    assert refusal(real().constant, 1) == "constant() takes no arguments, given 1"
    assert refusal(real().scale, 1, y=x) == "scale() has no argument 'y'; it takes 2 arguments (a, x)"
    message = refusal(real().scale, 1, a=1)
    assert message == "scale() got two values for the argument 'a'; pass it once"
    # Names that Python cannot say are changed; the author's work as well.
    function = real().functions["use"]
    function(in_=x, arg1=x)
    function(**{"in": x, "1": x})


def test_what_python_takes_keeps_its_name() -> None:
    arguments = [Argument(name, "scalar", "int64", (), None, None) for name in ("in", "in_", "x", "x", "%", "arg4")]
    assert python_names(arguments) == ["in__", "in_", "x", "x_", "arg4_", "arg4"]
    callee = Callee("f", "f()", arguments)
    given = {"in": 1, "in_": 2, "x": 3, "x_": 4, "%": 5, "arg4": 6}
    assert callee.bind((), given) == (1, 2, 3, 4, 5, 6)


def test_signature_and_doc() -> None:
    assert str(inspect.signature(real().scale)) == "(a: 'float32', x: 'float32[n]') -> 'None'"
    assert str(inspect.signature(real().weigh_strided)) == "(x: 'float32[n, m]') -> 'float64'"
    assert real().scale.__doc__ == "scale(a: float32, x: float32[n]) -> None"
    assert real().twice.__doc__ == "twice(n: int64) -> tuple[int32[m], int32[k]]"
    assert repr(real().same) == "<offload function same(x: float32[n]) -> float32[m]>"
    assert real().scale.__name__ == "scale"
    assert list(inspect.signature(real().functions["use"]).parameters) == ["in_", "arg1"]
    inspect.signature(type(real().scale))


def test_device_errors_are_raised_once_and_free_results(freed: list[int]) -> None:
    with pytest.raises(DeviceError, match="A copy of 4 bytes has NULL as its destination") as caught:
        real().fails(3)
    assert caught.value.code == 1
    del caught
    gc.collect()
    assert len(freed) == 1
    assert real().echo_int8(1) == 1


def test_errors_belong_to_their_thread() -> None:
    raised: list[int] = []
    real()  # is built once, not by four threads

    def work(fail: bool) -> None:
        for _ in range(50):
            try:
                if fail:
                    real().fails(1)
                else:
                    real().scale(1, np.ones(1, np.float32))
            except DeviceError as error:
                raised.append(error.code)

    threads = [threading.Thread(target=work, args=(index % 2 == 0,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == [1] * 100


def test_the_gil_is_free_during_a_call() -> None:
    flag = np.zeros(1, np.int64)
    timer = threading.Timer(0.05, flag.__setitem__, (0, 1))
    started = time.monotonic()
    timer.start()
    real().wait_for(flag)
    assert time.monotonic() - started < 10  # and not until the function gave up
    timer.join()


# Which memory an argument may be in.


def test_host_memory_for_kernels_on_a_gpu_is_refused() -> None:
    x = np.ones(2, np.float32)
    message = refusal(fake().on_device, x)
    assert message == (
        "on_device(): argument 'x' (1 of 1): expected array float32[?], given float32[2] in host memory, "
        "but the kernels run on cuda; copy it to the device with lib.device.array(x), or pass offload.stage(x), which "
        "copies it there and back"
    )
    fake().on_host(x)
    assert x[0] == 3
    fake().scale(2, x)
    real().on_device(x)
    assert x.tolist() == [2, 2]


def test_device_memory() -> None:
    x = fake().device.array(np.ones(2, np.float32))
    fake().on_device(x)
    assert x.numpy().tolist() == [2, 2]
    fake().scale(2, x)
    message = refusal(fake().on_host, x)
    assert "given float32[2] in the memory of cuda; the host reads this argument: pass x.numpy()" in message
    message = refusal(real().scale, 1, x)
    assert "in the memory of cuda, but the backend in use is host; make it anew with lib.device.array(...)" in message
    assert "lib.use('cuda')" in message


def test_foreign_device_memory() -> None:
    values = np.ones(2, np.float32)

    class Tensor:
        dtype = "pkg.float32"

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {
                "shape": (2,),
                "typestr": "<f4",
                "data": (values.ctypes.data, False),
                "version": 3,
                "stream": 0x77,
            }

    assert fake().synchronized() == 0
    fake().on_device(Tensor())
    assert values.tolist() == [2, 2]
    assert fake().synchronized() == 77
    assert isinstance(fake().same(Tensor()), DeviceArray)
    assert "in the memory of cuda" in refusal(real().scale, 1, Tensor())
    assert "in the memory of cuda" in refusal(fake().on_host, Tensor())
