"""libmgpu.so under mlir-runner, in the place of upstream's runtime library: every example, with the host code as
stock mlir-opt lowers it and the kernels' machine code in gpu.binary, on the CPU. Against NumPy."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import EXAMPLES, emit_text, tool
from ready import nvvm_object

import offload
from offload import artifact
from offload.paths import package_file

# Stock passes alone.
PASSES = (
    "expand-strided-metadata",
    "lower-affine",
    "convert-scf-to-cf",
    "gpu-to-llvm",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
)
LIBRARIES = ("runner_utils", "c_runner_utils")


@dataclass(frozen=True)
class Example:
    """A function, its arguments (the last array is what it writes), and what it should write."""

    function: str
    arguments: tuple[Any, ...]
    wanted: Any


def numbers(*shape: int) -> Any:
    """Small multiples of a quarter, which print in few digits and add up exactly."""
    return ((np.arange(np.prod(shape)) * 7 % 23 - 11) / 4).astype(np.float32).reshape(shape)


def saxpy() -> Example:
    x, y = numbers(300), numbers(300)[::-1].copy()
    return Example("saxpy", (2.5, x, y), 2.5 * x + y)


def scale() -> Example:
    x = numbers(5, 9)
    return Example("scale", (-3.0, x), -3 * x)


def linear() -> Example:
    x, w, bias = numbers(6, 5), numbers(5, 9), numbers(9)
    return Example("linear_relu", (x, w, bias, np.zeros((6, 9), np.float32)), np.maximum(x @ w + bias, 0))


def reduce() -> Example:
    x = numbers(600)
    sums = [x[start : start + 256].sum() for start in range(0, 600, 256)]
    return Example("block_sums", (x, np.zeros(3, np.float32)), np.array(sums, np.float32))


def transpose() -> Example:
    x = numbers(33, 7)
    return Example("transpose", (x, np.zeros((7, 33), np.float32)), x.T)


CALLS: dict[str, Callable[[], Example]] = {
    "saxpy": saxpy, "scale": scale, "linear": linear, "reduce": reduce, "transpose": transpose,
}  # fmt: skip


def kind(array: Any) -> str:
    return "memref<" + "".join(f"{size}x" for size in array.shape) + "f32>"


def dynamic(array: Any) -> str:
    return "memref<" + "?x" * array.ndim + "f32>"


def main_of(example: Example) -> str:
    """A @main that calls the function, prints what it wrote, and says what the runtime still has."""
    globals_, body, names, types = [], [], [], []
    for index, value in enumerate(example.arguments):
        if isinstance(value, float):
            body.append(f"%{index} = arith.constant {value!r} : f32")
            types.append("f32")
        else:
            data = str(value.tolist())
            globals_.append(f'memref.global "private" @data{index} : {kind(value)} = dense<{data}>')
            body.append(f"%g{index} = memref.get_global @data{index} : {kind(value)}")
            body.append(f"%{index} = memref.cast %g{index} : {kind(value)} to {dynamic(value)}")
            types.append(dynamic(value))
        names.append(f"%{index}")
    body.append(f"call @{example.function}({', '.join(names)}) : ({', '.join(types)}) -> ()")
    body.append(f"%out = memref.cast {names[-1]} : {types[-1]} to memref<*xf32>")
    body.append("call @printMemrefF32(%out) : (memref<*xf32>) -> ()")
    for what in range(5):  # streams, events, both in pools, allocations
        body.append(f"%what{what} = arith.constant {what} : i32")
        body.append(f"%count{what} = call @mgpuCount(%what{what}) : (i32) -> i64")
        body.append(f"call @printI64(%count{what}) : (i64) -> ()")
        body.append("call @printNewline() : () -> ()")
    return "\n".join(
        [
            "func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}",
            "func.func private @printI64(i64)\nfunc.func private @printNewline()",
            "func.func private @mgpuCount(i32) -> i64",
            *globals_,
            "func.func @main() {",
            *body,
            "return\n}\n",
        ]
    )


def with_binaries(text: str, images: dict[str, bytes]) -> str:
    """The program with every gpu.module replaced by its machine code."""
    program, count = re.subn(
        r"^  gpu\.module @(\w+).*?^  \}\n",
        lambda found: f"  gpu.binary @{found[1]} [{nvvm_object('sm_90', images[found[1]])}]\n",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    assert count == len(images)
    return program


def run(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    folder = Path(tool("llvm-config", "--libdir").strip())
    libraries = [package_file("lib/libmgpu.so"), *(folder / f"libmlir_{name}.so" for name in LIBRARIES)]
    command = ["mlir-runner-22", path, "-e", "main", "--entry-point-result=void"]
    return subprocess.run(
        [*command, f"--shared-libs={','.join(map(str, libraries))}"],
        env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def lowered(name: str, folder: Path, main: str = "") -> Path:
    built = artifact.read(offload.build(EXAMPLES / f"{name}.mlir", folder / f"{name}.so", targets=["host"]))
    images = {image.module: image.data for image in built.images}
    program = with_binaries(emit_text(EXAMPLES / f"{name}.mlir", "kernels"), images)
    assert program.rstrip().endswith("}")
    source = folder / "program.mlir"
    source.write_text(program.rstrip()[:-1] + (main or main_of(CALLS[name]())) + "}\n")
    done = folder / "lowered.mlir"
    tool("mlir-opt", source, *(f"--{one}" for one in PASSES), "-o", done)
    return done


def test_each_example_runs() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.mlir")} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_example(name: str, tmp_path: Path) -> None:
    done = run(lowered(name, tmp_path), OFFLOAD_BACKEND="host")
    assert (done.returncode, done.stderr) == (0, "")
    head, values = done.stdout.split("data = ", 1)
    values, counts = values.rsplit("]", 1)
    example = CALLS[name]()
    wanted = np.asarray(example.wanted)
    assert f"rank = {wanted.ndim} offset = 0 sizes = {list(wanted.shape)}" in head
    found = [float(number) for number in re.findall(r"-?[\d.]+(?:e[+-]?\d+)?", values)]
    np.testing.assert_allclose(np.reshape(found, wanted.shape), wanted, rtol=1e-5, atol=1e-5)
    streams, events, _, _, allocations = map(int, counts.split())
    assert (streams, events, allocations) == (0, 0, 0)


@pytest.mark.parametrize(("asked", "how"), [("1", "error"), ("0", "an error that the program did not ask about")])
def test_failures_are_printed_once(asked: str, how: str, tmp_path: Path) -> None:
    """When they happen, or at the end: stock MLIR's host code asks for none."""
    done = run(lowered("saxpy", tmp_path), OFFLOAD_BACKEND="cuda-and-no-such", OFFLOAD_PRINT_ERRORS=asked)
    said = (
        f'offload: {how}: The environment variable OFFLOAD_BACKEND asks for the backend "cuda-and-no-such", which is '
    )
    assert done.stderr == said + "unknown; known are cuda, hip and host.\n"


def test_errors_are_told(tmp_path: Path) -> None:
    """Stock MLIR's host code asks for none, and numbers that no kernel has touched look like results."""
    done = run(lowered("scale", tmp_path), OFFLOAD_BACKEND="metal")
    assert re.search('offload: an error .* asks for the backend "metal", which is unknown', done.stderr)


EMPTY = """
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
memref.global "private" @data : memref<2x3xf32> = dense<1.0>
func.func @main() {
  %g = memref.get_global @data : memref<2x3xf32>
  %x = memref.cast %g : memref<2x3xf32> to memref<?x?xf32>
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %two = arith.constant 2.0 : f32
  %none = memref.alloc(%zero, %three) : memref<?x?xf32>
  call @scale(%two, %none) : (f32, memref<?x?xf32>) -> ()
  call @scale(%two, %x) : (f32, memref<?x?xf32>) -> ()
  %out = memref.cast %x : memref<?x?xf32> to memref<*xf32>
  call @printMemrefF32(%out) : (memref<*xf32>) -> ()
  return
}
"""


def test_after_an_empty_array(tmp_path: Path) -> None:
    """A launch of no blocks is none; upstream's runtime remarks on it and goes on."""
    done = run(lowered("scale", tmp_path, EMPTY), OFFLOAD_BACKEND="host")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"\d+", done.stdout.split("data =")[1]) == ["2"] * 6
