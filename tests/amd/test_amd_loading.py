"""What AMD kernels ask of who loads and launches them: hidden arguments, stacks, workgroup memory. It is read from the
code objects; none of it has been loaded on AMD hardware."""

from __future__ import annotations

from pathlib import Path

import pytest
from amd_code_objects import CodeObject
from compiling import PROGRAMS
from operations import device_gpu_prints as prints

import offload
from offload import artifact


def built(source: str, target: str, folder: Path) -> CodeObject:
    (folder / "m.mlir").write_text(source)
    path = offload.build(folder / "m.mlir", folder / "m.so", targets=[f"rocdl:{target}"])
    (image,) = artifact.read(path).images
    return CodeObject(image.data)


def hidden(source: str, target: str, folder: Path) -> dict[str, set[str]]:
    """The hidden arguments of each kernel."""
    kernels = built(source, target, folder).metadata()["amdhsa.kernels"]
    kinds = {kernel[".name"]: {argument[".value_kind"] for argument in kernel.get(".args", ())} for kernel in kernels}
    return {name: {kind for kind in found if kind.startswith("hidden_")} for name, found in kinds.items()}


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201", "gfx9-4-generic"])
def test_what_kernels_ask_the_loader_for(target: str, tmp_path: Path) -> None:
    """A buffer to talk to the host where they print; sizes of the launch where they use them."""
    assert "hidden_hostcall_buffer" in hidden(prints.KINDS, target, tmp_path)["k"]
    ids = hidden((PROGRAMS / "ids.mlir").read_text(), target, tmp_path)
    sizes = {f"hidden_{what}_{axis}" for what in ("block_count", "group_size", "remainder") for axis in "xyz"}
    assert sizes <= ids["all"]
    plain = """gpu.module @m { gpu.func @k(%x: memref<?xf32>) kernel {
      %t = gpu.thread_id x
      %v = arith.constant 1.0 : f32
      memref.store %v, %x[%t] : memref<?xf32>
      gpu.return
    } }"""
    assert "hidden_hostcall_buffer" not in hidden(plain, target, tmp_path)["k"]


@pytest.mark.parametrize("options", ["", ",O=0"])
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1201"])
def test_stacks_of_kernels_that_call_functions_have_a_size(target: str, options: str, tmp_path: Path) -> None:
    """LLVM takes a kernel that calls, as those that print do, for a recursive one unless it is told. What is optimized
    may have no call left, which follows from the device libraries."""
    (kernel,) = built(prints.KINDS, target + options, tmp_path).metadata()["amdhsa.kernels"]
    assert kernel[".private_segment_fixed_size"] > 0 or not options
    assert not kernel[".uses_dynamic_stack"]


CALLS = """gpu.module @m {
  func.func @inner(%x: memref<100xi32>, %n: index) attributes {passthrough = ["noinline"]} {
    %c0 = arith.constant 0 : index
    %own = memref.alloca() : memref<100xi32>
    memref.copy %x, %own : memref<100xi32> to memref<100xi32>
    %v = memref.load %own[%n] : memref<100xi32>
    memref.store %v, %x[%c0] : memref<100xi32>
    return
  }
  func.func @outer(%x: memref<100xi32>, %n: index) attributes {passthrough = ["noinline"]} {
    func.call @inner(%x, %n) : (memref<100xi32>, index) -> ()
    return
  }
  gpu.func @k(%x: memref<100xi32>, %n: index) kernel {
    func.call @outer(%x, %n) : (memref<100xi32>, index) -> ()
    gpu.return
  }
}
"""


@pytest.mark.parametrize("options", ["", ",O=1", ",O=0"])
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201", "gfx9-4-generic"])
def test_stacks_of_kernels_that_call_their_own_functions_have_a_size(target: str, options: str, tmp_path: Path) -> None:
    """Recursion is refused, but without optimization LLVM is not told of functions that do not recurse."""
    (kernel,) = built(CALLS, target + options, tmp_path).metadata()["amdhsa.kernels"]
    assert 400 <= kernel[".private_segment_fixed_size"] < 1000
    assert not kernel[".uses_dynamic_stack"]


DYNAMIC = """gpu.module @m {
  gpu.func @k(%x: memref<?xf32>) workgroup(%w: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %d = memref.view %bytes[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
      to memref<64xf32, #gpu.address_space<workgroup>>
    %v = memref.load %x[%t] : memref<?xf32>
    memref.store %v, %w[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %v, %d[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %o = memref.load %w[%c0] : memref<64xf32, #gpu.address_space<workgroup>>
    %p = memref.load %d[%c0] : memref<64xf32, #gpu.address_space<workgroup>>
    %r = arith.addf %o, %p : f32
    memref.store %r, %x[%t] : memref<?xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201", "gfx12-generic"])
def test_workgroup_memory_of_the_launch_is_not_the_kernels(target: str, tmp_path: Path) -> None:
    """The descriptor counts what is declared; the rest comes with the launch, behind it."""
    code = built(DYNAMIC, target, tmp_path)
    (kernel,) = code.metadata()["amdhsa.kernels"]
    assert kernel[".group_segment_fixed_size"] == 256
    assert code.descriptor(kernel).word(0) == 256


BEHIND_BYTES = """gpu.module @m {
  gpu.func @k(%x: memref<?xi8>, %sum: memref<i64>) workgroup(%w: memref<3xi8, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %d = memref.view %bytes[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
      to memref<64xi64, #gpu.address_space<workgroup>>
    %v = memref.load %x[%t] : memref<?xi8>
    memref.store %v, %w[%t] : memref<3xi8, #gpu.address_space<workgroup>>
    gpu.barrier
    %u = memref.load %w[%c0] : memref<3xi8, #gpu.address_space<workgroup>>
    %n = arith.extui %u : i8 to i64
    %old = memref.atomic_rmw addi %n, %d[%c0] : (i64, memref<64xi64, #gpu.address_space<workgroup>>) -> i64
    memref.store %old, %sum[] : memref<i64>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201", "gfx12-generic"])
def test_workgroup_memory_of_the_launch_is_aligned(target: str, tmp_path: Path) -> None:
    """Behind three bytes of the kernel's own, what comes with the launch begins at a multiple of 16."""
    code = built(BEHIND_BYTES, target, tmp_path)
    (kernel,) = code.metadata()["amdhsa.kernels"]
    assert kernel[".group_segment_fixed_size"] == code.descriptor(kernel).word(0) == 16
