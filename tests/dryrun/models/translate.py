"""Sequence to sequence by transformers: T5 trained, and generate() with beams, sampling, groups and a cache of fixed size."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

model = T5ForConditionalGeneration(T5Config(vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                                            decoder_start_token_id=0)).cuda()
optimizer = torch.optim.Adafactor(model.parameters()) if hasattr(torch.optim, "Adafactor") else torch.optim.SGD(model.parameters())
words = torch.randint(2, 500, (4, 16)).cuda()
for _ in range(2):
    model(input_ids=words, labels=words).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
for more in (dict(num_beams=4), dict(do_sample=True, top_k=20, top_p=0.9, temperature=0.7), dict(num_beams=2, num_return_sequences=2)):
    made = model.generate(words, max_new_tokens=6, **more)
    assert made.shape[1] <= 7, made.shape
gpt = GPT2LMHeadModel(GPT2Config(vocab_size=500, n_embd=64, n_layer=2, n_head=4)).cuda().eval()
ways = [dict(repetition_penalty=1.2), dict(use_cache=False)]
if hasattr(torch.compiler, "is_exporting"):  # transformers 5 compiles it, which ends in an error of Dynamo with 2.6, on a CPU too
    ways.append(dict(cache_implementation="static"))
for more in ways:
    made = gpt.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=6, pad_token_id=0, **more)
    assert made.shape == (4, 22), made.shape
print("done")
# needs: transformers
# expect: fits=true steps=2 identical
