"""What Python shows of functions and kernels, and that stubs say the same to type checkers."""

from __future__ import annotations

import inspect
import os
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import PROGRAMS, command, emit_text, program

import offload
from offload.artifact import Argument, Metadata, Signature
from offload.artifact.meta import KernelSignature
from offload.runtime.stubs import library_stub


def test_inspection_and_help() -> None:
    library = program("described")
    assert str(inspect.signature(library.axpy)) == (
        "(a: 'float32', x: 'float32[n]', y: 'float32[m]', copy: 'float32[k] | None' = None) -> 'int64'"
    )
    # Only those at the end may be left out.
    assert (
        str(inspect.signature(library.seen)) == "(x: 'float32[m, 4] | None', n: 'int64', sizes: 'int64[4]') -> 'int64'"
    )
    assert library.axpy.__doc__ == (
        "axpy(a: float32, x: float32[n], y: float32[m], copy: float32[k] | None = None) -> int64\n\n"
        'Adds a x to y.\n\nWhere copy is given, the \\ sum "goes" there too.'
    )
    fill = library.kernels.fill
    assert str(inspect.signature(fill)) == "(x: 'float32[m] | None', value: 'float32', n: 'int32') -> 'None'"
    for thing, words in ((library.axpy, 'the \\ sum "goes" there too'), (fill, "Fills the first n of x.")):
        assert words in pydoc.render_doc(thing, renderer=pydoc.plaintext)


def test_inspect_shows_the_same(tmp_path: Path) -> None:
    made = tmp_path / "described.so"
    offload.build([PROGRAMS / "described.mlir"], made, targets=["host"])
    shown = offload.artifact.describe(offload.artifact.read(made))
    axpy = next(function for function in shown["functions"] if function["name"] == "axpy")
    assert axpy["doc"].startswith("Adds a x to y.")
    assert [argument.get("optional") for argument in axpy["args"]] == [None, None, None, True]
    assert next(kernel for kernel in shown["kernels"] if kernel["name"] == "fill")["doc"] == "Fills the first n of x."


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("@f(%x: memref<4xf32> {offload.optional})", "argument 0: an argument that may be None becomes an empty array"),
        ("@f(%n: i32, %x: f32 {offload.optional})", "argument 1: an argument that may be None becomes an empty array"),
        ("@f(%x: memref<?xf32> {offload.optional = true})", "argument 0: offload.optional has a value: write it alone"),
        ("@f(%x: f32 {offload.name = 3})", "argument 0: offload.name has to be a string"),
        ("@f() attributes {offload.doc = 3}", "offload.doc has to be a string"),
        (
            '@f() attributes {offload.docs = "f"}',
            "offload.docs has no meaning on 'func.func': a function has offload.doc",
        ),
        ('@f(%x: f32 {offload.nmae = "y"})', "offload.nmae has no meaning on an argument"),
        ('private @g() -> (f32 {offload.name = "y"})\nfunc.func @f()', "offload.name has no meaning on a result"),
    ],
)
def test_what_cannot_be_said(function: str, why: str) -> None:
    with pytest.raises(offload.CompileError, match=re.escape(why)):
        emit_text(f"func.func {function} {{ return }}", "kernels")


PROGRAM = """\
from __future__ import annotations

import array
import typing

import numpy
import offload

if typing.TYPE_CHECKING:
    from described import Library

lib = typing.cast("Library", offload.load("described.so"))
lib.use("host")
x, y = numpy.arange(4, dtype=numpy.float32), array.array("f", [1.0] * 4)
room: int = lib.axpy(2.0, x, y, copy=lib.device.zeros(4, "f4"))
room += lib.axpy(numpy.float32(1), x, y, None, stream=lib.stream())
fresh = lib.fresh()
pending = lib.kernels.fill[1, (32, 1), lib.stream()](x, value=3, n=2)
pending.wait()
lib.kernels.fill[1, 32](None, 3.0, 4)
print(room, fresh.sum(), y.tolist(), x.tolist())
"""
WRONG = {
    'lib.axpy("2", x, y)': 'Argument 1 to "__call__" of "_function_axpy" has incompatible type "str"',
    "lib.axpy(2, x)": 'Missing positional argument "y"',
    "lib.axpy(2, 3, y)": 'Argument 2 to "__call__" of "_function_axpy" has incompatible type "int"',
    "lib.axpy(2, None, y)": 'has incompatible type "None"',
    "lib.kernels.fill[1, 2](x, 3.0, 4.5)": 'Argument 3 to "__call__" of "_launch_fill" has incompatible type "float"',
    "lib.fresh(out=x)": 'Unexpected keyword argument "out"',
    "lib.fresh.started()": '"_function_fresh" has no attribute "started"',  # Any has: pyright would check no call
}


def mypy(folder: Path, file: str) -> subprocess.CompletedProcess[str]:
    home = Path(offload.__file__).parent.parent
    path = {} if home.name in ("site-packages", "dist-packages") else {"MYPYPATH": str(home)}
    arguments = ["--strict", "--follow-imports=silent", "--no-error-summary", "described.pyi", file]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *arguments], cwd=folder, env=os.environ | path, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip


def test_stubs_are_true(tmp_path: Path) -> None:
    offload.build([PROGRAMS / "described.mlir"], tmp_path / "described.so", targets=["host"])
    printed = command("stubs", "described.so", cwd=tmp_path)
    assert command("stubs", "described.so", "-o", "described.pyi", cwd=tmp_path).returncode == 0
    assert (tmp_path / "described.pyi").read_text() == printed.stdout
    assert '# lib.functions["class"]: no attribute can have this name' in printed.stdout
    assert '# lib.functions["use"]: no attribute can have this name' in printed.stdout

    # pyright, which is not run here, minds overloads of which one takes what the other does; mypy lets Any pass.
    assert "Waiting) -> _launch_fill[None]: ...  # pyright: ignore[reportOverlappingOverload]" in printed.stdout

    (tmp_path / "program.py").write_text(PROGRAM)
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("4 2.0 [1.0, 4.0, 7.0, 10.0] [3.0, 3.0, 2.0, 3.0]\n", "")
    right = mypy(tmp_path, "program.py")
    assert (right.returncode, right.stdout) == (0, "")

    (tmp_path / "wrong.py").write_text(PROGRAM + "".join(f"{line}\n" for line in WRONG))
    refused = mypy(tmp_path, "wrong.py").stdout
    first = PROGRAM.count("\n") + 1
    for number, what in enumerate(WRONG.values(), first):
        assert re.search(rf"^wrong\.py:{number}: error: .*{re.escape(what)}", refused, re.MULTILINE), refused


def test_names_that_the_package_lacks(tmp_path: Path) -> None:
    """A type checker finds them, and so does who completes what the package has."""
    (tmp_path / "described.pyi").write_text("")
    right = (
        "library: offload.runtime.Library = offload.load('a.so')\noffload.targets.registry()\noffload.artifact.read\n"
    )
    (tmp_path / "program.py").write_text(f"import offload\n{right}")
    (tmp_path / "wrong.py").write_text("import offload\noffload.complie('a.mlir')\nfrom offload import Library\n")
    assert mypy(tmp_path, "program.py").stdout == ""
    refused = mypy(tmp_path, "wrong.py").stdout
    assert 'wrong.py:2: error: Module has no attribute "complie"' in refused
    assert 'wrong.py:3: error: Module "offload" has no attribute "Library"' in refused
    names = set(dir(offload))
    assert {*offload.__all__, "artifact", "runtime", "targets", "__doc__"} <= names
    assert not names & {"Any", "TYPE_CHECKING", "os", "sys"}


def test_stubs_of_any_dtype_and_name_are_python() -> None:
    dtypes = ["bool", "int8", "uint64", "float16", "bfloat16", "float8_e4m3fn", "complex128", "of_the_future"]
    args = tuple(
        Argument("lambda", kind, dtype, (3,) * (kind == "memref")) for dtype in dtypes for kind in ("memref", "scalar")
    )
    function = Signature(
        "f", "_f", args, tuple(Argument("", a.kind, a.dtype, a.shape) for a in args), 'Ends with "quotes"'
    )
    bytes_of_c = Signature("g", "_g", (), (), "Its text ends with \0, or \\0")
    others = (bytes_of_c, Signature("not a name", "_g"), Signature("def", "_h"))
    text = library_stub("any.so", Metadata((function, *others)))
    compile(text, "any.pyi", "exec")
    assert "lambda_: ArrayLike, lambda__: Bool" in text
    assert "class _function_def" not in text


def test_names_that_libraries_use_are_no_attributes_in_stubs() -> None:
    library = offload.load(program("described").path)
    used = vars(library).keys() - library.functions.keys()
    functions = tuple(Signature(name, f"_{name}") for name in used)
    kernels = tuple(KernelSignature(name, "m", ()) for name in vars(library.kernels))
    text = library_stub("any.so", Metadata(functions, kernels))
    for name in used:
        assert f'    # lib.functions["{name}"]: no attribute can have this name\n' in text
    for name in vars(library.kernels):
        assert f'    # lib.kernels["{name}"]: no attribute can have this name\n' in text


def test_stubs_do_not_replace_their_library(tmp_path: Path) -> None:
    path = offload.build(PROGRAMS / "described.mlir", tmp_path / "k.so", targets=["host"])
    data = path.read_bytes()
    done = command("stubs", "k.so", "-o", "k.so", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "offload: error: cannot write k.so: it is the library; name another output\n"
    assert path.read_bytes() == data


def test_stubs_are_printed(tmp_path: Path) -> None:
    offload.build(PROGRAMS / "described.mlir", tmp_path / "k.so", targets=["host"])
    printed = command("stubs", "k.so", cwd=tmp_path)
    assert printed.returncode == 0
    assert "class Library" in printed.stdout
    assert command("stubs", "k.so", "-o", "-", cwd=tmp_path).stdout == printed.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["k.so"]


def test_stubs_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "no.so").write_text("no")
    assert command("stubs", "no.so", cwd=tmp_path).returncode == 1
    offload.build([PROGRAMS / "described.mlir"], tmp_path / "described.so", targets=["host"])
    done = command("stubs", "described.so", "-o", "no/folder.pyi", cwd=tmp_path)
    assert done.returncode == 1
    assert "cannot write no/folder.pyi: No such file or directory" in done.stderr
