"""The file of OFFLOAD_TRACE: who writes to it, and what hinders that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import python
from traces import calls, read


def test_artifacts_of_a_process_share_a_file(built: dict[str, Path], tmp_path: Path) -> None:
    code = """
import sys, numpy, offload
for path in sys.argv[1].split(":"):
    library = offload.load(path)
    library.use("host")
    library.device.array(numpy.zeros(3, numpy.float32))
"""
    path = tmp_path / "trace.json"
    both = f"{built['saxpy']}:{built['reduce']}"
    for _ in range(2):  # the second run replaces what the first has left
        python(code, both, cwd=tmp_path, environment={"OFFLOAD_TRACE": str(path)})
        assert [event["name"] for event in calls(read(path)) if event["cat"] == "memory"] == [
            "allocate", "free", "allocate", "free"
        ]  # fmt: skip


CHILDREN = """
import os, subprocess, sys, numpy, offload
library = offload.load(sys.argv[1])
library.use("host")
array = library.device.array(numpy.zeros(3, numpy.float32))
if sys.argv[2] == "fork":
    os.mkdir("elsewhere")
    os.chdir("elsewhere")  # which the trace's name does not follow
    child = os.fork()
    if child == 0:
        library.device.array(numpy.zeros(5, numpy.float32))
        os._exit(0)
    os.waitpid(child, 0)
elif sys.argv[2] == "spawn":
    subprocess.run([sys.executable, "-c", open(sys.argv[3]).read(), sys.argv[1], "end"], check=True)
library.device.array(numpy.zeros(7, numpy.float32))
"""


@pytest.mark.parametrize("way", ["fork", "spawn"])
@pytest.mark.parametrize("name", ["trace.json", "trace-%p.json"])
def test_children_add_or_have_their_own(built: dict[str, Path], way: str, name: str, tmp_path: Path) -> None:
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    python(CHILDREN, built["saxpy"], way, script, cwd=tmp_path, environment={"OFFLOAD_TRACE": name})
    files = sorted(tmp_path.glob("trace*.json"))
    assert len(files) == (2 if "%p" in name else 1)
    sizes: dict[int, list[int]] = {}
    for path in files:
        processes = set()
        for event in calls(read(path)):
            processes.add(event["pid"])
            if event["name"] == "allocate":
                sizes.setdefault(event["pid"], []).append(event["args"]["bytes"])
        if "%p" in name:
            assert path.name == f"trace-{processes.pop()}.json"
            assert not processes
    child = [20] if way == "fork" else [12, 28]
    assert sorted(sizes.values()) == sorted([[12, 28], child])


POOL = """
import multiprocessing, sys, numpy, offload
def size(count):
    library.device.array(numpy.zeros(count, numpy.float32))
    return count
library = offload.load(sys.argv[1])
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(size, [1, 2, 3, 4]))
"""


@pytest.mark.parametrize("name", ["trace.json", "trace-%p.json"])
def test_children_that_are_forked_before_the_first_use(built: dict[str, Path], name: str, tmp_path: Path) -> None:
    """They end without the usual steps, too, and the runtime has not seen the fork."""
    python(POOL, built["saxpy"], cwd=tmp_path, environment={"OFFLOAD_TRACE": name, "OFFLOAD_BACKEND": "host"})
    made = [event for path in tmp_path.glob("trace*.json") for event in calls(read(path))]
    assert sorted(event["args"]["bytes"] for event in made if event["name"] == "allocate") == [4, 8, 12, 16]


TAKING_TURNS = """
import subprocess, sys, time, numpy, offload
def size(path, count):
    library = offload.load(path)
    library.use("host")
    library.device.array(numpy.zeros(count, numpy.float32))
saxpy, reduce, code = sys.argv[1:]
if code == "first":
    size(saxpy, 1)
    print("begun", flush=True)
    sys.stdin.read()
else:
    pipe = subprocess.PIPE
    first = subprocess.Popen([sys.executable, "-c", open(code).read(), saxpy, reduce, "first"], stdin=pipe, stdout=pipe)
    first.stdout.readline()
    size(saxpy, 2)
    time.sleep(1.1)
    size(saxpy, 3)  # writes what there is
    first.stdin.close()
    first.wait()
    size(reduce, 4)
"""


def test_a_file_is_kept_for_all_that_add_to_it(built: dict[str, Path], tmp_path: Path) -> None:
    """The process that began it may be the first to end."""
    script, path = tmp_path / "turns.py", tmp_path / "trace.json"
    script.write_text(TAKING_TURNS)
    for _ in range(2):  # the second run replaces what the first has left
        python(
            TAKING_TURNS, built["saxpy"], built["reduce"], script,
            cwd=tmp_path, environment={"OFFLOAD_TRACE": str(path)},
        )  # fmt: skip
        sizes = [event["args"]["bytes"] for event in calls(read(path)) if event["name"] == "allocate"]
        assert sizes == [4, 8, 12, 16]
        list_of = json.loads(path.read_text())["otherData"]
        assert len(list_of["others"].split()) == 1


ERRORS = """
import sys, numpy, offload
library = offload.load(sys.argv[1])
messages = []
for _ in range(2):
    try:
        library.use("host")
        library.device.array(numpy.zeros(3, numpy.float32))
    except offload.DeviceError as error:
        messages.append(str(error))
print(messages)
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/trace.json", "No such file or directory"),
        (".", "Is a directory"),
        ("/dev/null", "it is no regular file"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_once(
    built: dict[str, Path], name: str, reason: str, tmp_path: Path
) -> None:
    output = python(ERRORS, built["saxpy"], cwd=tmp_path, environment={"OFFLOAD_TRACE": name})
    (message,) = eval(output)
    assert message.startswith('The environment variable OFFLOAD_TRACE asks for a trace in "/')
    assert message.endswith(f"which cannot be written: {reason}.")


def test_a_disk_that_is_full_ends_the_trace_and_not_the_program(built: dict[str, Path], tmp_path: Path) -> None:
    code = """
import resource, sys, numpy, offload
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
library = offload.load(sys.argv[1])
library.use("host")
messages = []
for _ in range(2000):
    try:
        library.device.array(numpy.zeros(3, numpy.float32))
    except offload.DeviceError as error:
        messages.append(str(error))
print(messages)
"""
    path = tmp_path / "trace.json"
    (message,) = eval(python(code, built["saxpy"], cwd=tmp_path, environment={"OFFLOAD_TRACE": str(path)}))
    assert message == f'The trace in "{path}" ends early; the file cannot be written: File too large.'
    assert 100 < len(calls(read(path))) < 2000


def test_a_disk_that_is_full_at_the_end_is_told_on_stderr(built: dict[str, Path], tmp_path: Path) -> None:
    code = """
import os, resource, sys, numpy, offload
library = offload.load(sys.argv[1])
library.use("host")
library.device.array(numpy.zeros(3, numpy.float32))
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize("trace.json"), resource.RLIM_INFINITY))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, built["saxpy"]], cwd=tmp_path, env=os.environ | {"OFFLOAD_TRACE": "trace.json"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    path = tmp_path / "trace.json"
    told = f'offload: The trace in "{path}" ends early; the file cannot be written: File too large.\n'
    assert done.stderr == told
    assert calls(read(path)) == []
