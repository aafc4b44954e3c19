"""Every case of tests/operations: compiles, runs with the right result, or is refused at its own line."""

from __future__ import annotations

import pytest
from operations import CHIPS, Case, all_cases

import offload
from offload.errors import CompileError

CASES = all_cases()
NAMES = [f"{case.op}-{case.form}".replace(" ", "_") for case in CASES]


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
