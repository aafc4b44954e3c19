"""Editable installations of hatchling's and pybind11's packages; those of other build tools are with their adapters."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import pytest
from compiling import EXAMPLES
from packaging_tools import QUICK_CXX, backend, clean_venv, copy_of, in_venv, run, unpack

from offload.hooks.build import build_module
from offload.hooks.project import read_tables


def editable(package: Path, front_end: str, settings: str = "None") -> Path:
    """The Python of an environment with the package installed as editable, for the CPU alone."""
    out = package.parent / "out"
    backend(package, "build_editable", out, front_end, settings, environment={"OFFLOAD_TARGETS": "host"})
    python = clean_venv(package.parent / "venv")
    unpack(next(out.glob("*.whl")), python)
    return python


def test_hatchling(tmp_path: Path) -> None:
    package = copy_of("hatchling", tmp_path)
    python = editable(package, "offload.hooks.backend")
    code = (
        "import numpy as np, rowwise\n"
        "x = np.zeros((1, 4), np.float32)\n"
        "y = np.empty_like(x)\n"
        "rowwise.softmax(x, y)\n"
        "print(y[0, 0])"
    )
    assert in_venv(python, "-c", code, cwd=tmp_path) == "0.25\n"
    source = package / "src" / "rowwise" / "softmax.mlir"
    source.write_text(source.read_text().replace("arith.divf %e, %sum", "arith.addf %e, %sum"))
    said = in_venv(python, "-c", code, cwd=tmp_path)
    assert said.startswith("rowwise.kernels: kernels.offload.so, ")
    assert said.endswith("\n5.0\n")
    assert in_venv(python, "-c", code, cwd=tmp_path) == "5.0\n"


def test_hatchling_in_another_folder(tmp_path: Path) -> None:
    """Where its own setting has the package; and the sdist has nothing of what was built there."""
    package = copy_of("hatchling", tmp_path)
    (package / "src").rename(package / "python")
    path = package / "pyproject.toml"
    path.write_text(path.read_text().replace("src/rowwise", "python/rowwise"))
    python = editable(package, "offload.hooks.backend")
    assert (package / "python" / "rowwise" / "kernels.offload.so").exists()
    assert in_venv(python, "-c", "import rowwise; print(rowwise.softmax.__name__)", cwd=tmp_path) == "softmax\n"
    backend(package, "build_sdist", tmp_path / "sdist", "offload.hooks.backend")
    with tarfile.open(next((tmp_path / "sdist").glob("*.tar.gz"))) as archive:
        held = [Path(name).name for name in archive.getnames()]
    assert "softmax.mlir" in held
    assert not {"kernels.py", "kernels.pyi", "kernels.offload.so"} & set(held)


def test_hatchling_with_the_hook_for_wheels_alone(tmp_path: Path) -> None:
    """Whose sdists would have what the editable installation built."""
    package = copy_of("hatchling", tmp_path)
    path = package / "pyproject.toml"
    path.write_text(path.read_text().replace(".build.hooks.offload", ".build.targets.wheel.hooks.offload"))
    for_host = {"OFFLOAD_TARGETS": "host"}
    said = backend(package, "build_editable", tmp_path / "out", "hatchling.build", environment=for_host, fails=True)
    assert "name the table [tool.hatch.build.hooks.offload]" in said
    backend(package, "build_wheel", tmp_path / "out", "hatchling.build", environment=for_host)
    path.write_text(path.read_text() + "[tool.hatch.build.targets.sdist.hooks.offload]\n")
    backend(package, "build_editable", tmp_path / "out", "hatchling.build", environment=for_host)


@pytest.mark.parametrize("named", ["", '[tool.hatch.build.targets.wheel]\npackages = ["lib/pkg"]\n'])
def test_hatchling_with_kernels_beside_the_package(named: str, tmp_path: Path) -> None:
    """Where the package is importable the module without one is, too."""
    package = tmp_path / "package"
    folder = package / ("lib" if named else "src")
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_text("import top\n")
    (package / "scale.mlir").write_text((EXAMPLES / "scale.mlir").read_text())
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n[project]\nname = "Pkg"\n'
        f'version = "1"\n{named}[tool.hatch.build.hooks.offload]\n'
        '[[tool.offload.kernels]]\nmodule = "top"\nsources = ["scale.mlir"]\n'
    )
    python = editable(package, "hatchling.build")
    assert in_venv(python, "-c", "import pkg; print(pkg.top.__all__)", cwd=tmp_path) == "['library', 'scale']\n"
    assert [path.parent for path in package.rglob("top.py")] == [folder]


@pytest.mark.parametrize(
    "said",
    ['[tool.hatch.build]\npackages = ["lib/rowwise"]', '[tool.hatch.build]\nsources = ["lib"]\nonly-include = ["lib"]',
     '[tool.hatch.build.targets.wheel]\nsources = { "lib" = "" }\nonly-include = ["lib"]'],
)  # fmt: skip
def test_hatchling_with_a_folder_that_it_is_told_of_elsewhere(said: str, tmp_path: Path) -> None:
    package = copy_of("hatchling", tmp_path)
    (package / "src").rename(package / "lib")
    path = package / "pyproject.toml"
    text = path.read_text().replace('[tool.hatch.build.targets.wheel]\npackages = ["src/rowwise"]', said)
    path.write_text(text.replace("src/rowwise/softmax", "lib/rowwise/softmax"))
    python = editable(package, "hatchling.build")
    assert "softmax" in in_venv(python, "-c", "import rowwise.kernels as k; print(k.__all__)", cwd=tmp_path)
    assert (package / "lib" / "rowwise" / "kernels.offload.so").is_file()


TOGGLE = """
import importlib, os, subprocess, sys
from pathlib import Path
from offload.hooks.build import build_module
from offload.hooks.project import read_tables

folder = Path.cwd()
source = folder / "k.mlir"

def write(number):
    source.write_text("func.func @f() -> i32 { %c = arith.constant " + str(number) + " : i32 return %c : i32 }")

write(3)
(table,) = read_tables(folder / "pyproject.toml")
loader = build_module(table, folder, editable=True).loader
now = loader.stat().st_mtime
sys.path.insert(0, str(folder))
found = []
for number in (3, 5, 3, 5, 3):
    write(number)
    for _ in range(2):  # the first time it is built again; the second time Python keeps its bytecode
        sys.modules.pop("k", None)
        importlib.invalidate_caches()
        import k
        os.utime(loader, (now, now))  # as if all of it happened in one second
    command = [sys.executable, "-c", "import k; print(k.f())"]
    found.append(subprocess.run(command, text=True, capture_output=True, check=True).stdout.strip())
print(*found)
"""


def test_changes_within_a_second(tmp_path: Path) -> None:
    """Python takes bytecode for that of a file of the same size and second: one of before would say what is built."""
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "k"\nsources = ["k.mlir"]\n')
    environment = {"PYTHONDONTWRITEBYTECODE": "", "OFFLOAD_BACKEND": "host"}
    said = run(sys.executable, "-c", TOGGLE, cwd=tmp_path, environment=environment).stdout
    assert said.splitlines()[-1] == "3 5 3 5 3"


RELOADED = """
import importlib, sys
from pathlib import Path
from offload.hooks.build import build_module
from offload.hooks.project import read_tables

sys.path.insert(0, "")
(table,) = read_tables(Path("pyproject.toml"))
build_module(table, Path.cwd(), editable=True)
import k
before = k.f
print(before(), k.library.functions.keys())
Path("k.mlir").write_text(Path("k.mlir").read_text().replace("@f", "@g").replace("constant 3", "constant 5"))
importlib.reload(k)
print(k.g(), before(), hasattr(k, "f"))
Path("k.mlir").write_text("func.func @f( {}")
try:
    importlib.reload(k)
except ImportError:
    print(k.g())
"""


def test_a_module_that_is_reloaded(tmp_path: Path) -> None:
    """As in a notebook: with what its sources are now; where they are broken, what was before stays."""
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "k"\nsources = ["k.mlir"]\n')
    (tmp_path / "k.mlir").write_text("func.func @f() -> i32 { %c = arith.constant 3 : i32 return %c : i32 }")
    said = run(sys.executable, "-c", RELOADED, cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host"}).stdout
    printed = [line for line in said.splitlines() if not line.startswith("k: ")]  # what was built is told, too
    assert printed == ["3 dict_keys(['f'])", "5 3 False", "5"]


DAMAGED = """
import importlib, sys
from pathlib import Path
from offload.hooks.build import build_module
from offload.hooks.project import read_tables

(table,) = read_tables(Path("pyproject.toml"))
library = build_module(table, Path.cwd(), editable=True).library
sys.path.insert(0, "")
whole = library.read_bytes()
for damaged in (whole[:1000], b"", b"no library"):
    library.write_bytes(damaged)
    sys.modules.pop("k", None)
    import k
    assert library.read_bytes() == whole
Path("k.mlir").write_text("func.func @f( {}")
library.write_bytes(whole[:1000])
sys.modules.pop("k", None)
try:
    import k
except ImportError as error:
    print(error)
"""


def test_a_library_that_is_damaged_is_built_again(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "k"\nsources = ["k.mlir"]\n')
    (tmp_path / "k.mlir").write_text("func.func @f() -> i32 { %c = arith.constant 3 : i32 return %c : i32 }")
    said = run(sys.executable, "-c", DAMAGED, cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host"}).stdout
    assert "k is installed as editable and is damaged; building it again failed:\nk.mlir:1:" in said


def test_pybind11(full: bool, tmp_path: Path) -> None:
    """Kernels and C++ in one module: CMake builds what has changed of either (of the C++ with --full, for its time)."""
    package = copy_of("pybind11", tmp_path)
    defined = {f"cmake.define.{name}": value for name, value in {**QUICK_CXX, "OFFLOAD_TARGETS": "host"}.items()}
    settings = {"editable.rebuild": "true", "build-dir": "build", **defined}
    python = editable(package, "scikit_build_core.build", repr(settings))
    code = "import numpy as np, unitvec; print(unitvec.normalized(np.array([3, 4], np.float32))[0])"

    def first() -> str:
        # CMake runs the Python that built the package, with this environment's settings.
        return run(python, "-c", code, cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host"}).stdout.splitlines()[-1]

    assert first() == "0.6"
    kernel = package / "src" / "unitvec" / "scale.mlir"
    kernel.write_text(kernel.read_text().replace("arith.mulf", "arith.addf"))
    assert first() == "3.2"
    if full:
        module = package / "src" / "unitvec" / "module.cpp"
        module.write_text(module.read_text().replace("1 / std::sqrt(squares)", "2.0"))
        assert first() == "5.0"


def test_kernels_beside_everything_that_setuptools_finds(tmp_path: Path) -> None:
    """A module without a package, and one whose package has nothing else, in a project that lists another one."""
    package = tmp_path / "package"
    for name in ("listed", "fast"):
        (package / name).mkdir(parents=True)
    (package / "listed" / "__init__.py").touch()
    (package / "scale.mlir").write_text((EXAMPLES / "scale.mlir").read_text())
    tables = [f'[[tool.offload.kernels]]\nmodule = "{name}"\nsources = ["scale.mlir"]\n' for name in ("top", "fast.k")]
    (package / "pyproject.toml").write_text(
        '[project]\nname = "several"\nversion = "1"\n[tool.setuptools]\npackages = ["listed"]\n' + "\n".join(tables)
    )
    python = editable(package, "setuptools.build_meta")
    code = "import listed, top, fast.k; print(top.__all__, fast.k.__all__)"
    assert in_venv(python, "-c", code, cwd=tmp_path) == "['library', 'scale'] ['library', 'scale']\n"


def test_the_step_of_setuptools_by_itself(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    code = "import setuptools; setuptools.setup()"
    run(sys.executable, "-c", code, "build_offload", "--force", cwd=package, environment={"OFFLOAD_TARGETS": "host"})
    assert list(package.glob("build/lib*/vectorops/kernels.offload.so"))


COPIED = """
import shutil, subprocess, sys
from pathlib import Path
from offload.hooks.build import build_module
from offload.hooks.project import read_tables

(table,) = read_tables(Path("one/pyproject.toml"))
build_module(table, Path("one/src/pkg"), editable=True)
shutil.copytree("one", "two")
source = Path("two/src/pkg/k.mlir")
source.write_text(source.read_text().replace("constant 3", "constant 5"))
shutil.copytree("one/src", "three")
for folder in ("one/src", "two/src", "three"):
    command = [sys.executable, "-c", "import pkg.k; print(pkg.k.f())"]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    print((done.stdout or done.stderr).splitlines()[-1])
"""


def test_a_copy_of_a_project_builds_its_own(tmp_path: Path) -> None:
    """With what was compiled in place: it ran the kernels of the project that it is a copy of."""
    (tmp_path / "one" / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "one" / "pyproject.toml").write_text(
        '[[tool.offload.kernels]]\nmodule = "pkg.k"\nsources = ["src/pkg/k.mlir"]\n'
    )
    source = tmp_path / "one" / "src" / "pkg" / "k.mlir"
    source.write_text("func.func @f() -> i32 { %c = arith.constant 3 : i32 return %c : i32 }")
    said = run(sys.executable, "-c", COPIED, cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host"}).stdout
    missing = (
        "ImportError: pkg.k is installed as editable, and its project is not where it was built "
        f"({tmp_path.resolve() / 'pyproject.toml'}): install it, or copy the project with it"
    )
    assert said.splitlines() == ["3", "5", missing]


def test_a_source_that_cannot_be_read(tmp_path: Path) -> None:
    """A link to nowhere counts as a source: the import failed with an error of the system, and without the module."""
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "k"\nsources = ["*.mlir"]\n')
    (tmp_path / "k.mlir").write_text("func.func @f() -> i32 { %c = arith.constant 3 : i32 return %c : i32 }")
    (table,) = read_tables(tmp_path / "pyproject.toml")
    build_module(table, tmp_path, editable=True)
    (tmp_path / "more.mlir").symlink_to("nowhere.mlir")
    said = run(sys.executable, "-c", "import k", cwd=tmp_path, fails=True).stdout
    assert said.endswith(
        "ImportError: k is installed as editable and has changed; building it again failed:\n"
        f"cannot read {tmp_path / 'more.mlir'}: No such file or directory\n"
    )


def test_a_module_that_is_imported_by_another_name(tmp_path: Path) -> None:
    """As pytest imports a file of a package without an ``__init__.py`` for its doctests."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "pkg.k"\nsources = ["k.mlir"]\n')
    source = tmp_path / "k.mlir"
    source.write_text("func.func @f() -> i32 { %c = arith.constant 3 : i32 return %c : i32 }")
    (table,) = read_tables(tmp_path / "pyproject.toml")
    build_module(table, tmp_path / "pkg", editable=True)
    source.write_text(source.read_text().replace("@f", "@g"))
    said = run(sys.executable, "-c", "import k; print(k.g())", cwd=tmp_path / "pkg").stdout
    assert said.splitlines()[-1] == "3"


LINKED = """
import os, subprocess, sys
from pathlib import Path
from offload.hooks.build import build_module
from offload.hooks.project import read_tables

(table,) = read_tables(Path("one/pyproject.toml"))
package = Path("one/src/pkg").resolve()
build_module(table, package, editable=True)
links = Path(sys.argv[1], "pkg")
links.mkdir(parents=True)
for name in ("k.py", "k.pyi", "k.offload.so"):
    (links / name).symlink_to(package / name)

def found(folder):
    command = [sys.executable, "-c", "import pkg.k; print(pkg.k.f())"]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    return (done.stdout or done.stderr).splitlines()[-1]

source = package / "k.mlir"
for number in (5, 7):
    source.write_text("func.func @f() -> i32 { %c = arith.constant " + str(number) + " : i32 return %c : i32 }")
    print(found(links.parent), found("one/src"))
loader = package / "k.py"
right = loader.read_text()
assert "'../../pyproject.toml'" in right
loader.write_text(right.replace("'../../pyproject.toml'", "'../../../../pyproject.toml'"))
build_module(table, package, editable=True)
assert loader.read_text() == right
"""


@pytest.mark.parametrize("links", ["one/build/__editable__.one", "elsewhere"])
def test_a_module_that_is_imported_through_links(links: str, tmp_path: Path) -> None:
    """One to each file, as setuptools makes them with editable_mode=strict: the loader that was built again counted the
    way to its project from the links, and a new installation left it so."""
    (tmp_path / "one" / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "one" / "pyproject.toml").write_text(
        '[[tool.offload.kernels]]\nmodule = "pkg.k"\nsources = ["src/pkg/k.mlir"]\n'
    )
    source = tmp_path / "one" / "src" / "pkg" / "k.mlir"
    source.write_text("func.func @f() -> i32 { %c = arith.constant 3 : i32 return %c : i32 }")
    said = run(sys.executable, "-c", LINKED, links, cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host"}).stdout
    assert said.splitlines() == ["5 5", "7 7"]
