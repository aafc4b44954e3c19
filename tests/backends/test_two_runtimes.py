"""Runtimes of different versions: two in one process are separate and both work; an artifact whose runtime speaks
another ABI than this installation is refused with what to do. The other versions are made from runtime_c, changed."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from compiling import EXAMPLES, ROOT
from runtime_support import FLAGS

import offload
from offload.paths import package_file
from offload.runtime import Library, abi

NEWER = "mgpuNewer"


def variant(folder: Path, edits: dict[str, Callable[[str], str]]) -> Path:
    """libmgpu.a of this runtime with files of it edited; what the table is made from is compiled again."""
    source = folder / "runtime_c"
    shutil.copytree(ROOT / "runtime_c", source)
    for name, edit in edits.items():
        before = (source / name).read_text()
        after = edit(before)
        assert after != before, name
        (source / name).write_text(after)
    changed = folder / "api.c.o"  # replaces that of the archive
    flags = [flag for flag in FLAGS if not str(flag).startswith("-I")]
    command = ["cc", *map(str, flags), "-fvisibility=hidden", "-DMGPU_API=", f"-I{source}", "-c", source / "abi/api.c"]
    subprocess.run([*command, "-o", changed], check=True)
    archive = Path(shutil.copy(package_file("lib/libmgpu.a"), folder))
    subprocess.run(["ar", "rcs", archive, changed], check=True)
    return archive


def newer(text: str) -> str:
    """One more function at the end of the table."""
    return text + f"\nMGPU_FUNCTION(int32_t, {NEWER}, (int32_t number))\n"


def newer_code(text: str) -> str:
    return f'#include "mgpu.h"\nint32_t {NEWER}(int32_t number) {{ return number + 1; }}\n{text}'


def older(text: str) -> str:
    """Without the last function of the table."""
    return text[: text.rindex("MGPU_FUNCTION(")]


def next_abi(text: str) -> str:
    return re.sub(r"MGPU_ABI_VERSION \d+u", f"MGPU_ABI_VERSION {abi.ABI_VERSION + 1}u", text)


def saxpy(path: Path, archive: Path | None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """examples/saxpy.mlir for the CPU, with that runtime inside."""
    with monkeypatch.context() as patch:
        if archive:
            patch.setenv("OFFLOAD_ISOLATE", "0")  # a worker would see nothing of the patch
            patch.setattr(
                "offload.targets.sysroot.package_file",
                lambda name: archive if name == "lib/libmgpu.a" else package_file(name),
            )
        return offload.build(EXAMPLES / "saxpy.mlir", path, targets=["host"])


def works(library: Library) -> bool:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    library.saxpy(2, x, y)
    return bool((y == 2 * x + 1).all())


@pytest.fixture
def current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    return offload.load(saxpy(tmp_path / "current.so", None, monkeypatch))


def test_two_versions_in_one_process(current: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = variant(tmp_path, {"mgpu_functions.def": newer, "abi/api.c": newer_code})
    other = offload.load(saxpy(tmp_path / "newer.so", archive, monkeypatch))
    here, there = current._native.api, other._native.api
    table = ctypes.CDLL(other.path).offload_api
    table.restype = ctypes.POINTER(ctypes.c_uint32)
    assert table(abi.ABI_VERSION)[1] == ctypes.sizeof(abi.Api) + ctypes.sizeof(ctypes.c_void_p)
    for _ in range(3):
        assert works(current)
        assert works(other)
    # Streams and memory of one are unknown to the other, and counted by their own.
    before = here.mgpuCount(0), there.mgpuCount(0)
    stream, memory = there.mgpuStreamCreate(), there.mgpuMemAlloc(64, None, False)
    assert (here.mgpuCount(0), here.mgpuCount(4)) == (before[0], 0)
    assert (there.mgpuCount(0), there.mgpuCount(4)) >= (before[1] + 1, 1)
    here.mgpuStreamDestroy(stream)
    with pytest.raises(offload.DeviceError, match="is no stream or event of this runtime"):
        current._native.check()
    here.mgpuMemFree(memory, None)
    with pytest.raises(offload.DeviceError, match="is no allocation of this runtime"):
        current._native.check()
    # An error of one does not stop the other.
    here.mgpuSetDefaultDevice(99)
    assert works(other)
    with pytest.raises(offload.DeviceError, match="no device 99"):
        current._native.check()
    there.mgpuStreamDestroy(stream)
    there.mgpuMemFree(memory, None)
    other._native.check()
    assert works(current)


def test_the_new_function_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = variant(tmp_path, {"mgpu_functions.def": newer, "abi/api.c": newer_code})
    entry = ctypes.CDLL(saxpy(tmp_path / "newer.so", archive, monkeypatch)).offload_api
    entry.restype = ctypes.c_void_p
    place = entry(abi.ABI_VERSION) + ctypes.sizeof(abi.Api)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(ctypes.c_void_p.from_address(place).value)
    assert function(41) == 42


def test_shared_and_static_runtime_in_one_process(current: Library, tmp_path: Path) -> None:
    other = offload.load(
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "shared.so", targets=["host"], runtime="shared")
    )
    other.use("host")
    assert works(current)
    assert works(other)
    stream = other._native.api.mgpuStreamCreate()
    current._native.api.mgpuStreamDestroy(stream)
    with pytest.raises(offload.DeviceError, match="is no stream or event of this runtime"):
        current._native.check()
    other._native.api.mgpuStreamDestroy(stream)
    other._native.check()


def test_an_older_runtime_lacks_a_function(current: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = variant(tmp_path, {"mgpu_functions.def": older})
    path = saxpy(tmp_path / "older.so", archive, monkeypatch)
    with pytest.raises(offload.ArtifactError) as refused:
        offload.load(path)
    assert str(refused.value) == (
        f"{path}: its mgpu runtime is too old, it lacks {abi.FUNCTIONS[-1][1]}; build it again"
    )
    assert works(current)


def test_a_runtime_of_the_next_abi(current: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = variant(tmp_path, {"mgpu.h": next_abi})
    path = saxpy(tmp_path / "next.so", archive, monkeypatch)
    with pytest.raises(offload.ArtifactError) as refused:
        offload.load(path)
    assert str(refused.value) == (
        f"{path}: its mgpu runtime does not speak version {abi.ABI_VERSION} of the ABI; build it again with this "
        "version of offload, or install the version that built it"
    )
    entry = ctypes.CDLL(path).offload_api
    entry.restype = ctypes.c_void_p
    assert [bool(entry(version)) for version in range(4)] == [version == abi.ABI_VERSION + 1 for version in range(4)]
    assert works(current)


def test_this_runtime_and_a_later_offload(current: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "ABI_VERSION", abi.ABI_VERSION + 1)
    with pytest.raises(offload.ArtifactError, match=f"does not speak version {abi.ABI_VERSION} of the ABI; build it"):
        offload.load(current.path)
    assert works(current)
