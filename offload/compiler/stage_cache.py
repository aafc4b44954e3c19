"""The parts of a build that are kept: images of modules for targets, and the object file of the host code.

So a target that is added is the only one that is compiled, and changed host code has no kernels compiled.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from offload.compiler import steps
from offload.compiler.cache import ELF, cache_for
from offload.compiler.device import Build, DeviceBuild
from offload.compiler.request import BuildRequest
from offload.compiler.threads import Pool, Promised
from offload.compiler.warned import say as warn
from offload.errors import OffloadError
from offload.targets import Image

if TYPE_CHECKING:
    from offload.cache.cache import Cache, Claim
    from offload.compiler.keys import Keys

_LENGTH = struct.Struct("<I")


class StageCache:
    """The cache of one build's stages; of a build that uses none, nothing is found and nothing kept."""

    def __init__(self, request: BuildRequest, say: Callable[[str], None]) -> None:
        self._cache = cache_for(request)
        self._request, self._say = request, say

    @cached_property
    def _keys(self) -> Keys:
        from offload.compiler.keys import Keys

        return Keys(self._request)

    def image(self, build: Build) -> KeptImage:
        """A module's image for a target."""
        if self._cache is None or not isinstance(build, DeviceBuild):
            return KeptImage(build, None)
        target, keys = build.target, self._keys
        before = keys.files(target)
        key = keys.image(target, build.name, build.kernels, dict(build.limits), build.module)

        def is_as_before() -> bool:
            try:
                return keys.files_now(target) == before
            except OffloadError:  # a file is gone
                return False

        return KeptImage(build, self._claim(self._cache, "image", key), is_as_before)

    def _claim(self, cache: Cache, stage: str, key: str) -> Claim:
        with contextlib.ExitStack() as step:

            def waiting() -> None:
                self._say("waiting for another process, which compiles the same")
                step.enter_context(steps.step(steps.WAITING))

            return cache.claim(stage, key, waiting)

    def host_object(self, module: Any, exported: list[str], make: Callable[[], bytes]) -> bytes:
        """The object file of lowered host code; ``make`` compiles it."""
        claim = self._claim(self._cache, "host", self._keys.host(module, exported)) if self._cache else None
        if claim is not None and claim.found is not None:
            if claim.found.startswith(ELF):
                self._say("taking host code from the cache")
                return claim.found
            claim.refuse("no object file")
        try:
            self._say("compiling host code")
            made = make()
            if claim is not None:
                claim.keep(made)
            return made
        finally:
            if claim is not None:
                claim.release()


class KeptImage:
    """The image of a build: what the cache has, else what the build makes, which the cache then has."""

    def __init__(self, build: Build, claim: Claim | None, is_as_before: Callable[[], bool] = lambda: True) -> None:
        """``is_as_before``: whether the files that the claim's key is of have not changed since."""
        self._build, self._claim, self._is_as_before = build, claim, is_as_before
        self._found = None
        if claim is not None and claim.found is not None and (kept := _unpacked(claim.found)) is not None:
            self._found, warned = kept
            for text in warned:
                warn(text)
        if claim is not None and claim.found is not None and self._found is None:
            claim.refuse("no image")
        self._ahead: Promised[None] | None = None

    @property
    def doing(self) -> str:
        """For progress: what :meth:`translate` and :meth:`image` do."""
        if self._found is not None:
            return f"taking {self._what} from the cache"
        return f"{'compiling' if isinstance(self._build, DeviceBuild) else 'taking the image of'} {self._what}"

    @property
    def _what(self) -> str:
        return f"{self._build.name} for {self._build.target_name}:{self._build.chip}"

    def start_ahead(self, pool: Pool) -> None:
        """Has what :meth:`image` needs and takes long to start started, while :meth:`translate` is at work."""
        if self._found is None and isinstance(self._build, DeviceBuild):
            self._ahead = pool.begin(self._build.start_ahead)

    def translate(self) -> None:
        """The part of the work that needs the session's thread."""
        if self._found is None:
            try:
                self._build.translate()
            except BaseException:
                self._release()
                raise

    def image(self) -> Image:
        """The image; in any thread, after :meth:`translate`."""
        if self._found is not None:
            return self._found
        try:
            if self._ahead is not None:
                self._ahead.result()
            image = self._build.image()
            if self._claim is not None and self._is_as_before():
                self._claim.keep(_packed(image, self._build.warned if isinstance(self._build, DeviceBuild) else []))
            return image
        finally:
            self._release()

    def stop(self) -> None:
        """When all is over, maybe with an error: ends what was started and is not needed."""
        if self._ahead is not None and isinstance(self._build, DeviceBuild):
            with contextlib.suppress(Exception):  # `image` has told of it, or an error before it
                self._ahead.result()
            self._build.stop()

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()


def _packed(image: Image, warned: Sequence[str]) -> bytes:
    import json  # in builds without a cache, its time is better spent while tools run

    resources = {kernel: dict(values) for kernel, values in image.resources.items()}
    head = json.dumps({"resources": resources, "warned": list(warned)}).encode()
    return _LENGTH.pack(len(head)) + head + image.data


def _unpacked(payload: bytes) -> tuple[Image, list[str]] | None:
    """The image, and what its build warned of; None for what no build has kept, which a shared store may hold under its
    own hash."""
    import json

    if len(payload) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(payload)
    start = _LENGTH.size + length
    try:
        head = json.loads(payload[_LENGTH.size : start])
    except (ValueError, RecursionError):
        return None
    if not isinstance(head, dict):
        return None
    resources, warned = head.get("resources"), head.get("warned")
    if not isinstance(resources, dict) or not all(isinstance(values, dict) for values in resources.values()):
        return None
    if not isinstance(warned, list) or not all(isinstance(text, str) for text in warned):
        return None
    return Image(payload[start:], resources), warned
