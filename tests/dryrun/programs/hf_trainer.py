"""Trainer of transformers: GPT-2 in fp16, BERT in fp32, random weights."""
import tempfile

import torch
from transformers import (BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.arange(index, index + 64) % 1000
        return {"input_ids": ids, "labels": ids.clone(), "attention_mask": torch.ones_like(ids)}


def train(model, **more):
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, per_device_train_batch_size=4, max_steps=3, save_strategy="no",
                                      report_to=[], logging_steps=1, **more)
        Trainer(model, arguments, train_dataset=Data()).train()


train(GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_embd=128, n_layer=2, n_head=4)), fp16=True)
train(BertForMaskedLM(BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                 intermediate_size=256)))
print("done")
# needs: transformers accelerate
# expect: fits=true identical
