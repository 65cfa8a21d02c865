"""Whole numbers in tensors above 1 MiB are followed if that is asked for."""
import torch

numbers = (torch.arange(200000) % 10).cuda()
assert int((numbers == 3).sum()) == 20000 and numbers[numbers == 3].shape == (20000,) and numbers.unique().tolist() == [*range(10)]
assert torch.nn.functional.one_hot(numbers).shape == (200000, 10) and numbers.cpu()[-1] == 9
# options: --follow 2MiB
# expect: fits=true identical decisions=0
