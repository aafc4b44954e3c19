"""Loading artifacts, and the library's names, kernels, devices, arrays and streams."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiling import ROOT
from runtime_support import (
    KernelSignature,
    Signature,
    fake,
    fake_path,
    folder,
    host_image,
    metadata,
    real,
    real_path,
)

from offload.artifact import container_object
from offload.errors import ArtifactError, DeviceError, SignatureError
from offload.runtime import DeviceArray, abi, load, plans


def refusal(function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(SignatureError) as caught:
        function(*args, **kwargs)
    return str(caught.value)


# Loading.


def test_loading_needs_no_numpy_and_no_compiler(tmp_path: Path) -> None:
    program = (
        "import sys, offload.runtime; lib = offload.runtime.load(sys.argv[1]); print(lib.echo_int8(3), "
        "not {'numpy', 'asyncio'}.isdisjoint(sys.modules), "
        "any('offload.compiler' in m or 'offload.mlir' in m for m in sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": ""}
    printed = subprocess.run([sys.executable, "-c", program, real_path()], check=True, capture_output=True,
                             text=True, env=environment, cwd=tmp_path).stdout  # fmt: skip
    assert printed == "3 False False\n"


def test_tools_that_freeze_programs_find_the_extension_for_calls() -> None:
    """PyInstaller and others read import statements; without the extension calls went through ctypes, unsaid."""
    nodes = ast.walk(ast.parse(Path(plans.__file__).read_text()))
    assert "offload.runtime._fast" in [
        name.name for node in nodes if isinstance(node, ast.Import) for name in node.names
    ]


def test_a_bare_name_is_a_file_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(real_path().parent)
    assert load("real.so").echo_int8(1) == 1


def test_truncated_files_never_reach_the_loader(tmp_path: Path) -> None:
    data = real_path().read_bytes()
    path = tmp_path / "cut.so"
    for size in (0, 1, 63, 64, 1000, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(ArtifactError, match=r"cut\.so: "):
            load(path)


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"gone\.so: cannot read the artifact"):
        load(tmp_path / "gone.so")
    data = bytearray(real_path().read_bytes())
    foreign = tmp_path / "foreign.so"
    data[18:20] = (243).to_bytes(2, "little")
    foreign.write_bytes(data)
    with pytest.raises(ArtifactError, match="it was built for riscv64, this process runs on"):
        load(foreign)


def test_libraries_that_lack_something() -> None:
    obj = folder() / "bare.o"
    obj.write_bytes(container_object([host_image()], metadata(), 62))
    bare = folder() / "bare.so"
    subprocess.run(["cc", "-shared", "-o", bare, obj], check=True)
    with pytest.raises(ArtifactError, match="does not export offload_api; it was linked without the mgpu runtime"):
        load(bare)
    with pytest.raises(ArtifactError, match="its mgpu runtime does not speak version 1 of the ABI"):
        load(fake_path("version", version="99"))
    with pytest.raises(ArtifactError, match=f"too old, it lacks {abi.FUNCTIONS[-1][1]}; build it again"):
        load(fake_path("size", size="sizeof(mgpuApi)-8"))
    ghost = Signature("ghost", "_mlir_ciface_ghost")
    with pytest.raises(ArtifactError, match="does not export _mlir_ciface_ghost, which its metadata names"):
        load(fake_path("ghost", functions=(ghost,)))
    with pytest.raises(ArtifactError, match="names the kernel k of the module other, its module table has kernels"):
        load(fake_path("other", kernels=(KernelSignature("k", "other"),)))


def test_two_artifacts_do_not_meet() -> None:
    assert real().backend == "host"
    assert fake().backend == "cuda"


# Names.


def test_names() -> None:
    assert "scale" in dir(real())
    assert set(real().functions) == set(real().signatures)
    assert real().signatures["scale"].args[0].dtype == "float32"
    assert callable(real().use)
    assert real().functions["use"] is not real().use
    with pytest.raises(AttributeError, match=r"real\.so has no function 'scael'; did you mean 'scale'\? It has: "):
        real().scael  # noqa: B018
    with pytest.raises(AttributeError, match=r"real\.so has no function 'zzzz'\. It has: "):
        real().zzzz  # noqa: B018
    with pytest.raises(KeyError, match=r"real\.so has no function 'scael'; did you mean 'scale'\? It has: "):
        real().functions["scael"]
    assert real().functions.get("scael") is None
    assert 3 not in real().functions
    with pytest.raises(AttributeError, match=r"has no kernel 'saxp'; did you mean 'saxpy'\? It has: report, saxpy"):
        real().kernels.saxp  # noqa: B018
    with pytest.raises(KeyError, match="has no kernel 'saxp'"):
        real().kernels["saxp"]
    assert 3 not in real().kernels
    assert not hasattr(real(), "__array_interface__")
    assert repr(real()).startswith("<offload library")


def test_kernel_names() -> None:
    kernels = real().kernels
    assert sorted(kernels) == ["report", "saxpy"]
    assert "saxpy" in dir(kernels)
    assert kernels["kernels.saxpy"] is kernels["saxpy"] is kernels.saxpy
    assert repr(kernels.saxpy) == (
        "<offload kernel saxpy(a: float32, x: float32[n], y: float32[m]) -> None of kernels>"
    )


# Kernels.


def test_kernel_launch() -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    real().kernels.saxpy[(4, 1), 256](2, x, y=y)
    assert np.array_equal(y, 2 * np.arange(1000) + 1)
    launch = real().kernels.saxpy[4, 256]
    launch(1, x, y)
    assert np.array_equal(y, 3 * np.arange(1000) + 1)


def test_kernel_arguments_and_sizes() -> None:
    out = np.zeros(14)
    kernel = real().kernels.report
    kernel[(2, 3, 4), np.int64(8), None, 64](out, True, -3, 1.5, 1.0, 2 - 3j, d=9.0)
    assert out.tolist() == [2, 3, 4, 8, 1, 1, 64, 1, -3, 1.5, 0x3F80, 2, -3, 9]


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (
            1,
            "expected [grid, block], [grid, block, stream], [grid, block, stream, shared_bytes] or "
            "[grid, block, stream, shared_bytes, cluster], given 1",
        ),
        ((1, 2, None, 0, 1, 0), "expected [grid, block]"),
        ((1, 2, None, 0, 0), "expected the cluster as a positive integer or a tuple of one to three, given 0"),
        ((0, 1), "expected the grid as a positive integer or a tuple of one to three, given 0"),
        (
            (2**40, 1),
            "a positive integer or a tuple of one to three, each at most 2,147,483,647, given 1099511627776",
        ),
        (
            (1, (1, 2, 3, 4)),
            "expected the block as a positive integer or a tuple of one to three, given (1, 2, 3, 4)",
        ),
        ((1, ()), "expected the block"),
        ((1.5, 1), "expected the grid"),
        ((True, 1), "expected the grid"),
        ((2**31, 1), "expected the grid"),
        ((1, 1, None, -1), "expected a number of bytes of dynamic workgroup memory, given -1"),
        (
            (1, 1, "stream"),
            "expected a stream of lib.stream(), a driver's handle or an object with one, given a str",
        ),
    ],
)
def test_refused_launches(launch: Any, message: str) -> None:
    text = refusal(lambda: real().kernels.saxpy[launch])
    assert text.startswith("kernel saxpy: ")
    assert message in text


def test_refused_kernel_arguments() -> None:
    x = np.ones(2, np.float32)
    saxpy = real().kernels.saxpy
    message = refusal(saxpy, 1, x, x)
    assert message == "kernel saxpy: say how many blocks and threads to launch: saxpy[grid, block](a, x, y)"
    message = refusal(saxpy[1, 1], 1, x, np.ones(2))
    assert message.startswith("kernel saxpy: argument 'y' (3 of 3): expected array float32[?], given float64[2]")
    assert "missing: y" in refusal(saxpy[1, 1], 1, x)
    message = refusal(fake().kernels.saxpy[1, 1], 1, x, x)
    assert "in host memory, but the kernels run on cuda; copy it to the device with lib.device.array(x)" in message


def test_a_launch_that_fails() -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(DeviceError, match="saxpy"):
        real().kernels.saxpy[1, 2**31 - 1](1, x, x)
    real().kernels.saxpy[1, 2](1, x, x)


# Streams.


def test_streams() -> None:
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    with real().stream() as stream:
        real().kernels.saxpy[1, 100, stream](1, x, y)
        real().kernels.saxpy[1, 100](1, x, y)
    assert y.tolist() == [2] * 100
    stream.synchronize()
    assert repr(stream).startswith("<offload stream 0x")


def test_a_stream_keeps_arguments_alive() -> None:
    stream = real().stream()
    x, y = np.ones(4, np.float32), real().device.zeros(4, np.float32)
    for _ in range(3):
        real().kernels.saxpy[1, 4, stream](1, x + 1, y)
    assert y.numpy().tolist() == [6] * 4
    real().kernels.saxpy[1, 4, stream](1, x, y)
    assert stream._pending
    stream.synchronize()
    assert not stream._pending
    real().kernels.saxpy[1, 4, stream](1, x, y)
    del stream, x
    gc.collect()
    assert y.numpy().tolist() == [8] * 4


def test_foreign_streams() -> None:
    own = real().stream()

    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            assert own.handle is not None
            return (0, own.handle)

    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    real().kernels.saxpy[1, 4, Foreign()](1, x, y)
    wrapped = real().stream(Foreign())
    assert wrapped.handle == own.handle
    with wrapped:
        real().kernels.saxpy[1, 4, own.handle](1, x, y)
    wrapped.synchronize()
    assert y.tolist() == [2] * 4
    with pytest.raises(TypeError, match=r"expected a stream of lib\.stream\(\)"):
        real().stream("x")


# Devices and their memory.


def test_numbers_that_the_runtime_has_no_room_for() -> None:
    """What is left of them is 0 and 5."""
    with pytest.raises(DeviceError, match=f"There is no device {2**32}"):
        real().device(2**32)
    with pytest.raises(TypeError, match="is no handle of a stream"):
        real().stream(2**64 + 5)
    assert "is no handle of a stream" in refusal(real().kernels.saxpy.__getitem__, (1, 1, 2**64 + 5))


def test_backends_and_devices() -> None:
    assert real().backend == "host"
    host = [device for device in real().devices() if device.backend == "host"]
    assert host == [real().device.info]
    assert host[0].index == 0
    assert host[0].warp_size == 32
    assert host[0].memory_bytes > 0
    with pytest.raises(DeviceError, match="fpga") as caught:
        real().use("fpga")
    assert caught.value.code == 1
    assert real().backend == "host"
    assert [device.backend for device in fake().devices()] == ["cuda", "host"]


@pytest.mark.parametrize("library", [real, fake])
def test_device_arrays(library: Any) -> None:
    device = library().device
    values = np.arange(6, dtype=np.float64).reshape(2, 3)
    x = device.array(values)
    assert (x.shape, x.dtype, x.ndim, x.size, x.nbytes, len(x)) == ((2, 3), np.float64, 2, 6, 48, 2)
    assert np.array_equal(x.numpy(), values)
    x.copy_from(values.T.reshape(2, 3))
    assert np.array_equal(x.numpy(), values.T.reshape(2, 3))
    x.copy_from(values.T.reshape(2, 3).astype(">f8"))
    assert np.array_equal(x.numpy(), values.T.reshape(2, 3))
    y = device.array(x)
    assert y.pointer != x.pointer
    assert np.array_equal(y.numpy(), x.numpy())
    y.clear()
    assert not y.numpy().any()
    assert device.zeros(3, "int8").numpy().tolist() == [0, 0, 0]
    assert device.empty((0, 3), np.float32).numpy().shape == (0, 3)
    for shape in (np.int64(6), np.array([2, 3]), [np.int32(2), 3]):
        assert device.zeros(shape, np.float32).size == 6
    assert device.array(5.0, np.float32).numpy() == 5
    assert device.array(np.ones(2, ">f4")).dtype == np.float32
    assert device.zeros(2, "bfloat16").dtype == device.array([1, 2], "bfloat16").dtype == ml_dtypes.bfloat16
    device.synchronize()
    assert repr(x) == f"<DeviceArray float64[2, 3] on {'host' if library().backend == 'host' else 'cuda:0'}>"


def test_refused_device_arrays() -> None:
    device = real().device
    x = device.zeros(3, np.float32)
    message = refusal(x.copy_from, np.zeros(3))
    assert message.startswith("DeviceArray.copy_from(): expected float32[3], given float64[3]; convert it")
    assert "given float32[4]; pass one of that shape, for instance with" in refusal(x.copy_from, np.zeros(4, "f4"))
    with pytest.raises(TypeError, match=r"^a DeviceArray is not true or false by itself: ask \.size, or"):
        bool(x)  # it was True, of one that holds 0, too
    assert "cannot be in device memory" in refusal(device.empty, 3, object)
    assert refusal(device.array, "abc").startswith("an array of <U3 cannot be in device memory; use a native numeric")
    with pytest.raises(ValueError, match="no negative sizes"):
        device.empty((-1,), np.float32)
    with pytest.raises(DeviceError):
        device.empty(2**60, np.float64)
    with pytest.raises(DeviceError, match="An allocation of 18446744073709551616 bytes is too large"):
        device.empty(2**62, np.float32)  # 0 in 64 bits
    for shape in (2.5, (2.5, 3), "3", None):
        with pytest.raises(TypeError, match=r"^a shape is an integer or a tuple of integers, not \(?[2'N]"):
            device.empty(shape, np.float32)
    with pytest.raises(TypeError, match="rank 0"):
        len(device.array(1.0))


def test_device_arrays_of_the_host_backend_are_dlpack() -> None:
    x = real().device.array(np.arange(3, dtype=np.float32))
    assert x.__dlpack_device__() == (1, 0)
    view = np.from_dlpack(x)
    x.copy_from(np.ones(3, np.float32))
    assert view.tolist() == [1, 1, 1]
    del x
    gc.collect()
    assert view.tolist() == [1, 1, 1]
    assert not hasattr(real().device.zeros(1, "f4"), "__cuda_array_interface__")


def test_device_arrays_of_a_gpu_have_its_interface() -> None:
    x = fake().device.array(np.arange(3, dtype=np.float32))
    interface = x.__cuda_array_interface__
    assert interface["shape"] == (3,)
    assert interface["typestr"] == "<f4"
    assert interface["data"] == (x.pointer, False)
    assert x.__dlpack_device__() == (2, 0)
    assert x.__dlpack__() is not None


def test_arrays_outlive_a_change_of_backend() -> None:
    x = fake().device.array(np.ones(2, np.float32))
    fake().use("host")
    try:
        assert x.numpy().tolist() == [1, 1]
        assert "make it anew" in refusal(fake().scale, 1, x)
        del x
    finally:
        fake().use(None)


def test_strided_device_arrays() -> None:
    base = real().device.array(np.arange(12, dtype=np.float32))
    view = DeviceArray(base._memory, base.pointer + 5 * 4, base.dtype, (2, 3), strides=(6, -2), owner=base)
    expected = np.array([[5, 3, 1], [11, 9, 7]], np.float32)
    assert np.array_equal(view.numpy(), expected)
    assert np.array_equal(np.from_dlpack(view), expected)
    assert real().weigh_strided(view) == (expected * [[0, 1, 2], [10, 11, 12]]).sum()
    assert "strided view" in refusal(view.copy_from, expected)
    assert refusal(view.clear) == "DeviceArray.clear(): the array is a strided view; clear a contiguous one"


def test_a_mask_is_not_lost_on_the_way() -> None:
    masked = np.ma.masked_array(np.ones(2, np.float32), [True, False])
    device = real().device
    for call in (device.array, device.zeros(2, "f4").copy_from):
        with pytest.raises(
            SignatureError, match=r"^a masked array: a copy on a device has no mask; pass its \.data, or"
        ):
            call(masked)
    assert device.array(masked.filled(7)).numpy().tolist() == [7, 1]
