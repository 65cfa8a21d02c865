# fraglab plot: figures are drawn, the same each time, from data that agrees with fraglab run.

bats_require_minimum_version 1.5.0
S=traces/samples

setup() { cd "$BATS_TEST_DIRNAME/.." && out=$BATS_TEST_TMPDIR; }

# The figure of a kind as FILE, twice; both must be the same bytes.
draw() { # kind, ending, operands and options
    kind=$1 ending=$2
    shift 2
    ./fraglab plot "$kind" "$@" -q -o "$out/a.$ending"
    ./fraglab plot "$kind" "$@" -q -o "$out/b.$ending"
    cmp "$out/a.$ending" "$out/b.$ending"
    [ "$(wc -c <"$out/a.$ending")" -gt 2000 ]
    rm "$out/a.$ending" "$out/b.$ending"
}

# Runs an awk program on each line of CSV after the header; c["name"] is the number of a column.
csv() { # program
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } '"$1"
}

@test "every kind draws every format, the same bytes each time" {
    for ending in svg png pdf; do
        draw timeline $ending $S/gpt-varlen-oom.pickle.zst --policy pytorch,best-fit --capacity 4GiB
        draw map $ending $S/pr193400.pickle.zst
        draw bars $ending $S/truncated.pickle.zst $S/model-parallel.pickle.zst
        draw survival $ending $S/truncated.pickle.zst --policy pytorch,tlsf
        draw front $ending $S/truncated.pickle.zst --latency docs/latency-example.yaml
    done
}

@test "every kind draws with characters" {
    for kind in timeline map bars survival front; do
        ./fraglab plot $kind $S/truncated.pickle.zst >"$out/text"
        [ "$(wc -l <"$out/text")" -ge 10 ]
        grep -q pytorch "$out/text"
    done
    ./fraglab plot map $S/truncated.pickle.zst --width 60 --height 20 | grep -q '█'
}

# Every element is closed in order, and & begins an entity.
well_formed() {
    awk '
        { text = text $0 "\n" }
        END {
            gsub(/<\?[^>]*\?>/, "", text); gsub(/<!--[^-]*(-[^-]+)*-->/, "", text); gsub(/<!DOCTYPE[^>]*>/, "", text)
            plain = text; gsub(/&(amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);/, "", plain)
            if (index(plain, "&")) { print "a bare &"; exit 1 }
            while (match(text, /<[^>]*>/)) {
                tag = substr(text, RSTART + 1, RLENGTH - 2); text = substr(text, RSTART + RLENGTH)
                if (tag ~ /\/$/) continue
                split(tag, word, /[ \t\n]/)
                if (tag !~ /^\//) stack[++depth] = word[1]
                else if (depth == 0 || "/" stack[depth--] != word[1]) { print "unexpected " tag; exit 1 }
            }
            if (depth != 0) { print "open: " stack[depth]; exit 1 }
        }' "$1"
}

@test "an svg is well formed and carries no date or folder" {
    ./fraglab plot timeline $S/truncated.pickle.zst --title "a < b & 'c' \"d\" {e}_f" -o "$out/a.svg"
    well_formed "$out/a.svg"
    ! grep -q "$(date +%Y)-\|/tmp/\|$PWD" "$out/a.svg"
    grep -q "a &lt; b &amp; 'c'" "$out/a.svg"
}

@test "peaks of a timeline are those of the run" {
    for trace in $S/gpt-varlen-oom.pickle.zst $S/truncated.pickle.zst $S/unet.pickle.zst; do
        for samples in 10 500 1000000; do
            ./fraglab plot timeline $trace --policy pytorch --format csv --samples $samples >"$out/csv"
            drawn=$(csv '$c["kind"] == "policy" && $c["reserved_bytes"] > most { most = $c["reserved_bytes"] } END { printf "%.0f", most }' <"$out/csv")
            ran=$(./fraglab run $trace --policy pytorch --format csv | csv '{ printf "%.0f", $c["peak.reserved_bytes"] }')
            [ "$drawn" = "$ran" ]
            asked=$(csv '$c["kind"] == "demand" && $c["requested_bytes"] > most { most = $c["requested_bytes"] } END { printf "%.0f", most }' <"$out/csv")
            [ "$asked" = "$(./fraglab run $trace --policy direct --format csv | csv '{ printf "%.0f", $c["trace.peak_requested_bytes"] }')" ]
        done
    done
}

@test "an OOM is in the data where the run has it" {
    ./fraglab plot timeline $S/gpt-varlen-oom.pickle.zst --policy best-fit --capacity 4GiB --format csv >"$out/csv"
    at=$(csv '$c["kind"] == "oom" { print $c["event"] }' <"$out/csv")
    [ -n "$at" ]
    [ "$at" = "$(./fraglab run $S/gpt-varlen-oom.pickle.zst --policy best-fit --capacity 4GiB --format csv | csv '{ print $c["oom.event"] }')" ]
}

@test "blocks of a map lie in segments, apart, and add up to what was allocated" {
    ./fraglab plot map $S/truncated.pickle.zst --policy best-fit --format csv >"$out/csv"
    ./fraglab plot timeline $S/truncated.pickle.zst --policy best-fit --format csv --samples 1000000 >"$out/levels"
    for event in 200 600 1000; do
        held=$(csv '$c["begin_event"] <= '$event' && $c["end_event"] > '$event' { sum[$1] += $c["bytes"] } END { printf "%.0f %.0f", sum["segment"], sum["block"] }' <"$out/csv")
        level=$(csv '$c["kind"] == "policy" && $c["event"] <= '$event' { r = $c["reserved_bytes"]; a = $c["active_bytes"] } END { printf "%.0f %.0f", r, a }' <"$out/levels")
        [ "$held" = "$level" ]
        # Sorted by offset, each block begins where the one before has ended, or later.
        csv '$1 == "block" && $c["begin_event"] <= '$event' && $c["end_event"] > '$event' { print $c["offset_bytes"], $c["bytes"] }' <"$out/csv" |
            sort -n | awk '$1 < end { exit 1 } { end = $1 + $2 }'
    done
}

@test "bars from rows are bars from the trace" {
    ./fraglab run $S/truncated.pickle.zst --policy pytorch,tlsf --format jsonl >"$out/rows.jsonl"
    ./fraglab plot bars "$out/rows.jsonl" --format csv >"$out/rows.csv"
    ./fraglab plot bars $S/truncated.pickle.zst --policy pytorch,tlsf --format csv | diff - "$out/rows.csv"
    ./fraglab plot bars - --format csv <"$out/rows.jsonl" | diff - "$out/rows.csv"
    csv '{ sum = 0; for (i = c["requested_bytes"]; i <= c["page_slack_bytes"]; i++) sum += $i; if (sum != $c["reserved_bytes"]) exit 1 }' <"$out/rows.csv"
}

@test "the points of a front are rows of runs, and its policies are those that none beats" {
    printf '%s\n' "name: Test" "calls:" "  malloc: {base_us: 30}" "  free: {base_us: 40}" "  map: {base_us: 90}" \
        "  unmap: {base_us: 100}" >"$out/latency.yaml"
    for latency in "" "--latency $out/latency.yaml"; do
        # What runs out of memory, and what sees the trace first, is on no front and beats none.
        ./fraglab plot front $S/unet.pickle.zst $latency --format csv >"$out/front.csv"
        ./fraglab run $S/unet.pickle.zst --policy all $latency --format csv >"$out/rows.csv"
        csv '{ print $c["policy"], $c["reserved_bytes"], $c["time_ns"], $c["is_oom"] }' <"$out/front.csv" >"$out/points"
        csv '{ print $c["policy.label"], $c["peak.reserved_bytes"], $c["device_calls.modelled_time_ns"], $c["oom.event"] != "" ? 1 : 0 }' \
            <"$out/rows.csv" | diff - "$out/points"
        csv '{ cost[NR] = $c["time_ns"] != "" ? $c["time_ns"] : $c["calls"]; held[NR] = $c["reserved_bytes"]
               oom[NR] = $c["is_oom"] || $c["policy"] ~ /^(offline|planned)$/; front[NR] = $c["is_front"] }
             END { for (i = 2; i <= NR; i++) {
                 beaten = oom[i]
                 for (j = 2; j <= NR; j++)
                     if (!oom[j] && held[j] <= held[i] && cost[j] <= cost[i] && (held[j] < held[i] || cost[j] < cost[i])) beaten = 1
                 if (front[i] == beaten) exit 1
                 on += front[i] } if (on < 2) exit 1 }' <"$out/front.csv"
    done
    gnuplot -e "data = '$out/front.csv'; scripts = 'plots'" plots/front.gp >"$out/hand.svg"
    grep -q '>frugal<' "$out/hand.svg"
}

@test "a survival curve is what single runs say, and marks what min-capacity finds" {
    ./fraglab plot survival $S/truncated.pickle.zst --policy tlsf --format csv >"$out/csv"
    least=$(csv '$c["kind"] == "least" { print $c["capacity_bytes"] }' <"$out/csv")
    ./fraglab min-capacity $S/truncated.pickle.zst --policy tlsf | grep -qF "$least bytes"
    count=0
    while IFS=, read -r capacity event; do
        [ "$event" = "$(./fraglab run $S/truncated.pickle.zst --policy tlsf --capacity "$capacity" --format csv | csv '{ print $c["oom.event"] }')" ]
        count=$((count + 1))
    done < <(csv '$c["kind"] == "curve" { print $c["capacity_bytes"] "," $c["oom_event"] }' <"$out/csv" | awk 'NR % 9 == 1')
    [ "$count" -ge 2 ]
}

@test "the data can be kept beside the figure, and drawn by hand" {
    ./fraglab plot timeline $S/truncated.pickle.zst --data "$out/t.csv" -o "$out/t.svg"
    ./fraglab plot timeline $S/truncated.pickle.zst --format csv | diff - "$out/t.csv"
    gnuplot -e "data = '$out/t.csv'; scripts = 'plots'" plots/timeline.gp >"$out/hand.svg"
    grep -q '</svg>' "$out/hand.svg"
}

@test "a figure does not replace another unless told to" {
    echo old >"$out/a.svg"
    run -2 ./fraglab plot bars $S/truncated.pickle.zst -o "$out/a.svg"
    [ "$(cat "$out/a.svg")" = old ]
    ./fraglab plot bars $S/truncated.pickle.zst -f -o "$out/a.svg"
    grep -q '</svg>' "$out/a.svg"
}

@test "without gnuplot the package is named and nothing is written" {
    run -4 env PATH="$out" "$PWD/fraglab" plot bars $S/truncated.pickle.zst -o "$out/a.svg"
    [[ $output == *gnuplot-nox* ]]
    [ ! -e "$out/a.svg" ]
    PATH="$out" "$PWD/fraglab" plot bars $S/truncated.pickle.zst --format csv >"$out/data"
}

@test "what cannot be drawn is refused in one sentence" {
    refused() { # exit code, words, command
        code=$1 words=$2
        shift 2
        run ./fraglab plot "$@"
        echo "$output"
        [ "$status" -eq "$code" ] && [[ $output == *"$words"* ]] && [ "${#lines[@]}" -eq 1 ]
    }
    refused 2 "did you mean 'timeline'" timelin $S/truncated.pickle.zst
    refused 2 "--format" timeline $S/truncated.pickle.zst -o "$out/a.jpg"
    refused 2 "one policy" map $S/truncated.pickle.zst --policy all
    refused 2 "--capacity" survival $S/truncated.pickle.zst --capacity 1GiB
    refused 2 "no device 7" timeline $S/truncated.pickle.zst --trace-device 7
    refused 2 "no times" timeline <(printf '# fraglab trace 1\nalloc 0 512\nfree 0\n') --x time
    refused 2 "--latency FILE" front $S/truncated.pickle.zst --by time
    refused 3 "requests nothing" front <(printf '# fraglab trace 1\n')
    refused 3 "every policy runs out" front $S/truncated.pickle.zst --capacity 1MiB
    refused 3 "no events" timeline <(printf '# fraglab trace 1\n')
    refused 3 "nothing was ever held" map <(printf '# fraglab trace 1\n')
    refused 3 "requests nothing" survival <(printf '# fraglab trace 1\n')
    ./fraglab run $S/truncated.pickle.zst --policy pytorch --format jsonl >"$out/rows"
    echo '{"trace": {"name": "x"}}' >>"$out/rows"
    refused 3 "rows:2: the row has no" bars "$out/rows"
    refused 3 "no JSON object" bars <(printf '{"trace": ')
    refused 3 "no-such-file" timeline $S/no-such-file
}

@test "odd names reach the figure as they are" {
    cp $S/pr193400.pickle.zst "$out/it's a %d {^x} \`date\` \"q\".zst"
    ./fraglab plot timeline "$out/it's a %d {^x} \`date\` \"q\".zst" --policy pytorch --label "l'abel @x \`id\` _{y}" -o "$out/a.svg"
    grep -qF "l'abel @x \`id\` _{y}" "$out/a.svg"
    grep -qF "%d {^x} \`date\`" "$out/a.svg"
}

@test "a block of a map ends where its policy may use the place again" {
    # A block that another stream uses: pytorch learns at its next request that the stream is done.
    printf '# fraglab trace 1\nalloc 0 1048576 stream=0\nuse 0 stream=1\nfree 0\nalloc 1 3000000 stream=0\nsync stream=1\nalloc 2 1000000 stream=0\n' >"$out/trace"
    for expected in "pytorch 5" "best-fit 4"; do
        ./fraglab plot map "$out/trace" --policy "${expected% *}" --format csv >"$out/csv"
        [ "$(csv '$1 == "block" && $c["begin_event"] == 0 { print $c["end_event"] }' <"$out/csv")" = "${expected#* }" ]
    done
}

@test "traces of one event are drawn, and traces with nothing to draw are told" {
    one=$BATS_TEST_TMPDIR/one.trace
    printf '# fraglab trace 1\nalloc 0 1048576\n' >"$one"
    for kind in timeline map bars survival front; do
        ./fraglab plot $kind "$one" --policy pytorch -f -o "$BATS_TEST_TMPDIR/one.svg"
        ./fraglab plot $kind "$one" --policy pytorch --format terminal >/dev/null
    done
    printf '# fraglab trace 1\nmark "step"\n' >"$one"
    for kind in map bars survival front; do
        status=0
        ./fraglab plot $kind "$one" --policy pytorch -f -o "$BATS_TEST_TMPDIR/none.svg" 2>"$BATS_TEST_TMPDIR/err" || status=$?
        [ "$status" -eq 3 ]
        grep -q "there is no" "$BATS_TEST_TMPDIR/err"
    done
    [ ! -e "$BATS_TEST_TMPDIR/none.svg" ]
}
