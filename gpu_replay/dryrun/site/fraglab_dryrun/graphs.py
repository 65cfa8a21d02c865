"""What Python calls while a graph is captured happens at each launch of the graph, with what is known then: the software CUDA calls it
at its place among the copies and fills that were captured, and among the blocks that the allocator handed out and took back."""
import ctypes
import functools
import itertools
import weakref

from . import counts, known, values

ACTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Lost:
    """An argument of which nothing will be known."""


class Call:
    """A function: what it makes is found before what the graph does for it, and noted after that."""

    def __init__(self, captured, find, arguments, named):
        self.captured = captured
        self.find = find
        self.arguments = captured.refer(arguments)
        self.named = captured.refer(named)
        self.made = []
        self.held = None
        self.is_lost = False  # is what it makes unknown where the host does not know it? New memory is so anyway

    def hold(self):
        captured = self.captured
        try:
            self.held = self.find(*captured.found(self.arguments), **captured.found(self.named))
        except known.Unknown:
            self.held = None

    def settle(self):
        held, self.held = self.held, None
        held = held if isinstance(held, (tuple, list)) else [held]
        for place, number in zip(self.made, held if len(held) == len(self.made) else [None] * len(self.made)):
            if number is not None or self.is_lost:
                self.captured.settle(place, number)


class Place:
    """Where a tensor lies, whatever becomes of it: one that owns no memory, and the owner, while there is one, whose changes count."""

    def __init__(self, torch, tensor):
        size = counts.span_of(tensor) * tensor.element_size()
        storage = torch._C._construct_storage_from_data_pointer(tensor.data_ptr(), tensor.device, size)
        self.tensor = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage, 0, tensor.shape, tensor.stride())
        self.owner = weakref.ref(counts.owner_of(tensor))

    def found(self):
        owner = self.owner()
        if owner is not None:
            counts.refresh(owner)
        return self.tensor


class Captured:
    """Of one graph."""

    def __init__(self, graphs):
        self.graphs = graphs
        self.follow = graphs.follow
        self.actions = []  # of the last note
        self.numbers = []  # of all notes

    def note(self, action):
        """Does it at this place of each launch."""
        number = next(self.graphs.counter)
        answer = self.graphs.add(self.follow.torch.cuda.current_stream().cuda_stream, self.graphs.callback, number)
        if answer == 1:
            self.actions = self.graphs.actions[number] = []
            self.numbers.append(number)
        if answer != 0:
            self.actions.append(action)

    def refer(self, value):
        if isinstance(value, (tuple, list)):
            return type(value)(map(self.refer, value)) if type(value) in (tuple, list) else list(map(self.refer, value))
        if isinstance(value, dict):
            return {name: self.refer(part) for name, part in value.items()}
        if not isinstance(value, self.follow.torch.Tensor):
            return value
        if not value.is_cuda:
            return value.detach().clone() if known.is_small(value) else Lost
        return self.place_of(value) or Lost

    def place_of(self, tensor):
        """None: it is not followed."""
        follow = self.follow
        if not follow.is_plain(tensor) or not known.is_small(tensor) or tensor.is_conj() or tensor.is_neg() or counts.address_of(tensor) == 0:
            return None
        return Place(follow.torch, tensor)

    def found(self, value):
        if isinstance(value, (tuple, list)):
            return type(value)(map(self.found, value))
        if isinstance(value, dict):
            return {name: self.found(part) for name, part in value.items()}
        if value is Lost:
            raise known.Unknown
        return value.found() if type(value) is Place else value

    def call(self, function, arguments, named, targets=(), find=None):
        """targets: those that the function changes in place, by way of its first argument; else what it makes is meant. find: what gives what
        they hold then, on the host; None: the function, of what is known."""
        follow = self.follow
        for tensor in targets:
            counts.refresh(tensor)
        if find is None:
            find = functools.partial(self.changed if targets else self.made, function)
        called = Call(self, find, arguments, named)
        self.note(called.hold)
        follow.captured = None
        try:
            result = function(*arguments, **named)
        finally:
            follow.captured = self
        for tensor in targets:
            counts.note_version(tensor)  # it has not happened yet
        made = targets or (result if isinstance(result, (tuple, list)) else [result])
        places = [self.place_of(tensor) if isinstance(tensor, follow.torch.Tensor) else None for tensor in made]
        if any(places):
            called.made = places
            called.is_lost = bool(targets) or "out" in named or getattr(function, "__name__", "") in known.CHANGED_COPIES
            self.note(called.settle)
        return result

    def made(self, function, *arguments, **named):
        follow, out = self.follow, named.pop("out", None)
        if not follow.is_watched(follow.first_tensor(arguments)):
            return None
        held = follow.held(function, arguments, named)
        if out is None or held is None:
            return held
        return held.to(out.dtype) if isinstance(held, follow.torch.Tensor) and isinstance(out, follow.torch.Tensor) and held.shape == out.shape else None

    def changed(self, function, first, *arguments, **named):
        follow = self.follow
        if not isinstance(first, follow.torch.Tensor):
            def on_host(hosts, *others, **more):
                function(hosts, *others, **more)
                return hosts

            return follow.held(on_host, (first, *arguments), named)
        target, held = follow.foreseen(function, first, arguments, named)
        if target is not first:  # a part of it
            follow.settle(target, held)
            return follow.held(lambda host: host, (first,), {})
        return held

    def note_held(self, tensor, held):
        """What a tensor holds at this place of each launch; None: it is unknown."""
        place = self.place_of(tensor)
        if place is not None:
            self.note(lambda: self.settle(place, held))

    def settle(self, place, held):
        """Nothing is noted of a tensor that became another one."""
        if place is not None:
            self.follow.settle(place.tensor, held if held is not None and held.shape == place.tensor.shape else None)


class Graphs:
    def __init__(self, follow, add):
        self.follow = follow
        self.add = add
        self.counter = itertools.count(1)
        self.actions = {}  # by number of a note
        self.callback = ACTION(self.act)

    def act(self, number):
        for action in self.actions.get(number, ()):
            try:
                action()
            except Exception as error:
                self.follow.run.note_sentence("what a graph does could not be followed: %r" % error)

    def drop(self, numbers):
        for number in numbers:
            self.actions.pop(number, None)

    def watch(self):
        kind, follow = self.follow.torch.cuda.CUDAGraph, self.follow
        begin, end = kind.capture_begin, kind.capture_end

        @functools.wraps(begin)
        def capture_begin(graph, *arguments, **named):
            begin(graph, *arguments, **named)
            follow.captured = Captured(self)
            weakref.finalize(graph, self.drop, follow.captured.numbers)
            follow.is_inside = True

        @functools.wraps(end)
        def capture_end(graph):
            follow.captured, follow.is_inside = None, False
            end(graph)

        kind.capture_begin, kind.capture_end = capture_begin, capture_end


def install(follow):
    add = values.software("frag_software_graph_note")
    if add is not None:
        add.argtypes, add.restype = [ctypes.c_void_p, ACTION, ctypes.c_void_p], ctypes.c_int
        Graphs(follow, add).watch()
