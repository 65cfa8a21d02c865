"""Lets a policy of fraglab serve a PyTorch program; docs/deploy.md tells more.

    python3 fraglab_torch.py [--policy POLICY] SCRIPT [ARGUMENT...]

or, in a program, before its first CUDA tensor: import fraglab_torch; fraglab_torch.install()
"""
import ctypes, os, runpy, sys

HOOKS = {"set_record_stream_fn": "record_stream", "set_reset_fn": "empty_cache",
         "set_memory_fraction_fn": "set_memory_fraction", "set_base_alloc_fn": "base_allocation",
         "set_begin_allocate_to_pool": "begin_allocate_to_pool",
         "set_end_allocate_to_pool_fn": "end_allocate_to_pool", "set_release_pool": "release_pool"}

def install(policy=None, library="libfraglab_torch.so"):
    """Makes the policy (else FRAGLAB_POLICY, else pytorch) PyTorch's allocator; returns the library."""
    import torch
    os.environ["FRAGLAB_TORCH_VERSION"] = torch.__version__
    os.environ.update({"FRAGLAB_POLICY": policy} if policy else {})
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.join(here, up, library) for up in ("", "../../lib/fraglab", "../..")]
    path = os.environ.get("FRAGLAB_TORCH_LIBRARY") or next(filter(os.path.exists, paths), library)
    loaded = ctypes.CDLL(path)
    loaded.fraglab_last_error.restype = ctypes.c_char_p
    if loaded.fraglab_last_error():
        raise RuntimeError(loaded.fraglab_last_error().decode())
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "fraglab_alloc", "fraglab_free")
    for setter, name in HOOKS.items():
        function = ctypes.cast(getattr(loaded, "fraglab_" + name), ctypes.c_void_p).value
        getattr(allocator.allocator(), setter, lambda _: None)(function)
    torch.cuda.memory.change_current_allocator(allocator)
    return loaded

if __name__ == "__main__":
    arguments = sys.argv[1:]
    has_policy = arguments[:1] == ["--policy"]
    if len(arguments) < (3 if has_policy else 1):
        sys.exit(__doc__)
    sys.argv = arguments[2:] if has_policy else arguments
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    install(arguments[1] if has_policy else None)
    runpy.run_path(sys.argv[0], run_name="__main__")
