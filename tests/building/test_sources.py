"""Several sources of one program: names that meet are one thing, or two that do not disturb each other, or an error."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from compiling import command, emit

import offload

DECLARED = "func.func private @a(f32) -> f32\n"
CALLS = """\
func.func @calls(%x: f32) -> f32 {
  %r = call @a(%x) : (f32) -> f32
  return %r : f32
}
"""
DOUBLES = "func.func @a(%x: f32) -> f32 {\n  %r = arith.addf %x, %x : f32\n  return %r : f32\n}\n"
OWN = """\
func.func private @a(%x: f64) -> f64 {
  %r = arith.negf %x : f64
  return %r : f64
}
func.func @own(%x: f64) -> f64 {
  %r = call @a(%x) : (f64) -> f64
  return %r : f64
}
"""
MEMORY = """\
memref.global "private" constant @a : memref<2xf32> = dense<3.0>
func.func @memory(%i: index) -> f32 {
  %g = memref.get_global @a : memref<2xf32>
  %r = memref.load %g[%i] : memref<2xf32>
  return %r : f32
}
"""


def files(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"{number}.mlir" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def said(folder: Path, *texts: str) -> str:
    done = command("build", *(path.name for path in files(folder, *texts)), "-q", "-o", "out.so", cwd=folder)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_every_order_gives_the_same_program(order: tuple[int, ...], tmp_path: Path) -> None:
    texts = [DECLARED + CALLS, DOUBLES, OWN, MEMORY]
    library = offload.load(offload.build(files(tmp_path, *(texts[i] for i in order)), tmp_path / "out.so"))
    library.use("host")
    assert library.calls(np.float32(4)) == 8
    assert library.own(4.0) == -4
    assert library.memory(1) == 3


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_a_source_keeps_to_itself_is_its_own_wherever_it_stands(order: tuple[int, ...], tmp_path: Path) -> None:
    """A use that stands before its definition met the other source's of that name."""
    function = "func.func @{0}(%x: f32) -> f32 {{\n  %r = call @a(%x) : (f32) -> f32\n  return %r : f32\n}}\n"
    own = "func.func private @a(%x: f32) -> f32 {{\n  %c = arith.constant {0} : f32\n  return %c : f32\n}}\n"
    texts = [
        function.format("first") + own.format("1.0"),
        own.format("2.0") + function.format("second"),
        function.format("third") + DOUBLES,
    ]
    library = offload.load(offload.build(files(tmp_path, *(texts[i] for i in order)), tmp_path / "out.so"))
    library.use("host")
    assert [function(np.float32(8)) for function in (library.first, library.second, library.third)] == [1, 2, 16]


def test_a_declaration_and_a_definition_that_disagree(tmp_path: Path) -> None:
    other = "func.func @a(%x: f64) -> f64 {\n  return %x : f64\n}\n"
    assert said(tmp_path, other, "\n" + DECLARED + CALLS) == (
        "1.mlir:2:1: error: 'a' has the type '(f32) -> f32' here and '(f64) -> f64' in another source: make them the "
        "same, or rename one\n" + DECLARED + "^\n"
        "0.mlir:1:1: note: the other source has it here, with the type '(f64) -> f64'\n"
        "func.func @a(%x: f64) -> f64 {\n^\n"
    )
    assert said(tmp_path, DECLARED + CALLS, other).startswith("1.mlir:1:1: error: 'a' has the type '(f64) -> f64' here")


def test_two_declarations_that_disagree(tmp_path: Path) -> None:
    text = said(tmp_path, DECLARED + CALLS, "func.func private @a(i32) -> i32\n")
    assert text.startswith("1.mlir:1:1: error: 'a' has the type '(i32) -> i32' here and '(f32) -> f32' in another")
    assert "0.mlir:1:1: note: the other source has it here, with the type '(f32) -> f32'" in text


def test_functions_of_two_dialects_and_memory(tmp_path: Path) -> None:
    text = said(tmp_path, DOUBLES, "llvm.func @a(f32) -> f32\n")
    assert text.startswith("1.mlir:1:1: error: 'a' is the operation llvm.func here and func.func in another source")
    text = said(tmp_path, DOUBLES, "memref.global @a : memref<4xf32> = dense<0.0>\n")
    assert text.startswith("1.mlir:1:1: error: 'a' is defined in two sources: rename one, or make it private")
    text = said(tmp_path, "memref.global @a : memref<4xf32> = dense<0.0>", "memref.global @a : memref<8xf32>\n")
    assert text.startswith("1.mlir:1:1: error: 'a' has the type 'memref<8xf32>' here and 'memref<4xf32>' in another")


def module(kind: str, function: str) -> str:
    return f"""\
gpu.module @m {{
  gpu.func @k(%x: memref<4x{kind}>, %v: {kind}) kernel {{
    %t = gpu.thread_id x
    memref.store %v, %x[%t] : memref<4x{kind}>
    gpu.return
  }}
}}
func.func @{function}(%x: memref<4x{kind}>, %v: {kind}) {{
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%x : memref<4x{kind}>, %v : {kind})
  return
}}
"""


@pytest.mark.parametrize("first", [True, False])
def test_gpu_modules_of_one_name(first: bool, tmp_path: Path) -> None:
    """Both stay, with their own kernels; a public function of that name keeps it."""
    third = "func.func @m() -> i32 {\n  %r = arith.constant 7 : i32\n  return %r : i32\n}\n"
    texts = [module("f32", "floats"), module("i32", "words")]
    order = [third, *texts] if first else [*texts, third]
    library = offload.load(offload.build(files(tmp_path, *order), tmp_path / "out.so"))
    library.use("host")
    floats, words = np.zeros(4, np.float32), np.zeros(4, np.int32)
    library.floats(floats, np.float32(2.5))
    library.words(words, np.int32(9))
    assert floats.tolist() == [2.5] * 4
    assert words.tolist() == [9] * 4
    assert library.m() == 7


def parted(kind: str, function: str) -> tuple[str, str]:
    """The kernels of :func:`module`, and what launches them."""
    kernels, launches = module(kind, function).split("func.func", 1)
    return kernels, "func.func" + launches


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_kernels_of_one_source_launched_in_others(order: tuple[int, ...], tmp_path: Path) -> None:
    kernels, launches = parted("f32", "fills")
    more = parted("f32", "fills_too")[1]
    texts = [kernels, launches, more]
    library = offload.load(offload.build(files(tmp_path, *(texts[i] for i in order)), tmp_path / "out.so"))
    library.use("host")
    assert [kernel.name for kernel in library.metadata.kernels] == ["k"]
    x = np.zeros(4, np.float32)
    library.fills(x, np.float32(2.5))
    assert x.tolist() == [2.5] * 4
    library.fills_too(x, np.float32(3.5))
    assert x.tolist() == [3.5] * 4


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("visibility", ["", "private "])
def test_kernels_launched_elsewhere_beside_a_function_of_their_modules_name(
    visibility: str, order: tuple[int, ...], tmp_path: Path
) -> None:
    own = f"func.func {visibility}@m() -> i32 {{\n  %r = arith.constant 7 : i32\n  return %r : i32\n}}\n"
    calls = "func.func @seven() -> i32 {\n  %r = call @m() : () -> i32\n  return %r : i32\n}\n"
    texts = [*parted("f32", "fills"), calls + own]
    library = offload.load(offload.build(files(tmp_path, *(texts[i] for i in order)), tmp_path / "out.so"))
    library.use("host")
    x = np.zeros(4, np.float32)
    library.fills(x, np.float32(2.5))
    assert (x.tolist(), library.seven()) == ([2.5] * 4, 7)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_a_new_name_is_none_of_another_source(order: tuple[int, ...], tmp_path: Path) -> None:
    """Two are called m, and the one that is called m_0 is launched from elsewhere."""
    numbered = [text.replace("@m", "@m_0") for text in parted("f64", "fills")]
    texts = [module("f32", "floats"), module("i32", "words"), *numbered]
    library = offload.load(offload.build(files(tmp_path, *(texts[i] for i in order)), tmp_path / "out.so"))
    library.use("host")
    for function, dtype in ((library.floats, np.float32), (library.words, np.int32), (library.fills, np.float64)):
        x = np.zeros(4, dtype)
        function(x, dtype(3))
        assert x.tolist() == [3] * 4


@pytest.mark.parametrize("first", [True, False])
def test_two_kernels_of_one_module_launched_in_two_sources(first: bool, tmp_path: Path) -> None:
    kernels, launches = parted("f32", "fills")
    body = kernels[kernels.index("  gpu.func") : kernels.rindex("}")]
    both = kernels.replace(body, body + body.replace("@k(", "@l("))
    others = [launches, parted("f32", "fills_too")[1].replace("@m::@k", "@m::@l")]
    sources = files(tmp_path, *([both, *others] if first else [*others, both]))
    library = offload.load(offload.build(sources, tmp_path / "out.so"))
    library.use("host")
    x = np.zeros(4, np.float32)
    library.fills_too(x, np.float32(2.5))
    assert x.tolist() == [2.5] * 4
    library.fills(x, np.float32(3.5))
    assert x.tolist() == [3.5] * 4


def test_a_kernel_that_no_source_has(tmp_path: Path) -> None:
    kernels, launches = parted("f32", "fills")
    assert said(tmp_path, launches, DOUBLES).startswith(
        "0.mlir:4:3: error: 'gpu.launch_func' op starts '@m::@k', which no source has: name the file with gpu.module "
        "@m among the sources, too\n  gpu.launch_func @m::@k"
    )
    other = kernels.replace("@k(", "@other(")
    text = said(tmp_path, launches, other)
    assert text.startswith("0.mlir:4:3: error: 'gpu.launch_func' op kernel function '@m::@k' is undefined"), text


def test_a_launch_that_does_not_fit_the_kernel_of_another_source(tmp_path: Path) -> None:
    text = said(tmp_path, parted("f32", "fills")[1], parted("i32", "fills")[0])
    assert text.startswith("0.mlir:4:3: error: 'gpu.launch_func' op type of function argument 0 does not match"), text


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_launches_of_a_name_that_two_other_sources_have(order: tuple[int, ...], tmp_path: Path) -> None:
    launches, *modules = parted("f32", "fills")[1], module("f32", "floats"), module("i32", "words")
    texts = [launches, *modules]
    text = said(tmp_path, *(texts[i] for i in order))
    holders = [number for number, i in enumerate(order) if i]
    assert text.startswith(
        f"{holders[1]}.mlir:1:1: error: gpu.module @m is in two sources, and another source launches its kernels: "
        "rename one of them\ngpu.module @m {"
    )
    assert f"{holders[0]}.mlir:1:1: note: the other one" in text


def test_the_same_public_name_twice(tmp_path: Path) -> None:
    assert said(tmp_path, DOUBLES, "\n" + DOUBLES) == (
        "1.mlir:2:1: error: 'a' is defined in two sources: rename one, or make it private\n"
        "func.func @a(%x: f32) -> f32 {\n^\n"
        "0.mlir:1:1: note: the other definition\nfunc.func @a(%x: f32) -> f32 {\n^\n"
    )


@pytest.mark.parametrize("action", [("build", "-o", "other.so"), ("run",)])
def test_compiled_files_are_no_sources(action: tuple[str, ...], tmp_path: Path) -> None:
    path = offload.compile(DOUBLES, targets=["host"]).path
    done = command(*action, str(path), cwd=tmp_path)
    assert done.returncode == 1
    assert f"error: cannot compile {path}: it is compiled already (ELF)" in done.stderr


@pytest.mark.parametrize(
    ("stage", "target", "said"),
    [
        ("fat", "nvvm:sm_90", "it is compiled already (a fat binary), where"),
        ("fat", "rocdl:gfx942", "it is compiled already (a bundle), where"),
        ("llvm", "host", "it is LLVM IR, where"),
    ],
)
def test_other_stages_are_no_sources(stage: str, target: str, said: str, tmp_path: Path) -> None:
    kernel = "gpu.module @m { gpu.func @k() kernel { gpu.return } }"
    (item,) = emit(kernel, stage, [target])
    (tmp_path / "other").write_bytes(item.data)
    done = command("build", "other", "-o", "other.so", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"offload: error: cannot compile other: {said} MLIR is needed")


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"BC\xc0\xde5", "LLVM bitcode"),
        (b"!<arch>\n", "an archive of compiled code"),
        (b"define void @f() {\n", "LLVM IR"),
        (b'target triple = "nvptx64-nvidia-cuda"\n', "LLVM IR"),
        (b"__global__ void f(float *x) {\n", "C or C++"),
        (b".version 8.0\n.target sm_90\n", "PTX"),
        (b"//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 8.0\n.target sm_90\n", "PTX"),
        (b"// Kernels.\n  #include <cuda.h>\n", "C or C++"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS to the file"),
    ],
)
def test_what_other_tools_take_is_no_source(start: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(start)
    assert f"cannot compile other: it is {what}, where" in command("build", "other", "-o", "o.so", cwd=tmp_path).stderr


def test_a_name_may_begin_as_other_languages_do(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text("// All.\n#include_all = affine_map<(i) -> (i)>\nfunc.func @f() { return }\n")
    assert command("build", "p.mlir", "-o", "p.so", cwd=tmp_path).returncode == 0
