# The statistics a policy keeps: at which point, in which form, and whether they are PyTorch's.
# `make statistics-golden` writes tests/data/statistics/summary.txt anew, for review.

DATA=tests/data/statistics
SHORT=traces/samples/pr193400.pickle.zst
FULL=(traces/samples/gpt-varlen-oom.pickle.zst --capacity 5552MiB)

# of_row DEVICE: "name,value" for each statistic of that device's row on stdin.
of_row() {
    grep "\"device\":$1,\"events\"" | grep -o '"memory_stats":{[^}]*}' | sed 's/"memory_stats":{//; s/}$//' |
        tr ',' '\n' | sed 's/^"\(.*\)":/\1,/'
}

# recorded NAME:DEVICE: the same from what PyTorch itself gave.
recorded() {
    awk -F, -v column="$1" '
        NR == 1 { for (i = 2; i <= NF; i++) if ($i == column) at = i; next }
        at && $at != "" { print $1 "," $at }' $DATA/recorded.csv
}

# number NAME or GROUP/NAME: the field of the one row on stdin.
number() {
    local group=
    [ "$1" = "${1#*/}" ] || group="\"${1%/*}\":{[^}]*"
    sed -n "s|.*$group\"${1#*/}\":\\([-0-9]*\\).*|\\1|p"
}

@test "at the end they are those that PyTorch gave, all of them, in its order" {
    for column in $(head -1 $DATA/recorded.csv | tr ',' '\n' | tail -n +2); do
        name=${column%:*}
        settings=(--policy pytorch:recorded)
        capacity=80GiB
        file=traces/samples/$name.pickle.zst
        case $name in
        gpt-varlen-oom) capacity=5552MiB ;;
        full-expandable) capacity=2082MiB file=tests/data/recordings/$name.pickle.zst ;;
        memory-limit)
            capacity=10588MiB file=tests/data/recordings/$name.pickle.zst
            settings=(--policy pytorch:recorded,per_process_memory_fraction=0.95)
            ;;
        esac
        ./fraglab run "$file" "${settings[@]}" --capacity $capacity --on-oom skip --stats-at end --format jsonl \
            >"$BATS_TEST_TMPDIR/rows"
        recorded "$column" >"$BATS_TEST_TMPDIR/expected"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/expected")" -ge 122 ]
        echo "$column"
        # The program emptied the cache before each capture. Where nothing was given back, the recording
        # does not show it, and the wait for all streams that goes with it is not counted.
        if [ "$name" = cuda-graphs ]; then
            sed -i 's/^num_sync_all_streams,7$/num_sync_all_streams,2/' "$BATS_TEST_TMPDIR/expected"
        fi
        of_row "${column#*:}" <"$BATS_TEST_TMPDIR/rows" | diff "$BATS_TEST_TMPDIR/expected" -
    done
}

@test "the OOM message is the one that PyTorch gave" {
    message='CUDA out of memory. Tried to allocate 964.00 MiB. GPU 0 has a total capacity of 5.42 GiB of which 778.00 MiB is free. Of the allocated memory 4.22 GiB is allocated by PyTorch, and 456.08 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)'
    ./fraglab run "${FULL[@]}" --policy pytorch --format jsonl >"$BATS_TEST_TMPDIR/row"
    cat "$BATS_TEST_TMPDIR/row"
    grep -qF "\"message\":\"$message\"}" "$BATS_TEST_TMPDIR/row"
    # -v says it on stderr, and without -v nothing does.
    ./fraglab run "${FULL[@]}" --policy pytorch -v 2>&1 >/dev/null | grep -qF "pytorch: $message"
    [ -z "$(./fraglab run "${FULL[@]}" --policy pytorch 2>&1 >/dev/null)" ]
    ! ./fraglab run "${FULL[@]}" --policy pytorch | grep -q 'CUDA out of memory' || false
    ./fraglab run "${FULL[@]}" --policy direct --format jsonl | grep -q '"message":null}'
}

@test "they agree with what the engine counts, at the end and at the peak" {
    for recording in traces/samples/{gpt-varlen,prefetch-streams,cuda-graphs,pr193400}.pickle.zst; do
        ./fraglab run "$recording" --policy pytorch --stats-at end --format jsonl >"$BATS_TEST_TMPDIR/end"
        ./fraglab run "$recording" --policy pytorch --stats-at peak --format jsonl >"$BATS_TEST_TMPDIR/peak"
        for kind in requested allocated active reserved; do
            # What a block that waits for a stream was asked for is still requested to PyTorch.
            [ "$kind $recording" = "requested traces/samples/prefetch-streams.pickle.zst" ] && continue
            [ "$(number "memory_stats/${kind}_bytes.all.current" <"$BATS_TEST_TMPDIR/end")" = \
                "$(number "final/${kind}_bytes" <"$BATS_TEST_TMPDIR/end")" ]
            [ "$(number "memory_stats/${kind}_bytes.all.peak" <"$BATS_TEST_TMPDIR/end")" = \
                "$(number "peak/${kind}_bytes" <"$BATS_TEST_TMPDIR/end")" ]
        done
        [ "$(number memory_stats_event <"$BATS_TEST_TMPDIR/peak")" = "$(number peak/reserved_at_event <"$BATS_TEST_TMPDIR/peak")" ]
        [ "$(number memory_stats/reserved_bytes.all.current <"$BATS_TEST_TMPDIR/peak")" = \
            "$(number peak/reserved_bytes <"$BATS_TEST_TMPDIR/peak")" ]
        [ "$(number memory_stats/active_bytes.all.current <"$BATS_TEST_TMPDIR/peak")" -ge \
            "$(number decomposition_at_peak/requested_bytes <"$BATS_TEST_TMPDIR/peak")" ]
    done
}

@test "they stand as right after the event" {
    printf '# fraglab trace 1\nalloc 0 1000\nalloc 1 2000\nfree 0\n' >"$BATS_TEST_TMPDIR/t.txt"
    after() {
        ./fraglab run "$BATS_TEST_TMPDIR/t.txt" --policy pytorch --stats-at "$1" --format jsonl |
            number memory_stats/allocated_bytes.all.current
    }
    ./fraglab trace check "$BATS_TEST_TMPDIR/t.txt"
    [ "$(after 0)" = 1024 ]
    [ "$(after 1)" = 3072 ]
    [ "$(after 2)" = 2048 ]
    [ "$(after end)" = 2048 ]
    [ "$(after peak)" = 1024 ]
}

@test "a block that waits for a stream is active, and allocated no more" {
    printf '# fraglab trace 1\nalloc 0 1000\nfree 0 deferred\nalloc 1 1\ncomplete 0\n' >"$BATS_TEST_TMPDIR/t.txt"
    after() {
        ./fraglab run "$BATS_TEST_TMPDIR/t.txt" --policy pytorch --stats-at "$1" --format jsonl >"$BATS_TEST_TMPDIR/row"
        for name in requested_bytes.all allocated_bytes.all active_bytes.all allocation.small_pool active.small_pool; do
            number "memory_stats/$name.current" <"$BATS_TEST_TMPDIR/row"
        done | tr '\n' ' '
    }
    [ "$(after 0)" = "1000 1024 1024 1 1 " ]
    [ "$(after 1)" = "1000 0 1024 0 1 " ]
    [ "$(after 2)" = "1001 512 1536 1 2 " ]
    [ "$(after 3)" = "1 512 512 1 1 " ]
    [ "$(number memory_stats/allocated_bytes.all.freed <"$BATS_TEST_TMPDIR/row")" = 1024 ]
}

@test "at an OOM its retries and the failed request are counted" {
    ./fraglab run "${FULL[@]}" --policy pytorch --stats-at oom --format jsonl >"$BATS_TEST_TMPDIR/row"
    [ "$(number memory_stats_event <"$BATS_TEST_TMPDIR/row")" = "$(number oom/event <"$BATS_TEST_TMPDIR/row")" ]
    [ "$(number memory_stats/num_ooms <"$BATS_TEST_TMPDIR/row")" = 1 ]
    [ "$(number memory_stats/num_alloc_retries <"$BATS_TEST_TMPDIR/row")" -ge 1 ]
}

@test "rows have the fields only when they were asked for, and null where there are none" {
    ! ./fraglab run $SHORT --policy pytorch --format jsonl | grep -q memory_stats || false
    ! ./fraglab run $SHORT --policy pytorch --format csv | grep -q memory_stats || false
    none='"memory_stats_event":null,"memory_stats":null}$'
    printf '# fraglab trace 2\n' >"$BATS_TEST_TMPDIR/empty.txt"
    ./fraglab run "$BATS_TEST_TMPDIR/empty.txt" --policy pytorch --stats-at end --format jsonl | grep -q "$none"
    ./fraglab run $SHORT --policy direct --stats-at end --format jsonl | grep -q "$none"
    ./fraglab run $SHORT --policy pytorch --stats-at oom --format jsonl | grep -q "$none"
    ./fraglab run $SHORT --policy pytorch,direct --stats-at oom >"$BATS_TEST_TMPDIR/table"
    grep -q '^pytorch: no statistics: no request of this run failed' "$BATS_TEST_TMPDIR/table"
    grep -q '^direct: the policy keeps no statistics$' "$BATS_TEST_TMPDIR/table"
    echo '# fraglab trace 1' | ./fraglab run - --policy pytorch --stats-at end >"$BATS_TEST_TMPDIR/table"
    grep -q '^pytorch: no statistics: the trace has no events$' "$BATS_TEST_TMPDIR/table"
    run ./fraglab run - --policy pytorch --stats-at 0 <<<'# fraglab trace 1'
    [ "$status" -eq 2 ]
    [ "$output" = "fraglab: stdin: the trace has no events" ]
}

@test "CSV has a column for each statistic of any row, empty where a release has none" {
    ./fraglab run $SHORT --policy direct --policy pytorch:version=2.9 --policy pytorch:version=2.15 \
        --stats-at end --format csv >"$BATS_TEST_TMPDIR/rows"
    [ "$(awk -F, '{ print NF }' "$BATS_TEST_TMPDIR/rows" | sort -u | wc -l)" -eq 1 ]
    column() {
        awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } { print $at }' \
            "$BATS_TEST_TMPDIR/rows" | tr '\n' ' '
    }
    [ "$(column memory_stats_event)" = " 513 513 " ]
    [ "$(column memory_stats.num_ooms)" = " 0 0 " ]
    [ "$(column memory_stats.num_oom_rejections)" = "  0 " ]
    [ "$(column memory_stats.max_split_size)" = " -1 -1 " ]
}

@test "the number of threads changes no byte" {
    for format in table jsonl csv markdown; do
        for threads in 1 2; do
            ./fraglab run traces/samples/{pr193400,model-parallel,gpt-varlen-oom}.pickle.zst --policy pytorch,tlsf \
                --stats-at peak --format $format -j $threads >"$BATS_TEST_TMPDIR/$threads"
        done
        grep -q "allocated_bytes.all.current\|Allocated memory" "$BATS_TEST_TMPDIR/1"
        cmp "$BATS_TEST_TMPDIR/1" "$BATS_TEST_TMPDIR/2"
    done
}

@test "a point that cannot be is refused" {
    refuses() { # point, words
        run ./fraglab run $SHORT --policy pytorch --stats-at "$1" --format jsonl
        echo "$output"
        [ "$status" -eq 2 ]
        [[ "$output" == *"$2"* ]]
    }
    refuses middle "--stats-at: 'middle' is not a point of a run"
    refuses -1 "--stats-at: '-1' is not a point of a run"
    refuses 99999999999999999999 "--stats-at: "
    refuses 514 "pr193400.pickle.zst: the trace has no event 514; its last is event 513"
    # Once for each trace, and the other traces have their rows.
    run ./fraglab run $SHORT traces/samples/unet.pickle.zst --policy pytorch,tlsf --stats-at 514 --format jsonl
    [ "$status" -eq 2 ]
    [ "$(grep -c 'no event 514' <<<"$output")" -eq 1 ]
    [ "$(grep -c '"memory_stats_event":514,\|"memory_stats":null' <<<"$output")" -eq 2 ]
}

# The same statistics through the formatting of PyTorch itself, which needs no GPU.
@test "the table is that of torch.cuda.memory_summary()" {
    ./fraglab run $SHORT --policy pytorch --stats-at peak >"$BATS_TEST_TMPDIR/table"
    sed -n '/^|/p' "$BATS_TEST_TMPDIR/table" >"$BATS_TEST_TMPDIR/now"
    if [ "${FRAG_UPDATE_GOLDEN:-}" = 1 ]; then
        cp "$BATS_TEST_TMPDIR/now" $DATA/summary.txt
    fi
    diff -u $DATA/summary.txt "$BATS_TEST_TMPDIR/now"
    grep -q '^pytorch after event 466 (peak)$' "$BATS_TEST_TMPDIR/table"
    python3 -c 'import torch' 2>/dev/null || skip "no torch here; the pinned table was compared"
    ./fraglab run $SHORT --policy pytorch --stats-at peak --format jsonl | python3 -c '
import json, sys, torch.cuda.memory as memory
stats = json.loads(sys.stdin.readline())["memory_stats"]
memory.memory_stats = lambda device=None: stats
memory._get_device_index = lambda device, optional=False: device
print(memory.memory_summary(0), end="")' >"$BATS_TEST_TMPDIR/torch"
    diff -u "$BATS_TEST_TMPDIR/torch" "$BATS_TEST_TMPDIR/now"
}
