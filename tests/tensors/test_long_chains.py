"""What it takes to give tensors of long functions memory: the sizes of a chain's tensors were each asked of all that
come before, and whole programs were analysed for insertions that they do not have."""

from __future__ import annotations

import time

import pytest
from compiling import emit

from offload.compiler import frontend, steps

MATRIX = "tensor<?x?xf32>"


def products(number: int) -> str:
    """So many products of matrices one after the other, each of which asks for the sizes of the one before."""
    body = "".join(
        f"""
  %rows{k} = tensor.dim %x{k}, %c0 : {MATRIX}
  %columns{k} = tensor.dim %x{k}, %c1 : {MATRIX}
  %empty{k} = tensor.empty(%rows{k}, %columns{k}) : {MATRIX}
  %zeros{k} = linalg.fill ins(%zero : f32) outs(%empty{k} : {MATRIX}) -> {MATRIX}
  %x{k + 1} = linalg.matmul ins(%x{k}, %w : {MATRIX}, {MATRIX}) outs(%zeros{k} : {MATRIX}) -> {MATRIX}"""
        for k in range(number)
    )
    return f"""
func.func @f(%x0: {MATRIX}, %w: {MATRIX}) -> {MATRIX} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32{body}
  return %x{number} : {MATRIX}
}}
"""


def fused(number: int) -> tuple[str, float]:
    """The program, and the seconds of a processor that it took."""
    module = frontend.new_session().parse(products(number).encode(), "<string>")
    begin = time.process_time()
    module.run("offload-fuse-elementwise")
    return module.text(), time.process_time() - begin


def test_sizes_of_a_chain() -> None:
    """Each is that of the argument, which is asked once."""
    text, _ = fused(5)
    assert text.count("tensor.dim") == 2
    assert all("%arg0" in line for line in text.splitlines() if "tensor.dim" in line)
    few = min(fused(60)[1] for _ in range(3))
    assert fused(480)[1] < 40 * few  # 70 times as long, where each was asked of all products before it


STEP = """
    %v = tensor.extract %a[%i] : tensor<8xf32>
    %w = arith.addf %v, %v : f32
    %b = tensor.insert %w into %a[%i] : tensor<8xf32>"""
MADE = """%empty = tensor.empty() : tensor<8xf32>
  %part = linalg.fill ins(%v0 : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>"""
LOOP = """%empty = tensor.empty() : tensor<8xf32>
  %part = scf.for %i = %c0 to %n step %c1 iter_args(%a = %empty) -> tensor<8xf32> {
    %b = tensor.insert %v0 into %a[%i] : tensor<8xf32>
    scf.yield %b : tensor<8xf32>
  }"""
BRANCH = """%more = arith.cmpi ugt, %n, %c1 : index
  %part = scf.if %more -> tensor<8xf32> {
    %one = tensor.empty() : tensor<8xf32>
    %ones = linalg.fill ins(%v0 : f32) outs(%one : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %ones : tensor<8xf32>
  } else {
    scf.yield %y : tensor<8xf32>
  }"""
INSERTED = "%r = tensor.insert_slice %part into %x[%n, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<?x8xf32>"
THREADS = """%r = scf.forall (%i) in (%n) shared_outs(%all = %x) -> tensor<?x8xf32> {
    %empty = tensor.empty() : tensor<8xf32>
    %part = linalg.fill ins(%v0 : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %part into %all[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<?x8xf32>
    }
  }"""
UNMADE = f"""%part = scf.for %i = %c0 to %n step %c1 iter_args(%a = %y) -> tensor<8xf32> {{{STEP}
    scf.yield %b : tensor<8xf32>
  }}"""
ELSEWHERE = "%r = tensor.cast %x : tensor<?x8xf32> to tensor<?x8xf32>"


@pytest.mark.parametrize(
    ("body", "looks"),
    [
        (f"{MADE}\n  {INSERTED}", True),
        (f"{LOOP}\n  {INSERTED}", True),
        (f"{BRANCH}\n  {INSERTED}", True),
        (THREADS, True),
        (f"{UNMADE}\n  {INSERTED}", False),
        (f"{MADE}\n  {ELSEWHERE}", False),
    ],
    ids=["made", "loop", "branch", "threads", "insertion alone", "empty alone"],
)
def test_who_looks_for_insertions(body: str, looks: bool) -> None:
    """Those who insert what begins with an empty tensor, whatever it goes through."""
    text = f"""
func.func @f(%x: tensor<?x8xf32>, %y: tensor<8xf32>, %v0: f32, %n: index) -> tensor<?x8xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {body}
  return %r : tensor<?x8xf32>
}}
"""
    told: list[steps.Event] = []
    with steps.told_to(told.append):
        emit(text, "kernels")
    names = [name for event in told if isinstance(event, steps.Passes) for name, _ in event.times]
    assert "one-shot-bufferize" in names
    assert ("eliminate-empty-tensors" in names) == looks
