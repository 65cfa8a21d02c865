#!/usr/bin/env python3
"""Policies written in Python: python3 tests/python/test_policy.py (needs `make fraglab library` and a C compiler; no network)."""
import copy
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True
import fraglab  # noqa: E402

SAMPLES = ROOT / "traces/samples"
ALIGN = 2 << 20


class Cached(fraglab.Policy):
    """examples/my_policy.c in Python: whole segments, cached by exact size, the last freed first."""

    def __init__(self, device):
        super().__init__(device)
        self.cached = []
        self.bytes = {}

    def alloc(self, bytes, stream, pool):
        rounded = -(-bytes // ALIGN) * ALIGN
        for index in reversed(range(len(self.cached))):
            if self.bytes[self.cached[index]] == rounded:
                return self.cached.pop(index), rounded
        address = self.device.malloc(rounded)
        if address is None:
            self.empty_cache(None)
            address = self.device.malloc(rounded)
        if address is None:
            return None
        self.bytes[address] = rounded
        return address, rounded

    def free(self, address, stream):
        self.cached.append(address)

    def empty_cache(self, pool):
        if pool in (None, 0):
            self.device.synchronize()
            while self.cached:
                address = self.cached.pop()
                del self.bytes[address]
                self.device.free(address)


class FirstFit(fraglab.Policy):
    """First fit in one segment of the whole device: many blocks in a segment, with holes between them."""

    name = "first-fit-in-python"

    def __init__(self, device):
        super().__init__(device)
        self.holes = []
        self.blocks = {}

    def alloc(self, bytes, stream, pool):
        bytes = -(-bytes // 512) * 512
        if not self.blocks and not self.holes:
            whole = self.device.capacity or 64 << 30
            self.holes = [(self.device.malloc(whole), whole)]
        for index, (address, length) in enumerate(self.holes):
            if length >= bytes:
                self.holes[index:index + 1] = [(address + bytes, length - bytes)] if length > bytes else []
                self.blocks[address] = bytes
                return address, bytes
        return None

    def free(self, address, stream):
        self.holes = sorted([*self.holes, (address, self.blocks.pop(address))])
        joined = self.holes[:1]
        for start, length in self.holes[1:]:
            if sum(joined[-1]) == start:
                joined[-1] = joined[-1][0], joined[-1][1] + length
            else:
                joined.append((start, length))
        self.holes = joined


def answering(answer):
    """A policy that gives each request the same answer, after it has got a segment of 64 MiB."""

    class Answering(fraglab.Policy):
        def alloc(self, bytes, stream, pool):
            self.segment = getattr(self, "segment", None) or self.device.malloc("64MiB")
            return answer(self, bytes) if callable(answer) else answer

        def free(self, address, stream):
            pass

    return Answering


def two_blocks():
    trace = fraglab.Trace()
    trace.alloc("a", "1MiB")
    trace.alloc("b", "1MiB")
    trace.free("a")
    return trace.finish()


class Policies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.in_c = os.path.join(cls.folder.name, "my_policy.so")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-fPIC", "-shared", "-I.", "-o", cls.in_c, "examples/my_policy.c"], cwd=ROOT, check=True)

    def test_one_in_python_does_what_the_same_one_in_c_does(self):
        for sample, options in (("unet", {}), ("gpt-varlen-oom", {"capacity": "4GiB"}), ("prefetch-streams", {"fail_call": 20}), ("pr193400", {"capacity": "8GiB", "check_every": 100})):
            recording = fraglab.open(SAMPLES / f"{sample}.pickle.zst")
            mine, other = recording.run(Cached, **options), recording.run(self.in_c, **options)
            for part in ("peak", "final", "oom", "device_calls", "replay"):
                self.assertEqual(mine[part], other[part], (sample, part))
            self.assertEqual(mine.policy.name, "Cached")
            self.assertEqual(mine.timeline().placements.address.tolist(), other.timeline().placements.address.tolist())
        self.assertIsNotNone(fraglab.open(SAMPLES / "gpt-varlen-oom.pickle.zst").run(Cached, capacity="4GiB").oom)

    def test_blocks_inside_a_segment(self):
        recording = fraglab.open(SAMPLES / "pr193400.pickle.zst")
        result = recording.run(FirstFit, check_every=1, label="mine")
        self.assertEqual((result.policy.name, result.policy.label, result.device_calls.malloc), ("first-fit-in-python", "mine", 1))
        self.assertEqual(max(result.timeline().reserved_bytes), 64 << 30)
        layout = result.layout(result.peak.reserved_at_event)
        self.assertEqual(sum(layout._of(layout.BLOCK)) + sum(layout._of(layout.HOLE)), 64 << 30)
        least = recording.min_capacity(FirstFit)
        self.assertIsNone(recording.run(FirstFit, capacity=least.capacity_bytes).oom)
        self.assertIsNotNone(recording.run(FirstFit, capacity=least.capacity_bytes - ALIGN).oom)
        self.assertGreaterEqual(least.capacity_bytes, result.peak.requested_bytes)

    def test_an_answer_that_makes_no_sense_ends_the_run_with_a_sentence(self):
        for answer, sentence in (
            (lambda policy, bytes: policy.segment, "overlaps no live block"),
            (lambda policy, bytes: (policy.segment, bytes - 1), "at least the bytes of the request"),
            (lambda policy, bytes: policy.segment + (64 << 20) - 1, "inside a segment that it holds"),
            (0, "inside a segment that it holds"),
            (lambda policy, bytes: 512, "inside a segment that it holds"),
            (lambda policy, bytes: (policy.segment, 2**64 - 1), "inside a segment that it holds"),
            (lambda policy, bytes: policy.device.malloc(0), "1 to 2.56 - 1 bytes"),
            (lambda policy, bytes: policy.device.free(policy.segment + 1), "the address of a segment that it holds"),
            (lambda policy, bytes: (policy.device.free(policy.segment), policy.segment)[1], "inside a segment that it holds"),
        ):
            with self.assertRaisesRegex(fraglab.UsageError, f"^the run ended at event [01]: the policy Answering .*{sentence}") as caught:
                two_blocks().run(answering(answer))
            self.assertEqual(caught.exception.code, 2)

        def frees_what_is_live(policy, bytes):
            if hasattr(policy, "given"):
                policy.device.free(policy.segment)
            policy.given = True
            return policy.segment

        with self.assertRaisesRegex(fraglab.UsageError, "gives back the segment .*without live blocks"):
            two_blocks().run(answering(frees_what_is_live))
        self.assertIsNone(two_blocks().run(Cached).oom)

    def test_a_wrong_type_and_what_a_method_raises_come_through(self):
        for answer, expected in (("here", TypeError), (1.5, TypeError), ((1, 2, 3), TypeError), ((1, None), TypeError), (True, TypeError), (-1, fraglab.UsageError), (2**64, fraglab.UsageError)):
            with self.assertRaisesRegex(expected, "Answering.alloc returns"):
                two_blocks().run(answering(answer))
        for raised in (ZeroDivisionError("mine"), KeyboardInterrupt(), SystemExit(3), RecursionError()):
            def raises(policy, bytes, raised=raised):
                raise raised

            with self.assertRaises(type(raised)) as caught:
                two_blocks().run(answering(raises))
            self.assertIs(caught.exception, raised)

        class NoBegin(fraglab.Policy):
            def __init__(self, device):
                raise OSError("no begin")

        class NoFree(fraglab.Policy):
            def alloc(self, bytes, stream, pool):
                return self.device.malloc(bytes)

        class NoSense(Cached):
            def __init__(self, device):
                device.malloc(0)

        self.assertRaisesRegex(OSError, "no begin", two_blocks().run, NoBegin)
        self.assertRaisesRegex(fraglab.UsageError, "the policy NoSense asks the device for a segment .*expected 1 to", two_blocks().run, NoSense)
        self.assertRaises(NotImplementedError, two_blocks().run, NoFree)
        self.assertRaisesRegex(NotImplementedError, "Empty has no method alloc", two_blocks().run, type("Empty", (fraglab.Policy,), {}))

    def test_names(self):
        for name, expected in (("best-fit", fraglab.UsageError), ("a b", fraglab.UsageError), ("", fraglab.UsageError), ("x" * 64, fraglab.UsageError), ("a:b=c", fraglab.UsageError), (3, TypeError), ("a\0", fraglab.UsageError)):
            with self.assertRaisesRegex(expected, "name"):
                two_blocks().run(type("Named", (Cached,), {"name": name}))
        self.assertEqual(two_blocks().run(type("Named", (Cached,), {"name": "größe"})).policy.name, "größe")
        self.assertRaisesRegex(fraglab.UsageError, "derived from it", two_blocks().run, fraglab.Policy)
        self.assertRaisesRegex(TypeError, "policy is type; expected str", two_blocks().run, dict)
        self.assertRaisesRegex(TypeError, "policy is Cached; expected str", two_blocks().run, Cached(None))
        # Where a policy would be called from several threads, or asked for its options, only texts are taken.
        self.assertRaisesRegex(TypeError, "policy is type; expected str, as after --policy$", fraglab.tune, two_blocks(), Cached)
        self.assertRaisesRegex(TypeError, "policy is type", two_blocks().verify, Cached)

    def test_a_method_may_not_call_the_library(self):
        recording = two_blocks()

        def calls(policy, bytes):
            self.assertRaisesRegex(fraglab.UsageError, "let it return first", recording.run, "best-fit")
            gc.collect()  # handles that go meanwhile are given back later
            return None

        self.assertIsNotNone(recording.run(answering(calls)).oom)
        self.assertIsNone(recording.run("best-fit").oom)

    def test_a_device_is_there_for_the_methods_alone(self):
        kept = []

        class Keeps(Cached):
            def __init__(self, device):
                super().__init__(device)
                kept.append(device)
                self.most = device.capacity

            def alloc(self, bytes, stream, pool):
                elsewhere = threading.Thread(target=refuse, args=(kept[-1],))
                elsewhere.start()
                elsewhere.join()
                return super().alloc(bytes, stream, pool)

        uses = (lambda device: device.capacity, lambda device: device.malloc(1), lambda device: device.free(0), lambda device: device.synchronize())
        tried, refused = [], []

        def refuse(device):
            for use in uses:
                tried.append(device)
                try:
                    use(device)
                except fraglab.UsageError as error:
                    refused.append(str(error))

        two_blocks().run(Keeps).timeline()
        for device in [*kept, fraglab.Device(1)]:
            refuse(device)
        self.assertEqual(refused, ["device: it is used outside the methods of its policy; expected a call while one runs, in its thread"] * len(tried))
        self.assertGreater(len(kept), 1)
        self.assertRaisesRegex(TypeError, "cannot be copied", copy.copy, kept[0])

    def test_several_threads_at_once(self):
        recording = fraglab.open(SAMPLES / "pr193400.pickle.zst")
        expected = recording.run(Cached).to_json()
        rows = []

        def work():
            for _ in range(3):
                result = recording.run(Cached)
                result.timeline()
                rows.append(result.to_json())

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(rows, [expected] * 24)

    def test_nothing_is_kept(self):
        recording = two_blocks()

        def work():
            for _ in range(100):
                recording.run(Cached).timeline()
                self.assertRaises(fraglab.UsageError, recording.run, answering(lambda policy, bytes: 512))

        work()
        gc.collect()
        tracemalloc.start()
        work()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        self.assertLess(kept, 20000)


if __name__ == "__main__":
    unittest.main()
