"""pytest: tests on the backends of this machine, and those that cannot run here told as *not run*.

The fixture ``offload_backend`` runs a test once on each backend; the markers ``cuda``, ``hip`` and ``rocm`` say what a
test needs. pytest loads this file in every project where offload is installed: until a test asks for a backend, it
imports neither NumPy nor ctypes, and looks for no device."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from offload.config import BACKEND_ALIASES, BACKENDS, environment

FIXTURE = "offload_backend"
NOT_RUN = "not run"
_MARKERS = {name: name for name in BACKENDS if name != "host"} | BACKEND_ALIASES
# By configuration and by test; a stash, which these have for it, came with pytest 7.
_own_markers: WeakKeyDictionary[pytest.Config, frozenset[str]] = WeakKeyDictionary()
_needed: WeakKeyDictionary[pytest.Item, list[str]] = WeakKeyDictionary()
_undo: WeakKeyDictionary[pytest.Item, contextlib.ExitStack] = WeakKeyDictionary()
_RAN = ("passed", "failed", "error", "xfailed", "xpassed")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("offload")
    known = ",".join((*BACKENDS, *BACKEND_ALIASES))
    group.addoption(
        "--offload-backend",
        metavar="NAMES",
        help=f"backends to test on: all, or some of {known} (default: OFFLOAD_BACKEND, else all). What is not in this "
        "machine is reported as not run.",
    )
    group.addoption(
        "--offload-require",
        metavar="NAMES",
        help="backends that must be in this machine: pytest stops where one is not",
    )
    parser.addini(
        "offload_markers",
        "are the markers cuda, hip and rocm offload's? (default: those that the project does not register itself)",
        type="bool",
        default=None,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Raises UsageError for an unknown backend in an option, and for one that is required and absent."""
    registered = {line.split(":")[0].split("(")[0].strip() for line in config.getini("markers")}
    _own_markers[config] = frozenset(registered & set(_MARKERS))
    for name, backend in _MARKERS.items():
        config.addinivalue_line("markers", f"{name}: needs a device of offload's backend {backend}; else it is not run")
    if config.getoption("--offload-backend"):
        _chosen(config)
    for backend in _names(config.getoption("--offload-require") or "", "--offload-require"):
        if why := _absence(backend):
            raise pytest.UsageError(f"--offload-require={backend}: this machine has no such device: {why}")


def _chosen(config: pytest.Config) -> tuple[tuple[str, ...], str]:
    """The backends to test on, and for others why not. Raises UsageError."""
    option, variable = config.getoption("--offload-backend"), environment("OFFLOAD_BACKEND")
    asked_by, text = ("--offload-backend", option) if option else ("OFFLOAD_BACKEND", variable or "all")
    names = _names(text, asked_by)
    if not names:
        raise pytest.UsageError(f"{asked_by} names no backend: {text!r}")
    return names, f"{asked_by} is {text}"


def _names(text: str, asked_by: str) -> tuple[str, ...]:
    """The backends that an option names. Raises UsageError."""
    words = [BACKEND_ALIASES.get(word, word) for word in (word.strip() for word in text.split(",")) if word]
    if "all" in words:
        return BACKENDS
    for word in words:
        if word not in BACKENDS:
            known = ", ".join((*BACKENDS, *BACKEND_ALIASES))
            raise pytest.UsageError(f"{asked_by}: there is no backend {word!r} (there are: {known}, all)")
    return tuple(dict.fromkeys(words))


def _one_of(name: Any) -> str:
    """The backend that a test is parametrized with; the test fails where it is none."""
    try:
        (backend,) = _names(str(name), FIXTURE)
    except (pytest.UsageError, ValueError) as error:
        said = error if isinstance(error, pytest.UsageError) else f"{FIXTURE} is one backend, not {name!r}"
        pytest.fail(str(said), pytrace=False)
    return backend


def _absence(backend: str) -> str:
    """Why there is no device of a backend here; empty where there is one."""
    from offload.runtime.backends import absence

    return absence(backend)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if FIXTURE in metafunc.fixturenames and not _names_backends(metafunc.definition):
        try:
            names = _marked(metafunc.definition) or _chosen(metafunc.config)[0]
        except pytest.UsageError as error:  # here, pytest would show it with its own code
            raise pytest.Collector.CollectError(str(error)) from None
        metafunc.parametrize(FIXTURE, names, indirect=True)


def _names_backends(test: Any) -> bool:
    """Whether a test says itself on which backends it runs, by ``pytest.mark.parametrize("offload_backend", …)``."""
    for mark in test.iter_markers("parametrize"):
        names = mark.kwargs.get("argnames", mark.args[0] if mark.args else ())
        if FIXTURE in ([name.strip() for name in names.split(",")] if isinstance(names, str) else names):
            return True
    return False


@pytest.fixture
def offload_backend(request: pytest.FixtureRequest) -> str:
    """The backend that all libraries use during the test: "cuda", "hip" or "host", each in turn."""
    if not hasattr(request, "param"):  # request.getfixturevalue: the test is one already
        pytest.fail(
            f"{FIXTURE} runs a test once on each backend: make it an argument of the test or of a fixture that "
            f"the test takes, or mark the test with pytest.mark.usefixtures({FIXTURE!r})",
            pytrace=False,
        )
    return _one_of(request.param)


def _marked(item: pytest.Item) -> list[str]:
    """The backends that a test's markers name, as far as these markers are offload's."""
    found = [backend for name, backend in _MARKERS.items() if item.get_closest_marker(name) and _is_ours(item, name)]
    return list(dict.fromkeys(found))


def _is_ours(item: pytest.Item, marker: str) -> bool:
    """A project that registers such a marker means something by it, unless it has kernels or says otherwise."""
    from offload.hooks.project import declares_kernels

    decided = item.config.getini("offload_markers")
    if isinstance(decided, bool):  # pytest 7 says [] where nobody decided
        return decided
    return marker not in _own_markers[item.config] or declares_kernels(item.config.rootpath / "pyproject.toml")


def _may_not_run(item: pytest.Item, parameter: Any) -> bool:
    """Whether a test is marked as one that is skipped or fails; pytest skips those that have no parameter."""
    return not isinstance(parameter, str) or any(item.get_closest_marker(mark) for mark in ("skip", "skipif", "xfail"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    needed = _marked(item)
    if FIXTURE in parameters:
        try:
            needed = [_one_of(parameters[FIXTURE])]
        except pytest.fail.Exception:
            # This comes before pytest's marks, by which the test may not run at all; then none of a backend is needed.
            if _may_not_run(item, parameters[FIXTURE]):
                return
            raise
    if not needed:
        return
    chosen, why_chosen = _chosen(item.config)
    for backend in needed:
        if why := _absence(backend) if backend in chosen else why_chosen:
            _needed[item] = [backend, why]
            pytest.skip(f"not run on {backend}: {why}")
    if len(needed) == 1:
        _needed[item] = needed
        _undo[item] = contextlib.ExitStack()
        _undo[item].enter_context(_using(needed[0]))


# Wrappers are of the older kind: the pluggy of Debian 12 refuses the newer one, and with it every test of a machine.
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, None]:
    yield
    if item in _undo:
        _undo[item].close()
        del _undo[item]


@contextlib.contextmanager
def _using(backend: str) -> Iterator[None]:
    """All libraries run there, and those of processes that the test starts."""
    from offload.runtime import use
    from offload.runtime.library import chosen_backend

    before = chosen_backend()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OFFLOAD_BACKEND", backend)
        use(backend)
        try:
            yield
        finally:
            use(before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    if item in _needed:
        # Plain values: pytest-xdist sends reports from one process to another.
        outcome.get_result().offload = _needed[item]


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, Any] | None:
    if report.when == "setup" and report.skipped and len(getattr(report, "offload", ())) == 2:
        return NOT_RUN, "n", ("NOT RUN", {"yellow": True})
    return None


def _counts(reporter: Any) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """How many tests ran on each backend, and how many did not run, by backend and reason."""
    ran: dict[str, set[str]] = {}
    not_run: dict[tuple[str, str], int] = {}
    for report in (report for status in _RAN for report in reporter.stats.get(status, ())):
        for backend in getattr(report, "offload", ()):
            ran.setdefault(backend, set()).add(report.nodeid)  # one that fails and cannot be torn down has two reports
    for report in reporter.stats.get(NOT_RUN, ()):
        backend, why = report.offload
        not_run[backend, why] = not_run.get((backend, why), 0) + 1
    return {backend: len(tests) for backend, tests in ran.items()}, not_run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    ran, not_run = _counts(terminalreporter)
    if not not_run:
        return
    terminalreporter.section("offload", yellow=True)
    for backend, count in ran.items():
        terminalreporter.line(f"{backend}: {count} ran")
    for (backend, why), count in not_run.items():
        terminalreporter.line(f"{backend}: {count} not run: {why}", yellow=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run of nothing but tests that cannot run here is none: pytest's exit code for no tests, 5."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = getattr(reporter, "stats", {})
    if (
        stats.get(NOT_RUN)
        and not any(stats.get(status) for status in _RAN)
        and session.exitstatus == pytest.ExitCode.OK
    ):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
