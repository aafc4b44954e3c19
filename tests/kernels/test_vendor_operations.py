"""Operations of one vendor become the instructions they are named after; chips without them are refused by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from compiling import emit, emit_text
from operations import Case, amd, fragments, kernel, nvidia

import offload
from offload.errors import CompileError

_TABLES = (
    ("nvvm", nvidia.CASES, nvidia.INSTRUCTIONS),
    ("nvvm", fragments.CASES, fragments.INSTRUCTIONS),
    ("rocdl", amd.CASES, amd.INSTRUCTIONS),
)
_CASES = [
    (target, case, instructions[f"{case.op}-{case.form}"])
    for target, cases, instructions in _TABLES
    for case in cases
    if target not in case.refused
]


@pytest.mark.parametrize(
    ("target", "case", "instructions"),
    _CASES,
    ids=[f"{case.op}-{case.form}".replace(" ", "_") for _, case, _ in _CASES],
)
def test_the_instruction_is_there(target: str, case: Case, instructions: Sequence[str]) -> None:
    text = emit_text(case.source, "isa", [case.target(target)])
    assert [word for word in instructions if word not in text] == []


def _one(text: str) -> str:
    return kernel(text, "%x: memref<?xi32>, %v: i32, %f: f32")


def _of_buffer(operation: str) -> str:
    return f"""gpu.module @m {{
llvm.mlir.global internal @l() {{addr_space = 3 : i32}} : !llvm.array<64 x i32>
llvm.func @k(%rs: !llvm.ptr<8>, %f: f32, %d: f64) attributes {{gpu.kernel}} {{
  %lds = llvm.mlir.addressof @l : !llvm.ptr<3>
  %n = llvm.mlir.constant(0 : i32) : i32
  %n4 = llvm.mlir.constant(4 : i32) : i32
  %n16 = llvm.mlir.constant(16 : i32) : i32

  {operation} // here
  llvm.return
}}
}}
"""


def _fmax(kind: str, value: str) -> str:
    return f"rocdl.raw.ptr.buffer.atomic.fmax {value}, %rs, %n, %n, %n : {kind}"


_LOAD_LDS = "rocdl.raw.ptr.buffer.load.lds %rs, %lds, %n4, %n, %n, %n, %n"

_OLD = [
    (
        "nvvm:sm_80",
        _one("  nvvm.wgmma.fence.aligned"),
        4,
        3,
        "'nvvm.wgmma.fence.aligned' needs sm_90a and is built for sm_80",
    ),
    ("nvvm:sm_90", _one("  nvvm.wgmma.fence.aligned"), 4, 3, "needs sm_90a and is built for sm_90"),
    ("nvvm:sm_100a", _one("  nvvm.wgmma.fence.aligned"), 4, 3, "needs sm_90a and is built for sm_100a"),
    ("nvvm:sm_75", _one("  nvvm.cp.async.commit.group"), 4, 3, "needs sm_80 or later and is built for sm_75"),
    ("nvvm:sm_75", _one("  %r = nvvm.redux.sync add %v, %v : i32 -> i32"), 4, 8, "needs sm_80 or later"),
    ("nvvm:sm_80", _one("  nvvm.fence.mbarrier.init"), 4, 3, "needs sm_90 or later"),
    ("nvvm:sm_75", nvidia._mma("4x2xbf16", "2x2xbf16", "2x2xf32", "16, 8, 16"), 0, 6, "'nvgpu.mma.sync' needs sm_80"),
    ("nvvm:sm_75", nvidia._mma("4x2xf16", "2x2xf16", "2x2xf16", "16, 8, 16"), 0, 6, "'nvgpu.mma.sync' needs sm_80"),
    ("nvvm:sm_70", nvidia._mma("2x2xf16", "1x2xf16", "2x2xf16", "16, 8, 8"), 0, 6, "'nvgpu.mma.sync' needs sm_75"),
    *(
        (
            f"rocdl:{chip}",
            _one(
                "  %c = arith.constant dense<0.0> : vector<4xf32>\n"
                "  %d = rocdl.mfma.f32.16x16x4f32 %f, %f, %c, %v, %v, %v : "
                "(f32, f32, vector<4xf32>, i32, i32, i32) -> vector<4xf32>"
            ),
            5,
            8,
            "'rocdl.mfma.f32.16x16x4f32' needs a chip of gfx9 with matrix cores (gfx908, gfx90a, gfx942, gfx950) and "
            f"is built for {chip} here: build for such a chip, or leave rocdl:{chip} out",
        )
        for chip in ("gfx1100", "gfx9-generic", "gfx11-generic")
    ),
    *(
        (
            f"rocdl:{chip}",
            _one(
                f"  %p = amdgpu.packed_trunc_2xfp8 %f, undef into undef[word 0] : f32 to vector<4x{kind}>\n"
                f"  %e = amdgpu.ext_packed_fp8 %p[0] : vector<4x{kind}> to f32\n"
                "  %b = arith.bitcast %e : f32 to i32\n  %c0 = arith.constant 0 : index\n"
                "  memref.store %b, %x[%c0] : memref<?xi32>"
            ),
            4,
            8,
            f"'amdgpu.packed_trunc_2xfp8' of {kind} needs {wanted} and is built for {chip} here: use {instead}",
        )
        for chip, kind, wanted, instead in (
            ("gfx942", "f8E4M3FN", "gfx950 or gfx12 and later", "f8E4M3FNUZ or f8E5M2FNUZ"),
            ("gfx950", "f8E5M2FNUZ", "gfx942", "f8E4M3FN or f8E5M2"),
            ("gfx1201", "f8E4M3FNUZ", "gfx942", "f8E4M3FN or f8E5M2"),
        )
    ),
    *(
        (
            f"rocdl:{chip}",
            _one(
                f"  %r = amdgpu.dpp %v %v {kind} : i32\n  %c0 = arith.constant 0 : index\n"
                "  memref.store %r, %x[%c0] : memref<?xi32>"
            ),
            4,
            8,
            f"'amdgpu.dpp {kind}' needs a chip of gfx9 and is built for {chip}",
        )
        for chip, kind in (("gfx1100", "row_bcast_15"), ("gfx1201", "wave_shl"))
    ),
    ("rocdl:gfx942", _one("  rocdl.s.wait.dscnt 0"), 4, 3, "needs gfx12 or later and is built for gfx942"),
    *(
        (f"rocdl:{chip}", _of_buffer(operation), 9, 3, f"'{said}")
        for chip, operation, said in (
            (
                "gfx90a",
                _fmax("f32", "%f"),
                "rocdl.raw.ptr.buffer.atomic.fmax of f32' needs gfx10 or later and is built for gfx90a here",
            ),
            ("gfx1100", _fmax("f64", "%d"), "rocdl.raw.ptr.buffer.atomic.fmax of f64' needs gfx90a, gfx942, gfx950, "),
            ("gfx1030", _fmax("f32", "%f").replace("fmax", "fadd"), "rocdl.raw.ptr.buffer.atomic.fadd of f32' needs "),
            ("gfx1100", _LOAD_LDS, "rocdl.raw.ptr.buffer.load.lds' needs a chip of gfx9 or gfx10"),
            ("gfx942", _LOAD_LDS.replace("%n4", "%n16"), "rocdl.raw.ptr.buffer.load.lds of 16 bytes' needs gfx950"),
            ("gfx942", "rocdl.s.barrier.join %lds : !llvm.ptr<3>", "rocdl.s.barrier.join' needs gfx12 or later"),
            ("gfx1100", "rocdl.s.barrier.leave id = 1", "rocdl.s.barrier.leave' needs gfx12 or later"),
            ("gfx1201", "rocdl.s.wakeup.barrier %lds : !llvm.ptr<3>", "rocdl.s.wakeup.barrier' needs gfx1250 or later"),
        )
    ),
    *(
        (
            f"rocdl:{chip}",
            _one(f"  %r = rocdl.update.dpp %v, %v with {pattern}, 15, 15, true : i32"),
            4,
            8,
            f"'rocdl.update.dpp of pattern 0x{pattern:X}' needs {wanted} and is built for {chip}",
        )
        for chip, pattern, wanted in (
            ("gfx1100", 0x142, "a chip of gfx9"),
            ("gfx942", 0x160, "gfx10 or later"),
            ("gfx906", 0x150, "gfx90a, gfx942, gfx950, or gfx10 and later"),
        )
    ),
]


@pytest.mark.parametrize(("target", "source", "line", "column", "text"), _OLD)
def test_chips_without_an_instruction_are_refused(target: str, source: str, line: int, column: int, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        offload.compile(source, targets=[target])
    first = caught.value.diagnostics[0]
    assert text in first.message
    assert f"leave {target} out" in first.message
    marked = [number for number, content in enumerate(source.splitlines(), 1) if content.endswith("// here")]
    assert (first.line, first.column) == (line or marked[0], column)


@pytest.mark.parametrize(
    ("target", "operation", "said"),
    [
        (
            "rocdl:gfx942",
            "%r = rocdl.update.dpp %n, %n with 9999, 15, 15, true : i32",
            "'rocdl.update.dpp of pattern 0x270f' is none of the patterns of lanes that instructions have",
        ),
        (
            "rocdl:gfx90a",
            "%b = rocdl.ballot %t : i32",
            "'rocdl.ballot' gives i32, and waves have 64 lanes here: take i64",
        ),
        (
            "rocdl:gfx1100",
            _fmax("f16", "%h"),
            "'rocdl.raw.ptr.buffer.atomic.fmax' has no instruction for values of type f16; there are some for f32, f64",
        ),
        (
            "rocdl:gfx1100",
            "rocdl.raw.ptr.buffer.store %w, %rs, %n, %n, %n : vector<8xi32>",
            "'rocdl.raw.ptr.buffer.store' moves 8, 16, 32, 64, 96 or 128 bits, as a number or a vector of one "
            "dimension, and no vector<8xi32>: move it in parts",
        ),
        (
            "rocdl:gfx950",
            "rocdl.global.load.lds %g, %lds, 8, 0, 0",
            "'rocdl.global.load.lds' moves 1, 2 or 4 bytes for each lane (gfx950: 12 or 16 too), and not 8",
        ),
    ],
)
def test_operands_that_no_instruction_has_are_refused(target: str, operation: str, said: str) -> None:
    """LLVM showed its own instructions, and often no place."""
    source = _of_buffer(operation).replace("%d: f64", "%d: f64, %h: f16, %t: i1, %g: !llvm.ptr<1>, %w: vector<8xi32>")
    with pytest.raises(CompileError) as caught:
        offload.compile(source, targets=[target])
    (first,) = caught.value.diagnostics
    assert first.message.startswith(said)
    assert first.line == 9


@pytest.mark.parametrize("chip", ["sm_100", "sm_100a", "sm_120"])
@pytest.mark.parametrize("at", ["%l", "%m"])
def test_bulk_stores_to_a_blocks_memory(at: str, chip: str) -> None:
    """ptxas wants the address in a register; LLVM 22 writes the variable's name, or an offset too."""
    text = f"""
gpu.module @m {{
  llvm.mlir.global internal @tile() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<256 x i32>
  llvm.func @k(%i: i32) attributes {{gpu.kernel}} {{
    %l = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %m0 = llvm.getelementptr %l[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %m = llvm.getelementptr %m0[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %n = llvm.mlir.constant(64 : i64) : i64
    nvvm.st.bulk {at}, size = %n, init = 0 : !llvm.ptr<3>
    llvm.return
  }}
}}
"""
    (cubin,) = emit(text, "object", [f"nvvm:{chip}"])
    assert cubin.data.startswith(b"\x7fELF")


_TENSOR_MEMORY = """
gpu.module @m {
  llvm.func @k(%s: !llvm.ptr<3>, %t: !llvm.ptr<6>, %i: i32, %l: i64, %b: i1) attributes {gpu.kernel} {
    nvvm.tcgen05.alloc %s, %i : !llvm.ptr<3>, i32
    nvvm.tcgen05.mma %t, %l, %l, %i, %b
        {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    nvvm.tcgen05.commit %s : !llvm.ptr<3>
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    nvvm.tcgen05.dealloc %t, %i : !llvm.ptr<6>, i32
    llvm.return
  }
}
"""


@pytest.mark.parametrize("chip", ["sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f"])
def test_what_later_chips_of_a_family_have_too(chip: str) -> None:
    """MLIR 22 knows sm_103 for the one instruction of tensor memory that its family has on single chips alone."""
    (cubin,) = emit(_TENSOR_MEMORY, "object", [f"nvvm:{chip}"])
    assert cubin.data.startswith(b"\x7fELF")


@pytest.mark.parametrize("number", ["101a", "101f"])
def test_a_chip_that_got_another_number(number: str) -> None:
    """Some operations of MLIR 22 say sm_101, others sm_110, as CUDA 13 does."""
    assert "tcgen05.mma" in emit_text(_TENSOR_MEMORY, "isa", [f"nvvm:sm_{number},features=+ptx88"])


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100", "sm_120f"])
def test_other_families_have_no_tensor_memory(chip: str) -> None:
    with pytest.raises(CompileError, match=f"'nvvm.tcgen05.alloc' needs sm_100a or sm_110a and is built for {chip}"):
        emit(_TENSOR_MEMORY, "isa", [f"nvvm:{chip}"])


def test_8_bit_floats_of_the_chip_that_had_them_first() -> None:
    """PTX has conversions to them for sm_89 since version 8.1, and products since 8.4."""
    text = """
gpu.module @m {
  llvm.func @k(%x: !llvm.ptr, %f: f32) attributes {gpu.kernel} {
    %r = nvvm.convert.f32x2.to.f8x2 %f, %f {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>}
        : i16 (f8E4M3FN)
    llvm.store %r, %x : i16, !llvm.ptr
    llvm.return
  }
}
"""
    assert len(emit(text, "object", ["nvvm:sm_89"])) == 1
    text = emit_text(text, "isa", ["nvvm:sm_89"])
    assert "cvt.rn.satfinite.e4m3x2.f32" in text


@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a"])
def test_conversions_with_random_bits(chip: str) -> None:
    """PTX has them since 8.7; LLVM writes 8.6 for sm_100a."""
    source = """
gpu.module @m {
  llvm.func @k(%x: !llvm.ptr, %f: f32, %i: i32, %v: vector<4xf32>) attributes {gpu.kernel} {
    %r = nvvm.convert.f32x2.to.f16x2 %f, %f, %i {rnd = #nvvm.fp_rnd_mode<rs>} : vector<2xf16>
    %s = nvvm.convert.f32x4.to.f8x4 %v, %i : vector<4xf32> -> vector<4xi8> (f8E4M3FN)
    llvm.store volatile %r, %x : vector<2xf16>, !llvm.ptr
    llvm.store volatile %s, %x : vector<4xi8>, !llvm.ptr
    llvm.return
  }
}
"""
    (cubin,) = emit(source, "object", [f"nvvm:{chip}"])
    assert cubin.data.startswith(b"\x7fELF")


def test_a_product_that_is_no_instruction_is_refused() -> None:
    """MLIR's translation has no intrinsic for it, and would end the process."""
    source = nvidia._mma("4x1xf64", "2x1xf64", "2x2xf64", "16, 8, 8")
    with pytest.raises(CompileError) as caught:
        offload.compile(source, targets=["nvvm:sm_90"])
    (first,) = caught.value.diagnostics
    assert first.message == (
        "no instruction makes this product: of shape m16n8k8, of f64 and f64, added to f64, giving f64; "
        "PTX lists shapes, types and layouts under mma"
    )
    (marked,) = [number for number, content in enumerate(source.splitlines(), 1) if content.endswith("// here")]
    assert (first.line, first.column) == (marked, 6)


def test_a_type_of_one_vendor_in_a_signature_is_refused() -> None:
    source = kernel("", "%x: memref<4xf32, #amdgpu.address_space<fat_raw_buffer>>")
    with pytest.raises(CompileError, match="is a type of AMD GPUs, and target host has nothing like it") as caught:
        offload.compile(source, targets=["host"])
    assert caught.value.diagnostics[0].line == 3


def test_descriptors_of_tensors_need_their_driver() -> None:
    """Where the CPU runs the kernels there are none; the error is the runtime's, not a crash."""
    (source,) = [case.source for case in nvidia.CASES if case.op == "nvgpu.tma.create.descriptor"]
    alone = source.replace("nvgpu.tma.prefetch.descriptor %tm", "//")
    library = offload.compile(alone, targets=["host"])
    library.use("host")
    with pytest.raises(offload.DeviceError, match='The backend "host" has no tensor descriptors'):
        library.f(np.zeros((256, 256), np.float16))


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("rocdl:gfx950", "amdgpu.gather_to_lds %g[%j], %l[%j] : index, memref<64xindex>, memref<64xindex, 3>"),
        ("rocdl:gfx950", "%v = amdgpu.transpose_load %l[%j] : memref<64xindex, 3> -> vector<1xindex>"),
        ("nvvm:sm_80", "%v = nvgpu.device_async_copy %g[%j], %l[%j], 1 : memref<64xindex> to memref<64xindex, 3>"),
        (
            "nvvm:sm_80",
            "%v = nvgpu.ldmatrix %l[%j] {numTiles = 1 : i32, transpose = false} : "
            "memref<64xindex, 3> -> vector<1x1xindex>",
        ),
    ],
)
def test_elements_without_a_width_are_refused(target: str, body: str) -> None:
    """MLIR's verifiers ask for it, which ended the process that compiles."""
    source = kernel(body, "%g: memref<64xindex>, %j: index", attributions="workgroup(%l: memref<64xindex, 3>)")
    name = body.removeprefix("%v = ").partition(" ")[0]
    told = f"error: '{name}' moves integers and floats of whole bytes, and no 'index': let the memory have elements "
    with pytest.raises(CompileError, match=rf"<string>:4:\d: {re.escape(told)}"):
        emit_text(source, "isa", [target])


@pytest.mark.parametrize("element", ["i1", "i4", "f4E2M1FN"])
@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("rocdl:gfx942", "amdgpu.gather_to_lds %g[%j], %l[%j] : vector<32xE>, memref<256xE>, memref<256xE, 3>"),
        ("nvvm:sm_80", "%v = nvgpu.device_async_copy %g[%j], %l[%j], 32 : memref<256xE> to memref<256xE, 3>"),
        (
            "nvvm:sm_80",
            "%v = nvgpu.ldmatrix %l[%j] {numTiles = 1 : i32, transpose = false} : memref<256xE, 3> -> vector<1x32xE>",
        ),
    ],
)
def test_elements_of_a_part_of_a_byte_are_refused(element: str, target: str, body: str) -> None:
    """They take whole bytes in memory, of which the vendors' moves counted the bits: a part of what was asked for."""
    memory, body = f"memref<256x{element}", body.replace("E>", f"{element}>").replace("E,", f"{element},")
    source = kernel(body, f"%g: {memory}>, %j: index", attributions=f"workgroup(%l: {memory}, 3>)")
    name = body.removeprefix("%v = ").partition(" ")[0]
    told = f"error: '{name}' moves integers and floats of whole bytes, and no '{element}'"
    with pytest.raises(CompileError, match=rf"<string>:4:\d: {re.escape(told)}"):
        emit_text(source, "isa", [target])


def test_an_exchange_of_what_is_no_number_is_refused() -> None:
    source = kernel("  %r = amdgpu.dpp %x %x row_mirror : memref<?xf32>", "%x: memref<?xf32>")
    told = "<string>:4:8: error: 'amdgpu.dpp' moves numbers and vectors of numbers, and no 'memref<?xf32>'"
    with pytest.raises(CompileError, match=re.escape(told)):
        emit_text(source, "isa", ["rocdl:gfx942"])


def test_a_product_with_half_of_its_elements_is_refused() -> None:
    body = "  %d = amdgpu.wmma 16x16x16 %a * %a + %c : vector<4xi4>, vector<4xi4>, vector<8xi32>\n"
    body += "  vector.store %d, %x[%j] : memref<?xi32>, vector<8xi32>"
    source = kernel(body, "%a: vector<4xi4>, %c: vector<8xi32>, %x: memref<?xi32>, %j: index")
    told = "<string>:4:8: error: 'amdgpu.wmma' has 4 elements of each matrix in a lane"
    with pytest.raises(CompileError, match=re.escape(told)):
        emit_text(source, "isa", ["rocdl:gfx1201"])
