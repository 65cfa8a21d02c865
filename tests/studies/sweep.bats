# fraglab sweep: its rows are those of run, however it was interrupted; bad experiments are refused.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    SAMPLES=$PWD/traces/samples
    EXPERIMENT=$BATS_TEST_TMPDIR/experiment.yaml
    cat >"$EXPERIMENT" <<END
name: caps
traces: [$SAMPLES/pr193400.pickle.zst, $SAMPLES/unet.pickle.zst]
policies:
  - best-fit
  - policy: pytorch
    options:
      max_split_size_mb: [unlimited, {from: 64, to: 256, factor: 2}]
      garbage_collection_threshold: [0, 0.8]
  - policy: tlsf:align=256
    label: mine
    options: {sli: {from: 2, to: 6, step: 1}}
    random: {count: 3, seed: 1}
capacities: [unlimited, 300MiB, {from: 4GiB, to: 6GiB, step: 512MiB}]
END
}

@test "every combination has a row, and each is the row of fraglab run" {
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -eq $((2 * (1 + 8 + 3) * 7)) ]
    for capacity in unlimited 300MiB 4GiB 5GiB; do
        for policy in best-fit pytorch:max_split_size_mb=128,garbage_collection_threshold=0.8 \
            pytorch:max_split_size_mb=unlimited,garbage_collection_threshold=0; do
            ./fraglab run "$SAMPLES/unet.pickle.zst" --policy "$policy" --capacity "$capacity" --format jsonl >"$BATS_TEST_TMPDIR/one"
            grep -qxF -f "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/rows" || { cat "$BATS_TEST_TMPDIR/one"; false; }
        done
    done
    [ "$(grep -c '"label":"mine:sli=' "$BATS_TEST_TMPDIR/rows")" -eq $((2 * 3 * 7)) ]
}

@test "the number of threads changes nothing" {
    ./fraglab sweep "$EXPERIMENT" -j 1 >"$BATS_TEST_TMPDIR/one"
    ./fraglab sweep "$EXPERIMENT" -j 7 >"$BATS_TEST_TMPDIR/seven"
    cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/seven"
}

@test "a sweep that was cut anywhere goes on, and ends up with the same bytes" {
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/whole"
    bytes=$(stat -c %s "$BATS_TEST_TMPDIR/whole")
    first=$(head -n 1 "$BATS_TEST_TMPDIR/whole" | wc -c)
    for cut in 0 1 $((first - 1)) "$first" $((first + 1)) $((bytes / 3)) $((bytes - 1)) "$bytes"; do
        head -c "$cut" "$BATS_TEST_TMPDIR/whole" >"$BATS_TEST_TMPDIR/cut"
        ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/cut"
        cmp "$BATS_TEST_TMPDIR/whole" "$BATS_TEST_TMPDIR/cut"
    done
}

@test "a sweep that is killed again and again ends up with the same bytes" {
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/whole"
    for delay in 0.01 0.02 0.03 0.05 0.08; do
        ./fraglab sweep "$EXPERIMENT" -j 1 -o "$BATS_TEST_TMPDIR/killed" &
        sleep "$delay"
        kill -9 $! 2>/dev/null || true
        wait $! 2>/dev/null || true
    done
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/killed"
    cmp "$BATS_TEST_TMPDIR/whole" "$BATS_TEST_TMPDIR/killed"
}

@test "what is not replayed has the rows that a replay would give" {
    for counts in "" --counts-only; do
        ./fraglab sweep "$EXPERIMENT" $counts -j 1 -v >"$BATS_TEST_TMPDIR/short" 2>"$BATS_TEST_TMPDIR/said"
        ./fraglab sweep "$EXPERIMENT" $counts --replay-all >"$BATS_TEST_TMPDIR/long"
        cmp "$BATS_TEST_TMPDIR/short" "$BATS_TEST_TMPDIR/long"
        # Collection without a memory fraction is the same as none: half of the runs of pytorch.
        replayed=$(sed -n 's/.* rows written, \([0-9]*\) of them replayed.*/\1/p' "$BATS_TEST_TMPDIR/said")
        [ "$replayed" -lt 200 ]
    done
}

@test "limits that are shares of the capacity have the rows that a replay would give" {
    ./fraglab trace convert "$SAMPLES/gpt-varlen.pickle.zst" --to text -o - |
        sed 's/^\(meta "torch.version_[a-z]*" "\)[^"]*/\12.12.0/' >"$BATS_TEST_TMPDIR/trace.txt"
    cat >"$EXPERIMENT" <<END
traces: [$BATS_TEST_TMPDIR/trace.txt]
policies:
  - policy: pytorch
    options: {per_process_memory_fraction: [0.5, 0.75, 0.9, 0.99], expandable_segments: [false, true]}
  - policy: pytorch
    options: {max_split_size_mb: [24, 100, 512], per_process_memory_fraction: [0.8, 1.0]}
  - policy: pytorch
    options: {garbage_collection_threshold: [0.5, 0.8], per_process_memory_fraction: [0.8, 0.9]}
capacities: [{from: 6GiB, to: 11GiB, step: 512MiB}, 12GiB, 16GiB, 24GiB]
END
    ./fraglab sweep "$EXPERIMENT" -j 1 -v >"$BATS_TEST_TMPDIR/short" 2>"$BATS_TEST_TMPDIR/said"
    ./fraglab sweep "$EXPERIMENT" --replay-all >"$BATS_TEST_TMPDIR/long"
    cmp "$BATS_TEST_TMPDIR/short" "$BATS_TEST_TMPDIR/long"
    cat "$BATS_TEST_TMPDIR/said"
    replayed=$(sed -n 's/.* rows written, \([0-9]*\) of them replayed.*/\1/p' "$BATS_TEST_TMPDIR/said")
    [ "$replayed" -lt 240 ]
}

@test "a share of an unlimited device says nothing of devices that have an end" {
    printf '# fraglab trace 2\nlimit 0.5 ratio\nalloc 0 104857600\n' >"$BATS_TEST_TMPDIR/trace.txt"
    printf 'traces: [trace.txt]\npolicies: [pytorch, gmlake]\ncapacities: [unlimited, 128MiB]\n' >"$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" >"$BATS_TEST_TMPDIR/short"
    ./fraglab sweep "$EXPERIMENT" --replay-all >"$BATS_TEST_TMPDIR/long"
    cmp "$BATS_TEST_TMPDIR/short" "$BATS_TEST_TMPDIR/long"
    [ "$(grep -c '"failed_requests":1' "$BATS_TEST_TMPDIR/short")" -eq 2 ]
}

@test "a range that the device cuts short says nothing of larger devices" {
    printf '# fraglab trace 2\nalloc 0 17825792\nfree 0\n' >"$BATS_TEST_TMPDIR/trace.txt"
    printf 'traces: [trace.txt]\npolicies: [{policy: tlsf, options: {grow: 8MiB}}]\ncapacities: [20MiB, 400MiB]\n' >"$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" >"$BATS_TEST_TMPDIR/short"
    ./fraglab sweep "$EXPERIMENT" --replay-all >"$BATS_TEST_TMPDIR/long"
    cmp "$BATS_TEST_TMPDIR/short" "$BATS_TEST_TMPDIR/long"
    [ "$(sort -u <(grep -o '"peak":{[^}]*"reserved_bytes":[0-9]*' "$BATS_TEST_TMPDIR/short") | wc -l)" -eq 2 ]
}

@test "ranges as large as the device say nothing of smaller devices" {
    mib=1048576
    printf '%s\n' '# fraglab trace 2' "alloc 2 $((60 * mib))" "alloc 4 $((40 * mib))" 'free 2' "alloc 3 $((80 * mib))" \
        "alloc 1 $((80 * mib))" "alloc 0 $((80 * mib))" 'free 1' "alloc 1 $((100 * mib))" >"$BATS_TEST_TMPDIR/trace.txt"
    printf 'traces: [trace.txt]\npolicies: [pytorch:expandable_segments=true]\ncapacities: [400MiB, 340MiB]\n' >"$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" -j 1 >"$BATS_TEST_TMPDIR/short"
    ./fraglab sweep "$EXPERIMENT" -j 1 --replay-all >"$BATS_TEST_TMPDIR/long"
    cmp "$BATS_TEST_TMPDIR/short" "$BATS_TEST_TMPDIR/long"
    [ "$(grep -c '"oom":null' "$BATS_TEST_TMPDIR/short")" -eq 2 ]
    [ "$(grep -o '"device_calls":{[^}]*}' "$BATS_TEST_TMPDIR/short" | sort -u | wc -l)" -eq 2 ]
}

@test "rows of something else are not mixed in" {
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
    cp "$BATS_TEST_TMPDIR/rows" "$BATS_TEST_TMPDIR/kept"
    sed -i 's/300MiB/301MiB/' "$EXPERIMENT"
    run ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
    [ "$status" -eq 3 ]
    [[ "$output" =~ "rows:2: is the row of another experiment" ]]
    run ./fraglab sweep "$EXPERIMENT" --counts-only -o "$BATS_TEST_TMPDIR/rows"
    [ "$status" -eq 3 ]
    [[ "$output" =~ "rows:1: was written without --counts-only" ]]
    sed -i 's/301MiB, {from: 4GiB.*/300MiB]/' "$EXPERIMENT"
    echo '{"a":1}' >"$BATS_TEST_TMPDIR/else"
    run ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/else"
    [ "$status" -eq 3 ]
    [ "$(cat "$BATS_TEST_TMPDIR/else")" = '{"a":1}' ]
    cmp "$BATS_TEST_TMPDIR/rows" "$BATS_TEST_TMPDIR/kept"
    ./fraglab sweep "$EXPERIMENT" -f -o "$BATS_TEST_TMPDIR/rows"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -eq $((2 * 12 * 2)) ]
}

@test "rows tell the packing of their trace where the experiment asks for it" {
    sed -i 's/, 300MiB.*/, 4GiB]/' "$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/without"
    echo 'bounds: true' >>"$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
    ./fraglab run "$SAMPLES/unet.pickle.zst" --policy best-fit --capacity 4GiB --bounds --format jsonl >"$BATS_TEST_TMPDIR/one"
    grep -qxF -f "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/rows"
    [ "$(grep -c '"packing_bytes":[0-9]' "$BATS_TEST_TMPDIR/rows")" -eq "$(wc -l <"$BATS_TEST_TMPDIR/without")" ]
    sed -E 's/("packing_bytes":)[0-9]+(,"packing_proved":)true/\1null\2null/' "$BATS_TEST_TMPDIR/rows" | cmp - "$BATS_TEST_TMPDIR/without"
    # Cut and gone on, on any number of threads.
    head -c 5000 "$BATS_TEST_TMPDIR/rows" >"$BATS_TEST_TMPDIR/cut"
    ./fraglab sweep "$EXPERIMENT" -j 5 -o "$BATS_TEST_TMPDIR/cut"
    cmp "$BATS_TEST_TMPDIR/rows" "$BATS_TEST_TMPDIR/cut"
    # But not behind rows of another kind.
    run ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/without"
    [ "$status" -eq 3 ]
    [[ "$output" == *"without:1: was written without 'bounds: true' in the experiment; write it so again, or start anew with -f" ]]
    sed -i 's/bounds: true/bounds: false/' "$EXPERIMENT"
    run ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
    [ "$status" -eq 3 ]
    [[ "$output" == *"rows:1: was written with 'bounds: true' in the experiment; "* ]]
}

@test "two sweeps do not write one file" {
    exec 9>>"$BATS_TEST_TMPDIR/rows"
    flock -x 9
    run ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
    [ "$status" -eq 4 ]
    [[ "$output" =~ "is being written by another sweep" ]]
}

@test "a combination that the policy refuses is a row that says why" {
    printf 'traces: [%s]\npolicies:\n  - {policy: best-fit, options: {align: [512, 768]}}\n' \
        "$SAMPLES/pr193400.pickle.zst" >"$EXPERIMENT"
    run ./fraglab sweep "$EXPERIMENT"
    [ "$status" -eq 0 ]
    [[ "${lines[1]}" =~ ^'{"schema":"fraglab.refused/1"'.*'"problem":"align=768 is not a power of two"}'$ ]]
}

@test "paths start where the experiment lies" {
    cp "$SAMPLES/pr193400.pickle.zst" "$BATS_TEST_TMPDIR/here.zst"
    printf 'traces: here.zst\npolicies: [direct]\n' >"$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" | grep -q '"name":"here.zst"'
}

# refused LINE:COLUMN TEXT: the experiment on stdin is bad there.
refused() {
    cat >"$EXPERIMENT"
    run ./fraglab sweep "$EXPERIMENT"
    echo "$output"
    [ "$status" -eq 3 ]
    [[ "$output" =~ "experiment.yaml:$1: ".*"$2" ]]
}

@test "bad experiments are refused at their place" {
    refused 1:1 "has no policies" <<<'traces: [a]'
    refused 1:1 "did you mean policies" <<<'policy: [a]'
    refused 2:12 "there is no policy 'bestfit'" <<<$'traces: [a]\npolicies: [bestfit]'
    refused 2:13 "policies is empty" <<<$'traces: [a]\npolicies:   []'
    refused 2:51 "no option 'aling'; did you mean 'align'" <<<$'traces: [a]\npolicies: [{policy: best-fit, options: {   aling: 1}}]'
    refused 3:13 "24G" <<<$'traces: [a]\npolicies: [direct]\ncapacities: 24G'
    refused 3:13 "does not ascend" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {from: 2GiB, to: 1GiB, step: 1MiB}'
    refused 3:13 "more than 100000 values" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {from: 1, to: 1TiB, step: 1}'
    refused 3:13 "needs from, to, and either step or factor" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {from: 1, to: 2}'
    refused 3:32 "did you mean step" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {from: 1, to: 2,   stp: 1}'
    refused 3:13 "needs from, to, and either step or factor" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {from: 1, to: 2, step: 1, factor: 2}'
    refused 3:13 "needs from, to, and either step or factor" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {to: 2, step: 1}'
    refused 3:13 "a step of 1 or more" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {from: 1, to: 2, step: 0}'
    refused 3:13 "a factor of 2 or more" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {from: 1, to: 2, factor: 1}'
    refused 3:13 "does not ascend" <<<$'traces: [a]\npolicies: [direct]\ncapacities: {from: 0, to: 2, factor: 2}'
    refused 3:13 "is an empty list" <<<$'traces: [a]\npolicies: [direct]\ncapacities: []'
    refused 3:14 "is a list in a list" <<<$'traces: [a]\npolicies: [direct]\ncapacities: [[1GiB]]'
    refused 2:48 "a step above 0" <<<$'traces: [a]\npolicies: [{policy: slab, options: {  surplus: {from: 0.5, to: 1, step: 0}}}]'
    refused 2:48 "a factor" <<<$'traces: [a]\npolicies: [{policy: slab, options: {  surplus: {from: 0.5, to: 1, factor: 1}}}]'
    refused 2:48 "does not ascend" <<<$'traces: [a]\npolicies: [{policy: slab, options: {  surplus: {from: 1.5, to: 1, step: 0.5}}}]'
    refused 3:9 "neither true nor false" <<<$'traces: [a]\npolicies: [direct]\nbounds: maybe'
    refused 3:9 "expected stop or skip" <<<$'traces: [a]\npolicies: [direct]\non_oom: go'
}

# ---- with MPI

needs_mpi() {
    command -v mpirun >/dev/null || skip "mpirun is not installed (package openmpi-bin)"
    [ -e fraglab_mpi.so ] || skip "built without MPI (package libopenmpi-dev)"
}

ranks() { # COUNT ARGUMENT...
    local count=$1
    shift
    timeout 1800 mpirun --allow-run-as-root --oversubscribe -n "$count" ./fraglab sweep "$@"
}

@test "ranks write the bytes that one process writes" {
    needs_mpi
    echo 'bounds: true' >>"$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/one"
    ranks 4 "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/four"
    cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/four"
    ranks 2 "$EXPERIMENT" -j 3 >"$BATS_TEST_TMPDIR/two"
    cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/two"
}

# A sweep that takes some seconds on four ranks, and the rows it should have.
long_sweep() {
    printf 'traces: [%s, %s]\npolicies:\n  - {policy: pytorch, options: {max_split_size_mb: %s, garbage_collection_threshold: %s}}\n%s\n' \
        "$SAMPLES/pr193400.pickle.zst" "$SAMPLES/model-parallel.pickle.zst" '{from: 32, to: 512, factor: 2}' '{from: 0.5, to: 0.9, step: 0.1}' \
        'capacities: [{from: 2GiB, to: 7GiB, step: 512MiB}]' >"$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/whole"
}

# Kills mpirun, or a rank by its number, once there are rows; nothing of them stays. has_failed: mpirun did.
kill_some() {
    local started children victim child
    rm -f "$BATS_TEST_TMPDIR/rows"
    mpirun --allow-run-as-root --oversubscribe -n 3 ./fraglab sweep "$EXPERIMENT" -j 1 -o "$BATS_TEST_TMPDIR/rows" &
    started=$!
    for _ in $(seq 200); do
        [ -s "$BATS_TEST_TMPDIR/rows" ] && break
        sleep 0.05
    done
    children=$(pgrep -P "$started" | tr '\n' ' ')
    [ "$1" = mpirun ] && victim=$started || victim=$(echo "$children" | cut -d' ' -f"$1")
    kill -9 "$victim" || true
    wait "$started" && has_failed=0 || has_failed=1
    for child in $children; do
        for _ in $(seq 300); do
            [ -d "/proc/$child" ] || break
            sleep 0.1
        done
        [ ! -d "/proc/$child" ]
    done
}

@test "whatever is killed under mpirun, no rank stays, and the next start ends up with the same bytes" {
    needs_mpi
    long_sweep
    for whom in mpirun 1 3; do
        # On a busy machine all may be done before a rank is killed: then once more. Ranks see that
        # mpirun is gone after a second or two, and may be done by then.
        for _ in $(seq 8); do
            kill_some "$whom"
            [ "$whom" = mpirun ] && break
            [ "$(stat -c %s "$BATS_TEST_TMPDIR/rows")" -lt "$(stat -c %s "$BATS_TEST_TMPDIR/whole")" ] && break
        done
        [ "$has_failed" = 1 ]
        [ "$whom" = mpirun ] || [ "$(stat -c %s "$BATS_TEST_TMPDIR/rows")" -lt "$(stat -c %s "$BATS_TEST_TMPDIR/whole")" ]
        ranks 3 "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
        cmp "$BATS_TEST_TMPDIR/whole" "$BATS_TEST_TMPDIR/rows"
    done
}

@test "an error is said once, with its exit code, by whichever rank it comes to" {
    needs_mpi
    run ranks 3 nowhere.yaml -o "$BATS_TEST_TMPDIR/rows"
    [ "$status" -eq 3 ]
    [ "$(grep -c '^fraglab: nowhere.yaml: cannot be opened' <<<"$output")" -eq 1 ]
    [ ! -e "$BATS_TEST_TMPDIR/rows" ]
    # One of the machines has an older recording, or an older experiment. The other one must not be done with
    # all the work before it is heard, however late it starts.
    fraglab=$PWD/fraglab
    policies=$(printf 'best-fit:grow=%dMiB, ' $(seq 2 2 8000))
    for there in same other absent old; do
        mkdir -p "$BATS_TEST_TMPDIR/$there"
        cp "$SAMPLES/unet.pickle.zst" "$BATS_TEST_TMPDIR/$there/a.zst"
        printf 'traces: [a.zst]\npolicies: [%s]\n' "${policies%, }" >"$BATS_TEST_TMPDIR/$there/e.yaml"
    done
    cp "$SAMPLES/pr193400.pickle.zst" "$BATS_TEST_TMPDIR/other/a.zst"
    rm "$BATS_TEST_TMPDIR/absent/a.zst"
    echo 'on_oom: skip' >>"$BATS_TEST_TMPDIR/old/e.yaml"
    for words in "other:a.zst: is not the recording that rank 0 has" "absent:a.zst: cannot be opened" "old:has another experiment"; do
        run timeout 1800 mpirun --allow-run-as-root --oversubscribe -n 1 -wdir "$BATS_TEST_TMPDIR/same" "$fraglab" sweep e.yaml -o rows : \
            -n 1 -wdir "$BATS_TEST_TMPDIR/${words%%:*}" "$fraglab" sweep e.yaml -o rows
        echo "$words: exit $status: $output"
        [ "$status" -eq 3 ]
        [ "$(grep -c '^fraglab: rank 1 on ' <<<"$output")" -eq 1 ]
        [[ "$output" == *"${words#*:}"* ]]
        [ ! -e "$BATS_TEST_TMPDIR/${words%%:*}/rows" ]
    done
}

@test "a fraglab without MPI does not write one file from many processes" {
    cp fraglab "$BATS_TEST_TMPDIR/fraglab"
    OMPI_COMM_WORLD_SIZE=4 run "$BATS_TEST_TMPDIR/fraglab" sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
    [ "$status" -eq 4 ]
    [[ "$output" =~ "one of several processes".*"built without MPI" ]]
    [ ! -e "$BATS_TEST_TMPDIR/rows" ]
    OMPI_COMM_WORLD_SIZE=1 "$BATS_TEST_TMPDIR/fraglab" sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/rows"
    needs_mpi
    # Another MPI's launcher, whose processes this library does not see.
    PMI_SIZE=3 run ./fraglab sweep "$EXPERIMENT" -o "$BATS_TEST_TMPDIR/more"
    [ "$status" -eq 4 ]
    [[ "$output" =~ "one of 3 processes".*"sees 1" ]]
}

@test "only rows are thrown away or gone on behind" {
    cp "$SAMPLES/pr193400.pickle.zst" "$BATS_TEST_TMPDIR/here.zst"
    printf 'traces: here.zst\npolicies: [direct]' >"$EXPERIMENT"
    cp "$EXPERIMENT" "$BATS_TEST_TMPDIR/kept"
    printf 'one line' >"$BATS_TEST_TMPDIR/notes"
    for file in "$EXPERIMENT" "$BATS_TEST_TMPDIR/here.zst" "$BATS_TEST_TMPDIR/notes"; do
        status=0
        ./fraglab sweep "$EXPERIMENT" -f -o "$file" || status=$?
        [ "$status" -eq 2 ]
        status=0
        ./fraglab sweep "$EXPERIMENT" -o "$file" || status=$?
        [ "$status" -eq 3 ]
    done
    cmp "$EXPERIMENT" "$BATS_TEST_TMPDIR/kept"
    cmp "$SAMPLES/pr193400.pickle.zst" "$BATS_TEST_TMPDIR/here.zst"
    [ "$(cat "$BATS_TEST_TMPDIR/notes")" = "one line" ]
}

@test "a device or a pipe takes the rows, and a full one is told" {
    cp "$SAMPLES/pr193400.pickle.zst" "$BATS_TEST_TMPDIR/here.zst"
    printf 'traces: here.zst\npolicies: [direct]\n' >"$EXPERIMENT"
    ./fraglab sweep "$EXPERIMENT" -o /dev/null
    ./fraglab sweep "$EXPERIMENT" -o /dev/stdout | grep -q '"schema":"fraglab.run/1"'
    [ -c /dev/full ] || skip "no /dev/full here"
    status=0
    timeout 1800 ./fraglab sweep "$EXPERIMENT" -o /dev/full || status=$?
    [ "$status" -eq 4 ]
}

@test "--check reads an experiment and replays nothing" {
    run ./fraglab sweep "$EXPERIMENT" --check
    [ "$status" -eq 0 ]
    [ "$output" = "$EXPERIMENT: 168 runs" ]
    if command -v mpirun >/dev/null; then
        run timeout 60 mpirun --allow-run-as-root --oversubscribe -n 2 ./fraglab sweep "$EXPERIMENT" --check
        [ "$output" = "$EXPERIMENT: 168 runs" ] # once
    fi
    # Each device of a recording counts, and one that is not there is told.
    printf 'traces: %s/traces/samples/model-parallel.pickle.zst\npolicies: [direct]\n' "$PWD" >"$BATS_TEST_TMPDIR/two.yaml"
    [ "$(./fraglab sweep "$BATS_TEST_TMPDIR/two.yaml" --check)" = "$BATS_TEST_TMPDIR/two.yaml: 2 runs" ]
    [ "$(./fraglab sweep "$BATS_TEST_TMPDIR/two.yaml" | wc -l)" -eq 2 ]
    printf 'traces: gone.fgt\npolicies: [direct]\n' >"$BATS_TEST_TMPDIR/gone.yaml"
    run -3 ./fraglab sweep "$BATS_TEST_TMPDIR/gone.yaml" --check
    [[ $output == *"gone.fgt: cannot be opened"* ]]
    sed -i 's/capacities:/capacity:/' "$EXPERIMENT"
    run ./fraglab sweep "$EXPERIMENT" --check
    [ "$status" -eq 3 ]
    [[ "$output" =~ experiment.yaml:1[0-9]:.*capacity ]]
}
