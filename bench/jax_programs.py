"""Do the programs that JAX's functions become give JAX's results, and how fast are they beside XLA?

JAX traces each function of frontends/, IREE's passes lower its StableHLO to linalg on tensors, and offload builds that.
Small ones (operators, gradients, loops, layers), with sizes in their types and without, are called on the CPU, and on
emulated GPUs where --targets says so; their results are compared with JAX's. Those of the sizes of real work are timed
on the CPU, for host:native, beside XLA in turns; milliseconds are medians. No GPU is needed. JAX and IREE come with
`pip install '.[bench]'`, what the emulators need with `'.[test]'`.

    python bench/jax_programs.py [--turns N] [--targets NAME,…] [--programs NAME,…] [--json FILE] [--save]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
from common import RESULTS, arguments_of, heading, some_of, spread, write_figures
from frontends.checking import arrays_of, called, difference, library, signless
from frontends.functions import Program, programs
from frontends.lowering import NotLowered, known_sizes, unknown_sizes
from frontends.timed import timed

from offload.errors import OffloadError

SAVED = RESULTS / "jax_programs.json"
TARGETS = ("host", "sm_90", "gfx942", "gfx1100")
SIZES = {"known": known_sizes, "unknown": unknown_sizes}
GOAL = 2.0
"""The median over the timed programs of the time as a multiple of XLA's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks, measures and prints tables; returns 1 where a result is wrong or a goal is missed, 0 otherwise."""
    small, large = programs(), timed()
    parser = arguments_of(__doc__, "turns", 9, "turns of each timed program", SAVED)
    parser.add_argument("--targets", type=some_of(TARGETS), default=["host"], help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--programs", type=some_of([*small, *large]), default=[*small, *large], help="some of them")
    options = parser.parse_args(arguments)
    small, large = ({name: of[name] for name in of if name in options.programs} for of in (small, large))
    checked = [found for sizes in SIZES for found in check(small, sizes, options.targets)]
    counted = counts(checked)
    for each in counted:
        told = ", ".join(f"{count} {what}" for what, count in each["programs"].items())
        print(f"{each['target']}, {each['sizes']} sizes: {told}")
    wrong = [each for each in checked if each["was"] == "wrong"]
    for each in wrong:
        print(f"wrong: {each['program']}, {each['sizes']} sizes, {each['target']}: {each['why']}")
    jax.config.update("jax_enable_x64", False)
    times = {}
    for name, program in large.items():
        try:
            times[name] = time_of(program, options.turns)
        except (OffloadError, NotLowered, ValueError) as error:
            wrong.append({"program": name, "why": str(error)})
            print(f"wrong: {name}: {error}")
    for name, of in times.items():
        print(f"{name:16} {of['offload']['median']:9.3f} ms, XLA {of['xla']['median']:9.3f} ms: {ratio(of):5.2f}")
    middle = statistics.median(map(ratio, times.values())) if times else 0
    print(f"the median of {len(times)}: {middle:.2f} of XLA's time; the goal is {GOAL}")
    versions = {"jax": jax.__version__, "iree": version("iree-base-compiler")}
    write_figures(
        options,
        {
            **heading(__doc__, versions),
            "checked": counted,
            "wrong": wrong,
            "milliseconds": times,
            "median": round(middle, 2),
            "goal": GOAL,
        },
    )
    return 1 if wrong or middle > GOAL else 0


def counts(checked: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """How many programs became what, for each target and kind of sizes."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for each in checked:
        found.setdefault((each["target"], each["sizes"]), Counter())[each["was"]] += 1
    return [{"target": target, "sizes": sizes, "programs": dict(was)} for (target, sizes), was in found.items()]


def check(small: Mapping[str, Program], sizes: str, targets: Sequence[str]) -> list[dict[str, str]]:
    """Every program on every target: right, wrong, or not lowered to what MLIR has, and why."""
    lower = partial(lowered, SIZES[sizes])
    with ThreadPoolExecutor() as several:
        texts = dict(zip(small, several.map(lower, small.values()), strict=True))
    found = []
    for name, (function, arguments) in small.items():
        text = texts[name]
        wanted = None if isinstance(text, NotLowered) else arrays_of(jax.jit(function)(*arguments))
        for target in targets:
            said = {"program": name, "sizes": sizes, "target": target}
            if wanted is None:
                found.append({**said, "was": "not lowered", "why": str(text)})
            elif why := trouble(text, target, arguments, wanted):
                found.append({**said, "was": "wrong", "why": why})
            else:
                found.append({**said, "was": "right"})
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def lowered(lower: Callable[..., str], program: Program) -> str | NotLowered:
    """The program as linalg, or why there is none."""
    try:
        return lower(*program)
    except NotLowered as error:
        return error


def trouble(text: str, target: str, arguments: Sequence[Any], wanted: Sequence[Any]) -> str | None:
    """What is wrong with the program's results, or the error of building or calling it."""
    try:
        return difference(called(text, target, arguments), wanted)
    except Exception as error:  # whatever it is, the other programs are to be checked, too
        return f"{type(error).__name__}: {error}"


def time_of(program: Program, turns: int) -> dict[str, dict[str, float]]:
    """Milliseconds of a call with arrays that are there already. Raises ValueError where the results differ."""
    function, arguments = program
    compiled = jax.jit(function)
    given = [jax.numpy.asarray(each) for each in arguments]
    wanted = arrays_of(compiled(*given))
    times: dict[str, list[float]] = {"offload": [], "xla": []}
    with library(known_sizes(function, arguments), "host:native") as loaded:
        own = [np.array(signless(each)) for each in arguments]
        if why := difference(arrays_of(loaded.main(*own)), wanted):
            raise ValueError(why)
        ways = {"offload": lambda: loaded.main(*own), "xla": lambda: jax.block_until_ready(compiled(*given))}
        for _ in range(turns):
            for way, run in ways.items():
                run()  # whatever the other way left in the caches
                start = time.perf_counter()
                run()
                times[way].append(1e3 * (time.perf_counter() - start))
    return {way: spread(each) for way, each in times.items()}


def ratio(of: Mapping[str, Mapping[str, float]]) -> float:
    """How many times longer than XLA."""
    return of["offload"]["median"] / of["xla"]["median"]


if __name__ == "__main__":
    sys.exit(main())
