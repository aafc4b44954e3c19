"""The rules of the house as tests: who includes and imports what, where vendors are named, how long files are."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from compiling import ROOT, python

PYTHON_FOLDERS = ("offload", "targets", "examples", "scripts", "bench")
C_FOLDERS = ("offload", "runtime_c")
TEST_FILES = (*(ROOT / "tests").glob("*.py"), *(ROOT / "tests").glob("*/test_*.py"))


def files(folders: tuple[str, ...], *suffixes: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in suffixes and "__pycache__" not in path.parts
    )


PYTHON_FILES = files(PYTHON_FOLDERS, ".py")
C_FILES = files(C_FOLDERS, ".c", ".h", ".cpp", ".def")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_there_are_files_to_look_at() -> None:
    names = {relative(path) for path in (*PYTHON_FILES, *C_FILES)}
    assert {"offload/api.py", "targets/base.py", "runtime_c/mgpu.h", "offload/mlir/session.h"} <= names


def test_only_the_extension_includes_mlir_and_llvm() -> None:
    includes = re.compile(r'#\s*include\s*[<"](mlir|llvm|lld|clang)[/-]')
    users = [relative(path) for path in C_FILES if includes.search(path.read_text())]
    assert users
    assert [path for path in users if not path.startswith("offload/mlir/")] == []


def calls(text: str) -> Iterator[tuple[int, list[str]]]:
    """Every call of C++ without statements in it: where its arguments begin, and they."""
    for begin in (found.end() - 1 for found in re.finditer(r"\w\(", text)):
        depth, arguments = 0, [""]
        for place in range(begin, len(text)):
            character = text[place]
            depth += (character in "([{") - (character in ")]}")
            if depth == 0:
                yield begin, arguments
            if depth == 0 or character == ";":
                break
            if character == "," and depth == 1:
                arguments.append("")
            elif place > begin:
                arguments[-1] += character


def test_no_two_arguments_of_a_call_make_operations() -> None:
    """The order of arguments is the C++ compiler's choice, and with it the bytes of what is built. Seen is what calls
    create() or gives a builder to a function by its usual names."""
    makes = re.compile(r"::create\(|\w\((b|in|each|rewriter)[,)]")
    quiet = re.compile(r'//[^\n]*|"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])\'')
    unordered, seen = [], 0
    for path in files(("offload",), ".cpp", ".h"):
        text = quiet.sub(lambda found: " " * len(found[0]), path.read_text())
        for begin, arguments in calls(text):
            making = [each for each in arguments if makes.search(each) and not each.lstrip().startswith("[")]
            seen += bool(making)
            if len(making) > 1:
                unordered.append(f"{relative(path)}:{text.count(chr(10), 0, begin) + 1}")
    assert seen > 300
    assert "\n".join(unordered) == ""


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports when it runs, anywhere in it."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FORBIDDEN = {
    "offload/runtime": ("offload.compiler", "offload.mlir", "offload.targets", "offload.commands", "offload.api"),
    "offload/artifact": ("offload.compiler", "offload.mlir", "offload.targets", "offload.runtime", "offload.api"),
    "offload/cache": (
        "offload.compiler",
        "offload.mlir",
        "offload.runtime",
        "offload.artifact",
        "offload.targets",
        "offload.api",
    ),
    "offload/compiler": ("offload.runtime", "offload.commands", "offload.cli", "offload.api"),
    "targets": ("offload.compiler", "offload.mlir", "offload.runtime", "offload.artifact", "offload.api"),
}


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_rooms_import_only_what_they_may(folder: str) -> None:
    found = [
        f"{relative(path)} imports {name}"
        for path in files((folder,), ".py")
        for name in imports(path)
        if name.startswith(FORBIDDEN[folder])
    ]
    assert files((folder,), ".py")
    assert found == []


def test_the_settings_alone_read_the_environment() -> None:
    reads = re.compile(r"os\.environ|os\.getenv|\bgetenv\b|\benviron\b")
    assert [relative(path) for path in files(("offload", "targets"), ".py") if reads.search(path.read_text())] == [
        "offload/config.py"
    ]


VENDOR_WORDS = re.compile(
    r"cuda|\bhip|\bcubin|nvvm|nvidia|nvptx|ptxas|libdevice|rocdl|rocm|\bamd|hsaco|\bsm_\d|gfx\d", re.IGNORECASE
)
VENDOR_FILES = {
    "targets/nvvm.py", "targets/nvvm_images.py", "targets/rocdl.py", "targets/rocdl_images.py",  # their own modules
    "targets/nvvm_devices.py", "targets/rocdl_devices.py", "targets/ptxas_output.py",
    "targets/nvjitlink.py", "targets/nvjitlink_process.py",
    "targets/native.py",  # the extension's reader of AMD's notes, as a type
    "offload/config.py",  # CUDA_HOME, ROCM_PATH; names of backends
    "offload/artifact/elf.py",  # names of ELF machines
    "offload/artifact/container.py",  # the kinds and suffixes of LLVM's offloading container
    "offload/runtime/interchange.py", "offload/runtime/typing.py",  # __cuda_array_interface__, DLPack's device types
    "offload/runtime/streams.py",  # __cuda_stream__
    "offload/hooks/pytest_plugin.py", "offload/runtime/array.py",  # names of backends
    "offload/cli.py",  # examples in help texts
    "offload/mlir/device/vendor_rules.cpp",  # which operation is whose, which chip has it
    "offload/mlir/device/check_kernels.cpp",
    "offload/mlir/device/descriptors.cpp",
    "offload/mlir/device/lower_nvgpu.cpp",
    "offload/mlir/device/inline_constants.cpp", "offload/mlir/input/changed_values.cpp",  # operands of PTX
    "offload/mlir/device/prepare_fragments.cpp",  # the registers of fragments, which no other vendor has
    "offload/mlir/device/library_calls.cpp",  # the names of both vendors' functions
    "offload/mlir/device/prepare_products.cpp",
    "offload/mlir/device/spread_fragments.cpp",  # whose matrix units multiply what
    "offload/mlir/device/fragment_products.cpp", "offload/mlir/device/choose_products.cpp",
    "offload/mlir/device/amd_rules.cpp", "offload/mlir/device/amd_rules.h",  # what one vendor's instructions take
    "offload/mlir/device/prepare_arguments.cpp",  # how each takes memory by value
    "offload/mlir/device/prepare_atomics.cpp",  # what each calls the scopes of its memory
    "offload/mlir/codegen/gpu/bulk_stores.cpp",  # mends an instruction
    "offload/mlir/device/unverified.cpp",  # what MLIR's verifiers of vendors' operations do not survive
    "offload/mlir/codegen/gpu/amd_kernels.cpp",  # how LLVM's code generator is used
    "offload/mlir/codegen/gpu/amd_opcodes.h", "offload/mlir/codegen/gpu/wide_moves.cpp",  # mends an instruction of its
    "offload/mlir/codegen/gpu/two_comparisons.cpp", "offload/mlir/codegen/gpu/kept_conditions.cpp",
    "offload/mlir/codegen/processors.cpp",  # what it joins wrongly
    "offload/mlir/codegen/gpu/short_regions.cpp",  # what its scheduler sees at a time
    "offload/mlir/codegen/gpu/half_quotients.cpp",  # its reciprocals
    "offload/mlir/codegen/gpu/narrow_quotients.cpp",  # what its division of few bits gets wrong
    "offload/mlir/codegen/codegen.cpp", "offload/mlir/codegen/elf.cpp", "offload/mlir/codegen/llvm_module.h",
    "offload/mlir/bindings.cpp",
    # The names of each vendor's library of functions.
    "offload/mlir/device/powers.cpp", "offload/mlir/device/prepare_math.cpp",
    "offload/mlir/device/lanes.cpp",  # how the lanes of each vendor's chips exchange values
}  # fmt: skip


def code_of(path: Path) -> str:
    """A Python file without comments and docstrings, a C++ one without comments."""
    text = path.read_text()
    if path.suffix != ".py":
        return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    for node in ast.walk(tree):  # docstrings of attributes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(0)
    return ast.unparse(tree)


def test_vendors_are_named_in_few_files() -> None:
    """In code, comments aside; the C runtime has its own list of backends."""
    looked_at = [*files(("offload", "targets"), ".py"), *files(("offload",), ".cpp", ".h")]
    named = {relative(path) for path in looked_at if VENDOR_WORDS.search(code_of(path))}
    assert named == VENDOR_FILES


def test_backends_of_the_runtime_are_named_in_their_own_files() -> None:
    driver = re.compile(r"\bcu[A-Z]\w+\(|\bhip[A-Z]\w+\(|libcuda|libamdhip")
    named = {relative(path) for path in files(("runtime_c",), ".c", ".h") if driver.search(code_of(path))}
    allowed = ("runtime_c/cuda/", "runtime_c/hip/", "runtime_c/checks/")
    assert [name for name in named if not name.startswith(allowed)] == []


def test_targets_are_importable_as_part_of_the_package_only(tmp_path: Path) -> None:
    code = """
import importlib.util, offload.targets
assert importlib.util.find_spec("targets") is None
print(offload.targets.__name__)
"""
    assert python(code, cwd=tmp_path) == "offload.targets\n"


def test_parts_of_the_package_are_there_when_they_are_named(tmp_path: Path) -> None:
    code = """
import sys, offload
assert not {"offload.artifact", "offload.runtime", "offload.targets"} & set(sys.modules)
print(offload.artifact.read.__name__, offload.targets.registry().names(), offload.runtime.load.__name__)
"""
    assert python(code, cwd=tmp_path) == "read ['host', 'nvvm', 'rocdl'] load\n"


@pytest.mark.parametrize(("paths", "limit"), [(PYTHON_FILES, 400), (C_FILES, 600)], ids=["python", "c"])
def test_files_are_short(paths: list[Path], limit: int) -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in paths}
    assert {name: length for name, length in lengths.items() if length > limit} == {}


def test_every_file_begins_with_what_it_is_for() -> None:
    silent = []
    for path in (*PYTHON_FILES, *TEST_FILES, *C_FILES, *files(("examples", "tests"), ".mlir")):
        first = path.read_text().lstrip().split("\n", 1)[0]
        if not first.startswith(('"""', "//", "/*", "#")):
            silent.append(relative(path))
    assert silent == []


def test_names_of_types_are_one_string_each() -> None:
    """pyright takes nothing from several that stand in a row: the name is Any, and stubs with it mean less."""
    torn = []
    for path in PYTHON_FILES:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                tokens = tokenize.generate_tokens(io.StringIO(ast.get_source_segment(text, node) or "").readline)
                if sum(token.type == tokenize.STRING for token in tokens) > 1:
                    torn.append(f"{relative(path)}:{node.lineno}")
    assert torn == []


def test_versions_agree() -> None:
    import offload

    project = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    cmake = re.search(r"^project\(.* VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert project is not None
    assert cmake is not None
    assert project.group(1) == cmake.group(1) == offload.__version__


def test_types_are_checked_without_the_packages_of_extras() -> None:
    """tox -e type installs what offload needs and no more."""
    tables = re.findall(r"^module = (\[.*\])$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    known = {name.removesuffix(".*") for table in tables for name in ast.literal_eval(table)}
    own = {"offload", "numpy", "tomli", "ml_dtypes"}  # the last one is marked where it is imported
    used = {name.partition(".")[0] for path in files(("offload", "targets"), ".py") for name in imports(path)}
    assert used - known - own - sys.stdlib_module_names == set()


def test_every_page_is_listed() -> None:
    listed = re.findall(r": ([a-z_]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_every_variable_that_is_read_is_documented() -> None:
    from offload.config import VARIABLES, environment

    pattern = re.compile(r"\b(OFFLOAD_[A-Z_]+)\b")
    runtime = {
        name for path in files(("runtime_c",), ".c") for name in re.findall(r'getenv\("(\w+)"\)', path.read_text())
    }
    package = {name for path in files(("offload", "targets"), ".py") for name in pattern.findall(path.read_text())}
    assert (runtime - {"TMPDIR"}) | (package - {"OFFLOAD_COMPILER"}) <= set(VARIABLES)
    with pytest.raises(KeyError):
        environment("HOME")


def test_the_runtime_half_works_without_the_compiler_half(built: dict[str, Path], tmp_path: Path) -> None:
    """With every module of the compiler refusing to be imported, and no tool on PATH."""
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("offload.compiler", "offload.mlir", "offload.targets")):
            raise ImportError(f"{name} is not for the runtime")
sys.meta_path.insert(0, Refuse())
import numpy, offload
library = offload.load(sys.argv[1])
library.use("host")
x = numpy.ones(10, numpy.float32)
library.saxpy(2, x, x)
print(x[0])
try:
    offload.compile("module {}\\n")
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, built["saxpy"]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3.0\n")


def test_the_program_that_is_installed_exists() -> None:
    from offload.__main__ import script

    declared = (ROOT / "pyproject.toml").read_text().split("[project.scripts]\n")[1].split("\n")[0]
    assert declared == f'offload = "{script.__module__}:{script.__name__}"'
