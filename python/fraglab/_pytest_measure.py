"""Measures marked tests in the process that runs them, and fails those that need too much: hooks of pytest in a child, or on a GPU."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator

import pytest
import fraglab
from fraglab import _phases
from fraglab import _pytest_baseline as baseline
from fraglab import _pytest_figures as figures
from fraglab.pytest_plugin import wishes_of
from fraglab._pictures import show_bytes

ROWS = 8  # of those who hold memory


def fail(outcome: Any, text: str) -> None:
    """Makes what a wrapped hook did a failure of the test."""
    error = pytest.fail.Exception(text, pytrace=False)
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(error)
    else:  # pluggy before 1.1
        outcome._result, outcome._excinfo = None, (type(error), error, None)


def list_holders(rows: list[tuple[str, int, int]], title: str) -> str:
    lines = [f"  {show_bytes(size):>12} in {count:>4} block{'' if count == 1 else 's'}  {name}" for name, size, count in rows[:ROWS]]
    return "\n".join([title, *lines] + ([f"  and {len(rows) - ROWS} more places"] if len(rows) > ROWS else [])) if lines else ""


class Measure:
    """Registered once in a process. ``records``: of the baseline, for the test that runs."""

    def __init__(self, config: pytest.Config, is_child: bool) -> None:
        self.config = config
        self.is_child = is_child
        self.records: list[dict[str, Any]] = []
        self.meter: figures.Meter | None = None
        self.wishes: dict[str, Any] = {}
        self.found: dict[str, Any] | None = None
        self.sections: list[tuple[str, str]] = []
        self.reads_before: dict[str, int] = {}
        # What fixtures of wider scopes hold, which is live behind the test and no leak of it.
        self.held: dict[Any, int] = {}
        self.held_before = 0

    # ---- one test

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.wishes = wishes_of(item) or {}
        self.meter, self.found, self.sections = None, None, []
        if self.wishes:
            self.meter = figures.Meter()
            self.held_before = self.held_now()
            self.reads_before = figures.unknown_reads()
            self.meter.begin()
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        if fixturedef.scope == "function" or self.meter is None:
            yield
            return
        before = figures.live_bytes()
        yield
        self.held[fixturedef] = figures.live_bytes() - before

    def held_now(self) -> int:
        return sum(size for fixture, size in self.held.items() if fixture.cached_result is not None)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        if self.meter is not None:
            self.meter.begin_late()
        outcome = yield
        if self.meter is None:
            return
        self.found = self.describe(item)
        if self.config.getoption("fraglab_report") is not None:
            snapshot = self.meter.snapshot()
            self.found["timeline"] = figures.timeline(snapshot) if snapshot else []
            self.found["holders"] = figures.holders(snapshot, False)[:ROWS] if snapshot else []
        if outcome.excinfo is None:
            problems = self.judge()
            if problems:
                fail(outcome, "\n".join([*problems, self.show_holders(False)]).rstrip())
        elif "OutOfMemoryError" in outcome.excinfo[0].__name__:
            self.explain()
        elif not issubclass(outcome.excinfo[0], (pytest.skip.Exception, pytest.xfail.Exception)):
            self.name_values()

    def describe(self, item: pytest.Item) -> dict[str, Any]:
        assert self.meter is not None
        found = self.meter.figures()
        found.update(test=item.nodeid, device="dry run" if figures.is_dry() else "GPU", fraglab=fraglab.version(), digest=figures.digest(), wishes=self.wishes, leaked_bytes=None, note=None)
        if self.wishes["gpu"] and figures.is_dry():
            found["card"] = self.wishes["gpu"]
        for name in baseline.COMPARED:
            item.user_properties.append((f"fraglab_{name}", found[name]))
        return found

    def judge(self) -> list[str]:
        assert self.found is not None
        problems = []
        limit, of = self.wishes["limit"], self.wishes["of"]
        peak = self.found[f"{of}_bytes"]
        if limit is not None and peak > limit:
            rest = ", ".join(f"{name} {show_bytes(self.found[name + '_bytes'])}" for name in ("requested", "allocated", "reserved") if name != of)
            problems.append(f"GPU memory: peak {of} {show_bytes(peak)} is above the limit of {show_bytes(limit)}, by {show_bytes(peak - limit)} ({rest})")
        if self.wishes["baseline"] and not self.config.getoption("fraglab_update"):
            problem, self.found["note"] = baseline.compare(self.found, self.records, self.wishes["fail_above"])
            if problem is not None:
                problems.append("GPU memory: " + problem)
        return problems

    def show_holders(self, at_end: bool) -> str:
        snapshot = self.meter.snapshot() if self.meter is not None else None
        return list_holders(figures.holders(snapshot, at_end), "live now:" if at_end else "live at the peak of requested bytes:") if snapshot else ""

    def explain(self) -> None:
        """Memory ran out in the test."""
        snapshot = self.meter.snapshot() if self.meter is not None else None
        if snapshot is not None and _phases.ran_out(snapshot):
            with contextlib.suppress(fraglab.Error):
                self.sections.append(("fraglab explain", fraglab.open(snapshot, name="the test").explain_text()))

    def name_values(self) -> None:
        """The test failed, maybe as it asks for a result, which a dry run does not have."""
        reads = [place for place, count in figures.unknown_reads().items() if count > self.reads_before.get(place, 0)]
        if reads:
            places = ", ".join(reads[-ROWS:])
            self.sections.append(("fraglab", f"The test read values that only a GPU would compute, at {places}; in a dry run they are 0. Mark tests of memory, or check values where there is a GPU."))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        outcome = yield
        meter = self.meter
        if meter is None:
            return
        try:
            # Where the test failed its traceback holds what is local to it.
            if self.found is not None and self.passed and outcome.excinfo is None:
                getattr(item, "funcargs", {}).clear()  # pytest does so a moment later; all fixtures are torn down
                leaked = figures.live_bytes() - self.held_now() - (meter.live_before - self.held_before)
                self.found["leaked_bytes"] = max(leaked, 0)
                if self.wishes["leaks"] is not None and leaked > self.wishes["leaks"]:
                    fail(outcome, f"GPU memory: {show_bytes(leaked)} are live after the test that were not before, above the {show_bytes(self.wishes['leaks'])} of its leaks\n" + self.show_holders(True))
        finally:
            meter.end()
            self.meter = None

    passed = False

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[None]:
        outcome = yield
        report = outcome.get_result()
        if report.when == "call":
            self.passed = report.outcome == "passed"
            report.sections += self.sections
        if report.when == "teardown" and self.found is not None:
            report.fraglab = self.found
            self.found = None


class InProcess(Measure):
    """On a GPU: the session's own process, which looks up the baseline itself."""

    def __init__(self, config: pytest.Config, records: Any) -> None:
        super().__init__(config, False)
        self.records_of = records

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: Any) -> Iterator[None]:
        self.records = self.records_of(item.nodeid)
        yield
