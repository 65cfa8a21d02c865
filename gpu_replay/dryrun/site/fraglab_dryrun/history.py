"""The script's own history of memory: what a card would have recorded for it. The dry run's own stays whole.

PyTorch has one history in a process, with one start and one limit. It records all the time, without a limit; whenever
the script starts or ends its own, what was recorded so far is moved into `earlier`, so that PyTorch's begins where the
script's does. Its limit is applied to the snapshots that it takes.

PyTorch records what was given back, not whether the script asked for it (empty_cache) or a request needed the room. Here
the calls are known: what they gave back gets a stack that names them, as it has in a recording with stacks."""
import contextlib
import os
import sys

NAMES = ("enabled", "context", "stacks", "max_entries", "clear_history", "compile_context",
         "global_record_annotations", "skip_actions", "record_pinned_host_memory", "record_cuda")
OLD_NAMES = ("enabled", "record_context", "max_entries", "record_each_context", "with_cpp")
OWN = os.path.dirname(__file__) + os.sep
CONTEXTS = (None, "state", "alloc", "all")  # each records what those before it do


def cut(entries, asked):
    """What the script's history holds of the entries since its start."""
    if asked is None or not asked.get("record_cuda", True):
        return []
    if asked.get("skip_actions"):
        entries = [entry for entry in entries if entry["action"] not in asked["skip_actions"]]
    # "state" is for the stacks of live blocks: it has one entry.
    return entries[-max(1, asked["max_entries"] if asked["enabled"] == "all" else 1):]


def name_emptied(entries, calls):
    """Gives the segments that calls of empty_cache freed the stacks of the calls: (requests until then, stack)."""
    calls = dict(calls)
    count = 0
    for entry in entries if calls else ():
        if entry["action"] == "alloc":
            count += 1
        elif entry["action"] in ("segment_free", "segment_unmap") and count in calls:
            entry.setdefault("frames", calls[count])


def leave_out_own(snapshot):
    """What the dry run wraps around functions of PyTorch is no part of the script's stacks. Entries share their lists of frames."""
    done = set()
    blocks = (block for segment in snapshot["segments"] for block in [segment, *segment["blocks"]])
    for entry in (*blocks, *(entry for entries in snapshot["device_traces"] for entry in entries)):
        frames = entry.get("frames")
        if frames and id(frames) not in done:
            done.add(id(frames))
            frames[:] = [frame for frame in frames if not frame["filename"].startswith(OWN)]


def frames_from(frame, most=16):
    frames = []
    while frame is not None and len(frames) < most:
        frames.append({"name": frame.f_code.co_name, "filename": frame.f_code.co_filename, "line": frame.f_lineno})
        frame = frame.f_back
    return frames


def watch_emptying(library, history, count):
    """count() is how many requests each device has served so far; None while CUDA is not initialised."""
    def noting(empty):
        def note_and_empty(*arguments):
            counts = count()
            if counts is not None:
                history.emptied.append((counts, frames_from(sys._getframe(1), 16 if history.has_stacks else 1)))
            return empty(*arguments)

        return note_and_empty

    for name in ("_cuda_emptyCache", "_accelerator_emptyCache"):
        if hasattr(library, name):
            setattr(library, name, noting(getattr(library, name)))


class History:
    def __init__(self, library, has_stacks):
        self.record = library._cuda_record_memory_history
        self.take = library._cuda_memorySnapshot
        self.has_stacks = has_stacks
        self.earlier = []  # entries of each device that PyTorch holds no longer
        self.emptied = []  # (requests of each device until then, stack) of each call of empty_cache
        self.asked = None  # by the script, while it has a history
        self.last = None  # the arguments with which PyTorch records
        self.is_direct = False

    @contextlib.contextmanager
    def direct(self):
        self.is_direct = True
        try:
            yield
        finally:
            self.is_direct = False

    def begin(self, function):
        """Starts the dry run's own by PyTorch's function; one that the script started before goes on."""
        if self.asked is None:
            with self.direct():
                function(enabled="all", context="alloc" if self.has_stacks else None, stacks="python")

    def start(self, names, values):
        self.record(*values)
        self.last = names, values

    def snapshot_all(self):
        try:
            return self.take(None)
        except TypeError:  # 2.6 and older take no argument
            return self.take()

    def add_earlier(self, traces):
        self.earlier += [[] for _ in range(len(self.earlier), len(traces))]
        for mine, entries in zip(self.earlier, traces):
            if not self.has_stacks:
                for entry in entries:
                    entry.pop("frames", None)
            mine += entries

    def move(self):
        """Empties PyTorch's history."""
        self.add_earlier(self.snapshot_all()["device_traces"])
        if self.last is not None:
            names, values = self.last
            values = dict(zip(names, values))
            self.record(*dict(values, enabled=None, context=None).values())
            self.record(*values.values())

    def whole(self):
        """A snapshot with all of the process in it."""
        snapshot = self.snapshot_all()
        self.add_earlier(snapshot["device_traces"])
        snapshot["device_traces"], self.earlier = self.earlier, []
        for device, entries in enumerate(snapshot["device_traces"]):
            name_emptied(entries, [(counts[device], frames) for counts, frames in self.emptied if device < len(counts)])
        leave_out_own(snapshot)
        return snapshot

    def change(self, names, values):
        """What the script asked for, without an end, a limit, or anything left out."""
        asked = dict(zip(names, values))
        own = "alloc" if self.has_stacks else None
        whole = dict(asked, max_entries=sys.maxsize, clear_history=False, skip_actions=[], record_cuda=True)
        if asked["enabled"] is None:
            whole.update(enabled="all", context=own, stacks="python")
        elif asked["context"] in CONTEXTS:
            whole["context"] = max(asked["context"], own, key=CONTEXTS.index)
        if asked["enabled"] == "state":
            whole["enabled"] = "all"
        self.start(names, [whole[name] for name in names])
        if asked["enabled"] is None or self.asked is None or asked.get("clear_history", False):
            self.move()
        self.asked = asked if asked["enabled"] is not None else None

    def snapshot(self, *arguments):
        if self.asked is None and self.last is not None:
            self.move()  # so that a script which takes many snapshots does not read the same entries again
        snapshot = self.take(*arguments)
        if "device_traces" in snapshot:
            snapshot["device_traces"] = [cut(entries, self.asked) for entries in snapshot["device_traces"]]
            leave_out_own(snapshot)
        return snapshot


def translate_old(values):
    """record_memory_history of 1.13 and 2.0, which PyTorch still takes, as arguments of today's."""
    old = dict(zip(OLD_NAMES, values))
    context = "alloc" if old["record_each_context"] else "state" if old["record_context"] else None
    return ["all" if old["enabled"] else None, context, "all" if old["with_cpp"] else "python",
            old["max_entries"], *values[len(OLD_NAMES):]]


def install(torch, has_stacks):
    """In the places of the functions of torch._C that torch.cuda.memory calls; None where there are others."""
    library = torch._C
    if not hasattr(library, "_cuda_record_memory_history") or not hasattr(library, "_cuda_memorySnapshot"):
        return None
    history = History(library, has_stacks)

    def record(*values):
        names = NAMES[:len(values)]
        if history.is_direct:
            history.start(names, values)
        else:
            history.change(names, values)

    def record_old(*values):
        record(*translate_old(values))

    library._cuda_record_memory_history = record
    if hasattr(library, "_cuda_record_memory_history_legacy"):
        library._cuda_record_memory_history_legacy = record_old
    library._cuda_memorySnapshot = history.snapshot
    if hasattr(library, "_cuda_isHistoryEnabled"):
        library._cuda_isHistoryEnabled = lambda: history.asked is not None
    return history
