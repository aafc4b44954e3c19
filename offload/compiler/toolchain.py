"""What compiles, by content: the extension, LLVM's libraries, our Python; and the libraries that code is linked with.

It is known without loading LLVM, from what the last process that loaded it has seen.
"""

from __future__ import annotations

import functools
import os
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import offload
from offload.cache.contents import Contents, stamp
from offload.compiler.code import files_of, python_files
from offload.compiler.native import find_native, native
from offload.config import isolated, loader_settings
from offload.targets import Target
from offload.targets.sysroot import Sysroot

_OF_LLVM = re.compile(r"/lib(?:LLVM|MLIR|lld)[^/]*\.so[^/]*$")
_ROOMS = ("compiler", "artifact", "targets")
_UNKNOWN = os.urandom(32).hex()
"""In place of code that nobody can read, such as a notebook's, and of code that is not what was loaded: what that makes
is this process's alone."""
_first: dict[object, list[Any]] = {}
"""What this process found first. It may have loaded that since."""
_LOADER_CACHE = Path("/etc/ld.so.cache")


class Toolchain:
    """The compiler's identity. Where a target asks the extension for this machine's processor, this one answers."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    @cached_property
    def identity(self) -> list[object]:
        """Everything but sources, options and the targets' own tools. Raises ToolkitError without a compiler."""
        found: list[object] = [
            offload.__version__,
            os.uname().machine,
            [self._contents.digest(path) for path in (find_native(), *self._libraries)],
            [self._contents.digest(path) for path in _our_python()],
        ]
        # Where offload was installed anew in the meantime, this process and its workers run what was there before.
        return found if found == _first.setdefault("identity", found) else [*found, _UNKNOWN]

    def sysroot(self, architecture: str, shared: bool = False) -> list[str]:
        """What code for a CPU architecture is linked with: our own libraries and the system's. Raises ToolkitError."""
        sysroot = Sysroot(architecture)
        names = (f"libmgpu.{'so' if shared else 'a'}", "liboffload_builtins.a", "liboffload_runner.a")
        paths = [*map(sysroot.runtime, names), *sysroot.system_libraries()]
        return [architecture, *map(self._contents.digest, paths)]

    @cached_property
    def _libraries(self) -> list[Path]:
        """LLVM's libraries that the extension is linked with; none where it holds all of LLVM itself."""
        loader = stamp(_LOADER_CACHE) if _LOADER_CACHE.exists() else ""
        follows_from = [stamp(find_native()), loader, loader_settings()]
        found = self._contents.fact("libraries", follows_from, _loaded_libraries)
        paths = [Path(str(path)) for path in found] if isinstance(found, list) else []
        if not all(path.exists() for path in paths):  # another LLVM was installed: the loader finds it now
            return [Path(path) for path in _loaded_libraries()]
        return paths

    def host_processor(self) -> str:
        """LLVM's name of this machine's processor."""
        with Path("/proc/cpuinfo").open("rb") as file:
            one, _, _ = file.read(1 << 14).partition(b"\n\n")
        changing = re.compile(rb"^(?:cpu MHz|bogomips|processor|core id|apicid|initial apicid|physical id)\b.*$", re.M)
        files = [self._contents.digest(path) for path in (find_native(), *self._libraries)]
        follows_from = [files, changing.sub(b"", one).decode()]
        return str(self._contents.fact("processor", follows_from, lambda: native().host_processor()))

    def __getattr__(self, name: str) -> Any:
        """Whatever else a target may ask the extension."""
        return getattr(native(), name)

    def code_of(self, target: type[Target]) -> list[str]:
        """The Python of a target of another package; ours is part of the identity."""
        found = [self._contents.digest(path) if path else _UNKNOWN for path in files_of(target)]
        # A worker is replaced where its files have changed; what is compiled here is by the code that was loaded.
        return found if isolated() or found == _first.setdefault(target, found) else [_UNKNOWN]


def _loaded_libraries() -> list[str]:
    native()
    lines = Path("/proc/self/maps").read_bytes().splitlines()
    paths = {os.fsdecode(line.split(maxsplit=5)[-1]) for line in lines}
    return sorted(path for path in paths if _OF_LLVM.search(path))


@functools.cache
def _our_python() -> list[Path]:
    rooms = [Path(root) / room for root in offload.__path__ for room in _ROOMS]
    return list(python_files(*filter(Path.is_dir, rooms)))
