"""--ranks: one rank of a world that is not there. torch.distributed gets PyTorch's fake process
group, whatever backend the script asks for: nothing is sent, every other rank has what this one has."""
import functools
import importlib
import os
import sys
import weakref

COLLECTIVES = ("all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
               "reduce_scatter_tensor", "all_to_all", "all_to_all_single")


def is_wanted(settings):
    return bool(settings.get("ranks"))


def use_fake_group(torch, run):
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    start = c10d.init_process_group

    @functools.wraps(start)
    def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, *_rest, **_named):
        fake = importlib.import_module("torch.testing._internal.distributed.fake_pg")
        rank = rank if rank >= 0 else int(os.environ["RANK"])
        world_size = world_size if world_size > 0 else int(os.environ["WORLD_SIZE"])
        return start(backend="fake", store=fake.FakeStore(), rank=rank, world_size=world_size)

    replace(c10d, "init_process_group", init_process_group)
    make_group = c10d.new_group

    @functools.wraps(make_group)
    def new_group(ranks=None, timeout=None, backend=None, *rest, **named):
        named.pop("device_id", None)
        return make_group(ranks, None, None, **{key: value for key, value in named.items()
                                                if key in ("use_local_synchronization", "group_desc")})

    replace(c10d, "new_group", new_group)
    keep_objects(c10d, run)
    keep_buckets(torch, run)
    take_flat(torch, c10d, "all_gather", 0)
    take_flat(torch, c10d, "reduce_scatter", 1)
    run.note_sentence("one rank of %s with PyTorch's fake process group: what other ranks would send is not known"
                      % os.environ.get("WORLD_SIZE", "many"))


def replace(c10d, name, function):
    before = getattr(c10d, name)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch.distributed") and \
                module.__dict__.get(name) is before:
            setattr(module, name, function)


def keep_objects(c10d, run):
    """Objects that another rank would send: a receiver keeps what it has."""

    def own_is_root(function, root, group):
        number = c10d.get_rank()
        return number == root or c10d.get_world_size(group) == 1

    def keep(name, place):
        function = getattr(c10d, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def kept(*arguments, **named):
            root = named.get("src", arguments[place] if len(arguments) > place else 0)
            if own_is_root(function, root, named.get("group")):
                return function(*arguments, **named)
            run.note_sentence("%s: the objects of rank %s are not known; this rank keeps its own" % (name, root))
            return root

        replace(c10d, name, kept)

    keep("broadcast_object_list", 1)
    keep("recv_object_list", 1)
    keep("scatter_object_list", 2)


def take_flat(torch, c10d, name, place):
    """The NCCL process group moves a list of tensors of one size through a flat one, which it takes from the
    allocator and keeps until the work is over."""
    function = getattr(c10d, name)
    list_name = "tensor_list" if name == "all_gather" else "input_list"

    @functools.wraps(function)
    def flatly(*arguments, **named):
        tensors = named.get(list_name, arguments[place] if len(arguments) > place else [])
        flat = []
        first = tensors[0] if len(tensors) > 0 else None
        group = named.get("group", arguments[place + 2] if len(arguments) > place + 2 else None)
        is_mine = first is not None and first.is_cuda and c10d.get_rank(group) >= 0
        if is_mine and all(tensor.shape == first.shape for tensor in tensors):
            flat.append(torch.empty((len(tensors), *first.shape), dtype=first.dtype, device=first.device))
        work = function(*arguments, **named)
        if work is not None:
            weakref.finalize(work, flat.clear)
        return work

    replace(c10d, name, flatly)


def keep_buckets(torch, run):
    """DistributedDataParallel waits for a tensor that the work of a fake group does not have: a hook
    gives back the bucket, as an all_reduce in place does."""
    parallel = torch.nn.parallel.DistributedDataParallel
    start, register = parallel.__init__, parallel.register_comm_hook

    def same_bucket(_state, bucket):
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    @functools.wraps(start)
    def begin(self, *arguments, **named):
        start(self, *arguments, **named)
        register(self, None, same_bucket)

    @functools.wraps(register)
    def register_comm_hook(self, *_arguments, **_named):
        run.note_sentence("the communication hook of DistributedDataParallel is left out, as nothing is sent")

    parallel.__init__ = begin
    parallel.register_comm_hook = register_comm_hook
