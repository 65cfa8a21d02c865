"""Stands in for PyTorch in tests of the dry run: an allocator of whole segments over whatever CUDA
runtime the process has, which the dry run's software CUDA is; its history has PyTorch's form."""
import ctypes
import sys
import types

from . import version
from .version import __version__
from . import _allocator, autograd, cuda, nn, optim

OutOfMemoryError = _allocator.OutOfMemoryError
uint8 = "uint8"
strided = "strided"


class Tensor:
    is_cuda = True
    dtype = None
    shape = (64,)
    layout = strided

    def __init__(self, value=0):
        self.value = value

    def item(self):
        return _allocator.read_value()

    def all(self):
        return self

    def numel(self):
        return 64

    def element_size(self):
        return 1

    def is_floating_point(self):
        return False

    def is_contiguous(self):
        return False

    def stride(self):
        """Too far apart to be read back."""
        return (1000,)

    def nonzero(self):
        """A block of as many MiB as there are elements other than zero."""
        return empty(_allocator.read_value(ctypes.c_int32))


def empty(mib):
    """A block of that many MiB, which lives as long as what is returned."""
    return _allocator.Block(mib << 20)


_C = types.SimpleNamespace(_cuda_attach_out_of_memory_observer=_allocator.observers.append,
                           _cuda_record_memory_history=_allocator.device.record,
                           _cuda_memorySnapshot=_allocator.device.snapshot,
                           _cuda_emptyCache=_allocator.device.empty,
                           _cuda_resetPeakMemoryStats=_allocator.device.reset_peaks,
                           _cuda_resetAccumulatedMemoryStats=_allocator.device.reset_count,
                           _cuda_isHistoryEnabled=lambda: _allocator.device.history is not None)
sys.modules["torch._C"] = _C
