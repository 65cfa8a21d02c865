"""bert-large-uncased under the Trainer, as "Anatomy of a model's memory" in transformers' documentation trains it: 32-bit,
batch 4, 512 tokens, AdamW, attention not fused (it was written before that). Prints what is reserved: "model" when it is
on the card, "training" after three steps.
"""
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

LENGTH = 512
STEPS = 3
BATCH = 4


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, place):
        return {"input_ids": torch.zeros(LENGTH, dtype=torch.long), "labels": torch.tensor(0)}


# Up to 1.13 gradients were filled with zeros and not freed, and AdamW went from parameter to parameter.
torch.nn.Module.zero_grad.__defaults__ = torch.optim.Optimizer.zero_grad.__defaults__ = (False,)
config = BertConfig(vocab_size=30522, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
config._attn_implementation = "eager"
model = BertForSequenceClassification(config).to("cuda")
print("peak", "model", torch.cuda.max_memory_reserved())
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, num_train_epochs=1, per_device_train_batch_size=BATCH, log_level="error", report_to="none", save_strategy="no"
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, foreach=False)
    Trainer(model=model, args=arguments, train_dataset=Samples(), optimizers=(optimizer, None)).train()
print("peak", "training", torch.cuda.max_memory_reserved())
