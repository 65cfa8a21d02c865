"""What a backward pass leaves is freed before the script goes on.

A pass runs in threads of its own, one a device. They tell the script that it is over, and only then let go of the last of
it: whether that memory is free at the script's next request would be decided by the scheduler, anew in every run.

So it is with the buckets of DistributedDataParallel: from PyTorch 2.9 on their collectives hold them until a thread that looks
ten times a second has seen them done.
"""
import functools
import glob
import os
import threading
import time
import weakref

NAMES = "pt_autograd_"
WAIT_SECONDS = 0.5  # other threads of the script may have a pass of theirs under way


def install(torch):
    variable = getattr(torch.autograd, "Variable", None)
    engine = getattr(variable, "_execution_engine", None)
    if engine is None or not hasattr(engine, "run_backward"):
        return
    threads = Threads()
    replicas = Replicas(torch)

    class Engine(type(engine)):
        def run_backward(self, *arguments, **named):
            result = super().run_backward(*arguments, **named)
            threads.wait_until_idle()
            replicas.wait_until_reduced()
            return result

    variable._execution_engine = Engine()


class Replicas:
    """The groups of DistributedDataParallel in this process."""

    def __init__(self, torch):
        self.groups = weakref.WeakSet()
        parallel = getattr(getattr(getattr(torch, "nn", None), "parallel", None), "DistributedDataParallel", None)
        if parallel is None:
            return
        start = parallel.__init__

        @functools.wraps(start)
        def begin(replica, *arguments, **named):
            start(replica, *arguments, **named)
            if torch.distributed.get_backend(replica.process_group) == "nccl":
                self.groups.add(replica.process_group)

        parallel.__init__ = begin

    def wait_until_reduced(self):
        """Not for ever: another message of the group may be for later."""
        for group in list(self.groups):
            thread = threading.Thread(target=self.wait_for, args=(group,), daemon=True)
            thread.start()
            thread.join(WAIT_SECONDS)

    @staticmethod
    def wait_for(group):
        try:
            group._wait_for_pending_works()
        except RuntimeError:
            pass  # it was closed


class Threads:
    """Those of backward passes in this process."""

    def __init__(self):
        self.process = None
        self.paths = {}  # by the thread's number, where its state stands

    def find(self):
        if self.process != os.getpid() or not self.paths:
            self.process = os.getpid()
            self.paths = {}
            for path in glob.glob("/proc/self/task/*"):
                if (read(path + "/comm") or "").startswith(NAMES):
                    self.paths[int(os.path.basename(path))] = path + "/stat"
        return self.paths

    def wait_until_idle(self):
        paths = self.find()
        if threading.get_native_id() in paths:
            return  # a pass within a pass
        end = time.monotonic() + WAIT_SECONDS
        while any(is_busy(path) for path in paths.values()) and time.monotonic() < end:
            time.sleep(0.0001)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None  # it ended


def is_busy(path):
    state = read(path)
    return state is not None and state.rpartition(")")[2].split()[0] not in ("S", "Z", "X")
