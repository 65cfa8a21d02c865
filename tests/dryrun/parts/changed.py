"""Numbers that the host wrote are the true ones, or not known once something changed them that nobody watched: an optimizer, a
function of lists, a layer with running statistics."""
import copy

import torch

cuda = torch.device("cuda")
three = torch.tensor([1.0, 2.0, 3.0]).to(cuda)
assert (three > 1).sum().item() == 2 and three.max().item() == 3 and three.flip(0).sort().values.tolist() == [1, 2, 3]
three.mul_(2)
assert three.tolist() == [2, 4, 6] and copy.deepcopy(three).tolist() == [2, 4, 6]
torch._foreach_add_([three], 1.0)
assert three.tolist() == [3, 5, 7] and (three > 3).sum().item() == 2
three.fill_(7)
assert three[1].item() == 7
three[0] = 5
three[1:] = torch.tensor([8.0, 9.0])
assert three.tolist() == [5, 8, 9]
with torch.inference_mode():
    for change in (torch.relu_, torch.nn.functional.silu, torch.nn.functional.hardtanh, lambda tensor, **_: torch._foreach_mul_([tensor], 2.0)):
        free, expected = torch.tensor([-1.0, 2.0], device=cuda), torch.tensor([-1.0, 2.0])
        for tensor in (free, expected):
            change(tensor, **{"inplace": True} if "torch.nn" in change.__module__ else {})
        assert free.tolist() == expected.tolist() and free.mul_(0).fill_(3).tolist() == [3, 3]
    free = torch.tensor([1.0, 2.0], device=cuda)
    torch._foreach_add_([free], [torch.randn(2, device=cuda)])
    assert free.tolist() == [0, 0]
torch._foreach_mul_([three.data], 2.0)
assert three.tolist() == [10, 16, 18]
torch._foreach_mul_([three], [torch.randn(3, device=cuda)])
assert three.tolist() == [0, 0, 0]
three.copy_(torch.tensor([5.0, 8.0, 9.0]))
whole = torch.tensor([1, 2, 3], device=cuda)
torch._foreach_add_([whole], 1)
assert whole.tolist() == [2, 3, 4]
whole.copy_(torch.tensor([5, 6, 7]))
assert whole.scatter_add(0, torch.tensor([0], device=cuda), torch.tensor([5], device=cuda)).tolist() == [10, 6, 7]
assert whole.scatter(0, torch.randn(2, device=cuda).argsort(), 1).tolist() == [0, 0, 0]

layer = torch.nn.Linear(2, 2)
first = layer.weight[0, 0].item()
layer.cuda()
assert layer.weight[0, 0].item() == first
layer.load_state_dict({"weight": torch.eye(2), "bias": torch.ones(2)})
assert layer.weight[1, 1].item() == 1
layer.bias.grad = torch.zeros(2, device=cuda)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
scaler = torch.amp.GradScaler("cuda", init_scale=8.0, growth_interval=2)
scales = []
for _ in range(3):
    scaler.scale(layer(torch.randn(2, 2, device=cuda)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    scales.append(scaler.get_scale())
assert scales == [8, 16, 16] and layer.weight[1, 1].item() == 0
scaler.update(512.0)
assert scaler.get_scale() == 512
norm = torch.nn.BatchNorm1d(2).cuda()
assert norm.running_var[0].item() == 1
norm(torch.randn(4, 2, device=cuda))
assert norm.running_var[0].item() == 0 and norm.num_batches_tracked.item() == 1



@torch.library.custom_op("fraglab::twice_", mutates_args=("x",))
def twice_(x: torch.Tensor) -> None:
    x[1:].mul_(2)


@torch.library.custom_op("fraglab::by_kernel_", mutates_args=("x",))
def by_kernel_(x: torch.Tensor) -> None:
    pass


whole.copy_(torch.tensor([5, 6, 7]))
twice_(whole)
torch.ops.fraglab.twice_(whole)
assert whole.tolist() == [5, 24, 28]
by_kernel_(whole)
assert whole.tolist() == [0, 0, 0]
whole.copy_(torch.tensor([5, 6, 7]))
for more in ({"fused": True}, {"capturable": True}):
    optimizer = torch.optim.Adam(layer.parameters(), **more)
    for _ in range(3):
        layer(torch.randn(2, 2, device="cuda")).sum().backward()
        optimizer.step()
    assert [state["step"].item() for state in optimizer.state.values()] == [3, 3]
infinite = [torch.full((3,), float("inf"), device="cuda"), torch.full((2,), 1.0, device="cuda")]
assert torch.stack(list(torch._foreach_norm(infinite))).isinf().any().item()
assert (torch.nn.utils.rnn.pad_sequence([three[:1].long(), three[:2].long()], True, -1) == -1).sum().item() == 1

assert not torch.equal(whole, whole + 1) and not torch.allclose(three, three + 1) and torch.equal(whole, whole.clone())
drawn = torch.randn(2, 2, device=cuda)
assert drawn.tolist() == [[0, 0], [0, 0]] and drawn[0].long().tolist() == [0, 0]
values = torch.tensor([3.0, 1, 4, 1, 5, 9, 2, 6], device=cuda)
assert values.quantile(0.5).item() == 3.5 and values.median().item() == 3
assert torch.bucketize(values, torch.linspace(0, 10, 6, device=cuda)).tolist() == [2, 1, 2, 1, 3, 5, 1, 3]
assert torch.tensor([1.0, float("nan")], device=cuda).isnan().any()
# A loop that it leaves each time does not wait for a value.
steps = 0
for _ in range(1200):
    while drawn.sum().item() > 1:
        pass
    steps += 1
assert steps == 1200
print("done")
# expect: fits=true identical again
