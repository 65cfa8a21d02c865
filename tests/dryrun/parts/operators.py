"""Operators one after the other, forward and backward: PyTorch's own samples for each, as its tests of operators have them.
Those of one letter in FRAG_DRYRUN_OPERATORS (default: s; "all": every one, minutes) are run."""
import os
import signal
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

warnings.simplefilter("ignore")
WANTED = os.environ.get("FRAG_DRYRUN_OPERATORS", "s")
SECONDS = 30
# Only for the CPU; a sample that is wrong for CUDA; a search in a table that only a kernel fills.
RIGHT_TO_FAIL = {"sparse.mm", "_softmax_backward_data", "mode", "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"}


def tensors(found):
    if isinstance(found, torch.Tensor):
        return [found]
    return [t for part in found for t in tensors(part)] if isinstance(found, (list, tuple)) else []


def run(operator, sample):
    found = operator.op(sample.input, *sample.args, **sample.kwargs)
    if sample.output_process_fn_grad:
        found = sample.output_process_fn_grad(found)
    ends = [t for t in tensors(found) if t.requires_grad]
    if ends:
        torch.autograd.backward(ends, [torch.ones_like(t) for t in ends])
    torch.cuda.synchronize()


def late(*_):
    raise TimeoutError("it takes longer than %d s" % SECONDS)


signal.signal(signal.SIGALRM, late)
calls = failures = 0
for operator in op_db:
    if operator.name in RIGHT_TO_FAIL or WANTED != "all" and not operator.name.split(".")[-1].startswith(WANTED):
        continue
    types = operator.supported_dtypes("cuda")
    if not types:  # on other devices alone
        continue
    usual = (torch.float32, torch.complex64, torch.int64, torch.bool, torch.half)
    dtype = next((t for t in usual if t in types), None) or min(types, key=str)
    has_grad = operator.supports_autograd and dtype in operator.supported_backward_dtypes("cuda")
    signal.alarm(SECONDS)
    for number, sample in enumerate(operator.sample_inputs("cuda", dtype, requires_grad=has_grad)):
        if number == 20:
            break
        calls += 1
        try:
            run(operator, sample)
        except Exception as error:
            failures += 1
            print("%s, sample %d: %s: %s" % (operator.name, number, type(error).__name__, error))
    signal.alarm(0)
print(calls, "calls,", failures, "failed")
assert calls > 200 and failures == 0
# needs: expecttest
# expect: fits=true identical
