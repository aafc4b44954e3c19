"""Every case of tests/operations: compiles, runs with the right result, or is refused at its own line."""

from __future__ import annotations

import re

import pytest
from operations import CHIPS, Case, all_cases

import offload
from offload.errors import CompileError


def name_of(case: Case) -> str:
    return f"{case.op}-{case.form}".replace(" ", "_")


CASES = all_cases()
NAMES = [name_of(case) for case in CASES]
# Operations in which threads wait for each other: on the CPU there are two ways to run them.
WAITS = re.compile(r"gpu\.(barrier|all_reduce|subgroup_reduce|shuffle|rotate|subgroup_broadcast)|atomic|on_lane_0")
WAITING = [case for case in CASES if case.run and "host" not in case.refused and WAITS.search(case.source)]


def test_no_form_is_listed_twice() -> None:
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_operation(case: Case) -> None:
    accepted = [name for name in CHIPS if name not in case.refused]
    if accepted:
        library = offload.compile(case.source, targets=[case.target(name) for name in accepted], **case.options)
        compiled = {image.target for image in library.metadata.images}
        assert not compiled or compiled == set(accepted)
        if "host" in accepted:
            assert case.run, "what compiles for the CPU must run there"
            library.use("host")
            case.run(library)
    for name, reason in case.refused.items():
        with pytest.raises(CompileError) as caught:
            offload.compile(case.source, targets=[case.target(name)], **case.options)
        assert reason in str(caught.value)
        line = next(i for i, text in enumerate(case.source.splitlines(), 1) if text.endswith("// here"))
        assert caught.value.diagnostics[0].line == line


@pytest.mark.parametrize("case", WAITING, ids=map(name_of, WAITING))
def test_operation_with_coroutines(case: Case) -> None:
    """The same results where each thread is a coroutine as where threads are loops between barriers."""
    assert case.run
    library = offload.compile(case.source, targets=[f"{case.target('host')},coroutines"], **case.options)
    library.use("host")
    case.run(library)
