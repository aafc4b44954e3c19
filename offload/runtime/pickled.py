"""Pickles: functions and kernels go as the file of their library and their name; what a device holds does not go."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offload.runtime.function import Function
    from offload.runtime.kernel import Kernel


def function_of(path: str, name: str) -> Function:
    """A function of the library at ``path``. Raises `ArtifactError` where there is none now, KeyError for the name."""
    from offload.runtime.library import load  # which imports the classes of what is pickled

    return load(path).functions[name]


def kernel_of(path: str, module: str, name: str) -> Kernel:
    """A kernel of the library at ``path``. Raises as :func:`function_of` does."""
    from offload.runtime.library import load

    return load(path).kernels._at(module, name)


def refusal(what: str, instead: str) -> TypeError:
    """The error of whoever pickles or copies what belongs to this process."""
    return TypeError(f"{what} belongs to this process and is not pickled or copied; {instead}")
