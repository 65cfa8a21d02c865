"""The autoencoder of Qwen-Image, measured as InvokeAI's scripts/calibrate_qwen_vae_working_memory.py does: decode or encode, HEIGHTxWIDTH..."""
import sys

import torch
from diffusers.models.autoencoders.autoencoder_kl_qwenimage import AutoencoderKLQwenImage


@torch.inference_mode()
def measure(vae, operation, high, wide):
    shape = (1, vae.config.z_dim, 1, high // 8, wide // 8) if operation == "decode" else (1, 3, 1, high, wide)
    given = torch.randn(shape, device="cuda", dtype=torch.float16)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    if operation == "decode":
        vae.decode(given, return_dict=False)
    else:
        vae.encode(given).latent_dist.mode()
    return torch.cuda.max_memory_allocated()


model = AutoencoderKLQwenImage().to(torch.float16).to("cuda")
for size in sys.argv[2:]:
    print("peak", size, measure(model, sys.argv[1], *map(int, size.split("x"))), flush=True)
