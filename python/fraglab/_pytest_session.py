"""The session that a person starts: chooses where marked tests run, collects their figures, writes baseline, summary and page."""
from __future__ import annotations

import os
from typing import Any

import pytest
from _pytest.runner import CallInfo
from fraglab import Error
from fraglab import _pytest_baseline as baseline
from fraglab.pytest_plugin import baseline_path, setting, wishes_of
from fraglab._pictures import show_bytes


def has_gpu() -> bool:
    """A driver's device, and a PyTorch that can use it."""
    if not any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/dxg")):
        return False
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def runs_here(device: str) -> bool:
    """Marked tests run in this process: on its GPU, or as the whole of pytest was started in a dry run."""
    return bool(os.environ.get("FRAGLAB_DRYRUN")) or device == "gpu" or (device == "auto" and has_gpu())


class Plugin:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.path = baseline_path(config)
        device = setting(config, "device", "auto")
        if device not in ("auto", "dry", "gpu"):
            raise pytest.UsageError(f"fraglab_device: '{device}' is unknown; expected auto, dry or gpu")
        self.check_report()
        try:
            self.records = baseline.load(self.path)
        except Error as error:
            raise pytest.UsageError(str(error)) from None
        self.found: dict[str, dict[str, Any]] = {}
        self.runner: Any = None
        # With xdist the session itself runs no tests.
        if runs_here(device) and not self.is_controller():
            from fraglab._pytest_measure import InProcess

            config.pluginmanager.register(InProcess(config, self.records_of), "fraglab-measure")
        elif not self.is_controller():
            from fraglab._pytest_runner import Runner

            self.runner = Runner(config)

    def report_path(self) -> str | None:
        report = self.config.getoption("fraglab_report")
        return None if report is None else os.path.join(self.config.invocation_params.dir, report)

    def check_report(self) -> None:
        path = self.report_path()
        if path is None or hasattr(self.config, "workerinput"):
            return
        from fraglab._pytest_page import problem

        found = problem(path)
        if found is not None:
            raise pytest.UsageError(f"--fraglab-report: {path}: {found}")

    def is_controller(self) -> bool:
        return not hasattr(self.config, "workerinput") and self.config.getoption("dist", "no") not in (None, "no")

    def records_of(self, nodeid: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["test"] == nodeid]

    def card(self, wishes: dict[str, Any]) -> str | None:
        return wishes["gpu"] or setting(self.config, "gpu", "") or None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What is wrong in a mark is said before any test runs."""
        for item in session.items:
            wishes = wishes_of(item)
            if wishes is not None and self.runner is not None:
                files = self.runner.files.setdefault(self.card(wishes), [])
                if str(item.path) not in files:
                    files.append(str(item.path))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        wishes = wishes_of(item)
        if wishes is None or self.runner is None:
            return None
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.runner.run(item, self.card(wishes), self.records_of(item.nodeid)):
            hook.pytest_runtest_logreport(report=report)
        # Nothing was set up here, but what tests before have left may be due.
        call = CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
        if call.excinfo is not None:
            hook.pytest_runtest_logreport(report=hook.pytest_runtest_makereport(item=item, call=call))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, "fraglab", None)
        if found is not None:
            self.found[found["test"]] = found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.runner is not None:
            self.runner.close()
        if hasattr(self.config, "workerinput"):
            return
        if self.config.getoption("fraglab_update"):
            new = [found for found in self.found.values() if found["wishes"]["baseline"]]
            if new:
                baseline.save(self.path, self.records, new)
        path = self.report_path()
        if path is not None:
            from fraglab._pytest_page import write

            write(path, list(self.found.values()))

    # ---- the end

    def pytest_report_header(self) -> str:
        where = "in this process" if self.runner is None and not self.is_controller() else "in a dry run" if self.runner is not None else "by the workers"
        return f"fraglab: tests marked gpu_memory run {where}; baseline {self.path.name}, {len(self.records)} records"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        rows = self.config.getoption("fraglab_rows")
        tests = sorted(self.found.values(), key=lambda found: (-found["reserved_bytes"], found["test"]))
        if not tests or rows <= 0:
            return
        write = terminalreporter.write_line
        terminalreporter.section("GPU memory (fraglab)")
        cards = sorted({f"{found['gpu']} ({found['device']}), torch {found['torch']}" for found in tests if found["gpu"]})
        if cards:
            write("on " + "; ".join(cards))
        write(f"{'requested':>12} {'allocated':>12} {'reserved':>12} {'device calls':>13} {'leaked':>12}  test")
        for found in tests[:rows]:
            write(f"{show_bytes(found['requested_bytes']):>12} {show_bytes(found['allocated_bytes']):>12} {show_bytes(found['reserved_bytes']):>12} {found['device_calls']:>13} "
                  f"{show_bytes(found['leaked_bytes']):>12}  {found['test']}")
        if len(tests) > rows:
            write(f"and {len(tests) - rows} more tests; --fraglab-rows {len(tests)} shows them")
        for found in tests:
            if found["note"]:
                write(f"{found['test']}: {found['note']}")
        if self.config.getoption("fraglab_update"):
            count = sum(found["wishes"]["baseline"] for found in tests)
            write(f"{count} record{'' if count == 1 else 's'} written into {self.path}")
        report = self.config.getoption("fraglab_report")
        if report is not None:
            write(f"page: {report}")
