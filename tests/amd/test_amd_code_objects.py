"""AMD code objects are what HIP's loader and the hardware expect, for chips of every family and the generic ones.

Every run takes a part of the kernels of the operations' table and of tests/conformance for each chip; ``--full`` takes
all. None of it has been loaded on AMD hardware.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from amd_code_objects import CodeObject, named_registers, problems
from amd_disassembly import disassembled, instructions
from amd_waits import unwaited
from compiling import EXAMPLES, PROGRAMS, tool
from conformance import all_themes
from operations import Case, all_cases
from operations import device_gpu_prints as prints

import offload
from offload import artifact
from offload.artifact.meta import KernelSignature
from offload.errors import CompileError
from offload.runtime.dtypes import find

# gfx1101 stands for gfx11 with waves of 64: a library holds one image for a chip.
TARGETS = {
    "gfx90a": (5, 64), "gfx942": (5, 64), "gfx950": (5, 64), "gfx1030": (5, 32), "gfx1100": (5, 32),
    "gfx1101,wave64": (5, 64), "gfx1201": (5, 32), "gfx9-generic": (6, 64), "gfx9-4-generic": (6, 64),
    "gfx10-3-generic": (6, 32), "gfx11-generic": (6, 32), "gfx12-generic": (6, 32),
}  # fmt: skip
"""Version of the code object and size of waves."""
ALONE = {"gfx1030,wave64": (5, 64), "gfx1100,wave64": (5, 64)}
"""Likewise, for cases that are for one target alone."""
SMALL_WAVES = "of this target have 32"
"""Said of what is written for waves of 64."""
PART = 300
COUNT = "kernels on chips"
"""In the file of ``--junitxml``: how many were checked."""
UNDESCRIBED = ("amdgpu.sparse_mfma",)
"""Their kernels take vectors, for which there is no signature: they cannot be launched."""
CARRIED = ("gpu.binary", "gpu.module")  # programs that carry code for one chip
CASES = [case for case in all_cases() if case.has_kernels and "rocdl" not in case.refused and case.op not in CARRIED]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    full = metafunc.config.getoption("--full")
    if "case" in metafunc.fixturenames:
        cases = CASES if full else CASES[::PART]
        metafunc.parametrize("case", cases, ids=[f"{case.op}-{case.form}".replace(" ", "_") for case in cases])
    if "theme" in metafunc.fixturenames:
        pairs = [(theme, target) for theme in all_themes() for target in TARGETS]
        chosen = pairs if full else pairs[3 :: len(TARGETS) + 1]
        metafunc.parametrize(("theme", "target"), chosen, ids=[f"{theme.name}-{target}" for theme, target in chosen])


def code_objects(path: Path, targets: Sequence[str]) -> Iterator[tuple[str, str, CodeObject]]:
    """Target, disassembly and code object of each image of a library."""
    by_chip = {target.split(",")[0]: target for target in targets}
    for image in artifact.read(path).images:
        code, target = CodeObject(image.data), by_chip[image.chip]
        yield target, disassembled(code, image.chip, {**TARGETS, **ALONE}[target][1]), code


def check(source: str, targets: Sequence[str], folder: Path, *, described: bool = True, **options: object) -> int:
    """How many kernels of how many chips fit; ``described``: whether all have signatures."""
    (folder / "program.mlir").write_text(source)
    spelled = [f"rocdl:{target}" for target in targets]
    path = offload.build(folder / "program.mlir", folder / "program.so", targets=spelled, **options)  # type: ignore[arg-type]
    signatures = artifact.read(path).metadata.kernels
    found = []
    seen = kernels = 0
    for target, text, code in code_objects(path, targets):
        version, wave = {**TARGETS, **ALONE}[target]
        found += [f"{target}: {told}" for told in problems(code, target.split(",")[0], version, wave, text)]
        found += [f"{target}: {told}" for told in unwaited(code, target.split(",")[0], wave)]
        found += [f"{target}: {told}" for told in (parameters(code, signatures) if described else ())]
        kernels += len(code.metadata()["amdhsa.kernels"])
        seen += 1
    assert found == []
    assert seen >= len(targets)
    assert bool(signatures) == described
    return kernels


def sizes(signature: KernelSignature) -> list[int]:
    """Bytes of each parameter that a launch passes: memrefs are two pointers, an offset, sizes and strides."""
    found: list[int] = []
    for argument in signature.args:
        if argument.kind == "memref":
            found += [8] * (1 if signature.bare_pointers else 3 + 2 * len(argument.shape))
        else:
            found.append(find(argument.dtype).size)
    return found


def parameters(code: CodeObject, kernels: Sequence[KernelSignature]) -> Iterator[str]:
    """hipModuleLaunchKernel takes as many parameters as there are explicit arguments, of their sizes."""
    signatures = {kernel.name: sizes(kernel) for kernel in kernels}  # of a program's own and of loops made kernels
    for kernel in code.metadata()["amdhsa.kernels"]:
        given = [a[".size"] for a in kernel.get(".args", ()) if not a[".value_kind"].startswith("hidden_")]
        wanted = signatures[kernel[".name"]]
        if wanted != given:
            yield f"{kernel['.name']} takes parameters of {given} bytes, a launch passes {wanted}"


def targets_of(case: Case) -> tuple[list[str], list[str]]:
    """Where a case compiles, and where it is refused: some are for one chip alone, some for waves of 64."""
    if own := case.chips.get("rocdl"):
        return [own], []
    if not any(SMALL_WAVES in said for said in case.refused.values()):
        return list(TARGETS), []
    return [name for name, (_, wave) in TARGETS.items() if wave == 64], ["gfx1100", "gfx12-generic"]


def test_operations(case: Case, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    targets, refusing = targets_of(case)
    described = case.op not in UNDESCRIBED
    record_property(COUNT, check(case.source, targets, tmp_path, described=described, **case.options))
    for target in refusing:
        with pytest.raises(CompileError, match=SMALL_WAVES):
            offload.build(tmp_path / "program.mlir", tmp_path / "refused.so", targets=[f"rocdl:{target}"])


def test_conformance(
    theme: object, target: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property(COUNT, check(theme.source, [target], tmp_path))  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.mlir")), ids=lambda path: path.stem)
def test_examples(path: Path, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    record_property(COUNT, check(path.read_text(), list(TARGETS), tmp_path))


def hidden(source: str, target: str, folder: Path) -> dict[str, set[str]]:
    """The hidden arguments of each kernel."""
    (folder / "program.mlir").write_text(source)
    path = offload.build(folder / "program.mlir", folder / "program.so", targets=[f"rocdl:{target}"])
    (image,) = artifact.read(path).images
    kernels = CodeObject(image.data).metadata()["amdhsa.kernels"]
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
    (tmp_path / "program.mlir").write_text(prints.KINDS)
    targets = [f"rocdl:{target}{options}"]
    (image,) = artifact.read(offload.build(tmp_path / "program.mlir", tmp_path / "program.so", targets=targets)).images
    (kernel,) = CodeObject(image.data).metadata()["amdhsa.kernels"]
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
    (tmp_path / "m.mlir").write_text(CALLS)
    targets = [f"rocdl:{target}{options}"]
    (image,) = artifact.read(offload.build(tmp_path / "m.mlir", tmp_path / "m.so", targets=targets)).images
    (kernel,) = CodeObject(image.data).metadata()["amdhsa.kernels"]
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
    (tmp_path / "m.mlir").write_text(DYNAMIC)
    path = offload.build(tmp_path / "m.mlir", tmp_path / "m.so", targets=[f"rocdl:{target}"])
    ((_, _, code),) = code_objects(path, [target])
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
    (tmp_path / "m.mlir").write_text(BEHIND_BYTES)
    path = offload.build(tmp_path / "m.mlir", tmp_path / "m.so", targets=[f"rocdl:{target}"])
    ((_, _, code),) = code_objects(path, [target])
    (kernel,) = code.metadata()["amdhsa.kernels"]
    assert kernel[".group_segment_fixed_size"] == code.descriptor(kernel).word(0) == 16


# The rules tell what is wrong.

MODULE = """gpu.module @m {
  gpu.func @k(%x: memref<?xf32>, %n: i32) workgroup(%w: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %t = gpu.global_id x
    %l = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    memref.store %v, %w[%l] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %c1 = arith.constant 1 : index
    %o = arith.xori %l, %c1 : index
    %r = memref.load %w[%o] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %r, %x[%t] : memref<?xf32>
    gpu.return
  }
}
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[CodeObject, str]:
    folder = tmp_path_factory.mktemp("sound")
    (folder / "m.mlir").write_text(MODULE)
    path = offload.build(folder / "m.mlir", folder / "m.so", targets=["rocdl:gfx942"])
    ((_, text, code),) = code_objects(path, ["gfx942"])
    assert list(problems(code, "gfx942", 5, 64, text)) == []
    return code, text


def spoilt(code: CodeObject, offset: int, form: str, change: int) -> CodeObject:
    """The code object with a change to a field of its kernel's descriptor (from 64 on: of the ELF header)."""
    (kernel,) = code.metadata()["amdhsa.kernels"]
    descriptor = code.descriptor(kernel).data
    place = code.data.index(descriptor) + offset if offset < 64 else offset - 64
    data = bytearray(code.data)
    value = struct.unpack_from(form, data, place)[0] ^ change
    struct.pack_into(form, data, place, value)
    return replace(code, data=bytes(data))


@pytest.mark.parametrize(
    ("offset", "form", "change", "said"),
    [
        (0, "<I", 4, ".group_segment_fixed_size is 256 in the metadata, 260 in the descriptor"),
        (4, "<I", 16, ".private_segment_fixed_size is 0 in the metadata, 16 in the descriptor"),
        (8, "<I", 8, ".kernarg_segment_size is"),
        (12, "<I", 1, "reserved bits of its descriptor are set"),
        (16, "<q", 256, "its descriptor does not lead to its code"),
        (44, "<I", 1, "with accumulation registers from"),
        (48, "<I", 1 << 6, "scalar registers, counted as"),
        (48, "<I", 1 << 10, "asks for a priority, privilege or the debug mode"),
        (48, "<I", 1 << 18, "modes of floats 0xb"),
        (48, "<I", 1 << 30, "its descriptor has modes of gfx10"),
        (52, "<I", 1 << 2, "scalar registers for the user, of which its properties ask for 2"),
        (52, "<I", 1 << 24, "its descriptor asks for exceptions"),
        (58, "<H", 3, "scalar registers for the user, of which its properties ask for 5"),
        (58, "<H", 1 << 14 | 3, "3 words of arguments from the word 128 on are to come in registers"),
        (56, "<H", 1 << 0, "it asks for a buffer of private memory"),
        (52, "<I", 1 << 15, "is for the packet of the launch to say"),
        (56, "<H", 1 << 10, "waves of 64, in the descriptor 32"),
        (56, "<H", 1 << 3, "its descriptor asks for no pointer to them"),
        (56, "<H", 1 << 11, "differ on a dynamic stack"),
        (64 + 8, "<B", 7, "the ELF header has the ABI version 4, not 3"),
        (64 + 49, "<B", 3, "xnack is 2 in the ELF header, 1 in amdgcn-amd-amdhsa--gfx942"),
        (64 + 48, "<B", 1, "the ELF header is for the machine 0x4d, not 0x4c"),
    ],
)
def test_what_does_not_fit_is_told(
    sound: tuple[CodeObject, str], offset: int, form: str, change: int, said: str
) -> None:
    code, text = sound
    text = text if offset != 44 else re.sub(r"\bv\d+\b", "v9", text)  # past where the others are said to begin
    found = list(problems(spoilt(code, offset, form, change), "gfx942", 5, 64, text))
    assert any(said in each for each in found), found


def test_registers_that_are_not_counted_are_told(sound: tuple[CodeObject, str]) -> None:
    code, text = sound
    for wrong, said in ((r"v[200:201]", "its code names v201"), ("s99", "its code names s99")):
        changed = re.sub(r"\t(s_endpgm)", rf"\tv_mov_b32_e32 {wrong}, 0\n\t\1", text, count=1)
        assert changed != text
        assert any(said in each for each in problems(code, "gfx942", 5, 64, changed))


def test_the_same_counts_as_llvm_prints(sound: tuple[CodeObject, str], tmp_path: Path) -> None:
    """LLVM's own disassembly of a descriptor."""
    code, _ = sound
    (tmp_path / "m.hsaco").write_bytes(code.data)
    said = subprocess.run(
        ["llvm-objdump-22", "-D", "-j", ".rodata", tmp_path / "m.hsaco"], capture_output=True, text=True, check=True
    ).stdout
    (kernel,) = code.metadata()["amdhsa.kernels"]
    assert f".amdhsa_group_segment_fixed_size {kernel['.group_segment_fixed_size']}" in said
    assert f".amdhsa_kernarg_size {kernel['.kernarg_segment_size']}" in said
    assert ".amdhsa_wavefront_size32" not in said or ".amdhsa_wavefront_size32 0" in said


def test_the_disassembly_is_llvm_objdumps(tmp_path: Path) -> None:
    """It names the same registers, in waves of both sizes."""
    spelled = [f"rocdl:{target}" for target in TARGETS]
    path = offload.build(EXAMPLES / "reduce.mlir", tmp_path / "reduce.so", targets=spelled)
    for target, text, code in code_objects(path, list(TARGETS)):
        (tmp_path / "reduce.hsaco").write_bytes(code.data)
        named = named_registers(tool("llvm-objdump", "-d", "--no-show-raw-insn", tmp_path / "reduce.hsaco"))
        assert named_registers(text), target
        for name, most in named_registers(text).items():
            assert most == named[name], (target, name)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201", "gfx1201,wave64"])
def test_each_wait_that_is_left_out_is_told(target: str, tmp_path: Path) -> None:
    """In a kernel that loads its arguments, memory, and what another thread has put into workgroup memory."""
    chip, wave = target.split(",")[0], 32 if target in ("gfx1100", "gfx1201") else 64
    (tmp_path / "m.mlir").write_text(MODULE)
    path = offload.build(tmp_path / "m.mlir", tmp_path / "m.so", targets=[f"rocdl:{target}"])
    (image,) = artifact.read(path).images
    code = CodeObject(image.data)
    assert list(unwaited(code, chip, wave)) == []
    (listed,) = instructions(code, chip, wave).values()
    missed = []
    for address, (text, size) in listed:
        if not re.search(r"s_wait(cnt .*(vm|lgkm)cnt|_(load|ds|km)cnt)", text):
            continue
        ((offset, start),) = [(o, a) for kind, o, a, n in code.segments() if kind == 1 and a <= address < a + n]
        place = offset + address - start
        data = code.data[:place] + struct.pack("<I", 0xBF800000) + code.data[place + size :]  # s_nop 0
        missed.append(next(unwaited(replace(code, data=data), chip, wave), None))
    assert len(missed) >= 3
    # What orders workgroup memory before the barrier fetches nothing.
    assert sum(told is not None and "does not wait for" in told for told in missed) >= 3
