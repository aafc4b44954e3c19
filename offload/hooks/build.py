"""One table of ``[tool.offload]`` into one compiled module: the function that every build tool's adapter calls."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from offload import artifact
from offload.api import make_request
from offload.config import DEFAULT_TARGETS, check_settings
from offload.errors import ArtifactError, OffloadError, TargetError, ToolkitError
from offload.hooks.freshness import digest_of_table
from offload.hooks.generate import (
    Editable,
    Origin,
    check_names,
    is_ours,
    module_text,
    stub_text,
)
from offload.hooks.project import KernelTable
from offload.hooks.report import check_images, size_table
from offload.targets import parse_targets

if TYPE_CHECKING:
    from offload.artifact import Artifact
    from offload.artifact.meta import Metadata
    from offload.compiler.request import BuildRequest
    from offload.targets import Target

Say = Callable[[str], None]
FOUND_TOLD = ("src", "")
FOUND_UNTOLD = ("src", "python", "")
"""Where build tools find packages by themselves, beside the folder that they tell, and for those that do not tell where
this one's is (CMake, Meson)."""
_INSTEAD = "the targets in place of the declared ones (OFFLOAD_TARGETS, -C offload.targets, --target)"


class Outputs(NamedTuple):
    """The files of one compiled module."""

    loader: Path
    stub: Path
    library: Path


def outputs_of(module: str, package_folder: Path) -> Outputs:
    """Where a module's files lie, in the folder of its package."""
    name = module.rpartition(".")[2]
    # Python imports NAME.so before NAME.py, and NAME.offload.so never.
    return Outputs(*(package_folder / f"{name}{suffix}" for suffix in (".py", ".pyi", ".offload.so")))


def build_module(
    table: KernelTable,
    package_folder: Path,
    *,
    targets: Sequence[str] | None = None,
    editable: bool = False,
    in_place: bool = False,
    force: bool = False,
    found_in: Sequence[str] = FOUND_TOLD,
    say: Say = lambda text: None,
) -> Outputs:
    """Builds a module into a folder, unless what lies there was built from the same.

    ``targets`` replace the declared ones. An ``editable`` module looks at its sources when it is imported and builds
    itself again; that, and what is built ``in_place``, among the sources, packages leave out. The package's sources may
    be below each folder of ``found_in``, too: nothing of the author's there is to be replaced. ``say`` is called with
    what a user wants to know. Raises OffloadError, and what a build raises."""
    outputs = outputs_of(table.module, package_folder)
    for folder in (package_folder, *(table.root / place / table.folder for place in found_in)):
        check_ours(table, folder)
    specs, left_out = chosen_targets(table, targets)
    for line in left_out:
        say(line)
    asked_by = f'{table.where}: key "targets"' if targets is None else f"{table.module}: {_INSTEAD}"
    request = request_for(table, specs, asked_by)
    named = ", ".join(map(str, _parsed(asked_by, specs or DEFAULT_TARGETS, table.options.get("arch", ""))))
    digest = digest_of_table(table, targets, editable)
    again = Editable(table.module, _pyproject_from(outputs.loader, table.root), targets) if editable else None

    def loader_text(metadata: Metadata, library: bytes) -> str:
        origin = Origin(digest, named, hashlib.sha256(library).hexdigest())
        return module_text(metadata, outputs.library.name, origin, again, in_place or editable)

    if not force and _is_built(outputs, loader_text):
        say(size_table(artifact.read(outputs.library), outputs.library, f"{table.module} (as it was)"))
        return outputs
    data, built = compiled(request, table.where, asked_by, instead=targets is not None)
    check_names(table.module, built.metadata, [(source.name, source.data) for source in request.sources])
    stub = stub_text(built.metadata, named)
    loader = loader_text(built.metadata, data)
    # The loader is last: it says that all is there.
    write(outputs.library, data)
    write(outputs.stub, stub.encode())
    write(outputs.loader, loader.encode())
    say(size_table(built, outputs.library, table.module))
    return outputs


def build_modules(
    modules: Sequence[tuple[KernelTable, Path]],
    *,
    targets: Sequence[str] | None = None,
    editable: bool = False,
    in_place: bool = False,
    force: bool = False,
    found_in: Sequence[str] = FOUND_TOLD,
    say: Say = lambda text: None,
) -> list[Outputs]:
    """Builds each module into its folder as :func:`build_module` does, side by side; ``say`` hears of one after the
    other. Raises the first error."""
    from offload.compiler import parallel

    def one(module: tuple[KernelTable, Path]) -> tuple[Outputs, list[str]]:
        lines: list[str] = []
        table, folder = module
        how = {"editable": editable, "in_place": in_place, "force": force}
        return build_module(table, folder, targets=targets, found_in=found_in, say=lines.append, **how), lines

    built = parallel.each(one, modules)
    for _, lines in built:
        for line in lines:
            say(line)
    return [outputs for outputs, _ in built]


_IN_PYPROJECT = (
    'name it in "optional-targets"; a build in isolation has what "requires" in [build-system] of pyproject.toml names'
)


def compiled(
    request: BuildRequest, where: str, asked_by: str, advice: str = _IN_PYPROJECT, instead: bool = False
) -> tuple[bytes, Artifact]:
    """A library, and what it holds, which is all that was asked for.

    ``where`` is what errors call the request, ``asked_by`` its targets, ``advice`` what to do about a toolkit that is
    missing; ``instead`` says that this build alone has these targets. Raises what a build raises."""
    from offload.compiler.cache import library
    from offload.compiler.native import native

    try:
        data = library(request)
    except TargetError as error:  # a processor that LLVM does not know
        raise TargetError(f"{asked_by}: {error}") from error
    except ToolkitError as error:
        native()  # without a compiler it is not some target whose toolkit is missing
        # A target whose toolkit is there, and of no use for its chip, is missed as an optional one, too.
        absent = any(found.path is None for target in request.targets for found in target.toolkit())
        further = f", or {advice}" if absent else ""
        raise ToolkitError(f"{asked_by}: {error}\n  or leave the target out{further}") from error
    with tempfile.TemporaryDirectory(prefix="offload-") as scratch:
        path = Path(scratch) / "library.so"
        path.write_bytes(data)
        built = artifact.read(path)
    check_images(built, where, [target for target in request.targets if target not in request.optional], instead)
    return data, built


def write(path: Path, data: bytes) -> None:
    """Writes a file, whole or not at all, into a folder that is made if need be. Raises OffloadError."""
    from offload.compiler.output import write_atomically

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OffloadError(f"cannot write into {path.parent}: {error.strerror or error}") from error
    write_atomically(path, data)
    if path.suffix == ".py":
        # Python takes bytecode for that of a file of the same size which was written in the same second.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
    if path.suffix != ".so":
        with contextlib.suppress(OSError):  # a file system where all files have the same
            path.chmod(path.stat().st_mode & ~0o111)


def _pyproject_from(loader: Path, root: Path) -> Path:
    """A project's pyproject.toml as a module inside of it finds it: a copy of the project has its own. The loader
    may be a link, which is written through: it counts from where it really lies."""
    pyproject, folder = root / "pyproject.toml", loader.resolve().parent
    return Path(os.path.relpath(pyproject, folder)) if folder.is_relative_to(root) else pyproject


def chosen_targets(table: KernelTable, instead: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The spellings of the targets to build for, and a line for each optional one that is left out."""
    if instead is not None:
        if not instead:
            raise OffloadError(f"{table.module}: {_INSTEAD} are an empty list; name some, or none of these")
        return list(instead), []
    # Optional targets are further ones: without others, the CPU is there.
    specs = list(table.targets or (DEFAULT_TARGETS if table.optional_targets else ()))
    present, left_out = present_targets(table.module, table.optional_targets, f'{table.where}: key "optional-targets"')
    return specs + present, left_out


def present_targets(name: str, optional: Sequence[str], asked_by: str) -> tuple[list[str], list[str]]:
    """Those of the optional targets of ``name`` whose toolkits are there, and a line for each that is left out."""
    present, left_out = [], []
    for spec in optional:
        missing = [
            found.what for target in _parsed(asked_by, [spec]) for found in target.toolkit() if found.path is None
        ]
        if missing:
            left_out.append(f"{name}: left out {spec}, which is optional; not found: {', '.join(missing)}")
        else:
            present.append(spec)
    return present, left_out


def _parsed(asked_by: str, specs: Sequence[str], arch: str = "") -> list[Target]:
    try:
        return parse_targets(specs, arch)
    except TargetError as error:
        raise TargetError(f"{asked_by}: {error}") from error


def with_root(request: BuildRequest, root: Path) -> BuildRequest:
    """The request with the files that its targets are linked with below a folder, wherever the build runs; a spelling
    would not hold every folder's name."""

    def found(targets: Sequence[Target]) -> tuple[Target, ...]:
        return tuple(
            dataclasses.replace(target, link=tuple(str(root / name) for name in target.link)) for target in targets
        )

    return dataclasses.replace(request, targets=found(request.targets), optional=found(request.optional))


def request_for(table: KernelTable, specs: Sequence[str], asked_by: str) -> BuildRequest:
    """The build of a table; sources keep their relative names, so that no path of this machine gets into the library.

    Raises OffloadError."""
    from offload.compiler.request import Source

    check_settings()  # here: the table has nothing to do with them
    _parsed(asked_by, specs, table.options.get("arch", ""))
    options = dict(table.options)
    for key in ("link", "objects"):
        options[key] = [table.root / name for name in options.get(key, ())]
    sources = [Source(name, Source.read(table.root / name).data) for name in table.sources]
    try:
        request = with_root(make_request(sources, list(specs or DEFAULT_TARGETS), **options), table.root)
    except OffloadError as error:  # targets that do not go together
        kind = TargetError if isinstance(error, TargetError) else OffloadError
        raise kind(f"{asked_by}: {error}") from error
    # The default is nobody's wish: a program without kernels may go without it.
    return request if specs else dataclasses.replace(request, optional=request.targets)


def _is_built(outputs: Outputs, loader_text: Callable[[Metadata, bytes], str]) -> bool:
    """Whether all is there, with the loader that a build writes: one that does not find its project is repaired."""
    try:
        expected = loader_text(artifact.read(outputs.library).metadata, outputs.library.read_bytes())
        text = outputs.loader.read_text(encoding="utf-8", errors="replace")
        return text == expected and outputs.stub.is_file()
    except (OSError, ArtifactError):
        return False


def _may_be_written(path: Path) -> bool:
    """Whether there is no file, or one that was made here. Raises OffloadError where nobody can tell."""
    try:
        return not path.exists() or is_ours(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise OffloadError(f"cannot read {path}: {error.strerror or error}") from error


def check_ours(table: KernelTable, package_folder: Path) -> None:
    """Raises OffloadError where a package's folder has a module of this name that is the author's own."""
    outputs = outputs_of(table.module, package_folder)
    for path in (outputs.loader, outputs.stub):
        if not _may_be_written(path):
            raise OffloadError(
                f'{table.where}: key "module": {path} is there, and offload did not make it; choose another name'
            )
    package = outputs.loader.with_suffix("") / "__init__.py"
    if package.is_file():
        raise OffloadError(
            f'{table.where}: key "module": {package} is there, and Python would import that instead; '
            "choose another name"
        )
