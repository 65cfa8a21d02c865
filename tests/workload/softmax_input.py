"""softmax and log_softmax as before PyTorch 1.11, whose derivatives kept what went in besides what came out (derivatives.yaml of 1.10:
_softmax_backward_data(grad, result, dim, self))."""
import torch


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(context, x, dim, is_wide, forward, backward):
        made = forward(x, dim, is_wide)
        context.save_for_backward(x, made)
        context.dim, context.run = dim, backward
        return made

    @staticmethod
    def backward(context, gradient):
        x, made = context.saved_tensors
        return context.run(gradient, made, context.dim, x.dtype), None, None, None, None


def make(forward, backward):
    def kept(x, dim=-1, third=None, dtype=None, _stacklevel=3):
        dtype = third if isinstance(third, torch.dtype) else dtype  # of torch.nn.functional the third is another
        if dtype is None and x.is_cuda and torch.is_autocast_enabled():
            dtype = torch.float32
        is_wide = x.is_cuda and x.dtype is torch.float16 and dtype is torch.float32
        return Kept.apply(x if is_wide or dtype is None else x.to(dtype), dim, is_wide, forward, backward)
    return kept


def keep():
    functional = torch.nn.functional
    softmax = make(torch._softmax, torch._softmax_backward_data)
    log_softmax = make(torch._log_softmax, torch._log_softmax_backward_data)

    def cross_entropy(scores, labels, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        # The type is named, so that autocast leaves it.
        return functional.nll_loss(log_softmax(scores, 1, dtype=scores.dtype), labels, weight, None, ignore_index, None, reduction)
    for owner in (torch, torch.Tensor, functional):
        owner.softmax, owner.log_softmax = softmax, log_softmax
    functional.cross_entropy = cross_entropy
