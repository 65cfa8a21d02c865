"""A Llama in bf16 with AdamW, then with adapters of peft, then generate()."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=2000, hidden_size=512, intermediate_size=1024, num_hidden_layers=4,
                     num_attention_heads=8, num_key_value_heads=4)


def make():
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    return model


def train(model, parameters):
    optimizer = torch.optim.AdamW(parameters)
    for _ in range(2):
        ids = torch.randint(0, 2000, (4, 256), device="cuda")
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


model = make()
train(model, model.parameters())
model.eval()
ids = torch.randint(3, 2000, (2, 16)).cuda()
for more in (dict(do_sample=False), dict(do_sample=True), dict(num_beams=3)):
    made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, pad_token_id=0, **more)
    assert made.shape[1] <= 24, made.shape
    print(more, tuple(made.shape))

from peft import LoraConfig, get_peft_model

adapted = get_peft_model(make(), LoraConfig(target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
train(adapted, [p for p in adapted.parameters() if p.requires_grad])
print("done")
# needs: transformers peft
# expect: fits=true identical
