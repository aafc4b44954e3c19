"""Programs that carry compiled code: what becomes an image, with which bytes, for which targets and kernels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from compiling import command, tool
from offload.targets import registry
from ready import (
    BODY,
    BUNDLE,
    CUBIN,
    FATBIN,
    HSACO,
    LAUNCH,
    OLDER,
    PTX,
    SOURCE,
    annotated,
    binary,
    built,
    bundled,
    escaped,
    held,
    image,
    nvvm_object,
    refusal,
    rocdl_object,
)

import offload
from offload import artifact
from offload.compiler.native import native

# Which images, and their bytes.


def test_bitcode_is_taken_whole_or_not_at_all(tmp_path: Path) -> None:
    (made,) = built(SOURCE, tmp_path, targets=["nvvm:sm_90,format=offload"]).images
    found = built(binary(nvvm_object("sm_90", made.data, "offload = "), nvvm_object("sm_90", CUBIN)), tmp_path)
    assert held(found) == [("nvvm", "sm_90", "offload", made.data), ("nvvm", "sm_90", "bin", CUBIN)]
    for damaged in (made.data[: len(made.data) // 2], made.data[:-4], made.data[:600] + bytes(40) + made.data[640:]):
        message, line = refusal(binary(nvvm_object("sm_90", damaged, "offload = "), nvvm_object("sm_90", CUBIN)))
        assert "is damaged bitcode, or of a later LLVM than 22: " in message
        assert line == 2


def test_every_object_becomes_an_image_with_its_bytes(tmp_path: Path) -> None:
    objects = [
        nvvm_object("sm_90", CUBIN),
        nvvm_object("sm_80", OLDER),
        nvvm_object("sm_90", PTX, "assembly = ", "properties = {O = 2 : i32}, "),
        nvvm_object("sm_90", FATBIN, ""),
        rocdl_object("gfx942", HSACO),
        rocdl_object("gfx942", BUNDLE, ""),
    ]
    found = built(binary(*objects), tmp_path)
    assert held(found) == [
        ("nvvm", "sm_90", "bin", CUBIN),
        ("nvvm", "sm_80", "bin", OLDER),
        ("nvvm", "sm_90", "isa", PTX),
        ("nvvm", "sm_90", "fatbin", FATBIN),
        ("rocdl", "gfx942", "bin", HSACO),
        ("rocdl", "gfx942", "fatbin", BUNDLE),
    ]
    assert [image.jit_level for image in found.images] == [None, None, 2, None, None, None]
    assert all(image.kernels == ("k",) for image in found.images)
    # Three of them are also what a compilation would make: the same resources are told.
    cubin, hsaco = found.metadata.images[0].resources["k"], found.metadata.images[4].resources["k"]
    compiled = built(SOURCE, tmp_path, targets=["nvvm:sm_90", "rocdl:gfx942"]).metadata.images
    assert cubin.items() <= compiled[0].resources["k"].items()
    assert set(cubin) == {"registers", "stack_bytes", "shared_bytes"}
    assert hsaco == compiled[1].resources["k"]


def test_what_gpu_module_to_binary_makes_is_taken(tmp_path: Path) -> None:
    """In each of its formats, as text and as bytecode, with its kernel tables and wall-clock properties."""
    source = tmp_path / "source.mlir"
    source.write_text(annotated({}, "llvm.func @k(%p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {llvm.return}\n",
        'gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%p : !llvm.ptr)')
        .replace("attributes {} ", "").replace("%x: memref<?xf32>, %a: f32", "%p: !llvm.ptr"))  # fmt: skip
    toolkit = next(found.path for found in registry().get("nvvm").toolkit() if "ptxas" in found.what)
    assert toolkit is not None
    formats = {"llvm": "offload", "isa": "isa", "bin": "bin", "fatbin": "fatbin"}
    for word, form in formats.items():
        steps = f"gpu-module-to-binary{{toolkit={toolkit.parent.parent} format={word}}}"
        pipeline = f"--pass-pipeline=builtin.module(nvvm-attach-target{{chip=sm_90}},{steps})"
        for flags in ([], ["--emit-bytecode"]):
            made = tmp_path / "made.mlir"
            tool("mlir-opt", source, pipeline, *flags, "-o", made)
            found = artifact.read(offload.build(made, tmp_path / "made.so"))
            assert [(i.target, i.chip, i.format) for i in found.images] == [("nvvm", "sm_90", form)]
            assert [kernel.name for kernel in found.metadata.kernels] == ["k"]


def test_amd_objects_of_gpu_module_to_binary_are_taken(tmp_path: Path) -> None:
    """MLIR looks for AMD's device libraries and the linker below one folder; its kernel table has the arguments."""
    libraries = next(found.path for found in registry().get("rocdl").toolkit())
    assert libraries is not None
    (tmp_path / "amdgcn").mkdir()
    (tmp_path / "amdgcn" / "bitcode").symlink_to(libraries.parent)
    (tmp_path / "llvm" / "bin").mkdir(parents=True)
    (tmp_path / "llvm" / "bin" / "ld.lld").symlink_to("/usr/lib/llvm-22/bin/ld.lld")
    source = tmp_path / "source.mlir"
    source.write_text(
        "gpu.module @m [#rocdl.target<chip = \"gfx90a\">] {\n"
        "llvm.func @k(%p: !llvm.ptr, %a: f32) attributes {gpu.kernel, rocdl.kernel} {llvm.return}\n}\n"
    )  # fmt: skip
    made = tmp_path / "made.mlir"
    steps = f"gpu-module-to-binary{{toolkit={tmp_path} format=fatbin}}"
    tool("mlir-opt", source, f"--pass-pipeline=builtin.module({steps})", "-o", made)
    found = artifact.read(offload.build(made, tmp_path / "made.so"))
    assert [(i.target, i.chip, i.format, i.kernels) for i in found.images] == [("rocdl", "gfx90a", "bin", ("k",))]
    (kernel,) = found.metadata.kernels
    assert [argument.dtype for argument in kernel.args] == ["uint64", "float32"]
    assert found.metadata.images[0].resources["k"]["wavefront_size"] == 64


@pytest.mark.parametrize(
    ("handler", "chips"),
    [
        ("", ["sm_90", "gfx942"]),
        ("<#gpu.select_object>", ["sm_90", "gfx942"]),
        ("<#gpu.select_object<1>>", ["gfx942"]),
        ('<#gpu.select_object<#nvvm.target<chip = "sm_90">>>', ["sm_90"]),
    ],
)
def test_an_author_may_choose_one_object(handler: str, chips: list[str], tmp_path: Path) -> None:
    source = binary(nvvm_object("sm_90", CUBIN), rocdl_object("gfx942", HSACO), handler=handler)
    assert [image.chip for image in built(source, tmp_path).images] == chips


def test_attributes_hold_the_image_and_the_body_the_source(tmp_path: Path) -> None:
    source = annotated({"nvvm.cubin": CUBIN, "rocdl.hsaco": HSACO}, BODY)
    found = built(source, tmp_path, targets=["nvvm:sm_80", "nvvm:sm_90,O=1", "host"])
    # The image that is there is taken for sm_90, in spite of the options; the others are compiled.
    assert [(i.target, i.chip) for i in found.images] == [
        ("nvvm", "sm_90"), ("rocdl", "gfx942"), ("nvvm", "sm_80"), ("host", found.images[3].chip)
    ]  # fmt: skip
    assert [image.data for image in found.images[:2]] == [CUBIN, HSACO]
    assert found.images[2].data == OLDER


IN_ONE_LINE = b" ".join(line.partition(b"//")[0].strip() for line in PTX.splitlines())


def test_ptx_is_read_as_ptxas_reads_it() -> None:
    """Any space is as good as another; what is in comments and strings is silent."""
    text = (
        b'/* .target sm_10 { */ .version 8.0 .target sm_90 .address_size 64 .file 1 "{ .entry no" // .entry neither {\n'
        b".visible .entry a(.param .u32 n) { ret; }.entry b(.param .u64 p, .param .f32 x) { ret; }"
    )
    ready = registry().get("nvvm").ready_image(native(), text)
    assert ready is not None
    assert (ready.format, ready.chips, ready.kernels) == ("isa", ("sm_90",), ("a", "b"))
    assert ready.parameters == {"a": (4,), "b": (8, 4)}


@pytest.mark.parametrize(
    ("data", "target", "chip", "form"),
    [
        (CUBIN, "nvvm", "sm_90", "bin"),
        (PTX, "nvvm", "sm_90", "isa"),
        (PTX + b"\0", "nvvm", "sm_90", "isa"),
        (IN_ONE_LINE, "nvvm", "sm_90", "isa"),
        (FATBIN, "nvvm", "sm_90", "fatbin"),
        (HSACO, "rocdl", "gfx942", "bin"),
        (image("rocdl:gfx942", "isa"), "rocdl", "gfx942", "isa"),
    ],
    ids=["cubin", "PTX", "PTX with its end", "PTX in one line", "fatbin", "hsaco", "AMD assembly"],
)
def test_the_bytes_of_any_annotation_tell_what_they_are(
    data: bytes, target: str, chip: str, form: str, tmp_path: Path
) -> None:
    found = built(annotated({"my.code": data}), tmp_path, gpu_binary_annotation="my.code")
    assert held(found) == [(target, chip, form, data)]
    assert found.images[0].kernels == ("k",)


def test_a_bundle_in_an_attribute_is_unpacked(tmp_path: Path) -> None:
    """HIP takes a bundle too, but an image of the library is for one chip."""
    other = image("rocdl:gfx1100")
    bundle = bundled({"gfx942": HSACO, "gfx1100": other})
    found = built(annotated({"rocdl.hsaco": bundle}), tmp_path)
    assert held(found) == [("rocdl", "gfx942", "bin", HSACO), ("rocdl", "gfx1100", "bin", other)]


# Targets that are asked for.


def test_nobody_need_name_a_target(tmp_path: Path) -> None:
    """By default, and for native, what has no source is not compiled; a target that is named is an error."""
    source = binary(nvvm_object("sm_90", CUBIN))
    for targets in ([], ["native"], ["nvvm:sm_90"], ["native", "nvvm:sm_90"]):
        assert held(built(source, tmp_path, targets=targets)) == [("nvvm", "sm_90", "bin", CUBIN)]
    expected = r"'m' has no image for host:\S+ and no source to compile; it carries: nvvm:sm_90"
    for targets in (["host"], ["native", "host"]):
        message, line = refusal(source, targets=targets)
        assert re.fullmatch(expected, message)
        assert line == 2
    assert refusal(source, targets=["nvvm:sm_80"])[0].startswith("'m' has no image for nvvm:sm_80 and no source")


def test_a_target_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLOAD_TARGETS", "rocdl:gfx90a")
    assert refusal(binary(nvvm_object("sm_90", CUBIN)))[0].startswith("'m' has no image for rocdl:gfx90a")


def test_modules_with_and_without_source_in_one_program(tmp_path: Path) -> None:
    source = binary(nvvm_object("sm_90", CUBIN)).replace("func.func", SOURCE.split("{gpu.container_module} {")[1]
        .rsplit("}\n", 1)[0].replace("@m", "@other") + "func.func", 1)  # fmt: skip
    found = built(source, tmp_path)
    assert [(image.module, image.target) for image in found.images] == [("m", "nvvm"), ("other", "host")]


def test_two_programs_may_have_binaries_of_one_name(tmp_path: Path) -> None:
    paths = []
    for name, data in (("f", CUBIN), ("g", OLDER)):
        paths.append(tmp_path / f"{name}.mlir")
        chip = "sm_90" if data is CUBIN else "sm_80"
        paths[-1].write_text(binary(nvvm_object(chip, data)).replace("@f", f"@{name}"))
    found = artifact.read(offload.build(paths, tmp_path / "both.so"))
    assert [(image.module, image.data) for image in found.images] == [("m", CUBIN), ("m_0", OLDER)]
    assert [(kernel.module, kernel.name) for kernel in found.metadata.kernels] == [("m", "k"), ("m_0", "k")]


# Kernels and their arguments.


def test_arguments_come_from_the_launch(tmp_path: Path) -> None:
    for source in (binary(nvvm_object("sm_90", CUBIN)), annotated({"nvvm.cubin": CUBIN})):
        (kernel,) = built(source, tmp_path).metadata.kernels
        assert [(a.name, str(a), a.space) for a in kernel.args] == [
            ("x", "float32[?]", "device"),
            ("a", "float32", "any"),
        ]
    library = offload.compile(binary(nvvm_object("sm_90", CUBIN)))
    assert list(library.kernels) == ["k"]


def test_without_a_launch_the_kernel_table_tells(tmp_path: Path) -> None:
    table = 'kernels = <[#gpu.kernel_metadata<"k", !llvm.func<void (ptr, ptr, i64, i64, i64, f32)>>]>, '
    found = built(binary(nvvm_object("sm_90", CUBIN, more=table), launch=""), tmp_path)
    (kernel,) = found.metadata.kernels
    assert [str(argument) for argument in kernel.args] == ["pointer", "pointer", "int64", "int64", "int64", "float32"]


def test_arguments_that_nobody_tells_are_unknown(tmp_path: Path) -> None:
    """The image names the kernel; it cannot be called on its own."""
    found = built(binary(nvvm_object("sm_90", CUBIN), launch=""), tmp_path)
    assert found.images[0].kernels == ("k",)
    assert found.metadata.kernels == ()
    other = LAUNCH.replace("%x : memref<?xf32>, ", "")
    fat = nvvm_object("sm_90", FATBIN, "")  # whose bytes do not say what it takes
    found = built(binary(fat, launch=f"{LAUNCH}\n{other}"), tmp_path)
    assert found.metadata.kernels == ()


def test_a_kernel_of_compiled_code_keeps_its_name(tmp_path: Path) -> None:
    """Kernels of outlined modules are renamed where two have one name; compiled code knows the old name."""
    first = annotated({"nvvm.cubin": CUBIN}, BODY).replace("@m", "@k_0")
    second = SOURCE.split("{gpu.container_module} {")[1].rsplit("}\n", 1)[0].replace("@m", "@k_1")
    found = built(first.replace("func.func", second + "func.func", 1), tmp_path, targets=["nvvm:sm_90"])
    assert [(image.module, image.kernels) for image in found.images] == [("k_0", ("k",)), ("k_1", ("k_1",))]


# The host side: every form of launch.


@pytest.mark.parametrize(
    "launch",
    [
        "%t = gpu.wait async\n%s = " + LAUNCH.replace("launch_func", "launch_func async [%t]") + "\ngpu.wait [%s]",
        LAUNCH.replace("threads in", "threads in").replace(" args", " dynamic_shared_memory_size %z args"),
        LAUNCH.replace("launch_func @m", "launch_func <%q : !llvm.ptr> @m"),
        LAUNCH.replace("launch_func @m", "launch_func @m").replace(
            "blocks in", "clusters in (%c1, %c1, %c1) blocks in"
        ),
        f"scf.for %i = %c1 to %c4 step %c1 {{\n{LAUNCH}\n}}",
    ],
    ids=["async", "shared memory", "stream", "cluster", "loop"],
)
def test_every_form_of_launch(launch: str, tmp_path: Path) -> None:
    values = "%z = arith.constant 16 : i32\n%q = llvm.mlir.zero : !llvm.ptr\n"
    found = built(binary(nvvm_object("sm_90", CUBIN), launch=values + launch), tmp_path)
    assert held(found) == [("nvvm", "sm_90", "bin", CUBIN)]


def test_programs_of_the_llvm_dialect(tmp_path: Path) -> None:
    source = f"""
module attributes {{gpu.container_module}} {{
gpu.binary @m [{nvvm_object("sm_90", CUBIN)}]
llvm.func @f(%p: !llvm.ptr, %a: f32) attributes {{llvm.emit_c_interface}} {{
  %one = llvm.mlir.constant(1 : index) : i64
  gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) : i64
    args(%p : !llvm.ptr, %p : !llvm.ptr, %one : i64, %one : i64, %one : i64, %a : f32)
  llvm.return
}}
}}
"""
    found = built(source, tmp_path)
    assert held(found) == [("nvvm", "sm_90", "bin", CUBIN)]
    assert [str(a) for a in found.metadata.kernels[0].args] == [
        "pointer",
        "pointer",
        "int64",
        "int64",
        "int64",
        "float32",
    ]


# The command line.


def test_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(annotated({"my.code": CUBIN, "rocdl.hsaco": HSACO}))
    done = command("build", path, "-o", "p.so", "--gpu-binary-annotation", "my.code", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "taking the image of m for nvvm:sm_90" in done.stderr
    shown = command("inspect", "p.so", cwd=tmp_path).stdout
    assert "m::k(x: float32[?], a: float32)" in shown
    assert re.search(r"k: registers \d+, ", shown)
    assert re.search(r"k: .*\bvgpr \d+", shown)
    done = command("inspect", "p.so", "--extract", "out", cwd=tmp_path)
    assert (tmp_path / "out" / "m.nvvm.sm_90.cubin").read_bytes() == CUBIN
    assert (tmp_path / "out" / "m.rocdl.gfx942.hsaco").read_bytes() == HSACO
    done = command("build", path, "-t", "host", "--gpu-binary-annotation", "my.code", cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(r"^\S*p\.mlir:2:1: error: 'm' has no image for host:", done.stderr, re.MULTILINE)


def test_stages_show_the_images(tmp_path: Path) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(binary(nvvm_object("sm_90", CUBIN), nvvm_object("sm_90", PTX, "assembly = ")))
    command("build", path, "--emit", "object", "-o", "o", "-q", cwd=tmp_path)
    assert (tmp_path / "o" / "m.nvvm.sm_90.cubin").read_bytes() == CUBIN
    assert PTX.decode().strip() in command("build", path, "--emit", "isa", "-q", cwd=tmp_path).stdout
    text = command("build", path, "--emit", "host-llvm", "-q", cwd=tmp_path).stdout
    assert "offload_kernel.m.k" in text
    assert "ELF" not in text
    assert escaped(CUBIN)[:40] in command("build", path, "--emit", "input", "-q", cwd=tmp_path).stdout


def test_a_machine_without_that_device_says_so(tmp_path: Path) -> None:
    """The library has no image for the CPU, which is not used in the GPU's place."""
    library = offload.compile(binary(nvvm_object("sm_90", CUBIN)))
    library.use("host")
    with pytest.raises(
        offload.DeviceError, match=r'No image of gpu\.module "m" fits host:0\. Images: nvvm sm_90 bin'
    ) as said:
        library.f(np.zeros(4, np.float32), 1.0)
    assert str(said.value).endswith(". Build for this device, too: --target host.")
