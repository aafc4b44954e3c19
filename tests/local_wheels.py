"""A folder of wheels for ``pip --no-index --find-links``: what is installed here, packed again as it came.

Builds in isolation want offload and the build tools from somewhere. Packing takes seconds; nothing is downloaded and
nothing compiled."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import zipfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath

from compiling import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import offload
from offload.hooks.project import read_toml

Files = dict[str, Path | bytes]
SCRIPTS = ("..", "..", "..", "bin")


def pack_all(names: Iterable[str], folder: Path) -> None:
    """Wheels of offload as it is tested, of the named distributions, and of all that they require."""
    _pack_offload(folder)
    for name in _with_requirements([*names, *_project()["dependencies"]]):
        _pack_installed(metadata.distribution(name), folder)


def _with_requirements(names: Iterable[str]) -> list[str]:
    """Distributions that are installed here, and those they need on this Python."""
    found: list[str] = []
    waiting = [Requirement(name) for name in names]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.append(name)
        waiting += map(Requirement, metadata.distribution(name).requires or ())
    return found


def _project() -> dict[str, list[str]]:
    table: dict[str, list[str]] = read_toml(ROOT / "pyproject.toml")["project"]
    return table


def _pack_offload(folder: Path) -> None:
    """offload from where it is imported, which may be the links or the two folders of a developer's installation."""
    files: Files = {}
    for root in map(Path, offload.__path__):
        for path in sorted(_files_below(root)):
            files[f"offload/{path.relative_to(root).as_posix()}"] = path
    info = f"offload-{offload.__version__}.dist-info"
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tag = f"{python}-{python}-linux_x86_64"
    required = "".join(f"Requires-Dist: {text}\n" for text in _project()["dependencies"])
    named = f"Name: offload\nVersion: {offload.__version__}\n"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\n{named}{required}".encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    points = metadata.distribution("offload").entry_points
    groups = {point.group: [each for each in points if each.group == point.group] for point in points}
    lines = [f"[{group}]\n" + "".join(f"{p.name} = {p.value}\n" for p in each) for group, each in groups.items()]
    files[f"{info}/entry_points.txt"] = "\n".join(lines).encode()
    _write(folder / f"offload-{offload.__version__}-{tag}.whl", info, files)


def _files_below(root: Path) -> Iterator[Path]:
    """Files, through links to files and folders, without what Python leaves."""
    for path in root.iterdir():
        if path.is_dir() and path.name != "__pycache__":
            yield from _files_below(path)
        elif path.is_file():
            yield path


def _pack_installed(distribution: metadata.Distribution, folder: Path) -> None:
    """The wheel that a distribution was installed from, by its RECORD."""
    name, version = distribution.metadata["Name"], distribution.version
    (tag, *_) = [
        line.split(": ")[1] for line in (distribution.read_text("WHEEL") or "").splitlines() if "Tag: " in line
    ]
    written = name.replace("-", "_").replace(".", "_")
    commands = {point.name for point in distribution.entry_points if "_scripts" in point.group}
    files: Files = {}
    info = ""
    for path in distribution.files or ():
        parts = PurePosixPath(path).parts
        if parts[0].endswith(".dist-info"):
            info = parts[0]
        if "__pycache__" in parts or parts[-1] in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
            continue
        if parts[:4] == SCRIPTS:
            if parts[-1] not in commands:  # those of entry points are made by the installer
                files[f"{written}-{version}.data/scripts/{parts[-1]}"] = Path(str(path.locate()))
        elif parts[0] != "..":
            files[path.as_posix()] = Path(str(path.locate()))
    _write(folder / f"{written}-{version}-{tag}.whl", info, files)


def _write(path: Path, info: str, files: Files) -> None:
    record = []
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            data = content.read_bytes() if isinstance(content, Path) else content
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            program = isinstance(content, Path) and os.access(content, os.X_OK)
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
        wheel.writestr(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n")
