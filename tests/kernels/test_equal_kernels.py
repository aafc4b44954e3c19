"""Equal loops of a function become one kernel, which is compiled once; what Python calls by name is there."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit, on_host, program

import offload


def test_results_and_names() -> None:
    library = program("equal_kernels")
    assert sorted(library.kernels) == [
        "first_kernel", "first_kernel_0", "first_kernel_1", "first_kernel_2", "second_kernel",
    ]  # fmt: skip
    x, y = np.arange(1000, dtype=np.float32), np.arange(300, dtype=np.float32)
    library.first(x, y, 3.0)
    expected, other = (np.arange(1000, dtype=np.float32) + 3) * 3, np.arange(300, dtype=np.float32) + 6
    expected[0] *= -1
    other[0] *= -1
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(y, other)
    library.second(x, 1.0)
    np.testing.assert_array_equal(x, expected + 1)


LAYER = """
  %e{n} = tensor.empty() : tensor<8x8xf32>
  %f{n} = linalg.fill ins(%zero : f32) outs(%e{n} : tensor<8x8xf32>) -> tensor<8x8xf32>
  %p{n} = linalg.matmul ins(%x{n}, %w{n} : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%f{n} : tensor<8x8xf32>) -> tensor<8x8xf32>
  %x{m} = math.tanh %p{n} : tensor<8x8xf32>
"""


def model(layers: int) -> str:
    weights = ", ".join(f"%w{n}: tensor<8x8xf32>" for n in range(layers))
    body = "".join(LAYER.format(n=n, m=n + 1) for n in range(layers))
    return f"""
func.func @model(%x0: tensor<8x8xf32>, {weights}) -> tensor<8x8xf32> {{
  %zero = arith.constant 0.0 : f32{body}
  return %x{layers} : tensor<8x8xf32>
}}
"""


def test_layers_of_a_model() -> None:
    layers = 12
    library = on_host(model(layers))
    assert len(library.kernels) == len(on_host(model(1)).kernels)
    random = np.random.default_rng(7)
    x = random.standard_normal((8, 8)).astype(np.float32)
    weights = random.standard_normal((layers, 8, 8)).astype(np.float32)
    found = library.model(x, *weights).numpy()
    for weight in weights:
        x = np.tanh(x @ weight)
    np.testing.assert_allclose(found, x, rtol=1e-4, atol=1e-4)


LOOP = """  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xi32>
    %k = arith.index_cast %i : index to i32
    %ok = arith.cmpi ne, %v, %k : i32
    cf.assert %ok, "meets its place"
    %w = arith.addi %v, %v : i32
    memref.store %w, %x[%i] : memref<?xi32>
  }
"""
CHECKED = f"""
func.func @f(%x: memref<?xi32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
{LOOP}{LOOP}  return
}}
"""


SHARES = """
  %e{n} = tensor.empty() : tensor<8x100xf32>
  %x{m} = linalg.softmax dimension(1) ins(%x{n} : tensor<8x100xf32>) outs(%e{n} : tensor<8x100xf32>)
    -> tensor<8x100xf32>
"""


def test_a_softmax_of_tensors_is_a_loop_as_others_are() -> None:
    """Its kernels are no more the author's than these: equal ones are joined, and numbered with the rest."""
    body = "".join(SHARES.format(n=n, m=n + 1) for n in range(1, 4))
    library = on_host(f"""
func.func @shares(%x0: tensor<8x100xf32>) -> tensor<8x100xf32> {{
  %x1 = math.exp %x0 : tensor<8x100xf32>{body}
  return %x4 : tensor<8x100xf32>
}}
""")
    assert len(library.kernels) == 2
    x = np.random.default_rng(8).standard_normal((8, 100)).astype(np.float32)
    found, x = library.shares(x).numpy(), np.exp(x)
    for _ in range(3):
        x = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(found, x, rtol=1e-5)


@pytest.mark.parametrize(("place", "line"), [(1, 10), (2, 18)])
def test_assertions_say_where_they_stand(place: int, line: int) -> None:
    """Those of equal loops, too: the first one meets 1 at 1, and the second one 2 at 2, which was 1."""
    x = np.full(5, 9, np.int32)
    x[place] = 1
    with pytest.raises(offload.DeviceError, match=rf"<string>:{line}:5: .*meets its place"):
        on_host(CHECKED).f(x)


def test_a_debugger_sees_the_lines_of_each() -> None:
    text = CHECKED.replace('cf.assert %ok, "meets its place"', "")
    counts = {
        debug: sum(item.data.decode().count("gpu.func @") for item in emit(text, "kernels", debug=debug))
        for debug in (False, True)
    }
    assert counts == {False: 1, True: 2}
