"""Random request scripts for an allocator: what a program might ask for, in the text form of docs/oracle.md.

The same arguments always give the same script, whatever machine and Python 3: logs that others made of it can be compared
byte for byte. So the order of draws is part of the contract, also where another order would read better.
"""
import argparse
import random
import sys

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Streams are even numbers that no runtime gives out.
DEFAULT, SIDE, OTHER = 0, 4096, 8192
STREAMS = [DEFAULT, SIDE, OTHER, 12288, 16384]


class Script:
    """The requests so far, and what is live according to them."""

    def __init__(self, seed, length, capacity, split_limit_mib, empties_pools):
        self.random = random.Random(seed)
        self.length = length
        self.capacity = capacity
        self.split_limit_mib = split_limit_mib
        self.lines = []
        self.count = 0      # of allocations: the next id
        self.requested = {} # bytes of each live id
        self.bytes = 0      # their sum
        self.live = []      # ids that profiles free at will
        self.place = {}     # of an id in live
        # With expandable segments the library miscounts the segments of a private pool that is released while blocks of it
        # live, and then crashes or loops: such scripts free these blocks first.
        self.empties_pools = empties_pools
        self.pool = None    # (name, stream) that new allocations go to
        self.pool_of = {}
        # What was used on another stream inside an open scope is freed when the scope ends. Since 2.9 the library keeps such
        # blocks in a table ordered by heap address, so with two of them their order is that of chance: there is at most one.
        self.in_scope = False
        self.recorded = set()
        self.has_deferred = False

    def is_full(self):
        return len(self.lines) >= self.length

    def add(self, line):
        self.lines.append(line)

    def allocate(self, size, stream=DEFAULT, is_loose=True):
        """is_loose: free_any and free_recent may pick it."""
        number = self.count
        self.count += 1
        self.add(f"a {number} {size} {stream}")
        self.requested[number] = size
        if self.pool and self.pool[1] in ("*", stream):
            self.pool_of[number] = self.pool[0]
        if is_loose:
            self.loosen(number)
        self.bytes += size
        return number

    def loosen(self, number):
        self.place[number] = len(self.live)
        self.live.append(number)

    def free(self, number):
        if self.in_scope and number in self.recorded:
            if self.has_deferred:
                return
            self.has_deferred = True
        self.add(f"f {number}")
        self.recorded.discard(number)
        self.pool_of.pop(number, None)
        self.bytes -= self.requested.pop(number)
        if number in self.place:
            place, last = self.place.pop(number), self.live.pop()
            if last != number:
                self.live[place] = last
                self.place[last] = place

    def free_any(self):
        if self.live:
            self.free(self.random.choice(self.live))

    def free_recent(self):
        if self.live:
            self.free(self.live[-1 - min(int(self.random.expovariate(0.3)), len(self.live) - 1)])

    def record_stream(self, number, stream):
        """Inside a scope the block is freed at once: the library remembers uses recorded there by the heap address of its
        own record of the block, and does not forget them when the block is freed later."""
        if self.in_scope and (self.has_deferred or number in self.recorded):
            return
        self.add(f"r {number} {stream}")
        self.recorded.add(number)
        if self.in_scope:
            self.free(number)

    def open_scope(self, is_open):
        self.in_scope = is_open
        self.has_deferred = False

    def clear_pool(self, name):
        if self.empties_pools:
            for number in sorted(n for n, pool in self.pool_of.items() if pool == name):
                self.free(number)


class Sizes:
    """Distributions of request sizes, in bytes."""

    def __init__(self, script):
        self.random = script.random
        self.limit_mib = script.split_limit_mib

    def power(self, low, high, exponent=0.6):
        draw = self.random.random()
        return int((low**-exponent - draw * (low**-exponent - high**-exponent)) ** (-1 / exponent))

    def log_uniform(self, low, high):
        return int(low * (high / low) ** self.random.random())

    def boundary(self):
        """At, just below or just above a size at which the allocator changes its mind."""
        draw = self.random
        places = [512, KIB, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 40 * MIB, 4 * MIB, 6 * MIB, 64 * MIB, 128 * MIB, 256 * MIB,
                  3 * MIB, 19 * MIB, 21 * MIB, 1536 * KIB, 12 * MIB, 11 * MIB, 30 * MIB, 22 * MIB]
        if self.limit_mib:
            limit = self.limit_mib * MIB
            places += [limit, limit, limit + 20 * MIB, limit - MIB, limit + MIB, 2 * limit, limit // 2, limit + 2 * MIB,
                       limit + 19 * MIB]
        place = draw.choice(places)
        offset = draw.choice([0, 0, 0, 1, -1, 511, 512, -512, 513, -513, draw.randint(-4096, 4096),
                              draw.randint(-KIB * 900, KIB * 900)])
        return max(1, place + offset)

    def mixed(self):
        draw = self.random.random()
        if draw < 0.45:
            return self.random.randint(1, 16 * KIB)
        if draw < 0.6:
            return self.log_uniform(16 * KIB, MIB)
        if draw < 0.85:
            return self.log_uniform(MIB, 12 * MIB)
        if draw < 0.97:
            return self.log_uniform(12 * MIB, 80 * MIB)
        return self.log_uniform(80 * MIB, 300 * MIB)

    def large(self):
        return self.random.choice([
            self.log_uniform(MIB, 10 * MIB), self.log_uniform(10 * MIB, 60 * MIB),
            self.log_uniform(10 * MIB, 60 * MIB) // MIB * MIB, self.log_uniform(60 * MIB, 250 * MIB),
            self.random.choice([10, 20, 32, 40, 48, 64, 80, 96, 128]) * MIB])

    def small(self):
        return self.random.randint(1, 4 * KIB)


def churn(script, size, live_count, live_bytes, streams=(DEFAULT,), event=None):
    """Allocations and frees at random around a count and a sum of bytes. event: something else, when it returns true."""
    draw = script.random
    while not script.is_full():
        if event and event():
            continue
        grows = len(script.live) < live_count and script.bytes < live_bytes
        if draw.random() < (0.56 if grows else 0.34) or not script.live:
            script.allocate(size(), draw.choice(streams))
        elif draw.random() < 0.4:
            script.free_recent()
        else:
            script.free_any()
        if script.bytes > live_bytes * 1.15:
            for _ in range(draw.randint(1, 6)):
                script.free_any()
        if draw.random() < 0.0004:  # nearly everything goes
            for _ in range(int(len(script.live) * draw.uniform(0.5, 1))):
                if script.is_full():
                    break
                script.free_any()
        if draw.random() < 0.0008:
            script.add("rp")


# ---- profiles: each takes the script and the sizes

def tiny(script, sizes):
    draw = script.random
    churn(script,
          lambda: draw.choice([draw.randint(1, 4 * KIB), draw.randint(1, 600), sizes.log_uniform(1, 256 * KIB)]),
          draw.choice([300, 3000, 20000]), 200 * MIB)


def train(script, sizes):
    """Layers forward and backward, gradients, optimizer state from the first step on."""
    draw = script.random
    layers = draw.randint(4, 24)
    weights = [sizes.power(4 * KIB, 64 * MIB, 0.3) for _ in range(layers)]
    activations = [sizes.log_uniform(64 * KIB, 48 * MIB) for _ in range(layers)]
    scale = script.capacity * 0.55 / (4 * sum(weights) + 2 * sum(activations))
    if scale < 1:
        weights = [max(512, int(size * scale)) for size in weights]
        activations = [max(512, int(size * scale)) for size in activations]

    def held(size):
        return script.allocate(size, is_loose=False)

    for size in weights:
        held(size)
        held(max(4, size // 1024))
    is_first = True
    while not script.is_full():
        stretch = draw.choice([1.0, 1.0, draw.uniform(0.6, 1.05)])
        saved = []
        for layer in range(layers):
            size = max(1, int(activations[layer] * stretch))
            scratch = [held(max(1, size // draw.choice([1, 2, 4]))) for _ in range(draw.randint(0, 2))]
            saved.append([held(size), held(max(1, size // 8))])
            for number in scratch:
                script.free(number)
            if script.is_full():
                return
        loss = held(4)
        gradients = []
        for layer in reversed(range(layers)):
            size = max(1, int(activations[layer] * stretch))
            incoming = held(size)
            scratch = held(max(1, size // 2))
            gradients.append(held(weights[layer]))
            for number in reversed(saved[layer]):
                script.free(number)
            script.free(scratch)
            script.free(incoming)
        script.free(loss)
        for layer in reversed(range(layers)):
            if is_first:
                held(weights[layer])
                held(weights[layer])
            script.free(held(weights[layer]))
        for number in gradients:
            script.free(number)
        is_first = False
        if draw.random() < 0.03:
            script.add("e")
        if draw.random() < 0.1:
            script.add("rp")


def powerlaw(script, sizes):
    churn(script, lambda: sizes.power(512, GIB, 0.35), 400, script.capacity * 0.6)


def one_of(script, chances):
    """An event for churn: one draw against rising chances; what belongs to the first that is higher is done."""
    def event():
        draw = script.random.random()
        for chance, act in chances:
            if draw < chance:
                return act()
        return False
    return event


def adding(script, line):
    def act():
        script.add(line() if callable(line) else line)
        return True
    return act


def bounds(script, sizes):
    churn(script, sizes.boundary, 60, script.capacity * 0.5, event=one_of(script, [(0.002, adding(script, "e"))]))


def streams(script, sizes):
    draw = script.random
    used = STREAMS[:draw.randint(2, 5)]

    def event():
        chance = draw.random()
        if chance < 0.12 and script.live:
            number = draw.choice(script.live[-20:])
            for stream in draw.sample(used, draw.choice([1, 1, 1, 2, min(3, len(used))])):
                script.add(f"r {number} {stream}")
            return True
        if chance < 0.17:
            script.add(f"c {draw.choice(used)}")
            return True
        if chance < 0.1705:
            script.add("e")
            return True
        return False

    churn(script, sizes.mixed, 150, script.capacity * draw.uniform(0.3, 0.8), used, event)


def tight(script, sizes):
    draw = script.random
    size = draw.choice([sizes.mixed, sizes.large, lambda: sizes.power(512, 200 * MIB, 0.2)])
    used = draw.choice([[DEFAULT], [DEFAULT], [DEFAULT, SIDE]])
    churn(script, size, 5000, script.capacity * draw.uniform(0.7, 1.05), used)


def empty(script, sizes):
    churn(script, sizes.mixed, 120, script.capacity * 0.5, [DEFAULT, DEFAULT, SIDE],
          one_of(script, [(0.02, adding(script, "e"))]))


def fraction(script, sizes):
    draw = script.random
    change = adding(
        script, lambda: f"F {draw.choice([0.25, 0.5, 0.6, 0.75, 0.9, 1.0, round(draw.uniform(0.2, 1), 3)])}")
    script.add("F 0.7")
    churn(script, draw.choice([sizes.mixed, sizes.large]), 300, script.capacity * 0.6,
          event=one_of(script, [(0.004, change), (0.005, adding(script, "e"))]))


def gc(script, sizes):
    """Cached large blocks of several ages under a limit, for the garbage collection of the library."""
    draw = script.random
    script.add(f"F {draw.choice([0.5, 0.8, 0.9, 1.0])}")
    while not script.is_full():
        phase = [sizes.large() for _ in range(draw.randint(2, 8))]
        for _ in range(draw.randint(3, 20)):
            taken = [script.allocate(size + draw.choice([0, 0, draw.randint(0, 2 * MIB)]),
                                     draw.choice([DEFAULT, DEFAULT, DEFAULT, SIDE]), is_loose=False) for size in phase]
            little = [script.allocate(draw.randint(1, 64 * KIB), is_loose=False) for _ in range(draw.randint(0, 3))]
            draw.shuffle(taken)
            for number in taken + little:
                if draw.random() < 0.95:
                    script.free(number)
                else:
                    script.loosen(number)
            while script.bytes > script.capacity * 0.3:
                script.free_any()
            if script.is_full():
                return
        if draw.random() < 0.05:
            script.add("e")


def oversize(script, sizes):
    """Around max_split_size, near the capacity."""
    draw = script.random
    limit = (script.split_limit_mib or 64) * MIB

    def size():
        return draw.choice([draw.randint(limit // 2, 3 * limit), limit + draw.randint(-2 * MIB, 22 * MIB), limit,
                            sizes.boundary(), sizes.mixed(), draw.randint(limit, 2 * limit) // MIB * MIB])

    churn(script, size, 200, script.capacity * draw.uniform(0.5, 1.0), draw.choice([[DEFAULT], [DEFAULT, SIDE]]))


def twodev(script, sizes):
    draw = script.random
    current = 0

    def event():
        nonlocal current
        chance = draw.random()
        if chance < 0.1:
            current = 1 - current
            script.add(f"d {current}")
        elif chance < 0.11:
            script.add(f"F {draw.choice([0.4, 0.8, 1.0])}")
        elif chance < 0.113:
            script.add("e")
        elif chance < 0.15 and script.live:
            script.add(f"r {draw.choice(script.live)} {SIDE}")
        elif chance < 0.17:
            script.add(f"c {SIDE}")
        else:
            return False
        return True

    churn(script, sizes.mixed, 200, script.capacity * 0.9, [DEFAULT, DEFAULT, SIDE], event)


def graph(script, sizes):
    """Captures of graphs: a private pool that takes the requests of one stream."""
    draw = script.random
    pools = []
    next_pool = 1

    def work(count, stream, size):
        for _ in range(count):
            if draw.random() < 0.55 or not script.live:
                script.allocate(size(), stream if draw.random() < 0.85 else DEFAULT)
            elif draw.random() < 0.7:
                script.free_recent()
            else:
                script.free_any()
            if draw.random() < 0.02 and script.live:
                script.record_stream(draw.choice(script.live), draw.choice([DEFAULT, OTHER]))
            if draw.random() < 0.02:
                script.add(f"c {OTHER}")
            if script.bytes > script.capacity * 0.75:
                for _ in range(5):
                    script.free_any()

    while not script.is_full():
        work(draw.randint(10, 80), DEFAULT, sizes.mixed)
        if draw.random() < 0.3 and pools:
            name = draw.choice(pools)
        else:
            name = f"{draw.choice('gm')}{next_pool}"
            next_pool += 1
        pools.append(name)
        script.add(f"pb {name} {SIDE}")
        script.pool = (name, SIDE)
        script.add("k 1")
        script.open_scope(True)
        work(draw.randint(10, 60), SIDE,
             draw.choice([sizes.mixed, sizes.small, lambda: sizes.log_uniform(MIB, 12 * MIB)]))
        script.add("k 0")
        script.add(f"pe {name} {SIDE}")
        script.pool = None
        script.open_scope(False)
        work(draw.randint(5, 30), DEFAULT, sizes.mixed)
        if len(pools) > 3 or draw.random() < 0.3:
            name = pools.pop(draw.randrange(len(pools)))
            script.clear_pool(name)
            script.add(f"pr {name}")
        if draw.random() < 0.4:
            script.add("e")


def nested(script, sizes):
    """Two scopes open at once, over the same requests or not."""
    draw = script.random
    number = 1

    def work(frees):
        for _ in range(draw.randint(2, 15)):
            script.allocate(sizes.mixed(), draw.choice([DEFAULT, SIDE]))
            if frees and draw.random() < 0.5:
                script.free_any()

    while not script.is_full():
        outer, inner = f"m{number}", f"m{number + 1}"
        number += 2
        is_same = draw.random() < 0.5
        script.add(f"pb {outer} *")
        work(False)
        script.add(f"pb {inner} {'*' if is_same else SIDE}")
        work(True)
        script.add(f"pe {inner}")
        work(True)
        script.add(f"pe {outer}")
        for _ in range(len(script.live) * 3 // 4):
            script.free_any()
        script.add(f"pr {outer}")
        script.add(f"pr {inner}")
        if draw.random() < 0.5:
            script.add("e")
        work(False)


def mempool(script, sizes, uses_on_oom=False, forbids_splits=False):
    """torch.cuda.MemPool: made, used as a scope over every request, left, dropped."""
    draw = script.random
    pools, on_oom, next_pool = [], set(), 1
    kinds = [sizes.mixed, sizes.large, sizes.small]
    while not script.is_full():
        for _ in range(draw.randint(5, 50)):
            if draw.random() < 0.55 or not script.live:
                script.allocate(draw.choice(kinds)(), draw.choice([DEFAULT, DEFAULT, DEFAULT, SIDE]))
            else:
                script.free_any()
            if script.bytes > script.capacity * 0.8:
                for _ in range(4):
                    script.free_any()
        if len(pools) < 4 and draw.random() < 0.6:
            name = f"m{next_pool}"
            next_pool += 1
            pools.append(name)
            script.add(f"pc {name}")
            if uses_on_oom and draw.random() < 0.5:
                script.add(f"po {name}")
                on_oom.add(name)
            if forbids_splits and draw.random() < 0.5:
                script.add(f"pn {name}")
        if pools:
            name = draw.choice(pools)
            script.add(f"pb {name} *")
            script.pool = (name, "*")
            script.open_scope(True)
            size = draw.choice(kinds)
            for _ in range(draw.randint(2, 25)):
                if draw.random() < 0.6 or not script.live:
                    script.allocate(size(), draw.choice([DEFAULT, DEFAULT, DEFAULT, SIDE]))
                else:
                    script.free_recent()
                if draw.random() < 0.03 and script.live:
                    script.record_stream(draw.choice(script.live), OTHER)
                if draw.random() < 0.01:
                    script.add("e")
            script.add(f"pe {name}")
            script.pool = None
            script.add(f"pr {name}")
            script.open_scope(False)
            if draw.random() < 0.2:
                script.add(f"c {OTHER}")
            if draw.random() < 0.35:
                pools.remove(name)
                for _ in range(len(script.live) // 2):
                    script.free_any()
                script.clear_pool(name)
                if name in on_oom:
                    script.add(f"po {name} 0")
                script.add(f"pr {name}")
                script.add(f"e {name}")
        if draw.random() < 0.1:
            script.add("e")


def mempooloom(script, sizes):
    mempool(script, sizes, uses_on_oom=True)


def mempoolnosplit(script, sizes):
    mempool(script, sizes, uses_on_oom=True, forbids_splits=True)


def settings(script, sizes):
    """The settings change at run time: expandable segments and others side by side."""
    draw = script.random

    def event():
        if draw.random() < 0.006:
            chosen = draw.choice(["expandable_segments:True", "expandable_segments:False", "expandable_segments:True",
                                  "expandable_segments:False", "roundup_power2_divisions:4",
                                  "expandable_segments:False,roundup_power2_divisions:8"])
            script.add(f"set {chosen}")
            return True
        if draw.random() < 0.003:
            script.add("e")
            return True
        return False

    churn(script, draw.choice([sizes.mixed, sizes.large]), 150, script.capacity * draw.uniform(0.5, 0.95),
          [DEFAULT, DEFAULT, SIDE], event)


def zero(script, sizes):
    """Nothing, far too much, and everything at once."""
    draw = script.random
    used = STREAMS[:3]

    def size():
        chance = draw.random()
        if chance < 0.02:
            return 0
        if chance < 0.04:
            return draw.choice([script.capacity, script.capacity + 1, script.capacity * 4, 1 << 50])
        return draw.choice([sizes.mixed, sizes.large, sizes.boundary])()

    def event():
        chance = draw.random()
        if chance < 0.05 and script.live:
            script.add(f"r {draw.choice(script.live)} {draw.choice(used)}")
        elif chance < 0.07:
            script.add(f"c {draw.choice(used)}")
        elif chance < 0.073:
            script.add(draw.choice(["e", "rp", "ra", "F 0.9", "F 0.6"]))
        else:
            return False
        return True

    churn(script, size, 400, script.capacity * 0.9, used, event)


# name: (function, capacity in MiB)
PROFILES = {
    "tiny": (tiny, 256), "train": (train, 4096), "powerlaw": (powerlaw, 16384), "bounds": (bounds, 4096),
    "streams": (streams, 2048), "tight": (tight, 1024), "empty": (empty, 2048), "fraction": (fraction, 2048),
    "gc": (gc, 1024), "oversize": (oversize, 1536), "twodev": (twodev, 1024), "graph": (graph, 2048),
    "nested": (nested, 4096), "mempool": (mempool, 1536), "mempooloom": (mempooloom, 768),
    "mempoolnosplit": (mempoolnosplit, 1024), "settings": (settings, 1536), "zero": (zero, 1536),
}


def generate(profile, seed, length, capacity_mib=0, split_limit_mib=0, empties_pools=False):
    """The text of a script. capacity_mib 0: the profile's own."""
    function, own_capacity = PROFILES[profile]
    capacity = (capacity_mib or own_capacity) * MIB
    script = Script(f"{profile}/{seed}", length, capacity, split_limit_mib, empties_pools)
    function(script, Sizes(script))
    head = f"cap {capacity}\ndevices {2 if profile == 'twodev' else 1}\nprofile {profile}\nseed {seed}\n"
    return head + "\n".join(script.lines[:length]) + "\n"


def main():
    parser = argparse.ArgumentParser(description="A random request script on stdout.")
    parser.add_argument("profile", choices=sorted(PROFILES))
    parser.add_argument("seed", help="any text")
    parser.add_argument("--length", type=int, default=4000, help="requests")
    parser.add_argument("--capacity-mib", type=int, default=0)
    parser.add_argument("--split-limit-mib", type=int, default=0, help="the max_split_size_mb it is meant for")
    parser.add_argument("--empties-pools", action="store_true", help="free the blocks of a pool before its release")
    arguments = parser.parse_args()
    sys.stdout.write(generate(arguments.profile, arguments.seed, arguments.length, arguments.capacity_mib,
                              arguments.split_limit_mib, arguments.empties_pools))


if __name__ == "__main__":
    main()
