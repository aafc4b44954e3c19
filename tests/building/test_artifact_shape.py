"""What a built library is: ELF headers, symbols, images of every vendor, reproducible bytes, nothing run on loading."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES, command, emit, on_host, program, python, tool

import offload
from offload import artifact
from offload.artifact import Image
from offload.compiler.output import write_atomically

EM_X86_64, EM_CUDA, EM_AMDGPU = 62, 190, 224
EF_AMDGPU_MACH_GFX942 = 0x04C


def header(data: bytes) -> tuple[int, int, int, int]:
    """OS ABI, ABI version, e_machine and e_flags of a 64-bit little-endian ELF file."""
    assert data[:6] == b"\x7fELF\x02\x01"
    (machine,) = struct.unpack_from("<H", data, 18)
    (flags,) = struct.unpack_from("<I", data, 48)
    return data[7], data[8], machine, flags


def images_of(path: Path) -> dict[str, Image]:
    """The images of a library with one module, by target."""
    return {image.target: image for image in artifact.read(path).images}


def test_cubins_are_what_they_say(built: dict[str, Path], tmp_path: Path) -> None:
    image = images_of(built["saxpy"])["nvvm"]
    assert (image.chip, image.format, image.triple) == ("sm_90", "bin", "nvptx64-nvidia-cuda")
    _, _, machine, flags = header(image.data)
    assert machine == EM_CUDA
    assert 90 in (flags & 0xFF, flags >> 8 & 0xFF)  # where the chip stands depends on the version of the ABI
    path = tmp_path / "saxpy.cubin"
    path.write_bytes(image.data)
    assert "NVIDIA CUDA architecture" in tool("llvm-readelf", "--file-header", path)
    assert re.search(r"FUNC +GLOBAL .* saxpy_kernel$", tool("llvm-readelf", "--symbols", path), re.MULTILINE)


def test_hsacos_are_what_they_say(built: dict[str, Path], tmp_path: Path) -> None:
    image = images_of(built["saxpy"])["rocdl"]
    assert (image.chip, image.format, image.triple) == ("gfx942", "bin", "amdgcn-amd-amdhsa")
    abi, version, machine, flags = header(image.data)
    assert (abi, machine, flags & 0xFF) == (64, EM_AMDGPU, EF_AMDGPU_MACH_GFX942)  # 64: ELFOSABI_AMDGPU_HSA
    assert version == 3  # code object version 5
    path = tmp_path / "saxpy.hsaco"
    path.write_bytes(image.data)
    text = tool("llvm-readelf", "--file-header", "--notes", "--symbols", path)
    assert "AMDGPU" in text
    assert re.search(r"Flags: +0x[0-9a-f]+, gfx942", text)
    assert "amdgcn-amd-amdhsa--gfx942" in text
    assert re.search(r"\.max_flat_workgroup_size: (256|1024)", text)
    assert re.search(r"saxpy_kernel$", text, re.MULTILINE)
    assert re.search(r"saxpy_kernel\.kd$", text, re.MULTILINE)


def test_host_images_are_small_libraries(built: dict[str, Path], tmp_path: Path) -> None:
    image = images_of(built["saxpy"])["host"]
    assert header(image.data)[2] == header(built["saxpy"].read_bytes())[2]
    path = tmp_path / "saxpy.so"
    path.write_bytes(image.data)
    text = tool("llvm-readelf", "--file-header", "--dyn-symbols", "--dynamic", path)
    assert "DYN (Shared object file)" in text
    assert "saxpy_kernel.info" in text
    assert set(re.findall(r"NEEDED.*\[(.*)\]", text)) <= {"libc.so.6", "libm.so.6"}


def test_llvm_lists_the_images(built: dict[str, Path]) -> None:
    text = tool("llvm-objdump", "--offloading", built["linear"])
    listed = re.findall(r"kind +(\S+)\narch +(\S+)\ntriple +(\S+)\nproducer +(\S+)", text)
    images = artifact.read(built["linear"]).images
    assert [(arch, triple) for _, arch, triple, _ in listed] == [(image.chip, image.triple) for image in images]
    assert {arch: kind for kind, arch, _, _ in listed if arch != images[2].chip} == {"sm_90": "cubin", "gfx942": "elf"}
    assert {(arch, producer) for _, arch, _, producer in listed} >= {("sm_90", "cuda"), ("gfx942", "hip")}


def test_libraries_need_libc_and_libm_alone(built: dict[str, Path]) -> None:
    for path in built.values():
        needed = re.findall(r"NEEDED.*\[(.*)\]", tool("llvm-readelf", "--dynamic", path))
        assert "libc.so.6" in needed
        assert set(needed) <= {"libc.so.6", "libm.so.6"}
        assert set(artifact.read(path).needed) == set(needed)


def exported(path: Path) -> set[str]:
    text = tool("llvm-readelf", "--dyn-symbols", path)
    rows = re.findall(r"^ *\d+: \w+ +\d+ \w+ +(?:GLOBAL|WEAK) +\w+ +(\w+) (\S+)$", text, re.MULTILINE)
    return {name.split("@")[0] for index, name in rows if index != "UND"}


def test_exported_symbols_are_the_programs(built: dict[str, Path]) -> None:
    own = {"offload_api", "offload_modules"}
    assert exported(built["saxpy"]) == own | {"saxpy", "_mlir_ciface_saxpy"}
    assert exported(built["linear"]) == own | {"linear_relu", "_mlir_ciface_linear_relu"}
    for path in built.values():
        assert not [name for name in exported(path) if name.startswith("mgpu")]


def test_private_functions_are_not_exported(tmp_path: Path) -> None:
    source = tmp_path / "p.mlir"
    source.write_text("""
      func.func private @helper(%x: i32) -> i32 {
        return %x : i32
      }
      func.func @f(%x: i32) -> i32 {
        %r = func.call @helper(%x) : (i32) -> i32
        return %r : i32
      }
    """)
    path = offload.build(source, tmp_path / "p.so")
    assert exported(path) == {"offload_api", "offload_modules", "f", "_mlir_ciface_f"}


def test_a_function_with_the_name_of_one_of_libc_is_itself() -> None:
    library = on_host("""
      func.func @getppid(%x: i32) -> i32 {
        %r = arith.addi %x, %x : i32
        return %r : i32
      }
      func.func @abs(%x: memref<?xi32>) -> index {
        %c0 = arith.constant 0 : index
        %n = memref.dim %x, %c0 : memref<?xi32>
        return %n : index
      }
    """)
    assert library.getppid(21) == 42
    assert library.functions["abs"](np.zeros(7, np.int32)) == 7


def test_nothing_runs_when_a_library_is_loaded(built: dict[str, Path]) -> None:
    for path in built.values():
        sections = tool("llvm-readelf", "--sections", path)
        for name in (".init_array", ".ctors", ".preinit_array"):
            size = re.search(rf" {re.escape(name)} +\S+ +\S+ \S+ (\S+)", sections)
            assert size is None or int(size.group(1), 16) == 0, sections
        assert "(INIT)" not in tool("llvm-readelf", "--dynamic", path)


def test_the_stack_is_not_executable(built: dict[str, Path]) -> None:
    for path in built.values():
        assert re.search(r"GNU_STACK .* RW ", tool("llvm-readelf", "--program-headers", path))


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    results = []
    for folder in ("one", "other/and/deeper"):
        (tmp_path / folder).mkdir(parents=True)
        source = tmp_path / folder / "linear.mlir"
        source.write_bytes((EXAMPLES / "linear.mlir").read_bytes())
        code = "import sys, offload; offload.build(sys.argv[1], sys.argv[2], targets=sys.argv[3:])"
        python(code, source, tmp_path / folder / "linear.so", *ALL_TARGETS, cwd=tmp_path / folder)
        results.append((tmp_path / folder / "linear.so").read_bytes())
    assert results[0] == results[1]
    assert str(tmp_path).encode() not in results[0]


LOADED = """
import re, sys, offload
{do}
maps = open("/proc/self/maps").read()
print(sorted(set(re.findall(r"lib(?:MLIR|LLVM|cuda|amdhip64|nvrtc|lld)\\w*|_native", maps))))
"""


def test_loading_and_running_load_no_compiler_and_no_driver(built: dict[str, Path], tmp_path: Path) -> None:
    load = "library = offload.load(sys.argv[1]); print(library.functions)"
    assert python(LOADED.format(do=load), built["saxpy"], cwd=tmp_path).endswith("\n[]\n")
    run = "import numpy as np; lib = offload.load(sys.argv[1]); lib.use('host'); lib.saxpy(1, *np.ones((2, 9), 'f4'))"
    assert python(LOADED.format(do=run), built["saxpy"], cwd=tmp_path) == "[]\n"


def test_building_loads_the_compiler_where_it_builds(tmp_path: Path) -> None:
    """In a worker, as a rule."""
    do = "offload.build(sys.argv[1], 'out.so', cache=False)"
    for isolated in ("1", "0"):
        variables = {"OFFLOAD_ISOLATE": isolated}
        loaded = python(LOADED.format(do=do), EXAMPLES / "saxpy.mlir", cwd=tmp_path, environment=variables)
        assert ("_native" in loaded) == (isolated == "0")


# Formats.


@pytest.mark.parametrize(
    ("target", "suffix", "magic"),
    [
        ("nvvm:sm_90,format=bin", ".cubin", b"\x7fELF"),
        ("nvvm:sm_90,format=isa", ".ptx", b"//"),
        ("nvvm:sm_90,format=fatbin", ".fatbin", b"\x50\xed\x55\xba"),
        ("nvvm:sm_90,format=offload", ".bc", b"BC\xc0\xde"),
        ("rocdl:gfx942,format=bin", ".hsaco", b"\x7fELF"),
        ("rocdl:gfx942,format=isa", ".s", b"\t.amdgcn_target"),
        ("rocdl:gfx942,format=fatbin", ".fatbin", b"__CLANG_OFFLOAD_BUNDLE__"),
        ("rocdl:gfx942,format=offload", ".bc", b"BC\xc0\xde"),
        ("host:format=bin", ".o", b"\x7fELF"),
        ("host:format=isa", ".s", b"\t"),
        ("host:format=offload", ".bc", b"BC\xc0\xde"),
    ],
)
def test_formats(tmp_path: Path, target: str, suffix: str, magic: bytes) -> None:
    path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", targets=[target])
    found = artifact.read(path)
    (image,) = found.images
    assert image.data.lstrip(b"\n").startswith(magic)
    assert image.format == target.partition("format=")[2]
    (extracted,) = artifact.extract(found, tmp_path / "images")
    assert extracted.name == f"saxpy_kernel.{image.target}.{image.chip}{suffix}"
    assert extracted.read_bytes() == image.data
    if suffix == ".bc":
        assert "saxpy_kernel" in tool("llvm-dis", extracted, "-o", "-")
    if suffix == ".ptx":
        assert re.search(rb"\.target sm_90\b.*\.visible \.entry saxpy_kernel\(", image.data, re.DOTALL)


def test_fat_binaries_hold_machine_code_and_assembly(tmp_path: Path) -> None:
    (item,) = emit(EXAMPLES / "saxpy.mlir", "fat", ["nvvm:sm_90,format=fatbin"])
    assert b"\x7fELF" in item.data
    (bundle,) = emit(EXAMPLES / "saxpy.mlir", "fat", ["rocdl:gfx942,format=fatbin"])
    path = tmp_path / "saxpy.hipfb"
    path.write_bytes(bundle.data)
    (count,) = struct.unpack_from("<Q", bundle.data, 24)
    assert count == 2
    assert b"hipv4-amdgcn-amd-amdhsa--gfx942" in bundle.data
    position = bundle.data.index(b"\x7fELF")
    assert position % 4096 == 0
    assert header(bundle.data[position:])[2:] == (EM_AMDGPU, header(images_hsaco())[3])


def images_hsaco() -> bytes:
    (item,) = emit(EXAMPLES / "saxpy.mlir", "object", ["rocdl:gfx942"])
    return item.data


def test_wave_size_is_in_the_code() -> None:
    for spec, size in (("rocdl:gfx1100", 32), ("rocdl:gfx1100,wave64", 64), ("rocdl:gfx942", 64)):
        (item,) = emit(EXAMPLES / "reduce.mlir", "isa", [spec])
        assert f".wavefront_size: {size}" in item.data.decode()


def test_resources_of_kernels(built: dict[str, Path]) -> None:
    found = artifact.describe(artifact.read(built["transpose"]))
    resources = {image["target"]: image["resources"].get("transpose_tile", {}) for image in found["images"]}
    tile = 32 * 33 * 4
    assert resources["nvvm"]["registers"] > 0
    assert resources["nvvm"]["spill_store_bytes"] == 0
    assert resources["nvvm"]["shared_bytes"] >= tile
    assert tile in resources["rocdl"].values()


# The runtime as a library of its own.


def test_a_shared_runtime(tmp_path: Path) -> None:
    path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", runtime="shared")
    needed = re.findall(r"NEEDED.*\[(.*)\]", tool("llvm-readelf", "--dynamic", path))
    assert [name for name in needed if name.startswith("libmgpu.so")]
    assert exported(path) == {"offload_modules", "saxpy", "_mlir_ciface_saxpy"}
    code = """
import sys, numpy as np, offload
library = offload.load(sys.argv[1])
library.use("host")
x, y = np.arange(300, dtype="f4"), np.ones(300, "f4")
library.saxpy(3, x, y)
assert (y == 3 * x + 1).all()
print(library.metadata.runtime)
"""
    assert python(code, path, cwd=tmp_path) == "shared\n"


def test_the_library_calls_from_c(built: dict[str, Path], tmp_path: Path) -> None:
    """Functions keep MLIR's own calling convention as well: expanded descriptors."""
    library = ctypes.CDLL(str(built["saxpy"]))
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    memref = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 3
    library.saxpy.argtypes = [ctypes.c_float, *memref, *memref]
    arguments = [value for a in (x, y) for value in (a.ctypes.data, a.ctypes.data, 0, 5, 1)]
    python_side = offload.load(built["saxpy"])
    python_side.use("host")
    library.saxpy(2.0, *arguments)
    np.testing.assert_array_equal(y, 2 * x + 1)


def test_two_libraries_in_one_process_do_not_meet(built: dict[str, Path]) -> None:
    first, second = offload.load(built["saxpy"]), program("ids")
    first.use("host")
    out = np.zeros((4, 13), np.int64)
    x = np.ones(4, np.float32)
    first.saxpy(1, x, x.copy())
    second.kernels.all[1, 4](out)
    assert out[:, 0].tolist() == [0, 1, 2, 3]


def test_object_files_of_the_host_are_linked_in(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "twice.c").write_text("int twice(int x) { return 2 * x; }\n")
    subprocess.run(["cc", "-c", "-fPIC", "twice.c"], cwd=tmp_path, check=True)
    source = tmp_path / "p.mlir"
    source.write_text("""
      func.func private @twice(i32) -> i32
      func.func @f(%x: i32) -> i32 {
        %r = func.call @twice(%x) : (i32) -> i32
        return %r : i32
      }
    """)
    path = offload.build(source, tmp_path / "p.so", objects=[tmp_path / "twice.o"])
    assert offload.load(path).f(21) == 42
    with pytest.raises(offload.LinkError, match=r"(?s)undefined symbol: twice.*calls functions that nothing defines"):
        offload.build(source, tmp_path / "q.so")


def test_bitcode_is_linked_into_device_code(tmp_path: Path) -> None:
    source = tmp_path / "p.mlir"
    source.write_text("""gpu.module @m {
      llvm.func @thrice(i32) -> i32
      gpu.func @k(%x: memref<?xi32>) kernel {
        %t = gpu.thread_id x
        %v = memref.load %x[%t] : memref<?xi32>
        %r = llvm.call @thrice(%v) : (i32) -> i32
        memref.store %r, %x[%t] : memref<?xi32>
        gpu.return
      }
    }
    """)
    (tmp_path / "l.ll").write_text("define i32 @thrice(i32 %x) {\n  %r = mul i32 %x, 3\n  ret i32 %r\n}\n")
    tool("llvm-as", tmp_path / "l.ll", "-o", tmp_path / "l.bc")
    path = offload.build(source, tmp_path / "p.so", targets=ALL_TARGETS, link=[tmp_path / "l.bc"])
    library = offload.load(path)
    library.use("host")
    x = np.arange(10, dtype=np.int32)
    library.kernels.k[1, 10](x)
    np.testing.assert_array_equal(x, 3 * np.arange(10))


def test_a_built_library_is_readable_by_all_that_may_read(tmp_path: Path) -> None:
    path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so")
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o777 & ~umask
    assert [entry.name for entry in tmp_path.iterdir()] == ["saxpy.so"]


def test_other_threads_keep_their_umask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is the process's: to ask for it by setting it gives away what another thread makes at that moment."""
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", None)
            write_atomically(tmp_path / "x.so", b"library")
    finally:
        os.umask(before)
    assert (tmp_path / "x.so").stat().st_mode & 0o777 == 0o750


def test_command_and_function_build_the_same(tmp_path: Path) -> None:
    offload.build(EXAMPLES / "reduce.mlir", tmp_path / "reduce.so", targets=["host", "nvvm:sm_90"])
    data = (tmp_path / "reduce.so").read_bytes()
    done = command(
        "build", EXAMPLES / "reduce.mlir", "-o", "reduce.so", "-t", "host", "-t", "nvvm:sm_90", "-q", cwd=tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "reduce.so").read_bytes() == data


def test_amd_kernels_with_a_known_block_size_may_use_the_registers_for_it(built: dict[str, Path]) -> None:
    """saxpy launches blocks of 256; code for blocks of 1024 has a quarter of the registers per thread."""
    images = {info.target: info for info in artifact.read(built["saxpy"]).metadata.images}
    assert images["rocdl"].resources["saxpy_kernel"]["max_threads"] == 256
