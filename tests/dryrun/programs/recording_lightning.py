"""The callback of fraglab in Lightning."""
import os
import sys

import lightning
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))
from fraglab.for_lightning import RecordCallback  # noqa: E402


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(512, 512)

    def training_step(self, batch, _index):
        return self.layer(batch[0]).sum()

    def validation_step(self, batch, _index):
        self.layer(batch[0].repeat(20, 1))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


def data():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(64, 512)), batch_size=16)


callback = RecordCallback(quiet=True)
trainer = lightning.Trainer(accelerator="cuda", devices=1, max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, callbacks=[callback])
trainer.fit(Model(), data(), data())
assert callback.session.steps_done == 4, callback.session.steps_done
names = [peak.name for peak in callback.session.peaks]
assert set(names) == {"forward", "backward", "optimizer", "evaluation", "in all"}, names
assert callback.session.recording.verify().verify.is_identical
# needs: lightning
# expect: status=0
