"""Transforms of one to three dimensions, of smooth and of prime lengths, real and complex, half precision too."""
import torch

for n in (16, 100, 101, 4096, 8209):
    x = torch.randn(4, n, device="cuda")
    torch.fft.irfft(torch.fft.rfft(x), n=n)
    torch.fft.ifft(torch.fft.fft(x.double()))
torch.fft.fft2(torch.randn(2, 3, 64, 48, device="cuda"))
torch.fft.rfftn(torch.randn(2, 16, 16, 16, device="cuda"))
torch.fft.fft(torch.randn(4, 64, device="cuda", dtype=torch.float16))
torch.stft(torch.randn(2, 2048, device="cuda"), 256, window=torch.hann_window(256, device="cuda"), return_complex=True)
torch.backends.cuda.cufft_plan_cache.clear()
torch.cuda.synchronize()
print("done")
# expect: fits=true again
