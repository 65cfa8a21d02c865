"""Networks of tests/workload/program.py that transformers and diffusers do not have. Each takes its labels and returns a loss
and logits, as transformers' models do; fields of a description are arguments of its constructor."""
import argparse

import torch
from torch.nn.functional import cross_entropy


class MnasNet(torch.nn.Module):
    def __init__(self, alpha, classes, image, residual_dropout=0.2):
        super().__init__()
        from torchvision.models import MNASNet

        self.network = MNASNet(alpha, classes, residual_dropout)

    def forward(self, pixel_values, labels):
        logits = self.network(pixel_values)
        return argparse.Namespace(loss=cross_entropy(logits, labels), logits=logits)


KINDS = {"mnasnet": MnasNet}


def build(config):
    return KINDS[config.model_type](**{key: value for key, value in vars(config).items() if key not in ("model_type", "family")})
