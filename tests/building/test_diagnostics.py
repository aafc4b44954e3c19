"""Wrong programs and wrong uses: each has its own message, its place, its exit code, and no Python traceback."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES, PROGRAMS, command, on_host

import offload
from offload.compiler.native import native
from offload.errors import Diagnostic

WRONG = PROGRAMS / "wrong"


def refused(name: str, tmp_path: Path, *more: str) -> str:
    """Builds a wrong program through the command line; returns what it said, without the folder's name."""
    done = command("build", WRONG / f"{name}.mlir", "-q", "-o", "out.so", *more, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []
    return done.stderr.replace(f"{WRONG}/", "")


LOCATED = {
    "syntax": """\
syntax.mlir:3:21: error: expected ','
  %r = arith.addi %x %x : i32
                    ^
""",
    "unknown_op": """\
unknown_op.mlir:3:2: error: unregistered operation 'gpu.nonsense' found in dialect ('gpu') that does not allow \
unknown operations
\t"gpu.nonsense"() : () -> ()
\t^
""",
    "types": """\
types.mlir:3:23: error: use of value '%y' expects different type than prior uses: 'i32' vs 'i64'
  %r = arith.addi %x, %y : i32
                      ^
types.mlir:2:23: note: prior use here
func.func @f(%x: i32, %y: i64) -> i32 {
                      ^
""",
    "verify": """\
verify.mlir:3:3: error: type of return operand 0 ('i32') doesn't match function result type ('i64') in function @f
  return %x : i32
  ^
""",
    "missing_kernel": """\
missing_kernel.mlir:10:5: error: 'gpu.launch_func' op kernel function '@m::@gone' is undefined
    gpu.launch_func @m::@gone blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    ^
""",
    "reduction": """\
reduction.mlir:6:8: error: 'scf.parallel' op with a reduction of what no array holds cannot become a kernel; use \
gpu.launch with gpu.all_reduce, or scf.for where the loop belongs to the host
  %r = scf.parallel (%i) = (%c0) to (%c4) step (%c1) init (%x) -> memref<4xf32> {
       ^
""",
    "effects": """\
effects.mlir:5:3: error: this parallel loop cannot become a kernel: its body must not have effects outside the \
innermost loop, and its bounds must not depend on what it computes
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
  ^
""",
    "forall_mapping": """\
forall_mapping.mlir:7:5: error: 'scf.forall' in a kernel has a mapping, which is for the transform dialect: apply the \
transforms first, or use gpu.thread_id
    scf.forall (%i) in (64) {
    ^
""",
    "softmax": """\
softmax.mlir:3:3: error: 'linalg.softmax' computes exponentials, of floating-point numbers alone: convert its operand \
to such, for instance f32
  linalg.softmax dimension(1) ins(%x : memref<4x8xi32>) outs(%y : memref<4x8xi32>)
  ^
""",
    "too_many_threads": """\
too_many_threads.mlir:9:5: error: the iterations of this inner parallel loop become the threads of one block: there \
are 2048, and a block has at most 1024; make one loop of both levels, which is tiled, or split this one
    scf.parallel (%j) = (%c0) to (%m) step (%c1) {
    ^
""",
    "other_block": """\
other_block.mlir:11:3: error: 'gpu.launch_func' op has a block of 8 along y, but its kernel says known_block_size = \
array<i32: 16, 2, 1>: make them the same
  gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c16, %c8, %c1)
  ^
other_block.mlir:3:3: note: the kernel is here
  gpu.func @k() kernel attributes {known_block_size = array<i32: 16, 2, 1>} {
  ^
""",
    "nested": """\
nested.mlir:3:3: error: a module inside of the program's module is not compiled: move what it holds out
  module @inner {
  ^
""",
    "twice": """\
twice.mlir:5:1: error: redefinition of symbol named 'f'
func.func @f() {
^
twice.mlir:2:1: note: see existing symbol definition here
func.func @f() {
^
""",
}


@pytest.mark.parametrize("name", LOCATED)
def test_messages_with_a_place(name: str, tmp_path: Path) -> None:
    assert refused(name, tmp_path) == LOCATED[name]


UNSUPPORTED = {
    "csr": ("csr.mlir:4:13: error: 'gpu.create_csr' ", "  %s, %t1 = gpu.create_csr async", 12),
    "tensor": ("tensor.mlir:3:3: error: tensors ", "  gpu.func @f(%x: tensor<4xf32>)", 2),
    "printf": ("printf.mlir:4:5: error: 'gpu.printf' ", "    gpu.printf ", 4),
    "outside": ("outside.mlir:7:10: error: 'func.call' finds no 'square' where it stands: ", "    %w = func.call", 9),
    "unknown_dialect": ("unknown_dialect.mlir:3:3: error: unknown operation 'nosuch.op': ", "  nosuch.op", 2),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_is_said_where_it_stands(name: str, tmp_path: Path) -> None:
    start, line, column = UNSUPPORTED[name]
    message, shown, caret, *_ = refused(name, tmp_path).split("\n")
    assert message.startswith(start)
    assert shown.startswith(line)
    assert caret == " " * column + "^"


def test_every_wrong_program_is_tested() -> None:
    assert {path.stem for path in WRONG.glob("*.mlir")} == {*LOCATED, *UNSUPPORTED}


def test_every_diagnostic_is_an_object_too() -> None:
    with pytest.raises(offload.CompileError) as caught:
        offload.compile(WRONG / "types.mlir")
    (diagnostic,) = caught.value.diagnostics
    assert isinstance(diagnostic, Diagnostic)
    assert (diagnostic.line, diagnostic.column, diagnostic.severity) == (3, 23, "error")
    assert diagnostic.source_line == "  %r = arith.addi %x, %y : i32"
    assert [note.line for note in diagnostic.notes] == [2]
    assert diagnostic.file == str(WRONG / "types.mlir")


ALLOCATES = """func.func @f(%x: memref<?xf32>, %sizes: memref<?xindex>) {
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c1) to (%c1) step (%c1) {
    %n = memref.load %sizes[%i] : memref<?xindex>
    %m = memref.alloc(%n) : memref<?xf32> LOCATION
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %m[%i] : memref<?xf32>
    %w = memref.load %m[%c1] : memref<?xf32>
    memref.store %w, %x[%i] : memref<?xf32>
  }
  return
}
"""


def test_lines_of_another_language_are_shown(tmp_path: Path) -> None:
    """A program that a compiler made has the locations of what that was given."""
    model = tmp_path / "model.py"
    model.write_text("def f(x):\n    m = empty(9)\n")
    for line, shown in ((2, "\n    m = empty(9)\n        ^"), (7, "")):
        with pytest.raises(offload.CompileError) as caught:
            offload.compile(ALLOCATES.replace("LOCATION", f'loc("{model}":{line}:9)'))
        first, *rest = str(caught.value).split("\n")
        assert first.startswith(f"{model}:{line}:9: error: 'memref.alloc' in a kernel")
        assert "".join(f"\n{line}" for line in rest) == shown


def test_a_mark_that_descriptors_cannot_carry() -> None:
    kernel = "gpu.module @m { gpu.func @k(%x: memref<4xf32> {llvm.noalias}) kernel { gpu.return } }"
    with pytest.warns(offload.BuildWarning, match="llvm.noalias is left out: .*--bare-pointers\n"):
        offload.compile(kernel, targets=["nvvm:sm_90,format=isa"])


def test_what_has_no_location_is_in_the_program() -> None:
    with pytest.raises(offload.CompileError) as caught:
        offload.compile(ALLOCATES.replace("LOCATION", "loc(unknown)"), name="made here")
    assert str(caught.value).startswith("made here: error: 'memref.alloc' in a kernel")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.file, diagnostic.line, diagnostic.source_line) == ("made here", 0, None)


def test_the_second_source_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.mlir").write_text("func.func @f() {\n  return\n}\n")
    (tmp_path / "bad.mlir").write_text("func.func @f() {\n  return\n}\n")
    done = command("build", "good.mlir", "bad.mlir", "-o", "out.so", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "bad.mlir:1:1: error: 'f' is defined in two sources: rename one, or make it private\nfunc.func @f() {\n^\n"
        "good.mlir:1:1: note: the other definition\nfunc.func @f() {\n^\n"
    )


def test_an_operation_of_an_unknown_dialect(tmp_path: Path) -> None:
    """MLIR's own message says how a tool of MLIR's is extended, which nobody can do to this one."""
    error, _, _, note, *_ = refused("unknown_dialect", tmp_path).split("\n")
    assert error.endswith(": MLIR 22 has no dialect 'nosuch'; lower it to one that it has, before offload sees it")
    assert note.startswith("unknown_dialect.mlir:3:3: note: Available dialects: ")
    assert "registration" not in note


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\x00\x01binary", "p.mlir:1:1: error: unexpected character\n"),
        (b"module {", "p.mlir:1:7: error: expected operation name in quotes\nmodule {\n      ^\n"),
        (
            b"ML\xefR\x0d\x01garbage",
            "p.mlir: error: malformed null-terminated string, no null character found\n"
            "p.mlir: note: this is bytecode that is cut or damaged, or not of MLIR 22: write it again "
            "(mlir-opt --emit-bytecode)\n",
        ),
    ],
)
def test_files_that_are_no_programs(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_bytes(data)
    done = command("build", "p.mlir", "-o", "out.so", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert message.count("\n") > 1 or done.stderr == message or "\ufffd" in done.stderr


def test_functions_that_nothing_defines(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text(
        "func.func private @gone()\nfunc.func @f() {\n  call @gone() : () -> ()\n  return\n}\n"
    )
    done = command("build", "p.mlir", "-o", "out.so", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("p.mlir:1:1: error: undefined symbol: gone")
    assert "the program calls functions that nothing defines; define them in one of the sources" in done.stderr
    assert "--object" in done.stderr


CALLS_OF_NONE = {
    "none": "func.func @f() {\n  call @gone() : () -> ()\n  return\n}",
    "of gpu.func": "gpu.module @m {\n gpu.func @gone() { gpu.return }\n gpu.func @k() kernel {\n"
    "  func.call @gone() : () -> ()\n  gpu.return\n }\n}",
}


@pytest.mark.parametrize("case", CALLS_OF_NONE)
def test_calls_of_no_function(case: str) -> None:
    said = r"'func.call' finds no 'gone' where it stands: define or declare it there; .* cannot be called"
    with pytest.raises(offload.CompileError, match=said):
        offload.compile(CALLS_OF_NONE[case])


def test_declared_functions_have_one_name_on_every_target(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text("""gpu.module @m {
      func.func private @gone(i32) -> i32
      gpu.func @k(%x: memref<?xi32>, %v: i32) kernel {
        %c0 = arith.constant 0 : index
        %r = func.call @gone(%v) : (i32) -> i32
        memref.store %r, %x[%c0] : memref<?xi32>
        gpu.return
      }
    }""")
    for target in ALL_TARGETS:
        done = command("build", "p.mlir", "-o", "out.so", "-q", "-t", target, cwd=tmp_path)
        assert done.returncode == 1
        assert re.match(
            r"p\.mlir:5:\d+: error: 'gone' is called here, and nothing defines it for \S+: define it in this "
            r"gpu\.module, or link bitcode that has it \(--link\)\n",
            done.stderr,
        ), done.stderr


def test_a_crash_of_llvm_is_an_error(tmp_path: Path) -> None:
    """PTX 4.0 has no shuffles, and LLVM aborts where it cannot select an instruction."""
    target = "nvvm:sm_50,features=+ptx40"
    done = command("build", EXAMPLES / "reduce.mlir", "-o", "out.so", "-q", "-t", target, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"{EXAMPLES}/reduce.mlir:21:12: error: sm_50 has no instruction for llvm.nvvm.shfl.sync.bfly.i32: build for "
        "a chip that has, name the feature that it needs (features=+NAME), or leave sm_50 out\n"
    )


def test_a_truncated_library_at_many_lengths(built: dict[str, Path], tmp_path: Path) -> None:
    data = built["saxpy"].read_bytes()
    path = tmp_path / "cut.so"
    lengths = {0, 1, 3, 4, 16, 63, 64, 100, 4096, len(data) // 2, len(data) - 1, *range(5, len(data), len(data) // 60)}
    for length in lengths:
        path.write_bytes(data[:length])
        with pytest.raises(offload.ArtifactError, match=str(path)):
            offload.load(path)
    for length in (0, 64, len(data) // 2):
        path.write_bytes(data[:length])
        for arguments in (["inspect", path], ["inspect", path, "--json"]):
            done = command(*arguments, cwd=tmp_path)
            assert (done.returncode, done.stdout) == (1, "")
            assert done.stderr.startswith(f"offload: error: {path}: ")


def test_libraries_of_another_make(tmp_path: Path) -> None:
    for path in (Path(native().__file__), Path(sys.executable), EXAMPLES / "saxpy.mlir", tmp_path):
        done = command("inspect", path, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"offload: error: {path}: ")
        with pytest.raises(offload.ArtifactError):
            offload.load(path)


def test_a_library_for_another_machine(built: dict[str, Path], tmp_path: Path) -> None:
    data = bytearray(built["saxpy"].read_bytes())
    struct.pack_into("<H", data, 18, 243)  # EM_RISCV
    (tmp_path / "riscv.so").write_bytes(data)
    with pytest.raises(offload.ArtifactError, match=r"riscv"):
        offload.load(tmp_path / "riscv.so")


def test_missing_files(tmp_path: Path) -> None:
    for arguments in (["build", "gone.mlir"], ["run", "gone.mlir"]):
        done = command(*arguments, "-q" if arguments[0] == "build" else "--entry=main", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "offload: error: cannot read gone.mlir: No such file or directory\n"
    done = command("inspect", "gone.so", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "offload: error: gone.so: cannot read the artifact: No such file or directory\n"
    done = command("build", EXAMPLES / "saxpy.mlir", "-q", "--link", "gone.bc", "-t", "nvvm:sm_90", cwd=tmp_path)
    assert done.returncode == 1
    assert "gone.bc" in done.stderr


@pytest.mark.parametrize("output", ["/proc/out.so", "no/such/folder/out.so", "."])
def test_outputs_that_cannot_be_written(output: str, tmp_path: Path) -> None:
    done = command("build", EXAMPLES / "saxpy.mlir", "-q", "-o", output, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"offload: error: cannot write {re.escape(output)}: .+\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_build_leaves_the_old_library(tmp_path: Path) -> None:
    (tmp_path / "out.so").write_text("old")
    assert command("build", WRONG / "verify.mlir", "-q", "-o", "out.so", cwd=tmp_path).returncode == 1
    assert (tmp_path / "out.so").read_text() == "old"


# Calls.


def test_wrong_calls() -> None:
    saxpy = on_host(EXAMPLES / "saxpy.mlir").saxpy
    x = np.ones(4, np.float32)
    for arguments in (
        (1, x.astype(np.float64), x),
        (1, x.astype(np.int32), x),
        (1, x.reshape(2, 2), x),
        (1, x[::2], x[::2]),
        (x, x, x),
        (1, x),
        (1, x, x, x),
        (1, x, "text"),
    ):
        with pytest.raises(offload.SignatureError) as caught:
            saxpy(*arguments)
        assert "saxpy()" in str(caught.value)


def test_unknown_names() -> None:
    library = on_host(EXAMPLES / "saxpy.mlir")
    with pytest.raises(AttributeError, match=r"saxpi.*saxpy"):
        _ = library.saxpi
    with pytest.raises(AttributeError, match=r"saxpy_kernal.*saxpy_kernel"):
        _ = library.kernels.saxpy_kernal


def test_no_image_for_the_device_in_use(tmp_path: Path) -> None:
    library = offload.load(offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=["rocdl:gfx942"]))
    library.use("host")
    x = np.ones(4, np.float32)
    with pytest.raises(offload.DeviceError, match=r"(?s)saxpy_kernel.*gfx942"):
        library.saxpy(1, x, x)


def test_another_declaration_of_a_function_of_the_runtime(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text("""llvm.func @mgpuMemAlloc(i32) -> i32
func.func @f() {
  %c1 = arith.constant 1 : index
  %m = gpu.alloc (%c1) : memref<?xf32>
  gpu.dealloc %m : memref<?xf32>
  return
}
""")
    done = command("build", "p.mlir", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("p.mlir:1:1: error: redefinition of function 'mgpuMemAlloc' of different type ")
