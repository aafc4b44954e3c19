"""Some programs of the mutator: each builds or gives a diagnostic. And that it would notice one that does not."""

from __future__ import annotations

from pathlib import Path

import mutated_programs
import pytest
from faulty_target import FaultyTarget

import offload


def test_some_programs(full: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "")
    kinds = set()
    for seed in range(2000 if full else 60):
        _, outcome = mutated_programs.check(seed, tmp_path, command=seed % 20 == 0)
        kinds.add(outcome.kind)
    assert {mutated_programs.BUILT, mutated_programs.REFUSED} <= kinds


def test_programs_are_those_of_their_seeds() -> None:
    assert mutated_programs.mutant(7) == mutated_programs.mutant(7)
    assert len({mutated_programs.mutant(seed).text for seed in range(50)}) == 50
    assert {change for seed in range(1000) for change in mutated_programs.mutant(seed).changes} == set(
        mutated_programs.CHANGES
    )


def test_it_notices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = mutated_programs.mutant(0)

    def outcome_with(build: object) -> mutated_programs.Outcome:
        monkeypatch.setattr(offload, "build", build)
        return mutated_programs.built(program, tmp_path)

    real = offload.build

    def crashing(source: Path, output: Path, **_: object) -> Path:
        return real(Path(mutated_programs.SOURCES[0]), output, targets=[FaultyTarget(fault="abort")])

    def silent(*_: object, **__: object) -> Path:
        raise offload.CompileError("")

    def half(source: Path, output: Path, **_: object) -> Path:
        output.write_bytes(b"half")
        raise offload.CompileError("no")

    assert outcome_with(crashing).kind == mutated_programs.CRASHED
    with pytest.raises(mutated_programs.Wrong, match="an error without a word"):
        outcome_with(silent)
    with pytest.raises(mutated_programs.Wrong, match="an error and a library"):
        outcome_with(half)
