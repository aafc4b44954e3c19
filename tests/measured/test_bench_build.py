"""bench/build.py: it runs, its programs are compiled by us and are the peers' too, goals that are missed are named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from compiling import ROOT

import offload

BENCH = ROOT / "bench"
WAYS, LIBRARIES = ("process", "started ahead"), ("nvPTXCompiler", "nvJitLink")  # of bench/assembling.py


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BENCH / "build.py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_a_part_of_it_runs(tmp_path: Path) -> None:
    """Every way of ours for a program, beside the tools of MLIR, once."""
    figures = tmp_path / "figures.json"
    done = run("--runs", "1", "--programs", "matmul", "--tools", "offload,mlir tools,hipcc", "--json", figures)
    assert done.returncode in (0, 1), done.stderr  # which goals are met depends on what else the machine does
    read = json.loads(figures.read_text())
    assert done.returncode == bool(read["missed"])
    assert {f"missed: {line}" for line in read["missed"]} <= set(done.stdout.splitlines())
    ways = {(way["tool"], way["chips"], way["how"]): way for way in read["ways"]}
    for how in ("new process", "running process", "cached, new process", "cached, running process"):
        assert 0 < ways["offload", "sm_89", how]["min"] <= ways["offload", "sm_89", how]["median"]
    assert ways["offload", "five chips", "new process"]["runs"] == 1
    assert set(read["five_chips_to_one"]) == {"matmul"}
    theirs = ways.get(("mlir tools", "sm_89", "new process"))
    if theirs:  # where its toolkit is there
        ratio = theirs["median"] / ways["offload", "sm_89", "new process"]["median"]
        assert theirs["ratio_to_ours"] == pytest.approx(ratio, rel=1e-3)
    assert "hipcc" in {each["tool"] for each in read["skipped"]}  # matrix units of NVIDIA's, or not installed


def test_assemblers_are_measured(tmp_path: Path) -> None:
    """Those that are installed, among which ptxas is."""
    figures = tmp_path / "figures.json"
    command = [sys.executable, BENCH / "assembling.py", "--runs", "1", "--json", figures]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    read = json.loads(figures.read_text())
    measured = {(each["program"], each["chips"], each["way"]) for each in read["ways"]}
    expected = {(name, chips, way) for name in ("saxpy", "thirty") for chips in (1, 4) for way in WAYS}
    assert expected <= measured
    assert {name for _, _, name in measured} | {line.partition(":")[0] for line in read["missing"]} == {
        *WAYS,
        *LIBRARIES,
    }
    assert all(each[kind]["median"] > 0 for each in read["ways"] for kind in ("wall", "processor"))


def test_what_is_cached_is_not_compiled(bench: Any, tmp_path: Path) -> None:
    """Of fifty files none, and one that has changed."""
    fifty, counts = bench("builds.fifty"), {}
    for way in fifty.cached_ways(tmp_path):
        before = {path.name for path in (tmp_path / "fifty-cache" / "library").glob("*")}
        way.take()
        counts[way.how] = len({path.name for path in (tmp_path / "fifty-cache" / "library").glob("*")} - before)
    assert counts[fifty.ALL] == fifty.FILES
    assert counts[fifty.ONE_CHANGED] == 1
    assert counts[fifty.NONE_CHANGED] == 0


def test_unknown_names_are_refused() -> None:
    done = run("--tools", "gcc")
    assert done.returncode == 2
    assert "there is no gcc; there are: offload, nvcc, mlir tools, iree, triton, hipcc" in done.stderr


def test_thirty_kernels_are_thirty_in_every_language(bench: Any, tmp_path: Path) -> None:
    program = bench("builds.programs").programs()["thirty"]
    for text, begin in (
        (program.mlir, "func.func @saxpy"),
        (program.cuda, "__global__ void saxpy"),
        (program.hip, "__global__ void saxpy"),
        (program.iree, "func.func @saxpy"),
        (program.triton, "def saxpy"),
    ):
        pieces = text.split(begin)[1:]
        assert len(pieces) == program.kernels == 30
        assert len({piece.partition(begin)[0] for piece in pieces}) == 30
        assert len({piece.replace(f"saxpy{number}", "") for number, piece in enumerate(pieces)}) == 30
    (tmp_path / "thirty.mlir").write_text(program.mlir)
    library = offload.load(offload.build(tmp_path / "thirty.mlir", tmp_path / "thirty.so", targets=["host"]))
    assert len(library.metadata.kernels) == 30


def ways_of(bench: Any, medians: Mapping[tuple[str, str, str, str], float]) -> tuple[list[Any], dict[str, list[float]]]:
    way = bench("builds.way").Way
    ways = [way(*words, "a library", lambda: None, Path("nowhere")) for words in medians]
    return ways, {each.name: [seconds] for each, seconds in zip(ways, medians.values(), strict=True)}


CHIPS = "sm_89 gfx90a host"


def test_goals_that_are_met(bench: Any) -> None:
    ways, times = ways_of(
        bench,
        {
            ("saxpy", "offload", "sm_89", "new process"): 0.1,
            ("saxpy", "nvcc", "sm_89", "new process"): 0.11,
            ("saxpy", "offload", "five chips", "new process"): 0.15,
            ("saxpy", "nvcc", "five chips", "new process"): 0.1,
            ("saxpy", "hipcc", "gfx90a", "new process"): 0.01,
            ("saxpy", "offload", "sm_89", "running process"): 0.2,
            ("saxpy", "triton", "sm_89", "running process"): 0.1,
            ("saxpy", "offload", "sm_89", "cached, running process"): 0.005,
            ("saxpy", "offload", "sm_89", "cached, new process"): 0.12,
            ("fifty", "offload", CHIPS, "new process, one core"): 1.8,
            ("fifty", "offload", CHIPS, "new process, two cores"): 1.0,
        },
    )
    assert bench("builds.results").missed_goals(ways, times) == []


def test_goals_that_are_missed(bench: Any) -> None:
    ways, times = ways_of(
        bench,
        {
            ("saxpy", "offload", "sm_89", "new process"): 0.1,
            ("saxpy", "nvcc", "sm_89", "new process"): 0.09,
            ("saxpy", "offload", "five chips", "new process"): 0.16,
            ("saxpy", "offload", "sm_89", "cached, running process"): 0.006,
            ("saxpy", "offload", "sm_89", "cached, new process"): 0.13,
            ("fifty", "offload", CHIPS, "new process, one core"): 1.7,
            ("fifty", "offload", CHIPS, "new process, two cores"): 1.0,
        },
    )
    results = bench("builds.results")
    assert results.missed_goals(ways, times) == [
        "saxpy, sm_89: nvcc takes 0.90 of our time; the goal is to be faster",
        "saxpy, cached, running process: 6.0 ms; the goal is 5",
        "saxpy, cached, new process: 130.0 ms; the goal is 120",
        "saxpy: five chips take 1.60 of the time for one; the goal is 1.5",
        "fifty files: two cores are 1.70 times as fast as one; the goal is 1.8",
    ]
    report = results.report("Long?\n", ways, times, [bench("builds.way").Skipped("all", "iree", "no IREE")], {})
    assert report["missed"] == results.missed_goals(ways, times)
    assert report["two_cores_to_one"] == 1.7
    assert report["skipped"] == [{"program": "all", "tool": "iree", "why": "no IREE"}]


def test_a_way_that_makes_nothing_is_no_measurement(bench: Any, tmp_path: Path) -> None:
    way = bench("builds.way").Way("saxpy", "nvcc", "sm_89", "new process", "", lambda: None, tmp_path / "out")
    with pytest.raises(RuntimeError, match=r"0 files \*\.so in .*, not 1"):
        way.take()


def test_a_peer_that_fails_is_named_and_we_must_not(bench: Any, tmp_path: Path) -> None:
    module = bench("builds.way")

    def fail() -> None:
        raise RuntimeError("exit code 1 of nvcc")

    def make() -> None:
        (tmp_path / "ours" / "a.so").write_text("made")

    ours = module.Way("saxpy", "offload", "sm_89", "new process", "", make, tmp_path / "ours")
    peer = module.Way("saxpy", "nvcc", "sm_89", "new process", "", fail, tmp_path / "peer")
    assert module.first_runs([ours, peer], "offload") == (
        [ours],
        [module.Skipped("saxpy", "nvcc for sm_89", "it fails here: exit code 1 of nvcc")],
    )
    with pytest.raises(RuntimeError, match="exit code 1 of nvcc"):
        module.first_runs([peer], "nvcc")


def test_the_page_is_that_of_the_saved_figures(bench: Any, tmp_path: Path) -> None:
    """And without figures it says so; with some it shows them."""
    script = ROOT / "scripts" / "docs_builds.py"

    def written(*words: str | Path) -> str:
        subprocess.run([sys.executable, script, "--page", tmp_path / "page.md", *words], check=True)
        return (tmp_path / "page.md").read_text()

    assert written() == (ROOT / "docs" / "build_times.md").read_text()
    assert "Nothing was measured yet." in written("--results", tmp_path / "none.json")
    ways, times = ways_of(
        bench,
        {
            ("saxpy", "offload", "sm_89", "new process"): 0.1,
            ("saxpy", "nvcc", "sm_89", "new process"): 0.09,
            ("saxpy", "offload", "five chips", "new process"): 0.14,
        },
    )
    report = bench("builds.results").report("Long?\n", ways, times, [], {"nvcc": "13.0"})
    (tmp_path / "figures.json").write_text(json.dumps(report))
    text = written("--results", tmp_path / "figures.json")
    assert "| nvcc | sm_89 | new process | 90.0 | 0.90 | a library |" in text
    assert "Five chips take 1.40 of the time for one." in text
    assert "* saxpy, sm_89: nvcc takes 0.90 of our time; the goal is to be faster" in text


def test_the_picture(bench: Any, tmp_path: Path) -> None:
    ways, times = ways_of(
        bench,
        {("saxpy", tool, "sm_89", "new process"): seconds for tool, seconds in {"offload": 0.1, "nvcc": 0.7}.items()},
    )
    report = bench("builds.results").report("Long?\n", ways, times, [], {})
    bench("builds.plot").plot(report, tmp_path / "first.svg")
    bench("builds.plot").plot(report, tmp_path / "second.svg")
    text = (tmp_path / "first.svg").read_text()
    assert "sm_89: nvcc" in text
    assert text == (tmp_path / "second.svg").read_text()


def test_a_package_that_the_benchmark_of_calls_lacks(
    bench: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = bench("call")

    def everything(folder: Path) -> None:
        raise ModuleNotFoundError("No module named 'nanobind'", name="nanobind")

    monkeypatch.setattr(call, "everything", everything)
    assert call.main([]) == 2
    assert capsys.readouterr().err == "missing: nanobind, one of the other ways: pip install 'offload[bench]'\n"
