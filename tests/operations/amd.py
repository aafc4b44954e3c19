"""Operations of AMD GPUs: amdgpu and rocdl. Refused elsewhere, at their own lines.

``INSTRUCTIONS`` maps a case to what its assembly must have; tests/kernels/test_vendor_operations.py looks for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from operations import Case, kernel

CASES: list[Case] = []
INSTRUCTIONS: dict[str, Sequence[str]] = {}
_REFUSED = {name: f"is an operation of AMD GPUs, and target {name} has nothing like it" for name in ("nvvm", "host")}
_S = "#gpu.address_space<workgroup>"


def _add(op: str, chip: str, body: str, arguments: str, *instructions: str, form: str = "", shared: str = "") -> None:
    form = ", ".join(word for word in (form, chip) if word)
    attributions = f"workgroup(%l: {shared})" if shared else ""
    source = kernel("%c0 = arith.constant 0 : index\n" + body, arguments, attributions=attributions)
    CASES.append(Case(op, form, source, refused=_REFUSED, chips={"rocdl": chip}))
    INSTRUCTIONS[f"{op}-{form}"] = instructions


# Matrix cores.

for _chip in ("gfx90a", "gfx942", "gfx950"):
    _add(
        "amdgpu.mfma",
        _chip,
        """%c = arith.constant dense<0.0> : vector<32xf32>
%d = amdgpu.mfma 32x32x1 %a * %b + %c { abid = 0 : i32, cbsz = 0 : i32, blocks = 2 : i32 } blgp = none : f32, f32, \
vector<32xf32> // here
vector.store %d, %x[%c0] : memref<?xf32>, vector<32xf32>""",
        "%a: f32, %b: f32, %x: memref<?xf32>",
        "v_mfma_f32_32x32x1_2b_f32" if _chip != "gfx90a" else "v_mfma_f32_32x32x1f32",
        form="f32",
    )
    _add(
        "amdgpu.mfma",
        _chip,
        """%a = vector.load %p[%c0] : memref<?xf16>, vector<4xf16>
%c = arith.constant dense<0.0> : vector<4xf32>
%d = amdgpu.mfma 16x16x16 %a * %a + %c { abid = 0 : i32, cbsz = 0 : i32, blocks = 1 : i32 } blgp = none : \
vector<4xf16>, vector<4xf16>, vector<4xf32> // here
vector.store %d, %x[%c0] : memref<?xf32>, vector<4xf32>""",
        "%p: memref<?xf16>, %x: memref<?xf32>",
        "v_mfma_f32_16x16x16_f16" if _chip != "gfx90a" else "v_mfma_f32_16x16x16f16",
        form="f16",
    )
for _chip in ("gfx942", "gfx950"):
    _add(
        "amdgpu.sparse_mfma",
        _chip,
        """%a = vector.load %p[%c0] : memref<?xf16>, vector<4xf16>
%b = vector.load %p[%c0] : memref<?xf16>, vector<8xf16>
%c = arith.constant dense<0.0> : vector<4xf32>
%d = amdgpu.sparse_mfma 16x16x32 %a * %b + %c sparse(%i : vector<4xi8>) { abid = 0 : i32, cbsz = 0 : i32 } : \
vector<4xf16>, vector<8xf16>, vector<4xf32> // here
vector.store %d, %x[%c0] : memref<?xf32>, vector<4xf32>""",
        "%p: memref<?xf16>, %x: memref<?xf32>, %i: vector<4xi8>",
        "v_smfmac_f32_16x16x32_f16",
    )
    # Of these numbers MLIR gives gfx950's products floats, and the older of them take integers.
    _add(
        "amdgpu.sparse_mfma",
        _chip,
        """%a = vector.load %p[%c0] : memref<?xbf16>, vector<4xbf16>
%b = vector.load %p[%c0] : memref<?xbf16>, vector<8xbf16>
%c = arith.constant dense<0.0> : vector<16xf32>
%d = amdgpu.sparse_mfma 32x32x16 %a * %b + %c sparse(%i : vector<4xi8>) { abid = 0 : i32, cbsz = 0 : i32 } : \
vector<4xbf16>, vector<8xbf16>, vector<16xf32> // here
vector.store %d, %x[%c0] : memref<?xf32>, vector<16xf32>""",
        "%p: memref<?xbf16>, %x: memref<?xf32>, %i: vector<4xi8>",
        "v_smfmac_f32_32x32x16_bf16",
        form="bf16",
    )
    _add(
        "amdgpu.gather_to_lds",
        _chip,
        f"""amdgpu.gather_to_lds %g[%j], %l[%j] : f32, memref<64xf32, #gpu.address_space<global>>, \
memref<64xf32, {_S}> // here
gpu.barrier
%v = memref.load %l[%j] : memref<64xf32, {_S}>
memref.store %v, %o[%j] : memref<?xf32>""",
        "%g: memref<64xf32, #gpu.address_space<global>>, %j: index, %o: memref<?xf32>",
        "global_load_lds_dword",
        shared=f"memref<64xf32, {_S}>",
    )
_add(
    "amdgpu.scaled_mfma",
    "gfx950",
    """%r = vector.load %p[%c0] : memref<?xi8>, vector<32xi8>
%a = vector.bitcast %r : vector<32xi8> to vector<32xf8E4M3FN>
%c = arith.constant dense<0.0> : vector<4xf32>
%d = amdgpu.scaled_mfma 16x16x128 (%s[0] * %a) * (%s[0] * %a) + %c : f8E8M0FNU, vector<32xf8E4M3FN>, f8E8M0FNU, \
vector<32xf8E4M3FN>, vector<4xf32> // here
vector.store %d, %x[%c0] : memref<?xf32>, vector<4xf32>""",
    "%p: memref<?xi8>, %x: memref<?xf32>, %s: f8E8M0FNU",
    "v_mfma_scale_f32_16x16x128_f8f6f4",
)
for _chip, _count in (("gfx1100", 16), ("gfx1201", 8)):
    _add(
        "amdgpu.wmma",
        _chip,
        f"""%a = vector.load %p[%c0] : memref<?xf16>, vector<{_count}xf16>
%c = arith.constant dense<0.0> : vector<8xf32>
%d = amdgpu.wmma 16x16x16 %a * %a + %c : vector<{_count}xf16>, vector<{_count}xf16>, vector<8xf32> // here
vector.store %d, %x[%c0] : memref<?xf32>, vector<8xf32>""",
        "%p: memref<?xf16>, %x: memref<?xf32>",
        "v_wmma_f32_16x16x16_f16",
        form="f16",
    )

# Memory.

for _chip, _load, _store in (
    ("gfx942", "buffer_load_dwordx4", "buffer_store_dwordx4"),
    ("gfx1100", "buffer_load_b128", "buffer_store_b128"),
):
    _add(
        "amdgpu.raw_buffer",
        _chip,
        """%i = arith.constant 3 : i32
%v = amdgpu.raw_buffer_load {boundsCheck = true} %x[%i] : memref<64xf32>, i32 -> vector<4xf32> // here
amdgpu.raw_buffer_store {boundsCheck = true} %v -> %x[%i] : vector<4xf32> -> memref<64xf32>, i32
%f = vector.extract %v[0] : f32 from vector<4xf32>
amdgpu.raw_buffer_atomic_fadd {boundsCheck = true} %f -> %x[%i] : f32 -> memref<64xf32>, i32
amdgpu.raw_buffer_atomic_smax {boundsCheck = true} %i -> %y[%i] : i32 -> memref<64xi32>, i32
amdgpu.raw_buffer_atomic_umin {boundsCheck = true} %i -> %y[%i] : i32 -> memref<64xi32>, i32
%r = amdgpu.raw_buffer_atomic_cmpswap {boundsCheck = true} %i, %i -> %y[%i] : i32 -> memref<64xi32>, i32
amdgpu.raw_buffer_store {boundsCheck = true} %r -> %y[%i] : i32 -> memref<64xi32>, i32""",
        "%x: memref<64xf32>, %y: memref<64xi32>",
        *(_load, _store, "buffer_atomic_add_f32", "buffer_atomic_", "buffer_atomic_cmpswap"),
        form="load, store, atomics",
    )
    _add(
        "amdgpu.fat_raw_buffer_cast",
        _chip,
        """%b = amdgpu.fat_raw_buffer_cast %x : memref<64xf32> to memref<64xf32, \
#amdgpu.address_space<fat_raw_buffer>> // here
%v = memref.load %b[%j] : memref<64xf32, #amdgpu.address_space<fat_raw_buffer>>
memref.store %v, %b[%c0] : memref<64xf32, #amdgpu.address_space<fat_raw_buffer>>""",
        "%x: memref<64xf32>, %j: index",
        *("buffer_load_", "buffer_store_"),
    )
    _add(
        "amdgpu.dpp",
        _chip,
        """%v = memref.load %y[%j] : memref<?xi32>
%d = amdgpu.dpp %v %v row_shl ( 0x1 : i32 ) { row_mask = 0xa : i32, bound_ctrl = true } : i32 // here
%s = amdgpu.swizzle_bitmode %d 1 2 4 : i32
%w = rocdl.readfirstlane %s : i32
memref.store %w, %y[%j] : memref<?xi32>""",
        "%y: memref<?xi32>, %j: index",
        *("row_shl:1", "ds_swizzle_b32", "v_readfirstlane_b32"),
        form="then swizzle_bitmode, readfirstlane",
    )
    _add(
        "amdgpu.lds_barrier",
        _chip,
        """amdgpu.lds_barrier // here
amdgpu.sched_barrier allow = <none>
amdgpu.memory_counter_wait load(0)""",
        "",
        *("s_barrier", *(["s_waitcnt vmcnt(0)"] if _chip == "gfx942" else [])),
        form="then sched_barrier, memory_counter_wait",
    )
_add(
    "amdgpu.transpose_load",
    "gfx950",
    f"""%v = amdgpu.transpose_load %l[%j] : memref<256xf16, {_S}> -> vector<4xf16> // here
vector.store %v, %o[%j] : memref<?xf16>, vector<4xf16>""",
    "%o: memref<?xf16>, %j: index",
    "ds_read_b64_tr_b16",
    shared=f"memref<256xf16, {_S}>",
)

# Lanes and small floats.

_add(
    "amdgpu.permlane_swap",
    "gfx950",
    """%v = memref.load %y[%j] : memref<?xi32>
%s = amdgpu.permlane_swap %v 16 : i32 // here
%t = amdgpu.permlane_swap %s 32 { fetch_inactive = true } : i32
memref.store %t, %y[%j] : memref<?xi32>""",
    "%y: memref<?xi32>, %j: index",
    *("v_permlane16_swap_b32", "v_permlane32_swap_b32"),
)
for _chip, _type in (("gfx942", "f8E4M3FNUZ"), ("gfx950", "f8E4M3FN"), ("gfx1201", "f8E4M3FN")):
    _add(
        "amdgpu.packed_trunc_2xfp8",
        _chip,
        f"""%a = memref.load %o[%j] : memref<?xf32>
%p = amdgpu.packed_trunc_2xfp8 %a, %a into undef[word 0] : f32 to vector<4x{_type}> // here
%i = memref.load %q[%j] : memref<?xi32>
%s = amdgpu.packed_stoch_round_fp8 %a + %i into %p[1] : f32 to vector<4x{_type}> into vector<4x{_type}>
%e = amdgpu.ext_packed_fp8 %s[0] : vector<4x{_type}> to f32
memref.store %e, %o[%j] : memref<?xf32>""",
        "%o: memref<?xf32>, %j: index, %q: memref<?xi32>",
        *("v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32", "v_cvt_f32_fp8"),
        form="then packed_stoch_round_fp8, ext_packed_fp8",
    )
_add(
    "amdgpu.scaled_ext_packed",
    "gfx950",
    """%r = vector.load %p[%j] : memref<?xi8>, vector<4xi8>
%a = vector.bitcast %r : vector<4xi8> to vector<4xf8E5M2>
%v = amdgpu.scaled_ext_packed %a[0], %s : vector<4xf8E5M2> to vector<2xf32> // here
%t = amdgpu.packed_scaled_trunc %v into undef[0], %s : vector<2xf32> to vector<4xf8E5M2>
%b = vector.bitcast %t : vector<4xf8E5M2> to vector<4xi8>
vector.store %b, %p[%j] : memref<?xi8>, vector<4xi8>
vector.store %v, %o[%j] : memref<?xf32>, vector<2xf32>""",
    "%o: memref<?xf32>, %j: index, %p: memref<?xi8>, %s: f32",
    *("v_cvt_scalef32_pk_f32_bf8", "v_cvt_scalef32_pk_bf8_f32"),
    form="then packed_scaled_trunc",
)

# The rocdl dialect itself.

_add(
    "rocdl",
    "gfx942",
    """%a = memref.load %o[%c0] : memref<?xf32>
rocdl.s.setprio 1 // here
rocdl.s.barrier
rocdl.s.sleep 2
rocdl.sched.barrier 0
%e = rocdl.sin %a f32 -> f32
%t = rocdl.workitem.id.x : i32
%b = rocdl.ds_bpermute %t, %t : (i32, i32) -> i32
%g = arith.sitofp %b : i32 to f32
%h = arith.addf %e, %g : f32
memref.store %h, %o[%c0] : memref<?xf32>""",
    "%o: memref<?xf32>, %i: i32",
    *("s_setprio 1", "s_barrier", "s_sleep 2", "v_sin_f32", "ds_bpermute_b32"),
    form="setprio, barrier, sleep, sin, bpermute",
)
