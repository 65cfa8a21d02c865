#!/usr/bin/env python3
"""Record what PyTorch's allocator does while a program runs, as a snapshot that fraglab reads.

    python3 fraglab_record.py [-o FILE] [--stacks] SCRIPT|-m MODULE [ARGUMENT...]

FILE (snapshot.pickle) is written when the program ends, and FILE.oom when it runs out of memory for
the first time. --stacks keeps Python stacks, about 2 us for each request.
"""
import argparse
import os
import pickle
import runpy
import signal
import sys


def say(text):
    print("fraglab_record: " + text, file=sys.stderr)


def dump(torch, path):
    with open(path + ".tmp", "wb") as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)
    os.replace(path + ".tmp", path)
    say("wrote " + path)


def start(torch, stacks):
    """The arguments changed twice: 2.1 and newer, 2.0, 1.13."""
    record = torch.cuda.memory._record_memory_history
    for arguments in (
        dict(enabled="all", context="alloc" if stacks else None, stacks="python"),
        dict(enabled=True, record_context=stacks, trace_alloc_max_entries=2**40, trace_alloc_record_context=stacks),
    ):
        try:
            return record(**arguments)
        except TypeError:
            pass
    say("torch %s keeps no history of events; the snapshot says only what is live at its end" % torch.__version__)
    record(True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", default="snapshot.pickle", metavar="FILE", help="the snapshot (default: %(default)s)")
    parser.add_argument("--stacks", action="store_true", help="keep Python stacks")
    parser.add_argument("-m", action="store_true", help="the program is a module, not a file")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    path = os.path.abspath(given.o)
    try:
        import torch
    except ImportError as error:
        sys.exit("fraglab_record: torch cannot be imported (%s)" % error)
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        sys.exit("fraglab_record: torch %s is CPU only: it has no GPU memory to record" % torch.__version__)

    def on_oom(*_):
        if not os.path.exists(path + ".oom"):
            dump(torch, path + ".oom")

    def begin():
        start(torch, given.stacks)
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(on_oom)

    if os.path.exists(path + ".oom"):
        os.remove(path + ".oom")
    # Not before the program begins with CUDA: until then it may still choose devices and settings.
    torch.cuda._lazy_call(begin)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.argv = [given.program] + given.arguments
    sys.path[0] = "" if given.m else os.path.dirname(os.path.abspath(given.program))
    owner = os.getpid()
    try:
        if given.m:
            runpy.run_module(given.program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(given.program, run_name="__main__")
    finally:
        if os.getpid() == owner and torch.cuda.is_initialized():
            dump(torch, path)
        elif os.getpid() == owner:
            say("the program used no CUDA in this process: nothing is recorded")


if __name__ == "__main__":
    main()
