# peft 0.12 makes the adapters of a 16-bit model 32-bit, and with them copies of their inputs.
# source: https://github.com/huggingface/peft/pull/1706
# package: peft 0.11.1 0.12.0
# with: transformers==4.44.2 tokenizers==0.19.1 huggingface_hub==0.26.5 accelerate==0.34.2
# torch: 2.6.0
# gpu: rtx4090
import torch
from peft import LoraConfig, get_peft_model

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Linear(512, 512)).to("cuda", torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=64, target_modules=["0", "1"])).to("cuda")
model(torch.randn(2048, 512, device="cuda", dtype=torch.bfloat16)).sum().backward()
