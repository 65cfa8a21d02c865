"""What a dry run takes: FRAGLAB PYTHON RUNS PROGRAM... Prints medians of the whole command, and its largest process.
Exits 1 when one step of Llama 3 8B takes 30 seconds of processor time or 1 GB of memory."""
import os
import statistics
import subprocess
import sys
import time

SECONDS, MEGABYTES = 30, 1000


def run(command):
    """Wall seconds, processor seconds, MB of the largest process."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"dryrun_bench: {' '.join(command)} exited with {process.returncode}")
    return time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def main(fraglab, python, runs, *programs):
    slow = False
    print(f"{'program':24} {'wall s':>8} {'CPU s':>8} {'MB':>6}   medians of {runs} runs")
    for program in programs:
        command = [fraglab, "dryrun", "-q", "--gpu", "a100-80gb", "--", python, program]
        wall, cpu, memory = (statistics.median(figures) for figures in zip(*[run(command) for _ in range(int(runs))]))
        print(f"{os.path.basename(program):24} {wall:8.1f} {cpu:8.1f} {memory:6.0f}", flush=True)
        slow |= os.path.basename(program) == "llama_8b.py" and (cpu >= SECONDS or memory >= MEGABYTES)
    return 1 if slow else 0


sys.exit(main(*sys.argv[1:]))
