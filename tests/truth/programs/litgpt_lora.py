"""LoRA with litgpt: finetune/lora.py of October 2023, whose figures stand in its resource tables. bf16-true, rank 8 on
queries and values, the longest sample first.

    python litgpt_lora.py MODEL TOKENS MICROBATCH

Prints what was allocated at most.
"""
import sys

import lightning
import torch
from litgpt.lora import GPT, Config, mark_only_lora_as_trainable
from litgpt.utils import chunked_cross_entropy

ACCUMULATED = 3  # micro-batches before a step: it was 128 samples, and more of them hold no more


def make_model(fabric, name):
    config = Config.from_name(name=name, lora_r=8, lora_alpha=16, lora_dropout=0.05, lora_query=True, lora_value=True)
    with fabric.init_module(empty_init=False):
        model = GPT(config)
    mark_only_lora_as_trainable(model)
    return fabric.setup_module(model)


def train(fabric, model, tokens, micro_batch):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(trainable, lr=3e-4, weight_decay=0.01))
    model.max_seq_length = tokens
    for number in range(1, ACCUMULATED + 2):
        ids, targets = fabric.to_device((torch.zeros(micro_batch, tokens, dtype=torch.long).pin_memory(),) * 2)
        is_accumulating = number % ACCUMULATED != 0
        with fabric.no_backward_sync(model, enabled=is_accumulating):
            logits = model(ids, lm_head_chunk_size=128)
            logits[-1] = logits[-1][..., :-1, :]
            loss = chunked_cross_entropy(logits, targets[..., 1:])
            fabric.backward(loss / ACCUMULATED)
        if not is_accumulating:
            optimizer.step()
            optimizer.zero_grad()


def main(name, tokens, micro_batch):
    fabric = lightning.Fabric(devices=1, strategy="auto", precision="bf16-true")
    model = make_model(fabric, name)
    train(fabric, model, tokens, micro_batch)
    print("peak", micro_batch, torch.cuda.max_memory_allocated())


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
