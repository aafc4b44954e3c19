"""What the bytes of compiled code tell: the chips of cubins, fat binaries and AMD's code objects."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from compiling import tool
from offload.targets import nvvm_images, registry, rocdl_images
from ready import (
    CUBIN,
    HSACO,
    annotated,
    binary,
    built,
    held,
    image,
    refusal,
    rocdl_object,
)

from offload.compiler.native import native


@pytest.mark.parametrize("vendor", ["nvvm", "rocdl"])
def test_the_chip_of_an_attribute_that_names_none_is_mlirs(vendor: str) -> None:
    cls, short = registry().get(vendor), f"#{vendor}.target"
    default = cls.chip_of(short)
    for chip in cls.chips():
        module = native().Session().parse(f'gpu.module @m [{short}<chip = "{chip}">] {{}}'.encode(), "m.mlir")
        ((_, _, [printed]),) = module.attached_targets()
        assert (printed == short) == (chip == default)  # which MLIR does not print
        assert cls.chip_of(printed) == chip


@pytest.mark.parametrize(
    "chip", ["sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120", "sm_120a"]
)
def test_the_chip_of_a_cubin(chip: str) -> None:
    found = nvvm_images.read(native(), image(f"nvvm:{chip}"))
    assert found is not None
    assert found.chips == (chip,)


@pytest.mark.parametrize(
    ("flags", "abi", "chip"),
    # As ptxas of CUDA 12.8 writes them.
    [
        (0x00320532, 7, "sm_50"),
        (0x004B054B, 7, "sm_75"),
        (0x005A055A, 7, "sm_90"),
        (0x005A0D5A, 7, "sm_90a"),
        (0x06006402, 8, "sm_100"),
        (0x0600640A, 8, "sm_100a"),
    ],
)
def test_the_chip_of_a_cubin_of_cuda_12(flags: int, abi: int, chip: str) -> None:
    data = bytearray(CUBIN)
    data[8] = abi
    data[48:52] = flags.to_bytes(4, "little")
    found = nvvm_images.read(native(), bytes(data))
    assert found is not None
    assert found.chips == (chip,)


def test_the_chips_of_a_fat_binary(tmp_path: Path) -> None:
    tools = next(found.path for found in registry().get("nvvm").toolkit() if "ptxas" in found.what)
    assert tools is not None
    words = []
    for chip in ("100f", "75", "90a"):
        (tmp_path / chip).write_bytes(image(f"nvvm:sm_{chip}"))
        words.append(f"--image3=kind=elf,sm={chip},file={tmp_path / chip}")
    subprocess.run([tools.parent / "fatbinary", "-64", f"--create={tmp_path / 'all'}", *words], check=True)
    data = (tmp_path / "all").read_bytes()
    found = nvvm_images.read(native(), data)
    assert found is not None
    assert found.chips == ("sm_75", "sm_90a", "sm_100f")
    # It is listed under the oldest, since a device takes any image for its chip or an older one to the driver; it
    # serves for all that it holds.
    source = annotated({"nvvm.cubin": data})
    assert held(built(source, tmp_path, targets=["nvvm:sm_90a", "nvvm:sm_75"])) == [("nvvm", "sm_75", "fatbin", data)]
    assert refusal(source, targets=["nvvm:sm_90"]) == (
        "'m' has no image for nvvm:sm_90 and no source to compile; it carries: nvvm:sm_75+sm_90a+sm_100f", 2
    )  # fmt: skip


@pytest.mark.parametrize("chip", ["gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1201", "gfx9-4-generic"])
def test_the_chip_of_a_code_object(chip: str) -> None:
    found = rocdl_images.read(native(), image(f"rocdl:{chip}"))
    assert found is not None
    assert found.chips == (chip,)


@pytest.mark.parametrize("chip", ["gfx90a:xnack+", "gfx90a:xnack-", "gfx90a:sramecc+:xnack-"])
def test_a_code_object_may_need_settings_of_the_chip(chip: str, tmp_path: Path) -> None:
    data = clang_code_object(tmp_path, chip)
    found = rocdl_images.read(native(), data)
    assert found is not None
    assert found.chips == (chip,)
    # The target attribute names the chip alone: the bytes say more, and the runtime looks at it.
    source = binary(rocdl_object("gfx90a", data))
    assert held(built(source, tmp_path)) == [("rocdl", chip, "bin", data)]


def clang_code_object(folder: Path, chip: str) -> bytes:
    """The kernel as clang compiles it."""
    source = folder / "k.c"
    source.write_text(
        "__attribute__((device_kernel)) void k(float *p, float *q, long o, long n, long s, float a) { *q = a; }\n"
    )
    words = ["--target=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-nogpulib", "-mcode-object-version=5", "-fuse-ld=lld"]
    tool("clang", *words, source, "-o", folder / "k.hsaco")
    return (folder / "k.hsaco").read_bytes()


def test_every_processor_of_llvm_is_known() -> None:
    header = Path("/usr/lib/llvm-22/include/llvm/BinaryFormat/ELF.h").read_text()
    listed = re.findall(r"EF_AMDGPU_MACH_AMDGCN_GFX(\w+)\s*= 0x([0-9a-f]+)", header)
    assert len(listed) > 50
    for name, number in listed:
        data = bytearray(HSACO)
        data[48] = int(number, 16)
        found = rocdl_images.read(native(), bytes(data))
        assert found is not None
        assert found.chips == (f"gfx{name.lower().replace('_', '-')}",)
