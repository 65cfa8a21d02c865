# What docs/scenarios.md says of each scenario, figure by figure. That the page shows what is printed is
# checked in docs.bats; here is what must hold in it, whatever the tables look like.

# value FILE POLICY PATH [OPTION...]: one field of the row, by its path in the CSV form.
value() {
    local file=$1 policy=$2 path=$3
    shift 3
    ./fraglab run "$file" --policy "$policy" --format csv "$@" | sed 's/"[^"]*"/quoted/g' | awk -F, -v path="$path" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == path) column = i }
        NR == 2 && column { print $column; found = 1 }
        END { exit !found }'
}

# level FILE POLICY EVENT: requested, allocated, active and reserved bytes after an event.
level() {
    ./fraglab plot timeline "$1" --policy "$2" --label policy --format csv |
        awk -F, -v event="$3" '$1 == "policy" && $4 == event { print $6, $7, $8, $9; found = 1 } END { exit !found }'
}

mib() { echo $(($1 * 1048576)); }
both=pytorch:max_split_size_mb:128,expandable_segments:True

@test "empty_cache gives back a free segment, but none with a live tensor in it" {
    trace=docs/scenarios/live-tensors.trace
    [ "$(level $trace pytorch 38)" = "2097152 2097152 2097152 $(mib 40)" ]
    [ "$(level $trace pytorch 39)" = "2097152 2097152 2097152 $(mib 20)" ]
}

@test "empty_cache does not save a request: what it gives back would have been given back anyway" {
    trace=docs/scenarios/live-tensors.trace
    grep -v empty_cache $trace >"$BATS_TEST_TMPDIR/without.trace"
    [ "$(value $trace pytorch oom.event --capacity 512MiB)" = 40 ]
    [ "$(value "$BATS_TEST_TMPDIR/without.trace" pytorch oom.event --capacity 512MiB)" = 39 ]
    [ "$(value $trace pytorch oom.free_bytes --capacity 512MiB)" = "$(mib 492)" ]
    [ "$(value "$BATS_TEST_TMPDIR/without.trace" pytorch oom.free_bytes --capacity 512MiB)" = "$(mib 492)" ]
    # What does help: the last tensor is freed too.
    sed 's/^empty_cache/free 0/' $trace >"$BATS_TEST_TMPDIR/freed.trace"
    [ -z "$(value "$BATS_TEST_TMPDIR/freed.trace" pytorch oom.event --capacity 512MiB)" ]
}

@test "the lower the memory fraction, the sooner it fails" {
    last=999999999
    for fraction in 1 0.97 0.95 0.9 0.85 0.8 0.75 0.7 0.5 0.2; do
        event=$(value traces/samples/gpt-varlen.pickle.zst pytorch:per_process_memory_fraction=$fraction oom.event --capacity 6.9GiB)
        [ "${event:-999999999}" -le "$last" ]
        last=${event:-999999999}
    done
    [ "$last" -lt 3000 ]
}

@test "max_split_size_mb keeps the block of a fragmenting loop whole" {
    trace=docs/scenarios/growing-cache.trace
    [ "$(value $trace pytorch peak.reserved_bytes)" = "$(mib 2000)" ]
    [ "$(value $trace pytorch:max_split_size_mb:128 peak.reserved_bytes)" = "$(mib 1300)" ]
    [ "$(value $trace pytorch:max_split_size_mb:128 device_calls.malloc)" = 11 ]
}

@test "max_split_size_mb reserves three times as much for variable shapes, and fits a smaller card" {
    trace=traces/samples/gpt-varlen.pickle.zst
    [ "$(value $trace pytorch peak.reserved_bytes)" = 9154068480 ]
    [ "$(value $trace pytorch:max_split_size_mb:128 peak.reserved_bytes)" = 28454158336 ]
    [ -n "$(value $trace pytorch oom.event --capacity 6GiB)" ]
    [ -z "$(value $trace pytorch:max_split_size_mb:128 oom.event --capacity 6GiB)" ]
    [ -z "$(value $trace pytorch:expandable_segments:True oom.event --capacity 6GiB)" ]
}

# allocated and reserved of cycles 0, 20, ..., 100, as measured in PyTorch pull request 193400
@test "max_split_size_mb with expandable segments grows by 7 MiB for each MiB that stays" {
    trace=docs/scenarios/unbounded.trace
    while read -r cycle allocated reserved; do
        expected="$(mib "$allocated") $(mib "$allocated") $(mib "$allocated") $(mib "$reserved")"
        [ "$(level $trace $both $((6 * cycle + 5)))" = "$expected" ]
    done <<'FIGURES'
0 66 220
20 106 2980
40 146 5760
60 186 8520
80 226 11300
100 266 14060
FIGURES
    for policy in pytorch pytorch:expandable_segments:True pytorch:max_split_size_mb:128; do
        [ "$(value $trace $policy peak.reserved_bytes)" -le "$(mib 422)" ]
    done
    [ -z "$(value $trace $both oom.event --capacity 420MiB)" ]
}

@test "the trace written by hand makes the requests of the recorded loop" {
    requests() { awk '$1 == "alloc" { print "alloc", $3 } $1 == "free" { print "free" }'; }
    ./fraglab trace convert --to text traces/samples/pr193400.pickle.zst - | requests >"$BATS_TEST_TMPDIR/recorded"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/recorded")" -eq 501 ]
    requests <docs/scenarios/unbounded.trace | head -n 501 | cmp - "$BATS_TEST_TMPDIR/recorded"
}

@test "the six gaps between requested and reserved are told apart" {
    trace=docs/scenarios/decomposition.trace
    part() { value $trace pytorch decomposition_at_peak.$1_bytes; }
    [ "$(part requested)" = $(($(mib 78) + 1000)) ]
    [ "$(part rounding)" = 24 ]
    [ "$(part unsplit)" = "$(mib 1)" ]
    [ "$(part holes)" = $(($(mib 19) - 1024)) ]
    [ "$(part cached)" = "$(mib 30)" ]
    [ "$(part waiting)" = "$(mib 40)" ]
    [ "$(part page_slack)" = 0 ]
    [ "$(value $trace pytorch peak.reserved_bytes)" = "$(mib 168)" ]
    # Where mallocs are not whole pages, there is slack.
    [ "$(value $trace direct decomposition_at_peak.page_slack_bytes)" -gt 0 ]
}
