"""AMD GPUs in this machine: through hip-python, else rocm-bootstrap, else the files of the amdgpu kernel driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from offload.targets.devices import Device, Discovery, Refused, optional_module, with_version

_NODES = "sys/class/kfd/kfd/topology/nodes"
_VERSION = "sys/module/amdgpu/version"
_FRAME_BUFFERS = (1, 2)  # kinds of heaps (HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC, _PRIVATE): memory of the device itself


def discover(root: Path = Path("/")) -> Discovery:
    """The devices; the kernel driver's files are looked for under ``root``. Never raises: no driver means none.

    HIP is asked first, since its devices are those that the runtime opens; this initializes it in this process. Where
    hip-python is not installed, does not work or sees no device, rocm-bootstrap is asked, which also knows other
    systems than Linux and what users force; where there is none that works, the kernel's files. Neither needs ROCm.
    """
    notes: list[str] = []
    if devices := _through_hip(notes):
        return Discovery(tuple(devices), with_version("hip-python", "hip-python"), tuple(notes))
    nodes = _nodes(root, notes)
    bootstrapped = _through_bootstrap(nodes, notes)
    if bootstrapped is not None:
        through = with_version("rocm-bootstrap", "rocm-bootstrap") if bootstrapped else ""
        return Discovery(tuple(bootstrapped), through, tuple(notes))
    devices = [replace(node, index=index) for index, node in enumerate(nodes.values())]
    if devices:
        return Discovery(tuple(devices), f"the files of the kernel driver ({root / _NODES})", tuple(notes))
    return Discovery(notes=(*notes, f"no AMD GPU in the files of the kernel driver ({root / _NODES})"))


def _through_hip(notes: list[str]) -> list[Device]:
    package = optional_module("hip", notes)
    # Some releases have a module of that name in the package, others an attribute.
    hip = getattr(package, "hip", None) or (package and optional_module("hip.hip", notes))
    if hip is None:
        return []
    through = with_version("hip-python", "hip-python")
    try:
        return _devices_of_hip(hip, through, notes)
    except Refused as refusal:
        notes.append(f"{through}: {refusal}")
    except Exception as error:  # hip-python's own: of any kind where it cannot load its library
        notes.append(f"{through} does not work: {error}")
    return []


def _ask(hip: Any, call: str, *arguments: Any) -> Any:
    """What a call gives. Raises Refused where its status is not success."""
    status, *values = getattr(hip, call)(*arguments)
    if int(status) != 0:
        raise Refused(f"{call} answers {getattr(status, 'name', f'error {int(status)}')}")
    return values[0] if values else None


def _devices_of_hip(hip: Any, through: str, notes: list[str]) -> list[Device]:
    count = _ask(hip, "hipGetDeviceCount")
    if count == 0:
        notes.append(f"{through}: hipGetDeviceCount answers 0")
        return []
    try:
        version = _ask(hip, "hipDriverGetVersion")
        driver = f"HIP {version // 10**7}.{version // 10**5 % 100}.{version % 10**5}"
    except Exception:
        driver = None
    found = []
    for index in range(count):
        try:
            properties = _properties(hip, index)
        except Refused as refusal:
            notes.append(f"{through}: of device {index}, {refusal}")
            continue
        chip = _text(properties.gcnArchName).split(":")[0]  # "gfx942:sramecc+:xnack-"
        if not chip:
            notes.append(f"{through}: of device {index}, hipGetDeviceProperties tells no gcnArchName")
            continue
        name = _text(properties.name) or f"AMD GPU {chip}"  # HIP knows no name where a table of AMD's is missing
        memory, processors = int(properties.totalGlobalMem), int(properties.multiProcessorCount)
        found.append(Device("rocdl", chip, name, index, memory, processors, driver))
    return found


def _properties(hip: Any, index: int) -> Any:
    try:
        return _ask(hip, "hipGetDeviceProperties", index)
    except TypeError:  # releases before 10 (7.2 was tried) fill in what they are given
        properties = hip.hipDeviceProp_t()
        _ask(hip, "hipGetDeviceProperties", properties, index)
        return properties


def _text(value: str | bytes) -> str:
    """Text as hip-python gives it, which depends on the release."""
    return value.split(b"\0")[0].decode() if isinstance(value, bytes) else value


def _through_bootstrap(nodes: Mapping[int, Device], notes: list[str]) -> list[Device] | None:
    """None where rocm-bootstrap is not installed or does not work. It tells chips and the kernel's nodes; what the
    kernel says of a node is taken where it is of that chip: with chips that users force, there may be no such node."""
    package = optional_module("rocm_bootstrap", notes)
    if package is None:
        return None
    through = with_version("rocm-bootstrap", "rocm-bootstrap")
    try:
        gpus = [(gpu.target.name, getattr(gpu, "node_id", -1)) for gpu in package.detect_gpus()]
    except Exception as error:  # among others for a name in its variables that it does not know
        notes.append(f"{through} does not work: {error}")
        return None
    if not gpus:
        notes.append(f"{through} finds no AMD GPU")
    found = []
    for index, (chip, number) in enumerate(gpus):
        node = nodes.get(number)
        known = node if node is not None and node.chip == chip else Device("rocdl", chip, f"AMD GPU {chip}")
        found.append(replace(known, index=index))
    return found


def _nodes(root: Path, notes: list[str]) -> dict[int, Device]:
    """The GPUs among the compute nodes of the amdgpu kernel driver, by their numbers there."""
    found: dict[int, Device] = {}
    driver = _first_line(root / _VERSION)
    folders = [folder for folder in (root / _NODES).glob("*") if folder.name.isdecimal()]
    for folder in sorted(folders, key=lambda folder: int(folder.name)):
        try:
            values = _values(folder / "properties")
        except OSError as error:  # a container may have been denied the device
            notes.append(f"{folder / 'properties'} cannot be read ({error.strerror})")
            continue
        version = values.get("gfx_target_version", 0)
        if not version:
            continue  # a CPU
        major, minor, stepping = version // 10000, version // 100 % 100, version % 100
        chip = f"gfx{major}{minor:x}{stepping:x}"
        per_unit = values.get("simd_per_cu", 0)
        units = values.get("simd_count", 0) // per_unit if per_unit else 0
        found[int(folder.name)] = Device(
            "rocdl", chip, f"AMD GPU {chip}", 0, _memory(folder), units or None, driver and f"amdgpu {driver}"
        )
    return found


def _memory(node: Path) -> int | None:
    """The bytes of a node's own memory; None where its files do not tell."""
    size = 0
    for bank in node.glob("mem_banks/*/properties"):
        try:
            values = _values(bank)
        except OSError:
            return None
        if values.get("heap_type") in _FRAME_BUFFERS:
            size += values.get("size_in_bytes", 0)
    return size or None


def _values(path: Path) -> dict[str, int]:
    """The numbers of a file with a name and a number in each line."""
    return {name: int(number) for name, number in re.findall(r"^(\w+) (\d+)$", path.read_text(), re.MULTILINE)}


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text().strip().partition("\n")[0] or None
    except OSError:
        return None
