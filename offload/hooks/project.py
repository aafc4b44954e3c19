"""``[tool.offload]`` of a package's pyproject.toml, checked: one table per compiled module, for every build tool."""

from __future__ import annotations

import difflib
import keyword
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from offload.errors import OffloadError

BACKEND_KEY = "build-backend"
MATRIX_KEY = "matrix"  # for hooks/matrix_settings.py
TOP_KEYS = ("kernels", BACKEND_KEY, MATRIX_KEY)
_KEYS = ("module", "sources", "targets", "optional-targets", "options")
_OPTIONS: Mapping[str, type] = {
    "opt": int,
    "arch": str,
    "debug": bool,
    "bare-pointers": bool,
    "bare-pointers-for-host": bool,
    "link": list,
    "objects": list,
    "gpu-binary-annotation": list,
}
"""The keys of ``options``, as the command line spells them, with the types of their values."""
_WORDS = {int: "a number", str: "a string", bool: "true or false", list: "a list of strings"}

_MOST_NAMED = 10  # files in a message
_LONGEST_NAME = 200  # bytes, of the 255 of a file's: suffixes follow


@dataclass(frozen=True)
class KernelTable:
    """One compiled module of a package.

    ``root`` is the folder of pyproject.toml. ``sources`` are files below it, relative to it, sorted within each
    pattern; ``patterns`` are what names them. ``targets`` must all be built; ``optional_targets`` are left out, with a
    message, where their toolkit is missing. ``options`` are those of `offload.build`, with Python's spelling. ``where``
    says, for messages, where the table stands."""

    where: str
    root: Path
    module: str
    sources: tuple[str, ...]
    targets: tuple[str, ...] = ()
    optional_targets: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    patterns: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The import name of the module's package; empty for a module outside of any."""
        return self.module.rpartition(".")[0]

    @property
    def folder(self) -> str:
        """The folder of that package, below the one with all packages."""
        return self.package.replace(".", "/")

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that the module is made from, relative to ``root``."""
        linked = [name for spec in (*self.targets, *self.optional_targets) for name in linked_by(spec)]
        return (*self.sources, *self.options.get("link", ()), *self.options.get("objects", ()), *dict.fromkeys(linked))


_LINK = "link="


def linked_by(spec: str) -> list[str]:
    """The files that a target's spelling links its kernels with: ``nvvm:sm_90,link=src/mypackage/math.bc``."""
    words = [word.strip() for word in spec.split(",")[1:]]
    return [word.removeprefix(_LINK) for word in words if word.startswith(_LINK)]


def declares_kernels(pyproject: Path) -> bool:
    """Whether a file is there and means to have ``[[tool.offload.kernels]]``; a misspelt one counts, to be told.

    Raises OffloadError."""
    try:
        text = pyproject.read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        raise OffloadError(f"cannot read {pyproject}: {error}") from error
    # Most packages have none: their files, even broken ones, are for others to judge.
    return "offload" in text and bool(set(offload_table(pyproject)) - {BACKEND_KEY, MATRIX_KEY})


def read_tables(pyproject: Path, *, files: bool = True) -> list[KernelTable]:
    """The tables of a pyproject.toml, in order. Raises OffloadError that names file, key and remedy.

    With ``files=False`` the files that they name may be missing, and ``sources`` are empty: a program may write them
    before a build."""
    tool = offload_table(pyproject)
    where = f"{pyproject.name}: [tool.offload]"
    check_keys(where, tool, TOP_KEYS)
    tables = tool.get("kernels")
    if isinstance(tables, dict):
        raise OffloadError(
            f"{pyproject.name}: [tool.offload.kernels] is one table where a list of them belongs: write it with two "
            "brackets, [[tool.offload.kernels]]"
        )
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise OffloadError(f"{where}: it needs at least one table [[tool.offload.kernels]], with module and sources")
    found = [
        make_table(table, pyproject.resolve().parent, f"{pyproject.name}: [[tool.offload.kernels]] {number}", files)
        for number, table in enumerate(tables, 1)
    ]
    check_distinct(found)
    return found


def read_backend(pyproject: Path) -> str:
    """The backend that ``offload.hooks.backend`` stands before: the key ``build-backend`` of ``[tool.offload]``."""
    backend = offload_table(pyproject).get(BACKEND_KEY, "setuptools.build_meta")
    if not isinstance(backend, str) or not backend or backend == "offload.hooks.backend":
        raise OffloadError(
            f'{pyproject.name}: [tool.offload]: {BACKEND_KEY} is the backend behind this one, as "hatchling.build", '
            f"not {backend!r}"
        )
    return backend


def make_table(given: Mapping[str, Any], root: Path, where: str, files: bool = True) -> KernelTable:
    """A table from its keys and values; ``where`` says where it stands, ``files`` whether what it names must be there.
    Raises OffloadError."""
    check_keys(where, given, _KEYS)
    module = given.get("module")
    if not isinstance(module, str) or not module:
        wrong = "is missing" if module in (None, "") else f"is a string, not {module!r}"
        raise OffloadError(f'{where}: key "module" {wrong}: the import name, as "mypackage.kernels"')
    where = f'{where} ("{module}")'
    for word in module.split("."):
        if not word.isidentifier() or keyword.iskeyword(word):
            raise OffloadError(f'{where}: key "module": {word!r} cannot be imported; write "mypackage.kernels"')
        if len(word.encode()) > _LONGEST_NAME:
            raise OffloadError(f'{where}: key "module": {word!r} is too long for the names of its files')
    patterns = strings(where, "sources", given.get("sources", []))
    if not patterns:
        raise OffloadError(f'{where}: key "sources" is missing: MLIR files, as ["src/mypackage/*.mlir"]')
    options = given.get("options", {})
    if not isinstance(options, Mapping):
        raise OffloadError(f'{where}: key "options" is a table, as {{ opt = 3 }}')
    targets = {key: strings(where, key, given.get(key, [])) for key in ("targets", "optional-targets")}
    for key, specs in targets.items():
        for name in (name for spec in specs for name in linked_by(spec)):
            _check_file(where, root, key, name, files)
    for pattern in patterns:
        _check_inside(where, "sources", pattern)
    matched = (path for pattern in patterns if files for path in _matches(where, root, pattern))
    return KernelTable(
        where,
        root,
        module,
        tuple(dict.fromkeys(matched)),
        targets["targets"],
        targets["optional-targets"],
        _checked_options(where, root, options, files),
        patterns,
    )


def check_distinct(tables: Iterable[KernelTable]) -> None:
    """Raises OffloadError where two tables make one module, or one a module in what is another's."""
    tables = list(tables)
    seen: dict[str, KernelTable] = {}
    for table in tables:
        other = seen.setdefault(table.module, table)
        if other is not table:
            raise OffloadError(
                f'{table.where}: key "module": {other.where} has that name too; give one another name, or put the '
                "sources of both into one table"
            )
    for table in tables:
        package = table.module
        while package := package.rpartition(".")[0]:
            if package in seen:
                raise OffloadError(
                    f'{table.where}: key "module": {package} is the module of {seen[package].where}, and no package '
                    "that could have others in it; give one another name"
                )


def read_toml(pyproject: Path) -> Mapping[str, Any]:
    """All of a pyproject.toml. Raises OffloadError."""
    try:
        return tomllib.loads(pyproject.read_text(encoding="utf-8"))
    except OSError as error:
        raise OffloadError(f"cannot read {pyproject}: {error.strerror or error}") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise OffloadError(f"{pyproject}: {error}") from error


def offload_table(pyproject: Path) -> Mapping[str, Any]:
    """What stands in ``[tool.offload]``. Raises OffloadError."""
    tool = read_toml(pyproject).get("tool", {})
    table = tool.get("offload", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise OffloadError(f"{pyproject.name}: tool.offload is a table: write [[tool.offload.kernels]]")
    return table


def check_keys(where: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises OffloadError for a key that there is not."""
    known = list(known)
    for key in given:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            hint = f'; did you mean "{close[0]}"?' if close else ""
            raise OffloadError(f'{where}: unknown key "{key}"{hint} (there are: {", ".join(known)})')


def strings(where: str, key: str, value: Any) -> tuple[str, ...]:
    """A value that is a list of strings. Raises OffloadError."""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise OffloadError(f'{where}: key "{key}" is a list of strings, not {value!r}')


def _checked_options(where: str, root: Path, options: Mapping[str, Any], files: bool) -> dict[str, Any]:
    where = f'{where}: key "options"'
    check_keys(where, options, _OPTIONS)
    for key, value in options.items():
        kind = _OPTIONS[key]
        if kind is list:
            strings(where, key, value)
        elif type(value) is not kind:
            raise OffloadError(f"{where}: {key} is {_WORDS[kind]}, not {value!r}")
        if key == "opt" and value not in range(4):
            raise OffloadError(f"{where}: opt is 0 to 3, not {value}")
        if key == "arch":
            _check_architecture(where, value)
        if key in ("link", "objects"):
            for name in value:
                _check_file(where, root, key, name, files)
    return {key.replace("-", "_"): value for key, value in options.items()}


def _check_architecture(where: str, name: str) -> None:
    from offload.targets.sysroot import ARCHITECTURES  # setuptools loads this file wherever offload is

    if name not in ARCHITECTURES:
        raise OffloadError(f"{where}: arch is one of {', '.join(ARCHITECTURES)}, not {name!r}")


def is_pattern(path: str) -> bool:
    """Whether an entry of ``sources`` may stand for several files."""
    return any(character in path for character in "*?[")


def _leads_nowhere(path: Path) -> bool:
    return path.is_symlink() and not path.exists()


def _matches(where: str, root: Path, pattern: str) -> list[str]:
    """The files that a pattern names, relative to the root."""
    if is_pattern(pattern):
        try:
            # A link to nowhere is a file that is missing here, as one that was not fetched, and no less of a source.
            paths = [path.relative_to(root) for path in root.glob(pattern) if path.is_file() or _leads_nowhere(path)]
        except ValueError as error:  # "**.mlir", before Python 3.13
            raise OffloadError(f'{where}: key "sources": "{pattern}" is no pattern: {error}') from error
        ours = [path for path in paths if "**" not in pattern or not _is_made(path)]
        found = sorted(path.as_posix() for path in ours if not _is_hidden(path, pattern))
        if not found:
            hint = _hint(root, root.rglob("*.mlir"))
            raise OffloadError(f'{where}: key "sources": no file matches "{pattern}" in {root}{hint}')
        return found
    if not _is_file(root / pattern):
        if pattern and _holds((root / pattern).is_dir):
            files = f"{pattern.rstrip('/')}/*.mlir"
            raise OffloadError(f'{where}: key "sources": "{pattern}" is a folder; its files are "{files}"')
        hint = _hint(root, (root / pattern).parent.glob("*.mlir"))
        raise OffloadError(f'{where}: key "sources": there is no file "{pattern}" in {root}{hint}')
    return [Path(pattern).as_posix()]


def _is_file(path: Path) -> bool:
    return _holds(path.is_file)


def _holds(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:  # its name is longer than any file's, or it is in a folder that may not be entered
        return False


def _is_hidden(path: Path, pattern: str) -> bool:
    """Whether a shell's patterns, too, leave a file out: an editor's copy, say, whose name begins with a dot."""
    return _has_dot(path.parts) and not _has_dot(Path(pattern).parts)


def _has_dot(parts: Sequence[str]) -> bool:
    return any(part.startswith(".") for part in parts)


def _is_made(path: Path) -> bool:
    """Whether a file below the root is a build's copy, or another project's in a virtual environment."""
    return path.parts[0] in ("build", "dist") or _has_dot(path.parts[:-1])


def _hint(root: Path, files: Iterable[Path]) -> str:
    """What could have been meant."""
    found = [path.relative_to(root) for path in files]
    near = sorted(path.as_posix() for path in found if not _is_made(path))
    more = f" and {len(near) - _MOST_NAMED} more" if len(near) > _MOST_NAMED else ""
    named = ", ".join(near[:_MOST_NAMED])
    return f"; there are: {named}{more}" if near else "; paths are relative to pyproject.toml"


def _check_file(where: str, root: Path, key: str, name: str, must_be_there: bool) -> None:
    _check_inside(where, key, name)
    if must_be_there and not _is_file(root / name):
        raise OffloadError(f"{where}: {key}: there is no file {name} in {root}")


def _check_inside(where: str, key: str, path: str) -> None:
    """A file elsewhere would be missing from the sdist, and its absolute path would be in the wheel."""
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise OffloadError(f'{where}: key "{key}": "{path}" is outside of the package; use a path below pyproject.toml')
