"""``offload run``: prints (against mlir-runner's), results, kernels, entries, errors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from compiling import HERE, PROGRAMS, command, python, tool

GOLDEN = HERE / "golden" / "prints.txt"
PRINTS = PROGRAMS / "prints.mlir"
SCALARS = """
func.func private @printI64(i64)
func.func private @printNewline()
func.func private @rtclock() -> f64
func.func private @nanoTime() -> i64 attributes {llvm.emit_c_interface}
func.func @main() -> i32 {
  %number = arith.constant 7 : i64
  %result = arith.constant 42 : i32
  call @printI64(%number) : (i64) -> ()
  call @printNewline() : () -> ()
  return %result : i32
}
func.func @unfinished_line() -> i32 {
  %number = arith.constant 7 : i64
  %result = arith.constant 42 : i32
  call @printI64(%number) : (i64) -> ()
  return %result : i32
}
func.func @pair() -> (f32, i64) {
  %a = arith.constant 1.5 : f32
  %b = arith.constant 3 : i64
  return %a, %b : f32, i64
}
func.func @clocks() -> (i1, i1) {
  %seconds = call @rtclock() : () -> f64
  %nanoseconds = call @nanoTime() : () -> i64
  %later = call @rtclock() : () -> f64
  %much_later = call @nanoTime() : () -> i64
  %a = arith.cmpf ole, %seconds, %later : f64
  %b = arith.cmpi sle, %nanoseconds, %much_later : i64
  return %a, %b : i1, i1
}
func.func @with_arguments(%a: i32) { return }
"""
VECTORS = """
func.func @main() {
  %v = arith.constant dense<[[1.0, 2.5], [-3.0, 4.0e10]]> : vector<2x2xf32>
  %h = arith.constant dense<[0.333, 2.0]> : vector<2xf16>
  %i = arith.constant dense<[1, -2, 3]> : vector<3xi64>
  vector.print %v : vector<2x2xf32>
  vector.print %h : vector<2xf16>
  vector.print %i : vector<3xi64>
  vector.print str "hello\\n"
  return
}
"""
EMPTY = """
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
func.func @main() {
  %n = arith.constant 0 : index
  %x = memref.alloc(%n) : memref<2x?xf32>
  %u = memref.cast %x : memref<2x?xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  memref.dealloc %x : memref<2x?xf32>
  return
}
"""
KERNEL = """
func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}
func.func @main() {
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %x = memref.alloc() : memref<2x4xi32>
  linalg.fill ins(%zero : i32) outs(%x : memref<2x4xi32>)
  %u = memref.cast %x : memref<2x4xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %four, %sy = %one, %sz = %one) {
    %i = arith.index_cast %tx : index to i32
    memref.store %i, %x[%one, %tx] : memref<2x4xi32>
    gpu.terminator
  }
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  gpu.host_unregister %u : memref<*xi32>
  memref.dealloc %x : memref<2x4xi32>
  return
}
"""


def run(folder: Path, program: str | Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program for the CPU, with output through a pipe and buffered, as a shell would have it."""
    if isinstance(program, str):
        path = folder / "program.mlir"
        path.write_text(program)
    else:
        path = program
    return command("run", path, *arguments, cwd=folder, without=["PYTHONUNBUFFERED"])


def output(folder: Path, program: str | Path, *arguments: str) -> str:
    done = run(folder, program, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def without_addresses(text: str) -> str:
    return re.sub("0x[0-9a-f]+", "0x...", text)


# Prints.


def test_prints_what_mlir_runner_prints(tmp_path: Path) -> None:
    done = run(tmp_path, PRINTS)
    assert done.returncode == 0
    assert without_addresses(done.stdout) == GOLDEN.read_text()
    *differences, flops = done.stderr.splitlines()
    assert "0.1 != 0.2 offset = 9" in differences
    assert flops == "0.000000 GFLOPS"


def test_expected_output_is_that_of_mlir_runner(tmp_path: Path) -> None:
    found = shutil.which("mlir-runner-22")
    assert found, "mlir-runner-22 is not installed; scripts/setup_system.sh installs it"
    folder = Path(found).resolve().parent.parent / "lib"
    passes = (
        "convert-vector-to-scf expand-strided-metadata convert-scf-to-cf convert-vector-to-llvm "
        "finalize-memref-to-llvm convert-func-to-llvm convert-arith-to-llvm convert-cf-to-llvm "
        "reconcile-unrealized-casts"
    )
    lowered = tmp_path / "lowered.mlir"
    tool("mlir-opt", PRINTS, *[f"--{name}" for name in passes.split()], "-o", lowered)
    libraries = ",".join(str(folder / f"libmlir_{name}_utils.so") for name in ("runner", "c_runner", "float16"))
    done = subprocess.run(
        ["mlir-runner-22", lowered, "-e", "main", "--entry-point-result=void", f"--shared-libs={libraries}"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert without_addresses(done.stdout.decode()) == GOLDEN.read_text()
    assert run(tmp_path, PRINTS).stderr == done.stderr.decode()


def test_prints_vectors(tmp_path: Path) -> None:
    expected = "( ( 1, 2.5 ), ( -3, 4e+10 ) )\n( 0.333008, 2 )\n( 1, -2, 3 )\nhello\n"
    assert output(tmp_path, VECTORS) == expected


def test_prints_nothing_of_an_empty_memref(tmp_path: Path) -> None:
    assert output(tmp_path, EMPTY).splitlines()[1:] == ["[[], ", " []]"]


def test_prints_what_a_kernel_wrote(tmp_path: Path) -> None:
    header, *rows = output(tmp_path, KERNEL, "--backend", "host").splitlines()
    assert without_addresses(header) == (
        "Unranked Memref base@ = 0x... rank = 2 offset = 0 sizes = [2, 4] strides = [4, 1] data = "
    )
    assert rows == ["[[0,   0,   0,   0], ", " [0,   1,   2,   3]]"]


# Results and entries.


def test_result_of_main_comes_after_its_prints(tmp_path: Path) -> None:
    assert output(tmp_path, SCALARS) == "7\n42\n"


def test_the_program_of_standard_input(tmp_path: Path) -> None:
    piped = f"'{sys.executable}' -m offload run - --entry unfinished_line"
    given = {"args": ["sh", "-c", piped], "cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    done = subprocess.run(input=SCALARS, **given)
    assert (done.returncode, done.stdout, done.stderr) == (0, "742\n", "")
    done = subprocess.run(input="func.func @main() { wrong }", **given)
    assert done.returncode == 1
    assert done.stderr.startswith("<stdin>:1:21: error: ")
    given["args"][2] = f"'{sys.executable}' -m offload build -q -"
    assert subprocess.run(input=SCALARS, **given).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["stdin.so"]
    for word in ("build", "run"):
        given["args"][2] = f"'{sys.executable}' -m offload {word} - -"
        done = subprocess.run(input=SCALARS, **given)
        assert (done.returncode, "standard input, which is read once" in done.stderr) == (2, True)


def test_result_comes_after_an_unfinished_line(tmp_path: Path) -> None:
    assert output(tmp_path, SCALARS, "--entry", "unfinished_line") == "742\n"


def test_entry_is_chosen(tmp_path: Path) -> None:
    assert output(tmp_path, SCALARS, "--entry", "pair") == "(1.5, 3)\n"


def test_arrays_are_printed_as_their_values(tmp_path: Path) -> None:
    arrays = """
func.func @one() -> memref<2x2xi32> {
  %r = memref.alloc() : memref<2x2xi32>
  %v = arith.constant 7 : i32
  linalg.fill ins(%v : i32) outs(%r : memref<2x2xi32>)
  return %r : memref<2x2xi32>
}
func.func @two() -> (i64, tensor<3xf32>) {
  %n = arith.constant 3 : i64
  %r = arith.constant dense<[0.5, 1.5, 2.5]> : tensor<3xf32>
  return %n, %r : i64, tensor<3xf32>
}
"""
    assert output(tmp_path, arrays, "--entry", "one", "--backend", "host") == "[[7 7]\n [7 7]]\n"
    printed = "(3, array([0.5, 1.5, 2.5], dtype=float32))\n"
    assert output(tmp_path, arrays, "--entry", "two", "--backend", "host") == printed


def test_clocks_go_forward(tmp_path: Path) -> None:
    assert output(tmp_path, SCALARS, "--entry", "clocks") == "(True, True)\n"


def test_missing_entry_lists_the_functions(tmp_path: Path) -> None:
    done = run(tmp_path, SCALARS, "--entry", "start")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no function 'start'" in done.stderr
    assert "main, unfinished_line, pair, clocks, with_arguments" in done.stderr


def test_entry_whose_arguments_may_be_left_out(tmp_path: Path) -> None:
    program = "func.func @main(%x: memref<?xf32> {offload.optional}) -> index {\n  %c0 = arith.constant 0 : index\n"
    program += "  %n = memref.dim %x, %c0 : memref<?xf32>\n  return %n : index\n}\n"
    assert output(tmp_path, program) == "0\n"


def test_a_library_without_code_for_this_machine_says_what_to_build(tmp_path: Path) -> None:
    (tmp_path / "gpu.mlir").write_text("""
func.func @main() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
             threads(%g, %h, %i) in (%j = %c1, %k = %c1, %l = %c1) {
    gpu.printf "%lld\\n", %g : index
    gpu.terminator
  }
  return
}
""")
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    done = command("run", "gpu.mlir", "-t", "nvvm:sm_90", cwd=tmp_path, environment=hidden)
    assert done.returncode == 1
    assert done.stderr.endswith(". Build for one of these, too: --target host is for the CPU.\n"), done.stderr


def test_entry_with_arguments_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, SCALARS, "--entry", "with_arguments")
    assert (done.returncode, done.stdout) == (1, "")
    assert "with_arguments() takes arguments" in done.stderr


def test_entry_that_is_for_c_alone_is_told_from_a_missing_one(tmp_path: Path) -> None:
    vector = """
func.func @lanes() -> vector<4xf32> {
  %r = arith.constant dense<1.0> : vector<4xf32>
  return %r : vector<4xf32>
}
"""
    done = run(tmp_path, vector, "--entry", "lanes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "has a function 'lanes' with a type that has no counterpart in Python" in done.stderr


# Errors.


def test_no_image_for_the_backend(tmp_path: Path) -> None:
    done = run(tmp_path, KERNEL, "--target", "nvvm:sm_90,format=isa", "--backend", "host")
    assert done.returncode == 1
    assert "No image" in done.stderr


def test_nothing_is_printed_of_a_launch_that_failed(tmp_path: Path) -> None:
    prints = "func.func private @printI64(i64)\nfunc.func private @printNewline()\n" + KERNEL.replace(
        "return", "call @printI64(%seven) : (i64) -> ()\n  call @printNewline() : () -> ()\n  return"
    ).replace("func.func @main() {", "func.func @main() {\n  %seven = arith.constant 7 : i64")
    assert output(tmp_path, prints, "--backend", "host").endswith("3]]\n7\n")
    done = run(tmp_path, prints, "--target", "nvvm:sm_90,format=isa", "--backend", "host")
    assert (done.returncode, done.stdout) == (1, "")
    assert "No image" in done.stderr


def test_undefined_function_is_named(tmp_path: Path) -> None:
    calls = "func.func private @elsewhere()\nfunc.func @main() { call @elsewhere() : () -> () return }\n"
    done = run(tmp_path, calls)
    assert (done.returncode, done.stdout) == (1, "")
    assert "elsewhere" in done.stderr


def test_missing_file_is_named(tmp_path: Path) -> None:
    done = command("run", "absent.mlir", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "absent.mlir" in done.stderr


def test_a_library_has_the_print_functions_that_its_program_calls(tmp_path: Path) -> None:
    for name, source in (("kernel", KERNEL), ("vectors", VECTORS)):
        (tmp_path / f"{name}.mlir").write_text(source)
        assert command("build", f"{name}.mlir", "-o", f"{name}.so", "-q", cwd=tmp_path).returncode == 0
        calls = f"import offload; library = offload.load('{name}.so'); library.use('host'); library.main()"
        place = re.compile("base@ = 0x[0-9a-f]+")
        assert place.sub("", python(calls, cwd=tmp_path)) == place.sub("", output(tmp_path, source)) != ""


def test_prints_that_cannot_be_written(tmp_path: Path) -> None:
    """A full disk is an error, whether it is found at the end or before; a reader that went away ends the command
    without a word, as it ends others."""
    loop = """
func.func private @printI64(i64)
func.func private @printNewline()
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %many = arith.constant 20000 : index
  %number = arith.constant 1234567 : i64
  scf.for %i = %c0 to %many step %c1 {
    func.call @printI64(%number) : (i64) -> ()
    func.call @printNewline() : () -> ()
  }
  return
}
"""
    (tmp_path / "loop.mlir").write_text(loop)
    line = loop.replace("20000", "1").replace("    func.call @printNewline() : () -> ()\n", "")  # which would flush
    (tmp_path / "line.mlir").write_text(line)
    lost = "a part of what the program has printed is lost"
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    for name, why in {"line.mlir": "No space left on device", "loop.mlir": lost}.items():
        words = [sys.executable, "-m", "offload", "run", name]
        with open("/dev/full", "w") as full:  # noqa: PTH123
            done = subprocess.run(
                words, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=buffered, check=False
            )
        assert (name, done.returncode, done.stderr.splitlines()[-1]) == (
            name, 1, f"offload: error: cannot write the output: {why}"
        )  # fmt: skip
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert (process.wait(), process.stderr.read()) == (141, b"")


def test_what_a_program_failed_at_is_told_where_its_output_is_lost(tmp_path: Path) -> None:
    (tmp_path / "fails.mlir").write_text(
        "func.func private @printNewline()\n"
        "func.func @main() {\n  func.call @printNewline() : () -> ()\n  %no = arith.constant false\n"
        '  cf.assert %no, "went wrong"\n  return\n}\n'
    )
    words = [sys.executable, "-m", "offload", "run", "fails.mlir"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "went wrong" in done.stderr


def test_a_run_that_is_killed_leaves_no_library(tmp_path: Path) -> None:
    """Without a cache the library is a temporary file; it is gone as soon as it is loaded."""
    (tmp_path / "hangs.mlir").write_text("""
llvm.func @sleep(i32) -> i32
llvm.func @puts(!llvm.ptr) -> i32
llvm.func @fflush(!llvm.ptr) -> i32
llvm.mlir.global private constant @text("started\\00")
llvm.func @main() -> i32 {
  %text = llvm.mlir.addressof @text : !llvm.ptr
  %0 = llvm.call @puts(%text) : (!llvm.ptr) -> i32
  %all = llvm.mlir.zero : !llvm.ptr
  %1 = llvm.call @fflush(%all) : (!llvm.ptr) -> i32
  %long = llvm.mlir.constant(600 : i32) : i32
  %2 = llvm.call @sleep(%long) : (i32) -> i32
  llvm.return %2 : i32
}
""")
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "offload", "run", "--no-cache", "hangs.mlir"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"started\n"
        running.kill()
    assert list((tmp_path / "temporary").iterdir()) == []
