"""Mixture of experts routed by the host, a graph network, and reinforcement learning with torch.distributions."""
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width=32, count=4):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(count))

    def forward(self, x, places):
        out = torch.zeros_like(x)
        for expert, rows in zip(self.experts, places):
            if rows.numel():
                out = out.index_add(0, rows, expert(x[rows]))
        return out


def train(model, *inputs):
    optimizer = torch.optim.RMSprop(model.parameters())
    for _ in range(2):
        model(*inputs).pow(2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


choice = torch.randint(0, 4, (64,), generator=torch.Generator().manual_seed(1))
train(Experts().cuda(), torch.randn(64, 32).cuda(), [(choice == e).nonzero().flatten().cuda() for e in range(4)])


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(32, 32), nn.GRUCell(32, 32)

    def forward(self, nodes, edges):
        source, target = edges
        sums = torch.zeros_like(nodes).scatter_add(0, target[:, None].expand(-1, 32), self.message(nodes[source]))
        most = torch.zeros_like(nodes).scatter_reduce(0, target[:, None].expand(-1, 32), nodes[source], "amax")
        return self.update(sums + most, nodes)


train(Graph().cuda(), torch.randn(50, 32, device="cuda"), torch.randint(0, 50, (2, 300)).cuda())

policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)).cuda()
optimizer = torch.optim.Adam(policy.parameters())
for episode in range(2):
    state, losses = torch.zeros(4), []
    for _ in range(20):
        actions = torch.distributions.Categorical(logits=policy(state.cuda()))
        action = actions.sample()
        losses.append(-actions.log_prob(action))
        state = state + 0.1 * (action.item() - 0.5)
    reward = torch.arange(20.0).cuda()
    (torch.stack(losses) * (reward - reward.mean()) / (reward.std() + 1e-6)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
squashed = torch.distributions.TransformedDistribution(
    torch.distributions.Normal(torch.zeros(8, device="cuda"), 1.0), [torch.distributions.TanhTransform()])
squashed.log_prob(squashed.rsample()).sum()
for made in (torch.distributions.Beta, torch.distributions.Gamma):
    made(torch.ones(8, device="cuda"), torch.ones(8, device="cuda")).rsample()
torch.distributions.Dirichlet(torch.ones(8, device="cuda")).entropy()
torch.distributions.MultivariateNormal(torch.zeros(4, device="cuda"), torch.eye(4, device="cuda")).rsample()
print("done")
# expect: fits=true identical
