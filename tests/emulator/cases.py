"""The operations' table on emulated devices: the same calls and comparisons with NumPy as on the CPU."""

from __future__ import annotations

from expectations import expecting
from operations import Case

import offload
from emulator.driver import Driver
from emulator.errors import AbortedError
from emulator.on_device import OnDevice

# Cases that say nothing about a device, with the reason.
LEFT_OUT = {
    "gpu.launch, clusters": "refused when it is launched: HIP has none",
    "in a loop of 100,000": "100,000 launches, for the host's side of them",
    "cf.assert": "what a failed assertion makes of the CPU's launch; test_emulated_programs.py has AMD's",
    "gpu.printf": "processes of their own; test_emulated_programs.py has AMD's",
}


def chips_of(case: Case) -> str | None:
    """The chip that the case asks for, "" for any, None where it cannot run on AMD."""
    if not case.run or "rocdl" in case.refused or any(part in f"{case.op}, {case.form}" for part in LEFT_OUT):
        return None
    return case.chips.get("rocdl", "")


def run_case(case: Case, driver: Driver, target: str, lanes: int) -> None:
    """Compiles the case for the target and runs it; raises what the emulator found first, then what the case did."""
    assert case.run
    driver.failures.clear()
    library = offload.compile(case.source, targets=[target], **case.options)
    library.use("hip")
    # AMD's device libraries may be one unit of the last place further away than the CPU's.
    with expecting(case, lambda ulps: ulps + 1, lanes):
        try:
            case.run(OnDevice(library))
        except Exception:
            if not all(isinstance(error, AbortedError) for error in driver.failures):
                driver.check()
            raise
    driver.failures = [error for error in driver.failures if not isinstance(error, AbortedError)]  # the case wanted it
    driver.check()
