"""Records one process: history from the initialisation of CUDA on, written however it ends."""
import atexit
import contextlib
import json
import os
import pickle
import signal
import sys
import threading
import time
import traceback

from . import history, say

RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


@contextlib.contextmanager
def undisturbed():
    """A second ^C would end the writing of what the first one left."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


class Requests:
    """How many requests each device has served. A script that sets PyTorch's own count to 0 does not set this one."""

    def __init__(self, torch):
        self.torch = torch
        self.before = {}
        for name in ("_cuda_resetAccumulatedMemoryStats", "_accelerator_resetAccumulatedStats"):
            reset = getattr(torch._C, name, None)
            if reset is not None:
                setattr(torch._C, name, self.keeping(reset))

    def keeping(self, reset):
        def reset_and_keep(device):
            now = self.count(device)
            result = reset(device)
            self.before[device] = now
            return result

        return reset_and_keep

    def count(self, device):
        try:
            stats = self.torch.cuda.memory_stats_as_nested_dict(device)
        except RuntimeError:  # an allocator that the script has written (CUDAPluggableAllocator) keeps none
            stats = {}
        return self.before.get(device, 0) + stats.get("allocation", {}).get("all", {}).get("allocated", 0)


class Run:
    """What happens in this process, from the import of torch on."""

    def __init__(self, torch, settings, folder):
        self.torch = torch
        self.settings = settings
        self.folder = folder
        self.owner = None  # the process that initialised CUDA
        self.is_written = False
        self.lock = threading.RLock()
        self.ended_by = "exit"
        self.steps = 0
        self.marks = []
        self.ooms = []
        self.limits = set()  # of PyTorch's memory, whenever it ran out
        self.oom_text = None
        self.exception = None
        self.no_history = None
        self.places = {}  # "train.py:17": how often a value was read there that nobody knows
        self.selections = {}  # "train.py:15": how many elements masks were said to select there
        self.decisions = {}  # "train.py:16": how often the script decided there by a value nobody knows
        self.sentences = []
        self.followed = settings["follow"]
        self.large = {}  # "train.py:18": bytes of the whole numbers asked for there, if too many to be followed
        self.shown_at = 0.0
        self.has_shown = False
        self.peak_bytes = 0
        self.requests = Requests(torch)
        self.history = history.install(torch, settings.get("stacks", False))
        if self.history is not None:
            history.watch_emptying(torch._C, self.history, lambda: self.request_counts() if self.is_recording() else None)
        torch.cuda._lazy_call(self.begin)
        self.watch_end()

    def begin(self):
        """CUDA was just initialised, nothing is allocated yet."""
        self.owner = os.getpid()
        if self.history is None:
            self.no_history = "PyTorch %s is too old to record memory" % self.torch.__version__
            return
        try:
            self.history.begin(self.torch.cuda.memory._record_memory_history)
        except RuntimeError as error:  # the backend cudaMallocAsync keeps none
            self.no_history = str(error).splitlines()[0]
            return
        attach = getattr(self.torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(self.note_oom)

    def is_recording(self):
        return self.owner == os.getpid()

    # ---- what happens

    def note_oom(self, device, requested, total, free):
        """total: what PyTorch may have, which the script may have made less than the card."""
        is_limited = total < self.torch.cuda.mem_get_info(device)[1]
        self.limits.add(total if is_limited else None)
        if is_limited:
            self.note_sentence("memory ran out at a limit of %.2f GiB that the script set "
                               "(torch.cuda.set_per_process_memory_fraction)" % (total / 2 ** 30))
        self.ooms.append({"device": device, "requested_bytes": requested, "step": self.steps})

    def note_sentence(self, sentence):
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    def note_large(self, where, size):
        """A value that is unknown because of how many numbers it is made of, if the host wrote them."""
        if size and size > self.followed and self.settings.get("defaults", True):
            self.large[where] = max(size, self.large.get(where, 0))

    def large_sentences(self):
        if not self.large:
            return []
        places, size = list(self.large), max(self.large.values())
        more = " and %d more places" % (len(places) - 3) if len(places) > 3 else ""
        return ["%s%s: whole numbers of up to %d bytes are asked for, but those of tensors above %d bytes are not followed; if the "
                "host wrote them, --follow %dKiB makes them known" % (", ".join(places[:3]), more, size, self.followed, -(-size // 1024))]

    def note_selection(self, where, choice):
        elements, count = self.selections.get(where, (0, 0))
        self.selections[where] = (max(elements, choice.elements), count + 1)

    def request_counts(self):
        """Requests served so far on each device: places in the recordings."""
        return [self.requests.count(device) for device in range(self.torch.cuda.device_count())]

    def mark(self, name):
        if self.is_recording():
            self.marks.append({"name": name, "requests": self.request_counts()})
            self.show()

    def show(self):
        """For the progress on a terminal: steps, requests and peak reserved so far."""
        if not self.settings.get("progress") or not self.is_recording() or time.monotonic() < self.shown_at + 0.1:
            return
        self.shown_at = time.monotonic()
        if self.no_history is not None:
            return
        self.peak_bytes = max([self.peak_bytes] + [self.torch.cuda.max_memory_reserved(device)
                                                   for device in range(self.torch.cuda.device_count())])
        line = "%d %d %d " % (self.steps, sum(self.request_counts()), self.peak_bytes)
        with open(os.path.join(self.folder, "%d.progress" % self.owner), "r+b" if self.has_shown else "wb", 0) as file:
            file.write(line.ljust(63).encode() + b"\n")
        self.has_shown = True

    def finish(self, why, code=0):
        """Ends the script as sys.exit would: its finally blocks and exit functions run."""
        self.ended_by = why
        raise SystemExit(code)

    # ---- the end

    def watch_end(self):
        atexit.register(self.write)
        exit_now = os._exit

        def write_and_exit(code):
            self.write()
            exit_now(code)

        os._exit = write_and_exit
        self.watch_exceptions()
        # The script's own handlers come later and take its place; torch.distributed's launchers
        # and --timeout end ranks by this signal.
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self.on_signal)

    def on_signal(self, number, _frame):
        if self.is_recording():
            self.ended_by = "signal %d" % number
            self.write()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def watch_exceptions(self):
        print_error = sys.excepthook
        print_thread_error = threading.excepthook

        def on_error(kind, value, trace):
            self.note_exception(kind, value, trace)
            print_error(kind, value, trace)

        def on_thread_error(arguments):
            self.note_exception(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
            print_thread_error(arguments)

        sys.excepthook = on_error
        threading.excepthook = on_thread_error

    def note_exception(self, kind, value, trace):
        if not self.is_recording() and self.owner is not None:
            return
        if issubclass(kind, KeyboardInterrupt):
            self.ended_by = "signal 2"
            return
        self.ended_by = "exception"
        self.exception = "".join(traceback.format_exception_only(kind, value)).strip()[:4000]
        if issubclass(kind, getattr(self.torch, "OutOfMemoryError", self.torch.cuda.OutOfMemoryError)):
            self.ended_by = "oom"
            self.oom_text = str(value)
        else:
            self.note_cause(trace)

    def note_cause(self, trace):
        """An error in a line that read a value which was not computed may come of its being 0."""
        for frame, line in traceback.walk_tb(trace):
            where = "%s:%d" % (os.path.basename(frame.f_code.co_filename), line)
            if where in self.places:
                self.note_sentence("the error came from a line that read a value which only a GPU would know and was 0 "
                                   "here: --value %s=NUMBER gives another" % where)

    def facts(self):
        torch = self.torch
        facts = {"pid": self.owner, "torch": str(torch.__version__), "cuda": torch.version.cuda,
                 "python": sys.version.split()[0], "arguments": sys.argv, "steps": self.steps,
                 "ended_by": self.ended_by, "exception": self.exception, "marks": self.marks,
                 "ooms": self.ooms[:100], "oom_count": len(self.ooms), "oom_text": self.oom_text,
                 "values": [{"where": where, "count": count} for where, count in self.places.items()],
                 "selected": self.settings.get("selected", 100),
                 "selections": [{"where": where, "elements": elements, "count": count}
                                for where, (elements, count) in self.selections.items()],
                 "decisions": [{"where": where, "count": count} for where, count in self.decisions.items()],
                 "notes": self.sentences + self.large_sentences()}
        facts["limit"] = self.limits.pop() if len(self.limits) == 1 else None
        for name in RANKS:
            text = os.environ.get(name, "")
            facts[name.lower()] = int(text) if text.isdigit() else None
        backend = getattr(torch.cuda, "get_allocator_backend", lambda: "native")
        facts["backend"] = backend()
        return facts

    def holds_nothing(self):
        """Helper processes, such as those that compile for Inductor, look at the device alone."""
        backend = getattr(self.torch.cuda, "get_allocator_backend", lambda: "native")
        return backend() == "native" and not self.ooms and not any(self.request_counts())

    def write(self):
        with self.lock:
            if self.is_written or not self.is_recording():
                return
            self.is_written = True
            with undisturbed():
                try:
                    if not self.holds_nothing():
                        self.write_files()
                except Exception as error:
                    say("what happened in process %d cannot be written: %r" % (self.owner, error))

    def write_recording(self, path, snapshot):
        """A full disk leaves room for the facts."""
        try:
            with open(path + ".tmp", "wb") as file:
                pickle.dump(snapshot, file)
            os.replace(path + ".tmp", path)
        except OSError as error:
            os.unlink(path + ".tmp")
            self.no_history = "the recording cannot be written to %s (%s); TMPDIR names another folder" % (
                os.path.dirname(path), error.strerror)

    def write_files(self):
        path = os.path.join(self.folder, str(os.getpid()))
        from . import values

        if self.no_history is None:
            snapshot = self.history.whole()
            if not snapshot["segments"] and not any(snapshot["device_traces"]):
                return  # a helper process that asked for the card and allocated nothing
            self.write_recording(path + ".pickle", snapshot)
        facts = self.facts()
        facts["memory"] = values.usage(self.torch.cuda.device_count())
        facts["no_recording"] = self.no_history
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(facts, file)
        os.replace(path + ".tmp", path + ".json")
        values.flush_report()
