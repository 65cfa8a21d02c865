"""What known.py follows beyond calls of Python with plain tensors: operators that PyTorch itself calls, on the local
tensors of DTensors or with objects that are sent; operators that a script writes; steps that optimizers count on the device."""
import ctypes
import functools
import sys

from . import counts, graphs, known, named

OUTER = "_fraglab_outer"


def make_mode(follow):
    from torch.utils._python_dispatch import TorchDispatchMode

    class OnHostToo(TorchDispatchMode):
        def __init__(self, is_counted=False):
            super().__init__()
            self.is_counted = is_counted  # by PyTorch, after each operator that changes a tensor in place

        def __torch_dispatch__(self, operator, types, arguments=(), named=None):
            named, schema = named or {}, operator._schema
            name = schema.name.split(":")[-1]
            if any(hasattr(kind, "full_tensor") for kind in types):
                return NotImplemented  # a DTensor, which comes again as its local one
            is_view = any(value.alias_info is not None and not value.alias_info.is_write for value in schema.returns)
            if operator.namespace != "aten" or is_view or "empty" in name or any(kind not in follow.plain for kind in types):
                return operator(*arguments, **named)
            is_shaped = name in known.NO_VALUES
            targets = [value for value, part in zip(arguments, schema.arguments) if part.alias_info is not None and follow.is_plain(value)]
            held = follow.held(operator, arguments, named) if not is_shaped and follow.is_wanted(arguments) else None
            result = operator._op(*arguments, **named)  # not as one that is called by name
            if held is not None and follow.is_kept(result):
                follow.keep(result, held)
            elif is_shaped and "resize" in name and follow.is_plain(result):
                follow.pad(result)
            elif not is_shaped and not (name == "copy_" and follow.is_plain_copy(*arguments[:2])):
                follow.forget_all(targets)
            for tensor in targets:
                counts.note_version(tensor, self.is_counted and not is_shaped and not tensor.is_inference())
            return result

    return OnHostToo


class Further:
    def __init__(self, follow):
        self.follow = follow

    @functools.cached_property
    def mode(self):
        return make_mode(self.follow)

    def call(self, function, arguments, named):
        """A function whose first tensor may be a DTensor. What changed that in place without being watched, as an optimizer does,
        PyTorch counts at the local one, or at the outer one alone."""
        outer = self.follow.first_tensor(arguments)
        local = getattr(outer, "_local_tensor", None)
        if local is None or self.follow.is_compiling() or self.follow.is_watched_by_others():
            return function(*arguments, **named)
        if counts.version_of(outer) != getattr(outer, OUTER, 0):
            self.follow.forget_all(local)
        self.follow.refresh(local)
        try:
            with self.mode():
                return function(*arguments, **named)
        finally:
            setattr(outer, OUTER, counts.version_of(outer))

    def watch_distributed(self, module):
        """torch.distributed.tensor"""
        def wrap(function):
            return functools.wraps(function)(lambda *arguments, **named: self.call(function, arguments, named))

        for name in ("to_local", "full_tensor", "redistribute"):
            setattr(module.DTensor, name, wrap(getattr(module.DTensor, name)))

    def watch_operators(self):
        """An operator of torch.library.custom_op is one change to PyTorch, counted before it runs. What it does is watched; if nothing
        of that changes what the operator says it changes, a kernel does."""
        kind = getattr(sys.modules.get("torch._library.custom_ops"), "CustomOpDef", None)
        if kind is None:
            return
        register = kind.register_kernel

        @functools.wraps(register)
        def register_kernel(operator, device_types, fn=None, /):
            def inner(fn):
                register(operator, device_types, self.watched(operator, fn))
                return fn

            return inner if fn is None else inner(fn)

        kind.register_kernel = register_kernel

    def watched(self, operator, function):
        follow = self.follow

        @functools.wraps(function)
        def run(*arguments, **named):
            targets = [value for value, part in zip(arguments, operator._opoverload._schema.arguments)
                       if part.alias_info is not None and follow.is_plain(value) and counts.address_of(value) != 0]
            for tensor in targets:
                counts.expect_change(tensor)
            return follow.forget_unwritten(targets, function, arguments, named)

        return run

    def are_alike(self, tensors):
        """Have so many tensors of one number the same one? Those of a step have, unless parameters joined later."""
        follow, first = self.follow, tensors[0]
        size, number, other = first.nbytes, ctypes.create_string_buffer(16), ctypes.create_string_buffer(16)
        for tensor in tensors:
            if not follow.is_plain(tensor) or tensor.dtype is not first.dtype or tensor.nbytes != size or size > 16:
                return False
            follow.refresh(tensor)
            address = counts.address_of(tensor)
            if address == 0 or follow.read(address, number if tensor is first else other, size) != size:
                return False
            if tensor is not first and other.raw != number.raw:
                return False
        return True

    def count_steps(self, name):
        """Fused optimizers and those for graphs count their steps in tensors of one number on the device."""
        function, follow = getattr(self.follow.torch, name, None), self.follow
        if function is None:
            return

        def on_host(hosts, *rest):
            function(hosts, *rest)
            return hosts

        @functools.wraps(function)
        def counted(tensors, *rest, **named):
            is_one = not named and len(rest) == 1 and isinstance(rest[0], (int, float)) and len(tensors) > 0 and tensors[0].numel() == 1 and \
                follow.is_wanted((tensors,)) and self.are_alike(tensors)
            held = follow.held(on_host, (tensors[:1], *rest), {}) if is_one else None
            if held is None:
                return function(tensors, *rest, **named)
            result = function.__wrapped__(tensors, *rest)
            for tensor in tensors:
                follow.write(tensor.data_ptr(), held[0].data_ptr(), tensor.nbytes)
                counts.note_version(tensor)
            return result

        setattr(self.follow.torch, name, counted)

    def watch_uncounted(self, owner, name):
        """A function that changes tensors in place, no method: PyTorch counts no change of those of inference, and of `.data` none that
        others see. Those of which the first is known are followed; else they are unknown then."""
        function, follow, plain, is_compiling = getattr(owner, name), self.follow, self.follow.plain, self.follow.is_compiling
        is_random = "dropout" in name or "rrelu" in name or name in known.RANDOM | known.DRAWN

        def on_host(hosts, *rest, **named):
            function(hosts, *rest, **named)
            return hosts

        @functools.wraps(function)
        def changed(*arguments, **named):
            first = arguments[0] if arguments else None
            targets = first if type(first) in (tuple, list) else [first]
            if is_compiling() or follow.is_inside or len(targets) == 0 or type(targets[0]) not in plain:
                if follow.captured is not None and arguments:
                    return follow.captured.call(function, arguments, named, targets, (lambda *_, **__: None) if is_random else None)
                return function(*arguments, **named)
            held = None
            follow.refresh(targets[0])
            if not is_random and follow.is_watched(targets[0]):
                for tensor in targets:
                    follow.refresh(tensor)
                held = follow.held(on_host, arguments, named)
            result = function(*arguments, **named)
            if held is not None:
                for tensor, number in zip(targets, held if targets is first else [held]):
                    follow.settle(tensor, number)
                    counts.note_version(tensor)
            elif targets[0].is_inference() or targets[0]._version < 2:
                follow.forget_all(targets)
            return result

        setattr(owner, name, changed)


def functions_in_place(torch):
    for owner in (torch, torch._C._nn, torch._VF):
        names = dir(torch._C._VariableFunctions if owner is torch._VF else owner)
        yield from ((owner, name) for name in names if name.endswith("_") and name not in known.NO_VALUES and
                    (name.startswith("_foreach_") if name.startswith("_") else callable(getattr(owner, name, None))))


def install(follow, after_import):
    for owner, name in functions_in_place(follow.torch):
        follow.further.watch_uncounted(owner, name)
    follow.further.watch_operators()
    graphs.install(follow)
    named.install(follow)
    for name in ("_foreach_add_", "_foreach_sub_"):
        follow.further.count_steps(name)
    after_import.call("torch.distributed.tensor", follow.further.watch_distributed)
