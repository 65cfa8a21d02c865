"""The magics of a notebook: ``%fraglab COMMAND`` runs the program, ``%%fraglab`` records a cell and shows the answer."""
from __future__ import annotations

import html
import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
from typing import Any

from fraglab import _torch
from fraglab._native import UsageError
from fraglab._places import find_bin
from fraglab._record import record
from fraglab._recording import Recording, open as open_recording

CELL_USAGE = "%%fraglab [--gpu CARD] [--stacks]"
# The program of a cell that runs in a dry run: the package records it as it would in the notebook.
RUNNER = """import sys
file, cell, stacks = sys.argv[1:4]
import fraglab, runpy
with fraglab.record(file, stacks=stacks == "1"):
    runpy.run_path(cell, run_name="__main__")
"""


class Answer:
    """What a recorded cell needed: ``recording`` (None: nothing was recorded), ``text``."""

    def __init__(self, text: str, recording: Recording | None) -> None:
        self.text, self.recording = text, recording

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>" + (self.recording._repr_html_() if self.recording is not None else "")


class Magic:
    """Of a shell only register_magic_function and run_cell are used."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def register(self) -> None:
        self._shell.register_magic_function(self.line, "line", "fraglab")
        self._shell.register_magic_function(self.cell, "cell", "fraglab")

    def line(self, line: str) -> None:
        """%fraglab COMMAND...: run the program and show what it prints."""
        command = [find_bin(), *_words(line or "help")]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
            code = _show(child)
        if code:
            print(f"(exit {code})", file=sys.stderr)

    def cell(self, line: str, cell: str) -> Answer | None:
        """%%fraglab [--gpu CARD] [--stacks]: record a cell. With --gpu, or where the notebook has a GPU."""
        card, stacks = _cell_options(_words(line))
        if card is not None:
            return _dry(cell, card, stacks)
        if importlib.util.find_spec("torch") is None:
            raise UsageError(f"PyTorch is not installed in {sys.prefix}; %%fraglab records what a cell asks of it")
        torch = _torch.load()
        if not torch.cuda.is_available():
            raise UsageError("this notebook has no GPU that PyTorch can use, so nothing was run; %%fraglab --gpu rtx4090 runs the cell as a program of its own, "
                             "without the variables of the notebook, on software CUDA")
        session = record(None, stacks=stacks, quiet=True)
        with session:
            done = self._shell.run_cell(cell)
        if session.answer == "" and getattr(done, "success", True) is False:
            return None
        return Answer(session.answer, session.recording)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"fraglab: {error} in '{line}'") from None


def _cell_options(words: list[str]) -> tuple[str | None, bool]:
    """(the card or None, whether stacks are recorded)."""
    card, stacks, rest = None, False, list(words)
    while rest:
        word = rest.pop(0)
        if word == "--stacks":
            stacks = True
        elif word == "--gpu" and rest:
            card = rest.pop(0)
        elif word.startswith("--gpu=") and word != "--gpu=":
            card = word[len("--gpu="):]
        else:
            raise UsageError(f"fraglab: '{word}' is {'without its card' if word.startswith('--gpu') else 'unknown'}; expected {CELL_USAGE}")
    return card, stacks


def _show(child: subprocess.Popen) -> int:
    """Prints as it comes. Ctrl-C, or the notebook's stop, ends the child."""
    assert child.stdout is not None
    try:
        for line in child.stdout:
            print(line.decode("utf-8", "replace"), end="", flush=True)
        return child.wait()
    except BaseException:
        child.terminate()
        raise


def _dry(cell: str, card: str, stacks: bool) -> Answer | None:
    """Runs a cell as a program of its own in a dry run; what it prints is shown, and its recording is the answer."""
    with tempfile.TemporaryDirectory(prefix="fraglab-cell-") as folder:
        program, runner, file = (os.path.join(folder, name) for name in ("cell.py", "runner.py", "cell.pickle"))
        for path, text in ((program, cell), (runner, RUNNER)):
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        # The package of this process, which need not be installed.
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [os.path.dirname(os.path.dirname(__file__)), os.environ.get("PYTHONPATH")])))
        command = [find_bin(), "dryrun", "-q", "--gpu", card, "--", sys.executable, runner, file, program, str(int(stacks))]
        print(f"fraglab: a dry run of this cell on {card}, as a program of its own: without the variables of the notebook", flush=True)
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as child:
            code = _show(child)
        if code:
            print(f"(exit {code})", file=sys.stderr)
        if not os.path.exists(file):
            return None
        recording = open_recording(file, name="cell")
        return Answer(f"recorded on {card} (dry run)", recording)
