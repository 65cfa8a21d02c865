"""RNN, GRU and LSTM in their variants, trained, and CTC: all by cuDNN."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

x = torch.randn(7, 3, 12, device="cuda")
for layer in (
    nn.RNN(12, 20),
    nn.RNN(12, 20, nonlinearity="relu", bias=False),
    nn.GRU(12, 20, num_layers=2),
    nn.LSTM(12, 20, num_layers=2, bidirectional=True, dropout=0.5),
    nn.LSTM(12, 20, num_layers=2, proj_size=5),
):
    layer = layer.cuda()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        layer(x)[0].sum().backward()
        optimizer.step()
    addresses = {p.data_ptr() for p in layer.parameters()}
    assert len(addresses) == len(list(layer.parameters()))
    layer.eval()
    with torch.no_grad():
        layer(x)

lstm = nn.LSTM(12, 20).cuda()
packed, _ = lstm(pack_padded_sequence(x, [7, 5, 2]))
out, lengths = pad_packed_sequence(packed)
assert out.shape == (7, 3, 20) and lengths.tolist() == [7, 5, 2]
with torch.autocast("cuda", torch.half):
    lstm(x)[0].sum().backward()

scores = torch.randn(50, 4, 20, device="cuda").log_softmax(2).detach().requires_grad_()
labels = torch.randint(1, 20, (40,), dtype=torch.int32, device="cuda")
lengths = torch.full((4,), 50, dtype=torch.int32, device="cuda")
nn.functional.ctc_loss(scores, labels, lengths, torch.full_like(lengths, 10)).backward()
print("done")
# expect: fits=true identical
