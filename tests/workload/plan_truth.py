"""Plans against dry runs (real PyTorch, software CUDA) at the same capacity, at cards and near the edge:

    python plan_truth.py FRAGLAB PYTHON [PAIRS [SEED [FAMILY...]]]

PYTHON has torch 2.9.1 and transformers. Each pair is a model of one of the families named, convnext and whisper among them, or else of any
of FAMILIES, and its knobs, some with a fix of `fraglab plan`
applied, and a card. A third of the pairs are what people ask: a card of the table and a batch. A third have a card and the largest batch that the
plan says fits, or one more; a third a size 1 to 512 MiB above or below what the plan says is needed. Prints a row for each, and how many of both
answers agree, for each third; what the plan is not sure about is counted apart; and the longest that a plan took. Exits 1 when less than 96 % of the
sure answers agree."""
import atexit
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

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
]
GROUPED = ["llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gemma2"]
FAMILIES = ["gpt2", "opt", "bert", "roberta", "distilbert", "gpt_neox", "vit", "resnet", "mixtral", "bart", "t5", *GROUPED]
IMAGES = ("vit", "resnet", "convnext")
CARDS = ["rtx3060", "rtx3070", "rtx4090", "t4", "rtx4060ti-16gb", "v100-16gb", "l4", "a100-40gb"]


def draw_resnet():
    stages, width = draw.randint(2, 4), draw.choice([16, 32, 64])
    return {"model_type": "resnet", "embedding_size": width, "hidden_sizes": [width << stage + 1 for stage in range(stages)], "num_labels": 100,
            "depths": [draw.randint(1, 4) for _ in range(stages)], "layer_type": draw.choice(["basic", "bottleneck"]), "image_size": draw.choice([128, 224, 256])}


def draw_convnext():
    stages, width = draw.randint(2, 4), draw.choice([24, 48, 96])
    return {"model_type": "convnext", "num_stages": stages, "hidden_sizes": [width << stage for stage in range(stages)], "num_labels": 100,
            "depths": [draw.randint(1, 4) for _ in range(stages)], "drop_path_rate": draw.choice([0.0, 0.1]), "image_size": draw.choice([128, 224, 256])}


def draw_model():
    """A stored config.json, or one of drawn widths, heads and layers; lengths (none of images) and batches to draw from."""
    if not chosen and draw.random() < 0.3:
        name = draw.choice(list(STORED))
        return f"{here}/models/{name}", *STORED[name]
    heads, layers, width = draw.choice([4, 6, 8, 10]), draw.randint(2, 10), draw.choice([32, 64, 80])
    family = draw.choice(chosen or FAMILIES)
    config = {"model_type": family, "vocab_size": draw.choice([8000, 30522, 50257])}
    inner = heads * width * draw.choice([2, 3, 4])
    if family == "gpt2":
        config |= {"n_layer": layers, "n_head": heads, "n_embd": heads * width}
    elif family == "distilbert":
        config |= {"n_layers": layers, "n_heads": heads, "dim": heads * width, "hidden_dim": inner}
    elif family == "t5":
        config |= {"num_layers": layers, "num_heads": heads, "d_kv": width, "d_model": heads * width, "d_ff": inner, "decoder_start_token_id": 0,
                   "feed_forward_proj": draw.choice(["relu", "gated-gelu"])}
    elif family in ("bart", "whisper"):
        config |= {f"{part}_{key}": number for part in ("encoder", "decoder") for key, number in
                   (("layers", layers), ("attention_heads", heads), ("ffn_dim", inner))} | {"d_model": heads * width}
        if family == "whisper":  # tokens that end a text are among those of the vocabulary
            config |= {"max_target_positions": 512, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    else:
        config |= {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": heads * width}
        config |= {"ffn_dim": inner, "word_embed_proj_dim": heads * width} if family == "opt" else {"intermediate_size": inner}
    if family == "vit":
        config |= {"image_size": draw.choice([128, 224, 256]), "patch_size": draw.choice([14, 16, 32]), "num_labels": 100}
    if family == "resnet":
        config = draw_resnet()
    if family == "convnext":
        config = draw_convnext()
    if family == "roberta":
        config["max_position_embeddings"] = 514
    if family == "mixtral":
        config["num_local_experts"] = draw.choice([4, 8])
    if family in [*GROUPED, "mixtral"]:
        config |= {"num_key_value_heads": heads // 2, "tie_word_embeddings": draw.random() < 0.5, "head_dim": width, "pad_token_id": 0}
    path = f"{scratch}/{family}-{draw.randrange(10**6)}.json"
    with open(path, "w") as file:
        json.dump(config, file)
    return path, [] if family in IMAGES else [100, 256, 400, 512], [2, 4, 8, 12, 16]


def plan(model, knobs, gpu):
    options = [f"--{key.replace('_', '-')}={value}" for key, value in knobs.items()]
    start = time.monotonic()
    done = subprocess.run([fraglab, "plan", model, "--gpu", gpu, "--format", "jsonl", *options], capture_output=True, text=True)
    times.append(time.monotonic() - start)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def run(model, knobs, gpu):
    """Does the program itself run without running out of memory?"""
    words = [f"{key}={value}" for key, value in knobs.items() if key != "conf"]
    conf = ["--conf", knobs["conf"]] if "conf" in knobs else []
    report = f"{scratch}/report.jsonl"
    if os.path.exists(report):
        os.remove(report)
    done = subprocess.run([fraglab, "dryrun", "--gpu", gpu, *conf, "-f", "-o", f"{scratch}/run.pickle", "--report", report, "--", python, f"{here}/program.py",
                           model, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if not os.path.exists(report) or not os.path.getsize(report):
        raise SystemExit(f"the dry run of {model} {words} left no report: {done.stderr[-500:]}")
    with open(report) as file:
        return json.loads(file.readline())["fits"]


def draw_pair(kind):
    model, lengths, batches = draw_model()
    knobs = {"batch": str(draw.choice(batches)), "steps": "3"}
    if lengths:
        knobs["tokens"] = draw.choice([str(draw.choice(lengths)), ",".join(str(draw.choice(lengths)) for _ in range(3))])
    fixes = [fix for fix in FIXES if "checkpoint" not in fix or not any(family in os.path.basename(model) for family in ("resnet", "convnext"))]
    has_4bit = any(family in os.path.basename(model) for family in GROUPED)
    knobs.update(draw.choice([fix for fix in fixes if "quantize" not in fix or has_4bit]))
    if kind == "edge":
        needed = plan(model, knobs, "80GiB")["needed_bytes"]
        return model, knobs, f"{max(2**25, int(needed + draw.choice([-1, 1]) * 2 ** draw.uniform(20, 29)))}B"
    card = draw.choice([name for name in CARDS if "bf16" not in knobs.get("precision", "") or name not in ("t4", "v100-16gb")])
    largest = plan(model, knobs, card)["largest"]["as_is"]["batch"]
    knobs["batch"] = str(max(1, largest + draw.choice([0, 1]) if kind == "largest" else int(largest * 2 ** draw.uniform(-2, 2))))
    return model, knobs, card


times = []
scratch = tempfile.mkdtemp()
atexit.register(shutil.rmtree, scratch)
KINDS = {"card": "a card and a batch", "largest": "the largest batch, or one more", "edge": "within 512 MiB of the edge"}
sums = {kind: [0, 0, 0, 0] for kind in KINDS}  # sure, of these right; unsure, of these right
for pair in range(pairs):
    kind = list(KINDS)[pair % 3]
    model, knobs, gpu = draw_pair(kind)
    planned = plan(model, knobs, gpu)
    truth = run(model, knobs, gpu)
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
