"""setuptools: kernels of ``[tool.offload]``, or of `OffloadExtension` in a setup.py, as a step of ``build``."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command, Distribution, Extension

try:
    from setuptools.errors import SetupError
except ImportError:  # setuptools before 59, which environments of Python 3.10 come with
    from distutils.errors import DistutilsSetupError as SetupError

from offload.config import targets_instead
from offload.errors import OffloadError
from offload.hooks.build import Outputs, build_modules, check_ours, outputs_of
from offload.hooks.leftovers import is_made, made_in_place, module_of, modules_below
from offload.hooks.project import KernelTable, check_distinct, declares_kernels, make_table, read_tables
from offload.hooks.report import check_platform

COMMAND = "build_offload"


class OffloadExtension(Extension):
    """A compiled module for ``setup(ext_modules=[…])``; the arguments are the keys of ``[[tool.offload.kernels]]``."""

    def __init__(
        self,
        module: str,
        sources: Sequence[str],
        *,
        targets: Sequence[str] = (),
        optional_targets: Sequence[str] = (),
        options: dict[str, Any] | None = None,
    ) -> None:
        # A string in place of a list is told by name; as a list it would be its letters.
        super().__init__(module, [sources] if isinstance(sources, str) else list(sources))
        self.given = {
            "module": module,
            "sources": _as_given(sources),
            "targets": _as_given(targets),
            "optional-targets": _as_given(optional_targets),
            "options": {key.replace("_", "-"): value for key, value in (options or {}).items()},
        }


def _as_given(names: Sequence[str]) -> Sequence[str]:
    return names if isinstance(names, str) else list(names)


def finalize_distribution_options(distribution: Distribution) -> None:
    """setuptools calls this for every package that is built where offload is installed; most have no kernels."""
    with _as_setuptools_says_it():
        declared = declares_kernels(_pyproject(distribution))
    extensions = list(getattr(distribution, "ext_modules", None) or ())
    ours = [extension for extension in extensions if isinstance(extension, OffloadExtension)]
    if not declared and not ours:
        return
    # What is left is compiled by build_ext, as ever, and ties the wheel to one Python.
    distribution.ext_modules = [extension for extension in extensions if extension not in ours]
    distribution.offload_extensions = ours
    # The package belongs where compiled code goes, though its wheel is not for one Python alone.
    others = distribution.has_ext_modules
    distribution.offload_counts = True
    distribution.has_ext_modules = lambda: distribution.offload_counts or others()
    _extend_commands(distribution)


def _extend_commands(distribution: Distribution) -> None:
    """Has the commands take part whose classes are asked for. What setup.py, pyproject.toml, setup.cfg and other
    plugins name as commands is read before or after this, and stays theirs."""
    find = distribution.get_command_class
    members: dict[str, Callable[[Any], dict[str, Any]]] = {
        "build": lambda build: {"sub_commands": [*build.sub_commands, (COMMAND, None)]},
        "build_ext": lambda build_ext: {"run": _kernels_in_place(build_ext)},
        "bdist_wheel": lambda wheel: {"get_tag": _any_python(wheel)},
        "sdist": lambda sdist: {"make_release_tree": _without_outputs(sdist)},
    }
    made: dict[type, type] = {}

    def get_command_class(command: str) -> Any:
        if command == COMMAND:
            return BuildOffload
        base = find(command)
        if command not in members:
            return base
        if base not in made:
            made[base] = type(base.__name__, (base,), members[command](base))
        return made[base]

    distribution.get_command_class = get_command_class


def _kernels_in_place(base: Any) -> Any:
    def run(self: Any) -> None:
        base.run(self)
        # An editable installation asks for both commands.
        if self.inplace and not getattr(self, "editable_mode", False):
            command = BuildOffload(self.distribution)  # not the one of `build`, which may be asked for, too
            command.editable_mode = True
            command.ensure_finalized()
            command.run()

    return run


def _any_python(base: type) -> Any:
    def get_tag(self: Any) -> tuple[str, str, str]:
        python, abi, platform = base.get_tag(self)  # type: ignore[attr-defined]
        with _as_setuptools_says_it():
            self.get_finalized_command(COMMAND).check_platform(platform)
        # Whether there is other compiled code: that of build_ext, or of a plugin that has its own.
        self.distribution.offload_counts = False
        others = self.distribution.has_ext_modules() or self.distribution.libraries
        self.distribution.offload_counts = True
        return (python, abi, platform) if others else (self.python_tag, "none", platform)

    return get_tag


def _without_outputs(base: type) -> Any:
    """An editable installation leaves compiled modules among the sources; they are for this machine alone."""

    def make_release_tree(self: Any, base_dir: str, files: list[str]) -> None:
        command = self.get_finalized_command(COMMAND)
        with _as_setuptools_says_it():
            command.check_ours()
            made = {str(path) for path in [*command.files_in_place(), *made_in_place(map(Path, files))]}
        base.make_release_tree(self, base_dir, [file for file in files if file not in made])  # type: ignore[attr-defined]

    return make_release_tree


class BuildOffload(Command):
    """The step of ``build``; setuptools asks it for its sources (sdist) and results (editable), too."""

    description = "compile the kernels of [tool.offload]"
    # A list: distutils takes nothing else where the command is named itself.
    user_options: ClassVar = [
        ("build-lib=", "b", "folder to build into"),
        ("force", "f", "build what is up to date, too"),
    ]
    boolean_options = ("force",)

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.force: bool | None = None
        self.editable_mode = False
        self.tables: list[KernelTable] = []

    def finalize_options(self) -> None:
        self.set_undefined_options("build", ("build_lib", "build_lib"), ("force", "force"))
        with _as_setuptools_says_it():
            self.tables = tables_of(self.distribution)

    def run(self) -> None:
        with _as_setuptools_says_it():
            for table in self.tables:
                self._check_package(table)
            self.check_ours()
            # What stands in setup.py nothing but setup.py can read: like other extensions, it is built when installed.
            in_setup_py = {_given(self.distribution, each)["module"] for each in self.distribution.offload_extensions}
            self._build([table for table in self.tables if table.module not in in_setup_py], self.editable_mode)
            self._build([table for table in self.tables if table.module in in_setup_py], editable=False)
            if self.editable_mode:
                self._list_modules()
            else:
                self._leave_out_old()

    def check_ours(self) -> None:
        """Raises OffloadError where a module has the name of one of the author's own."""
        for table in self.tables:
            check_ours(table, self._package_folder(table))

    def _build(self, tables: Sequence[KernelTable], editable: bool) -> None:
        folders = [
            self._package_folder(table) if self.editable_mode else self._built(table).loader.parent for table in tables
        ]
        build_modules(
            list(zip(tables, folders, strict=True)),
            targets=targets_instead(),
            editable=editable,
            in_place=self.editable_mode,
            force=bool(self.force),
            say=lambda text: print(text, flush=True),
        )

    def _list_modules(self) -> None:
        """An editable installation makes importable what setuptools lists: kernels may be all that a package has."""
        project = self.distribution
        packages = [table.package for table in self.tables if table.package]
        alone = [table.module for table in self.tables if not table.package]
        project.packages = list(dict.fromkeys([*(project.packages or ()), *packages]))
        project.py_modules = list(dict.fromkeys([*(project.py_modules or ()), *alone]))

    def _leave_out_old(self) -> None:
        """Removes from the wheel what was compiled among the sources, and what was built before for tables of the same
        packages that are gone or renamed."""
        current = {path.absolute() for table in self.tables for path in self._built(table)}
        places = {(self._built(table).loader.parent, self._package_folder(table)) for table in self.tables}
        root = Path(str(self.build_lib))
        if any(sources.resolve().is_relative_to(root.resolve()) for _, sources in places):
            return  # it is the sources' own
        old = list(made_in_place(modules_below(root)))
        for folder, sources in places:
            # What its author ships is among the sources, too.
            left = [file for file in folder.glob("*.py") if is_made(file) and not is_made(sources / file.name)]
            old += [path for loader in left for path in module_of(loader)]
        for path in {path.absolute() for path in old} - current:
            path.unlink(missing_ok=True)

    def check_platform(self, platform: str) -> None:
        """Raises OffloadError where a library that was built is not for the platform of a wheel's tag."""
        for table in self.tables:
            library = self._built(table).library
            if library.is_file():
                check_platform(table.where, library, platform)

    def get_source_files(self) -> list[str]:
        return [file for table in self.tables for file in table.files]

    def get_outputs(self) -> list[str]:
        return [str(path) for table in self.tables for path in self._built(table)]

    def get_output_mapping(self) -> dict[str, str]:
        """In an editable installation: where each result really is."""
        if not self.editable_mode:
            return {}
        return dict(zip(self.get_outputs(), map(str, self.files_in_place()), strict=True))

    def files_in_place(self) -> list[Path]:
        """The results of an editable build, among the sources."""
        return [path for table in self.tables for path in outputs_of(table.module, self._package_folder(table))]

    def _built(self, table: KernelTable) -> Outputs:
        return outputs_of(table.module, Path(str(self.build_lib), table.folder))

    def _check_package(self, table: KernelTable) -> None:
        """Raises OffloadError for a module of a package that the project has not; its name is misspelt."""
        packages = self.distribution.packages or []
        package = table.package
        known = {name.partition(".")[0] for name in packages}
        if not packages or not package or package.partition(".")[0] in known or self._package_folder(table).is_dir():
            return
        close = difflib.get_close_matches(package, packages, n=1)
        hint = f'; did you mean "{close[0]}.{table.module.rpartition(".")[2]}"?' if close else ""
        raise OffloadError(
            f'{table.where}: key "module": the project has no package "{package}"{hint} (there are: '
            f"{', '.join(sorted(packages))})"
        )

    def _package_folder(self, table: KernelTable) -> Path:
        return Path(self.get_finalized_command("build_py").get_package_dir(table.package))


def tables_of(distribution: Distribution) -> list[KernelTable]:
    """The tables of pyproject.toml, then those of setup.py. Raises OffloadError."""
    pyproject = _pyproject(distribution)
    tables = read_tables(pyproject) if declares_kernels(pyproject) else []
    root = pyproject.resolve().parent
    tables += [
        make_table(_given(distribution, extension), root, "setup.py: OffloadExtension")
        for extension in distribution.offload_extensions
    ]
    check_distinct(tables)
    return tables


def _given(distribution: Distribution, extension: OffloadExtension) -> dict[str, Any]:
    """What an extension was given; its name counts from ``setup(ext_package=…)`` on, as that of any extension."""
    package, module = distribution.ext_package, extension.given["module"]
    return {**extension.given, "module": f"{package}.{module}"} if package and module else extension.given


def _pyproject(distribution: Distribution) -> Path:
    return Path(distribution.src_root or ".") / "pyproject.toml"


@contextlib.contextmanager
def _as_setuptools_says_it() -> Iterator[None]:
    try:
        yield
    except OffloadError as error:
        raise SetupError(str(error)) from error
