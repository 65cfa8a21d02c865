# transformers 4.45 copies the scores of the whole prompt to 32 bits before it takes the last.
# source: https://github.com/huggingface/transformers/pull/34813
# package: transformers 4.44.2 4.45.2
# with 4.44.2: tokenizers==0.19.1 huggingface_hub==0.26.5
# with 4.45.2: tokenizers==0.20.3 huggingface_hub==0.26.5
# torch: 2.6.0
# gpu: rtx4090
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(vocab_size=8000, n_embd=64, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)).to("cuda", torch.bfloat16).eval()
words = torch.ones(2, 256, dtype=torch.long, device="cuda")
model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=2, do_sample=False)
