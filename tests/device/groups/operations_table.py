"""The operations' table: every form that compiles for NVIDIA, with the calls and comparisons of the CPU's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.on_device import OnDevice
from expectations import expecting
from operations import Case, all_cases

from device.checks import EVERYWHERE, HOST, Check, NotRun, Program
from offload.errors import DeviceError
from offload.runtime import Library

# Forms with checks of their own (printing.py, faults.py, compiled_code.py), or that say nothing about a device.
ELSEWHERE = ("cf.assert", "gpu.printf", "in a loop of 100,000", "gpu.binary", "gpu.module")

ACCURACY = {
    "math.acosh": 4, "math.acos": 2, "math.asin": 2, "math.asinh": 3, "math.atan": 2, "math.atan2": 3, "math.atanh": 3,
    "math.cbrt": 1, "math.cos": 2, "math.cosh": 2, "math.erf": 2, "math.erfc": 5, "math.exp": 2, "math.exp2": 2,
    "math.expm1": 2, "math.fpowi": 2, "math.log": 2, "math.log10": 2, "math.log1p": 2, "math.log2": 2, "math.powf": 4,
    "math.rsqrt": 2, "math.sin": 2, "math.sincos": 2, "math.sinh": 3, "math.tan": 4, "math.tanh": 2,
}  # fmt: skip
"""Units of the last place by which libdevice's functions may differ from the rounded result, for 32 and 64 bits: the
tables on mathematical functions in NVIDIA's CUDA C++ Programming Guide."""


def accuracy(case: Case) -> Callable[[float], float]:
    """By how many units of the last place the case's function may be off, where the CPU's may be off by so many."""
    return lambda ulps: max(ulps, ACCURACY[case.op] + 0.5) if case.op in ACCURACY else ulps


REFUSED = ("has no SDDMM with a conjugated operand", "an SpGEMM computes into a matrix without entries")
"""What the runtime says of calls that NVIDIA's libraries do not refuse themselves."""


def _lacking(message: str) -> str:
    """What a library of sparse operations lacks, by an error's text; empty for other errors. docs/sparse.md says what
    is not to be expected of them."""
    if "needed for this operation and was not found" in message:
        return f"no {message.split(' is needed')[0]}"
    if "NOT_SUPPORTED" in message or any(text in message for text in REFUSED):
        return f"not in NVIDIA's library: {message.splitlines()[0].split('This was ')[-1][:120]}"
    return ""


def running(case: Case) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        assert case.run
        if library.backend == HOST:
            case.run(library)
            return
        with expecting(case, accuracy(case)):
            try:
                case.run(OnDevice(library))
            except DeviceError as error:
                if reason := _lacking(str(error)):
                    raise NotRun(reason) from error
                raise

    return run


def group(case: Case) -> str:
    """Sparse operations, operations of host code alone, and kernels."""
    if any(word in case.source for word in ("create_dn_tensor", "create_2to4", "create_csr", "create_coo", "sp_mat")):
        return "sparse"
    return "operations" if case.has_kernels else "host code"


def target(case: Case, name: str) -> str:
    """How a case's target is written. Code of other generations is left as PTX, which the driver compiles."""
    written = case.target(name)
    return written if name != "nvvm" or written.startswith("nvvm:sm_90") else f"{written},format=isa"


def checks() -> Iterator[Check]:
    for case in all_cases():
        left_out = any(part in f"{case.op}, {case.form}" for part in ELSEWHERE)
        if case.run and "nvvm" not in case.refused and not left_out:
            names = [name for name in ("nvvm", "host") if name not in case.refused]
            program = Program(case.source, [target(case, name) for name in names], case.options)
            name = f"{case.op}, {case.form}" if case.form else case.op
            yield Check(group(case), name, [program], running(case), EVERYWHERE if "host" in names else ("cuda",))
