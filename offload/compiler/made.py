"""What processes make of a build for the one that links it: images, and the object file of the host code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from offload._version import __version__
from offload.compiler.request import BuildRequest
from offload.errors import OffloadError
from offload.targets import Image


class MadeImage(NamedTuple):
    """An image that another process made, with what the library says of it.

    ``number`` is the target's in the request, ``chip`` what ``native`` was there."""

    name: str
    number: int
    target_name: str
    chip: str
    format: str
    triple: str
    kernels: tuple[str, ...]
    image: Image
    jit_level: None = None


class Made(NamedTuple):
    """Parts of a build; ``code`` is the object file of the host code, ``program`` the `digest` of what they are of."""

    program: str
    images: tuple[MadeImage, ...]
    code: bytes | None


_LARGE = 1 << 14
"""Bytes of sources that are worth another job for each target: about twenty kernels."""


class Share(NamedTuple):
    """What one process makes of a build: of the targets with these numbers, each gpu.module whose number divided by
    ``slices`` leaves ``slice``; the host code is there as one target more."""

    numbers: range
    slice: int = 0
    slices: int = 1

    def has(self, module: int, number: int) -> bool:
        """Whether the image of a gpu.module for a target is in it."""
        return number in self.numbers and module % self.slices == self.slice


def shares(request: BuildRequest, most: int) -> list[Share]:
    """A build in parts, at most so many. Each has a target or the host code at least.

    Neighbours among the targets stay together, since they may be lowered alike."""
    count = len(request.targets) + 1
    slices = min(most // count, 1 + sum(len(source.data) for source in request.sources) // _LARGE)
    if slices > 1:
        targets = [Share(range(n, n + 1), k, slices) for n in range(count - 1) for k in range(slices)]
        return [*targets, Share(range(count - 1, count))]
    most = max(min(count, most), 1)
    return [Share(range(count * n // most, count * (n + 1) // most)) for n in range(most)]


def digest(program: Any) -> str:
    """What decides the parts of a build, besides the request: its kernels and this version of offload."""
    import hashlib  # which most builds do without

    return hashlib.sha256(f"{__version__}\n{program.text(locations=False, generic=True)}".encode()).hexdigest()


def joined(parts: Sequence[Made], program: Any) -> Made:
    """All parts as one. Raises OffloadError where they are not of this program."""
    wanted = digest(program)
    if any(part.program != wanted for part in parts):
        raise OffloadError(
            "the parts of this build do not fit together: the machines of the executor have different versions of "
            "offload; install the same on all of them"
        )
    images = tuple(image for part in parts for image in part.images)
    return Made(wanted, images, next((part.code for part in parts if part.code is not None), None))
