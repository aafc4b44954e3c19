"""Builds the C runtime, its test program and the stand-in drivers with cc, and runs them: plainly, with the
address and undefined-behaviour sanitizers, and with the thread sanitizer. The compiler is CC, or cc."""

from __future__ import annotations

import concurrent.futures
import ctypes.util
import itertools
import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from compiling import ROOT
from once import once
from runtime_sources import COMPILER, RUNTIME, cc, object_name, sources

TESTS = ROOT / "tests" / "runtime_c"
STANDIN = ROOT / "tests" / "standin"

SANITIZERS = {
    "plain": [],
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"],
    "thread": ["-fsanitize=thread"],
}


@dataclass(frozen=True)
class Built:
    """One build: the test program, the host image, a library with the runtime inside, folders of stand-ins."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "mgpu_test"

    @property
    def image(self) -> Path:
        return self.folder / "host_kernels.so"

    @property
    def artifact(self) -> Path:
        return self.folder / "artifact.so"

    def run(self, *arguments: str, standins: str = "standin", timeout: float = 60, **environment: str) -> str:
        """Run a group of tests; returns what it printed. Fails the test, with the output, if it fails."""
        env = {k: v for k, v in os.environ.items() if k not in ("OFFLOAD_BACKEND", "LD_LIBRARY_PATH")}
        env |= {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1"}
        env |= {"TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0:allocator_may_return_null=1"}
        env |= {"LD_LIBRARY_PATH": str(self.folder / standins)} if standins else {}
        command = [str(self.program), *arguments]
        done = subprocess.run(command, env=env | environment, capture_output=True, text=True, timeout=timeout)
        # The tests ask for too much memory on purpose; the sanitizers remark on it.
        lines = (done.stdout + done.stderr).splitlines(keepends=True)
        output = "".join(line for line in lines if "Sanitizer failed to allocate" not in line)
        assert done.returncode == 0, f"{shlex.join(command)} exited with {done.returncode}\n{output}"
        return output


STANDINS = {
    "standin": ["libcuda.so.1", "libamdhip64.so.6", "libcusparse.so.12", "libcusparseLt.so.0", "libhipsparse.so.4"],
    "drivers": ["libcuda.so.1", "libamdhip64.so.6"],
    "old": ["libamdhip64.so.6", "libhipsparse.so.0"],
}
"""What is in each folder of stand-ins. The libhipsparse.so.0 is an old version."""


def build(folder: Path, sanitizer: str) -> None:
    extra = SANITIZERS[sanitizer]
    for name in STANDINS:
        (folder / name).mkdir()
    built = Built(folder)
    runtime = {source: folder / object_name(source) for source in sources()}
    tests = {s: folder / f"{s.stem}.o" for s in sorted(TESTS.glob("*.c")) if s.stem not in ("artifact", "host_kernels")}
    jobs = [("-DMGPU_API=", "-c", source, "-o", to) for source, to in (runtime | tests).items()]
    jobs.append(("-shared", TESTS / "host_kernels.c", "-o", built.image))
    for name, libraries in STANDINS.items():
        for library in libraries:
            old = ["-DOLD"] if library == "libhipsparse.so.0" else []
            source = STANDIN / f"{library.partition('.')[0]}.c"
            jobs.append(("-shared", *old, source, "-o", folder / name / library))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: cc(*extra, *job), jobs))
    cc(*extra, *runtime.values(), *tests.values(), "-ldl", "-o", built.program)
    nodelete = "-Wl,-z,nodelete"
    cc(*extra, "-shared", nodelete, TESTS / "artifact.c", *runtime.values(), "-ldl", "-o", built.artifact)


@pytest.fixture
def builds(tmp_path_factory: pytest.TempPathFactory):
    """A build by its sanitizer, which a process of the run has made for all."""

    def made(sanitizer: str) -> Built:
        return Built(once(tmp_path_factory, f"runtime_c-{sanitizer}", lambda folder: build(folder, sanitizer)))

    return made


@pytest.fixture(params=SANITIZERS)
def built(request: pytest.FixtureRequest, builds) -> Built:
    return builds(request.param)


@pytest.mark.parametrize(
    "group", ["image", "error", "keys", "cuda", "hip", "tensor", "sparse", "cuda_sparse", "hip_sparse"]
)
def test_group(built: Built, group: str) -> None:
    assert built.run(group) == ""


def read_trace(path: Path) -> list[dict]:
    """The events of a trace; nothing in it may be wrong."""
    events = json.loads(path.read_text())["traceEvents"]
    for event in events:
        assert event["ph"] in ("X", "M")
        assert event["ph"] == "M" or (event["dur"] >= 0 and event["ts"] > 0 and event["args"])
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} <= named
    return events


@pytest.mark.parametrize("group", ["cuda", "hip", "host", "schedule"])
def test_traced(built: Built, group: str, tmp_path: Path) -> None:
    """The same tests with a trace, which changes nothing of what they see."""
    path = tmp_path / "trace.json"
    files = {"host": [built.image, built.artifact], "schedule": [built.image]}.get(group, [])
    env = {"STANDIN_DEVICES": "0"} if files else {}
    assert built.run(group, *map(str, files), OFFLOAD_TRACE=str(path), **env) == ""
    kinds = {event.get("cat") for event in read_trace(path)}
    assert {"launch", "work", "memory", "wait", "module", "copy", "set"} <= kinds
    assert ("blocks" in kinds) == bool(files)


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_capture(built: Built, backend: str) -> None:
    assert built.run("capture", backend) == ""


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_traced_capture(built: Built, backend: str, tmp_path: Path) -> None:
    """A trace leaves a graph alone: it has the launches that went into it, and the work of those that ran."""
    path = tmp_path / "trace.json"
    assert built.run("capture", backend, OFFLOAD_TRACE=str(path)) == ""
    kinds = [event.get("cat") for event in read_trace(path)]
    assert (kinds.count("launch"), kinds.count("work")) == (5, 2 + 4)  # and four copies


@pytest.mark.parametrize("group", ["sparse", "cuda_sparse", "hip_sparse"])
def test_sparse_operations_are_traced(built: Built, group: str, tmp_path: Path) -> None:
    """Each with its operands, and again where it ran."""
    path = tmp_path / "trace.json"
    assert built.run(group, OFFLOAD_TRACE=str(path)) == ""
    events = [event for event in read_trace(path) if event["ph"] == "X"]
    calls = [event for event in events if event["cat"] == "sparse"]
    assert {"SpMV", "SpMV, size", "SpGEMM, compute", "SpGEMM, copy"} <= {event["name"] for event in calls}
    product = next(event for event in calls if event["name"] == "SpMV")["args"]
    assert product["device"].startswith({"sparse": "host", "cuda_sparse": "cuda", "hip_sparse": "hip"}[group])
    assert product["a"] == "3 x 3 CSR of f32 with 32-bit indices"
    assert (product["b"], product["c"], product["a_entries"]) == ("3 x 1 dense f32", "3 x 1 dense f32", 4)
    assert product["computed_in"] == "f32"
    streams = {event["args"]["call"]: event["args"]["stream"] for event in calls}
    ran = [event["args"] for event in events if event["cat"] == "work" and event["name"] == "SpMV"]
    assert ran
    assert all(streams[work["call"]] == work["stream"] for work in ran)
    if group == "sparse":
        works = sorted((e for e in events if e["cat"] == "work"), key=lambda e: (e["pid"], e["tid"], e["ts"]))
        for event, later in itertools.pairwise(works):
            if (event["pid"], event["tid"]) == (later["pid"], later["tid"]):  # a stream does one thing at a time
                assert event["ts"] + event["dur"] <= later["ts"] + 0.002


@pytest.mark.parametrize("group", ["cuda", "hip"])
def test_without_memory_pools(built: Built, group: str) -> None:
    assert built.run(group, STANDIN_NO_POOLS="1") == ""


def test_an_old_library(built: Built) -> None:
    assert built.run("old_sparse", standins="old") == ""


F32, F16 = "0", "2"


def skip_if_loader_finds(library: str) -> None:
    if ctypes.util.find_library(library):
        pytest.skip(f"this machine's loader finds the vendor's {library}")


@pytest.mark.parametrize(
    ("backend", "type", "part"),
    [
        ("cuda", F32, "cuSPARSE is needed for this operation and was not found: no libcusparse.so.12 where the loader"),
        ("cuda", F32, "pip install nvidia-cusparse (nvidia-cusparse-cu12 with CUDA 12), or set CUDA_HOME"),
        (
            "hip",
            F32,
            "no libhipsparse.so.4, libhipsparse.so.1, libhipsparse.so.0 where the loader looks, in $ROCM_PATH",
        ),
        ("hip", F32, "apt-get install hipsparse (of ROCm) or libhipsparse0 (of Debian)"),
    ],
)
def test_a_library_that_is_missing(builds, tmp_path: Path, backend: str, type: str, part: str) -> None:
    """The error says where it was looked for and what to install."""
    skip_if_loader_finds("cusparse" if backend == "cuda" else "hipsparse")
    environment = {"CUDA_HOME": str(tmp_path), "ROCM_PATH": str(tmp_path)}  # no installation of this machine
    assert builds("plain").run("no_sparse", backend, type, part, standins="drivers", **environment) == ""


@pytest.mark.parametrize(
    ("version", "type", "part"),
    [
        ("300200", F16, "hipSPARSE 3.2.0 knows no f16; it came with 4.0 (ROCm 7)."),
        ("400001", "14", "hipSPARSE 4.0.1 knows no bf16; it came with 4.1 (ROCm 7.1)."),
        ("400300", "6", "hipSPARSE 4.3.0 knows no complex<f16>."),
    ],
)
def test_versions_of_hipsparse(builds, version: str, type: str, part: str) -> None:
    assert builds("plain").run("no_sparse", "hip", type, part, STANDIN_HIPSPARSE=version) == ""


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_a_driver_that_comes_later(built: Built, backend: str) -> None:
    """It is asked again when the devices are, and every answer is told."""
    assert built.run("late_driver", backend) == ""


def test_a_version_whose_layouts_are_not_known(built: Built) -> None:
    assert built.run("unknown_order", STANDIN_HIPSPARSE="200305") == ""


@pytest.mark.parametrize("place", ["CUDA_HOME", "lib64", "site-packages"])
def test_where_a_library_is_found(builds, tmp_path: Path, place: str) -> None:
    """In an installation that a variable names; beside Python packages from which something is loaded."""
    skip_if_loader_finds("cusparse")
    built, folder = builds("plain"), tmp_path / "lib64"
    environment = {"CUDA_HOME": str(tmp_path)}
    if place != "lib64":
        folder = tmp_path / ("lib" if place == "CUDA_HOME" else "site-packages/nvidia/cu13/lib")
    folder.mkdir(parents=True)
    for library in ("libcusparse.so.12", "libcusparseLt.so.0"):
        (folder / library).symlink_to(built.folder / "standin" / library)
    if place == "site-packages":
        environment["CUDA_HOME"] = str(tmp_path / "empty")
        loaded = tmp_path / "site-packages" / "some" / "module.so"
        loaded.parent.mkdir()
        loaded.symlink_to(built.image)
        environment["LD_PRELOAD"] = str(loaded)
    # The library is there: it is its own answer that this type of values is not.
    part = "cusparseSpMV_bufferSize failed with CUSPARSE_STATUS_NOT_SUPPORTED (10): operation not supported."
    assert built.run("no_sparse", "cuda", "10", part, standins="drivers", **environment) == ""


def test_a_library_that_cannot_be_loaded(builds, tmp_path: Path) -> None:
    skip_if_loader_finds("cusparse")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcusparse.so.12").write_text("no library")
    part = "cuSPARSE is needed for this operation and cannot be loaded"
    assert builds("plain").run("no_sparse", "cuda", F32, part, standins="drivers", CUDA_HOME=str(tmp_path)) == ""


def test_host(built: Built) -> None:
    assert built.run("host", str(built.image), str(built.artifact), STANDIN_DEVICES="0") == ""


def test_schedule(built: Built) -> None:
    assert built.run("schedule", str(built.image), STANDIN_DEVICES="0") == ""


@pytest.mark.parametrize("backend", ["host", "cuda", "hip"])
@pytest.mark.parametrize("sanitizer", ["plain", "thread"])
def test_hammer(builds, full: bool, sanitizer: str, backend: str) -> None:
    """32 threads at random on four devices (the CPU is one): see hammer.c."""
    rounds = {"plain": (1_000, 100_000), "thread": (100, 10_000)}[sanitizer][full]
    if backend != "host":  # no kernel runs on many threads there
        rounds *= 20
    built = builds(sanitizer)
    done = built.run("hammer", backend, str(built.image), str(rounds), timeout=1800, STANDIN_DEVICES="4")
    assert done == ""


@pytest.mark.parametrize("backend", ["host", "cuda", "hip"])
def test_soak(builds, full: bool, backend: str) -> None:
    """A million launches and a hundred thousand loads, or a fiftieth of that: see soak.c."""
    launches = 1_000_000 if full else 20_000
    built = builds("plain")
    said = built.run("soak", backend, str(built.image), str(built.artifact), str(launches), timeout=1800)
    print(said)
    assert said.count(f"{launches // 10} times") == 2


def test_errors_that_nobody_asks_about_are_told(built: Built) -> None:
    """Each once, when its thread or the process ends; but not of a program that asks."""
    lines = built.run("unasked", "0", STANDIN_DEVICES="0").splitlines()
    said = "offload: an error that the program did not ask about: "
    assert lines[0] == f"{said}A fill of 4 elements has NULL as its destination."
    assert lines[1].startswith(f'{said}mgpuBackendUse asks for the backend "metal"')
    assert len(lines) == 2
    assert built.run("unasked", "1", STANDIN_DEVICES="0") == lines[0] + "\n"  # told before it asked


@pytest.mark.parametrize(
    ("value", "code"),
    [("12", 0), ("18446744073709551615", 0), ("18446744073709551616", 1), ("late", 1), ("3x", 1), ("-1", 1)],
)
def test_schedule_by_environment(builds, value: str, code: int) -> None:
    env = {"OFFLOAD_HOST_SCHEDULE": value, "STANDIN_DEVICES": "0"}
    assert builds("plain").run("schedule_env", str(code), **env) == ""


@pytest.mark.parametrize(
    ("backend", "devices", "wanted", "code"),
    [
        ("host", "2", "host", 0),
        ("hip", "2", "hip", 0),
        ("", "2", "cuda", 0),
        ("", "0", "host", 0),
        ("metal", "2", '"metal"', 1),
        ("cuda", "0", "CUDA_ERROR_NO_DEVICE", 2),
    ],
)
def test_environment(builds, backend: str, devices: str, wanted: str, code: int) -> None:
    env = {"OFFLOAD_BACKEND": backend, "STANDIN_DEVICES": devices}
    assert builds("plain").run("env", wanted, str(code), **env) == ""


@pytest.mark.parametrize(("devices", "wanted"), [("2", "cuda"), ("0", "host")])
def test_a_driver_that_forks_while_it_is_started(built: Built, devices: str, wanted: str) -> None:
    """CUDA's runs a program that loads its kernel module. What the runtime does at forks would wait for itself."""
    env = {"OFFLOAD_BACKEND": "", "STANDIN_DEVICES": devices, "STANDIN_FORKS": "1"}
    assert built.run("env", wanted, "0", **env) == ""


def test_drivers_of_this_machine(builds) -> None:
    """Counting devices with whatever is installed here gives no error and prints nothing."""
    assert builds("plain").run("absent", standins="") == ""


def exported(library: Path) -> set[str]:
    output = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in output.stdout.splitlines()}


def declared() -> set[str]:
    """The names in mgpu_functions.def, as the preprocessor sees them."""
    text = "#define MGPU_FUNCTION(ret, name, params) @name\n" + f'#include "{RUNTIME / "mgpu_functions.def"}"\n'
    command = [*COMPILER, "-E", "-P", "-xc", "-"]
    output = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return {word[1:] for word in output.split() if word.startswith("@")}


def test_exports(builds, tmp_path: Path) -> None:
    """libmgpu.so exports the ABI and nothing else; an artifact exports offload_api alone."""
    library = tmp_path / "libmgpu.so"
    script = f"-Wl,--version-script={RUNTIME / 'mgpu.map'}"
    cc("-shared", "-Wl,-z,defs", script, *sources(), "-ldl", "-o", library)
    assert exported(library) == declared() | {"offload_api"}
    assert exported(builds("plain").artifact) == {"offload_api"}
