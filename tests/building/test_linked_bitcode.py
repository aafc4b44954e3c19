"""Bitcode and LLVM IR that is linked into kernels: what fits which target, and what does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, tool

import offload
from offload import CompileError

CALLER = """gpu.module @m {
  func.func private @theirs(%x: f32) -> f32
  gpu.func @k(%x: memref<16xf32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<16xf32>
    %r = func.call @theirs(%v) : (f32) -> f32
    memref.store %r, %x[%t] : memref<16xf32>
    gpu.return
  }
}
"""
TRIPLES = {"nvvm": "nvptx64-nvidia-cuda", "rocdl": "amdgcn-amd-amdhsa", "host": "x86_64-unknown-linux-gnu"}


def bitcode(folder: Path, name: str, *, layout: str = "") -> Path:
    """A function ``theirs`` that adds 3, for one target, or for any as text."""
    head = f'target triple = "{TRIPLES[name]}"\n' if name in TRIPLES else ""
    head += f'target datalayout = "{layout}"\n' if layout else ""
    text = folder / f"{name}.ll"
    text.write_text(f"{head}define float @theirs(float %x) {{\n %r = fadd float %x, 3.0\n ret float %r\n}}\n")
    if name in TRIPLES:
        tool("llvm-as", text, "-o", folder / f"{name}.bc")
        return folder / f"{name}.bc"
    return text


def test_bitcode_for_each_target_and_for_all(tmp_path: Path) -> None:
    own = [f"{target},link={bitcode(tmp_path, target.split(':')[0])}" for target in ALL_TARGETS]
    anyones = bitcode(tmp_path, "any")
    for library in (
        offload.compile(CALLER, targets=own),
        offload.compile(CALLER, targets=ALL_TARGETS, link=[anyones]),
    ):
        library.use("host")
        x = np.zeros(16, np.float32)
        library.kernels.k[1, 16](x)
        np.testing.assert_array_equal(x, 3)


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_bitcode_of_another_target(target: str, tmp_path: Path) -> None:
    name = target.split(":")[0]
    for other in TRIPLES.keys() - {name}:
        message = f"it is for {TRIPLES[other]}, this target is {TRIPLES[name]}; give it to the target that it is for"
        with pytest.raises(CompileError, match=message):
            offload.compile(CALLER, targets=[target], link=[bitcode(tmp_path, other)])
    with pytest.raises(CompileError, match=r"its data layout is \S*e-p:32:32\S*, this target's is e-"):
        offload.compile(CALLER, targets=[target], link=[bitcode(tmp_path, name, layout="e-p:32:32")])


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_undefined_functions_are_named_at_their_call(target: str) -> None:
    with pytest.raises(CompileError, match="'theirs' is called here, and nothing defines it for") as caught:
        offload.compile(CALLER, targets=[target])
    assert caught.value.diagnostics[0].line == 6


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize(
    ("defined", "said"),
    [
        (
            "define double @theirs(double %x) {\n ret double %x\n}",
            r"as float \(float\) here, and is double \(double\) there",
        ),
        ("define float @theirs(float %x, i32 %y) {\n ret float %x\n}", r"here, and is float \(float, i32\) there"),
        ("@theirs = global i32 0", "here, and is a variable there"),
    ],
)
def test_linked_functions_of_another_type(defined: str, said: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "l.ll").write_text(defined + "\n")
    with pytest.raises(CompileError, match=rf"cannot link .*l\.ll: 'theirs' is called .*{said}") as caught:
        offload.compile(CALLER, targets=[target], link=[tmp_path / "l.ll"])
    assert caught.value.diagnostics[0].line == 6


def test_linked_text_that_is_no_valid_program(tmp_path: Path) -> None:
    (tmp_path / "l.ll").write_text(
        "define float @theirs(float %x) {\n br label %b\nb:\n %c = phi i32 [0, %b]\n ret float %x\n}\n"
    )
    with pytest.raises(CompileError, match=r"cannot link .*l\.ll: it is not valid LLVM IR: PHI node"):
        offload.compile(CALLER, targets=["host"], link=[tmp_path / "l.ll"])


def test_a_file_that_is_linked_too_early(tmp_path: Path) -> None:
    """The message says so, and not that the function is nowhere."""
    one, other = tmp_path / "one.ll", tmp_path / "other.ll"
    one.write_text(
        "define float @theirs(float %x) {\n %r = call float @more(float %x)\n ret float %r\n}\n"
        "declare float @more(float)\n"
    )
    other.write_text("define float @more(float %x) {\n ret float %x\n}\n")
    offload.compile(CALLER, targets=["host"], link=[one, other])
    with pytest.raises(CompileError, match=r"'more' is called by code that is linked, and .*other\.ll has it, but"):
        offload.compile(CALLER, targets=["host"], link=[other, one])


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("linked", [False, True])
def test_programs_without_positions_call_themselves(linked: bool, target: str, tmp_path: Path) -> None:
    """It is not linked code that does, whether there is some or none."""
    text = CALLER.replace("\n", " loc(unknown)\n").replace("@m { loc(unknown)", "@m {")
    text = text.replace("kernel { loc(unknown)", "kernel {").replace("@theirs", "@ours")
    link = [bitcode(tmp_path, "any")] if linked else []
    with pytest.raises(CompileError, match=r"'ours' is called, and nothing defines it for"):
        offload.compile(text, targets=[target], link=link)


def test_linked_files_decide_the_cache(tmp_path: Path) -> None:
    path = bitcode(tmp_path, "any")
    for added in (3, 5):
        path.write_text(path.read_text().replace("3.0", f"{added}.0"))
        library = offload.compile(CALLER, targets=[f"host,link={path}"])
        library.use("host")
        x = np.zeros(16, np.float32)
        library.kernels.k[1, 16](x)
        np.testing.assert_array_equal(x, added)


STRUCTURES = """gpu.module @m {
  llvm.func @theirs(!llvm.ptr, i64) -> !llvm.struct<"struct.S", (f32, f32)>
  llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel} {
    %one = llvm.mlir.constant(1 : i64) : i64
    %s = llvm.call @theirs(%x, %one) : (!llvm.ptr, i64) -> !llvm.struct<"struct.S", (f32, f32)>
    %a = llvm.extractvalue %s[0] : !llvm.struct<"struct.S", (f32, f32)>
    %b = llvm.extractvalue %s[1] : !llvm.struct<"struct.S", (f32, f32)>
    %sum = llvm.fadd %a, %b : f32
    llvm.store %sum, %x : f32, !llvm.ptr
    llvm.return
  }
}
"""
FIRST = """
%struct.S = type { float, float }
define %struct.S @theirs(ptr %x, i64 %n) {
  %s = call %struct.S @more(ptr %x, i64 %n)
  ret %struct.S %s
}
declare %struct.S @more(ptr, i64)
define internal double @most(double %x) {
  ret double %x
}
"""
SECOND = """
%struct.S = type { float, float }
define %struct.S @more(ptr %x, i64 %n) {
  %place = getelementptr float, ptr %x, i64 %n
  %a = load float, ptr %place
  %r = call float @most(float %a)
  %s = insertvalue %struct.S zeroinitializer, float %r, 0
  %t = insertvalue %struct.S %s, float %a, 1
  ret %struct.S %t
}
declare float @most(float)
"""
THIRD = "define float @most(float %x) {\n %r = fadd float %x, 1.0\n ret float %r\n}\n"


def test_files_that_name_the_same_structures(tmp_path: Path) -> None:
    """Types have names of their own in each file; a function that a file keeps to itself is no other's."""
    files = []
    for name, text in {"first": FIRST, "second": SECOND, "third": THIRD}.items():
        files.append(tmp_path / f"{name}.ll")
        files[-1].write_text(text)
    library = offload.compile(STRUCTURES, targets=ALL_TARGETS, link=files)
    library.use("host")
    x = np.array([0, 4], np.float32)
    library.kernels.k[1, 1](x.ctypes.data)
    assert x[0] == 9


ADDRESS = CALLER.replace("(%x: f32)", "(%x: i64)").replace(
    "%r = func.call @theirs(%v) : (f32) -> f32",
    "%p = memref.extract_aligned_pointer_as_index %x : memref<16xf32> -> index\n"
    "    %q = arith.index_cast %p : index to i64\n    %r = func.call @theirs(%q) : (i64) -> f32",
)


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_an_address_that_the_program_has_as_an_integer(target: str, tmp_path: Path) -> None:
    (tmp_path / "l.ll").write_text("define float @theirs(ptr %x) {\n %r = load float, ptr %x\n ret float %r\n}\n")
    offload.compile(ADDRESS, targets=[target], link=[tmp_path / "l.ll"])


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize(
    ("called", "defined", "fits"),
    [
        ("!llvm.struct<(i8, i32)>", "{ i8, i32 }", True),
        ("!llvm.struct<packed (i8, i32)>", "{ i8, i32 }", False),
        ("!llvm.struct<(f32, f32)>", "float %x, float", False),
        ("vector<2x!llvm.ptr>", "<2 x ptr addrspace(1)>", True),
        ("vector<4xi8>", "i32", False),
    ],
)
def test_types_of_several_values(called: str, defined: str, fits: bool, target: str, tmp_path: Path) -> None:
    program = f"""gpu.module @m {{
  llvm.func @theirs({called})
  llvm.func @k(%x: !llvm.ptr) attributes {{gpu.kernel}} {{
    %v = llvm.load %x : !llvm.ptr -> {called}
    llvm.call @theirs(%v) : ({called}) -> ()
    llvm.return
  }}
}}
"""
    (tmp_path / "l.ll").write_text(f"define void @theirs({defined} %y) {{\n ret void\n}}\n")
    if fits:
        offload.compile(program, targets=[target], link=[tmp_path / "l.ll"])
        return
    with pytest.raises(CompileError, match="'theirs' is called as"):
        offload.compile(program, targets=[target], link=[tmp_path / "l.ll"])


LOADED = """module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    llvm.mlir.global internal @g(5 : i32) {{addr_space = 1 : i32}} : i32
    llvm.func internal @begin() {{
      %p = llvm.mlir.addressof @g : !llvm.ptr<1>
      %c = llvm.mlir.constant(42 : i32) : i32
      llvm.store {0} %c, %p : i32, !llvm.ptr<1>
      llvm.return
    }}
    llvm.mlir.global_{1} {1} = [@begin], priorities = [65535 : i32], data = [#llvm.zero]
    gpu.func @k(%x: memref<1xi32>) kernel {{
      %c0 = arith.constant 0 : index
      %p = llvm.mlir.addressof @g : !llvm.ptr<1>
      %v = llvm.load %p : !llvm.ptr<1> -> i32
      memref.store %v, %x[%c0] : memref<1xi32>
      gpu.return
    }}
  }}
}}
"""


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize(
    ("store", "when", "level"), [("volatile", "ctors", 3), ("", "ctors", 0), ("volatile", "dtors", 3)]
)
def test_what_is_to_run_when_kernels_are_loaded(store: str, when: str, level: int, target: str) -> None:
    """Nothing runs it; kernels met the value from before it."""
    with pytest.raises(CompileError, match=r"'begin' is to run when the kernels of .* are loaded") as caught:
        offload.compile(LOADED.format(store, when), targets=[f"{target},O={level}"])
    assert caught.value.diagnostics[0].line == 4


def test_what_llvm_runs_when_it_compiles() -> None:
    x = np.zeros(1, np.int32)
    offload.compile(LOADED.format("", "ctors"), targets=["host"]).kernels.k[1, 1](x)
    assert x == 42


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_linked_code_that_is_to_run_when_it_is_loaded(target: str, tmp_path: Path) -> None:
    (tmp_path / "l.ll").write_text("""
@v = internal global float 3.0
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @begin, ptr null }]
define internal void @begin() {
  store volatile float 4.0, ptr @v
  ret void
}
define float @theirs(float %x) {
  %v = load float, ptr @v
  %r = fadd float %x, %v
  ret float %r
}
""")
    with pytest.raises(CompileError, match="'begin' is to run when the kernels"):
        offload.compile(CALLER, targets=[target], link=[tmp_path / "l.ll"])


OF_OTHERS = """
@own = internal global float 3.0
@other = internal global float 3.0
@pointer = internal constant ptr @{written}
@llvm.global_{list} = appending global [1 x {{ i32, ptr, ptr }}] [{{ i32, ptr, ptr }} {{ i32 7, ptr @begin, ptr null }}]
define internal void @begin() {{
  {also}
  %p = load volatile ptr, ptr @pointer
  store volatile float 4.0, ptr %p
  ret void
}}
define float @theirs(float %x) {{
  %v = load float, ptr @own
  %r = fadd float %x, %v
  ret float %r
}}
"""


@pytest.mark.parametrize("target", [*ALL_TARGETS, *(f"{target},O=0" for target in ALL_TARGETS)])
@pytest.mark.parametrize("list", ["ctors", "dtors"])
def test_linked_code_whose_loading_no_kernel_sees(list: str, target: str, tmp_path: Path) -> None:
    """A library's constructors that have to do with other functions of it did not keep it from being linked."""
    (tmp_path / "l.ll").write_text(OF_OTHERS.format(written="other", list=list, also=""))
    library = offload.compile(CALLER, targets=[target], link=[tmp_path / "l.ll"])
    if target.startswith("host"):
        x = np.ones(16, np.float32)
        library.kernels.k[1, 16](x)
        np.testing.assert_array_equal(x, 4)
    assembly = 'call void asm sideeffect "", ""()'
    for written, also in (("own", ""), ("other", assembly)):  # assembly may do anything
        (tmp_path / "l.ll").write_text(OF_OTHERS.format(written=written, list=list, also=also))
        with pytest.raises(CompileError, match="'begin' is to run when the kernels"):
            offload.compile(CALLER, targets=[target], link=[tmp_path / "l.ll"])
