# The same mask reaches every layer in training, and gradient checkpointing keeps it.
# source: https://github.com/huggingface/transformers/issues/30010
# package: transformers 4.37.2 4.38.2
# with: tokenizers==0.15.2 huggingface_hub==0.23.5
# torch: 2.6.0
# gpu: rtx4090
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=1000, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=1024)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
model.gradient_checkpointing_enable()
words = torch.ones(4, 256, dtype=torch.long, device="cuda")
model(words, labels=words).loss.backward()
