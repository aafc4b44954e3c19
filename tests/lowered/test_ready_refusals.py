"""Compiled code that is broken, for another vendor or not what a program says: errors at its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from compiling import command
from offload.targets import nvvm_images, rocdl_images
from ready import (
    BODY,
    BUNDLE,
    CUBIN,
    FATBIN,
    HSACO,
    LAUNCH,
    PTX,
    SOURCE,
    annotated,
    binary,
    built,
    held,
    nvvm_object,
    refusal,
    rocdl_object,
)

import offload
from offload.compiler.native import native
from offload.errors import CompileError


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"nvvm.cubin": b"CUBIN"}, "the attribute 'nvvm.cubin' holds no code for nvvm; it begins with the bytes 43"),
        ({"nvvm.cubin": b""}, "the attribute 'nvvm.cubin' is empty"),
        ({"nvvm.cubin": HSACO}, "the attribute 'nvvm.cubin' holds no code for nvvm but for rocdl; it begins with"),
        ({"nvvm.cubin": CUBIN[:-1]}, "the attribute 'nvvm.cubin' holds a damaged cubin: "),
        ({"nvvm.cubin": CUBIN[:200]}, "the attribute 'nvvm.cubin' holds a damaged cubin: "),
        ({"nvvm.cubin": FATBIN[:-1]}, "the attribute 'nvvm.cubin' holds a fat binary that should have "),
        ({"nvvm.cubin": FATBIN[:9]}, "the attribute 'nvvm.cubin' holds a fat binary that ends inside its header"),
        ({"nvvm.cubin": b".version 8.0\n"}, "the attribute 'nvvm.cubin' holds PTX without a .target"),
        (
            {"nvvm.cubin": CUBIN[:16] + b"\1" + CUBIN[17:]},
            "the attribute 'nvvm.cubin' holds a cubin that is not linked",
        ),
        (
            {"nvvm.cubin": CUBIN[:19]},
            "the attribute 'nvvm.cubin' holds an ELF file that ends inside its header: it was c",
        ),
        (
            {"nvvm.cubin": PTX[:-4]},
            "the attribute 'nvvm.cubin' holds PTX that ends inside a function, or has lost a pa",
        ),
        ({"rocdl.hsaco": HSACO[:19]}, "the attribute 'rocdl.hsaco' holds an ELF file that ends inside its header: it"),
        ({"rocdl.hsaco": CUBIN}, "the attribute 'rocdl.hsaco' holds no code for rocdl but for nvvm; it begins with"),
        ({"rocdl.hsaco": HSACO[:-1]}, "the attribute 'rocdl.hsaco' holds a damaged code object: "),
        ({"rocdl.hsaco": HSACO[:16] + b"\1" + HSACO[17:]}, "the attribute 'rocdl.hsaco' holds a code object that is n"),
        ({"rocdl.hsaco": HSACO[:48] + b"\1" + HSACO[49:]}, "the attribute 'rocdl.hsaco' holds a code object for an u"),
        ({"rocdl.hsaco": BUNDLE[:-1]}, "the attribute 'rocdl.hsaco' holds a damaged offload bundle"),
        ({"rocdl.hsaco": BUNDLE[:30]}, "the attribute 'rocdl.hsaco' holds a damaged offload bundle"),
        ({"rocdl.hsaco": b"CCOB\2\0"}, "the attribute 'rocdl.hsaco' holds a compressed offload bundle: unpack it"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value.replace("the attribute ", "")[:50],
)
def test_broken_bytes_are_errors_at_the_module(attributes: dict[str, bytes], message: str) -> None:
    found, line = refusal(annotated(attributes))
    assert found.startswith(message)
    assert line == 2


def test_a_cut_image_is_said_to_be_damaged() -> None:
    for attribute, data, what in (("nvvm.cubin", CUBIN, "cubin"), ("rocdl.hsaco", HSACO, "code object")):
        message, line = refusal(annotated({attribute: data[:-1]}))
        assert message.startswith(
            f"the attribute '{attribute}' holds a damaged {what}: of its {len(data) - 1} bytes some are missing or "
            "changed; make it anew (what does not fit: "
        )
        assert line == 2


def test_changed_metadata_of_a_code_object() -> None:
    """Every byte of the metadata changed in turn: an error or the author's bytes, never the end of the process."""
    start = HSACO.index(b"amdhsa.kernels") - 2
    for position in range(start, HSACO.index(b"amdhsa.version", start)):
        for value in (0xC1, 0x82, 0x93, 0xFF, 0xDF):
            changed = HSACO[:position] + bytes([value]) + HSACO[position + 1 :]
            try:
                found = rocdl_images.read(native(), changed)
            except CompileError as error:
                assert str(error).startswith("a damaged code object: ")
            else:
                assert found is not None
                assert found.image.data == changed


def test_no_cut_of_an_image_is_taken() -> None:
    for data, read in ((CUBIN, nvvm_images.read), (HSACO, rocdl_images.read), (BUNDLE, rocdl_images.read)):
        for size in [*range(0, len(data), 97), len(data) - 1]:
            try:
                assert read(native(), data[:size]) is None
            except CompileError:
                continue


SPIRV = '#gpu.object<#spirv.target_env<#spirv.vce<v1.0, [Shader], []>, #spirv.resource_limits<>>, bin = "abc">'


@pytest.mark.parametrize(
    ("objects", "handler", "message"),
    [
        ([nvvm_object("sm_80", CUBIN)], "", '#nvvm.target<chip = "sm_80"> holds code for sm_90, not for sm_80'),
        ([rocdl_object("gfx90a", HSACO)], "", '#rocdl.target<chip = "gfx90a"> holds code for gfx942, not for gfx90a'),
        ([rocdl_object("gfx90a", CUBIN)], "", '#rocdl.target<chip = "gfx90a"> holds no code for rocdl but for nvvm'),
        ([rocdl_object("gfx90a", BUNDLE)], "", "holds code for gfx942, not for gfx90a: correct the chip"),
        ([nvvm_object("sm_90", b"x", "")], "", "holds no code for nvvm; it begins with the bytes 78"),
        (
            [nvvm_object("sm_90", b"abc", "offload = ")],
            "",
            "should be LLVM bitcode (offload = …), and its bytes are not",
        ),
        (
            [nvvm_object("sm_90", PTX, "assembly = ", "properties = {O = 9 : i32}, ")],
            "",
            "O of assembly is 0 to 4, not 9",
        ),
        ([SPIRV], "", "would run nowhere: there are the targets host, nvvm, rocdl; take it out, or choose another"),
        ([nvvm_object("sm_90", CUBIN), SPIRV], "", "#spirv.resource_limits<>> would run nowhere"),
        (['#gpu.object<#xevm.target, bin = "abc">'], "", "the object for #xevm.target would run nowhere"),
        ([nvvm_object("sm_90", CUBIN)], "<#gpu.select_object<1>>", "chooses object 1, but there are 1, counted from 0"),
        ([nvvm_object("sm_90", CUBIN)], "<#gpu.select_object<#nvvm.target>>", "but no object is for that target"),
        (
            [nvvm_object("sm_90", CUBIN, more='kernels = <[#gpu.kernel_metadata<"z", () -> ()>]>, ')],
            "",
            "the compiled code of 'm' for nvvm:sm_90 has no kernel 'z'; it has: k",
        ),
    ],
)
def test_wrong_objects_are_errors_at_the_binary(objects: list[str], handler: str, message: str) -> None:
    found, line = refusal(binary(*objects, handler=handler))
    assert message in found
    assert line == 2


def test_an_object_that_is_not_chosen_does_not_matter(tmp_path: Path) -> None:
    source = binary(SPIRV, nvvm_object("sm_90", CUBIN), handler="<#gpu.select_object<1>>")
    assert held(built(source, tmp_path)) == [("nvvm", "sm_90", "bin", CUBIN)]


def test_a_launch_of_a_kernel_that_is_not_there() -> None:
    source = binary(nvvm_object("sm_90", CUBIN), launch=LAUNCH.replace("@k", "@other"))
    message, line = refusal(source)
    assert message == "the compiled code of 'm' for nvvm:sm_90 has no kernel 'other'; it has: k"
    assert source.splitlines()[line - 1].endswith("// launch")


def test_other_values_of_the_attributes(tmp_path: Path) -> None:
    source = annotated({"nvvm.cubin": b""}).replace('nvvm.cubin = ""', "nvvm.cubin = 3")
    assert refusal(source) == ("the attribute 'nvvm.cubin' should hold compiled code, as a string", 2)
    with pytest.raises(CompileError, match=r"no gpu\.module has the attribute 'my.cod', which was said to hold"):
        offload.compile(annotated({"my.code": CUBIN}, BODY), gpu_binary_annotation=["my.cod"])


def test_an_error_shows_no_more_than_a_piece_of_a_binary() -> None:
    with pytest.raises(CompileError) as caught:
        offload.compile(binary(nvvm_object("sm_80", CUBIN)))
    assert len(str(caught.value)) < 600


def test_a_target_that_cannot_tell_whose_code_is_whose_costs_the_others_nothing(tmp_path: Path) -> None:
    """Programs that carry compiled code of another vendor's ended with its error."""
    information = tmp_path / "blind-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: blind\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[offload.targets]\nblind = blind_target:BlindTarget\n")
    (tmp_path / "blind_target.py").write_text(
        "from dataclasses import dataclass\nfrom offload.targets import Target\n\n@dataclass(frozen=True)\n"
        "class BlindTarget(Target):\n    name = 'blind'\n"
        "    chip_of = ready_image = classmethod(lambda cls, *arguments: 1 / 0)\n"
    )
    given = {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))}

    def said(program: str, *targets: str) -> tuple[int, str]:
        (tmp_path / "p.mlir").write_text(program)
        done = command("build", "-q", "p.mlir", "-o", "p.so", *targets, cwd=tmp_path, environment=given)
        return done.returncode, done.stderr

    assert said(binary(nvvm_object("sm_90", CUBIN))) == (0, "")
    assert said(annotated({"my.code": CUBIN}), "-t", "nvvm:sm_90", "--gpu-binary-annotation", "my.code") == (0, "")
    why = "target 'blind' does not work: blind_target.BlindTarget.{}() raises ZeroDivisionError: division by zero"
    assert said(binary(SPIRV), "-t", "host") == (2, f"offload: error: {why.format('chip_of')}\n")
    broken = annotated({"my.code": b"what is it"})
    assert said(broken, "-t", "host", "--gpu-binary-annotation", "my.code") == (
        2,
        f"offload: error: {why.format('ready_image')}\n",
    )
    wrong = "error: the attribute 'nvvm.cubin' holds no code for nvvm; it begins with the bytes 77"
    code, text = said(annotated({"nvvm.cubin": b"what is it"}), "-t", "host")
    assert (code, wrong in text) == (1, True)
    attached = SOURCE.replace(
        "@m {",
        '@m [#nvvm.target<chip = "sm_90">, #spirv.target_env<#spirv.vce<v1.0, [], []>, #spirv.resource_limits<>>] {',
    )
    code, text = said(attached)
    assert (code, "gpu.module @m gets no image for" in text) == (0, True)
