"""Stands in for torch: STUB_TORCH is the release it behaves like, "cpu" behind it for one without CUDA."""
import os
import types

__version__, _, _kind = os.environ["STUB_TORCH"].partition("+")
version = types.SimpleNamespace(cuda=None if _kind == "cpu" else "12.8", hip=None)
_release = tuple(int(part) for part in __version__.split(".")[:2])
calls = []
observers = []


class OutOfMemoryError(RuntimeError):
    pass


if _release >= (2, 1):

    def _record_memory_history(enabled="all", *args, **kwargs):
        calls.append(("all", enabled, _check(kwargs, {"context", "stacks", "max_entries", "device"})))

elif _release >= (2, 0):

    def _record_memory_history(
        enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False, device=None
    ):
        calls.append(("trace", enabled, trace_alloc_max_entries))

else:

    def _record_memory_history(enabled, device=None):
        calls.append(("live", enabled))


def _check(given, known):
    if not set(given) <= known:
        raise TypeError("unexpected keyword argument")
    return given


class _Cuda(types.ModuleType):
    def __init__(self):
        super().__init__("torch.cuda")
        self.initialized = False
        self.waiting = []
        self.memory = types.SimpleNamespace(
            _record_memory_history=_record_memory_history,
            _snapshot=lambda: {"segments": [], "device_traces": [[]], "calls": list(calls)},
        )

    def is_initialized(self):
        return self.initialized

    def _lazy_call(self, function):
        self.waiting.append(function)

    def begin(self):
        self.initialized = True
        for function in self.waiting:
            function()

    def run_out(self):
        for observer in observers:
            observer(0, 1, 2, 3)
        raise OutOfMemoryError("CUDA out of memory")


cuda = _Cuda()
_C = types.SimpleNamespace()
if _release >= (2, 0):
    _C._cuda_attach_out_of_memory_observer = observers.append
