"""The tables of tests/truth/truth.sh: FRAGLAB FOLDER WORD RELEASE=ENVIRONMENT[,PACKAGES]... Exits 1 when a series did not run, or fewer
than 95 of 100 points of the exact measure are equal."""
import math
import os
import statistics
import struct
import subprocess
import sys

ENOUGH = 0.95
ONE_PROCESS = ("liger.py", "linear.py", "bert_large.py", "qwen_vae.py")  # all X of a series in one run
UNITS = {"gb": 1e9, "mib": 2**20, "gib": 2**30}


class Series:
    def __init__(self, line):
        self.name, self.card, self.release, self.measure, command, points = line.rstrip("\n").split("\t")
        self.program, *self.arguments = command.split(" ")
        self.figures = dict(point.split("=") for point in points.split(" "))
        self.found, self.low = {}, {}  # X: bytes; with the smallest workspaces
        self.error = ""


def read_series(path, word, releases):
    with open(path, encoding="utf-8") as file:
        every = [Series(line) for line in file if line.strip() and not line.startswith("#")]
    return [s for s in every if word in s.name and s.release in releases]


def dry_run(fraglab, folder, environment, series, arguments, found, *options):
    environment, _, packages = environment.partition(",")
    python = os.path.join(environment, "bin", "python")
    program = os.path.join(folder, "programs", series.program)
    command = [fraglab, "dryrun", "--gpu", series.card, *options, "--", python, program, *series.arguments, *arguments]
    variables = dict(os.environ, PYTHONPATH=packages) if packages else None
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    for line in run.stdout.splitlines():
        words = line.split(" ")
        if words[0] == "peak" and len(words) == 3:
            found[words[1]] = int(words[2])
    if any(x not in found for x in (arguments or series.figures)):
        series.error = (run.stderr.strip().splitlines() or ["no output"])[-1]


def run(fraglab, folder, environment, series):
    if series.program in ONE_PROCESS:
        dry_run(fraglab, folder, environment, series, list(series.figures), series.found)
        if series.measure == "interval-gib":
            dry_run(fraglab, folder, environment, series, list(series.figures), series.low, "--workspaces", "low")
        return
    for x in series.figures:
        dry_run(fraglab, folder, environment, series, [x], series.found)


def in_mebibytes(count):
    """As a benchmark prints it that keeps its figures as 32-bit floats."""
    return struct.unpack("f", struct.pack("f", count / 2**20))[0]


def exact_row(series):
    misses = {x: in_mebibytes(series.found[x]) - float(y) for x, y in series.figures.items() if in_mebibytes(series.found[x]) != float(y)}
    equal = len(series.figures) - len(misses)
    worst = max(misses, key=lambda x: abs(misses[x] / float(series.figures[x])), default=None)
    off = "" if worst is None else f"{misses[worst]:+.4f} MiB, {100 * misses[worst] / float(series.figures[worst]):+.3f} % at {worst}"
    print(f"{series.name:58} {series.card:10} {series.release:6} {equal:3} of {len(series.figures):<3} {off}".rstrip())
    return equal, len(series.figures)


def nvml_rows(card, every):
    """Reserved bytes and a constant, the median of what the points leave: a context, so that it is not negative."""
    left = [int(y) - s.found[x] for s in every for x, y in s.figures.items()]
    constant = max(0, int(statistics.median(left)))
    print(f"\n{card}: bytes of the card as NVML counts them; one constant, {constant:,} bytes, is added to what is reserved")
    print(f"{'series':30} {'X':>4} {'published':>15} {'dry run':>15} {'with constant':>15} {'residual':>9}")
    for s in every:
        for x, y in s.figures.items():
            residual = 100 * (s.found[x] + constant - int(y)) / int(y)
            print(f"{s.name:30} {x:>4} {int(y):15,} {s.found[x]:15,} {s.found[x] + constant:15,} {residual:+8.1f} %")
    absolute = [abs(s.found[x] + constant - int(y)) / int(y) for s in every for x, y in s.figures.items()]
    print(f"median {100 * statistics.median(absolute):.1f} %, largest {100 * max(absolute):.1f} %")


def rough_rows(every):
    """Figures of whole programs, rounded by their source, each in its unit."""
    print(f"\n{'series':44} {'card':10} {'torch':15} {'X':>9} {'measured':>14} {'published':>10} {'dry run':>10} {'off':>8}")
    for s in every:
        unit = s.measure.split("-")[-1]
        for x, y in s.figures.items():
            digits = len(y.partition(".")[2])
            found = round(s.found[x] / UNITS[unit], digits)
            low = round(s.low[x] / UNITS[unit], digits) if s.low else None
            interval = "" if low is None else f"  {'inside' if low <= float(y) <= found else 'outside'} from {low:.{digits}f}"
            print(
                f"{s.name:44} {s.card:10} {s.release:15} {x:>9} {s.measure:>14} {y:>10} {found:>10.{digits}f}"
                f" {100 * (found - float(y)) / float(y):+6.1f} %{interval}"
            )


def oom_rows(every):
    for s in every:
        for x in s.figures:
            print(f"{s.name} {x} on {s.card}: published out of memory, dry run {'the same' if s.found[x] < 0 else 'fits'}")


def main(fraglab, folder, word, *places):
    environments = dict(place.split("=", 1) for place in places)
    every = read_series(os.path.join(folder, "points.tsv"), word, environments)
    for number, series in enumerate(every, 1):
        print(f"truth: {number} of {len(every)}: {series.name}", file=sys.stderr)
        run(fraglab, folder, environments[series.release], series)
    ran = [s for s in every if not s.error]
    exact = [s for s in ran if s.measure == "allocated-mib32"]
    if exact:
        print(f"{'series':58} {'card':10} {'torch':6} {'equal':10} furthest off")
    rows = [exact_row(s) for s in exact]
    equal, points = sum(e for e, _ in rows), sum(n for _, n in rows)
    if points:
        print(f"equal in every digit: {equal} of {points} points, {math.floor(1000 * equal / points) / 10} %")
    for card in sorted({s.card for s in ran if s.measure.startswith("nvml")}):
        nvml_rows(card, [s for s in ran if s.card == card and s.measure.startswith("nvml")])
    rough = [s for s in ran if s.measure.split("-")[-1] in UNITS]
    if rough:
        rough_rows(rough)
    oom_rows([s for s in ran if s.measure == "oom"])
    for series in every:
        if series.error:
            print(f"did not run: {series.name}: {series.error}")
    return 1 if len(ran) < len(every) or equal < ENOUGH * points else 0


sys.exit(main(*sys.argv[1:]))
