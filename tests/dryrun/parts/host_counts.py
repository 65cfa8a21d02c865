"""Counts and lengths that the device computes of what the host wrote are the true ones."""
import resource

import torch

mask = torch.arange(100) % 4 == 0
moved = mask.cuda()
assert 1 / moved.sum().item() == 1 / 25 and int((~moved).sum()) == 75 and float(moved.float().mean()) == 0.25
lengths = torch.tensor([3, 9, 4]).cuda()
longest = int(lengths.max())
valid = torch.arange(longest, device="cuda")[None] < lengths[:, None]
assert valid.shape == (3, 9) and valid.sum().tolist() == 16 and torch.randn(3, 9, device="cuda")[valid].shape == (16,)
made = torch.zeros(50, dtype=torch.bool, device="cuda")
made[:20] = True
made |= torch.arange(50, device="cuda") >= 45
assert made.any().item() is True and made.all().item() is False and int(made.sum()) == 25
# Places of what is selected, degrees of a graph, and what is made of them.
assert made.nonzero().squeeze(1).tolist() == torch.where(made)[0].tolist() == [*range(20), *range(45, 50)]
lengths[torch.tensor([True, False, True]).cuda().nonzero().squeeze(1)] -= 1
assert lengths.tolist() == [2, 9, 3] and torch.div(lengths, 2, rounding_mode="floor").tolist() == [1, 4, 1]
assert lengths.bincount(minlength=11).cumsum(0)[-1].item() == 3 and lengths.bincount().shape == (10,)
assert torch.nn.functional.one_hot(lengths).shape == (3, 10) and torch.ceil(lengths / 2).long().tolist() == [1, 5, 2]
places = torch.zeros(4, 90000, dtype=torch.bool, device="cuda")
places.scatter_(1, torch.randn(4, 90000, device="cuda").topk(7).indices, True)
marked = torch.zeros(4, 90000, dtype=torch.uint8, device="cuda")
marked[1, torch.randperm(90000, device="cuda")[:100]] = 1
assert torch.randn(4, 90000, device="cuda")[places].view(4, 7).shape and torch.where(marked | places)[0].shape == (128,)
marked[0].fill_(1)
assert marked.nonzero().shape == (360000, 2)
apart = ~torch.eye(90, dtype=torch.bool, device="cuda")
assert torch.randn(90, 90, device="cuda")[apart].view(90, 89).shape and lengths.new_ones(2, 2).tril().tolist() == [[1, 0], [1, 1]]
packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(3, 9, 2, device="cuda"), lengths.cpu(), True, False)
assert torch.nn.utils.rnn.pad_packed_sequence(packed, True)[1].tolist() == [2, 9, 3]
# What a kernel changes is no longer known, and one more than what is unknown is 1.
labels = torch.tensor([1, 2, 3]).cuda()
labels.add_(torch.randn(3, device="cuda").argsort())
assert labels.sum().item() == 0
assert torch.ones(9, 9, device="cuda")[: torch.randn(5, device="cuda").argmax() + 1].shape == (1, 9)
# An average over all batches counts them on the device.
norm = torch.nn.BatchNorm1d(8, momentum=None).cuda()
norm(torch.randn(4, 8, device="cuda"))
assert int(norm.num_batches_tracked) == 1
# Which graph a node belongs to, after some were dropped by their scores.
graphs = torch.arange(8).repeat_interleave(10).cuda()
kept = torch.randn(80, device="cuda").topk(40).indices
assert int(graphs[kept].max()) == 7
assert torch.multinomial(torch.randn(5, device="cuda").softmax(0).cpu(), 1).shape == (1,)
places = torch.randint(0, 50, (2, 300)).cuda()
assert torch.sparse_coo_tensor(places, torch.ones(300, device="cuda"), (50, 50)).coalesce()._nnz() == places.cpu().unique(dim=1).shape[1]
assert torch.randn(20, 30, device="cuda").to_sparse()._nnz() == 600
assert torch.amp.GradScaler("cuda", init_scale=1024.0).scale(torch.ones((), device="cuda")) is not None
compiled = torch.compile(lambda x: torch.zeros(4, dtype=torch.long, device="cuda").add(x).sum(), backend="eager", fullgraph=True)
compiled(torch.arange(4).cuda())
torch.func.vmap(lambda x: (x + 1).sum())(torch.arange(12).view(3, 4).cuda())
assert torch.combinations(torch.randn(6, device="cuda")).shape == (15, 2) and torch.combinations(lengths, 2, True).shape == (6, 2)
# Drawn until all is accepted.
two = torch.tensor([2.0, 3.0], device="cuda")
assert torch.distributions.VonMises(two, two).sample((5,)).shape == (5, 2)
assert torch.distributions.Wishart(two[0] + 2, torch.eye(3, device="cuda")).sample().shape == (3, 3)
total = torch.zeros(1, device="cuda")  # as in torch.distributed.algorithms.Join
total += 2
assert total.item() == 2
total += torch.randn(1, device="cuda")
assert total.item() == 0
# Under vmap, in products that train nothing, and what is added to zeros place by place.
ends = torch.tensor([3, 1, 4], device="cuda")
taken = torch.func.vmap(lambda end: torch.arange(5, device="cuda") < end)(ends)
assert torch.func.vmap(torch.sum)(taken).tolist() == [3, 1, 4] and torch.randn(3, 5, device="cuda")[taken].shape == (8,)
columns = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device="cuda")
assert torch.func.vmap(lambda column: column.sort(descending=True)[0], 1, 1)(columns).tolist() == [[5, 6], [3, 4], [1, 2]]
real = torch.tensor([[1.0, 1.0, 0.0]], device="cuda")
assert torch.randn(1, 3, 3, device="cuda")[torch.einsum("bi,bj->bij", real, real).bool()].shape == (4,)
assert (real @ torch.ones(3, 2, device="cuda")).tolist() == [[2, 2]]
assert (real @ torch.nn.Linear(3, 2).cuda().weight.T).sum().item() == 0
assert torch.pow(2.0, -torch.arange(3, device="cuda")).tolist() == [1, 0.5, 0.25]
edges = torch.arange(6, device="cuda").repeat_interleave(2)
assert torch.zeros(7, device="cuda").scatter_add_(0, edges, torch.ones(12, device="cuda")).tolist() == [2] * 6 + [0]
assert torch.zeros(7, device="cuda").index_add(0, edges, torch.ones(12, device="cuda")).tolist() == [2] * 6 + [0]
filled = torch.zeros(7, device="cuda")
filled.add_(torch.randn(7, device="cuda"))
filled[2] = 1
assert filled[filled > 0].shape == (7,)  # unknown
# A result that is too large to be noted is not computed.
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
apart = torch.arange(8000, device="cuda")[:, None] - torch.arange(8000, device="cuda")
assert apart.shape == (8000, 8000) and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100000
# Labels of which a part was changed, moved to the right as decoders do it: a view of a view knows no count of changes.
labels = torch.arange(4 * 32).view(4, 32).cuda()
labels[:, 20:] = -100
shifted = labels.new_zeros(labels.shape)
shifted[..., 1:] = labels[..., :-1].clone()
shifted.masked_fill_(shifted == -100, 0)
assert int((labels != -100).sum()) == 80 and shifted[1].tolist() == [0, *range(32, 52), *[0] * 11]
# Numbers of some 50 KB are computed in one thread: waking others takes longer.
many = torch.arange(12800.0).cuda()
threads = torch.get_num_threads()
assert many.exp().isinf().any().item() is True and torch.get_num_threads() == threads
# Tokens that were drawn end no answer, as far as is known.
ends = torch.tensor([1, 2], device="cuda")
drawn = torch.randn(4, 16, device="cuda").argsort(1)
assert torch.isin(drawn, ends).any(1).tolist() == [False] * 4
assert torch.isin(torch.arange(4, device="cuda"), ends).tolist() == [False, True, True, False]
length = torch.full((4,), 16, device="cuda")
length[torch.isin(drawn, ends).any(1)] = 3
assert length.tolist() == [16] * 4
# One count is for all elements, or for all slices.
once, three = torch.arange(6, device="cuda").view(2, 3), torch.tensor([[3, 8]]).cuda()
assert torch.repeat_interleave(three[:, 1] * 2, three[:, 0]).tolist() == [16] * 3
assert torch.repeat_interleave(once, three[:, 0], dim=1).shape == (2, 9) and once.repeat_interleave(three[0, 0], dim=0).shape == (6, 3)
assert torch.repeat_interleave(three[:, 0]).tolist() == [0] * 3
assert torch.repeat_interleave(once, drawn[0, :1], dim=1).shape == (2, 3)  # unknown
print("done")
# expect: fits=true
