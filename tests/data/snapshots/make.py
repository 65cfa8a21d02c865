#!/usr/bin/env python3
"""Writes the snapshots of this folder: small recordings made by hand, one hard case each.

    python3 make.py        in this folder; needs nothing but Python 3.8 or later

Addresses are in the style of a device, sizes those that PyTorch would use.
"""
import pickle
import struct

MIB = 1 << 20
A = 0x200000000000  # segments of cudaMalloc
E = 0x300000000000  # expandable ranges
T = 1700000000000000


class Clock:
    now = T


def entry(action, addr, size, stream=0, **more):
    Clock.now += 10
    made = {"action": action}
    made["device_free" if action == "oom" else "addr"] = addr
    made.update(size=size, stream=stream, time_us=Clock.now)
    made.update(more)
    return made


def freed(addr, size, stream=0, **more):
    return [entry("free_requested", addr, size, stream, **more),
            entry("free_completed", addr, size, stream, **more)]


def block(size, requested=None, state=None):
    state = state or ("inactive" if requested is None else "active_allocated")
    return {"size": size, "requested_size": requested or 0, "state": state, "frames": []}


def segment(address, blocks, kind="large", stream=0, device=0, expandable=False, pool=(0, 0)):
    at = address
    for b in blocks:
        b["address"] = at
        at += b["size"]
    return {"device": device, "address": address, "total_size": at - address,
            "allocated_size": 0, "active_size": 0, "requested_size": 0, "stream": stream,
            "segment_type": kind, "segment_pool_id": pool, "is_expandable": expandable,
            "frames": [], "blocks": blocks}


def settings(**more):
    made = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
            "garbage_collection_threshold": 0.0, "expandable_segments": False,
            "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}}
    made.update(more)
    return made


def snapshot(segments, *traces, **more):
    made = {"segments": segments, "device_traces": list(traces), "allocator_settings": settings()}
    made.update(more)
    return made


def late():
    """History began late: one block stays, one is freed, one waits for a stream, one is unsplit."""
    end = [segment(A, [block(512, 100), block(512), block(2 * MIB - 1024)], "small"),
           segment(A + 2 * MIB, [block(20 * MIB)])]
    trace = [entry("free_completed", A + 512, 300)]
    trace += freed(A + 2 * MIB, 19 * MIB + 5)
    return snapshot(end, trace)


def late_sizes():
    """Blocks from before the history that were freed: behind the first a request shows that it kept a remainder
    of 960 KiB, behind the second that it kept none; of the third nothing is known."""
    more = 960 << 10
    b = A + 64 * MIB
    c = b + 64 * MIB
    end = [segment(A, [block(4 * MIB + more), block(8 * MIB, 8 * MIB), block(52 * MIB - more)]),
           segment(b, [block(4 * MIB), block(2 * MIB, 2 * MIB), block(58 * MIB, 58 * MIB)]),
           segment(c, [block(64 * MIB)])]
    trace = [entry("alloc", A + 4 * MIB + more, 8 * MIB), entry("alloc", b + 4 * MIB, 2 * MIB)]
    trace += freed(A, 4 * MIB) + freed(b, 4 * MIB) + freed(c, 64 * MIB - 700000)
    return snapshot(end, trace)


def deferred():
    """A free that completes later, another that never does."""
    end = [segment(A, [block(1024, 1000, "active_pending_free"), block(2 * MIB - 1024)], "small")]
    trace = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 1000),
             entry("alloc", A + 1024, 2000), entry("free_requested", A + 1024, 2000),
             entry("alloc", A + 4096, 7), entry("free_completed", A + 1024, 2000)]
    trace += freed(A + 4096, 7) + [entry("free_requested", A, 1000)]
    return snapshot(end, trace)


def expandable():
    """A range grows, loses its middle, and the rest survives in two pieces."""
    page = 20 * MIB
    end = [segment(E, [block(page, page)], expandable=True),
           segment(E + 2 * page, [block(page, page - 3)], expandable=True)]
    trace = [entry("segment_map", E, page), entry("alloc", E, page),
             entry("segment_map", E + page, 2 * page), entry("alloc", E + page, page),
             entry("alloc", E + 2 * page, page - 3)]
    trace += freed(E + page, page) + [entry("segment_unmap", E + page, page)]
    return snapshot(end, trace)


def oom():
    """A request that finds no memory even after everything cached was given back."""
    end = [segment(A, [block(40 * MIB, 40 * MIB)])]
    trace = [entry("segment_alloc", A, 40 * MIB), entry("alloc", A, 40 * MIB),
             entry("segment_alloc", A + 40 * MIB, 20 * MIB), entry("alloc", A + 40 * MIB, 9 * MIB)]
    trace += freed(A + 40 * MIB, 9 * MIB)
    trace += [entry("segment_free", A + 40 * MIB, 20 * MIB), entry("oom", 30 * MIB, 64 * MIB),
              entry("oom", 30 * MIB, 3 << 50)]
    return snapshot(end, trace)


def empty_cache():
    """Memory given back: for no request; though there was room; though it would have served; by a stack
    that says so; and, as it seems, to make room."""
    stack = [{"name": "empty_cache", "filename": "memory.py", "line": 7}]
    trace = []

    def whole(addr, size):
        return [entry("segment_alloc", addr, size), entry("alloc", addr, size)]

    trace += whole(A, 128 * MIB) + freed(A, 128 * MIB)
    trace += [entry("segment_free", A, 128 * MIB)]
    trace += [entry("snapshot", 0, 0)]
    trace += whole(A + 64 * MIB, 30 * MIB) + freed(A + 64 * MIB, 30 * MIB)
    trace += [entry("segment_free", A + 64 * MIB, 30 * MIB)]
    trace += whole(A + 100 * MIB, 70 * MIB) + freed(A + 100 * MIB, 70 * MIB)
    trace += [entry("segment_free", A + 100 * MIB, 70 * MIB)]
    trace += whole(A + 200 * MIB, 60 * MIB) + freed(A + 200 * MIB, 60 * MIB)
    trace += [entry("segment_free", A + 200 * MIB, 60 * MIB, frames=stack)]
    trace += whole(A + 300 * MIB, 80 * MIB) + freed(A + 300 * MIB, 80 * MIB)
    trace += [entry("segment_free", A + 300 * MIB, 80 * MIB)]
    trace += whole(A + 400 * MIB, 90 * MIB)
    return snapshot([segment(A + 400 * MIB, [block(90 * MIB, 90 * MIB)])], trace)


def empty_with_gc():
    """With garbage collection, memory given back below its share of what was ever held; small segments, which
    it does not touch; and large ones above the share, as it would."""
    trace = []

    def whole(addr, size):
        return [entry("segment_alloc", addr, size), entry("alloc", addr, size)]

    trace += whole(A, 300 * MIB) + freed(A, 300 * MIB) + [entry("segment_free", A, 300 * MIB), entry("snapshot", 0, 0)]
    trace += whole(A + 300 * MIB, 100 * MIB) + freed(A + 300 * MIB, 100 * MIB)
    trace += [entry("segment_free", A + 300 * MIB, 100 * MIB)]
    trace += whole(A + 400 * MIB, 160 * MIB)
    trace += [entry("segment_alloc", A + 600 * MIB, 2 * MIB), entry("alloc", A + 600 * MIB, 512)]
    trace += freed(A + 600 * MIB, 512)
    trace += [entry("segment_free", A + 600 * MIB, 2 * MIB)]
    trace += whole(A + 700 * MIB, 30 * MIB) + freed(A + 700 * MIB, 30 * MIB)
    trace += [entry("segment_free", A + 700 * MIB, 30 * MIB)]
    trace += whole(A + 800 * MIB, 40 * MIB)
    end = [segment(A + 400 * MIB, [block(160 * MIB, 160 * MIB)]), segment(A + 800 * MIB, [block(40 * MIB, 40 * MIB)])]
    return snapshot(end, trace, allocator_settings=settings(garbage_collection_threshold=0.5))


def empty_waited():
    """Given back after a wait for a stream: with a free part that would have served the next request, and
    without one."""
    at = A + 100 * MIB
    trace = [entry("segment_alloc", A, 60 * MIB), entry("alloc", A, 20 * MIB), entry("alloc", A + 20 * MIB, 40 * MIB)]
    trace += [entry("free_requested", A + 20 * MIB, 40 * MIB)] + freed(A, 20 * MIB)
    trace += [entry("free_completed", A + 20 * MIB, 40 * MIB), entry("segment_free", A, 60 * MIB)]
    trace += [entry("segment_alloc", at, 70 * MIB), entry("alloc", at, 15 * MIB), entry("alloc", at + 15 * MIB, 55 * MIB)]
    trace += [entry("free_requested", at, 15 * MIB)] + freed(at + 15 * MIB, 55 * MIB)
    trace += [entry("free_completed", at, 15 * MIB), entry("segment_free", at, 70 * MIB)]
    trace += [entry("segment_alloc", at + 100 * MIB, 16 * MIB), entry("alloc", at + 100 * MIB, 15 * MIB)]
    return snapshot([segment(at + 100 * MIB, [block(15 * MIB, 15 * MIB), block(MIB)])], trace)


def empty_oversize():
    """With max_split_size: given back in the order of sizes, and as a retry does, the largest first."""
    trace = []

    def whole(addr, size):
        return [entry("segment_alloc", addr, size), entry("alloc", addr, size)]

    trace += whole(A, 80 * MIB) + whole(A + 100 * MIB, 100 * MIB)
    trace += freed(A, 80 * MIB) + freed(A + 100 * MIB, 100 * MIB)
    trace += [entry("segment_free", A, 80 * MIB), entry("segment_free", A + 100 * MIB, 100 * MIB)]
    trace += whole(A + 200 * MIB, 130 * MIB) + whole(A + 400 * MIB, 140 * MIB)
    trace += freed(A + 400 * MIB, 140 * MIB) + freed(A + 200 * MIB, 130 * MIB)
    trace += [entry("segment_free", A + 400 * MIB, 140 * MIB), entry("segment_free", A + 200 * MIB, 130 * MIB)]
    trace += whole(A + 600 * MIB, 200 * MIB)
    return snapshot([segment(A + 600 * MIB, [block(200 * MIB, 200 * MIB)])], trace,
                    allocator_settings=settings(max_split_size=64 * MIB))


def pools():
    """Two private pools, one of which is given up; written by 2.12 or later."""
    Clock.now = T
    more = {"compile_context": "N/A", "user_metadata": ""}
    first = dict(more, pool_id=(0, 1))
    second = dict(more, pool_id=(2, 0))
    none = dict(more, pool_id=(0, 0))
    trace = [entry("segment_alloc", A, 20 * MIB, **first), entry("alloc", A, 2 * MIB, **first),
             entry("segment_alloc", A + 20 * MIB, 2 * MIB, 77, **second),
             entry("alloc", A + 20 * MIB, 512, 77, **second),
             entry("segment_alloc", A + 22 * MIB, 2 * MIB, **none),
             entry("alloc", A + 22 * MIB, 512, **dict(none, user_metadata="step 1"))]
    trace += freed(A, 2 * MIB, **first) + freed(A + 22 * MIB, 512, **none)
    trace += [entry("segment_free", A, 20 * MIB, **first),
              entry("segment_free", A + 22 * MIB, 2 * MIB, **none)]
    end = [segment(A + 20 * MIB, [block(512, 512), block(2 * MIB - 512)], "small", 77, pool=(2, 0))]
    return snapshot(end, trace, external_annotations=[], host_segments=[{}], host_traces=[[{"action": "alloc",
                    "addr": 1, "size": 2, "stream": 0, "time_us": 3}]])


def old_pools():
    """Before 2.12 only the final segments tell which pool an address belongs to."""
    trace = [entry("segment_alloc", A, 2 * MIB, 5), entry("alloc", A, 512, 5),
             entry("alloc", A + 512, 600, 5)] + freed(A + 512, 600, 5)
    end = [segment(A, [block(512, 512), block(2 * MIB - 512)], "small", 5, pool=(1, 0))]
    return snapshot(end, trace)


def restored():
    """A private pool is brought back to a layout that it had before, as cudagraph trees do: segment by segment, not in
    the order of addresses, every block, those that were free too; the requests after that look for their places."""
    b = A + 2 * MIB
    trace = [entry("segment_alloc", A, 2 * MIB, 7), entry("alloc", A, 1000, 7), entry("alloc", A + 1024, MIB, 7),
             entry("segment_alloc", b, 2 * MIB, 7), entry("alloc", b, MIB, 7)]
    trace += freed(A, 1000, 7) + freed(A + 1024, MIB, 7) + freed(b, MIB, 7)
    trace += [entry("alloc", b, MIB, 7), entry("alloc", b + MIB, MIB, 7)] + freed(b + MIB, MIB, 7)
    trace += [entry("alloc", A, 1024, 7), entry("alloc", A + 1024, MIB, 7), entry("alloc", A + 1024 + MIB, MIB - 1024, 7)]
    trace += freed(A, 1024, 7) + freed(A + 1024 + MIB, MIB - 1024, 7)
    trace += [entry("alloc", A, 600, 7), entry("alloc", A + 1024 + MIB, 2048, 7)]
    end = [segment(A, [block(1024, 600), block(MIB, MIB), block(2048, 2048), block(MIB - 3072)], "small", 7, pool=(0, 1)),
           segment(b, [block(MIB, MIB), block(MIB)], "small", 7, pool=(0, 1))]
    return snapshot(end, trace)


def gone_pool():
    """Before 2.12, a private pool that is gone: a block of the default pool would have served its
    request, and the other way round."""
    b = A + 20 * MIB
    trace = [entry("segment_alloc", A, 20 * MIB), entry("alloc", A, 2 * MIB),
             entry("alloc", A + 2 * MIB, 2 * MIB), *freed(A + 2 * MIB, 2 * MIB),
             entry("segment_alloc", b, 20 * MIB), entry("alloc", b, 4 * MIB),
             entry("alloc", b + 4 * MIB, 2 * MIB), *freed(b, 4 * MIB),
             entry("alloc", A + 2 * MIB, 3 * MIB), *freed(b + 4 * MIB, 2 * MIB),
             entry("segment_free", b, 20 * MIB)]
    end = [segment(A, [block(2 * MIB, 2 * MIB), block(3 * MIB, 3 * MIB), block(15 * MIB)])]
    return snapshot(end, trace)


def gone_pool_rounded(divisions=2):
    """A hole of 4.5 MiB does not serve 4.25 MiB: they are rounded to 6."""
    b = A + 20 * MIB
    trace = [entry("segment_alloc", A, 20 * MIB), entry("alloc", A, 8 * MIB),
             entry("alloc", A + 8 * MIB, 6 * MIB), entry("alloc", A + 14 * MIB, 3 * MIB // 2),
             entry("segment_alloc", b, 20 * MIB), entry("alloc", b, 17 * MIB // 4),
             *freed(b, 17 * MIB // 4), entry("segment_free", b, 20 * MIB)]
    end = [segment(A, [block(8 * MIB, 8 * MIB), block(6 * MIB, 6 * MIB), block(3 * MIB // 2, 3 * MIB // 2),
                       block(9 * MIB // 2)])]
    rounding = {str(1 << i): divisions if i == 2 else 0 for i in range(16)}
    return snapshot(end, trace, allocator_settings=settings(roundup_power2_divisions=rounding))


def gone_pool_unrounded():
    """The same hole, without rounding."""
    return gone_pool_rounded(0)


def gone_pool_late():
    """What would have served a request was only set free when it had been looked for: by the
    synchronisation before memory was given back."""
    b = A + 20 * MIB
    c = A + 40 * MIB
    trace = [entry("segment_alloc", A, 20 * MIB), entry("alloc", A, 9 * MIB),
             entry("segment_alloc", b, 20 * MIB), entry("alloc", b, 20 * MIB),
             *freed(b, 20 * MIB), entry("alloc", b, 19 * MIB),
             entry("alloc", A + 9 * MIB, 11 * MIB), *freed(b, 19 * MIB),
             entry("free_requested", A + 9 * MIB, 11 * MIB),
             entry("alloc", b, 20 * MIB),
             entry("free_completed", A + 9 * MIB, 11 * MIB),
             entry("segment_alloc", c, 20 * MIB), entry("alloc", c, 5 * MIB),
             *freed(c, 5 * MIB), entry("segment_free", c, 20 * MIB)]
    end = [segment(A, [block(9 * MIB, 9 * MIB), block(11 * MIB)]), segment(b, [block(20 * MIB, 20 * MIB)])]
    return snapshot(end, trace)


def gone_stream():
    """A graph captured on a stream of its own: its segments were given back behind the small ones of
    the default pool."""
    b = A + 2 * MIB
    c = A + 4 * MIB
    d = A + 24 * MIB
    trace = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 512),
             entry("segment_alloc", b, 2 * MIB, 7), entry("alloc", b, 512, 7),
             entry("segment_alloc", c, 20 * MIB, 7), entry("alloc", c, 4 * MIB, 7),
             entry("segment_alloc", d, 20 * MIB), entry("alloc", d, 4 * MIB),
             *freed(A, 512), *freed(b, 512, 7), *freed(c, 4 * MIB, 7), *freed(d, 4 * MIB),
             entry("segment_free", d, 20 * MIB), entry("segment_free", A, 2 * MIB),
             entry("segment_free", b, 2 * MIB, 7), entry("segment_free", c, 20 * MIB, 7)]
    return snapshot([], trace)


def gone_range():
    """A second range on the same stream, while the first had room."""
    page = 20 * MIB
    far = E + (1 << 36)
    trace = [entry("segment_map", E, page), entry("alloc", E, page),
             entry("segment_map", far, page), entry("alloc", far, page),
             entry("segment_map", E + page, page), entry("alloc", E + page, page),
             *freed(far, page), entry("segment_unmap", far, page)]
    return snapshot([segment(E, [block(page, page), block(page, page)], expandable=True)], trace)


def torch_2_0():
    """The format of 2.0: no addresses of blocks, histories, no frees of blocks from before."""
    end = [segment(A, [block(512, 1), block(512), block(2 * MIB - 1024)], "small")]
    del end[0]["is_expandable"], end[0]["segment_pool_id"]
    for b in end[0]["blocks"]:
        del b["address"], b["requested_size"], b["frames"]
        b["history"] = [{"addr": A, "real_size": 100, "frames": []}]
    trace = [entry("alloc", A + 512, 200)] + freed(A + 512, 200)
    for e in trace:
        del e["time_us"]
        e["cpp_frames"] = ["c10::malloc"]
    return {"segments": end, "device_traces": [trace]}


def stacks():
    """Stacks and annotations."""
    main = {"name": "main", "filename": "train.py", "line": 3}
    trace = [entry("segment_alloc", A, 2 * MIB, frames=[main]),
             entry("alloc", A, 100, frames=[{"name": "linear", "filename": "nn.py", "line": 9}, main],
                   compile_context="graph 0")]
    marks = [{"device": 0, "time_us": Clock.now - 5, "name": "step", "stage": "START"},
             {"device": 0, "time_us": Clock.now + 5, "name": "step", "stage": "END"},
             {"device": 0, "time_us": Clock.now + 6, "name": "bad \udcff name"}]
    trace += freed(A, 100, frames=[main])
    return snapshot([segment(A, [block(2 * MIB)], "small")], trace, external_annotations=marks)


def backward():
    """Requests of the backward pass: with the lines of the forward pass in both orders, and without."""
    engine = [{"name": "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)",
               "filename": "??", "line": 0},
              {"name": "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)",
               "filename": "??", "line": 0}]
    outer = '  File "/home/me/train.py", line 3, in <module>\n    main()\n'
    inner = '  File "/home/me/model.py", line 12, in forward\n    y = x @ w\n'
    kernel = '  File "??", line 0, in at::_ops::mm::call'
    trace = [entry("segment_alloc", A, 2 * MIB),
             entry("alloc", A, 512, frames=engine, forward_frames=[outer, inner]),
             entry("alloc", A + 512, 512, frames=engine, forward_frames=[kernel, inner, outer]),
             entry("alloc", A + 1024, 512, frames=engine),
             entry("alloc", A + 1536, 512, frames=engine[1:], forward_frames=["unreadable", 7])]
    return snapshot([segment(A, [block(512, 512) for _ in range(4)] +
                             [block(2 * MIB - 2048)], "small")], trace)


def two_devices():
    """Two devices, keys in another order, one annotated."""
    one = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 512)]
    two = [dict(reversed(list(entry("alloc", A + (1 << 40), 900, 3).items())))]
    end = [segment(A + (1 << 40), [block(1024, 900), block(2 * MIB - 1024)], "small", 3, device=1),
           segment(A, [block(512, 512), block(2 * MIB - 512)], "small")]
    return snapshot(end, one, two, external_annotations=[
        {"device": 1, "time_us": T, "name": "forward", "stage": "START"}])


def twice_freed():
    """Three frees of memory that is in use already."""
    trace = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 512), entry("free_requested", A, 512)]
    trace += [entry("free_completed", A, 512) for _ in range(4)]
    return snapshot([segment(A, [block(2 * MIB)], "small")], trace)


def no_history():
    """The memory at the end, and nothing of how it came to be."""
    return snapshot([segment(A, [block(512, 100), block(2 * MIB - 512)], "small")], [])


def broken():
    """Every expectation violated once."""
    trace = [entry("alloc", A + 4096, 10),                      # never freed, not there
             entry("free_completed", A, 512),                   # freed, then freed again
             *freed(A, 512),
             entry("free_requested", A + 8192, 10),             # never completed
             *freed(A + 100 * MIB, 10),                         # outside every segment
             entry("segment_alloc", A + 200 * MIB, 2 * MIB),    # not there
             entry("segment_free", A, 2 * MIB),                 # still there
             entry("segment_map", E, 2 * MIB),
             entry("segment_unmap", A, 2 * MIB),
             entry("wave", 1, 2),
             entry("alloc", A + 512, 11)]
    end = [segment(A, [block(512), block(512, 12), block(2 * MIB - 1024)], "small")]
    return snapshot(end, trace)


class PyTorchPickler:
    """Writes as PyTorch's own C++ pickler does: protocol 2, names given after the content."""

    def __init__(self):
        self.out = bytearray(b"\x80\x02")
        self.names = {}

    def name(self, key):
        number = len(self.names)
        self.names[key] = number
        self.out += b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)

    def recall(self, key):
        number = self.names[key]
        self.out += b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)

    def write(self, value):
        if isinstance(value, str):
            if value in self.names:
                return self.recall(value)
            raw = value.encode()
            self.out += b"X" + struct.pack("<I", len(raw)) + raw
            return self.name(value)
        if value is True or value is False:
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, int):
            if -(1 << 31) <= value < 1 << 31:
                self.out += b"J" + struct.pack("<i", value)
            else:
                self.out += b"\x8a\x08" + struct.pack("<q", value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, tuple):
            for item in value:
                self.write(item)
            self.out += b"\x86"
            self.name(("tuple", len(self.names)))
        elif isinstance(value, list):
            self.out += b"]("
            for item in value:
                self.write(item)
            self.out += b"e"
            self.name(("list", len(self.names)))
        elif isinstance(value, dict):
            self.out += b"}("
            for key, item in value.items():
                self.write(key)
                self.write(item)
            self.out += b"u"
            self.name(("dict", len(self.names)))


def write(name, value, protocol=4):
    with open(name + ".pickle", "wb") as out:
        pickle.dump(value, out, protocol=protocol)


def main():
    made = {f.__name__.replace("_", "-"): f for f in (late, late_sizes, deferred, expandable, oom, empty_cache, empty_with_gc,
                                                      empty_waited, empty_oversize, pools,
                                                      old_pools, gone_pool, gone_pool_rounded, gone_pool_unrounded,
                                                      gone_pool_late, gone_stream, gone_range, restored, torch_2_0, stacks, two_devices,
                                                      backward, twice_freed, no_history, broken)}
    for name, function in made.items():
        Clock.now = T
        write(name, function())
    for protocol in (2, 3, 5):
        Clock.now = T
        write("deferred-p%d" % protocol, deferred(), protocol)
    Clock.now = T
    pickler = PyTorchPickler()
    pickler.write(deferred())
    with open("deferred-cpp.pickle", "wb") as out:
        out.write(pickler.out + b".")
    Clock.now = T
    huge = two_devices()
    huge["allocator_settings"]["max_split_size"] = (1 << 64) - 1
    huge["device_traces"][0][0]["stream"] = huge["device_traces"][0][1]["stream"] = (1 << 63) + 5
    huge["segments"][1]["stream"] = (1 << 63) + 5
    write("unsigned", huge)


if __name__ == "__main__":
    main()
