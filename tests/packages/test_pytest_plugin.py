"""The pytest plugin: the fixture and the markers, what is not run, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import os
import pytest
import offload

def test_each(offload_backend):
    assert offload.backend() == offload_backend == os.environ["OFFLOAD_BACKEND"]

@pytest.mark.cuda
def test_cuda():
    assert offload.backend() == "cuda"

@pytest.mark.rocm
def test_rocm(offload_backend):
    assert offload.backend() == offload_backend == "hip"

def test_plain():
    assert "OFFLOAD_BACKEND" not in os.environ or os.environ["OFFLOAD_BACKEND"] == "host"
"""
NO_CUDA = "libcuda.so.1 cannot be loaded"
NO_HIP = "libamdhip64.so.7, libamdhip64.so.6 and libamdhip64.so.5 cannot be loaded"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with tests of all kinds, and the file of pytest's settings."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")
    return tmp_path


def run(folder: Path, *options: str, code: int = 0, **variables: str | Path) -> str:
    """What pytest says in a process of its own, with this plugin alone unless options name others."""
    environment = {**os.environ, "COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.update({name: str(value) for name, value in variables.items()})
    command = [sys.executable, "-m", "pytest", *options]
    if environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]:
        command += ["-p", "offload.hooks.pytest_plugin"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def no_drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for LD_LIBRARY_PATH with libraries under the vendors' names that cannot be loaded: as on a machine that
    has none, whatever this one has."""
    folder = tmp_path_factory.mktemp("no_drivers")
    for name in ("libcuda.so.1", *(f"libamdhip64.so.{version}" for version in (7, 6, 5))):
        (folder / name).write_bytes(b"")
    return folder


def test_absent_devices_are_told_and_counted(project: Path, no_drivers: Path) -> None:
    said = run(project, "-v", LD_LIBRARY_PATH=no_drivers)
    assert [line.split(" [ ")[0].split(" [1")[0].rstrip() for line in said.splitlines() if "test_it.py::" in line] == [
        f"test_it.py::test_each[cuda] NOT RUN (not run on cuda: {NO_CUDA})",
        f"test_it.py::test_each[hip] NOT RUN (not run on hip: {NO_HIP})",
        "test_it.py::test_each[host] PASSED",
        f"test_it.py::test_cuda NOT RUN (not run on cuda: {NO_CUDA})",
        f"test_it.py::test_rocm[hip] NOT RUN (not run on hip: {NO_HIP})",
        "test_it.py::test_plain PASSED",
    ]
    assert f"host: 1 ran\ncuda: 2 not run: {NO_CUDA}\nhip: 2 not run: {NO_HIP}\n" in said
    assert "= 2 passed, 4 not run in " in said


def test_devices_that_are_there_are_used(project: Path, drivers: Path) -> None:
    """On stand-ins for the vendors' drivers: each test on its own backend, and all as before after it."""
    said = run(project, LD_LIBRARY_PATH=drivers)
    assert "test_it.py ......" in said
    assert "not run" not in said


OLDER = """
import pluggy
now = pluggy.HookimplMarker.__call__
def before(self, function=None, hookwrapper=False, optionalhook=False, tryfirst=False, trylast=False):
    return now(self, function, hookwrapper, optionalhook, tryfirst, trylast)
pluggy.HookimplMarker.__call__ = before
"""
NO_STASH = "import pytest\ndel pytest.StashKey\n"
NO_NONE = """
import pytest
now = pytest.Config.getini
def getini(self, name):
    value = now(self, name)
    return [] if name == "offload_markers" and value is None else value
pytest.Config.getini = getini
"""


@pytest.mark.parametrize(
    "change", [OLDER, NO_STASH, NO_NONE], ids=["the pluggy of Debian 12", "pytest 6.2", "the pytest of Debian 12"]
)
def test_older_versions(change: str, project: Path, no_drivers: Path) -> None:
    """What is loaded in every project may want nothing that they have not: no test of any of them would run."""
    (project / "older.py").write_text(change)
    assert "2 passed, 4 not run" in run(project, "-p", "older", LD_LIBRARY_PATH=no_drivers)


def test_processes_of_xdist_tell_it_too(project: Path, no_drivers: Path) -> None:
    said = run(project, "-p", "xdist", "-n", "1", LD_LIBRARY_PATH=no_drivers)
    assert f"cuda: 2 not run: {NO_CUDA}\n" in said
    assert "= 2 passed, 4 not run in " in said


@pytest.mark.parametrize(
    ("option", "counted"),
    [
        ("--offload-backend=host", "2 passed, 2 not run"),  # the markers' tests
        ("--offload-backend=host,rocm", "2 passed, 3 not run"),
        ("--offload-require=host,", "2 passed, 4 not run"),
    ],
)
def test_chosen_backends(option: str, counted: str, project: Path, no_drivers: Path) -> None:
    assert f"= {counted} in " in run(project, option, LD_LIBRARY_PATH=no_drivers)


def test_the_variable_chooses_too(project: Path, no_drivers: Path) -> None:
    said = run(project, LD_LIBRARY_PATH=no_drivers, OFFLOAD_BACKEND="host")
    assert "= 2 passed, 2 not run in " in said
    assert "cuda: 1 not run: OFFLOAD_BACKEND is host\n" in said


def test_a_wrong_variable_is_told_where_it_matters(project: Path) -> None:
    said = run(project, code=2, OFFLOAD_BACKEND="mps")
    assert "\nOFFLOAD_BACKEND: there is no backend 'mps' (there are: cuda, hip, host, rocm, all)\n" in said
    assert "pytest_plugin.py" not in said
    (project / "test_it.py").write_text("def test_plain(): pass\n")
    assert "= 1 passed in " in run(project, OFFLOAD_BACKEND="mps")


def test_a_run_of_nothing_is_not_green(project: Path, no_drivers: Path) -> None:
    said = run(project, "-k", "cuda", code=5, LD_LIBRARY_PATH=no_drivers)
    assert "= 4 deselected, 2 not run in " in said
    said = run(project, "-p", "xdist", "-n", "1", "-k", "cuda", code=5, LD_LIBRARY_PATH=no_drivers)
    assert "= 2 not run in " in said


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--offload-require=cuda", f"ERROR: --offload-require=cuda: this machine has no such device: {NO_CUDA}"),
        ("--offload-require=rocm", f"ERROR: --offload-require=hip: this machine has no such device: {NO_HIP}"),
        (
            "--offload-backend=mps",
            "ERROR: --offload-backend: there is no backend 'mps' (there are: cuda, hip, host, rocm, all)",
        ),
        ("--offload-backend=,", "ERROR: --offload-backend names no backend: ','"),
    ],
)
def test_what_stops_pytest(option: str, message: str, project: Path, no_drivers: Path) -> None:
    assert message in run(project, option, code=4, LD_LIBRARY_PATH=no_drivers)


def test_a_required_device_that_is_there(project: Path, drivers: Path) -> None:
    assert "6 passed" in run(project, "--offload-require=cuda,rocm", LD_LIBRARY_PATH=drivers)


OWN = "def test_here(): pass\nimport pytest\n@pytest.mark.cuda\ndef test_cuda(): pass\n"


@pytest.mark.parametrize(
    ("settings", "pyproject", "expected"),
    [
        ("", "", "1 passed, 1 not run"),
        ("markers =\n    cuda: for us", "", "2 passed"),
        ("markers =\n    cuda(index): for us\noffload_markers = true", "", "1 passed, 1 not run"),
        ("markers =\n    cuda", "[[tool.offload.kernels]]\nmodule = 'a'", "1 passed, 1 not run"),
        ("offload_markers = false", "", "2 passed"),
    ],
)
def test_markers_of_the_project_itself(
    settings: str, pyproject: str, expected: str, project: Path, no_drivers: Path
) -> None:
    (project / "test_it.py").write_text(OWN)
    (project / "pytest.ini").write_text(f"{(project / 'pytest.ini').read_text()}{settings}\n")
    (project / "pyproject.toml").write_text(pyproject)
    assert f"= {expected} in " in run(project, LD_LIBRARY_PATH=no_drivers)


def test_projects_that_do_not_use_it_pay_nothing(project: Path) -> None:
    """What the plugin loads: nothing of the runtime, no NumPy; it adds no line to what pytest says."""
    (project / "test_it.py").write_text(
        "import sys\n"
        "def test_plain():\n"
        "    loaded = [name for name in sys.modules if name.split('.')[0] in ('offload', 'numpy')]\n"
        "    assert sorted(loaded) == ['offload', 'offload._version', 'offload.config',\n"
        "        'offload.errors', 'offload.hooks', 'offload.hooks.pytest_plugin']\n"
    )
    said = run(project, "-p", "no:hypothesispytest", PYTEST_DISABLE_PLUGIN_AUTOLOAD="")
    assert "plugins: " in said  # found as pytest finds plugins
    assert [
        line for line in said.splitlines() if "offload" in line and not line.startswith(("plugins:", "rootdir"))
    ] == []


def test_a_device_that_fails_is_a_failed_test(project: Path, drivers: Path) -> None:
    """Only an absent device is not run."""
    (project / "test_it.py").write_text(
        "import offload\ndef test_each(offload_backend):\n    offload.use('no such backend')\n    offload.backend()\n"
    )
    said = run(project, "--offload-backend=cuda", code=1, LD_LIBRARY_PATH=drivers)
    assert "= 1 failed in " in said


def test_the_fixture_is_an_argument(project: Path) -> None:
    """A test that asks for it while it runs is one test: it cannot run once on each backend."""
    (project / "test_it.py").write_text("def test_asks(request):\n    request.getfixturevalue('offload_backend')\n")
    said = run(project, code=1)
    assert "offload_backend runs a test once on each backend: make it an argument of the test" in said
    assert "Error:" not in said


def test_backends_that_a_test_names_itself(project: Path, no_drivers: Path) -> None:
    """They were a second parametrization, which pytest refuses, and with it every test of the file."""
    named = '@pytest.mark.parametrize("{}", [{}], indirect=["offload_backend"])\ndef test_{}({}):\n    {}\n'
    right = "assert offload.backend() == offload_backend"
    (project / "test_it.py").write_text(
        "import offload\nimport pytest\n"
        + named.format("offload_backend", '"host", "cuda"', "named", "offload_backend", right)
        + named.format("n, offload_backend", '(1, "host"), (2, "host")', "pairs", "n, offload_backend", right)
        + named.format("offload_backend", '"gpu", "all"', "wrong", "offload_backend", "pass")
        + named.format("offload_backend", "", "none", "offload_backend", "pass")
        + named.format(
            "offload_backend", 'pytest.param("vulkan", marks=pytest.mark.skip(reason="later")), '
            'pytest.param("metal", marks=pytest.mark.xfail)', "later", "offload_backend", "pass",
        )
    )  # fmt: skip
    said = run(project, code=1, LD_LIBRARY_PATH=no_drivers)
    assert "offload_backend: there is no backend 'gpu' (there are: cuda, hip, host, rocm, all)" in said
    assert "offload_backend is one backend, not 'all'" in said
    assert f"cuda: 1 not run: {NO_CUDA}" in said
    assert "= 3 passed, 2 skipped, 1 xfailed, 2 errors, 1 not run in " in said


def test_a_backend_that_is_none_in_the_place_of_the_fixture(project: Path, no_drivers: Path) -> None:
    """Without ``indirect`` the fixture does not run: such a test ran on any backend."""
    (project / "test_it.py").write_text(
        'import pytest\n@pytest.mark.parametrize("offload_backend", ["gpu"])\ndef test_named(offload_backend): pass\n'
    )
    said = run(project, code=1, LD_LIBRARY_PATH=no_drivers)
    assert "offload_backend: there is no backend 'gpu'" in said
    assert "= 1 error in " in said


def test_a_backend_by_its_other_name(project: Path, drivers: Path) -> None:
    (project / "test_it.py").write_text(
        "import offload\nimport pytest\n"
        '@pytest.mark.parametrize("offload_backend", ["rocm"], indirect=True)\n'
        'def test_named(offload_backend): assert offload.backend() == offload_backend == "hip"\n'
    )
    assert "= 1 passed in " in run(project, LD_LIBRARY_PATH=drivers)
