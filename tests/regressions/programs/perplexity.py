# Until torchmetrics 1.3 the perplexity of n words selected n times n probabilities.
# source: https://github.com/Lightning-AI/torchmetrics/issues/2337
# package: torchmetrics 1.2.1 1.3.1
# with: lightning_utilities==0.11.9
# torch: 2.6.0
# gpu: rtx4090
import torch
from torchmetrics.text import Perplexity

Perplexity().to("cuda").update(torch.rand(4, 512, 100, device="cuda"), torch.ones(4, 512, dtype=torch.long, device="cuda"))
