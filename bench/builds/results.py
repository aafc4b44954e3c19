"""What the times say: goals, a table, and the figures for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from common import heading, spread

from builds.fifty import on_two_cores
from builds.ours import NAME
from builds.toolkit import FIVE_CHIPS, NVIDIA, chip_of
from builds.way import CACHED, CACHED_NEW, NEW, Skipped, Way

FIVE_TO_ONE = 1.5
"""The longest time for five chips, in times for one."""
LONGEST = {CACHED: 0.005, CACHED_NEW: 0.120}
"""The longest time in seconds, for any program."""
TWO_CORES = 1.8
"""How much faster two cores build fifty files than one, at least."""

Times = Mapping[str, Sequence[float]]


def medians_of(times: Times) -> dict[str, float]:
    return {name: float(spread(values)["median"]) for name, values in times.items()}


def ours_beside(way: Way, ways: Iterable[Way]) -> Way | None:
    """Our way for the same program and chips in the same manner; None where there is none."""
    same = (way.program, way.chips, way.how)
    return next((each for each in ways if each.tool == NAME and (each.program, each.chips, each.how) == same), None)


def ratio(way: Way, ways: Sequence[Way], medians: Mapping[str, float]) -> float | None:
    """A peer's time in times of ours; None for our own, and where we have nothing beside it."""
    ours = None if way.tool == NAME else ours_beside(way, ways)
    return medians[way.name] / medians[ours.name] if ours else None


def missed_goals(ways: Sequence[Way], times: Times) -> list[str]:
    """A line for each goal that is missed. Peers that took no part miss none."""
    medians = medians_of(times)
    missed = []
    for way in ways:
        found = ratio(way, ways, medians)
        if found is not None and found < 1 and way.how == NEW and way.chips != FIVE_CHIPS:
            missed.append(
                f"{way.program}, {way.chips}: {way.tool} takes {found:.2f} of our time; the goal is to be faster"
            )
    for way in ways:
        took = medians[way.name]
        if (longest := LONGEST.get(way.how)) is not None and took > longest:
            missed.append(f"{way.program}, {way.how}: {1e3 * took:.1f} ms; the goal is {1e3 * longest:.0f}")
    for program, factor in five_to_one(ways, medians).items():
        if factor > FIVE_TO_ONE:
            missed.append(f"{program}: five chips take {factor:.2f} of the time for one; the goal is {FIVE_TO_ONE}")
    faster = on_two_cores(medians, ways)
    if faster is not None and faster < TWO_CORES:
        missed.append(f"fifty files: two cores are {faster:.2f} times as fast as one; the goal is {TWO_CORES}")
    return missed


def five_to_one(ways: Sequence[Way], medians: Mapping[str, float]) -> dict[str, float]:
    """By program: our time for five chips in times for one of them, each from a new process."""
    ours = {(way.program, way.chips): medians[way.name] for way in ways if way.tool == NAME and way.how == NEW}
    one = chip_of(NVIDIA)
    return {
        program: took / ours[program, one]
        for (program, chips), took in ours.items()
        if chips == FIVE_CHIPS and (program, one) in ours
    }


def table(ways: Sequence[Way], times: Times) -> str:
    """Milliseconds; how many times ours a peer takes; what is made."""
    medians = medians_of(times)
    lines = [f"{'median':>9} {'min':>9} {'max':>9} {'/ ours':>7}  way"]
    for way in ways:
        values, found = times[way.name], ratio(way, ways, medians)
        cells = " ".join(f"{1e3 * figure:>9.1f}" for figure in (medians[way.name], min(values), max(values)))
        lines.append(f"{cells} {'' if found is None else f'{found:.2f}':>7}  {way.name}: {way.what}")
    return "\n".join(lines)


def report(
    document: str | None,
    ways: Sequence[Way],
    times: Times,
    skipped: Sequence[Skipped],
    versions: Mapping[str, str],
) -> dict[str, object]:
    """The figures with what they were measured on, for JSON. Times are in seconds."""
    medians = medians_of(times)
    faster = on_two_cores(medians, ways)
    return {
        **heading(document, versions),
        "goals": {
            "faster_than_every_peer": NEW,
            "five_chips_to_one": FIVE_TO_ONE,
            "longest": LONGEST,
            "two_cores_to_one": TWO_CORES,
        },
        "missed": missed_goals(ways, times),
        "five_chips_to_one": {name: round(factor, 4) for name, factor in five_to_one(ways, medians).items()},
        "two_cores_to_one": None if faster is None else round(faster, 4),
        "ways": [figures(way, ways, times, medians) for way in ways],
        "skipped": [{"program": each.program, "tool": each.tool, "why": each.why} for each in skipped],
    }


def figures(way: Way, ways: Sequence[Way], times: Times, medians: Mapping[str, float]) -> dict[str, object]:
    found = ratio(way, ways, medians)
    return {
        "program": way.program,
        "tool": way.tool,
        "chips": way.chips,
        "how": way.how,
        "what": way.what,
        **spread(times[way.name]),
        "ratio_to_ours": None if found is None else round(found, 4),
    }
