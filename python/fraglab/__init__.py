"""What a program's GPU-memory requests do to an allocator, without a GPU."""
from __future__ import annotations

from fraglab._places import find_bin

__all__ = ["find_bin"]
