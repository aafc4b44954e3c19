"""Kernels under the thread sanitizer: the runtime, the kernels and a C program that launches them are instrumented.

Python writes down the launches, ``replay.c`` does them, Python judges the arrays. Blocks of a grid run on several
threads, which the sanitizer watches; the threads of one block run on one, in turn."""

from __future__ import annotations

import concurrent.futures
import os
import re
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import emit_text
from once import once
from runtime_sources import RUNTIME, object_name, sources

from conformance import HERE, Answer, Launch, Theme, judge
from offload.paths import package_file

CLANG = "clang-22"
"""For kernels, which are LLVM 22's IR; the whole program has one sanitizer runtime, its own."""
FLAGS = ["-fsanitize=thread", "-O1", "-g", "-fPIC", "-pthread"]
SOURCE_FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-DMGPU_API=", f"-I{RUNTIME}"]


def run(*command: object, **environment: str) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"


def program(factory: pytest.TempPathFactory) -> Path:
    """The C program with the runtime in it."""
    return once(factory, "replay", _build) / "replay"


def _build(folder: Path) -> None:
    objects = {source: folder / object_name(source) for source in sources()}
    objects[HERE / "replay.c"] = folder / "replay.o"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: run(CLANG, *FLAGS, *SOURCE_FLAGS, "-c", job[0], "-o", job[1]), objects.items()))
    run(CLANG, *FLAGS, *objects.values(), "-ldl", "-o", folder / "replay")


def instrumented(text: str) -> str:
    """LLVM IR whose functions the sanitizer's pass takes: it looks at those that say so."""
    marked, count = re.subn(
        r"^(define [^\n]*\)[^\n{]*?)((?: #\d+)?(?: ![^\n{]*)?) \{$", r"\1 sanitize_thread\2 {", text, flags=re.MULTILINE
    )
    assert count and count == len(re.findall(r"^define ", text, re.MULTILINE))
    return marked


def build_image(theme: Theme, way: str, folder: Path) -> Path:
    """The theme's kernels as an instrumented image."""
    code, image = folder / f"{theme.name}.ll", folder / f"{theme.name}.so"
    code.write_text(instrumented(emit_text(theme.source, "llvm", [way])))
    builtins = package_file("lib/liboffload_builtins.a")
    run(CLANG, *FLAGS, "-Wno-override-module", "-shared", code, builtins, "-lm", "-o", image)
    return image


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def written(name: str, launch: Launch, answer: Answer) -> bytes:
    """A launch as replay.c reads it; memrefs are expanded as the kernels' parameters are."""
    arrays = [value for value in answer.arguments if isinstance(value, np.ndarray)]
    parameters: list[tuple[int, int]] = []
    number = 0
    for value in answer.arguments:
        if isinstance(value, np.ndarray):
            strides = [stride // value.itemsize for stride in value.strides]
            parameters += [(1, number), (1, number), (0, 0), *((0, size) for size in (*value.shape, *strides))]
            number += 1
        else:
            parameters.append((0, int(value)))
    data = [name.encode().ljust(64, b"\0")]
    data.append(words(*launch.grid, *launch.block, answer.shared, len(arrays), len(parameters)))
    data += [words(array.nbytes) + array.tobytes() for array in arrays]
    data += [words(*parameter) for parameter in parameters]
    return b"".join(data)


def replay(
    program: Path, image: Path, launches: Sequence[tuple[str, Launch, Answer]], emulator: Sequence[str] = ()
) -> None:
    """Does the launches and judges what comes out; anything that the sanitizer reports fails."""
    file, results = image.with_suffix(".launches"), image.with_suffix(".results")
    file.write_bytes(b"".join(written(*launch) for launch in launches))
    run(*emulator, program, image, file, results, TSAN_OPTIONS="halt_on_error=1", OFFLOAD_BACKEND="")
    data, at = results.read_bytes(), 0

    def read(arrays: Iterable[Any]) -> Iterable[Any]:
        nonlocal at
        for array in arrays:
            yield np.frombuffer(data, array.dtype, array.size, at).reshape(array.shape)
            at += array.nbytes

    for _, _, answer in launches:
        judge(list(read(value for value in answer.arguments if isinstance(value, np.ndarray))), answer)
    assert at == len(data)
