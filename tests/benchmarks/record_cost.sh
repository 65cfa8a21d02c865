#!/usr/bin/env bash
# What the preloaded recorder adds to a call, on a runtime that answers at once: `make record-cost`.
# The table goes to stdout: median of nine runs, and the least and the most, in ns of processor time per call.
set -eu
programs=${1:-build/release/tests/programs}
calls=${CALLS:-400000}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

nine() { # threads, preload
    for _ in 1 2 3 4 5 6 7 8 9; do
        LD_LIBRARY_PATH=$programs/null LD_PRELOAD=$2 FRAGLAB_RECORD=$logs "$programs/call_cost" "$1" "$calls"
        rm -f "$logs"/*
    done | sort -n | tr '\n' ' ' | awk '{ printf "%8.1f  (%.1f to %.1f)", $5, $1, $9 }'
}

grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
echo "$calls calls a thread; logs in $(df --output=fstype "$logs" | tail -1)"
echo "threads   plain                        recorded"
for threads in 1 2; do
    printf '%7d  %-28s %s\n' "$threads" "$(nine "$threads" "")" "$(nine "$threads" "$(dirname "$(dirname "$programs")")/libfraglab_record.so")"
done
