"""Memrefs that a function only reads: it takes arrays that may not be written, and nothing is copied back of them. What
is not known to read may write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiling import on_host
from emulator.driver import shared
from emulator.on_device import compiled, emulated
from ready import HSACO, PTX, annotated

import offload
from offload.errors import SignatureError

PRIVATE = """
func.func private @take(%x: memref<?xf32>, %i: index) -> f32 {
  %v = memref.load %x[%i] : memref<?xf32>
  return %v : f32
}
func.func private @put(%x: memref<?xf32>, %i: index, %v: f32) {
  memref.store %v, %x[%i] : memref<?xf32>
  return
}
func.func private @same(%x: memref<?xf32>) -> memref<?xf32> { return %x : memref<?xf32> }
func.func private @again(%x: memref<?xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.cmpi eq, %n, %c0 : index
  %v = scf.if %end -> f32 {
    %w = memref.load %x[%c0] : memref<?xf32>
    scf.yield %w : f32
  } else {
    %m = arith.subi %n, %c1 : index
    %w = func.call @again(%x, %m) : (memref<?xf32>, index) -> f32
    scf.yield %w : f32
  }
  return %v : f32
}
"""

# What each function does with %x, element by element into %out unless it says otherwise.
READS = {
    "load": "%v = memref.load %x[%i] : memref<?xf32>",
    "call": "%v = func.call @take(%x, %i) : (memref<?xf32>, index) -> f32",
    "recursion": "%v = func.call @again(%x, %i) : (memref<?xf32>, index) -> f32",
    "cast": """%y = memref.cast %x : memref<?xf32> to memref<?xf32, strided<[?], offset: ?>>
      %v = memref.load %y[%i] : memref<?xf32, strided<[?], offset: ?>>""",
    "subview": """%y = memref.subview %x[%i][1][1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
      %v = memref.load %y[%c0] : memref<1xf32, strided<[1], offset: ?>>""",
    "select": """%even = arith.cmpi eq, %i, %c0 : index
      %y = arith.select %even, %x, %out : memref<?xf32>
      %v = memref.load %y[%c0] : memref<?xf32>""",
    "copy": """%y = memref.alloca() : memref<1xf32>
      %z = memref.subview %x[%i][1][1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
      memref.copy %z, %y : memref<1xf32, strided<[1], offset: ?>> to memref<1xf32>
      %v = memref.load %y[%c0] : memref<1xf32>""",
    "vector": """%w = vector.transfer_read %x[%i], %zero : memref<?xf32>, vector<1xf32>
      %v = vector.extract %w[0] : f32 from vector<1xf32>""",
    "dim": """%n = memref.dim %x, %c0 : memref<?xf32>
      %k = arith.index_cast %n : index to i32
      %v = arith.sitofp %k : i32 to f32""",
    "nothing": "%v = arith.constant 3.0 : f32",
}
WRITES = {
    "store": "memref.store %two, %x[%i] : memref<?xf32>",
    "call_that_writes": "func.call @put(%x, %i, %two) : (memref<?xf32>, index, f32) -> ()",
    "store_cast": """%y = memref.cast %x : memref<?xf32> to memref<?xf32, strided<[?], offset: ?>>
      memref.store %two, %y[%i] : memref<?xf32, strided<[?], offset: ?>>""",
    "store_subview": """%y = memref.subview %x[%i][1][1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
      memref.store %two, %y[%c0] : memref<1xf32, strided<[1], offset: ?>>""",
    "store_select": """%first = arith.cmpi eq, %i, %i : index
      %y = arith.select %first, %x, %out : memref<?xf32>
      memref.store %two, %y[%i] : memref<?xf32>""",
    "copied_to": """%y = memref.alloca() : memref<1xf32>
      memref.store %two, %y[%c0] : memref<1xf32>
      %z = memref.subview %x[%i][1][1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
      memref.copy %y, %z : memref<1xf32> to memref<1xf32, strided<[1], offset: ?>>""",
    "through_a_call": """%y = func.call @same(%x) : (memref<?xf32>) -> memref<?xf32>
      memref.store %two, %y[%i] : memref<?xf32>""",
    "through_a_loop": """%y = scf.for %j = %c0 to %c1 step %c1 iter_args(%z = %x) -> memref<?xf32> {
        memref.store %two, %z[%i] : memref<?xf32>
        scf.yield %z : memref<?xf32>
      }""",
    "vector_store": """%w = vector.broadcast %two : f32 to vector<1xf32>
      vector.transfer_write %w, %x[%i] : vector<1xf32>, memref<?xf32>""",
    "atomic": "%w = memref.atomic_rmw maximumf %two, %x[%i] : (f32, memref<?xf32>) -> f32",
}
ON_HOST_ALONE = ("recursion", "copy", "copied_to", "call", "call_that_writes", "through_a_call")
"""Calls of functions outside of the kernel, and copies, are the host's."""


def function(name: str, body: str, loop: str) -> str:
    into = "memref.store %v, %out[%i] : memref<?xf32>" if "%v =" in body else ""
    return f"""
func.func @{name}(%x: memref<?xf32>, %out: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %size = memref.dim %out, %c0 : memref<?xf32>
  {loop} {{
      {body}
      {into}
  }}
  return
}}
"""


def program(kernels: bool) -> str:
    loop = "scf.parallel (%i) = (%c0) to (%size) step (%c1)" if kernels else "scf.for %i = %c0 to %size step %c1"
    all_of_them = READS | WRITES
    names = [name for name in all_of_them if not kernels or name not in ON_HOST_ALONE]
    return (not kernels) * PRIVATE + "".join(function(name, all_of_them[name], loop) for name in names)


def expected(name: str, x: np.ndarray) -> np.ndarray:
    whole = {"select": x[0], "recursion": x[0], "dim": len(x), "nothing": 3} if len(x) else {}
    return np.full_like(x, whole[name]) if name in whole else x


@pytest.mark.parametrize("kernels", [False, True], ids=["host code", "kernels"])
def test_signatures(kernels: bool) -> None:
    library = on_host(program(kernels))
    assert {name: made.args[0].read_only for name, made in library.signatures.items()} == {
        name: name in READS for name in library.signatures
    }
    assert not any(made.args[1].read_only for name, made in library.signatures.items() if name in READS)


@pytest.mark.parametrize("kernels", [False, True], ids=["host code", "kernels"])
@pytest.mark.parametrize("size", [0, 1, 7, 300])
def test_on_the_cpu(kernels: bool, size: int) -> None:
    library = on_host(program(kernels))
    x = np.arange(1, size + 1, dtype=np.float32)
    x.flags.writeable = False
    for name in library.signatures:
        call = getattr(library, name)
        if name in WRITES:
            with pytest.raises(SignatureError, match="read-only"):
                call(x, np.zeros_like(x))
            written = x.copy()
            call(written, np.zeros_like(x))
            assert (written == np.maximum(x, 2) if name == "atomic" else written == 2).all(), name
            continue
        for _ in range(3):  # from the second on, calls go through the extension
            out = np.zeros_like(x)
            if name == "select":  # the others are of the result
                out[:1] = x[:1]
            call(x, out)
            np.testing.assert_array_equal(out, expected(name, x), err_msg=name)


@pytest.mark.parametrize("chip", ["sm_80", "gfx942"])
def test_on_devices(chip: str) -> None:
    """What is only read comes as it is, and nothing is copied back; what is written is."""
    backend = emulated(chip)[1]
    with shared(backend).chip(chip):
        library = compiled(program(kernels=True), chip)
        x = np.arange(1, 8, dtype=np.float32)
        x.flags.writeable = False
        for name in library.signatures:
            call, out = getattr(library, name), np.zeros_like(x)
            if name in WRITES:
                with pytest.raises(SignatureError, match="read-only"):
                    call(offload.stage(x), offload.stage(out))
                written = x.copy()
                call(offload.stage(written), offload.stage(out))
                assert (written == np.maximum(x, 2) if name == "atomic" else written == 2).all(), name
                continue
            if name == "select":
                out[:1] = x[:1]
            call(offload.stage(x), offload.stage(out))
            np.testing.assert_array_equal(out, expected(name, x), err_msg=name)
    shared(backend).check()


def test_kernels() -> None:
    library = on_host(program(kernels=True))
    x = np.arange(1, 8, dtype=np.float32)
    x.flags.writeable = False
    flags = {
        name: [argument.read_only for argument in kernel.signature.args] for name, kernel in library.kernels.items()
    }
    assert flags["load_kernel"].count(True) == 1
    assert not any(flags["store_kernel"])


@pytest.mark.parametrize(
    "body",
    [
        "return %x : memref<4xf32>",
        "memref.dealloc %x : memref<4xf32>\n  return %x : memref<4xf32>",
        """%p = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
        %y = memref.alloc() : memref<4xf32>
        memref.store %p, %z[] : memref<index>
        return %y : memref<4xf32>""",
        """%u = memref.cast %x : memref<4xf32> to memref<*xf32>
        %y = memref.cast %u : memref<*xf32> to memref<4xf32>
        return %y : memref<4xf32>""",
        """%y = memref.realloc %x : memref<4xf32> to memref<4xf32>
        return %y : memref<4xf32>""",
    ],
)
def test_what_leaves_the_function(body: str) -> None:
    """Who gets it may write."""
    library = on_host(f"func.func @f(%x: memref<4xf32>, %z: memref<index>) -> memref<4xf32> {{ {body} }}")
    assert not library.signatures["f"].args[0].read_only


def test_functions_of_other_files(tmp_path: Path) -> None:
    """They are looked at, too."""
    caller = "func.func private @other(memref<4xf32>)\nfunc.func @f(%x: memref<4xf32>) {\n"
    caller += "  call @other(%x) : (memref<4xf32>) -> ()\n  return\n}"
    for line, reads in (("%v = memref.load %x[%c0]", True), ("memref.store %zero, %x[%c0]", False)):
        other = f"""func.func @other(%x: memref<4xf32>) {{
          %c0 = arith.constant 0 : index
          %zero = arith.constant 0.0 : f32
          {line} : memref<4xf32>
          return
        }}"""
        sources = [tmp_path / "caller.mlir", tmp_path / "other.mlir"]
        for source, text in zip(sources, (caller, other), strict=True):
            source.write_text(text)
        library = offload.load(offload.build(sources, tmp_path / f"{reads}.so", targets="host"))
        assert {name: made.args[0].read_only for name, made in library.signatures.items()} == {
            "f": reads,
            "other": reads,
        }


@pytest.mark.parametrize(
    ("attribute", "code", "chip"),
    [("rocdl.hsaco", HSACO, "gfx942"), ("nvvm.cubin", PTX, "sm_90")],
    ids=["amd", "nvidia"],
)
def test_what_compiled_code_does_is_not_known(attribute: str, code: bytes, chip: str) -> None:
    """The source beside it is not what runs."""
    reads = "gpu.func @k(%x: memref<?xf32>, %v: f32) kernel { gpu.return }\n"
    backend = emulated(chip)[1]
    with shared(backend).chip(chip):
        library = offload.compile(annotated({attribute: code}, reads), targets=[emulated(chip)[0]])
        library.use(backend)
        assert not library.signatures["f"].args[0].read_only
        assert not library.kernels.k.signature.args[0].read_only
        x = np.zeros(4, np.float32)
        library.f(offload.stage(x), 2.0)
        assert (x == 2).all()
        x.flags.writeable = False
        with pytest.raises(SignatureError, match="read-only"):
            library.f(offload.stage(x), 3.0)


@pytest.mark.parametrize("last", ["end", "f0"])
def test_many_functions_that_pass_memory_on(last: str) -> None:
    """In a circle, too: what one of them writes, all do that lead there."""
    count, types = 300, ", ".join(["memref<4xf32>"] * 3)
    head = "(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>)"
    lines = [
        f"func.func @f{number}{head} {{\n  call @{callee}(%x, %y, %z) : ({types}) -> ()"
        for number, callee in enumerate([*(f"f{number}" for number in range(1, count)), last])
    ]
    lines[200] += f"\n  call @end(%x, %y, %z) : ({types}) -> ()"
    lines += [
        f"""func.func @end{head} {{
          %c0 = arith.constant 0 : index
          %v = memref.load %x[%c0] : memref<4xf32>
          memref.store %v, %z[%c0] : memref<4xf32>
          call @apart(%x, %x, %y) : ({types}) -> ()""",
        f"func.func @apart{head} {{\n  call @apart(%x, %z, %y) : ({types}) -> ()",
    ]
    library = on_host("".join(f"{line}\n  return\n}}\n" for line in lines))
    flags = {name: tuple(each.read_only for each in made.args) for name, made in library.signatures.items()}
    assert flags.pop("apart") == (True, True, True)
    assert len(flags) == count + 1
    assert set(flags.values()) == {(True, True, False)}


@pytest.mark.parametrize("kinds", ["f16 f32", "bf16 bf16", "f32 f32", "i8 i32", "i32 i32", "f64 f64"])
@pytest.mark.parametrize("sizes", ["dynamic", "known"])
def test_products_only_read_their_factors(kinds: str, sizes: str) -> None:
    """Whatever their kernels ask of the factors' addresses, and however they copy tiles of them."""
    factor, sum_kind = kinds.split()
    shape = "?x?" if sizes == "dynamic" else "128x128"
    given, kept = f"memref<{shape}x{factor}>", f"memref<{shape}x{sum_kind}>"
    many, all_kept = f"memref<3x{shape}x{factor}>", f"memref<3x{shape}x{sum_kind}>"
    library = on_host(f"""
func.func @product(%a: {given}, %b: {given}, %c: {kept}) {{
  linalg.matmul ins(%a, %b : {given}, {given}) outs(%c : {kept})
  return
}}
func.func @in_batches(%a: {many}, %b: {many}, %c: {all_kept}) {{
  linalg.batch_matmul ins(%a, %b : {many}, {many}) outs(%c : {all_kept})
  return
}}
""")
    for made in library.signatures.values():
        assert [argument.read_only for argument in made.args] == [True, True, False]
