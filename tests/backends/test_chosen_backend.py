"""`offload.backend`: what runs, and why, with the drivers that are here and with stand-ins."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from compiling import EXAMPLES, PROGRAMS, command, python
from offload.targets.host import HostTarget

import offload
from offload.config import BACKEND_ALIASES
from offload.runtime import backends
from offload.runtime.native import Native

SAY = "import offload; found = offload.backend(); print(found, len(found.devices), found.why, sep='|')"


def said(tmp_path: Path, code: str = SAY, **environment: str) -> list[str]:
    return python(code, cwd=tmp_path, environment=environment).strip().split("|")


def test_the_first_that_has_a_device(drivers: Path, tmp_path: Path) -> None:
    name, count, why = said(tmp_path, LD_LIBRARY_PATH=str(drivers), STANDIN_DEVICES="2")
    assert (name, count) == ("cuda", "2")
    assert why.startswith("it is the first of cuda, hip, host with a device here: ")
    assert why.count("(sm_") == 2


def test_why_the_others_are_not(drivers: Path, tmp_path: Path) -> None:
    name, count, why = said(tmp_path, LD_LIBRARY_PATH=str(drivers), STANDIN_DEVICES="0")
    assert (name, count) == ("host", "1")
    assert "; cuda: " in why
    assert "CUDA_ERROR_NO_DEVICE" in why
    assert "; hip: " in why


def test_what_was_chosen(drivers: Path, tmp_path: Path) -> None:
    with_drivers = {"LD_LIBRARY_PATH": str(drivers), "STANDIN_DEVICES": "1"}
    name, _, why = said(tmp_path, OFFLOAD_BACKEND="hip", **with_drivers)
    assert (name, why) == ("hip", 'OFFLOAD_BACKEND is "hip"')
    name, _, why = said(tmp_path, f"import offload; offload.use('host'); {SAY}", OFFLOAD_BACKEND="hip", **with_drivers)
    assert (name, why) == ("host", 'offload.use("host") chose it')
    name, _, why = said(tmp_path, f"import offload; offload.use('host'); offload.use(None); {SAY}", **with_drivers)
    assert name == "cuda"


def test_what_is_not_there(tmp_path: Path) -> None:
    code = """
import offload
for name in "metal", "cuda", 5:
    try:
        offload.use(name)
    except (offload.DeviceError, TypeError) as error:
        print(error)
print(repr(offload.backend()))
"""
    unknown, absent, wrong, found = python(code, cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host"}).splitlines()
    assert unknown == 'use() asks for the backend "metal", which is unknown; known are cuda, hip and host.'
    assert absent.startswith('use() asks for the backend "cuda", which has no device here: ')
    assert wrong == "the name of a backend is a str, not int"
    assert found == """<Backend 'host': OFFLOAD_BACKEND is "host">"""


def test_what_is_not_there_is_told_with_what_is(built: dict[str, Path], tmp_path: Path) -> None:
    """A library of several modules says its images once."""
    code = """
import sys, numpy, offload
library = offload.load(sys.argv[1])
try:
    library.device
    library.device.array(numpy.zeros(1))
except offload.DeviceError as error:
    print(error)
"""
    said = python(code, built["linear"], cwd=tmp_path, environment={"OFFLOAD_BACKEND": "cuda"})
    assert 'OFFLOAD_BACKEND asks for the backend "cuda", which has no device here: ' in said
    chips = ["nvvm sm_90", "rocdl gfx942", f"host {HostTarget.default_chip()}"]
    assert f" Images: {', '.join(f'{chip} bin' for chip in chips)}. Devices: cuda none (" in said
    assert "; host:0 " in said


@pytest.mark.parametrize(("alias", "name"), BACKEND_ALIASES.items())
def test_other_names_of_backends(alias: str, name: str, drivers: Path, tmp_path: Path) -> None:
    """Wherever a backend is named: in the environment, in Python, on the command line."""
    there = {"LD_LIBRARY_PATH": str(drivers), "STANDIN_DEVICES": "1"}
    assert said(tmp_path, OFFLOAD_BACKEND=alias, **there) == [name, "1", f'OFFLOAD_BACKEND is "{alias}"']
    assert said(tmp_path, f"import offload; offload.use({alias!r}); {SAY}", **there)[0] == name
    path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", targets=["host"])
    code = f"import offload; lib = offload.load({str(path)!r}); lib.use({alias!r}); print(lib.backend)"
    assert python(code, cwd=tmp_path, environment=there).strip() == name
    done = command("run", PROGRAMS / "prints.mlir", "--backend", alias, cwd=tmp_path)
    assert done.returncode == 1
    assert f'--backend asks for the backend "{alias}", which has no device here: ' in done.stderr


def test_each_thread_is_told_of_what_it_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """They ask one runtime, in which a backend is in use."""

    class Asked:
        name = ""
        api = SimpleNamespace()

        def use(self, name: str) -> None:
            self.name = name
            time.sleep(0.01)

        def backend(self) -> str:
            return self.name

    asked, found = Asked(), {}
    monkeypatch.setattr(backends, "_runtime", lambda: asked)
    monkeypatch.setattr(backends, "all_devices", lambda native: [])

    def ask(name: str) -> None:
        found[name] = str(backends.backend_in_use(name))

    names = [f"backend {number}" for number in range(8)]
    threads = [threading.Thread(target=ask, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {name: name for name in names}


def test_a_library_that_is_loaded_meanwhile_is_told_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, other = (offload.build(EXAMPLES / "saxpy.mlir", tmp_path / f"{name}.so", targets="host") for name in "st")
    first = offload.load(path)
    told: list[tuple[str, str | None]] = []
    loading: list[threading.Thread] = []
    use = Native.use

    def noted(native: Native, backend: str | None) -> None:
        if native is first._native and not loading:  # another thread loads one while all are being told
            loading.append(threading.Thread(target=offload.load, args=[other]))
            loading[0].start()
            loading[0].join(0.5)
        told.append((native.file, backend))
        use(native, backend)

    monkeypatch.setattr(Native, "use", noted)
    try:
        offload.use("host")
        loading[0].join()
        assert [backend for file, backend in told if file == str(other)] == ["host"]
    finally:
        monkeypatch.undo()
        offload.use(None)


TOLD = """
import pickle, sys, offload
function = offload.load(sys.argv[1]).saxpy
print(function._native.backend())
offload.use("host")
print(function._native.backend())
library = offload.load(sys.argv[1])
library.use("cuda")
pickle.loads(pickle.dumps(library.saxpy))
print(library.backend)
offload.use("host")
print(library.backend)
"""


def test_functions_without_their_library_are_told_and_loading_it_again_tells_nobody(
    drivers: Path, built: dict[str, Path], tmp_path: Path
) -> None:
    """`offload.load(path).saxpy` stayed on the backend that it had; unpickling a function of a library undid what that
    library's own `use` had said."""
    there = {"LD_LIBRARY_PATH": str(drivers), "STANDIN_DEVICES": "1"}
    assert python(TOLD, built["saxpy"], cwd=tmp_path, environment=there).split() == ["cuda", "host", "cuda", "host"]


def test_a_name_with_a_nul() -> None:
    for name, shown in (("host\0x", r"host\0x"), ("\ud800", r"\ud800")):
        with pytest.raises(offload.DeviceError) as raised:
            offload.use(name)
        assert (
            str(raised.value)
            == f'use() asks for the backend "{shown}", which is unknown; known are cuda, hip and host.'
        )


def test_a_with_is_left_where_it_was_entered(built: dict[str, Path]) -> None:
    """As that of a generator which the collector ends in another thread; it was a bare KeyError."""
    library = offload.load(built["saxpy"])
    library.use("host")
    for entered in (library.stream(), library.device):
        with pytest.raises(RuntimeError, match=r"^this thread is in no 'with' of a device or stream: one is left in"):
            entered.__exit__(None, None, None)
        thread = threading.Thread(target=entered.__enter__)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match=r"^this thread is in no 'with'"):
            entered.__exit__(None, None, None)
        with entered, entered:
            pass
