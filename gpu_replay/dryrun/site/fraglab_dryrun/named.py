"""Operators that are called by name (torch.ops.aten.add_), and functions with out= beside those of known.py: what they change is known
from their schemas. PyTorch counts no change of tensors of inference mode, or of one that shares memory with another, as by DLPack."""
import functools

from . import counts, known

KEY = "_fraglab_writes"
# Those of other namespaces say by themselves what they carry (known.py), or are functions of Python that are watched (further.py).
COLLECTIVES = ("c10d", "_c10d", "symm_mem")
NO_VALUES = {"record_stream", "retain_grad", "_resize_output_"}  # besides those of known.py


class Writes:
    """What an operator changes: arguments by place and by name."""

    def __init__(self, torch, operator):
        name = getattr(operator, "_qualified_op_name", None) or operator._schema.name
        self.namespace, self.name = name.split("::")
        schemas = [operator._schema] if hasattr(operator, "_schema") else torch._C._jit_get_schemas_for_operator(name)
        self.places, self.names = set(), set()
        for schema in schemas if self.name not in NO_VALUES | known.NO_VALUES else ():
            for place, argument in enumerate(schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    self.names.add(argument.name)
                    if not argument.kwarg_only:
                        self.places.add(place)
        tags = operator.tags if hasattr(operator, "tags") else getattr(operator, operator.overloads()[0]).tags if schemas else ()
        self.is_random = torch.Tag.nondeterministic_seeded in tags
        self.is_followed = self.namespace == "aten" and not self.is_random
        self.setter = getattr(torch.Tensor, self.name) if self.name in known.SETTERS else None

    def targets(self, arguments, named):
        found = [arguments[place] for place in self.places if place < len(arguments)]
        found += [named[name] for name in self.names if name in named]
        return [tensor for value in found for tensor in (value if isinstance(value, (tuple, list)) else (value,))]


class Named:
    def __init__(self, follow):
        self.follow = follow
        self.torch = follow.torch

    def found(self, writes, operator, arguments, named):
        """What the targets hold after the operator, on the host; None: not known."""
        follow, torch = self.follow, self.torch
        if not writes.is_followed:
            return None
        outs = {name: named[name] for name in writes.names if name in named}
        if any(not isinstance(out, torch.Tensor) for out in outs.values()):
            return None

        def on_host(*hosts, **more):
            more.update({name: torch.empty(0, dtype=out.dtype, device="cpu") for name, out in outs.items()})
            operator(*hosts, **more)
            return writes.targets(hosts, more)

        held = follow.held(on_host, arguments, {name: value for name, value in named.items() if name not in outs})
        if held is None and writes.setter is not None and not named:
            held = follow.overwritten(writes.setter, arguments[0], arguments[1:], named)
            held = None if held is None else [held]
        return held

    def change(self, writes, operator, arguments, named):
        follow = self.follow
        targets = [tensor for tensor in writes.targets(arguments, named) if isinstance(tensor, self.torch.Tensor)]
        if not targets:  # another overload writes
            return self.make(writes, operator, arguments, named)
        if not any(map(follow.is_plain, targets)):
            return operator(*arguments, **named)
        if follow.is_inside:
            if follow.captured is None:
                return operator(*arguments, **named)
            find = lambda *given, **more: self.found(writes, operator, given, more)
            return follow.captured.call(operator, arguments, named, targets, find)
        if writes.namespace != "aten":
            return self.change_by_kernel(writes, operator, arguments, named, targets)
        for value in (*arguments, *named.values()):
            for tensor in value if isinstance(value, (tuple, list)) else (value,):
                follow.refresh(tensor)
        held = self.found(writes, operator, arguments, named)
        result = operator(*arguments, **named)
        is_copied = held is None and writes.name == "copy_" and follow.is_plain_copy(*arguments[:2])
        for tensor, number in zip(targets, held or [None] * len(targets)):
            if follow.is_plain(tensor) and counts.address_of(tensor) != 0 and not is_copied:
                follow.settle(tensor, number if number is not None and number.shape == tensor.shape else None)
            counts.note_version(tensor)
        return result

    def change_by_kernel(self, writes, operator, arguments, named, targets):
        """An operator of the script's own: those of Python note what they write, and PyTorch counts changes, but for inference."""
        free = [tensor for tensor in targets if tensor.is_inference()]
        if not free or writes.namespace.startswith(COLLECTIVES):
            return operator(*arguments, **named)
        return self.follow.forget_unwritten(free, operator, arguments, named)

    def make(self, writes, operator, arguments, named):
        """An operator that changes nothing: of whole numbers it is followed."""
        follow, first = self.follow, arguments[0] if arguments else None
        if not writes.is_followed or type(first) not in follow.plain or first.dtype not in follow.whole or not first.is_cuda:
            return operator(*arguments, **named)
        if follow.is_inside:
            return operator(*arguments, **named) if follow.captured is None else follow.captured.call(operator, arguments, named)
        result = operator(*arguments, **named)
        held = follow.held(operator, arguments, named) if follow.is_wanted(arguments) and follow.is_kept(result) else None
        if held is not None:
            follow.keep(result, held)
        elif writes.name in known.CHANGED_COPIES:
            follow.forget_all(result)
        return result

    def watch_kind(self, kind):
        follow, torch, call = self.follow, self.torch, kind.__call__
        plain, whole, is_compiling, mode_count = follow.plain, follow.whole, follow.is_compiling, follow.mode_count
        is_short = call.__code__.co_names == ("_op",)  # it calls that and nothing else

        @functools.wraps(call)
        def called(operator, /, *arguments, **named):
            writes = operator.__dict__.get(KEY)
            if writes is None:
                writes = operator.__dict__[KEY] = Writes(torch, operator)
            # A mode comes first, and calls the operator again or does its work: that of further.py follows it.
            if writes.names:
                if not is_compiling() and mode_count() == 0:
                    return self.change(writes, functools.partial(call, operator), arguments, named)
            elif arguments and type(arguments[0]) in plain and arguments[0].dtype in whole and not is_compiling() and mode_count() == 0:
                return self.make(writes, functools.partial(call, operator), arguments, named)
            return operator._op(*arguments, **named) if is_short else call(operator, *arguments, **named)

        kind.__call__ = called

    def watch_out(self, owner, name):
        function, follow = getattr(owner, name), self.follow

        @functools.wraps(function)
        def into(*arguments, **named):
            if "out" not in named or follow.is_compiling():
                return function(*arguments, **named)
            if follow.is_inside:
                return function(*arguments, **named) if follow.captured is None else follow.captured.call(function, arguments, named)
            return follow.into(function, follow.first_tensor(arguments), arguments, named)

        setattr(owner, name, into)


def functions_with_out(torch):
    """Those that take a tensor to write to and are not followed anyway."""
    followed = {*known.OPERATORS, *known.CHANGED_COPIES, *known.PRODUCTS}
    for owner in (torch, torch.linalg, torch.special, torch.fft, torch._C._nn):
        for name in dir(owner):
            function = getattr(owner, name)
            if name.startswith("_") or isinstance(function, type) or not callable(function) or owner is torch and name in followed:
                continue
            if owner is torch._C._nn:
                # torch.compile knows those that stand elsewhere too, as F.linear, by what they are.
                if getattr(torch.nn.functional, name, None) is function:
                    continue
                is_told = any(schema.overload_name == "out" for schema in torch._C._jit_get_schemas_for_operator("aten::" + name))
            else:
                is_told = "out=" in (getattr(function, "__doc__", None) or "")
            if is_told:
                yield owner, name


def install(follow):
    torch = follow.torch
    watch = Named(follow)
    for kind in (torch._ops.OpOverload, torch._ops.OpOverloadPacket):
        watch.watch_kind(kind)
    for owner, name in list(functions_with_out(torch)):
        watch.watch_out(owner, name)
