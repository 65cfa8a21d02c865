# fraglab plan: does a described model fit, where its bytes are, which fixes save what.

models=traces/workloads

setup() {
    out=$BATS_TEST_TMPDIR
}

# field PATH: one value of the JSON object on stdin, by a Python expression over p.
field() {
    python3 -c 'import json, sys; p = json.loads(sys.stdin.readline()); print(eval(sys.argv[1]))' "$1"
}

refuse() { # sentence, arguments
    local sentence=$1
    shift
    run ./fraglab plan "$@"
    echo "$output"
    [ "$status" -eq 2 ] || [ "$status" -eq 3 ]
    [ "$output" = "fraglab: $sentence" ]
}

@test "what fits exits with 0, what does not with 1" {
    ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 >"$out/fits"
    grep -q '^fits; needs .* left; ' "$out/fits"
    run ./fraglab plan $models/gpt2-small.yaml --gpu 4GiB
    [ "$status" -eq 1 ]
    [[ "$output" == *$'\ndoes not fit; needs '*' missing; '* ]]
    [[ "$output" == *$'\nthe cheapest combination that fits\n'* ]]
    run ./fraglab plan $models/gpt2-small.yaml --gpu 256MiB
    [ "$status" -eq 1 ]
    [[ "$output" == *$'\nall fixes together do not fit\n'* ]]
}

@test "a plan says what a replay of the generated trace says" {
    ./fraglab trace generate $models/gpt2-small.yaml -o "$out/a.fgt"
    peaks=$(./fraglab run "$out/a.fgt" --policy pytorch --format jsonl | field '(p["peak"]["requested_bytes"], p["peak"]["allocated_bytes"], p["peak"]["reserved_bytes"])')
    least=$(./fraglab min-capacity "$out/a.fgt" --policy pytorch --format jsonl | field 'p["min_capacity"]["bytes"] if "min_capacity" in p else p["capacity_bytes"]')
    run ./fraglab plan $models/gpt2-small.yaml --gpu 80GiB --format jsonl
    [ "$(field '(p["peak"]["requested_bytes"], p["peak"]["allocated_bytes"], p["peak"]["reserved_bytes"])' <<<"$output")" = "$peaks" ]
    [ "$(field 'p["needed_bytes"]' <<<"$output")" = "$least" ]
}

@test "the parts at the peak add up to the peaks" {
    for knobs in '' '--precision fp32' '--checkpoint blocks' '--optimizer sgd' '--task evaluate'; do
        # shellcheck disable=SC2086
        run ./fraglab plan $models/gpt2-small.yaml --gpu rtx4090 --format jsonl $knobs
        [ "$(field 'sum(v for k, v in p["at_peak"].items() if k not in ("rounding_bytes", "caching_bytes", "context_bytes")) == p["peak"]["requested_bytes"]' <<<"$output")" = True ]
        [ "$(field 'p["peak"]["requested_bytes"] + p["at_peak"]["rounding_bytes"] + p["at_peak"]["caching_bytes"] == p["peak"]["reserved_bytes"]' <<<"$output")" = True ]
    done
    # 124,439,808 weights in fp32, and two averages of each.
    run ./fraglab plan $models/gpt2-small.yaml --gpu rtx4090 --format jsonl
    [ "$(field 'p["at_peak"]["weights_bytes"]' <<<"$output")" -eq 497759232 ]
    [ "$(field 'p["at_peak"]["optimizer_bytes"]' <<<"$output")" -eq $((2 * 497759232)) ]
}

@test "a fix saves what the workload written so saves, and its combination fits" {
    run ./fraglab plan $models/gpt2-small.yaml --gpu 3GiB --format jsonl
    [ "$status" -eq 1 ]
    alone=$(field '[f["peak"] for f in p["fixes"] if f["fix"] == "checkpoint"][0]' <<<"$output")
    [ "$(field 'p["cheapest"]["fits"] and p["cheapest"]["margin_bytes"] >= 0' <<<"$output")" = True ]
    [ "$(field '[s["needed_bytes"] for s in p["steps"]] == sorted((s["needed_bytes"] for s in p["steps"]), reverse=True)' <<<"$output")" = True ]
    [ "$(field 'p["steps"][-1]["fits"] and not any(s["fits"] for s in p["steps"][:-1])' <<<"$output")" = True ]
    run ./fraglab plan $models/gpt2-small.yaml --gpu 3GiB --format jsonl --checkpoint blocks
    [ "$(field 'p["peak"]' <<<"$output")" = "$alone" ]
    [ "$(field '[f for f in p["fixes"] if f["fix"] == "checkpoint"]' <<<"$output")" = '[]' ]
}

@test "the largest batch and length fit, one more does not" {
    ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --tokens 600 --format jsonl >"$out/a.jsonl"
    batch=$(field 'p["largest"]["as_is"]["batch"]' <"$out/a.jsonl")
    tokens=$(field 'p["largest"]["as_is"]["tokens"]' <"$out/a.jsonl")
    ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --tokens 600 --batch "$batch" >/dev/null
    run ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --tokens 600 --batch $((batch + 1))
    [ "$status" -eq 1 ]
    ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --tokens "$tokens" >/dev/null
    [ "$tokens" -eq 1024 ] || { run ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --tokens $((tokens + 1)); [ "$status" -eq 1 ]; }
}

@test "drawn lengths that decide make it unsure, a small margin too" {
    needed=$(./fraglab plan $models/gpt2-varying.yaml --gpu 80GiB --format jsonl | field 'p["needed_bytes"]')
    run ./fraglab plan $models/gpt2-varying.yaml --gpu "${needed}B" --format jsonl
    [ "$status" -eq 1 ]
    [ "$(field '(p["fits"], p["is_sure"], p["draws"], 0 < p["draws_served"] < 8)' <<<"$output")" = '(None, False, 8, True)' ]
    needed=$(./fraglab plan $models/gpt2-small.yaml --gpu 80GiB --format jsonl | field 'p["needed_bytes"]')
    run ./fraglab plan $models/gpt2-small.yaml --gpu "${needed}B" --format jsonl
    [ "$status" -eq 0 ]
    [ "$(field '(p["fits"], p["is_sure"], p["margin_bytes"])' <<<"$output")" = '(True, False, 0)' ]
    run ./fraglab plan $models/gpt2-small.yaml --gpu "$((needed - 2097152))B" --format jsonl
    [ "$status" -eq 1 ]
    [ "$(field '(p["fits"], p["is_sure"], p["margin_bytes"])' <<<"$output")" = '(False, False, -2097152)' ]
}

@test "decompositions of GaLore that decide make a plan unsure" {
    printf 'model: {family: llama, width: 256, inner: 8192, layers: 1, heads: 4, vocabulary: 1000}\nrun: {tokens: 16, optimizer: galore-adamw}\n' >"$out/wide.yaml"
    run ./fraglab plan "$out/wide.yaml" --gpu 500MiB --format jsonl
    [ "$status" -eq 1 ]
    [ "$(field '(p["fits"], p["is_sure"], p["doubt"])' <<<"$output")" = "(None, False, 'it hangs on the workspaces that cuSOLVER takes for decompositions')" ]
    run ./fraglab plan "$out/wide.yaml" --gpu 100MiB --format jsonl
    [ "$(field 'p["fits"]' <<<"$output")" = False ]
}

@test "in fp8 what is tried and what is largest are batches of multiples of 16 tokens" {
    run ./fraglab plan tests/workload/models/llama-tiny.json --gpu h100-80gb --batch 8 --tokens 250 --precision fp8 --format jsonl
    [ "$status" -eq 0 ]
    [ "$(field '(p["largest"]["as_is"]["tokens"] % 2, p["largest"]["as_is"]["batch"] % 8)' <<<"$output")" = '(0, 0)' ]
    [ "$(field '[f["setting"] for f in p["fixes"] if f["fix"] in ("batch", "tokens")]' <<<"$output")" = "['at most 62 tokens']" ]
    run ./fraglab plan tests/workload/models/llama-tiny.json --gpu t4 --precision fp8
    [ "$status" -eq 3 ]
    [[ "$output" == *"compute capability is 7.5; expected 8.9 or above"* ]]
}

@test "of images the largest batch is said, and workspaces that decide make it unsure" {
    needed=$(./fraglab plan $models/resnet50.yaml --gpu 80GiB --batch 4 --format jsonl | field 'p["needed_bytes"]')
    run ./fraglab plan $models/resnet50.yaml --gpu "$((needed - 2097152))B" --batch 4 --format jsonl
    [ "$status" -eq 1 ]
    [ "$(field '(p["fits"], p["is_sure"], p["doubt"])' <<<"$output")" = "(None, False, 'it hangs on the workspaces that cuDNN takes for convolutions')" ]
    [ "$(field '(p["run"]["image"], p["run"]["longest_tokens"], p["largest"]["as_is"]["tokens"])' <<<"$output")" = '(224, None, None)' ]
    [ "$(field '[f["fix"] for f in p["fixes"] if f["fix"] in ("checkpoint", "tokens", "lora")]' <<<"$output")" = '[]' ]
    ./fraglab plan $models/vit-base.yaml --gpu rtx3060 >"$out/vit.txt"
    grep -q '^model    vit-base.yaml · vit · amp-bf16 · batch 32 · 224 x 224 pixels · PyTorch ' "$out/vit.txt"
    grep -q '^checkpoint  *every block ' "$out/vit.txt"
    batch=$(sed -n 's/^as it is: batch \([0-9]*\)$/\1/p' "$out/vit.txt")
    run ./fraglab plan $models/vit-base.yaml --gpu rtx3060 --batch "$batch" # at the border, so that workspaces decide
    [[ "${lines[2]}" == "unsure; needs "*" left; "* ]]
    run ./fraglab plan $models/vit-base.yaml --gpu rtx3060 --batch $((batch + 1))
    [ "$status" -eq 1 ]
    [[ "${lines[2]}" == *" missing; "* ]]
}

@test "workspaces between none and the most may decide where both ends fit" {
    printf '%s' '{"model_type": "convnext", "num_labels": 100, "image_size": 224, "num_stages": 2, "hidden_sizes": [48, 96], "depths": [3, 2], "drop_path_rate": 0.0}' >"$out/two-stages.json"
    run ./fraglab plan "$out/two-stages.json" --gpu rtx4090 --batch 738 --parallel ddp --format jsonl
    [ "$status" -eq 1 ]
    [ "$(field '(p["fits"], p["is_sure"], p["margin_bytes"] > 128 << 20, p["doubt"])' <<<"$output")" = "(None, False, True, 'it hangs on the workspaces that cuDNN takes for convolutions')" ]
    run ./fraglab plan "$out/two-stages.json" --gpu rtx4090 --batch 600 --parallel ddp --format jsonl
    [ "$status" -eq 0 ]
    [ "$(field '(p["fits"], p["is_sure"])' <<<"$output")" = "(True, True)" ]
}

@test "samples and graphs have no length, and only fixes that give what can be generated" {
    ask() { # file, options: whether it has an image and a length, and the fixes
        ./fraglab plan "$models/$1" --gpu rtx3060 --format jsonl "${@:2}" |
            field '(p["run"]["image"], p["run"]["longest_tokens"], [fix["fix"] for fix in p["fixes"]], p["draws"])'
    }
    # Gradients of some rows are not added to others.
    sparse=$(ask dlrm-criteo.yaml)
    [[ $sparse == "(None, None, "*"'batch'"*", 0)" && $sparse != *accumulate* ]]
    printf 'model: {family: dlrm}\nrun: {batch: 1024}\n' >"$out/dense.yaml"
    [[ $(models=$out ask dense.yaml) == *"'accumulate'"*"'momentum'"* ]]
    # A batch of a graph is what is learned of what is read; sizes that are drawn are tried with seven seeds.
    graph=$(ask graphsage-arxiv.yaml --steps 3)
    [[ $graph == "(None, None, "*", 8)" && $graph != *"'batch'"* && $graph != *accumulate* ]]
}

@test "weights of 4 bits are a fix, alone and beside adapters, and no fix breaks them" {
    printf '{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16}' >"$out/llama.json"
    run ./fraglab plan "$out/llama.json" --gpu 80GiB --tokens 256 --format jsonl
    alone=$(field '[f["peak"] for f in p["fixes"] if f["fix"] == "quantize"][0]' <<<"$output")
    run ./fraglab plan "$out/llama.json" --gpu 80GiB --tokens 256 --precision amp-bf16 --lora-rank 16 --quantize nf4-double --format jsonl
    [ "$(field 'p["peak"]' <<<"$output")" = "$alone" ]
    [ "$(field '[f["fix"] for f in p["fixes"] if f["fix"] in ("quantize", "lora", "autocast", "bf16-weights")]' <<<"$output")" = '[]' ]
    # Half a byte a weight of the blocks, a byte and an eighth of each 64, and embedding, norms and head in 32 bits.
    blocks=$((8 * (4 * 1024 * 1024 + 3 * 1024 * 2816)))
    weights=$(field 'p["at_peak"]["weights_bytes"]' <<<"$output")
    [ "$weights" -gt $((blocks / 2 + blocks / 64 + 2 * 4 * 32000 * 1024)) ]
    [ "$weights" -lt $((blocks / 2 + blocks / 64 + 2 * 4 * 32000 * 1024 + 8 * 1024 * 1024)) ]
    ./fraglab plan "$out/llama.json" --gpu 80GiB --tokens 256 --explain quantize | grep -q 'bnb_4bit_quant_type="nf4"'
    # What it computed is run by the lines alone: checkpoints that peft would switch on are off, and autocast is on.
    run ./fraglab plan "$out/llama.json" --gpu 80GiB --tokens 256 --explain quantize
    [[ "$output" = *'bnb_4bit_compute_dtype=torch.bfloat16)); bf16=True'* ]]
    [[ "$output" = *'peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False), LoraConfig(r=16))'* ]]
    [[ "$output" = *'with torch.autocast("cuda", dtype=torch.bfloat16):'* ]]
    run ./fraglab plan "$out/llama.json" --gpu 80GiB --tokens 256 --precision amp-bf16 --checkpoint blocks --explain quantize
    [[ "$output" = *'prepare_model_for_kbit_training(model, gradient_checkpointing_kwargs={"use_reentrant": False}), '* ]]
    [[ "$output" != *'bf16=True'* ]]
    # transformers multiplies the batch of a device by those of DataParallel.
    ./fraglab plan $models/gpt2-small.yaml --gpu 8GiB --parallel dp --devices 2 --batch 16 --tokens 512 --explain accumulate |
        grep -q 'per_device_train_batch_size=4, gradient_accumulation_steps=2'
    # Where peft has no layers for a family, they are named.
    ./fraglab plan $models/vit-base.yaml --gpu 24GiB --explain lora |
        grep -Fq 'peft.get_peft_model(model, LoraConfig(r=16, target_modules="all-linear", modules_to_save=["classifier"]))'
    printf 'model: {family: mixtral, layers: 2}\nrun: {precision: bf16}\n' >"$out/experts.yaml"
    ./fraglab plan "$out/experts.yaml" --gpu 24GiB --explain lora |
        grep -Fq 'LoraConfig(r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))'
    run ./fraglab plan "$out/llama.json" --gpu 80GiB --task generate --format jsonl
    [ "$(field '[f["setting"] for f in p["fixes"] if f["fix"] == "quantize"]' <<<"$output")" = "['NF4']" ]
}

@test "a loss in chunks is a fix of decoders, whose lines are those of the dry runs" {
    run ./fraglab plan $models/gpt2-small.yaml --gpu 3GiB --batch 8 --format jsonl
    # Of two sizes of chunks the smaller, as neither fits alone.
    alone=$(field '[f["peak"] for f in p["fixes"] if f["fix"] == "chunked-loss"][0]' <<<"$output")
    [ "$(field '[f["setting"] for f in p["fixes"] if f["fix"] == "chunked-loss"]' <<<"$output")" = "['logits of 256 tokens']" ]
    run ./fraglab plan $models/gpt2-small.yaml --gpu 3GiB --batch 8 --format jsonl --loss chunked --loss-chunk 256
    [ "$(field 'p["peak"]' <<<"$output")" = "$alone" ]
    [ "$(field '[f for f in p["fixes"] if f["fix"] == "chunked-loss"]' <<<"$output")" = '[]' ]
    for knobs in '--lora-rank 8' ''; do
        # shellcheck disable=SC2086
        ./fraglab plan $models/gpt2-small.yaml --gpu 80GiB --batch 8 --explain chunked-loss $knobs | sed -n '/^  torch /,$p' | cut -c 17- >"$out/paste.py"
        python3 -c 'compile(open("'"$out/paste.py"'").read(), "paste", "exec")'
        grep -q "^core = model$([ -z "$knobs" ] || echo '.get_base_model()')\$" "$out/paste.py"
        while IFS= read -r line; do
            grep -qxF -- "${line//1024/chunk}" tests/workload/program.py
        done < <(grep -v '^core\|^loss' "$out/paste.py")
    done
    [ "$(wc -l <"$out/paste.py")" -eq 13 ]
    printf 'model: {family: bert}\n' >"$out/bert.yaml"
    run ./fraglab plan "$out/bert.yaml" --gpu 80GiB --format jsonl
    [ "$(field '[f for f in p["fixes"] if f["fix"] == "chunked-loss"]' <<<"$output")" = '[]' ]
}

@test "settings of the program count, and are not offered again" {
    run ./fraglab plan $models/gpt2-small.yaml --gpu 80GiB --format jsonl --conf expandable_segments:True
    [ "$(field '[f for f in p["fixes"] if f["fix"] == "expandable-segments"]' <<<"$output")" = '[]' ]
    with=$(field 'p["peak"]' <<<"$output")
    run ./fraglab plan $models/gpt2-small.yaml --gpu 80GiB --format jsonl
    [ "$(field '[f["peak"] for f in p["fixes"] if f["fix"] == "expandable-segments"][0]' <<<"$output")" = "$with" ]
}

@test "several cards are several answers, all of them too" {
    run ./fraglab plan $models/gpt2-small.yaml --gpu 4GiB,rtx3060 --format jsonl --steps 1
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 2 ]
    [ "$(field 'p["fits"]' <<<"${lines[1]}")" = True ]
}

@test "every fix is explained" {
    local count=0
    while read -r fix; do
        count=$((count + 1))
        ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --explain "$fix" >"$out/said"
        [ "$(head -n 1 "$out/said")" = "$fix" ]
        grep -q '^costs: ' "$out/said"
        grep -q '^here: ' "$out/said"
    done < <(sed -n 's/^    {"\([a-z0-9-]*\)",$/\1/p; s/^    {"\([a-z0-9-]*\)", ".*/\1/p' studies/plan/fix_table.c)
    [ "$count" -eq 25 ]
    ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --explain no-grad | grep -q '^here: it does not apply'
}

@test "bad input is refused with its place" {
    refuse '--gpu: no card is named; expected a card such as rtx3060, a size such as 12GiB, or all' $models/gpt2-small.yaml
    refuse '--gpu: AMD Instinct MI250, one of its two GPUs is a card for ROCm; a dry run pretends to be a card for CUDA' $models/gpt2-small.yaml --gpu mi250
    refuse "--gpu: no card is called 'rtx3061'; did you mean rtx3060?" $models/gpt2-small.yaml --gpu rtx3060,rtx3061
    refuse "--conf: PyTorch 2.9 refuses these settings at character 1: Unrecognized CachingAllocator option: max_split_size" $models/gpt2-small.yaml --gpu rtx3060 --conf max_split_size:128
    refuse "--explain: 'checkpoints' is not a fix; did you mean checkpoint?" $models/gpt2-small.yaml --gpu rtx3060 --explain checkpoints
    printf 'model:\n  family: gpt2\n  layer: 3\n' >"$out/bad.yaml"
    refuse "$out/bad.yaml:3:3: unknown key 'layer'; did you mean layers" "$out/bad.yaml" --gpu rtx3060
    printf '{"model_type": "gpt2", "n_layer": "x"}' >"$out/config.json"
    refuse "$out/config.json: 'n_layer' is \"x\"; expected a whole number 1 to 1000" "$out/config.json" --gpu rtx3060
    refuse "--batch: batch is '0'; expected a whole number 1 to 1048576" $models/gpt2-small.yaml --gpu rtx3060 --batch 0
}

@test "recomputing costs the same share in every family without a gate" {
    printf '{"model_type": "bert"}' >"$BATS_TEST_TMPDIR/bert.json"
    printf '{"model_type": "roberta", "vocab_size": 30522}' >"$BATS_TEST_TMPDIR/roberta.json"
    printf '{"model_type": "distilbert", "n_layers": 12}' >"$BATS_TEST_TMPDIR/distilbert.json"
    for family in bert roberta distilbert; do
        ./fraglab plan "$BATS_TEST_TMPDIR/$family.json" --gpu rtx4090 --format jsonl | grep -o '"recomputing_estimate_ratio":[0-9.]*'
    done >"$BATS_TEST_TMPDIR/ratios"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/ratios")" -eq 3 ]
    [ "$(sort -u "$BATS_TEST_TMPDIR/ratios" | wc -l)" -eq 1 ]
}

@test "a combination says in words what it is, what to paste and what it costs" {
    ./fraglab plan $models/gpt2-small.yaml --gpu 2.5GiB --batch 1 >"$out/plan.txt" || [ $? -eq 1 ]
    sed -n '/^the cheapest combination/,/^together/p' "$out/plan.txt" >"$out/combination.txt"
    grep -qx 'checkpoint: every block' "$out/combination.txt"
    grep -q '^  transformers  gradient_checkpointing=True' "$out/combination.txt"
    ratio=$(./fraglab plan $models/gpt2-small.yaml --gpu 2.5GiB --batch 1 --format jsonl | grep -o '"recomputing_estimate_ratio":[0-9.]*' | head -n 1)
    grep -qF "  recomputing takes about $(awk -v r="${ratio#*:}" 'BEGIN { printf "%.0f", 100 * r }') % more time a step" "$out/combination.txt"
    # Nothing is recomputed: nothing is said of it.
    ./fraglab plan $models/gpt2-small.yaml --gpu 6GiB --batch 8 >"$out/plan.txt" || [ $? -eq 1 ]
    grep -qx 'accumulate: batch 2, 4 accumulated' "$out/plan.txt"
    [ "$(grep -c 'recomputing takes' "$out/plan.txt")" -eq 0 ]
}

@test "of several devices the one that needs the most decides, and fixes that are not described beside it are left out" {
    ./fraglab plan $models/gpt2-pipeline.yaml --gpu 4GiB --format jsonl >"$out/plan.jsonl"
    ./fraglab trace generate $models/gpt2-pipeline.yaml -o "$out/pipeline.fgt"
    [ "$(field 'p["device"]' <"$out/plan.jsonl")" -eq 3 ]
    peak=$(./fraglab run "$out/pipeline.fgt" --policy pytorch --format jsonl | sed -n 4p | grep -o '"reserved_bytes":[0-9]*' | head -n 1)
    [ "$(field 'p["peak"]["reserved_bytes"]' <"$out/plan.jsonl")" -eq "${peak#*:}" ]
    # At its peak it has no less than what its kinds add up to.
    [ "$(field 'sum(p["at_peak"].values())' <"$out/plan.jsonl")" -eq "${peak#*:}" ]
    ./fraglab plan $models/gpt2-pipeline.yaml --gpu 4GiB >"$out/plan.txt"
    grep -q 'fits; device 3 decides: it needs ' "$out/plan.txt"
    [ "$(grep -c '^accumulate \|^chunked-loss \|^batch ' "$out/plan.txt")" -eq 0 ]
    grep -q "^lora " "$out/plan.txt"
    # The largest batch is one of whole microbatches; beside the least capacity a rank runs out of memory.
    largest=$(field 'p["largest"]["as_is"]["batch"]' <"$out/plan.jsonl")
    [ $((largest % 8)) -eq 0 ] && [ "$largest" -ge 8 ]
    needed=$(field 'p["needed_bytes"]' <"$out/plan.jsonl")
    ./fraglab ranks "$out/pipeline.fgt" --policy pytorch --capacity "${needed}B" >/dev/null
    run ./fraglab ranks "$out/pipeline.fgt" --policy pytorch --capacity "$((needed - 1024 * 1024))B"
    [ "$status" -eq 1 ]
}

@test "beside DDP the optimizer's state may be split, or all be, and a plan's figures are those of the knob" {
    ask() { ./fraglab plan $models/gpt2-small.yaml --gpu 2.5GiB --batch 2 --tokens 256 --format jsonl "$@" || [ $? -eq 1 ]; }
    ask --parallel ddp --devices 3 --precision bf16 >"$out/ddp.jsonl"
    for fix in zero1 fsdp; do
        alone=$(field "[f['peak'] for f in p['fixes'] if f['fix'] == '$fix'][0]" <"$out/ddp.jsonl")
        [ "$alone" = "$(ask --parallel $fix --devices 3 --precision bf16 | field 'p["peak"]')" ]
    done
    # The line to paste has the optimizer that there is.
    ./fraglab plan $models/gpt2-small.yaml --gpu 2.5GiB --parallel ddp --optimizer adam --optimizer-loop fused --explain zero1 >"$out/zero1.txt" || [ $? -eq 1 ]
    [[ "$(cat "$out/zero1.txt")" == *"ZeroRedundancyOptimizer([p for p in model.parameters() if p.requires_grad], torch.optim.Adam, fused=True)"* ]]
    # Neither where one device has all, nor what a plan has already, nor without a state, nor under autocast.
    offered() { ask "$@" | field '[f["fix"] for f in p["fixes"] if f["fix"] in ("zero1", "fsdp")]'; }
    [ "$(offered)" = '[]' ]
    [ "$(offered --parallel zero1 --precision bf16)" = "['fsdp']" ]
    [ "$(offered --parallel fsdp --precision bf16)" = '[]' ]
    [ "$(offered --parallel ddp --precision bf16 --optimizer sgd)" = "['fsdp']" ]
    [ "$(offered --parallel ddp --precision amp-bf16)" = "['zero1']" ]
}

@test "the table is that of plans, and larger cards hold no less" {
    ./fraglab plan --table --format jsonl >"$out/table.jsonl"
    python3 - "$out/table.jsonl" <<'END'
import json, sys
cells = [json.loads(line) for line in open(sys.argv[1])]
assert len(cells) % 7 == 0 and len(cells) >= 7 * 20, len(cells)
for row in range(0, len(cells), 7):
    for kind in ("as_is", "fixed"):
        batches = [cell["batch"][kind] for cell in cells[row:row + 7]]
        assert batches == sorted(batches), (cells[row], batches)
assert any(cell["batch"]["fixed"] > cell["batch"]["as_is"] > 0 for cell in cells)
END
    # For people the same: a line for a model and task, "AS IT IS / WITH FIXES" for each card.
    ./fraglab plan --table >"$out/table.txt"
    [ "$(grep -c . "$out/table.txt")" -eq $(($(wc -l <"$out/table.jsonl") / 7 + 4)) ]
    sed -n 2p "$out/table.txt" | grep -q '^model  *task  *each  *8 GiB  *12 GiB  *16 GiB  *24 GiB  *32 GiB  *48 GiB  *80 GiB$'
    batch=$(grep '"GPT-2 small","task":"full"' "$out/table.jsonl" | sed -n 1p | field '"%d / %d" % (p["batch"]["as_is"], p["batch"]["fixed"])')
    grep -q "^GPT-2 small  *full  *1024 tokens  *$batch " "$out/table.txt"
    # GPT-2 small, full, on 12 GiB: one cell by hand.
    batch=$(grep '"GPT-2 small","task":"full"' "$out/table.jsonl" | sed -n 2p | field 'p["batch"]["as_is"]')
    capacity=$(((12 * 1024 - 512) * 1024 * 1024))
    ./fraglab plan $models/gpt2-small.yaml --gpu "${capacity}B" --batch "$batch" >/dev/null
    run ./fraglab plan $models/gpt2-small.yaml --gpu "${capacity}B" --batch $((batch + 1))
    [ "$status" -eq 1 ]
    refuse '--table has workloads of its own; leave --batch out' --table --batch 3
    refuse '--table has cards and models of its own; leave --gpu out' --table --gpu rtx3060
    refuse "--table has models of its own; leave '$models/gpt2-small.yaml' out" --table $models/gpt2-small.yaml
    refuse 'no model is named; expected a workload file or a config.json' --gpu rtx3060
}

@test "the name of a model is told where its file is" {
    run ./fraglab plan meta-llama/Llama-3.1-8B --gpu rtx3060
    [ "$status" -eq 3 ]
    [[ "$output" == *"https://huggingface.co/meta-llama/Llama-3.1-8B/raw/main/config.json"* ]]
    run ./fraglab plan nowhere.yaml --gpu rtx3060
    [ "$status" -eq 3 ]
    [[ "$output" == *"nowhere.yaml: cannot be opened"* ]]
}

@test "a combination is as sure as the answer, and no fix stays that another made superfluous" {
    # Of drawn lengths all seeds are asked.
    printf 'model: {family: t5, width: 256, layers: 2, heads: 4}\nrun: {batch: 8, tokens: 32..256, steps: 2}\n' >"$out/t5.yaml"
    run ./fraglab plan "$out/t5.yaml" --gpu 640MiB --format jsonl
    [ "$(field 'p["cheapest"]["draws"]' <<<"$output")" = 8 ]
    [ "$(field 'p["largest"]["as_is"]["tokens"] > 32' <<<"$output")" = True ] # it has no last position
    [ "$(field '(p["cheapest"]["fits"] is None) == (0 < p["cheapest"]["draws_served"] < 8)' <<<"$output")" = True ]
    [ "$(field 'all(not f["is_sure"] for f in p["fixes"])' <<<"$output")" = True ]
    # What is near the edge is said to be so, in the table and of the combination.
    least=$(./fraglab plan $models/gpt2-small.yaml --gpu 80GiB --lora-rank 16 --format jsonl | field 'p["needed_bytes"] >> 20')
    run ./fraglab plan $models/gpt2-small.yaml --gpu $((least + 100))MiB --format jsonl
    [ "$(field '[(f["fits"], f["is_sure"]) for f in p["fixes"] if f["fix"] == "lora"]' <<<"$output")" = '[(True, False)]' ]
    run ./fraglab plan $models/gpt2-small.yaml --gpu $((least + 100))MiB
    grep -q '^lora .* yes, not sure$' <<<"$output"
    # Adapters alone would do here, and nothing stands beside them.
    printf '{"model_type": "opt", "hidden_size": 1024, "word_embed_proj_dim": 512, "ffn_dim": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 50272, "do_layer_norm_before": false}' >"$out/opt.json"
    run ./fraglab plan "$out/opt.json" --gpu 2GiB --batch 3 --tokens 128 --task rlhf --optimizer adafactor --format jsonl
    [ "$(field '[f["fix"] for f in p["cheapest"]["fixes"]]' <<<"$output")" = "['lora']" ]
    [ "$(field '(p["cheapest"]["fits"], p["cheapest"]["is_sure"])' <<<"$output")" = '(True, False)' ]
}

@test "the type that weights are stored in is named where another one is planned" {
    printf '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "torch_dtype": "bfloat16"}' >"$out/stored.json"
    run ./fraglab plan "$out/stored.json" --gpu t4
    [[ "${lines[0]}" = "model    stored.json · llama · fp32 · "* ]]
    [ "${lines[1]}" = "         its weights are stored in bfloat16, in which transformers 5 loads them unless another dtype is given: --precision bf16" ]
    run ./fraglab plan "$out/stored.json" --gpu a100 --precision bf16
    [[ "${lines[1]}" = "card "* ]]
}

@test "what is put on the host is offered where it helps, and says what crosses the bus" {
    printf '{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000}' >"$out/llama.json"
    # Training: state and gradients on the host, as long as the copies keep up.
    run ./fraglab plan "$out/llama.json" --precision bf16 --tokens 256 --gpu 4GiB --format jsonl
    [ "$status" -eq 1 ]
    [ "$(field '[f["fix"] for f in p["cheapest"]["fixes"]][-1]' <<<"$output")" = offload-optimizer ]
    [ "$(field '(p["cheapest"]["fits"], p["cheapest"]["doubt"])' <<<"$output")" = "(None, 'gradients go when they are on the host, and the GPU may make them faster than that')" ]
    [[ "$output" == *'torchao.optim.CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, offload_gradients=True)'* ]]
    [ "$(field '[f["transfer_estimate_bytes"] == 2 * p["at_peak"]["weights_bytes"] for f in p["fixes"] if f["fix"] == "offload-optimizer"]' <<<"$output")" = '[True]' ]
    [ "$(field '{f["transfer_estimate_bytes"] for f in p["fixes"] if not f["fix"].startswith("offload")}' <<<"$output")" = '{None}' ]
    run ./fraglab plan "$out/llama.json" --precision bf16 --tokens 256 --gpu 4GiB
    grep -q '^offload-optimizer .* yes, not sure$' <<<"$output"
    grep -q '^the cheapest combination that may fit$' <<<"$output"
    # With room for the gradients they may stay, and the answer is sure.
    run ./fraglab plan "$out/llama.json" --precision bf16 --tokens 256 --gpu 6GiB --format jsonl
    [ "$(field '(p["cheapest"]["fits"], p["cheapest"]["is_sure"])' <<<"$output")" = '(True, True)' ]
    ./fraglab plan "$out/llama.json" --precision bf16 --tokens 256 --gpu 6GiB --offload optimizer,gradients | grep -q '^fits; needs '
    # Of two devices each has its shards on the host; before they are cut no device has the whole model.
    run ./fraglab plan "$out/llama.json" --precision bf16 --tokens 256 --gpu 2560MiB --parallel ddp --format jsonl
    [ "$(field '[f["fix"] for f in p["cheapest"]["fixes"]]' <<<"$output")" = "['offload-shards']" ]
    [ "$(field 'p["cheapest"]["is_sure"]' <<<"$output")" = True ]
    [ "$(field '[f["transfer_estimate_bytes"] * 2 == 3 * p["at_peak"]["weights_bytes"] for f in p["fixes"] if f["fix"] == "offload-shards"]' <<<"$output")" = '[True]' ]
    [[ "$output" == *'fully_shard(block, offload_policy=CPUOffloadPolicy())'* ]]
    ./fraglab plan "$out/llama.json" --precision bf16 --tokens 256 --gpu 1GiB --parallel fsdp --devices 8 --task evaluate | grep -q '^fits; device 0 decides'
    # Answers: of weights that a card does not hold those of one layer are there at a time.
    run ./fraglab plan "$out/llama.json" --precision fp32 --task generate --tokens 256 --gpu 512MiB --format jsonl
    [ "$(field '[f["fix"] for f in p["cheapest"]["fixes"]]' <<<"$output")" = "['offload-weights']" ]
    [ "$(field 'p["is_offload_weights_left_out"]' <<<"$output")" = False ]
    [[ "$output" == *'accelerate.cpu_offload(model, torch.device('* ]]
    run ./fraglab plan "$out/llama.json" --task generate --gpu 1GiB --explain offload-weights
    [[ "$output" == *'cross the bus each time, which takes '*' s at 25 GB/s (estimate; docs/plan.md)'* ]]
    run ./fraglab plan "$out/llama.json" --task generate --new-tokens 400 --gpu 1GiB --format jsonl
    [ "$(field 'p["is_offload_weights_left_out"]' <<<"$output")" = True ]
    run ./fraglab plan "$out/llama.json" --task generate --new-tokens 400 --gpu 1GiB
    [[ "$output" == *$'\noffload-weights is not tried with so many new tokens'* ]]
    ./fraglab plan "$out/llama.json" --task generate --new-tokens 400 --gpu 1GiB --offload parameters | grep -q '^fits; needs '
}

@test "a memory fraction is taken off the card" {
    whole=$(./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --format jsonl | field 'p["gpu"]["usable_bytes"]')
    run ./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --memory-fraction 0.25 --format jsonl
    [ "$(field 'p["gpu"]["usable_bytes"] == int(p["gpu"]["total_bytes"] * 0.25)' <<<"$output")" = True ]
    [ "$(field 'p["fits"]' <<<"$output")" = False ]
    [ "$(./fraglab plan $models/gpt2-small.yaml --gpu rtx3060 --memory-fraction 1 --format jsonl | field 'p["gpu"]["usable_bytes"]')" -eq "$whole" ]
}

@test "a recording is told what answers of recordings" {
    for file in traces/samples/gpt-train.pickle.zst "$out/made.fgt" "$out/made.txt"; do
        case $file in *.fgt) ./fraglab trace generate $models/mnasnet.yaml -o "$file" ;; *.txt) ./fraglab trace generate $models/mnasnet.yaml --to text -o "$file" ;; esac
        refuse "$file: is a recording, not the description of a model; 'fraglab min-capacity' says what it needs, 'fraglab explain --capacity SIZE' whether it fits" "$file" --gpu rtx3060
    done
}

@test "attention that keeps its scores is told of a kernel that does not" {
    ask() { ./fraglab plan $models/gpt2-small.yaml --gpu 8GiB --batch 4 --tokens 1024 --precision amp-bf16 --format jsonl "$@" || [ $? -eq 1 ]; }
    ask --attention eager >"$out/eager.jsonl"
    [ "$(field '[f["fix"] for f in p["cheapest"]["fixes"]][0]' <"$out/eager.jsonl")" = sdpa ]
    [ "$(field '[f["peak"] for f in p["fixes"] if f["fix"] == "sdpa"][0]' <"$out/eager.jsonl")" = "$(ask | field 'p["peak"]')" ]
    [[ "$(cat "$out/eager.jsonl")" == *'from_pretrained(..., attn_implementation=\"sdpa\")'* ]]
    [[ "$(ask --attention math)" == *'no sdpa_kernel(SDPBackend.MATH)'* ]]
    [ "$(ask | field '[f["fix"] for f in p["fixes"] if f["fix"] == "sdpa"]')" = '[]' ]
    # Every fix of the table has a place of its own in a choice.
    [ "$(ask --attention eager | field 'len({f["fix"] for f in p["fixes"]}) == len(p["fixes"])')" = True ]
}

@test "a batch is divided into at most 256 parts" {
    divided() { # batch: how far it is divided
        { ./fraglab plan $models/gpt2-small.yaml --gpu 1GiB --tokens 32 --batch "$1" || [ $? -eq 1 ]; } |
            sed -n '/^each fix/,/^$/s/^accumulate  *\(batch [0-9]*, [0-9]* accumulated\) .*/\1/p'
    }
    [ "$(divided 7)" = 'batch 1, 7 accumulated' ]
    [ "$(divided 257)" = '' ]
    [ "$(divided 512)" = 'batch 2, 256 accumulated' ]
}
