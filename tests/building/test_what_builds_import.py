"""A small kernel is compiled in less time than Python takes to import a part of its library: builds do without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from compiling import EXAMPLES

HEAVY = {"asyncio", "concurrent.futures", "ctypes", "hashlib", "json", "logging", "numpy", "socket", "subprocess"}

COMMAND = """
import os, sys
real = os.fork
def fork():
    print(*sys.modules, flush=True)  # what the command has, and so its worker, before the compiler is loaded
    return real()
os.fork = fork
from offload.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_what_a_build_without_a_cache_imports(tmp_path: Path) -> None:
    words = ("build", EXAMPLES / "saxpy.mlir", "-q", "--no-cache", "-t", "nvvm:sm_90", "-o", "x.so")
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    loaded = done.stdout.split()
    assert "offload.compiler.isolation" in loaded
    assert HEAVY & set(loaded) == set()


def test_the_package_alone_is_next_to_nothing(tmp_path: Path) -> None:
    code = "import sys, offload; print(*(name for name in sys.modules if name.startswith('offload')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["offload", "offload._version"]
