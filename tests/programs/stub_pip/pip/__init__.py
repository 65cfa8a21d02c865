"""Stands in for pip in tests of `fraglab bisect`: it offers some releases of the stand-in for PyTorch
and installs them from the tree; from 2.8.0 on each block of a Tensor has a MiB more."""
