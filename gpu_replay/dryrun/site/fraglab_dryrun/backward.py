"""What a backward pass leaves is freed before the script goes on.

A pass runs in threads of its own, one a device. They tell the script that it is over, and only then let go of the last of
it: whether that memory is free at the script's next request would be decided by the scheduler, anew in every run.

So it is with the buckets of DistributedDataParallel: from PyTorch 2.9 on their collectives hold them until a thread that looks
ten times a second has seen them done, those of a rank without data left (Join) as well; and with a collective whose work the script lets go without waiting for it, which is waited for then.
"""
import functools
import gc
import glob
import importlib
import os
import threading
import time
import weakref

from . import ranks

NAMES = "pt_autograd_"
WAIT_SECONDS = 0.5  # other threads of the script may have a pass of theirs under way
WORKS_SECONDS = 5  # on a busy machine PyTorch's thread comes late


def install(torch):
    variable = getattr(torch.autograd, "Variable", None)
    engine = getattr(variable, "_execution_engine", None)
    if engine is None or not hasattr(engine, "run_backward"):
        return
    threads = Threads()
    replicas = Replicas(torch)
    watch_works(torch)

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
        hook = getattr(getattr(torch.nn.parallel, "distributed", None), "_DDPJoinHook", None)
        if hook is not None:
            self.wait_behind(hook)

    def wait_behind(self, hook):
        """A rank that has no data left (Join) takes part in the collectives of the others' backward passes."""
        take_part = hook.main_hook

        @functools.wraps(take_part)
        def main_hook(*arguments, **named):
            take_part(*arguments, **named)
            self.wait_until_reduced()

        hook.main_hook = main_hook

    def wait_until_reduced(self):
        for group in list(self.groups):
            wait_for(group)


def wait_for(group):
    """Until PyTorch has seen all its works done. Not for ever: another message of the group may be for later."""
    def wait():
        try:
            group._wait_for_pending_works()
        except RuntimeError:
            pass  # it was closed

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(WORKS_SECONDS)


def watch_works(torch):
    """Those of collectives that the script starts with async_op. Until it waits for one or lets it go, the tensors are held:
    PyTorch lets go of them in the first collective after its thread has seen the work done."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    if not hasattr(c10d.Work, "boxed"):
        return
    wait, started = c10d.Work.wait, weakref.WeakKeyDictionary()

    @functools.wraps(wait)
    def waited(work, *arguments, **named):
        finalizer = started.pop(work, None)
        if finalizer is not None:
            finalizer.detach()
        return wait(work, *arguments, **named)

    def end(boxed, *_held):
        try:
            wait(c10d.Work.unbox(boxed))
        except RuntimeError:
            pass  # its group was closed

    def watch(function):
        @functools.wraps(function)
        def start(*arguments, **named):
            work = function(*arguments, **named)
            if isinstance(work, c10d.Work):
                started[work] = weakref.finalize(work, end, work.boxed(), arguments, named)
                started[work].atexit = False
            return work

        return start

    c10d.Work.wait = waited
    for name in ranks.COLLECTIVES:
        if hasattr(c10d, name):
            ranks.replace(c10d, name, watch(getattr(c10d, name)))


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
                    self.paths[int(os.path.basename(path))] = path + "/status"
        return self.paths

    def wait_until_idle(self):
        paths = self.find()
        if threading.get_native_id() in paths:
            return  # a pass within a pass
        end = time.monotonic() + WAIT_SECONDS
        # What is counted here, again and again, may not decide when Python looks for cycles, which may hold memory.
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            before, now = None, [slept(path) for path in paths.values()]
            # A thread that waits for Python's lock sleeps, too: it goes on while this one sleeps.
            while (now != before or None in now) and time.monotonic() < end:
                time.sleep(0 if before is None else 0.0001)
                before, now = now, [slept(path) for path in paths.values()]
        finally:
            if is_collecting:
                gc.enable()


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None  # it ended


def slept(path):
    """How often a thread that sleeps has begun to; None: it is at work."""
    status = read(path)
    if status is None:
        return "ended"
    if status.partition("\nState:")[2].split()[0] not in ("S", "Z", "X"):
        return None
    return status.partition("\nvoluntary_ctxt_switches:")[2].split()[0]
