"""Operations of NVIDIA GPUs: nvgpu, nvvm, inline PTX. Refused elsewhere, at their own lines.

``INSTRUCTIONS`` maps a case to what its PTX must have; tests/kernels/test_vendor_operations.py looks for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from operations import Case, kernel

CASES: list[Case] = []
INSTRUCTIONS: dict[str, Sequence[str]] = {}
_FOREIGN = "is an operation of NVIDIA GPUs, and target {} has nothing like it"
_REFUSED = {name: _FOREIGN.format(name) for name in ("rocdl", "host")}
_S = "#gpu.address_space<workgroup>"


def _add(
    op: str, form: str, source: str, *instructions: str, chip: str = "sm_90", refused: dict[str, str] = _REFUSED
) -> None:
    CASES.append(Case(op, form, source, refused=refused, chips={"nvvm": chip}))
    INSTRUCTIONS[f"{op}-{form}"] = instructions


def _value(op: str, form: str, text: str, *instructions: str, chip: str = "sm_90") -> None:
    """An operation from %v, an i32, to %r, an i32."""
    body = f"""%c0 = arith.constant 0 : index
%all = arith.constant -1 : i32
%one = arith.constant 1 : i32
%clamp = arith.constant 31 : i32
%v = memref.load %x[%c0] : memref<?xi32>
{text} // here
memref.store %r, %x[%c0] : memref<?xi32>"""
    _add(op, form, kernel(body, "%x: memref<?xi32>"), *instructions, chip=chip)


def _effect(op: str, form: str, text: str, *instructions: str, chip: str = "sm_90") -> None:
    _add(op, form, kernel(f"{text} // here", "%x: memref<?xi32>, %v: i32"), *instructions, chip=chip)


# Tensor cores through nvgpu.


def _mma(a: str, b: str, c: str, shape: str, attributes: str = "") -> str:
    def load(name: str, kind: str) -> str:
        count, width, element = kind.split("x")
        flat = f"vector<{int(count) * int(width)}x{element}>"
        return (
            f"%{name}f = vector.load %{name}p[%c0] : memref<?x{element}>, {flat}\n"
            f"%{name} = vector.shape_cast %{name}f : {flat} to vector<{kind}>"
        )

    element = c.rsplit("x", 1)[1]
    body = f"""%c0 = arith.constant 0 : index
{load("a", a)}
{load("b", b)}
{load("c", c)}
%d = nvgpu.mma.sync (%a, %b, %c) {{mmaShape = [{shape}]{attributes}}} : (vector<{a}>, vector<{b}>, vector<{c}>) \
-> vector<{c}> // here
%e = vector.extract %d[0] : vector<{c.split("x", 1)[1]}> from vector<{c}>
vector.store %e, %cp[%c0] : memref<?x{element}>, vector<{c.split("x", 1)[1]}>"""
    elements = [kind.rsplit("x", 1)[1] for kind in (a, b, c)]
    arguments = ", ".join(f"%{name}p: memref<?x{kind}>" for name, kind in zip("abc", elements, strict=True))
    return kernel(body, arguments)


for _form, _source, _instruction in (
    ("m16n8k8 f16", _mma("2x2xf16", "1x2xf16", "2x2xf16", "16, 8, 8"), "m16n8k8.row.col.f16.f16.f16.f16"),
    ("m16n8k16 f16", _mma("4x2xf16", "2x2xf16", "2x2xf16", "16, 8, 16"), "m16n8k16.row.col.f16.f16.f16.f16"),
    ("m16n8k16 f16 to f32", _mma("4x2xf16", "2x2xf16", "2x2xf32", "16, 8, 16"), "m16n8k16.row.col.f32.f16.f16.f32"),
    (
        "m16n8k8 tf32",
        _mma("4x1xf32", "2x1xf32", "2x2xf32", "16, 8, 8", ", tf32Enabled"),
        "m16n8k8.row.col.f32.tf32.tf32",
    ),
    ("m16n8k8 bf16", _mma("2x2xbf16", "1x2xbf16", "2x2xf32", "16, 8, 8"), "m16n8k8.row.col.f32.bf16.bf16.f32"),
    ("m16n8k16 bf16", _mma("4x2xbf16", "2x2xbf16", "2x2xf32", "16, 8, 16"), "m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("m16n8k32 s8", _mma("4x4xi8", "2x4xi8", "2x2xi32", "16, 8, 32"), "m16n8k32.row.col"),
    ("m8n8k4 f64", _mma("1x1xf64", "1x1xf64", "1x2xf64", "8, 8, 4"), "m8n8k4.row.col.f64.f64.f64.f64"),
):
    _add("nvgpu.mma.sync", _form, _source, "mma.sync.aligned." + _instruction)

_COPIES = f"""%c0 = arith.constant 0 : index
%p = nvgpu.device_async_copy %g[%c0, %c0], %s[%c0, %c0], 8 : memref<64x64xf16> to memref<64x64xf16, {_S}> // here
%q = nvgpu.device_async_copy %g[%c0, %c0], %s[%c0, %c0], 8, %n {{bypassL1}} : memref<64x64xf16> to \
memref<64x64xf16, {_S}>
%t = nvgpu.device_async_create_group %p, %q
nvgpu.device_async_wait %t {{numGroups = 0 : i32}}
gpu.barrier
%A = nvgpu.ldmatrix %s[%c0, %c0] {{numTiles = 4 : i32, transpose = false}} : memref<64x64xf16, {_S}> -> vector<4x2xf16>
%B = nvgpu.ldmatrix %s[%c0, %c0] {{numTiles = 4 : i32, transpose = true}} : memref<64x64xf16, {_S}> -> vector<4x2xf16>
%C = arith.constant dense<0.0> : vector<2x2xf16>
%m = arith.constant dense<0> : vector<2xi16>
%D = nvgpu.mma.sp.sync (%A, %B, %C) metadata (%m) {{mmaShape = [16, 8, 32]}} : (vector<4x2xf16>, vector<4x2xf16>, \
vector<2x2xf16>) -> vector<2x2xf16>
%v = vector.extract %D[0] : vector<2xf16> from vector<2x2xf16>
vector.store %v, %o[%c0, %c0] : memref<64x64xf16>, vector<2xf16>"""
_copies = kernel(
    _COPIES,
    "%g: memref<64x64xf16>, %o: memref<64x64xf16>, %n: index",
    attributions=f"workgroup(%s: memref<64x64xf16, {_S}>)",
)
_add(
    "nvgpu.device_async_copy",
    "with zero fill, group, wait",
    _copies,
    "cp.async.ca.shared.global",
    "cp.async.cg.shared.global",
    "cp.async.commit_group",
    "cp.async.wait_group",
    chip="sm_80",
)
_add("nvgpu.ldmatrix", "x4, x4 transposed", _copies, "ldmatrix.sync.aligned.m8n8.x4.shared", "x4.trans", chip="sm_80")
_add("nvgpu.mma.sp.sync", "m16n8k32 f16", _copies, "mma.sp.sync.aligned.m16n8k32.row.col.f16", chip="sm_80")

# Barriers in memory, TMA, warpgroups.

_B = "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>"
_D = (
    "!nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = {}, l2promo = none, oob = zero, "
    "interleave = none>"
)
_add(
    "nvgpu.mbarrier",
    "create, init, arrive, test.wait",
    kernel(
        f"""%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%bar = nvgpu.mbarrier.create -> {_B} // here
nvgpu.mbarrier.init %bar[%c1], %n : {_B}
%t = nvgpu.mbarrier.arrive %bar[%c1] : {_B} -> !nvgpu.mbarrier.token
%u = nvgpu.mbarrier.arrive.nocomplete %bar[%c1], %c1 : {_B} -> !nvgpu.mbarrier.token
%w = nvgpu.mbarrier.test.wait %bar[%c1], %t : {_B}, !nvgpu.mbarrier.token
%i = arith.extui %w : i1 to i32
memref.store %i, %o[%c0] : memref<?xi32>""",
        "%o: memref<?xi32>, %n: index",
    ),
    "mbarrier.init.shared.b64",
    "mbarrier.arrive.shared.b64",
    "mbarrier.arrive.noComplete.shared.b64",
    "mbarrier.test_wait.shared.b64",
    chip="sm_80",
)
_tma = kernel(
    f"""%c0 = arith.constant 0 : index
%bytes = arith.constant 8192 : index
%ticks = arith.constant 10000000 : index
%phase = arith.constant false
%bar = nvgpu.mbarrier.create -> {_B} // here
nvgpu.mbarrier.init %bar[%c0], %bytes : {_B}
nvgpu.tma.prefetch.descriptor %tm : {_D.format("none")}
nvgpu.tma.fence.descriptor %tm : {_D.format("none")}
nvgpu.mbarrier.arrive.expect_tx %bar[%c0], %bytes : {_B}
nvgpu.tma.async.load %tm[%c0, %c0], %bar[%c0] to %s : {_D.format("none")}, {_B} -> memref<64x64xf16, 3>
nvgpu.mbarrier.try_wait.parity %bar[%c0], %phase, %ticks : {_B}
nvgpu.tma.async.store %s to %tm[%c0, %c0] : memref<64x64xf16, 3> -> {_D.format("none")}""",
    f"%tm: {_D.format('none')}",
    attributions="workgroup(%s: memref<64x64xf16, 3>)",
)
_add("nvgpu.mbarrier", "expect_tx, try_wait.parity", _tma, "mbarrier.arrive.expect_tx", "mbarrier.try_wait.parity")
_add(
    "nvgpu.tma",
    "load, store, prefetch, fence",
    _tma,
    "prefetch.tensormap",
    "fence.proxy.tensormap",
    "cp.async.bulk.tensor.2d.shared::cluster.global",
    "cp.async.bulk.tensor.2d.global.shared::cta",
)
_add(
    "nvgpu.tma.create.descriptor",
    "in host code, launched",
    f"""module attributes {{gpu.container_module}} {{
gpu.module @m {{
gpu.func @k(%tm: {_D.format("none")}) kernel {{
nvgpu.tma.prefetch.descriptor %tm : {_D.format("none")} // here
gpu.return
}}
}}
func.func @f(%x: memref<256x256xf16>) {{
%c1 = arith.constant 1 : index
%c64 = arith.constant 64 : index
%u = memref.cast %x : memref<256x256xf16> to memref<*xf16>
%d = nvgpu.tma.create.descriptor %u box[%c64, %c64] : memref<*xf16> -> {_D.format("none")}
gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%d : {_D.format("none")})
return
}}
}}
""",
    "prefetch.tensormap",
)
_W = "!nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, 3>>"
_A = "!nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>"
_add(
    "nvgpu.warpgroup.mma",
    "f16, m64n64k64",
    kernel(
        f"""%da = nvgpu.warpgroup.generate.descriptor %s, %tm : memref<64x64xf16, 3>, {_D.format("swizzle_128b")} -> \
{_W} // here
%c = nvgpu.warpgroup.mma.init.accumulator -> {_A}
%d = nvgpu.warpgroup.mma %da, %da, %c {{transposeB}} : {_W}, {_W}, {_A} -> {_A}
nvgpu.warpgroup.mma.store %d, %o : {_A} to memref<64x64xf32>""",
        f"%tm: {_D.format('swizzle_128b')}, %o: memref<64x64xf32>",
        attributions="workgroup(%s: memref<64x64xf16, 3>)",
    ),
    "wgmma.fence.sync.aligned",
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
    "wgmma.commit_group.sync.aligned",
    "wgmma.wait_group.sync.aligned",
    chip="sm_90a",
)
_add(
    "nvgpu.rcp",
    "approx, ftz",
    kernel(
        """%c0 = arith.constant 0 : index
%v = vector.load %x[%c0] : memref<?xf32>, vector<4xf32>
%r = nvgpu.rcp %v {rounding = approx, ftz} : vector<4xf32> // here
vector.store %r, %x[%c0] : memref<?xf32>, vector<4xf32>""",
        "%x: memref<?xf32>",
    ),
    "rcp.approx.ftz.f32",
)

# The nvvm dialect itself.

_add(
    "nvvm.mma.sync",
    "m16n8k16 bf16",
    kernel(
        """%c0 = arith.constant 0 : index
%z = arith.constant 0.0 : f32
%d = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%z, %z, %z, %z] {layoutA = #nvvm.mma_layout<row>, \
layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, \
multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> \
!llvm.struct<(f32, f32, f32, f32)> // here
%e = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
memref.store %e, %o[%c0] : memref<?xf32>""",
        "%o: memref<?xf32>, %a: i32",
    ),
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
)

_value("nvvm.redux.sync", "add", "%r = nvvm.redux.sync add %v, %all : i32 -> i32", "redux.sync.add.s32", chip="sm_80")
_value("nvvm.shfl.sync", "bfly", "%r = nvvm.shfl.sync bfly %all, %v, %one, %clamp : i32 -> i32", "shfl.sync.bfly.b32")
_value(
    "nvvm.inline_ptx", "read-only operands", '%r = nvvm.inline_ptx "brev.b32 $0, $1;" ro(%v : i32) -> i32', "brev.b32"
)
_value(
    "nvvm.vote.sync",
    "ballot",
    "%p = arith.trunci %v : i32 to i1\n%r = nvvm.vote.sync ballot %all, %p -> i32",
    "vote.sync.ballot",
)
_value("nvvm.match.sync", "any", "%r = nvvm.match.sync any %all, %v : i32 -> i32", "match.any.sync.b32")
_value("nvvm.read.ptx.sreg", "laneid", "%r = nvvm.read.ptx.sreg.laneid : i32", "%laneid")
_effect("nvvm.barrier0", "", "nvvm.barrier0", "bar.sync")
_effect("nvvm.bar.warp.sync", "", "nvvm.bar.warp.sync %v : i32", "bar.warp.sync")
_effect(
    "nvvm.cluster",
    "arrive, wait",
    "nvvm.cluster.arrive {aligned} // here\nnvvm.cluster.wait {aligned}",
    "barrier.cluster.arrive.aligned",
    "barrier.cluster.wait.aligned",
)
_effect(
    "nvvm.cp.async",
    "commit and wait",
    "nvvm.cp.async.commit.group // here\nnvvm.cp.async.wait.group 1",
    "cp.async.commit_group",
    "cp.async.wait_group",
    chip="sm_80",
)
_effect("nvvm.elect.sync", "", "%e = nvvm.elect.sync -> i1", chip="sm_90")
_effect("nvvm.fence.mbarrier.init", "", "nvvm.fence.mbarrier.init", "fence.mbarrier_init")
_effect("nvvm.griddepcontrol", "wait", "nvvm.griddepcontrol wait", "griddepcontrol.wait")
_effect("nvvm.setmaxregister", "increase", "nvvm.setmaxregister increase 232", "setmaxnreg.inc", chip="sm_90a")
_effect(
    "nvvm.wgmma",
    "fence, commit, wait",
    "nvvm.wgmma.fence.aligned // here\nnvvm.wgmma.commit.group.sync.aligned\nnvvm.wgmma.wait.group.sync.aligned 0",
    "wgmma.fence",
    chip="sm_90a",
)
_add(
    "llvm.inline_asm",
    "PTX",
    kernel(
        """%c0 = arith.constant 0 : index
%r = llvm.inline_asm "brev.b32 $0, $1;", "=r,r" %v : (i32) -> i32 // here
memref.store %r, %x[%c0] : memref<?xi32>""",
        "%x: memref<?xi32>, %v: i32",
    ),
    "brev.b32",
    refused={
        name: f"the inline assembly is refused for {chip}" for name, chip in (("rocdl", "gfx942"), ("host", "x86-64"))
    },
)
