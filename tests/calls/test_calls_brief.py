"""Functions of a few operations: known as such, and called with Python's lock, since they neither wait nor fail."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from compiling import on_host

from offload.artifact.meta import Signature

KERNEL = "gpu.module @k { gpu.func @nothing() kernel { gpu.return } }"
VECTOR = "memref<?xf32>"
BRIEF = {
    "empty": "func.func @f() { return }",
    "sizes": f"""func.func @f(%x: {VECTOR}) -> index {{
        %c0 = arith.constant 0 : index
        %n = memref.dim %x, %c0 : {VECTOR}
        %m = arith.ceildivui %n, %n : index
        return %m : index
    }}""",
    "an element": f"""func.func @f(%x: {VECTOR}, %i: index) {{
        %v = memref.load %x[%i] : {VECTOR}
        %w = arith.addf %v, %v : f32
        memref.store %w, %x[%i] : {VECTOR}
        return
    }}""",
}
OTHERS = {
    "a launch": f"""func.func @f() {{
        %c1 = arith.constant 1 : index
        gpu.launch_func @k::@nothing blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        return
    }} {KERNEL}""",
    "a loop": f"""func.func @f(%x: {VECTOR}, %n: index) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %v = arith.constant 1.0 : f32
        scf.for %i = %c0 to %n step %c1 {{ memref.store %v, %x[%i] : {VECTOR} }}
        return
    }}""",
    "a jump back": "func.func @f(%n: index) { cf.br ^again\n ^again: %z = arith.constant 0 : index\n "
    "%more = arith.cmpi eq, %n, %z : index\n cf.cond_br %more, ^again, ^end\n ^end: return }",
    "a call": "func.func private @g() { return } func.func @f() { call @g() : () -> ()\n return }",
    "a copy": f"func.func @f(%x: {VECTOR}, %y: {VECTOR}) {{ memref.copy %x, %y : {VECTOR} to {VECTOR}\n return }}",
    "memory": "func.func @f(%n: index) -> memref<?xf32> { %m = memref.alloc(%n) : memref<?xf32>\n "
    "return %m : memref<?xf32> }",
    "an assertion": 'func.func @f(%ok: i1) { cf.assert %ok, "not so"\n return }',
    "many operations": "func.func @f(%v0: i32) -> i32 {"
    + "".join(f" %v{i + 1} = arith.addi %v{i}, %v{i} : i32\n" for i in range(64))
    + " return %v64 : i32 }",
}


@pytest.mark.parametrize("name", [*BRIEF, *OTHERS])
def test_what_is_brief(name: str) -> None:
    (signature,) = on_host({**BRIEF, **OTHERS}[name]).metadata.functions
    assert signature.brief == (name in BRIEF)
    assert Signature.from_json(signature.to_json()) == signature
    assert ("brief" in signature.to_json()) == (name in BRIEF)


def test_they_compute() -> None:
    x = np.arange(5, dtype=np.float32)
    assert on_host(BRIEF["sizes"]).f(x) == 1
    on_host(BRIEF["an element"]).f(x, 3)
    assert x.tolist() == [0, 1, 2, 6, 4]
    assert on_host(BRIEF["empty"]).f() is None


def test_others_run_while_a_long_one_does() -> None:
    """A thread counts while a loop of a second or so runs in another, which a lock that is kept would forbid."""
    run, x = on_host(OTHERS["a loop"]).f, np.zeros(200_000_000, np.float32)
    begun, ended = threading.Event(), threading.Event()
    seen = 0
    before = sys.getswitchinterval()
    sys.setswitchinterval(10)  # No other thread takes the lock from one that keeps it.

    def work() -> None:
        begun.set()
        run(x, len(x))
        ended.set()

    thread = threading.Thread(target=work)
    try:
        thread.start()
        begun.wait()
        while not ended.is_set():
            seen += 1
            ended.wait(0.001)
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert seen > 3
    assert x[-1] == 1
