# Until transformers 4.45 a model returned its scores in 32 bits; 4.46 leaves them as they are.
# source: https://github.com/huggingface/transformers/pull/33902
# package: transformers 4.45.2 4.46.3
# with: tokenizers==0.20.3 huggingface_hub==0.26.5
# torch: 2.6.0
# gpu: rtx4090
import torch
from transformers import MistralConfig, MistralForCausalLM

config = MistralConfig(vocab_size=8000, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
model = MistralForCausalLM(config).to("cuda", torch.bfloat16).eval()
with torch.no_grad():
    model(torch.ones(2, 256, dtype=torch.long, device="cuda"))
