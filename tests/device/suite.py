"""The suite: ``python -m device.suite --artifacts FOLDER --backend cuda --json FILE``, in the folder of the tests.

Checks run in worker processes. One that crashes, hangs or leaves the device broken costs its own result alone: it
counts as failed, and the rest goes on in a new process. Ends with 1 where something failed or was not reached; what
could not run here is counted by its reasons; where nothing passed, that is a failure too.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from device.checks import CUDA, HOST, Check, checks_of
from device.groups import all_checks
from device.worker import FAILED, NOT_RUN, PASSED

STARTING = 60.0
"""Seconds that a worker's first check may take longer: imports, the driver's start."""

PACKED = "checks.json"
"""In the folder of compiled programs: by module, the names of the checks whose programs are there."""

Result = dict[str, Any]


class Worker:
    """A process that runs checks."""

    def __init__(self, folder: Path, backend: str) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._reading, writing = os.pipe()
        self._rest, self.asked = b"", 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "device.worker", str(folder), backend, str(writing)],
            stdin=subprocess.PIPE, stdout=self._log, stderr=subprocess.STDOUT, pass_fds=[writing], text=True, bufsize=1,
        )  # fmt: skip
        os.close(writing)

    def ask(self, check: Check, until: float) -> Result:
        """Has a check run; a crash, or one that takes too long, is a failure of the check."""
        limit = check.seconds + (0 if self.asked else STARTING)
        start = time.monotonic()
        self.asked += 1
        try:
            assert self._process.stdin
            self._process.stdin.write(json.dumps([check.module, check.id]) + "\n")
            line = self._line(min(start + limit, until))
        except TimeoutError:
            late = time.monotonic() >= until
            why = "the suite's time was over" if late else f"it took longer than {limit:.0f} s"
        except BrokenPipeError:
            why = f"the process ended before the check: {self._ending()}"
        else:
            if line is not None:
                return dict(json.loads(line))
            why = f"the process ended: {self._ending()}"
        return {"id": check.id, "outcome": FAILED, "seconds": round(time.monotonic() - start, 3), "why": why}

    def _ending(self) -> str:
        code = self._process.wait()
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with {code}"

    def _line(self, until: float) -> bytes | None:
        """The next line; None where the process ended. Raises TimeoutError."""
        while b"\n" not in self._rest:
            if not select.select([self._reading], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError
            more = os.read(self._reading, 1 << 16)
            if not more:
                return None
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return line

    def end(self) -> str:
        """Ends the process and returns the end of what it printed."""
        self._process.kill()
        self._process.communicate()
        os.close(self._reading)
        with self._log:
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 2000))
            return self._log.read().decode(errors="replace")


def run(checks: Sequence[Check], folder: Path, backend: str, until: float) -> Iterator[Result]:
    """The results of checks, in their order. What is not reached at the clock's time ``until`` has failed."""
    worker: Worker | None = None
    for check in checks:
        if backend not in check.backends:
            why = f"it is for {' and '.join(check.backends)}"
            yield {"id": check.id, "outcome": NOT_RUN, "seconds": 0.0, "why": why}
            continue
        if time.monotonic() >= until:
            yield {"id": check.id, "outcome": FAILED, "seconds": 0.0, "why": "not reached: the suite's time was over"}
            continue
        if worker and worker.asked and check.alone:
            worker.end()
            worker = None
        worker = worker or Worker(folder, backend)
        result = worker.ask(check, until)
        if result["outcome"] == FAILED or check.alone:
            printed = worker.end()
            worker = None
            if result["outcome"] == FAILED:
                result["printed"] = printed
        yield result
    if worker:
        worker.end()


def chosen(folder: Path, pattern: str, every: int) -> list[Check]:
    """The checks whose names a regular expression finds, or every so-manieth of them.

    Where the folder of compiled programs tells for which checks it has them, these are all. Raises ValueError where one
    of these is not known: the tests are others than those that the programs were compiled for."""
    packed = folder / PACKED
    if not packed.exists():
        return [check for check in all_checks() if re.search(pattern, check.id)][::every]
    chosen = []
    for module, names in json.loads(packed.read_text()).items():
        for name in filter(re.compile(pattern).search, names):
            if name not in checks_of(module):
                raise ValueError(f"{packed} names a check that is not in these tests: {name}")
            chosen.append(checks_of(module)[name])
    return chosen[::every]


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Counts by group and outcome, and the reasons of what was not run."""
    groups: dict[str, dict[str, int]] = {}
    for result in results:
        counts = groups.setdefault(result["id"].split("/")[0], {PASSED: 0, FAILED: 0, NOT_RUN: 0})
        counts[result["outcome"]] += 1
    reasons = collections.Counter(result["why"] for result in results if result["outcome"] == NOT_RUN)
    return {"groups": groups, "reasons": dict(reasons.most_common())}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--artifacts", type=Path, required=True, help="the folder of compiled programs")
    parser.add_argument("--backend", choices=(CUDA, HOST), required=True)
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--only", default="", help="a regular expression that names of checks must have")
    parser.add_argument("--every", type=int, default=1, help="run every so-manieth check alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=540, help="for the whole suite")
    given = parser.parse_args(arguments)
    checks = chosen(given.artifacts, given.only, given.every)
    start, results = time.monotonic(), []
    shares = [checks[place :: given.jobs] for place in range(given.jobs)]
    with ThreadPoolExecutor(given.jobs) as pool:
        until = start + given.seconds

        def work(share: Sequence[Check]) -> list[Result]:
            found = []
            for result in run(share, given.artifacts, given.backend, until):
                found.append(result)
                if result["outcome"] == FAILED:
                    print(f"FAILED {result['id']}\n{result['why']}\n{result.get('printed', '')}", flush=True)
            return found

        for found in pool.map(work, shares):
            results += found
    told = summary(results)
    for name, counts in told["groups"].items():
        print(f"{name:<14}" + ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count))
    for reason, count in told["reasons"].items():
        print(f"not run: {reason} ({count})")
    failed = sum(counts[FAILED] for counts in told["groups"].values())
    print(f"{len(results)} checks on {given.backend}, {failed} failed, {time.monotonic() - start:.0f} s")
    if given.json:
        report = {"backend": given.backend, **told, "results": results}
        given.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if failed or not any(counts[PASSED] for counts in told["groups"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
