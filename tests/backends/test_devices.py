"""Devices in this machine: through the vendors' packages and without them, on stand-ins for the drivers' libraries
(tests/standin/devices_*.c) and for the kernel driver's files. The packages are the real ones, where installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from compiling import HERE, ROOT, command, python
from offload.targets import Device, nvvm_devices, rocdl_devices
from offload.targets.devices import optional_module

GPUS = {
    "nvvm": [
        ["nvvm", "sm_90", "Stand-in H", 0, 80 << 30, 132, "CUDA 12.9"],
        ["nvvm", "sm_121", "Stand-in G", 1, 128 << 30, 48, "CUDA 12.9"],
    ],
    "rocdl": [
        ["rocdl", "gfx942", "Stand-in M", 0, 192 << 30, 304, "HIP 6.4.43484"],
        ["rocdl", "gfx1100", "Stand-in R", 1, 24 << 30, 48, "HIP 6.4.43484"],
    ],
}
PACKAGES = {"nvvm": ("cuda.bindings", "cuda-bindings"), "rocdl": ("hip-python", "hip-python")}
ALONE = "libcuda.so.1 alone"

CODE = """
import dataclasses, json, sys
target, root, *hidden = sys.argv[1:]
for name in hidden:
    sys.modules[name] = None
from pathlib import Path
from offload.targets import nvvm_devices, rocdl_devices
found = nvvm_devices.discover() if target == "nvvm" else rocdl_devices.discover(Path(root))
print(json.dumps([[dataclasses.astuple(each) for each in found.devices], found.through, found.notes]))
"""


def package(target: str) -> str:
    """What devices are found through, as it is told."""
    name, distribution = PACKAGES[target]
    return f"{name} {importlib.metadata.version(distribution)}"


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders, for LD_LIBRARY_PATH, with both stand-ins: `new` and `old`, where functions are missing."""
    folder = tmp_path_factory.mktemp("devices")
    for age, flags in (("new", []), ("old", ["-DOLD"])):
        (folder / age).mkdir()
        for source, name in (("devices_cuda.c", "libcuda.so.1"), ("devices_hip.c", "libamdhip64.so")):
            compile_ = ["cc", "-shared", "-fPIC", "-fvisibility=hidden", *flags, "-I", ROOT / "runtime_c"]
            subprocess.run([*compile_, HERE / "standin" / source, "-o", folder / age / name], check=True)
    return folder


def discover(
    target: str, libraries: Path, tmp_path: Path, *hidden: str, age: str = "new", **environment: str
) -> tuple[list[Any], str, list[str]]:
    """Devices, what they were found through, and notes, in a process of its own."""
    variables = {"LD_LIBRARY_PATH": str(libraries / age), **environment}
    found = json.loads(python(CODE, target, tmp_path, *hidden, cwd=tmp_path, environment=variables))
    assert isinstance(found, list)
    devices, through, notes = found
    return devices, through, notes


# Through the packages, and for NVIDIA without.


@pytest.mark.parametrize("target", GPUS)
def test_through_the_package(target: str, libraries: Path, tmp_path: Path) -> None:
    assert discover(target, libraries, tmp_path) == (GPUS[target], package(target), [])


def test_through_ctypes(libraries: Path, tmp_path: Path) -> None:
    hidden = ("cuda", "cuda.bindings", "cuda.bindings.driver")
    assert discover("nvvm", libraries, tmp_path, *hidden) == (GPUS["nvvm"], ALONE, [])
    assert discover("nvvm", libraries, tmp_path, "cuda.bindings.driver") == (GPUS["nvvm"], ALONE, [])


HIDDEN = {"cuda.bindings": (), "ctypes": ("cuda.bindings.driver",)}


@pytest.mark.parametrize("way", HIDDEN)
def test_no_device_is_none_and_says_so(way: str, libraries: Path, tmp_path: Path) -> None:
    through = package("nvvm") if way == "cuda.bindings" else ALONE
    none = discover("nvvm", libraries, tmp_path, *HIDDEN[way], STANDIN_DEVICES="0")
    assert none == ([], "", [f"{through}: cuInit answers CUDA_ERROR_NO_DEVICE"])
    none = discover("nvvm", libraries, tmp_path, *HIDDEN[way], STANDIN_COUNTS_NONE="1")
    assert none == ([], "", [f"{through}: cuDeviceGetCount answers 0"])


@pytest.mark.parametrize("way", HIDDEN)
def test_a_device_that_fails_does_not_hide_the_other(way: str, libraries: Path, tmp_path: Path) -> None:
    through = package("nvvm") if way == "cuda.bindings" else ALONE
    for call in ("cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute"):
        found = discover("nvvm", libraries, tmp_path, *HIDDEN[way], STANDIN_REFUSES=f"{call} 0")
        note = f"{through}: of device 0, {call} answers CUDA_ERROR_UNKNOWN"
        assert found == ([GPUS["nvvm"][1]], through, [note])


@pytest.mark.parametrize("way", HIDDEN)
@pytest.mark.parametrize(("call", "field"), [("cuDeviceTotalMem_v2", 4), ("cuDriverGetVersion", 6)])
def test_what_the_driver_does_not_tell_is_none(
    way: str, call: str, field: int, libraries: Path, tmp_path: Path
) -> None:
    if way == "cuda.bindings":
        package("nvvm")
    devices, _, notes = discover("nvvm", libraries, tmp_path, *HIDDEN[way], STANDIN_REFUSES=call)
    expected = [[None if at == field else value for at, value in enumerate(gpu)] for gpu in GPUS["nvvm"]]
    assert (devices, notes) == (expected, [])


def test_a_package_that_does_not_work_is_named(libraries: Path, tmp_path: Path) -> None:
    """cuda.bindings needs a newer driver than this one; the driver is asked all the same."""
    through = package("nvvm")
    devices, asked, notes = discover("nvvm", libraries, tmp_path, age="old")
    assert (devices, asked) == (GPUS["nvvm"], ALONE)
    (note,) = notes
    assert note.startswith(f"{through} does not work: ")
    assert "cuGetProcAddress_v2" in note


def test_a_library_that_is_damaged_is_named(libraries: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "libcuda.so.1").write_bytes(b"no library")
    devices, through, notes = discover("nvvm", tmp_path, tmp_path)
    assert (devices, through) == ([], "")
    (note,) = notes
    assert note.startswith(f"libcuda.so.1 cannot be loaded ({tmp_path}/new/libcuda.so.1: ")


def test_hip_that_does_not_tell_is_noted(libraries: Path, tmp_path: Path) -> None:
    through = package("rocdl")
    first, second = GPUS["rocdl"]
    found = discover("rocdl", libraries, tmp_path, STANDIN_REFUSES="hipGetDeviceProperties 1")
    assert found == ([first], through, [f"{through}: of device 1, hipGetDeviceProperties answers hipErrorUnknown"])
    devices, _, notes = discover("rocdl", libraries, tmp_path, STANDIN_REFUSES="hipDriverGetVersion")
    assert (devices, notes) == ([[*first[:-1], None], [*second[:-1], None]], [])
    devices, _, notes = discover("rocdl", libraries, tmp_path, STANDIN_NAMELESS="1")
    assert [(device[2], notes) for device in devices] == [("AMD GPU gfx942", []), ("AMD GPU gfx1100", [])]


# The kernel driver's files, where HIP sees nothing.


def node(root: Path, number: int, values: dict[str, int], *banks: tuple[int, int]) -> None:
    """A compute node as the amdgpu driver shows it; banks are kinds of heaps with their bytes."""
    folder = root / "sys/class/kfd/kfd/topology/nodes" / str(number)
    for index, (kind, size) in enumerate(banks):
        bank = folder / "mem_banks" / str(index) / "properties"
        bank.parent.mkdir(parents=True)
        bank.write_text(f"heap_type {kind}\nsize_in_bytes {size}\nflags 0\nwidth 8192\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "properties").write_text("".join(f"{name} {value}\n" for name, value in values.items()))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A CPU, an MI300X, ten numbers later a RX 7900 XT; the second one's memory in two parts."""
    node(tmp_path, 0, {"cpu_cores_count": 64, "simd_count": 0, "gfx_target_version": 0}, (0, 1 << 40))
    mi300x = {"cpu_cores_count": 0, "simd_count": 1216, "simd_per_cu": 4, "gfx_target_version": 90402}
    node(tmp_path, 2, mi300x, (1, 192 << 30))
    rx7900 = {"simd_count": 168, "simd_per_cu": 2, "gfx_target_version": 110000}
    node(tmp_path, 10, rx7900, (1, 256 << 20), (2, (20 << 30) - (256 << 20)), (4, 65536))
    version = tmp_path / "sys/module/amdgpu/version"
    version.parent.mkdir(parents=True)
    version.write_text("6.10.5\n")
    return tmp_path


FROM_FILES = [
    ["rocdl", "gfx942", "AMD GPU gfx942", 0, 192 << 30, 304, "amdgpu 6.10.5"],
    ["rocdl", "gfx1100", "AMD GPU gfx1100", 1, 20 << 30, 84, "amdgpu 6.10.5"],
]


def test_the_kernel_drivers_files(files: Path, libraries: Path) -> None:
    devices, through, notes = discover("rocdl", libraries, files, "hip", "rocm_bootstrap")
    assert devices == FROM_FILES
    assert through == f"the files of the kernel driver ({files}/sys/class/kfd/kfd/topology/nodes)"
    assert notes == []


def test_files_that_tell_less(tmp_path: Path, libraries: Path) -> None:
    node(tmp_path, 1, {"gfx_target_version": 90010})
    (tmp_path / "sys/class/kfd/kfd/topology/nodes/3").mkdir()
    devices, _, notes = discover("rocdl", libraries, tmp_path, "hip", "rocm_bootstrap")
    assert devices == [["rocdl", "gfx90a", "AMD GPU gfx90a", 0, None, None, None]]
    unread = f"{tmp_path}/sys/class/kfd/kfd/topology/nodes/3/properties"
    assert notes == [f"{unread} cannot be read (No such file or directory)"]


def test_no_files(tmp_path: Path, libraries: Path) -> None:
    found = discover("rocdl", libraries, tmp_path, "hip", "rocm_bootstrap")
    nodes = f"{tmp_path}/sys/class/kfd/kfd/topology/nodes"
    assert found == ([], "", [f"no AMD GPU in the files of the kernel driver ({nodes})"])


def test_hip_without_its_newer_functions(files: Path, libraries: Path) -> None:
    """hip-python needs ROCm 6 for properties: it is named, and the kernel's files are asked."""
    through = package("rocdl")
    devices, asked, notes = discover("rocdl", libraries, files, "rocm_bootstrap", age="old")
    assert devices == FROM_FILES
    assert asked.startswith("the files of the kernel driver")
    (note,) = notes
    assert note.startswith(f"{through} does not work: ")
    assert "hipGetDevicePropertiesR0600" in note


@pytest.mark.parametrize("loads", ["damaged", "absent devices"])
def test_hip_without_devices(loads: str, files: Path, libraries: Path) -> None:
    through = package("rocdl")
    if loads == "damaged":
        (files / "new").mkdir()
        (files / "new" / "libamdhip64.so").write_bytes(b"no library")
        devices, _, notes = discover("rocdl", files, files, "rocm_bootstrap")
        assert [note.split("'")[0] for note in notes] == [f"{through} does not work: failed to dlopen "]
    else:
        devices, _, notes = discover("rocdl", libraries, files, "rocm_bootstrap", STANDIN_DEVICES="0")
        assert notes == [f"{through}: hipGetDeviceCount answers hipErrorNoDevice"]
    assert devices == FROM_FILES


# rocm-bootstrap, with the kernel's files.


def bootstrap(monkeypatch: pytest.MonkeyPatch, *gpus: tuple[str, int]) -> None:
    """A stand-in for the package (0.3.0): chips and numbers of nodes. HIP is hidden."""
    given = [SimpleNamespace(target=SimpleNamespace(name=name), node_id=number) for name, number in gpus]
    stand_in = ModuleType("rocm_bootstrap")
    stand_in.detect_gpus = lambda: given  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rocm_bootstrap", stand_in)
    monkeypatch.setitem(sys.modules, "hip", None)


def test_rocm_bootstrap_takes_what_the_kernel_says(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap(monkeypatch, ("gfx942", 2), ("gfx90a", 10), ("gfx1100", 5))
    found = rocdl_devices.discover(files)
    assert found.through.startswith("rocm-bootstrap")
    assert found.devices == (
        Device("rocdl", "gfx942", "AMD GPU gfx942", 0, 192 << 30, 304, "amdgpu 6.10.5"),
        Device("rocdl", "gfx90a", "AMD GPU gfx90a", 1),  # that node has another chip
        Device("rocdl", "gfx1100", "AMD GPU gfx1100", 2),  # there is no such node
    )


def test_none_of_rocm_bootstrap_is_final(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its variables can switch detection off."""
    bootstrap(monkeypatch)
    found = rocdl_devices.discover(files)
    assert (found.devices, found.through) == ((), "")
    assert found.notes[0].endswith("finds no AMD GPU")


def test_the_real_rocm_bootstrap_with_a_name_it_does_not_know(files: Path, libraries: Path) -> None:
    forced = {"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx942,gfx1201"}
    devices, through, notes = discover("rocdl", libraries, files, "hip", **forced)
    assert [device[1:4] for device in devices] == [["gfx942", "AMD GPU gfx942", 0], ["gfx1201", "AMD GPU gfx1201", 1]]
    assert (through, notes) == (f"rocm-bootstrap {importlib.metadata.version('rocm-bootstrap')}", [])
    forced = {"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx0"}
    devices, _, notes = discover("rocdl", libraries, files, "hip", **forced)
    assert devices == FROM_FILES
    assert len(notes) == 1
    assert " does not work: " in notes[0]


def test_hip_python_before_10(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fills in the properties that it is given; some releases give bytes. A stand-in for that interface."""

    def fill(properties: SimpleNamespace, index: int) -> tuple[int]:
        properties.gcnArchName = b"gfx90a:xnack-\0rest"
        properties.name = b"Instinct"
        properties.totalGlobalMem = 64 << 30
        properties.multiProcessorCount = 104 + index
        return (0,)

    stand_in = ModuleType("hip")
    stand_in.hip = SimpleNamespace(  # type: ignore[attr-defined]
        hipGetDeviceCount=lambda: (0, 1),
        hipDriverGetVersion=lambda: (0, 60_342_131),
        hipGetDeviceProperties=fill,
        hipDeviceProp_t=SimpleNamespace,
    )
    monkeypatch.setitem(sys.modules, "hip", stand_in)
    (device,) = rocdl_devices.discover(files).devices
    assert device == Device("rocdl", "gfx90a", "Instinct", 0, 64 << 30, 104, "HIP 6.3.42131")


# What is told, and when packages are loaded.


def test_a_package_that_breaks_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_by_test.py").write_text("raise RuntimeError('no library for this')")
    (tmp_path / "lacking_by_test.py").write_text("import not_there_by_test")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, why in (
        ("broken_by_test", "no library for this"),
        ("lacking_by_test", "No module named 'not_there_by_test'"),
    ):
        notes: list[str] = []
        assert optional_module(name, notes) is None
        assert notes == [f"{name} cannot be imported: {why}"]
    notes = []
    assert optional_module("not_there_by_test.at.all", notes) is None
    assert notes == []


def test_the_doctor_and_the_list_of_targets(libraries: Path, tmp_path: Path) -> None:
    variables = {"LD_LIBRARY_PATH": str(libraries / "new")}
    nvidia, amd = package("nvvm"), package("rocdl")
    done = command("doctor", cwd=tmp_path, environment=variables)
    assert (
        "ok  nvvm: devices: Stand-in H (sm_90; 80.0 GiB, 132 multiprocessors; CUDA 12.9), "
        f"Stand-in G (sm_121; 128.0 GiB, 48 multiprocessors; CUDA 12.9), through {nvidia}\n"
    ) in done.stdout
    assert f"Stand-in R (gfx1100; 24.0 GiB, 48 multiprocessors; HIP 6.4.43484), through {amd}\n" in done.stdout
    entries = json.loads(command("targets", "--json", cwd=tmp_path, environment=variables).stdout)
    for entry in entries:
        if entry["name"] in GPUS:
            assert [[entry["name"], *device.values()] for device in entry["devices"]] == GPUS[entry["name"]]
    done = command("targets", cwd=tmp_path, environment=variables)
    assert "  here:    sm_90 (Stand-in H; 80.0 GiB, 132 multiprocessors), sm_121 (Stand-in G; " in done.stdout


def test_the_doctor_says_why_there_are_none(libraries: Path, tmp_path: Path) -> None:
    variables = {"LD_LIBRARY_PATH": str(libraries / "new"), "STANDIN_DEVICES": "0"}
    through = package("nvvm")
    done = command("doctor", cwd=tmp_path, environment=variables)
    assert done.returncode == 0
    assert (
        f"--  nvvm: devices: none here: {through}: cuInit answers CUDA_ERROR_NO_DEVICE; "
        "images can be built all the same\n"
    ) in done.stdout


def test_nobody_who_asks_for_no_devices_loads_a_package(libraries: Path, tmp_path: Path) -> None:
    code = """
import sys, offload
from offload.targets import parse_targets, registry
registry().all()
parse_targets(["nvvm:sm_90", "rocdl:gfx942", "host"])
def loaded():
    return sorted({name.split(".")[0] for name in sys.modules} & {"cuda", "hip", "rocm", "rocm_bootstrap"})
print(loaded())
parse_targets(["native"])
print(loaded())
"""
    printed = python(code, cwd=tmp_path, environment={"LD_LIBRARY_PATH": str(libraries / "new")}).splitlines()
    asked = [name for name in ("cuda.bindings", "hip") if importlib.util.find_spec(name.split(".")[0])]
    assert printed[0] == "[]"
    assert all(f"'{name.split('.')[0]}'" in printed[1] for name in asked)


def test_this_machine() -> None:
    """Whatever is here: the drivers' real libraries, where they are, answer without a failure."""
    for found in (nvvm_devices.discover(), rocdl_devices.discover()):
        assert bool(found.devices) == bool(found.through)
        assert found.devices or found.notes
        for index, device in enumerate(found.devices):
            assert device.chip.startswith(("sm_", "gfx"))
            assert device.index >= index


def test_the_cpu_is_what_the_runtime_says_of_it(built: dict[str, Path]) -> None:
    from offload.targets.host import HostTarget

    import offload

    library = offload.load(built["saxpy"])
    library.use("host")
    (device,) = HostTarget.devices()
    info = library.device.info
    assert (device.memory, device.multiprocessors) == (info.memory_bytes, info.multiprocessors)
