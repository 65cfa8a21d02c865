"""The process in which marked tests run: pytest inside `fraglab dryrun`, which collects once and forks for each test.

Started by fraglab.pytest_plugin with a socket: first comes what to collect, then one test after the other; for each go back
the reports, and how its process ended. Where torch cannot go on behind a fork, each test gets a process of its own.
"""
from __future__ import annotations

import gc
import os
import pickle
import struct
import sys
from typing import Any


def send(stream: Any, message: dict[str, Any]) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def receive(stream: Any) -> dict[str, Any] | None:
    """None: the other side is gone."""
    try:
        head = stream.read(8)
        size = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        data = stream.read(size)
    except ConnectionResetError:
        return None
    if not size:
        return None
    return pickle.loads(data) if len(data) == size else None


def cannot_fork() -> bool:
    """CUDA was used while tests were collected; PyTorch refuses to go on in a child then."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "cuda") and (torch.cuda._is_in_bad_fork() or torch.cuda.is_initialized())


def leave_no_recording() -> None:
    """The dry run would write what this process recorded, and look at it at the end."""
    run = getattr(sys.modules.get("fraglab_dryrun"), "run", None)
    if run is not None:
        run.is_written = True


class Serve:
    """A plugin of the child's pytest."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.problems: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.problems.append(str(report.longrepr))

    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        # What imports have made is looked at no more: collecting garbage in a child would copy all of it.
        from fraglab import _pytest_figures, version

        version()  # loads the library
        _pytest_figures.digest()
        gc.collect()
        gc.freeze()
        send(self.stream, {"ready": len(items)})
        while True:
            request = receive(self.stream)
            if request is None:
                return True
            item = items.get(request["nodeid"])
            if item is None:
                send(self.stream, {"done": True, "problem": "the test was not found where it is run for its GPU memory" + "".join("\n" + text for text in self.problems)})
            elif request["forks"]:
                self.fork(item, request)
            else:
                self.run(item, request)
                send(self.stream, {"done": True})
                leave_no_recording()
                return True

    def fork(self, item: Any, request: dict[str, Any]) -> None:
        import warnings

        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that libraries have started
            pid = os.fork()
        if pid == 0:
            code = 70
            try:
                leave_no_recording()
                if cannot_fork():
                    code = 77
                else:
                    self.run(item, request)
                    code = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        send(self.stream, {"done": True, "refused": True} if status == 77 else {"done": True, "status": status})

    def run(self, item: Any, request: dict[str, Any]) -> None:
        from _pytest.runner import runtestprotocol

        item.config.pluginmanager.get_plugin("fraglab-measure").records = request["records"]
        for report in runtestprotocol(item, nextitem=None, log=False):
            data = item.config.hook.pytest_report_to_serializable(config=item.config, report=report)
            try:
                send(self.stream, {"report": data})
            except (pickle.PicklingError, TypeError, AttributeError):
                data["user_properties"] = []
                send(self.stream, {"report": data})


def main(descriptor: int) -> int:
    import socket

    stream = socket.socket(fileno=descriptor).makefile("rwb")
    start = receive(stream)
    if start is None:
        return 1
    sys.path[:] = start["path"]
    os.chdir(start["folder"])
    sys.argv[:] = start["argv"]
    # torch.cuda.is_available() is asked while tests are collected, and would forbid to fork; this way it asks the driver's library.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    import pytest
    from _pytest.config import Config

    pytest.hookimpl(tryfirst=True)(Serve.pytest_runtestloop)
    config = Config.fromdictargs(start["options"], start["arguments"])
    config.workerinput = start["workerinput"]
    config.pluginmanager.register(Serve(stream), "fraglab-serve")
    return int(config.hook.pytest_cmdline_main(config=config) or 0)


if __name__ == "__main__":
    # Under its own name, so that what is sent and the plugin speak of one module.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    from fraglab import _pytest_child

    sys.exit(_pytest_child.main(int(sys.argv[1])))
