"""What the runtime knows of processors is what LLVM knows of them."""

from __future__ import annotations

import importlib.util
import platform
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from compiling import EXAMPLES, ROOT, emit
from offload.targets import parse_target
from offload.targets.host import HostTarget
from offload.targets.rocdl import RocdlTarget

import offload
from offload import TargetError, artifact
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


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the features are those of x86-64")
def test_features_that_are_asked_for_besides(tmp_path: Path) -> None:
    """Code with features that the processor lacks ran, up to the first instruction that it does not know."""
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    lacks = [name for name in ("xop", "fma4", "tbm") if name not in (flags[1].split() if flags else ())]

    def works(*targets: str) -> bool:
        x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
        library = offload.compile(EXAMPLES / "saxpy.mlir", targets=targets)
        library.use("host")
        library.saxpy(2, x, y)
        return y.tolist() == [1, 3, 5, 7]

    assert works("host:x86-64,features=+sse3,+ssse3,-avx2,+64bit")
    for chip in ("x86-64-v2", "native"):
        with pytest.raises(offload.DeviceError, match=rf"fits host:0\. Images: host \S+:\+{lacks[0]} bin"):
            works(f"host:{chip},features=+{lacks[0]}")
        assert works(f"host:{chip},features=+{lacks[0]}", "host")


def test_the_image_says_which_features_it_asks_for() -> None:
    path = offload.compile(EXAMPLES / "saxpy.mlir", targets=["host:x86-64-v2,features=-avx2,+sse3"]).path
    assert [image.chip for image in artifact.read(path).images] == ["x86-64-v2:+sse3"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the features are those of x86-64")
def test_one_level_with_several_sets_of_features(tmp_path: Path) -> None:
    """Each is an image of its own: the runtime takes one whose features the processor has."""
    targets = ["host:x86-64", "host:x86-64,features=+ssse3", "host:x86-64,features=+tbm"]
    library = offload.compile(EXAMPLES / "saxpy.mlir", targets=targets)
    chips = ["x86-64", "x86-64:+ssse3", "x86-64:+tbm"]
    assert [image.chip for image in artifact.read(library.path).images] == chips
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    library.use("host")
    library.saxpy(2, x, y)
    assert y.tolist() == [1, 3, 5, 7]
    with pytest.raises(
        offload.OffloadError, match=r"^two targets for one chip, host:x86-64 and host:x86-64,features=-"
    ):
        offload.compile(EXAMPLES / "saxpy.mlir", targets=["host:x86-64", "host:x86-64,features=-sse3"])


def test_blanks_between_features(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM took them for a part of the name and left the feature out, while the image said that it has it."""
    targets = [
        HostTarget("x86-64-v2", features=" +avx2, -sse4a ,"),
        RocdlTarget("gfx90a", features=" -xnack , +sramecc"),
    ]
    path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", targets=targets)
    cpu, gpu = artifact.read(path).images
    assert (cpu.chip, gpu.chip) == ("x86-64-v2:+avx2", "gfx90a:sramecc+:xnack-")
    found = RocdlTarget.ready_image(native(), gpu.data)
    assert found is not None
    assert found.chips == (gpu.chip,)
    assert parse_target("rocdl:gfx90a,features= -xnack , +sramecc") == targets[1]
    assert "not a recognized feature" not in capfd.readouterr().err


def test_this_processor_by_both_names(tmp_path: Path) -> None:
    """Two images for one processor were built, of which the second was never taken. Which processors are this one is
    no matter of the package: it is no error."""
    name = native().host_processor()
    with ThreadPoolExecutor(2) as executor:
        for elsewhere in (None, executor):
            path = offload.build(
                EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=["host:native", f"host:{name}"], executor=elsewhere
            )
            (image,) = artifact.read(path).images
            assert image.chip == name
    with pytest.raises(
        TargetError, match=f"^two targets for one chip, host:native,O=1 and host:{name}: a library holds one"
    ):
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=["host:native,O=1", f"host:{name}"])


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_every_processor_is_of_its_architecture(architecture: str) -> None:
    """LLVM calls a processor of Intel's gracemont, and one of NVIDIA's grace."""
    names = set(native().known_processors(f"{architecture}-unknown-linux-gnu")) - {"generic"}
    assert len(names) > 50
    assert {name for name in names if HostTarget(name).architecture() != architecture} == set()


@pytest.mark.parametrize("target", ["host:bogus", "host:x86-64,features=+avx9", "rocdl:gfx942,features=+avx2"])
def test_wrong_targets_of_programs_without_kernels(target: str) -> None:
    with pytest.raises(TargetError, match=r"unknown chip 'bogus'|avx"):
        emit("func.func @f() {\n  return\n}\n", "so", [target])
