"""Names of functions, kernels and modules: any text works where it can be found again, and is refused where not."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host

import offload
from offload import CompileError

ODD = ["a b", "größe", "核", "a-b", "a.b", "a/b", "1a", "a;b", "%x", "a\\\\b"]


def program(module: str = "m", kernel: str = "k", function: str = "f", helper: str = "h") -> str:
    return f"""\
gpu.module @"{module}" {{
  func.func private @"{helper}"(%v: f32) -> f32 attributes {{no_inline}} {{
    %r = arith.addf %v, %v : f32
    return %r : f32
  }}
  memref.global "private" constant @"{helper} of" : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
  gpu.func @"{kernel}"(%x: memref<4xf32>) kernel {{
    %t = gpu.thread_id x
    %g = memref.get_global @"{helper} of" : memref<4xf32>
    %v = memref.load %g[%t] : memref<4xf32>
    %w = func.call @"{helper}"(%v) : (f32) -> f32
    memref.store %w, %x[%t] : memref<4xf32>
    gpu.return
  }}
}}
func.func @"{function}"(%x: memref<4xf32>) {{
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch_func @"{module}"::@"{kernel}" blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%x : memref<4xf32>)
  return
}}
"""


@pytest.mark.parametrize("name", ODD)
def test_any_text_is_a_name(name: str) -> None:
    library = offload.compile(program(f"{name} m", name, f"{name} f", f"{name} h"), targets=["host", "rocdl:gfx942"])
    library.use("host")
    said = name.replace("\\\\", "\\")
    for call in (getattr(library, f"{said} f"), library.kernels[said][1, 4]):
        x = np.zeros(4, np.float32)
        call(x)
        assert x.tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize("name", ODD)
def test_modules_functions_and_helpers_on_nvidia(name: str) -> None:
    assert emit(program(f"{name} m", "k", f"{name} f", name), "object", ["nvvm:sm_90"])


@pytest.mark.parametrize("name", ODD)
def test_kernels_on_nvidia_have_names_of_ptx(name: str) -> None:
    with pytest.raises(CompileError, match=r"on NVIDIA GPUs: PTX has names of letters, digits, _ and \$") as caught:
        emit(program(kernel=name), "lowered", ["nvvm:sm_90"])
    assert caught.value.diagnostics[0].line == 7
    assert emit(program(kernel="a$b_1"), "object", ["nvvm:sm_90"])


def test_helpers_whose_names_become_one() -> None:
    source = program(helper="a b").replace(
        "  gpu.func", "  func.func private @_a_b(%v: f32) -> f32 { return %v : f32 }\n  gpu.func"
    )
    library = offload.compile(source, targets=ALL_TARGETS)
    library.use("host")
    x = np.zeros(4, np.float32)
    library.f(x)
    assert x.tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize("name", ["", r"a\22b", "a@b", r"a\0Ab", r"a\00b", r"a\FFb"])
def test_what_cannot_be_found_again(name: str) -> None:
    for source, line in ((program(module=name), 1), (program(kernel=name), 7), (program(function=name), 16)):
        with pytest.raises(CompileError, match="cannot be found in a library: give it one of letters") as caught:
            emit(source, "kernels")
        assert caught.value.diagnostics[0].line == line


def test_kernels_stand_in_lists_with_commas() -> None:
    with pytest.raises(CompileError, match="the name 'a,b' cannot be found in a library"):
        emit(program(kernel="a,b"), "kernels")


LIBM = """
gpu.module @m {{
  gpu.func @{name}(%x: memref<?x{kind}>) kernel {{
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?x{kind}>
    %r = math.{function} %v : {kind}
    memref.store %r, %x[%t] : memref<?x{kind}>
    gpu.return
  }}
}}
gpu.module @helped {{
  func.func @{name}(%v: {kind}) -> {kind} {{
    %c = arith.constant 100.0 : {kind}
    %r = arith.addf %v, %c : {kind}
    return %r : {kind}
  }}
  gpu.func @k(%x: memref<?x{kind}>) kernel {{
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?x{kind}>
    %w = math.{function} %v : {kind}
    %r = func.call @{name}(%w) : ({kind}) -> {kind}
    memref.store %r, %x[%t] : memref<?x{kind}>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("target", ["host", "host:generic,libm"])
@pytest.mark.parametrize("name", ["erf", "cbrt", "acosh", "log1p", "sin", "tanf", "acosf"])
def test_kernels_and_helpers_named_like_functions_of_libm(name: str, target: str) -> None:
    """What they compute with is libm's function, not they themselves."""
    function, kind = (name[:-1], "f32") if name.endswith("f") and name != "erf" else (name, "f64")
    library = offload.compile(LIBM.format(name=name, function=function, kind=kind), targets=[target])
    library.use("host")
    numbers = [0.25, 0.75, 1.0] if function == "acos" else [1.0, 1.25, 3.5]
    # Python has cbrt since 3.11.
    want = np.array([getattr(math, function, np.cbrt)(number) for number in numbers])
    for kernel, more in ((name, 0), ("k", 100)):
        x = np.array(numbers, np.float32 if kind == "f32" else np.float64)
        library.kernels[kernel][1, 3](x)
        np.testing.assert_allclose(x, want + more, rtol=1e-6)


PRINTS = """\
gpu.module @m {{
  func.func private @{helper}(%v: i32) -> i32 {{
    %r = arith.addi %v, %v : i32
    return %r : i32
  }}
  gpu.func @{kernel}(%x: memref<?xf32>, %n: i32) kernel {{
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %e = math.exp %v : f32
    %c = math.cbrt %e : f32
    memref.store %c, %x[%t] : memref<?xf32>
    %w = func.call @{helper}(%n) : (i32) -> i32
    %ok = arith.cmpi sge, %w, %n : i32
    cf.assert %ok, "negative"
    gpu.printf "%d\\n", %w : i32
    gpu.return
  }}
}}
"""
CALLED = [
    "printf",
    "fflush",
    "stdout",
    "vprintf",
    "__assertfail",
    "__nv_expf",
    "__ocml_cbrt_f32",
    "__ockl_printf_begin",
]


@pytest.mark.parametrize("name", CALLED)
def test_helpers_named_like_functions_that_targets_call(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    library = offload.compile(PRINTS.format(helper=name, kernel="k"), targets=ALL_TARGETS)
    library.use("host")
    library.kernels.k[1, 1](np.zeros(1, np.float32), 21)
    assert capfd.readouterr().out == "42\n"


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("name", CALLED)
def test_kernels_are_not_named_like_functions_that_targets_call(name: str, target: str) -> None:
    with pytest.raises(CompileError, match=f"a kernel cannot be called '{name}': operations .* rename it") as caught:
        emit(PRINTS.format(helper="h", kernel=name), "lowered", [target])
    assert caught.value.diagnostics[0].line == 6


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("name", ["__offload_barrier", "__offload_shared_x", "offload.far.sinf"])
def test_kernels_are_not_named_like_what_they_become(name: str, target: str) -> None:
    with pytest.raises(CompileError, match=f"a kernel cannot be called '{name}': names that begin with") as caught:
        emit(PRINTS.format(helper="h", kernel=name), "lowered", [target])
    assert caught.value.diagnostics[0].line == 6


LAUNCHES = """
func.func @"{name}"(%x: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %v = memref.load %x[%i] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%i] : memref<?xf32>
  }}
  return
}}
func.func @a_b(%x: memref<?xf32>) {{
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {{
    %v = memref.load %x[%tx] : memref<?xf32>
    memref.store %v, %x[%bx] : memref<?xf32>
    gpu.terminator
  }}
  return
}}
"""


@pytest.mark.parametrize("name", ODD)
def test_kernels_of_functions_with_any_name_are_for_every_target(name: str) -> None:
    """Nobody has written the kernel's name: it is one that PTX has, and no other kernel."""
    library = offload.compile(LAUNCHES.format(name=name), targets=ALL_TARGETS)
    library.use("host")
    x = np.ones(4, np.float32)
    library.functions[name.replace("\\\\", "\\")](x)
    assert x.tolist() == [2, 2, 2, 2]
    first, second = library.kernels
    assert first != second
    assert re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", first + second)
    if name == "a.b":
        assert {first, second} == {"a_b_kernel", "a_b_kernel_0"}


def test_arguments_are_named_as_what_python_calls_them_with() -> None:
    """'self' was taken for the function itself where it was called in the background."""
    library = on_host("func.func @f(%self: i32, %stream: i32) -> i32 {\n  return %self : i32\n}\n")
    assert library.f(self=1, stream=2) == 1
    assert library.f.start(self=1, stream=2).wait() == 1
