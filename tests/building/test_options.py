"""Options of targets and builds: each one's effect in the code or on what runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES, PROGRAMS, command, emit, emit_text, on_host, tool

import offload
from offload import artifact
from offload.errors import CompileError, DeviceError, SignatureError, TargetError

OPTIONS = PROGRAMS / "options.mlir"
INSIDE, STORE, LAUNCH = (
    next(i for i, line in enumerate(OPTIONS.read_text().splitlines(), 1) if text in line)
    for text in ("arith.mulf", "memref.store", "gpu.launch_func")
)
LINES = {number for number, text in enumerate(OPTIONS.read_text().splitlines(), 1) if text.strip()}


def isa(target: str, source: str | Path = OPTIONS, **options: object) -> str:
    (item,) = emit(source, "isa", [target], **options)
    return item.data.decode()


def lines_in(path: Path) -> set[int]:
    """The lines that a DWARF line table names; fails where the table names another file."""
    text = tool("llvm-dwarfdump", "--debug-line", path)
    assert set(re.findall(r'name: "([^"]*)"', text)) == {OPTIONS.name}
    return {int(line) for line in re.findall(r"^0x[0-9a-f]{16}\s+(\d+)", text, re.MULTILINE)} - {0}


# Line information.


@pytest.mark.parametrize("level", range(4))
def test_line_information_at_every_level(level: int, tmp_path: Path) -> None:
    targets = [word for target in ALL_TARGETS for word in ("-t", f"{target},O={level}")]
    done = command("build", OPTIONS, "-g", f"-O{level}", *targets, "--dump", "d", "-o", "o.so", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("nvvm.sm_90.object.cubin", "rocdl.gfx942.object.hsaco", "host.x86-64.object.o"):
        found = lines_in(tmp_path / "d" / f"m.{name}")
        assert {INSIDE, STORE} <= found <= LINES, name
    assert LAUNCH in lines_in(tmp_path / "o.so")
    library = offload.load(tmp_path / "o.so")
    library.use("host")
    x = np.ones((4, 16), np.float32)
    library.run(x, 1, 2)
    np.testing.assert_array_equal(x, 6)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.mlir")), ids=lambda path: path.stem)
def test_examples_with_line_information(path: Path, tmp_path: Path) -> None:
    """Kernels with barriers, too, which become coroutines on the CPU: LLVM's verifier judges the result."""
    assert offload.build(path, tmp_path / "x.so", targets=ALL_TARGETS, debug=True).exists()


def test_without_line_information_nothing_of_it_is_there(tmp_path: Path) -> None:
    plain = offload.build(OPTIONS, tmp_path / "x.so", targets=ALL_TARGETS).read_bytes()
    assert plain == offload.build(OPTIONS, tmp_path / "x.so", targets=ALL_TARGETS).read_bytes()
    assert b".debug_line" not in plain
    assert b".debug_line" in offload.build(OPTIONS, tmp_path / "x.so", targets=ALL_TARGETS, debug=True).read_bytes()


# What kernels compute with, and how they are called.


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("index", [32, 64])
def test_bare_pointers_and_narrow_indices_run(bare: bool, index: int) -> None:
    targets = [f"{target},index={index}" for target in ALL_TARGETS]
    library = offload.compile(OPTIONS, targets=targets, bare_pointers=bare)
    library.use("host")
    x = np.zeros((4, 16), np.float32)
    library.run(x, 7, 2)
    np.testing.assert_array_equal(x, 16)
    library.kernels.k[2, 16](x, -15, 3.0)
    np.testing.assert_array_equal(x[:2], 6)
    np.testing.assert_array_equal(x[2:], 16)
    assert library.metadata.kernels[0].bare_pointers is bare


PARAMETERS = {
    (False, 64): ["u64", "u64", *["u64"] * 5, "u64", "f32"],
    (False, 32): ["u64", "u64", *["u32"] * 5, "u32", "f32"],
    (True, 64): ["u64", "u64", "f32"],
    (True, 32): ["u64", "u32", "f32"],
}


@pytest.mark.parametrize(("bare", "index"), PARAMETERS)
def test_bare_pointers_and_narrow_indices_in_code(bare: bool, index: int) -> None:
    entry = isa(f"nvvm:sm_90,index={index}", bare_pointers=bare).split(".entry k(")[1].split(")")[0]
    assert re.findall(r"\.param \.(\w+)", entry) == PARAMETERS[bare, index]
    sizes = {"u64": 8, "u32": 4, "f32": 4}
    amd = isa(f"rocdl:gfx942,index={index}", bare_pointers=bare)
    explicit = re.findall(r"\.size: +(\d+)\n +\.value_kind: +(?:by_value|global_buffer)", amd)
    assert [int(size) for size in explicit] == [sizes[kind] for kind in PARAMETERS[bare, index]]


def test_bare_pointers_are_told(tmp_path: Path) -> None:
    done = command("build", OPTIONS, "--bare-pointers", "-q", "-o", "x.so", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    shown = command("inspect", "x.so", cwd=tmp_path).stdout
    assert "  m::k(x: float32[4, 16], n: int64, f: float32) with bare pointers\n" in shown
    assert '"bare_pointers": true' in command("inspect", "x.so", "--json", cwd=tmp_path).stdout


def test_bare_pointers_need_static_shapes() -> None:
    with pytest.raises(CompileError) as caught:
        offload.compile(EXAMPLES / "saxpy.mlir", bare_pointers=True)
    assert "bare pointers are not possible here: 'memref<?xf32>'" in str(caught.value)
    assert caught.value.diagnostics[0].line == 8


def test_bare_pointers_are_for_all_targets_or_none() -> None:
    with pytest.raises(TargetError, match="a kernel takes the same parameters everywhere: use --bare-pointers"):
        offload.compile(OPTIONS, targets=["host", "nvvm:sm_90,bare_pointers"])
    library = offload.compile(OPTIONS, targets=["host,bare_pointers", "nvvm:sm_90,bare_pointers"])
    assert library.metadata.kernels[0].bare_pointers


@pytest.mark.parametrize(
    ("arguments", "body", "reason"),
    [
        ("%x: memref<8xindex>", "", "cannot have 32-bit indices: others read and write its elements as 64 bits"),
        (
            "%x: memref<i64>",
            "%a = memref.extract_aligned_pointer_as_index %x : memref<i64> -> index\n"
            "%b = arith.index_cast %a : index to i64\nmemref.store %b, %x[] : memref<i64>",
            "an address does not fit a 32-bit index",
        ),
    ],
)
@pytest.mark.parametrize("target", ALL_TARGETS)
def test_where_indices_cannot_be_narrow(target: str, arguments: str, body: str, reason: str) -> None:
    source = f"gpu.module @m {{\ngpu.func @k({arguments}) kernel {{\n{body}\ngpu.return\n}}\n}}\n"
    with pytest.raises(CompileError, match=reason):
        offload.compile(source, targets=[f"{target},index=32"])
    offload.compile(source, targets=[target])


# Levels and floating point.


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_levels_differ_where_they_should(target: str) -> None:
    """At 0 kernels keep the call of their function (the CPU's are inlined always: there, values are on the stack)."""
    texts = [isa(f"{target},O={level}") for level in range(4)]
    calls = {"nvvm": r"call\.uni", "rocdl": r"s_swappc", "host": r"\(%rsp\)"}[target.split(":")[0]]
    most = 50 if target == "host" else 0
    assert [len(re.findall(calls, text)) > most for text in texts] == [True, False, False, False]
    assert len(set(texts)) > 1


def test_level_of_the_host_code() -> None:
    source = "func.func @f(%x: i64) -> i64 {\n %r = func.call @g(%x) : (i64) -> i64\n return %r : i64\n}\n"
    source += "func.func private @g(%x: i64) -> i64 {\n %r = arith.muli %x, %x : i64\n return %r : i64\n}\n"
    calls = ["call i64 @g" in emit(source, "host-llvm", opt=level)[0].data.decode() for level in range(4)]
    assert calls == [True, False, False, False]
    for level in range(4):
        assert on_host(source, opt=level).f(5) == 25


def test_level_reaches_the_assembler() -> None:
    with pytest.raises(CompileError, match=r"ptxas -v -arch=sm_90 -O1 --no-such"):
        offload.compile(OPTIONS, targets=["nvvm:sm_90,O=1,ptxas=--no-such"])


def test_fast_contracts() -> None:
    assert "fma.rn" not in isa("nvvm:sm_90")
    assert re.search(r"fma\.rn", isa("nvvm:sm_90,fast"))
    assert not re.search(r"v_fma|v_pk_fma|v_fmac", isa("rocdl:gfx942"))
    assert re.search(r"v_fma|v_pk_fma|v_fmac", isa("rocdl:gfx942,fast"))
    assert "vfmadd" not in isa("host:x86-64-v3")
    assert "vfmadd" in isa("host:x86-64-v3,fast")


def test_denormals() -> None:
    assert ".ftz" not in isa("nvvm:sm_90")
    assert re.search(r"(add|mul)(\.rn)?\.ftz\.f32", isa("nvvm:sm_90,ftz"))
    mode = r"\.amdhsa_float_denorm_mode_32 (\d)"
    assert [re.findall(mode, isa(f"rocdl:gfx942{daz}")) for daz in ("", ",daz")] == [["3"], ["0"]]


# Limits.


def test_limits_in_code() -> None:
    text = isa("nvvm:sm_90,max_threads=128,min_blocks=3,maxregs=40")
    for directive in (".maxntid 128", ".minnctapersm 3", ".maxnreg 40"):
        assert directive in text
    assert ".maxntid" not in isa("nvvm:sm_90")
    assert ".max_flat_workgroup_size: 1024" in isa("rocdl:gfx942")
    assert ".max_flat_workgroup_size: 128" in isa("rocdl:gfx942,max_threads=128")
    assert '"amdgpu-waves-per-eu"="3"' in emit_text(OPTIONS, "llvm", ["rocdl:gfx942,waves_per_eu=3"])


@pytest.mark.parametrize(
    "given",
    [
        'rocdl.flat_work_group_size = "1,256"', "passthrough = [{}]",
        "gpu.known_block_size = array<i32: 64, 2, 2>", "rocdl.reqd_work_group_size = array<i32: 256, 1, 1>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kernel", ["gpu.func @k({}) kernel attributes {{{}}} {{ {} gpu.return }}",
                                    "llvm.func @k({}) attributes {{gpu.kernel, {}}} {{ {} llvm.return }}"])  # fmt: skip
@pytest.mark.parametrize("option", ["", ",max_threads=512"])
def test_a_kernels_own_block_size_for_amd(given: str, kernel: str, option: str, tmp_path: Path) -> None:
    """It decides how many registers a thread has: these 160 values fit 256 threads a block, not 1024."""
    numbers = range(160)
    lines = [f"%p{i} = llvm.getelementptr %x[{i * 7}] : (!llvm.ptr) -> !llvm.ptr, f32" for i in numbers]
    lines += [f"%v{i} = llvm.load volatile %p{i} : !llvm.ptr -> f32" for i in numbers]
    lines += [f"llvm.store volatile %v{i}, %p{i} : f32, !llvm.ptr" for i in reversed(numbers)]
    given = given.format('"nounwind", ["amdgpu-flat-work-group-size", "1,256"]')
    source = tmp_path / "k.mlir"
    source.write_text("gpu.module @m {\n" + kernel.format("%x: !llvm.ptr", given, "\n".join(lines)) + "\n}\n")
    library = offload.build(source, tmp_path / "k.so", targets=[f"rocdl:gfx942{option}"])
    resources = artifact.read(library).metadata.images[0].resources["k"]
    assert (resources["max_threads"], resources["vgpr_spills"]) == (256, 0)


@pytest.mark.parametrize(
    ("target", "size"),
    [("rocdl:gfx942", "rocdl.reqd_work_group_size"), ("nvvm:sm_90", "nvvm.reqntid"), ("host", "gpu.known_block_size")],
)
def test_a_kernels_own_block_is_larger_than_the_most_threads(target: str, size: str) -> None:
    kernel = f"llvm.func @k() attributes {{gpu.kernel, {size} = array<i32: 256, 1, 1>}} {{ llvm.return }}"
    said = f"the kernel's {size} of 256 threads is more than max_threads=128"
    with pytest.raises(CompileError, match=f"1:17: error: {said}"):
        emit(f"gpu.module @m {{ {kernel} }}", "isa", [f"{target},max_threads=128"])


@pytest.mark.parametrize("size", ["nvvm.reqntid = array<i32: 64, 1, 1>", 'passthrough = [["nvvm.reqntid", "64"]]'])
def test_a_kernels_own_block_size_beside_the_most_threads(size: str, tmp_path: Path) -> None:
    source = tmp_path / "k.mlir"
    source.write_text(f"gpu.module @m {{ gpu.func @k() kernel attributes {{{size}}} {{ gpu.return }} }}\n")
    text = isa("nvvm:sm_90,max_threads=128,maxregs=40", source)
    assert ".reqntid 64" in text and ".maxnreg 40" in text and ".maxntid" not in text
    assert offload.build(source, tmp_path / "k.so", targets=["nvvm:sm_90,max_threads=128"]).exists()


def test_limits_on_the_cpu() -> None:
    x = np.zeros((4, 16), np.float32)
    on_host(OPTIONS, target="host,max_threads=16").run(x, 1, 1)
    with pytest.raises(DeviceError, match=r'"k" is launched with a block of \(16, 1, 1\); it was built for at most 8'):
        on_host(OPTIONS, target="host,max_threads=8").run(x, 1, 1)


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_a_known_block_size_comes_first(target: str) -> None:
    source = OPTIONS.read_text().replace(
        "%f: f32) kernel {", "%f: f32) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {"
    )
    text = isa(f"{target},max_threads=64", source)
    if target.startswith("nvvm"):
        assert ".maxntid 16, 1, 1" in text
    elif target.startswith("rocdl"):
        assert re.search(r"\.reqd_workgroup_size:\n +- 16\n +- 1\n +- 1\n", text)
    else:
        library = on_host(source, target=f"{target},max_threads=64")
        library.run(np.zeros((4, 16), np.float32), 1, 1)
        with pytest.raises(SignatureError, match=r"a block of \(17, 1, 1\); its code counts on \(16, 1, 1\)"):
            library.kernels.k[1, 17](np.zeros((4, 16), np.float32), 1, 1)
    with pytest.raises(CompileError, match="known_block_size of 16 threads is more than max_threads=8") as caught:
        offload.compile(source, targets=[f"{target},max_threads=8"])
    assert caught.value.diagnostics[0].line == 9


# Tools and the code object.


def test_options_of_the_linker() -> None:
    for target in ("rocdl:gfx942", "host"):
        (item,) = emit(OPTIONS, "object", [f"{target},lld=--build-id=0x0123cafe"])
        assert bytes.fromhex("0123cafe") in item.data
        with pytest.raises(CompileError, match="--no-such-option"):
            offload.compile(OPTIONS, targets=[f"{target},lld=--no-such-option"])


@pytest.mark.parametrize("version", [4, 5, 6])
def test_code_object_version(version: int) -> None:
    (item,) = emit(OPTIONS, "object", [f"rocdl:gfx942,code_object={version}"])
    assert item.data[8] == version - 2  # EI_ABIVERSION: ELFABIVERSION_AMDGPU_HSA_V4 is 2
    with pytest.raises(TargetError, match="generic chips exist since code object version 6"):
        offload.compile(OPTIONS, targets=["rocdl:gfx9-generic,code_object=5"])


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_unknown_features(target: str) -> None:
    with pytest.raises(TargetError, match=r"LLVM has no feature 'no-such' for "):
        offload.compile(OPTIONS, targets=[f"{target},features=+no-such"])


def test_features_reach_the_code() -> None:
    assert ".version 8.7" in isa("nvvm:sm_90,features=+ptx87")
    assert "vmulss" in isa("host:x86-64,features=+avx")
    assert "xnack-" in isa("rocdl:gfx942,features=-xnack")


# Formats.

SUFFIXES = {"bin": ("cubin", "hsaco", "o"), "isa": ("ptx", "s", "s"), "offload": ("bc", "bc", "bc")}


@pytest.mark.parametrize("kind", SUFFIXES)
def test_formats(kind: str, tmp_path: Path) -> None:
    offload.build(OPTIONS, tmp_path / "x.so", targets=[f"{target},format={kind}" for target in ALL_TARGETS])
    assert command("inspect", "x.so", "--extract", "d", cwd=tmp_path).returncode == 0
    names = [f"m.{target.replace(':', '.')}" for target in ("nvvm:sm_90", "rocdl:gfx942", "host:x86-64")]
    found = {path.name for path in (tmp_path / "d").iterdir()}
    assert found == {f"{name}.{suffix}" for name, suffix in zip(names, SUFFIXES[kind], strict=True)}
    library = offload.load(tmp_path / "x.so")
    library.use("host")
    x = np.zeros((4, 16), np.float32)
    if kind == "bin":
        library.run(x, 1, 1)
    else:
        with pytest.raises(
            DeviceError, match=rf"host x86-64 {kind} \(no driver loads this format: build with format=bin"
        ):
            library.run(x, 1, 1)


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942"])
def test_bundles(target: str, tmp_path: Path) -> None:
    library = offload.load(offload.build(OPTIONS, tmp_path / "x.so", targets=[f"{target},format=fatbin"]))
    assert library.metadata.images[0].format == "fatbin"


# Spellings.


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("host,max_threads=2000", "host:x86-64,max_threads=2000: max_threads is 1 to 1024, not 2000"),
        ("nvvm,index=16", "nvvm:sm_75,index=16: unknown index 16; it is one of 32, 64"),
        ("nvvm,min_blocks=2", "nvvm:sm_75,min_blocks=2: min_blocks says how many blocks of max_threads fit: "),
        ("nvvm,maxregs=300", "nvvm:sm_75,maxregs=300: maxregs is 16 to 255, not 300"),
        ("rocdl,code_object=3", "rocdl:gfx90a,code_object=3: unknown code_object 3; it is one of 4, 5, 6"),
        ("host,ftz", "target 'host' has no option 'ftz'"),
    ],
)
def test_wrong_values(target: str, message: str, tmp_path: Path) -> None:
    done = command("build", OPTIONS, "-t", target, "-q", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
