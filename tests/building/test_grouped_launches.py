"""The names and modules of kernels: many small ones share a gpu.module, which is compiled once for each chip; what a
body uses by name stays what it is."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, emit_text, on_host, program

from offload import CompileError

HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
"""


def adding(*lengths: int) -> str:
    """A function of as many kernels as there are lengths; each adds one to an element so many times."""
    loops = []
    for length in lengths:
        adds = "\n".join(f"%v{k + 1} = arith.addf %v{k}, %one : f32" for k in range(length))
        loops.append(f"""
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %one = arith.constant 1.0 : f32
    %v0 = memref.load %x[%i] : memref<?xf32>
    {adds}
    memref.store %v{length}, %x[%i] : memref<?xf32>
  }}""")
    return f"func.func @f(%x: memref<?xf32>) {{{HEAD}{''.join(loops)}\n  return\n}}\n"


def modules_of(text: str) -> list[tuple[str, list[str]]]:
    """Each gpu.module with its kernels."""
    parts = re.split(r"gpu\.module @(\w+)", emit_text(text, "kernels"))[1:]
    return [(name, re.findall(r"gpu\.func @(\w+)", body)) for name, body in zip(parts[::2], parts[1::2], strict=True)]


def test_a_few_kernels_keep_a_module_each() -> None:
    names = ["f_kernel", "f_kernel_0", "f_kernel_1", "f_kernel_2"]
    assert sorted(modules_of(adding(1, 2, 3, 4))) == [(name, [name]) for name in names]


def test_many_share_one() -> None:
    text = adding(*range(1, 8))
    names = ["f_kernel", *(f"f_kernel_{number}" for number in range(6))]
    ((module, kernels),) = modules_of(text)
    assert (module, sorted(kernels)) == ("kernels", names)
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)
    library = on_host(text)
    assert [kernel.name for kernel in library.metadata.kernels] == names
    x = np.zeros(100, np.float32)
    library.f(x)
    np.testing.assert_array_equal(x, np.full(100, sum(range(1, 8))))


def test_large_kernels_stay_apart() -> None:
    """So that they compile side by side."""
    assert [len(kernels) for _, kernels in modules_of(adding(600, 3, 601, 4, 5, 990, 6))] == [2, 3, 1, 1]


def test_a_name_that_is_taken() -> None:
    ((module, _),) = modules_of(adding(*range(1, 6)) + "func.func @kernels() { return }\n")
    assert module == "kernels_0"


def test_names_beside_kernels_that_were_outlined_before() -> None:
    """Bodies of gpu.launch come first; parallel loops are many, and their kernels have names of their own."""
    launch = """
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%c0] : memref<?xf32>
    %w = arith.negf %v : f32
    memref.store %w, %x[%c0] : memref<?xf32>
    gpu.terminator
  }
"""
    library = on_host(adding(*range(1, 6)).replace("\n  return", f"{launch}{launch}\n  return"))
    assert sorted(library.kernels) == ["f_kernel", *(f"f_kernel_{number}" for number in range(6))]


def test_what_they_share_is_there_once_and_results_are_right() -> None:
    library = program("many_launches")
    x = np.arange(5, dtype=np.float32)
    library.first(x, 3.0)
    expected = 2 * np.arange(5, dtype=np.float32) + 3
    expected[0] *= -1
    np.testing.assert_array_equal(x, expected)
    library.second(x, 3.0)
    np.testing.assert_array_equal(x, 6 * expected - 3)


COUNT = """
memref.global "private" @count : memref<1xi32> = dense<0>
func.func @f() -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %g = memref.get_global @count : memref<1xi32>
  memref.store %one, %g[%c0] : memref<1xi32>
LAUNCHES
  %r = memref.load %g[%c0] : memref<1xi32>
  return %r : i32
}
"""
LAUNCH = """
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %h = memref.get_global @count : memref<1xi32>
    %v = memref.load %h[%c0] : memref<1xi32>
    %w = arith.addi %v, %one : i32
    memref.store %w, %h[%c0] : memref<1xi32>
    gpu.terminator
  }
"""


@pytest.mark.parametrize("launches", [1, 3, 6])
def test_memory_of_the_program_is_one_for_all_kernels_and_the_host(launches: int) -> None:
    program = COUNT.replace("LAUNCHES", launches * LAUNCH)
    assert on_host(program).f() == 1 + launches
    assert len(emit(program, "object", ALL_TARGETS)) == len(ALL_TARGETS) * (launches if launches < 5 else 1)


@pytest.mark.parametrize("space", ["#gpu.address_space<global>", "1 : i64", "0 : i64"])
def test_memory_in_a_named_space_is_one_for_all(space: str) -> None:
    program = COUNT.replace("LAUNCHES", 2 * LAUNCH).replace("memref<1xi32>", f"memref<1xi32, {space}>")
    assert on_host(program).f() == 3


def test_a_variable_that_a_kernel_changes_is_refused() -> None:
    """It would be the kernel's own copy, even where its address was taken outside: constants sink into kernels."""
    kernel = LAUNCH.replace("%h = memref.get_global @count : memref<1xi32>", "")
    kernel = kernel.replace("memref.load %h[%c0] : memref<1xi32>", "llvm.load %p : !llvm.ptr -> i32")
    kernel = kernel.replace("memref.store %w, %h[%c0] : memref<1xi32>", "llvm.store %w, %p : i32, !llvm.ptr")
    program = f"""
llvm.mlir.global internal @count(0 : i32) : i32
func.func @f() {{
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %p = llvm.mlir.addressof @count : !llvm.ptr
{kernel}
  return
}}"""
    with pytest.raises(CompileError, match="uses the variable 'count', of which it would have a copy"):
        emit(program, "kernels")
    emit(program.replace("@count(0 : i32)", "constant @count(0 : i32)"), "kernels")


def test_memory_that_a_function_gets_is_refused() -> None:
    """It would be the kernel's own copy."""
    helper = LAUNCH.replace("memref.get_global @count", "func.call @get()")
    helper = helper.replace(": memref<1xi32>", ": () -> memref<1xi32>", 1)
    program = (
        COUNT.replace("LAUNCHES", helper)
        + """
func.func private @get() -> memref<1xi32> {
  %h = memref.get_global @count : memref<1xi32>
  return %h : memref<1xi32>
}
"""
    )
    message = "uses the global memory 'count', of which the kernel would have a copy"
    with pytest.raises(CompileError, match=message) as caught:
        emit(program, "kernels")
    assert caught.value.diagnostics[0].line == 10


CALLING = """
func.func private @NAME(%v: f32) -> f32 {
  %r = arith.addf %v, %v : f32
  return %r : f32
}
func.func @f(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) MORE {
    %v = memref.load %x[%c0] : memref<?xf32>
    %r = func.call @NAME(%v) : (f32) -> f32
    memref.store %r, %x[%c0] : memref<?xf32>
    gpu.terminator
  }
  return
}
"""
MINE = """
gpu.module @m {
  func.func private @h(%v: f32) -> f32 {
    %r = arith.negf %v : f32
    return %r : f32
  }
  gpu.func @k(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<?xf32>
    %r = func.call @h(%v) : (f32) -> f32
    memref.store %r, %x[%c0] : memref<?xf32>
    gpu.return
  }
}
"""


def test_a_function_under_the_name_that_its_kernel_would_have() -> None:
    program = CALLING.replace("NAME", "f_kernel").replace("MORE", "")
    x = np.array([3], np.float32)
    on_host(program).f(x)
    assert (x[0], list(on_host(program).kernels)) == (6, ["f_kernel_0"])
    assert len(emit(program, "object", ALL_TARGETS)) == len(ALL_TARGETS)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (CALLING.replace("MORE", "function(@h)"), "is to be called 'h', and uses something of that name"),
        (MINE + CALLING.replace("MORE", "module(@m)"), "uses 'h', and its module has another one of that name"),
        (CALLING.replace("MORE", 'function(@"")'), "the name '' cannot be found in a library"),
        (CALLING.replace("MORE", 'function(@"a,b")'), "the name 'a,b' cannot be found in a library"),
        (CALLING.replace("MORE", 'module(@"a@b")'), "the name 'a@b' cannot be found in a library"),
    ],
)
def test_names_that_would_mean_something_else(program: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        emit(program.replace("NAME", "h"), "kernels")


BESIDE = """
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) module(@MODULE) function(@h) {
    %v = memref.load %x[%c0] : memref<?xf32>
    %r = arith.negf %v : f32
    memref.store %r, %x[%c0] : memref<?xf32>
    gpu.terminator
  }
"""


@pytest.mark.parametrize("first", [False, True])
def test_a_kernel_of_the_name_of_what_another_one_uses(first: bool) -> None:
    """Of what is in one module, the call would find the kernel."""
    before = "  gpu.launch" if first else "  return\n}"
    start, end = CALLING.replace("NAME", "h").replace("MORE", "module(@m)").rsplit(before, 1)
    program = start + BESIDE + before + end
    with pytest.raises(CompileError, match="uses 'h', and another kernel of its module is to be called so"):
        emit(program.replace("MODULE", "m"), "kernels")
    x = np.array([3], np.float32)
    library = on_host(program.replace("MODULE", "n"))
    library.f(x)
    assert (x[0], sorted(library.kernels)) == (-6, ["f_kernel", "h"])


@pytest.mark.parametrize("name", ["@nothing", "@m::@k"])
@pytest.mark.parametrize("where", ["memref.load %x[%c0]", "arith.addf %v, %v"])
def test_a_reference_to_nothing_that_a_kernel_can_use(name: str, where: str) -> None:
    program = MINE + CALLING.replace("NAME", "g").replace("MORE", "").replace(where, f"{where} {{my = {name}}}")
    with pytest.raises(CompileError, match=f"refers to '{name}', and a kernel can use by name only") as caught:
        emit(program, "kernels")
    (diagnostic,) = caught.value.diagnostics
    assert where in (diagnostic.source_line or "")


def test_the_authors_modules_keep_their_kernels_names() -> None:
    body = "gpu.func @kernel(%x: memref<?xf32>) kernel { gpu.return }"
    library = on_host(f"gpu.module @kernels {{ {body} }}\ngpu.module @other {{ {body} }}")
    assert sorted(library.kernels) == ["kernels.kernel", "other.kernel"]


def test_a_kernel_that_calls_what_launches() -> None:
    helper = CALLING.replace("func.func @f", "func.func private @g").replace("@NAME", "@h").replace("MORE", "")
    caller = """
func.func @f(%x: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    func.call @g(%x) : (memref<?xf32>) -> ()
    gpu.terminator
  }
  return
}
"""
    told = "the kernel calls 'g', which launches a kernel: a kernel cannot. Call it where the kernel is launched, or "
    with pytest.raises(CompileError, match=told):
        emit(helper + caller, "kernels")


LAYER = """
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : memref<?x?xf32>) outs(%s : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %s : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  }
"""


def test_many_launches_that_use_one_constant() -> None:
    """Each launch was once made to compute it by a look at its uses in all of them: a model of 800 operations took
    20 seconds."""
    took = {}
    for count in (100, 600):
        text = f"func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %s: memref<?xf32>) {{{LAYER * count} return }}"
        begin = time.process_time()
        emit_text(text, "kernels")
        took[count] = time.process_time() - begin
    assert took[600] < 14 * took[100]
