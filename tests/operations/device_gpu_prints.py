"""gpu.printf and cf.assert in kernels. On the CPU they run in a process of their own, which shows what is printed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from device_values import THREAD, mapped, module

from offload.errors import DeviceError
from offload.runtime import Library
from operations import Case

SCRIPT = """
import sys, offload
library = offload.compile(sys.argv[1], targets=["host"])
library.use("host")
library.kernels.k[{blocks}, {threads}]()
"""


def _prints(source: str, lines: list[str], blocks: int = 1, threads: int = 1) -> Callable[[Library], None]:
    """What the kernel prints, line by line; the order of threads is open."""

    def run(_: Library) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prints.mlir"
            path.write_text(source)
            script = SCRIPT.format(blocks=blocks, threads=threads)
            done = subprocess.run(
                [sys.executable, "-c", script, path], capture_output=True, text=True, env={**os.environ}, cwd=folder
            )
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == sorted(lines)

    return run


def _printing(body: str) -> str:
    return module(f"gpu.func @k() kernel {{\n{THREAD}{body}\ngpu.return\n}}")


NONE = _printing('gpu.printf "100%%, no arguments\\n"')
KINDS = _printing("""
  %a = arith.constant -1 : i1
  %b = arith.constant -5 : i8
  %c = arith.constant -300 : i16
  %d = arith.constant -70000 : i32
  %e = arith.constant -5000000000 : i64
  %f = arith.constant 6000000000 : index
  %g = arith.constant 0.5 : f16
  %h = arith.constant 1.5 : bf16
  %i = arith.constant 2.5 : f32
  %j = arith.constant 0.001 : f64
  gpu.printf "%d %d %d %d %d %d %f %f %f %g\\n", %a, %b, %c, %d, %e, %f, %g, %h, %i, %j
    : i1, i8, i16, i32, i64, index, f16, bf16, f32, f64
  gpu.printf "%u %hhu %u\\n", %b, %b, %c : i8, i8, i16
  gpu.printf "%hhd %hx %hu\\n", %d, %d, %c : i32, i32, i16
  gpu.printf "%lld %ld %zu %llx\\n", %d, %b, %f, %c : i32, i8, index, i16
""")
WIDTHS = _printing("""
  %w = arith.constant 6 : i32
  %p = arith.constant 2 : i8
  %x = arith.constant 3.14159 : f32
  %n = arith.constant 65 : i8
  gpu.printf "[%-5d][%05d][%+d][%*.*f][%c][%x][%#o]\\n", %n, %n, %n, %w, %p, %x, %n, %n, %n
    : i8, i8, i8, i32, i8, f32, i8, i8, i8
""")
THREADS = _printing('gpu.printf "block %d thread %d of %d\\n", %bx, %tx, %threads : index, index, index')
SUSPENDED = _printing("""
  gpu.barrier
  gpu.printf "thread %d\\n", %at : index
  gpu.barrier""")


def _wrong(text: str) -> str:
    return _printing(f"%i = arith.constant 1 : i32\n%f = arith.constant 1.0 : f32\n{text} // here")


EVERYWHERE = ("nvvm", "rocdl", "host")
_NEGATIVE = _printing("""
  %w = arith.constant 4294967290 : i64
  %x = arith.constant 3.25 : f32
  %n = arith.constant 65 : i32
  gpu.printf "[%*d][%.*f][%*d]\\n", %w, %n, %w, %x, %n, %n : i64, i32, i64, f32, i32, i32
""")
_COMPUTED = _printing('gpu.printf "[%*d]\\n", %threads, %threads : index, index // here')
_MANY = _printing(
    "%i = arith.constant 7 : i32\n"
    f'gpu.printf "{" %d" * 33}\\n", {", ".join(["%i"] * 33)} : {", ".join(["i32"] * 33)} // here'
)

ASSERT = module(mapped("k", "i32", """
  %limit = arith.constant 100 : i32
  %c = arith.cmpi slt, %v, %limit : i32
  BARRIER
  cf.assert %c, "no more than 100% of %d"
  %r = arith.addi %v, %v : i32"""))  # fmt: skip


def _asserted(library: Library) -> None:
    x = np.arange(90, dtype=np.int32)
    out = np.zeros_like(x)
    library.kernels.k[3, 30](x, out)
    np.testing.assert_array_equal(out, 2 * x)
    x[37] = 100
    where = r'"k" failed an assertion in block \(1, 0, 0\), thread \(7, 0, 0\): .*:\d+:\d+: no more than 100% of %d'
    with pytest.raises(DeviceError, match=where):
        library.kernels.k[3, 30](x, out)
    x[37] = 0
    library.kernels.k[3, 30](x, out)
    np.testing.assert_array_equal(out, 2 * x)


def _skips(library: Library) -> None:
    """With one failure among very many blocks the rest is not run."""
    x = np.full(1 << 20, 100, np.int32)
    out = np.zeros_like(x)
    with pytest.raises(DeviceError, match="failed an assertion in block"):
        library.kernels.k[1 << 20, 1](x, out)
    assert not out.any()


IN_FUNCTION = module("""
  func.func private @check(%v: i32) {
    %zero = arith.constant 0 : i32
    %c = arith.cmpi sge, %v, %zero : i32
    cf.assert %c, "negative"
    return
  }
""" + mapped("k", "i32", "func.call @check(%v) : (i32) -> ()\n%r = arith.addi %v, %v : i32"))  # fmt: skip


def _in_function(library: Library) -> None:
    x = np.arange(40, dtype=np.int32)
    out = np.zeros_like(x)
    library.kernels.k[2, (4, 5, 1)](x, out)
    np.testing.assert_array_equal(out, 2 * x)
    x[33] = -1
    with pytest.raises(DeviceError, match=r"block \(1, 0, 0\), thread \(1, 3, 0\): .*negative"):
        library.kernels.k[2, (4, 5, 1)](x, out)


CASES = [
    Case("gpu.printf", "no arguments", NONE, _prints(NONE, ["100%, no arguments"])),
    Case(
        "gpu.printf",
        "every type",
        KINDS,
        _prints(
            KINDS,
            [
                "1 -5 -300 -70000 -5000000000 6000000000 0.500000 1.500000 2.500000 0.001",
                "251 251 65236",
                "-112 ee90 65236",
                "-70000 -5 6000000000 fed4",
            ],
        ),
    ),
    Case(
        "gpu.printf", "flags, widths, precisions", WIDTHS, _prints(WIDTHS, ["[65   ][00065][+65][  3.14][A][41][0101]"])
    ),
    Case(
        "gpu.printf",
        "many threads",
        THREADS,
        _prints(THREADS, [f"block {b} thread {t} of 33" for b in range(50) for t in range(33)], 50, 33),
    ),
    Case("gpu.printf", "between barriers", SUSPENDED, _prints(SUSPENDED, [f"thread {i}" for i in range(80)], 2, 40)),
    Case(
        "gpu.printf",
        "sm_75, gfx1100",
        KINDS,
        _prints(
            KINDS,
            [
                "1 -5 -300 -70000 -5000000000 6000000000 0.500000 1.500000 2.500000 0.001",
                "251 251 65236",
                "-112 ee90 65236",
                "-70000 -5 6000000000 fed4",
            ],
        ),
        chips={"nvvm": "sm_75", "rocdl": "gfx1100"},
    ),
    *(
        Case("gpu.printf", form, _wrong(text), refused=dict.fromkeys(EVERYWHERE, reason))
        for form, text, reason in (
            ("too few arguments", 'gpu.printf "%d %d\\n", %i : i32', "has 1 arguments, but its format takes more"),
            (
                "a zero byte",
                'gpu.printf "%d\\00, and more\\n", %i : i32',
                "has a zero byte in its format, where printf would end",
            ),
            ("too many arguments", 'gpu.printf "%d\\n", %i, %i : i32, i32', "has 2 arguments, but its format takes 1"),
            (
                "an integer for %f",
                'gpu.printf "%f\\n", %i : i32',
                "has '%f' in its format for an argument of type 'i32'",
            ),
            ("a float for %d", 'gpu.printf "%5d\\n", %f : f32', "has '%d' in its format for an argument of type 'f32'"),
            ("a string", 'gpu.printf "%s\\n", %i : i32', "has a conversion '%s' in its format"),
        )
    ),
    Case(
        "gpu.printf",
        "33 arguments",
        _MANY,
        _prints(_MANY, [" 7" * 33]),
        refused={"nvvm": "has 33 arguments, and printf of this target takes 32 at a time"},
    ),
    Case(
        "gpu.printf",
        "widths below zero",
        _NEGATIVE,
        _prints(_NEGATIVE, ["[65    ][3.250000][" + " " * 63 + "65]"]),
    ),
    Case(
        "gpu.printf",
        "a width that the kernel computes",
        _COMPUTED,
        _prints(_COMPUTED, ["[1]"]),
        refused={"nvvm": "has '*' in its format for a number that only the kernel knows"},
    ),
    Case("cf.assert", "without barriers", ASSERT.replace("BARRIER", ""), _asserted),
    Case("cf.assert", "among barriers", ASSERT.replace("BARRIER", "gpu.barrier"), _asserted),
    Case("cf.assert", "the remaining blocks are skipped", ASSERT.replace("BARRIER", ""), _skips),
    Case("cf.assert", "in a function", IN_FUNCTION, _in_function),
    Case("cf.assert", "sm_75, gfx1100", IN_FUNCTION, _in_function, chips={"nvvm": "sm_75", "rocdl": "gfx1100"}),
]
