#!/usr/bin/env python3
"""fraglab mcp: its tools, what it refuses, and hostile lines: python3 tests/python/test_mcp.py (needs `make fraglab library`)."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import fraglab  # noqa: E402
from fraglab import mcp  # noqa: E402

SAMPLE = ROOT / "traces/samples/pr193400.pickle.zst"
OOM = ROOT / "traces/samples/gpt-varlen-oom.pickle.zst"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


class Case(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.outside = pathlib.Path(made.name)
        self.folder = self.outside / "inside"
        self.folder.mkdir()
        shutil.copy(SAMPLE, self.folder / "a.pickle.zst")
        shutil.copy(SAMPLE, self.outside / "secret.pickle.zst")
        self.server = mcp.Server([str(self.folder)])

    def ask(self, method, **params):
        return self.server.answer(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode())

    def call(self, name, **arguments):
        """(whether it failed, the text)"""
        reply = self.ask("tools/call", name=name, arguments=arguments)
        result = reply["result"]
        return result["isError"], result["content"][0]["text"]


class Protocol(Case):
    def test_a_session_over_stdio_as_clients_begin_it(self):
        lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
                 {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": "two", "method": "tools/list"}, {"jsonrpc": "2.0", "id": 3, "method": "ping"},
                 {**CALL, "id": 4, "params": {"name": "run", "arguments": {"file": "a.pickle.zst", "policies": ["pytorch", "direct"]}}}]
        for command in ([sys.executable, "-m", "fraglab.mcp"], [sys.executable, "-m", "fraglab", "mcp"]):
            done = subprocess.run([*command, str(self.folder)], input="\n".join(map(json.dumps, lines)) + "\n", env=dict(os.environ, PYTHONPATH=str(ROOT / "python")), capture_output=True, text=True, check=True)
            replies = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([reply["id"] for reply in replies], [0, "two", 3, 4])
            self.assertEqual(replies[0]["result"]["protocolVersion"], "2025-03-26")
            self.assertEqual(replies[0]["result"]["serverInfo"], {"name": "fraglab", "version": fraglab.version()})
            self.assertEqual(replies[2]["result"], {})
            rows = json.loads(replies[3]["result"]["content"][0]["text"])
            self.assertEqual(rows[1], fraglab.open(str(SAMPLE), name="a.pickle.zst").run("direct").to_dict())

    def test_an_unknown_version_gets_the_newest_and_tools_say_what_they_take(self):
        self.assertEqual(self.ask("initialize", protocolVersion="1999-01-01")["result"]["protocolVersion"], mcp.PROTOCOLS[0])
        tools = {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}
        self.assertEqual(set(tools), {"explain", "run", "min_capacity", "tune", "diff", "leaks", "ranks", "plan"})
        self.assertTrue(all(tool["annotations"]["readOnlyHint"] and tool["inputSchema"]["type"] == "object" and tool["description"] for tool in tools.values()))

    def test_what_is_wrong_with_a_line_is_said_by_number(self):
        for line, code in ((b"{", mcp.PARSE), (b"\xff\xfe", mcp.PARSE), (b"[" * 100000, mcp.PARSE), (b"[]", mcp.REQUEST), (b"1", mcp.REQUEST), (b'{"id":1,"method":"ping"}', mcp.REQUEST),
                           (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', mcp.REQUEST), (b'{"jsonrpc":"2.0","id":1,"method":1}', mcp.REQUEST), (b'{"jsonrpc":"2.0","id":1,"method":"x"}', mcp.METHOD),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', mcp.PARAMS), (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}', mcp.PARAMS),
                           (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":3}}', mcp.PARAMS), (b" " * (mcp.MOST_LINE + 1), mcp.PARSE)):
            with self.subTest(line=line[:60]):
                self.assertEqual(self.server.answer(line)["error"]["code"], code)
        self.assertIsNone(self.server.answer(b'{"jsonrpc":"2.0","method":"tools/call"}'))
        self.assertIsNone(self.server.answer(b'{"jsonrpc":"2.0","id":5,"result":{}}'))

    def test_a_line_that_is_too_long_is_skipped_whole(self):
        import io

        out = io.BytesIO()
        mcp.serve(self.server, io.BytesIO(b"x" * (3 * mcp.MOST_LINE) + b'\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n'), out)
        first, second = map(json.loads, out.getvalue().splitlines())
        self.assertEqual((first["error"]["code"], second["result"]), (mcp.PARSE, {}))

    def test_wrong_folders_end_it_with_a_sentence(self):
        for arguments, code, sentence in (([], 2, "usage: fraglab mcp FOLDER..."), (["/nowhere"], 3, "/nowhere: there is no such folder"), (["--help"], 0, "usage")):
            done = subprocess.run([sys.executable, "-m", "fraglab.mcp", *arguments], env=dict(os.environ, PYTHONPATH=str(ROOT / "python")), capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertIn(sentence, done.stderr)


class Calls(Case):
    def test_each_tool_answers(self):
        shutil.copy(OOM, self.folder / "oom.pickle.zst")
        failed, text = self.call("explain", file="oom.pickle.zst")
        self.assertEqual((failed, text), (False, fraglab.open(str(OOM), name="oom.pickle.zst").explain_text()))
        message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.10 GiB is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.90 GiB is reserved by PyTorch but unallocated."
        self.assertEqual(json.loads(self.call("explain", text=message)[1]), fraglab.explain(message))
        (self.folder / "train.log").write_text("step 1\n" + message + "\n")
        self.assertEqual(json.loads(self.call("explain", file="train.log")[1])["verdict"], fraglab.explain(message)["verdict"])
        for source in ({"text": message}, {"file": "train.log"}):
            self.assertRegex(self.call("explain", capacity="24GiB", **source)[1], "^explain: 'capacity' is for a recording, and .* is a message; leave it out$")
        (self.folder / "other.log").write_text("nothing went wrong\n")
        failed, text = self.call("explain", file="other.log")
        self.assertTrue(failed)
        self.assertIn("other.log", text)
        self.assertEqual(json.loads(self.call("run", file="a.pickle.zst", capacity="1MiB")[1])[0]["oom"]["event"], fraglab.open(str(SAMPLE)).run(capacity="1MiB").oom.event)
        self.assertEqual(json.loads(self.call("min_capacity", file="a.pickle.zst", policy="best-fit")[1])["capacity_bytes"], fraglab.open(str(SAMPLE)).min_capacity("best-fit").capacity_bytes)
        found = json.loads(self.call("tune", file="oom.pickle.zst", settings=30)[1])
        tuned = fraglab.tune(fraglab.open(str(OOM), name="oom.pickle.zst"), settings=30)
        self.assertEqual(found, {"policy_text": tuned.policy_text, **tuned.to_dict()})
        self.assertNotEqual(found["policy_text"], "pytorch")
        self.assertEqual(json.loads(self.call("diff", before="a.pickle.zst", after="a.pickle.zst")[1])["kind"], "diff")
        self.assertEqual(json.loads(self.call("leaks", file="a.pickle.zst")[1])["kind"], "leaks")
        failed, text = self.call("leaks", file="a.pickle.zst", gpu="rtx4090")
        self.assertFalse(failed, text)

    def test_a_job_and_a_model_are_judged(self):
        found = json.loads(self.call("ranks", files=["a.pickle.zst", "a.pickle.zst"], capacity="1GiB")[1])
        self.assertEqual([rank["alike_with"] for rank in found["ranks"]], [0, 0])
        self.assertIn("expected 1 to 64", self.call("ranks", files=[])[1])
        size, mcp.MOST_FILE = mcp.MOST_FILE, 2 * SAMPLE.stat().st_size - 1
        try:
            self.assertRegex(self.call("ranks", files=["a.pickle.zst"] * 2)[1], r"^a\.pickle\.zst: with it the files have [\d,]+ bytes, at most [\d,]+ are read here$")
        finally:
            mcp.MOST_FILE = size
        model = ROOT / "traces/workloads/gpt2-small.yaml"
        shutil.copy(model, self.folder / "model.yaml")
        expected = fraglab.plan(str(model), gpu="rtx3060", batch=2, conf="expandable_segments:True")
        expected["model"]["name"] = "model.yaml"
        open_files = len(os.listdir("/proc/self/fd"))
        self.assertEqual(json.loads(self.call("plan", file="model.yaml", gpu="rtx3060", knobs=["batch=2"], conf="expandable_segments:True")[1]), expected)
        (self.folder / "broken.yaml").write_text("model: {family: nonesuch}\n")
        failed, text = self.call("plan", file="broken.yaml", gpu="12GiB")
        self.assertTrue(failed)
        self.assertTrue(text.startswith("broken.yaml:1:"), text)
        for arguments, sentence in (({"file": "model.yaml"}, "plan: 'gpu' is missing"), ({"file": "../model.yaml", "gpu": "12GiB"}, "is not below the folders"), ({"file": "model.yaml", "gpu": "12GiB", "knobs": ["batch"]}, "'batch' is not a knob"),
                                    ({"file": "model.yaml", "gpu": "12GiB", "knobs": ["model=../x"]}, "is not a knob"), ({"file": "model.yaml", "gpu": "../card.yaml"}, "descriptions of a file are not read here"),
                                    ({"file": "model.yaml", "gpu": "12GiB", "knobs": ["nonesuch=1"]}, "nonesuch"),
                                    *(({"file": "model.yaml", "gpu": "12GiB", "knobs": [f"{name}=x"]}, f"plan: '{name}' is not a knob") for name in ("model", "gpu", "conf"))):
            failed, text = self.call("plan", **arguments)
            self.assertTrue(failed)
            self.assertIn(sentence, text)
        self.assertEqual(len(os.listdir("/proc/self/fd")), open_files)

    def test_nothing_outside_the_folders_is_read(self):
        os.symlink(self.outside / "secret.pickle.zst", self.folder / "link.zst")
        os.symlink(self.outside, self.folder / "up")
        beside = self.outside / "inside-too"
        beside.mkdir()
        shutil.copy(SAMPLE, beside / "a.pickle.zst")
        for name in ("../secret.pickle.zst", str(self.outside / "secret.pickle.zst"), "link.zst", "up/secret.pickle.zst", "/etc/passwd", "/proc/self/environ", "../inside-too/a.pickle.zst", "a.pickle.zst\0", "x/../../secret.pickle.zst"):
            failed, text = self.call("run", file=name)
            self.assertTrue(failed, name)
            self.assertIn("is not below the folders of this server", text)
        os.symlink("a.pickle.zst", self.folder / "alias.zst")
        self.assertFalse(self.call("run", file="alias.zst")[0])
        self.assertFalse(self.call("run", file=str(self.folder / "a.pickle.zst"))[0])

    def test_what_is_no_file_does_not_stop_it(self):
        os.mkfifo(self.folder / "pipe")
        for name, sentence in (("pipe", "is no file"), (".", "is no file"), ("nowhere", "cannot be opened"), ("x" * 5000, "cannot be opened")):
            failed, text = self.call("run", file=name)
            self.assertTrue(failed)
            self.assertIn(sentence, text)

    def test_code_and_cards_of_files_are_not_loaded(self):
        for policy in ("./mine.so", "/tmp/mine.so", "mine.so", "pytorch:x=../y", "", "pytorch\n"):
            failed, text = self.call("run", file="a.pickle.zst", policies=[policy])
            self.assertTrue(failed)
            self.assertIn("policies of a file are not loaded here", text)
        (self.folder / "card.yaml").symlink_to("/etc/passwd")
        for card in ("../card.yaml", "card.yaml"):
            self.assertIn("descriptions of a file are not read here", self.call("run", file="a.pickle.zst", gpu=card)[1])

    def test_wrong_arguments_say_what_is_right(self):
        for arguments, sentence in (({}, "run: 'file' is missing"), ({"file": 3}, "run: 'file' is int; expected string"), ({"file": "a", "x": 1}, "run: 'x' is unknown; expected file, policies, capacity, gpu"),
                                    ({"file": "a.pickle.zst", "policies": ["direct"] * 9}, "has 9 items; expected 0 to 8"), ({"file": "a.pickle.zst", "capacity": "many"}, "capacity"),
                                    ({"file": "a.pickle.zst", "policies": ["nonesuch"]}, "nonesuch")):
            failed, text = self.call("run", **arguments)
            self.assertTrue(failed)
            self.assertIn(sentence, text)
        self.assertIn("expected 1 to 1000", self.call("tune", file="a.pickle.zst", settings=0)[1])
        self.assertIn("expected one of site, stack", self.call("diff", before="a.pickle.zst", after="a.pickle.zst", by="x")[1])
        self.assertIn("either 'file' or 'text'", self.call("explain")[1])

    def test_time_and_length_have_limits(self):
        shutil.copy(ROOT / "traces/samples/unet.pickle.zst", self.folder)
        self.server = mcp.Server([str(self.folder)], 0.2)
        failed, text = self.call("tune", file="unet.pickle.zst", settings=1000)
        self.assertTrue(failed)
        self.assertIn("ended after 0.2 seconds, without an answer", text)
        most, mcp.MOST_ANSWER = mcp.MOST_ANSWER, 50
        try:
            text = self.call("run", file="a.pickle.zst")[1]
        finally:
            mcp.MOST_ANSWER = most
        self.assertRegex(text, r"^.{50}\n\(cut off: [\d,]+ characters, of which 50 are shown\)$")

    def test_hostile_lines_get_an_answer_or_none(self):
        seeds = [json.dumps({**CALL, "params": {"name": name, "arguments": {"file": "a.pickle.zst", "policies": ["direct"], "capacity": "1GiB"}}}).encode() for name in ("run", "explain", "diff", "ranks", "plan")]
        seeds.append(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode())
        chance = random.Random(1)
        answered = 0
        for _ in range(3000):
            line = bytearray(chance.choice(seeds))
            for _ in range(chance.randint(1, 6)):
                at = chance.randrange(len(line))
                change = chance.randrange(4)
                if change == 0:
                    line[at] = chance.randrange(256)
                elif change == 1:
                    del line[at:at + chance.randrange(8)]
                elif change == 2:
                    line[at:at] = chance.choice([b"null", b"{", b"[", b'"', b"1e999", b"\\ud800", b"../", b"-1", b"true", b"\0"])
                else:
                    line[at:at] = line[:chance.randrange(20)]
                line = line or bytearray(b"x")
            reply = self.server.answer(bytes(line))
            if reply is not None:
                answered += 1
                self.assertTrue(("result" in reply) != ("error" in reply))
                json.dumps(reply).encode("ascii")
        self.assertGreater(answered, 2000)


if __name__ == "__main__":
    unittest.main()
