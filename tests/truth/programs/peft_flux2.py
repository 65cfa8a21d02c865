"""LoRA of peft on the transformer of FLUX.2-klein-base-4B, as peft's method_comparison/image-gen trains it by default:
bfloat16, 512 x 512, batch 2, gradient checkpointing, AdamW, text and images encoded before.

    python peft_flux2.py RANK

Prints what was reserved at most in the steps.
"""
import sys

import torch
from diffusers import Flux2Transformer2DModel
from peft import LoraConfig, get_peft_model

SAMPLES = 14
BATCH = 2
TARGETS = "to_out.0 to_add_out to_qkv_mlp_proj add_k_proj add_q_proj add_v_proj to_k to_q to_v linear_in linear_out".split()


def make_model(rank):
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Flux2Transformer2DModel(
            num_layers=5, num_single_layers=20, num_attention_heads=24, joint_attention_dim=7680, guidance_embeds=False
        )
    torch.set_default_dtype(torch.float32)
    model.enable_gradient_checkpointing()
    return get_peft_model(model, LoraConfig(r=rank, lora_alpha=rank, target_modules=TARGETS)).train()


def places(*sizes):
    """Ids of four axes for each token."""
    return torch.cartesian_prod(*(torch.arange(size) for size in sizes)).expand(BATCH, -1, -1).cuda()


def train(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4)
    prompts = torch.zeros(SAMPLES, 512, 7680, dtype=torch.bfloat16, device="cuda")
    images = torch.zeros(SAMPLES, 128, 32, 32, dtype=torch.bfloat16, device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(steps):
        chosen = torch.arange(BATCH).cuda()
        image = images.index_select(0, chosen)
        prompt = prompts.index_select(0, chosen)
        noise = torch.randn_like(image)
        at = torch.zeros(BATCH, device="cuda")
        sigma = at.to(image.dtype).view(-1, 1, 1, 1)
        noisy = (1.0 - sigma) * image + sigma * noise
        packed = noisy.reshape(BATCH, 128, -1).permute(0, 2, 1)
        optimizer.zero_grad(set_to_none=True)
        predicted = model(
            hidden_states=packed, timestep=at / 1000, guidance=None, encoder_hidden_states=prompt,
            txt_ids=places(1, 1, 1, 512), img_ids=places(1, 32, 32, 1), return_dict=False,
        )[0]
        predicted = predicted.permute(0, 2, 1).reshape(image.shape)
        target = noise - image
        loss = ((predicted.float() - target.float()) ** 2).reshape(BATCH, -1).mean(1).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


model = make_model(int(sys.argv[1]))
print("parameters", sum(p.numel() for p in model.parameters() if p.requires_grad), sum(p.numel() for p in model.parameters()))
train(model, 3)
print("peak", sys.argv[1], torch.cuda.max_memory_reserved())
