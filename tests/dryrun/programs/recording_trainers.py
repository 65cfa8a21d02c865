"""The callbacks of fraglab in the Trainer of transformers and in Accelerate."""
import os
import sys
import tempfile

import torch
from accelerate import Accelerator
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))
from fraglab.for_accelerate import RecordTracker  # noqa: E402
from fraglab.for_transformers import RecordCallback  # noqa: E402


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = torch.arange(index, index + 64) % 1000
        return {"input_ids": ids, "labels": ids.clone()}


def phases(session):
    return [peak.name for peak in session.peaks]


model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_embd=128, n_layer=2, n_head=4))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=4, eval_strategy="steps", eval_steps=2,
                                  save_strategy="no", report_to=[])
    callback = RecordCallback(os.path.join(folder, "run.pkl"), quiet=True)
    Trainer(model, arguments, train_dataset=Data(), eval_dataset=Data(), callbacks=[callback]).train()
assert callback.session.steps_done == 4, callback.session.steps_done
assert set(phases(callback.session)) == {"forward", "backward", "optimizer", "evaluation", "in all"}, phases(callback.session)
assert callback.session.recording.verify().verify.is_identical

tracker = RecordTracker(quiet=True, steps=2)
accelerator = Accelerator(log_with=tracker)
accelerator.init_trackers("project")
net, optimizer = accelerator.prepare(torch.nn.Linear(512, 512), torch.optim.AdamW([torch.zeros(1, requires_grad=True)]))
optimizer = accelerator.prepare(torch.optim.AdamW(net.parameters()))
for _ in range(3):
    loss = net(torch.randn(64, 512, device="cuda")).sum()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
accelerator.end_training()
assert tracker.session.steps_done == 2 and phases(tracker.session) == ["forward", "backward", "optimizer", "in all"], phases(tracker.session)
# needs: transformers accelerate
# expect: status=0
