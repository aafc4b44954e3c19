"""Settings for all tests: a cache of their own, no settings of the user's, examples and stand-in drivers built once."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from emulator.driver import Driver

settings.register_profile("offload", deadline=None, derandomize=True)
settings.load_profile("offload")


def pytest_configure() -> None:
    """Tests send Ctrl-C, which a shell that runs them in the background has all of them ignore."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="the long forms of tests that else do a part")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the long forms are asked for."""
    return bool(request.config.getoption("--full"))


def pytest_collection_finish() -> None:
    """Twelve thousand tests stay as long as the process: a garbage collector that looks at each takes a second."""
    gc.freeze()


def pytest_report_header() -> str:
    """Says what runs where, so that a green run is not taken for one on hardware."""
    from compiling import backends_here

    here = backends_here()
    absent = [backend for backend in ("cuda", "hip", "host") if backend not in here]
    return f"offload backends: {', '.join(here)}" + (f"; not run, no device: {', '.join(absent)}" if absent else "")


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's cache is neither read nor filled, and the user's choices do not change what is tested.

    The processes of a run have one cache: what one has compiled no other compiles again."""
    from once import of_the_run

    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("OFFLOAD_")]:
            patch.delenv(name)
        patch.setenv("OFFLOAD_CACHE_DIR", str(of_the_run(tmp_path_factory) / "cache"))
        patch.setenv("PYTHONWARNINGS", "error::ResourceWarning")
        yield


@pytest.fixture(scope="module", autouse=True)
def young_garbage() -> None:
    """What earlier modules keep (libraries, the emulators' tables) no collector looks at again: it becomes gigabytes,
    and there are tests that collect a hundred times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def no_cache() -> Iterator[None]:
    """Every build of the module compiles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OFFLOAD_CACHE_DIR", "")
        yield


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """The cache's warnings so far."""
    from caching import told

    from offload.cache import cache

    monkeypatch.setattr(cache, "_said", set())
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield lambda: told(found)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Once called, every build fails."""
    from caching import Refused

    from offload.compiler import parallel

    def refuse(*_: object, **__: object) -> None:
        raise Refused

    def forbid() -> None:
        monkeypatch.setattr(parallel, "build", refuse)

    return forbid


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """Imports a module of the benchmarks."""
    from compiling import ROOT

    folder = str(ROOT / "bench")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(folder)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every example as one shared library for NVIDIA, AMD and the CPU, by name."""
    from compiling import ALL_TARGETS, EXAMPLES

    import offload

    folder = tmp_path_factory.mktemp("examples")
    return {
        path.stem: offload.build(path, folder / f"{path.stem}.so", targets=ALL_TARGETS)
        for path in sorted(EXAMPLES.glob("*.mlir"))
    }


@pytest.fixture
def driver() -> Iterator[Driver]:
    """The emulated AMD devices of this process; what went wrong on them is an error at the test's end."""
    from emulator.driver import shared

    yield shared()
    shared().check()


@pytest.fixture
def cuda() -> Iterator[Driver]:
    """The emulated NVIDIA devices of this process."""
    from emulator.driver import shared

    yield shared("cuda")
    shared("cuda").check()


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, for LD_LIBRARY_PATH, with stand-in drivers under the names of the vendors' libraries, and kernels.so,
    which runs kernels for them."""
    from compiling import HERE, ROOT

    folder = tmp_path_factory.mktemp("drivers")
    names = {"libcuda.c": "libcuda.so.1", "libamdhip64.c": "libamdhip64.so.6", "kernels.c": "kernels.so"}
    for source, name in names.items():
        command = ["cc", "-shared", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", "-I", ROOT / "runtime_c"]
        subprocess.run([*command, HERE / "standin" / source, "-o", folder / name], check=True)
    return folder
