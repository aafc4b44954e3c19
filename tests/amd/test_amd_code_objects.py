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
from compiling import EXAMPLES, tool
from conformance import all_themes
from operations import Case, all_cases

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
