"""From any level of input to kernels: gpu.module with gpu.func, launched by gpu.launch_func."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offload.compiler.native import failures, native, warn_of
from offload.compiler.request import Source


def parse(sources: Sequence[Source], session: Any) -> Any:
    """One module from all sources; public symbols must differ. Raises CompileError."""
    with failures(sources, "parsing"):
        merged, *others = (session.parse(source.data, source.name, len(sources) == 1) for source in sources)
        merged.join(others)
    return merged


PARALLEL = {"scf.parallel", "scf.forall", "affine.parallel"}
"""Operations of host code that become kernels."""

OWNING = {"bufferization.clone", "bufferization.dealloc"}
"""What a program has that MLIR's ownership-based deallocation has been at."""

MISSING = {"arith.floordivsi", "linalg.softmax", "memref.expand_shape", "memref.subview", "scf.for", "vector.print"}
"""Operations that offload-missing-lowerings is for."""

FREEING = (
    "buffer-deallocation-simplification",
    "bufferization-lower-deallocations",
    "convert-bufferization-to-memref",
)
"""From who owns memory to who frees it."""

BUFFERIZING = (
    "offload-structure-tensors",
    "offload-inline-calls",  # of functions of one block
    "offload-missing-tensors",
    "lower-affine",
    "convert-elementwise-to-linalg",
    "offload-fold-transposes",
    "offload-fuse-elementwise",
    "offload-constant-arguments",  # after what folds: %x - %x becomes a constant
    "offload-separate-tensors",
    "offload-private-loops",
    "offload-cut-chains",
    "offload-eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{allow-return-allocs-from-loops bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map}",
    "offload-join-chains",
    "offload-carried-memory",
    "offload-private-buffers",
    "offload-free-buffers",
    # Canonicalization ends the process at views that it is for. A softmax becomes a kernel with the loops: one
    # that was there before them would count as the author's own.
    "offload-missing-lowerings{softmax=false}",
    "canonicalize",
    *FREEING,
    "cse",
    "canonicalize",
)
"""From tensors to memrefs."""

TRANSFORMS = ("offload-equal-sizes", "offload-join-transforms", "transform-interpreter", "offload-erase-transforms")
"""A program's own schedule."""

TOSA = (
    "tosa-to-mlprogram",
    "tosa-to-scf",  # first: the lowering to linalg knows no regions
    # Threads next to each other have channels next to each other; in TOSA's own layout, weights are not.
    "func.func(tosa-optional-decompositions,tosa-infer-shapes,tosa-make-broadcastable,"
    "tosa-to-linalg-named{prefer-conv2d-kernel-layout-hwcf=true},"
    "tosa-layerwise-constant-fold,tosa-make-broadcastable,tosa-to-linalg,tosa-to-arith{include-apply-rescale},"
    "tosa-to-tensor,cse)",
)
"""From TOSA to linalg on tensors, as MLIR's own pipeline does but for weights; ``cse`` takes what is left of shapes."""

SHAPES = (
    "func.func(shape-to-shape-lowering,convert-shape-constraints)",
    "canonicalize",  # regions that assume what is asserted by now stand where they were
    "convert-shape-to-std",
    "canonicalize",
)
"""From the shape dialect to sizes of tensors, arithmetic and assertions."""

LINALG = (
    "offload-find-places",
    "offload-fuse-rows",  # early: these find the same rows in loops as they were written
    "offload-order-loops",
    "offload-collapse-linalg",
    "offload-transpose-tiles",
    "offload-reduce-rows",
    "offload-reduce-linalg",
    "offload-block-tiles",
    "offload-row-products",
    "offload-thread-tiles",
    "offload-serial-linalg-to-launch",
    "convert-linalg-to-parallel-loops",
)
"""From linalg on memrefs to launches and parallel loops; what a pass does not take is the next one's."""

OUTLINING = ("offload-group-launches", "gpu-kernel-outlining")


def lower_to_kernels(
    module: Any, sources: Sequence[Source], verify_each: bool = False, reproducer: str = "", debug: bool = False
) -> list[str]:
    """Runs, in place, the passes that this program's level needs and no others. Raises CompileError.

    Returns them as textual pipelines, in order: each step is chosen by what the one before it left.
    """
    ran = []
    for step in (_first, _transforms, _tosa, _buffers, _mapped, _launch_bodies, lambda made: _kernels(made, debug)):
        passes = ",".join(step(module))
        if passes:
            with failures(sources, "making kernels"):
                module.run(passes, verify_each=verify_each, reproducer=reproducer)
            warn_of(module, sources)  # remarks of a schedule among them
            ran.append(passes)
    return ran


def _first(module: Any) -> Sequence[str]:
    """Kernels that a vendor's compiler has written beside host code are in a module of kernels from here on, and what
    inline PTX changes has a name."""
    host, device = module.operation_names()
    return [
        *(["offload-gather-kernels"] if "llvm.func" in host else []),
        # Before anything is simplified.
        *(["offload-name-changed"] if any(name.endswith(".inline_ptx") for name in {*host, *device}) else []),
    ]


def _transforms(module: Any) -> Sequence[str]:
    """A program's own schedule comes first: what it leaves is the program. Of tiles nobody could tell any more which
    sizes of the arrays have to be equal."""
    host, _ = module.operation_names()
    return TRANSFORMS if "transform.named_sequence" in host else ()


def _tosa(module: Any) -> Sequence[str]:
    host, _ = module.operation_names()
    return TOSA if any(name.startswith("tosa.") for name in host) else ()


def _buffers(module: Any) -> Sequence[str]:
    """Tensors get memory. Nothing before this canonicalizes, which the reductions must come before."""
    host, device = module.operation_names()
    masked = {"vector.mask", "vector.multi_reduction"} <= {*host, *device}
    called = module.has_tensors() and "func.call" in host
    apart = device or {"gpu.launch", "gpu.subgroup_broadcast", "vector.mask"} & set(host)
    return [
        *(["offload-known-sizes"] if "gpu.func" in device else []),
        # What functions ask of sizes can be told in front of the loops that they are in then.
        *(["offload-inline-calls"] if called else []),
        # Before anything else folds sizes.
        "offload-equal-sizes",
        # Before the first cse.
        *(["offload-keep-apart"] if apart else []),
        *(["offload-program-globals"] if "ml_program.global" in host else []),
        *(["offload-masked-reductions"] if masked else []),
        *(SHAPES if any(name.startswith("shape.") for name in host) else ()),
        # Tensors in async values get memory as others do.
        *(["offload-inline-async"] if module.has_tensors() and any(name.startswith("async.") for name in host) else []),
        *(BUFFERIZING if module.has_tensors() else _allocated(set(host))),
    ]


def _allocated(host: set[str]) -> Sequence[str]:
    """Of programs without tensors, which may have had some: who frees memory, and what a thread keeps for itself."""
    own = bool("memref.alloc" in host and PARALLEL & host)
    return [*(FREEING if OWNING & host else ()), *(["offload-private-buffers"] if own else ())]


def _mapped(module: Any) -> Sequence[str]:
    """Loops that their author maps to blocks and threads are launches from here on."""
    host, _ = module.operation_names()
    return ("offload-map-foralls",) if "scf.forall" in host else ()


def _launch_bodies(module: Any) -> Sequence[str]:
    """Each thread of a gpu.launch runs its body. What makes parallel loops of host code kernels is not for these."""
    host, device = module.operation_names()
    passes = ["offload-private-names", "offload-check-input"]
    if "llvm.func" in device:
        passes.insert(0, "offload-mark-kernels")
    if any(name.startswith("async.") for name in host):
        passes.append("offload-inline-async")
    if "gpu.launch" in host and any(name.startswith("linalg.") or name in PARALLEL for name in host):
        # What only kernels called is in their modules now: a loop of it would be made a kernel of its own.
        passes += [*OUTLINING, "symbol-dce"]
    return passes


def _kernels(module: Any, debug: bool) -> Sequence[str]:
    host, device = module.operation_names()
    dialects = {name.split(".")[0] for name in host}
    loops = "linalg" in dialects or bool(PARALLEL & set(host))
    passes = ["offload-mark-written-kernels"] if loops else []
    if MISSING & {*host, *device}:
        passes.append("offload-missing-lowerings")
    if "memref.realloc" in host:
        passes.append("func.func(expand-realloc)")
    if any(name.startswith("linalg.") for name in device):
        passes.append("gpu.module(convert-linalg-to-loops)")
    if "linalg" in dialects:
        passes += LINALG
    if "affine" in dialects:
        passes.append("lower-affine")
    if "scf.forall" in host:
        passes.append("func.func(scf-forall-to-parallel)")
    if loops:
        passes += [
            *(["offload-serial-functions"] if "func.call" in host else []),
            "offload-reduce-parallel",
            "offload-shape-nests",
            "offload-tile-parallel",
            "func.func(gpu-map-parallel-loops{mapping-policy=innermost-first})",
            "convert-parallel-loops-to-gpu",
            "lower-affine",
        ]
        host = [*host, "gpu.launch"]
    if "gpu.launch" in host:
        passes += OUTLINING
    if {"memref.dealloc", "gpu.launch"} <= {*host}:
        passes.append("offload-free-early")  # not before: what lies between two operations keeps them from being one
    return [
        *passes,
        "offload-finish-kernels",
        *(["offload-block-memory"] if {"memref.alloc", "memref.alloca"} & {*host, *device} else []),
        "offload-descriptor-arguments",
        "offload-place-buffers",
        "offload-check-memory",
        "canonicalize",
        "cse",
        *([f"offload-join-equal-kernels{{same-lines={str(debug).lower()}}}"] if loops else []),
    ]


def new_session() -> Any:
    """A context of its own for one build."""
    return native().Session()
