# Until transformers 4.44 a prompt had scores for every word, in 32 bits too; 4.45 computes the last ones.
# source: https://github.com/huggingface/transformers/issues/30860
# package: transformers 4.44.2 4.45.2
# with 4.44.2: tokenizers==0.19.1 huggingface_hub==0.26.5
# with 4.45.2: tokenizers==0.20.3 huggingface_hub==0.26.5
# torch: 2.6.0
# gpu: rtx4090
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=8000, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
words = torch.ones(2, 256, dtype=torch.long, device="cuda")
model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=2, do_sample=False)
