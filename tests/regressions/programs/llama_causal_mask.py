# transformers 4.38 registers a causal mask of all positions that the model could have.
# source: https://github.com/huggingface/transformers/issues/29484
# package: transformers 4.37.2 4.38.2
# with: tokenizers==0.15.2 huggingface_hub==0.23.5
# torch: 2.6.0
# gpu: rtx4090
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=1000, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=4096)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
with torch.no_grad():
    model(torch.ones(2, 64, dtype=torch.long, device="cuda"))
