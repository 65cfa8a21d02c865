"""Latent diffusion by diffusers: a conditioned U-Net trained with accumulated steps, a VAE trained, and a sampling loop."""
import torch
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel

torch.manual_seed(0)
vae = AutoencoderKL(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
                    up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, norm_num_groups=8).cuda()
unet = UNet2DConditionModel(sample_size=16, in_channels=4, out_channels=4, block_out_channels=(32, 64), layers_per_block=1,
                            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), norm_num_groups=8,
                            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=32, attention_head_dim=8).cuda()
unet.enable_gradient_checkpointing()
scheduler = DDPMScheduler(num_train_timesteps=100)
optimizer = torch.optim.AdamW([*unet.parameters(), *vae.parameters()])
for _ in range(2):
    images = torch.randn(2, 3, 32, 32, device="cuda")
    words = torch.randn(2, 7, 32, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        posterior = vae.encode(images).latent_dist
        latents = posterior.sample()
        noise = torch.randn_like(latents)
        times = torch.randint(0, 100, (2,), device="cuda")
        guess = unet(scheduler.add_noise(latents, noise, times), times, words).sample
        loss = (guess - noise).pow(2).mean() + (vae.decode(latents).sample - images).abs().mean() + posterior.kl().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
with torch.no_grad():
    scheduler.set_timesteps(4)
    latents = torch.randn(1, 4, 16, 16, device="cuda")
    for time in scheduler.timesteps:
        latents = scheduler.step(unet(latents, time, words[:1]).sample, time, latents).prev_sample
    picture = vae.decode(latents).sample
assert picture.shape == (1, 3, 32, 32)
print("done")
# needs: diffusers
# expect: fits=true steps=2 identical
