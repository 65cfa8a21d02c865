# fraglab plot: figures are drawn, the same each time, from data that agrees with fraglab run.

bats_require_minimum_version 1.5.0
S=traces/samples

setup() { cd "$BATS_TEST_DIRNAME/../.." && out=$BATS_TEST_TMPDIR; }

# Two figures are the same bytes. A pdf of cairo 1.17.6 or newer says inside a compressed stream when it was
# made, so its streams are compared without that.
same() { # file, file
    if grep -aq /ObjStm "$1"; then
        python3 tests/plots/same_pdf.py "$1" "$2"
    else
        cmp "$1" "$2"
    fi
}

# The figure of a kind as FILE, twice; both must be the same.
draw() { # kind, ending, operands and options
    kind=$1 ending=$2
    shift 2
    ./fraglab plot "$kind" "$@" -q -o "$out/a.$ending"
    ./fraglab plot "$kind" "$@" -q -o "$out/b.$ending"
    same "$out/a.$ending" "$out/b.$ending"
    [ "$(wc -c <"$out/a.$ending")" -gt 2000 ]
    rm "$out/a.$ending" "$out/b.$ending"
}

# Runs an awk program on each line of CSV after the header; c["name"] is the number of a column.
csv() { # program
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } '"$1"
}

@test "a name or title that is no UTF-8 still makes an svg that opens" {
    cp $S/pr193400.pickle.zst "$out/"$'a\xff.pickle.zst'
    for title in "" --title=$'\xfe and \xef\xbf\xbf'; do
        ./fraglab plot bars "$out/"$'a\xff.pickle.zst' --policy pytorch ${title:+"$title"} -f -o "$out/a.svg"
        python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$out/a.svg"
    done
}

@test "a number of threads that is none is refused, not run into" {
    for kind in bars survival; do
        for jobs in x 0 5000; do
            run -2 --separate-stderr ./fraglab plot "$kind" $S/pr193400.pickle.zst --format csv --jobs "$jobs"
            [[ $stderr == *"--jobs: "*"expected 1 to 4096"* ]]
        done
    done
}

@test "every kind draws every format, the same bytes each time" {
    for ending in svg png pdf; do
        draw timeline $ending $S/gpt-varlen-oom.pickle.zst --policy pytorch,best-fit --capacity 4GiB
        draw map $ending $S/pr193400.pickle.zst
        draw bars $ending $S/truncated.pickle.zst $S/model-parallel.pickle.zst
        draw survival $ending $S/truncated.pickle.zst --policy pytorch,tlsf
        draw front $ending $S/truncated.pickle.zst --latency docs/latency-example.yaml
        draw sites $ending $S/gpt-train.pickle.zst
        draw flame $ending $S/gpt-train.pickle.zst
        draw treemap $ending $S/gpt-train.pickle.zst
        draw ranks $ending $S/model-parallel.pickle.zst --capacity 8GiB
        draw fragmentation $ending $S/gpt-varlen-oom.pickle.zst --capacity 4GiB
    done
}

# A pdf says when it was made.
undated() { # file
    sed -i -E 's/\(D:[0-9]{14}/(D:19700101000000/' "$1"
}

@test "a script draws the same figure without fraglab, from any folder" {
    for ending in svg png pdf; do
        for kind in timeline map bars survival front fragmentation flame treemap sites; do
            ./fraglab plot $kind $S/truncated.pickle.zst -q -f -o "$out/a.$ending" --script "$out/a.gp"
            ./fraglab plot $kind $S/truncated.pickle.zst -q -f --format $ending --script "$out/alone.gp"
            cmp "$out/a.gp" "$out/alone.gp"
            ! grep -q "$PWD\|$out" "$out/a.gp" || false
            (cd / && env -i PATH="$PATH" LC_ALL=C.UTF-8 gnuplot "$out/a.gp" >"$out/b.$ending" 2>/dev/null)
            undated "$out/b.$ending"
            same "$out/a.$ending" "$out/b.$ending"
        done
    done
    ./fraglab plot sites $S/truncated.pickle.zst -q --format pdf --script - | diff - "$out/a.gp"
}

@test "what a script would be told by a name stays data" {
    # Labels that would end the data, or a string, and go on with a command.
    for label in END_OF_DATA "\";system('touch $out/told');print \"" "\`touch $out/told\`"; do
        ./fraglab plot timeline $S/truncated.pickle.zst --policy pytorch --label "$label" -q -f -o "$out/a.svg" --script "$out/a.gp"
        gnuplot "$out/a.gp" >"$out/b.svg" 2>/dev/null
        cmp "$out/a.svg" "$out/b.svg"
    done
    # A label of a row that ends the data and goes on with a command.
    ./fraglab run $S/truncated.pickle.zst --policy pytorch --format jsonl |
        sed 's/"label":"pytorch"/"label":"x\\nEND_OF_DATA\\nsystem(\\"touch ..\/told\\")\\nprint 1"/' >"$out/rows"
    mkdir "$out/there"
    ./fraglab plot bars "$out/rows" -q -f -o "$out/a.svg" --script "$out/a.gp"
    grep -q '^truncated.*END_OF_DATA' "$out/a.gp"
    (cd "$out/there" && gnuplot "$out/a.gp" >"$out/b.svg" 2>/dev/null)
    cmp "$out/a.svg" "$out/b.svg"
    [ ! -e "$out/told" ]
}

@test "every kind draws with characters" {
    for kind in timeline map bars survival front fragmentation sites; do
        ./fraglab plot $kind $S/truncated.pickle.zst >"$out/text"
        [ "$(wc -l <"$out/text")" -ge 10 ]
        grep -q 'pytorch\|truncated.pickle.zst, requested' "$out/text"
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
    ! grep -q "$(date +%Y)-\|/tmp/\|$PWD" "$out/a.svg" || false
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

# What the segments and blocks of a map leave free at an event: all, the largest hole, and what lies
# in holes smaller than each size. Mapped pieces that follow one another are one segment.
free_by_map() { # event, CSV of the map, sizes, whether segments are mapped pieces
    csv '$c["begin_event"] <= '"$1"' && $c["end_event"] > '"$1"' { print $c["address"], ($1 == "segment" ? 0 : 1), $c["bytes"] }' <"$2" |
        sort -k1,1n -k2,2n | awk -v sizes="$3" -v joins="$4" '
            function hole(bytes) {
                if (bytes <= 0) return
                free += bytes; count++; if (bytes > largest) largest = bytes
                for (i = 1; i <= n; i++) if (bytes < size[i]) small[i] += bytes }
            BEGIN { n = split(sizes, size, " ") }
            $2 == 0 && joins && $1 == end { end += $3; next }
            $2 == 0 { hole(end - at); at = $1; end = $1 + $3 }
            $2 == 1 { hole($1 - at); at = $1 + $3 }
            END { hole(end - at); printf "%.0f %.0f %d", free, largest, count
                  for (i = 1; i <= n; i++) printf " %.0f", small[i] }'
}

@test "the holes of a figure of fragmentation are what a map leaves free" {
    sizes="20000 1000000 2097152 20971520"
    for policy in best-fit pytorch tlsf; do
        joins=$([ $policy = pytorch ] || echo 1)
        ./fraglab plot map $S/truncated.pickle.zst --policy $policy --format csv >"$out/map"
        ./fraglab plot fragmentation $S/truncated.pickle.zst --policy $policy --sizes "${sizes// /,}" --samples 1000000 --format csv >"$out/csv"
        for event in 250 600 611 1000 1200; do
            drawn=$(csv '$1 == "sample" && $c["event"] <= '$event' { row = $c["free_bytes"] " " $c["largest_hole_bytes"] " " $c["hole_count"]; for (i = 13; i <= 16; i++) row = row " " $i } END { print row }' <"$out/csv")
            echo "$policy $event: $drawn"
            [ "$drawn" = "$(free_by_map $event "$out/map" "$sizes" "$joins")" ]
        done
    done
}

@test "thinned samples of fragmentation lose no extreme, and agree with the run" {
    ./fraglab plot fragmentation $S/unet.pickle.zst --format csv >"$out/few"
    ./fraglab plot fragmentation $S/unet.pickle.zst --format csv --samples 1000000 >"$out/all"
    ends() { # figures of a sample: their extremes
        csv '$1 == "sample" { v[1] = $c["reserved_bytes"]; v[2] = $c["largest_hole_bytes"]; v[3] = $c["free_bytes"]
               v[4] = $c["allocated_bytes"] / $c["reserved_bytes"]; for (i = 13; i <= NF; i++) v[i - 8] = v[3] > 0 ? $i / v[3] : 0
               for (i in v) { if (!(i in low) || v[i] < low[i]) low[i] = v[i]; if (!(i in high) || v[i] > high[i]) high[i] = v[i] } }
             END { for (i = 1; i in low; i++) printf "%.6g %.6g\n", low[i], high[i] }' <"$1"
    }
    ends "$out/few" | diff - <(ends "$out/all")
    [ "$(ends "$out/few" | wc -l)" -ge 6 ]
    [ "$(wc -l <"$out/few")" -lt "$(wc -l <"$out/all")" ]
    ./fraglab run $S/unet.pickle.zst --policy pytorch --format csv >"$out/run"
    csv '{ print $c["peak.reserved_at_event"], $c["fragmentation.largest_hole_at_peak_bytes"], $c["fragmentation.holes_at_peak"] }' <"$out/run" >"$out/peak"
    csv '$1 == "sample" { print $c["event"], $c["largest_hole_bytes"], $c["hole_count"] }' <"$out/all" | grep -qxFf "$out/peak"
}

@test "holes at the peak are those of the run, under every policy" {
    ./fraglab run $S/truncated.pickle.zst --policy all --format csv >"$out/run"
    count=0
    while IFS=, read -r policy event largest holes free; do
        ./fraglab plot fragmentation $S/truncated.pickle.zst --policy "$policy" --samples 1000000 --format csv >"$out/csv"
        drawn=$(csv '$1 == "sample" && $2 == '"$event"' { print $c["largest_hole_bytes"] "," $c["hole_count"] "," $c["free_bytes"] }' <"$out/csv")
        echo "$policy: $drawn"
        [ "$drawn" = "$largest,$holes,$free" ]
        count=$((count + 1))
    done < <(csv '$c["oom.event"] == "" { printf "%s,%s,%s,%s,%.0f\n", $c["policy.name"], $c["peak.reserved_at_event"], $c["fragmentation.largest_hole_at_peak_bytes"],
                    $c["fragmentation.holes_at_peak"], $c["decomposition_at_peak.holes_bytes"] + $c["decomposition_at_peak.cached_bytes"] }' <"$out/run")
    [ "$count" -ge 20 ]
}

@test "a cell of the strip is the mean of its column" {
    ./fraglab plot fragmentation $S/unet.pickle.zst --sizes 4MiB --samples 1000000 --format csv >"$out/csv"
    # Columns of equal width over events; each layout lasts from its event to the next.
    csv '$1 == "sample" { share[$c["event"]] = $c["free_bytes"] > 0 ? $13 / $c["free_bytes"] : -1; last = $c["event"] }
         $1 == "strip" && $c["size_bytes"] == 4194304 { at[cells++] = $c["event"]; mean[cells - 1] = $c["unusable_ratio"] }
         END { width = at[1] - at[0]
               for (k = 3; k < cells; k += 40) {
                   sum = 0; length_ = 0
                   for (e = int(at[k]); e < at[k] + width && e < last; e++) {
                       from = e > at[k] ? e : at[k]; to = e + 1 < at[k] + width ? e + 1 : at[k] + width
                       if (share[e] >= 0) { sum += (to - from) * share[e]; length_ += to - from } }
                   d = sum / length_ - mean[k]; if (d > 2e-4 || d < -2e-4) { print k, sum / length_, mean[k]; exit 1 } checked++ }
               if (checked < 5) exit 1 }' <"$out/csv"
}

@test "layers add up to what is requested, and are what lived then" {
    for by in site purpose stream pool size-class; do
        ./fraglab plot sites $S/gpt-train.pickle.zst -q --by $by --top 3 --format csv >"$out/csv"
        csv '$1 == "sample" { sum = 0; for (i = 7; i <= NF; i++) sum += $i; if (sum != $4) exit 1; if (sum > most) most = sum }
             $1 == "layer" { peak += $4; layers++ }
             END { if (layers > 4 || most != peak) exit 1; printf "%.0f\n", most }' <"$out/csv" >"$out/most"
        [ "$(cat "$out/most")" = "$(./fraglab run $S/gpt-train.pickle.zst --policy direct --format csv | csv '{ printf "%.0f", $c["trace.peak_requested_bytes"] }')" ]
    done
    # By size, at one event, against the blocks of a map.
    ./fraglab plot map $S/truncated.pickle.zst --policy direct --format csv >"$out/map"
    ./fraglab plot sites $S/truncated.pickle.zst --by size-class --top 20 --samples 1000000 --format csv >"$out/csv"
    for event in 300 700 1100; do
        csv '$1 == "block" && $c["begin_event"] <= '$event' && $c["end_event"] > '$event' { size = 1; while (size < $c["requested_bytes"]) size *= 2; sum[size] += $c["requested_bytes"] }
             END { for (size in sum) if (size + 0 >= 65536) printf "%.0f %.0f\n", size, sum[size] }' <"$out/map" | sort -n >"$out/lived"
        csv '$1 == "layer" && $c["name"] != "other" { split($c["name"], word, " "); unit["B"] = 1; unit["KiB"] = 1024; unit["MiB"] = 1048576; unit["GiB"] = 1073741824
                 size[$c["layer"]] = word[2] * unit[word[3]] }
             $1 == "sample" && $2 <= '$event' { row = $0 }
             END { split(row, field, ","); for (i in size) if (size[i] >= 65536 && field[6 + i] > 0) printf "%.0f %.0f\n", size[i], field[6 + i] }' <"$out/csv" | sort -n | diff "$out/lived" -
    done
}

@test "a flame graph holds what the stacks hold" {
    printf '%s\n' '# fraglab trace 1' 'frame "main" "/home/me/train.py" 10' 'frame "step" "/home/me/train.py" 20' \
        'frame "forward, <b>" "/home/me/model.py" 30' 'site 1 0' 'site 2 1 0' 'alloc 0 1000 site=1' 'alloc 1 3000 site=2' 'alloc 2 1 site=2' \
        'alloc 3 500' 'free 1' 'alloc 4 2000 site=2' >"$out/trace"
    ./fraglab plot flame "$out/trace" --format csv | cut -d, -f1-3 >"$out/csv"
    # All; main, its step, which holds some itself below forward; what has no stack.
    diff - "$out/csv" <<'CSV'
level,left_bytes,bytes
0,0,4501
1,0,4001
2,0,4001
3,0,3001
1,4001,500
CSV
    ./fraglab plot flame "$out/trace" --at 4 --format csv | cut -d, -f1-3 | tail -n +2 >"$out/csv"
    [ "$(awk -F, '$1 == 0 { print $3 }' "$out/csv")" = 1501 ]
    ./fraglab plot flame "$out/trace" | grep -Eq '^ 66\.7% +2\.93 KiB +forward, <b> \(model\.py:30\)$'
    ./fraglab plot flame "$out/trace" -o "$out/a.svg"
    well_formed <"$out/a.svg"
    # Frames of one level lie side by side in those below, at any event of a recording.
    for at in 500 3146 9000; do
        ./fraglab plot flame $S/gpt-train.pickle.zst --at $at --format csv >"$out/csv"
        csv '{ level = $1 + 0; left = $2; end = left + $3
               if (level > 0 && (left < from[level - 1] || end > to[level - 1])) exit 1
               if (level in to && left < to[level] && left >= from[level]) exit 1
               from[level] = left; to[level] = end }' <"$out/csv"
        held=$(./fraglab run $S/gpt-train.pickle.zst --policy pytorch --stats-at $at --format jsonl |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["memory_stats"]["requested_bytes.all.current"])')
        [ "$(csv '$1 == 0 { print $3 }' <"$out/csv")" = "$held" ]
    done
    run -2 ./fraglab plot flame "$out/trace" --at 99
    [[ "$output" == *"--at"*"there is no event 99; the trace has 6"* ]]
    run -2 ./fraglab plot flame "$out/trace" --at step
    [[ "$output" == *"--at"*"'step' is not in the trace, which has no marks; expected peak, end"* ]]
}

@test "a flame graph takes names that are empty or long, and many frames of one caller" {
    python3 - >"$out/trace" <<'END'
print('# fraglab trace 1\nframe "" "" 0\nsite 0\nalloc 0 1500 site=1')
print('frame "%s" "" 0\nsite 1\nalloc 1 500 site=2' % ("n" * 300000))
for i in range(60000):
    print('frame "f%d" "" 0\nsite %d\nalloc %d 1 site=%d' % (i, i + 2, i + 2, i + 3))
END
    # A fraction of a second of the processor, where the square of these would take minutes.
    (ulimit -t 20 && ./fraglab plot flame "$out/trace" --format csv) >"$out/csv"
    grep -q ',1500,0.024[0-9]*,[0-9]*,no name,' "$out/csv"
    grep -q '^1,.*,500,0.008[0-9]*,[0-9]*,nnnn' "$out/csv"
    grep -q '^1,.*,60000,0.96[0-9]*,0,small ones,' "$out/csv"
}

@test "a treemap gives each frame an area in its caller's" {
    for at in 500 3146 9000; do
        ./fraglab plot treemap $S/gpt-train.pickle.zst --at $at --format csv >"$out/csv"
        ./fraglab plot flame $S/gpt-train.pickle.zst --at $at --format csv >"$out/flame"
        [ "$(csv '$1 == 0 { print $c["bytes"] }' <"$out/csv")" = "$(csv '$1 == 0 { print $c["bytes"] }' <"$out/flame")" ]
        # Every rectangle lies in one of the level below, the last that was written, and in no other of its level there.
        csv '{ level = $1 + 0; l = $2; r = $3; b = $4; t = $5; bytes = $c["bytes"]
               if (l > r || b > t) { print "turned: " $0; exit 1 }
               if (level > 0 && (l < left[level - 1] - .01 || r > right[level - 1] + .01 || b < low[level - 1] - .01 || t > high[level - 1] + .01)) { print "outside: " $0; exit 1 }
               if (level > 0 && bytes > of[level - 1]) { print "more than its caller: " $0; exit 1 }
               for (i = 1; i <= beside[level]; i++)
                   if (l < R[level, i] - .02 && r > L[level, i] + .02 && b < T[level, i] - .02 && t > B[level, i] + .02) { print "over another: " $0; exit 1 }
               i = ++beside[level]; L[level, i] = l; R[level, i] = r; B[level, i] = b; T[level, i] = t
               for (deeper = level + 1; deeper <= deepest; deeper++) beside[deeper] = 0
               deepest = level > deepest ? level : deepest
               left[level] = l; right[level] = r; low[level] = b; high[level] = t; of[level] = bytes
               # Beside each other, an area for each byte.
               if (level == 1) { area = (r - l) * (t - b) / bytes; if (first == 0) first = area
                                 if (area / first > 1.01 || first / area > 1.01) { print "area: " $0; exit 1 } }
               count++ }
             END { if (count < 5) { print "only " count; exit 1 } }' <"$out/csv"
    done
    # main called only step, which is told in its place.
    printf '%s\n' '# fraglab trace 1' 'frame "main" "a.py" 1' 'frame "step" "a.py" 2' 'frame "one" "a.py" 3' 'frame "two" "a.py" 4' \
        'site 2 1 0' 'site 3 1 0' 'alloc 0 3000 site=1' 'alloc 1 1000 site=2' >"$out/trace"
    ./fraglab plot treemap "$out/trace" --format csv | csv '{ print $1, $c["bytes"], $c["name"] }' >"$out/csv"
    diff - "$out/csv" <<'ROWS'
0 4000 step (a.py:2)
1 3000 one (a.py:3)
1 1000 two (a.py:4)
ROWS
    ./fraglab plot treemap "$out/trace" | grep -Eq '^ 75\.0% +2\.93 KiB +one \(a\.py:3\)$'
    # A figure that is all title has room for no rectangle in it.
    ./fraglab plot treemap "$out/trace" --width 800 --height 100 -o "$out/a.svg"
    well_formed <"$out/a.svg"
}

@test "a flame graph holds what is held at a mark" {
    printf '%s\n' '# fraglab trace 1' 'frame "main" "/home/me/train.py" 10' 'site 0' \
        'mark "step" begin' 'alloc 0 1000 site=1' 'alloc 1 200 site=1' 'free 1' 'mark "step" end' \
        'mark "step" begin' 'alloc 2 30 site=1' 'free 0' 'mark "step" end' 'alloc 3 4 site=1' >"$out/trace"
    while read -r at bytes; do
        held=$(./fraglab plot flame "$out/trace" --at "$at" --format csv | csv '$1 == 0 { print $3 }')
        [ "$held" = "$bytes" ] || { echo "--at $at: $held, not $bytes" >&2; false; }
    done <<'PLACES'
peak 1200
end 34
3 1000
5..7 1030
step 1200
step[1] 1200
step[2] 1030
PLACES
    run -2 ./fraglab plot flame "$out/trace" --at 'step[3]'
    [[ "$output" == *"there are 2 marks 'step', and no [3]"* ]]
}

@test "purposes are those that call stacks show" {
    printf '%s\n' '# fraglab trace 1' 'frame "_apply" "/venv/torch/nn/modules/module.py" 900' 'frame "step" "/venv/torch/optim/adam.py" 20' \
        'frame "forward" "/home/me/model.py" 30' 'frame "helper" "/home/me/model.py" 40' 'site 0' 'site 3 1' 'site 3 2' 'site 3' \
        'alloc 0 1000 site=1' 'alloc 1 200 site=2' 'alloc 2 30 site=3' 'alloc 3 4 site=4' >"$out/trace"
    ./fraglab plot sites "$out/trace" --by purpose --format csv | csv '$1 == "layer" && $4 > 0 { print $6, $4 }' >"$out/layers"
    printf '%s\n' "weights 1000" "optimizer 200" "activations 30" "unknown 4" | sort | diff - <(sort "$out/layers")
    ./fraglab plot sites "$out/trace" --by purpose | grep -Eq 'a +81\.0% +1000 B +weights$'
}

@test "call sites of PyTorch's own stacks are lines of the program, and what runs backward" {
    names() {
        ./fraglab plot sites "tests/data/recordings/stacks-$1-2.9.pickle.zst" -q --format csv --samples 10 --top 20 |
            sed -n 's/^layer,[^,]*,[^,]*,\([0-9]*\),[0-9]*,\([^,]*\).*/\1 \2/p' | head -n "$2"
    }
    [ "$(names all 10)" = "9568256 forward (model.py:11)
8798208 backward of Addmm
279616 <module> (train.py:16)
279616 step (train.py:12)
65536 step (train.py:9)
0 backward of Relu
0 backward of Pow
0 forward (model.py:12)
0 backward of Mean
1088 autograd thread" ]
    [ "$(names python 3)" = "9568256 forward (model.py:11)
8799296 autograd thread (no Python st…
279616 <module> (train.py:16)" ]
}

@test "names of call sites are cut short, and may hold anything" {
    printf '%s\n' '# fraglab trace 1' 'frame "inner" "/usr/lib/python3/site-packages/torch/nn/linear.py" 10' \
        'frame "a_function_with_a_name_longer_than_any_legend_has_room_for" "/home/me/my_model_definition.py" 123' \
        "frame \"it's \\n \\\"a\\\", \\xff\\x1b[31m @x \`id\` %d {^y}\" \"e v i l.py\" 7" 'site 0 1' 'site 2' \
        'alloc 0 3000000 site=1' 'alloc 1 2000000 site=2' 'alloc 2 1000000' >"$out/trace"
    ./fraglab plot sites "$out/trace" --format csv >"$out/csv"
    grep -q '^layer,2,,3000000,1,a_function_… (…inition.py:123)' "$out/csv"
    grep -qF "it's" "$out/csv"
    ! grep -q "$(printf '\033')" "$out/csv" || false
    [ "$(csv '$1 == "sample"' <"$out/csv" | wc -l)" -eq 3 ]
    ./fraglab plot sites "$out/trace" -q -o "$out/a.svg" --script "$out/a.gp"
    gnuplot "$out/a.gp" | cmp - "$out/a.svg"
    well_formed "$out/a.svg"
}

@test "bars from rows are bars from the trace" {
    ./fraglab run $S/truncated.pickle.zst --policy pytorch,tlsf --format jsonl >"$out/rows.jsonl"
    ./fraglab plot bars "$out/rows.jsonl" --format csv >"$out/rows.csv"
    ./fraglab plot bars $S/truncated.pickle.zst --policy pytorch,tlsf --format csv | diff - "$out/rows.csv"
    ./fraglab plot bars - --format csv <"$out/rows.jsonl" | diff - "$out/rows.csv"
    csv '{ sum = 0; for (i = c["requested_bytes"]; i <= c["page_slack_bytes"]; i++) sum += $i; if (sum != $c["reserved_bytes"]) exit 1 }' <"$out/rows.csv"
}

# Rows of a sweep of two options, as $out/rows.
sweep_rows() {
    printf '%s\n' 'name: grid' "traces: [$PWD/$S/gpt-varlen.pickle.zst]" 'policies:' '  - policy: pytorch' '    options:' \
        '      max_split_size_mb: [unlimited, {from: 128, to: 512, factor: 2}]' 'capacities: [8GiB, 6GiB, unlimited]' >"$out/e.yaml"
    ./fraglab sweep "$out/e.yaml" -q -f -o "$out/rows"
}

@test "the cells of a heat map are single runs, in order of their values" {
    sweep_rows
    ./fraglab plot heat "$out/rows" --x policy.max_split_size_mb --y capacity --z peak_reserved --format csv >"$out/csv"
    [ "$(csv '{ printf "%s ", $4 }' <"$out/csv" | cut -d" " -f1-4)" = "128 256 512 unlimited" ]
    [ "$(csv '$2 == 0 { printf "%s,", $5 }' <"$out/csv")" = "6 GiB,8 GiB,unlimited," ]
    cells=0
    while IFS=, read -r kind split capacity z event; do
        ./fraglab run $S/gpt-varlen.pickle.zst --policy "pytorch:max_split_size_mb=$split" --capacity "${capacity// /}" --format csv >"$out/run"
        [ "$event" = "$(csv '{ print $c["oom.event"] }' <"$out/run")" ]
        if [ "$kind" = value ]; then
            [ "$z" = "$(csv '{ print $c["peak.reserved_bytes"] }' <"$out/run")" ]
        else
            [ "$kind" = oom ] && [ -z "$z" ]
        fi
        cells=$((cells + 1))
    done < <(csv '{ print $1 "," $4 "," $5 "," $6 "," $7 }' <"$out/csv")
    [ "$cells" -eq 12 ]
    # The order of the rows is no matter, nor are rows that compare two others; a row that is missing is a cell that says so.
    tac "$out/rows" | ./fraglab plot heat - --x max_split_size_mb --y device.capacity_bytes --format csv | cut -d, -f1-7 | diff <(cut -d, -f1-7 "$out/csv") -
    sed '3i {"schema": "fraglab.comparison/1"}' "$out/rows" | ./fraglab plot heat - --x max_split_size_mb --y capacity --format csv | cut -d, -f1-7 | diff <(cut -d, -f1-7 "$out/csv") -
    sed 5d "$out/rows" | ./fraglab plot heat - --x max_split_size_mb --y capacity --format csv >"$out/less"
    [ "$(diff "$out/csv" "$out/less" | grep -c '^> missing')" -eq 1 ]
    [ "$(grep -c ^missing "$out/less")" -eq 1 ]
    for ending in svg png pdf; do draw heat $ending "$out/rows" --x max_split_size_mb --y capacity; done
    ./fraglab plot heat "$out/rows" --x max_split_size_mb --y capacity | grep -q 'OOM'
    ./fraglab plot heat "$out/rows" --x max_split_size_mb --y capacity -o "$out/a.svg" --script "$out/a.gp"
    gnuplot "$out/a.gp" | cmp - "$out/a.svg"
}

@test "rows that are no grid, or stand for one cell, are refused with what to do" {
    sweep_rows
    refused() { # exit code, words, operands
        code=$1 words=$2
        shift 2
        run ./fraglab plot heat "$@" --format csv
        echo "$output"
        [ "$status" -eq "$code" ] && [[ $output == *"$words"* ]] && [ "${#lines[@]}" -eq 1 ]
    }
    refused 2 "needs --x and --y" "$out/rows" --x capacity
    refused 2 "no field 'no_such'" "$out/rows" --x no_such --y capacity
    refused 2 "may be" "$out/rows" --x reserved --y capacity
    refused 3 "but another device.capacity_bytes; choose with --where 'device.capacity_bytes=8 GiB'" "$out/rows" --x max_split_size_mb --y trace.name
    refused 3 "nothing to compare" "$out/rows" --x seed --y trace.name
    refused 3 "rows 1 and 13 have the same" "$out/rows" "$out/rows" --x max_split_size_mb --y capacity
    refused 2 "no row has policy.name=tlsf" "$out/rows" --x max_split_size_mb --y capacity --where policy.name=tlsf
    refused 3 "no row has a number as trace.name" "$out/rows" --x max_split_size_mb --y capacity --z trace.name
    refused 2 "no row has capacity=3GiB" "$out/rows" --x max_split_size_mb --y trace.name --where capacity=3GiB
    refused 2 "no field and value" "$out/rows" --x max_split_size_mb --y trace.name --where capacity
    refused 3 "2:7: " "$out/rows" <(head -n 1 "$out/rows"; echo '{"peak"') --x max_split_size_mb --y capacity
    refused 3 "there are no rows" <(echo) --x max_split_size_mb --y capacity
    sed '3s/"max_split_size_mb":[^,]*,//' "$out/rows" >"$out/odd"
    refused 3 "row 3 has no policy.options.max_split_size_mb" "$out/odd" --x max_split_size_mb --y capacity
    ./fraglab plot heat "$out/rows" --x max_split_size_mb --y trace.name --where capacity=8GiB --format csv | grep -c ^value | grep -qx 4
    # What has no grid: every row its own value.
    awk '{ sub(/"max_split_size_mb":[^,]*/, "\"max_split_size_mb\":" NR); sub(/"seed":null/, "\"seed\":" NR); print }' "$out/rows" >"$out/random"
    refused 3 "no grid: 12 rows for 12 values of policy.options.max_split_size_mb times 12 of seed" "$out/random" --x max_split_size_mb --y seed
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

@test "names for which a front has no room are left out, and counted" {
    many=()
    for grow in $(seq 2 2 120); do many+=(-p "best-fit:grow=${grow}MiB"); done
    ./fraglab plot front $S/truncated.pickle.zst "${many[@]}" --format svg >"$out/front.svg" 2>"$out/said"
    named=$(grep -c ">best-fit:grow=" "$out/front.svg")
    [ "$named" -gt 5 ]
    [ "$named" -lt 60 ]
    grep -q " $((60 - named)) of 60 policies are drawn without their names" "$out/said"
    ./fraglab plot front $S/truncated.pickle.zst --format svg 2>"$out/said" >"$out/front.svg"
    [ ! -s "$out/said" ]
}

@test "names of settings are read whole, or their ends, and what ran out of memory is named" {
    long=pytorch:per_process_memory_fraction=0.95,max_split_size_mb:32,max_non_split_rounding_mb:64,garbage_collection_threshold:0.8
    settings=(--policy "$long" --policy pytorch:expandable_segments:True,roundup_power2_divisions:64 --policy pytorch)
    ./fraglab plot front $S/llm-inference.pickle.zst --capacity 2528MiB "${settings[@]}" --format svg >"$out/front.svg" 2>"$out/said"
    grep -q '>pytorch:expandable.*…[^<]*,roundup_power2_divisions:64<' "$out/front.svg"
    grep -q '>pytorch:per_.*…[^<]*_threshold:0.8<' "$out/front.svg"
    grep -q 'not drawn, for memory ran out: pytorch$' "$out/said"
    # Names that would leave the bars no room stand above them.
    for width in 600 2000; do
        ./fraglab plot bars $S/pr193400.pickle.zst --capacity 1GiB "${settings[@]}" --width $width -f -o "$out/bars.svg" --script "$out/bars.gp"
        edge[$width]=$(sed -n 's/^left_edge = //p' "$out/bars.gp")
        [ "$(grep -c ">$long<" "$out/bars.svg")" -eq $((width / 2000)) ]
        grep -q '>pytorch:expandable_segments:True,roundup_power2_divisions:64<' "$out/bars.svg"
    done
    awk -v above="${edge[600]}" -v beside="${edge[2000]}" 'BEGIN { exit !(above < 0.1 && beside > 0.3) }'
    ./fraglab plot survival $S/pr193400.pickle.zst "${settings[@]}" --format svg | grep -q '>pytorch:per_.*….*_threshold:0.8: [0-9.]* MiB<'
}

@test "labels of OOMs that come together stand one below the other" {
    ./fraglab plot timeline $S/gpt-varlen.pickle.zst --policy pytorch,best-fit,tlsf,cupy,buddy,half-fit,vma --capacity 6GiB \
        --format svg >"$out/oom.svg"
    # Where the same request fails: no two labels are nearer than a letter is high.
    sed -n 'N; s/.*translate(\([0-9.]*\),\([0-9.]*\)).*OOM: 963.*/\2/p; D' "$out/oom.svg" | sort -n >"$out/heights"
    [ "$(wc -l <"$out/heights")" -eq 4 ]
    awk 'NR > 1 && $1 - last < 11 { exit 1 } { last = $1 }' "$out/heights"
}

@test "a survival curve is what single runs say, and marks what min-capacity finds" {
    ./fraglab plot survival $S/truncated.pickle.zst --policy tlsf --format csv >"$out/csv"
    least=$(csv '$c["kind"] == "least" { print $c["capacity_bytes"] }' <"$out/csv")
    ./fraglab min-capacity $S/truncated.pickle.zst --policy tlsf | grep -qF " $least "
    # At both ends of every interval.
    count=0
    while IFS=, read -r capacity event; do
        [ "$event" = "$(./fraglab run $S/truncated.pickle.zst --policy tlsf --capacity "$capacity" --format csv | csv '{ print $c["oom.event"] }')" ]
        count=$((count + 1))
    done < <(csv '$c["kind"] == "curve" { print $c["capacity_bytes"] "," $c["oom_event"]
        if ($c["same_below_bytes"] != "") print $c["same_below_bytes"] - 1 "," $c["oom_event"] }' <"$out/csv")
    [ "$count" -ge 5 ]
}

@test "ranks are drawn with the levels of their runs, those that request the same in one strip" {
    mkdir "$out/job"
    cp $S/truncated.pickle.zst "$out/job/rank0.pickle.zst"
    cp $S/truncated.pickle.zst "$out/job/rank2.pickle.zst"
    cp $S/unet.pickle.zst "$out/job/rank1.pickle.zst"
    ./fraglab plot ranks "$out/job" --capacity 1500MiB -p best-fit -q -f -o "$out/job.csv"
    [ "$(csv '{ print $1 "," $2 "," $0 }' <"$out/job.csv" | cut -d, -f2 | sort -u | tr '\n' ' ')" = "1 2 " ]
    for of in "1 truncated" "2 unet"; do
        read -r strip name <<<"$of"
        wanted=$(./fraglab run $S/$name.pickle.zst -p best-fit --capacity 1500MiB --format jsonl -q |
            python3 -c 'import json, sys; row = json.loads(sys.stdin.readline()); print(row["peak"]["reserved_bytes"], row["oom"]["event"] if row["oom"] else "none")')
        found=$(awk -F, -v strip="$strip" '{ sub(/"[^"]*"/, "ranks") } $2 == strip && $1 == "level" && $6 > peak { peak = $6 }
            $2 == strip && $1 == "oom" { oom = $4 } END { print peak, oom == "" ? "none" : oom }' "$out/job.csv")
        [ "$wanted" = "$found" ]
    done
    grep -q '^level,1,"0,2",' "$out/job.csv"
    ./fraglab plot ranks "$out/job" -q -f -o "$out/job.svg"
    grep -q '>rank 0,2<' "$out/job.svg"
    # Recordings that are compared are called as their files, and none is left out.
    ./fraglab plot ranks "$out/job" --labels file -q -f --data "$out/named.csv" -o "$out/named.svg"
    for name in rank0.pickle rank1.pickle rank2.pickle '3 recordings, replayed with pytorch'; do grep -q ">$name" "$out/named.svg"; done
    [ "$(cut -d, -f2 "$out/named.csv" | sort -u | tr '\n' ' ')" = "1 2 3 strip " ]
    # By hand, from the CSV alone; one recording of several devices; characters; threads change nothing.
    gnuplot -e "data = '$out/job.csv'; scripts = 'plots'" plots/ranks.gp >"$out/hand.svg" 2>"$out/said"
    well_formed "$out/hand.svg"
    ! grep -v 'Skipping data file' "$out/said" | grep . || false
    ./fraglab plot ranks $S/model-parallel.pickle.zst | grep -q 'rank 1'
    run -2 ./fraglab plot ranks $S/truncated.pickle.zst
    [[ $output == *"several ranks"* ]]
    run -2 ./fraglab plot ranks "$out/job" -p best-fit -p tlsf
    [[ $output == *"expected one"* ]]
    run -3 ./fraglab plot ranks "$out/said" "$out/job/rank1.pickle.zst"
}

@test "the data can be kept beside the figure, and drawn by hand" {
    ./fraglab plot timeline $S/truncated.pickle.zst --data "$out/t.csv" -o "$out/t.svg"
    ./fraglab plot timeline $S/truncated.pickle.zst --format csv | diff - "$out/t.csv"
    gnuplot -e "data = '$out/t.csv'; scripts = 'plots'" plots/timeline.gp >"$out/hand.svg"
    grep -q '</svg>' "$out/hand.svg"
}

@test "the scripts in plots draw every kind from its CSV" {
    sweep_rows
    for kind in timeline survival front fragmentation sites heat; do
        case $kind in
        heat) set -- "$out/rows" --x max_split_size_mb --y capacity ;;
        *) set -- $S/truncated.pickle.zst ;;
        esac
        ./fraglab plot $kind "$@" -q -f -o "$out/$kind.csv"
        gnuplot -e "data = '$out/$kind.csv'; scripts = 'plots'" plots/$kind.gp >"$out/hand.svg" 2>"$out/said"
        well_formed "$out/hand.svg"
        ! grep -v 'Skipping data file' "$out/said" | grep . || false
        [ "$(grep -c '<text' "$out/hand.svg")" -ge 10 ]
    done
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
    refused 2 "one policy" fragmentation $S/truncated.pickle.zst --policy all
    refused 2 "neither a size nor p1 to p100" fragmentation $S/truncated.pickle.zst --sizes p50,p0
    refused 2 "unit" fragmentation $S/truncated.pickle.zst --sizes 4XB
    refused 2 "not the size" fragmentation $S/truncated.pickle.zst --sizes 0
    refused 2 "more than 8 sizes" fragmentation $S/truncated.pickle.zst --sizes 1,2,3,4,5,6,7,8,9
    refused 2 "a script draws" timeline $S/truncated.pickle.zst --script "$out/a.gp" --format terminal
    refused 2 "give it a name" map $S/truncated.pickle.zst --script -
    refused 3 "requests nothing" sites <(printf '# fraglab trace 1\n')
    refused 2 "no times" sites <(printf '# fraglab trace 1\nalloc 0 512\nfree 0\n') --x time
    refused 3 "requests nothing" fragmentation <(printf '# fraglab trace 1\n')
    refused 2 "--capacity" survival $S/truncated.pickle.zst --capacity 1GiB
    refused 2 "no device 7" timeline $S/truncated.pickle.zst --trace-device 7
    refused 2 "no times" timeline <(printf '# fraglab trace 1\nalloc 0 512\nfree 0\n') --x time
    refused 2 "--latency FILE" front $S/truncated.pickle.zst --by time
    refused 3 "requests nothing" front <(printf '# fraglab trace 1\n')
    refused 3 "every policy runs out" front $S/truncated.pickle.zst --capacity 1MiB
    refused 3 "no events" timeline <(printf '# fraglab trace 1\n')
    refused 3 "nothing was ever held" map <(printf '# fraglab trace 1\n')
    # What a policy holds from the start on is no history either.
    refused 3 "nothing was ever held" map <(printf '# fraglab trace 1\n') --policy rmm-arena
    refused 3 "requests nothing" survival <(printf '# fraglab trace 1\n')
    ./fraglab run $S/truncated.pickle.zst --policy pytorch --format jsonl >"$out/rows"
    echo '{"trace": {"name": "x"}}' >>"$out/rows"
    refused 3 "rows:2: policy.label of the row is missing; expected a text" bars "$out/rows"
    sed -i '$d; s/"label":"[^"]*"/"label":7/' "$out/rows"
    refused 3 "rows:1: policy.label of the row is 7; expected a text" bars "$out/rows"
    refused 3 "expected a JSON object" bars <(printf '{"trace": ')
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
    for kind in timeline map bars survival front fragmentation; do
        ./fraglab plot $kind "$one" --policy pytorch -f -o "$BATS_TEST_TMPDIR/one.svg"
        ./fraglab plot $kind "$one" --policy pytorch --format terminal >/dev/null
    done
    ./fraglab plot sites "$one" -q -f -o "$BATS_TEST_TMPDIR/one.svg"
    ./fraglab plot sites "$one" -q >/dev/null
    printf '# fraglab trace 1\nmark "step"\n' >"$one"
    for kind in map bars survival front fragmentation; do
        status=0
        ./fraglab plot $kind "$one" --policy pytorch -f -o "$BATS_TEST_TMPDIR/none.svg" 2>"$BATS_TEST_TMPDIR/err" || status=$?
        [ "$status" -eq 3 ]
        grep -q "there is no" "$BATS_TEST_TMPDIR/err"
    done
    [ ! -e "$BATS_TEST_TMPDIR/none.svg" ]
}

@test "the front counts a request that failed when recorded on both sides, and has no figure after an OOM" {
    ./fraglab plot front traces/samples/gpt-varlen-oom.pickle.zst --policy pytorch,offline,best-fit --capacity 5500MiB --format csv >"$BATS_TEST_TMPDIR/front.csv"
    grep -q '^1,pytorch,[0-9]*,,[0-9]*,,1,' "$BATS_TEST_TMPDIR/front.csv"
    grep -q '^2,offline,[0-9]*,0.100000,' "$BATS_TEST_TMPDIR/front.csv"
    grep -q '^3,best-fit,[0-9]*,0.48[0-9]*,' "$BATS_TEST_TMPDIR/front.csv"
}

@test "more policies than colours: the first and the best are named, the others are grey, one entry for all" {
    ./fraglab plot timeline traces/samples/pr193400.pickle.zst -p tf-bfc -p best-fit,first-fit,next-fit,worst-fit,buddy,tlsf,half-fit,slab,direct \
        -f --script "$BATS_TEST_TMPDIR/many.gp" -o "$BATS_TEST_TMPDIR/many.svg"
    grep -q '^places\[1\] = 1$' "$BATS_TEST_TMPDIR/many.gp"
    [ "$(grep -c '^places\[[0-9]*\] = 0$' "$BATS_TEST_TMPDIR/many.gp")" -eq 2 ]
    grep -q '>2 others<' "$BATS_TEST_TMPDIR/many.svg"
    ./fraglab plot timeline traces/samples/pr193400.pickle.zst -p best-fit,buddy -f -o "$BATS_TEST_TMPDIR/few.svg"
    ! grep -q 'others' "$BATS_TEST_TMPDIR/few.svg" || false
}

@test "a png asks for the font that a bare system has, at the size for which figures are laid out" {
    ./fraglab plot sites traces/samples/gpt-train.pickle.zst --format png -f --script "$BATS_TEST_TMPDIR/s.gp"
    grep -q "font_name = 'DejaVu Sans'" "$BATS_TEST_TMPDIR/s.gp"
}

@test "a disk without room is named" {
    mkdir -p "$BATS_TEST_TMPDIR/tiny"
    mount -t tmpfs -o size=128k tmpfs "$BATS_TEST_TMPDIR/tiny" 2>/dev/null || skip "cannot mount"
    status=0
    TMPDIR="$BATS_TEST_TMPDIR/tiny" ./fraglab plot timeline traces/samples/unet.pickle.zst -p pytorch \
        -f -o "$BATS_TEST_TMPDIR/t.png" 2>"$BATS_TEST_TMPDIR/said" || status=$?
    umount "$BATS_TEST_TMPDIR/tiny"
    cat "$BATS_TEST_TMPDIR/said"
    [ "$status" -eq 4 ]
    grep -qi "No space left\|is full" "$BATS_TEST_TMPDIR/said"
}

@test "where no device is named, that with the greatest peak of requested bytes is taken" {
    printf '%s\n' '# fraglab trace 1' 'device 0' 'device 1' 'alloc 0 1048576' 'alloc 1 1048576' 'free 1' \
        'device 2' 'alloc 0 1572864' >"$out/three"
    for kind in sites timeline survival fragmentation front map; do
        set -- -p best-fit
        [ $kind = sites ] && set -- --by size-class
        run --separate-stderr ./fraglab plot $kind "$out/three" "$@" --format terminal
        [ "$status" -eq 0 ]
        [[ "$stderr" == *"three holds 3 devices; device 1, which requests most, is drawn; name another with --trace-device"* ]]
    done
    run -2 ./fraglab trace cut "$out/three" --events 0..1 -o "$out/cut.fgt"
    [[ "$output" == *"the recording has 3 devices; choose one (device 1 requests most)"* ]]
    ./fraglab report "$out/three" -p best-fit -o "$out/page.html"
    grep -o '"name":"[^"]*"[^[]*"is_main":true' "$out/page.html" | grep -q 'device 1"'
}

# The first example of each kind's help, on recordings and rows that are here.
@test "every kind of the table draws its example, has a script and is described" {
    local kind example
    cp $S/truncated.pickle.zst "$out/train.pickle"
    mkdir "$out/snapshots"
    cp $S/truncated.pickle.zst "$out/snapshots/rank0.pickle.zst"
    cp $S/unet.pickle.zst "$out/snapshots/rank1.pickle.zst"
    cat >"$out/experiment.yaml" <<END
traces: $PWD/$S/truncated.pickle.zst
policies: [{policy: pytorch, options: {max_split_size_mb: [unlimited, 64]}}]
capacities: [unlimited, 9GiB]
END
    ./fraglab sweep "$out/experiment.yaml" -o "$out/rows.jsonl"
    kinds=$(./fraglab plot --help | sed -n '/^commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
    [ "$(wc -l <<<"$kinds")" -eq "$(find plots -name '*.gp' -not -name style.gp | wc -l)" ]
    for kind in $kinds; do
        [ -f "plots/$kind.gp" ]
        grep -qx "## $kind" docs/plots.md
        example=$(./fraglab plot "$kind" --help | sed -n '/^examples:/,$s/^  fraglab \([^#]*\).*/\1/p' | head -1)
        echo "$example"
        [[ "$example" == "plot $kind "* ]]
        (cd "$out" && PATH="$OLDPWD:$PATH" bash -c "fraglab ${example% -o *} -o figure.svg -f --data figure.csv")
        [ "$(wc -l <"$out/figure.csv")" -ge 2 ]
        grep -q '</svg>' "$out/figure.svg"
    done
}
