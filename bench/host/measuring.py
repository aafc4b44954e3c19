"""Each engine in a process of its own, so that its threads and libraries leave the others alone; they take turns."""

from __future__ import annotations

import gc
import multiprocessing
import statistics
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from host.engine import LeftOut, Missing, Program, make
from host.problem import SIZES
from host.problems import problem

TURN = 0.06
"""Seconds that an engine calls one kernel for in a turn; at least one call."""
PAUSE = 0.005
"""Seconds before a turn, in which the threads of the engine before it go to sleep."""


@dataclass(frozen=True)
class Cell:
    """One engine on one problem. ``turns`` are the medians of its turns, in seconds per call; without any, ``why``
    says what is in the way. Traffic and operations are the problem's."""

    engine: str
    kernel: str
    size: str
    turns: tuple[float, ...] = ()
    traffic: int = 0
    operations: int = 0
    why: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.turns)


class Worker:
    """An engine's process. ``missing`` says why it is not there; None where it is."""

    def __init__(self, engine: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.engine = engine
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, engine), daemon=True)
        self.process.start()
        theirs.close()
        kind, said = self.answer()
        self.missing: str | None = said if kind == "missing" else None
        self.versions: dict[str, str] = {} if self.missing else said

    def ask(self, *request: Any) -> tuple[str, Any]:
        """The answer to a request. Raises RuntimeError where the engine fails: its figures would be worth nothing."""
        self.pipe.send(request)
        return self.answer()

    def answer(self) -> tuple[str, Any]:
        try:
            kind, said = self.pipe.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(f"the process of {self.engine} ended: exit code {self.process.exitcode}") from None
        if kind == "failed":
            raise RuntimeError(f"{self.engine} failed:\n{said}")
        return kind, said

    def close(self) -> None:
        self.pipe.close()
        self.process.join()


def measure(
    workers: Sequence[Worker],
    kernels: Sequence[str],
    runs: int,
    progress: Callable[[str], None],
    sizes: Sequence[str] = SIZES,
) -> list[Cell]:
    """Every engine on every kernel, at every size. Raises RuntimeError where an engine fails or answers wrongly."""
    cells = []
    for kernel in kernels:
        for size in sizes:
            progress(f"{kernel}, {size}")
            counts: dict[str, tuple[int, int]] = {}
            for worker in workers:
                kind, said = worker.ask("prepare", kernel, size)
                if kind == "left out":
                    cells.append(Cell(worker.engine, kernel, size, why=said))
                else:
                    counts[worker.engine] = said
            taking_part = [worker for worker in workers if worker.engine in counts]
            turns: dict[str, list[float]] = {worker.engine: [] for worker in taking_part}
            for turn in range(runs):
                for place in range(len(taking_part)):
                    worker = taking_part[(turn + place) % len(taking_part)]
                    time.sleep(PAUSE)
                    turns[worker.engine].append(worker.ask("turn")[1])
            cells += [Cell(engine, kernel, size, tuple(times), *counts[engine]) for engine, times in turns.items()]
    return cells


def serve(pipe: Connection, name: str) -> None:
    """The life of a worker: answers requests until the pipe ends."""
    try:
        engine = make(name)
    except Missing as missing:
        pipe.send(("missing", str(missing)))
        return
    except Exception:
        pipe.send(("failed", traceback.format_exc()))
        return
    pipe.send(("ready", engine.versions))
    program: Program | None = None
    while True:
        try:
            request, *words = pipe.recv()
        except EOFError:
            return
        try:
            if request == "prepare":
                program = None  # lets go of the last problem's memory
                gc.collect()
                data = problem(*words)
                program = engine.prepare(data)
                program.run()
                program.run()  # a second call must not count on what the first one found
                data.check(program.outputs())
                pipe.send(("prepared", (data.traffic, data.operations)))
            elif program is not None:
                pipe.send(("took", statistics.median(one_turn(program))))
        except LeftOut as left_out:
            pipe.send(("left out", str(left_out)))
        except Exception:
            pipe.send(("failed", traceback.format_exc()))


def one_turn(program: Program) -> list[float]:
    """Seconds of each call, without the first: what other engines left in the caches is its burden."""
    program.run()
    times: list[float] = []
    began = time.perf_counter()
    while not times or time.perf_counter() - began < TURN:
        started = time.perf_counter()
        program.run()
        times.append(time.perf_counter() - started)
    return times
