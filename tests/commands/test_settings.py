"""Environment variables with values that mean nothing, and with names that are nearly ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import EXAMPLES, command, python

USE = "import offload, sys; print(offload.load(sys.argv[1]).backend)"


@pytest.mark.parametrize("value", ["maybe", "2", "yes"])
def test_errors_are_printed_or_not(value: str, built: dict[str, Path], tmp_path: Path) -> None:
    code = """
import offload, sys
library = offload.load(sys.argv[1])
for ask in (lambda: library.backend, lambda: library.use("host")):
    try:
        print(ask())
    except offload.DeviceError as error:
        print(error)
"""
    said = python(code, built["saxpy"], cwd=tmp_path, environment={"OFFLOAD_PRINT_ERRORS": value})
    line = f'The environment variable OFFLOAD_PRINT_ERRORS is "{value}", which should be 0 or 1.'
    assert said.splitlines() == [line, line]


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_what_it_may_be(value: str, built: dict[str, Path], tmp_path: Path) -> None:
    environment = {"OFFLOAD_PRINT_ERRORS": value, "OFFLOAD_BACKEND": "host"}
    assert python(USE, built["saxpy"], cwd=tmp_path, environment=environment) == "host\n"


MISSPELT = {"OFFLOAD_BACKENDS": "cuda", "OFFLOAD_CACHEDIR": "x", "OFFLOAD_MY_PROGRAMS_OWN": "1"}


def test_the_doctor_lists_names_that_nothing_reads(tmp_path: Path) -> None:
    done = command("doctor", cwd=tmp_path, environment=MISSPELT)
    (line,) = [line.strip() for line in done.stdout.splitlines() if " environment: " in line]
    assert line == (
        "--  environment: nothing of offload reads OFFLOAD_BACKENDS (did you mean OFFLOAD_BACKEND?), "
        "OFFLOAD_CACHEDIR (did you mean OFFLOAD_CACHE_DIR?), OFFLOAD_MY_PROGRAMS_OWN"
    )
    assert " environment: " not in command("doctor", cwd=tmp_path).stdout


def test_a_command_warns_of_those_that_were_likely_meant(tmp_path: Path) -> None:
    done = command("build", EXAMPLES / "saxpy.mlir", "-q", "-o", "x.so", cwd=tmp_path, environment=MISSPELT)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "offload: warning: OFFLOAD_BACKENDS is not read; did you mean OFFLOAD_BACKEND?",
        "offload: warning: OFFLOAD_CACHEDIR is not read; did you mean OFFLOAD_CACHE_DIR?",
    ]
