"""The table of tests/truth/recordings.sh: FRAGLAB FOLDER SCRATCH WORD RELEASE=ENVIRONMENT... Exits 1 when a recording that can be had differs
in another way than tests/truth/recordings.tsv says.

Clones are made in SCRATCH, or taken from FRAG_RECORDINGS, a folder of clones named OWNER+NAME; nothing of them is kept in the tree."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

COLUMNS = ("repository", "commit", "recording", "files", "release", "card", "packages", "edits", "folder", "command", "writes", "expected")
SECONDS = 900


class Row:
    def __init__(self, line):
        for name, value in zip(COLUMNS, line.rstrip("\n").split("\t"), strict=True):
            setattr(self, name, value)
        self.name = f"{self.repository} {os.path.basename(self.recording)}"
        self.skipped = ""
        self.error = ""
        self.found = None

    def is_expected(self):
        if self.found is None:
            return False
        count = len(self.found["differences"])
        return count == (0 if self.expected == "exact" else int(self.expected.split(" ", 1)[0]))


class Skip(Exception):
    pass


def read_rows(path, word):
    with open(path, encoding="utf-8") as file:
        rows = [Row(line) for line in file if line.strip() and not line.startswith("#")]
    return [row for row in rows if word in f"{row.repository} {row.recording}"]


def git(*arguments, cwd=None):
    run = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=False,
                         env=dict(os.environ, GIT_TERMINAL_PROMPT="0"))
    if run.returncode:
        raise Skip("git: " + (run.stderr.strip().splitlines() or ["failed"])[-1])


def check_out(repository, commit, paths, scratch):
    """Only what is checked out is fetched."""
    tree = os.path.join(scratch, repository.replace("/", "+"))
    if not os.path.isdir(tree):
        ready = os.path.join(os.environ.get("FRAG_RECORDINGS", ""), repository.replace("/", "+"))
        if os.environ.get("FRAG_RECORDINGS") and not os.path.isdir(ready):
            raise Skip("it is not in FRAG_RECORDINGS")
        inner = os.path.join(ready, "repo")
        source = inner if os.path.isdir(inner) else ready if os.path.isdir(ready) else f"https://github.com/{repository}"
        git("clone", "--quiet", "--no-checkout", "--filter=blob:none", source, tree)
    git("checkout", "--quiet", "--force", commit, "--", *paths, cwd=tree)
    return tree


def clone(row, scratch):
    own = [path for path in row.files.split() if not path.startswith("+")]
    for path in set(row.files.split()) - set(own):
        repository, rest = path[1:].split("@")
        commit, folder = rest.split(":")
        check_out(repository, commit, [folder], scratch)
    return check_out(row.repository, row.commit, [row.recording, *own], scratch)


def edit(row, tree):
    """FILE:COMMAND of sed, or FILE=TEXT, which writes a file."""
    for one in row.edits.split() if row.edits != "-" else ():
        name, mark, change = re.fullmatch("([^:=]+)([:=])(.*)", one).groups()
        path, change = os.path.join(tree, name), change.replace("~", " ")
        if mark == "=":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(change + "\n")
            continue
        with open(path, encoding="utf-8") as file:
            before = file.read()
        after = subprocess.run(["sed", "-E", change], input=before, capture_output=True, text=True, check=True).stdout
        if after == before:
            raise Skip(f"the edit {one} changes nothing")
        with open(path, "w", encoding="utf-8") as file:
            file.write(after)


LOOK = """import importlib.metadata as m, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
print(*[n for n in sys.argv[1:] if version(n.split('==')[0]) not in ([n.split('==')[1]] if '==' in n else [v for v in [version(n)] if v])])"""


def check_packages(row, environment):
    packages = row.packages.split() if row.packages != "-" else []
    run = subprocess.run([os.path.join(environment, "bin", "python"), "-c", LOOK, *packages], capture_output=True, text=True, check=True)
    if run.stdout.strip():
        raise Skip("it needs " + run.stdout.strip())


def dry_run(row, fraglab, tree, environment, recording, *options):
    words = shlex.split(row.command)
    settings = dict(os.environ, PATH=os.path.join(os.path.abspath(environment), "bin") + ":" + os.environ["PATH"])
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        settings[name] = value
    command = [fraglab, "dryrun", "-q", "--gpu", row.card, "--timeout", str(SECONDS), *options]
    command += ["-o", recording] if row.writes == "-" else []
    run = subprocess.run([*command, "--", *words], cwd=os.path.join(tree, row.folder), env=settings, capture_output=True, text=True, check=False)
    if not os.path.isfile(recording):
        raise RuntimeError((run.stderr.strip().splitlines() or ["no recording was written"])[-1])


def compare(row, fraglab, folder, real, dry):
    command = [sys.executable, os.path.join(folder, "compare_requests.py"), fraglab, real, dry, "--json"]
    run = subprocess.run(command + (["--window", "whole"] if row.writes != "-" else []), capture_output=True, text=True, check=False)
    if run.returncode == 2:
        raise RuntimeError(run.stderr.strip())
    return json.loads(run.stdout)


def read_figures(path):
    with open(path, encoding="utf-8") as file:
        return [(" ".join(r[k] for k in ("model", "operation", "dtype", "resolution")), r["max_allocated_mb"]) for r in json.load(file)]


def compare_figures(row, fraglab, tree, environment, real, written):
    """Name, peak published, peaks with the smallest and largest workspaces."""
    every = [read_figures(real)]
    for end in ("low", "high"):
        os.unlink(written)
        dry_run(row, fraglab, tree, environment, written, "--workspaces", end)
        every.append(read_figures(written))
    if any([name for name, _ in figures] != [name for name, _ in every[0]] for figures in every):
        raise RuntimeError("it measures other things than were published")
    rows = [(of[0][0], *(value for _, value in of)) for of in zip(*every)]
    return {"figures": rows, "differences": [r for r in rows if not r[2] <= r[1] <= r[3]]}


def do(row, fraglab, folder, scratch, environments):
    if row.release not in environments:
        raise Skip(f"torch {row.release} cannot be had")
    environment = environments[row.release]
    check_packages(row, environment)
    tree = clone(row, scratch)
    edit(row, tree)
    real, dry = os.path.join(scratch, "real.pickle"), os.path.join(scratch, "dry.pickle")
    shutil.copyfile(os.path.join(tree, row.recording), real)
    written = os.path.join(tree, row.writes) if row.writes != "-" else dry
    if row.writes.endswith(".json"):
        row.found = compare_figures(row, fraglab, tree, environment, real, written)
        return
    if os.path.exists(written):
        os.unlink(written)
    dry_run(row, fraglab, tree, environment, written)
    row.found = compare(row, fraglab, folder, real, written)


def show(row):
    if row.found is None:
        print(f"{row.name:86} {'skipped: ' + row.skipped if row.skipped else 'did not run: ' + row.error}")
        return
    if "figures" in row.found:
        for figure in row.found["figures"]:
            print("{:50} {:12.4f} MiB {:12.4f} {:12.4f}".format(*figure), "outside" if figure in row.found["differences"] else "")
        print(f"{row.name}: {sum(f[1] == f[3] for f in row.found['figures'])} of {len(row.found['figures'])} equal to the upper end,"
              f" {len(row.found['differences'])} outside{'' if row.is_expected() else ', NOT EXPECTED'}")
        return
    requests, frees, reserved = row.found["requests"], row.found["frees"], row.found["peaks"]["reserved"]
    line = (f"{row.name:86} {row.release:6} {row.card:10} {requests['equal']:>6,} of {requests['real']:<6,} {frees['equal']:>6,} of {frees['real']:<6,} "
            f"{reserved['dry'] - reserved['real']:+,}")
    print(line if row.found["differences"] == [] else f"{line}  {'' if row.is_expected() else 'NOT EXPECTED: '}{row.expected}")


def main(fraglab, folder, scratch, word, *places):
    environments = dict(place.split("=", 1) for place in places)
    rows = read_rows(os.path.join(folder, "recordings.tsv"), word)
    print(f"{'recording of a real GPU':86} {'torch':6} {'card':10} {'requests equal':16} {'frees equal':16} peak reserved")
    for row in rows:
        try:
            do(row, fraglab, folder, scratch, environments)
        except Skip as reason:
            row.skipped = str(reason)
        except (RuntimeError, OSError) as error:
            row.error = str(error)
        show(row)
        sys.stdout.flush()
    ran = [row for row in rows if not row.skipped]
    whole = [row for row in ran if not row.writes.endswith(".json")]
    exact = sum(row.found is not None and not row.found["differences"] for row in whole)
    print(f"recordings: {exact} of {len(whole)} equal in every request and free, {len(rows) - len(ran)} skipped")
    if not ran:
        return 77
    return 0 if all(row.is_expected() for row in ran) else 1


sys.exit(main(*sys.argv[1:]))
