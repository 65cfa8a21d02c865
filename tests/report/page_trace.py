"""Prints a text trace of a training-like program with so many events: page_trace.py EVENTS [SEED]

Weights and states stay (20,000 blocks of them, where there is room), activations live through a step and are freed in reverse, workspaces come and go; sizes
vary from step to step. Call sites are twelve frames deep."""
import random
import sys

SITES = 96


def print_stacks():
    for line in range(SITES):
        print(f'frame "forward" "/srv/train/model_{line % 7}.py" {10 + line}')
    for depth in range(11):
        print(f'frame "call_{depth}" "/usr/lib/python3/site-packages/torch/nn/module_{depth}.py" {100 + depth}')
    for site in range(SITES):
        print("site", site, *range(SITES, SITES + 11))


class Program:
    def __init__(self, events, seed):
        self.left = events
        self.chance = random.Random(seed)
        self.free_slots = []
        self.slot_count = 0

    def alloc(self, size, site):
        if self.free_slots:
            slot = self.free_slots.pop()
        else:
            slot = self.slot_count
            self.slot_count += 1
        print(f"alloc {slot} {size} site={site}")
        self.left -= 1
        return slot

    def free(self, slot):
        print("free", slot)
        self.free_slots.append(slot)
        self.left -= 1

    def step(self):
        scale = self.chance.uniform(0.5, 1.5)
        held = []
        for layer in range(300):
            for part in range(2):
                held.append(self.alloc(int(scale * self.chance.choice((4096, 65536, 1 << 20, 6 << 20))) + layer * 512 + 1, 1 + layer * 2 % (SITES - 8) + part))
            self.free(self.alloc(int(scale * 3 * (1 << 20)), 90 + layer % 6))
        for slot in reversed(held):
            self.free(slot)

    def run(self):
        for layer in range(min(20000, self.left // 5)):
            self.alloc(1 << (9 + layer % 11), layer % SITES + 1)
        while self.left > 2000:
            self.step()
        while self.left > 0:
            self.alloc(2 << 20, 1)


if __name__ == "__main__":
    print("# fraglab trace 1")
    print_stacks()
    Program(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1).run()
