"""Executors by URL: a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from offload.errors import OffloadError, ToolkitError, UsageError

if TYPE_CHECKING:
    import logging
    from concurrent.futures import Executor, Future

_PATIENCE = 2.0
"""Seconds after which a job that is not done raises the question whether its executor is there."""


def room(executor: Executor) -> int:
    """How many jobs an executor does at a time; 1 where it does not tell."""
    client = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):  # Dask's; a cluster that grows has none to begin with
        return sum(client.nthreads().values()) or 1
    # That of concurrent.futures' own, which joblib's and others have from them; mpi4py's has the other.
    told = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
    return told if isinstance(told, int) else 1


def submitted(executor: Executor, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """The job of an executor. Raises OffloadError where it takes no jobs any more, TypeError where it is none."""
    try:
        job = executor.submit(function, *arguments)
    except RuntimeError as error:  # BrokenExecutor is one
        raise OffloadError(
            f"the executor takes no builds: {error}; it was shut down or has lost its processes: make another"
        ) from error
    if not (callable(getattr(job, "result", None)) and callable(getattr(job, "cancel", None))):
        raise TypeError(f"executor.submit() gives a job as concurrent.futures.Future is one, not {job!r}")
    return job


def result(executor: Executor, future: Future[Any], given_up: Callable[[], bool] = lambda: False) -> Any:
    """What a job came to. Raises what it raised, OffloadError where the executor has lost its processes, and
    CancelledError where nobody wants it any more, as ``given_up`` tells, or the cluster is gone."""
    from concurrent.futures import BrokenExecutor

    try:
        return _awaited(executor, future, given_up)
    except BrokenExecutor as error:
        raise OffloadError(
            f"the executor has lost its processes, and this build with them: {str(error).rstrip('.')}. Where memory "
            "runs out, the system ends them; make another executor to build again"
        ) from error


def _awaited(executor: Executor, future: Future[Any], given_up: Callable[[], bool]) -> Any:
    """The same. Dask forgets a job that was handed over while its scheduler was being lost."""
    from concurrent.futures import CancelledError, TimeoutError

    while True:
        try:
            return future.result(timeout=_PATIENCE)
        except TimeoutError:
            if future.done():  # this may be the job's own, or that of a job which is done by now
                return future.result()
            if given_up() or getattr(getattr(executor, "_client", None), "status", None) == "closed":
                raise CancelledError from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask hands results to jobs that were given up meanwhile, after an error, and logs a traceback of each."""
    import logging  # Dask has it
    from concurrent.futures import InvalidStateError

    def is_news(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], InvalidStateError))

    logger = logging.getLogger("tornado.application")
    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


@contextlib.contextmanager
def opened(url: str | Executor | None) -> Iterator[Executor | None]:
    """The executor of a URL, closed at the end; one that is there already stays open, none is none.

    Raises OffloadError for a URL that leads nowhere, TypeError for what is neither."""
    if not isinstance(url, str):
        if url is not None and not callable(getattr(url, "submit", None)):
            raise TypeError(
                "executor is one of concurrent.futures', the URL of a Dask cluster (dask://HOST:PORT) or None, not "
                f"{url!r}"
            )
        yield url
        return
    from concurrent.futures import CancelledError
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        is_one = parts.scheme == "dask" and parts.hostname and parts.port is not None and not parts.path
    except ValueError:  # a port that is no number, brackets that are no address of IPv6
        is_one = False
    if not is_one:
        raise UsageError(f"no executor {url!r}: write dask://HOST:PORT, the address of a Dask cluster's scheduler")
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise ToolkitError(
            f"cannot use {url}: Python's package distributed cannot be imported: {error}\n  to get it: "
            "pip install 'offload[dask]'"
        ) from error
    try:
        client = Client(f"tcp://{parts.netloc}", timeout=10)
    except OSError as error:
        raise OffloadError(f"cannot use {url}: no scheduler answers there: {error}") from error
    # Not pure: Dask would remember what became of a build, errors of a missing toolkit too. No retries: these are for
    # errors, which would come again; a build whose process was lost is done again without them.
    try:
        with _quiet(), client, client.get_executor(pure=False) as executor:
            yield executor
    except CancelledError as error:
        raise OffloadError(f"the cluster {url} was lost: its scheduler does not answer any more") from error
    except KilledWorker as error:
        raise OffloadError(f"the cluster {url} has given a build up: {error}") from error
