#!/usr/bin/env python3
"""Would the tests notice? Changes one operator at a time in a copy of the tree and runs the tests.

    tests/fuzz/mutants.py [--count 60] [--seed 1] [--seconds 3600] [--only REGEX] [--change REGEX] [--jobs 2] [--quick] [--again LOG] [--work FOLDER] [--unreached]

Each change (a mutant) is drawn at random among the operators of sim/, allocators/, traces/,
planner/, messages/ and studies/; assertions, audits of policies and what
stands in no function (tables, limits) are left alone. All are built at once: each changed function stands there a
second time, and the environment variable FRAG_MUTANT says which one is called. Then
tests run that the object is linked into, until one fails: the test of that file, the tests of what
includes it, the others, golden logs, and then the first of these tests with the address sanitizer;
once all changes had these, what no test noticed goes through the command-line tests, those of its
folder first (with --quick those alone). A test that never runs the changed line cannot notice: a copy of
the tree counts lines (gcov) to know which run it, and only these are tried. --unreached lists the lines with
an operator that no unit test and no golden log runs. A change that leaves
the object as it was is equivalent, as is "a <= b ? a : b" for "a < b ? a : b" and the like, and a bound of words that
are asked for where there are none; others that no test
can notice are listed in tests/fuzz/mutants.equivalent, each with the reason. With --again only what an earlier run printed as
not noticed is judged, to see what new tests notice. The checkout itself is never changed.
Exit code 1: less than 95 % were noticed.
"""
import argparse
import bisect
import concurrent.futures
import copy
import glob
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

# Nothing but such audits, which look for our own mistakes.
AUDITS = ("allocators/index/index_audit.c",)
FOLDERS = ("sim", "allocators", "traces", "planner", "messages", "studies")
BINARY = re.compile(r"(?<= )(==|!=|<=|>=|<|>|&&|\|\||<<|>>|\+=|-=|\|=|&=|\+|-|\*|/|%|&|\||\^)(?= )")
STEPS = re.compile(r"\+\+|--")
NOT = re.compile(r"!(?=[a-z(])")
WORD = re.compile(r"(?<=return )(true|false)(?=;)|\b(continue|break)(?=;)")
# What `--check` has a policy and its indexes find out about themselves, up to the end of the function.
AUDIT = re.compile(r"^(?:static )?bool (?:check_\w+|\w+_check(?:_\w+)?)\((?:const frag_(?:policy|page_space|block_space|free_index_store"
                   r"|bit_lists|vma_lists|address_index|composed|ranges) |index_audit )\*.*?^}", re.M | re.S)
# "a < b ? a : b": where both are equal either is taken, so that "<=" is the same.
OPERAND = r"(?:\w+(?:\[\w+\])?(?:->|\.))*\w+(?:\[\w+\])?(?:\([^()]*\))?"
# A function that stands in a file: 1 its head, 2 its name, 3 its parameters.
FUNCTION = re.compile(r"^([A-Za-z_][^;{}=#]*?\b(\w+)\(([^;{}]*)\))\n\{\n.*?^\}", re.M | re.S)
PARAMETER = re.compile(r"\(\*(\w+)\)|(\w+)(?:\[[^]]*\])*$")
WHICH = """char *getenv(const char *);
int atoi(const char *);
__attribute__((weak, visibility("hidden"))) int frag_mutant;
static __attribute__((constructor)) void frag_mutant_set(void) { frag_mutant = getenv("FRAG_MUTANT") ? atoi(getenv("FRAG_MUTANT")) : 0; }
#line 1
"""
CHOICE = re.compile(r"(?:^|[=(,?:] *|return |&& |\|\| )(%s) (?:<=?|>=?) (%s)\s*\?\s*(?:\(\w+\))?(%s)\s*:\s*(?:\(\w+\))?(%s)(?=[;),])"
                    % ((OPERAND,) * 4), re.M)
# As well "if (a < b) a = b;", whatever is asked before, and "a < b ? b - a : 0".
LEAST = re.compile(r"(?:\bif \(|&& )(%s) (?:<=?|>=?) (%s)\)\s+(%s) = (%s);(?!\s*else)" % ((OPERAND,) * 4))
REST = re.compile(r"(?:^|[=(,?:] *|return |&& |\|\| )(%s) (?:<=?|>=?) (%s)\s*\?\s*(?:\(\w+\))?(%s) - (%s)\s*:\s*0(?=[;),])"
                  % ((OPERAND,) * 4), re.M)
OTHERS = {
    "==": ["!="], "!=": ["=="], "<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"],
    "&&": ["||"], "||": ["&&"], "<<": [">>"], ">>": ["<<"], "+=": ["-="], "-=": ["+="], "|=": ["&="],
    "&=": ["|="], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "&": ["|"], "|": ["&"],
    "^": ["|"], "++": ["--"], "--": ["++"], "!": [""], "true": ["false"], "false": ["true"],
    "continue": ["break"], "break": ["continue"],
}
# Command-line tests that have to do with a folder, after the one of all commands and those that often
# name its last part ("sweep"); the rest comes after these.
BATS_FIRST = {
    "sim": ["trace", "results", "command_line", "device", "statistics", "compare", "golden", "plot"],
    "allocators": ["golden", "golden_peers", "results", "command_line", "offline"],
    "traces": ["trace", "snapshot", "exchange", "explain", "golden", "command_line"],
    "planner": ["offline", "tune"],
    "messages": ["explain"],
    "studies": ["explain", "golden", "tune", "sweep", "compare", "results"],
}
GOLDEN = ("golden", "golden-nasty", "golden-peers")
# Nothing of these folders is in a replay.
PLAIN = ("planner", "messages", "studies")
# These do not run the parts that are changed, or change nothing of what they do.
BATS_NEVER = {"tidiness", "docs", "setup", "help", "gpu_report", "python_recorder", "software_cuda"}
# A change may make a test run for ever. A test that passed before gets TIMES the processor time that it
# took then, so that a busy machine fails none; what waits for something that never comes is ended too.
LIMIT_SECONDS = 600
COMPILE = "gcc -std=c11 -D_DEFAULT_SOURCE -I. -w "
FIRST_SECONDS = {"unit": 60, "asan": 240, "fuzzer": 120, "golden": 120, "bats": 240}
LEAST_SECONDS = 4
TIMES = 8
WAITING_TIMES, LEAST_WAITING_SECONDS = 4, 60
# A sanitizer takes many times as long: so many tests, those with most to do with the file, and together no more than
# so many seconds when they count lines, which takes about as long.
ASAN_TESTS, ASAN_SECONDS = 12, 60


def blanked(text):
    """The text with comments, strings and preprocessor lines made blank, of the same length."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, text, flags=re.M)
    # Assertions and audits guard against our own bugs: no test makes them fail.
    text = AUDIT.sub(blank, text)
    return re.sub(r"(?:FRAG_ASSERT\w*|_Static_assert)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", blank, text)


def statement_of(code, start, end):
    """The first and the last line of what stands there in a blanked text, from the end of what stands before it."""
    before = max(code.rfind(mark, 0, start) for mark in ";{}")
    first = start - len(code[before + 1:start].lstrip())
    last = min(code.find(mark, end) for mark in ";{}" if mark in code[end:])
    return code.count("\n", 0, first) + 1, code.count("\n", 0, last) + 1


# In a line of mutants.equivalent.
CHANGE = re.compile(r"`([^`→]*)→([^`]*)`")

# "i < read->count" where words are only asked for by frag_message_line_...(): past the last there is none.
LAST_WORD = re.compile(r"< read->count\b")


class Mutant:
    def __init__(self, path, text, start, end, new, statement, function):
        self.path = path
        self.line = text.count("\n", 0, start) + 1
        self.statement = statement
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", end)
        self.before = text[begin:stop].strip()
        self.after = (text[begin:start] + new + text[end:stop]).strip()
        self.original, self.start, self.end, self.new = text, start, end, new
        self.number = 0  # of those that are built at once
        self.is_choice = new in (text[start:end] + "=", text[start:end].rstrip("=")) and any(
            choice.start(1) < start < choice.start(2) == end + 1 and sorted(choice.group(1, 2)) == sorted(choice.group(3, 4))
            for form in (CHOICE, LEAST, REST) for choice in form.finditer(text[:text.find(";", end) + 16], begin))
        self.is_past_last = (path.startswith("messages/") and new == "<=" and LAST_WORD.match(text, start) is not None
                             and "words[" not in function)

    def text(self, first=0, last=None):
        """The file with the change, or a part of it that has the change in it."""
        return self.original[first:self.start] + self.new + self.original[self.end:last]

    def is_equivalent(self, known):
        return self.is_choice or self.is_past_last or self.key() in known

    def key(self):
        return (self.path, self.before, self.after)


def parameters(text):
    """The names; None: there are some without a name."""
    names, depth, last = [], 0, 0
    for i, letter in enumerate(text + ","):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            names.append(text[last:i].strip())
            last = i + 1
    if names == ["void"]:
        return []
    found = [PARAMETER.search(name) for name in names]
    return None if "..." in names or None in found else [match.group(1) or match.group(2) for match in found]


def functions_of(code):
    """Those of a blanked text that a copy can be called from, with the names of their parameters."""
    named = [(function, parameters(function.group(3))) for function in FUNCTION.finditer(code)]
    return [(function, names) for function, names in named if names is not None]


def parted(mutants):
    """The text of their file with each function that one of them changes a second time, in the place before it; the
    function itself calls the one that is wanted. Those that are in it have a number from then on."""
    text = mutants[0].original
    parts, place = [WHICH], 0
    for function, names in functions_of(blanked(text)):
        first, last = function.span()
        inside = [mutant for mutant in mutants if function.end(1) < mutant.start < last]
        if not inside:
            continue
        kind = re.sub(r"\b(static|inline|FRAG_INLINE)\b\s*", "", text[first:function.start(2)])
        line = "\n#line %d\n" % (text.count("\n", 0, first) + 1)
        calls = ""
        parts += [text[place:first], text[first:function.end(1)], ";"]
        for mutant in inside:
            mutant.number = parted.last = parted.last + 1
            name = "%s__%d" % (function.group(2), mutant.number)
            parts += [line, "static ", kind, name, mutant.text(function.end(2), last)]
            call = "%s(%s)" % (name, ", ".join(names))
            calls += "case %d: " % mutant.number + (call + "; return; " if kind.strip() == "void" else "return " + call + "; ")
        body = text.index("{", function.end(1)) + 1
        parts += [line, text[first:body], " switch (frag_mutant) { " + calls + "default: break; }"]
        place = body
    return "".join(parts) + text[place:]


parted.last = 0


def mutants_of(root, path):
    text = open(os.path.join(root, path)).read()
    code = blanked(text)
    functions = [function.span() for function, _ in functions_of(code)]
    for pattern in (BINARY, STEPS, NOT, WORD):
        for match in pattern.finditer(code):
            inside = [code[first:last] for first, last in functions if first < match.start() < last]
            for new in OTHERS[match.group(0)] if inside else []:
                yield Mutant(path, text, match.start(), match.end(), new, statement_of(code, match.start(), match.end()), inside[0])


def sources(root, only):
    listed = subprocess.run(["git", "ls-files", "--"] + list(FOLDERS), cwd=root, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split()
            if path.endswith(".c") and path not in AUDITS and re.search(only, path)]


def equivalents(root):
    known, path, keys = set(), "", set()
    for line in open(os.path.join(root, "tests/fuzz/mutants.equivalent")):
        parts = [part.strip() for part in line.split(" @@ ")]
        if line.startswith("#") or not line.strip():
            continue
        if len(parts) == 1:
            path = parts[0]
            keys = {mutant.key() for mutant in mutants_of(root, path)} if os.path.exists(os.path.join(root, path)) else set()
            continue
        if len(parts) != 2 or not CHANGE.search(parts[0]):
            sys.exit("tests/fuzz/mutants.equivalent: expected a FILE or 'LINE with `OLD→NEW` @@ WHY', found: " + line.strip())
        key = (path, CHANGE.sub(r"\1", parts[0]), CHANGE.sub(r"\2", parts[0]).strip())
        if key in keys:
            known.add(key)
        else:
            print("tests/fuzz/mutants.equivalent: no such change can be made any more: %s: %s" % (path, line.strip()), flush=True)
    return known


class Tree:
    """A copy of the checkout with everything built, in which one mutant lives at a time."""

    def __init__(self, root, folder, jobs, flags=(), texts={}):
        self.folder = folder
        self.flags = list(flags)
        self.environment = None
        self.passes = {}  # by test: does it pass without a mutant?
        self.took = {}  # by test: the most seconds of the processor that it took to pass
        os.makedirs(folder, exist_ok=True)
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True)
        for path in listed.stdout.split("\n"):
            self.copy(root, path, texts.get(path))
        self.build = os.path.join(folder, "build/release")
        self.make(jobs, "MODE=release", "fraglab", "library", "test-programs")
        if not flags:
            made = ["libfraglab.a", "libsupport.a", "libcli.a", "libgpu.a", "libapi.a"]
            made += [os.path.relpath(path, folder)[:-1] + "o" for path in sorted(glob.glob(os.path.join(folder, "tests/*/test_*.c")))]
            self.make(jobs, "MODE=asan", *["build/asan/" + name for name in made])

    def make(self, jobs, *arguments):
        # A warning is for people to see; here the tests have to.
        done = subprocess.run(["make", "-s", "-j%d" % jobs, "WARNINGS=-w"] + self.flags + list(arguments), cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("mutants: the copy of the tree cannot be built:\n" + done.stderr[-2000:])

    def copy(self, root, path, text):
        """text: what the copy says instead; None: the same. A file that says so already keeps its time."""
        source, target = os.path.join(root, path), os.path.join(self.folder, path)
        if os.path.islink(source):
            if not os.path.lexists(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.symlink(os.readlink(source), target)
            return
        if not os.path.isfile(source):
            return
        content = open(source, "rb").read() if text is None else text.encode()
        if os.path.isfile(target) and open(target, "rb").read() == content:
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(source, target)
        if text is not None:
            self.write(path, text)

    def symbols(self, path, *options):
        shown = subprocess.run(["nm", "--defined-only", *options, os.path.join(self.build, path)], capture_output=True, text=True, check=True)
        return {line.split()[-1] for line in shown.stdout.split("\n") if len(line.split()) == 3} - {"frag_mutant"}

    def links(self, units, paths):
        """Which tests have the object of a source in them: the archive gives only what is needed. A linked program
        has what is hidden as local symbols."""
        objects = {path: self.symbols(path[:-2] + ".o", "-g") for path in paths}
        programs = {unit: self.symbols("tests/" + unit) for unit in units}
        return {path: {unit for unit in units if objects[path] & programs[unit]} for path in paths}

    def run(self, command, seconds=LIMIT_SECONDS):
        """The exit code; None: it took too long. self.seconds: of the processor."""
        process = subprocess.Popen("ulimit -t %d; %s" % (seconds, command), shell=True, cwd=self.folder, env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        timer = threading.Timer(max(LEAST_WAITING_SECONDS, WAITING_TIMES * seconds), os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = usage.ru_utime + usage.ru_stime
        ends = (signal.SIGKILL, signal.SIGXCPU)
        return None if process.returncode in [-end for end in ends] + [128 + end for end in ends] else process.returncode

    def digest(self, path):
        # Line numbers stand in assertions alone, and one operator changes none.
        return hashlib.sha1(open(os.path.join(self.folder, path), "rb").read()).hexdigest()

    def write(self, path, text):
        with open(os.path.join(self.folder, path), "w") as file:
            file.write(text)

    def put(self, mutant):
        """Makes the change the one that is tested; None: none is."""
        self.environment = {**os.environ, "FRAG_MUTANT": str(mutant.number)} if mutant else None

    def is_same(self, mutant):
        """Does the change leave the object as it was?"""
        digests = []
        for text in (mutant.original, mutant.text()):
            self.write("build/alone.c", text)
            self.run(COMPILE + "-O3 -c -o build/alone.o build/alone.c")
            digests.append(self.digest("build/alone.o"))
        return digests[0] == digests[1]

    def limit(self, test):
        if test in self.took:
            return max(LEAST_SECONDS, TIMES * self.took[test])
        return FIRST_SECONDS[test[0]]

    def notices(self, test, limit):
        """'noticed', 'timed out', or None."""
        code = self.run_test(test, limit)
        if code == 0:
            self.took[test] = max(self.took.get(test, 0), self.seconds)
        return None if code == 0 else "timed out" if code is None else "noticed"

    def run_test(self, test, limit, goes_on=False):
        """The exit code; None: it took too long. goes_on: to the end, whatever fails before."""
        kind, name = test
        if kind == "unit":
            return self.run("build/release/tests/" + name, limit)
        if kind == "asan":
            self.make(1, "MODE=asan", "build/asan/tests/" + name)
            return self.run("build/asan/tests/" + name, limit)
        if kind == "fuzzer":
            return self.run("build/release/tests/policy_fuzzer --events %s --keep build/mutant.trace" % name, limit)
        if kind == "golden":
            folder = "build/golden" if name == "golden" else "tests/data/" + name
            return self.run("sh tests/golden_logs.sh && ./fraglab verify --against golden " + folder, limit)
        if goes_on:
            return self.run("bats tests/*/%s.bats" % name, limit)
        # bats goes on after a failure: the first one is enough.
        return self.run("bats tests/*/%s.bats 2>&1 | { grep -m 1 '^ *✗\\|^not ok' && exit 1; exit 0; }" % name, limit)


class Reach:
    """Which tests run which lines: told by gcov in a copy of the tree of its own. What is known of a test
    is kept for later runs, until the test or a source changes. A test that never runs a line cannot notice
    that it was changed."""

    # With optimisation lines that ran are counted as if they had not, such as the last return of a function.
    FLAGS = ["CFLAGS=-O0 --coverage", "LDFLAGS=--coverage"]

    def __init__(self, root, folder, jobs):
        self.root, self.folder, self.paths = root, folder, sources(root, "")
        self.kept = os.path.join(folder, "ran.json")
        self.known = json.load(open(self.kept)) if os.path.exists(self.kept) else {}
        self.sources = hashlib.sha1(b"".join(open(os.path.join(root, path), "rb").read() for path in self.paths)).hexdigest()
        self.checked = set()  # what is known of these tests holds
        self.jobs = jobs
        self.tree = None
        self.lock = threading.Lock()

    def key(self, test):
        files = {"unit": "tests/*/%s.c", "bats": "tests/*/%s.bats"}.get(test[0], "tests/golden_logs.sh")
        found = glob.glob(os.path.join(self.root, files % test[1] if "%" in files else files))
        return hashlib.sha1((self.sources + "".join(open(path).read() for path in found)).encode()).hexdigest()

    def lines(self, test):
        """Of each source the lines that a test runs, see `ran`."""
        return self.known[" ".join(test)]["lines"]

    def learn(self, tests):
        """What is not known of these tests yet, several side by side."""
        tests = {("unit", name) if kind == "asan" else (kind, name) for kind, name in tests}
        new = sorted(test for test in tests - self.checked if self.known.get(" ".join(test), {}).get("key") != self.key(test))
        if new and self.tree is None:
            self.tree = Tree(self.root, self.folder, self.jobs, self.FLAGS)

        def one(test):
            start = time.monotonic()
            found = {"key": self.key(test), "lines": self.count(test), "seconds": round(time.monotonic() - start, 1)}
            with self.lock:
                self.known[" ".join(test)] = found
                with open(self.kept + ".new", "w") as file:
                    json.dump(self.known, file)
                os.replace(self.kept + ".new", self.kept)

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, new))
        self.checked |= tests

    def count(self, test):
        counts = os.path.join(self.folder, "counts", "-".join(test))
        shutil.rmtree(counts, ignore_errors=True)
        for note in glob.glob(os.path.join(self.tree.build, "**/*.gcno"), recursive=True):
            target = os.path.join(counts, os.path.relpath(note, self.folder))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.link(note, target)
        depth = len(os.path.abspath(self.folder).strip("/").split("/"))
        tree = copy.copy(self.tree)
        tree.environment = {**os.environ, "GCOV_PREFIX": counts, "GCOV_PREFIX_STRIP": str(depth)}
        tree.run_test(test, 2 * LIMIT_SECONDS, True)
        data = [path for path in ("build/release/%s.gcda" % path[:-2] for path in self.paths) if os.path.exists(os.path.join(counts, path))]
        if not data:
            shutil.rmtree(counts)
            return {}
        shown = subprocess.run(["gcov", "-j", "-t"] + data, cwd=counts, capture_output=True, text=True, check=True).stdout
        shutil.rmtree(counts)
        return {file["file"]: self.ran(file) for document in shown.splitlines() for file in json.loads(document)["files"]
                if file["file"].endswith(".c")}

    @staticmethod
    def ran(file):
        """Its lines in order, from one that gcov counts to the next one of the other kind: [first that ran, first that
        did not, ...]. What gcov does not count, as the second line of a statement, is as the line before."""
        counts = {}
        for line in file["lines"]:  # a function that stands in others has its lines once for each
            counts[line["line_number"]] = counts.get(line["line_number"], 0) + line["count"]
        changes, is_running = [], False
        for line, count in sorted(counts.items()):
            if (count > 0) != is_running:
                changes.append(line)
                is_running = count > 0
        return changes

    def runs(self, test, path, statement):
        """Does it run one of these lines? Of a long statement gcov counts some lines and not others."""
        changes = self.lines(("unit", test[1]) if test[0] == "asan" else test).get(path, ())
        return any(bisect.bisect_right(changes, line) % 2 == 1 for line in range(statement[0], statement[1] + 1))

    def tests(self, mutant, tests):
        """Those that can notice, so none if none runs the line; not many with a sanitizer. Command-line tests: the shortest first, as none is
        much likelier than another."""
        running = [test for test in tests if self.runs(test, mutant.path, mutant.statement)]
        asan, left = [], ASAN_SECONDS
        for test in [test for test in running if test[0] == "asan"][:ASAN_TESTS]:
            seconds = self.known["unit " + test[1]]["seconds"]
            if seconds <= left:
                asan.append(test)
                left -= seconds
        running = [test for test in running if test[0] != "asan"] + asan
        return sorted(running, key=lambda test: self.known[" ".join(test)]["seconds"] if test[0] == "bats" else 0)


class Order:
    """Which tests come first for a file: those named for it, those that include its header, then those that
    noticed something in its folder before."""

    def __init__(self, root, is_quick):
        self.is_quick = is_quick
        self.lock = threading.Lock()
        self.hits = {}
        def stems(ending):
            paths = sorted(glob.glob(os.path.join(root, "tests", "*", ending)))
            return {os.path.splitext(os.path.basename(path))[0]: path for path in paths}
        self.units = sorted(stems("test_*.c"))
        self.bats = sorted(set(stems("*.bats")) - set(BATS_NEVER))
        self.bats_texts = {name: open(path).read() for name, path in stems("*.bats").items()}
        self.texts = {unit: open(path).read() for unit, path in stems("test_*.c").items()}

    def hit(self, path, test):
        with self.lock:
            for place in (path, path.split("/")[0]):
                key = (place, test)
                self.hits[key] = self.hits.get(key, 0) + 1

    def weight(self, path, test):
        folder, stem = path.split("/")[0], path.split("/")[-1][:-2]
        kind, name = test
        weight = 20 * self.hits.get((path, test), 0) + 2 * self.hits.get((folder, test), 0)
        if kind == "unit":
            words = stem.split("_")
            weight += 1000 if name == "test_" + stem else 0
            weight += 500 if '"%s.h"' % path[:-2] in self.texts[name] else 0
            weight += 200 if name.split("_")[1] == words[0] else 0
            weight += 100 if folder == "allocators" and words[0] in self.texts[name] else 0
            weight += 50 if '"%s/' % folder in self.texts[name] else 45
        elif kind == "fuzzer":
            weight += 150 if folder in ("allocators", "sim") else -50
        elif kind == "golden":
            weight += 300 if stem.startswith("pytorch") and name != "golden-peers" else 60
        elif name in self.bats_first(path):
            weight += 40 - self.bats_first(path).index(name)
        else:
            weight -= 100
        return weight

    def bats_first(self, path):
        folders = path.split("/")
        named = {name: self.bats_texts[name].count(folders[-2]) if len(folders) > 2 else 0 for name in self.bats}
        often = sorted((name for name in self.bats if named[name] >= 5), key=lambda name: -named[name])
        return ["commands"] + often + [name for name in BATS_FIRST[folders[0]] if name not in often]

    def first_tests(self, path):
        every = [("unit", name) for name in self.links[path]]
        if path.split("/")[0] not in PLAIN:
            every += [("fuzzer", "2e5")] + [("golden", name) for name in GOLDEN]
        every = self.sorted(path, every)
        return every + [("asan", name) for kind, name in every if kind == "unit"]

    def command_tests(self, path):
        return self.sorted(path, [("bats", name) for name in (self.bats_first(path) if self.is_quick else self.bats)])

    def sorted(self, path, tests):
        with self.lock:
            return sorted(tests, key=lambda test: (-self.weight(path, test), test))


def judge(tree, order, mutant, tests):
    tree.put(mutant)
    for test in tests:
        verdict = tree.notices(test, tree.limit(test))
        if verdict is None:
            continue
        if test not in tree.passes:
            tree.put(None)
            tree.passes[test] = tree.notices(test, LIMIT_SECONDS) is None
            if not tree.passes[test]:
                print("left out, as it fails without a change: " + " ".join(test), flush=True)
            tree.put(mutant)
        if not tree.passes[test]:
            continue
        # On a busy machine a test takes long, or a program that talks to others fails, by chance: then it does not do so twice.
        if (verdict == "timed out" or test[0] == "bats") and tree.notices(test, tree.limit(test)) is None:
            continue
        order.hit(mutant.path, test)
        return verdict, " ".join(test)
    return ("equivalent", "the same object") if tree.is_same(mutant) else ("not noticed", "" if tests else "none runs it")


def not_noticed(log):
    """The changes that a run printed so: (line, key)."""
    lines = open(log).read().split("\n")
    found = {}
    for first, before, after in zip(lines, lines[1:], lines[2:]):
        if first.startswith("not noticed "):
            path, line = first.split()[2].rsplit(":", 1)
            found[path, int(line)] = (path, before[4:], after[4:])
    return [(line, key) for (_, line), key in found.items()]


def nearest(everything, wanted):
    """Of equal lines of a file the one that stands nearest to where it stood."""
    taken = []
    for line, key in wanted:
        alike = [mutant for mutant in everything if mutant.key() == key and mutant not in taken]
        if alike:
            taken.append(min(alike, key=lambda mutant: abs(mutant.line - line)))
    return taken


def draw(root, only, change, seed, count, again):
    paths = sources(root, only)
    everything = [mutant for path in paths for mutant in mutants_of(root, path)
                  if re.search(change, mutant.before + " @@ " + mutant.after)]
    if again:
        everything = nearest(everything, not_noticed(again))
    random.Random(seed).shuffle(everything)
    taken, places = [], set()
    for mutant in everything:  # one change in a line is enough
        if len(taken) < count and (mutant.path, mutant.line) not in places:
            places.add((mutant.path, mutant.line))
            taken.append(mutant)
    print("%d of %d changes in %d files, seed %d" % (len(taken), len(everything), len(paths), seed), flush=True)
    return taken


def compiles(root, text):
    return subprocess.run((COMPILE + "-fsyntax-only -x c -").split(), cwd=root, input=text, text=True, stderr=subprocess.DEVNULL).returncode == 0


def build_at_once(root, mutants):
    """Returns the changes that compile, and by path the texts that have them."""
    kept, texts = set(), {}
    for path in sorted({mutant.path for mutant in mutants}):
        here = [mutant for mutant in mutants if mutant.path == path]
        if not compiles(root, parted(here)):
            here = [mutant for mutant in here if compiles(root, mutant.text())]
        kept.update(here)
        if here:
            texts[path] = parted(here)
    print("%d do not compile" % (len(mutants) - len(kept)), flush=True)
    return [mutant for mutant in mutants if mutant in kept], texts


def unreached(root, order, reach, only):
    """Prints the lines with an operator that no unit test and no golden log runs, and how many there are in each folder."""
    tests = [("unit", name) for name in order.units] + [("golden", name) for name in GOLDEN]
    reach.learn(tests)
    counts = {}
    for path in sources(root, only):
        lines = {mutant.line: mutant for mutant in mutants_of(root, path)}
        missed = {line: mutant for line, mutant in lines.items() if not reach.tests(mutant, tests)}
        total, found = counts.get(os.path.dirname(path), (0, 0))
        counts[os.path.dirname(path)] = (total + len(lines), found + len(missed))
        for line, mutant in sorted(missed.items()):
            print("%s:%d: %s" % (path, line, mutant.before))
    for folder, (total, found) in sorted(counts.items()):
        print("%-32s %5d of %5d lines" % (folder, found, total))


class Work:
    """Judges changes side by side, one in each tree, and counts what was found."""

    def __init__(self, root, trees, order, reach, seconds):
        self.root, self.trees, self.order, self.reach = root, trees, order, reach
        self.stop = time.monotonic() + 0.6 * seconds  # of the first pass
        self.counts = {}
        self.lock = threading.Lock()

    def judge_all(self, mutants, tests_of):
        """Returns what was not noticed, and what there was no time for."""
        left, late = [], []
        self.reach.learn({test for mutant in mutants for test in tests_of(mutant.path)})

        def one(mutant):
            if time.monotonic() > self.stop:
                late.append(mutant)
                return
            with self.lock:
                tree = self.trees.pop()
            verdict, by = judge(tree, self.order, mutant, self.reach.tests(mutant, tests_of(mutant.path)))
            tree.put(None)
            with self.lock:
                self.trees.append(tree)
                if verdict == "not noticed":
                    left.append(mutant)
                else:
                    self.count(verdict)
                self.show(mutant, verdict, by)

        with concurrent.futures.ThreadPoolExecutor(len(self.trees)) as pool:
            list(pool.map(one, mutants))
        return left, late

    def count(self, verdict, number=1):
        self.counts[verdict] = self.counts.get(verdict, 0) + number

    @staticmethod
    def show(mutant, verdict, by):
        print("%-16s %s:%d%s" % (verdict, mutant.path, mutant.line, " (%s)" % by if by else ""), flush=True)
        if verdict == "not noticed":
            print("  - %s\n  + %s" % (mutant.before, mutant.after), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=60, help="changes (60)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--seconds", type=int, default=3600, help="no new one is begun after so long (3600)")
    parser.add_argument("--only", default="", help="only files whose path has this regular expression in it")
    parser.add_argument("--change", default="", help="only changes like this: a regular expression found in 'LINE @@ CHANGED LINE'")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree that work side by side (2)")
    parser.add_argument("--again", default="", help="the output of an earlier run: only what it did not notice")
    parser.add_argument("--work", default="build/mutants", help="where the copies are (build/mutants)")
    parser.add_argument("--quick", action="store_true", help="of the command-line tests only those of the changed folder")
    parser.add_argument("--unreached", action="store_true", help="only list the lines that no unit test runs")
    options = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # A shell that starts this in the background has it ignore what tests send to what they run.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    known = equivalents(root)
    order = Order(root, options.quick)
    if options.unreached:
        return unreached(root, order, Reach(root, os.path.abspath(os.path.join(options.work, "reach")), options.jobs), options.only)
    mutants = draw(root, options.only, options.change, options.seed, options.count, options.again)
    mutants, texts = build_at_once(root, mutants)
    folders = [os.path.abspath(os.path.join(options.work, "tree%d" % i)) for i in range(options.jobs)]
    trees = [Tree(root, folders[0], options.jobs, texts=texts)]
    for folder in folders[1:]:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["cp", "-a", folders[0], folder], check=True)
        trees.append(Tree(root, folder, options.jobs, texts=texts))
    order.links = trees[0].links(order.units, {mutant.path for mutant in mutants})
    reach = Reach(root, os.path.abspath(os.path.join(options.work, "reach")), options.jobs)
    work = Work(root, trees, order, reach, options.seconds)
    work.count("equivalent", sum(mutant.is_equivalent(known) for mutant in mutants))
    left, untried = work.judge_all([mutant for mutant in mutants if not mutant.is_equivalent(known)], order.first_tests)
    late = []
    if left:
        print("%d to go through the command-line tests" % len(left), flush=True)
        work.stop += 0.4 * options.seconds
        left, late = work.judge_all(left, order.command_tests)
        left += late
    work.count("not noticed", len(left))
    counts = work.counts
    noticed = counts.get("noticed", 0) + counts.get("timed out", 0)
    judged = noticed + counts.get("not noticed", 0)
    print(", ".join("%s: %d" % item for item in sorted(counts.items())))
    if untried or late:
        print("no time for %d, which do not count; %d that no unit test noticed did not reach the command-line tests and count as not noticed" % (len(untried), len(late)))
    if judged == 0:
        sys.exit("mutants: none was judged")
    print("%d of %d that are not equivalent were noticed: %.1f %%" % (noticed, judged, 100 * noticed / judged))
    sys.exit(0 if noticed >= 0.95 * judged else 1)


if __name__ == "__main__":
    main()
