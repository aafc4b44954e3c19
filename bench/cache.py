"""What does a build cost when some of it, or all of it, was compiled before?

Builds saxpy, a file of thirty kernels and a matrix product on the matrix units, for one NVIDIA chip and for five:
without a cache; with one that has nothing yet of the program; with one where a target is added to it, where its host
code has changed, and where nothing has. Then fifty files of which one has changed. The ways take turns. Times are wall
times in seconds, without the first run of each. bench/build.py compares with other compilers. No GPU is needed.

    python bench/cache.py [--runs N] [--json FILE] [--save]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common import RESULTS, arguments_of, call, heading, write_figures

import offload

HERE = Path(__file__).resolve().parent
SAXPY = (HERE.parent / "examples" / "saxpy.mlir").read_text()
SAVED = RESULTS / "cache.json"

ONE = ("nvvm:sm_90",)
FIVE = ("nvvm:sm_80", "nvvm:sm_86", "nvvm:sm_89", "nvvm:sm_90", "nvvm:sm_100")
FILES = 50
GOALS = {"cached, in process": 0.005, "cached, command line": 0.120}
"""The longest time in seconds that a way may take, for any program."""


def thirty_kernels() -> str:
    """Thirty functions with a kernel each, no two of which are the same."""
    texts = []
    for number in range(30):
        text = SAXPY.replace("@saxpy", f"@saxpy{number}").replace("constant 256", f"constant {32 * (number // 2 + 1)}")
        texts.append(text.replace("arith.addf", "arith.mulf") if number % 2 else text)
    return "".join(texts)


PROGRAMS = {
    "saxpy": SAXPY,
    "thirty kernels": thirty_kernels(),
    "matrix product": (HERE / "programs" / "wmma_matmul.mlir").read_text(),
}


def with_other_host_code(text: str) -> str:
    """The program after a change that is outside of its kernels."""
    return text.replace("arith.ceildivui", "arith.ceildivsi", 1)


@contextmanager
def cache_at(folder: Path | None) -> Iterator[None]:
    """The cache's folder inside of the ``with``; None for no cache."""
    before = os.environ.get("OFFLOAD_CACHE_DIR")
    os.environ["OFFLOAD_CACHE_DIR"] = str(folder or "")
    try:
        yield
    finally:
        if before is None:
            del os.environ["OFFLOAD_CACHE_DIR"]
        else:
            os.environ["OFFLOAD_CACHE_DIR"] = before


class Bench:
    """A folder with the programs, and a cache in which nothing of them is but what is known of the tools."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        for name, text in PROGRAMS.items():
            for path, content in (
                (self.source(name), text),
                (self.source(name, changed=True), with_other_host_code(text)),
            ):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)

    def source(self, name: str, changed: bool = False) -> Path:
        """The file of a program; the changed one has the same name, in another folder."""
        return self.folder / ("changed" if changed else "programs") / f"{name.replace(' ', '_')}.mlir"

    def build(self, source: Path, targets: Sequence[str]) -> None:
        """One build in this process."""
        offload.build(source, self.folder / "out.so", targets=targets)

    def forget(self) -> None:
        """Empties the cache; what is known of the tools stays, as in a folder that other programs have used."""
        for stage in ("library", "image", "host"):
            for path in (self.cache / stage).glob("*"):
                path.unlink()

    def ways(self, name: str) -> dict[str, tuple[Callable[[], None], Callable[[], None]]]:
        """By what they are called: what comes before the clock starts, and what is measured."""
        source, changed = self.source(name), self.source(name, changed=True)

        def nothing() -> None:
            pass

        def have(*targets: str) -> Callable[[], None]:
            def prepare() -> None:
                self.forget()
                if targets:
                    self.build(source, targets)

            return prepare

        def without(targets: Sequence[str]) -> Callable[[], None]:
            def run() -> None:
                with cache_at(None):
                    self.build(source, targets)

            return run

        words = [word for target in ONE for word in ("-t", target)]
        command = [sys.executable, "-m", "offload", "build", "-q", str(source), *words, "-o", "out.so"]
        given = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        given |= {"PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"), "OFFLOAD_CACHE_DIR": str(self.cache)}
        return {
            "no cache, one chip": (nothing, without(ONE)),
            "no cache, five chips": (nothing, without(FIVE)),
            "nothing there, one chip": (have(), lambda: self.build(source, ONE)),
            "four of five chips": (have(*FIVE[:-1]), lambda: self.build(source, FIVE)),
            "host code changed": (have(*FIVE), lambda: self.build(changed, FIVE)),
            "cached, in process": (have(*ONE), lambda: self.build(source, ONE)),
            "no cache, command line": (nothing, lambda: call([*command, "--no-cache"], self.folder, given)),
            "cached, command line": (have(*ONE), lambda: call(command, self.folder, given)),
        }

    def fifty(self) -> tuple[float, float]:
        """Seconds for fifty files of which none was compiled, and again after a change in one."""
        sources = [self.folder / "fifty" / f"k{number}.mlir" for number in range(FILES)]
        sources[0].parent.mkdir(exist_ok=True)
        for number, source in enumerate(sources):
            source.write_text(SAXPY.replace("constant 256", f"constant {number + 1}"))
        self.forget()
        times = []
        for _ in range(2):
            started = time.perf_counter()
            for source in sources:
                self.build(source, ONE)
            times.append(time.perf_counter() - started)
            sources[7].write_text(SAXPY.replace("constant 256", "constant 999"))
        return times[0], times[1]


def measure(bench: Bench, name: str, runs: int) -> dict[str, list[float]]:
    """Wall times of every way of a program."""
    ways = bench.ways(name)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(runs + 1):
        for way, (prepare, run) in ways.items():
            prepare()
            started = time.perf_counter()
            run()
            if turn:
                times[way].append(time.perf_counter() - started)
    return times


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table; returns 1 where a goal is missed, 0 otherwise."""
    from offload.compiler.native import native

    options = arguments_of(__doc__, "runs", 9, "runs of each way", SAVED).parse_args(arguments)
    figures, missed = [], []
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        bench = Bench(Path(folder))
        with cache_at(bench.cache):
            for name in PROGRAMS:
                for way, values in measure(bench, name, options.runs).items():
                    median, goal = statistics.median(values), GOALS.get(way)
                    print(f"{name:<15} {way:<24} {1000 * median:>8.1f} ms  (least {1000 * min(values):.1f})")
                    figures.append(
                        {"program": name, "way": way, "median": round(median, 5), "min": round(min(values), 5)}
                    )
                    if goal and median > goal:
                        missed.append(f"{name}, {way}: {1000 * median:.1f} ms; the goal is {1000 * goal:.0f}")
            first, again = bench.fifty()
    print(f"{FILES} files: {first:.2f} s, with one of them changed {again:.2f} s")
    for line in missed:
        print(f"missed: {line}")
    fifty = {"files": FILES, "all": round(first, 4), "one changed": round(again, 4)}
    write_figures(options, {**heading(__doc__, {"llvm": native().llvm_version}), "ways": figures, "fifty": fifty})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
