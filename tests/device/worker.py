"""Runs the checks that suite.py names, one after the other, in this process, and answers how each went."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from device.checks import Check, NotRun, checks_of
from device.store import Store

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"


def outcome(check: Check, store: Store, backend: str) -> dict[str, Any]:
    """Runs one check: what became of it, in how many seconds, and why."""
    start = time.monotonic()
    result, why = PASSED, ""
    try:
        if missing := check.missing():
            raise NotRun(missing)
        check.run(*(store.load(program, backend) for program in check.programs))
    except NotRun as reason:
        result, why = NOT_RUN, str(reason)
    except BaseException:  # pytest.fail's is no Exception; what comes next runs in another process
        result, why = FAILED, traceback.format_exc()[-4000:]
    return {"id": check.id, "outcome": result, "seconds": round(time.monotonic() - start, 3), "why": why}


def main(folder: str, backend: str, pipe: str) -> None:
    """Works on the checks that come in, a module and a name on each line, until there are no more."""
    store = Store(Path(folder))
    with os.fdopen(int(pipe), "w", buffering=1) as out:
        for line in sys.stdin:
            module, name = json.loads(line)
            out.write(json.dumps(outcome(checks_of(module)[name], store, backend)) + "\n")
    sys.stdout.flush()
    # What is left may belong to a broken device, whose driver may crash as it goes.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
