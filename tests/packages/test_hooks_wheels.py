"""The adapters of setuptools and hatchling: what ends up in wheels and sdists, editable installations, settings."""

from __future__ import annotations

import re
import sys
import tarfile
from pathlib import Path

import pytest
from packaging_tools import backend, clean_venv, copy_of, images, in_venv, install, names, run, unpack

SETUPTOOLS, HATCH = "setuptools.build_meta", "offload.hooks.backend"
EXAMPLES = {"setuptools": SETUPTOOLS, "hatchling": HATCH}
OTHERS = {"scikit_build_core": "scikit_build_core.build", "meson_python": "mesonpy"}


def wheel_of(package: Path, folder: Path, name: str, settings: str = "None", **given: object) -> tuple[Path, str]:
    said = backend(package, "build_wheel", folder, name, settings, **given)
    (wheel,) = folder.glob("*.whl")
    return wheel, said


@pytest.mark.parametrize(("name", "front_end"), (EXAMPLES | OTHERS).items())
def test_wheels_are_reproducible(name: str, front_end: str, tmp_path: Path) -> None:
    """In two folders, at two times: the same bytes, and no path of the machine in them."""
    wheels = []
    for place in ("here", "some/where/else"):
        package = copy_of(name, tmp_path / place)
        given = {"SOURCE_DATE_EPOCH": "1700000000", "OFFLOAD_TARGETS": "nvvm:sm_90;host"}
        wheels.append(wheel_of(package, tmp_path / place / "out", front_end, environment=given)[0].read_bytes())
    assert wheels[0] == wheels[1]
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    run(sys.executable, "-m", "zipfile", "-e", next((tmp_path / "here" / "out").glob("*.whl")), unpacked, cwd=tmp_path)
    libraries = list(unpacked.rglob("*.so"))
    assert libraries
    for path in (*libraries, *unpacked.rglob("*.py")):
        assert str(tmp_path).encode() not in path.read_bytes()


def test_targets_of_the_environment(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    given = {"OFFLOAD_TARGETS": "nvvm:sm_80"}
    wheel, said = wheel_of(package, tmp_path / "out", SETUPTOOLS, environment=given)
    assert set(images(wheel, tmp_path)) == {"nvvm:sm_80"}
    # Another choice is another build, the same choice is none.
    assert "(as it was)" in backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS, environment=given)
    said = backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS, environment={"OFFLOAD_TARGETS": "host"})
    assert "(as it was)" not in said
    assert set(images(wheel, tmp_path)) == {"host:x86-64"} or set(images(wheel, tmp_path)) == {"host:generic"}


@pytest.mark.parametrize("given", ["'rocdl:gfx942;nvvm:sm_80'", "['rocdl:gfx942', 'nvvm:sm_80']"])
def test_targets_of_config_settings(given: str, tmp_path: Path) -> None:
    settings = f"{{'offload.targets': {given}}}"
    environment = {"OFFLOAD_TARGETS": "host"}  # the command comes first
    wheel, _ = wheel_of(copy_of("hatchling", tmp_path), tmp_path / "out", HATCH, settings, environment=environment)
    assert images(wheel, tmp_path) == ["rocdl:gfx942", "nvvm:sm_80"]


def test_a_config_setting_without_targets(tmp_path: Path) -> None:
    package, settings = copy_of("hatchling", tmp_path), "{'offload.targets': ';'}"
    said = backend(package, "build_wheel", tmp_path / "out", HATCH, settings, fails=True)
    assert said == "error: config setting offload.targets names no target; leave it out, or name some\n"


def test_config_settings_go_on_to_the_backend_behind(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    settings = "{'offload.targets': 'host', '--build-option': ['--plat-name', 'linux_other']}"
    wheel, _ = wheel_of(package, tmp_path / "out", HATCH, settings)
    assert wheel.name == "vectorops-1.0-py3-none-linux_other.whl"
    assert {image.split(":")[0] for image in images(wheel, tmp_path)} == {"host"}


def test_a_wheel_for_the_pythons_that_its_author_names(tmp_path: Path) -> None:
    settings = "{'--build-option': ['--python-tag', 'py311']}"
    environment = {"OFFLOAD_TARGETS": "host"}
    package = copy_of("setuptools", tmp_path)
    wheel, _ = wheel_of(package, tmp_path / "out", SETUPTOOLS, settings, environment=environment)
    assert wheel.name.startswith("vectorops-1.0-py311-none-linux_")


def test_config_settings_reach_what_the_backend_behind_starts(tmp_path: Path) -> None:
    """CMake asks a process of its own for the modules."""
    package = copy_of("scikit_build_core", tmp_path)
    settings = "{'offload.targets': 'host'}"
    path = package / "pyproject.toml"
    path.write_text(
        path.read_text().replace('"scikit_build_core.build"', '"offload.hooks.backend"')
        + '[tool.offload]\nbuild-backend = "scikit_build_core.build"\n'
    )
    wheel, _ = wheel_of(package, tmp_path / "out", HATCH, settings)
    assert {image.split(":")[0] for image in images(wheel, tmp_path)} == {"host"}


@pytest.mark.parametrize("name", ["hatchling", "scikit_build_core"])
def test_a_backend_that_was_not_told_of_the_kernels(name: str, tmp_path: Path) -> None:
    """Its wheel would be one for any system, with Python files alone."""
    package = copy_of(name, tmp_path)
    path, cmake = package / "pyproject.toml", package / "CMakeLists.txt"
    text = path.read_text().replace("[tool.hatch.build.hooks.offload]", "")
    if name == "scikit_build_core":
        text = text.replace('"scikit_build_core.build"', '"offload.hooks.backend"')
        text += '[tool.offload]\nbuild-backend = "scikit_build_core.build"\n'
        cmake.write_text(cmake.read_text().replace("offload_add_modules()", ""))
    path.write_text(text)
    if name == "hatchling":  # another package's library is not this one
        (package / "src" / "rowwise" / "other").mkdir()
        (package / "src" / "rowwise" / "other" / "kernels.offload.so").write_text("")
    said = backend(package, "build_wheel", tmp_path / "out", HATCH, fails=True)
    assert re.search(
        r'^error: .* \(".*"\): .*\.build made a wheel without \w+/kernels\.offload\.so; setuptools compiles', said, re.M
    )
    assert list((tmp_path / "out").iterdir()) == []


def test_a_package_that_is_misspelt(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    path = package / "pyproject.toml"
    path.write_text(path.read_text().replace('"vectorops.', '"vectorsop.'))
    said = backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS, fails=True)
    assert 'key "module": the project has no package "vectorsop"; did you mean "vectorops.' in said


def test_a_backend_that_is_not_there(tmp_path: Path) -> None:
    package = copy_of("hatchling", tmp_path)
    path = package / "pyproject.toml"
    text = path.read_text()
    for named, message in (
        ("hatchlin.build", '[tool.offload]: build-backend: there is no backend "hatchlin.build" here; "requires" in '),
        ("hatchling.build:nothing", 'there is no backend "hatchling.build:nothing" here'),
        ("offload.hooks.backend", 'build-backend is the backend behind this one, as "hatchling.build", not '),
    ):
        path.write_text(re.sub(r'(\[tool\.offload\]\n)build-backend = ".*"', rf'\1build-backend = "{named}"', text))
        assert f'"{named}"' in path.read_text()
        said = backend(package, "build_wheel", tmp_path / "out", HATCH, fails=True)
        assert message in said
        assert "Traceback" not in said


def test_targets_in_the_table_of_hatchling_s_hook(tmp_path: Path) -> None:
    package = copy_of("hatchling", tmp_path)
    path = package / "pyproject.toml"
    table = "[tool.hatch.build.hooks.offload]\nenable-by-default = true\n"
    path.write_text(path.read_text().replace("[tool.hatch.build.hooks.offload]\n", f'{table}targets = ["host"]\n'))
    said = backend(package, "build_wheel", tmp_path / "out", HATCH, fails=True)
    assert '[tool.hatch.build.hooks.offload]: unknown key "targets": what to build, and for what, stands in [[' in said
    path.write_text(path.read_text().replace(f'{table}targets = ["host"]\n', table))
    wheel_of(package, tmp_path / "out", HATCH, "{'offload.targets': 'host'}")


def test_an_unknown_config_setting(tmp_path: Path) -> None:
    said = backend(
        copy_of("hatchling", tmp_path), "build_wheel", tmp_path / "out", HATCH, "{'offload.target': 'host'}", fails=True
    )
    assert (
        said
        == "error: unknown config setting offload.target; did you mean offload.targets? (there are: offload.targets)\n"
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_errors_are_told_without_a_traceback(name: str, tmp_path: Path) -> None:
    package = copy_of(name, tmp_path)
    path = package / "pyproject.toml"
    path.write_text(path.read_text().replace("sources = ", "source = "))
    said = backend(package, "build_wheel", tmp_path / "out", EXAMPLES[name], fails=True)
    assert 'pyproject.toml: [[tool.offload.kernels]] 1: unknown key "source"; did you mean "sources"?' in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", EXAMPLES)
def test_sdists_hold_the_sources_and_build(name: str, tmp_path: Path) -> None:
    package = copy_of(name, tmp_path)
    backend(package, "build_editable", tmp_path / "editable", EXAMPLES[name], environment={"OFFLOAD_TARGETS": "host"})
    assert list(package.rglob("kernels.py"))
    ignored = "kernels.py\nkernels.pyi\n*.so\n"  # hatchling leaves out what git ignores, setuptools knows itself
    (package / ".gitignore").write_text(ignored if name == "hatchling" else "")
    backend(package, "build_sdist", tmp_path / "out", EXAMPLES[name])
    (sdist,) = (tmp_path / "out").glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        held = {entry.split("/", 1)[-1] for entry in file.getnames()}
        assert {path.relative_to(package).as_posix() for path in package.rglob("*.mlir")} <= held
        assert not [entry for entry in held if "kernels." in entry]
        file.extractall(tmp_path / "from")
    (unpacked,) = (tmp_path / "from").iterdir()
    wheel, _ = wheel_of(unpacked, tmp_path / "out", EXAMPLES[name], environment={"OFFLOAD_TARGETS": "host"})
    assert [entry for entry in names(wheel) if entry.endswith("kernels.offload.so")]


def test_an_editable_installation_follows_its_sources(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    python = clean_venv(tmp_path / "venv")
    backend(package, "build_editable", tmp_path / "out", SETUPTOOLS, environment={"OFFLOAD_TARGETS": "host"})
    (wheel,) = (tmp_path / "out").glob("*.whl")
    install(python, wheel, cwd=tmp_path)

    def show(code: str) -> str:
        return in_venv(python, "-c", code, cwd=tmp_path)

    show_scale = "import numpy as np, vectorops.kernels as k; x = np.ones(3, np.float32); k.scale(2, x); print(x[0])"
    assert show(show_scale) == "2.0\n"
    assert show("import vectorops; print(vectorops.__file__)").startswith(str(package))
    source = package / "src" / "vectorops" / "scale.mlir"
    changed = source.read_text().replace("arith.mulf %a, %xi", "arith.addf %a, %xi")
    source.write_text(changed)
    said = show(show_scale)
    assert said.startswith("vectorops.kernels: kernels.offload.so, ")
    assert said.endswith("3.0\n")
    assert "nvvm" not in said  # the targets are those of the installation
    assert show(show_scale) == "3.0\n"
    # A new source brings a new function; a broken one is an error with its line, every time.
    (source.parent / "third.mlir").write_text(source.read_text().replace("@scale", "@third"))
    assert show("import vectorops.kernels as k; print(k.__all__)").endswith("['library', 'saxpy', 'scale', 'third']\n")
    (source.parent / "third.mlir").write_text("func.func @third( {}\n")
    for _ in range(2):
        done = run(python, "-c", "import vectorops.kernels", cwd=tmp_path, environment={"PYTHONPATH": ""}, fails=True)
        assert "ImportError: vectorops.kernels is installed as editable and has changed; building" in done.stdout
        assert "src/vectorops/third.mlir:1:" in done.stdout


def test_an_editable_installation_without_its_tools(tmp_path: Path) -> None:
    package = copy_of("hatchling", tmp_path)
    given = {"OFFLOAD_TARGETS": "nvvm:sm_90;host"}
    backend(package, "build_editable", tmp_path / "out", HATCH, environment=given)
    python = clean_venv(tmp_path / "venv")
    unpack(next((tmp_path / "out").glob("*.whl")), python)
    nowhere = {"PYTHONPATH": "", "CUDA_HOME": str(tmp_path / "nowhere")}
    assert run(python, "-c", "import rowwise.kernels", cwd=tmp_path, environment=nowhere).stdout == ""
    source = package / "src" / "rowwise" / "softmax.mlir"
    source.write_text(source.read_text() + "\n")
    done = run(python, "-c", "import rowwise.kernels", cwd=tmp_path, environment=nowhere, fails=True)
    assert (
        "ImportError: rowwise.kernels is installed as editable and its sources have changed, but it cannot be built"
        in (done.stdout)
    )
    assert done.stdout.rstrip().endswith("or build it again where its tools are: pip install -e .")


@pytest.mark.parametrize(
    "given",
    ['ext_modules=[OffloadExtension("vectorops.fast"', 'ext_package="vectorops", ext_modules=[OffloadExtension("fast"'],
    ids=["its whole name", "ext_package"],
)
def test_a_setup_py_with_an_extension(given: str, tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    path = package / "pyproject.toml"
    path.write_text(path.read_text().split("[[tool.offload.kernels]]")[0])
    (package / "setup.py").write_text(
        "from setuptools import setup\nfrom offload.hooks.setuptools import OffloadExtension\n"
        f'setup({given}, ["src/vectorops/*.mlir"], targets=["host"], options={{"opt": 2}})])\n'
    )
    wheel, said = wheel_of(package, tmp_path / "out", SETUPTOOLS)
    assert "py3-none-" in wheel.name
    assert {"vectorops/fast.py", "vectorops/fast.pyi", "vectorops/fast.offload.so"} <= names(wheel)
    backend(package, "build_editable", tmp_path / "editable", SETUPTOOLS)
    assert "refresh" not in (package / "src" / "vectorops" / "fast.py").read_text()  # which reads pyproject.toml
    (package / "setup.py").write_text((package / "setup.py").read_text().replace('"opt"', '"optt"'))
    said = backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS, fails=True)
    assert (
        'setup.py: OffloadExtension ("vectorops.fast"): key "options": unknown key "optt"; did you mean "opt"?' in said
    )


def test_beside_an_extension_in_c_the_wheel_is_for_one_python(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    (package / "plain.c").write_text(
        "#include <Python.h>\n"
        'static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "plain", NULL, -1, NULL};\n'
        "PyMODINIT_FUNC PyInit_plain(void) { return PyModule_Create(&module); }\n"
    )
    (package / "setup.py").write_text(
        "from setuptools import Extension, setup\nsetup(ext_modules=[Extension('vectorops.plain', ['plain.c'])])\n"
    )
    wheel, _ = wheel_of(package, tmp_path / "out", SETUPTOOLS, environment={"OFFLOAD_TARGETS": "host"})
    assert "py3-none" not in wheel.name
    assert {"vectorops/kernels.py", "vectorops/kernels.offload.so"} <= names(wheel)
    assert [entry for entry in names(wheel) if entry.startswith("vectorops/plain.")]


def test_a_change_of_one_module_compiles_one(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    path = package / "pyproject.toml"
    source = (package / "src" / "vectorops" / "scale.mlir").read_text()
    tables = []
    for number in range(10):
        (package / "src" / "vectorops" / f"k{number}.mlir").write_text(source)
        tables.append(
            f'[[tool.offload.kernels]]\nmodule = "vectorops.k{number}"\nsources = ["src/vectorops/k{number}.mlir"]\n'
        )
    path.write_text(path.read_text().split("[[tool.offload.kernels]]")[0] + "\n".join(tables))
    said = backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS)
    assert said.count(".offload.so, ") == 10
    assert "(as it was)" not in said
    (package / "src" / "vectorops" / "k3.mlir").write_text(source.replace("mulf", "addf"))
    said = backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS)
    assert said.count("(as it was)") == 9
    assert "vectorops.k3: k3.offload.so, " in said


def test_packages_without_kernels_are_built_as_ever(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    path = package / "pyproject.toml"
    path.write_text(path.read_text().split("[[tool.offload.kernels]]")[0])
    wheel, said = wheel_of(package, tmp_path / "out", SETUPTOOLS)
    assert wheel.name == "vectorops-1.0-py3-none-any.whl"
    assert "build_offload" not in said


def test_an_older_setuptools_loads_the_plugin(tmp_path: Path) -> None:
    """58 has no SetupError: every package's build failed where offload was installed."""
    code = (
        "import setuptools.errors\ndel setuptools.errors.SetupError\nimport offload.hooks.setuptools as hook\n"
        "print(hook.SetupError.__name__)"
    )
    assert run(sys.executable, "-c", code, cwd=tmp_path).stdout == "DistutilsSetupError\n"
