#!/usr/bin/env python3
"""Runs commands of fraglab in a GitHub workflow: a group of the log for each, annotations, and the summary of the job.

FRAGLAB_RUN: commands, one a line, without the word fraglab in front. Lines are split as a shell does, and file names expanded; nothing
else of a shell is done. What a command prints comes from files, so the runner is told not to take it for commands to itself.
"""
import glob
import os
import re
import secrets
import shlex
import subprocess
import sys

MOST_SHOWN = 60_000  # characters of a command in the summary, of which GitHub takes a megabyte in all
MOST_SUMMARY = 900_000
OWN = re.compile(r"::(error|warning|notice)( [^:]*)?::")
# "fraglab: experiment.yaml:3:5: sentence"; line and column are not in every sentence.
PLACE = re.compile(r"(?:fraglab: )?(?P<file>[^:\n]+?)(?::(?P<line>\d+))?(?::(?P<column>\d+))?: (?P<sentence>.+)")


def escape(text: str, is_property: bool = False) -> str:
    """As the runner wants the text of its commands."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if is_property else text


def annotation(text: str, file: str = "", line: str = "", column: str = "", title: str = "fraglab") -> str:
    places = {"file": file, "line": line, "col": column, "title": title}
    return "::error " + ",".join(f"{name}={escape(value, True)}" for name, value in places.items() if value) + "::" + escape(text)


def annotate(command: str, code: int, complaints: str) -> str:
    """One annotation for a command that failed: at the file that its sentence names, if there is such a file."""
    lines = [line for line in complaints.splitlines() if line.strip()]
    for line in lines:
        found = PLACE.fullmatch(line)
        if found and os.path.isfile(found["file"]):
            return annotation(found["sentence"], found["file"], found["line"] or "1", found["column"] or "")
    last = f": {lines[-1]}" if lines else ""
    meaning = " (a finding)" if code == 1 else f" (signal {code - 128})" if code > 128 else ""
    return annotation(f"fraglab {command} ended with exit {code}{meaning}{last}")


def arguments(line: str) -> list:
    """Words, with file names expanded as a shell does: a pattern that nothing fits stays as it is."""
    words = []
    for word in shlex.split(line, comments=True):
        words += sorted(glob.glob(word)) or [word] if re.search(r"[*?\[]", word) else [word]
    return words


def shown(command: str, code: int, output: str) -> str:
    """A part of the summary. The fence is longer than any in what is printed."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", output))])
    cut = output if len(output) <= MOST_SHOWN else output[:MOST_SHOWN] + "\n(cut off here; the log has all)\n"
    name = re.sub(r"([\\`*_<>&|\[\]])", r"\\\1", command)
    return f"#### {'' if code == 0 else f'exit {code}: '}fraglab {name}\n\n{fence}text\n{cut.rstrip()}\n{fence}\n\n"


def run(line: str) -> tuple:
    """(exit code, of a command that a signal ended 128 and its number as in a shell; stdout and stderr together; stderr)"""
    try:
        words = arguments(line)
    except ValueError as error:
        return 2, f"{line}: {error}", f"{line}: {error}"
    try:
        done = subprocess.run(["fraglab", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except OSError as error:
        return 4, f"fraglab cannot be started ({error})", f"fraglab cannot be started ({error})"
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return done.returncode if done.returncode >= 0 else 128 - done.returncode, out + err, err


def one(line: str, summary: str) -> int:
    code, output, complaints = run(line)
    token = secrets.token_hex(16)
    own = [text for text in output.splitlines() if OWN.match(text)] if "--annotate" in line else []
    print(f"::group::fraglab {escape(line)}\n::stop-commands::{token}\n{output.rstrip()}\n::{token}::\n::endgroup::")
    for text in own:
        print(text)
    if code != 0 and not any(text.startswith("::error") for text in own):
        print(annotate(line, code, complaints))
    sys.stdout.flush()
    plain = "\n".join(text for text in output.splitlines() if text not in own)
    if summary and (os.path.getsize(summary) if os.path.exists(summary) else 0) + len(plain[:MOST_SHOWN].encode()) < MOST_SUMMARY:
        with open(summary, "a", encoding="utf-8") as file:
            file.write(shown(line, code, plain))
    return code


def main() -> int:
    lines = [line.strip() for line in os.environ.get("FRAGLAB_RUN", "").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        print(annotation("run: there is no command; write one a line, such as: compare baseline.jsonl new.jsonl"))
        return 2
    codes = [one(line, os.environ.get("GITHUB_STEP_SUMMARY", "")) for line in lines]
    if os.environ.get("GITHUB_OUTPUT"):
        with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
            file.write(f"findings={codes.count(1)}\n")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
