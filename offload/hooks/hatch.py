"""hatchling: the build hook ``offload``, for wheels, editable ones and sdists."""

from __future__ import annotations

import contextlib
import re
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from offload.config import targets_instead
from offload.errors import OffloadError
from offload.hooks.build import FOUND_TOLD, FOUND_UNTOLD, Outputs, build_modules, check_ours
from offload.hooks.leftovers import made_in_place, module_of, modules_below
from offload.hooks.project import KernelTable, read_tables
from offload.hooks.report import check_platform

_HOOK_KEYS = ("dependencies", "enable-by-default", "require-runtime-dependencies", "require-runtime-features")


class OffloadBuildHook(BuildHookInterface):
    """``[tool.hatch.build.hooks.offload]`` switches it on; what to build stands in ``[tool.offload]``."""

    PLUGIN_NAME = "offload"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the compiled modules to a wheel; in an editable one, puts them among the sources."""
        root = Path(self.root)
        with self._as_hatch_says_it():
            self._check_keys()
            tables = read_tables(root / "pyproject.toml")
            for table in tables:
                check_ours(table, self._source_package(table))
            self._leave_out(self._made_in_place(tables), build_data)
            if self.target_name != "wheel":
                build_data["force_include"].update({str(root / file): file for table in tables for file in table.files})
                return
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            if not build_data["infer_tag"]:  # another hook's code is for one Python
                build_data["tag"] = f"py3-none-{platform}"
            if version == "editable":
                self._check_sdist()
                self._build(tables, [source_package(table, self._packages()) for table in tables], editable=True)
                return
            made = self._build(tables, [self._scratch() / table.folder for table in tables], editable=False)
            for table, built in zip(tables, made, strict=True):
                check_platform(table.where, built.library, platform)
                places = {str(path): f"{table.folder}/{path.name}".lstrip("/") for path in built}
                build_data["force_include"].update(places)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel has its copy: what was built for it goes."""
        self._clean_up()
        if self.target_name == "wheel" and build_data.get("infer_tag") and "tag" in build_data:
            Path(artifact_path).unlink(missing_ok=True)
            self.app.abort(
                "pyproject.toml: another build hook compiles code for one Python, after the wheel's tag was set: put "
                "[tool.hatch.build.hooks.offload] behind the table of that hook"
            )

    def _check_keys(self) -> None:
        """Raises OffloadError for a key that hatchling does not take in every hook's table."""
        for key in self.config:
            if key not in _HOOK_KEYS:
                raise OffloadError(
                    f'pyproject.toml: [tool.hatch.build.hooks.offload]: unknown key "{key}": what to build, and for '
                    "what, stands in [[tool.offload.kernels]]"
                )

    def _build(self, tables: Sequence[KernelTable], folders: Sequence[Path], editable: bool) -> list[Outputs]:
        return build_modules(
            list(zip(tables, folders, strict=True)),
            targets=targets_instead(),
            editable=editable,
            # Where folders get other names on their way, they do not tell where the author's own modules are.
            found_in=FOUND_UNTOLD if any(self.build_config.sources.values()) else FOUND_TOLD,
            say=lambda text: self.app.display_info(text),
        )

    def _check_sdist(self) -> None:
        """Raises OffloadError where sdists are made without this hook: they would hold what is built in place."""
        config = self.build_config.build_config
        sdist = config.get("targets", {}).get("sdist", {})
        if self.PLUGIN_NAME not in {**config.get("hooks", {}), **sdist.get("hooks", {})}:
            raise OffloadError(
                "pyproject.toml: the hook is in [tool.hatch.build.targets.wheel.hooks.offload], and sdists would hold "
                "what an editable installation compiles: name the table [tool.hatch.build.hooks.offload]"
            )

    def _packages(self) -> list[Path]:
        """The folders of packages that the project names for its wheels, for all targets or below a prefix that is
        removed from paths; else what hatchling takes, its namesake."""
        general = self.build_config.build_config
        wheel = general.get("targets", {}).get("wheel", {})
        named = [Path(self.root, package) for package in wheel.get("packages", general.get("packages", ()))]
        sources = wheel.get("sources", general.get("sources", ()))
        # One that is replaced by something else hatchling does not install as editable.
        removed = [source for source in sources if not isinstance(sources, dict) or sources[source] in ("", ".")]
        for folder in (Path(self.root, source) for source in removed):
            named += sorted(path for path in folder.glob("*") if path.is_dir())
        core = self.metadata.core
        words = [re.sub(r"[^\w.]+", "_", name) for name in (core.raw_name, core.name)]
        namesakes = [Path(self.root, place, word) for word in words for place in ("", "src")]
        return named or [folder for folder in namesakes if (folder / "__init__.py").is_file()][:1]

    def _source_package(self, table: KernelTable) -> Path:
        """Its folder, or where it would be."""
        with contextlib.suppress(OffloadError):
            return source_package(table, self._packages())
        return table.root / table.folder

    def _made_in_place(self, tables: Sequence[KernelTable]) -> Iterator[Path]:
        """What was compiled among the sources, of these tables and whatever else is there: for this machine alone."""
        places = {(self._source_package(table), table.module.rpartition(".")[2]) for table in tables}
        for folder, name in places:
            yield from module_of(folder / f"{name}.py")
        roots = (Path(self.root), *self._packages())  # packages may be links
        files = {file for root in roots for file in modules_below(root)}
        yield from made_in_place(sorted(file for file in files if file.is_relative_to(self.root)))

    def _leave_out(self, files: Iterable[Path], build_data: dict[str, Any]) -> None:
        """Excludes files, also where a project or another hook names all such files as artifacts, which hatchling
        takes whatever is excluded."""
        names = [file.relative_to(self.root).as_posix() for file in files]
        patterns = ["/" + re.sub(r"[*?[\\]", r"\\\g<0>", name) for name in names]
        if not patterns:
            return
        config, general = self.build_config.target_config, self.build_config.build_config
        config["exclude"] = [*config.get("exclude", general.get("exclude", [])), *patterns]
        but = [f"!{pattern}" for pattern in patterns]
        config["artifacts"] = [*config.get("artifacts", general.get("artifacts", [])), *but]
        build_data["artifacts"] += but

    def _scratch(self) -> Path:
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory(prefix="offload-hatch-")
        return Path(self._folder.name)

    def _clean_up(self) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    @contextlib.contextmanager
    def _as_hatch_says_it(self) -> Iterator[None]:
        try:
            yield
        except OffloadError as error:
            self._clean_up()  # hatchling calls finalize for what was built alone
            self.app.abort(str(error))


def source_package(table: KernelTable, packages: Sequence[Path] = ()) -> Path:
    """The folder of a module's package among the sources: in one of ``packages``, or where most projects have it.

    Raises OffloadError where there is none."""
    package = table.folder
    if not package:  # what is importable beside the project's packages
        return next((folder.parent for folder in packages), table.root)
    places = [folder.parent / package for folder in packages if folder.name == package.partition("/")[0]]
    places += [table.root / "src" / package, table.root / package]
    for place in places:
        if place.is_dir():
            return place
    raise OffloadError(
        f"{table.where}: its package has no folder: looked for {' and '.join(map(str, dict.fromkeys(places)))}; an "
        "editable installation puts the compiled module there: name the folder in packages of "
        "[tool.hatch.build.targets.wheel]"
    )


@hookimpl
def hatch_register_build_hook() -> type[OffloadBuildHook]:
    return OffloadBuildHook
