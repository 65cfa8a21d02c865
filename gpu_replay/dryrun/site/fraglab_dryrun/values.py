"""Values that a script reads from the device and only a kernel could know: they are zeros, or what
--value says, and a loop that waits for one of them is ended with its line."""
import ast
import bisect
import ctypes
import dis
import functools
import inspect
import itertools
import linecache
import os
import struct
import sys
import threading
import traceback

from . import counts, decisions, operators, say

OURS = os.path.dirname(os.path.abspath(__file__))
# How Python code reads values of a tensor.
READERS = ("item", "__bool__", "__int__", "__float__", "__index__", "__complex__", "tolist", "cpu")


class Choice:
    """How many of some elements a mask is said to select (counts.py)."""

    def __init__(self, count, elements, is_known, large=0):
        self.count = count
        self.elements = elements
        self.is_known = is_known  # by the host; else --value may say otherwise
        self.large = large  # bytes of whole numbers that are chosen from


class Scalar(ctypes.Structure):
    """frag_software_scalar of gpu_replay/software/software_cuda.h."""

    _fields_ = [("device_address", ctypes.c_void_p), ("host_address", ctypes.c_void_p),
                ("bytes", ctypes.c_size_t), ("known_bytes", ctypes.c_size_t),
                ("count", ctypes.c_uint64), ("caller", ctypes.c_void_p),
                ("where", ctypes.c_void_p), ("where_bytes", ctypes.c_size_t)]


HANDLER = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(Scalar), ctypes.c_void_p)


class Usage(ctypes.Structure):
    """frag_software_usage."""

    _fields_ = [("capacity_bytes", ctypes.c_uint64), ("used_bytes", ctypes.c_uint64),
                ("used_bytes_max", ctypes.c_uint64), ("others_bytes", ctypes.c_uint64),
                ("refused_others_bytes", ctypes.c_uint64), ("card_bytes_max", ctypes.c_uint64),
                ("process_count_max", ctypes.c_uint32), ("card", ctypes.c_uint32)]


@functools.lru_cache(maxsize=None)
def process():
    return ctypes.CDLL(None)


def software(name):
    """A function of the software CUDA, or None where the process has a real one."""
    try:
        return getattr(process(), name)
    except (AttributeError, OSError):
        return None


def usage(devices):
    get = software("frag_software_get_usage")
    found = []
    if get is None:
        return found
    get.restype = ctypes.c_bool
    for device in range(devices):
        used = Usage()
        if get(ctypes.c_int(device), ctypes.byref(used)):
            found.append({"device": device, "card": used.card, "capacity_bytes": used.capacity_bytes,
                          "used_bytes_max": used.used_bytes_max,
                          "refused_others_bytes": used.refused_others_bytes,
                          "card_bytes_max": used.card_bytes_max if used.process_count_max > 1 else 0})
    return found


def flush_report():
    flush = software("frag_software_flush")
    if flush is not None:
        flush()


def bytes_of(torch, dtype, size, value):
    """A number as the bytes of a tensor element; without a type, the usual one of that size."""
    if dtype is not None:
        element = torch.tensor([value], dtype=dtype)
        return bytes(element.view(torch.uint8).tolist())
    form = {1: "<B", 2: "<h", 4: "<f", 8: "<q"}.get(size)
    return struct.pack(form, int(value) if form != "<f" else float(value)) if form else None


def is_library(path, torch_folder):
    """Is a file of Python, of an installed package or ours, and none of the script?"""
    return path.startswith(("<", OURS, torch_folder)) or "site-packages" in path or \
        any(path.startswith(os.path.join(folder, "lib", "python")) for folder in (sys.prefix, sys.base_prefix))


def caller_of(depth):
    """The frame so many above the one that asks; None in a thread that runs no Python."""
    try:
        return sys._getframe(depth + 1)
    except ValueError:
        return None


def frames_of(frame):
    """From a frame outwards, without ours."""
    while frame is not None:
        if not frame.f_code.co_filename.startswith(OURS):
            yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def is_negated(test, line):
    """Is the call at this line of a condition below an odd number of nots?"""
    found = False

    def visit(node, nots):
        nonlocal found
        if isinstance(node, ast.Call) and node.lineno <= line <= node.end_lineno:
            found = nots % 2 == 1
            return
        for child in ast.iter_child_nodes(node):
            visit(child, nots + (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)))

    visit(test, 0)
    return found


@functools.lru_cache(maxsize=None)
def staying_values(path):
    """By line: what a call in the condition of a while, or of an if that leaves a loop, has to be so that
    the loop goes on."""
    stays = {}
    for loop in ast.walk(decisions.tree_of(path)):
        if isinstance(loop, ast.While):
            for line in decisions.lines_of(loop.test):
                stays[line] = not is_negated(loop.test, line)
        if isinstance(loop, (ast.While, ast.For)):
            for inner in ast.walk(loop):
                if isinstance(inner, ast.If) and any(isinstance(left, (ast.Break, ast.Return)) for left in inner.body):
                    for line in decisions.lines_of(inner.test):
                        stays[line] = is_negated(inner.test, line)
    return stays


def parts_of(test):
    """The parts of a condition that are asked one after the other."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return parts_of(test.operand)
    return [part for value in test.values for part in parts_of(value)] if isinstance(test, ast.BoolOp) else [test]


def place_by_jumps(frame, test):
    """Before Python 3.11: each part of a condition ends in a jump. Unless other jumps stand there as well, the next is that of the part."""
    jumps, line = [], 0
    for step in dis.get_instructions(frame.f_code):
        line = step.starts_line or line
        if "JUMP_IF" in step.opname and line in decisions.lines_of(test):
            jumps.append(step.offset)
    parts = parts_of(test)
    at = bisect.bisect_left(jumps, frame.f_lasti)
    return (parts[at].lineno, parts[at].col_offset) if len(parts) == len(jumps) > at else (frame.f_lineno, 0)


def place_in(frame, test):
    """Line and column of what a frame runs of a condition; a column of 0: not known."""
    if not hasattr(frame.f_code, "co_positions"):
        return place_by_jumps(frame, test)
    found = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), ())
    return (frame.f_lineno, found[2] or 0) if found and found[0] == frame.f_lineno else (frame.f_lineno, 0)


def truth_of(test, place, is_true=True):
    """What the part of a condition at a place has to be so that the whole is true, or false; None: which part is not known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return truth_of(test.operand, place, not is_true)
    if isinstance(test, ast.BoolOp):
        line, column = place
        parts = {truth_of(part, place, is_true) for part in test.values
                 if (part.lineno, part.col_offset) <= (line, column or 10 ** 9) and
                 (line, column) < (part.end_lineno, part.end_col_offset)}
        return parts.pop() if len(parts) == 1 else None
    return is_true


@functools.lru_cache(maxsize=None)
def guards(path):
    """By line: the condition of an assert, or of an if that ends in raise, and whether it has to be true to go on."""
    found = {}
    for node in ast.walk(decisions.tree_of(path)):
        raises = isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise) and \
            "StopIteration" not in decisions.names_in(node.body[-1])
        if raises or isinstance(node, ast.Assert):
            found.update(dict.fromkeys(decisions.lines_of(node.test), (node.test, not raises)))
    return found


@functools.lru_cache(maxsize=None)
def waiting_lines(path):
    """By line of a file that belongs to the condition of a while, or of an if in one that leaves it: the lines of the innermost such loop."""
    loops = {}
    for node in ast.walk(decisions.tree_of(path)):
        if not isinstance(node, ast.While):
            continue
        tests = [inner.test for inner in ast.walk(node) if isinstance(inner, ast.If) and
                 any(isinstance(left, (ast.Break, ast.Return)) for left in ast.walk(inner))]
        for test in (node.test, *tests):
            loops.update(dict.fromkeys(decisions.lines_of(test), decisions.lines_of(node)))
    return loops


class Leaving:
    """Does a frame leave its loop? One that does so each time it reads a value does not wait for it."""

    def __init__(self, frame):
        self.lines = waiting_lines(frame.f_code.co_filename)[frame.f_lineno]
        self.is_left = False
        if sys.gettrace() is None:
            sys.settrace(lambda *_: None)
            frame.f_trace = self.trace

    def trace(self, frame, event, _given):
        is_over = event == "return" and not frame.f_code.co_flags & inspect.CO_GENERATOR
        if not is_over and frame.f_lineno in self.lines:
            return self.trace
        self.is_left = True
        frame.f_trace = None
        sys.settrace(None)
        return None


def waits(frame):
    """The innermost frame whose line is a loop's condition, or None."""
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(OURS) and frame.f_lineno in waiting_lines(path):
            return frame
        frame = frame.f_back
    return None


class Watch:
    def __init__(self, torch, run):
        self.torch = torch
        self.run = run
        self.torch_folder = os.path.dirname(os.path.abspath(torch.__file__))
        self.distributions = os.path.join(self.torch_folder, "distributions", "")
        self.reading = threading.local()
        self.choices = {}  # by thread: while a mask's elements are counted
        self.rules = [(rule["file"], rule["line"], rule["value"])
                      for rule in run.settings.get("values", [])]
        self.rounds = run.settings.get("rounds") or 1000
        self.limits = {}
        self.leaving = {}  # by place, once half of the reads were made until the next limit
        self.sum = lambda size: None  # the choice for elements of a sparse tensor that are added up (counts.py)
        self.lengths = []  # functions that say what is read at a line of a library, or None
        self.stuck = None
        self.stack = operators.Stack()
        self.plain = {torch.Tensor, getattr(getattr(torch, "nn", None), "Parameter", torch.Tensor)}
        self.refresh = lambda tensor: None  # forgets what a tensor held before changes that nobody watched (known.py)

    def rule_for(self, frame):
        """What --value says of any line that is being run, the innermost first."""
        for path, line in frames_of(frame) if self.rules else ():
            for name, number, value in self.rules:
                if number == line and (path == name or path.endswith("/" + name.lstrip("/"))):
                    return value
        return None

    def place_of(self, frame):
        """The innermost line of the script, else of whoever reads."""
        innermost = None
        for place in frames_of(frame):
            if not is_library(place[0], self.torch_folder):
                return place
            innermost = innermost or place
        return innermost or ("python", 0)

    def name_of(self, frame):
        path, line = self.place_of(frame)
        return os.path.basename(path), line

    def on_scalar(self, scalar, _context):
        """Called by a thread that copies a few bytes of unknown value to the host."""
        try:
            return self.answer(scalar.contents)
        except Exception as error:
            self.run.note_sentence("a value could not be looked into: %r" % error)
            return False

    def answer(self, scalar):
        frame = caller_of(2)
        value = self.rule_for(frame)
        choice = self.choices.get(threading.get_ident()) or self.sum(scalar.bytes)
        if choice is not None and scalar.bytes in (4, 8):
            if frame is not None and not choice.is_known:
                choice.count = int(value) if value is not None else choice.count
                self.run.note_selection("%s:%d" % self.name_of(frame), choice)
                self.run.note_large("%s:%d" % self.name_of(frame), choice.large)
            raw = choice.count.to_bytes(scalar.bytes, "little", signed=True)
            ctypes.memmove(scalar.host_address, raw, len(raw))
            return True
        raw = None
        if value is None and scalar.known_bytes < scalar.bytes and self.run.settings.get("defaults", True):
            raw = operators.answer(self.stack, scalar.bytes)
        if raw is not None and not any(raw):
            ctypes.memmove(scalar.host_address, raw, len(raw))
            return True
        if value is None and scalar.known_bytes < scalar.bytes:
            value = self.marked(frame)
            self.note_decision(frame)
        if value is None and scalar.bytes == 1 and getattr(self.reading, "answers", None):
            answers = self.reading.answers
            value = answers.pop(0) if len(answers) > 1 else answers[0]
        if value is not None:
            given = bytes_of(self.torch, getattr(self.reading, "dtype", None), scalar.bytes, value)
            if given is not None and len(given) == scalar.bytes:
                ctypes.memmove(scalar.host_address, given, len(given))
                return True
        if scalar.known_bytes == scalar.bytes:
            return True
        if raw is not None:
            ctypes.memmove(scalar.host_address, raw, len(raw))
            return True
        where = "%s:%d" % self.name_of(frame) if frame is not None else "a thread of PyTorch, as of backward()"
        name = where.encode()[:max(scalar.where_bytes - 1, 0)] + b"\0"
        ctypes.memmove(scalar.where, name, min(len(name), scalar.where_bytes))
        self.count(where, frame)
        self.run.note_large(where, getattr(self.reading, "large", None))
        return False

    def marked(self, frame):
        """What is known of the value without a word of --value: of all(), and of lengths in libraries."""
        inner = frame
        while inner is not None and inner.f_code.co_filename.startswith(OURS):
            inner = inner.f_back
        value = getattr(self.reading, "value", None)
        if inner is None:
            return value
        if inner.f_code.co_filename.startswith(self.distributions) and self.run.settings.get("defaults", True) and \
                inner.f_lineno not in guards(inner.f_code.co_filename) and str(getattr(self.reading, "dtype", None)) == "torch.bool":
            return True  # they draw until all is accepted
        if value is not None:
            stays = staying_values(inner.f_code.co_filename)
            if inner.f_lineno in stays:
                self.count("%s:%d" % self.name_of(frame), frame)  # which ends a loop that waits
            return stays.get(inner.f_lineno, value)
        if str(getattr(self.reading, "dtype", None)) == "torch.bool" and self.run.settings.get("defaults", True):
            guard = guards(inner.f_code.co_filename).get(inner.f_lineno)
            value = truth_of(guard[0], place_in(inner, guard[0]), guard[1]) if guard is not None else None
        return self.length_at(inner) if value is None else value

    def length_at(self, frame):
        """A length that a library reads, where that is known without the device."""
        while frame is not None and frame.f_code.co_filename.startswith(OURS):
            frame = frame.f_back
        found = (ask(frame) for ask in self.lengths if frame is not None)
        return next((length for length in found if length is not None), None)

    def note_decision(self, frame):
        """Does the script decide by the value that is read what it does next?"""
        place = decisions.place_of(frame, lambda path: is_library(path, self.torch_folder))
        if place is not None:
            self.run.decisions[place] = self.run.decisions.get(place, 0) + 1

    def count(self, where, frame):
        places = self.run.places
        places[where] = places.get(where, 0) + 1
        limit = self.limits.setdefault(where, self.rounds)
        if places[where] == limit - self.rounds // 2:
            at = waits(frame)
            self.leaving[where] = Leaving(at) if at is not None else None
        if places[where] < limit:
            return
        self.limits[where] = limit + self.rounds
        at = waits(frame)
        leaving = self.leaving.pop(where, None)
        if at is not None and (leaving is None or not leaving.is_left):
            self.stuck = (where, at.f_code.co_filename, at.f_lineno, traceback.format_stack(at))

    def leave(self):
        """Behind a read: end the script if a loop waits there for a value that never comes."""
        if self.stuck is None:
            return
        where, path, line, stack = self.stuck
        self.stuck = None
        say("%s:%d waits in a loop for a value that only the GPU would compute; it was read %d times at %s "
            "and is 0 in a dry run" % (path, line, self.run.places[where], where))
        say("the condition: %s" % linecache.getline(path, line).strip())
        sys.stderr.write("".join(stack))
        say("say what it becomes with --value %s=NUMBER, or end earlier with --steps" % where)
        self.run.note_sentence("ended in a loop at %s that waits for a value of the device" % where)
        self.run.finish("loop", 1)

    def answer_checks(self, owner, name, answers):
        """A function that reads truth values inside, each of which is known to be this; the last of them
        for all further ones. answers: these, or what says them by the arguments."""
        function = getattr(owner, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def checked(*arguments, **named):
            self.reading.answers = list(answers(*arguments, **named) if callable(answers) else answers)
            try:
                return function(*arguments, **named)
            finally:
                self.reading.answers = None

        setattr(owner, name, checked)

    def gathered(self, name, tensor, result):
        """What is read of a view with gaps, which a kernel gathers first."""
        if name not in ("tolist", "cpu") or type(tensor) not in self.plain:
            return result
        if tensor.numel() > 16:
            self.run.note_large("%s:%d" % self.name_of(caller_of(2)), counts.large(tensor))
        if tensor.layout is not self.torch.strided or tensor.requires_grad or \
                tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
            return result
        held = counts.on_host(self.torch, tensor)
        return result if held is None else held if name == "cpu" else held.tolist()

    def wrap(self, name):
        tensor = self.torch.Tensor
        read = getattr(tensor, name, None)
        if read is None:
            return

        @functools.wraps(read)
        def reader(self_tensor, *arguments, **named):
            if not self_tensor.is_cuda:
                return read(self_tensor, *arguments, **named)
            if type(self_tensor) in self.plain:
                self.refresh(self_tensor)
            self.reading.dtype = self_tensor.dtype
            self.reading.value = getattr(self_tensor, "_fraglab_value", None)
            self.reading.large = getattr(self_tensor, "_fraglab_large", None)
            try:
                result = read(self_tensor, *arguments, **named)
                return self.gathered(name, self_tensor, result)
            finally:
                self.reading.dtype = self.reading.value = self.reading.large = None
                self.leave()

        setattr(tensor, name, reader)

    def install(self):
        handle = software("frag_software_handle_scalars")
        if handle is None:
            return
        for name in READERS:
            self.wrap(name)
        self.handler = HANDLER(self.on_scalar)  # kept: the library calls it as long as it runs
        handle.argtypes = [HANDLER, ctypes.c_void_p]
        handle(self.handler, None)
        # The software CUDA forgets it in a child, which has a CUDA of its own.
        os.register_at_fork(after_in_child=lambda: handle(self.handler, None))


def watch(torch, run):
    run.watch_of_values = Watch(torch, run)
    run.watch_of_values.install()
