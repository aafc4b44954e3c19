"""Builds the C runtime, its test program and the stand-in drivers with cc, and runs them: plainly, with the
address and undefined-behaviour sanitizers, and with the thread sanitizer. The compiler is CC, or cc."""

from __future__ import annotations

import concurrent.futures
import functools
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = ROOT / "runtime_c"
TESTS = ROOT / "tests" / "runtime_c"
STANDIN = ROOT / "tests" / "standin"

COMPILER = shlex.split(os.environ.get("CC", "cc"))
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-fvisibility=hidden"]
FLAGS += ["-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{RUNTIME}", "-pthread"]
SANITIZERS = {
    "plain": [],
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"],
    "thread": ["-fsanitize=thread"],
}


@dataclass(frozen=True)
class Built:
    """One build: the test program, the host image, a library with the runtime inside, the stand-ins."""

    program: Path
    image: Path
    artifact: Path
    standins: Path

    def run(self, *arguments: str, standins: bool = True, **environment: str) -> str:
        """Run a group of tests; returns what it printed. Fails the test, with the output, if it fails."""
        env = {k: v for k, v in os.environ.items() if k not in ("OFFLOAD_BACKEND", "LD_LIBRARY_PATH")}
        env |= {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1"}
        env |= {"TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0:allocator_may_return_null=1"}
        env |= {"LD_LIBRARY_PATH": str(self.standins)} if standins else {}
        command = [str(self.program), *arguments]
        done = subprocess.run(command, env=env | environment, capture_output=True, text=True, timeout=60)
        # The tests ask for too much memory on purpose; the sanitizers remark on it.
        lines = (done.stdout + done.stderr).splitlines(keepends=True)
        output = "".join(line for line in lines if "Sanitizer failed to allocate" not in line)
        assert done.returncode == 0, f"{shlex.join(command)} exited with {done.returncode}\n{output}"
        return output


def cc(*arguments: object) -> None:
    command = [*COMPILER, *FLAGS, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"


def build(folder: Path, sanitizer: str) -> Built:
    extra = SANITIZERS[sanitizer]
    standins = folder / "standin"
    standins.mkdir(parents=True, exist_ok=True)
    built = Built(folder / "mgpu_test", folder / "host_kernels.so", folder / "artifact.so", standins)
    runtime = {source: folder / f"{source.stem}.o" for source in sorted(RUNTIME.glob("*.c"))}
    tests = {s: folder / f"{s.stem}.o" for s in sorted(TESTS.glob("*.c")) if s.stem not in ("artifact", "host_kernels")}
    jobs = [("-DMGPU_API=", "-c", source, "-o", to) for source, to in (runtime | tests).items()]
    jobs.append(("-shared", TESTS / "host_kernels.c", "-o", built.image))
    jobs.append(("-shared", STANDIN / "libcuda.c", "-o", standins / "libcuda.so.1"))
    jobs.append(("-shared", STANDIN / "libamdhip64.c", "-o", standins / "libamdhip64.so.6"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: cc(*extra, *job), jobs))
    cc(*extra, *runtime.values(), *tests.values(), "-ldl", "-o", built.program)
    nodelete = "-Wl,-z,nodelete"
    cc(*extra, "-shared", nodelete, TESTS / "artifact.c", *runtime.values(), "-ldl", "-o", built.artifact)
    return built


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("runtime_c")
    return functools.cache(lambda sanitizer: build(folder / sanitizer, sanitizer))


@pytest.fixture(params=SANITIZERS)
def built(request: pytest.FixtureRequest, builds) -> Built:
    return builds(request.param)


@pytest.mark.parametrize("group", ["image", "error", "keys", "cuda", "hip", "tensor", "sparse"])
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


@pytest.mark.parametrize("group", ["cuda", "hip"])
def test_without_memory_pools(built: Built, group: str) -> None:
    assert built.run(group, STANDIN_NO_POOLS="1") == ""


def test_host(built: Built) -> None:
    assert built.run("host", str(built.image), str(built.artifact), STANDIN_DEVICES="0") == ""


def test_schedule(built: Built) -> None:
    assert built.run("schedule", str(built.image), STANDIN_DEVICES="0") == ""


@pytest.mark.parametrize(("value", "code"), [("12", 0), ("18446744073709551615", 0), ("late", 1), ("3x", 1), ("-1", 1)])
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


def test_drivers_of_this_machine(builds) -> None:
    """Counting devices with whatever is installed here gives no error and prints nothing."""
    assert builds("plain").run("absent", standins=False) == ""


def vendor_header(vendor: str) -> list[str]:
    """The flags to compile against a vendor's own header; skips where this machine does not have it."""
    if vendor == "hip":
        folders = [Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "include", Path("/usr/include")]
        name, flags = "hip/hip_runtime_api.h", ["-D__HIP_PLATFORM_AMD__"]
    else:
        folders = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include", Path("/usr/include")]
        folders += [Path(entry) / "nvidia" / "cu13" / "include" for entry in sys.path]
        name, flags = "cuda.h", []
    for folder in folders:
        if (folder / name).is_file():
            return [*flags, f"-isystem{folder}"]
    pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("vendor", ["cuda", "hip"])
def test_vendor_abi(vendor: str) -> None:
    """Our declarations of a vendor's functions, constants and structs agree with the vendor's header."""
    cc("-fsyntax-only", *vendor_header(vendor), RUNTIME / "checks" / f"{vendor}_abi_check.c")


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
    cc("-shared", "-Wl,-z,defs", script, *sorted(RUNTIME.glob("*.c")), "-ldl", "-o", library)
    assert exported(library) == declared() | {"offload_api"}
    assert exported(builds("plain").artifact) == {"offload_api"}
