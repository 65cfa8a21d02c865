# fraglab run --snapshot: what is written opens in PyTorch's own viewer and says what the run did.

bats_require_minimum_version 1.5.0
S=traces/samples

setup() { cd "$BATS_TEST_DIRNAME/../.." && out=$BATS_TEST_TMPDIR; }

# Bytes, requests and calls of a run, which a snapshot of it must give again. (Its events are
# numbered apart: the snapshot also holds what the policy asked of the device.)
figures() { # run's operands and options
    ./fraglab run "$@" --format jsonl -j 1 |
        grep -o '"\(peak\|final\)": *{[^}]*}\|"\(requests\|malloc\)": *[0-9]*' |
        sed 's/,"reserved_at_event":[0-9]*//'
}

@test "the row is the same with a snapshot and without" {
    for policy in pytorch best-fit; do
        ./fraglab run $S/model-parallel.pickle.zst -p $policy --format jsonl >"$out/without"
        ./fraglab run $S/model-parallel.pickle.zst -p $policy --format jsonl \
            --snapshot "$out/$policy.pickle" >"$out/with"
        cmp "$out/without" "$out/with"
    done
}

@test "a snapshot replays to the figures of its run, with every policy" {
    for policy in pytorch:version=2.15 pytorch:expandable_segments=true,version=2.15 best-fit tlsf buddy size-class direct; do
        for name in pr193400 cuda-graphs; do
            ./fraglab run $S/$name.pickle.zst -p $policy -q --snapshot "$out/a.pickle" -f >/dev/null
            ./fraglab trace check "$out/a.pickle"
            diff <(figures $S/$name.pickle.zst -p $policy) <(figures "$out/a.pickle" -p $policy)
        done
    done
}

@test "a snapshot before anything was freed is whole, with blocks smaller than PyTorch's too" {
    for policy in pytorch tf-bfc rmm-pool rmm-arena; do
        ./fraglab run traces/samples/truncated.pickle.zst -p $policy -q --snapshot "$BATS_TEST_TMPDIR/s.pickle" --snapshot-at 155 -f -o /dev/null
        ./fraglab trace check "$BATS_TEST_TMPDIR/s.pickle" | grep -q ': ok, .* 0 inconsistencies$'
    done
}

@test "a snapshot of a recording that began in use begins in use too" {
    ./fraglab run $S/truncated.pickle.zst -p pytorch -q --snapshot "$out/a.pickle" >/dev/null
    ./fraglab trace check "$out/a.pickle"
    diff <(figures $S/truncated.pickle.zst -p pytorch) <(figures "$out/a.pickle" -p pytorch:version=2.9)
}

@test "a snapshot of the pytorch policy passes the verification that recordings pass" {
    ./fraglab run $S/cuda-graphs.pickle.zst -p pytorch -q --snapshot "$out/a.pickle" >/dev/null
    ./fraglab verify "$out/a.pickle"
    ./fraglab run $S/gpt-train.pickle.zst -p pytorch:max_split_size_mb=128 -q \
        --snapshot "$out/b.pickle" >/dev/null
    ./fraglab verify "$out/b.pickle" -p pytorch:recorded,version=2.9
}

@test "a snapshot holds the settings of the policy, for pytorch:recorded" {
    for settings in roundup_power2_divisions=8,max_split_size_mb=64 \
        'roundup_power2_divisions:[64:2,>:4],max_split_size_mb:64' expandable_segments:True; do
        ./fraglab run $S/unet.pickle.zst -p "pytorch:version=2.9,$settings" -q -f \
            --snapshot "$out/a.pickle" >/dev/null
        ./fraglab verify "$out/a.pickle" -p pytorch:recorded,version=2.9
    done
    ./fraglab run $S/unet.pickle.zst -p pytorch:roundup_power2_divisions=8 -q -f --snapshot "$out/a.pickle" >/dev/null
    ./fraglab trace info "$out/a.pickle" >"$out/info"
    grep -q 'roundup_power2_divisions:8' "$out/info"
    grep -q '1:8,2:8,4:8,8:8' "$out/info"
}

@test "a snapshot is the same bytes each time" {
    ./fraglab run $S/gpt-train.pickle.zst -p tlsf -q --snapshot "$out/a.pickle" >/dev/null
    ./fraglab run $S/gpt-train.pickle.zst -p tlsf -q -j 1 --snapshot "$out/b.pickle" >/dev/null
    cmp "$out/a.pickle" "$out/b.pickle"
}

@test "a snapshot ends at the peak, at the OOM, or at an event" {
    trace=$S/gpt-varlen-oom.pickle.zst
    ./fraglab run $trace -p best-fit -q --format jsonl --snapshot "$out/peak" --snapshot-at peak >"$out/row"
    peak=$(grep -o '"reserved_bytes": *[0-9]*' "$out/row" | head -1)
    ./fraglab run "$out/peak" -p best-fit --format jsonl | grep -q "$peak"
    ./fraglab run $trace -p pytorch --capacity 4GiB -q --snapshot "$out/oom" --snapshot-at oom >/dev/null
    ./fraglab trace info "$out/oom" | grep -qi oom
    ./fraglab run "$out/oom" -p pytorch:version=2.9 --capacity 4GiB | grep -q 'needs 481.59 MiB'
    ./fraglab run $S/truncated.pickle.zst -p tlsf -q --snapshot "$out/event" --snapshot-at 300 >/dev/null
    ./fraglab run $S/truncated.pickle.zst -p tlsf -q --snapshot "$out/end" --snapshot-at end >/dev/null
    [ "$(wc -c <"$out/event")" -lt "$(wc -c <"$out/end")" ]
}

# $1: words of the sentence; then what to run.
refuses() {
    words=$1
    shift
    run -2 ./fraglab run "$@"
    [[ "$output" == *"$words"* ]]
    [ "$(wc -l <<<"$output")" -eq 1 ]
}

@test "what cannot be written is refused, and no file is left" {
    trace=$S/truncated.pickle.zst
    refuses "no request of this run failed" $trace -p tlsf --snapshot "$out/x" --snapshot-at oom
    refuses "the trace has no event 99999; its last is event" $trace -p tlsf --snapshot "$out/x" --snapshot-at 99999
    refuses "'now' is not a point of a run; expected peak, oom, end or the number of an event" $trace -p tlsf \
        --snapshot "$out/x" --snapshot-at now
    refuses "--snapshot-at" $trace -p tlsf --snapshot "$out/x" --snapshot-at 12x
    refuses "no snapshot is asked for; name its file with --snapshot" $trace -p tlsf --snapshot-at peak
    refuses "give one trace and one policy" $trace -p tlsf,direct --snapshot "$out/x"
    refuses "give one trace and one policy" $trace $trace -p tlsf --snapshot "$out/x"
    refuses "cannot both go to stdout" $trace -p tlsf --snapshot -
    refuses "did not get to event 700" $trace -p tlsf --capacity 512MiB --snapshot "$out/x" --snapshot-at 700
    [ ! -e "$out/x" ]
    [ -z "$(find "$out" -name 'x.*')" ]
}

@test "an existing file is kept unless -f is given" {
    echo mine >"$out/x"
    refuses "the file exists; add -f to overwrite it" $S/truncated.pickle.zst -p tlsf --snapshot "$out/x"
    [ "$(cat "$out/x")" = mine ]
    ./fraglab run $S/truncated.pickle.zst -p tlsf -q --snapshot "$out/x" -f >/dev/null
    [ "$(wc -c <"$out/x")" -gt 10000 ]
}

@test "a name that ends in .zst or .gz is compressed" {
    ./fraglab run $S/truncated.pickle.zst -p tlsf -q --snapshot "$out/a.pickle" >/dev/null
    ./fraglab run $S/truncated.pickle.zst -p tlsf -q --snapshot "$out/a.pickle.zst" >/dev/null
    ./fraglab run $S/truncated.pickle.zst -p tlsf -q --snapshot "$out/a.pickle.gz" >/dev/null
    # The program zstd is not everywhere: its magic number, and what a reader makes of the file.
    [ "$(head -c 4 "$out/a.pickle.zst" | od -An -tx1 | tr -d ' ')" = 28b52ffd ]
    [ "$(wc -c <"$out/a.pickle.zst")" -lt "$(wc -c <"$out/a.pickle")" ]
    for file in a.pickle a.pickle.zst; do
        ./fraglab trace convert "$out/$file" - --to text >"$out/$file.text"
    done
    cmp "$out/a.pickle.text" "$out/a.pickle.zst.text"
    gzip -dc "$out/a.pickle.gz" | cmp - "$out/a.pickle"
    ./fraglab trace check "$out/a.pickle.gz"
    refuses "no request of this run failed" $S/truncated.pickle.zst -p tlsf --snapshot "$out/x.zst" --snapshot-at oom
    [ ! -e "$out/x.zst" ]
}

@test "--snapshot - writes to stdout when the rows go elsewhere" {
    ./fraglab run $S/truncated.pickle.zst -p tlsf -q --snapshot "$out/x" >/dev/null
    ./fraglab run $S/truncated.pickle.zst -p tlsf -q --snapshot - -o "$out/rows" | cmp - "$out/x"
    grep -q tlsf "$out/rows"
}

# PyTorch's viewer: the file FRAG_MEMORY_VIZ names, or the installed one.
viewer() {
    if [ -n "${FRAG_MEMORY_VIZ:-}" ]; then
        viz=(python3 "$FRAG_MEMORY_VIZ")
    elif python3 -c 'import torch' 2>/dev/null; then
        viz=(python3 -m torch.cuda._memory_viz)
    else
        skip "no torch: install it, or name its torch/cuda/_memory_viz.py in FRAG_MEMORY_VIZ"
    fi
}

@test "PyTorch's viewer says of a rerun what it says of the recording" {
    viewer
    for name in cuda-graphs gpt-train model-parallel prefetch-streams truncated; do
        zstd -dqc $S/$name.pickle.zst >"$out/recorded.pickle"
        ./fraglab run $S/$name.pickle.zst -p pytorch -q --snapshot "$out/rerun.pickle" -f >/dev/null
        for command in stats trace; do
            diff <("${viz[@]}" $command "$out/recorded.pickle") <("${viz[@]}" $command "$out/rerun.pickle")
        done
    done
}

@test "PyTorch's viewer opens every policy's snapshot" {
    viewer
    for policy in pytorch:expandable_segments=true best-fit first-fit tlsf buddy size-class direct; do
        for point in peak end; do
            ./fraglab run $S/prefetch-streams.pickle.zst -p $policy -q -f --snapshot-at $point \
                --snapshot "$out/a.pickle" >/dev/null
            "${viz[@]}" stats "$out/a.pickle" | grep -q total_reserved
            "${viz[@]}" trace "$out/a.pickle" >/dev/null
            "${viz[@]}" trace_plot -o "$out/a.html" "$out/a.pickle"
            "${viz[@]}" trace_plot -s -o "$out/a.html" "$out/a.pickle"
            "${viz[@]}" segment_plot -o "$out/a.html" "$out/a.pickle"
        done
    done
}
