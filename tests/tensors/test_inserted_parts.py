"""What the threads of an scf.forall insert at its end, where it is part of what another insertion there changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import emit_text, on_host
from test_whole_programs import run

ONE = np.arange(32, dtype=np.float32).reshape(4, 8)
OTHER = -ONE - 1
WITH_FIVE = np.where(np.arange(8) == 1, np.float32(5), ONE)

TWO = """
func.func @f(%choice: i1, %x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {{
  %five = arith.constant 5.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.forall (%i) in (4) shared_outs(%p = %x, %q = %y) -> (tensor<4x8xf32>, tensor<4x8xf32>) {{
    %a = tensor.extract_slice %p[%i, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
    %b = tensor.extract_slice %q[%i, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
    {body}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice {first} into %p[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
      tensor.parallel_insert_slice {second} into %q[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
    }}
  }}
  return %r#0, %r#1 : tensor<4x8xf32>, tensor<4x8xf32>
}}
"""

CHOSEN = """
    %s:2 = scf.if %choice -> (tensor<8xf32>, tensor<8xf32>) {
      scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
    } else {
      scf.yield %a, %b : tensor<8xf32>, tensor<8xf32>
    }
"""
LOOP = """
    %s:2 = scf.for %k = %c0 to %c1 step %c1 iter_args(%u = %a, %v = %b) -> (tensor<8xf32>, tensor<8xf32>) {
      scf.yield %v, %u : tensor<8xf32>, tensor<8xf32>
    }
"""
SELECTED = """
    %s = arith.select %choice, %b, %a : tensor<8xf32>
    %t = arith.select %choice, %a, %b : tensor<8xf32>
"""
COMPUTED = """
    %s = linalg.negf ins(%b : tensor<8xf32>) outs(%b : tensor<8xf32>) -> tensor<8xf32>
    %t = linalg.negf ins(%a : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
"""

FORMS = {
    "exchanged": ("", "%b", "%a", OTHER, ONE),
    "chosen": (CHOSEN, "%s#0", "%s#1", OTHER, ONE),
    "from a loop": (LOOP, "%s#0", "%s#1", OTHER, ONE),
    "selected": (SELECTED, "%s", "%t", OTHER, ONE),
    "changed": ("%s = tensor.insert %five into %a[%c1] : tensor<8xf32>", "%b", "%s", OTHER, WITH_FIVE),
    "computed": (COMPUTED, "%s", "%t", -OTHER, -ONE),
    "twice": ("%s = tensor.insert %five into %a[%c1] : tensor<8xf32>", "%s", "%s", WITH_FIVE, WITH_FIVE),
    "each its own": ("%s = tensor.insert %five into %a[%c1] : tensor<8xf32>", "%s", "%b", WITH_FIVE, OTHER),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", ["host", "gfx942", "sm_80"])
def test_two_tensors(form: str, target: str) -> None:
    body, first, second, *expected = FORMS[form]

    def check(library: Any) -> None:
        for result, want in zip(library.f(True, ONE, OTHER), expected, strict=True):
            np.testing.assert_array_equal(result.numpy(), want)

    run(TWO.format(body=body, first=first, second=second), target, check)


HALVES = """
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = scf.forall (%i) in (4) shared_outs(%p = %x) -> (tensor<4x8xf32>) {
    %a = tensor.extract_slice %p[%i, 0] [1, 4] [1, 1] : tensor<4x8xf32> to tensor<4xf32>
    %b = tensor.extract_slice %p[%i, 4] [1, 4] [1, 1] : tensor<4x8xf32> to tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %a into %p[%i, 4] [1, 4] [1, 1] : tensor<4xf32> into tensor<4x8xf32>
      tensor.parallel_insert_slice %b into %p[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<4x8xf32>
    }
  }
  return %r : tensor<4x8xf32>
}
"""


def test_two_parts_of_one_tensor() -> None:
    np.testing.assert_array_equal(on_host(HALVES).f(ONE).numpy(), np.roll(ONE, 4, axis=1))


IN_PLACE = """
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = scf.forall (%i) in (4) shared_outs(%p = %x) -> (tensor<4x8xf32>) {
    %a = tensor.extract_slice %p[%i, 0] [1, 4] [1, 1] : tensor<4x8xf32> to tensor<4xf32>
    %b = tensor.extract_slice %p[%i, 4] [1, 4] [1, 1] : tensor<4x8xf32> to tensor<4xf32>
    %c = linalg.negf ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
    %d = linalg.abs ins(%b : tensor<4xf32>) outs(%b : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %p[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<4x8xf32>
      tensor.parallel_insert_slice %d into %p[%i, 4] [1, 4] [1, 1] : tensor<4xf32> into tensor<4x8xf32>
    }
  }
  return %r : tensor<4x8xf32>
}
"""


def test_parts_in_their_own_places_are_not_copied() -> None:
    result = on_host(IN_PLACE).f(OTHER).numpy()
    np.testing.assert_array_equal(result, np.concatenate([-OTHER[:, :4], np.abs(OTHER[:, 4:])], axis=1))
    # MLIR copies the first one itself; the other stays where it is.
    assert emit_text(IN_PLACE, "kernels").count("memref.alloca") == 1
