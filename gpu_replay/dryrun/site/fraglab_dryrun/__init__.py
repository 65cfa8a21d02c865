"""The half of `fraglab dryrun` that runs inside the script's own Python: it records PyTorch's
allocator, counts steps and ends the script where it was asked to.

Nothing is imported before the script imports it; nothing initialises CUDA before the script does.
FRAGLAB_DRYRUN names a folder: settings.json is what the command asked for, and each process that
used CUDA leaves PID.json, what happened, and PID.pickle, the recording.
"""
import ctypes
import functools
import inspect
import json
import os
import sys
from importlib.machinery import PathFinder

folder = os.environ.get("FRAGLAB_DRYRUN", "")
run = None  # what is recorded in this process, from the import of torch on


def say(text):
    print("fraglab: " + text, file=sys.stderr, flush=True)


class AfterImport:
    """Calls functions after a module was imported, by way of the import system."""

    def __init__(self):
        self.waiting = {}

    def call(self, name, function):
        module = sys.modules.get(name)
        if module is not None:
            function(module)
        else:
            self.waiting.setdefault(name, []).append(function)

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            for function in self.waiting.pop(name, []):
                try:
                    function(module)
                except Exception as error:
                    say("what the dry run does with %s failed: %r" % (name, error))

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            return None
        return spec


after_import = AfterImport()


def read_settings():
    with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
        return json.load(file)


def prepare():
    if not os.path.isdir(folder):
        return  # a process that outlived its dry run
    settings = read_settings()
    sys.meta_path.insert(0, after_import)
    after_import.call("torch", lambda torch: begin(torch, settings))


def begin(torch, settings):
    global run
    from . import backward, counts, defaults, draws, known, objects, ranks, recorder, steps, values

    if getattr(torch.version, "cuda", None) is None:
        return  # the command has said so
    run = recorder.Run(torch, settings, folder)
    steps.watch(torch, run, after_import)
    values.watch(torch, run)
    follow = known.make(torch, run)
    objects.install(torch, run, follow, after_import)
    backward.install(torch)
    if ranks.is_wanted(settings):
        ranks.use_fake_group(torch, run)
    if settings.get("defaults", True):
        counts.install(torch, run, after_import)
        defaults.install(torch, run, after_import)
        known.install(torch, run, follow, after_import)
        draws.install(torch, follow)
    keep_scriptable(torch)
    keep_no_sequence(torch)
    after_import.call("torch._subclasses.fake_tensor", lambda module: keep_fake_copies(torch, module))


def keep_scriptable(torch):
    """torch.jit.script knows PyTorch's own functions by identity: it has to know ours in their places."""
    builtins = sys.modules.get("torch.jit._builtins")
    table = getattr(builtins, "_get_builtin_table", dict)()
    for function in [*vars(torch).values(), *vars(torch.nn.functional).values(), *vars(torch._C._nn).values(), *vars(torch._VF).values()] if table else []:
        operator = table.get(id(inspect.unwrap(function))) if inspect.isfunction(function) else None
        if operator is not None:
            table.setdefault(id(function), operator)


def keep_fake_copies(torch, module):
    """A mode that copies a module into fake tensors knows clone() by identity, and is handed ours in its place."""
    mode = getattr(module, "FakeCopyMode", None)
    if mode is None:
        return
    copy = mode.__torch_function__

    @functools.wraps(copy)
    def copied(self, func, *arguments, **named):
        return copy(self, torch._C.TensorBase.clone if func is torch.Tensor.clone else func, *arguments, **named)

    mode.__torch_function__ = copied


def keep_no_sequence(torch):
    """A class with __getitem__ written in Python is a sequence for C, and then torch.tensor([a number on the device]) asks
    for its length: PyTorch's tensors are none, and stay none."""
    def item_of(kind):
        """tp_as_sequence->sq_item of a class."""
        methods = ctypes.c_void_p.from_address(id(kind) + 13 * ctypes.sizeof(ctypes.c_void_p)).value
        return ctypes.c_void_p.from_address(methods + 3 * ctypes.sizeof(ctypes.c_void_p))

    written = type("Written", (), {"__getitem__": lambda self, index: None})
    is_sequence = ctypes.pythonapi.PySequence_Check
    is_sequence.argtypes = [ctypes.py_object]
    if not hasattr(torch.Tensor, "__getitem__") or object.__basicsize__ != 2 * ctypes.sizeof(ctypes.c_void_p) or not is_sequence(written()):
        return  # no usual CPython
    before = item_of(written).value
    item_of(written).value = None
    if before is None or is_sequence(written()):
        return

    def settle(kind):
        if kind.__getitem__ is torch.Tensor.__getitem__:
            item_of(kind).value = None
        for derived in type.__subclasses__(kind):
            settle(derived)

    def derive(kind, **named):
        super(torch.Tensor, kind).__init_subclass__(**named)
        settle(kind)

    settle(torch.Tensor)
    torch.Tensor.__init_subclass__ = classmethod(derive)
