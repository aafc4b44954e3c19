"""Host programs of the CPU's tests, on a device: the same test functions, whose programs are compiled beforehand."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import blocks
from emulator.on_device import OnDevice

from device.checks import Check, Program
from offload.runtime import Library

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
TESTS: dict[str, tuple[str, ...]] = {
    "backends.test_async": (
        "test_a_chain_through_device_memory", "test_two_streams_that_meet", "test_a_token_goes_round_a_loop",
        "test_a_token_comes_out_of_a_branch", "test_a_token_goes_through_functions",
        "test_a_token_made_in_a_function_is_used_after_it", "test_no_dependencies", "test_the_same_without_tokens",
        "test_memory_shared_with_the_host", "test_registered_host_memory", "test_many_calls_from_many_threads",
        "test_temporaries_of_kernels", "test_fills_of_every_width",
    ),
    "backends.test_async_dialect": (
        "test_tokens_of_streams_as_async_values", "test_an_async_function", "test_a_chosen_value", "test_groups",
    ),
    "kernels.test_buffers": (
        "test_a_choice_between_heap_and_stack", "test_a_global_that_kernels_and_host_code_change",
        "test_a_buffer_that_a_loop_replaces",
    ),
    "cpu.test_host_semantics": (
        "test_barriers_in_while_loops_and_branches", "test_private_memory_survives_barriers",
        "test_barriers_in_blocks_of_three_dimensions", "test_threads_that_work_longer_are_waited_for",
        "test_static_module_and_dynamic_workgroup_memory_together",
        "test_dynamic_workgroup_memory_of_an_inline_launch", "test_functions_called_from_kernels",
        "test_globals_of_a_device_module",
    ),
    "building.test_stages": (
        "test_from_launches_and_kernels", "test_an_empty_parallel_loop_does_nothing", "test_from_affine_loops",
        "test_from_forall", "test_from_linalg", "test_from_a_linalg_reduction_to_one_number",
        "test_linalg_inside_a_kernel", "test_loops_around_and_after_each_other",
        "test_from_parallel_loops_with_a_step_of_the_caller",
    ),
    "backends.test_wait_once": ("test_functions_of_several_kernels",),
}  # fmt: skip
"""Tests that take one program each, by their room and file."""

FILES = ("async", "async_dialect", "buffers", "barriers", "shared", "temporaries", "parallel_step", "wait_once")
"""What they take of tests/programs, beside its folder levels."""


class _Found(BaseException):
    """Not an Exception: a test may expect those."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program


@contextmanager
def _with(module: ModuleType, given: Callable[[Program], Any]) -> Iterator[None]:
    """The tests of a module get their libraries from ``given``."""

    def on_host(source: str | Path, opt: int = 3, target: str = "host") -> Any:
        text = source.read_text() if isinstance(source, Path) else source
        return given(Program(text, options={"opt": opt}))

    def named(folder: Path) -> Callable[[str], Any]:
        return lambda name: on_host(folder / f"{name}.mlir")

    changes = {"on_host": on_host, "program": named(PROGRAMS), "level": named(PROGRAMS / "levels")}
    kept = [
        (where, name, getattr(where, name)) for where in (module, blocks) for name in changes if hasattr(where, name)
    ]
    try:
        for where, name, _ in kept:
            setattr(where, name, changes[name])
        yield
    finally:
        for where, name, value in kept:
            setattr(where, name, value)


def _parameters(test: Callable[..., None]) -> Iterator[Mapping[str, Any]]:
    """The arguments of each run of a test, from its marks."""
    axes = []
    for mark in getattr(test, "pytestmark", []):
        names = [name.strip() for name in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
        values = [value if len(names) > 1 else (value,) for value in mark.args[1]]
        axes.append([dict(zip(names, each, strict=True)) for each in values])
    for choice in itertools.product(*axes):
        yield {name: value for part in choice for name, value in part.items()}


def _program(module: ModuleType, test: Callable[..., None], arguments: Mapping[str, Any]) -> Program:
    def found(program: Program) -> None:
        raise _Found(program)

    with _with(module, found):
        try:
            test(**arguments)
        except _Found as stop:
            return stop.program
    raise ValueError(f"{test.__name__} takes no program")


def _running(module: ModuleType, test: Callable[..., None], arguments: Mapping[str, Any]) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        with _with(module, lambda program: OnDevice(library)):
            test(**arguments)

    return run


def checks() -> Iterator[Check]:
    for name, tests in TESTS.items():
        module = importlib.import_module(name)
        for called in tests:
            test = getattr(module, called)
            for number, arguments in enumerate(_parameters(test)):
                program = _program(module, test, arguments)
                told = f"{name.partition('.test_')[2]}: {called.removeprefix('test_').replace('_', ' ')}, {number}"
                yield Check("host programs", told, [program], _running(module, test, arguments))
