"""fraglab.record inside a program: phases, steps, what is in the file, and its cost with stacks off."""
import contextlib
import json
import os
import pickle
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))
import fraglab  # noqa: E402

assert "torch" not in sys.modules
import torch  # noqa: E402

folder = os.environ.get("FRAGLAB_DRYRUN", ".")
file = os.path.join(folder, "recorded.pkl")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(12)])

    def forward(self, batch):
        return self.layers(batch)


net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters())


def step():
    optimizer.zero_grad()
    net(torch.randn(512, 1024, device="cuda")).sum().backward()
    optimizer.step()


def evaluate():
    with fraglab.record.phase("evaluation"), torch.no_grad():
        net(torch.randn(8192, 1024, device="cuda"))


with fraglab.record(file, skip=1, steps=3) as session:
    for _ in range(6):
        step()
assert session.steps_done == 3, session.steps_done
assert [peak.name for peak in session.peaks] == ["forward", "backward", "optimizer", "in all"], session.peaks
with fraglab.record(file) as session:
    for _ in range(2):
        step()
    evaluate()
assert [peak.name for peak in session.peaks] == ["forward", "backward", "optimizer", "evaluation", "in all"], session.peaks
with open(file, "rb") as stream:
    snapshot = pickle.load(stream)
names = [mark["name"] for mark in snapshot["external_annotations"] if mark["stage"] != "END" and "#" not in mark["name"]]  # PyTorch's own have one
assert names == ["forward", "backward", "optimizer", "step 1", "forward", "backward", "optimizer", "step 2", "evaluation"], names
# The session's own sums are those of the replay, and those of PyTorch itself.
whole = session.recording.run("pytorch:recorded")
assert session.peaks[-1].reserved_bytes == whole.peak.reserved_bytes == torch.cuda.max_memory_reserved(), (session.peaks, whole.peak)
assert session.peaks[-1].requested_bytes == session.recording.facts().peak_requested_bytes
assert session.recording.verify().verify.is_identical
# Optimizer state is allocated in the first step of the optimizer, which the phase must have caught.
torch.cuda.reset_peak_memory_stats()


@fraglab.record(quiet=True)
def decorated():
    other = torch.optim.AdamW(net.parameters())
    other.step()


decorated()


# ---- what it costs, with stacks off. A difference of two whole steps drowns in a busy machine's noise, so its parts are
# measured, each as the least of many: an entry of the history, and the hooks and marks of a step.


def least(function, rounds=int(os.environ.get("FRAG_RECORDING_ROUNDS", 40))):
    """Seconds of all threads' work without a recording, and with one."""
    found = {False: [], True: []}
    history = torch._C._cuda_memorySnapshot.__self__  # of the dry run, which is on anyway: off, its cost is in the figure
    for number in range(2 * rounds):
        with history.direct():
            torch.cuda.memory._record_memory_history(enabled=None)
        with fraglab.record(quiet=True) if number % 2 else contextlib.nullcontext():
            begin = time.process_time()
            function()
            found[bool(number % 2)].append(time.process_time() - begin)
    return min(found[False]), min(found[True])


class Large(torch.nn.Module):
    """Of usual depth; a small GPT in width."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True) for _ in range(6)])

    def forward(self, batch):
        return self.layers(batch)


def requests():
    for _ in range(500):
        torch.empty(1000, device="cuda")


def passes():
    for _ in range(100):
        torch.autograd.backward(scalar, retain_graph=True)
        idle.step()


scalar = torch.ones((), requires_grad=True) * 1.0
idle = torch.optim.SGD([torch.zeros(1, requires_grad=True)])
net = Large().cuda()
optimizer = torch.optim.AdamW(net.parameters())
batch = torch.randn(16, 128, 256, device="cuda")


def large_step():
    optimizer.zero_grad()
    net(batch).sum().backward()
    optimizer.step()


large_step()
plain, _ = least(large_step)
plain_requests, recorded_requests = least(requests)
plain_passes, recorded_passes = least(passes)
with fraglab.record(quiet=True) as session:
    large_step()
count = session.recording.facts().request_count
added = max(recorded_requests - plain_requests, 0) / 500 * count + max(recorded_passes - plain_passes, 0) / 100
cost = added / plain
print(json.dumps({"torch": torch.__version__, "step_us": round(plain * 1e6, 1), "requests": count, "added_us": round(added * 1e6, 1), "request_ns": [round(plain_requests * 2e6), round(recorded_requests * 2e6)], "pass_us": [round(plain_passes * 1e4, 1), round(recorded_passes * 1e4, 1)], "cost_percent": round(cost * 100, 2)}))
assert cost < 0.02, cost

with fraglab.record.on_oom(os.path.join(folder, "oom.pkl"), quiet=True) as watch:
    try:
        kept = [torch.empty(1 << 30, device="cuda") for _ in range(100)]
    except torch.cuda.OutOfMemoryError:
        pass
    kept = None
assert watch.count == 1 and len(watch.files) == 1
assert "verdict    shortage" in watch.answer and "recording.py" in watch.answer, watch.answer
# gpu: rtx4090
# expect: status=0 gaps
