#!/usr/bin/env python3
"""The package over the library of the tree: python3 tests/python/test_api.py (needs `make fraglab library`; no network).

FRAGLAB_LIBRARY names another libfraglab.so.0, such as one with the address sanitizer.
"""
import copy
import ctypes
import gc
import inspect
import json
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import unittest
import warnings
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True
import fraglab  # noqa: E402

SAMPLES = ROOT / "traces/samples"
OOM = SAMPLES / "gpt-varlen-oom.pickle.zst"
SMALL = SAMPLES / "pr193400.pickle.zst"
MODEL = ROOT / "traces/workloads/gpt2-small.yaml"
MESSAGE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.20 GiB is free. " \
    "Including non-PyTorch memory, this process has 22.40 GiB memory in use. Of the allocated memory 18.00 GiB is allocated by PyTorch, and 3.90 GiB is reserved by PyTorch but unallocated."


def command(*arguments, given=None):
    return subprocess.run([fraglab.find_bin(), *map(str, arguments)], input=given, capture_output=True, text=True, cwd=ROOT, check=False).stdout


def without_tool(line):
    """Two builds of one tree may be of different commits."""
    row = json.loads(line)
    row.pop("tool", None)
    return row


def snapshot():
    """A small one, as torch.cuda.memory._snapshot() returns it."""
    events = [{"action": "segment_alloc", "addr": 1 << 21, "size": 2 << 20, "stream": 0, "frames": []}, {"action": "alloc", "addr": 1 << 21, "size": 1000, "stream": 0, "frames": []}]
    block = {"address": 1 << 21, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []}
    rest = {"address": (1 << 21) + 1024, "size": (2 << 20) - 1024, "requested_size": 0, "state": "inactive", "frames": []}
    segment = {"device": 0, "address": 1 << 21, "total_size": 2 << 20, "allocated_size": 1024, "active_size": 1024, "requested_size": 1000, "stream": 0,
               "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": [block, rest]}
    return {"segments": [segment], "device_traces": [events], "allocator_settings": {}}


def small_trace():
    trace = fraglab.Trace("mine")
    trace.alloc("a", "10MiB")
    trace.alloc("b", 5 << 20, stream=1)
    trace.use("b", 0)
    trace.free("a")
    trace.sync()
    trace.alloc("a", "20MiB")
    trace.empty_cache()
    return trace.finish()


class Answers(unittest.TestCase):
    def test_a_size_is_told_by_its_name_each_time(self):
        """Texts of sizes are kept; their sentences are not mixed up."""
        recording = small_trace()
        for name in ("capacity", "used_by_others", "capacity"):
            with self.assertRaisesRegex(fraglab.UsageError, f"^{name}: '3 apples' is not a size"):
                recording.run(**{name: "3 apples"})
        self.assertEqual(recording.run(capacity="1.5 GiB").device.capacity_bytes, recording.run(capacity=3 << 29).device.capacity_bytes)

    def test_rows_are_those_of_the_command(self):
        for sample in ("gpt-varlen-oom", "pr193400", "model-parallel"):
            path = SAMPLES / f"{sample}.pickle.zst"
            with fraglab.open(path) as recording:
                rows = [recording.run("pytorch:recorded", trace=number).to_json() for number in range(len(recording))]
            said = command("run", path, "--policy", "pytorch:recorded", "--format", "jsonl").splitlines()
            self.assertEqual([without_tool(row) for row in rows], [without_tool(line) for line in said if '"label":"pytorch:recorded"' in line])

    def test_options_are_those_of_the_command(self):
        recording = fraglab.open(OOM)
        result = recording.run("best-fit", capacity="5GiB", skip_oom=True, label="mine", check_every=100)
        said = command("run", OOM, "--policy", "best-fit", "--capacity", "5GiB", "--on-oom", "skip", "--label", "mine", "--check", "100", "--format", "jsonl")
        self.assertEqual(without_tool(result.to_json()), without_tool(said.splitlines()[0]))
        self.assertGreater(result.replay.failed_requests, 0)
        self.assertIn("reserved_bytes.all.peak", json.dumps(recording.run("pytorch", stats_at="peak").memory_stats.to_dict()))
        self.assertIsNotNone(recording.run("pytorch", timing=True).replay.wall_ns)
        card = recording.run("pytorch", gpu="rtx4090")
        self.assertEqual(card.device.gpu, json.loads(command("run", OOM, "--policy", "pytorch", "--gpu", "rtx4090", "--format", "jsonl").splitlines()[0])["device"]["gpu"])

    def test_fields_by_attribute_by_path_and_as_a_dictionary_agree(self):
        result = fraglab.open(SMALL).run("pytorch")
        row = result.to_dict()
        self.assertEqual(result.peak.reserved_bytes, row["peak"]["reserved_bytes"])
        self.assertEqual(result["peak.reserved_bytes"], row["peak"]["reserved_bytes"])
        self.assertIsNone(result.oom)
        self.assertEqual(json.loads(result.to_json()), row)
        for wrong in (lambda: result.nothing, lambda: result.peak.nothing):
            self.assertRaisesRegex(AttributeError, "nothing", wrong)
        self.assertRaises(KeyError, lambda: result["peak.nothing"])
        self.assertEqual(pickle.loads(pickle.dumps(result)), result)

    def test_verify_min_capacity_explain_and_figures_are_those_of_the_command(self):
        recording = fraglab.open(OOM)
        self.assertEqual(without_tool(json.dumps(recording.verify().to_dict())), without_tool(command("verify", OOM, "--format", "jsonl").splitlines()[0]))
        least = recording.min_capacity("best-fit")
        self.assertIsNone(recording.run("best-fit", capacity=least.capacity_bytes).oom)
        self.assertEqual(recording.run("best-fit", capacity=least.capacity_bytes - (2 << 20)).oom.event, least.below_event)
        self.assertEqual([without_tool(json.dumps(row)) for row in recording.explain()], [without_tool(line) for line in command("explain", OOM, "--format", "jsonl").splitlines()])
        said = without_tool(command("explain", "-", "--format", "jsonl", given=MESSAGE))
        with self.assertRaisesRegex(fraglab.UsageError, "is a file, and would be read as a message; expected pathlib.Path"):
            fraglab.explain(str(OOM))
        with self.assertRaisesRegex(fraglab.UsageError, r"is a recording; expected fraglab\.open\(.*\)\.explain\(\)"):
            fraglab.explain(pathlib.Path(OOM))
        answer = fraglab.explain(MESSAGE)
        for row in (said, answer):
            row.pop("tool", None)
        self.assertEqual(answer["verdict"], "fragmentation")
        self.assertEqual(answer["figures"], said["figures"])
        self.assertEqual(fraglab.explain(RuntimeError(MESSAGE))["verdict"], "fragmentation")

    def test_a_diff_is_that_of_the_command(self):
        before, after = SAMPLES / "gpt-train.pickle.zst", SAMPLES / "gpt-varlen.pickle.zst"
        found = fraglab.diff(fraglab.open(before), fraglab.open(after), capacity="24GiB")
        self.assertEqual(found.to_dict(), json.loads(command("diff", before, after, "--capacity", "24GiB", "--format", "json")))
        ends = fraglab.diff(fraglab.open(before), fraglab.open(before), by="size", at="10", at_after="end", replays=False)
        self.assertEqual([side["moment_event"] for side in ends.sides][0], 10)
        self.assertIsNone(ends.sides[0]["policy"])
        self.assertRaisesRegex(fraglab.UsageError, "expected site, stack, purpose or size", fraglab.diff, fraglab.open(before), fraglab.open(after), by="line")

    def test_ranks_are_those_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, size in enumerate((4096, 4096, 9437184)):
                with open(os.path.join(folder, f"run.{number + 4}.fgt"), "w") as file:
                    file.write(f"# fraglab trace 2\nalloc 1 1048576\nalloc 2 {size}\nfree 2\n")
            said = json.loads(command("ranks", folder, "--stage", "4-5", "--gpu", "rtx4090", "--format", "jsonl"))
            self.assertEqual(fraglab.ranks(folder, stages=["4-5"], gpu="rtx4090").to_dict(), said)
            self.assertEqual([rank["rank"] for rank in said["ranks"]], [4, 5, 6])
            opened = [fraglab.open(os.path.join(folder, f"run.{number}.fgt")) for number in (6, 4)]
        self.assertEqual([rank["rank"] for rank in fraglab.ranks(opened, numbers=[0, 1]).ranks], [0, 1])
        with tempfile.TemporaryDirectory() as folder:  # one recording of several devices is a job too
            job = os.path.join(folder, "job.fgt")
            command("trace", "generate", "traces/workloads/gpt2-pipeline.yaml", "--steps", "1", "-o", job)
            self.assertEqual(fraglab.ranks(job).to_dict(), json.loads(command("ranks", job, "--format", "jsonl")))
        self.assertRaisesRegex(fraglab.UsageError, "one recording, of one device", fraglab.ranks, opened[:1])
        self.assertRaisesRegex(fraglab.UsageError, "numbers are of several recordings", fraglab.ranks, opened[:1], numbers=[0])
        self.assertRaisesRegex(fraglab.UsageError, "are both rank 2", fraglab.ranks, opened, numbers=[2, 2])
        self.assertRaisesRegex(fraglab.UsageError, "there are 1 for 2 recordings", fraglab.ranks, opened, numbers=[2])
        self.assertRaisesRegex(fraglab.UsageError, "^numbers: 4294967301 is out of range", fraglab.ranks, opened, numbers=[2**32 + 5, 1])

    def test_a_plan_is_that_of_the_command(self):
        model = os.path.join(ROOT, "tests", "workload", "models", "gpt2-tiny.json")
        said = json.loads(command("plan", model, "--gpu", "rtx3060", "--batch", "4", "--tokens", "64,32", "--format", "jsonl", "--keep-gradients", "true"))
        self.assertEqual(fraglab.plan(model, gpu="rtx3060", batch=4, tokens=[64, 32], keep_gradients=True), said)
        self.assertTrue(said["fits"])
        self.assertRaisesRegex(fraglab.UsageError, "'batc' is not a knob; did you mean batch", fraglab.plan, model, gpu="rtx3060", batc=4)
        self.assertRaisesRegex(fraglab.UsageError, "'0'; expected a whole number", fraglab.plan, model, gpu="rtx3060", batch=0)
        self.assertRaisesRegex(fraglab.UsageError, "did you mean rtx3060", fraglab.plan, model, gpu="rtx3061")

    def test_leaks_are_those_of_the_command(self):
        trace = fraglab.Trace()
        for step in range(12):
            trace.alloc(("batch", step), 3 << 20)
            trace.alloc(("kept", step), 256 << 10)
            trace.free(("batch", step))
            for part in range(12):
                trace.alloc(("part", part), 1000 + part)
                trace.free(("part", part))
        recording = trace.finish()
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "trace")
            recording.write(file)
            said = json.loads(command("leaks", file, "--capacity", "64MiB", "--format", "json"))
        found = recording.leaks(capacity="64MiB").to_dict()
        self.assertEqual({**found, "name": said["name"]}, said)
        self.assertEqual([leak["kind"] for leak in found["leaks"]], ["kept"])
        self.assertRaises(fraglab.InputError, small_trace().leaks)

    def test_policies_and_cards_are_those_of_the_command(self):
        self.assertEqual(fraglab.policies(), [json.loads(line) for line in command("policies", "--format", "jsonl").splitlines()])
        self.assertEqual([row["name"] for row in fraglab.policies("best-fit")], ["best-fit"])
        self.assertIn("rtx4090", json.dumps(fraglab.cards()))

    def test_memory_is_limited_where_files_can_be_made(self):
        self.assertRaises(fraglab.UsageError, fraglab.limit_memory, "much")
        with self.assertRaisesRegex(fraglab.SystemFailure, "/nowhere"):
            fraglab.limit_memory("1MiB", "/nowhere")
        fraglab.limit_memory("1GiB")

    def test_sweep_tune_and_compare(self):
        rows = fraglab.sweep({"traces": [str(SMALL)], "policies": ["best-fit", "pytorch"], "capacities": ["1GiB"]}, threads=2)
        self.assertEqual([row["policy"]["name"] for row in rows], ["best-fit", "pytorch"])
        recording = fraglab.open(SMALL)
        tuned = fraglab.tune(recording, "pytorch", settings=20)
        self.assertIsNone(recording.run(tuned.policy_text).oom)
        self.assertEqual(tuned.to_dict()["schema"].split("/")[0], "fraglab.tune")
        for other in (pickle.loads(pickle.dumps(tuned)), copy.copy(tuned), copy.deepcopy(tuned)):
            self.assertIs(type(other), fraglab.Tuned)
            self.assertEqual((other, other.policy_text, other.setting, other.memory_fraction), (tuned, tuned.policy_text, tuned.setting, tuned.memory_fraction))
        base, now = (recording.run(policy, label="x") for policy in ("best-fit", "pytorch"))
        self.assertFalse(fraglab.compare(base, base).has_finding)
        self.assertTrue(fraglab.compare(base, now, metrics=["peak.reserved_bytes"], fail_above="0%").has_finding or now.peak.reserved_bytes <= base.peak.reserved_bytes)

    def test_sources_path_bytes_and_dictionary_give_the_same(self):
        data = SMALL.read_bytes()
        digests = {fraglab.open(source).facts().digest for source in (str(SMALL), SMALL, data, bytearray(data), memoryview(data))}
        self.assertEqual(len(digests), 1)
        recording = fraglab.open(snapshot(), name="mine")
        self.assertEqual((recording.to_dict()["name"], recording.facts().request_count), ("mine", 1))
        self.assertEqual(recording.run("pytorch").peak.requested_bytes, 1000)

    def test_trace_is_built_written_cut_and_read_again(self):
        recording = small_trace()
        self.assertEqual(recording.facts().request_count, 3)
        self.assertEqual(fraglab.open(recording.to_bytes("fgt")).facts().digest, recording.facts().digest)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.fgt")
            recording.write(path)
            self.assertRaisesRegex(fraglab.UsageError, "exists", recording.write, path)
            recording.write(path, overwrite=True)
            self.assertEqual(fraglab.open(path).run("best-fit").peak, recording.run("best-fit").peak)
        self.assertLess(recording.cut(0, 2).facts().request_count, 3)

    def test_a_text_is_bytes_as_on_the_command_line(self):
        from fraglab._arguments import size

        for text, expected in (("4096", 4096), ("1.5GiB", 3 << 29), ("24 GiB", 24 << 30), ("2kB", 2000), ("0.1KiB", 102), ("unlimited", 2**64 - 1)):
            self.assertEqual(size(text, "x"), expected)
        for text in ("", "3G", "-1", "1.5", "1.GiB", "1e6", "4 ", "20000000000000000000", "1GiBB", "١"):
            self.assertRaises(fraglab.UsageError, size, text, "x")


class Arrays(unittest.TestCase):
    def test_columns_are_buffers_that_agree_with_the_row(self):
        result = fraglab.open(OOM).run("pytorch:recorded")
        timeline = result.timeline()
        for name in ("event", "requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes"):
            column = memoryview(getattr(timeline, name))
            self.assertEqual((column.format, column.shape, column.readonly), ("Q", (len(timeline),), True))
        self.assertEqual(max(timeline.reserved_bytes), result.peak.reserved_bytes)
        self.assertEqual(max(timeline.requested_bytes), result.trace.peak_requested_bytes)
        self.assertEqual(len(timeline.placements), result.trace.requests)
        self.assertEqual(timeline.segments.stream.format, "I")
        self.assertLessEqual(len(result.timeline(samples=10)), 40)

    def test_layout_at_the_peak_adds_up(self):
        result = fraglab.open(OOM).run("pytorch:recorded")
        layout = result.layout(result.peak.reserved_at_event)
        held = sum(row["bytes"] for row in layout.to_dicts() if row["kind"] == layout.SEGMENT)
        inside = sum(row["bytes"] for row in layout.to_dicts() if row["kind"] != layout.SEGMENT)
        self.assertEqual((held, inside), (result.peak.reserved_bytes, result.peak.reserved_bytes))

    def test_numpy_and_pandas_take_them_where_they_are(self):
        result = fraglab.open(OOM).run("pytorch")
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        self.assertEqual(int(numpy.asarray(result.timeline().reserved_bytes).max()), result.peak.reserved_bytes)

    def test_arrays_of_nothing_are_empty(self):
        timeline = fraglab.Trace().finish().run("best-fit").timeline()
        self.assertEqual((len(timeline.placements), timeline.placements.address.tolist()), (0, []))

    def test_html_is_a_table_with_escaped_text(self):
        trace = fraglab.Trace("<script>")
        trace.alloc(1, 1)
        recording = trace.finish()
        result = recording.run("best-fit", label="<b>")
        for thing in (recording, result, result.timeline(), result.layout()):
            page = thing._repr_html_()
            self.assertTrue(page.startswith("<table>"))
            self.assertNotIn("<script>", page)
            self.assertNotIn("<b>", page)


class Failures(unittest.TestCase):
    def test_errors_have_kind_place_and_sentence(self):
        with self.assertRaisesRegex(fraglab.InputError, "no/such/file: cannot be opened") as raised:
            fraglab.open("no/such/file")
        self.assertEqual((raised.exception.code, raised.exception.where), (3, "no/such/file"))
        for function in (fraglab.open, fraglab.explain, lambda file: fraglab.compare(file, b""), fraglab.ranks):
            for file, kind, code in (("/no/such/file", fraglab.InputError, 3), ("/proc/self/mem", fraglab.SystemFailure, 4)):
                with self.assertRaisesRegex(kind, f"^{file}: cannot be (opened|read) [(].*[)]; expected a readable file$") as raised:
                    function(pathlib.Path(file))
                self.assertEqual((raised.exception.code, raised.exception.where), (code, file))
        self.assertRaisesRegex(fraglab.InputError, "^/tmp: cannot be opened", fraglab.explain, pathlib.Path("/tmp"))
        with self.assertRaises(fraglab.InputError) as raised:
            fraglab.open(b"# fraglab trace 2\nnonsense\n")
        self.assertEqual(raised.exception.line, 2)
        self.assertIsInstance(pickle.loads(pickle.dumps(raised.exception)), fraglab.InputError)
        recording = small_trace()
        for wrong in (lambda: recording.run("nope"), lambda: recording.run(capacity="3G"), lambda: recording.run(gpu="nope"), lambda: recording.run(trace=7), lambda: recording.run("best-fit\0")):
            self.assertRaises(fraglab.Error, wrong)
        self.assertRaises(fraglab.UsageError, fraglab.open(SMALL, sites=False).verify)

    def test_a_warning_names_the_line_of_the_caller_and_as_an_error_keeps_nothing(self):
        odd = snapshot()
        odd["device_traces"][0].append({"action": "alloc", "addr": 1 << 21, "size": 5, "stream": 0, "frames": []})
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(2):
                pathlib.Path(folder, f"rank{rank}.pickle").write_bytes(pickle.dumps(odd))
            for function, argument in ((fraglab.open, odd), (fraglab.ranks, folder)):
                with self.assertWarnsRegex(fraglab.InputWarning, "1 inconsistencies") as caught:
                    function(argument)
                self.assertEqual((caught.filename, caught.lineno), (__file__, sys._getframe().f_lineno - 1))
        close = mock.Mock(wraps=fraglab.library.recording_close)
        with mock.patch.object(fraglab.library, "recording_close", close), warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertRaises(fraglab.InputWarning, fraglab.open, odd)
            gc.collect()
        close.assert_called_once()

    def test_a_size_that_equals_a_right_one_is_refused_after_it_too(self):
        recording = small_trace()
        size = 1 << 30
        self.assertEqual(recording.run("best-fit", capacity=size), recording.run("best-fit", capacity="1GiB"))
        for wrong in (float(size), True):
            recording.run("best-fit", capacity=int(wrong))
            with self.assertRaisesRegex(TypeError, "capacity is (float|bool); expected a whole number"):
                recording.run("best-fit", capacity=wrong)

    def test_an_option_that_does_not_exist_names_the_nearest(self):
        recording = small_trace()
        with self.assertRaisesRegex(TypeError, "^there is no option capactiy; did you mean capacity[?]$"):
            recording.run("pytorch", capactiy=1)
        with self.assertRaisesRegex(TypeError, "^there is no option zzz; expected one of capacity, gpu, .*, timing$"):
            recording.run("pytorch", zzz=1)
        with self.assertRaisesRegex(TypeError, "^there is no option runs; expected one of goal, held_out, settings, .*, capacity, gpu, .*, fail_call$"):
            fraglab.tune(recording, runs=1)
        with self.assertRaisesRegex(TypeError, "^there is no option stage; did you mean stages[?]$"):
            fraglab.ranks([recording, recording], numbers=[0, 1], stage=["0-1"])

    def test_an_option_that_would_not_be_used_is_refused(self):
        recording = small_trace()
        others = {"label": "x", "check_every": 3, "skip_oom": True, "stats_at": "peak", "timing": True}
        for function, more in ((recording.min_capacity, {"capacity": "1GiB", "bounds": True}), (recording.leaks, {"bounds": True}), (lambda **option: fraglab.tune(recording, **option), {}),
                               (lambda **option: fraglab.diff(recording, recording, **option), {"bounds": True}), (lambda **option: fraglab.ranks([recording, recording], **option), {"bounds": True})):
            for name, value in {**others, **more}.items():
                with self.assertRaisesRegex(TypeError, f"^[a-z_]+ has no option {name}$"):
                    function(**{name: value})
        self.assertEqual(recording.min_capacity("best-fit", label=None, skip_oom=False), recording.min_capacity("best-fit"))

    def test_closed_recordings_say_so_and_results_live_on(self):
        recording = fraglab.open(SMALL)
        result = recording.run()
        recording.close()
        recording.close()
        self.assertRaisesRegex(fraglab.UsageError, "closed", recording.run)
        self.assertGreater(len(result.timeline()), 0)
        trace = fraglab.Trace()
        trace.finish()
        self.assertRaisesRegex(fraglab.UsageError, "finished", trace.alloc, 1, 1)

    def test_recordings_and_traces_are_not_copied(self):
        noise = []
        with mock.patch.object(sys, "unraisablehook", noise.append):
            for thing, name in ((small_trace(), "recording"), (fraglab.Trace("x"), "trace")):
                for function in (copy.copy, copy.deepcopy, pickle.dumps):
                    self.assertRaisesRegex(TypeError, f"^a {name} cannot be copied", function, thing)
            gc.collect()
        self.assertEqual(noise, [])

    def test_a_block_is_live_once(self):
        trace = fraglab.Trace()
        trace.alloc("a", 10)
        self.assertRaisesRegex(fraglab.UsageError, "live already", trace.alloc, "a", 10)
        self.assertRaisesRegex(fraglab.UsageError, "no block 'b'", trace.free, "b")
        self.assertRaises(fraglab.Error, trace.alloc, "c", 0)
        trace.alloc("c", 10)
        self.assertEqual(trace.finish().facts().request_count, 2)

    def test_facts_are_texts(self):
        for wrong in ({"torch.conf": None}, {None: "x"}, {"torch.conf": 3}, {3: "x"}):
            self.assertRaisesRegex(TypeError, "^settings: .* is (None|NoneType|int); expected str$", fraglab.Trace, "x", settings=wrong)
        self.assertRaisesRegex(fraglab.UsageError, "^mine: a fact has no name", fraglab.Trace, "mine", settings={"": "x"})
        trace = fraglab.Trace("x", settings={"torch.conf": "expandable_segments:True"})
        self.assertIn("expandable_segments:True", json.dumps(trace.finish().to_dict()["metadata"]))

    def test_steps_and_stacks_of_ones_own_are_found(self):
        trace = fraglab.Trace("mine", stacks=True)
        for step in range(8):
            trace.mark("step")
            trace.alloc(("kept", step), 256 << 10)
            trace.alloc("batch", 3 << 20)
            trace.free("batch")
        line = sys._getframe().f_lineno - 3
        trace.stack([("load", "own.py", 12), ("main", "own.py", 3)])
        trace.alloc("last", 1 << 20)
        recording = trace.finish()
        said = recording.leaks()
        self.assertEqual(said.steps.name, "step")
        self.assertEqual(said.steps.count, 7)  # from mark to mark
        text = recording.to_bytes("text").decode()
        self.assertIn('"load" "own.py" 12', text)
        self.assertIn(f'"test_steps_and_stacks_of_ones_own_are_found" "{__file__}" {line}', text)

    def test_marks_and_stacks_that_make_no_sense_are_refused(self):
        trace = fraglab.Trace()
        self.assertRaisesRegex(fraglab.UsageError, "a mark has no name", trace.mark, "")
        self.assertRaisesRegex(fraglab.UsageError, "4097 frames; expected 4096", trace.stack, [("f", "a.py", 1)] * 4097)
        for wrong in ([1], ["abc"], [("f", "a.py")], [("f", 3, 1)], [("f", "a.py", "1")], 5):
            self.assertRaises(TypeError, trace.stack, wrong)
        trace.finish()
        self.assertRaisesRegex(fraglab.UsageError, "finished", trace.mark, "late")
        self.assertRaisesRegex(fraglab.UsageError, "finished", trace.stack, None)


WRONG = [None, 5, -1, 2**70, 1.5, "", "nope", "a\0b", "\ud800", b"", b"x" * 50, [], {}, object(), (1,), True, float("nan"), SMALL, lambda: 1]


def calls(recording, closed, result):
    """Every function, as one of an argument of any kind."""
    trace = fraglab.Trace()
    for target in (recording, closed):
        yield target.run
        yield lambda x, t=target: t.run("best-fit", capacity=x)
        yield lambda x, t=target: t.run("best-fit", trace=x, gpu=x, label=x)
        yield lambda x, t=target: t.facts(x)
        yield lambda x, t=target: t.verify(x)
        yield lambda x, t=target: t.min_capacity("best-fit", trace=x)
        yield lambda x, t=target: t.explain(capacity=x, whole=x)
        yield lambda x, t=target: t.explain(policies=x)
        yield lambda x, t=target: t.leaks(mark=x, policy=x, trace=x)
        yield t_to_bytes(target)
        yield lambda x, t=target: t.cut(x, x)
        yield lambda x, t=target: (t.main_trace, len(t), t.to_dict())
    yield fraglab.open
    yield lambda x: fraglab.open(SMALL, format=x, name=x)
    yield fraglab.explain
    yield lambda x: fraglab.diff(recording, x)
    yield lambda x: fraglab.ranks([recording, x])
    for other in (closed, result, SMALL):
        yield lambda x, o=other: fraglab.diff(recording, o, by=x, at_after=x, replays=x)
        yield lambda x, o=other: fraglab.ranks([o, recording], stages=[x], gpu=x)
        yield lambda x, o=other: fraglab.tune(o, x, held_out=[x])
    yield lambda x: fraglab.plan(x, gpu=x, conf=x, batch=x)
    yield lambda x: fraglab.plan(MODEL, gpu="100MiB", conf=x, batch=x, tokens=x, **{str(x)[:20]: x})
    yield hostile_plan
    yield lambda x: fraglab.ranks([recording, recording], numbers=x, stages=[x], policy=x)
    yield lambda x: fraglab.diff(recording, recording, by=x, at=x, policy=x)
    yield lambda x: fraglab.tune(x, x)
    yield lambda x: fraglab.tune(recording, "best-fit", settings=1, goal=x)
    yield lambda x: fraglab.compare(x, x)
    yield lambda x: fraglab.compare(result, result, fail_above=x, metrics=x)
    yield fraglab.sweep
    yield fraglab.policies
    yield result.timeline
    yield result.layout
    yield result.__getitem__
    yield fraglab.Trace
    yield lambda x: trace.alloc(x, x)
    yield lambda x: trace.alloc(object(), x, stream=x)
    yield trace.free
    yield lambda x: trace.use(x, x)
    yield lambda x: trace.mark(x, time_ns=x)
    yield trace.stack
    yield lambda x: trace.stack([(x, x, x)])


def hostile_plan(x):
    """Of a description of which a byte is another; x says which, and which."""
    number = hash(repr(x)) + random.randrange(1 << 30)
    data = bytearray(MODEL.read_bytes())
    data[number % len(data)] = number // 7 % 256
    with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
        file.write(data)
        file.flush()
        fraglab.plan(file.name, gpu="10GiB", batch=1, tokens=16, steps=1)


def t_to_bytes(target):
    return lambda x: target.to_bytes(x)


class Hostile(unittest.TestCase):
    def test_a_thousand_calls_of_each_function_from_eight_threads_only_raise(self):
        count = int(os.environ.get("FRAG_PYTHON_CALLS", "1000"))
        recording, closed, result = small_trace(), small_trace(), small_trace().run("best-fit")
        closed.close()
        data = SMALL.read_bytes()
        surprises = []

        def work(seed):
            rng = random.Random(seed)
            for function in calls(recording, closed, result):
                for _ in range(count // 8):
                    argument = rng.choice(WRONG)
                    if rng.random() < 0.02:
                        argument = bytearray(data)
                        argument[rng.randrange(len(argument))] ^= 1 << rng.randrange(8)
                    if rng.random() < 0.02:
                        argument = {**snapshot(), "device_traces": rng.choice(WRONG)}
                    try:
                        function(argument)
                    except (fraglab.Error, TypeError, KeyError, OSError, ValueError):
                        pass
                    except BaseException as error:  # whatever else is a bug
                        surprises.append(f"{function} of {argument!r:.80}: {error!r}")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(surprises[:5], [])

    def test_a_close_during_calls_of_others_is_waited_for(self):
        for _ in range(20):
            recording = fraglab.open(SMALL)
            codes = []

            def work():
                try:
                    while True:
                        recording.run("best-fit")
                except fraglab.UsageError as error:
                    codes.append(str(error))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.01)
            recording.close()
            for thread in threads:
                thread.join()
            self.assertEqual(codes, ["the recording is closed"] * 4)

    def test_nothing_is_kept_of_calls(self):
        recording = small_trace()

        def work():
            for _ in range(200):
                recording.run("best-fit").timeline()
                try:
                    fraglab.open(b"nonsense")
                except fraglab.Error:
                    pass

        work()
        gc.collect()
        tracemalloc.start()
        work()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        self.assertLess(kept, 20000)


class Behaviour(unittest.TestCase):
    def test_other_threads_run_meanwhile(self):
        recording = fraglab.open(SAMPLES / "unet.pickle.zst")
        ticks = []
        done = threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        # Python takes its lock from no thread meanwhile: what ticks, ticks while a call has given it up.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)
        thread = threading.Thread(target=tick)
        thread.start()
        deadline = time.monotonic() + 60
        ticked = False
        while not ticked and time.monotonic() < deadline:
            begin = time.monotonic()
            recording.min_capacity("pytorch")
            end = time.monotonic()
            ticked = any(begin < at < end for at in ticks)
        done.set()
        thread.join()
        self.assertTrue(ticked)

    def test_ctrl_c_ends_a_long_call_and_the_next_works(self):
        recording = fraglab.open(SAMPLES / "unet.pickle.zst")
        # A shell that starts the tests in the background has them ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        for _ in range(3):
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            begin = time.monotonic()
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                fraglab.tune(recording, "pytorch", settings=10000)
                self.fail("the search ended by itself")
            self.assertLess(time.monotonic() - begin, 5)
            timer.join()
        self.assertIsNone(small_trace().run("best-fit").oom)

    def test_any_exception_of_a_signal_handler_comes_through(self):
        def handler(number, frame):
            self.assertRaisesRegex(fraglab.UsageError, "let it return first", small_trace)  # the library is at work
            raise TimeoutError("enough")

        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with self.assertRaisesRegex(TimeoutError, "enough"):
                fraglab.tune(fraglab.open(SAMPLES / "unet.pickle.zst"), "pytorch", settings=10000)
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_import_loads_neither_torch_nor_the_library(self):
        code = "import sys; sys.path.insert(0, 'python'); import fraglab; assert not {'torch', 'numpy', 'pandas'} & set(sys.modules); print('libfraglab' in open('/proc/self/maps').read())"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip(), "False")

    def test_a_library_of_another_release_is_named(self):
        code = "import fraglab; fraglab.version()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "python", env={**os.environ, "FRAGLAB_LIBRARY": "libm.so.6"}, check=False)
        self.assertIn("SystemFailure: libm.so.6 has no fraglab_version, so it is older than this package", done.stderr)

    def test_structures_are_as_large_as_those_of_the_header(self):
        names = {"ErrorRecord": "error", "ContextOptions": "context_options", "OpenOptions": "open_options", "Facts": "trace_facts", "CutOptions": "cut_options", "Event": "event", "Frame": "frame",
                 "BuilderOptions": "builder_options", "PolicyRequest": "policy_request", "PolicyGrant": "policy_grant", "PolicyFunctions": "policy_functions", "RunOptions": "run_options", "RunFileOptions": "run_file_options", "Capacity": "capacity", "VerifyOptions": "verify_options", "Sample": "sample",
                 "Placement": "placement", "Segment": "segment", "Span": "span", "ExplainOptions": "explain_options", "DiffOptions": "diff_options", "LeaksOptions": "leaks_options", "RanksOptions": "ranks_options", "PlanOptions": "plan_options", "SweepOptions": "sweep_options", "TuneOptions": "tune_options",
                 "CompareOptions": "compare_options"}
        from fraglab import _native

        checks = []
        for python, c in names.items():
            structure = getattr(_native, python)
            # A structure that says its size may have grown since; the library takes what is not there for zero.
            is_sized = issubclass(structure, _native.Sized)
            checks.append(f'_Static_assert(sizeof(fraglab_{c}) {">=" if is_sized else "=="} {ctypes.sizeof(structure)}, "{python}");')
            checks += [f'_Static_assert(offsetof(fraglab_{c}, {name}) == {getattr(structure, name).offset}, "{python}.{name}");' for name, _ in structure._fields_]
        compiler = os.environ.get("CC", "cc")
        done = subprocess.run([compiler, "-std=c11", "-fsyntax-only", "-Iinclude", "-x", "c", "-"], input='#include "fraglab.h"\n#include "fraglab_policy.h"\n' + "\n".join(checks) + "\n", text=True, capture_output=True,
                              cwd=ROOT, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_exported_function_that_is_declared_exists(self):
        from fraglab import _native

        self.assertIn(fraglab.version(), command("--version"))
        self.assertEqual(fraglab.__version__, fraglab.version())
        with self.assertRaisesRegex(AttributeError, "^module 'fraglab' has no attribute 'nothing'$"):
            fraglab.nothing
        self.assertIn("unet.pickle.zst", os.listdir(fraglab.find_samples()))
        for name in _native._FUNCTIONS:
            self.assertTrue(callable(getattr(_native.library, name)))
        for name in fraglab.__all__:
            self.assertTrue(getattr(fraglab, name).__doc__, name)

    def test_public_functions_and_arrays_have_types(self):
        result = small_trace().run("best-fit")
        timeline = result.timeline()
        for columns in (timeline, timeline.placements, timeline.segments, result.layout()):
            self.assertEqual(list(type(columns).__annotations__), columns._names)
        for name in fraglab.__all__:
            thing = getattr(fraglab, name)
            members = vars(thing).items() if inspect.isclass(thing) else [(name, thing)]
            for member, function in members:
                if inspect.isfunction(function) and (member == "__init__" or not member.startswith("_")):
                    untyped = {"return", *inspect.signature(function).parameters} - {"self", *function.__annotations__}
                    self.assertEqual(untyped, set(), f"{name}.{member}")


if __name__ == "__main__":
    unittest.main()
