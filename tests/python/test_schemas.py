#!/usr/bin/env python3
"""What the commands print is what schemas/ says: python3 tests/python/test_schemas.py (needs `make fraglab`; golden logs are used where they are built)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = sorted(str(path) for path in (ROOT / "traces/samples").glob("*.pickle.zst"))
KINDS = {"string": str, "number": (int, float), "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}


def rows(*arguments, text=None, form="jsonl"):
    done = subprocess.run([str(ROOT / "fraglab"), *arguments, "--format", form], capture_output=True, text=True, input=text, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def leaks(*arguments, form="json"):
    """Of a recording without steps: nothing."""
    done = subprocess.run([str(ROOT / "fraglab"), "leaks", *arguments, "--format", form], capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def call(*arguments, environment):
    """What it prints; 0 and 1 are answers."""
    done = subprocess.run([str(ROOT / "fraglab"), *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr)
    return done.stdout


def schema(name):
    return json.loads((ROOT / f"schemas/{name}.json").read_text())


def is_kind(value, kind):
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def fault(value, said, path="row"):
    """What is wrong, by the part of JSON Schema that these files use, and beyond it: that no member is missing in the schema. None: nothing."""
    if "const" in said:
        return None if value == said["const"] else f"{path} is {value!r}, not {said['const']!r}"
    kinds = said["type"] if isinstance(said["type"], list) else [said["type"]]
    if not any(is_kind(value, kind) for kind in kinds):
        return f"{path} is {value!r}, not {kinds}"
    if isinstance(value, dict) and "properties" in said:
        for name in said["required"]:
            if name not in value:
                return f"{path}.{name} is missing"
        for name, member in value.items():
            if name not in said["properties"]:
                return f"{path}.{name} is not described"
            found = fault(member, said["properties"][name], f"{path}.{name}")
            if found:
                return found
    if isinstance(value, list) and "items" in said:
        return next((found for at, item in enumerate(value) if (found := fault(item, said["items"], f"{path}[{at}]"))), None)
    return None


class Schemas(unittest.TestCase):
    def validate(self, name, printed):
        self.assertTrue(printed)
        said = schema(name)
        for row in printed:
            if name != "run":
                self.assertIsNone(fault(row, said))
            if jsonschema is not None:
                jsonschema.Draft202012Validator(said).validate(row)

    def test_they_are_what_the_tables_of_the_docs_say(self):
        done = subprocess.run(["python3", str(ROOT / "schemas/write.py"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_rows_of_every_sample(self):
        with tempfile.TemporaryDirectory() as folder:
            base = pathlib.Path(folder, "base.jsonl")
            printed = rows("run", *SAMPLES, "--policy", "pytorch,best-fit")
            base.write_text("".join(json.dumps(row) + "\n" for row in printed))
            self.validate("run", printed)
            self.validate("compare", [row for row in rows("compare", str(base), str(base)) if row["schema"] == "fraglab.compare/1"])
        self.validate("verify", rows("verify", *SAMPLES))
        self.validate("trace-info", rows("trace", "info", *SAMPLES))
        self.validate("policies", rows("policies"))
        self.validate("device-list", rows("device", "list"))

    def test_rows_of_golden_logs(self):
        logs = sorted(str(path) for path in (ROOT / "build/golden").glob("*.jsonl.zst"))[:8]
        if not logs:
            self.skipTest("make golden-logs builds them")
        self.validate("verify-golden", rows("verify", "--against", "golden", *logs))

    def test_explanations(self):
        oom = str(ROOT / "traces/samples/gpt-varlen-oom.pickle.zst")
        self.validate("explain-recording", rows("explain", oom) + rows("explain", SAMPLES[-1], "--capacity", "300MiB") + rows("explain", SAMPLES[-1], "--capacity", "64GiB"))
        messages = subprocess.run(["zstd", "-dcq", str(ROOT / "tests/data/oom-messages/threads.jsonl.zst")], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        self.assertGreater(len(messages), 150)
        for line in messages[::8]:
            self.validate("explain-message", rows("explain", "-", text=json.loads(line)["message"]))
        self.validate("explain-message", rows("explain", "-", text="\n".join(json.loads(line)["message"] for line in messages[:30])))

    def test_studies(self):
        train, varying = (str(ROOT / f"traces/samples/{name}.pickle.zst") for name in ("gpt-train", "gpt-varlen"))
        for by in ("site", "stack", "purpose", "size"):
            self.validate("diff", rows("diff", train, varying, "--by", by, form="json"))
            self.validate("diff-site", rows("diff", train, varying, "--by", by))
        self.validate("diff", rows("diff", train, train, form="json") + rows("diff", train, varying, "--capacity", "2GiB", form="json"))
        leaky = [row for sample in SAMPLES for options in ((), ("--gpu", "rtx3060")) for row in leaks(sample, *options)]
        self.assertTrue(any(row["leaks"] for row in leaky) and any(row["no_leaks"] for row in leaky) and any(row["forecast"] for row in leaky))
        self.validate("leaks", leaky)
        found = [row for sample in SAMPLES for row in leaks(sample, form="jsonl")]
        self.assertEqual([row["site"] for row in found], [leak["name"] for sample in SAMPLES for row in leaks(sample) for leak in row["leaks"]])
        self.validate("leak", found)
        self.validate("ranks", rows("ranks", train, varying) + rows("ranks", train, varying, "--capacity", "1GiB"))
        self.validate("tune", rows("tune", varying, "--runs", "6") + rows("tune", varying, "--runs", "6", "--bounds", "--gpu", "rtx3060") +
                      rows("tune", varying, "--runs", "6", "--policy", "tlsf", "--for", "min-capacity", "--held-out", train))

    def test_plans(self):
        models = [path for path in sorted((ROOT / "traces/workloads").glob("*.yaml")) if "task: serve" not in path.read_text()]
        self.assertTrue(models)  # plans are not of servers
        for model in models:
            self.validate("plan", rows("plan", str(model), "--gpu", "rtx3060") + rows("plan", str(model), "--gpu", "100MiB"))

    def test_dry_runs(self):
        """With stand-ins for PyTorch and pip; which release changed the peak is asked of the latter."""
        with tempfile.TemporaryDirectory() as folder:
            script, report = pathlib.Path(folder, "train.py"), pathlib.Path(folder, "report.jsonl")
            script.write_text("import torch\nkept = [torch.empty(40)]\ndef forward():\n    return torch.empty(100)\nfor step in range(2):\n    kept.append(forward())\n")
            software = pathlib.Path(folder, "cuda")
            software.mkdir()
            (software / "preload").write_text("".join(f"{ROOT}/build/release/software-cuda/12/{name}\n" for name in ("libcuda.so.1", "libcudart.so.12")))
            environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", TMPDIR=folder, XDG_CACHE_HOME=folder, PIP_INDEX_URL="http://127.0.0.1:9")
            for gpu in ("24GiB", "200MiB"):
                call("dryrun", "--software", str(software), "--gpu", gpu, "--report", str(report), "-f", "--", sys.executable, str(script), environment=dict(environment, PYTHONPATH=str(ROOT / "tests/programs/stub_dryrun")))
                row = json.loads(report.read_text())
                self.assertEqual(row["fits"], gpu == "24GiB")
                self.validate("dryrun", [row])
            found = call("bisect", "--software", str(software), "--torch", "2.7..2.8", "--by", "requested", "--yes", "--format", "jsonl", "--", sys.executable, str(script),
                         environment=dict(environment, PYTHONPATH=str(ROOT / "tests/programs/stub_pip")))
            *steps, end = [json.loads(line) for line in found.splitlines()]
            self.assertTrue(end["sites"])
            self.validate("bisect-step", steps)
            self.validate("bisect", [end])

    def test_what_is_wrong_is_found(self):
        good = rows("device", "list")[0]
        said = schema("device-list")
        for change, sentence in (({"gpu": 3}, "row.gpu is 3"), ({"total_bytes": None}, "row.total_bytes is None"), ({"has_latency": 1}, "row.has_latency is 1"), ({"more": 1}, "row.more is not described"),
                                 ({"compute": {}}, "row.compute.capability is missing")):
            self.assertIn(sentence, fault({**good, **change}, said))
        self.assertIn("row.a[1].b is 'x'", fault({"a": [{"b": 1}, {"b": "x"}]}, {"type": "object", "required": [], "properties": {"a": {"type": "array", "items": {"type": "object", "required": ["b"], "properties": {"b": {"type": "number"}}}}}}))
        self.assertIn("not 'fraglab.compare/1'", fault({"schema": "x"}, {"type": "object", "required": ["schema"], "properties": {"schema": schema("compare")["properties"]["schema"]}}))


if __name__ == "__main__":
    unittest.main()
