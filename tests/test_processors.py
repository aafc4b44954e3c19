"""What the runtime knows of processors is what LLVM knows of them."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from compiling import ROOT

from offload.compiler.native import native


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("processors", ROOT / "scripts" / "processors.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_this_llvm(script: ModuleType) -> None:
    for name, text in script.texts().items():
        assert (ROOT / "runtime_c" / "host" / name).read_text() == text, "run scripts/processors.py"


def test_every_feature_that_llvm_uses_is_told_apart(script: ModuleType) -> None:
    """Processors of one level that differ in what vector code may use differ in the table."""
    tables = (ROOT / "runtime_c" / "host" / "processors_x86_64.def").read_text()
    bits = dict(
        line.removeprefix("PROCESSOR(").removesuffix(")").split(", ")
        for line in tables.splitlines()
        if line.startswith("PROCESSOR(")
    )
    numbers = {name.strip('"'): int(value, 16) for name, value in bits.items()}
    assert set(native().known_processors("x86_64-unknown-linux-gnu")) == set(numbers)
    assert numbers["x86-64"] == 0
    for less, more in (("x86-64-v3", "haswell"), ("x86-64-v4", "skylake-avx512"), ("skylake-avx512", "icelake-server"),
                       ("icelake-server", "sapphirerapids"), ("znver4", "znver5")):  # fmt: skip
        assert numbers[less] & ~numbers[more] == 0, (less, more)
        assert numbers[more] & ~numbers[less] or less == "x86-64-v4" or less == "x86-64-v3", (less, more)
    assert numbers["sapphirerapids"] & ~numbers["znver5"]  # arithmetic with f16
    assert numbers["haswell"] & ~numbers["x86-64-v2"]
