"""Models and knobs that are drawn: for plan_truth.py, and cases for truth.sh:

    drawn.py FRAGLAB FOLDER COUNT [SEED [FAMILY...]]

prints COUNT cases as tests/workload/cases has them, of models written to FOLDER, of each family one before any has two. Families that are named are
drawn with a head for classes or answers where +head stands behind the name (bert+head), and with windows of attention, any number of key heads, and adapters and autocast beside several devices. Of each model there are
four: knobs that are drawn, and three times these with one changed. What `fraglab trace generate` refuses is drawn anew."""
import json
import os
import random
import subprocess
import sys

here = os.path.dirname(os.path.realpath(__file__))
GROUPED = ["llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gemma2"]
LATER = ["gemma3_text", "granite", "olmo2", "smollm3", "olmoe", "gpt_oss", "glm", "glm4", "cohere", "qwen2_moe", "deepseek_v2", "deepseek_v3"]  # where they are named
LATER_ENCODERS = ["xlm-roberta", "deberta-v2", "electra", "albert", "mpnet"]
EXPERTS = ["mixtral", "qwen3_moe"]
PAIRS = ["bart", "t5", "mt5"]
IMAGES = ["vit", "resnet", "convnext", "mnasnet", "unet"]
GRAPHS = ["graphsage", "gcn"]
LATER_DECODERS = ["falcon", "gptj", "gpt_neo", "bloom", "mpt", "nemotron"]
LATER_DIFFUSION = ["flux", "flux2"]
LATER_IMAGES = ["vgg", "mobilenet_v2", "mobilenet_v3", "regnet", "efficientnet", "densenet"]
LAYER_NORMED = ["phi", "starcoder2", "stablelm"]
FAMILIES = ["gpt2", "opt", "gpt_neox", *LAYER_NORMED, "bert", "roberta", "distilbert", "modernbert", "whisper", "dlrm", *GROUPED, *EXPERTS, *PAIRS, *IMAGES, *GRAPHS]
CARDS = ["rtx3090", "rtx4090", "l4", "a100-40gb", "a100-80gb", "h100-80gb"]  # of compute capability 8.0 and above, where cases fit
VARIANTS = 4  # of a model


def draw_stages(draw, widths):
    stages, width = draw.randint(2, 4), draw.choice(widths)
    return [width << stage for stage in range(stages)], [draw.randint(1, 4) for _ in range(stages)]


def draw_images(draw, family):
    image = {"num_labels": 100, "image_size": draw.choice([128, 224, 256])}
    if family == "vit":
        return image | {"patch_size": draw.choice([14, 16, 32])}
    if family == "resnet":
        channels, depths = draw_stages(draw, [32, 64, 128])
        return image | {"embedding_size": channels[0] // 2, "hidden_sizes": channels, "depths": depths, "layer_type": draw.choice(["basic", "bottleneck"])}
    channels, depths = draw_stages(draw, [24, 48, 96])
    return image | {"num_stages": len(channels), "hidden_sizes": channels, "depths": depths, "drop_path_rate": draw.choice([0.0, 0.1])}


def draw_unet(draw):
    stages = draw.randint(2, 3)
    deep = [draw.random() < 0.6 for _ in range(stages)]
    return {"_class_name": "UNet2DConditionModel", "sample_size": draw.choice([16, 32, 64]), "block_out_channels": [draw.choice([32, 64, 96]) << i for i in range(stages)],
            "layers_per_block": draw.randint(1, 2), "attention_head_dim": draw.choice([1, 2, 4]), "cross_attention_dim": draw.choice([48, 256, 768]), "norm_num_groups": 8,
            "down_block_types": ["CrossAttnDownBlock2D" if is_deep else "DownBlock2D" for is_deep in deep], "in_channels": 4, "out_channels": 4,
            "up_block_types": ["CrossAttnUpBlock2D" if is_deep else "UpBlock2D" for is_deep in reversed(deep)], "use_linear_projection": draw.random() < 0.5}


def draw_flux(draw):
    axes = [2 * draw.randint(1, 4) for _ in range(2)]
    width = draw.choice([32, 64])
    return {"_class_name": "FluxTransformer2DModel", "sample_size": draw.choice([8, 16, 24, 32]), "in_channels": draw.choice([16, 64]), "num_layers": draw.randint(1, 3),
            "num_single_layers": draw.randint(1, 4), "num_attention_heads": draw.choice([1, 2, 6, 8]), "attention_head_dim": width, "joint_attention_dim": draw.choice([48, 256, 768]),
            "pooled_projection_dim": draw.choice([24, 256]), "guidance_embeds": draw.random() < 0.6, "axes_dims_rope": [*axes, width - sum(axes)]}


def draw_flux2(draw):
    axes = [2 * draw.randint(1, 4) for _ in range(3)]
    width = draw.choice([32, 64])
    return {"_class_name": "Flux2Transformer2DModel", "sample_size": draw.choice([8, 16, 24, 32]), "in_channels": draw.choice([16, 64, 128]), "num_layers": draw.randint(1, 3),
            "num_single_layers": draw.randint(1, 4), "num_attention_heads": draw.choice([1, 2, 6, 8]), "attention_head_dim": width, "joint_attention_dim": draw.choice([48, 256, 768]),
            "mlp_ratio": draw.choice([2.0, 3.0, 3.5]), "guidance_embeds": draw.random() < 0.5, "axes_dims_rope": [*axes, width - sum(axes)]}


def draw_plain(draw, family):
    """What has no config.json: fields of a description."""
    if family == "mnasnet":
        return {"alpha": draw.choice([0.25, 0.5, 0.75, 1.0]), "classes": 100, "image": draw.choice([96, 128, 224])}
    if family == "dlrm":
        return {"tables": draw.randint(2, 30), "rows": [draw.choice([100, 5000, 40000, 300000]) for _ in range(draw.randint(1, 4))], "width": draw.choice([16, 48, 64, 128]),
                "dense": draw.choice([4, 13, 50]), "bottom": [draw.choice([64, 256, 512]) for _ in range(draw.randint(1, 3))], "bags": draw.random() < 0.6,
                "top": [draw.choice([64, 256, 1000]) for _ in range(draw.randint(1, 3))]}
    image = {"classes": draw.choice([10, 100, 1000]), "image": draw.choice([64, 97, 160, 224])}
    if family == "vgg":
        return image | {"variant": draw.choice([11, 13, 16, 19]), "batch_norms": draw.random() < 0.5, "residual_dropout": draw.choice([0.0, 0.5])}
    if family == "mobilenet_v2":
        return image | {"alpha": draw.choice([0.35, 0.5, 1.0, 1.4])}
    if family == "mobilenet_v3":
        return image | {"variant": draw.choice(["small", "large"]), "alpha": draw.choice([0.5, 0.75, 1.0])}
    if family == "regnet":
        return image | {"variant": draw.choice([f"{kind}_{size}" for kind in "xy" for size in ("400mf", "800mf", "1_6gf", "3_2gf", "8gf")])}
    if family == "efficientnet":
        return image | {"variant": f"b{draw.randint(0, 7)}", "drop_path": draw.choice([0.0, 0.2]), "residual_dropout": draw.choice([0.0, 0.3])}
    if family == "densenet":
        return image | {"variant": draw.choice([121, 161, 169, 201]), "residual_dropout": draw.choice([0.0, 0.0, 0.1])}
    return {"features": draw.choice([50, 128, 602]), "width": draw.choice([64, 200, 256]), "layers": draw.randint(2, 4), "classes": draw.choice([7, 40, 47]),
            "residual_dropout": draw.choice([0.0, 0.5])}


def draw_window(draw, family, layers, heads):
    config = {"num_key_value_heads": draw.choice([1, heads // 2, heads])}
    if family in ("mistral", "phi3", "qwen2", "qwen3", "gemma2", "gemma3_text", "gpt_oss"):
        config |= {"sliding_window": draw.choice([64, 150, 300, 1000])}
    if family in ("qwen2", "qwen3"):
        config |= {"use_sliding_window": True, "max_window_layers": draw.randint(0, layers)}
    return config


def draw_transformer(draw, family, is_wide=False):
    heads, layers, width = draw.choice([4, 6, 8, 10]), draw.randint(2, 10), draw.choice([32, 64, 80])
    inner = heads * width * draw.choice([2, 3, 4])
    config = {"vocab_size": draw.choice([8000, 30522, 50257])}
    if family == "gptj":
        return config | {"n_layer": layers, "n_head": heads, "n_embd": heads * width, "n_inner": inner, "rotary_dim": draw.choice([16, 32]), "resid_pdrop": draw.choice([0.0, 0.1]),
                         "attn_pdrop": draw.choice([0.0, 0.1]), "bos_token_id": 1, "eos_token_id": 1}
    if family == "gpt_neo":
        return config | {"num_layers": layers, "attention_types": [[["global"], layers]], "num_heads": heads, "hidden_size": heads * width, "intermediate_size": inner,
                         "max_position_embeddings": draw.choice([600, 2048]), "embed_dropout": draw.choice([0.0, 0.1]), "attention_dropout": draw.choice([0.0, 0.1]),
                         "resid_dropout": draw.choice([0.0, 0.1]), "bos_token_id": 1, "eos_token_id": 1}
    if family == "bloom":
        return config | {"n_layer": layers, "n_head": heads, "hidden_size": heads * width, "hidden_dropout": draw.choice([0.0, 0.1]), "attention_dropout": draw.choice([0.0, 0.1]),
                         "apply_residual_connection_post_layernorm": draw.random() < 0.3}
    if family == "mpt":
        return config | {"n_layers": layers, "n_heads": heads, "d_model": heads * width, "max_seq_len": draw.choice([600, 2048]), "attn_config": {"clip_qkv": draw.choice([None, 8.0])}}
    if family == "gpt2":
        config |= {"n_layer": layers, "n_head": heads, "n_embd": heads * width}
    elif family == "distilbert":
        config |= {"n_layers": layers, "n_heads": heads, "dim": heads * width, "hidden_dim": inner}
    elif family in ("t5", "mt5"):
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
    if family == "modernbert":
        config |= {f"{part}_token_id": i for i, part in enumerate(("pad", "bos", "eos", "cls", "sep"))}
        config |= {"local_attention": draw.choice([64, 128, 256, 600]), "global_attn_every_n_layers": draw.randint(1, 4), "mlp_dropout": draw.choice([0.0, 0.1]),
                   "embedding_dropout": draw.choice([0.0, 0.1]), "attention_dropout": draw.choice([0.0, 0.1]), "norm_bias": draw.random() < 0.3}
    if family in ("roberta", "xlm-roberta", "mpnet"):
        config["max_position_embeddings"] = 514
    if family == "albert":
        config |= {"embedding_size": draw.choice([64, 128, heads * width]), "num_hidden_groups": draw.choice([1, 1, 2]), "inner_group_num": draw.choice([1, 1, 2]),
                   "hidden_dropout_prob": draw.choice([0.0, 0.1]), "attention_probs_dropout_prob": draw.choice([0.0, 0.1])}
    if family == "electra":
        config["embedding_size"] = draw.choice([128, heads * width])
    if family == "deberta-v2":
        config |= {"relative_attention": True, "position_buckets": draw.choice([32, 128, 256]), "norm_rel_ebd": "layer_norm", "share_att_key": True,
                   "pos_att_type": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0}
    if family == "mixtral":
        config["num_local_experts"] = draw.choice([4, 8])
    if family in ("olmoe", "gpt_oss"):
        config |= {"num_experts" if family == "olmoe" else "num_local_experts": draw.choice([8, 16]), "num_experts_per_tok": draw.randint(1, 4), "eos_token_id": 1}
    if family == "qwen3_moe":
        config |= {"moe_intermediate_size": width * 2, "num_experts": draw.choice([8, 16]), "num_experts_per_tok": draw.randint(1, 4)}
    if family == "falcon":
        copies = draw.random() < 0.5
        config |= {"ffn_hidden_size": inner, "bias": draw.random() < 0.3, "new_decoder_architecture": copies, "num_kv_heads": draw.choice([1, 2, heads]) if copies else None,
                   "parallel_attn": copies or draw.random() < 0.7, "num_ln_in_parallel_attn": draw.choice([None, 1, 2]) if copies else None, "eos_token_id": 1, "bos_token_id": 1}
    if family == "nemotron":
        config |= {"num_key_value_heads": draw.choice([1, heads // 2, heads]), "head_dim": draw.choice([None, 48]), "partial_rotary_factor": draw.choice([0.25, 0.5, 1.0]),
                   "attention_bias": draw.random() < 0.3, "mlp_bias": draw.random() < 0.3, "attention_dropout": draw.choice([0.0, 0.1]), "tie_word_embeddings": draw.random() < 0.3}
    if family == "cohere":
        config |= {"use_qk_norm": draw.random() < 0.3, "bos_token_id": 1, "eos_token_id": 2}
    if family == "qwen2_moe":
        config |= {"moe_intermediate_size": width * 2, "num_experts": draw.choice([8, 16]), "num_experts_per_tok": draw.randint(1, 4),
                   "shared_expert_intermediate_size": draw.choice([width * 2, inner]), "norm_topk_prob": draw.random() < 0.5}
    if family == "deepseek_v3":
        groups = draw.choice([1, 2, 4])
        config |= {"moe_intermediate_size": width * 2, "n_routed_experts": draw.choice([8, 16]), "num_experts_per_tok": draw.randint(1, 4), "n_group": groups,
                   "topk_group": draw.randint(1, groups) if groups < 4 else draw.randint(2, 4), "n_shared_experts": draw.choice([1, 2]), "first_k_dense_replace": draw.randint(0, 2),
                   "q_lora_rank": draw.choice([None, 96, 256]), "kv_lora_rank": draw.choice([64, 128]), "qk_rope_head_dim": draw.choice([32, 64]),
                   "qk_nope_head_dim": width, "v_head_dim": draw.choice([width, 64]), "rope_interleave": draw.random() < 0.7, "norm_topk_prob": draw.random() < 0.7}
    if family == "deepseek_v2":
        groups = draw.choice([1, 2, 4])
        config |= {"moe_intermediate_size": width * 2, "n_routed_experts": draw.choice([8, 16]), "num_experts_per_tok": draw.randint(1, 4), "n_group": groups,
                   "topk_group": draw.randint(1, groups) if groups < 4 else draw.randint(2, 4), "topk_method": draw.choice(["greedy", "group_limited_greedy"]),
                   "n_shared_experts": draw.choice([1, 2]), "first_k_dense_replace": draw.randint(0, 2), "q_lora_rank": draw.choice([None, 96, 256]),
                   "kv_lora_rank": draw.choice([64, 128]), "qk_rope_head_dim": draw.choice([32, 64]), "qk_nope_head_dim": width, "v_head_dim": draw.choice([width, 64])}
    if family in LAYER_NORMED:
        config |= {"num_key_value_heads": draw.choice([heads, heads // 2]), "bos_token_id": 0, "eos_token_id": 0}
    if family == "stablelm":
        config |= {"use_qkv_bias": draw.random() < 0.5, "use_parallel_residual": draw.random() < 0.5}
    if family in [*GROUPED, *LATER, *EXPERTS]:
        config |= {"num_key_value_heads": heads // 2, "tie_word_embeddings": draw.random() < 0.5, "head_dim": width, "pad_token_id": 0}
    if family in ("deepseek_v2", "deepseek_v3"):
        return {key: number for key, number in config.items() if key != "head_dim"} | {"num_key_value_heads": heads}
    if is_wide and family in [*GROUPED, *LATER]:
        config |= draw_window(draw, family, layers, heads)
    return config


def draw_model(draw, folder, family, is_wide=False):
    """The path of its file."""
    config = {"model_type": family}
    drawers = {"unet": draw_unet, "flux": draw_flux, "flux2": draw_flux2}
    if family in drawers:
        config = drawers[family](draw)
    elif family in ("mnasnet", "dlrm", *GRAPHS, *LATER_IMAGES):
        config = {"family": family, **draw_plain(draw, family)}
    elif family in IMAGES:
        config |= draw_images(draw, family) | (draw_transformer(draw, "bert") if family == "vit" else {})
    else:
        config |= draw_transformer(draw, family, is_wide)
    text = json.dumps(config)
    path = f"{folder}/{family}-{draw.randrange(10**6)}.{'yaml' if 'family' in config else 'json'}"
    with open(path, "w") as file:
        file.write("model: " + text.replace('"', "") if "family" in config else text)
    return path


def draw_reads(draw, family):
    """Batch and lengths."""
    if family in GRAPHS:
        nodes = draw.choice([500, 5000, 30000])
        return {"batch": str(nodes // draw.choice([2, 10])), "nodes": str(nodes), "edges": str(nodes * draw.choice([2, 7, 20]))}
    if family == "dlrm":
        return {"batch": str(draw.choice([64, 500, 2048, 8192]))}
    knobs = {"batch": str(draw.choice([2, 4, 8, 12, 16]))}
    lengths = [100, 256, 400, 512]
    if family not in [*IMAGES, *LATER_IMAGES, *LATER_DIFFUSION]:
        knobs["tokens"] = draw.choice([str(draw.choice(lengths)), ",".join(str(draw.choice(lengths)) for _ in range(3))])
    return knobs


# Values of knobs by theme, some of which need others. What a family has not is refused by the generator.
KNOBS = [
    [{"precision": name} for name in ("tf32", "bf16", "fp16", "amp-bf16", "amp-fp16", "fp8")],
    [{"optimizer": name} for name in ("adam", "sgd", "momentum", "rmsprop", "adafactor", "adamw-8bit", "paged-adamw-8bit")] + [{"optimizer": "galore-adamw", "galore_rank": "16", "galore_gap": "2"}],
    [{"optimizer_loop": "fused"}, {"optimizer_loop": "single"}, {"amsgrad": "true"}],
    [{"accumulate": "2"}, {"accumulate": "3"}, {"keep_gradients": "true"}, {"empty_cache": "1"}],
    [{"checkpoint": "blocks"}, {"checkpoint": "blocks", "checkpoint_every": "2"}, {"offload": "activations"}, {"loss": "chunked", "loss_chunk": "200"}],
    [{"keep_outputs": "true"}, {"del": "true"}, {"leak": "losses"}, {"leak": "outputs"}, {"inplace": "true"}, {"lookups": "5,20"}, {"target_tokens": "90"}],
    [{"task": "evaluate"}, {"task": "evaluate", "no_grad": "false"}, {"task": "generate", "new_tokens": "6"}],
    [{"task": "rlhf", "new_tokens": "5"}, {"task": "rlhf", "new_tokens": "7", "reward_model": "true"}, {"task": "rlhf", "new_tokens": "4", "reference": "false"}],
    [{"lora_rank": "8"}, {"lora_rank": "16", "lora_targets": "all-linear"}, {"lora_rank": "4", "lora_dropout": "0.1"}, {"lora_rank": "8", "lora_dora": "true"}],
    [{"precision": "amp-bf16", "lora_rank": "8", "lora_targets": "all-linear", "quantize": "nf4-double"}, {"precision": "amp-bf16", "lora_rank": "8", "quantize": "int8"}],
    [{"precision": "bf16", "quantize": "nf4-double", "task": "evaluate"}, {"precision": "fp16", "quantize": "int8", "task": "generate", "new_tokens": "4"}, {"precision": "amp-fp16", "lora_rank": "4", "quantize": "nf4"}],
    [{"experts_implementation": "eager", "expert_shares": "3,1,2"}],
    [{"parallel": "ddp"}, {"parallel": "zero1"}, {"parallel": "ddp", "devices": "3"}],
    [{"parallel": "fsdp"}, {"parallel": "fsdp", "checkpoint": "blocks"}, {"parallel": "fsdp", "devices": "4"}, {"parallel": "fsdp", "reshard": "false"}],
    [{"parallel": "dp"}, {"parallel": "pipeline"}, {"parallel": "pipeline", "schedule": "gpipe"}, {"parallel": "tensor", "optimizer_loop": "single"}],
]


# Where families are named.
LATER_KNOBS = [
    [{"parallel": "fsdp", "precision": "mixed-bf16"}, {"parallel": "fsdp", "precision": "mixed-bf16", "checkpoint": "blocks"}],
    [{"checkpoint": "sqrt"}, {"checkpoint": "selective"}, {"checkpoint": "selective", "checkpoint_every": "2"}],
    [{"offload": "optimizer"}, {"offload": "optimizer,gradients"}, {"offload": "activations,optimizer"}],
    [{"task": "evaluate", "offload": "parameters"}, {"task": "generate", "new_tokens": "5", "offload": "parameters"}],
    [{"prune": "0.5"}, {"leak": "cycles"}, {"leak": "cycles", "collect": "2"}],
    [{"attention": "eager"}, {"attention": "eager", "precision": "bf16"}, {"attention": "eager", "precision": "amp-bf16", "checkpoint": "blocks"}, {"attention": "math"}, {"attention": "eager", "softmax_input": "true"}],
    [{"parallel": "fsdp", "offload": "parameters"}, {"parallel": "fsdp", "offload": "activations,parameters", "precision": "bf16"}],
]


# Of a family with +head behind its name.
HEADS = [{"head": "sequence-classification", "labels": labels} for labels in ("1", "2", "7")] + [{"head": "token-classification", "labels": "9"}, {"head": "question-answering"}]


def draw_knobs(draw, count, is_wide):
    return [draw.choice(theme) for theme in draw.sample(KNOBS + LATER_KNOBS if is_wide else KNOBS, count)]


def is_accepted(fraglab, model, card, knobs, folder):
    options = [f"--{key.replace('_', '-')}={value}" for key, value in knobs.items() if key != "conf"]
    done = subprocess.run([fraglab, "trace", "generate", model, "--gpu", card, *options, "-f", "-q", "-o", f"{folder}/tried.fgt"], capture_output=True, text=True)
    return done.returncode == 0


def is_beside(knobs, more, is_wide):
    """Adapters and autocast come beside several devices where families are named."""
    both = {**knobs, **more}
    return is_wide or "parallel" not in both or ("lora_rank" not in both and "amp" not in both.get("precision", ""))


def draw_cases(draw, fraglab, folder, count, named):
    made, left, families, is_wide = 0, [], named or FAMILIES, bool(named)
    while made < count:
        left = left or draw.sample(families, len(families))
        family, _, head = left.pop().partition("+")
        model = draw_model(draw, folder, family, is_wide)
        card, reads, base = draw.choice(CARDS), {"steps": "2"} | draw_reads(draw, family), {}
        reads |= draw.choice(HEADS) if head else {}
        if not is_accepted(fraglab, model, card, reads, folder):
            continue
        for more in draw_knobs(draw, draw.randint(0, 4), is_wide):
            if is_beside(base, more, is_wide) and is_accepted(fraglab, model, card, {**reads, **base, **more}, folder):
                base |= more
        chosen = [base]
        for more in draw_knobs(draw, len(KNOBS), is_wide):
            changed = {**base, **more}
            if len(chosen) < VARIANTS and sum(base.get(key) != value for key, value in changed.items()) == 1 and is_beside(base, more, is_wide) and \
                    is_accepted(fraglab, model, card, reads | changed, folder):
                chosen.append(changed)
        for knobs in chosen[: count - made]:
            words = " ".join(f"{key}={value}" for key, value in (reads | knobs).items())
            print(f"{family}-{made:<20} {model} {card} {words}")
            made += 1


if __name__ == "__main__":
    fraglab, folder, count, *rest = sys.argv[1:]
    named = [{"gemma3": "gemma3_text"}.get(name, name) for name in rest[1:]]
    known = [*FAMILIES, *LATER, *LATER_DECODERS, *LATER_ENCODERS, *LATER_IMAGES, *LATER_DIFFUSION]
    unknown = [name for name in named if name.removesuffix("+head") not in known]
    if unknown:
        sys.exit(f"drawn.py: {unknown[0]} is no family that is drawn; expected some of {', '.join(known)}")
    draw_cases(random.Random(int(rest[0]) if rest else 1), fraglab, folder, int(count), named)
