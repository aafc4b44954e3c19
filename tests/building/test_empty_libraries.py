"""Programs that have nothing to call: they build, with a warning, as a forgotten function is found late otherwise."""

from __future__ import annotations

import warnings

import pytest

import offload

WARNING = r"^p\.mlir: warning: there is nothing to call in what this builds: .*; leave `private` out of"
PRIVATE = "func.func private @f(%x: f32) -> f32 {\n  return %x : f32\n}\n"


@pytest.mark.parametrize("program", [PRIVATE, "// nothing yet\n", "module {\n}\n"])
def test_a_program_without_anything_public(program: str) -> None:
    for _ in range(2):  # compiled, and from the cache
        with pytest.warns(offload.BuildWarning, match=WARNING):
            assert not offload.compile(program, targets=["host"], name="p.mlir").functions


@pytest.mark.parametrize(
    "program",
    ["func.func @f() {\n  return\n}\n", "gpu.module @m {\n  gpu.func @k() kernel {\n    gpu.return\n  }\n}\n"],
)
def test_what_can_be_called(program: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", offload.BuildWarning)
        offload.compile(program, targets=["host"])
