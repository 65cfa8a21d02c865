#!/usr/bin/env python3
"""fraglab.record over the stand-in for PyTorch: python3 tests/python/test_record.py (needs `make fraglab library software-cuda`)."""
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import stubbed  # noqa: E402

sys.path.insert(0, str(stubbed.ROOT / "python"))
import fraglab  # noqa: E402

MIB = 1 << 20
# One step holds 10 MiB of weights, 20 of activations, 30 more in the backward pass, and 40 of state from the first step on.
TRAIN = """
import sys
import torch, fraglab
weights = torch.empty(10)
optimizer = torch.optim.Optimizer()
state = []
def step():
    activation = torch.empty(20)
    torch.autograd.backward(lambda: torch.empty(30))
    del activation
    optimizer.step(lambda: state.append(torch.empty(40)) if not state else None)
"""


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_program(self, program, **more):
        done = stubbed.dry(TRAIN + program, folder=self.folder.name, **more)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done

    def load(self, name):
        with open(os.path.join(self.folder.name, name), "rb") as file:
            return pickle.load(file)


class Recording(Program):
    def test_a_file_that_is_replaced_keeps_its_permissions(self):
        file = pathlib.Path(self.folder.name, "x.pickle")
        file.touch(mode=0o600)
        self.run_program('fraglab.record("x.pickle", quiet=True)(step)()')
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertIn("segments", self.load("x.pickle"))

    def test_phases_and_steps_are_marked_and_their_peaks_printed(self):
        done = self.run_program("""
with fraglab.record("x.pickle") as session:
    step(); step()
    with fraglab.record.phase("evaluation"):
        torch.empty(50)
    step()
print([(peak.name, peak.requested_bytes >> 20, peak.reserved_bytes >> 20) for peak in session.peaks], session.steps_done)
""")
        self.assertEqual(done.stdout.strip(), "[('forward', 70, 150), ('backward', 100, 150), ('optimizer', 50, 100), ('evaluation', 100, 150), ('in all', 100, 150)] 3")
        marks = [(mark["name"], mark["stage"]) for mark in self.load("x.pickle")["external_annotations"]]
        one = [("forward", "START"), ("forward", "END"), ("backward", "START"), ("backward", "END")]
        self.assertEqual(marks[:7], [*one, ("optimizer", "START"), ("optimizer", "END"), ("step 1", "")])
        self.assertEqual(marks[7:], [*one, ("step 2", ""), ("evaluation", "START"), ("evaluation", "END"), *one, ("step 3", "")])
        self.assertIn("3 steps, 8 requests recorded in x.pickle", done.stderr)
        self.assertRegex(done.stderr, r"\n  backward +100.00 MiB +150.00 MiB\n")
        recording = fraglab.open(os.path.join(self.folder.name, "x.pickle"))
        self.assertEqual(recording.run("pytorch:recorded").peak.reserved_bytes, 150 * MIB)
        self.assertTrue(recording.verify().verify.is_identical)
        cut = recording.cut(first_mark="evaluation", last_mark="evaluation")
        self.assertEqual(cut.facts().peak_requested_bytes, 100 * MIB)

    def test_only_the_steps_that_are_asked_for_are_recorded(self):
        self.run_program("""
torch.cuda.memory._record_memory_history(enabled=None)
with fraglab.record("x.pickle", skip=2, steps=3, quiet=True) as session:
    for number in range(8):
        step()
        assert torch._C._cuda_isHistoryEnabled() == (1 <= number < 4), number
assert session.steps_done == 3 and session.answer
other = torch.optim.Optimizer()
with fraglab.record(quiet=True, steps=2) as session:  # two optimizers, as of a GAN: the slower one ends it
    for _ in range(5):
        step(); other.step(); step()
assert session.steps_done == 3, session.steps_done
""")
        trace = self.load("x.pickle")["device_traces"][0]
        self.assertEqual(sum(entry["action"] == "alloc" for entry in trace), 6)

    def test_a_decorated_function_records_each_call_and_keeps_its_value(self):
        self.run_program("""
@fraglab.record("x.pickle", quiet=True)
def train(count):
    "doc"
    for _ in range(count): step()
    return count
assert train(1) == 1 and train(count=2) == 2 and train.__doc__ == "doc"
assert torch.autograd.backward.__name__ == "backward" and not hasattr(torch.autograd.backward, "__wrapped__")
assert not torch.optim.optimizer.pre_hooks
""")
        self.assertEqual(sum(mark["name"].startswith("step") for mark in self.load("x.pickle")["external_annotations"]), 2)

    def test_an_error_passes_and_the_recording_explains_it(self):
        done = self.run_program("""
try:
    with fraglab.record("x.pickle", stacks=True):
        kept = torch.empty(400)
        torch.empty(900)
except torch.OutOfMemoryError:
    print("passed")
""")
        self.assertEqual(done.stdout.strip(), "passed")
        self.assertIn("verdict    shortage", done.stderr)
        self.assertIn("program.py:15", done.stderr)  # what holds the memory

    def test_on_oom_writes_and_explains_at_once_even_where_the_error_is_caught(self):
        done = self.run_program("""
torch.cuda.memory._record_memory_history(enabled=None)
watch = fraglab.record.on_oom("oom.pickle", keep=2)
assert not torch.cuda.is_initialized() or torch._C._cuda_isHistoryEnabled()
for _ in range(3):
    try:
        torch.empty(2000)
    except torch.OutOfMemoryError:
        print("caught", flush=True)
print(watch.count, watch.files)
watch.close()
assert not torch._C._cuda_isHistoryEnabled()
try:
    torch.empty(2000)
except torch.OutOfMemoryError:
    print(watch.count)
""")
        self.assertEqual(done.stdout.split("\n")[:-1], ["caught"] * 3 + ["3 ['oom.pickle', 'oom-2.pickle']", "3"])
        self.assertEqual(done.stderr.count("ran out of memory: 1.95 GiB requested"), 2)
        self.assertEqual([entry["action"] for entry in self.load("oom.pickle")["device_traces"][0]][-1], "oom")

    def test_ranks_write_files_of_their_own(self):
        self.run_program("""
with fraglab.record("x.pickle", quiet=True) as session:
    step()
assert session.file == "x.pickle-rank3", session.file
""", RANK="3")
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "x.pickle-rank3")))

    def test_a_history_that_runs_already_goes_on_and_is_not_in_the_recording(self):
        self.run_program("""
torch.cuda.memory._record_memory_history()
step()
before = len(torch.cuda.memory._snapshot()["device_traces"][0])
import time
time.sleep(0.002)
with fraglab.record("x.pickle", quiet=True):
    step()
assert torch._C._cuda_isHistoryEnabled() and len(torch.cuda.memory._snapshot()["device_traces"][0]) > before
""")
        self.assertEqual(sum(entry["action"] == "alloc" for entry in self.load("x.pickle")["device_traces"][0]), 2)

    def test_what_cannot_be_done_is_said_in_one_sentence(self):
        done = self.run_program("""
def raises(kind, words, function):
    try:
        function()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
raises(ValueError, "steps: 0 is out of range", lambda: fraglab.record(steps=0))
raises(TypeError, "steps is str", lambda: fraglab.record(steps="3"))
raises(TypeError, "file is int", lambda: fraglab.record(3.5) if False else fraglab.record(3))
raises(TypeError, "stacks is int", lambda: fraglab.record(stacks=1))
raises(TypeError, "cannot be decorated", lambda: fraglab.record()(3))
raises(TypeError, "name is int", lambda: fraglab.record.phase(3).__enter__())
session = fraglab.record(quiet=True)
with session:
    pass
raises(ValueError, "started already", session.start)
def write():
    with fraglab.record("/nowhere/x.pickle", quiet=True):
        step()
raises(OSError, "/nowhere/x.pickle: the recording cannot be written (No such file or directory)", write)
assert not torch.optim.optimizer.pre_hooks
with fraglab.record.phase("alone"):
    fraglab.record.mark("alone")
""")
        self.assertEqual(done.stdout, "")

    def test_without_pytorch_it_says_what_is_needed(self):
        program = "import fraglab\ntry:\n    fraglab.record('x').start()\nexcept OSError as error:\n    print(error)\n"
        done = subprocess.run([sys.executable, "-S", "-c", program], env={"PYTHONPATH": str(stubbed.ROOT / "python")}, capture_output=True, text=True, check=False)
        self.assertIn("recording needs PyTorch, which cannot be imported (No module named 'torch')", done.stdout, done.stderr)


class Import(unittest.TestCase):
    def test_it_takes_less_than_50_ms_and_no_other_package(self):
        program = "import time, sys\nbegin = time.process_time()\nimport fraglab\nprint(time.process_time() - begin, 'torch' in sys.modules, 'numpy' in sys.modules, 'pytest' in sys.modules, 'IPython' in sys.modules)"
        environment = dict(os.environ, PYTHONPATH=str(stubbed.ROOT / "python"))
        subprocess.run([sys.executable, "-c", "import fraglab"], env=environment, check=True)
        times = []
        for _ in range(5):
            seconds, *imported = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout.split()
            self.assertEqual(imported, ["False"] * 4)
            times.append(float(seconds))
        self.assertLess(min(times), 0.05, times)


# The classes that callbacks derive from, and what their trainers call.
FAKES = {
    "transformers/__init__.py": "class TrainerCallback:\n    pass\n",
    "lightning/__init__.py": "", "lightning/pytorch/__init__.py": "", "lightning/pytorch/callbacks.py": "class Callback:\n    pass\n",
    "accelerate/__init__.py": "", "accelerate/tracking.py": "class GeneralTracker:\n    def __init__(self, _blank=False):\n        assert self.name and self.requires_logging_directory is False and 'tracker' in dir(self)\n",
}


class Callbacks(Program):
    """What each framework calls, in its order; tests/dryrun/programs run the frameworks themselves."""

    def with_fakes(self, program):
        for name, text in FAKES.items():
            path = pathlib.Path(self.folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = self.run_program(program + "\nprint([peak.name for peak in session.peaks], session.steps_done)\n")
        return done.stdout.strip()

    def test_of_transformers(self):
        answer = self.with_fakes("""
from fraglab.for_transformers import RecordCallback
callback = RecordCallback("x.pickle", quiet=True)
session, rest = callback.session, (None, None, None)
callback.on_train_begin(*rest, model=None)
step()
for _ in range(3):
    callback.on_prediction_step(*rest)
    torch.empty(50)
callback.on_evaluate(*rest, metrics={})
step()
callback.on_train_end(*rest)
""")
        self.assertEqual(answer, "['forward', 'backward', 'optimizer', 'evaluation', 'in all'] 2")

    def test_of_lightning(self):
        answer = self.with_fakes("""
from fraglab.for_lightning import RecordCallback
callback = RecordCallback("x.pickle", quiet=True)
first = callback.session
callback.setup(None, None, "fit")
callback.on_validation_start(None, None)
torch.empty(50)
callback.on_validation_end(None, None)
step()
callback.teardown(None, None, "fit")
session = callback.session
callback.setup(None, None, "test")
assert callback.session is not first
callback.on_exception(None, None, ValueError())
callback.teardown(None, None, "test")
""")
        self.assertEqual(answer, "['evaluation', 'forward', 'backward', 'optimizer', 'in all'] 1")

    def test_of_accelerate(self):
        answer = self.with_fakes("""
from fraglab.for_accelerate import RecordTracker
tracker = RecordTracker("x.pickle", quiet=True)
session = tracker.tracker
tracker.start()
tracker.store_init_configuration({})
step()
tracker.log({"loss": 1.0}, step=1)
tracker.finish()
""")
        self.assertEqual(answer, "['forward', 'backward', 'optimizer', 'in all'] 1")
        self.assertIn("log loss", [mark["name"] for mark in self.load("x.pickle")["external_annotations"]])


if __name__ == "__main__":
    unittest.main()
