# fraglab tune: as good as the best dry run, what it prints is what was run, the seed decides, held-out traces are not searched on.

bats_require_minimum_version 1.5.0
S=traces/samples

setup() { cd "$BATS_TEST_DIRNAME/../.." && out=$BATS_TEST_TMPDIR; }

# The value of a key, first occurrence.
value() { grep -oE "\"$1\":(\"[^\"]*\"|[^,}]*)" | head -n 1 | cut -d: -f2- | tr -d '"'; }

# Bytes of the tuned setting, all traces added up.
tuned() {
    local sum=0 bytes
    for bytes in $(grep -oE '"tuned":\{[^}]*\}' "$1" | grep -oE '"bytes":[0-9]+' | cut -d: -f2); do
        sum=$((sum + bytes))
    done
    echo "$sum"
}

# The least peak of PyTorch's dry runs on 80 GiB, of all runs of the same program under other settings.
@test "on every recording it is at least as good as the best of the dry runs" {
    while read -r name peak; do
        ./fraglab tune "$S/$name.pickle.zst" --runs 100 --format jsonl >"$out/row"
        [ "$(tuned "$out/row")" -gt 0 ]
        [ "$(tuned "$out/row")" -le "$peak" ] || { echo "$name: $(tuned "$out/row") is over $peak" && false; }
    done <<END
cuda-graphs 694157312
gpt-train 9552527360
gpt-varlen 6824132608
llm-inference 2952790016
model-parallel 19467862016
moe 10234101760
pr193400 421527552
prefetch-streams 6176112640
resnet-vary 8778678272
unet 6025117696
END
}

@test "on a small device it fits where dry runs fitted, with no more than they needed" {
    while read -r name capacity peak; do
        ./fraglab tune "$S/$name.pickle.zst" --runs 100 --capacity "$capacity" --format jsonl >"$out/row"
        grep -q '"tuned":{"is_refused":false,"is_oom":false' "$out/row"
        [ "$(tuned "$out/row")" -le "$peak" ] || { echo "$name: $(tuned "$out/row") is over $peak" && false; }
    done <<END
gpt-varlen 6088MiB 6320816128
gpt-varlen 7738MiB 6448742400
prefetch-streams 5370MiB 5628755968
prefetch-streams 7478MiB 5762973696
llm-inference 2528MiB 2646605824
END
}

@test "the setting printed is the one that was run" {
    ./fraglab tune $S/resnet-vary.pickle.zst --runs 80 --format jsonl >"$out/row"
    ./fraglab run $S/resnet-vary.pickle.zst --policy "$(grep -oE '"label":"[^"]*"' "$out/row" | head -n 1 | cut -d'"' -f4)" \
        --format jsonl >"$out/run"
    grep -q "\"reserved_bytes\":$(tuned "$out/row")," "$out/run"
    ./fraglab tune $S/resnet-vary.pickle.zst --runs 80 >"$out/table"
    setting=$(sed -n 's/^ *PYTORCH_CUDA_ALLOC_CONF=//p' "$out/table")
    PYTORCH_CUDA_ALLOC_CONF=$setting ./fraglab run $S/resnet-vary.pickle.zst --policy pytorch:env --format jsonl >"$out/run"
    grep -q "\"reserved_bytes\":$(tuned "$out/row")," "$out/run"
}

@test "the advice of guides is shown with how much worse it is" {
    ./fraglab tune $S/gpt-varlen.pickle.zst --runs 20 >"$out/table"
    grep -q 'max_split_size_mb:128, which guides advise, makes it worse: 26.50 GiB, 3.11 times the default' "$out/table"
    printf '%s\n' '# fraglab trace 1' 'alloc 0 62914560' 'free 0' >"$out/one.fgt"
    ./fraglab tune "$out/one.fgt" --runs 20 >"$out/table"
    run ! grep -q worse "$out/table"
    grep -q 'nothing that was tried is better than the default' "$out/table"
}

@test "the number of threads changes nothing, and the seed decides" {
    ./fraglab tune $S/prefetch-streams.pickle.zst --runs 150 --seed 4 -j 1 --format jsonl >"$out/one"
    ./fraglab tune $S/prefetch-streams.pickle.zst --runs 150 --seed 4 -j 5 --format jsonl >"$out/five"
    cmp "$out/one" "$out/five"
    [ "$(value settings_tried <"$out/one")" = 150 ]
    [ "$(value seed <"$out/one")" = 4 ]
}

@test "a held-out trace is reported, and changes nothing of the search" {
    ./fraglab tune $S/unet.pickle.zst --runs 60 --format jsonl >"$out/alone"
    ./fraglab tune $S/unet.pickle.zst --runs 60 --held-out $S/gpt-varlen.pickle.zst --format jsonl >"$out/both"
    [ "$(value setting <"$out/alone")" = "$(value setting <"$out/both")" ]
    [ "$(grep -o '"is_held_out":true' "$out/both" | wc -l)" = 1 ]
}

@test "a setting that does harm on a held-out trace is not praised" {
    # Two blocks of 6 MiB fill a segment of 12, a third needs another where the default has room.
    printf '%s\n' '# fraglab trace 1' 'alloc 0 6291456' 'alloc 1 6291456' >"$out/two.fgt"
    printf '%s\n' '# fraglab trace 1' 'alloc 0 6291456' 'alloc 1 6291456' 'alloc 2 6291456' >"$out/three.fgt"
    ./fraglab tune "$out/two.fgt" --held-out "$out/three.fgt" --runs 60 >"$out/table"
    grep -q '^ *PYTORCH_CUDA_ALLOC_CONF=large_segment_size_mb:12$' "$out/table"
    grep -q '^three.fgt, held out  *20.00 MiB  *24.00 MiB  *+20.0%' "$out/table"
    grep -q '^the tuned setting is worse than the default on three.fgt, held out$' "$out/table"
}

@test "a setting that the release of a held-out trace does not know is said to be refused" {
    ./fraglab tune $S/resnet-vary.pickle.zst --held-out $S/gpt-varlen.pickle.zst --runs 60 >"$out/table"
    grep -q '^    PYTORCH_CUDA_ALLOC_CONF=.*large_segment_size_mb:' "$out/table"
    grep -q '^gpt-varlen.pickle.zst, held out  *8.53 GiB  *refused ' "$out/table"
    grep -q '^the tuned setting is refused on gpt-varlen.pickle.zst, held out: PyTorch 2.9 refuses' "$out/table"
}

@test "several traces are searched together" {
    ./fraglab tune $S/unet.pickle.zst $S/gpt-varlen.pickle.zst --runs 40 >"$out/table"
    grep -q '40 settings tried on 2 traces' "$out/table"
    grep -q '^unet.pickle.zst ' "$out/table"
    grep -q '^gpt-varlen.pickle.zst ' "$out/table"
    # No setting does anything to the first: the second decides.
    printf '# fraglab trace 2\nalloc 0 41943040\nfree 0\n' >"$out/one.trace"
    ./fraglab tune "$out/one.trace" $S/gpt-varlen.pickle.zst --runs 40 | grep -q '^ *PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True'
}

@test "tables say how far settings are above the bounds" {
    run ./fraglab tune $S/prefetch-streams.pickle.zst --bounds --runs 12
    [ "$status" -eq 0 ]
    grep -Eq '^trace .* peak requested   tuned over it   offline packing   tuned over it$' <<<"$output"
    grep -Eq '^prefetch-streams.pickle.zst .* 5.11 GiB +\+[0-9.]+% +5.16 GiB +\+[0-9.]+%$' <<<"$output"
    grep -Eq '^options   over bound   over packing   device calls   setting$' <<<"$output"
    grep -Eq '^0 +\+70.9% +\+69.3% +101   \(default\)$' <<<"$output"
    grep -Fq "to draw it: fraglab plot front $S/prefetch-streams.pickle.zst --bounds -p " <<<"$output"
    packing=$(./fraglab run $S/prefetch-streams.pickle.zst --policy direct --bounds --format jsonl | value packing_bytes)
    ./fraglab tune $S/prefetch-streams.pickle.zst --bounds --runs 2 --format jsonl >"$out/row"
    [ "$(value packing_bytes <"$out/row")" = "$packing" ]
    over=$(sed 's/.*"front":\[{[^}]*"over_packing":\([0-9.]*\),.*/\1/' "$out/row")
    reserved=$(sed 's/.*"default":{[^}]*"bytes":\([0-9]*\)}.*/\1/' "$out/row")
    [ "$over" = "$(awk -v a="$reserved" -v b="$packing" 'BEGIN { printf "%.12g", a / b }')" ]
    # Bounds decide nothing.
    ./fraglab tune $S/prefetch-streams.pickle.zst --runs 2 --format jsonl >"$out/without"
    sed -E 's/"(packing_bytes|packing_proved|over_packing)":[0-9a-z.]+/"\1":null/g' "$out/row" | cmp - "$out/without"
}

@test "the least capacity can be what is searched for" {
    ./fraglab tune $S/pr193400.pickle.zst --for min-capacity --runs 12 --format jsonl >"$out/row"
    capacity=$(./fraglab min-capacity $S/pr193400.pickle.zst --policy pytorch --format jsonl | value capacity_bytes)
    grep -q "\"default\":{\"is_refused\":false,\"is_oom\":false,\"bytes\":$capacity}" "$out/row"
    [ "$(tuned "$out/row")" -le "$capacity" ]
}

@test "letting settings go that need more finds the same least capacity" {
    for sample in pr193400 unet; do
        ./fraglab tune $S/$sample.pickle.zst --for min-capacity --runs 40 --format jsonl >"$out/row"
        label=$(grep -oE '"label":"[^"]*"' "$out/row" | head -n 1 | cut -d'"' -f4)
        [ "$(tuned "$out/row")" = "$(./fraglab min-capacity $S/$sample.pickle.zst --policy "$label" --format jsonl | value capacity_bytes)" ]
        for other in expandable_segments=true max_split_size_mb=128 max_split_size_mb=512 roundup_power2_divisions=8; do
            capacity=$(./fraglab min-capacity $S/$sample.pickle.zst --policy pytorch:$other --format jsonl | value capacity_bytes)
            [ "$(tuned "$out/row")" -le "$capacity" ]
        done
    done
}

@test "nothing on the front of memory and cost is beaten by another run, and it can be drawn" {
    ./fraglab tune $S/llm-inference.pickle.zst --capacity 2528MiB --runs 100 --format jsonl >"$out/row"
    front=$(grep -o '"memory_against_cost":.*' "$out/row")
    mapfile -t calls < <(grep -oE '"device_calls":[0-9]+' <<<"$front" | cut -d: -f2)
    mapfile -t labels < <(grep -oE '"label":"[^"]*"' <<<"$front" | cut -d'"' -f4)
    [ "${#labels[@]}" -ge 3 ]
    before=0
    for i in "${!labels[@]}"; do
        ./fraglab run $S/llm-inference.pickle.zst --capacity 2528MiB --policy "${labels[$i]}" --format jsonl >"$out/run"
        [ "$(value reserved_bytes <"$out/run")" -gt "$before" ]
        [ "$i" = 0 ] || [ "${calls[$i]}" -lt "${calls[$((i - 1))]}" ]
        before=$(value reserved_bytes <"$out/run")
    done
    grep -q '"modelled_time_ns":null' <<<"$front"
    ./fraglab tune $S/llm-inference.pickle.zst --capacity 2528MiB --latency docs/latency-example.yaml --runs 100 >"$out/table"
    grep -q '^less memory costs more time: ' "$out/table"
    command=$(sed -n 's/^to draw it: /.\//p' "$out/table")
    eval "$command -o $out/front.csv"
    [ "$(wc -l <"$out/front.csv")" -ge 4 ]
}

@test "where nothing fits that is said" {
    ./fraglab tune $S/pr193400.pickle.zst --capacity 100MiB --runs 20 >"$out/table"
    grep -q '^no setting that was tried serves every request$' "$out/table"
    ./fraglab tune $S/pr193400.pickle.zst --capacity 100MiB --runs 20 --format jsonl | grep -q '"tuned":{"is_refused":false,"is_oom":true,"bytes":null}'
}

@test "other policies have a setting for --policy, one object each" {
    ./fraglab tune $S/gpt-varlen.pickle.zst --policy tlsf,best-fit --runs 40 --format jsonl >"$out/rows"
    [ "$(wc -l <"$out/rows")" = 2 ]
    ./fraglab tune $S/gpt-varlen.pickle.zst --policy tlsf --runs 40 >"$out/table"
    policy=$(sed -n 's/^ *--policy //p' "$out/table")
    ./fraglab run $S/gpt-varlen.pickle.zst --policy "$policy" --format jsonl | grep -q "\"reserved_bytes\":$(head -n 1 "$out/rows" >"$out/first" && tuned "$out/first"),"
}

@test "what the user has fixed stays" {
    ./fraglab tune $S/unet.pickle.zst --policy pytorch:expandable_segments:False --runs 60 --format jsonl >"$out/row"
    [[ "$(value label <"$out/row")" = pytorch:expandable_segments:False* ]]
    run ! grep -q 'expandable_segments:True' "$out/row"
}

fails() {
    local code=$1 words=$2
    shift 2
    run --separate-stderr ./fraglab "$@"
    [ "$status" = "$code" ] && [ "$output" = "" ] && [[ "$stderr" = *"$words"* ]]
}

@test "what cannot be is refused" {
    fails 2 "leave --capacity out" tune $S/unet.pickle.zst --for min-capacity --capacity 5GiB
    fails 2 "takes settings from elsewhere" tune $S/unet.pickle.zst --policy pytorch:recorded
    fails 2 "--runs" tune $S/unet.pickle.zst --runs 0
    fails 2 "--for" tune $S/unet.pickle.zst --for speed
    fails 3 "nowhere.fgt" tune $S/unet.pickle.zst --held-out nowhere.fgt
    fails 2 "too small" tune $S/unet.pickle.zst --policy pytorch:max_split_size_mb=3
    fails 2 "there is no policy" tune $S/unet.pickle.zst --policy pytroch
}

@test "an odd segment size with expandable segments is out of memory, not a crash" {
    run ./fraglab run $S/unet.pickle.zst --policy pytorch:version=2.15,expandable_segments=true,large_segment_size_mb=21
    [ "$status" = 0 ]
    [[ "$output" = *"event "* ]]
}

@test "what others use counts in the bound of the least capacity, as in min-capacity" {
    run ./fraglab tune $S/gpt-varlen.pickle.zst --for min-capacity --used-by-others 500MiB --runs 2 -j1
    [[ "$output" = *"peak requested + others"* ]]
    share=$(./fraglab min-capacity $S/gpt-varlen.pickle.zst -p pytorch --used-by-others 500MiB | awk '$1 == "pytorch" { print $4 }')
    grep -q "^0  *$share  *(default)$" <<<"$output"
}
