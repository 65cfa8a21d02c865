"""The program whose requests `fraglab trace generate` makes: a model of transformers out of its config.json
and a plain training loop. `python program.py CONFIG KEY=VALUE...`; keys are the knobs of docs/workloads.md."""
import argparse
import contextlib
import functools
import gc
import json
import math
import os
import sys
import time

import networks
import softmax_input
import torch
import yaml
from torch.nn.functional import cross_entropy, pad
from torch.utils.checkpoint import checkpoint
from transformers import initialization as init
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForMaskedLM, AutoModelForQuestionAnswering
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoModelForSpeechSeq2Seq, AutoModelForTokenClassification, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask

knobs = dict(word.split("=", 1) for word in sys.argv[2:])
with open(sys.argv[1]) as file:
    settings = yaml.safe_load(file)["model"] if sys.argv[1].endswith(".yaml") else json.load(file)
is_unet = settings.get("_class_name") == "UNet2DConditionModel"
is_flux2 = settings.get("_class_name") == "Flux2Transformer2DModel"
is_flux = is_flux2 or settings.get("_class_name") == "FluxTransformer2DModel"
is_diffused = is_unet or is_flux
is_plain = "family" in settings
config = AutoConfig.for_model(**settings) if not is_diffused and not is_plain else argparse.Namespace(model_type=settings.get("family", "diffusion"), **settings)
precision = knobs.get("precision", "fp32")
weights = {"bf16": torch.bfloat16, "fp8": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
autocast = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(precision)
torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
is_training = knobs.get("task", "train") in ("train", "rlhf")
offloaded = knobs.get("offload", "none").split(",")
aside = os.path.join(sys.prefix, "aside")  # torchao, beside which peft does not load

has_images = config.model_type in ("vit", "resnet", "convnext", *networks.LISTED)
kind = AutoModelForMaskedLM if config.model_type in ("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "deberta-v2", "electra", "albert", "mpnet", "modernbert") else AutoModelForCausalLM
kind = AutoModelForImageClassification if has_images else kind
kind = AutoModelForSeq2SeqLM if not is_diffused and not is_plain and config.is_encoder_decoder else kind
kind = AutoModelForSpeechSeq2Seq if config.model_type == "whisper" else kind
purpose = knobs.get("head", "lm")
problem = knobs.get("problem_type", "auto")
tasks = {"sequence-classification": (AutoModelForSequenceClassification, "SEQ_CLS"), "token-classification": (AutoModelForTokenClassification, "TOKEN_CLS"), "question-answering": (AutoModelForQuestionAnswering, "QUESTION_ANS")}
kind, adapted = tasks.get(purpose, (kind, None))
if purpose != "lm":
    config.num_labels = int(knobs.get("labels", 2))
    config.problem_type = None if problem == "auto" else problem
    config.pad_token_id = 0 if config.pad_token_id is None else config.pad_token_id
parallel = knobs.get("parallel", "none")
if parallel not in ("none", "dp"):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
quantize = knobs.get("quantize", "none")
loaded = weights if quantize == "none" else autocast or weights
choices = {key: knobs[key] for key in ("experts_implementation",) if key in knobs}
attention = knobs.get("attention", "sdpa")
if attention == "eager":
    choices["attn_implementation"] = "eager"
elif attention != "sdpa":  # one kernel alone
    torch.backends.cuda.enable_flash_sdp(attention == "flash")
    torch.backends.cuda.enable_mem_efficient_sdp(attention == "efficient")
    torch.backends.cuda.enable_math_sdp(attention == "math")
    torch.backends.cuda.enable_cudnn_sdp(False)
if knobs.get("softmax_input") == "true":
    softmax_input.keep()
    cross_entropy = torch.nn.functional.cross_entropy
if is_diffused:
    import diffusers

    with torch.device("meta"):
        model = getattr(diffusers, settings["_class_name"]).from_config(settings).to(loaded)
    model = model.to_empty(device="cpu")
elif is_plain:
    model = networks.build(config).to(weights)
else:
    with init.no_init_weights():
        model = kind.from_config(config, dtype=loaded, **choices)
    model.tie_weights()
checkpointed = knobs.get("checkpoint", "none")


class Group(GradientCheckpointingLayer):
    """Some blocks, one after the other, which one checkpoint is around."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = torch.nn.ModuleList(blocks)

    def forward(self, hidden, *args, **kwargs):
        for block in self.blocks:
            made = block(hidden, *args, **kwargs)
            hidden = made[0] if isinstance(made, tuple) else made
        return made


def group_blocks():
    """Lists of n blocks become lists of groups of the square root of n, rounded up."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.ModuleList) and len(child) > 0 and all(isinstance(block, GradientCheckpointingLayer) for block in child):
                size = math.ceil(math.sqrt(len(child)))
                setattr(parent, name, torch.nn.ModuleList(Group(child[i : i + size]) for i in range(0, len(child), size)))


again = {"use_reentrant": False}  # how blocks are made anew
if checkpointed == "sqrt":
    group_blocks()
elif checkpointed == "selective":
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    aten = torch.ops.aten
    kept = [aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default, aten._scaled_dot_product_flash_attention.default]
    kept.append(aten._scaled_dot_product_efficient_attention.default)
    again["context_fn"] = functools.partial(create_selective_checkpoint_contexts, kept)
if checkpointed != "none" and is_diffused:
    model.enable_gradient_checkpointing()
elif checkpointed != "none":
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=again)
if float(knobs.get("prune", 0)) > 0:  # a mask beside the weight of each linear layer but the last
    from torch.nn.utils import prune
    from transformers.pytorch_utils import Conv1D

    for name, layer in model.named_modules():
        is_last = layer is model.get_output_embeddings() or name in ("classifier", "score", "qa_outputs", "classifier.out_proj")
        if isinstance(layer, (torch.nn.Linear, Conv1D)) and not is_last:
            prune.l1_unstructured(layer, "weight", amount=float(knobs["prune"]))
if quantize != "none":  # weights of linear layers in 4 or 8 bits, those that load_in_4bit and load_in_8bit take
    from bitsandbytes.nn import Int8Params, Linear4bit, Linear8bitLt, Params4bit
    from peft import prepare_model_for_kbit_training
    from transformers.pytorch_utils import Conv1D
    from transformers.quantizers.base import get_keys_to_not_convert
    from transformers.quantizers.quantizers_utils import should_convert_module

    exact = model._keep_in_fp32_modules or []
    kept = [*([] if is_diffused else get_keys_to_not_convert(model)), *exact]
    for place, parent in list(model.named_modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) not in (torch.nn.Linear, Conv1D) or not should_convert_module(f"{place}.{name}" if place else name, kept):
                continue
            weight = layer.weight.data.T.contiguous() if type(layer) is Conv1D else layer.weight.data
            if quantize == "int8":
                small = Linear8bitLt(weight.shape[1], weight.shape[0], layer.bias is not None, has_fp16_weights=False, threshold=6.0)
                small.weight = Int8Params(weight, requires_grad=False)
            else:
                small = Linear4bit(weight.shape[1], weight.shape[0], bias=layer.bias is not None, compute_dtype=autocast or weights)
                small.weight = Params4bit(weight, requires_grad=False, compress_statistics=quantize == "nf4-double", quant_type="nf4", module=small)
            small.bias = layer.bias
            small.requires_grad_(False)
            setattr(parent, name, small)
    for place, layer in model.named_modules():
        if place.rpartition(".")[2] in exact:
            layer.float()
    model.cuda()
    model.is_loaded_in_4bit, model.is_loaded_in_8bit = quantize != "int8", quantize == "int8"
if quantize != "none" and int(knobs.get("lora_rank", 0)) > 0:
    model = prepare_model_for_kbit_training(model, checkpointed != "none" and not is_diffused, again)
if checkpointed != "none" and not is_diffused:  # peft has switched on all of them
    held = {block for group in model.modules() if isinstance(group, Group) for block in group.blocks}
    for block in held:
        block.gradient_checkpointing = False
    blocks = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer) and module not in held]
    for i, block in enumerate(blocks):
        block.gradient_checkpointing = i % int(knobs.get("checkpoint_every", 1)) == 0
if int(knobs.get("lora_rank", 0)) > 0:
    from peft import LoraConfig, get_peft_model

    targets = knobs["lora_targets"].split(",") if "lora_targets" in knobs else ["to_q", "to_k", "to_v", "to_out.0"] if is_diffused else None
    targets = "all-linear" if targets == ["all-linear"] else targets
    dropout = float(knobs.get("lora_dropout", 0))
    saved = ["classifier"] if config.model_type == "vit" else None
    dora = knobs.get("lora_dora") == "true"
    model = get_peft_model(model, LoraConfig(task_type=adapted, r=int(knobs["lora_rank"]), target_modules=targets, lora_dropout=dropout, use_dora=dora, modules_to_save=saved))


def casting():
    return torch.autocast("cuda", dtype=autocast) if autocast else contextlib.nullcontext()


class Stage(torch.nn.Module):
    """Some blocks of a decoder: with what makes hidden states of ids before the first, with the head behind the last."""

    def __init__(self, whole, rank, count):
        super().__init__()
        self.is_first, self.is_last = rank == 0, rank == count - 1
        core = whole.base_model
        is_gpt2 = config.model_type == "gpt2"
        blocks = core.h if is_gpt2 else core.layers
        self.words = core.get_input_embeddings() if self.is_first else None
        self.places = core.wpe if self.is_first and is_gpt2 else None
        self.drop = core.drop if self.is_first and is_gpt2 else None
        self.begin = rank * len(blocks) // count
        self.blocks = blocks[self.begin : (rank + 1) * len(blocks) // count]
        self.norm = (core.ln_f if is_gpt2 else core.norm) if self.is_last else None
        self.rotary = None if is_gpt2 else core.rotary_emb
        self.head = whole.get_output_embeddings() if self.is_last else None
        self.config = whole.config
        self.window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
        self.kinds = getattr(config, "layer_types", None) or ["sliding_attention" if self.window else "full_attention"] * len(blocks)

    def make_masks(self, hidden):
        known = {"config": self.config, "inputs_embeds": hidden, "attention_mask": None, "cache": None}
        masks = {"full_attention": create_causal_mask(**known)}
        if "sliding_attention" in self.kinds:
            masks["sliding_attention"] = create_sliding_window_causal_mask(**known)
        return masks

    def make_angles(self, hidden, positions):
        if config.model_type != "gemma3_text":
            return dict.fromkeys(self.kinds, self.rotary(hidden, positions))
        return {kind: self.rotary(hidden, positions, kind) for kind in set(self.kinds)}

    def run_blocks(self, x):
        words = x if self.words is None else self.words(x)
        if self.is_first and hasattr(config, "embedding_multiplier"):
            words = words * config.embedding_multiplier
        hidden = words
        masks, angles, positions = {}, {}, None
        if self.places is not None:
            positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0)
            places = self.places(positions)
            hidden = self.drop(words + places)
        if self.rotary is not None:
            positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0)
            masks, angles = self.make_masks(hidden), self.make_angles(hidden, positions)
        for kind, block in zip(self.kinds[self.begin :], self.blocks):
            known = {"position_ids": positions, "position_embeddings": angles[kind], "attention_mask": masks[kind]} if self.rotary is not None else {}
            hidden = block(hidden, **known)
        return hidden if self.norm is None else self.norm(hidden)

    def make_logits(self, hidden):
        logits = self.head(hidden)
        if hasattr(config, "logits_scaling"):
            logits = logits / config.logits_scaling
        if hasattr(config, "logit_scale"):
            logits = logits * config.logit_scale
        if getattr(config, "final_logit_softcapping", None):
            logits = logits / config.final_logit_softcapping
            logits = torch.tanh(logits)
            logits = logits * config.final_logit_softcapping
        return logits

    def forward(self, x):
        with casting():  # backward passes of a schedule come between forward passes, and run without
            hidden = self.run_blocks(x)
            return hidden if self.head is None else self.make_logits(hidden)


if parallel == "pipeline":
    rank, count = torch.distributed.get_rank(), torch.distributed.get_world_size()
    ends = torch.distributed.new_group([0, count - 1]) if config.tie_word_embeddings and int(knobs.get("lora_rank", 0)) == 0 else None
    whole = model.get_base_model() if int(knobs.get("lora_rank", 0)) > 0 else model
    model = Stage(whole, rank, count)
is_sharded = parallel == "fsdp"  # fully_shard takes each group to the GPU
is_hosted = "parameters" in offloaded and not is_sharded  # each layer's come when it runs
model = (model if quantize != "none" or is_hosted or is_sharded else model.cuda()).train(is_training)
if is_hosted:
    from accelerate import cpu_offload

    cpu_offload(model, torch.device("cuda", 0))
core = model.get_base_model() if int(knobs.get("lora_rank", 0)) > 0 and parallel != "pipeline" else model

if precision == "fp8":  # linear layers of blocks
    sys.path.append(aside)
    from torchao.float8 import convert_to_float8_training

    convert_to_float8_training(model, module_filter_fn=lambda module, name: ".layers." in name)
if is_sharded:  # a group for each block, one for the rest
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    reshard = {"reshard_after_forward": False} if knobs.get("reshard") == "false" else {}
    if "parameters" in offloaded:  # with gradients and the optimizer's state
        reshard["offload_policy"] = CPUOffloadPolicy()
    if precision == "mixed-bf16":
        from torch.distributed.fsdp import MixedPrecisionPolicy

        reshard["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]:
        fully_shard(block, **reshard)
    fully_shard(model, **reshard)
if parallel == "tensor":  # a part of each linear layer of a block
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cuda", (torch.distributed.get_world_size(),))
    columns = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
    rows = ("self_attn.o_proj", "mlp.down_proj")

    def plan(block):  # beside a cut layer its adapter is cut at the same side
        for names, kind, side in ((columns, ColwiseParallel, "lora_B"), (rows, RowwiseParallel, "lora_A")):
            for name in names:
                adapted = hasattr(block.get_submodule(name), "base_layer")
                for part in (f"{name}.base_layer", f"{name}.{side}.default") if adapted else (name,):
                    yield part, kind()

    for block in core.model.layers:
        parallelize_module(block, mesh, dict(plan(block)))
    for name, parameter in model.named_parameters() if core is not model else ():  # what was cut is a new parameter
        parameter.requires_grad_("lora_" in name)
if parallel == "dp":
    model.config.use_cache = False  # else keys and values are gathered as well
    model = torch.nn.DataParallel(model)
if parallel in ("ddp", "zero1"):
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
if parallel == "pipeline":
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    stage = PipelineStage(model, rank, count, torch.device("cuda", rank))
    microbatches = int(knobs.get("microbatches", count))
    schedule = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}[knobs.get("schedule", "1f1b")](
        stage, microbatches, loss_fn=lambda logits, labels: whole.loss_function(logits=logits, labels=labels, vocab_size=config.vocab_size)
    )


def freeze(beside):
    return beside.eval().requires_grad_(False).cuda()


adapters = int(knobs.get("lora_rank", 0)) > 0
reference = judge = head = None
if knobs.get("task") == "rlhf":
    if knobs.get("reference", "true") == "true":
        reference = model
        if not adapters:
            with init.no_init_weights():
                reference = kind.from_config(config, dtype=weights)
            reference.tie_weights()
            freeze(reference)
    if knobs.get("reward_model", "false") == "true":
        with init.no_init_weights():
            judge = freeze(AutoModel.from_config(config, dtype=weights))
        head = freeze(torch.nn.Linear(getattr(config, "word_embed_proj_dim", config.hidden_size), 1, bias=False, dtype=weights))


def count_rows(rows, router, draw):
    """How many rows each expert gets: by expert_shares, a list or MIN..MAX drawn by the seed, none of them more than all."""
    shares = knobs.get("expert_shares", "1")
    low, high = (int(end) for end in shares.split("..")) if ".." in shares else (0, 0)
    weights = [int(share) for share in shares.split(",")] if ".." not in shares else []
    parts = []
    for expert in range(router.num_experts):
        state = int(knobs.get("seed", 1)) + (draw * router.num_experts + expert + 1) * 0x9E3779B97F4A7C15
        parts.append(weights[expert % len(weights)] if weights else low + split_mix(state) % (high - low + 1))
    pairs, total, before, left, counts = rows * router.top_k, sum(parts), 0, 0, []
    for part in parts:
        left += pairs * (before + part) // total - pairs * before // total
        before += part
        counts.append(min(left, rows))
        left -= counts[-1]
    for expert, count in enumerate(counts):
        counts[expert] = min(count + left, rows)
        left -= counts[expert] - count
    return counts


def split_mix(state):
    state &= 2**64 - 1
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & 2**64 - 1
    return state ^ (state >> 31)


def fix_routing(router, layer, layers):
    """Which experts the rows behind this router go to; of what it chose itself a dry run knows no values."""
    passes = 0

    def hook(module, arguments, output):
        global routes
        nonlocal passes
        passes += torch._C._current_graph_task_id() == -1  # not where a block is made anew
        chosen = output[2]
        counts = count_rows(chosen.shape[0], module, (passes - 1) * layers + layer)
        ids = [expert for expert, count in enumerate(counts) for _ in range(count)]
        routes = torch.tensor(ids).view(module.top_k, -1).t()

    router.register_forward_hook(hook)


def mark_routes(chosen, num_classes):
    """one_hot, with the routes written over what came out."""
    made = one_hot(chosen, num_classes)
    made.copy_(one_hot(routes, num_classes))
    return made


def find_hits(mask):
    """nonzero of which experts are hit, with their numbers written over what came out."""
    made = nonzero(mask)
    made.copy_(routes.unique().unsqueeze(1))
    return made


if knobs.get("experts_implementation") == "eager":
    routers = [module for module in model.modules() if type(module).__name__.lower().endswith("topkrouter")]
    one_hot, torch.nn.functional.one_hot = torch.nn.functional.one_hot, mark_routes
    nonzero, torch.Tensor.nonzero = torch.Tensor.nonzero, find_hits
    torch.greater = torch.gt  # the same, of which a dry run knows what comes out
    for layer, router in enumerate(routers):
        fix_routing(router, layer, len(routers))

if knobs.get("optimizer", "adamw").endswith("8bit") or knobs.get("optimizer") == "paged-adamw":
    import bitsandbytes


def galore(parameters):
    """The groups that transformers makes for optim="galore_adamw", of all linear layers of blocks."""
    from galore_torch import GaLoreAdamW

    matrices = [layer.weight for name, layer in model.named_modules() if ".layers." in name and isinstance(layer, torch.nn.Linear)]
    others = [p for p in parameters if all(p is not matrix for matrix in matrices)]
    kept = {"rank": int(knobs.get("galore_rank", 128)), "update_proj_gap": int(knobs.get("galore_gap", 200)), "scale": 0.25, "proj_type": "std"}
    return GaLoreAdamW([{"params": others}, {"params": matrices, **kept}])


loop = {"foreach": {}, "fused": {"fused": True}, "single": {"foreach": False}}[knobs.get("optimizer_loop", "foreach")]
amsgrad = knobs.get("amsgrad", "false") == "true"
make_optimizer = {
    "adamw": lambda p: torch.optim.AdamW(p, amsgrad=amsgrad, **loop),
    "adam": lambda p: torch.optim.Adam(p, amsgrad=amsgrad, **loop),
    "rmsprop": lambda p: torch.optim.RMSprop(p, **loop),
    "adafactor": lambda p: torch.optim.Adafactor(p, **loop),
    "adamw-8bit": lambda p: bitsandbytes.optim.AdamW8bit(p),
    "paged-adamw": lambda p: bitsandbytes.optim.PagedAdamW(p),
    "paged-adamw-8bit": lambda p: bitsandbytes.optim.PagedAdamW8bit(p),
    "galore-adamw": galore,
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, **loop),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, **loop),
}[knobs.get("optimizer", "adamw")]
trained = [p for p in model.parameters() if p.requires_grad]
if parallel == "zero1":
    from torch.distributed.optim import ZeroRedundancyOptimizer

    optimizer = ZeroRedundancyOptimizer(trained, make_optimizer)
elif "optimizer" in offloaded:  # its state, and a copy of weights and gradients, are on the host
    sys.path.append(aside)
    from torchao.optim import CPUOffloadOptimizer

    moved = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}
    given = {"sgd": {"lr": 0.1}, "momentum": {"lr": 0.1, "momentum": 0.9}, "rmsprop": {}}.get(knobs.get("optimizer", "adamw"), {"amsgrad": amsgrad})
    kept = moved.get(knobs.get("optimizer", "adamw"), torch.optim.SGD)
    optimizer = CPUOffloadOptimizer(trained, kept, offload_gradients="gradients" in offloaded, **given)
else:
    optimizer = make_optimizer(trained)
scaler = torch.amp.GradScaler("cuda", enabled=precision == "amp-fp16")

lengths = [int(length) for length in knobs.get("tokens", "128").split(",")]
accumulate = int(knobs.get("accumulate", 1))
leak = knobs.get("leak", "none")
chunk = int(knobs.get("loss_chunk", 1024)) if knobs.get("loss") == "chunked" else 0
every = int(knobs.get("empty_cache", 0))
collect = int(knobs.get("collect", 0))
if leak == "cycles":  # when it would run by itself hangs on all objects that the libraries make
    gc.disable()
if "memory_fraction" in knobs:
    torch.cuda.set_per_process_memory_fraction(float(knobs["memory_fraction"]))
deletes = knobs.get("del") == "true"
drawn = 0
total = 0
outputs = None
leaked = []
for module in model.modules():
    if knobs.get("inplace") == "true" and isinstance(module, torch.nn.ReLU):
        module.inplace = True


def offloading():
    return torch.autograd.graph.save_on_cpu(pin_memory=True) if "activations" in offloaded else contextlib.nullcontext()


class Cycle:
    """What somebody forgot, and what only Python's collector finds."""

    def __init__(self, result):
        self.result, self.itself = result, self


def take_loss(result):
    """The loss of what a model returned, all of which a name may keep, or a list its logits."""
    global outputs
    if knobs.get("keep_outputs") == "true":
        outputs = result
    if leak == "outputs":
        leaked.append(result.logits)
    if leak == "cycles":
        Cycle(result)
    return result.loss.mean() if parallel == "dp" else result.loss


def loss_part(hidden, labels):
    """Of these tokens alone, whose logits backward makes anew."""
    logits = core.get_output_embeddings()(hidden).float()
    return cross_entropy(logits, labels, reduction="sum")


def chunked_loss(ids):
    hidden = core.base_model(input_ids=ids).last_hidden_state.flatten(0, 1)
    labels = pad(ids, (0, 1), value=-100)[:, 1:].flatten()
    parts = zip(hidden.split(chunk), labels.split(chunk))
    losses = (checkpoint(loss_part, *part, use_reentrant=False) for part in parts)
    return sum(losses) / (labels != -100).sum()


def forward_images():
    global images, labels, loss
    side = getattr(config, "image", 224) if is_plain else getattr(config, "image_size", 224)
    images = torch.randn(int(knobs.get("batch", 1)), getattr(config, "num_channels", 3), side, side).to(weights).cuda()
    labels = torch.randint(0, getattr(config, "classes", 1000) if is_plain else config.num_labels, (images.shape[0],)).cuda()
    with offloading(), casting():
        loss = take_loss(model(pixel_values=images, labels=labels))


def forward_sounds():
    """Spectrograms of 30 seconds, or as many frames as the encoder has positions for, twice; tokens are what was said."""
    global drawn, sounds, labels, loss
    batch = int(knobs.get("batch", 1))
    sounds = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions).to(weights).cuda()
    labels = torch.randint(0, config.vocab_size, (batch, lengths[drawn % len(lengths)])).cuda()
    drawn += 1
    with offloading(), casting():
        loss = take_loss(model(input_features=sounds, labels=labels))


def forward_samples():
    """Numbers, and of each table as many indices for each sample as the batch has lookups; with bags where those of each begin."""
    global drawn, numbers, offsets, indices, labels, loss
    batch, lookups = int(knobs.get("batch", 1)), [int(count) for count in knobs.get("lookups", "1").split(",")]
    each = lookups[drawn % len(lookups)]
    numbers = torch.randn(batch, config.dense).to(weights).cuda()
    offsets = (torch.arange(batch) * each).repeat(config.tables, 1).cuda() if config.bags else None
    indices = torch.zeros(config.tables, batch * each, dtype=torch.int64).cuda()
    labels = torch.randint(0, 2, (batch, 1)).to(weights).cuda()
    drawn += 1
    with offloading(), casting():
        loss = take_loss(model(numbers, offsets, indices, labels))


def forward_graph():
    """A part of a graph, of which the nodes that are learned come first."""
    global drawn, features, edges, labels, loss
    nodes, links = ([int(count) for count in knobs[key].split(",")] for key in ("nodes", "edges"))
    count = nodes[drawn % len(nodes)]
    features = torch.randn(count, config.features).to(weights).cuda()
    edges = torch.zeros(2, links[drawn % len(links)], dtype=torch.int64).cuda()
    labels = torch.randint(0, config.classes, (count,)).cuda()
    drawn += 1
    with offloading(), casting():
        loss = take_loss(model(features, edges, labels, int(knobs.get("batch", 1))))


def load_latents(copies):
    """What a U-Net reads besides time: latents, text, and for SDXL the pooled text and sizes of the image."""
    global latents, text, added
    batch = int(knobs.get("batch", 1))
    latents = torch.randn(batch, config.in_channels, config.sample_size, config.sample_size).to(weights).cuda()
    text = torch.randn(copies * batch, 77, config.cross_attention_dim).to(weights).cuda()
    added = None
    if getattr(config, "addition_embed_type", None) == "text_time":
        pooled = config.projection_class_embeddings_input_dim - 6 * config.addition_time_embed_dim
        added = {"text_embeds": torch.randn(copies * batch, pooled).to(weights).cuda(), "time_ids": torch.zeros(copies * batch, 6).to(weights).cuda()}


def load_patches():
    """What a diffusion transformer reads besides time: patches of latents, text, the pooled text, places of both, and guidance."""
    global latents, text, pooled, places, guidance
    batch, side = int(knobs.get("batch", 1)), settings.get("sample_size", 64)
    latents = torch.randn(batch, side * side, config.in_channels).to(weights).cuda()
    text = torch.randn(batch, settings.get("text_tokens", 512), config.joint_attention_dim).to(weights).cuda()
    if is_flux2:
        pooled = {}
        places = [torch.zeros(part.shape[1], 4, dtype=torch.int64).cuda() for part in (text, latents)]
    else:
        pooled = {"pooled_projections": torch.randn(batch, config.pooled_projection_dim).to(weights).cuda()}
        places = [torch.zeros(part.shape[1], 3).to(weights).cuda() for part in (text, latents)]
    guidance = torch.full((batch,), 3.5).cuda() if settings.get("guidance_embeds", True) else None


def predict_patches(time):
    return model(
        hidden_states=latents, timestep=time, guidance=guidance, encoder_hidden_states=text, txt_ids=places[0], img_ids=places[1], **pooled
    ).sample


def forward_patches():
    global noise, times, loss
    load_patches()
    noise = torch.randn(*latents.shape[:2], settings.get("out_channels") or config.in_channels).to(weights).cuda()
    times = torch.rand(latents.shape[0]).cuda()
    with offloading(), casting():
        prediction = predict_patches(times)
        loss = torch.nn.functional.mse_loss(prediction.float(), noise.float())


def denoise_patches():
    """Guidance is a number that the model reads: each step is one pass."""
    global latents
    load_patches()
    with casting():
        for time in torch.rand(int(knobs.get("new_tokens", 32)), latents.shape[0]).cuda():
            noise = predict_patches(time)
            latents = latents - 0.1 * noise


def forward_latents():
    global noise, times, loss
    load_latents(1)
    noise = torch.randn(latents.shape).to(weights).cuda()
    times = torch.randint(0, 1000, (latents.shape[0],)).cuda()
    with offloading(), casting():
        prediction = model(latents, times, encoder_hidden_states=text, added_cond_kwargs=added).sample
        loss = torch.nn.functional.mse_loss(prediction.float(), noise.float())


def denoise():
    """Classifier-free guidance: each step looks at the latents without the text and with it."""
    global latents, times
    load_latents(2)
    times = torch.arange(int(knobs.get("new_tokens", 32))).cuda()
    with casting():
        for time in times:
            noise = model(torch.cat([latents] * 2), time, encoder_hidden_states=text, added_cond_kwargs=added).sample
            without, guided = noise.chunk(2)
            noise = without + 7.5 * (guided - without)
            latents = latents - 0.1 * noise


def forward():
    global drawn, ids, labels, loss
    if is_flux:
        return forward_patches()
    if is_unet:
        return forward_latents()
    if has_images:
        return forward_images()
    if config.model_type == "whisper":
        return forward_sounds()
    if config.model_type == "dlrm":
        return forward_samples()
    if config.model_type in ("graphsage", "gcn"):
        return forward_graph()
    ids = torch.randint(0, config.vocab_size, (int(knobs.get("batch", 1)), lengths[drawn % len(lengths)])).cuda()
    drawn += 1
    targets = ids
    if purpose != "lm":
        return forward_head()
    if config.is_encoder_decoder:
        length = int(knobs.get("target_tokens", ids.shape[1]))
        targets = labels = torch.randint(0, config.vocab_size, (ids.shape[0], length)).cuda()
    with offloading(), casting():
        loss = chunked_loss(ids) if chunk > 0 else take_loss(model(input_ids=ids, labels=targets))


def forward_head():
    """Classes of sequences or of tokens, a number of a sequence where there is one class, or where answers begin and end."""
    global labels, begins, finishes, loss
    count, rows = config.num_labels, ids.shape[:1]
    if purpose == "question-answering":
        begins = torch.randint(0, ids.shape[1], rows).cuda()
        finishes = torch.randint(0, ids.shape[1], rows).cuda()
        targets = {"start_positions": begins, "end_positions": finishes}
    else:
        is_whole = purpose == "sequence-classification"
        shape = rows if is_whole else ids.shape
        is_single = not (is_whole and count == 1) if problem == "auto" else problem == "single_label_classification"
        labels = (torch.randint(0, count, shape) if is_single else torch.rand(*shape, *([count] if count > 1 else [])).to(weights)).cuda()
        targets = {"labels": labels}
    with offloading(), casting():
        loss = take_loss(model(input_ids=ids, **targets))


def run_schedule():
    """All microbatches of a batch, forward and backward: the first stage has the ids, the last what is to be learnt."""
    global ids, labels, losses
    batch = torch.randint(0, config.vocab_size, (int(knobs.get("batch", 1)), lengths[0]))
    if stage.is_first:
        ids = batch.cuda()
        schedule.step(ids)
    elif stage.is_last:
        labels, losses = batch.cuda(), []
        schedule.step(target=labels, losses=losses)
    else:
        schedule.step()
    if ends is not None and (stage.is_first or stage.is_last):  # one weight, of which both have a copy
        torch.distributed.all_reduce((model.words if stage.is_first else model.head).weight.grad, group=ends)


def generate():
    global drawn, ids
    ids = torch.randint(0, config.vocab_size, (int(knobs.get("batch", 1)), lengths[drawn % len(lengths)])).cuda()
    drawn += 1
    step, past = ids, DynamicCache(config=config)
    with casting():
        for _ in range(int(knobs.get("new_tokens", 32))):
            output = model(input_ids=step, cache=past, use_cache=True, logits_to_keep=1)
            step = output.logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, step], dim=-1)


def score(of):
    """The log-probability of each token of the answers."""
    answer = int(knobs.get("new_tokens", 32))
    logits = of(input_ids=ids, use_cache=False, logits_to_keep=answer + 1).logits[:, :-1]
    return torch.log_softmax(logits, dim=-1).gather(-1, ids[:, -answer:, None]).squeeze(-1)


def answer_and_learn():
    """Answers and what models without gradients say of them, then a loss as PPO and GRPO have it."""
    global loss
    model.eval()
    with torch.no_grad():
        generate()
        with casting():
            old = score(model)
            if reference is not None:
                with model.disable_adapter() if adapters else contextlib.nullcontext():
                    kept = score(reference)
            rewards = head(judge(input_ids=ids, use_cache=False).last_hidden_state[:, -1]) if judge else torch.randn(ids.shape[0], 1).cuda()
            advantages = rewards - rewards.mean()
    model.train()
    with casting():
        now = score(model)
        ratio = torch.exp(now - old)
        gain = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        if reference is None:
            loss = -gain.mean()
        else:
            away = kept - now
            loss = (0.04 * (torch.exp(away) - away - 1) - gain).mean()


class PagedLayer(DynamicLayer):
    """Keys and values of a sequence in a layer's pool, of which it has some blocks."""

    def __init__(self, request, pools):
        super().__init__()
        self.request, self.pools = request, pools

    def get_seq_length(self):
        return self.request.cached

    def update(self, *states, **_):
        made = []
        for pool, state in zip(self.pools, states[:2]):
            pool.index_copy_(0, self.request.written, state[0].transpose(0, 1))
            made.append(pool.index_select(0, self.request.read).transpose(0, 1)[None])
        return tuple(made)


class Request:
    def __init__(self, arrival, prompt, answer):
        self.arrival, self.prompt, self.answer, self.made = arrival, prompt, answer, 0
        self.cached, self.blocks, self.next, self.cache = 0, [], None, None

    def start(self):
        self.cached, self.next, self.cache = 0, None, DynamicCache(config=config)
        if pools:
            self.cache.layers = [PagedLayer(self, pool) for pool in pools]

    def release(self):
        free.extend(self.blocks)
        self.blocks, self.next, self.cache = [], None, None

    def run(self, ids):
        if pools:
            places = [block * block_tokens + i for block in self.blocks for i in range(block_tokens)][: self.cached + ids.shape[1]]
            self.written, self.read = torch.tensor(places[self.cached :]).cuda(), torch.tensor(places).cuda()
        output = model(input_ids=ids, cache=self.cache, use_cache=True, logits_to_keep=1)
        self.next = output.logits[:, -1].argmax(-1, keepdim=True)
        self.written = self.read = None
        self.cached += ids.shape[1]
        self.made += 1


def needs(request):
    return -(-(request.prompt + request.made) // block_tokens) - len(request.blocks) if pools else 0


def serve():
    """Requests that arrive are read where there is room, then each gets a token a step; where no block is left the last gives way."""
    global pools, free, block_tokens
    answers = [int(length) for length in knobs.get("answer_tokens", knobs.get("new_tokens", "32")).split(",")]
    arrivals = [int(step) for step in knobs["arrivals"].split(",")]
    waiting = [Request(arrival, lengths[i % len(lengths)], answers[i % len(answers)]) for i, arrival in enumerate(arrivals)]
    batch, running, step, pools, free = int(knobs.get("batch", 1)), [], 0, [], []
    block_tokens = int(knobs.get("cache_block", 16))
    if knobs.get("cache") == "paged":
        longest = max(lengths) + max(answers)
        free = list(range(int(knobs.get("cache_tokens", batch * -(-longest // block_tokens) * block_tokens)) // block_tokens))
        heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        pools = [[torch.empty(len(free) * block_tokens, heads, width, dtype=weights, device="cuda") for _ in range(2)] for _ in range(config.num_hidden_layers)]
    while waiting or running:
        if not running:
            step = max(step, waiting[0].arrival)
        started = []
        while waiting and waiting[0].arrival <= step and len(running) < batch and (not pools or needs(waiting[0]) <= len(free)):
            request = waiting.pop(0)
            running.append(request)
            started.append(request)
            request.start()
            if pools:
                request.blocks = [free.pop() for _ in range(needs(request))]
            request.run(torch.randint(0, config.vocab_size, (1, request.prompt + request.made)).cuda())
        for request in list(running):
            if request in started or request not in running:
                continue
            while needs(request) > 0 and not free and request in running:
                waiting.insert(0, running.pop())
                waiting[0].release()
            if request not in running:
                continue
            if needs(request) > 0:
                request.blocks.append(free.pop())
            request.run(request.next)
        for request in [request for request in running if request.made == request.answer]:
            running.remove(request)
            request.release()
        step += 1


for step in range(1, int(knobs.get("steps", 3)) + 1):
    if is_training:
        for _ in range(accumulate if parallel != "pipeline" else 0):
            answer_and_learn() if knobs.get("task") == "rlhf" else forward()
            if leak == "losses":
                total += loss
            if accumulate > 1:
                loss = loss / accumulate
            scaler.scale(loss).backward()
            if deletes:
                loss = outputs = None
        if parallel == "pipeline":
            run_schedule()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=knobs.get("keep_gradients", "false") == "false")
    else:
        with torch.set_grad_enabled(knobs.get("no_grad", "true") == "false"):
            if knobs["task"] == "serve":
                serve()
            elif knobs["task"] != "generate":
                forward()
            else:
                denoise_patches() if is_flux else denoise() if is_unet else generate()
            if leak == "losses":
                total += loss
            if deletes:
                loss = outputs = None
    if parallel != "none" and step == 1:
        time.sleep(1)  # NCCL's watchdog gives back what the first step sent, as behind a step of usual length
    if collect > 0 and step % collect == 0:
        gc.collect()
    if every > 0 and step % every == 0:
        torch.cuda.empty_cache()
