"""generate() of transformers in kinds that count on the device: beams, an assistant, tokens looked up in the prompt."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

sizes = dict(hidden_size=64, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2, vocab_size=100,
             pad_token_id=0, eos_token_id=2, bos_token_id=1)
model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, **sizes)).cuda().eval()
assistant = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes)).cuda().eval()
prompt = torch.randint(3, 100, (1, 12)).cuda()
for kind in (dict(num_beams=3), dict(num_beams=2, do_sample=True, num_return_sequences=2), dict(prompt_lookup_num_tokens=3),
             dict(assistant_model=assistant), dict(do_sample=True)):
    made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, **kind)
    assert made.shape[-1] == 20, (kind, made.shape)
print("done")
# needs: transformers
# expect: fits=true
