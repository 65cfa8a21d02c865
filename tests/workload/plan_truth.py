"""Plans against dry runs (real PyTorch, software CUDA) at the same capacity, at cards and near the edge:

    python plan_truth.py FRAGLAB PYTHON [PAIRS [SEED [FAMILY...]]]

PYTHON has torch 2.9.1, torchvision, transformers, diffusers, peft, bitsandbytes and torch_geometric. Each pair is a model of one of the families
named (bert+head: with a head for classes or answers), or else of any that drawn.py has, and its knobs, some with a fix of `fraglab plan` applied, or answers that are learnt from, or two devices;
and a card. A third of the pairs are what people ask: a card of the table and a batch. A third have a card and the largest batch that the
plan says fits, or one more; a third a size 1 to 512 MiB above or below what the plan says is needed. What the plan refuses is drawn anew. Prints a row for
each, and how many of both answers agree, for each third; what the plan is not sure about is counted apart; and the longest that a plan took. Exits 1 when
less than 96 % of the sure answers agree."""
import atexit
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import drawn

here = os.path.dirname(os.path.realpath(__file__))
fraglab, python = sys.argv[1], sys.argv[2]
pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 24
draw = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
chosen = sys.argv[5:]

STORED = {"gpt2-small.json": ([256, 512, 777, 1024], [1, 2, 4, 6, 8]), "bert-large.json": ([128, 384, 512], [2, 4, 7, 8])}
FIXES = [
    {}, {}, {"conf": "expandable_segments:True"}, {"optimizer_loop": "fused"}, {"precision": "amp-bf16"}, {"precision": "bf16"},
    {"checkpoint": "blocks"}, {"optimizer": "sgd"}, {"optimizer": "momentum"}, {"optimizer": "adamw-8bit"}, {"accumulate": "2"}, {"task": "evaluate"},
    {"checkpoint": "blocks", "precision": "amp-bf16", "conf": "expandable_segments:True"}, {"precision": "amp-bf16", "lora_rank": "8", "lora_targets": "all-linear", "quantize": "nf4-double"}, {"keep_gradients": "true"},
    {"task": "rlhf", "new_tokens": "8"}, {"task": "rlhf", "new_tokens": "8", "reward_model": "true", "checkpoint": "blocks"},
    {"parallel": "ddp"}, {"parallel": "fsdp"}, {"parallel": "fsdp", "checkpoint": "blocks"}, {"parallel": "fsdp", "offload": "parameters"}, {"parallel": "pipeline"}, {"parallel": "dp"}, {"parallel": "tensor", "optimizer_loop": "single"},
    {"offload": "activations"}, {"offload": "optimizer"}, {"offload": "optimizer,gradients"}, {"task": "evaluate", "offload": "parameters"}, {"task": "generate", "new_tokens": "6", "offload": "parameters"},
    {"attention": "eager"}, {"attention": "eager", "precision": "bf16"}, {"checkpoint": "selective"}, {"checkpoint": "sqrt"}, {"prune": "0.5"}, {"leak": "cycles", "collect": "2"},
]
CARDS = ["rtx3060", "rtx3070", "rtx4090", "t4", "rtx4060ti-16gb", "v100-16gb", "l4", "a100-40gb"]
DEVICES = 2  # with parallel
KILLED = "killed"


def draw_model():
    """A stored config.json, or a drawn one, and its batch and lengths."""
    if not chosen and draw.random() < 0.1:
        name = draw.choice(list(STORED))
        lengths, batches = STORED[name]
        return name, f"{here}/models/{name}", {"batch": str(draw.choice(batches)), "tokens": str(draw.choice(lengths))}
    family, _, head = draw.choice(chosen or drawn.FAMILIES).partition("+")
    return family, drawn.draw_model(draw, scratch, family), drawn.draw_reads(draw, family) | (draw.choice(drawn.HEADS) if head else {})


def plan(model, knobs, gpu):
    options = [f"--{key.replace('_', '-')}={value}" for key, value in knobs.items()]
    start = time.monotonic()
    done = subprocess.run([fraglab, "plan", model, "--gpu", gpu, "--format", "jsonl", *options], capture_output=True, text=True)
    times.append(time.monotonic() - start)
    return json.loads(done.stdout) if done.returncode in (0, 1) else None


def run(model, knobs, gpu, workspaces="high"):
    """Does the program itself run without running out of memory, in each of its processes? None: that hangs on workspaces. KILLED: the machine ended it."""
    parallel = knobs.get("parallel", "none")
    devices = [] if parallel == "none" else ["--gpus", str(DEVICES)]
    starter = [python] if parallel in ("none", "dp") else [f"{os.path.dirname(python)}/torchrun", "--nproc-per-node", str(DEVICES)]
    words = [f"{key}={value}" for key, value in knobs.items() if key != "conf"]
    conf = ["--conf", knobs["conf"]] if "conf" in knobs else []
    report = f"{scratch}/report.jsonl"
    if os.path.exists(report):
        os.remove(report)
    done = subprocess.run([fraglab, "dryrun", "--follow", "4MiB", "--workspaces", workspaces, "--gpu", gpu, *devices, *conf, "-f", "-o", f"{scratch}/run.pickle", "--report", report, "--", *starter,
                           f"{here}/program.py", model, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if "exit code 137" in done.stderr:  # the machine's own memory ran out: what is offloaded is really there
        return KILLED
    if not os.path.exists(report) or not os.path.getsize(report):
        raise SystemExit(f"the dry run of {model} {words} left no report: {done.stderr[-500:]}")
    with open(report) as file:
        answers = [json.loads(line) for line in file]
    found = {answer["fits"] for answer in answers}
    fits = False if False in found else None if None in found else True
    if fits and any(answer["exit_code"] != 0 for answer in answers):
        raise SystemExit(f"the dry run of {model} {words} failed: {done.stderr[-500:]}")
    if fits is None and workspaces == "high" and any(answer["exit_code"] != 0 for answer in answers):
        # It ran out, and what would have come behind that is not known: with the smallest workspaces it goes on.
        return False if run(model, knobs, gpu, "low") is False else None
    return fits


def draw_pair(kind):
    """None: the plan refuses what was drawn, or it has no edge."""
    family, model, reads = draw_model()
    knobs = {**reads, "steps": "3", **draw.choice(FIXES)}
    if kind == "edge":
        planned = plan(model, knobs, "80GiB")
        return planned and (model, knobs, f"{max(2**25, int(planned['needed_bytes'] + draw.choice([-1, 1]) * 2 ** draw.uniform(20, 29)))}B")
    card = draw.choice([name for name in CARDS if "bf16" not in knobs.get("precision", "") or name not in ("t4", "v100-16gb")])
    planned = plan(model, knobs, card) if family not in drawn.GRAPHS else None  # whose batch decides little
    if planned is None:
        return None
    step = DEVICES if "parallel" in knobs else 1
    largest = planned["largest"]["as_is"]["batch"] or 0
    batch = largest + step * draw.choice([0, 1]) if kind == "largest" else int(largest * 2 ** draw.uniform(-2, 2))
    knobs["batch"] = str(max(step, batch - batch % step))
    return (model, knobs, card) if plan(model, knobs, card) else None


times = []
scratch = tempfile.mkdtemp()
atexit.register(shutil.rmtree, scratch)
KINDS = {"card": "a card and a batch", "largest": "the largest batch, or one more", "edge": "within 512 MiB of the edge"}
sums = {kind: [0, 0, 0, 0] for kind in KINDS}  # sure, of these right; unsure, of these right
for pair in range(pairs):
    kind = list(KINDS)[pair % 3]
    while (drawn_pair := draw_pair(kind)) is None:
        pass
    model, knobs, gpu = drawn_pair
    planned = plan(model, knobs, gpu)
    truth = run(model, knobs, gpu)
    if truth is KILLED:
        print(f"not judged, as this machine has too little memory for the dry run: {os.path.basename(model)} on {gpu}", flush=True)
        continue
    same = planned["fits"] == truth
    at = 0 if planned["is_sure"] else 2
    sums[kind][at] += 1
    sums[kind][at + 1] += same
    words = " ".join(f"{key}={value}" for key, value in knobs.items())
    print(f"{'same' if same else 'DIFFERENT':10}{'' if planned['is_sure'] else '(unsure) '}plan {planned['fits']}, dry run {truth}, "
          f"margin {planned['margin_bytes'] / 2**20:.0f} MiB: {os.path.basename(model)} on {gpu}, {words}", flush=True)
for kind, (sure, right, unsure, unsure_right) in sums.items():
    print(f"{KINDS[kind]}: {right} of {sure} sure answers agree with the dry run, {unsure_right} of {unsure} unsure ones")
sure, right, unsure, unsure_right = map(sum, zip(*sums.values()))
print(f"plan: {right} of {sure} sure answers agree with the dry run, {unsure_right} of {unsure} unsure ones; the longest plan took {max(times):.2f} s")
sys.exit(right < 0.96 * sure)
