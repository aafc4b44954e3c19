"""Host code: gpu.alloc, dealloc, memset, memcpy, host_register; types, layouts, tokens."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from offload.runtime import Library
from operations import Case

TYPES: dict[str, tuple[Any, Any]] = {
    "i1": (np.bool_, True), "i8": (np.int8, -3), "i16": (np.int16, -300), "i32": (np.int32, 1 << 30),
    "i64": (np.int64, -(1 << 60)), "index": (np.int64, 1 << 40), "f16": (np.float16, 1.5),
    "f32": (np.float32, 2.5), "f64": (np.float64, -0.1),
}  # fmt: skip

TOKENS = {
    "sync": ("", "", ""),
    "async, no dependency": ("%t = ", "async ", "gpu.wait [%t]"),
    "sync, two dependencies": ("", "[%a, %b] ", ""),
    "async, one dependency": ("%t = ", "async [%a] ", "gpu.wait [%t]"),
    "async, three dependencies": ("%t = ", "async [%a, %b, %c] ", "gpu.wait [%t]"),
}
"""How an operation is written: its result, what follows its name, what must follow it."""

WAITS = "  %a = gpu.wait async\n  %b = gpu.wait async\n  %c = gpu.wait async\n"


def _filled(dtype: Any, value: Any) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        out = np.zeros(37, dtype)
        library.fill(out, value)
        np.testing.assert_array_equal(out, np.full(37, value, dtype))

    return run


def _fill(element: str, tokens: str = "sync") -> str:
    result, middle, after = TOKENS[tokens]
    return f"""
func.func @fill(%x: memref<?x{element}>, %v: {element}) {{
{WAITS}  {result}gpu.memset {middle}%x, %v : memref<?x{element}>, {element}
  {after}
  return
}}
"""


def _fill_complex(part: str) -> Case:
    dtype = {"f32": np.complex64, "f64": np.complex128}[part]
    source = f"""
func.func @fill(%x: memref<?xcomplex<{part}>>, %re: {part}, %im: {part}) {{
  %v = complex.create %re, %im : complex<{part}>
  gpu.memset %x, %v : memref<?xcomplex<{part}>>, complex<{part}>
  return
}}
"""

    def run(library: Library) -> None:
        out = np.zeros(21, dtype)
        library.fill(out, 1.5, -2.25)
        np.testing.assert_array_equal(out, np.full(21, 1.5 - 2.25j, dtype))

    return Case("gpu.memset", f"sync, complex<{part}>", source, run)


STRIDED = "strided<[{}], offset: ?>"


def dynamic(rank: int, element: str) -> str:
    """A memref type with every size and stride known at run time only."""
    layout = STRIDED.format(", ".join("?" * rank))
    return f"memref<{'?x' * rank}{element}{', ' + layout if rank else ''}>"


def strided_view(rank: int, dtype: Any, seed: int) -> Any:
    """A view with gaps, axes in another order and one axis reversed."""
    shape = [2, 3, 4, 2, 3, 2][:rank]
    base = np.asarray(np.random.default_rng(seed).integers(0, 100, [2 * n + 1 for n in shape])).astype(dtype)
    if rank == 0:
        return np.asarray(base)
    view = base[tuple(slice(1, None, 2) for _ in shape)]
    if rank > 1:
        view = np.flip(view, 0)
    return view


def _copy_case(rank: int, element: str, tokens: str) -> Case:
    kind = dynamic(rank, element)
    result, middle, after = TOKENS[tokens]
    source = f"""
func.func @copy(%y: {kind}, %x: {kind}) {{
{WAITS}  {result}gpu.memcpy {middle}%y, %x : {kind}, {kind}
  {after}
  return
}}
"""
    dtype = TYPES[element][0]

    def run(library: Library) -> None:
        x, y = strided_view(rank, dtype, 1), strided_view(rank, dtype, 2)
        dense = np.zeros(x.shape, dtype)
        for target, origin in ((y, x), (dense, x), (y, x.copy()), (dense, y)):
            library.copy(target, origin)
            np.testing.assert_array_equal(target, origin)
        if rank > 1:  # axes in another order on one side
            turned = np.zeros(x.T.shape, dtype).T
            library.copy(turned, x)
            np.testing.assert_array_equal(turned, x)

    return Case("gpu.memcpy", f"any layout, rank {rank}, {element}, {tokens}", source, run)


def _strided_fill(rank: int, element: str) -> Case:
    kind = dynamic(rank, element)
    source = f"func.func @fill(%x: {kind}, %v: {element}) {{\n  gpu.memset %x, %v : {kind}, {element}\n  return\n}}\n"
    dtype, value = TYPES[element]

    def run(library: Library) -> None:
        view = strided_view(rank, dtype, 3)
        base = view.base.copy() if view.base is not None else None
        library.fill(view, value)
        np.testing.assert_array_equal(view, np.full(view.shape, value, dtype))
        if base is not None:
            assert (view.base != base).sum() <= view.size

    return Case("gpu.memset", f"any layout, rank {rank}, {element}", source, run)


def _memory_case(tokens: str, shared: bool) -> Case:
    result, middle, _ = TOKENS[tokens]
    token = ", %t" if result else ""
    then = "[%t] " if result else ""
    source = f"""
func.func @through(%x: memref<?xi32>, %y: memref<?xi32>) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
{WAITS}  %d{token} = gpu.alloc {middle}{"host_shared " if shared else ""}(%n) : memref<?xi32>
  %t1 = gpu.memcpy async {then}%d, %x : memref<?xi32>, memref<?xi32>
  %t2 = gpu.memcpy async [%t1] %y, %d : memref<?xi32>, memref<?xi32>
  %t3 = gpu.dealloc async [%t2] %d : memref<?xi32>
  gpu.wait [%t3]
  return
}}
"""

    def run(library: Library) -> None:
        for n in (0, 1, 1000):
            y = np.zeros(n, np.int32)
            library.through(np.arange(n, dtype=np.int32), y)
            np.testing.assert_array_equal(y, np.arange(n))

    return Case("gpu.alloc", tokens + (", host_shared" if shared else ""), source, run)


def _free_case(tokens: str) -> Case:
    result, middle, after = TOKENS[tokens]
    source = f"""
func.func @loop(%n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {{
    %d = gpu.alloc (%n) : memref<?xi32>
{WAITS}    {result}gpu.dealloc {middle}%d : memref<?xi32>
    {after}
  }}
  return
}}
"""
    return Case("gpu.dealloc", tokens, source, lambda library: library.loop(100))


REGISTER = """
func.func @twice(%x: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  %u = memref.cast %x : memref<?xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  gpu.launch blocks(%b, %j, %k) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%t, %l, %m) in (%bx = %c1, %by = %c1, %bz = %c1) {
    %v = memref.load %x[%b] : memref<?xi32>
    %r = arith.addi %v, %v : i32
    memref.store %r, %x[%b] : memref<?xi32>
    gpu.terminator
  }
  gpu.host_unregister %u : memref<*xi32>
  return
}
"""


def _registered(library: Library) -> None:
    x = np.arange(9, dtype=np.int32)
    library.twice(x)
    np.testing.assert_array_equal(x, 2 * np.arange(9))


DEVICE = "func.func @choose(%n: i32) {\n  gpu.set_default_device %n\n  return\n}\n"

LAYOUT = """
#tiled = affine_map<(i) -> (i floordiv 4, i mod 4)>
func.func @fill(%x: memref<16xf32, #tiled>, %v: f32) { // here
  gpu.memset %x, %v : memref<16xf32, #tiled>, f32
  return
}
"""

CASES = [
    *[Case("gpu.memset", f"sync, {element}", _fill(element), _filled(*TYPES[element])) for element in TYPES],
    *[
        Case("gpu.memset", f"{form}, {element}", _fill(element, form), _filled(*TYPES[element]))
        for element, form in itertools.product(("i8", "f64"), TOKENS)
        if form != "sync"
    ],
    _fill_complex("f32"),
    _fill_complex("f64"),
    *[_strided_fill(rank, element) for rank, element in itertools.product((1, 2, 3), ("i8", "f16", "f32", "f64"))],
    Case(
        "gpu.memset", "a layout without strides", LAYOUT,
        refused=dict.fromkeys(("nvvm", "rocdl", "host"), "a memref has a layout without strides"),
    ),
    *[_copy_case(rank, "f32", "sync") for rank in range(7)],
    *[_copy_case(2, element, "sync") for element in ("i1", "i8", "i16", "i64", "f64")],
    *[_copy_case(2, "i32", form) for form in TOKENS if form != "sync"],
    *[_memory_case(form, shared) for form, shared in itertools.product(TOKENS, (False, True))],
    *[_free_case(form) for form in TOKENS],
    Case("gpu.host_register", "memref of any rank, host_unregister", REGISTER, _registered),
    Case("gpu.set_default_device", "i32", DEVICE, lambda library: library.choose(0)),
]  # fmt: skip
