#!/usr/bin/env python3
"""`pytest --fraglab` on tests of somebody else: those of the layers of timm, which put their tensors on TORCH_DEVICE.

    tests/python/foreign/foreign.py PYTHON [REPEATS]          (make foreign-tests PYTHON=... REPEATS=...)

PYTHON has PyTorch for CUDA, pytest and timm; no GPU is needed. The tests come from the source package of the release of timm that is there, by pip, into
build/foreign. All are marked by mark_all.py. A test must pass, or fail and say that it asks for values that only a GPU would compute; a second session must find the
figures of the first; 1 MiB held in one test must fail that test alone; one test, REPEATS (100) times, must stay at its baseline. 77: something cannot be had.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FILES = ["tests/test_layers_pool.py", "tests/test_layers.py"]
HELD = "test_attention_pool_latent_basic"  # gets the regression
REPEATED = "test_adaptive_avgmax_pool2d and not module"
ASKS = "values that only a GPU would compute"


class Package:
    """The tests, and the Python that runs them."""

    def __init__(self, python: str) -> None:
        self.python = python
        ask = "import importlib.metadata as m; print(*(m.version(name) for name in ('timm', 'torch', 'pytest')))"
        found = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
        if found.returncode != 0:
            leave(f"{python} has not all of timm, torch and pytest")
        self.timm, self.torch, self.pytest = found.stdout.split()
        self.made = ROOT / "build/foreign"
        self.folder = self.made / f"timm-{self.timm}"
        if not (self.folder / FILES[0]).exists():
            self.fetch()

    def fetch(self) -> None:
        self.made.mkdir(parents=True, exist_ok=True)
        pip = [self.python, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", "timm", f"timm=={self.timm}", "-d", str(self.made)]
        subprocess.run(pip, check=False)
        archive = self.made / f"timm-{self.timm}.tar.gz"
        if not archive.exists():
            leave(f"the source package of timm {self.timm} cannot be had")
        with tarfile.open(archive) as packed:
            packed.extractall(self.made, [member for member in packed if "/tests/" in member.name and member.isfile() and ".." not in member.name])
        archive.unlink()

    def session(self, name: str, *words: str, **settings: str) -> "Session":
        ends = self.made / f"{name}.jsonl"
        ends.unlink(missing_ok=True)
        path = os.pathsep.join([str(ROOT / "python"), str(HERE)])
        environment = dict(os.environ, TORCH_DEVICE="cuda", PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=path, FOREIGN_ENDS=str(ends), **settings)
        command = [self.python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "fraglab.pytest_plugin", "-p", "mark_all", "-q", "--tb=line", "--fraglab", "--fraglab-device", "dry",
                   "--fraglab-rows", "0", "--fraglab-baseline", str(self.made / "baseline.json"), *FILES, *words]
        with open(self.made / f"{name}.log", "w") as log:
            subprocess.run(command, cwd=self.folder, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
        return Session(ends)


class Session:
    """What became of each test: its name, and "passed", "skipped", "values" or "failed"."""

    def __init__(self, path: pathlib.Path) -> None:
        self.ends: list[tuple[str, str]] = []
        for line in path.read_text().splitlines() if path.exists() else []:
            report = json.loads(line)
            asks = any(ASKS in text for text in report["sections"])
            if report["when"] == "call" or report["outcome"] != "passed":
                self.ends.append((report["name"], "values" if report["outcome"] == "failed" and asks else report["outcome"]))

    def names(self, end: str) -> list[str]:
        return [name for name, found in self.ends if found == end]

    def __str__(self) -> str:
        words = {"passed": "passed", "values": "ask for values", "failed": "failed", "skipped": "skipped"}
        return ", ".join(f"{len(self.names(end))} {word}" for end, word in words.items() if self.names(end))


def leave(why: str) -> None:
    print(f"skipped: {why}")
    sys.exit(77)


def main(python: str, repeats: int) -> int:
    package = Package(python)
    print(f"tests of timm {package.timm}, PyTorch {package.torch}, pytest {package.pytest}")
    wrong = 0

    def say(is_right: bool, name: str, text: str) -> None:
        nonlocal wrong
        wrong += not is_right
        print(f"{'ok    ' if is_right else 'not ok'}  {name:<32}{text}", flush=True)

    baseline = package.made / "baseline.json"
    baseline.unlink(missing_ok=True)
    first = package.session("first", "--fraglab-update")
    records = json.loads(baseline.read_text())["figures"] if baseline.exists() else []
    say(bool(first.names("passed")) and not first.names("failed"), "marked, with no GPU", f"{first}; {len(records)} records")
    again = package.session("again")
    say(again.ends == first.ends, "compared with the first session", str(again))
    planted = package.session("planted", FOREIGN_HOLD=HELD)
    say([HELD] == planted.names("failed") and len(planted.ends) == len(first.ends), "1 MiB more in one test", f"{planted}: {', '.join(planted.names('failed'))}")
    many = package.session("many", "-k", REPEATED, FOREIGN_TIMES=str(repeats))
    tests = len(set(many.names("passed")))
    say(tests > 0 and len(many.ends) == tests * repeats == len(many.names("passed")), f"{repeats} times", f"{tests} tests, {many}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or not re.fullmatch(r"[1-9]\d{0,3}", (sys.argv[2:] or ["100"])[0]):
        sys.exit("usage: foreign.py PYTHON [REPEATS]")
    sys.exit(main(sys.argv[1], int((sys.argv[2:] or ["100"])[0])))
