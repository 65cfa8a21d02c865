"""Runs marked tests in a child under a dry run: one child for each card, which forks for each test."""
from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from typing import Any

import pytest
from _pytest.runner import CallInfo
from fraglab import _pytest_child
from fraglab._places import find_bin

# What belongs to the session that a person started, not to the child: how tests are chosen, spread, and shown.
OPTIONS = {"numprocesses": None, "maxprocesses": None, "dist": "no", "tx": [], "distload": False, "looponfail": False, "usepdb": False, "trace": False, "xmlpath": None,
           "lf": False, "failedfirst": False, "newfirst": False, "stepwise": False, "stepwise_skip": False, "keyword": "", "markexpr": "", "deselect": None, "collectonly": False,
           "maxfail": 0, "no_cov": True, "cov_source": [], "pastebin": None, "report_log": None, "htmlpath": None, "fraglab_child": True, "last_failed_no_failures": "all"}


class Child:
    """`fraglab dryrun -- python` with pytest inside."""

    def __init__(self, config: pytest.Config, gpu: str | None, files: list[str], number: int) -> None:
        ours, theirs = socket.socketpair()
        self.seen = 0
        self.log = tempfile.TemporaryFile("w+b")
        shows = config.getoption("capture", "fd") == "no"
        command = [find_bin(), "dryrun", "-q", *(["--gpu", gpu] if gpu else []), "--", sys.executable, _pytest_child.__file__, str(theirs.fileno())]
        # A group of its own: ^C is handed on by this process, which knows which test runs.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=None if shows else self.log, stderr=None if shows else self.log, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        self.socket, self.stream = ours, ours.makefile("rwb")
        start = {"path": sys.path, "folder": str(config.invocation_params.dir), "argv": sys.argv, "options": options_for(config, number), "arguments": files,
                                         "workerinput": {**getattr(config, "workerinput", {"workerid": "master", "workercount": 1, "testrunuid": "fraglab"}), "mainargv": sys.argv}}
        try:
            _pytest_child.send(self.stream, start)
            self.is_ready = _pytest_child.receive(self.stream) is not None
        except BrokenPipeError:
            self.is_ready = False

    def said(self) -> str:
        """What it printed itself while the last test ran, such as the stack of a crash."""
        self.log.seek(self.seen)
        lines = self.log.read().decode("utf-8", "replace").strip().splitlines()
        return "\n".join(lines[:30] + (["..."] if len(lines) > 30 else []))

    def ask(self, nodeid: str, forks: bool, records: list[dict[str, Any]]) -> tuple[list[Any], dict[str, Any] | None]:
        """Reports as data, and the last message; None: the child is gone."""
        reports = []
        self.seen = self.log.seek(0, os.SEEK_END)
        try:
            _pytest_child.send(self.stream, {"nodeid": nodeid, "forks": forks, "records": records})
            while True:
                message = _pytest_child.receive(self.stream)
                if message is None or "done" in message:
                    return reports, message
                reports.append(message["report"])
        except (BrokenPipeError, ConnectionResetError):
            return reports, None

    def close(self, at_once: bool = False) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.stream.close()
        self.socket.close()
        try:
            if at_once:
                raise subprocess.TimeoutExpired("", 0)
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()


def options_for(config: pytest.Config, number: int) -> dict[str, Any]:
    """The options of this run of pytest that can be handed on."""
    options = {}
    for name, value in vars(config.option).items():
        try:
            pickle.dumps(value)
        except Exception:  # of whatever a plugin keeps there
            continue
        options[name] = value
    options.update({name: value for name, value in OPTIONS.items() if name in options or name == "fraglab_child"})
    options["plugins"] = [*options.get("plugins", []), "no:terminal"] + ([] if config.pluginmanager.hasplugin("fraglab") else ["fraglab.pytest_plugin"])
    options["rootdir"] = str(config.rootpath)
    options["inifilename"] = str(config.inipath) if config.inipath else None
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None:
        options["basetemp"] = str(factory.getbasetemp() / f"fraglab-{number}")
    return options


class Runner:
    """Of one session: starts children when they are needed."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.children: dict[str | None, Child] = {}
        self.cannot_fork: set[str | None] = set()
        self.failures: dict[str | None, str] = {}
        self.files: dict[str | None, list[str]] = {}
        self.count = 0

    def start(self, gpu: str | None, files: list[str]) -> Child:
        self.count += 1
        child = Child(self.config, gpu, files, self.count)
        if not child.is_ready:
            said = child.said()
            child.close()
            self.failures[gpu] = f"no dry run could be started, in which the test would have run:\n{said}"
            raise RuntimeError(self.failures[gpu])
        return child

    def run(self, item: pytest.Item, gpu: str | None, records: list[dict[str, Any]]) -> list[pytest.TestReport]:
        """The reports of a test, as if it had run here."""
        if gpu in self.failures:
            return self.reports(item, [], self.failures[gpu])
        try:
            if gpu not in self.cannot_fork:
                if gpu not in self.children:
                    self.children[gpu] = self.start(gpu, self.files.get(gpu) or [str(item.path)])
                reports, last = self.children[gpu].ask(item.nodeid, True, records)
                if last is None:
                    said = self.children[gpu].said()
                    self.children.pop(gpu).close()
                    return self.reports(item, reports, f"the dry run in which the test ran has ended:\n{said}")
                if not last.get("refused"):
                    return self.reports(item, reports, self.problem_of(last, self.children[gpu]))
                self.cannot_fork.add(gpu)
                self.children.pop(gpu).close()
            return self.run_alone(item, gpu, records)
        except RuntimeError as error:
            return self.reports(item, [], str(error))
        except KeyboardInterrupt:
            self.close(at_once=True)
            raise

    def run_alone(self, item: pytest.Item, gpu: str | None, records: list[dict[str, Any]]) -> list[pytest.TestReport]:
        """In a child of its own, as CUDA was used while tests were collected."""
        child = self.start(gpu, [str(item.path)])
        self.children[gpu] = child  # until its end, so that ^C ends it too
        reports, last = child.ask(item.nodeid, False, records)
        self.children.pop(gpu)
        said = child.said() if last is None else ""
        child.close()
        code = child.process.returncode
        problem = f"the test's process ended with {ended(-code if code < 0 else code - 128 if code > 128 else code, code < 0 or code > 128)}\n{said}" if last is None else last.get("problem")
        return self.reports(item, reports, problem)

    @staticmethod
    def problem_of(last: dict[str, Any], child: Child) -> str | None:
        status = last.get("status", 0)
        if status == 0:
            return last.get("problem")
        return f"the test's process ended with {ended(abs(status), status < 0)}\n{child.said()}"

    def reports(self, item: pytest.Item, data: list[Any], problem: str | None) -> list[pytest.TestReport]:
        reports = [self.config.hook.pytest_report_from_serializable(config=self.config, data=found) for found in data]
        if problem is not None:
            call = CallInfo.from_call(lambda: pytest.fail("fraglab: " + problem.strip(), pytrace=False), when="call")
            # The outcome of what did not come to its end is that of the failure alone.
            reports = [report for report in reports if report.when == "setup"] + [pytest.TestReport.from_item_and_call(item, call)]
        return reports

    def close(self, at_once: bool = False) -> None:
        for child in self.children.values():
            child.close(at_once)
        self.children.clear()


def ended(number: int, is_signal: bool) -> str:
    if not is_signal:
        return f"exit code {number}"
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"

