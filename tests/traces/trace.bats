# fraglab trace, on real recordings: nothing is lost, pieces are whole, findings have exit codes.

bats_require_minimum_version 1.5.0

S=traces/samples

setup_file() {
    sh tests/golden_logs.sh
}

setup() {
    out=$BATS_TEST_TMPDIR
}

@test "every bundled recording checks clean" {
    run ./fraglab trace check $S/*.zst
    [ "$status" -eq 0 ]
    [ "$(grep -c ': ok, .* 0 inconsistencies$' <<<"$output")" -eq "$(ls $S/*.zst | wc -l)" ]
}

@test "info names the marks and times that cut takes" {
    run ./fraglab trace info $S/gpt-varlen-oom.pickle.zst
    [ "$status" -eq 0 ]
    [[ "$output" == *$'\n  recorded time            4.848 s, from 1795221603935507000 to 1795221608783124000 ns\n'* ]]
    [ "$(tail -n 3 <<<"$output")" = "  marks                 first at event  name
  1                              1,923  Optimizer.step#AdamW.step
  1                              2,517  Optimizer.zero_grad#AdamW.zero_grad" ]
    ./fraglab trace cut $S/gpt-varlen-oom.pickle.zst --marks 'Optimizer.step#AdamW.step' --to text -o - | grep -q '^mark .*Optimizer.step'
    ./fraglab trace info $S/gpt-varlen-oom.pickle.zst --format jsonl |
        grep -q '"marks":\[{"name":"Optimizer.step#AdamW.step","count":1,"first_event":1923},'
}

@test "info leaves out what a trace does not have" {
    printf '# fraglab trace 1\n' >"$out/empty.txt"
    [ "$(./fraglab trace info "$out/empty.txt" | tail -n 1)" = "  blocks live at most      0" ]
    printf '# fraglab trace 1\nalloc 0 5\n' >"$out/kept.txt"
    ./fraglab trace info "$out/kept.txt" | grep -qx '  lifetime in events       none of these requests is freed'
}

@test "info counts requests of every size that there may be" {
    local i sizes=$BATS_TEST_TMPDIR/sizes.txt
    echo "# fraglab trace 2" >"$sizes"
    for i in {0..55}; do
        echo "alloc $i $((1 << i))" >>"$sizes"
    done
    echo "alloc 56 72057594037927935" >>"$sizes"
    ./fraglab trace info --format jsonl "$sizes" >"$BATS_TEST_TMPDIR/info"
    [ "$(grep -o '"from_bytes":' "$BATS_TEST_TMPDIR/info" | wc -l)" -eq 56 ]
    grep -q '"marks":\[\]' "$BATS_TEST_TMPDIR/info"
}

@test "snapshot to .fgt to text and back loses nothing" {
    for recording in $S/truncated.pickle.zst $S/model-parallel.pickle.zst $S/gpt-train.pickle.zst; do
        ./fraglab trace convert "$recording" "$out/a.fgt" -f
        ./fraglab trace convert "$out/a.fgt" "$out/a.txt" --to text -f
        ./fraglab trace convert "$out/a.txt" "$out/b.fgt" --to fgt -f
        cmp "$out/a.fgt" "$out/b.fgt"
        ./fraglab trace convert - - --to text <"$out/b.fgt" | cmp - "$out/a.txt"
        # The digest is of the content, whatever the form it comes in.
        [ "$(./fraglab trace info "$recording" --format jsonl | grep -o '"digest":"[0-9a-f]*"')" = \
            "$(./fraglab trace info "$out/a.txt" --format jsonl | grep -o '"digest":"[0-9a-f]*"')" ]
    done
}

@test "gzip and plain files are read like zstd ones" {
    zstd=$(./fraglab trace info $S/pr193400.pickle.zst --format jsonl | sed 's/"trace":"[^"]*"//')
    ./fraglab trace convert $S/pr193400.pickle.zst "$out/plain.txt" --to text
    gzip -k "$out/plain.txt"
    for file in plain.txt plain.txt.gz; do
        [ "$(./fraglab trace info "$out/$file" --format jsonl | sed 's/"trace":"[^"]*"//')" = "$zstd" ]
    done
}

@test "a piece of a recording does what the whole did" {
    for range in 5000..15000 100..900 20000..; do
        ./fraglab trace cut $S/gpt-varlen.pickle.zst --events $range -o "$out/piece.fgt" -f
        ./fraglab trace check "$out/piece.fgt"
        ./fraglab verify "$out/piece.fgt"
    done
}

@test "a device alone is a piece" {
    ./fraglab trace cut $S/model-parallel.pickle.zst --device 1 -o "$out/one.fgt"
    [ "$(./fraglab run "$out/one.fgt" -p pytorch --format jsonl | wc -l)" -eq 1 ]
    ./fraglab run "$out/one.fgt" -p pytorch --format jsonl | grep -q '"device":1'
}

@test "a recording that contradicts itself is a finding, one that cannot be read is bad input" {
    printf '# fraglab trace 1\nalloc 0 512\nfree 1\n' >"$out/wrong.txt"
    run ./fraglab trace check "$out/wrong.txt"
    [ "$status" -eq 3 ]
    [[ "$output" == *"wrong.txt:3:6: "* ]]
    head -c 5000 $S/truncated.pickle.zst >"$out/half.zst"
    run ./fraglab trace check "$out/half.zst"
    [ "$status" -eq 3 ]
    [[ "$output" == *"cut off"* ]]
}

@test "verify finds every bundled recording identical, event for event" {
    run ./fraglab verify $S/*.zst
    [ "$status" -eq 0 ]
    [ "$(grep -c ': identical: ' <<<"$output")" -eq 13 ]
    [[ "$output" == *"gpt-varlen-oom.pickle.zst pytorch:recorded: identical: 1,842 requests, 104 device events, 1 OOM"* ]]
}

@test "verify does not call a snapshot without history identical" {
    run ./fraglab verify tests/data/snapshots/no-history.pickle
    [ "$status" -eq 0 ]
    [ "$output" = "no-history.pickle pytorch:recorded: nothing to compare: the recording holds no requests, only memory that was in use" ]
    [[ "$(./fraglab verify tests/data/snapshots/no-history.pickle --format jsonl)" == *'"is_identical":null,"requests":0,'* ]]
    run ./fraglab verify tests/data/snapshots/{no-history,torch-2-0,gone-pool-rounded,oom}.pickle -p pytorch:version=2.9
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "4 comparisons: 2 identical, 1 different, 1 with nothing to compare" ]
    [[ "$output" == *$'\n'"torch-2-0.pickle pytorch:version=2.9: identical: 1 request, 0 device events"$'\n'* ]]
}

@test "trace info and trace check say which kinds of entries were skipped" {
    zstd -dc $S/prefetch-streams.pickle.zst | LC_ALL=C sed 's/free_requested/Xree_requested/' >"$out/skipped.pickle"
    run ./fraglab trace check "$out/skipped.pickle" -v
    [ "$status" -eq 0 ]
    [[ "$output" == *"0 inconsistencies"* ]]
    [[ "$output" == *"actions-skipped"*"no free_requested"* ]]
    ./fraglab trace info "$out/skipped.pickle" | grep -q 'torch.skipped_actions = free_requested'
    zstd -dc $S/prefetch-streams.pickle.zst | LC_ALL=C sed 's/free_requested/Xree_requested/; s/free_completed/Xree_completed/' >"$out/skipped.pickle"
    ./fraglab trace info "$out/skipped.pickle" >"$out/info"
    grep -q 'torch.skipped_actions = free_requested,free_completed' "$out/info"
    grep -q 'inferred, not recorded   [1-9]' "$out/info"
    run ./fraglab verify "$out/skipped.pickle"
    [[ "$output" != *"different"* || "$output" == *"leaves out kinds of entries (torch.skipped_actions)"* ]]
}

@test "a block whose size was guessed is marked, and named when something differs" {
    ./fraglab verify tests/data/snapshots/late-sizes.pickle
    ./fraglab trace info tests/data/snapshots/late-sizes.pickle | grep -q '^  guessed  *the size of 1 block live at the start$'
    ./fraglab trace convert tests/data/snapshots/late-sizes.pickle "$out/sizes.fgt"
    ./fraglab trace convert "$out/sizes.fgt" "$out/sizes.txt" --to text
    [ "$(grep -c 'initial inferred' "$out/sizes.txt")" -eq 1 ]
    # Where the block ends is what the request behind it is placed by.
    sed -i 's/ inferred//; s/^\(alloc 0 .*\)block=5177344/\1inferred block=4194304/' "$out/sizes.txt"
    run ./fraglab verify "$out/sizes.txt"
    [ "$status" -eq 1 ]
    [[ "$output" == *"likely: sizes of blocks from before the history are guesses (trace info counts them)"* ]]
}

@test "a retry is not taken for a call of empty_cache, nor its failure for one of a private pool" {
    for kind in retries retries-expandable; do
        ./fraglab trace convert "tests/data/recordings/$kind-2.9.pickle.zst" "$out/$kind.txt" --to text
        [ "$(grep -c '^segment_\(free\|unmap\)' "$out/$kind.txt")" -gt 10 ]
        [ "$(grep -c '^oom' "$out/$kind.txt")" -gt 3 ]
        [ "$(grep -c '^empty_cache' "$out/$kind.txt")" -eq 0 ]
        [ "$(grep -c 'pool=' "$out/$kind.txt")" -eq 0 ]
        ./fraglab verify "tests/data/recordings/$kind-2.9.pickle.zst"
    done
}

@test "a text may begin with a mark of its editor; other compressions than ours are named" {
    printf '\xef\xbb\xbf# fraglab trace 2\nalloc 0 512\n' >"$BATS_TEST_TMPDIR/marked.txt"
    ./fraglab trace check "$BATS_TEST_TMPDIR/marked.txt" | grep -q ': ok, 1 events'
    ./fraglab trace check --from text "$BATS_TEST_TMPDIR/marked.txt" | grep -q ': ok, 1 events'
    gzip -k "$BATS_TEST_TMPDIR/marked.txt"
    ./fraglab trace check "$BATS_TEST_TMPDIR/marked.txt.gz" | grep -q ': ok, 1 events'
    ./fraglab explain "$BATS_TEST_TMPDIR/marked.txt" 2>&1 | grep -qv 'shows no error'
    printf '\xef\xbb\xbfThread,Time,Action,Pointer,Size,Stream\n' >"$BATS_TEST_TMPDIR/rmm.csv"
    ./fraglab trace check "$BATS_TEST_TMPDIR/rmm.csv"
    for start in 'xz \xfd7zXZ\x00' 'bzip2 BZh9' 'lz4 \x04\x22\x4d\x18'; do
        printf "${start#* }rest" >"$BATS_TEST_TMPDIR/packed"
        run ./fraglab trace check "$BATS_TEST_TMPDIR/packed"
        [ "$status" -eq 3 ]
        [[ "$output" == *"is compressed with ${start%% *}; only gzip and zstd are read: decompress it first" ]]
    done
}

@test "findings name their first entry" {
    # Histories are undone from the end: the first of two equal findings is found last.
    run ./fraglab trace check tests/data/snapshots/twice-freed.pickle -v
    [ "$status" -eq 1 ]
    [[ "$output" == *" 3  free-of-used-address"*"first at entry 3 of device 0"* ]]
}

@test "memory taken behind the last request is no difference, other calls that were not met are" {
    local base='# fraglab trace 2
segment_alloc 2097152 addr=0x700000000000
alloc 0 1000 addr=0x700000000000
segment_alloc 20971520 addr=0x700000200000'
    printf '%s\nsegment_map 2097152 addr=0x700010000000\n' "$base" >"$out/end.trace"
    ./fraglab verify "$out/end.trace" --policy pytorch | grep -q 'identical: 1 request, 1 device event$'
    printf '%s\nsegment_free 20971520 addr=0x700000200000\n' "$base" >"$out/end.trace"
    run ./fraglab verify "$out/end.trace" --policy pytorch
    [ "$status" -eq 1 ]
    [[ "$output" == *"different at event 4, after 1 identical request: the recorded allocator made a segment_alloc of 20.00 MiB"* ]]
}

@test "verify names the first difference and exits 1" {
    run ./fraglab verify $S/gpt-varlen.pickle.zst --policy pytorch:max_split_size_mb=128
    [ "$status" -eq 1 ]
    [[ "$output" == *"different at event "* ]]
    [[ "$output" == *$'\n'"  likely: the recording was made with other settings; try pytorch:recorded"$'\n'* ]]
    [[ "${lines[${#lines[@]} - 1]}" == "  tried: version, in "*" replays" ]]
    # The same reason where the policy has no settings, but the recording has.
    run ./fraglab verify tests/data/recordings/full-expandable.pickle.zst --policy pytorch
    [ "$status" -eq 1 ]
    [[ "$output" == *$'\n'"  likely: the recording was made with other settings; try pytorch:recorded"$'\n'* ]]
    # Of two equal free blocks another release took the other.
    run ./fraglab verify build/golden/2.12.1-bounds-def-1.jsonl.zst --policy pytorch:version=2.15
    [ "$status" -eq 1 ]
    [ "$(tail -n 5 <<<"$output")" = "  after it         reserved     requested   requests   largest free block
    recorded     854.00 MiB    173.39 MiB         18
    policy       854.00 MiB    173.39 MiB         18   258.00 MiB at 0x700025200000
  the policy took a free block of 22.00 MiB, and left one of 22.00 MiB at the recorded address
  likely: another version: which of two equal free blocks is taken changed with PyTorch 2.12 and 2.13" ]
    ./fraglab verify $S/gpt-varlen-oom.pickle.zst --policy pytorch:max_split_size_mb=128 --format jsonl >"$out/row" || true
    [[ "$(cat "$out/row")" == *'"recorded":{"reserved_bytes":702545920,"requested_bytes":518826496,"live_requests":150},"policy":{"reserved_bytes":547356672,'*',"live_requests":149}}}}' ]]
    run ./fraglab verify $S/unet.pickle.zst --policy best-fit --count --format jsonl
    [ "$status" -eq 1 ]
    [[ "$output" == *'"is_identical":false'* ]]
    [[ "$output" == *'"differences":16226,'* ]]
    run ./fraglab verify $S/unet.pickle.zst --policy best-fit --format jsonl
    [[ "$output" == *'"differences":1,'* ]]
}

@test "private pools that a recording does not name are concluded from what they did not serve" {
    run ./fraglab verify tests/data/recordings/cuda-graph-2.9.pickle.zst \
        tests/data/recordings/memory-pools-2.9.pickle.zst
    [ "$status" -eq 0 ]
    [[ "$output" == *"cuda-graph-2.9"*"identical: 5,284 requests"* ]]
    [[ "$output" == *"memory-pools-2.9"*"identical: 13,456 requests"* ]]
    run ./fraglab trace check -v tests/data/recordings/memory-pools-2.9.pickle.zst
    [ "$status" -eq 0 ]
    [[ "$output" == *" 9  pool-concluded: "* ]]
}

@test "requests that failed in a private pool are told by what the default pool kept" {
    run ./fraglab verify tests/data/recordings/capture-oom-2.9.pickle.zst \
        tests/data/recordings/pool-oom-2.9.pickle.zst
    [ "$status" -eq 0 ]
    [[ "$output" == *"capture-oom-2.9"*"identical: "*" OOM"* ]]
    [[ "$output" == *"pool-oom-2.9"*"identical: "*" OOM"* ]]
}

# A range was reserved for the request that failed, and first mapped after the next stream had its own.
@test "verify tells ranges apart of which one was reserved in vain" {
    cat >"$out/ranges" <<'END'
# fraglab trace 1
meta "source" "torch-snapshot"
meta "torch.conf" "expandable_segments:True"
meta "torch.expandable_segments" "true"
meta "torch.version_hint" "2.9"
device 0
streams 0x0 0x40
segment_map 2097152 addr=0x300000000000
alloc 0 512 addr=0x300000000000
alloc - 104857600 failed
oom 104857600 addr=0x3200000
segment_map 2097152 addr=0x300200000000 stream=1
alloc 1 512 addr=0x300200000000 stream=1
segment_map 20971520 addr=0x300100000000
alloc 2 10485760 addr=0x300100000000
END
    run ./fraglab verify "$out/ranges"
    [ "$status" -eq 0 ]
    [[ "$output" == *"identical: 4 requests, 4 device events, 1 OOM"* ]]
}

@test "verify concludes a memory limit or a capacity that a recording does not hold" {
    run ./fraglab verify tests/data/recordings/memory-limit.pickle.zst
    [ "$status" -eq 0 ]
    [[ "$output" == *"identical: "*"with a memory limit of "*" GiB, inferred"* ]]
    run ./fraglab verify tests/data/recordings/full-expandable.pickle.zst
    [ "$status" -eq 0 ]
    [[ "$output" == *"1 OOM (with a capacity of 2.03 GiB, inferred"* ]]
    # The true values do as well.
    run ./fraglab verify tests/data/recordings/memory-limit.pickle.zst --capacity 10588MiB \
        --policy pytorch:recorded,per_process_memory_fraction=0.95
    [ "$status" -eq 0 ]
}

# Without what says how it was made.
strip() {
    ./fraglab trace convert "$1" "$out/whole.txt" --to text -f
    grep -v '^meta "\(torch\|golden\)' "$out/whole.txt" >"$out/stripped.txt"
}

@test "verify takes the policy that the log of a pool names" {
    run ./fraglab verify tests/data/golden-peers/rmm-pool-*.zst tests/data/golden-peers/tf-bfc-*.zst
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "$((${#lines[@]} - 1)) comparisons: $((${#lines[@]} - 1)) identical" ]
    [[ "${lines[1]}" == "rmm-pool-"*" rmm-pool:"*": identical: "* ]]
    [ "$(grep -vc ': identical: ' <<<"$output")" -eq 1 ]
}

@test "a recording cannot name a shared object as its policy" {
    printf '# fraglab trace 1\nmeta "golden.policy" "./mine.so:x=1"\nsegment_alloc 2097152 addr=0x1000000\nalloc 0 512 addr=0x1000000\n' >"$out/named.txt"
    run ./fraglab verify "$out/named.txt"
    [ "$status" -eq 3 ]
    [ "$output" = "fraglab: $out/named.txt: it names './mine.so:x=1' as its policy, which fraglab does not have; name one with --policy" ]
}

@test "verify says when there is nothing to verify" {
    printf '# fraglab trace 1\n' >"$out/empty.txt"
    printf '# fraglab trace 1\nalloc 0 5\n' >"$out/bare.txt"
    run ./fraglab verify "$out/empty.txt"
    [ "$status" -eq 3 ]
    [ "$output" = "fraglab: $out/empty.txt: it holds no requests that a policy could be asked; there is nothing to verify" ]
    run ./fraglab verify "$out/bare.txt"
    [ "$status" -eq 3 ]
    [[ "$output" == *"holds requests, but no segments that an allocator took for them"* ]]
}

@test "verify does not miss the request whose memory a piece ends with" {
    ./fraglab trace convert $S/unet.pickle.zst "$out/whole.fgt"
    ./fraglab trace cut "$out/whole.fgt" --events 100..200 -o "$out/piece.fgt"
    ./fraglab trace convert "$out/piece.fgt" - --to text | tail -n 1 | grep -q '^segment_alloc 18874368 '
    run ./fraglab verify "$out/piece.fgt"
    [ "$output" = "piece.fgt pytorch:recorded: identical: 87 requests, 12 device events" ]
    # What is given back unasked is a difference still.
    ./fraglab trace convert "$out/piece.fgt" "$out/piece.txt" --to text
    sed -i '$ s/segment_alloc 18874368/segment_free 2097152/; $ s/addr=0x[0-9a-f]*/addr=0x200000000000/' "$out/piece.txt"
    run ./fraglab verify "$out/piece.txt"
    [ "$status" -eq 1 ]
}

@test "verify concludes the release and the settings that a recording does not hold" {
    strip build/golden/2.12.1-bounds-def-1.jsonl.zst
    run ./fraglab verify "$out/stripped.txt"
    [ "$status" -eq 0 ]
    [ "$output" = "stripped.txt pytorch: identical: 3,014 requests, 100 device events (with version=2.12, inferred from the recording)" ]
    # What was named stays.
    run ./fraglab verify "$out/stripped.txt" --policy pytorch:version=2.15
    [ "$status" -eq 1 ]
    run ./fraglab verify "$out/stripped.txt" --policy pytorch:recorded
    [ "$status" -eq 2 ]
    for settings in max_split_size_mb=128 roundup_power2_divisions=8 'roundup_power2_divisions=[16:1,32:4,64:2,128:1,512:1,1024:1]' \
        expandable_segments=true,max_split_size_mb=128 \
        expandable_segments=true,large_segment_size_mb=64; do
        ./fraglab run $S/gpt-train.pickle.zst --policy "pytorch:$settings,version=2.15" --snapshot "$out/snapshot.pickle" -f >"$out/row"
        strip "$out/snapshot.pickle"
        run ./fraglab verify "$out/stripped.txt"
        [ "$status" -eq 0 ]
        [[ "$output" == *"(with $settings, inferred from the recording"* ]]
        ./fraglab verify "$out/stripped.txt" --format jsonl | grep -qF "\"inferred_settings\":\"$settings\""
    done
}

@test "verify concludes garbage collection, and tells between which values it may begin" {
    ./fraglab run $S/moe.pickle.zst --capacity 12GiB --snapshot "$out/snapshot.pickle" -f >"$out/row" \
        --policy pytorch:version=2.15,garbage_collection_threshold=0.6,per_process_memory_fraction=0.9
    strip "$out/snapshot.pickle"
    run ./fraglab verify "$out/stripped.txt"
    [ "$status" -eq 0 ]
    [[ "$output" == *"(with garbage_collection_threshold=0."*" and a memory limit of "*"; collection may begin at "*" GiB)" ]]
    ./fraglab verify "$out/stripped.txt" --format jsonl >"$out/verify"
    least=$(grep -o '"collection":{"least_bytes":[0-9]*' "$out/verify" | grep -o '[0-9]*$')
    most=$(grep -o '"collection":{"least_bytes":[0-9]*,"most_bytes":[0-9]*' "$out/verify" | grep -o '[0-9]*$')
    true_bytes=$((12 * 1024 * 1024 * 1024 * 54 / 100))
    [ "$least" -le "$true_bytes" ]
    [ "$most" -ge "$true_bytes" ]
    # A share of a capacity that is not known is no obstacle.
    run ./fraglab verify "$out/snapshot.pickle"
    [ "$status" -eq 0 ]
    [[ "$output" == *"(with a memory limit of "*"; the limit may be "* ]]
}

@test "verify concludes a split limit together with the surplus of oversize blocks" {
    ./fraglab run $S/llm-inference.pickle.zst --snapshot "$out/snapshot.pickle" -f >"$out/row" \
        --policy pytorch:version=2.15,max_split_size_mb=77,max_non_split_rounding_mb=64,roundup_power2_divisions=8
    strip "$out/snapshot.pickle"
    run ./fraglab verify "$out/stripped.txt"
    [ "$status" -eq 0 ]
    [[ "$output" == *"max_split_size_mb may be "*"; max_non_split_rounding_mb may be "*")" ]]
}

@test "verify says what it tried in vain, and what the recording shows" {
    ./fraglab run $S/gpt-train.pickle.zst --policy pytorch:roundup_power2_divisions=8 --snapshot "$out/snapshot.pickle" -f >"$out/row"
    strip "$out/snapshot.pickle"
    run ./fraglab verify "$out/stripped.txt" --policy pytorch:roundup_power2_divisions=2
    [ "$status" -eq 1 ]
    [[ "${lines[${#lines[@]} - 1]}" == "  tried: version, expandable_segments, "*", in "*" replays"* ]]
    run ./fraglab verify "$out/stripped.txt" --policy pytorch:conf=expandable_segments:False
    [ "$status" -eq 1 ]
    [[ "$output" == *"  likely: sizes were rounded up further, as with roundup_power2_divisions=8"* ]]
    # Mapped memory after segments.
    printf '%s\n' '# fraglab trace 1' 'segment_alloc 20971520 addr=0x10000000' 'alloc 0 2000000 addr=0x10000000' \
        'segment_map 20971520 addr=0x40000000' 'alloc 1 20000000 addr=0x40000000' >"$out/switched.txt"
    run ./fraglab verify "$out/switched.txt"
    [ "$status" -eq 1 ]
    [[ "$output" == *"  likely: expandable_segments was switched on while the program ran, at event 2 or before"* ]]
}

# What a window of a .fgt with an index holds is what is cut out of the whole recording.
@test "info, report and plot show a window of a recording" {
    local out=$BATS_TEST_TMPDIR
    ./fraglab trace convert $S/gpt-varlen.pickle.zst "$out/whole.fgt"
    ./fraglab trace cut $S/gpt-varlen.pickle.zst --events 9000..12000 -o "$out/piece.fgt"
    ./fraglab trace cut "$out/whole.fgt" --events 9000..12000 -o "$out/other.fgt"
    cmp "$out/piece.fgt" "$out/other.fgt"
    ./fraglab trace info --format jsonl "$out/piece.fgt" | sed 's/"trace":"[^"]*"//' >"$out/wanted"
    ./fraglab trace info --format jsonl "$out/whole.fgt" --events 9000..12000 | sed 's/"trace":"[^"]*"//' | diff - "$out/wanted"
    ./fraglab plot timeline "$out/piece.fgt" -p best-fit --format csv >"$out/wanted"
    ./fraglab plot timeline "$out/whole.fgt" -p best-fit --events 9000..12000 --format csv | diff - "$out/wanted"
    ./fraglab report "$out/whole.fgt" --events 9000..12000 -o "$out/page.html"
    grep -q "$(./fraglab trace info --format jsonl "$out/piece.fgt" | grep -o '"digest":"[0-9a-f]*"' | cut -d'"' -f4)" "$out/page.html"
    run -2 ./fraglab report "$out/whole.fgt" --events 5..1 -o "$out/no.html"
    [[ "$output" == *"events 5..1 are not in the trace; expected a range within 0..25916"* ]]
    run -2 ./fraglab report "$out/whole.fgt" --events 1..5 --marks x -o "$out/no.html"
    [[ "$output" == *"expected one of --events, --time and --marks" ]]
    [ ! -e "$out/no.html" ]
}

# Programs from before the index read the file; without the end of it, nothing is read.
@test "a file whose index is damaged is refused, with a window and without" {
    local out=$BATS_TEST_TMPDIR
    ./fraglab trace convert $S/gpt-train.pickle.zst "$out/whole.fgt"
    size=$(stat -c %s "$out/whole.fgt")
    # In the payload of the index, whose tail and the end mark take 32 bytes.
    printf '\377' | dd of="$out/whole.fgt" bs=1 seek=$((size - 40)) conv=notrunc status=none
    run -3 ./fraglab trace cut "$out/whole.fgt" --events 9000..9100 -o "$out/a.fgt"
    [[ "$output" == *"a section does not match its checksum; the file is damaged"* ]]
    run -3 ./fraglab trace check "$out/whole.fgt"
    [[ "$output" == *"a section does not match its checksum; the file is damaged"* ]]
}

@test "arrays beyond --memory lie in files, and answers are the same" {
    ./fraglab trace generate traces/workloads/statistical/checkerboard.yaml --requests 3000000 -o "$out/a.fgt"
    ./fraglab trace info "$out/a.fgt" >"$out/whole"
    ./fraglab trace info --memory 1MiB "$out/a.fgt" | cmp - "$out/whole"
    [ "$(./fraglab run -p best-fit --format jsonl "$out/a.fgt" | sed 's/"timing.*//')" = \
        "$(./fraglab run -p best-fit --format jsonl --memory 8MiB "$out/a.fgt" | sed 's/"timing.*//')" ]
    run sh -c "ulimit -d 90000; ./fraglab trace check '$out/a.fgt' 2>&1"
    [ "$status" -eq 4 ]
    [[ "$output" == "fraglab: out of host memory for "* ]]
    run sh -c "ulimit -d 90000; ./fraglab trace check --memory 8MiB '$out/a.fgt'"
    [ "$status" -eq 0 ]
    TMPDIR=/nowhere run ./fraglab trace info --memory 8MiB "$out/a.fgt"
    [ "$status" -eq 4 ]
    [[ "$output" == *"no temporary file can be made in /nowhere (No such file"* ]]
    run ./fraglab trace info --memory much "$out/a.fgt"
    [ "$status" -eq 2 ]
}
