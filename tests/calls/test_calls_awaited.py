"""Calls and launches in asyncio: awaited, given up, and where none of its loops runs."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from compiling import python
from runtime_support import real

from offload.runtime import Pending, Running


def test_launches_on_streams_are_awaited() -> None:
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    stream = real().stream()

    async def run() -> None:
        pending = real().kernels.saxpy[1, 4, stream](2, x, y)
        assert isinstance(pending, Pending)
        await pending

    asyncio.run(run())
    assert y.tolist() == [0, 2, 4, 6]


def test_calls_are_awaited() -> None:
    async def several() -> list[int]:
        return await asyncio.gather(*(real().echo_int64.start(n) for n in range(5)))

    assert asyncio.run(several()) == list(range(5))


async def _awaited(running: Running) -> object:
    return await running


def test_awaiting_calls_takes_no_thread_of_the_loop() -> None:
    flag = np.zeros(1, np.int64)

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        given_up, waited_for = (asyncio.ensure_future(_awaited(real().wait_for.start(flag))) for _ in range(2))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.to_thread(flag.fill, 1)
        await waited_for
        assert given_up.cancelled()

    asyncio.run(run())


IN_A_CHILD = """
import asyncio, os, sys
import numpy, offload
library = offload.load(sys.argv[1])
library.use("host")
flag = numpy.zeros(1, numpy.int64)
running, ended = library.wait_for.start(flag), library.echo_int64.start(3)
ended.wait()
there, stream = library.device.array(numpy.ones(4, numpy.float32)), library.stream()
launched = library.kernels.saxpy[1, 4, stream](2.0, there, there)
if os.fork() == 0:
    print(ended.wait(), ended.done, running)
    async def awaited():
        await running
    for wait in running.wait, lambda: running.done, lambda: asyncio.run(awaited()), launched.wait, there.numpy:
        try:
            print(wait())
        except offload.DeviceError as error:
            print(error)
    sys.stdout.flush()
    os._exit(0)
os.wait()
flag[0] = 1
running.wait()
"""


def test_a_call_is_waited_for_where_it_was_started(tmp_path: Path) -> None:
    """In the child of a fork its result was None, and it was done there."""
    said = (
        "The call was started in the parent of this process and ends there: wait for it there, or start it again here."
    )
    before = (
        "This was launched in the parent of this process, and cannot be waited for here: wait for it before the fork."
    )
    assert python(IN_A_CHILD, real().path, cwd=tmp_path).splitlines() == [
        "3 True <offload call, running>",
        *(said, said, said, before, before),
    ]


def test_other_loops() -> None:
    with pytest.raises(RuntimeError, match=r"awaited in asyncio, .* elsewhere call wait\(\), in a thread"):
        real().echo_int64.start(1).__await__().send(None)


def test_waits_that_are_given_up_leave_nothing() -> None:
    begun, end = threading.Event(), threading.Event()

    def call() -> int:
        begun.set()
        end.wait(60)
        return 3

    running = Running(real()._native, call)
    begun.wait(60)

    async def poll() -> int:
        for _ in range(5):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.ensure_future(waited()), 0.001)
        assert running._outcome._listeners == []
        end.set()
        return await waited()

    async def waited() -> int:
        found: int = await running
        return found

    assert asyncio.run(poll()) == 3
