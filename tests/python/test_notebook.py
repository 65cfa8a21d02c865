#!/usr/bin/env python3
"""What a notebook shows, and its magics: python3 tests/python/test_notebook.py (needs `make fraglab library software-cuda`)."""
import contextlib
import html.parser
import importlib.util
import io
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import stubbed  # noqa: E402

sys.path.insert(0, str(stubbed.ROOT / "python"))
import fraglab  # noqa: E402
from fraglab import _magic, _pictures, _results  # noqa: E402

SAMPLE = str(stubbed.ROOT / "traces/samples/gpt-varlen.pickle.zst")
EVIL = "<script>alert(1)</script><img src=x onerror='alert(1)'>\"'&"
TAGS = {"table", "caption", "tr", "th", "td", "p", "pre", "svg", "polygon", "polyline", "line", "rect"}


class Page(html.parser.HTMLParser):
    """Refuses all that could run or load something."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in TAGS:
            raise AssertionError(f"<{tag}>")
        for name, _ in attributes:
            if name.startswith("on") or name in ("href", "src", "xlink:href"):
                raise AssertionError(f"<{tag} {name}>")
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}>")

    def handle_data(self, data):
        self.texts.append(data)


def page(thing):
    return Page(thing._repr_html_())


class Shell:
    """The two functions of IPython's shell that are used."""

    def __init__(self, names=None):
        self.magics, self.names = {}, {} if names is None else names

    def register_magic_function(self, function, magic_kind="line", magic_name=None):
        self.magics[magic_kind, magic_name] = function

    def run_cell(self, cell):
        exec(compile(cell, "cell", "exec"), self.names)


class Pages(unittest.TestCase):
    def test_every_result_has_a_table_and_runs_have_pictures(self):
        recording = fraglab.open(SAMPLE)
        result = recording.run()
        other = recording.run("best-fit", label="pytorch")
        for thing, pictures in ((recording, 2), (result, 2), (result.timeline(), 2), (result.layout(result.peak.reserved_at_event), 1), (fraglab.diff(recording, recording), 0),
                                (recording.leaks(), 0), (recording.facts(), 0), (recording.verify(), 0), (recording.min_capacity(), 0), (fraglab.compare(result, other), 0),
                                (fraglab.tune(recording, settings=2), 0)):
            with self.subTest(thing=type(thing).__name__):
                found = page(thing)
                self.assertEqual(found.tags.count("svg"), pictures)
                self.assertIn("table", found.tags)
                self.assertEqual(found.open, [])

    def test_a_picture_has_the_peak_and_the_blocks_of_the_run(self):
        trace = fraglab.Trace("two")
        trace.alloc("a", "8MiB")
        trace.alloc("b", "24MiB")
        trace.free("a")
        result = trace.finish().run("direct")
        shown = result._repr_html_()
        self.assertEqual(shown.count("<rect"), 4)  # a segment and a block each
        # The second block begins where the first ends, and takes three quarters of the height.
        self.assertIn("height='180.00' fill='#7aa6d6'", shown)
        self.assertIn("height='60.00'", shown)
        self.assertIn("32.00 MiB", "".join(Page(shown).texts))

    def test_an_event_more_than_are_drawn_is_said_and_not_replayed(self):
        result = fraglab.open(SAMPLE).run()
        most, _results.MOST_DRAWN = _results.MOST_DRAWN, result.trace.events - 1
        try:
            found = page(result)
        finally:
            _results.MOST_DRAWN = most
        self.assertNotIn("svg", found.tags)
        self.assertIn("no pictures, as there are 25,916 events", "".join(found.texts))

    def test_nothing_of_a_file_can_run(self):
        snapshot = {"segments": [], "external_annotations": [], "device_traces": [[]]}
        frames = [{"filename": EVIL, "name": EVIL, "line": 1}]
        for step in range(6):
            snapshot["device_traces"][0] += [{"action": "alloc", "addr": 4096 * (step + 1), "size": 512 * (step + 1), "stream": 0, "frames": frames, "time_us": 3 * step + 1, "user_metadata": EVIL}]
            snapshot["external_annotations"] += [{"name": EVIL, "stage": "START", "time_us": 3 * step, "device": 0}]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recording = fraglab.open(snapshot, name=EVIL)
        result = recording.run(label=EVIL)
        first = fraglab.Trace(EVIL)
        first.alloc("a", 512)
        pages = [page(thing) for thing in (recording, result, fraglab.diff(recording, recording), fraglab.compare(result, recording.run("best-fit", label=EVIL)), first.finish(),
                                           _magic.Answer(EVIL, recording), fraglab.Fields({EVIL: EVIL, "list": [{EVIL: EVIL}]}))]
        self.assertTrue(all("script" not in found.tags for found in pages))
        self.assertIn(EVIL, "".join(pages[0].texts))
        self.assertIn(EVIL, "".join(pages[2].texts))

    def test_many_boxes_and_rows_are_cut_off_and_said(self):
        blocks = [(0, 1, 10 * number, 10) for number in range(2000)]
        shown = _pictures.boxes([(0, 1, 0, 20000)], blocks, 1)
        self.assertEqual(shown.count("<rect"), 1501)
        self.assertIn("the 1,500 largest of 2,000 blocks", shown)
        self.assertIn("<p>3 more</p>", _pictures.grid(["a"], [[1]] * 13, ""))


class Magics(unittest.TestCase):
    def setUp(self):
        self.shell = Shell()
        fraglab.load_ipython_extension(self.shell)

    def said(self, kind, *arguments):
        """(what was printed, to stdout and stderr; the answer)"""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            answer = self.shell.magics[kind, "fraglab"](*arguments)
        return out.getvalue(), answer

    def test_a_line_runs_the_program(self):
        command = f"run '{SAMPLE}' --policy best-fit --format jsonl"
        expected = subprocess.run([fraglab.find_bin(), "run", SAMPLE, "--policy", "best-fit", "--format", "jsonl"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.said("line", command), (expected, None))
        text, _ = self.said("line", "run /nowhere.pickle")
        self.assertIn("/nowhere.pickle", text)
        self.assertTrue(text.endswith("(exit 3)\n"))
        self.assertIn("usage: fraglab", self.said("line", "")[0])
        with self.assertRaisesRegex(fraglab.UsageError, "No closing quotation"):
            self.said("line", "run 'x")

    def test_wrong_options_of_a_cell_say_what_is_right(self):
        for line, sentence in (("--stack", "'--stack' is unknown; expected %%fraglab .--gpu CARD. .--stacks."), ("--gpu", "'--gpu' is without its card"), ("x", "'x' is unknown")):
            with self.assertRaisesRegex(fraglab.UsageError, sentence):
                self.said("cell", line, "1/0")

    def test_a_cell_without_a_gpu_says_what_to_do_and_is_not_run(self):
        program = f"""
import sys
sys.path[:0] = [{str(stubbed.ROOT / 'python')!r}, {str(stubbed.ROOT / 'tests/python')!r}]
import types
torch = types.ModuleType("torch")
torch.version, torch.__version__ = types.SimpleNamespace(cuda="12.8"), "2.9.1"
torch.cuda = types.SimpleNamespace(is_available=lambda: False)
torch.__spec__ = types.SimpleNamespace()
sys.modules["torch"] = torch
import fraglab, test_notebook
shell = test_notebook.Shell()
fraglab.load_ipython_extension(shell)
try:
    shell.magics["cell", "fraglab"]("", "print('it ran')")
except fraglab.UsageError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        self.assertIn("this notebook has no GPU that PyTorch can use, so nothing was run; %%fraglab --gpu rtx4090 runs the cell as a program of its own", done.stdout)
        self.assertNotIn("it ran", done.stdout)

    def test_a_cell_is_recorded_where_there_is_a_gpu(self):
        program = f"""
import sys
sys.path.insert(0, {str(stubbed.ROOT / 'tests/python')!r})
import torch, fraglab, test_notebook
shell = test_notebook.Shell({{"torch": torch}})
fraglab.load_ipython_extension(shell)
answer = shell.magics["cell", "fraglab"]("--stacks", "x = torch.empty(20)")
print(shell.names["x"] is not None, answer.recording.facts().peak_requested_bytes >> 20, "requests recorded" in repr(answer), "<svg" in answer._repr_html_())
"""
        with tempfile.TemporaryDirectory() as folder:
            done = stubbed.dry(program, folder=folder)
        self.assertEqual(done.stdout.strip(), "True 20 True True", done.stderr)

    def test_a_cell_with_a_card_runs_by_itself_in_a_dry_run(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "fraglab")  # the stand-in for PyTorch loads what the test lists
            program.write_text(f'#!/bin/sh\nshift\nexec "{stubbed.ROOT}/fraglab" dryrun --software "{stubbed.software(folder)}" "$@"\n')
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            found, _magic.find_bin = _magic.find_bin, lambda: str(program)
            before, os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH"), str(stubbed.ROOT / "tests/programs/stub_dryrun")
            try:
                text, answer = self.said("cell", "--gpu=1GiB", "import torch\nx = torch.empty(20)\nprint('cell ran')")
                failed, nothing = self.said("cell", "--gpu 1GiB", "raise SystemExit(7)")
            finally:
                _magic.find_bin = found
                os.environ.pop("PYTHONPATH")
                if before is not None:
                    os.environ["PYTHONPATH"] = before
        self.assertIn("as a program of its own: without the variables of the notebook", text)
        self.assertIn("cell ran", text)
        self.assertEqual(answer.recording.facts().peak_requested_bytes, 20 << 20)
        self.assertIn("(exit 7)", failed)

    @unittest.skipUnless(importlib.util.find_spec("IPython"), "IPython is not installed")
    def test_ipython_itself_loads_and_runs_them(self):
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        with tempfile.TemporaryDirectory() as folder:
            os.environ["IPYTHONDIR"] = folder
            shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                shell.run_line_magic("load_ext", "fraglab")
                shell.run_line_magic("fraglab", "--version")
                self.assertIn("<svg", shell.display_formatter.format(fraglab.open(SAMPLE).run())[0]["text/html"])
            self.assertIn(fraglab.version(), out.getvalue())
            with self.assertRaisesRegex(fraglab.UsageError, "unknown"):
                shell.run_cell_magic("fraglab", "--bad", "pass")


if __name__ == "__main__":
    unittest.main()
