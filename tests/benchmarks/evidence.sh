#!/usr/bin/env bash
# The tables of docs/own-policy.md, in Markdown, from replays of the bundled recordings or of others.
#
#   tests/benchmarks/evidence.sh peaks [FILE...]     peak reserved over the bound, and device calls that move memory
#   tests/benchmarks/evidence.sh capacity [FILE...]  the least capacity with which every request is served, over the bound
#
# PROGRAM=./fraglab is run; POLICIES is what is compared, the first is the one whose calls are the limit,
# the last is the one that is judged.
set -eu -o pipefail
export LC_ALL=C.UTF-8
PROGRAM=${PROGRAM:-./fraglab}
POLICIES=${POLICIES:-pytorch pytorch:expandable_segments=true best-fit gmlake planned frugal}

kind=${1:-}
shift || true
[ $# -gt 0 ] || set -- traces/samples/*.zst
chosen=()
for policy in $POLICIES; do
    chosen+=(--policy "$policy")
done

# Rows of one recording follow one another, in the order of the policies.
case $kind in
peaks) "$PROGRAM" run "$@" "${chosen[@]}" --format jsonl -q ;;
capacity) "$PROGRAM" min-capacity "$@" "${chosen[@]}" --format jsonl -q ;;
*)
    sed -n 's/^#   //p' "$0" >&2
    exit 2
    ;;
esac | awk -v kind="$kind" '
    # The value of the first such key after a place.
    function value(key, place,   rest) {
        rest = substr($0, index($0, place))
        if (!match(rest, "\"" key "\":(\"[^\"]*\"|[0-9]+)")) { print "no " key > "/dev/stderr"; exit 1 }
        rest = substr(rest, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
        gsub(/"/, "", rest)
        return rest
    }
    function calls(   sum, i, n, names) {
        n = split("malloc free reserve unreserve map unmap malloc_async free_async", names, " ")
        for (i = 1; i <= n; i++) sum += value(names[i], "\"device_calls\":")
        return sum
    }
    {
        name = value("name", "\"trace\":")
        sub(/\.pickle\.zst$/, "", name)
        if (value("device", "\"trace\":") != "0") name = name ", device " value("device", "\"trace\":")
        policy = value("label", "\"policy\":")
        if (!(policy in seen)) { seen[policy] = 1; policies[++policy_count] = policy }
        if (!(name in known)) { known[name] = 1; names_of[++count] = name }
        bound[name] = value("peak_requested_bytes", "\"bounds\":")
        held = kind == "peaks" ? value("reserved_bytes", "\"peak\":") : value("capacity_bytes", "\"used_by_others_bytes\"")
        ratio[name, policy] = held / bound[name]
        if (kind == "peaks") moved[name, policy] = calls()
    }
    function cell(r, n) { return sprintf(" %+.1f %%%s |", (r - 1) * 100, kind == "peaks" ? sprintf(" · %d", n) : "") }
    END {
        line = "| recording | bound |"; rule = "| --- | ---: |"
        for (j = 1; j <= policy_count; j++) { line = line " " policies[j] " |"; rule = rule " ---: |" }
        print line; print rule
        for (i = 1; i <= count; i++) {
            line = sprintf("| %s | %.0f MiB |", names_of[i], bound[names_of[i]] / 1048576)
            for (j = 1; j <= policy_count; j++) {
                p = policies[j]; r = ratio[names_of[i], p]; n = moved[names_of[i], p]
                line = line cell(r, n)
                logs[p] += log(r); sum[p] += n
                if (r > worst[p]) { worst[p] = r; at[p] = n }
                over[p] += n > moved[names_of[i], policies[1]]
                least[names_of[i]] = j == 1 || r < least[names_of[i]] ? r : least[names_of[i]]
            }
            print line
        }
        line = "| **geometric mean** · sum of calls | |"; last = "| **worst** · its calls | |"
        more = "| recordings with more calls than " policies[1] " | |"; first = "| recordings on which none is better | |"
        for (j = 1; j <= policy_count; j++) {
            p = policies[j]
            line = line cell(exp(logs[p] / count), sum[p]); last = last cell(worst[p], at[p])
            more = more sprintf(" %d |", over[p])
            wins = 0
            for (i = 1; i <= count; i++) wins += ratio[names_of[i], p] <= least[names_of[i]]
            first = first sprintf(" %d of %d |", wins, count)
        }
        if (kind != "peaks") { sub(/ · sum of calls/, "", line); sub(/ · its calls/, "", last) }
        print line; print last
        if (kind == "peaks") print more
        print first
    }'
