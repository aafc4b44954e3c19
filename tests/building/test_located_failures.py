"""What LLVM, the linkers and the assembler refuse is reported at the author's line; passes that fail leave a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from compiling import ALL_TARGETS, command, emit, tool
from operations import kernel

import offload
from offload.errors import CompileError, Diagnostic, TargetError


def refused(source: str, target: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        offload.compile(source, targets=[target])
    return caught.value.diagnostics[0]


def one(text: str, **more: str) -> str:
    body = f"%c0 = arith.constant 0 : index\n{text}\nmemref.store %r, %x[%c0] : memref<?xi32>"
    return kernel(body, "%x: memref<?xi32>, %v: i32", **more)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("nvvm:sm_90", "ptxas refuses this for sm_90: Not a name of any known instruction: 'frobnicate'"),
        ("rocdl:gfx942", "the inline assembly is refused for gfx942: invalid instruction; it reads: frobnicate s"),
        ("host", "the inline assembly is refused for x86-64: invalid instruction mnemonic 'frobnicate'; it reads: "),
    ],
)
def test_inline_assembly(target: str, text: str) -> None:
    found = refused(one('  %r = llvm.inline_asm "frobnicate $0, $1;", "=r,r" %v : (i32) -> i32'), target)
    assert (found.line, found.column) == (5, 8)
    assert found.message.startswith(text)


@pytest.mark.parametrize(
    ("assembly", "text"),
    [
        ("mov.u32 $0, $1", "syntax error at its end; every instruction of PTX ends with ';'"),
        ("mov.u32 $0 $1;", "Parsing error near '%r2': syntax error"),
    ],
)
def test_inline_assembly_that_is_no_assembly(assembly: str, text: str) -> None:
    """ptxas calls such errors fatal, and the first one stands behind the assembly."""
    found = refused(one(f'  %r = llvm.inline_asm "{assembly}", "=r,r" %v : (i32) -> i32'), "nvvm:sm_90")
    assert (found.line, found.column) == (5, 8)
    assert found.message == f"ptxas refuses this for sm_90: {text}"


@pytest.mark.parametrize("form", ["bin", "fatbin"])
def test_what_ptxas_warns_of(form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It leaves such an option out, and nobody heard of it. The cache tells of it again."""
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path / "cache"))
    target = f"nvvm:sm_90,max_threads=1024,min_blocks=32,format={form}"
    for opt in (3, 3, 0):  # compiled, the library from the cache, the image from the cache
        with pytest.warns(offload.BuildWarning) as caught:
            offload.compile(one("%r = arith.addi %v, %v : i32"), targets=[target], opt=opt, name="program.mlir")
        (said,) = (str(each.message) for each in caught)
        place, _, text = said.splitlines()[0].partition(": warning: ")
        assert (place.split(":")[0], place.count(":")) == ("program.mlir", 2)
        assert text.startswith("ptxas warns for sm_90: Value of threads per SM for entry k is out of range")


def test_inline_assembly_with_an_address_that_is_too_short() -> None:
    """ptxas tells the line in a warning, and nothing in what it calls fatal. Addresses of a block's memory have 32 bits
    there, and go with instructions that say so: mbarrier.init.shared.b64."""
    tile = "llvm.mlir.global internal @l() {addr_space = 3 : i32} : i64"
    text = """  %l = llvm.mlir.addressof @l : !llvm.ptr<3>
  %r = arith.addi %v, %v : i32
  nvvm.inline_ptx "mbarrier.init.b64 [{$r0}], {$r1};" ro (%l, %v : !llvm.ptr<3>, i32)"""
    found = refused(one(text, outside=tile), "nvvm:sm_90")
    assert (found.line, found.column) == (7, 3)
    assert found.message == "ptxas refuses this for sm_90: Program uses 32-bit address"


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942", "host"])
def test_inline_assembly_that_names_an_operand_it_has_not(target: str) -> None:
    """LLVM gives up there, and shows the text alone."""
    found = refused(one('  %r = llvm.inline_asm "nop $9;", "=r,r" %v : (i32) -> i32'), target)
    assert (found.line, found.column) == (5, 8)
    assert "Invalid $ operand number in inline asm string: 'nop $9;'" in found.message


def test_inline_assembly_with_letters_that_ptx_lacks() -> None:
    """ptxas ends with the number of the line alone."""
    found = refused(one('  %r = llvm.inline_asm "mov.u32 $0, \\C3\\A9;", "=r,r" %v : (i32) -> i32'), "nvvm:sm_90")
    assert (found.line, found.column) == (5, 8)
    assert found.message == "ptxas refuses this for sm_90: Unexpected non-ASCII character encountered"


@pytest.mark.parametrize(("target", "chip"), [("nvvm:sm_75", "sm_75"), ("rocdl:gfx90a", "gfx90a"), ("host", "x86-64")])
def test_intrinsics_that_a_chip_lacks(target: str, chip: str) -> None:
    wide = (
        "  %w = arith.constant dense<1.0> : vector<8xf32>\n  %i = arith.constant -1 : i8\n"
        '  %d = llvm.call_intrinsic "llvm.x86.avx.dp.ps.256"(%w, %w, %i) : (vector<8xf32>, vector<8xf32>, i8) '
        "-> vector<8xf32>\n  %b = vector.bitcast %d : vector<8xf32> to vector<8xi32>\n"
        "  %r = vector.extract %b[0] : i32 from vector<8xi32>"
    )
    call = '  %r = llvm.call_intrinsic "llvm.nvvm.redux.sync.add"(%v, %v) : (i32, i32) -> i32'
    for text, name, line in ((call, "llvm.nvvm.redux.sync.add", 5), (wide, "llvm.x86.avx.dp.ps.256", 7)):
        found = refused(one(text), target)
        assert (found.line, found.column) == (line, 8)
        assert found.message == (
            f"{chip} has no instruction for {name}: build for a chip that has, name the feature that it "
            f"needs (features=+NAME), or leave {chip} out"
        )


@pytest.mark.parametrize(
    ("target", "call", "text"),
    [
        (
            "nvvm:sm_90",
            "nvvm.fence.proxy.acquire #nvvm.mem_scope<cta> %p, %v",
            "argument 2 of llvm.nvvm.fence.proxy.tensormap_generic.acquire.cta",
        ),
        ("rocdl:gfx942", "%s = rocdl.ds_swizzle %v, %v : (i32, i32) -> i32", "argument 2 of llvm.amdgcn.ds.swizzle"),
    ],
)
def test_operands_of_instructions_that_must_be_constants(target: str, call: str, text: str) -> None:
    """LLVM's verifier shows the instruction and says no place."""
    pointer = "  %a = arith.extui %v : i32 to i64\n  %p = llvm.inttoptr %a : i64 to !llvm.ptr"
    found = refused(one(f"  %r = arith.addi %v, %v : i32\n{pointer}\n{call}"), target)
    assert (found.line, found.message) == (8, f"{text} is part of the instruction: it must be a constant")


@pytest.mark.parametrize("stage", ["object", "fat", "so"])
def test_what_ptxas_warns_of_where_a_stage_is_printed(stage: str) -> None:
    target = "nvvm:sm_90,max_threads=1024,min_blocks=32,format=fatbin"
    with pytest.warns(offload.BuildWarning) as caught:
        emit(one("%r = arith.addi %v, %v : i32"), stage, [target])
    assert ["out of range" in str(each.message) for each in caught] == [True]


MULTICAST = (
    "{ .shared .align 128 .b8 s[1024]; .shared .align 8 .b8 bar[8]; .reg .b32 a, b; mov.u32 a, s; mov.u32 b, bar; "
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [a], [$0], 1024, [b], $1; }"
)


def test_what_ptxas_warns_of_at_a_line() -> None:
    """Of sm_90 it says that the instruction is for sm_90a."""
    body = (
        "%r = arith.addi %v, %v : i32\n%wide = arith.extui %v : i32 to i64\n%mask = arith.constant 3 : i16\n"
        f'llvm.inline_asm has_side_effects "{MULTICAST}", "l,h" %wide, %mask : (i64, i16) -> ()'
    )
    with pytest.warns(offload.BuildWarning, match=r"^\S+:3:1: warning: ptxas warns for sm_90: Advisory: '.multicast"):
        offload.compile(one(body), targets=["nvvm:sm_90"])


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("nvvm:sm_90", "ptxas refuses this for sm_90: Entry function 'k' uses too much shared data"),
        ("rocdl:gfx942", "gfx942: local memory (160000) exceeds limit (65536) in function 'k'"),
    ],
)
def test_too_much_memory(target: str, text: str) -> None:
    space = "memref<40000xi32, #gpu.address_space<workgroup>>"
    body = f"  %t = gpu.thread_id x\nmemref.store %v, %s[%t] : {space}\ngpu.barrier\n%r = memref.load %s[%c0] : {space}"
    found = refused(one(body, attributions=f"workgroup(%s: {space})"), target)
    assert (found.line, found.column) == (3, 1)
    assert found.message.startswith(text)
    assert target.startswith("rocdl") or "more as gpu.dynamic_shared_memory" in found.message


@pytest.mark.parametrize(("target", "limit"), [("nvvm:sm_90", 524288), ("rocdl:gfx942", 131056)])
def test_too_much_memory_of_a_thread(target: str, limit: int) -> None:
    body = """  %n = arith.index_cast %v : i32 to index
  %own = memref.alloca() : memref<200000xi32>
  memref.store %v, %own[%n] : memref<200000xi32>
  %r = memref.load %own[%c0] : memref<200000xi32>"""
    found = refused(one(body), target)
    assert (found.line, found.column) == (3, 1)
    assert re.search(rf"stack frame size \(800\d\d\d\) exceeds limit \({limit}\) in function 'k'", found.message)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (
            "nvvm:sm_75",
            "'Kernel parameter size larger than 4352 bytes' requires PTX ISA .version 8.1 or later; "
            "ask for it with features=+ptx81",
        ),
        ("nvvm:sm_90", "Entry function 'k' uses too much parameter space (0x8ca0 bytes, 0x7ffc max)."),
    ],
)
def test_too_many_parameters(target: str, text: str) -> None:
    count = 110 if "ptx81" in text else 900
    arguments = ", ".join(f"%a{i}: memref<?xf32>" for i in range(count))
    body = "\n".join(
        f"%v{i} = memref.load %a{i}[%t] : memref<?xf32>\nmemref.store %v{i}, %a0[%t] : memref<?xf32>"
        for i in range(count)
    )
    source = f"gpu.module @m {{\ngpu.func @k({arguments}) kernel {{\n%t = gpu.thread_id x\n{body}\ngpu.return\n}}\n}}"
    found = refused(source, target)
    assert (found.line, found.message.endswith(text)) == (2, True), found.message
    if count == 110:
        offload.compile(source, targets=[f"{target},features=+ptx81"])


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_86", "sm_87", "sm_90"])
def test_private_memory_whose_size_the_run_tells_is_had_on_every_chip(chip: str) -> None:
    body = """  %n = arith.index_cast %v : i32 to index
  %own = memref.alloca(%n) : memref<?xi32>
  memref.store %v, %own[%c0] : memref<?xi32>
  %r = memref.load %own[%n] : memref<?xi32>"""
    with pytest.warns(offload.BuildWarning, match=r"^\S+:3:1: warning: ptxas warns for sm_..: Stack size for entry"):
        offload.compile(one(body), targets=[f"nvvm:{chip}"])


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_what_has_no_lowering(target: str) -> None:
    name = target.split(":")[0]
    found = refused(one("  %r = spirv.Constant 1 : i32"), target)
    assert (found.line, found.column) == (5, 8)
    assert found.message == (
        f"'spirv.Constant' cannot be lowered for target {name}: lower it to operations that can be "
        "before offload sees it"
    )


DMA = """
func.func @f(%x: memref<8xf32>, %y: memref<8xf32>, %tag: memref<1xi32>) {
  %z = arith.constant 0 : index
  %n = arith.constant 8 : index
  memref.dma_start %x[%z], %y[%z], %n, %tag[%z] : memref<8xf32>, memref<8xf32>, memref<1xi32>
  return
}
"""


def test_what_one_operation_of_a_dialect_lacks() -> None:
    """The rest of the dialect has a lowering: what to do is not what stands for all of it."""
    found = refused(DMA, "host")
    assert (found.line, found.column) == (5, 3)
    assert found.message == (
        "'memref.dma_start' cannot be lowered for the host's code: nothing here copies while code runs: write "
        "memref.copy, or gpu.memcpy on a stream"
    )


def test_types_that_have_no_form() -> None:
    """What is wrong with a function is its type, not where it is defined."""
    found = refused("func.func @f(%x: !shape.shape) -> !shape.shape {\n  return %x : !shape.shape\n}\n", "host")
    assert (found.line, found.column) == (1, 1)
    assert found.message == (
        "'func.func' cannot be lowered for the host's code: it has a value of type !shape.shape; use a type that has "
        "a form there"
    )


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("nvvm:sm_90,features=+nonsense", "LLVM has no feature 'nonsense' for nvptx64-nvidia-cuda"),
        ("rocdl:gfx942,features=+xnak-any", "LLVM has no feature 'xnak-any' for amdgcn-amd-amdhsa"),
        ("host:x86-64,features=+avx3", "LLVM has no feature 'avx3' for x86_64-unknown-linux-gnu; did you mean 'avx'"),
        ("host:x86-64,features=avx2", "write the feature 'avx2' as +avx2 or -avx2"),
    ],
)
def test_unknown_features(target: str, text: str) -> None:
    with pytest.raises(TargetError) as caught:
        offload.compile(one("%r = arith.addi %v, %v : i32"), targets=[target])
    assert text in str(caught.value)


def test_a_pass_that_fails_leaves_the_ir_before_it(tmp_path: Path) -> None:
    """There is no instruction for matrices of this size: a pass of MLIR fails."""
    matrix = '!gpu.mma_matrix<64x64xf16, "COp">'
    (tmp_path / "p.mlir").write_text(
        kernel(
            f"""%c0 = arith.constant 0 : index
            %a = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {{leadDimension = 64 : index}}
                : memref<64x64xf16> -> {matrix}
            gpu.subgroup_mma_store_matrix %a, %x[%c0, %c0] {{leadDimension = 64 : index}}
                : {matrix}, memref<64x64xf16>""",
            "%x: memref<64x64xf16>",
        )
    )
    done = command("build", "p.mlir", "-q", "-o", "out.so", "-t", "nvvm:sm_90", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "note: the pass convert-gpu-to-nvvm failed; to get the IR before it as a file that mlir-opt --run-reproducer "
        "reads: offload build --reproducer DIR\n"
    )
    done = command("build", "p.mlir", "-q", "-o", "out.so", "-t", "nvvm:sm_90", "--reproducer", "why", cwd=tmp_path)
    assert done.returncode == 1
    assert "the IR before it is in why/m.nvvm.sm_90.mlir, which mlir-opt --run-reproducer reads" in done.stderr
    (written,) = (tmp_path / "why").iterdir()
    assert 'pipeline: "builtin.module(gpu.module(convert-gpu-to-nvvm' in written.read_text()
    with pytest.raises(AssertionError, match=r"failed to legalize operation 'gpu.subgroup_mma_load_matrix'"):
        tool("mlir-opt", "--run-reproducer", written)


def test_a_pass_of_host_code_that_fails_does_too(tmp_path: Path) -> None:
    source = tmp_path / "p.mlir"
    source.write_text("func.func @f(%v: i32) -> i32 {\n  %r = rocdl.readfirstlane %v : i32\n  return %r : i32\n}\n")
    with pytest.raises(CompileError) as caught:
        offload.build(source, tmp_path / "out.so", reproducer=tmp_path / "why")
    first = caught.value.diagnostics[0]
    assert (first.line, first.column) == (2, 8)
    assert first.message == (
        "'rocdl.readfirstlane' is an operation of AMD GPUs, for kernels, and this is host code: use it in a kernel, "
        "and build that for those alone"
    )
    assert [path.name for path in (tmp_path / "why").iterdir()] == ["host.mlir"]


@pytest.mark.parametrize(
    "other",
    [
        "func.func @_mlir_ciface_f(%x: i32) { return }",
        "func.func private @_mlir_ciface_f(memref<?xf32>)",
        "llvm.func @_mlir_ciface_f(!llvm.ptr)",
        "llvm.mlir.global @_mlir_ciface_f(1 : i32) : i32",
    ],
)
def test_the_name_of_a_functions_c_interface(other: str) -> None:
    function = "func.func @f(%x: memref<?xf32>) { return }"
    found = refused(f"{function}\n{other}\n", "host")
    assert (found.line, found.column) == (2, 1)
    assert found.message.startswith(
        "this is the name of the C interface that 'f' gets, by which others call it: rename"
    )
    assert [(note.line, note.message) for note in found.notes] == [(1, "the function is here")]
    offload.compile(
        f"func.func private @f(memref<?xf32>) -> ()\n{other}\nfunc.func @g() {{ return }}", targets=["host"]
    )


OMP = """
func.func @f(%x: memref<8xf32>, %n: index) {
  %z = arith.constant 0 : index
  %one = arith.constant 1 : index
  omp.parallel {
    omp.wsloop {
      omp.loop_nest (%i) : index = (%z) to (%n) step (%one) {
        %v = memref.load %x[%i] : memref<8xf32>
        memref.store %v, %x[%z] : memref<8xf32>
        omp.yield
      }
    }
    omp.terminator
  }
  return
}
"""


def test_what_has_no_lowering_is_told_once_with_what_is_in_it() -> None:
    with pytest.raises(CompileError) as caught:
        offload.compile(OMP, targets=["host"])
    (found,) = caught.value.diagnostics
    assert (found.line, found.column) == (5, 3)
    assert found.message == (
        "'omp.parallel' cannot be lowered for the host's code: write scf.parallel for what a device does"
    )


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_intrinsics_that_llvm_lacks(target: str) -> None:
    """A name that begins with 'llvm.' is not yet that of an intrinsic."""
    declared = "llvm.func @llvm.frobnicate(i32) -> i32"
    found = refused(one("  %r = llvm.call @llvm.frobnicate(%v) : (i32) -> i32", outside=declared), target)
    assert found.line == 5
    assert found.message.startswith("'llvm.frobnicate' is called here, and nothing defines it for ")


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_functions_of_numbers_that_llvm_lacks(target: str) -> None:
    """It was taken for the first function of our own that LLVM has no intrinsic for, expm1."""
    declared = "func.func private @llvm.frobnicate(f32) -> f32"
    text = """  %f = arith.sitofp %v : i32 to f32
  %g = func.call @llvm.frobnicate(%f) : (f32) -> f32
  %r = arith.fptosi %g : f32 to i32"""
    found = refused(one(text, outside=declared), target)
    assert (found.line, found.column) == (6, 8)
    assert found.message.startswith("'llvm.frobnicate' is called here, and nothing defines it for ")


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_intrinsics_of_other_types(target: str) -> None:
    declared = "llvm.func @llvm.bitreverse.i32(i32) -> i64"
    text = "  %s = llvm.call @llvm.bitreverse.i32(%v) : (i32) -> i64\n  %r = arith.trunci %s : i64 to i32"
    found = refused(one(text, outside=declared), target)
    assert found.line == 5
    assert found.message.startswith("llvm.bitreverse.i32: Intrinsic has incorrect argument type!")


def test_a_conversion_that_is_no_letter() -> None:
    """The message had the end of a line in it."""
    source = 'gpu.module @m { gpu.func @k(%x: i32) kernel {\n gpu.printf "%l\\n", %x : i32\n gpu.return\n} }\n'
    assert "has a conversion '%\\0A' in its format: there are d i u" in refused(source, "host").message
