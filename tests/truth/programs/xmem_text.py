"""Transformers as xMem's measurements train them (Stone-ResearchLife/xMem): 32-bit, 128 tokens, three steps, in the loop
that xmem.py follows: gradients cleared just before the backward pass, the output of a step held until the next.

    python xmem_text.py MODEL OPTIMIZER BATCH

Prints what is reserved at most, or -1 where memory runs out.
"""
import sys

import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPTNeoConfig

LENGTH = 128
MODELS = {
    "distilgpt2": lambda: GPT2Config(n_layer=6),
    "gpt-neo-125M": lambda: GPTNeoConfig(
        num_layers=12, hidden_size=768, num_heads=12, attention_types=[[["global", "local"], 6]], window_size=256
    ),
}


def train(name, optimizer, batch):
    model = AutoModelForCausalLM.from_config(MODELS[name]()).cuda().train()
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=0.001)
    for _ in range(3):
        tokens = torch.zeros(batch, LENGTH, dtype=torch.long).cuda()
        outputs = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens)
        optimizer.zero_grad()
        outputs.loss.backward()
        optimizer.step()


def main(name, optimizer, batch):
    try:
        train(name, optimizer, int(batch))
        print("peak", batch, torch.cuda.max_memory_reserved())
    except torch.cuda.OutOfMemoryError:
        print("peak", batch, -1)


main(*sys.argv[1:])
