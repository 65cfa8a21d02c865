"""Sparse matrices: conversions, products with dense ones, sampled products, triangular solvers, sums."""
import torch

indices = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
    coo = torch.sparse_coo_tensor(indices, torch.ones(4, dtype=dtype), (4, 4)).cuda()
    dense = torch.ones(4, 8, device="cuda", dtype=dtype)
    torch.sparse.mm(coo, dense)
    csr = torch.sparse_csr_tensor(torch.tensor([0, 1, 2, 3, 4]), torch.tensor([1, 0, 3, 2]), torch.ones(4, dtype=dtype), (4, 4)).cuda()
    csr @ dense
    csr @ dense[:, 0]
    torch.sparse.sampled_addmm(csr, dense, dense.t().contiguous())
    torch.triangular_solve(dense, csr)
    torch.add(csr, csr)
    csr @ csr
    bsr = torch.sparse_bsr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2, 2, 2, dtype=dtype), (4, 4)).cuda()
    bsr @ dense
    torch.triangular_solve(dense, bsr)
# Equal elements are added up, inside of functions of C++ as well: counted where the host knows their places, else no more than there are places.
places = torch.randint(0, 100, (2, 4000)).cuda()
count = len(places.cpu().unique(dim=1)[0])
for indices, most in ((places, count), (torch.randn(2, 40, device="cuda").long(), 40), (torch.randn(2, 40000, device="cuda").long(), 10000)):
    graph = torch.sparse_coo_tensor(indices, torch.ones(indices.shape[1], device="cuda"), (100, 100))
    assert graph.coalesce()._nnz() == most
    assert torch.sparse.softmax(graph, 1)._nnz() == most
    torch.sparse.mm(graph, torch.ones(100, 4, device="cuda"))
table = torch.nn.Embedding(500, 16, sparse=True).cuda()
optimizer = torch.optim.SparseAdam(table.parameters())
table(torch.tensor([7, 3, 7, 7]).cuda()).sum().backward()
optimizer.step()
assert optimizer.state[table.weight]["step"] == 1 and table.weight.grad.coalesce()._nnz() == 2
# Places and values of the host are followed through sums, turns and conversions; CUDA puts the elements of one behind the other's.
places = torch.randint(0, 60, (2, 300)).unique(dim=1)
graph = torch.sparse_coo_tensor(places, torch.ones(places.shape[1]), (60, 60)).cuda().coalesce()
double = (graph + graph).coalesce()
assert (graph + graph)._nnz() == 2 * graph._nnz() and double.indices().tolist() == places.tolist() and double.values().max().item() == 2
assert (graph + graph.t()).coalesce()._nnz() == torch.cat([places, places.flip(0)], 1).unique(dim=1).shape[1]
assert torch.sparse.sum(graph, 1).to_dense().tolist() == places[0].bincount(minlength=60).tolist()
assert torch.eye(3, device="cuda").to_sparse().indices().tolist() == [[0, 1, 2]] * 2
unknown = torch.sparse_coo_tensor(places.cuda(), torch.randn(places.shape[1], device="cuda"), (60, 60)).coalesce()
assert unknown.indices().tolist() == places.tolist() and unknown.values().sum().item() == 0
assert torch.sparse_coo_tensor(torch.randn(2, 9, device="cuda").long(), torch.ones(9, device="cuda")[:9], (4, 4)).index_select(0, places[0, :1].cuda() % 4)._nnz() == 9
# Compressed ones: elements or blocks, all of those that nobody knows.
dense = torch.block_diag(torch.ones(2, 2), torch.eye(2)).cuda()
for kind in ("csr", "csc", "bsr", "bsc"):
    block = [(2, 2)] if kind.startswith("b") else []
    made, unknown = (getattr(tensor, "to_sparse_" + kind)(*block) for tensor in (dense, torch.randn(4, 4, device="cuda")))
    assert made.values().sum().item() == 6 and made.to_dense().tolist() == dense.tolist() == made.cpu().to_dense().tolist()
    assert (made._nnz(), unknown._nnz()) == ((2, 4) if block else (6, 16)) and getattr(torch.stack([dense] * 2), "to_sparse_" + kind)(*block)._nnz() == made._nnz()
assert dense.to_sparse_csr().crow_indices().diff().tolist() == [2, 2, 1, 1] == (dense.to_sparse().to_sparse_csr() @ torch.ones(4, 1, device="cuda")).flatten().tolist()
torch.cuda.synchronize()
print("done")
# expect: fits=true
