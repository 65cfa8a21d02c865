"""Between which numbers whole numbers lie that are too many to be followed: copies, picks and joins leave them
there, and so does the rest of a division. There are no more different ones than that."""
from . import counts

COPIES = {"reshape", "contiguous", "clone", "repeat", "flatten", "ravel", "to", "long", "int", "cat", "concat", "stack", "repeat_interleave",
          "flip", "__getitem__", "index_select"}
RESTS = {"remainder", "__mod__"}
NAMES = COPIES | RESTS


class Ranges:
    def __init__(self, torch, whole, bytes_max, is_watched_by_others):
        self.torch = torch
        self.whole = whole
        self.bytes_max = bytes_max  # of tensors that are read
        self.is_watched_by_others = is_watched_by_others

    def of(self, tensor):
        """Its least and its greatest number, at the widest; None: not known."""
        if tensor.dtype not in self.whole:
            return None
        try:
            span = counts.span_of(tensor) if tensor.is_cuda and tensor.numel() > 0 else 0  # few where a dimension is expanded
            is_read = 0 < span * tensor.element_size() <= self.bytes_max() and not self.is_watched_by_others()
            held = counts.on_host(self.torch, self.torch.as_strided(tensor.data, (span,), (1,))) if is_read else None
        except RuntimeError:  # under torch.func
            return None
        if held is not None:
            return int(held.min()), int(held.max())
        for one in (tensor, counts.owner_of(tensor)):
            noted = getattr(one, "_fraglab_range", None)
            if noted is not None and noted[2] == counts.version_of(one):
                return noted[:2]
        return None

    def note(self, name, arguments, result):
        """What an operator made, which is not known itself; of a view its owner tells."""
        if type(result) is not self.torch.Tensor or result.dtype not in self.whole or not result.is_cuda or result._base is not None:
            return
        first = arguments[0]
        if name in RESTS:
            divisor = arguments[1] if len(arguments) > 1 else None
            found = [(0, divisor - 1) if type(divisor) is int and divisor > 0 else None]
        else:
            found = [self.of(part) if isinstance(part, self.torch.Tensor) else None for part in (first if isinstance(first, (tuple, list)) else (first,))]
        if found and None not in found:
            result._fraglab_range = (min(least for least, _ in found), max(most for _, most in found), counts.version_of(result))
