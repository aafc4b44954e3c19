"""Numbers on GPUs that cannot be run here: which instructions functions become, and that order changes nothing."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host
from cpu_levels import levels_here
from emulator.running import running_on

SOURCE = """gpu.module @m {{
  gpu.func @k(%x: memref<?x{type}>) kernel {{
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<?x{type}>
    {body}
    memref.store %r, %x[%i] : memref<?x{type}>
    gpu.return
  }}
}}
"""
SCALAR = "%r = math.{op} %v : {type}"
VECTOR = """%s = vector.broadcast %v : {type} to vector<4x{type}>
    %t = math.{op} %s : vector<4x{type}>
    %r = vector.extract %t[1] : {type} from vector<4x{type}>"""


def code(op: str, kind: str, stage: str, body: str, targets: list[str]) -> dict[str, str]:
    source = SOURCE.format(type=kind, body=body.format(op=op, type=kind))
    return {item.label.split(".")[1]: item.data.decode() for item in emit(source, stage, targets)}


@pytest.mark.parametrize("body", [SCALAR, VECTOR], ids=["scalar", "vector"])
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
def test_trigonometric_functions_reduce_their_arguments(op: str, kind: str, body: str) -> None:
    """sin.approx and v_sin_f32 are right near 0 only: the library's code has many integer multiplications for 2/pi."""
    texts = code(op, kind, "isa", body, ["nvvm:sm_90", "rocdl:gfx942"])
    assert not re.search(r"(sin|cos|tanh)\.approx", texts["nvvm"])
    assert not re.search(r"v_(sin|cos)_f(16|32)", texts["rocdl"])


@pytest.mark.parametrize("op", ["tanh", "sinh", "acos", "atan", "cbrt", "log1p"])
@pytest.mark.parametrize(
    "targets", [["rocdl:gfx942"], ["nvvm:sm_90", "rocdl:gfx942"], ["host", "rocdl:gfx942", "nvvm:sm_90"]]
)
def test_functions_are_the_librarys_whatever_was_compiled_before(op: str, targets: list[str]) -> None:
    """MLIR's lowering for AMD chose between the library and LLVM's intrinsics by chance."""
    texts = code(op, "f32", "lowered", SCALAR, targets)
    assert f"@__ocml_{op}_f32" in texts["rocdl"]
    assert f"llvm.intr.{op}" not in texts["rocdl"]
    if "nvvm" in texts:
        assert f"@__nv_{op}f" in texts["nvvm"]


def test_sums_of_products_are_not_fused_unless_asked() -> None:
    body = "%p = arith.mulf %v, %v : {type}\n    %r = arith.addf %p, %v : {type}"
    assert "fma" not in code("", "f32", "isa", body, ["nvvm:sm_90"])["nvvm"]
    assert not re.search(r"v_(fma|mac|mad|fmac|pk_fma)_f32", code("", "f32", "isa", body, ["rocdl:gfx942"])["rocdl"])


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("sign", ["s", "u"])
@pytest.mark.parametrize("bits", [65, 128])
def test_floats_and_integers_of_more_than_64_bits(bits: int, sign: str, kind: str) -> None:
    """They were calls of functions that no GPU has, and no library; in one process lld sets LLVM's options back."""
    text = f"""
gpu.module @m {{
  gpu.func @k(%x: memref<?x{kind}>) kernel {{
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?x{kind}>
    %i = arith.fpto{sign}i %v : {kind} to i{bits}
    %three = arith.constant 3 : i{bits}
    %j = arith.muli %i, %three : i{bits}
    %r = arith.{sign}itofp %j : i{bits} to {kind}
    memref.store %r, %x[%t] : memref<?x{kind}>
    gpu.return
  }}
}}
"""
    x = np.array([0, 1, 5, 2.0**40 + 2.0**20, 2.0**61], {"f32": np.float32, "f64": np.float64}[kind])
    if sign == "s":
        x = np.concatenate([x, -x])
    if bits == 128:
        x = np.concatenate([x, x * x.dtype.type(2.0**63)])
    expected = x * 3
    on_host(text).kernels.k[1, x.size](x)
    np.testing.assert_array_equal(x, expected)
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)


@pytest.mark.parametrize("sign", ["s", "u"])
def test_integers_become_bf16_with_one_rounding_in_host_code(sign: str) -> None:
    """Kernels are tested on every target (conformance)."""
    text = f"""func.func @f(%x: i64) -> bf16 {{
      %f = arith.{sign}itofp %x : i64 to bf16
      return %f : bf16
    }}"""
    function = on_host(text).f
    for place in range(20, 54):  # 257 is half way between two numbers of bf16
        even, odd = 256.0 * 2**place, 258.0 * 2**place
        assert [float(function((257 << place) + more)) for more in (-1, 0, 1)] == [even, even, odd]


PRODUCT = """gpu.module @m {{
  gpu.func @k(%x: memref<?x{count}xi1>, %out: memref<?xi32>) kernel {{
    %zero = arith.constant 0 : index
    %t = gpu.thread_id x
    %bits = vector.load %x[%t, %zero] : memref<?x{count}xi1>, vector<{count}xi1>
    %v = arith.extsi %bits : vector<{count}xi1> to vector<{count}xi32>
    %r = vector.reduction <mul>, %v : vector<{count}xi32> into i32
    memref.store %r, %out[%t] : memref<?xi32>
    gpu.return
  }}
}}
"""
IN_HOST_CODE = """func.func @f(%x: vector<3xi1>) -> i32 {
  %v = arith.extsi %x : vector<3xi1> to vector<3xi32>
  %r = vector.reduction <mul>, %v : vector<3xi32> into i32
  return %r : i32
}
func.func @g(%set: i1) -> i32 {
  %x = vector.broadcast %set : i1 to vector<3xi1>
  %r = call @f(%x) : (vector<3xi1>) -> i32
  return %r : i32
}"""


@pytest.mark.parametrize("count", [1, 3, 4, 5, 7])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1201", "sm_90", "host"])
def test_products_of_bits_with_a_sign(chip: str, count: int) -> None:
    """LLVM makes that of an odd number of -1 a 1."""
    x = np.ones((4, count), bool)
    x[1, 0], x[2, count - 1], out = False, False, np.zeros(4, np.int32)
    source = PRODUCT.format(count=count)
    if chip == "host":
        on_host(source).kernels.k[1, 4](x, out)
    else:
        with running_on(chip, source) as library:
            library.kernels.k[1, 4](x, out)
    np.testing.assert_array_equal(out, (-x.astype(np.int32)).prod(axis=1))


def test_products_of_bits_with_a_sign_in_host_code() -> None:
    library = on_host(IN_HOST_CODE)
    assert [library.g(True), library.g(False)] == [-1, 0]


MASKED = """
gpu.module @m {{
  gpu.func @k(%x: memref<?x{type}>, %out: memref<?x{type}>, %most: index) kernel {{
    %start = arith.constant 0 : index
    %known = arith.constant dense<[{known}]> : vector<{count}xi1>
    %inside = vector.create_mask %most : vector<{count}xi1>
    %mask = arith.andi %inside, %known : vector<{count}xi1>
    %else = arith.constant dense<{zero}> : vector<{count}x{type}>
    %v = vector.maskedload %x[%start], %mask, %else
      : memref<?x{type}>, vector<{count}xi1>, vector<{count}x{type}> into vector<{count}x{type}>
    vector.store %v, %out[%start] : memref<?x{type}>, vector<{count}x{type}>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("kind", "known"), [("f64", "00001"), ("f32", "0000000000111"), ("i32", "0000000001")])
def test_masked_loads_of_which_a_register_is_known(level: str, kind: str, known: str) -> None:
    """LLVM loads all of a register with AVX2 where nothing is to be loaded, or gives up."""
    if level not in levels_here():
        pytest.skip(f"this CPU does not run {level}")
    set_, count = [digit == "1" for digit in known], len(known)
    source = MASKED.format(
        type=kind, count=count, known=", ".join("true" if bit else "false" for bit in set_),
        zero="0.0" if kind.startswith("f") else "0",
    )  # fmt: skip
    library, dtype = on_host(source, target=f"host:{level}"), {"f64": "f8", "f32": "f4", "i32": "i4"}[kind]
    x = np.arange(1, count + 1).astype(dtype)
    for most in range(count + 1):
        out, inside = np.zeros(count, dtype), np.arange(count) < most
        library.kernels.k[1, 1](x, out, most)
        np.testing.assert_array_equal(out, x * (inside & set_))


FAST = """
gpu.module @m {
  gpu.func @k(%x: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %s = math.sin %v fastmath<afn> : f32
    memref.store %s, %x[%t] : memref<?xf32>
    gpu.return
  }
}
"""


def test_fast_sines_of_zeros_and_of_large_angles() -> None:
    """The hardware's sine is right near 0 alone: it gets angles that are brought there, and -0 as it is."""
    x = np.array([-0.0, 0.0, 1.0, -3.0, 9210.0, -65000.0], np.float32)
    out = x.copy()
    with running_on("sm_90", FAST) as library:
        library.kernels.k[1, len(x)](out)
    np.testing.assert_array_equal(np.signbit(out[:2]), [True, False])
    np.testing.assert_allclose(out, np.sin(x.astype(np.float64)), rtol=0, atol=2.0**-20)


SMALL = """
gpu.module @m {
  gpu.func @k(%x: memref<?xf8E5M2>, %y: memref<?xf8E5M2>, %z: memref<?xf8E5M2>, %out: memref<?xf8E5M2>) kernel {
    %i = gpu.block_id x
    %a = memref.load %x[%i] : memref<?xf8E5M2>
    %b = memref.load %y[%i] : memref<?xf8E5M2>
    %c = memref.load %z[%i] : memref<?xf8E5M2>
    %r = math.fma %a, %b, %c : f8E5M2
    memref.store %r, %out[%i] : memref<?xf8E5M2>
    gpu.printf "%g\\n", %r : f8E5M2
    gpu.return
  }
}
"""


def test_fma_of_small_floats_is_rounded_once(capfd: pytest.CaptureFixture[str]) -> None:
    """192 * 192 lies in the middle of 32768 and 40960; what decides is too small for f32 to hold beside it."""
    dtype = ml_dtypes.float8_e5m2
    x = y = np.array([192, 192], dtype)
    z, out = np.array([2.0**-10, -(2.0**-10)], dtype), np.zeros(2, dtype)
    on_host(SMALL).kernels.k[2, 1](x, y, z, out)
    assert out.astype(float).tolist() == [40960, 32768]
    assert sorted(capfd.readouterr().out.split()) == ["32768", "40960"]


BESIDE = """
gpu.module @m {
  gpu.func @k(%x: memref<2xi32>) kernel {
    %i = arith.constant 0 : index
    %v = arith.constant 7 : i32
    memref.store %v, %x[%i] : memref<2xi32>
    gpu.return
  }
  gpu.func @k.info(%x: memref<2xi32>) kernel {
    %i = arith.constant 1 : index
    %v = arith.constant 8 : i32
    memref.store %v, %x[%i] : memref<2xi32>
    gpu.return
  }
}
"""


def test_a_kernel_with_the_name_of_anothers_description() -> None:
    out = np.zeros(2, np.int32)
    library = on_host(BESIDE)
    for name in ("k", "k.info"):
        library.kernels[name][1, 1](out)
    assert out.tolist() == [7, 8]
