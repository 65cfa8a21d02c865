"""Networks of tests/workload/program.py that transformers and diffusers do not have. Each takes its labels and returns a loss
and logits, as transformers' models do; fields of a description are arguments of its constructor."""
import argparse
import functools

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy


class MnasNet(torch.nn.Module):
    def __init__(self, alpha, classes, image, residual_dropout=0.2):
        super().__init__()
        from torchvision.models import MNASNet

        self.network = MNASNet(alpha, classes, residual_dropout)

    def forward(self, pixel_values, labels):
        logits = self.network(pixel_values)
        return argparse.Namespace(loss=cross_entropy(logits, labels), logits=logits)


class Listed(torch.nn.Module):
    """A network of those that torchvision names; parts of its name are fields."""

    def __init__(self, name, classes=1000, image=224, alpha=None, residual_dropout=None, drop_path=None, drop_rate=None):
        super().__init__()
        import torchvision.models

        more = {"width_mult": alpha, "dropout": residual_dropout, "stochastic_depth_prob": drop_path, "drop_rate": drop_rate}
        self.network = getattr(torchvision.models, name)(num_classes=classes, **{key: value for key, value in more.items() if value is not None})

    def forward(self, pixel_values, labels):
        logits = self.network(pixel_values)
        return argparse.Namespace(loss=cross_entropy(logits, labels), logits=logits)


def make_named(family, variant=None, **fields):
    return Listed(f"{family}_{variant}" if variant else family, **fields)


def make_vgg(variant=16, batch_norms=False, **fields):
    return Listed(f"vgg{variant}{'_bn' if batch_norms else ''}", **fields)


def make_densenet(variant=121, residual_dropout=0, **fields):
    return Listed(f"densenet{variant}", drop_rate=residual_dropout, **fields)


def make_mlp(widths, is_last_linear):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[: -1 if is_last_linear else None])


class Dlrm(torch.nn.Module):
    """As DLRM_Net of facebookresearch/dlrm (dlrm_s_pytorch.py) goes forward, with a loss of logits."""

    def __init__(self, tables, rows, width, dense, bottom, top, bags, sparse=False):
        super().__init__()
        kind = (lambda count: torch.nn.EmbeddingBag(count, width, mode="sum", sparse=sparse)) if bags else (lambda count: torch.nn.Embedding(count, width, sparse=sparse))
        self.bags = bags
        self.tables = torch.nn.ModuleList(kind(rows[i % len(rows)]) for i in range(tables))
        self.bottom = make_mlp([dense, *bottom, width], False)
        self.top = make_mlp([width + tables * (tables + 1) // 2, *top, 1], True)

    def look_up(self, offsets, indices):
        found = []
        for k, table in enumerate(self.tables):
            V = table(indices[k], offsets[k]) if self.bags else table(indices[k])
            found.append(V)
        return found

    def interact(self, x, found):
        batch, width = x.shape
        T = torch.cat([x] + found, dim=1).view((batch, -1, width))
        Z = torch.bmm(T, torch.transpose(T, 1, 2))
        _, ni, nj = Z.shape
        li = torch.tensor([i for i in range(ni) for j in range(i)])
        lj = torch.tensor([j for i in range(nj) for j in range(i)])
        Zflat = Z[:, li, lj]
        return torch.cat([x] + [Zflat], dim=1)

    def predict(self, numbers, offsets, indices):
        x = self.bottom(numbers)
        found = self.look_up(offsets, indices)
        z = self.interact(x, found)
        return self.top(z)

    def forward(self, numbers, offsets, indices, labels):
        logits = self.predict(numbers, offsets, indices)
        return argparse.Namespace(loss=binary_cross_entropy_with_logits(logits, labels), logits=logits)


class Graph(torch.nn.Module):
    """GraphSAGE or GCN of torch_geometric; the loss is of the first nodes, as NeighborLoader has them. Self-loops are among the edges."""

    def __init__(self, kind, features, width, layers, classes, residual_dropout):
        super().__init__()
        import torch_geometric.nn

        extra = {"add_self_loops": False} if kind == "GCN" else {}
        self.network = getattr(torch_geometric.nn, kind)(features, width, layers, classes, dropout=residual_dropout, **extra)

    def forward(self, features, edges, labels, count):
        logits = self.network(features, edges)[:count]
        return argparse.Namespace(loss=cross_entropy(logits, labels[:count]), logits=logits)


KINDS = {
    "mnasnet": MnasNet,
    "vgg": make_vgg,
    "mobilenet_v2": functools.partial(make_named, "mobilenet_v2"),
    "mobilenet_v3": lambda variant="large", **fields: make_named("mobilenet_v3", variant, **fields),
    "regnet": lambda variant="y_400mf", **fields: make_named("regnet", variant, **fields),
    "efficientnet": lambda variant="b0", **fields: make_named("efficientnet", variant, **fields),
    "densenet": make_densenet,
    "dlrm": Dlrm,
    "graphsage": functools.partial(Graph, "GraphSAGE"),
    "gcn": functools.partial(Graph, "GCN"),
}
LISTED = ("mnasnet", "vgg", "mobilenet_v2", "mobilenet_v3", "regnet", "efficientnet", "densenet")


def build(config):
    return KINDS[config.model_type](**{key: value for key, value in vars(config).items() if key not in ("model_type", "family")})
