"""What kernels of compiled code take: descriptors or plain pointers, as their bytes say; launches pass that."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import emit
from emulator.driver import shared
from offload.targets import nvvm_images, rocdl_images
from ready import BODY, CUBIN, DECLARATION, HSACO, LAUNCH, PTX, annotated, binary, nvvm_object, refusal, rocdl_object

import offload
from offload.compiler.native import native

DESCRIPTOR = (8, 8, 8, 8, 8, 4)  # a memref of rank 1 and an f32


def plain(target: str, stage: str = "object", kind: str = "f32") -> bytes:
    """The kernel's code as a C++ compiler would make it: with a pointer and a number."""
    text = f"""
gpu.module @m {{
  llvm.func @k(%x: !llvm.ptr<1>, %a: {kind}) attributes {{gpu.kernel}} {{
    %i = gpu.thread_id x
    %n = arith.index_cast %i : index to i64
    %p = llvm.getelementptr %x[%n] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {kind}
    llvm.store %a, %p : {kind}, !llvm.ptr<1>
    llvm.return
  }}
}}
"""
    (item,) = emit(text, stage, [target])
    return item.data


@pytest.mark.parametrize("chip", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("stage", ["object", "isa"])
def test_the_bytes_of_nvidias_tell_the_sizes(chip: str, stage: str) -> None:
    for kind, size in (("f32", 4), ("i64", 8), ("i8", 1), ("f16", 2)):
        ready = nvvm_images.read(native(), plain(f"nvvm:{chip}", stage, kind))
        assert ready is not None and ready.parameters == {"k": (8, size)}


def test_the_bytes_of_amds_tell_the_sizes() -> None:
    for kind, size in (("f32", 4), ("i64", 8), ("i8", 1), ("f16", 2)):
        ready = rocdl_images.read(native(), plain("rocdl:gfx942", kind=kind))
        assert ready is not None and ready.parameters == {"k": (8, size)}


def test_descriptors_are_words() -> None:
    for data, module in ((CUBIN, nvvm_images), (PTX, nvvm_images), (HSACO, rocdl_images)):
        ready = module.read(native(), data)
        assert ready is not None and ready.parameters == {"k": DESCRIPTOR}


def test_ptx_of_other_compilers() -> None:
    text = b""".version 8.0
.target sm_80
.visible .entry _Z1k3RowPfi(
\t.param .align 8 .b8 _Z1k3RowPfi_param_0[40],
\t.param .u64 .ptr .global .align 16 _Z1k3RowPfi_param_1,
\t.param .u32 _Z1k3RowPfi_param_2
)
{ ret; }
.visible .entry none()
{ ret; }
"""
    ready = nvvm_images.read(native(), text)
    assert ready is not None and ready.parameters == {"_Z1k3RowPfi": (40, 8, 4), "none": ()}


def run(program: str) -> np.ndarray:
    """``f(x, a)`` on an emulated GPU: what it makes of four zeros."""
    library = offload.compile(program, targets=["rocdl:gfx942"])
    with shared().chip("gfx942"):
        library.use("hip")
        x = library.device.zeros(4, np.float32)
        library.f(x, 3.0)
        found = x.numpy()
    shared().check()
    return found


@pytest.mark.parametrize("data", [HSACO, plain("rocdl:gfx942")], ids=["descriptors", "pointers"])
def test_a_launch_passes_what_the_kernel_takes(data: bytes) -> None:
    for program in (binary(rocdl_object("gfx942", data)), annotated({"rocdl.hsaco": data}, DECLARATION)):
        np.testing.assert_array_equal(run(program), np.full(4, 3, np.float32))


@pytest.mark.parametrize(("data", "is_plain"), [(HSACO, False), (plain("rocdl:gfx942"), True)])
def test_python_launches_it_alike(data: bytes, is_plain: bool) -> None:
    library = offload.compile(binary(rocdl_object("gfx942", data)), targets=["rocdl:gfx942"])
    assert library.metadata.kernels[0].bare_pointers is is_plain
    with shared().chip("gfx942"):
        library.use("hip")
        x = library.device.zeros(4, np.float32)
        library.kernels.k[1, 4](x, 2.0)
        np.testing.assert_array_equal(x.numpy(), np.full(4, 2, np.float32))
    shared().check()


def said_of(program: str, **options: object) -> str:
    """The error of a program that cannot be built, which stands at its launch."""
    message, line = refusal(program, targets=["nvvm:sm_90", "rocdl:gfx942"], **options)
    assert "// launch" in program.splitlines()[line - 1]
    return message


def test_a_launch_that_passes_something_else_is_an_error() -> None:
    said = said_of(binary(nvvm_object("sm_90", plain("nvvm:sm_90", kind="f64"))))
    assert said == (
        "'gpu.launch_func' op passes 6 words (2 operands, memrefs as descriptors) to a kernel whose compiled code for "
        "nvvm:sm_90 has 2 parameters of 8 and 8 bytes: neither these nor a plain pointer for each memref"
    )


def test_chips_have_to_agree() -> None:
    said = said_of(binary(nvvm_object("sm_90", CUBIN), rocdl_object("gfx942", plain("rocdl:gfx942"))))
    assert said.endswith("2 parameters of 8 and 4 bytes; code of the same kernel for another chip takes descriptors")


def test_source_beside_it_has_to_agree() -> None:
    data = plain("nvvm:sm_90")
    said = said_of(annotated({"nvvm.cubin": data}, BODY))
    assert said.endswith(", and its source would be compiled for descriptors: build with bare pointers")
    body = BODY.replace("memref<?xf32>", "memref<4xf32>")
    launch = LAUNCH.replace("memref<?xf32>", "memref<4xf32>")
    program = annotated({"nvvm.cubin": data}, body, launch).replace("%x: memref<?xf32>", "%x: memref<4xf32>")
    offload.compile(program, targets=["nvvm:sm_90", "host"], bare_pointers=True)
    assert said_of(program).endswith("build with bare pointers")
    program = annotated({"nvvm.cubin": CUBIN}, body, launch).replace("%x: memref<?xf32>", "%x: memref<4xf32>")
    assert said_of(program, bare_pointers=True).endswith("for plain pointers: build without bare pointers")


def test_a_strided_array_is_more_than_a_pointer() -> None:
    strided = "memref<?xf32, strided<[2]>>"
    program = binary(nvvm_object("sm_90", plain("nvvm:sm_90"))).replace("memref<?xf32>", strided)
    said = said_of(program)
    assert re.match(rf"'gpu.launch_func' op passes '{re.escape(strided)}' to a kernel that takes a plain pointer", said)
