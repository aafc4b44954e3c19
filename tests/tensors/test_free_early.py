"""What a function has allocated for its tensors goes back behind its last use, not where the function ends."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import PROGRAMS, emit_text, on_host

PROGRAM = PROGRAMS / "free_early.mlir"

LAYERS = 24


def layers(count: int) -> str:
    """That many layers, one after the other."""
    steps = "\n".join(
        f"""%m{i + 1} = linalg.matmul ins(%m{i}, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%f : tensor<?x16xf32>)
      -> tensor<?x16xf32>"""
        for i in range(count)
    )
    return f"""
func.func @f(%m0: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<?x16xf32> {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %m0, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  {steps}
  return %m{count} : tensor<?x16xf32>
}}"""


def most_at_once(text: str) -> int:
    live = most = 0
    for found in re.findall(r"\b(gpu\.alloc|memref\.alloc|gpu\.dealloc|memref\.dealloc) ", text):
        live += 1 if found.endswith(".alloc") else -1
        most = max(most, live)
    return most


def test_a_network_holds_the_memory_of_a_few_layers() -> None:
    """It was that of all of them: a gigabyte for 40 layers of 25 megabytes."""
    assert most_at_once(emit_text(layers(LAYERS), "kernels")) <= 4
    library = on_host(layers(LAYERS))
    library.auto_stage = True
    x, w = np.random.default_rng(2).random((7, 16), np.float32), np.full((16, 16), 1 / 16, np.float32)
    expected = np.repeat(x.mean(1, keepdims=True), 16, 1)
    np.testing.assert_allclose(library.f(x, w).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_what_is_used_again(rows: int) -> None:
    library = on_host(PROGRAM)
    library.auto_stage = True
    random = np.random.default_rng(rows)
    x, w = random.random((rows, 16), np.float32), random.random((16, 16), np.float32) / 8
    wanted = (x @ w @ w @ w + x @ w) @ w
    np.testing.assert_allclose(library.chain(x, w).numpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_views(steps: int) -> None:
    library = on_host(PROGRAM)
    library.auto_stage = True
    x = np.random.default_rng(steps).random(64, np.float32)
    element, total = library.views(x, steps)
    assert element == 2 * x[21]
    np.testing.assert_allclose(total.numpy(), (x * x)[:32] + steps * 2 * x[16:48], rtol=1e-5)


def test_parts_keep_the_whole() -> None:
    library = on_host(PROGRAM)
    library.auto_stage = True
    x = np.random.default_rng(7).random(64, np.float32)
    last, more = library.part(x)
    np.testing.assert_array_equal(last.numpy(), 2 * x * x)
    np.testing.assert_array_equal(more.numpy(), 4 * x[16:48])


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_numbers_that_functions_make_of_memory(steps: int) -> None:
    library = on_host(PROGRAM)
    library.auto_stage = True
    x = np.full(64, 0.5, np.float32)
    expected = np.float32(0)
    for _ in range(steps):
        expected = (expected + np.float32(0.5)) ** 2
    assert library.numbers(x, steps) == expected * expected


@pytest.mark.parametrize("name", ["turned", "apart"])
def test_memory_that_is_seen_in_another_way(name: str) -> None:
    library = on_host(PROGRAM)
    library.auto_stage = True
    x = np.random.default_rng(3).random((8, 4), np.float32)
    out = np.zeros((4, 8) if name == "turned" else (8, 4), np.float32)
    other = getattr(library, name)(x, out)
    np.testing.assert_array_equal(out, 2 * x.T if name == "turned" else 2 * x)
    np.testing.assert_array_equal(other.numpy(), x * x)
