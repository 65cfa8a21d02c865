#!/usr/bin/env bash
# bench_packing.sh [MINIMALLOC [RUNS]]: how long the challenging packing problems take, in seconds of
# CPU time of the whole program, best of RUNS (3). With the path of MiniMalloc's program both are
# run in turn. Every packing is checked here too: two buffers that overlap in time and bytes, or one
# above the capacity, is an error.
set -euo pipefail
export LC_ALL=C
other=${1:-}
runs=${2:-3}
capacity=1048576
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# What a placement must keep to, pair by pair.
check() {
    awk -F, -v capacity="$capacity" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { n++; lower[n] = $column["lower"]; upper[n] = $column["upper"]
          low[n] = $column["offset"]; high[n] = low[n] + $column["size"]
          if (high[n] > capacity) { print "line " NR " ends above the capacity"; exit 1 }
          for (i = 1; i < n; i++)
              if (lower[i] < upper[n] && lower[n] < upper[i] && low[i] < high[n] && low[n] < high[i]) {
                  print "lines " i + 1 " and " NR " overlap"; exit 1 } }' "$1"
}
# Least CPU time over the runs of a command, in seconds.
best() {
    TIMEFORMAT='%U %S'
    for _ in $(seq "$runs"); do
        { time "$@" >/dev/null 2>&1; } 2>&1
    done | awk 'NR == 1 || $1 + $2 < least { least = $1 + $2 } END { print least }'
}

printf '| problem | buffers | fraglab s |'
[ -z "$other" ] || printf ' MiniMalloc s | times faster |'
printf '\n| --- | ---: | ---: |'
[ -z "$other" ] || printf ' ---: | ---: |'
printf '\n'
for file in tests/data/minimalloc/*.csv; do
    name=$(basename "$file" .$capacity.csv)
    ours=$(best ./fraglab run "$file" --policy offline --capacity $capacity --placement "$out/$name.csv" -f -j 1)
    [ -s "$out/$name.csv" ]
    check "$out/$name.csv"
    line="$name $(($(wc -l <"$file") - 1)) $ours"
    if [ -n "$other" ]; then
        theirs=$(best "$other" --capacity=$capacity --input="$file" --output="$out/other.csv")
        line="$line $theirs"
    fi
    echo "$line" | awk '{ printf "| %s | %d | %.3f |", $1, $2, $3
                          if (NF > 3) printf " %.3f | %.0f |", $4, $4 / $3
                          printf "\n" }'
done

# Training as its allocations look: layers forward, each with an activation and temporaries, and back
# again with gradients, over and over with other shapes.
training() { # buffers
    awk -v wanted="$1" 'BEGIN {
        srand(1); layers = int(sqrt(wanted) / 2) + 4; unit = 512; end = 10 * wanted
        print "id,lower,upper,size"
        for (l = 0; l < layers; l++) { size[l] = 2 ^ int(rand() * 5) * (1 + int(rand() * 300)); emit(time++, end, size[l]) }
        while (count < wanted) {
            shape = 0.5 + rand()
            for (l = 0; l < layers; l++) { made[l] = time++; for (t = rand() * 4; t > 0; t--) short(l) }
            for (l = layers - 1; l >= 0; l--) {
                gradient = time++
                emit(made[l], time++, 1 + int(size[l] * shape))
                for (t = rand() * 3; t > 0; t--) short(l)
                emit(gradient, time + 1 + int(rand() * layers * 3), size[l])
            }
        }
    }
    function short(l) { emit(time, time + 1 + int(rand() * 3), 1 + int(size[l] * (0.1 + 2 * rand()))); time += 3 }
    function emit(lower, upper, units) { if (count < wanted) print count++ "," lower "," upper "," units * unit }'
}

printf '\n| training-like buffers | offline over peak live | fraglab s |\n| ---: | ---: | ---: |\n'
for count in 10000 30000 100000; do
    training $count >"$out/training.csv"
    spent=$(best ./fraglab run "$out/training.csv" --policy offline -j 1)
    over=$(./fraglab run "$out/training.csv" --policy offline --format jsonl | grep -o '"reserved_bytes":[0-9]*\|"peak_requested_bytes":[0-9]*' |
        awk -F: '{ value[$1] = value[$1] == "" ? $2 : value[$1] } END { printf "%.2f", 100 * (value["\"reserved_bytes\""] / value["\"peak_requested_bytes\""] - 1) }')
    echo "$count $over $spent" | awk '{ printf "| %d | +%s%% | %.2f |\n", $1, $2, $3 }'
done
