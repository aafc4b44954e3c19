"""Compiled programs on disk, by the hash of everything that decides their bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
from pathlib import Path

from offload import artifact
from offload._version import __version__
from offload.compiler import parallel
from offload.compiler.native import native
from offload.compiler.output import write_atomically
from offload.compiler.request import BuildRequest
from offload.config import cache_folder
from offload.errors import ArtifactError, OffloadError
from offload.targets import Target
from offload.targets.sysroot import Sysroot

_SCHEMA = 1
_scratch: list[tempfile.TemporaryDirectory[str]] = []


def cached_build(request: BuildRequest) -> Path:
    """The path of the built library. Raises what a build raises, and OffloadError for an unusable cache folder."""
    folder = cache_folder()
    if folder is None:
        scratch = tempfile.TemporaryDirectory(prefix="offload-uncached-")
        _scratch.append(scratch)  # loaded code stays mapped: the folder goes when the process ends
        folder = Path(scratch.name)
    path = folder / f"{_key(request)}.so"
    if path.exists() and _is_whole(path):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise OffloadError(f"cannot use the cache folder {folder}: {error.strerror}; set OFFLOAD_CACHE_DIR") from error
    write_atomically(path, parallel.build(request, "program", lambda text: None))
    return path


def _is_whole(path: Path) -> bool:
    """A damaged entry is built again: what a cache holds can be made anew."""
    try:
        artifact.read(path)
    except ArtifactError:
        return False
    return True


def _key(request: BuildRequest) -> str:
    """Contents, not paths: two machines with the same inputs and tools have the same key."""
    sysroot = Sysroot(request.architecture)
    runtime = "libmgpu.a" if request.runtime == "static" else "libmgpu.so"
    lines = request.debug or any(target.debug for target in request.targets)
    material = {
        "schema": _SCHEMA,
        "offload": __version__,
        "llvm": native().llvm_version,
        "extension": _content(Path(native().__file__)),
        "runtime": [request.runtime, _content(sysroot.runtime(runtime))],
        "builtins": [_content(sysroot.runtime(f"liboffload_{name}.a")) for name in ("builtins", "runner")],
        "sources": [hashlib.sha256(source.data).hexdigest() for source in request.sources],
        "targets": [_target(target) for target in request.targets],
        "optional": [_target(target) for target in request.optional],
        "annotations": request.gpu_binary_annotation,
        "opt": request.opt,
        "link": [_content(path) for path in request.link],
        "objects": [_content(path) for path in request.objects],
        "bare_pointers": [request.bare_pointers, request.bare_pointers_for_host],
        "debug": [request.debug, *([str(Path.cwd()), *(source.name for source in request.sources)] if lines else [])],
    }
    return hashlib.sha256(json.dumps(material, sort_keys=True).encode()).hexdigest()


def _target(target: Target) -> list[object]:
    return [
        target.name,
        target.image_chip(native()),
        dataclasses.asdict(target),
        [_content(Path(path)) for path in target.link],
        [[found.what, _content(found.path)] for found in target.toolkit()],
    ]


def _content(path: Path | None) -> str:
    """The hash of a file, or for large ones (a toolkit's programs) its size and time of change."""
    if path is None:
        return "missing"
    try:
        status = path.stat()
        if status.st_size > 1 << 22:
            return f"{path.name}:{status.st_size}:{status.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise OffloadError(f"cannot read {path}: {error.strerror}") from error
