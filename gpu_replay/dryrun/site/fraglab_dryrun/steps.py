"""Counts steps, marks the phases of training, and ends the script after enough of them."""
import functools
import importlib
import warnings
import weakref


class Counter:
    """Optimizer steps: of several optimizers (a GAN's) the one that made the fewest counts."""

    def __init__(self, run):
        self.run = run
        self.counts = weakref.WeakKeyDictionary()
        self.limit = run.settings.get("steps")

    def after_step(self, optimizer, *_):
        self.counts[optimizer] = self.counts.get(optimizer, 0) + 1
        if max(self.counts.values()) > self.run.steps:
            self.run.steps = max(self.counts.values())
            if self.run.steps <= 1000:
                self.run.mark("step %d" % self.run.steps)
            else:
                self.run.show()
        if self.limit and min(self.counts.values()) >= self.limit:
            self.run.finish("steps")


def watch_forward(torch, run):
    """The first forward of a module while memory of a GPU is in use ends the phase "load"."""
    register = getattr(torch.nn.modules.module, "register_module_forward_pre_hook", None)
    if register is None:
        return
    handles = []
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
    # torch.compile would say so of our hook. It is gone before anything is compiled for a GPU; of a module on the host
    # the compiler follows it, and may meet nothing there that it cannot trace.
    warnings.filterwarnings("ignore", message="Using `torch.compile\\(module\\)` when there are global hooks")

    def before_forward(_module, _inputs):
        if is_compiling() or not run.is_recording() or not any(run.request_counts()):
            return
        for handle in handles:
            handle.remove()
        handles.clear()
        run.mark("load")

    handles.append(register(before_forward))


def end_after(run, owner, name, limit):
    """Replaces a function by one that ends the script when it has returned that often."""
    function = getattr(owner, name)
    calls = [0]

    @functools.wraps(function)
    def counted(*arguments, **named):
        result = function(*arguments, **named)
        calls[0] += 1
        if calls[0] > run.steps:
            run.steps = calls[0]
            run.mark("step %d" % run.steps)
        if calls[0] >= limit:
            run.finish("until")
        return result

    setattr(owner, name, counted)


def watch_until(run, after_import, until):
    """until: {"module": "torch", "function": "Tensor.backward", "count": 3}"""

    def found(module):
        owner = module
        *path, name = until["function"].split(".")
        for part in path:
            owner = getattr(owner, part)
        end_after(run, owner, name, until["count"])

    after_import.call(until["module"], found)


def watch(torch, run, after_import):
    counter = Counter(run)
    hooks = importlib.import_module("torch.optim.optimizer")
    register = getattr(hooks, "register_optimizer_step_post_hook", None)
    until = run.settings.get("until")
    if until:
        watch_until(run, after_import, until)
    elif register is not None:
        register(counter.after_step)
    watch_forward(torch, run)
