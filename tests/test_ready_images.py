"""Programs that carry compiled code: what becomes an image, with which bytes, and what is refused where."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest
from compiling import command, tool
from offload.targets import nvvm_images, registry, rocdl_images
from ready import BODY, LAUNCH, SOURCE, annotated, binary, escaped, image, nvvm_object, rocdl_object

import offload
from offload import artifact
from offload.artifact import Artifact
from offload.compiler.native import native
from offload.errors import CompileError

CUBIN = image("nvvm:sm_90")
OLDER = image("nvvm:sm_80")
PTX = image("nvvm:sm_90", "isa")
FATBIN = image("nvvm:sm_90,format=fatbin", "fat")
HSACO = image("rocdl:gfx942")
BUNDLE = image("rocdl:gfx942,format=fatbin", "fat")
CHIP = re.compile(r"sm_\d+[af]?")


def built(source: str, folder: Path, **options: object) -> Artifact:
    """The program as a library on disk, read back."""
    path = folder / "program.mlir"
    path.write_text(source)
    return artifact.read(offload.build(path, folder / "program.so", **options))  # type: ignore[arg-type]


def held(found: Artifact) -> list[tuple[str, str, str, bytes]]:
    return [(image.target, image.chip, image.format, image.data) for image in found.images]


def refusal(source: str, **options: object) -> tuple[str, int]:
    """The first diagnostic of a program that cannot be built, and its line."""
    with pytest.raises(CompileError) as caught:
        offload.compile(source, **options)  # type: ignore[arg-type]
    first = caught.value.diagnostics[0]
    return first.message, first.line


# Which images, and their bytes.


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


@pytest.mark.parametrize(
    ("data", "target", "chip", "form"),
    [
        (CUBIN, "nvvm", "sm_90", "bin"),
        (PTX, "nvvm", "sm_90", "isa"),
        (PTX + b"\0", "nvvm", "sm_90", "isa"),
        (FATBIN, "nvvm", "sm_90", "fatbin"),
        (HSACO, "rocdl", "gfx942", "bin"),
        (image("rocdl:gfx942", "isa"), "rocdl", "gfx942", "isa"),
    ],
    ids=["cubin", "PTX", "PTX with its end", "fatbin", "hsaco", "AMD assembly"],
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


def bundled(images: dict[str, bytes]) -> bytes:
    """clang's offload bundle: a count, then offset, size, length of the id and the id for each; the host's is empty."""
    entries = {"host-x86_64-unknown-linux-gnu-": b""}
    entries |= {f"hipv4-amdgcn-amd-amdhsa--{chip}": data for chip, data in images.items()}
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    position = len(head) + sum(24 + len(name) for name in entries)
    body = b""
    for name, data in entries.items():
        head += struct.pack("<QQQ", position + len(body), len(data), len(name)) + name.encode()
        body += data
    return head + body


# Chips out of the bytes.


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


@pytest.mark.parametrize(
    ("features", "chip"),
    [("+xnack", "gfx90a:xnack+"), ("-xnack", "gfx90a:xnack-"), ("+sramecc,-xnack", "gfx90a:sramecc+:xnack-")],
)
def test_a_code_object_may_need_settings_of_the_chip(features: str, chip: str, tmp_path: Path) -> None:
    data = clang_code_object(tmp_path, chip)
    found = rocdl_images.read(native(), data)
    assert found is not None
    assert found.chips == (chip,)
    # The target attribute names the chip alone: the bytes say more, and the runtime looks at it.
    source = binary(rocdl_object("gfx90a", data))
    assert held(built(source, tmp_path)) == [("rocdl", chip, "bin", data)]
    assert features.split(",")[-1][1:] in chip


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
    assert [str(argument) for argument in kernel.args] == ["uint64", "uint64", "int64", "int64", "int64", "float32"]


def test_arguments_that_nobody_tells_are_unknown(tmp_path: Path) -> None:
    """The image names the kernel; it cannot be called on its own."""
    found = built(binary(nvvm_object("sm_90", CUBIN), launch=""), tmp_path)
    assert found.images[0].kernels == ("k",)
    assert found.metadata.kernels == ()
    other = LAUNCH.replace("%x : memref<?xf32>, ", "")
    found = built(binary(nvvm_object("sm_90", CUBIN), launch=f"{LAUNCH}\n{other}"), tmp_path)
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
        "uint64",
        "uint64",
        "int64",
        "int64",
        "int64",
        "float32",
    ]


# What is broken.


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
        ({"nvvm.cubin": b".version 8.0\n"}, "the attribute 'nvvm.cubin' holds PTX without a .target line"),
        (
            {"nvvm.cubin": CUBIN[:16] + b"\1" + CUBIN[17:]},
            "the attribute 'nvvm.cubin' holds a cubin that is not linked",
        ),
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
