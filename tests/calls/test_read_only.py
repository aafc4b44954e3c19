"""Arrays that may not be written, for functions that take tensors, which stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import EXAMPLES, on_host
from emulator.driver import shared
from emulator.on_device import compiled

import offload
from offload.errors import SignatureError
from offload.runtime import function, interchange

PROGRAM = """
func.func @double(%x: tensor<?xf32>, %into: memref<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %into, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %zero, %into[%i] : memref<?xf32>
  }
  %y = arith.addf %x, %x : tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func @placed(%x: tensor<4xf32>, %v: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %y = tensor.insert %v into %x[%c0] : tensor<4xf32>
  return %y, %x : tensor<4xf32>, tensor<4xf32>
}
func.func @given(%x: tensor<4xf32> {bufferization.writable = true}, %v: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %y = tensor.insert %v into %x[%c0] : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
X = np.array([1, 2, 3, 4], np.float32)
X.flags.writeable = False


class Exported:
    """Another package's array that says that it is only to be read."""

    def __dlpack__(self, **options: Any) -> Any:
        return X.__dlpack__(max_version=(1, 0))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("kind", ["numpy", "dlpack", "strided"])
def test_tensors_may_be_read_only(kind: str) -> None:
    library, into = on_host(PROGRAM), np.zeros(4, np.float32)
    x: Any = Exported() if kind == "dlpack" else X
    if kind == "strided":  # of one element, and so contiguous
        x = np.broadcast_to(np.float32(5), (1, 1))[0]
    for _ in range(3):  # from the second on, calls go through the extension
        assert np.array_equal(library.double(x, into).numpy(), 2 * np.asarray(x if kind == "strided" else X))
        with pytest.raises(
            SignatureError, match=r"argument 'into' .* given a read-only float32\[4\]; pass a writeable"
        ):
            library.double(X, X)
    if kind != "strided":
        placed, same = library.placed(x, 9)
        assert (placed.numpy().tolist(), same.numpy().tolist()) == ([9, 2, 3, 4], [1, 2, 3, 4])
        same.host_view()[...] = 0
        assert X.tolist() == [1, 2, 3, 4]


def test_only_of_tensors_that_stay_as_they_are() -> None:
    library = on_host(PROGRAM)
    arguments = {name: [each.read_only for each in made.args] for name, made in library.signatures.items()}
    assert arguments == {"double": [True, False], "placed": [True, False], "given": [False, False]}
    with pytest.raises(SignatureError, match="read-only"):
        library.given(X, 1)
    for kernel in library.kernels.values():
        assert not all(argument.read_only for argument in kernel.signature.args if argument.kind == "memref")


def test_nothing_is_copied_back_that_is_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with shared("cuda").chip("sm_90"):
        library = compiled(PROGRAM, "sm_90")
        into, copies = np.zeros(4, np.float32), []

        class Counted(function.Staging):
            def _copy(self, host: Any, back: bool) -> Any:
                copies.append(back)
                return super()._copy(host, back)

        monkeypatch.setattr(function, "Staging", Counted)
        there = library.double(offload.stage(X), library.device.array(into))
        assert there.numpy().tolist() == [2, 4, 6, 8]
        library.auto_stage = True
        assert library.double(X, library.device.array(into)).numpy().tolist() == [2, 4, 6, 8]
        assert not any(copies)
        assert library.placed(X, 9)[0].numpy().tolist() == [9, 2, 3, 4]
        library.auto_stage = False
    shared("cuda").check()


def test_what_a_call_writes_all_the_same_is_in_a_copy(tmp_path: Path) -> None:
    """Of an array that is read-only, and staged as one that is only read: as on a GPU. It was written on the CPU, where
    bytes changed and a file that was mapped for reading ended the process."""
    library, zeros = on_host(EXAMPLES / "saxpy.mlir"), bytes(16)
    kernel, stream = library.kernels.saxpy_kernel, library.stream()
    (tmp_path / "zeros").write_bytes(zeros)
    mapped = np.memmap(tmp_path / "zeros", np.float32, "r")
    for array in (np.frombuffer(zeros, np.float32), mapped):
        for _ in range(3):
            library.saxpy(1.0, X, offload.stage(array, back=False))
            library.saxpy(1.0, X, offload.stage(array, back=False), stream=stream)
            kernel[1, 256](X, offload.stage(array, back=False), 1.0)
            kernel[1, 256, stream](X, offload.stage(array, back=False), 1.0)
        assert array.tolist() == [0] * 4
    assert zeros == bytes(16)
    y = np.zeros(4, np.float32)
    library.saxpy(1.0, offload.stage(mapped, back=False), y)
    library.saxpy(1.0, offload.stage(X, back=False), offload.stage(y, back=False))  # in place, which it may be
    assert y.tolist() == X.tolist()


def test_variables_of_a_program_may_be_written() -> None:
    library = on_host("""
    memref.global @state : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
    memref.global @zeros : memref<4xf32> = dense<0.0>
    memref.global constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
    func.func @get_state() -> memref<2xf32, strided<[1], offset: 2>> {
      %g = memref.get_global @state : memref<4xf32>
      %s = memref.subview %g[2][2][1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
      return %s : memref<2xf32, strided<[1], offset: 2>>
    }
    func.func @get_zeros() -> memref<4xf32> {
      %g = memref.get_global @zeros : memref<4xf32>
      return %g : memref<4xf32>
    }
    func.func @get_table() -> memref<4xf32> {
      %g = memref.get_global @table : memref<4xf32>
      return %g : memref<4xf32>
    }
    """)
    library.get_state()[0] = 9
    assert library.get_state().tolist() == [9, 4]
    library.get_zeros()[:] = 5
    assert library.get_zeros().tolist() == [5] * 4
    assert not library.get_table().flags.writeable


class Copied:
    """Another package's array, of which there is a copy for each who asks."""

    def __init__(self) -> None:
        self.array = np.ones(4, np.float32)

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.array.copy().__dlpack__(max_version=(1, 0))
        pointer = interchange._pointer_in(capsule, b"dltensor_versioned")
        interchange.Versioned.from_address(pointer).flags |= 2  # DLPACK_FLAG_BITMASK_IS_COPIED
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_what_is_written_to_a_copy_is_not_lost_without_a_word() -> None:
    library, x, into = on_host(PROGRAM), Copied(), np.zeros(4, np.float32)
    for _ in range(3):  # from the second on, calls go through the extension
        assert library.double(x, into).numpy().tolist() == [2, 2, 2, 2]
        with pytest.raises(SignatureError) as refused:
            library.double(into, x)
        said = "given a float32[4] that its package exports as a copy, where nobody would find what the call writes"
        assert f"{said}; pass an array of your own, for instance numpy.from_dlpack(into).copy()" in str(refused.value)


class OfDLPackAlone:
    """An array that has DLPack and nothing else."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize(
    ("array", "advice"),
    [
        (np.ones(4), "numpy.from_dlpack(into).astype('float32')"),
        (np.ones(4, np.uint32), "numpy.from_dlpack(into).astype('float32')"),
        (np.ones(8, np.float32)[::2], "numpy.ascontiguousarray(numpy.from_dlpack(into))"),
    ],
)
def test_what_to_do_with_an_array_that_has_dlpack_alone(array: Any, advice: str) -> None:
    """numpy.asarray would make an array of one object of it."""
    library, x, into = on_host(PROGRAM), np.ones(4, np.float32), OfDLPackAlone(array)
    with pytest.raises(SignatureError) as refused:
        library.double(x, into)
    assert advice in str(refused.value)
    library.double(x, eval(advice, {"numpy": np, "into": into}))


def test_advice_to_copy_says_where_what_is_written_goes() -> None:
    """A copy that is made in the call is lost with it; of an argument that is only read, that is no loss."""
    library, fits, every_other = on_host(PROGRAM), np.ones(4, np.float32), np.ones(8, np.float32)[::2]
    with pytest.raises(SignatureError, match=r"; pass numpy\.ascontiguousarray\(x\)$"):
        library.double(every_other, fits)
    with pytest.raises(SignatureError, match=r"ascontiguousarray\(into\); what the call writes is in that copy then$"):
        library.double(fits, every_other)


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "f32"), ("int8", "i8")])
def test_bytes_are_copied_where_they_would_be_written(dtype: str, kind: str) -> None:
    """What NumPy makes of them is no copy, and may not be written either."""
    library = on_host(f"""
    func.func @put(%x: {kind}, %into: memref<?x{kind}>) {{
      %c0 = arith.constant 0 : index
      memref.store %x, %into[%c0] : memref<?x{kind}>
      return
    }}""")
    made = f"numpy.frombuffer(into, '{dtype}').copy()"
    with pytest.raises(SignatureError) as refused:
        library.put(1, bytes(16))
    assert str(refused.value).endswith(f"instance with {made}; what the call writes is in that copy then")
    library.put(1, eval(made, {"numpy": np, "into": bytes(16)}))
