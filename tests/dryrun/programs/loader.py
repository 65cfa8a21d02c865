"""Workers of a DataLoader, pinned memory, a side stream."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.randn(256, 64), torch.randint(0, 10, (256,)))
    model = nn.Linear(64, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    side = torch.cuda.Stream()
    for x, y in DataLoader(data, batch_size=32, num_workers=2, pin_memory=True):
        with torch.cuda.stream(side):
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(torch.cuda.current_stream())
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")


main()
# expect: fits=true steps=8
