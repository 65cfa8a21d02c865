"""Peaks that others measured on real GPUs and published, beside generated ones:

    python published.py FRAGLAB

Rows stand in published.tsv: program, card, what was measured (allocated or reserved), MiB (or "oom"), MiB of them that are not
PyTorch's, model, knobs, source. Prints a table, and how many are within 10 %; exits 1 when fewer than nine of ten are."""
import json
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.realpath(__file__))
fraglab = os.path.realpath(sys.argv[1])


def generate(trace, model, card, knobs):
    options = [part for knob in knobs.split() for part in ("--" + knob.partition("=")[0].replace("_", "-"), knob.partition("=")[2])]
    subprocess.run([fraglab, "trace", "generate", f"{here}/models/{model}", "--gpu", card, *options, "-f", "-o", trace], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([fraglab, "run", trace, "--policy", "pytorch", "--gpu", card, "--format", "jsonl"], capture_output=True, text=True)
    row = json.loads(done.stdout.splitlines()[0])
    return row["oom"] is not None, row["peak"]


def main():
    near = count = 0
    print("| program | card | measured | MiB | generated | off |\n| --- | --- | --- | ---: | ---: | ---: |")
    with open(f"{here}/published.tsv") as file, tempfile.TemporaryDirectory() as folder:
        for line in file:
            if line.startswith("#"):
                continue
            program, card, what, published, others, model, knobs, _source = line.rstrip("\n").split("\t")
            has_failed, peak = generate(f"{folder}/trace.fgt", model, card, knobs)
            made = peak[f"{what}_bytes"] / 2**20
            real = None if published == "oom" else float(published) - float(others)
            off = None if real is None or has_failed else 100 * (made / real - 1)
            count += 1
            near += has_failed if real is None else off is not None and abs(off) <= 10
            print(f"| {program} | {card} | {what} | {'out of memory' if real is None else f'{real:,.0f}'} | "
                  f"{'out of memory' if has_failed else f'{made:,.0f}'} | {'' if off is None else f'{off:+.1f} %'} |", flush=True)
    print(f"published: {near} of {count} within 10 %")
    return near < 0.9 * count


if __name__ == "__main__":
    sys.exit(main())
