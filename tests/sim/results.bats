# Result rows of every bundled recording under every policy, byte by byte, and what must hold in each.
# `make results-golden` writes tests/data/results.csv.zst anew and prints, row by row and field by field, what
# changed: a changed field is a changed result, and the commit that changes it says why.

PINNED=tests/data/results.csv.zst

setup() {
    GOLDEN=$BATS_TEST_TMPDIR/results.csv
    zstd -qdc "$PINNED" >"$GOLDEN"
}

# The rows without tool.version and tool.commit.
rows() {
    ./fraglab run traces/samples/*.zst --policy all --format csv "$@" | cut -d, -f1,4-
}

# check AWK [FILE]: runs for each line of the rows after the header; value("path") is a field of it. Each
# line it prints is a complaint; a row that has no such field is one too. The OOM message, last, is left out.
check() {
    awk -F, '
        function value(path) {
            if (!(path in place)) {
                print "there is no column " path
                exit 1
            }
            return $place[path]
        }
        NR == 1 { for (i = 1; i <= NF; i++) place[$i] = i; columns = NF; next }
        NF != columns { print "line " NR " has " NF " columns; expected " columns; next }
        { count++; name = value("trace.name") " device " value("trace.device") " " value("policy.label") }
        '"$1"'
        END { if (!count) print "no rows" }' < <(sed 's/,"[^"]*"$/,/' "${2:-$GOLDEN}") >"$BATS_TEST_TMPDIR/complaints"
    cat "$BATS_TEST_TMPDIR/complaints"
    [ ! -s "$BATS_TEST_TMPDIR/complaints" ]
}

@test "the wall time of a run is that of the run" {
    row=$(./fraglab run traces/samples/pr193400.pickle.zst --policy tlsf --timing --format jsonl)
    ns=$(sed -E 's/.*"wall_ns":([0-9]+).*/\1/' <<<"$row")
    # Less than ten minutes, on any machine: no time of day.
    [ "$ns" -gt 0 ] && [ "$ns" -lt 600000000000 ]
}

@test "every policy gives the known results on every recording" {
    rows >"$BATS_TEST_TMPDIR/now"
    if [ "${FRAG_UPDATE_GOLDEN:-}" = 1 ]; then
        python3 tests/sim/compare_rows.py "$GOLDEN" "$BATS_TEST_TMPDIR/now" >&3 || true
        if ! cmp -s "$GOLDEN" "$BATS_TEST_TMPDIR/now"; then
            zstd -q --ultra -22 -f -o "$PINNED" "$BATS_TEST_TMPDIR/now"
        fi
        cp "$BATS_TEST_TMPDIR/now" "$GOLDEN"
    fi
    python3 tests/sim/compare_rows.py "$GOLDEN" "$BATS_TEST_TMPDIR/now"
    cmp "$GOLDEN" "$BATS_TEST_TMPDIR/now"
}

@test "a difference is named by row and field" {
    differences() { python3 tests/sim/compare_rows.py "$GOLDEN" "$BATS_TEST_TMPDIR/now"; }
    head -3 "$GOLDEN" >"$BATS_TEST_TMPDIR/known"
    GOLDEN=$BATS_TEST_TMPDIR/known
    row=$(tail -1 "$GOLDEN" | cut -d, -f2,4,11 | sed 's/,/ device /; s/,/ /')
    # A policy that comes in between shifts no other row.
    sed '2{p;s/,pytorch,pytorch,/,mine,mine,/}' "$GOLDEN" >"$BATS_TEST_TMPDIR/now"
    run differences
    [ "$status" -eq 1 ]
    [ "$output" = "new row: cuda-graphs.pickle.zst device 0 mine" ]
    sed 's/,peak\.allocated_bytes,/,peak.allocated_bytes,peak.more_bytes,/; 2,$s/,680147456,/,680147456,7,/2' "$GOLDEN" >"$BATS_TEST_TMPDIR/now"
    run differences
    [ "${lines[0]}" = "new field: peak.more_bytes" ]
    sed '3s/,680147456,/,680147457,/2' "$GOLDEN" >"$BATS_TEST_TMPDIR/now"
    run differences
    [ "$output" = "$row: peak.requested_bytes was 680147456, is 680147457" ]
    sed 3d "$GOLDEN" >"$BATS_TEST_TMPDIR/now"
    run differences
    [ "$output" = "row that is no more: $row" ]
    sed '2{h;d};3G' "$GOLDEN" >"$BATS_TEST_TMPDIR/now"
    run differences
    [ "$output" = "the rows are in another order" ]
    cp "$GOLDEN" "$BATS_TEST_TMPDIR/now"
    run differences
    [ "$status" -eq 0 ]
}

@test "the rows are those of every recording and every policy" {
    policies=$(./fraglab policies --format jsonl | wc -l)
    traces=$(./fraglab trace info --format jsonl traces/samples/*.zst | wc -l)
    [ "$policies" -ge 9 ]
    [ "$traces" -ge 13 ]
    [ "$(wc -l <"$GOLDEN")" -eq $((policies * traces + 1)) ]
}

@test "the number of threads changes no byte" {
    rows -j 1 >"$BATS_TEST_TMPDIR/one"
    rows -j 2 >"$BATS_TEST_TMPDIR/two"
    [ -s "$BATS_TEST_TMPDIR/one" ]
    cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/two"
}

# The parts are those of the layout at the event at which reserved bytes peaked, a request that failed
# when recorded and is served here included.
ADDS_UP='{
        sum = 0
        for (i = 1; i <= split("requested rounding unsplit holes cached waiting page_slack", part, " "); i++)
            sum += value("decomposition_at_peak." part[i] "_bytes")
        if (value("peak.reserved_bytes") == "" || sum != value("peak.reserved_bytes"))
            print name ": the parts are " sum ", the peak " value("peak.reserved_bytes")
    }'

@test "the parts of reserved bytes at the peak add up to it" {
    check "$ADDS_UP"
}

@test "they do so with other settings, and on devices that are full" {
    settings=(
        --policy pytorch:expandable_segments=true
        --policy pytorch:max_split_size_mb=64
        --policy pytorch:expandable_segments=true,max_split_size_mb=64 --label expandable-and-split
        --policy pytorch:roundup_power2_divisions=4
        --policy pytorch:garbage_collection_threshold=0.6,per_process_memory_fraction=0.9 --label collecting
        --policy best-fit:space=segments
        --policy size-class:classes=2
        --policy buddy:sizes=fibonacci --policy buddy:sizes=weighted
        --policy gmlake:fragLimit=2MiB --policy cuda-async:retry_after_sync=true
        --policy tf-bfc:garbage_collection=true,memory_limit=8GiB --label tf-collecting
        --policy ort-arena:arena_extend_strategy=kSameAsRequested
        --policy rmm-pool,rmm-binning,rmm-arena,cupy,mxnet-round,cuda-async,gmlake,half-fit,slab,frugal
        --policy paddle-auto-growth:free_idle_chunk=true
    )
    for capacity in 9GiB 2500MiB; do
        ./fraglab run traces/samples/*.zst "${settings[@]}" --capacity "$capacity" --on-oom skip --check 1000 \
            --format csv >"$BATS_TEST_TMPDIR/rows"
        check "$ADDS_UP" "$BATS_TEST_TMPDIR/rows"
        check '{ if (value("peak.reserved_bytes") + 0 > value("device.capacity_bytes") + 0) print name ": more than the device" }' \
            "$BATS_TEST_TMPDIR/rows"
    done
}

@test "they do so where what is held at the start is the most" {
    ./fraglab trace cut traces/samples/truncated.pickle.zst --events 1210..1211 --to text -o "$BATS_TEST_TMPDIR/cut.txt"
    ./fraglab run "$BATS_TEST_TMPDIR/cut.txt" --policy all --format csv >"$BATS_TEST_TMPDIR/rows.csv"
    check "$ADDS_UP" "$BATS_TEST_TMPDIR/rows.csv"
    # The free behind the 190 events of the start is not where the peak is.
    ./fraglab run "$BATS_TEST_TMPDIR/cut.txt" --policy direct --format jsonl | grep -q '"reserved_at_event":189[,}]'
}

@test "no row contradicts itself" {
    check '{
        if (value("peak.requested_bytes") + 0 > value("peak.allocated_bytes") + 0) print name ": requested > allocated"
        if (value("peak.allocated_bytes") + 0 > value("peak.active_bytes") + 0) print name ": allocated > active"
        if (value("peak.active_bytes") + 0 > value("peak.reserved_bytes") + 0) print name ": active > reserved"
        if (value("final.reserved_bytes") + 0 > value("peak.reserved_bytes") + 0) print name ": final > peak"
        # Larger requests than its blocks fail on every device.
        if (value("policy.name") == "rmm-fixed-size") next
        if (value("oom.event") != "") print name ": out of memory on a device without limit"
        if (value("replay.events") != value("trace.events")) print name ": the replay ended early"
        if (value("peak.requested_bytes") != value("bounds.peak_requested_bytes"))
            print name ": the replay requested other bytes than the trace"
    }'
}

# docs/metrics.md: requests are on both sides of a quotient or on neither.
@test "no policy is under the bound, and over bound and utilisation follow from the peaks" {
    ./fraglab run traces/samples/gpt-varlen-oom.pickle.zst --policy all --bounds --format csv >"$BATS_TEST_TMPDIR/unlimited"
    for capacity in 4500MiB 5552MiB 6GiB; do
        for on_oom in stop skip; do
            ./fraglab run traces/samples/gpt-varlen-oom.pickle.zst --policy all --capacity $capacity --on-oom $on_oom \
                --bounds --format csv >"$BATS_TEST_TMPDIR/$capacity-$on_oom"
        done
    done
    for rows in "$GOLDEN" "$BATS_TEST_TMPDIR"/{unlimited,4500MiB-stop,4500MiB-skip,5552MiB-stop,5552MiB-skip,6GiB-stop,6GiB-skip}; do
        check '
            function is_near(a, b) { return a - b < 1e-9 && b - a < 1e-9 }
            {
                reserved = value("peak.reserved_bytes"); bound = value("bounds.peak_requested_bytes")
                over = value("fragmentation.over_bound_ratio"); use = value("fragmentation.utilisation_ratio")
                if (reserved > 0 && !is_near(use, value("peak.allocated_bytes") / reserved)) print name ": utilisation " use
                if (use > 1) print name ": more is allocated than reserved"
                if (value("oom.event") != "") { if (over != "") print name ": over bound after an OOM" }
                else if (reserved < bound + 0) print name ": under the bound"
                else if (!is_near(over, reserved / bound - 1)) print name ": over bound " over
                if (value("bounds.packing_bytes") != "" && value("bounds.packing_bytes") < bound + 0)
                    print name ": the packing is under the bound"
            }' "$rows"
    done
    # What knows the future needs no more than the packing that is proved, and that is the bound here.
    check 'name ~ /offline$/ { if (value("fragmentation.over_bound_ratio") + 0 > 0.001) print name ": over the bound"
        if (value("fragmentation.utilisation_ratio") < 0.999) print name ": " value("fragmentation.utilisation_ratio") }' \
        "$BATS_TEST_TMPDIR/unlimited"
    run ./fraglab run traces/samples/gpt-varlen-oom.pickle.zst --policy offline --bounds
    [[ "$output" =~ "bound: peak requested, failed included"\ +"5.14 GiB" ]]
}

# What a preset does is what its choices do: rows that differ in name and options only.
@test "the presets are compositions of five choices" {
    composed() { # preset, options of composed
        for policy in "$1" "composed:$2"; do
            ./fraglab run traces/samples/gpt-varlen.pickle.zst traces/samples/prefetch-streams.pickle.zst \
                --policy "$policy" --capacity 9GiB --label same --format jsonl | sed 's/.*"device":{/"device":{/'
        done >"$BATS_TEST_TMPDIR/rows"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -eq 4 ]
        [ "$(sort -u "$BATS_TEST_TMPDIR/rows" | wc -l)" -eq 2 ]
    }
    composed cupy unit=512,lists=by-stream
    composed paddle-auto-growth:chunk_size=8MiB split=high,grow=chunk,grow_bytes=8MiB,lists=by-size,small=0
    composed rmm-pool lists=shared,grow=double
    composed tf-bfc:garbage_collection=true split=twice,grow=region
    composed mxnet-naive rounding=stepped,unit=4KiB,linear=2MiB,pick=exact,split=never,merge=never,grow=reserve
    composed mxnet-round rounding=power,unit=4KiB,pick=exact,split=never,merge=never,grow=reserve
}

# The recording says what PyTorch itself reserved. gpt-varlen-oom was recorded on a device that was
# full: that limit is part of what is replayed below.
@test "frugal makes no more device calls than pytorch, and holds less than any policy that sees no trace first" {
    # docs/own-policy.md: on each recording, and by the geometric mean over all of them.
    check '{
        trace = value("trace.name") " device " value("trace.device")
        policy = value("policy.name")
        # What serves only a part of a recording, or sees it first, is no rival.
        if (policy ~ /^(rmm-fixed-size|offline|planned)$/) next
        calls = value("device_calls.malloc") + value("device_calls.free") + value("device_calls.reserve")
        calls += value("device_calls.unreserve") + value("device_calls.map") + value("device_calls.unmap")
        if (policy == "pytorch") limit[trace] = calls
        if (policy == "frugal" && calls > limit[trace]) print trace ": " calls " calls, pytorch " limit[trace]
        logs[policy] += log(value("peak.reserved_bytes") / value("bounds.peak_requested_bytes"))
        compared++
    }
    END {
        for (policy in logs)
            if (policy != "frugal" && logs[policy] <= logs["frugal"]) print policy " holds no more"
        if (compared < 13 * 20) print compared " rows were compared"
    }'
}

@test "pytorch reserves what PyTorch reserved when the recording was made" {
    check 'value("policy.name") == "pytorch" && value("trace.name") !~ /^gpt-varlen-oom/ {
        same++
        if (value("peak.reserved_bytes") != value("trace.observed_reserved_peak_bytes"))
            print name ": reserved " value("peak.reserved_bytes") ", recorded " value("trace.observed_reserved_peak_bytes")
    }
    END { if (same < 12) print "only " same + 0 " rows were compared" }'
}

@test "pytorch runs out of memory where PyTorch did" {
    recording=traces/samples/gpt-varlen-oom.pickle.zst
    ./fraglab run $recording --policy pytorch --capacity 5552MiB --format jsonl >"$BATS_TEST_TMPDIR/row"
    cat "$BATS_TEST_TMPDIR/row"
    observed=$(grep -o '"observed_reserved_peak_bytes":[0-9]*' "$BATS_TEST_TMPDIR/row" | cut -d: -f2)
    grep -q "\"peak\":{[^}]*\"reserved_bytes\":$observed," "$BATS_TEST_TMPDIR/row"
    event=$(grep -o '"oom":{"event":[0-9]*' "$BATS_TEST_TMPDIR/row" | cut -d: -f3)
    # The request at that event is the only one that failed when it was recorded.
    ./fraglab trace convert --to text $recording - | grep -c ' failed' >"$BATS_TEST_TMPDIR/failed"
    [ "$(cat "$BATS_TEST_TMPDIR/failed")" -eq 1 ]
    ./fraglab trace cut $recording --events "$event".. --to text -o - | grep -v ' initial' | grep -m1 '^alloc' | grep ' failed'
}

@test "min-capacity prints a table a trace, like run, with the bounds below" {
    run ./fraglab min-capacity traces/samples/resnet-vary.pickle.zst traces/samples/pr193400.pickle.zst --policy pytorch,best-fit,rmm-fixed-size --bounds
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "$(./fraglab run traces/samples/resnet-vary.pickle.zst --policy direct | head -n 1)" ]
    [ "${lines[1]}" = "device   sim · any capacity" ]
    [[ "${lines[2]}" =~ ^"policy   "\ +"least capacity   over bound     in bytes   fails again at   OOM with one page less"$ ]]
    [[ "${lines[3]}" == "pytorch "*"8.19 GiB        +1.0%   8797552640         8.32 GiB   event 13,953 (needs 37.50 MiB, largest hole 9.38 MiB)" ]]
    [[ "${lines[4]}" == "best-fit "*"  8755609600                –   event 4,838 ("*")" ]]
    [[ "${lines[5]}" == "rmm-fixed-size "*"  none is enough            –            –                –   –" ]]
    [[ "${lines[6]}" == "bound: peak requested  "*"  8.11 GiB            –            –                –   –" ]]
    [[ "${lines[7]}" == "bound: offline packing (optimal)  "*"  8.11 GiB        +0.0%            –                –   –" ]]
    # Where every policy survives on more too there is no column for it.
    [[ "${lines[8]}" == "trace    pr193400.pickle.zst · "* ]]
    [[ "${lines[10]}" != *"fails again"* ]]
    [ "${#lines[@]}" -eq 16 ]
    run ./fraglab min-capacity traces/samples/pr193400.pickle.zst --policy pytorch --used-by-others 100MiB --format markdown
    [ "${lines[1]}" = "| policy | least capacity | over bound | in bytes | OOM with one page less |" ]
    [[ "${lines[3]}" == "| pytorch | 502.00 MiB | +0.3% | 526385152 | event 466 ("* ]]
    [ "${lines[4]}" = "| bound: peak requested + used by others | 500.50 MiB | – | – | – |" ]
    [ "${#lines[@]}" -eq 5 ]
}

@test "a row of min-capacity tells the packing where it is asked for" {
    small=traces/samples/pr193400.pickle.zst
    run ./fraglab min-capacity $small --policy pytorch,tlsf --bounds --format jsonl
    [ "$status" -eq 0 ]
    for row in "${lines[@]}"; do
        [[ "$row" == *'"bounds":{"peak_requested_bytes":419954688,"packing_bytes":419954688,"packing_proved":true}'* ]]
    done
    [ "${#lines[@]}" -eq 2 ]
    run ./fraglab min-capacity $small --policy pytorch --format jsonl
    [[ "$output" == *'"bounds":{"peak_requested_bytes":419954688,"packing_bytes":null,"packing_proved":null}'* ]]
}

@test "a table of stored rows has the packing when any of them tells it" {
    small=traces/samples/pr193400.pickle.zst
    { ./fraglab run $small --policy tlsf --format jsonl
      ./fraglab run $small --policy best-fit --bounds --format jsonl; } >"$BATS_TEST_TMPDIR/rows"
    ./fraglab report "$BATS_TEST_TMPDIR/rows" --format table >"$BATS_TEST_TMPDIR/stored"
    ./fraglab run $small --policy tlsf,best-fit --bounds | cmp - "$BATS_TEST_TMPDIR/stored"
}

@test "a trace without requests has no figures over a bound" {
    printf '# fraglab trace 2\nsync\n' >"$BATS_TEST_TMPDIR/empty.txt"
    run ./fraglab run "$BATS_TEST_TMPDIR/empty.txt" --policy best-fit
    [ "$status" -eq 0 ]
    [[ "$output" != *inf* ]]
    [[ "$output" != *nan* ]]
    [[ "$output" == *"best-fit"*"0 B"*"–"* ]]
}

@test "what is enough is not known of a policy that asks for the capacity" {
    printf '# fraglab trace 2\nlimit 0.1 ratio\nalloc 0 20971520\nalloc 1 20971520\nfree 0\nfree 1\n' >"$BATS_TEST_TMPDIR/share.txt"
    ./fraglab min-capacity "$BATS_TEST_TMPDIR/share.txt" --policy gmlake --format jsonl | grep -q '"capacity_bytes":419430400,.*"enough_bytes":null,'
    ./fraglab min-capacity "$BATS_TEST_TMPDIR/share.txt" --policy pytorch --format jsonl | grep -q '"capacity_bytes":419430400,.*"enough_bytes":419430400,'
}
