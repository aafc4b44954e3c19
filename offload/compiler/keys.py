"""The keys of what is kept: hashes of everything that decides the bytes, by content and not by place."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from offload.cache.contents import Contents
from offload.compiler.request import BuildRequest
from offload.compiler.toolchain import Toolchain
from offload.config import cache_folder
from offload.errors import TargetError
from offload.paths import folder_of_build
from offload.targets import Target, registry
from offload.targets.sysroot import Sysroot

_SCHEMA = 4


class Keys:
    """The keys of one build. Raises OffloadError where a file that belongs to it cannot be read."""

    def __init__(self, request: BuildRequest) -> None:
        self._request = request
        self._contents = contents()
        self._toolchain = Toolchain(self._contents)
        self._described: dict[int, dict[str, object]] = {}

    def library(self) -> str:
        """The key of the whole library, without looking into its sources.

        Their names are part of it: messages of assertions and of checks of memory say where they stand."""
        request = self._request
        shared = request.runtime == "shared"
        sysroot = Sysroot(request.architecture)
        return self._key(
            stage="library",
            soname=request.soname,
            sources=[[source.name, hashlib.sha256(source.data).hexdigest()] for source in request.sources],
            targets=[self._target(target) for target in request.targets],
            optional=[self._target(target) for target in request.optional],
            vendors=self._vendors(),
            annotations=request.gpu_binary_annotation,
            options=[request.opt, request.bare_pointers, request.bare_pointers_for_host, request.debug],
            link=self._files(request.link),
            objects=self._files(request.objects),
            runtime=[request.runtime, str(sysroot.runtime("libmgpu.so")) if shared else ""],  # it holds that path
            sysroot=self._toolchain.sysroot(request.architecture, shared),
            debug=self._debug(request.debug or any(target.debug for target in request.targets)),
        )

    def image(self, target: Target, name: str, kernels: Iterable[str], limits: dict[str, int], module: Any) -> str:
        """The key of a module's image for a target, from the module before anything is lowered."""
        text = module.text(locations=target.debug, generic=True)  # the form that leaves nothing out
        if '"cf.assert"' in text:  # whose message says where it stands; where the rest stands decides nothing
            text = module.text(locations=True, generic=True)
        return self._key(
            stage="image",
            name=name,
            module=text,
            kernels=list(kernels),
            limits=limits,
            target=self._target(target),
            link=self._files(self._request.link),
            debug=self._debug(target.debug),
        )

    def files(self, target: Target) -> list[object]:
        """What a target's images are made of besides their module, as :meth:`image` has it."""
        return [self._target(target), self._files(self._request.link)]

    def files_now(self, target: Target) -> list[object]:
        """The same, looked at anew."""
        return [self._describe(target), self._files(self._request.link)]

    def host(self, module: Any, exported: Iterable[str]) -> str:
        """The key of the host code's object file, from the lowered module, which holds the places it speaks of."""
        return self._key(
            stage="host",
            module=module.text(locations=self._request.debug, generic=True),
            exported=list(exported),
            opt=self._request.opt,
            architecture=self._request.architecture,
            debug=self._debug(self._request.debug),
        )

    def _key(self, **material: object) -> str:
        words = {"schema": _SCHEMA, "toolchain": self._toolchain.identity, **material}
        key = hashlib.sha256(json.dumps(words, sort_keys=True, default=repr).encode()).hexdigest()
        self._contents.save()
        return key

    def _target(self, target: Target) -> dict[str, object]:
        """What is known of one of the request's targets; looking for its tools once is enough."""
        if id(target) not in self._described:
            self._described[id(target)] = self._describe(target)
        return self._described[id(target)]

    def _describe(self, target: Target) -> dict[str, object]:
        architecture = target.architecture()
        return {
            "name": target.name,
            "options": dataclasses.asdict(target)
            | {"chip": target.image_chip(self._toolchain), "link": self._files(map(Path, target.link))},
            "named": [self._file(path) for path in _files_in(target)],
            "tools": [[found.what, self._file(found.path)] for found in target.inputs()],
            # Images that the CPU runs are linked with the same as the library.
            "sysroot": self._toolchain.sysroot(architecture) if architecture else [],
            "code": self._toolchain.code_of(type(target)),
        }

    def _vendors(self) -> dict[str, list[str]]:
        """Who reads the compiled code that a program carries."""
        found: dict[str, list[str]] = {}
        for name in registry().names():
            if registry().is_ours(name):  # whose code is part of the toolchain's identity
                found[name] = []
                continue
            try:
                found[name] = self._toolchain.code_of(registry().get(name))
            except TargetError:  # a broken package; it reads nothing
                continue
        return found

    def _debug(self, lines: bool) -> list[str]:
        return [folder_of_build()] if lines else []

    def _files(self, paths: Iterable[Path]) -> list[str]:
        return [self._file(path) for path in paths]

    def _file(self, path: Path | None) -> str:
        return "missing" if path is None else self._contents.digest(path)


def _files_in(target: Target) -> Iterable[Path]:
    """The files that a target's own words name: options of ptxas or lld such as ``--options-file=x``, ``-T x``, ``-Tx``
    or ``@x``."""
    texts = [value for value in dataclasses.asdict(target).values() if isinstance(value, str)]
    for word in (word for text in texts for word in text.split()):
        names = (word.rpartition("=")[2], word.removeprefix("@"), word.removeprefix("-T"))
        for path in map(Path, dict.fromkeys(names)):
            with contextlib.suppress(OSError, ValueError):  # what can be no file's name
                if path.is_file():
                    yield path


_contents: dict[Path, Contents] = {}


def contents() -> Contents:
    """What is known of files, in the cache folder of the settings as they are now."""
    path = (cache_folder() or Path("/nonexistent")) / "contents.json"
    known = _contents.get(path)  # a file of many is not read again for each key
    return known if known is not None else _contents.setdefault(path, Contents(path))
