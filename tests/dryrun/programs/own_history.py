"""A program that records a part of itself: its snapshot holds what a card would have recorded, the dry run's recording all."""
import torch
from torch.cuda.memory import _record_memory_history as record, _snapshot


def actions():
    return [entry["action"] for entry in _snapshot()["device_traces"][0]]


model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)


def step():
    model(torch.ones(64, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


step()
assert actions() == []
record(max_entries=1000)
kept = torch.empty(3000, device="cuda")
kept = kept / 8
step()
whole = _snapshot()
entries = whole["device_traces"][0]
assert (entries[0]["action"], entries[0]["size"]) == ("alloc", 12000), entries[0]
assert any(frame["filename"] == __file__ for frame in entries[0]["frames"]), "with its stack"
frames = [frame["filename"] for entry in entries for frame in entry["frames"]]
assert not any("fraglab_dryrun" in name for name in frames), "what the dry run wraps is left out"
assert not any(entry["action"].startswith("segment") for entry in entries)
record(None)
assert actions() == []
record(max_entries=4)
step()
last = _snapshot()["device_traces"][0]
assert [entry["action"] for entry in last] == [entry["action"] for entry in entries[-4:]]
assert [entry["size"] for entry in last] == [entry["size"] for entry in entries[-4:]]
torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=2, trace_alloc_record_context=True)
assert len(actions()) == 2
record(None)
step()
print("done")
# expect: fits=true steps=4 identical
