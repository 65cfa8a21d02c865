"""As in PyTorch, what records and what takes a snapshot are functions of torch._C."""
import pickle
import sys

import torch


def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, clear_history=False):
    torch._C._cuda_record_memory_history(enabled, context, stacks, max_entries, clear_history)


def _snapshot():
    return torch._C._cuda_memorySnapshot(None)


def _dump_snapshot(filename):
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
