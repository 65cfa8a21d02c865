"""One step of Llama 3 8B in bf16 with AdamW, random weights that never exist."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = LlamaForCausalLM(LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                                         num_attention_heads=32, num_key_value_heads=8, use_cache=False))
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters())
ids = torch.randint(0, 1000, (1, 1024), device="cuda")
model(input_ids=ids, labels=ids).loss.backward()
optimizer.step()
print("done")
# gpu: a100-80gb
# needs: transformers
# expect: fits=true steps=1 identical
