"""Reading and writing artifacts: the container, the metadata, ELF files, and damage to each of them."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_artifact import CUBIN, IMAGES, link, meta_of

from offload.artifact import (
    Artifact,
    Image,
    Metadata,
    container,
    container_object,
    describe,
    elf,
    extract,
    read,
)
from offload.errors import ArtifactError, CompileError, DeviceError, Diagnostic, OffloadError, ToolkitError


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return link(tmp_path_factory.mktemp("artifact") / "blas.so", IMAGES)


# The container.

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0,"), min_size=1, max_size=12)
images = st.builds(
    Image,
    names,
    st.sampled_from(["nvvm", "rocdl", "host", "plugin"]),
    names,
    names,
    st.sampled_from(["bin", "isa", "offload", "fatbin"]),
    st.lists(names, max_size=3).map(tuple),
    st.binary(max_size=40),
    st.none() | st.integers(0, 4),
)


@given(st.lists(images, max_size=4))
def test_container_round_trip(written: list[Image]) -> None:
    data = container.write(written)
    assert container.read(data) == written
    assert container.write(written) == data
    assert len(data) % 8 == 0


@settings(max_examples=300)
@given(st.integers(0), st.binary(min_size=1, max_size=9), st.booleans())
def test_damaged_container(position: int, patch: bytes, cut: bool) -> None:
    data = container.write(IMAGES)
    position %= len(data)
    damaged = data[:position] if cut else data[:position] + patch + data[position + len(patch) :]
    try:
        found = container.read(damaged, "x.so")
    except ArtifactError as error:
        assert str(error).startswith("x.so: image ")
    else:
        assert all(isinstance(image, Image) for image in found)


@given(st.binary(max_size=200))
def test_noise_is_no_container(noise: bytes) -> None:
    if noise:
        with pytest.raises(ArtifactError):
            container.read(noise)


def test_every_cut_of_a_container_is_refused() -> None:
    data = container.write(IMAGES)
    whole = {0}
    for image in IMAGES:
        whole.add(max(whole) + len(container.write([image])))
    for size in range(len(data)):
        if size in whole:
            assert len(container.read(data[:size])) < len(IMAGES)
        else:
            with pytest.raises(ArtifactError):
                container.read(data[:size])


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, b"\0", "expected the magic bytes 10 ff 10 ad, found 00 ff 10 ad"),
        (4, b"\2", "expected version 1 of the container, found 2"),
        (8, b"\1\1", "its size is said to be"),
        (15, b"\x7f", "its size is said to be"),
        (16, b"\xff" * 8, "its entry should end at byte"),
        (24, b"\0", "expected an entry of at least 40 bytes"),
        (32, b"\1", "expected image kind 3 and offload kind 2 for nvvm bin, found 1 and 2"),
        (40, b"\xff" * 4, "its string table should end at byte"),
        (48, b"\5", "it has no kernels; it was not written by offload"),
        (48, b"\xff" * 8, "its string table should end at byte"),
        (64, b"\xff" * 8, "its image should end at byte"),
        (72, b"\xff" * 4, "a string at byte"),
        (168, b"\xff", "is not UTF-8"),
    ],
)
def test_what_a_damaged_container_says(offset: int, value: bytes, message: str) -> None:
    data = bytearray(container.write([CUBIN]))
    data[offset : offset + len(value)] = value
    with pytest.raises(ArtifactError) as caught:
        container.read(bytes(data))
    assert message in str(caught.value)


def test_what_is_read_is_copied_once() -> None:
    """Libraries may have images of many megabytes, and be loaded where there is little memory."""
    size = 10_000_000
    data = container.write([CUBIN._replace(data=bytes(size))])
    tracemalloc.start()
    try:
        assert len(container.read(data)[0].data) == size
        assert tracemalloc.get_traced_memory()[1] < 1.5 * size
    finally:
        tracemalloc.stop()


def test_names_that_a_container_cannot_hold() -> None:
    with pytest.raises(ArtifactError, match=r"'blas' has a kernel whose name is empty or has a comma"):
        container.write([Image("blas", "host", "c", "t", "bin", ("a,b",), b"")])
    with pytest.raises(ArtifactError, match="holds a NUL character"):
        container.write([Image("a\0b", "host", "c", "t", "bin", (), b"")])


@pytest.mark.parametrize(
    ("target", "form", "suffix", "kind"),
    [
        ("nvvm", "bin", ".cubin", container.IMG_CUBIN),
        ("nvvm", "isa", ".ptx", container.IMG_PTX),
        ("nvvm", "fatbin", ".fatbin", container.IMG_FATBINARY),
        ("nvvm", "offload", ".bc", container.IMG_BITCODE),
        ("rocdl", "bin", ".hsaco", container.IMG_OBJECT),
        ("rocdl", "isa", ".s", container.IMG_OBJECT),
        ("host", "bin", ".o", container.IMG_OBJECT),
        ("host", "isa", ".s", container.IMG_OBJECT),
        ("plugin", "bin", ".bin", container.IMG_OBJECT),
    ],
)
def test_suffix_and_kind(target: str, form: str, suffix: str, kind: int) -> None:
    image = Image("m", target, "chip", "t", form, (), b"")
    assert image.filename == f"m.{target}.chip{suffix}"
    assert struct.unpack_from("<H", container.write([image]), 32)[0] == kind


def test_llvm_lists_the_images(library: Path) -> None:
    objdump = shutil.which("llvm-objdump-22") or shutil.which("llvm-objdump")
    assert objdump, "llvm-objdump is not installed; scripts/setup_system.sh installs it"
    listing = subprocess.run([objdump, "--offloading", library], check=True, capture_output=True, text=True).stdout
    fields = [line.split() for line in listing.splitlines() if line and " " in line]
    assert [f[1] for f in fields if f[0] == "kind"] == ["cubin", "elf", "elf", "ptx"]
    assert [f[1] for f in fields if f[0] == "arch"] == [image.chip for image in IMAGES]
    assert [f[1] for f in fields if f[0] == "triple"] == [image.triple for image in IMAGES]
    assert [f[1] for f in fields if f[0] == "producer"] == ["cuda", "hip", "none", "cuda"]


# ELF files and whole artifacts.


def check(artifact: Artifact) -> None:
    assert artifact.images == tuple(IMAGES)
    assert artifact.metadata == meta_of(IMAGES)
    assert artifact.machine == 62


def test_read(library: Path) -> None:
    artifact = read(library)
    check(artifact)
    assert artifact.path == library


def test_linkers_keep_what_nothing_refers_to(tmp_path: Path) -> None:
    check(read(link(tmp_path / "bfd.so", IMAGES, "-Wl,--gc-sections", "-s")))
    obj = tmp_path / "bfd.o"
    shared = tmp_path / "lld.so"
    subprocess.run(["ld.lld-22", "-shared", "--gc-sections", "--icf=all", "-o", shared, obj], check=True)
    check(read(shared))


def test_no_images(tmp_path: Path) -> None:
    assert read(link(tmp_path / "none.so", [])).images == ()


def test_needed(tmp_path: Path) -> None:
    artifact = read(link(tmp_path / "needs.so", IMAGES, "-Wl,--no-as-needed", "-lm"))
    assert "libm.so.6" in artifact.needed


def test_container_object_is_reproducible_and_checked() -> None:
    assert container_object(IMAGES, meta_of(IMAGES), 62) == container_object(IMAGES, meta_of(IMAGES), "x86_64")
    with pytest.raises(ArtifactError, match=r"expected one of the host machines x86_64, .*found 'vax'"):
        container_object([], Metadata(), "vax")
    with pytest.raises(ArtifactError, match=r"expected blas\.nvvm\.sm_90\.bin \(saxpy, dot\); found none"):
        container_object([], meta_of([CUBIN]), 62)


def test_object_symbols_and_sections() -> None:
    data = elf.relocatable_object(
        [elf.NewSection(".a", elf.SHT_PROGBITS, elf.SHF_ALLOC, 16, b"aaa"),
         elf.NewSection(".b", elf.SHT_PROGBITS, elf.SHF_ALLOC, 64, b"bb")],
        [elf.NewSymbol("shared", 1, 1, 1), elf.NewSymbol("own", 0, 0, 3, elf.STB_LOCAL)], 62)  # fmt: skip
    file = elf.ElfFile(data, "new.o")
    assert [s.name for s in file.sections] == [
        "",
        ".a",
        ".b",
        ".note.GNU-stack",
        ".symtab",
        ".strtab",
        ".shstrtab",
    ]
    second = file.section(".b")
    assert second is not None
    assert file.contents(second) == b"bb"
    assert second.offset % 64 == 0
    assert file.needed() == []
    assert file.section(".c") is None


def test_every_cut_of_an_artifact_is_refused(library: Path) -> None:
    data = library.read_bytes()
    for size in range(len(data)):
        with pytest.raises(ArtifactError, match="not an ELF file" if size == 0 else "the file is truncated"):
            elf.ElfFile(data[:size], "x.so")
    with pytest.raises(ArtifactError, match=r"x\.so: .*should end at byte \d+, the file has 999 bytes"):
        elf.ElfFile(data[:999], "x.so")


def test_damaged_artifacts_raise_nothing_else(library: Path, tmp_path: Path) -> None:
    data = library.read_bytes()
    path = tmp_path / "damaged.so"
    dice = random.Random(1)
    for _ in range(600):
        damaged = bytearray(data)
        for _ in range(dice.randint(1, 4)):
            start = dice.choice([0, len(data) - 26 * 64, dice.randrange(len(data))])
            damaged[min(start + dice.randrange(64), len(data) - 1)] = dice.choice([0, 1, 255, dice.randrange(256)])
        path.write_bytes(damaged)
        try:
            read(path)
        except ArtifactError as error:
            assert str(path) in str(error)


def test_files_that_are_no_artifacts(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("hello world")
    with pytest.raises(ArtifactError, match=r"text\.so: not an ELF file: it starts with 68 65 6c 6c"):
        read(text)
    text.write_bytes(b"")
    with pytest.raises(ArtifactError, match="it starts with nothing"):
        read(text)
    with zipfile.ZipFile(tmp_path / "made-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("made/__init__.py", "")
    with pytest.raises(ArtifactError, match="it is a zip file, as wheels are: unpack it, and name a library"):
        read(tmp_path / "made-1-py3-none-any.whl")
    (tmp_path / "saxpy.mlir").write_text("func.func @f() { return }")
    (tmp_path / "bytecode").write_bytes(b"ML\xefR\r")
    for program in ("saxpy.mlir", "bytecode"):
        with pytest.raises(ArtifactError, match="it is a program of MLIR: offload build makes a library of it"):
            read(tmp_path / program)
    text.write_bytes(b"\x7fELF\1\1\1" + bytes(60))
    with pytest.raises(ArtifactError, match="expected a 64-bit little-endian ELF file of version 1, found class 1"):
        read(text)
    with pytest.raises(ArtifactError, match=r"missing\.so: cannot read the artifact: No such file"):
        read(tmp_path / "missing.so")
    (tmp_path / "app.pyz").touch()
    with pytest.raises(ArtifactError, match=r"\.so: .*/app\.pyz is a file; .*: install the package, or unpack it"):
        read(tmp_path / "app.pyz" / "package" / "kernels.offload.so")
    with pytest.raises(ArtifactError, match="cannot read the artifact: Is a directory"):
        read(tmp_path)
    plain = tmp_path / "plain.so"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", plain], check=True)
    with pytest.raises(ArtifactError, match=r"plain\.so: an ELF file, but not an artifact of offload"):
        read(plain)
    obj = tmp_path / "only.o"
    obj.write_bytes(container_object(IMAGES, meta_of(IMAGES), 62))
    with pytest.raises(ArtifactError, match="expected a shared library with a section"):
        read(obj)


def test_images_and_metadata_have_to_agree(tmp_path: Path) -> None:
    path = link(tmp_path / "swap.so", [CUBIN])
    data = path.read_bytes()
    at = data.index(b'"chip":"sm_90"')
    path.write_bytes(data[:at] + b'"chip":"sm_91"' + data[at + 14 :])
    with pytest.raises(ArtifactError, match="the metadata tells of other images than the container holds"):
        read(path)


def test_describe(library: Path) -> None:
    x = {"name": "x", "kind": "memref", "dtype": "float32", "rank": 2, "shape": [None, 4]}
    y = {"name": "y", "kind": "memref", "dtype": "complex64", "rank": 1, "shape": [8]}
    result = {"name": "", "kind": "scalar", "dtype": "int64", "rank": 0, "shape": []}
    told = describe(read(library))
    assert told["functions"] == [{"name": "f", "args": [x, y], "results": [result]}]
    flag = {"name": "a", "kind": "scalar", "dtype": "bool", "rank": 0, "shape": []}
    assert told["kernels"] == [{"name": "saxpy", "module": "blas", "args": [y, flag]}]
    assert told["images"][1] == {
        "target": "rocdl",
        "chip": "gfx942:sramecc+",
        "format": "bin",
        "size": 77,
        "kernels": ["saxpy", "dot"],
        "resources": {"saxpy": {"registers": 16}},
    }
    assert told["producer"] == {"name": "offload", "version": "1"}
    silent = [
        {"name": name, "module": image.module} for image in read(library).images[:1] for name in image.kernels[1:]
    ]
    assert told["without_signature"] == {"functions": ["images"], "kernels": silent}  # one of the object file's
    assert set(told) == {"functions", "kernels", "images", "producer", "without_signature"}
    json.dumps(told)


def test_extract(library: Path, tmp_path: Path) -> None:
    paths = extract(read(library), tmp_path / "new" / "folder")
    assert [path.name for path in paths] == [
        "blas.nvvm.sm_90.cubin",
        "blas.rocdl.gfx942:sramecc+.hsaco",
        "blas.host.x86-64-v3.o",
        "blas.nvvm.sm_80.ptx",
    ]
    assert [path.read_bytes() for path in paths] == [image.data for image in IMAGES]


def test_extract_stays_in_its_folder_and_overwrites_nothing(tmp_path: Path) -> None:
    evil = Image("../../up", "host", "c", "t", "bin", (), b"1")
    again = Image("../../up", "host", "c", "t", "bin", (), b"2")
    artifact = read(link(tmp_path / "evil.so", [evil, again]))
    paths = extract(artifact, tmp_path / "out")
    assert [path.name for path in paths] == [".._.._up.host.c.o", ".._.._up.host.c.2.o"]
    assert [path.read_bytes() for path in paths] == [b"1", b"2"]


# Errors.


def test_diagnostics_render_with_a_caret() -> None:
    note = Diagnostic("a.mlir", 1, 1, "note", "declared here", source_line="func")
    diagnostic = Diagnostic("a.mlir", 3, 4, "error", "no such op", (note,), "\t  bad.op")
    text = "a.mlir:3:4: error: no such op\n\t  bad.op\n\t  ^\na.mlir:1:1: note: declared here\nfunc\n^"
    assert diagnostic.render() == text
    error = CompileError(diagnostics=[diagnostic])
    assert str(error) == text
    assert error.diagnostics == [diagnostic]
    assert Diagnostic("", 0, 0, "error", "lost").render() == "error: lost"
    assert Diagnostic("a.mlir", 0, 0, "error", "lost").render() == "a.mlir: error: lost"
    assert Diagnostic("a", 1, 9, "error", "past", source_line="ab").render().splitlines()[-1] == " " * 8 + "^"
    assert Diagnostic("a", 1, 10**9, "error", "far", source_line="ab").render() == "a:1:1000000000: error: far\nab"


@pytest.mark.parametrize(
    ("before", "width"),
    [("@ünï() { ", 9), ("日本 = ", 7), ("e\u0301 ", 2), ("\tß\t", None), ("🂡 ", 2)],
)
def test_the_caret_stands_under_its_column_behind_letters_of_several_bytes(before: str, width: int | None) -> None:
    """MLIR counts columns in bytes; a terminal shows letters, some of them two cells wide and some none."""
    diagnostic = Diagnostic("a.mlir", 1, len(before.encode()) + 1, "error", "no", source_line=f"{before}bad.op")
    assert diagnostic.render().splitlines()[-1] == ("\t \t^" if width is None else " " * width + "^")


def test_exit_codes() -> None:
    assert (OffloadError.exit_code, CompileError.exit_code, ToolkitError.exit_code) == (1, 1, 3)
    assert DeviceError("x", 7).code == 7
