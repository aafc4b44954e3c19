"""What it takes to give tensors of long functions memory: the sizes of a chain's tensors were each asked of all that
come before, whole programs were analysed for insertions that they do not have, and of a chain's parts each one was
compared with all others, time and again."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import numpy as np
import pytest
from compiling import emit, on_host

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


TENSOR, PART = "tensor<4096xf32>", "tensor<64xf32>"


def scaled(k: str, source: str, into: str, start: str) -> str:
    """A part of one tensor, changed and put into another: %a(k) of %a(k-1), say."""
    return f"""
  %s{k} = tensor.extract_slice {source}[{start}] [64] [1] : {TENSOR} to {PART}
  %e{k} = tensor.empty() : {PART}
  %p{k} = linalg.mul ins(%s{k}, %s{k} : {PART}, {PART}) outs(%e{k} : {PART}) -> {PART}
  %a{k} = tensor.insert_slice %p{k} into {into}[{start}] [64] [1] : {PART} into {TENSOR}"""


def chain(number: int) -> str:
    """So many parts, which overlap, one after the other."""
    steps = "".join(scaled(f"{k + 1}", f"%a{k}", f"%a{k}", f"{k * 37 % 4000}") for k in range(number))
    return f"func.func @f(%a0: {TENSOR}) -> {TENSOR} {{{steps}\n  return %a{number} : {TENSOR}\n}}"


def from_first(number: int) -> str:
    """All read what the function has got."""
    steps = "".join(scaled(f"{k + 1}", "%a0", f"%a{k}", f"{k * 64 % 4000}") for k in range(number))
    return f"func.func @f(%a0: {TENSOR}) -> {TENSOR} {{{steps}\n  return %a{number} : {TENSOR}\n}}"


def two_chains(number: int) -> str:
    """Each takes from the other."""
    steps = "".join(
        scaled(f"x{k + 1}", f"%ay{k}", f"%ax{k}", f"{k * 37 % 4000}")
        + scaled(f"y{k + 1}", f"%ax{k + 1}", f"%ay{k}", f"{k * 53 % 4000}")
        for k in range(number)
    )
    return f"""func.func @f(%ax0: {TENSOR}, %ay0: {TENSOR}) -> ({TENSOR}, {TENSOR}) {{{steps}
  return %ax{number}, %ay{number} : {TENSOR}, {TENSOR}
}}"""


def in_loop(number: int) -> str:
    """A chain in each iteration, which begins where the last one ended, and a part that is read behind it."""
    steps = "".join(scaled(f"{k + 1}", f"%a{k}", f"%a{k}", f"{k * 37 % 4000}") for k in range(number))
    return f"""func.func @f(%x: {TENSOR}, %n: index) -> ({TENSOR}, {PART}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %x) -> {TENSOR} {{{steps}
    scf.yield %a{number} : {TENSOR}
  }}
  %part = tensor.extract_slice %r[%n] [64] [1] : {TENSOR} to {PART}
  return %r, %part : {TENSOR}, {PART}
}}"""


def kept_version(number: int) -> str:
    """What the chain was in the middle is needed at its end."""
    steps = "".join(scaled(f"{k + 1}", f"%a{k}", f"%a{k}", f"{k * 37 % 4000}") for k in range(number))
    return f"""func.func @f(%a0: {TENSOR}) -> ({TENSOR}, {TENSOR}) {{{steps}
  return %a{number // 2}, %a{number} : {TENSOR}, {TENSOR}
}}"""


def around_constants(number: int) -> str:
    """Chains that begin with a constant, and with memory that is only read; empty tensors of sizes from outside."""
    steps = "".join(f"  %t{k + 1} = tensor.insert %v into %t{k}[%c{k % 3}] : {TENSOR}\n" for k in range(number))
    made = "".join(
        f"""
    %s{k} = tensor.extract_slice %a{k}[{k * 37 % 4000}] [%c64] [1] : {TENSOR} to tensor<?xf32>
    %p{k} = linalg.mul ins(%s{k}, %s{k} : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %a{k + 1} = tensor.insert_slice %p{k} into %a{k}[{k * 37 % 4000}] [%c64] [1] : tensor<?xf32> into {TENSOR}"""
        for k in range(number)
    )
    return f"""func.func @f(%x: {TENSOR}, %v: f32, %n: index, %m: memref<4096xf32>)
    -> ({TENSOR}, {TENSOR}, {TENSOR}, {TENSOR}) {{
  %t0 = arith.constant dense<3.0> : {TENSOR}
  %r0 = bufferization.to_tensor %m restrict : memref<4096xf32> to {TENSOR}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %e = tensor.empty(%c64) : tensor<?xf32>
{steps.replace("%t", "%x").replace("%x0 ", "%x ").replace("%x0[", "%x[")}{steps}{steps.replace("%t", "%r")}
  %q = scf.for %i = %c0 to %n step %c1 iter_args(%a0 = %x{number}) -> {TENSOR} {{{made}
    scf.yield %a{number} : {TENSOR}
  }}
  return %q, %x{number}, %t{number}, %r{number} : {TENSOR}, {TENSOR}, {TENSOR}, {TENSOR}
}}"""


def test_what_nobody_may_write_to() -> None:
    """A constant, and memory of the caller's, are no results of functions: those may be written."""
    with_memory(around_constants(12), "longest=1 part=1", verified=True)
    library = on_host(around_constants(100))
    x, m = np.zeros(4096, np.float32), np.full(4096, 3, np.float32)
    q, filled, of_constant, of_memory = (each.numpy() for each in library.f(x, 7.0, 1, m))
    wanted = np.where(np.arange(4096) < 3, np.float32(7), np.float32(0))
    np.testing.assert_array_equal(filled, wanted)
    for found in (of_constant, of_memory):
        np.testing.assert_array_equal(found, np.where(np.arange(4096) < 3, np.float32(7), np.float32(3)))
    assert (x == 0).all()
    assert (m == 3).all()
    for k in range(100):
        wanted[k * 37 % 4000 :][:64] **= 2
    np.testing.assert_array_equal(q, wanted)


def with_memory(text: str, cut: str, verified: bool = False) -> tuple[str, float]:
    """The program after bufferization, and the seconds of a processor that it took."""
    module = frontend.new_session().parse(text.encode(), "<string>")
    passes = ",".join(frontend.BUFFERIZING).replace("offload-cut-chains", f"offload-cut-chains{{{cut}}}")
    begin = time.process_time()
    module.run(passes, verify_each=verified)
    return module.text(), time.process_time() - begin


@pytest.mark.parametrize("make", [chain, from_first, two_chains, in_loop, kept_version])
def test_cut_chains_get_the_same_memory(make: Callable[[int], str]) -> None:
    def operations(cut: str) -> list[str]:
        """Without constants, whose order is another one, and without names."""
        text, _ = with_memory(make(12), cut, verified=True)
        return [re.sub(r"%\w+", "%", line) for line in text.splitlines() if "arith.constant" not in line]

    whole = operations("longest=1000")
    assert operations("longest=1 part=1") == whole
    assert operations("longest=10 part=6") == whole


def test_chains_are_cut() -> None:
    module = frontend.new_session().parse(chain(100).encode(), "<string>")
    module.run("offload-cut-chains")
    assert 5 < module.text().count("call @offload_part") < 20
    module.run("offload-join-chains")
    assert "offload_part" not in module.text()


def test_parts_of_a_long_chain() -> None:
    few = min(with_memory(chain(40), "")[1] for _ in range(3))
    assert with_memory(chain(160), "")[1] < 20 * few  # 100 times as long, where the chain was one
