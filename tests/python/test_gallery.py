#!/usr/bin/env python3
"""Runs the notebooks of examples/notebooks, each in a process of its own: python3 tests/python/test_gallery.py (needs `make fraglab library`)."""
import ast
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
LINE_MAX = 200
# Runs cells as a notebook does: what the last expression of one gives is shown, as a page where it has one.
RUNNER = """
import ast, json, sys
names = {"__name__": "__main__"}
for cell in json.load(sys.stdin):
    body = ast.parse(cell).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None
    if hasattr(shown, "_repr_html_"):
        print("shown:", len(shown._repr_html_()))
"""


def code_of(book):
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]


def run(cells):
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")
    with tempfile.TemporaryDirectory() as folder:
        environment["TMPDIR"] = folder
        return subprocess.run([sys.executable, "-c", RUNNER], input=json.dumps(cells), capture_output=True, text=True, cwd=folder, env=environment, check=False)


class Gallery(unittest.TestCase):
    def test_there_are_six_and_each_is_a_page_of_the_form_with_no_results_in_it(self):
        self.assertEqual(len(BOOKS), 6)
        for path in BOOKS:
            book = json.loads(path.read_text())
            with self.subTest(path.name):
                self.assertEqual((book["nbformat"], book["nbformat_minor"]), (4, 5))
                self.assertEqual(len({cell["id"] for cell in book["cells"]}), len(book["cells"]))
                self.assertTrue(book["cells"][0]["source"][0].startswith("# "))
                for cell in book["cells"]:
                    self.assertFalse(cell.get("outputs"))
                    self.assertIsNone(cell.get("execution_count"))
                    self.assertLessEqual(max(map(len, cell["source"])), LINE_MAX)

    def test_each_runs_from_any_folder_checks_its_answer_and_shows_a_page(self):
        for path in BOOKS:
            with self.subTest(path.name):
                cells = code_of(json.loads(path.read_text()))
                checks = sum(isinstance(node, ast.Assert) for cell in cells for node in ast.walk(ast.parse(cell)))
                self.assertGreaterEqual(checks, 1)
                done = run(cells)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("shown:", done.stdout)
                self.assertEqual(done.stderr, "")

    def test_a_notebook_whose_answer_is_wrong_is_noticed(self):
        self.assertNotEqual(run(["x = 1", "assert x == 2"]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
