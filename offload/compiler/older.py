"""What MLIR 22 writes otherwise than other MLIRs do: programs outlive the LLVM that they were written for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

RENAMED = {
    "arith.addui_carry": "arith.addui_extended",
    "arith.maxf": "arith.maximumf",
    "arith.minf": "arith.minimumf",
    "bufferization.to_memref": "bufferization.to_buffer",
    "gpu.create_dn_mat": "gpu.create_dn_tensor",
    "gpu.create_dn_vec": "gpu.create_dn_tensor",
    "gpu.destroy_dn_mat": "gpu.destroy_dn_tensor",
    "gpu.destroy_dn_vec": "gpu.destroy_dn_tensor",
    "gpu.spgemm_compute": "gpu.spgemm_work_estimation_or_compute",
    "gpu.spgemm_get_size": "gpu.spmat_get_size",
    "gpu.spgemm_work_estimation": "gpu.spgemm_work_estimation_or_compute",
    "linalg.batch_matmul_transpose_a": "linalg.batch_matmul",
    "linalg.batch_matmul_transpose_b": "linalg.batch_matmul",
    "linalg.elemwise_binary": "linalg.elementwise",
    "linalg.elemwise_unary": "linalg.elementwise",
    "linalg.indexed_generic": "linalg.generic",
    "linalg.init_tensor": "tensor.empty",
    "linalg.matmul_transpose_a": "linalg.matmul",
    "linalg.matmul_transpose_b": "linalg.matmul",
    "linalg.matmul_unsigned": "linalg.matmul",
    "llvm.mlir.null": "llvm.mlir.zero",
    "math.abs": "math.absf",
    "memref.buffer_cast": "bufferization.to_buffer",
    "memref.tensor_load": "bufferization.to_tensor",
    "scf.foreach_thread": "scf.forall",
    "scf.foreach_thread.perform_concurrently": "scf.forall.in_parallel",
    "sparse_tensor.init": "bufferization.alloc_tensor",
    "sparse_tensor.pack": "sparse_tensor.assemble",
    "sparse_tensor.unpack": "sparse_tensor.disassemble",
    "tensor.pack": "linalg.pack",
    "tensor.unpack": "linalg.unpack",
    "vector.extractelement": "vector.extract",
    "vector.flat_transpose": "llvm.intr.matrix.transpose",
    "vector.insertelement": "vector.insert",
    "vector.matrix_multiply": "llvm.intr.matrix.multiply",
    "vector.splat": "vector.broadcast",
    "vector.warp_execute_on_lane_0": "gpu.warp_execute_on_lane_0",
}
"""Operations by their former names; some have other operands or attributes now, too."""
COPIES = {"util.func": "func.func", "util.return": "func.return"}
"""Operations that other front ends have a copy of, IREE's passes for one."""
STANDARD = {
    "arith": "addf addi andi ceildivsi cmpf cmpi constant divf divi_signed divi_unsigned floordivsi fpext fptosi "
    "fptoui fptrunc index_cast maxf minf mulf muli negf or remf remi_signed remi_unsigned select shift_left "
    "shift_right_signed shift_right_unsigned sitofp subf subi trunci uitofp xor sexti zexti",
    "cf": "assert br cond_br switch",
    "func": "call call_indirect func return",
    "math": "absf ceilf cos exp exp2 floorf log log10 log2 powf rsqrt sin sqrt tanh",
    "memref": "alloc alloca dealloc dim load store subview view",
    "tensor": "extract_element tensor_from_elements",
}
"""Where operations of the dialect went that needed no name (`std`)."""

LOWERINGS = {
    "chlo": "stablehlo-opt --chlo-legalize-to-stablehlo --stablehlo-legalize-to-linalg",
    "stablehlo": "stablehlo-opt --stablehlo-legalize-to-linalg",
    "tm_tensor": "torch-mlir-opt --pass-pipeline='builtin.module(func.func(tm-tensor-bufferize,tm-tensor-to-loops))'",
    "torch": "torch-mlir-opt --torch-backend-to-linalg-on-tensors-backend-pipeline",
}
"""What makes linalg on tensors of dialects that are not MLIR's own; docs/frontends.md has ways that PyPI has."""

REDUCTIONS = (
    *("add", "mul", "minui", "minsi", "minnumf", "maxui", "maxsi", "maxnumf", "and", "or", "xor"),
    *("minimumf", "maximumf"),
)
"""What `gpu.all_reduce` and `gpu.subgroup_reduce` know; `min` and `max` were others, of integers and floats alike."""


def said(message: str, before: Callable[[], str], operations: Callable[[str], list[str]]) -> str:
    """An error of MLIR's parser with what the author has to write now; ``before`` gives the program up to its place,
    ``operations`` those that a dialect has."""
    unknown = re.match(r"(?:custom op|unregistered operation) '([\w.]+)'", message) or re.match(
        r"Dialect `\w+' not found for custom op '([\w.]+)'", message
    )
    generic = message.startswith("operation being parsed with an unregistered dialect")
    if generic:
        unknown = re.search(r'"([\w.]+)"\s*$', before())
    elif in_short := re.match(r"'\.?([\w.]+)' op created with unregistered dialect", message):  # linalg.reduce {NAME}
        generic, unknown = True, in_short
    if unknown:
        name = unknown[1]
        if made_by := LOWERINGS.get(dialect := name.partition(".")[0]):
            return (
                f"unknown operation '{name}': MLIR 22 has no dialect '{dialect}'; lower it to linalg, before offload "
                f"sees it: {made_by} (or PyPI's iree-base-compiler: docs/frontends.md)"
            )
        if present := RENAMED.get(name) or COPIES.get(name):
            return f"unknown operation '{name}': MLIR 22 has '{present}' in its place"
        if found := _SHARED.fullmatch(name):
            return f"unknown operation '{name}': MLIR 22 has '{found[1]}' in its place"
        short = name.removeprefix("std.")
        for present_in, names in STANDARD.items():
            if short in names.split():
                return f"unknown operation '{name}': what was in the standard dialect is in '{present_in}' in MLIR 22"
        known = operations(dialect)
        if name not in known and (close := difflib.get_close_matches(name, known, 3, _ALIKE)):
            meant = " or ".join(f"'{other}'" for other in close)
            return f"unknown operation '{name}'; did you mean {meant}?"
        if generic and "." not in name:
            return f"unknown operation '{name}': the name of an operation begins with that of its dialect"
        if generic:
            return (
                f"unknown operation '{name}': MLIR 22 has no dialect '{dialect}'; lower it to one that it has, before "
                "offload sees it"
            )
    if found := re.fullmatch(r"custom op '(gpu\.(?:all|subgroup)_reduce)' invalid op kind", message):
        return f"'{found[1]}' has no such kind in MLIR 22, which has {', '.join(REDUCTIONS)}"
    if message == "expected integer number of results" and _PRINTF.search(before()):
        return "a comma stands between the format of 'gpu.printf' and its first argument in MLIR 22"
    if message == "expected integer value" and before().endswith("!llvm.ptr<"):
        return "a pointer has no element type in MLIR 22: write '!llvm.ptr', or '!llvm.ptr<3>' for an address space"
    if re.match(r"elements hex data size is invalid for provided type: '.*xi1>'", message):
        return (
            f"{message}: MLIR 22 has eight i1 in a byte, and newer ones a byte for each; have the program printed "
            "with --mlir-print-elementsattrs-with-hex-if-larger=-1"
        )
    return message.replace(
        "unknown  type `mbarrier.barrier` in dialect `nvgpu`",
        "unknown type '!nvgpu.mbarrier.barrier': MLIR 22 has '!nvgpu.mbarrier.group' in its place",
    )


_ALIKE = 0.8
"""How much of a name must stand in another one too for it to be meant: `math.tahn` has 0.89 of `math.tanh`."""
_SHARED = re.compile(r"([\w.]+\.mbarrier\.[\w.]+)\.shared")
"""Barriers in workgroup memory had operations of their own; now the pointer says where one is."""
_PRINTF = re.compile(r'gpu\.printf\s+"(?:[^"\\]|\\.)*"\s+%[\w.$-]+(?:#\d+)?\s*:?\s*$')
