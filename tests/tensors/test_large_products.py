"""Products by tiles of both sizes: results as NumPy's, on the CPU and on emulated devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiling import PROGRAMS, emit, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

from offload.runtime import Library as OnHost

PROGRAM = PROGRAMS / "large_products.mlir"
Library = OnHost | OnDevice

MANY = 128
"""Products of one tile each that are enough for large tiles."""


def whole(*shape: int, kind: Any = np.float16) -> np.ndarray:
    """Small whole numbers, whose products and sums every order of steps gets right."""
    return np.random.default_rng(sum(shape)).integers(-2, 3, shape).astype(kind)


def rows(library: Library, n: int, m: int, k: int, columns: int, kind: Any = np.float16) -> None:
    sum_kind = np.int32 if kind is np.int8 else np.float32
    a, b, c = whole(n, m, k, kind=kind), whole(n, columns, k, kind=kind), whole(n, m, columns, kind=sum_kind)
    want = c + a.astype(sum_kind) @ b.astype(sum_kind).transpose(0, 2, 1)
    (library.bytes if kind is np.int8 else library.rows)(a, b, c)
    np.testing.assert_array_equal(c, want)


def columns(library: Library, n: int, m: int, k: int, columns: int) -> None:
    a, b, c = (whole(n, *shape, kind=ml_dtypes.bfloat16) for shape in ((k, m), (k, columns), (m, columns)))
    # Sums are words, and rounded once: in the order of the steps, where threads alone make them.
    a[:, 16:], c[:] = 0, 0
    want = a.astype(np.float32).transpose(0, 2, 1) @ b.astype(np.float32)
    library.columns(a, b, c)
    np.testing.assert_array_equal(c.astype(np.float32), want)


def batch(library: Library, n: int, m: int, k: int, columns: int) -> None:
    a, b = whole(n, m, k, kind=ml_dtypes.bfloat16), whole(n, k, columns, kind=ml_dtypes.bfloat16)
    c = whole(n, m, columns, kind=np.float32)
    want = c + a.astype(np.float32) @ b.astype(np.float32)
    library.batch(a, b, c)
    np.testing.assert_array_equal(c, want)


def views(library: Library, m: int, k: int, columns: int, start: int) -> None:
    a, b, c = whole(2 * m, k + start), whole(k, 2 * columns), whole(2 * m, columns, kind=np.float32)
    want = c.copy()
    want[::2] += a[::2, start:].astype(np.float32) @ b[:, ::2].astype(np.float32)
    library.views(a, b, c, start)
    np.testing.assert_array_equal(c, want)


def places(library: Library, m: int, k: int, columns: int, start: int) -> None:
    a, b, c = whole(m, k), whole(k + start, 8 + columns), whole(m, columns, kind=np.float32)
    want = c + a.astype(np.float32) @ b[start:, start : start + columns].astype(np.float32)
    library.places(a, b, c, start)
    np.testing.assert_array_equal(c, want)


SMALL: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
    # Whole tiles, parts of pieces, of tiles and of steps, places where pieces may begin and where not.
    *(
        (rows, (1, m, k, n, kind))
        for kind in (np.float16, np.int8)
        for m, k, n in ((64, 16, 64), (32, 24, 65), (72, 40, 88), (65, 33, 67), (128, 96, 64))
    ),
    # More steps than memory has room for at a time.
    (rows, (1, 64, 208, 64)),
    (rows, (1, 64, 448, 65, np.int8)),
    (columns, (1, 72, 130, 88)),
    (columns, (2, 65, 130, 66)),
    (batch, (1, 64, 128, 64)),
    (batch, (1, 71, 136, 72)),
    (batch, (2, 66, 131, 65)),
    (views, (66, 130, 67, 3)),
    (views, (64, 128, 64, 8)),
    *((places, (66, 136, 72, start)) for start in (0, 1, 8)),
]
"""Products by tiles of 64."""


LARGE = """
#left = affine_map<(n, i, j, k) -> (n, {left})>
#right = affine_map<(n, i, j, k) -> (n, {right})>
#sum = affine_map<(n, i, j, k) -> (n, i, j)>
func.func @large(%a: memref<{a}x{kind}>, %b: memref<{b}x{kind}>, %c: memref<{c}x{sum}>) {{
  linalg.generic {{indexing_maps = [#left, #right, #sum],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
    ins(%a, %b : memref<{a}x{kind}>, memref<{b}x{kind}>) outs(%c : memref<{c}x{sum}>) {{
  ^bb0(%x: {kind}, %y: {kind}, %o: {sum}):
    {widen}
    %m = {mul} {x}, {y} : {sum}
    %s = {add} %o, %m : {sum}
    linalg.yield %s : {sum}
  }}
  return
}}
"""
KINDS: dict[str, tuple[Any, Any, str]] = {
    "f16": (np.float16, np.float32, "f32"),
    "bf16": (ml_dtypes.bfloat16, np.float32, "f32"),
    "i8": (np.int8, np.int32, "i32"),
    "f32": (np.float32, np.float32, "f32"),
}


def large(library: Library, kind: str, sizes: tuple[int, int, int], left: str, right: str) -> None:
    """The first product of many: its four tiles, of which three are not whole."""
    m, k, n = sizes
    element, sum_kind, _ = KINDS[kind]
    a, b, c = whole(MANY, m, k, kind=element), whole(MANY, k, n, kind=element), whole(MANY, m, n, kind=sum_kind)
    want = c.copy()
    want[0] += a[0].astype(sum_kind) @ b[0].astype(sum_kind)
    given = a if left == "i, k" else np.ascontiguousarray(a.transpose(0, 2, 1))
    other = b if right == "k, j" else np.ascontiguousarray(b.transpose(0, 2, 1))
    library.kernels.large_kernel[4, (16, 16)](given, other, c)
    np.testing.assert_array_equal(c, want)


def large_source(kind: str, sizes: tuple[int, int, int], left: str, right: str) -> str:
    m, k, n = sizes
    sum_ = KINDS[kind][2]
    add, mul, extend = ("addf", "mulf", "extf") if sum_ == "f32" else ("addi", "muli", "extsi")
    is_wide = kind == sum_
    wide = [f"%{to} = arith.{extend} %{of} : {kind} to {sum_}" for to, of in (("p", "x"), ("q", "y"))]
    return LARGE.format(
        left=left,
        right=right,
        kind=kind,
        sum=sum_,
        mul=f"arith.{mul}",
        add=f"arith.{add}",
        a=f"?x{m}x{k}" if left == "i, k" else f"?x{k}x{m}",
        b=f"?x{k}x{n}" if right == "k, j" else f"?x{n}x{k}",
        c=f"?x{m}x{n}",
        widen="" if is_wide else "\n    ".join(wide),
        x="%x" if is_wide else "%p",
        y="%y" if is_wide else "%q",
    )


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    for check, sizes in SMALL:
        check(library, *sizes)
    for sizes in ((1, 1600, 16, 1500), (MANY, 200, 40, 136), (0, 64, 64, 64), (3, 0, 16, 64), (1, 64, 0, 64)):
        rows(library, *sizes)
        rows(library, *sizes, kind=np.int8)
    for check in (columns, batch):
        check(library, 1, 1601, 150, 1499)
        check(library, 1, 1, 150, 1)
        check(library, 2, 1536, 128, 768)
    views(library, 1500, 129, 1700, 5)
    places(library, 1500, 129, 1700, 8)


ALIKE = (("sm_75",), ("sm_80", "sm_90"), ("gfx90a", "gfx942", "gfx950"), ("gfx1100", "gfx1201"))
"""Chips whose units are given the same steps."""


@pytest.mark.parametrize("chip", [chip for chips in ALIKE for chip in chips])
def test_small_tiles(chip: str, full: bool) -> None:
    """Chips that are alike share the work; with ``--full`` each does all of it."""
    (chips,) = (chips for chips in ALIKE if chip in chips)
    with running_on(chip, PROGRAM) as library:
        for check, sizes in SMALL if full else SMALL[chips.index(chip) :: len(chips)]:
            check(library, *sizes)


PRODUCTS = [
    ("f16", (129, 40, 130), "i, k", "j, k"),
    ("f16", (129, 24, 136), "i, k", "j, k"),
    ("bf16", (136, 130, 136), "k, i", "k, j"),
    ("bf16", (131, 129, 133), "i, k", "k, j"),
    ("i8", (136, 48, 130), "i, k", "j, k"),
    ("i8", (130, 208, 129), "i, k", "j, k"),
    ("f32", (132, 40, 132), "i, k", "j, k"),
    ("f32", (130, 133, 129), "k, i", "k, j"),
]


@pytest.mark.parametrize("chip", ["sm_75", "sm_90", "gfx942", "gfx1100"])
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: "-".join(str(each) for each in product[:2]))
def test_large_tiles(chip: str, product: tuple[str, tuple[int, int, int], str, str]) -> None:
    with running_on(chip, large_source(*product)) as library:
        large(library, *product)


@pytest.mark.parametrize("chip", ["host", "sm_75", "sm_80", "gfx942", "gfx1100"])
def test_sums_of_bytes_run_over(chip: str) -> None:
    """Units can end at the largest number instead."""
    with running_on(chip, PROGRAM) as library:
        a, b = (np.full((1, size, 64), 127, np.int8) for size in (64, 65))
        b[0, 32:] = -128
        for start in (2**31 - 1, -(2**31)):
            c = np.full((1, 64, 65), start, np.int32)
            want = (start + a.astype(np.int64) @ b.astype(np.int64).transpose(0, 2, 1)).astype(np.int32)
            library.bytes(a, b, c)
            np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("chip", ["sm_90,index=32", "gfx942,index=32"])
def test_narrow_indices(chip: str) -> None:
    """Whether an address is a multiple of 16 they cannot say: what runs is the code for all chips."""
    with running_on(chip, PROGRAM) as library:
        rows(library, 1, 65, 33, 67)
        batch(library, 1, 66, 131, 65)


def unlike(element: str, of: str, step: str) -> str:
    """A product whose step is another one; ``step`` makes %p of %a and %b."""
    return f"""
func.func @f(%x: memref<?x?x{element}>, %y: memref<?x?x{element}>, %z: memref<?x?x{of}>) {{
  linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %y : memref<?x?x{element}>, memref<?x?x{element}>) outs(%z : memref<?x?x{of}>) {{
  ^bb0(%a: {element}, %b: {element}, %sum: {of}):
    {step}
    %more = arith.addf %sum, %p : {of}
    linalg.yield %more : {of}
  }}
  return
}}
"""


def test_long_steps_are_not_written_out_for_each_sum() -> None:
    """With a sine in each step code for 64 sums of a thread took minutes to compile, and had no registers left."""
    program = unlike("f32", "f32", "%s = math.sin %a : f32\n    %p = arith.mulf %s, %b : f32")
    assert emit_text(program, "kernels").count("math.sin") <= 64
    x, y, z = (np.random.default_rng(7).standard_normal((70, 70)).astype(np.float32) for _ in range(3))
    want = z + np.sin(x) @ y
    on_host(program).f(x, y, z)
    np.testing.assert_allclose(z, want, rtol=1e-4, atol=1e-4)


def test_sums_of_two_registers_have_small_tiles() -> None:
    wide = "%c = arith.extf %a : f32 to f64\n    %d = arith.extf %b : f32 to f64\n    %p = arith.mulf %c, %d : f64"
    assert emit_text(unlike("f32", "f64", wide), "kernels").count("threads in (%c16, %c16, %c1)") == 1
    plain = "%p = arith.mulf %a, %b : f32"
    assert emit_text(unlike("f32", "f32", plain), "kernels").count("threads in (%c16, %c16, %c1)") == 2


@pytest.mark.parametrize(("chip", "instruction"), [("sm_75", "m16n16k16"), ("sm_80", "m16n8k32")])
def test_bytes_whose_neighbours_lie_along_the_steps(chip: str, instruction: str) -> None:
    texts = [item.data.decode() for item in emit(PROGRAM, "isa", [f"nvvm:{chip}"])]
    of_bytes = [text for text in texts if "s8.s8" in text]
    assert of_bytes
    assert all(instruction in text and "satfinite" not in text for text in of_bytes)
