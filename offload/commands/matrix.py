"""``offload matrix``: the jobs of a package's CI, as its CI system takes them."""

from __future__ import annotations

import argparse
from pathlib import Path

from offload.hooks.matrix import jobs_of
from offload.hooks.matrix_formats import FORMATS
from offload.hooks.python_versions import ordered
from offload.hooks.tox import as_tox, check_tox


def matrix(options: argparse.Namespace) -> int:
    """Prints the jobs, or checks a tox.ini; returns the exit code. Raises OffloadError."""
    pythons = ordered(python for given in options.python for python in given)
    package, jobs = jobs_of(Path(options.pyproject), pythons)
    if options.check_tox is not None:
        check_tox(Path(options.check_tox), package, jobs)
        return 0
    write = as_tox if options.format == "tox" else FORMATS[options.format]
    print(write(package, jobs), end="")
    return 0
