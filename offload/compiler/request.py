"""What to build: the one description that every front end fills in."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from offload.config import cache_folder
from offload.errors import OffloadError, TargetError, UsageError, did_you_mean
from offload.files import plain_name, read_whole
from offload.paths import readable
from offload.targets import Target
from offload.targets.sysroot import ARCHITECTURES, here

if TYPE_CHECKING:
    from offload.targets.native import Native

_LLVM = "mlir-translate --import-llvm makes MLIR of it, and --link takes it for kernels of an MLIR program"
_C = "an MLIR program takes what other compilers make of it: bitcode with --link, object files with --object"
_NO_PROGRAMS = {
    b"\x7fELF": ("compiled already (ELF)", "offload.load() loads a library that offload has built"),
    b"!<arch>": ("an archive of compiled code", "--object takes it for the host code of an MLIR program"),
    b"BC\xc0\xde": ("LLVM bitcode", _LLVM),
    b"; ModuleID": ("LLVM IR", _LLVM),
    **dict.fromkeys((b"source_filename ", b"target ", b"define ", b"declare "), ("LLVM IR", _LLVM)),
    **dict.fromkeys((b"#include ", b"#include<", b'#include"', b"__global__ ", b'extern "C"'), ("C or C++", _C)),
    b".version ": ("PTX", "a gpu.binary of an MLIR program takes it"),
    b"version https://git-lfs": ("a pointer of Git LFS to the file", "git lfs pull brings the file"),
    b"\x50\xed\x55\xba": ("compiled already (a fat binary)", "a gpu.binary of an MLIR program takes it"),
    b"__CLANG_OFFLOAD_BUNDLE__": ("compiled already (a bundle)", "a gpu.binary of an MLIR program takes it"),
    b"\x1f\x8b": ("compressed (gzip)", "unpack it"),
    b"\x28\xb5\x2f\xfd": ("compressed (zstd)", "unpack it"),
    b"\xfd7zXZ\0": ("compressed (xz)", "unpack it"),
    b"PK\3\4": ("an archive (zip)", "unpack it"),
}
"""How files begin that are given for programs and are none, behind comments as MLIR, C and PTX have them: what they
are, and what to do. MLIR's parser would speak of their characters."""


_COMMENT = re.compile(rb"[ \t\r]*(?://[^\n]*)?\n")
_NOTHING = b" \t\r\n\v\f\0"
"""Characters that are no program; to MLIR a NUL, with which a disk fills what it has lost, is a space, too."""


def _behind_comments(data: bytes) -> bytes:
    """What begins behind empty lines and comments; a few bytes of it."""
    at = 0
    while match := _COMMENT.match(data, at):
        at = match.end()
    return data[at : at + 64].lstrip(b" \t")


@dataclass(frozen=True)
class Source:
    """One program: MLIR text or bytecode, and the name that diagnostics give it. Raises OffloadError for an empty one,
    as a tool that failed leaves it behind a redirection or in a pipe, for UTF-16, as some shells write it there, and
    for what other kinds of files hold."""

    name: str
    data: bytes

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", readable(os.fspath(self.name)))
        object.__setattr__(self, "data", self.data.removeprefix(codecs.BOM_UTF8))  # some editors put one there
        if self.data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or re.match(
            rb"\0[\t-~]|[\t-~]\0", self.data
        ):
            raise OffloadError(f"{self.name} is text in UTF-16: save it as UTF-8, which MLIR reads")
        front = _behind_comments(self.data)
        for start, (what, advice) in _NO_PROGRAMS.items():
            if front.startswith(start):
                raise OffloadError(
                    f"cannot compile {self.name}: it is {what}, where MLIR is needed, text or bytecode; {advice}"
                )
        if not self.data.strip(_NOTHING):
            raise OffloadError(f"{self.name} is empty: it is to hold a program, MLIR text or bytecode")

    @classmethod
    def read(cls, path: Path | str) -> Source:
        """Reads a file. Raises OffloadError that names it, also where it holds no program."""
        try:
            data = read_whole(Path(path))
            return cls(str(path), data)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise OffloadError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


@dataclass(frozen=True)
class BuildRequest:
    """Sources, targets and options of one shared library.

    ``opt`` (0 to 3) is the level of the host code; targets carry their own. ``link`` are bitcode files linked into
    every device module, ``objects`` are object files or archives linked into the library. ``runtime`` is ``static``
    (the mgpu runtime inside, hidden) or ``shared`` (needs libmgpu.so).

    ``optional`` are those of the targets that nobody named (the default, or what ``native`` stands for): a module that
    carries compiled code and no source goes without them, where a target that was named is an error.
    ``gpu_binary_annotation`` are further attributes of gpu.modules that hold compiled code.
    ``debug`` asks for line information in the host code; ``bare_pointers`` are kernels that take plain pointers, which
    every target must then say, too; ``bare_pointers_for_host`` are host functions that C calls with plain pointers, and
    declared ones that are called so. ``reproducer`` is a folder: where a pass fails, the IR before it is written there.
    ``arch`` is the CPU architecture of the library, where its targets do not tell or to have it said.
    ``soname`` is the name under which programs linked with the library look for it; empty for that of its file, which
    is not in its bytes. ``cache`` lets what was compiled before be used, and kept.
    """

    sources: tuple[Source, ...]
    targets: tuple[Target, ...]
    opt: int = 3
    link: tuple[Path, ...] = field(default=())
    objects: tuple[Path, ...] = field(default=())
    runtime: str = "static"
    verify_each: bool = False
    optional: tuple[Target, ...] = field(default=())
    gpu_binary_annotation: tuple[str, ...] = field(default=())
    debug: bool = False
    bare_pointers: bool = False
    bare_pointers_for_host: bool = False
    reproducer: Path | None = None
    arch: str = ""
    soname: str = ""
    cache: bool = True

    @property
    def architecture(self) -> str:
        """The CPU architecture of the library: the one asked for, that of its CPU images, or this machine's."""
        return self.arch or next(filter(None, (target.architecture() for target in self.targets)), here())

    @property
    def name(self) -> str:
        """What the program is called where its stages are printed: its first file."""
        return Path(self.sources[0].name).stem

    @property
    def uses_cache(self) -> bool:
        """Whether the cache may do the work: there is one, and it is not that of who wants to look at the passes."""
        return self.cache and self.reproducer is None and not self.verify_each and cache_folder() is not None

    def reproducer_file(self, name: str) -> str:
        """The file for the reproducer of one part of the build; empty where none is asked for. Raises OffloadError."""
        if self.reproducer is None:
            return ""
        try:
            self.reproducer.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OffloadError(f"cannot use {self.reproducer} for reproducers: {error.strerror or error}") from error
        return str(self.reproducer / f"{plain_name(name)}.mlir")

    def __post_init__(self) -> None:
        if not self.sources:
            raise OffloadError("nothing to build: no source was given")
        if not self.targets:
            raise OffloadError("nothing to build for: no target was given")
        if self.runtime not in ("static", "shared"):
            raise OffloadError(f"runtime is 'static' or 'shared', not {self.runtime!r}")
        if isinstance(self.opt, bool) or not hasattr(self.opt, "__index__") or self.opt not in range(4):
            raise OffloadError(f"opt is 0 to 3, not {self.opt!r}")
        self._check_architecture()
        for target in self.targets:
            if target.bare_pointers != self.bare_pointers:
                raise TargetError(
                    f"{target} has {'bare pointers' if target.bare_pointers else 'memref descriptors'} and others have "
                    "not, but a kernel takes the same parameters everywhere: use --bare-pointers, for all targets"
                )
        _check_one_of_each(self.targets, lambda target: target.settled_chip())

    def _check_architecture(self) -> None:
        if self.arch and self.arch not in ARCHITECTURES:
            near = did_you_mean(self.arch, ARCHITECTURES)
            raise UsageError(f"unknown architecture {self.arch!r}; there are: {', '.join(ARCHITECTURES)}{near}")
        for target in self.targets:
            needed = target.architecture()
            if needed not in (None, self.architecture):
                raise TargetError(
                    f"{target} is code for {needed}, and this library is for {self.architecture}: a shared library is "
                    "for one architecture; build one for each"
                )
        if self.runtime == "shared" and self.architecture != here():
            raise OffloadError(
                f"a library for {self.architecture} carries its runtime: --runtime=shared is for {here()} alone here"
            )


def distinct(request: BuildRequest, native: Native) -> BuildRequest:
    """The request without targets that are others by another name: on some machines ``host:native`` is one that stands
    beside it. Raises TargetError where such two differ in their options."""
    kept: dict[Target, Target] = {}
    for target in request.targets:
        kept.setdefault(target.named(native), target)
    _check_one_of_each(tuple(kept.values()), lambda target: target.image_chip(native))
    if len(kept) == len(request.targets):
        return request
    return replace(
        request,
        targets=tuple(kept.values()),
        optional=tuple(target for target in request.optional if target in kept.values()),
    )


def _check_one_of_each(targets: Sequence[Target], chip: Callable[[Target], str]) -> None:
    """Raises TargetError for two targets whose images would be for one chip, as ``chip`` tells it."""
    seen: dict[tuple[str, str], Target] = {}
    for target in targets:
        other = seen.setdefault((target.name, chip(target)), target)
        if other is not target:
            raise TargetError(f"two targets for one chip, {other} and {target}: a library holds one image of each")
