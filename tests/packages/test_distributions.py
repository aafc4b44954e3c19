"""The two distributions: which compiler is used, what is said where none fits, what their metadata have in common."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from compiling import EXAMPLES, ROOT

import offload
from offload.compiler import native as loading

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Stands in for an installation from wheels: the extension that this one was built with is not to be seen.
WITHOUT_OWN = "import sys; sys.modules['offload.mlir._native'] = None\n"
COMPILE = f"""
import offload
try:
    offload.compile({str(EXAMPLES / "saxpy.mlir")!r})
except offload.OffloadError as error:
    print(type(error).__name__, error.exit_code)
    print(error)
else:
    print("compiled")
"""


def python(code: str, folder: Path) -> str:
    """What a program prints where the packages in a folder come first."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + code
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


REMEDY = (
    f"to get it: pip install 'offload[compiler]=={offload.__version__}'; where a package is built, "
    "name that in [build-system] requires of its pyproject.toml"
)


def beside(folder: Path, extension: str) -> None:
    """An offload-llvm with this text for an extension."""
    (folder / "offload_llvm").mkdir()
    (folder / "offload_llvm" / "__init__.py").touch()
    (folder / "offload_llvm" / "_native.py").write_text(extension)


def test_the_extension_knows_the_version_it_belongs_to() -> None:
    assert loading.native().offload_version == offload.__version__


def test_without_a_compiler(tmp_path: Path) -> None:
    assert python(WITHOUT_OWN + COMPILE, tmp_path).splitlines() == [
        "ToolkitError 3",
        f"offload's compiler is not installed; what is here of offload {offload.__version__} runs what was compiled",
        f"  {REMEDY}",
    ]


def test_the_doctor_says_how_to_get_one(tmp_path: Path) -> None:
    code = WITHOUT_OWN + "from offload.cli import main; print(main(['doctor']))"
    said = python(code, tmp_path).splitlines()
    assert said[1].split() == ["MISSING", "compiler:", *said[1].split()[2:]]
    assert said[2].strip() == REMEDY
    assert said[-1] == "3"


def test_one_of_another_version(tmp_path: Path) -> None:
    beside(tmp_path, "offload_version = '0.0.9'")
    assert python(WITHOUT_OWN + COMPILE, tmp_path).splitlines() == [
        "ToolkitError 3",
        f"offload {offload.__version__} cannot use the compiler of offload 0.0.9",
        f"  that is {tmp_path}/offload_llvm/_native.py",
        f"  to get the right one: pip install 'offload[compiler]=={offload.__version__}'",
    ]


def test_one_for_another_python(tmp_path: Path) -> None:
    beside(tmp_path, "")
    (tmp_path / "offload_llvm" / "_native.py").rename(
        tmp_path / "offload_llvm" / "_native.cpython-27-x86_64-linux-gnu.so"
    )
    said = python(WITHOUT_OWN + COMPILE, tmp_path).splitlines()
    assert said[:2] == ["ToolkitError 3", "offload's compiler cannot be loaded: No module named 'offload_llvm._native'"]
    assert "not for this Python (3." in said[2]
    assert said[3] == f"  to get it: pip install --force-reinstall offload-llvm=={offload.__version__}"


def test_one_of_the_right_version_compiles(tmp_path: Path) -> None:
    own = loading.native().__file__
    beside(
        tmp_path,
        "import importlib.machinery, importlib.util, sys\n"
        f"loader = importlib.machinery.ExtensionFileLoader(__name__, {own!r})\n"
        "spec = importlib.util.spec_from_loader(__name__, loader)\n"
        "sys.modules[__name__] = importlib.util.module_from_spec(spec)\n"
        "loader.exec_module(sys.modules[__name__])\n",
    )
    assert python(WITHOUT_OWN + COMPILE, tmp_path) == "compiled\n"


def test_an_installation_from_source_uses_its_own(tmp_path: Path) -> None:
    beside(tmp_path, "raise SystemExit('this one is not wanted')")
    assert python(COMPILE, tmp_path) == "compiled\n"


def test_device_libraries_are_looked_for_beside_the_compiler_last(tmp_path: Path) -> None:
    bitcode = tmp_path / "offload_llvm" / "amdgcn" / "bitcode"
    bitcode.mkdir(parents=True)
    (bitcode / "ocml.bc").touch()
    code = """
from pathlib import Path
from offload.targets.tools import search
from offload.targets import rocdl
*system, last = rocdl._BITCODE
print([step.via for step in system], system[0].decisive)
print(search("ocml.bc", ["amdgcn/bitcode/ocml.bc"], [last], "").path)
"""
    order, found = python(code, tmp_path).splitlines()
    folders = [f"/usr/lib/{machine}-linux-gnu" for machine in ("x86_64", "aarch64")]
    folders += [f"/usr/lib/llvm-{version}/lib/clang/{version}" for version in (22, 21, 20, 19, 18, 17)]
    assert order == f"{['ROCM_PATH', '/opt/rocm', *folders]} True"
    assert found == str(bitcode / "ocml.bc")


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def test_their_metadata_agree() -> None:
    small, compiler = project(ROOT), project(ROOT / "offload-llvm")
    same = ("version", "requires-python")
    assert [small[key] for key in same] == [compiler[key] for key in same]
    assert small["optional-dependencies"]["compiler"] == [f"offload-llvm=={small['version']}"]
    assert compiler["dependencies"] == [f"offload=={small['version']}"]
    made = re.search(
        r"^project\(.* VERSION ([\d.]+)", (ROOT / "offload-llvm" / "CMakeLists.txt").read_text(), re.MULTILINE
    )
    assert made is not None
    assert made.group(1) == small["version"]


def test_every_code_generator_that_is_used_is_listed() -> None:
    """A static link leaves out those that are not."""
    listed = re.findall(r"^TARGET\((\w+)\)", (ROOT / "offload/mlir/codegen/processors.def").read_text(), re.MULTILINE)
    triples = ["x86_64-linux-gnu", "aarch64-linux-gnu", "nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"]
    assert len(listed) == len(triples)
    assert all(loading.native().known_processors(triple) for triple in triples)
