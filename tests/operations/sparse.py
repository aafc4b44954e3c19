"""Sparse operations of host code: every operation in every form, every format, type and mode, against dense NumPy."""

from __future__ import annotations

from itertools import product

from sparse_programs import (
    FORMATS,
    INDICES,
    MODES,
    STYLES,
    run_sddmm,
    run_spgemm,
    run_spmm,
    run_spmv,
    run_two_to_four,
    sddmm,
    spgemm,
    spmm,
    spmv,
    two_to_four,
)

from operations import Case

TYPES = ("f16", "bf16", "f32", "f64", "i32", "complex<f32>", "complex<f64>")
CONJUGATED = "CONJUGATE_TRANSPOSE"
PAIRS = tuple(product(MODES, MODES))


def pair(modes: tuple[str, str]) -> str:
    return " and ".join(mode.lower().replace("_", " ") for mode in modes)


CASES: list[Case] = []
for style in STYLES:
    # One program shows each of its operations in the style.
    for ops, source, run in (
        ("create_dn_tensor create_csr spmv_buffer_size spmv destroy_sp_mat destroy_dn_tensor",
         spmv(style), run_spmv()),
        ("spmm_buffer_size spmm", spmm(style), run_spmm()),
        ("sddmm_buffer_size sddmm", sddmm(style), run_sddmm()),
        ("spgemm_create_descr spgemm_work_estimation_or_compute spmat_get_size set_csr_pointers spgemm_copy "
         "spgemm_destroy_descr", spgemm(style), run_spgemm()),
        ("create_2to4_spmat", two_to_four(style), run_two_to_four()),
        *((f"create_{format}", spmv(style, format), run_spmv(format)) for format in FORMATS if format != "csr"),
    ):  # fmt: skip
        CASES += [Case(f"gpu.{op}", style, source, run) for op in ops.split()]
    CASES += [
        Case(f"gpu.{op}", f"{style}, 2:4", two_to_four(style), run_two_to_four())
        for op in ("spmm_buffer_size", "spmm", "destroy_sp_mat", "destroy_dn_tensor")
    ]

CASES += [
    Case(f"gpu.create_{format}", f"indices {index}", spmv(format=format, index=index), run_spmv(format, index))
    for format, index in product(FORMATS, INDICES)
    if index != "index"
]
CASES += [Case("gpu.spmv", f"{a}", spmv(a=a), run_spmv(a=a)) for a in TYPES]
CASES += [
    Case("gpu.spmv", f"{a} to {y}", spmv(a=a, y=y), run_spmv(a=a, y=y))
    for a, y in (("i8", "i32"), ("i8", "f32"), ("f16", "f32"), ("bf16", "f32"), ("f32", "complex<f32>"))
]
CASES += [
    Case("gpu.spmm", f"{format}, {a}", spmm(format=format, a=a), run_spmm(format, a))
    for format, a in (*product(FORMATS, ("f64",)), ("csr", "bf16"), ("csr", "i32"), ("csr", "complex<f64>"))
]
CASES += [
    Case("gpu.sddmm", f"{format}, {a}", sddmm(format=format, a=a), run_sddmm(format, a))
    for format, a in (*product(FORMATS, ("f64",)), ("csr", "f16"), ("csr", "i32"), ("csr", "complex<f32>"))
]
CASES += [
    Case("gpu.spmv", f"{format}, {mode.lower().replace('_', ' ')}",
         spmv(format=format, a="complex<f32>", mode=mode), run_spmv(format, a="complex<f32>", mode=mode))
    for format, mode in product(("csr", "coo", "bsr"), ("TRANSPOSE", "CONJUGATE_TRANSPOSE"))
]  # fmt: skip
for modes in PAIRS[1:]:
    CASES += [
        Case("gpu.spmm", pair(modes), spmm(a="complex<f32>", modes=modes), run_spmm(a="complex<f32>", modes=modes)),
        Case("gpu.sddmm", pair(modes), sddmm(a="complex<f32>", modes=modes), run_sddmm(a="complex<f32>", modes=modes)),
        Case("gpu.spgemm_work_estimation_or_compute", pair(modes), spgemm(a="complex<f32>", modes=modes),
             run_spgemm(a="complex<f32>", modes=modes)),
    ]  # fmt: skip
# Real numbers are conjugated as they are, and a result by columns is sampled as its transpose.
CASES += [
    *(Case("gpu.spmv", f"{a}, conjugate transpose", spmv(a=a, mode=CONJUGATED), run_spmv(a=a, mode=CONJUGATED))
      for a in ("f32", "f64")),
    *(Case(f"gpu.{op}", f"{a}, {pair(modes)}", write(a=a, modes=modes), run(a=a, modes=modes))
      for op, write, run in (("spmm", spmm, run_spmm), ("sddmm", sddmm, run_sddmm),
                             ("spgemm_work_estimation_or_compute", spgemm, run_spgemm))
      for a, modes in (("f32", (CONJUGATED, CONJUGATED)), ("f64", ("NON_TRANSPOSE", CONJUGATED)))),
    *(Case("gpu.sddmm", f"csc, {pair(modes)}", sddmm(format="csc", a="complex<f32>", modes=modes),
           run_sddmm("csc", a="complex<f32>", modes=modes))
      for modes in product(("NON_TRANSPOSE", "TRANSPOSE"), repeat=2)),
]  # fmt: skip
CASES += [
    Case("gpu.spgemm_copy", "onto entries of its own, i32 indices", spgemm(index="i32"),
         run_spgemm(index="i32", empty=False)),
    Case("gpu.spgemm_copy", "of COO and CSC, f64", spgemm(a="f64", formats=("coo", "csc")),
         run_spgemm(a="f64", formats=("coo", "csc"))),
    Case("gpu.create_2to4_spmat", "bf16, pruned", two_to_four(a="bf16", prune="PRUNE_ONLY"), run_two_to_four("bf16")),
    Case("gpu.create_2to4_spmat", "i8 to i32, pruned", two_to_four(a="i8", c="i32", ctp="i32"),
         run_two_to_four("i8", c="i32")),
    Case("gpu.create_2to4_spmat", "i8 to i32, B transposed",
         two_to_four(a="i8", c="i32", ctp="i32", modes=("NON_TRANSPOSE", "TRANSPOSE")),
         run_two_to_four("i8", c="i32", modes=("NON_TRANSPOSE", "TRANSPOSE"))),
    Case("gpu.create_2to4_spmat", "f16, 2:4 already", two_to_four(prune="NONE"), run_two_to_four(prune=False)),
    *(Case("gpu.spmm", f"2:4, {pair(modes)}", two_to_four(modes=modes), run_two_to_four(modes=modes))
      for modes in (("TRANSPOSE", "NON_TRANSPOSE"), ("NON_TRANSPOSE", "TRANSPOSE"),
                    ("NON_TRANSPOSE", "CONJUGATE_TRANSPOSE"))),
]  # fmt: skip
