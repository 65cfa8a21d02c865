"""docs/claims.md: what guides say, judged by dry runs (real PyTorch, software CUDA), generated traces beside them:

    claims.py measure FRAGLAB PYTHON [WORD...]  dry runs of the settings in said.py (whose sentence has a WORD), into rows.tsv
    claims.py check FRAGLAB                     are the generated figures of rows.tsv what this FRAGLAB makes?
    claims.py page                              prints the page that the rows make

A row: setting, peaks in bytes of the dry run (allocated, reserved, allocated in the last phase), generated ones (allocated,
reserved, or -), "fits" or "out of memory". PYTHON has torch 2.9.1, torchvision, transformers, peft and bitsandbytes."""
import csv
import json
import os
import subprocess
import sys
import tempfile

from said import CLAIMS

here = os.path.dirname(os.path.realpath(__file__))
rows_path = f"{here}/rows.tsv"
CARD = "a100-80gb"  # unless a setting has gpu=
FIELDS = ["setting", "allocated", "reserved", "settled", "made_allocated", "made_reserved", "ends"]
NAMES = {"settled": "allocated, once loaded,", "time": "time of a step", "end": "here"}
DEVICES = 2  # of a setting with parallel= or cards=2


def is_generated(setting):
    return setting.split()[0].endswith(".json")


def read_rows():
    if not os.path.exists(rows_path):
        return {}
    with open(rows_path, newline="") as file:
        return {row["setting"]: row for row in csv.DictReader(file, delimiter="\t")}


def settings_of(words):
    chosen = [claim for claim in CLAIMS if not words or any(word.lower() in claim[0].lower() for word in words)]
    return list(dict.fromkeys(setting for claim in chosen for pair in claim[3] for setting in pair))


def options_of(setting):
    """As `fraglab plan` takes them."""
    return [f"--{key.replace('_', '-')}={value}" for key, value in (word.split("=", 1) for word in setting.split()[1:]) if key != "gpu"]


def card_of(setting):
    return next((word.removeprefix("gpu=") for word in setting.split() if word.startswith("gpu=")), CARD)


def generate_rank(fraglab, setting):
    """The first of several devices; plan is of the one that needs the most."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([fraglab, "trace", "generate", f"{here}/../models/{setting.split()[0]}", "--gpu", card_of(setting), *options_of(setting), "-o", f"{folder}/ranks.fgt"], check=True)
        done = subprocess.run([fraglab, "run", f"{folder}/ranks.fgt", "--policy", "pytorch:version=2.9", "--format", "jsonl"], capture_output=True, text=True, check=True)
    peak = json.loads(done.stdout.splitlines()[0])["peak"]
    return {"made_allocated": str(peak["allocated_bytes"]), "made_reserved": str(peak["reserved_bytes"])}


def generate(fraglab, setting):
    if not is_generated(setting):
        return {"made_allocated": "-", "made_reserved": "-"}
    if " parallel=" in setting:
        return generate_rank(fraglab, setting)
    done = subprocess.run([fraglab, "plan", f"{here}/../models/{setting.split()[0]}", "--gpu", card_of(setting), "--format", "jsonl", *options_of(setting)],
                          capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{setting}: {done.stderr}")
    peak = json.loads(done.stdout)["peak"]
    return {"made_allocated": str(peak["allocated_bytes"]), "made_reserved": str(peak["reserved_bytes"])}


def dry_run(fraglab, python, setting):
    words = [word for word in setting.split() if not word.startswith(("conf=", "gpu="))]
    conf = [word.removeprefix("conf=") for word in setting.split() if word.startswith("conf=")]
    program = [f"{here}/../program.py", f"{here}/../models/{words[0]}", *words[1:]] if is_generated(setting) else [f"{here}/program.py", *words]
    with tempfile.TemporaryDirectory() as folder:
        report = f"{folder}/report.jsonl"
        ranks = ["--ranks", str(DEVICES), "--only", "0"] if " parallel=" in setting and "parallel=dp" not in words else []
        has_devices = " parallel=" in setting or "cards=2" in words
        done = subprocess.run([fraglab, "dryrun", "--gpu", card_of(setting), "--gpus", str(DEVICES) if has_devices else "1", *ranks, *(["--conf", conf[0]] if conf else []), "-o",
                               f"{folder}/run.pickle", "--report", report, "--", python, *program], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if not os.path.exists(report) or not os.path.getsize(report):
            raise SystemExit(f"the dry run of {setting} left no report: {done.stderr[-800:]}")
        with open(report) as file:
            told = json.loads(file.readline())
    if told["fits"] and told["exit_code"] != 0:
        raise SystemExit(f"the dry run of {setting} failed: {done.stderr[-800:]}")
    peak = told["devices"][0]["peak"]
    settled = told["phases"][-1]["allocated_bytes"] if told["phases"] else peak["allocated_bytes"]
    return {"allocated": str(peak["allocated_bytes"]), "reserved": str(peak["reserved_bytes"]), "settled": str(settled),
            "ends": "fits" if told["fits"] else "out of memory"}


def write_rows(rows):
    known = settings_of([])
    with open(rows_path, "w", newline="") as file:
        out = csv.DictWriter(file, FIELDS, delimiter="\t", lineterminator="\n")
        out.writeheader()
        out.writerows(rows[setting] for setting in known if setting in rows)


def measure(fraglab, python, *words):
    """The word "missing" alone: settings that have no row yet."""
    rows = read_rows()
    settings = [setting for setting in settings_of([]) if setting not in rows] if words == ("missing",) else settings_of(words)
    for setting in settings:
        rows[setting] = {"setting": setting, **dry_run(fraglab, python, setting), **generate(fraglab, setting)}
        print(setting, rows[setting]["allocated"], rows[setting]["made_allocated"], rows[setting]["ends"], file=sys.stderr, flush=True)
        write_rows(rows)


def check(fraglab):
    wrong = 0
    for setting, row in read_rows().items():
        made = generate(fraglab, setting)
        if any(row[key] != value for key, value in made.items()):
            print(f"{setting}: rows.tsv has {row['made_allocated']} {row['made_reserved']}, generated {made['made_allocated']} {made['made_reserved']}")
            wrong += 1
    print(f"{len(read_rows())} settings, {wrong} differ")
    sys.exit(wrong > 0)


def change(before, after, key):
    return 100 * (int(after[key]) - int(before[key])) / int(before[key])


def estimate(setting):
    """More time a step with checkpointing, in percent."""
    done = subprocess.run(["./fraglab", "plan", f"{here}/../models/{setting.split()[0]}", "--gpu", card_of(setting), "--format", "jsonl", *options_of(setting)],
                          capture_output=True, text=True)
    return 100 * json.loads(done.stdout)["recomputing_estimate_ratio"]


def judge(claim, rows):
    _, what, (low, high), pairs, _ = claim
    if what == "end":
        borne = [rows[b]["ends"] != "fits" for _, b in pairs]
    elif what == "time":
        borne = [low <= estimate(a) <= high for a, _ in pairs]
    else:
        borne = [low <= change(rows[a], rows[b], what) <= high and rows[b]["ends"] == "fits" for a, b in pairs]
    return ("holds" if all(borne) else "holds in some cases" if any(borne) else "does not hold here"), borne


def percent(value):
    return f"{value:+.0f} %".replace("-0 %", "0 %").replace("+0 %", "0 %").replace("-", "−")


def figure(row, key, base=None):
    if row[key] == "-":
        return "–"
    text = f"{int(row[key]) / 2**20:,.0f}"
    return text if base is None else f"{text} ({percent(change(base, row, key))})"


def time_table(claim, rows):
    lines = ["| setting | more time, estimate | |", "| --- | ---: | --- |"]
    for (a, b), is_borne in zip(claim[3], judge(claim, rows)[1]):
        lines.append(f"| `{b}` | {percent(estimate(a))} | {'as said' if is_borne else 'not as said'} |")
    return lines


def table(claim, rows):
    what = claim[1]
    if what == "time":
        return time_table(claim, rows)
    lines = [f"| setting | dry run: {'settled' if what == 'settled' else 'allocated'} | reserved | generated: allocated | reserved | |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for (a, b), is_borne in zip(claim[3], judge(claim, rows)[1]):
        for setting, base, mark in ((a, None, ""), (b, rows[a], "as said" if is_borne else "not as said")):
            row = rows[setting]
            figures = [figure(row, key, base) for key in ("settled" if what == "settled" else "allocated", "reserved", "made_allocated", "made_reserved")]
            mark = mark if row["ends"] == "fits" else "out of memory" if what != "end" else f"out of memory: {mark}"
            lines.append(f"| `{setting}` | {' | '.join(figures)} | {mark} |")
    return lines


def print_page():
    rows = read_rows()
    with open(f"{here}/opening.md") as file:
        print(file.read().rstrip())
    verdicts = [judge(claim, rows)[0] for claim in CLAIMS]
    print("\n| what guides say | |\n| --- | --- |")
    for claim, verdict in zip(CLAIMS, verdicts):
        print(f"| {claim[0]} | {verdict} |")
    for claim, verdict in zip(CLAIMS, verdicts):
        low, high = (percent(value) for value in claim[2])
        bounds = "memory runs out" if claim[1] == "end" else "of any size, on the card that is named" if claim[2] == (-100, 10000) else f"at least {high}" if claim[2][0] == -100 else f"at least {low}" if claim[2][1] == 10000 else f"{low} to {high}"
        print(f"\n## {claim[0].rstrip('.')}\n\n**{verdict[0].upper()}{verdict[1:]}.** {claim[4]}\nAs said: {NAMES.get(claim[1], claim[1])} {bounds}.\n")
        print("\n".join(table(claim, rows)))


if __name__ == "__main__":
    {"measure": measure, "check": check, "page": print_page}[sys.argv[1]](*sys.argv[2:])
