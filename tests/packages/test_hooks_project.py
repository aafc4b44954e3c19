"""``[tool.offload]`` in pyproject.toml: what is read, and what is refused with file, key and remedy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES

from offload import artifact
from offload.errors import OffloadError, TargetError, ToolkitError
from offload.hooks.build import FOUND_UNTOLD, build_module
from offload.hooks.project import KernelTable, declares_kernels, read_tables

FIRST = "pyproject.toml: [[tool.offload.kernels]] 1"
NAMED = f'{FIRST} ("pkg.kernels")'
GOOD = 'module = "pkg.kernels"\nsources = ["*.mlir"]\n'


def package(folder: Path, table: str, more: str = "") -> Path:
    """A package with saxpy.mlir and scale.mlir, and one table."""
    for name in ("saxpy", "scale"):
        (folder / f"{name}.mlir").write_text((EXAMPLES / f"{name}.mlir").read_text())
    path = folder / "pyproject.toml"
    path.write_text(f"{more}\n[[tool.offload.kernels]]\n{table}\n")
    return path


def test_what_a_table_says(tmp_path: Path) -> None:
    (tmp_path / "a.bc").write_bytes(b"")
    path = package(
        tmp_path,
        'module = "pkg.kernels"\nsources = ["scale.mlir", "*.mlir"]\ntargets = ["host", "nvvm:sm_90"]\n'
        'optional-targets = ["rocdl:gfx942"]\noptions = { opt = 2, debug = true, link = ["a.bc"] }',
    )
    (table,) = read_tables(path)
    assert table.module == "pkg.kernels"
    assert table.sources == ("scale.mlir", "saxpy.mlir")
    assert table.files == ("scale.mlir", "saxpy.mlir", "a.bc")
    assert (table.targets, table.optional_targets) == (("host", "nvvm:sm_90"), ("rocdl:gfx942",))
    assert table.options == {"opt": 2, "debug": True, "link": ["a.bc"]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            GOOD + 'source = ["x"]',
            f'{FIRST}: unknown key "source"; did you mean "sources"? (there are: module, sources, targets, '
            "optional-targets, options)",
        ),
        (
            GOOD + "options = { optt = 1 }",
            f'{NAMED}: key "options": unknown key "optt"; did you mean "opt"? (there are: ',
        ),
        (GOOD + "options = { opt = 4 }", f'{NAMED}: key "options": opt is 0 to 3, not 4'),
        (
            GOOD + 'options = { arch = "sparc" }',
            f"{NAMED}: key \"options\": arch is one of x86_64, aarch64, not 'sparc'",
        ),
        (GOOD + "options = { opt = true }", f'{NAMED}: key "options": opt is a number, not True'),
        (
            GOOD + 'options = { link = "a.bc" }',
            f'{NAMED}: key "options": key "link" is a list of strings, not \'a.bc\'',
        ),
        (GOOD + 'options = { link = ["a.bc"] }', f'{NAMED}: key "options": link: there is no file a.bc in '),
        (GOOD + 'targets = "host"', f"{NAMED}: key \"targets\" is a list of strings, not 'host'"),
        ('sources = ["*.mlir"]', f'{FIRST}: key "module" is missing: the import name, as "mypackage.kernels"'),
        ('module = "pkg.class"\nsources = ["*.mlir"]', "key \"module\": 'class' cannot be imported; write "),
        ('module = "pkg.kernels"', f'{NAMED}: key "sources" is missing: MLIR files, as ["src/mypackage/*.mlir"]'),
        (
            'module = "pkg.kernels"\nsources = ["saxpi.mlir"]',
            f'{NAMED}: key "sources": there is no file "saxpi.mlir" in ',
        ),
        ('module = "pkg.kernels"\nsources = ["k/*.mlir"]', f'{NAMED}: key "sources": no file matches "k/*.mlir" in '),
        (
            'module = "pkg.kernels"\nsources = ["../*.mlir"]',
            f'{NAMED}: key "sources": "../*.mlir" is outside of the package; use a path below pyproject.toml',
        ),
    ],
)
def test_what_is_refused(table: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(OffloadError) as caught:
        read_tables(package(tmp_path, table))
    assert message in str(caught.value)


def test_a_missing_file_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(OffloadError, match=r"; there are: saxpy\.mlir, scale\.mlir$"):
        read_tables(package(tmp_path, 'module = "pkg.kernels"\nsources = ["saxpi.mlir"]'))


@pytest.mark.parametrize("name", ["k", "k/"])
def test_a_folder_among_the_sources(name: str, tmp_path: Path) -> None:
    (tmp_path / "k").mkdir()
    with pytest.raises(OffloadError, match=rf'key "sources": "{name}" is a folder; its files are "k/\*\.mlir"$'):
        read_tables(package(tmp_path, f'module = "pkg.kernels"\nsources = ["{name}"]'))


def test_a_pattern_without_a_match_is_answered_with_files_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(OffloadError, match=r"; there are: saxpy\.mlir, scale\.mlir$"):
        read_tables(package(tmp_path, 'module = "pkg.kernels"\nsources = ["k/*.mlr"]'))


def test_copies_that_a_build_made_are_no_suggestions(tmp_path: Path) -> None:
    (tmp_path / "build" / "lib").mkdir(parents=True)
    (tmp_path / "build" / "lib" / "saxpy.mlir").touch()
    with pytest.raises(OffloadError, match=r"; there are: saxpy\.mlir, scale\.mlir$"):
        read_tables(package(tmp_path, 'module = "pkg.kernels"\nsources = ["k/*.mlir"]'))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (f'module = "pkg.kernels"\nsources = ["{"x" * 300}"]', '("pkg.kernels"): key "sources": there is no file "xxx'),
        (
            GOOD + f'options = {{ link = ["{"x" * 300}"] }}',
            '("pkg.kernels"): key "options": link: there is no file xxx',
        ),
        (f'module = "pkg.{"k" * 300}"\nsources = ["*.mlir"]', "is too long for the names of its files"),
    ],
)
def test_names_that_no_file_can_have(table: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(OffloadError) as caught:
        read_tables(package(tmp_path, table))
    assert str(caught.value).startswith(FIRST)
    assert message in str(caught.value)


def test_two_tables_for_one_module(tmp_path: Path) -> None:
    path = package(tmp_path, f"{GOOD}\n[[tool.offload.kernels]]\n{GOOD}")
    with pytest.raises(OffloadError) as caught:
        read_tables(path)
    assert str(caught.value).startswith(
        f'pyproject.toml: [[tool.offload.kernels]] 2 ("pkg.kernels"): key "module": {NAMED} has that name too; '
    )


def test_a_module_inside_of_another(tmp_path: Path) -> None:
    """Python would find the outer one, which is no package, and nothing in it."""
    (tmp_path / "a.mlir").touch()
    table = '[[tool.offload.kernels]]\nmodule = "{}"\nsources = ["a.mlir"]\n'
    (tmp_path / "pyproject.toml").write_text(table.format("p.fast.k") + table.format("p.fast") + table.format("p.fas"))
    with pytest.raises(OffloadError, match=r'1 \("p.fast.k"\): .* p\.fast is the module of .* 2 \("p.fast"\), and no'):
        read_tables(tmp_path / "pyproject.toml")


def test_keys_of_the_whole(tmp_path: Path) -> None:
    with pytest.raises(OffloadError, match=r'unknown key "kernel"; did you mean "kernels"\?'):
        read_tables(package(tmp_path, GOOD, "[tool.offload]\nkernel = 1"))


@pytest.mark.parametrize("text", ["[tool.offload]\nkernels = []", "[tool.offload]\nkernels = 3"])
def test_no_table_at_all(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(OffloadError, match="needs at least one table"):
        read_tables(tmp_path / "pyproject.toml")


def test_a_table_with_one_pair_of_brackets(tmp_path: Path) -> None:
    path = package(tmp_path, GOOD)
    path.write_text(path.read_text().replace("[[tool.offload.kernels]]", "[tool.offload.kernels]"))
    with pytest.raises(OffloadError, match=r"write it with two brackets, \[\[tool\.offload\.kernels\]\]"):
        read_tables(path)


def test_packages_without_kernels_are_left_alone(tmp_path: Path) -> None:
    assert not declares_kernels(tmp_path / "pyproject.toml")
    (tmp_path / "pyproject.toml").write_text("this is not TOML")
    assert not declares_kernels(tmp_path / "pyproject.toml")
    (tmp_path / "pyproject.toml").write_text('dependencies = ["offload"]\n[tool.offload]\nbuild-backend = "x"\n')
    assert not declares_kernels(tmp_path / "pyproject.toml")
    assert declares_kernels(package(tmp_path, GOOD))


def test_a_misspelt_table_is_not_passed_over(tmp_path: Path) -> None:
    path = package(tmp_path, GOOD)
    path.write_text(path.read_text().replace("offload.kernels", "offload.kernel"))
    assert declares_kernels(path)
    with pytest.raises(OffloadError, match=r'unknown key "kernel"; did you mean "kernels"\?'):
        read_tables(path)


# What the build of a table refuses.


def refused(tmp_path: Path, table: str, **options: object) -> OffloadError:
    (read,) = read_tables(package(tmp_path, table))
    with pytest.raises(OffloadError) as caught:
        build_module(read, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert not list((tmp_path / "out").glob("*.so"))
    return caught.value


def test_a_wrong_target(tmp_path: Path) -> None:
    error = refused(tmp_path, GOOD + 'targets = ["nvmm:sm_90"]')
    assert isinstance(error, TargetError)
    assert str(error).startswith(f"{NAMED}: key \"targets\": unknown target 'nvmm'; did you mean 'nvvm'? (there are: ")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('targets = ["host", "host,O=0"]', "two targets for one chip, host:"),
        ('targets = ["host,bare_pointers", "nvvm:sm_90"]', "host:"),
        ('targets = ["host:aarch64", "host:x86-64"]', "host:"),
    ],
)
def test_targets_that_do_not_go_together(keys: str, said: str, tmp_path: Path) -> None:
    assert str(refused(tmp_path, GOOD + keys)).startswith(f'{NAMED}: key "targets": {said}')


def test_two_kernels_of_one_name(tmp_path: Path) -> None:
    path = package(tmp_path, GOOD)
    (tmp_path / "again.mlir").write_text((tmp_path / "saxpy.mlir").read_text())
    (table,) = read_tables(path)
    with pytest.raises(OffloadError) as caught:
        build_module(table, tmp_path / "out")
    assert "saxpy.mlir:2:1: error: " in str(caught.value)
    assert "again.mlir" in str(caught.value)


def test_no_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    error = refused(tmp_path, GOOD + 'targets = ["host", "nvvm:sm_90"]')
    assert isinstance(error, ToolkitError)
    text = str(error)
    assert text.startswith(
        f'{NAMED}: key "targets": ptxas (CUDA) was not found\n  looked in:\n    CUDA_HOME: {tmp_path}/nowhere/'
    )
    assert text.endswith(
        'or leave the target out, or name it in "optional-targets"; a build in isolation has what "requires" in '
        "[build-system] of pyproject.toml names"
    )


def test_a_wrong_target_in_place_of_the_declared_ones(tmp_path: Path) -> None:
    """Not pyproject.toml is to blame."""
    (table,) = read_tables(package(tmp_path, GOOD + 'targets = ["host"]'))
    for targets, message in (["nvmm:sm_90"], "unknown target 'nvmm'"), ([], "are an empty list"):
        with pytest.raises(OffloadError, match=message) as caught:
            build_module(table, tmp_path / "out", targets=targets)
        assert str(caught.value).startswith(
            "pkg.kernels: the targets in place of the declared ones (OFFLOAD_TARGETS, -C "
        )


def test_an_optional_target_without_its_toolkit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    table = GOOD.replace("*.mlir", "saxpy.mlir") + 'targets = ["host"]\noptional-targets = ["nvvm:sm_90"]'
    (read,) = read_tables(package(tmp_path, table))
    said: list[str] = []
    build_module(read, tmp_path / "out", say=said.append)
    assert said[0].startswith("pkg.kernels: left out nvvm:sm_90, which is optional; not found: ptxas (CUDA)")
    assert len(said) == 2


def test_optional_targets_are_beside_the_cpu(tmp_path: Path) -> None:
    table = GOOD.replace("*.mlir", "saxpy.mlir") + 'optional-targets = ["rocdl:gfx942"]'
    (read,) = read_tables(package(tmp_path, table))
    built = artifact.read(build_module(read, tmp_path / "out").library)
    assert [image.target for image in built.images] == ["host", "rocdl"]


def test_a_wrong_optional_target_is_no_missing_one(tmp_path: Path) -> None:
    error = refused(tmp_path, GOOD + 'optional-targets = ["nvmm:sm_90"]')
    assert str(error).startswith(f"{NAMED}: key \"optional-targets\": unknown target 'nvmm'")


def without_kernels(folder: Path, targets: str) -> KernelTable:
    (folder / "plain.mlir").write_text(
        "func.func @two() -> i32 {\n  %c = arith.constant 2 : i32\n  return %c : i32\n}\n"
    )
    path = package(folder, f'module = "pkg.kernels"\nsources = ["plain.mlir"]\ntargets = {targets}')
    (table,) = read_tables(path)
    return table


def test_a_target_for_which_there_is_no_kernel(tmp_path: Path) -> None:
    with pytest.raises(OffloadError) as caught:
        build_module(without_kernels(tmp_path, '["nvvm:sm_90", "host"]'), tmp_path / "out")
    asked = "the sources have no kernel, and these targets were asked for: nvvm:sm_90; leave them out"
    assert str(caught.value) == f"{NAMED}: {asked}"


@pytest.mark.parametrize("instead", [None, ["host"], ["nvvm:sm_80", "host"], ["rocdl:gfx942"]])
def test_functions_alone_are_for_the_cpu(instead: list[str] | None, tmp_path: Path) -> None:
    """Other targets for one build are for all modules of a package: for those that have kernels."""
    built = build_module(without_kernels(tmp_path, '["host"]'), tmp_path / "out", targets=instead)
    assert [function.name for function in artifact.read(built.library).metadata.functions] == ["two"]


@pytest.mark.parametrize("where", ["out", "src/pkg", "python/pkg", "pkg"])
def test_a_file_of_the_authors_is_not_replaced(where: str, tmp_path: Path) -> None:
    """Wherever packages lie that build tools find by themselves; scikit-build-core looks into ``python``, too."""
    own = tmp_path / where / "kernels.py"
    own.parent.mkdir(parents=True)
    own.write_text("mine = 1\n")
    error = refused(tmp_path, GOOD, found_in=FOUND_UNTOLD)
    assert str(error).endswith(f"{where}/kernels.py is there, and offload did not make it; choose another name")
    assert own.read_text() == "mine = 1\n"


def test_a_folder_that_cannot_be_looked_into(tmp_path: Path) -> None:
    """As one of somebody else's, but for every user who runs this."""
    (table,) = read_tables(package(tmp_path, GOOD))
    folder = tmp_path / ("x" * 300)
    with pytest.raises(OffloadError) as caught:
        build_module(table, folder)
    assert str(caught.value) == f"cannot read {folder / 'kernels.py'}: File name too long"


@pytest.mark.parametrize("where", ["out/kernels", "src/pkg/kernels", "python/pkg/kernels", "pkg/kernels"])
def test_a_package_that_python_would_import_instead(where: str, tmp_path: Path) -> None:
    (tmp_path / where).mkdir(parents=True)
    (tmp_path / where / "__init__.py").touch()
    error = refused(tmp_path, GOOD, found_in=FOUND_UNTOLD)
    assert str(error).endswith(
        f"{where}/__init__.py is there, and Python would import that instead; choose another name"
    )


def test_patterns_of_folders(tmp_path: Path) -> None:
    """What a build copied, and what lies in environments, is not the project's."""
    path = package(tmp_path, 'module = "pkg.kernels"\nsources = ["**/*.mlir"]')
    for folder in ("build/lib/pkg", ".venv/lib", "pkg/build"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "more.mlir").touch()
    (table,) = read_tables(path)
    assert table.sources == ("pkg/build/more.mlir", "saxpy.mlir", "scale.mlir")


@pytest.mark.parametrize(("pattern", "found"), [("*.mlir", "saxpy scale"), ("kept/.*.mlir", "kept/.own")])
def test_hidden_files_are_named_by_a_dot(pattern: str, found: str, tmp_path: Path) -> None:
    """As in a shell: an editor's copy beside a file is no source."""
    path = package(tmp_path, f'module = "pkg.kernels"\nsources = ["{pattern}"]')
    (tmp_path / "kept").mkdir()
    for name in (".saxpy.mlir", "kept/.own.mlir"):
        (tmp_path / name).touch()
    (table,) = read_tables(path)
    assert table.sources == tuple(f"{name}.mlir" for name in found.split())


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="** is allowed anywhere there")
def test_a_pattern_that_is_none(tmp_path: Path) -> None:
    path = package(tmp_path, 'module = "pkg.kernels"\nsources = ["**.mlir"]')
    with pytest.raises(OffloadError) as caught:
        read_tables(path)
    assert str(caught.value).startswith(f'{NAMED}: key "sources": "**.mlir" is no pattern: ')


def test_a_link_to_nowhere_is_a_source_that_is_missing(tmp_path: Path) -> None:
    """As a file that git-annex has not fetched: dropped without a word, the module would lack its functions."""
    path = package(tmp_path, 'module = "pkg.kernels"\nsources = ["s*.mlir"]')
    (tmp_path / "shift.mlir").symlink_to("not-fetched.mlir")
    (table,) = read_tables(path)
    assert table.sources == ("saxpy.mlir", "scale.mlir", "shift.mlir")
    with pytest.raises(OffloadError, match=r"shift\.mlir"):
        build_module(table, tmp_path / "out")
