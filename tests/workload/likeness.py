#!/usr/bin/env python3
"""How far off is a statistical workload? Peak reserved of recordings, and of what is generated like them, as a table for docs/workloads.md.

    tests/workload/likeness.py FRAGLAB RECORDING...
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

POLICIES = ["pytorch", "best-fit", "size-class"]
FITS = [[], ["--phases", "16"], ["--phases", "64"]]
SEEDS = ["1", "2", "3"]
MIB = 1 << 20


def peaks(fraglab, trace):
    """Reserved under each policy, of the device that requests most, and how much that is."""
    words = [word for policy in POLICIES for word in ("--policy", policy)]
    rows = subprocess.run([fraglab, "run", trace, "--format", "jsonl"] + words, check=True, capture_output=True, text=True).stdout
    rows = [json.loads(row) for row in rows.splitlines()]
    largest = max(row["trace"]["peak_requested_bytes"] for row in rows)
    rows = [row for row in rows if row["trace"]["peak_requested_bytes"] == largest][:len(POLICIES)]
    return [row["peak"]["reserved_bytes"] for row in rows], largest


def main():
    fraglab, recordings = sys.argv[1], sys.argv[2:]
    errors = [[[] for _ in POLICIES] for _ in FITS]
    kept = [0 for _ in FITS]
    print("| recording | " + " | ".join(POLICIES) + " | fitted | 16 phases | 64 phases |")
    print("| --- | " + "---: | " * len(POLICIES) + "---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "made.fgt")
        for recording in recordings:
            real, live = peaks(fraglab, recording)
            cells = [f"{peak / MIB:,.0f}" for peak in real]
            for i, fit in enumerate(FITS):
                runs = []
                for seed in SEEDS:
                    subprocess.run([fraglab, "trace", "generate", "-q", "--like", recording, "--seed", seed, "-f", "-o", made] + fit, check=True)
                    runs.append(peaks(fraglab, made))
                drawn = [statistics.median(run[0][j] for run in runs) for j in range(len(POLICIES))]
                off = [100 * (a / b - 1) for a, b in zip(drawn, real)]
                for j, value in enumerate(off):
                    errors[i][j].append(abs(value))
                kept[i] += sorted(range(len(real)), key=real.__getitem__) == sorted(range(len(real)), key=drawn.__getitem__)
                least = min(run[1] for run in runs)
                note = "" if least >= 0.99 * live else f" (live {100 * (least / live - 1):+.0f})"
                cells.append(", ".join(f"{value:+.0f}" for value in off) + note)
            print(f"| {os.path.basename(recording).split('.')[0]} | " + " | ".join(cells) + " |")
    middle = [", ".join(f"{statistics.median(values):.0f}" for values in of) for of in errors]
    print(f"| *off, median* | | | | {' | '.join(middle)} |")
    print(f"| *same order of policies* | | | | {' | '.join(f'{count} of {len(recordings)}' for count in kept)} |")


if __name__ == "__main__":
    main()
