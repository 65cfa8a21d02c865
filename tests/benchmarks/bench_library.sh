#!/usr/bin/env bash
# bench_library.sh PROGRAM [RECORDING...]: the pytorch policy beside PyTorch's own allocator, on the same requests,
# in turns. PROGRAM plays a request script on the library it was built for and prints one JSON object with
# "median_cpu_ns" per request (docs/performance.md says what the script looks like). Run from the root of the
# source tree after `make bench` has built build/release/tests/bench. Without recordings: the training ones
# of traces/samples/.
set -euo pipefail
export LC_ALL=C

bench=build/release/tests/bench
program=${1:-}
if [ -z "$program" ]; then
    echo 'bench_library.sh: PROGRAM is missing; usage: bash tests/benchmarks/bench_library.sh PROGRAM [RECORDING...]' >&2
    exit 2
fi
shift
for needed in "$program" "$bench" ./fraglab; do
    if ! command -v "$needed" >/dev/null; then
        echo "bench_library.sh: $needed cannot be run; run this from the root of the source tree, after 'make bench'" >&2
        exit 4
    fi
done
[ $# -gt 0 ] || set -- traces/samples/{gpt-train,gpt-varlen,moe,resnet-vary,unet,model-parallel,prefetch-streams}.pickle.zst
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Requests as a script: "a ID BYTES STREAM" and "f ID", after the capacity and the number of devices.
write_script() {
    ./fraglab trace convert "$1" - --to text | awk '
        BEGIN { print "cap 85899345920\ndevices 1\nprofile recording\nseed 1" }
        /^device / { devices++ }
        devices > 1 { next }
        $1 == "streams" { for (i = 2; i <= NF; i++) handle[i - 2] = (i - 2) * 4096 }
        function stream(line) { return match(line, / stream=[^ ]+/) ? handle[substr(line, RSTART + 8, RLENGTH - 8)] + 0 : 0 }
        $1 == "alloc" && $2 != "-" { id[$2] = n++; print "a", id[$2], $3, stream($0) }
        $1 == "free" && !/ deferred/ || $1 == "complete" { print "f", id[$2] }'
}

number() { tr -d '\n' <"$2" | grep -o "\"$1\":[ {]*\(\"median\": *\)\{0,1\}[0-9.]*" | head -n 1 | grep -o '[0-9.]*$'; }

printf '%-28s %10s %12s %12s %7s\n' recording requests 'library ns' 'fraglab ns' ratio
for recording in "$@"; do
    write_script "$recording" >"$work/requests"
    for turn in 1 2 3; do
        "$program" -r 15 -d "$work/requests" >"$work/peer.$turn"
        "$bench" -o "$work/ours.$turn.json" --replay-only --repeat 15 --policy pytorch "$recording" >/dev/null 2>&1
    done
    peer=$(for turn in 1 2 3; do number median_cpu_ns "$work/peer.$turn"; done | sort -g | sed -n 2p)
    ours=$(for turn in 1 2 3; do number ns_per_event "$work/ours.$turn.json"; done | sort -g | sed -n 2p)
    # Ours is told by event, and a recording has more of them than requests: both by request here.
    awk -v name="$(basename "$recording")" -v n="$(grep -c '^[af] ' "$work/requests")" -v a="$peer" -v b="$ours" \
        -v events="$(number events "$work/ours.1.json")" \
        'BEGIN { b *= events / n; printf "%-28s %10d %12.1f %12.1f %6.1fx\n", name, n, a, b, a / b }'
done
