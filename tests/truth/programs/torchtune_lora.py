"""LoRA on Llama-2 7B as torchtune's recipe for one device trains it (configuration llama2/7B_lora_single_device of April
2024): bfloat16, batch 2, activation checkpointing, AdamW, alpaca cut at 512 tokens, its default.

    python torchtune_lora.py LAYERS RANK

LAYERS is "qv" or "all" (attention, MLP, output). Prints what was reserved at most. Real batches are of many lengths, which is not known here.
"""
import sys

import torch
from torchtune import modules, utils
from torchtune.models.llama2 import lora_llama2_7b
from torchtune.modules.peft.peft_utils import get_adapter_params, set_trainable_params

TOKENS = 512
BATCH = 2
ACCUMULATED = 64


def make_model(layers, rank):
    every = layers == "all"
    chosen = ["q_proj", "k_proj", "v_proj", "output_proj"] if every else ["q_proj", "v_proj"]
    with utils.set_default_dtype(torch.bfloat16), torch.device("cuda"):
        model = lora_llama2_7b(chosen, apply_lora_to_mlp=every, apply_lora_to_output=every, lora_rank=rank, lora_alpha=2 * rank)
    set_trainable_params(model, get_adapter_params(model))
    utils.set_activation_checkpointing(model, auto_wrap_policy={modules.TransformerDecoderLayer})
    return model


def train(model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01, lr=3e-4)
    criterion = torch.nn.CrossEntropyLoss()
    for number in range(1, batches + 1):
        tokens = torch.zeros(BATCH, TOKENS, dtype=torch.long).cuda()
        labels = torch.zeros(BATCH, TOKENS, dtype=torch.long).cuda()
        logits = model(tokens)
        logits = logits[..., :-1, :].contiguous()
        labels = labels[..., 1:].contiguous()
        logits = logits.transpose(1, 2)
        loss = criterion(logits, labels)
        loss = loss / ACCUMULATED
        loss.backward()
        if number % ACCUMULATED == 0 or number == batches:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


train(make_model(sys.argv[1], int(sys.argv[2])), 2)
print("peak", sys.argv[2], torch.cuda.max_memory_reserved())
