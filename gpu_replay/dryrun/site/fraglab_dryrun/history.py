"""The script's own history of memory: what a card would have recorded for it, cut out of the dry run's, which stays whole.

PyTorch has one history in a process. What the script asks of it (a start, an end, max_entries) is therefore kept here
and applied to the snapshots that it takes."""
import contextlib
import sys

NAMES = ("enabled", "context", "stacks", "max_entries", "clear_history", "compile_context",
         "global_record_annotations", "skip_actions", "record_pinned_host_memory", "record_cuda")
OLD_NAMES = ("enabled", "record_context", "max_entries", "record_each_context", "with_cpp") + NAMES[4:]
CONTEXTS = (None, "state", "alloc", "all")  # each records what those before it do


class Span:
    """What the script's history holds: entries from `first` on of each device, the last `max_entries` of them."""

    def __init__(self, first, asked):
        self.first = first
        # "state" keeps the stacks of live blocks, and no history but one entry.
        self.max_entries = max(1, asked["max_entries"]) if asked["enabled"] == "all" else 1
        self.skipped = frozenset(asked.get("skip_actions", ()))
        self.is_empty = not asked.get("record_cuda", True)

    def cut(self, device, entries):
        if self.is_empty:
            return []
        first = self.first[device] if device < len(self.first) else 0
        if device < len(self.first) and first < len(entries) and entries[first]["action"] == "snapshot":
            first += 1  # of the snapshot that counted the entries
        if self.skipped:
            kept = [entry for entry in entries[first:] if entry["action"] not in self.skipped]
            return kept[-self.max_entries:]
        return entries[max(first, len(entries) - self.max_entries):]


class History:
    def __init__(self, library, has_stacks):
        self.record = library._cuda_record_memory_history
        self.take = library._cuda_memorySnapshot
        self.context = "alloc" if has_stacks else None
        self.stacks = "python"
        self.span = None  # of the script: it has none until it asks
        self.is_direct = False

    @contextlib.contextmanager
    def direct(self):
        """For the dry run itself, which starts a history and takes all of it."""
        self.is_direct = True
        try:
            yield
        finally:
            self.is_direct = False

    def begin(self, function):
        """Starts the dry run's own by PyTorch's function; a history that the script started before goes on."""
        if self.span is None:
            with self.direct():
                function(enabled="all", context=self.context, stacks=self.stacks)

    def change(self, names, arguments):
        """What the script asked for, without an end, a limit, or anything left out."""
        asked = dict(zip(names, arguments))
        ends = asked["enabled"] is None
        if ends:
            asked.update(context=None, stacks=self.stacks)
        whole = dict(asked, max_entries=sys.maxsize, clear_history=False, skip_actions=[], record_cuda=True,
                     enabled="all" if asked["enabled"] in (None, "state") else asked["enabled"])
        if whole["context"] in CONTEXTS:
            whole["context"] = max(whole["context"], self.context, key=CONTEXTS.index)
        self.record(*[whole[name] for name in names])
        if ends:
            self.span = None
        elif self.span is None or asked.get("clear_history", False):
            self.span = Span([len(entries) for entries in self.snapshot_all()["device_traces"]], asked)
        else:
            self.span = Span(self.span.first, asked)

    def snapshot_all(self):
        try:
            return self.take(None)
        except TypeError:  # 2.6 and older take no argument
            return self.take()

    def snapshot(self, *arguments):
        snapshot = self.take(*arguments)
        if not self.is_direct and "device_traces" in snapshot:
            snapshot["device_traces"] = [self.span.cut(device, entries) if self.span is not None else []
                                         for device, entries in enumerate(snapshot["device_traces"])]
        return snapshot


def translate_old(arguments):
    """record_memory_history of 1.13 and 2.0, which PyTorch still takes, as arguments of today's."""
    old = dict(zip(OLD_NAMES, arguments))
    context = "alloc" if old["record_each_context"] else "state" if old["record_context"] else None
    return ["all" if old["enabled"] else None, context, "all" if old["with_cpp"] else "python",
            old["max_entries"], *arguments[5:]]


def install(torch, has_stacks):
    """The functions of torch._C that torch.cuda.memory calls; None where there are others."""
    library = torch._C
    if not hasattr(library, "_cuda_record_memory_history") or not hasattr(library, "_cuda_memorySnapshot"):
        return None
    history = History(library, has_stacks)

    def record(*arguments):
        if history.is_direct:
            return history.record(*arguments)
        return history.change(NAMES[:len(arguments)], arguments)

    def record_old(*arguments):
        return record(*translate_old(arguments))

    library._cuda_record_memory_history = record
    if hasattr(library, "_cuda_record_memory_history_legacy"):
        library._cuda_record_memory_history_legacy = record_old
    library._cuda_memorySnapshot = history.snapshot
    if hasattr(library, "_cuda_isHistoryEnabled"):
        library._cuda_isHistoryEnabled = lambda: history.span is not None
    return history
