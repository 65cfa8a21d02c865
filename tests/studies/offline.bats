# Offline packing: problems in MiniMalloc's CSV, the policy offline, the bound that goes with it.

P=tests/data/minimalloc

setup() {
    out=$BATS_TEST_TMPDIR
}

# The example of the format's own documentation: 12 bytes are live at once.
small() {
    printf 'id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n'
}

# Pair by pair, what a placement must keep to: judge FILE CAPACITY
judge() {
    awk -F, -v capacity="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { n++; lower[n] = $column["lower"]; upper[n] = $column["upper"]
          low[n] = $column["offset"]; high[n] = low[n] + $column["size"]
          if (high[n] > capacity || (column["alignment"] && low[n] % $column["alignment"])) exit 1
          for (i = 1; i < n; i++)
              if (lower[i] < upper[n] && lower[n] < upper[i] && low[i] < high[n] && low[n] < high[i]) exit 1 }
        END { if (n == 0) exit 1 }' "$1"
}

@test "the challenging problems are packed into their capacity" {
    for file in $P/*.csv; do
        run ./fraglab run "$file" --policy offline --capacity 1048576 --placement "$out/out.csv" -f
        [ "$status" -eq 0 ]
        judge "$out/out.csv" 1048576
        [ "$(sed 1d "$file" | sort)" = "$(sed 1d "$out/out.csv" | cut -d, -f1-4 | sort)" ]
    done
}

@test "the judge of these tests sees an overlap and an end too high" {
    printf 'id,lower,upper,size,offset\na,0,2,4,0\nb,2,3,4,0\n' >"$out/right.csv"
    printf 'id,lower,upper,size,offset\na,0,2,4,0\nb,1,3,4,3\n' >"$out/overlap.csv"
    judge "$out/right.csv" 4
    run judge "$out/right.csv" 3
    [ "$status" -eq 1 ]
    run judge "$out/overlap.csv" 100
    [ "$status" -eq 1 ]
}

@test "no packing: proved where more is live than there is, and nothing is written" {
    run ./fraglab run $P/D.1048576.csv --policy offline --capacity 900000 --placement "$out/out.csv"
    [ "$status" -eq 1 ]
    [[ "$output" == *"D.1048576.csv: offline: proved: every packing needs at least 986,112 bytes"* ]]
    [ ! -e "$out/out.csv" ]
}

@test "no packing: proved where all that is live would fit" {
    # At most 4 bytes are live, but no packing is below 5.
    printf 'id,lower,upper,size\na,2,6,1\nb,0,2,2\nc,2,7,1\nd,6,8,2\ne,7,8,2\nf,5,7,1\ng,1,3,2\n' >"$out/p.csv"
    run ./fraglab run "$out/p.csv" --policy offline --capacity 4 --placement "$out/out.csv"
    [ "$status" -eq 1 ]
    [[ "$output" == *"peak requested 4 B"* ]]
    [[ "$output" == *"proved: every packing needs at least 5 bytes"* ]]
    run ./fraglab run "$out/p.csv" --policy offline --capacity 5 --placement "$out/out.csv"
    [ "$status" -eq 0 ]
    judge "$out/out.csv" 5
}

@test "offsets count from the lowest address, whichever buffer lies there" {
    printf 'id,lower,upper,size\n0,0,3,1\n1,1,5,4\n2,3,6,1\n' >"$out/p.csv"
    run ./fraglab run "$out/p.csv" --policy offline --capacity 5 --placement "$out/out.csv"
    [ "$status" -eq 0 ]
    [ "$(cut -d, -f5 "$out/out.csv" | paste -sd' ')" = "offset 4 0 4" ]
}

@test "blocks that a policy leaves where they were cannot be placed" {
    printf '# fraglab trace 2\nsegment_alloc 2097152 addr=0x200000 initial\nalloc 0 4096 addr=0x200000 block=4096 initial\nalloc 1 512\n' >"$out/p.trace"
    run ./fraglab run "$out/p.trace" --policy pytorch --placement "$out/out.csv"
    [ "$status" -eq 2 ]
    [[ "$output" == *"a placement needs every block to be requested"* ]]
    [ ! -e "$out/out.csv" ]
}

@test "no packing: a budget that was too small is no proof" {
    run ./fraglab run $P/D.1048576.csv --policy offline:steps=2000 --capacity 1000000 --placement "$out/out.csv"
    [ "$status" -eq 1 ]
    [[ "$output" == *"no packing under the capacity was found"* ]]
    [[ "$output" == *"proved only that 986,112 are needed"* ]]
}

@test "a placement is read back, and the same for every number of threads" {
    small >"$out/in.csv"
    for jobs in 1 2 7; do
        run ./fraglab run "$out/in.csv" --policy offline --placement "$out/$jobs.csv" -j $jobs -q
        [ "$status" -eq 0 ]
        judge "$out/$jobs.csv" 12
    done
    cmp "$out/1.csv" "$out/2.csv"
    cmp "$out/1.csv" "$out/7.csv"
    run ./fraglab run "$out/1.csv" --policy offline --placement "$out/again.csv"
    [ "$status" -eq 0 ]
    cmp "$out/1.csv" "$out/again.csv"
}

@test "alignments are kept, and kept through .fgt" {
    printf 'id,lower,upper,size,alignment\na,0,4,5,1\nb,1,5,3,8\nc alignment=4,2,6,3,8\n' >"$out/in.csv"
    ./fraglab trace convert "$out/in.csv" "$out/in.fgt"
    for file in "$out/in.csv" "$out/in.fgt"; do
        run ./fraglab run "$file" --policy offline --placement "$out/out.csv" -f
        [ "$status" -eq 0 ]
        judge "$out/out.csv" 24
        [ "$(head -n 1 "$out/out.csv")" = id,lower,upper,size,alignment,offset ]
        grep -q '^c alignment=4,2,6,3,8,' "$out/out.csv"
    done
}

@test "the placement of any policy can be written" {
    run ./fraglab run $P/A.1048576.csv --policy best-fit --placement "$out/out.csv"
    [ "$status" -eq 0 ]
    judge "$out/out.csv" 2097152
    small >"$out/in.csv"
    run ./fraglab run "$out/in.csv" --policy best-fit --placement "$out/out.csv" -f
    [[ "$output" == *"align=512 does not divide the device's pages of 4 bytes"* ]]
    run ./fraglab run traces/samples/pr193400.pickle.zst --policy pytorch --placement "$out/torch.csv"
    [ "$status" -eq 0 ]
    judge "$out/torch.csv" 17592186044416
    [ "$(wc -l <"$out/torch.csv")" -eq 302 ]
}

@test "a row tells the packing, the plan and the proof" {
    small >"$out/in.csv"
    run ./fraglab run "$out/in.csv" --policy offline --policy best-fit:align=1,grow=4 --bounds --format jsonl
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *'"bounds":{"peak_requested_bytes":12,"packing_bytes":12,"packing_proved":true}'* ]]
    [[ "${lines[0]}" == *'"plan":{"answer":"optimal","peak_bytes":12,"bound_bytes":12}'* ]]
    [[ "${lines[0]}" == *'"page_bytes":4,'* ]]
    [[ "${lines[1]}" == *'"packing_bytes":12,"packing_proved":true}'* ]]
    [[ "${lines[1]}" == *'"plan":{"answer":null,"peak_bytes":null,"bound_bytes":null}'* ]]
    run ./fraglab run "$out/in.csv" --policy offline --format jsonl
    [[ "${lines[0]}" == *'"packing_bytes":null,"packing_proved":null}'* ]]
}

@test "the last line of a table is the packing" {
    run ./fraglab run $P/A.1048576.csv --policy offline --capacity 1MiB --bounds
    [ "$status" -eq 0 ]
    [[ "${lines[-1]}" == "bound: offline packing (optimal) "*"1.00 MiB        +0.0%"* ]]
}

@test "min-capacity of a plan is its height" {
    small >"$out/in.csv"
    run ./fraglab min-capacity "$out/in.csv" --policy offline --format jsonl
    [ "$status" -eq 0 ]
    [[ "$output" == *'"capacity_bytes":12'* ]]
}

@test "one run has one placement" {
    small >"$out/in.csv"
    run ./fraglab run "$out/in.csv" --policy offline,best-fit --placement "$out/out.csv"
    [ "$status" -eq 2 ]
    run ./fraglab run "$out/in.csv" "$out/in.csv" --policy offline --placement "$out/out.csv"
    [ "$status" -eq 2 ]
    run ./fraglab run "$out/in.csv" --policy offline --placement -
    [ "$status" -eq 2 ]
    run ./fraglab run traces/samples/model-parallel.pickle.zst --policy best-fit --placement "$out/out.csv"
    [ "$status" -eq 2 ]
    [ "$output" = "fraglab: model-parallel.pickle.zst: the recording holds 2 traces, and --placement is about one run: cut out a device first (fraglab trace cut --device N)" ]
    [ ! -e "$out/out.csv" ]
}

@test "sample recordings are packed to within a hundredth of what is live" {
    for name in gpt-varlen unet resnet-vary llm-inference; do
        ./fraglab run traces/samples/$name.pickle.zst --policy offline --format jsonl --check 500 >"$out/row"
        reserved=$(grep -o '"reserved_bytes":[0-9]*' "$out/row" | head -n 1 | cut -d: -f2)
        live=$(grep -o '"peak_requested_bytes":[0-9]*' "$out/row" | head -n 1 | cut -d: -f2)
        [ "$reserved" -ge "$live" ]
        [ "$reserved" -le $((live / 100 * 101)) ]
    done
}

@test "a placement that comes with a problem is judged" {
    printf 'id,lower,upper,size,offset\na,0,2,4,0\nb,2,3,4,0\n' >"$out/right.csv"
    printf 'id,lower,upper,size,offset\na,0,2,4,0\nb,1,3,4,3\n' >"$out/overlap.csv"
    run ./fraglab trace check "$out/right.csv"
    [ "$status" -eq 0 ]
    run ./fraglab trace check "$out/overlap.csv"
    [ "$status" -eq 1 ]
    [[ "$output" == *"misplaced-buffer"*"buffers 0 and 1 are live at the same time and share bytes from 3 on"* ]]
    ./fraglab trace convert --to minimalloc "$out/overlap.csv" "$out/again.csv"
    cmp "$out/overlap.csv" "$out/again.csv"
}

@test "a recording becomes a packing problem, with every request that was served" {
    ./fraglab trace convert --to minimalloc traces/samples/gpt-varlen-oom.pickle.zst "$out/problem.csv"
    [ "$(head -n 1 "$out/problem.csv")" = id,lower,upper,size,alignment ]
    [ "$(wc -l <"$out/problem.csv")" -eq 1842 ] # 1842 requests, of which one failed, and the header
    run ./fraglab run "$out/problem.csv" --policy offline --placement "$out/out.csv"
    [ "$status" -eq 0 ]
    run ./fraglab trace check "$out/out.csv"
    [ "$status" -eq 0 ]
    run ./fraglab trace convert --to minimalloc traces/samples/model-parallel.pickle.zst "$out/two.csv"
    [ "$status" -eq 2 ]
}

@test "plots draw the packing where they are asked to" {
    trace=traces/samples/prefetch-streams.pickle.zst
    packing=$(./fraglab run $trace --policy direct --bounds --format jsonl | grep -o '"packing_bytes":[0-9]*' | cut -d: -f2)
    [ "$packing" -gt 0 ]
    for kind in timeline survival fragmentation sites bars front; do
        set -- $trace --policy best-fit
        [ $kind = sites ] && set -- $trace --by size-class
        ./fraglab plot $kind "$@" --bounds -o "$out/with.svg" --data "$out/with.csv" -f
        ./fraglab plot $kind "$@" -o "$out/without.svg" --data "$out/without.csv" -f
        grep -q "offline packing" "$out/with.svg"
        ! grep -q "offline packing" "$out/without.svg" || false
        drawn=$packing
        # A device has whole pages.
        [ $kind = survival ] && drawn=$(((packing + 2097151) / 2097152 * 2097152))
        grep -Eq ",$drawn(,|$)" "$out/with.csv"
        ! grep -q "^bound" "$out/without.csv" || false
        [ $kind = bars ] && continue
        gnuplot -e "data = '$out/with.csv'; scripts = 'plots'" plots/$kind.gp 2>/dev/null >"$out/hand.svg"
        grep -q "offline packing" "$out/hand.svg"
    done
    for kind in bars front; do
        ./fraglab plot $kind $trace --policy best-fit,tlsf --bounds --format terminal >"$out/text"
        grep -Eq "^(  bound: )?peak requested .*5.11 GiB" "$out/text"
        grep -Eq "^(  bound: )?offline packing .*5.16 GiB" "$out/text"
    done
    ./fraglab plot sites $trace --by size-class --bounds | grep -qx "offline packing: 5.16 GiB"
}

@test "bars of rows have the bounds that the rows hold" {
    trace=traces/samples/truncated.pickle.zst
    ./fraglab run $trace --policy best-fit,tlsf --bounds --format jsonl >"$out/rows"
    ./fraglab plot bars $trace --policy best-fit,tlsf --bounds --format csv >"$out/run.csv"
    ./fraglab plot bars "$out/rows" --bounds --format csv | diff - "$out/run.csv"
    [ "$(sed -n 2p "$out/run.csv" | cut -d, -f14,15)" = "$(sed -n '1s/.*"bounds":{"peak_requested_bytes":\([0-9]*\),"packing_bytes":\([0-9]*\),.*/\1,\2/p' "$out/rows")" ]
    # Not asked for, or not there.
    ./fraglab plot bars "$out/rows" --format csv | sed -n 2p | grep -q ',0,,,$'
    ./fraglab run $trace --policy best-fit --format jsonl >"$out/rows"
    run ./fraglab plot bars "$out/rows" --bounds -o "$out/a.svg"
    [ "$status" -eq 0 ]
    [ "$output" = "fraglab: warning: rows of truncated.pickle.zst hold no packing; have them made with --bounds too" ]
    grep -q "peak requested" "$out/a.svg"
    ! grep -q "offline packing" "$out/a.svg" || false
}

@test "a heat map can show how far rows are above their bounds" {
    for capacity in 2GiB 3GiB; do
        ./fraglab run traces/samples/truncated.pickle.zst --policy best-fit:grow=2MiB --policy best-fit:grow=64MiB --bounds --capacity $capacity --format jsonl
    done >"$out/rows"
    for bound in bound:peak_requested packing:packing; do
        ./fraglab plot heat "$out/rows" --x grow --y capacity --z over_${bound%:*} --format csv >"$out/csv"
        reserved=$(sed -n '1s/.*"peak":.*"reserved_bytes":\([0-9]*\),"reserved_at.*/\1/p' "$out/rows")
        bytes=$(sed -n "1s/.*\"bounds\":.*\"${bound#*:}_bytes\":\([0-9]*\),.*/\1/p" "$out/rows")
        [ "$(sed -n 2p "$out/csv" | cut -d, -f6)" = "$(awk -v a="$reserved" -v b="$bytes" 'BEGIN { printf "%.12g", a / b - 1 }')" ]
    done
    ./fraglab plot heat "$out/rows" --x grow --y capacity --z over_bound | grep -q "over bound in %"
}

@test "a plan can be given a time" {
    run timeout 1800 ./fraglab run $P/D.1048576.csv --policy offline:steps=18446744073709551614 --capacity 1000000 --plan-seconds 1
    [ "$status" -eq 0 ]
    [[ "$output" == *"no packing under the capacity was found"* ]]
}
