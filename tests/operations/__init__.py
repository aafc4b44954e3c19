"""Every operation a program may use, one case per form: what becomes of it for each target.

Each module here has ``CASES``. tests/kernels/test_operations.py holds every case to what it says and
scripts/docs_operations.py writes docs/operations.md from it, so a cell of that table cannot be wrong or empty: for
NVIDIA and AMD a form compiles to machine code or is refused; for the CPU it runs and its results are checked, or it
is refused. There is no third thing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from offload.runtime import Library

CHIPS = {"nvvm": "sm_90", "rocdl": "gfx942", "host": ""}
"""The targets of the table and the chip a case is compiled for unless it says otherwise."""

_KERNELS = (
    *("gpu.module", "gpu.launch", "gpu.binary", "scf.parallel", "scf.forall", "tosa.", "linalg."),
    *("tensor.gather", "tensor.scatter"),
)
"""Of what there is code for a device."""


@dataclass(frozen=True)
class Case:
    """One form of one operation.

    ``refused`` maps a target's name to what its diagnostic says; that diagnostic must point at the operation: at the
    first line of ``source`` that ends in ``// here``. Everywhere else the program must compile. ``run`` calls the
    library on the CPU and asserts on the results; it may be missing only where the CPU refuses. ``options`` are
    further arguments of :func:`offload.compile`.
    """

    op: str
    form: str
    source: str
    run: Callable[[Library], None] | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    chips: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)

    def target(self, name: str) -> str:
        """How the target is written: ``nvvm:sm_90``."""
        chip = {**CHIPS, **self.chips}[name]
        return f"{name}:{chip}" if chip else name

    def cell(self, name: str) -> str:
        """What the table says."""
        if name in self.refused:
            return f"refused: {self.refused[name]}"
        if name == "host":
            return "runs"
        return "compiles" if self.has_kernels else "lowers"

    @property
    def has_kernels(self) -> bool:
        """Is there code for a device? Otherwise the form is one of host code alone, the same for all targets."""
        return any(word in self.source for word in _KERNELS)


def kernel(body: str, arguments: str, *, attributions: str = "", outside: str = "", name: str = "k") -> str:
    """A program that is one kernel: ``arguments`` as in ``%x: memref<?xf32>``; ``outside`` stands beside it."""
    return (
        f"gpu.module @m {{\n{outside}\n"
        f"gpu.func @{name}({arguments}) {attributions} kernel {{\n{body}\ngpu.return\n}}\n}}\n"
    )


def all_cases() -> list[Case]:
    """The cases of every module in this folder, in the order of the table."""
    cases: list[Case] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        cases += importlib.import_module(f"{__name__}.{module.name}").CASES
    return cases
