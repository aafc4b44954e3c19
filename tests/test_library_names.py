"""Functions of a program that are named like functions of the C library, which the runtime beside them calls."""

from __future__ import annotations

import subprocess

import pytest
from compiling import emit, on_host

from offload import CompileError
from offload.paths import package_file


def called_by_the_runtime() -> list[str]:
    archives = [package_file(f"lib/lib{name}.a") for name in ("mgpu", "offload_builtins")]
    listed = subprocess.run(["nm", "-u", *archives], capture_output=True, text=True, check=True).stdout
    # Some are asked for in a certain version: dlopen@GLIBC_2.2.5.
    names = {line.split()[1].partition("@")[0] for line in listed.splitlines() if line.strip().startswith("U ")}
    return sorted(name for name in names if not name.startswith(("mgpu", "offload_", "_GLOBAL_")))


@pytest.mark.parametrize("name", called_by_the_runtime())
def test_what_the_runtime_calls_is_refused(name: str) -> None:
    with pytest.raises(CompileError, match="the C library has a function of this name") as caught:
        emit(f"\nfunc.func @{name}() {{ return }}", "kernels")
    assert caught.value.diagnostics[0].line == 2


def test_the_names_are_found() -> None:
    assert {"write", "dlopen", "memcpy", "pthread_mutex_lock"} <= set(called_by_the_runtime())


def test_private_functions_may_have_them() -> None:
    library = on_host(
        """
        func.func private @write(%x: i32) -> i32 {
          %r = arith.addi %x, %x : i32
          return %r : i32
        }
        func.func @f(%x: i32) -> i32 {
          %r = call @write(%x) : (i32) -> i32
          return %r : i32
        }
        """
    )
    assert library.f(4) == 8
