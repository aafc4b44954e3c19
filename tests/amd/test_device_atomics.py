"""Atomic operations on GPUs: their scope, their order, and when AMD's are one instruction."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import emit_text
from emulator.running import running_on

COUNTS = """
gpu.module @m {
  gpu.func @count(%x: memref<?xi32>, %sums: memref<4xf32>, %most: memref<4xi32>, %bits: memref<4xi64>)
      workgroup(%own: memref<4xi32, #gpu.address_space<workgroup>>) kernel {
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0 : i32
    %t = gpu.thread_id x
    %g = gpu.global_id x
    %few = arith.cmpi ult, %t, %c4 : index
    scf.if %few {
      memref.store %zero, %own[%t] : memref<4xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %v = memref.load %x[%g] : memref<?xi32>
    %place = arith.remui %g, %c4 : index
    %f = arith.sitofp %v : i32 to f32
    %w = arith.extsi %v : i32 to i64
    %0 = memref.atomic_rmw maxs %v, %own[%place] : (i32, memref<4xi32, #gpu.address_space<workgroup>>) -> i32
    %1 = memref.atomic_rmw addf %f, %sums[%place] : (f32, memref<4xf32>) -> f32
    %2 = memref.atomic_rmw ori %w, %bits[%place] : (i64, memref<4xi64>) -> i64
    gpu.barrier
    scf.if %few {
      %m = memref.load %own[%t] : memref<4xi32, #gpu.address_space<workgroup>>
      %3 = memref.atomic_rmw maxs %m, %most[%t] : (i32, memref<4xi32>) -> i32
    }
    gpu.return
  }
}
"""
"""Nothing of what the operations found is read, and other blocks see nothing else of what is written."""

TICKETS = """
gpu.module @m {
  gpu.func @take(%x: memref<?xi32>, %next: memref<1xi32>, %out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %g = gpu.global_id x
    %v = memref.load %x[%g] : memref<?xi32>
    %ticket = memref.atomic_rmw addi %one, %next[%c0] : (i32, memref<1xi32>) -> i32
    %place = arith.index_cast %ticket : i32 to index
    memref.store %v, %out[%place] : memref<?xi32>
    gpu.return
  }
}
"""

ATOMIC = re.compile(r'llvm.atomicrmw (\w+) .* syncscope\("(\w+)"\) (\w+)')

SIGNAL = """
gpu.module @m {
  func.func private @signal(%flag: memref<1xi32>) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %0 = memref.atomic_rmw addi %one, %flag[%c0] : (i32, memref<1xi32>) -> i32
    return
  }
  gpu.func @put(%x: memref<?xi32>, %flag: memref<1xi32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    memref.store %one, %x[%c0] : memref<?xi32>
    func.call @signal(%flag) : (memref<1xi32>) -> ()
    gpu.return
  }
}
"""

MEETING = """
gpu.module @m {
  gpu.func @sums(%x: memref<?xi32>, %sum: memref<1xi32>, %here: memref<1xi32>, %all: i32, %out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %g = gpu.global_id x
    %v = memref.load %x[%g] : memref<?xi32>
    %0 = memref.atomic_rmw addi %v, %sum[%c0] : (i32, memref<1xi32>) -> i32
    %1 = memref.atomic_rmw addi %one, %here[%c0] : (i32, memref<1xi32>) -> i32
    scf.while : () -> () {
      %seen = memref.atomic_rmw addi %zero, %here[%c0] : (i32, memref<1xi32>) -> i32
      %missing = arith.cmpi slt, %seen, %all : i32
      scf.condition(%missing)
    } do {
      scf.yield
    }
    %2 = memref.atomic_rmw addi %zero, %sum[%c0] : (i32, memref<1xi32>) -> i32
    memref.store %2, %out[%g] : memref<?xi32>
    gpu.return
  }
}
"""
"""Nobody reads what the first two found, but what they did before others go on."""

CHIPS = ["host", "gfx90a", "gfx942", "gfx1100", "gfx1201", "sm_80", "sm_90"]
LOCAL = [f"{chip},own_memory{more}" for chip in CHIPS if chip.startswith("gfx") for more in ("", ",daz")]


@pytest.mark.parametrize("chip", [*CHIPS, *LOCAL])
def test_counts(chip: str) -> None:
    x = np.random.default_rng(1).integers(1, 1000, 128).astype(np.int32)
    sums, most, bits = np.zeros(4, np.float32), np.zeros(4, np.int32), np.zeros(4, np.int64)
    with running_on(chip, COUNTS) as library:
        library.kernels.count[2, 64](x, sums, most, bits)
    columns = x.reshape(-1, 4)
    np.testing.assert_array_equal(sums, columns.sum(0))
    np.testing.assert_array_equal(most, columns.max(0))
    np.testing.assert_array_equal(bits, np.bitwise_or.reduce(columns, axis=0))


@pytest.mark.parametrize("chip", CHIPS)
def test_tickets(chip: str) -> None:
    x, following, out = np.arange(5, 133, dtype=np.int32), np.zeros(1, np.int32), np.zeros(128, np.int32)
    with running_on(chip, TICKETS) as library:
        library.kernels.take[2, 64](x, following, out)
    assert following == 128
    np.testing.assert_array_equal(np.sort(out), x)


@pytest.mark.parametrize(
    ("target", "device", "block"), [("rocdl:gfx90a", "agent", "workgroup"), ("nvvm:sm_80", "device", "block")]
)
def test_scopes(target: str, device: str, block: str) -> None:
    """The whole system's would write AMD's cache back at each of them, and be a loop on every chip."""
    text = emit_text(COUNTS, "lowered", [target])
    expected = [(name, device, "monotonic") for name in ("_or", "fadd", "max")]
    assert sorted(ATOMIC.findall(text)) == sorted([*expected, ("max", block, "monotonic")])
    (ticket,) = ATOMIC.findall(emit_text(TICKETS, "lowered", [target]))
    assert ticket == ("add", device, "acq_rel")
    meeting = ATOMIC.findall(emit_text(MEETING.replace("memref.store %2", "// "), "lowered", [target]))
    assert meeting == [("add", device, "acq_rel")] * 4
    (signal,) = ATOMIC.findall(emit_text(SIGNAL, "lowered", [target]))
    assert signal == ("add", device, "acq_rel")


def test_functions_of_others_may_tell_something() -> None:
    waiting = COUNTS.replace("gpu.module @m {", "gpu.module @m { func.func private @wait_for(%n: i32)").replace(
        "%m = memref.load", "func.call @wait_for(%v) : (i32) -> () %m = memref.load"
    )
    found = ATOMIC.findall(emit_text(waiting, "lowered", ["rocdl:gfx942"]))
    assert [order for _, _, order in found] == ["acq_rel"] * 4
    exchanged = COUNTS.replace("atomic_rmw maxs", "atomic_rmw assign")
    found = ATOMIC.findall(emit_text(exchanged, "lowered", ["rocdl:gfx942"]))
    assert [order for _, _, order in found] == ["acq_rel"] * 4


@pytest.mark.parametrize(
    ("order", "scope", "before", "behind"),
    [
        ("release", "agent", 1, 0),
        ("acquire", "device", 0, 1),
        ("acq_rel", "", 1, 1),
        ("seq_cst", "", 1, 1),
        ("monotonic", "agent", 0, 0),
    ],
)
def test_an_authors_order_on_nvidia(order: str, scope: str, before: int, behind: int) -> None:
    """LLVM 22 writes `atom` without it."""
    syncscope = f'syncscope("{scope}") ' if scope else ""
    source = f"""
    gpu.module @m {{ llvm.func @k(%d: !llvm.ptr<1>, %p: !llvm.ptr<1>, %v: i32) attributes {{gpu.kernel}} {{
      llvm.store %v, %d : i32, !llvm.ptr<1>
      %0 = llvm.atomicrmw add %p, %v {syncscope}{order} : !llvm.ptr<1>, i32
      llvm.store %v, %d : i32, !llvm.ptr<1>
      llvm.return
    }} }}"""
    text = emit_text(source, "isa", ["nvvm:sm_80"])
    first, second = re.split(r"\batom\.\S*global\S*", text)
    fence = rf"fence\.{'sc' if order == 'seq_cst' else 'acq_rel'}\.{'gpu' if scope else 'sys'}"
    assert len(re.findall(fence, first)) == before
    assert len(re.findall(fence, second)) == behind


def test_what_an_author_gives_no_scope_is_for_the_whole_system() -> None:
    source = """
    gpu.module @m { llvm.func @k(%p: !llvm.ptr<1>, %v: i32) attributes {gpu.kernel, rocdl.kernel} {
      %0 = llvm.atomicrmw add %p, %v acq_rel : !llvm.ptr<1>, i32
      llvm.return
    } }"""
    assert re.search(
        r"atomicrmw add ptr addrspace\(1\) %0, i32 %1 acq_rel", emit_text(source, "llvm", ["rocdl:gfx942"])
    )


@pytest.mark.parametrize(
    ("options", "loops"),
    [
        ("gfx90a", {"add_f32", "or_b64", "max_i32"}),
        ("gfx90a,own_memory", {"add_f32"}),
        ("gfx90a,own_memory,daz", set()),
        ("gfx942", set()),
        ("gfx1100", {"add_f32", "or_b64", "max_i32"}),
        ("gfx1100,own_memory", set()),
        ("gfx1201", set()),
    ],
)
def test_instructions_of_amd(options: str, loops: set[str]) -> None:
    """Instructions that memory of the CPU ignores are only used where there is none."""
    text = emit_text(COUNTS, "isa", [f"rocdl:{options}"])
    assert len(re.findall(r"global_atomic_cmpswap", text)) == len(loops)
    assert "buffer_wbl2" not in text
    assert "buffer_wbinvl1" not in text


DIFFERENCES = """
gpu.module @m {{
  llvm.mlir.global internal @own() {{addr_space = 3 : i32}} : !llvm.array<4 x i32>
  llvm.func @k(%x: !llvm.ptr<1>, %old: !llvm.ptr<1>, %n: i32, %first: i32) attributes {{gpu.kernel}} {{
    %here = llvm.mlir.addressof @own : !llvm.ptr<3>
    %v = llvm.load %x : !llvm.ptr<1> -> i32
    llvm.store %v, %here : i32, !llvm.ptr<3>
    %0 = llvm.atomicrmw {volatile} usub_sat %here, %n {order} : !llvm.ptr<3>, i32
    %a = llvm.addrspacecast %here : !llvm.ptr<3> to !llvm.ptr
    %b = llvm.addrspacecast %x : !llvm.ptr<1> to !llvm.ptr
    %zero = llvm.mlir.constant(0 : i32) : i32
    %is = llvm.icmp "eq" %first, %zero : i32
    %any = llvm.select %is, %a, %b : i1, !llvm.ptr
    %1 = llvm.atomicrmw usub_sat %any, %n {order} : !llvm.ptr, i32
    %2 = llvm.atomicrmw usub_sat %x, %n {order} : !llvm.ptr<1>, i32
    %3 = llvm.load %here : !llvm.ptr<3> -> i32
    %c = llvm.mlir.constant(1 : i32) : i32
    llvm.store %0, %old : i32, !llvm.ptr<1>
    %old1 = llvm.getelementptr %old[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %1, %old1 : i32, !llvm.ptr<1>
    %old2 = llvm.getelementptr %old[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %2, %old2 : i32, !llvm.ptr<1>
    %old3 = llvm.getelementptr %old[3] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %3, %old3 : i32, !llvm.ptr<1>
    llvm.return
  }}
}}
"""
"""In a block's memory, in memory of any space, and in the GPU's."""


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1100,own_memory", "gfx1100,O=0", "gfx1201", "gfx1201,O=0"])
@pytest.mark.parametrize(("volatile", "order"), [("", 'syncscope("workgroup") monotonic'), ("volatile", "seq_cst")])
def test_differences_that_stop_at_zero(chip: str, volatile: str, order: str) -> None:
    """LLVM takes each for one instruction where AMD's chips have it for memory of another space alone."""
    with running_on(chip, DIFFERENCES.format(volatile=volatile, order=order)) as library:
        for first, n in ((0, 4), (1, 4), (1, 30)):
            x, old = np.array([10], np.int32), np.zeros(4, np.int32)
            library.kernels.k[1, 1](x, old, n, first)
            less = [max(10 - times * n, 0) for times in range(3)]
            assert list(old) == ([10, less[1], 10, less[2]] if first == 0 else [10, 10, less[1], less[1]])
            assert x[0] == (less[1] if first == 0 else less[2])


OWN = """
gpu.module @m {{ gpu.func @k(%i: index, %v: {type}, %out: memref<2x{type}>) kernel {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %own = memref.alloca() : memref<8x{type}>
  scf.for %j = %c0 to %c8 step %c1 {{
    memref.store %v, %own[%j] : memref<8x{type}>
  }}
  %old = memref.atomic_rmw {sum} %v, %own[%i] : ({type}, memref<8x{type}>) -> {type}
  %new = memref.generic_atomic_rmw %own[%i] : memref<8x{type}> {{
  ^bb0(%found: {type}):
    %0 = arith.{product} %found, %found : {type}
    %1 = arith.{product} %0, %v : {type}
    memref.atomic_yield %1 : {type}
  }}
  %last = memref.load %own[%i] : memref<8x{type}>
  memref.store %old, %out[%c0] : memref<2x{type}>
  memref.store %last, %out[%c1] : memref<2x{type}>
  gpu.return
}} }}
"""


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "f16", "bf16", "f64"])
def test_a_threads_own_memory_needs_no_atomic_operations(kind: str) -> None:
    """On gfx1250, too, where other threads could reach it and LLVM looks for instructions that are not there."""
    sum_, product = ("addi", "muli") if kind[0] == "i" else ("addf", "mulf")
    text = emit_text(OWN.format(type=kind, sum=sum_, product=product), "isa", ["rocdl:gfx1250"])
    assert not re.search(r"atomic|ds_cmpst", text)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_what_atomic_operations_find_in_a_threads_own_memory(chip: str) -> None:
    with running_on(chip, OWN.format(type="i16", sum="addi", product="muli")) as library:
        out = np.zeros(2, np.int16)
        library.kernels.k[1, 1](3, 5, out)
    assert list(out) == [5, 500]
