"""Memory and arguments that kernels cannot have: errors at their lines, not crashes of LLVM or wrong code."""

from __future__ import annotations

import pytest
from compiling import emit, on_host

from offload import CompileError, DeviceError


def kernel(arguments: str, attributions: str = "") -> str:
    return f"gpu.module @m {{\n  gpu.func @k({arguments}) {attributions} kernel {{\n    gpu.return\n  }}\n}}"


REFUSED = {
    "a block's memory of unknown size": (
        kernel("", "workgroup(%w: memref<?xf32, #gpu.address_space<workgroup>>)"), "host", "has no size that is known"
    ),
    "a block's memory with gaps": (
        kernel("", "workgroup(%w: memref<8x4xf32, strided<[8, 2]>, #gpu.address_space<workgroup>>)"),
        "nvvm:sm_90", "has no size that is known",
    ),
    "a thread's memory of unknown size": (
        kernel("", "private(%w: memref<?xf32, #gpu.address_space<private>>)"), "rocdl:gfx942", "memory of the thread"
    ),
    "an unranked argument": (kernel("%x: memref<*xf32>"), "nvvm:sm_90", "cast it to a memref with a rank"),
    "an unranked argument on AMD": (kernel("%x: memref<*xf32>"), "rocdl:gfx942", "cast it to a memref with a rank"),
    "four bits": (kernel("%x: i4"), "nvvm:sm_90", "argument of type i4 on NVIDIA GPUs"),
    "a vector of bits": (kernel("%x: vector<5xi1>"), "nvvm:sm_90", "argument of type vector<5xi1> on NVIDIA GPUs"),
    "a space of wide pointers": (kernel("%x: memref<32xf32, 9>"), "rocdl:gfx942", "memory space 9 holds no plain"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_at_the_kernel(name: str) -> None:
    source, target, message = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        emit(source, "lowered", [target])
    assert message in str(caught.value)
    assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize("chip", ["nvvm:sm_80", "rocdl:gfx942"])
def test_clusters_where_there_are_none(chip: str) -> None:
    """It ran there with clusters of one block."""
    sized = kernel("").replace("kernel {", "kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {")
    with pytest.raises(
        CompileError, match=r"for clusters of \(2, 1, 1\) blocks cannot run on (sm_80|gfx942)"
    ) as caught:
        emit(sized, "lowered", [chip])
    assert caught.value.diagnostics[0].line == 2
    emit(sized, "lowered", ["nvvm:sm_90", "host"])
    emit(sized.replace("2, 1, 1", "1, 1, 1"), "lowered", [chip])


@pytest.mark.parametrize("attribute", ["known_block_size", "known_grid_size"])
def test_less_than_no_threads(attribute: str) -> None:
    sized = kernel("").replace("kernel {", f"kernel attributes {{{attribute} = array<i32: 4, -3, 1>}} {{")
    with pytest.raises(CompileError, match=f"{attribute} has a negative number") as caught:
        emit(sized, "kernels")
    assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize(("sizes", "threads"), [("2048, 1, 1", "2048"), ("33, 32, 1", "1056"), ("99999, 99999, 9", "")])
def test_more_threads_than_a_block_has(sizes: str, threads: str) -> None:
    sized = kernel("").replace("kernel {", f"kernel attributes {{known_block_size = array<i32: {sizes}>}} {{")
    with pytest.raises(CompileError, match=f"known_block_size has {threads}.* threads, and .* at most 1024") as caught:
        emit(sized, "kernels")
    assert caught.value.diagnostics[0].line == 2
    emit(sized.replace(sizes, "32, 32, 1"), "kernels")
    emit(sized.replace(sizes, "4096, 0, 1"), "kernels")  # a launch of nothing


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942", "host"])
@pytest.mark.parametrize("function", ["func.func @k(%x: f32) -> f32", "llvm.func @k(%x: f32) -> f32"])
def test_a_kernel_that_returns_a_value(function: str, target: str) -> None:
    leave = "return" if function.startswith("func") else "llvm.return"
    source = f"gpu.module @m {{\n  {function} attributes {{gpu.kernel}} {{\n    {leave} %x : f32\n  }}\n}}"
    with pytest.raises(
        CompileError, match="a kernel cannot return a value, and this one returns one of type f32"
    ) as caught:
        emit(source, "lowered", [target])
    assert caught.value.diagnostics[0].line == 2
    nothing = source.replace(" -> f32", "").replace(" %x : f32\n  }", "\n  }")
    assert emit(nothing, "lowered", [target])


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942", "host"])
def test_memory_that_nothing_defines(target: str) -> None:
    source = kernel("").replace("@m {", '@m {\n  memref.global "private" @zz : memref<4xf32>')
    with pytest.raises(CompileError, match="global @zz has no value") as caught:
        emit(source, "lowered", [target])
    assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942", "host"])
@pytest.mark.parametrize(("kind", "operation"), [("i1", "ori"), ("f8E5M2", "addf"), ("i128", "addi")])
def test_atomics_of_other_types(kind: str, operation: str, target: str) -> None:
    body = f"""
    %v = arith.constant {1.0 if operation == "addf" else 1} : {kind}
    %c0 = arith.constant 0 : index
    %old = memref.atomic_rmw {operation} %v, %x[%c0] : ({kind}, memref<8x{kind}>) -> {kind}
    """
    source = kernel(f"%x: memref<8x{kind}>").replace("    gpu.return", f"{body}\n    gpu.return")
    told = f"cannot be on elements of type {kind}: they can be i8, i16, i32, i64, f16, bf16, f32 or f64"
    with pytest.raises(CompileError, match=told):
        emit(source, "lowered", [target])


@pytest.mark.parametrize(
    "kind", ["tuple<i32, f32>", "none", "tf32", "f128", "memref<4xf128>", "!llvm.ppc_fp128", "!llvm.x86_amx"]
)
def test_types_without_a_form(kind: str) -> None:
    for source in (f"\nfunc.func @f(%x: {kind}) {{ return }}", kernel(f"%x: {kind}")):
        with pytest.raises(CompileError, match="which code for processors cannot have") as caught:
            emit(source, "kernels")
        assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize("kind", ["f80", "vector<4xf80>", "complex<f80>", "memref<?xf80>"])
def test_long_doubles_are_the_cpus(kind: str) -> None:
    for target in ("nvvm:sm_90", "rocdl:gfx942"):
        with pytest.raises(CompileError, match="which only x86 processors compute with: convert to f64") as caught:
            emit(kernel(f"%x: {kind}"), "lowered", [target])
        assert caught.value.diagnostics[0].line == 2
    assert emit(kernel(f"%x: {kind}"), "object", ["host"])


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942"])
def test_long_doubles_inside_of_kernels(target: str) -> None:
    body = """
    %w = arith.extf %v : f64 to f80
    %q = arith.mulf %w, %w : f80
    %r = arith.truncf %q : f80 to f64
    memref.store %r, %x[] : memref<f64>
    gpu.return"""
    with pytest.raises(CompileError, match="has a value of type f80") as caught:
        emit(kernel("%x: memref<f64>, %v: f64").replace("    gpu.return", body), "lowered", [target])
    assert [found.line for found in caught.value.diagnostics if found.severity == "error"] == [4, 5]


SPACES = {
    '"shared"': 'memory space "shared" is unknown here: write #gpu.address_space<global>, <workgroup> or <private>',
    "{a = 1}": "is unknown here: write",
    "17": "memory space 17 : i64 is unknown here: write",
    "-1": "memory space -1 : i64 is unknown here: write",
    "true": "memory space true is unknown here: write",
    "#spirv.storage_class<Workgroup>": "memory space #spirv.storage_class<Workgroup> is unknown here: write",
    "#llvm.address_space<3>": "memory space #llvm.address_space<3> is unknown here: write",
    "1.0 : f32": "a memory space cannot be of this kind: write #gpu.address_space<global>, <workgroup> or <private>",
    "unit": "a memory space cannot be of this kind: write",
}


@pytest.mark.parametrize("space", SPACES)
def test_spaces_that_nothing_has(space: str) -> None:
    for kind in (f"memref<4xf32, {space}>", f"memref<*xf32, {space}>"):
        for source in (f"\nfunc.func @f(%x: {kind}) {{ return }}", kernel(f"%x: {kind}")):
            with pytest.raises(CompileError) as caught:
                emit(source, "kernels")
            assert SPACES[space] in str(caught.value)
            assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize("space", [2, 8, 9])
def test_spaces_that_ptx_has_not(space: int) -> None:
    with pytest.raises(CompileError, match=f"memory space {space} does not exist on NVIDIA GPUs"):
        emit(kernel(f"%x: memref<4xf32, {space}>"), "lowered", ["nvvm:sm_90"])


def test_a_launch_in_a_kernel() -> None:
    body = """
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.return"""
    with pytest.raises(CompileError, match="a kernel cannot launch a kernel") as caught:
        emit(kernel("").replace("    gpu.return", body), "kernels")
    assert caught.value.diagnostics[0].line == 5


@pytest.mark.parametrize(
    "operation", ["gpu.barrier", "%c = arith.constant 1 : i32", "%m = memref.alloc() : memref<4xf32>", "nvvm.barrier0"]
)
@pytest.mark.parametrize("module", ["builtin.module", "gpu.module @m"])
def test_an_operation_outside_of_every_function(operation: str, module: str) -> None:
    """MLIR's translation ends the process where it stands in a gpu.module."""
    name = operation.split()[-1 if "=" not in operation else 2].split("(")[0]
    with pytest.raises(CompileError, match=f"'{name}' stands outside of every function") as caught:
        emit(f"{module} {{\n  {operation}\n}}", "kernels")
    assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize("argument", ["i1", "i8", "i64", "f16", "vector<4xf32>", "memref<?xf32>", "memref<8xf32, 1>"])
def test_what_they_may_have(argument: str) -> None:
    for target in ("nvvm:sm_90", "rocdl:gfx942", "host"):
        assert emit(kernel(f"%x: {argument}"), "object", [target])


@pytest.mark.parametrize(
    ("argument", "what"),
    [
        ("vector<4xi1>", "pass i8 or a wider type"),
        ("!llvm.struct<(i32, vector<4xi1>)>", "for its part vector<4xi1>: pass i8 or a wider type"),
        ("!llvm.array<1 x vector<4xi4>>", "for its part vector<4xi4>: pass i8 or a wider type"),
        ("!llvm.struct<()>", "which has no bytes: leave it out"),
        ("!llvm.struct<(struct<()>, array<0 x i32>)>", "which has no bytes: leave it out"),
    ],
)
@pytest.mark.parametrize("function", ["gpu.func", "llvm.func"])
def test_arguments_that_ptx_has_not(argument: str, what: str, function: str) -> None:
    """LLVM packs vectors of bits otherwise than its loads of them expect, and ends the process where nothing is to be
    packed."""
    attributes = "kernel" if function == "gpu.func" else "attributes {gpu.kernel}"
    end = "gpu" if function == "gpu.func" else "llvm"
    source = f"gpu.module @m {{\n  {function} @k(%x: {argument}) {attributes} {{ {end}.return }}\n}}"
    with pytest.raises(CompileError, match=f"a kernel cannot have an argument of type .*{what}") as caught:
        emit(source, "isa", ["nvvm:sm_90"])
    assert caught.value.diagnostics[0].line == 2
    assert emit(source, "isa", ["rocdl:gfx942"])


@pytest.mark.parametrize(
    ("argument", "right"),
    [
        ("!llvm.struct<(i8, i128)>", False),
        ("!llvm.struct<(i8, array<2 x struct<(i8, i65)>>)>", False),
        ("!llvm.struct<packed (i8, i128)>", True),
        ("i128", True),
        ("!llvm.struct<(i8, i64)>", True),
    ],
)
def test_wide_numbers_in_structs(argument: str, right: bool) -> None:
    """The host has them at multiples of 16 bytes, AMD's GPUs at multiples of 8."""
    source = kernel(f"%x: {argument}")
    if right:
        assert emit(source, "isa", ["rocdl:gfx942"])
        return
    with pytest.raises(CompileError, match="a number of more than 64 bits is not where the host has it") as caught:
        emit(source, "isa", ["rocdl:gfx942"])
    assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize("size", [-1, 2])
def test_a_size_that_there_is_none_of(size: int) -> None:
    """mlir-opt 22 ends with a segmentation fault."""
    source = f"""
    func.func @f(%x: memref<3x4xf32>) -> index {{
      %which = arith.constant {size} : index
      %d = memref.dim %x, %which : memref<3x4xf32>
      return %d : index
    }}"""
    with pytest.raises(CompileError, match=f"asks for size {size} of a memref of rank 2; sizes count from 0") as caught:
        emit(source, "host-llvm")
    assert caught.value.diagnostics[0].line == 4


@pytest.mark.parametrize(("arguments", "right"), [("%x : memref<4xf32>", True), ("%n : index", False)])
def test_a_lowered_kernel_gets_its_parameters(arguments: str, right: bool) -> None:
    source = f"""
    gpu.module @m {{
      llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %o: i64, %s: i64, %t: i64) attributes {{gpu.kernel}} {{
        llvm.return
      }}
    }}
    func.func @f(%x: memref<4xf32>, %n: index) {{
      %c1 = arith.constant 1 : index
      gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args({arguments})
      return
    }}"""
    if right:
        assert emit(source, "host-llvm")
        return
    with pytest.raises(CompileError, match=r"passes 1 words .* has 5 parameters") as caught:
        emit(source, "host-llvm")
    assert caught.value.diagnostics[0].line == 9


@pytest.mark.parametrize("size", [2**45, -5])
def test_memory_that_is_not_there(size: int) -> None:
    library = on_host(
        """
        func.func @f(%n: index) -> f32 {
          %c0 = arith.constant 0 : index
          %one = arith.constant 1.0 : f32
          %x = gpu.alloc host_shared (%n) : memref<?xf32>
          memref.store %one, %x[%c0] : memref<?xf32>
          %r = memref.load %x[%c0] : memref<?xf32>
          gpu.dealloc %x : memref<?xf32>
          return %r : f32
        }
        """
    )
    with pytest.raises(DeviceError, match="allocation of"):
        library.f(size)
    assert library.f(3) == 1


@pytest.mark.parametrize(
    ("kind", "to", "operation", "message"),
    [
        ("f16", "f32", "extf %c", "'extf' has no lowering: which elements a thread holds differs"),
        ("f16", "f16", "addi %c, %c", "'addi' is not for fragments of 'f16'"),
        ("f16", "f16", "addf %c", "'addf' takes two fragments, not 1"),
        ("f16", "f16", "negatef %c, %c", "'negatef' takes one fragment, not 2"),
    ],
)
def test_operations_on_fragments_that_are_none(kind: str, to: str, operation: str, message: str) -> None:
    """MLIR ends the process at them."""
    one, other = (f'!gpu.mma_matrix<16x16x{each}, "COp">' for each in (kind, to))
    body = f"""
    %c0 = arith.constant 0 : index
    %c = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {{leadDimension = 16 : index}} : memref<16x16x{kind}> -> {one}
    %d = gpu.subgroup_mma_elementwise {operation} : ({", ".join([one] * operation.count("%"))}) -> {other}
    gpu.subgroup_mma_store_matrix %d, %y[%c0, %c0] {{leadDimension = 16 : index}} : {other}, memref<16x16x{to}>
    gpu.return"""
    source = kernel(f"%x: memref<16x16x{kind}>, %y: memref<16x16x{to}>").replace("    gpu.return", body)
    with pytest.raises(CompileError) as caught:
        emit(source, "lowered", ["nvvm:sm_90"])
    assert message in str(caught.value)
    assert caught.value.diagnostics[0].line == 6


@pytest.mark.parametrize(("kind", "instead"), [("i4", "i8"), ("i7", "i8"), ("i9", "i16"), ("i57", "i64")])
def test_memory_of_odd_widths_is_refused_with_a_width_that_holds_it(kind: str, instead: str) -> None:
    text = f"""gpu.module @m {{ gpu.func @k(%x: memref<3xi64>, %i: index) kernel {{
  %m = memref.alloca() : memref<3x{kind}>
  %v = memref.load %m[%i] : memref<3x{kind}>
  %r = arith.extsi %v : {kind} to i64
  memref.store %r, %x[%i] : memref<3xi64>
  gpu.return
}} }}
"""
    with pytest.raises(CompileError, match=rf"<string>:2:8: error: memory of '{kind}' .*: keep {instead} in memory"):
        on_host(text)
