"""The examples with their arrays on the device, on every backend that has one here: the CPU always, GPUs if any.

The report's header says which backends are here; for those that are not, nothing is collected and nothing skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compiling import ALL_TARGETS, EXAMPLES, backends_here
from device.groups import examples
from offload.targets import parse_targets

import offload
from offload.runtime import Library


@pytest.fixture(scope="session")
def for_this_machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every example for the usual targets and for the devices in this machine."""
    folder = tmp_path_factory.mktemp("native")
    chips = {(target.name, target.chip): target for target in parse_targets([*ALL_TARGETS, "native"])}
    return {
        path.stem: offload.build(path, folder / f"{path.stem}.so", targets=chips.values())
        for path in sorted(EXAMPLES.glob("*.mlir"))
    }


@pytest.fixture(params=backends_here())
def load(request: pytest.FixtureRequest, for_this_machine: dict[str, Path]) -> Any:
    """Loads an example on one backend."""

    def on_backend(name: str) -> Library:
        library = offload.load(for_this_machine[name])
        library.use(request.param)
        assert library.backend == request.param
        return library

    return on_backend


@pytest.mark.parametrize("name", examples.RUNS)
def test_example(load: Any, name: str) -> None:
    examples.RUNS[name](load(name))
