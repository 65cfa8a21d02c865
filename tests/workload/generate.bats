# fraglab trace generate: requests as PyTorch makes them, the same bytes always, and errors that name the place.

here=tests/workload

setup() {
    out=$BATS_TEST_TMPDIR
}

# The options of a case in tests/workload/cases: "knob=value" words.
options() {
    for knob; do
        echo "--$(echo "${knob%%=*}" | tr _ -) ${knob#*=}"
    done
}

@test "every stored dry run is generated request by request" {
    local count=0 name config card rest
    while read -r name config card rest; do
        [[ $name == tiny-* ]] || continue
        zstd -dqf "tests/data/workloads/$name.list.zst" -o "$out/$name.list"
        # shellcheck disable=SC2046,SC2086
        ./fraglab trace generate "$here/models/$config" --gpu "$card" $(options $rest) --to text -f -o "$out/made.txt"
        run python3 "$here/compare.py" row "$name" "$out/$name.list" "$out/made.txt"
        echo "$output"
        [ "$status" -eq 0 ]
        [[ "$output" == *" equal" ]]
        count=$((count + 1))
    done <$here/cases
    [ "$count" -ge 17 ]
}

@test "the same description gives the same bytes, another seed other ones" {
    ./fraglab trace generate traces/workloads/gpt2-varying.yaml -o "$out/a.fgt"
    ./fraglab trace generate traces/workloads/gpt2-varying.yaml -o "$out/b.fgt"
    ./fraglab trace generate traces/workloads/gpt2-varying.yaml --seed 8 -o "$out/c.fgt"
    cmp "$out/a.fgt" "$out/b.fgt"
    ! cmp -s "$out/a.fgt" "$out/c.fgt" || false
    # Pinned, so that every machine is known to give them.
    [ "$(./fraglab trace info "$out/a.fgt" --format jsonl | grep -o '"digest":"[0-9a-f]*"')" = '"digest":"5391fb32c64309e38f21775dd5f05055"' ]
}

@test "what is generated is a clean trace with steps and phases" {
    for file in traces/workloads/*.yaml; do
        ./fraglab trace generate "$file" --steps 2 -f -o "$out/a.fgt"
        ./fraglab trace check "$out/a.fgt"
    done
    ./fraglab trace generate traces/workloads/gpt2-varying.yaml --steps 2 --to text -o - >"$out/a.txt"
    [ "$(grep -c '^mark "step . *" begin$\|^mark "step [12]" begin$' "$out/a.txt")" -eq 2 ]
    [ "$(grep -c '^mark "backward" end$' "$out/a.txt")" -eq 2 ]
    ./fraglab trace cut "$out/a.txt" --marks 'step 2' -f -o "$out/b.fgt"
}

@test "an option stands above the file" {
    ./fraglab trace generate traces/workloads/gpt2-small.yaml --steps 1 --precision fp32 --batch 1 --to text -o "$out/a.txt"
    # logits of one sequence in fp32
    grep -q '^alloc [0-9]* 205852672$' "$out/a.txt"
    [ "$(grep -c '^mark "step' "$out/a.txt")" -eq 2 ]
}

refuse() { # sentence; the file's text is on stdin
    cat >"$out/bad.yaml"
    run ./fraglab trace generate "$out/bad.yaml" -o "$out/never.fgt"
    echo "$output"
    [ "$status" -eq 3 ]
    [ "$output" = "fraglab: $out/bad.yaml$1" ]
    [ ! -e "$out/never.fgt" ]
}

@test "bad input is refused with its place, what was found and what would be right" {
    printf 'model:\n  family: gpt2\n  layer: 2\n' | refuse ":3:3: unknown key 'layer'; did you mean layers"
    printf 'model:\n  family: gpt2\n  layers: 0\n' | refuse ":3:11: layers is '0'; expected a whole number 1 to 1000"
    printf 'model:\n  family: gpt3\n' | refuse ":2:11: family is 'gpt3'; expected gpt2, llama or bert"
    printf 'model:\n  layers: 2\n' | refuse ":2:3: 'model' has no 'family'; expected one, such as 'family: gpt2'"
    printf 'run:\n  batch: 2\n' | refuse ":1:1: the document has no 'model'; expected one"
    printf 'model:\n  family: gpt2\n  activation: selu\n' | refuse ":3:15: activation is 'selu'; expected gelu_new, gelu, silu or relu"
    printf 'model: {family: gpt2}\nrun: {tokens: [64, 0]}\n' |
        refuse ":2:15: tokens is '64,0'; expected N, a list of up to 256 or MIN..MAX, each 1 to 16777216"
    printf 'model: {family: gpt2}\nrun: {tokens: 2000}\n' | refuse ": tokens is 2000; the model has positions for 1024"
    printf 'model: {family: gpt2, heads: 7}\n' | refuse ": width 768 is no multiple of heads 7"
    printf '{"model_type": "t5"}' | refuse ": 'model_type' is 't5'; expected gpt2, llama or bert"
    printf '{"model_type": "gpt2", "n_layer": -3}' | refuse ": 'n_layer' is -3; expected a whole number 1 to 1000"
    printf '{"hidden_size": 3}' | refuse ": has no 'model_type'; expected the config.json of a model"
}

@test "bad options are refused by name" {
    run ./fraglab trace generate traces/workloads/gpt2-small.yaml --batch 0 -o "$out/never.fgt"
    [ "$status" -eq 2 ]
    [ "$output" = "fraglab: --batch: batch is '0'; expected a whole number 1 to 1048576" ]
    run ./fraglab trace generate traces/workloads/gpt2-small.yaml --gpu mi250 -o "$out/never.fgt"
    [ "$status" -eq 2 ]
    [ "$output" = "fraglab: --gpu: 'mi250' has no compute capability of CUDA; expected an NVIDIA card with one" ]
    run ./fraglab trace generate traces/workloads/gpt2-small.yaml
    [ "$status" -eq 2 ]
    [ ! -e "$out/never.fgt" ]
}
