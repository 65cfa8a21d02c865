# fraglab report: the page says what fraglab run says, at every event, and runs nothing but its own.

bats_require_minimum_version 1.5.0
S=traces/samples

# One browser serves all tests of the file.
setup_file() {
    export FRAG_BROWSER=$BATS_FILE_TMPDIR/browser
    (cd "$BATS_TEST_DIRNAME/../.." && python3 tests/report/page_driver.py start 3>&-) || [ $? -eq 77 ]
}
teardown_file() { python3 "$BATS_TEST_DIRNAME/page_driver.py" stop; }
setup() { cd "$BATS_TEST_DIRNAME/../.." && out=$BATS_TEST_TMPDIR; }

need_browser() { [ -e "$FRAG_BROWSER/pid" ] || skip "no Chromium"; }

# open_page FILE[#HASH] [OPTION...]: the page as it stands when its script is done. Its console is $out/console.
open_page() { python3 tests/report/page_driver.py show "$1" "$out/console" "${@:2}"; }

# The figures of the selected event, as "name value" lines.
figures() { grep -o 'data-name="[a-z-]*" data-value="[0-9]*"' | sed 's/data-name="//; s/" data-value="/ /; s/"$//'; }

# figure NAME < figures
figure() { awk -v name="$1" '$1 == name { print $2; found = 1 } END { if (!found) print 0 }'; }

# field PATH < rows of JSON: the value of each row
field() { python3 -c '
import functools, json, sys
for line in sys.stdin:
    print(functools.reduce(lambda at, key: at[key], sys.argv[1].split("/"), json.loads(line)))' "$1"; }

# names PAGE: frames, call sites and marks of its first trace, as JSON.
names() { python3 -c '
import base64, gzip, re, sys
page = open(sys.argv[1], encoding="utf-8").read()  # valid UTF-8 or an exception
packed = re.search(r"id=\"data-0-names-0\">([^<]*)<", page).group(1)
sys.stdout.write(gzip.decompress(base64.b64decode(packed)).decode())' "$1"; }

# site_names PAGE: of each call site of its first trace, the frame that names it.
site_names() { names "$1" | python3 -c '
import json, sys
names = json.load(sys.stdin)
for site in names["sites"]:
    print(names["frames"][site[0] - 1][0] if site[0] > 0 else "without a call stack", len(site) - 1)'; }

@test "the usual policies are those that the recorded release has" {
    run ./fraglab report tests/data/snapshots/torch-2-0.pickle -o "$out/old.html"
    [ "$status" -eq 0 ]
    grep -q 'best-fit' "$out/old.html"
    [ "$(grep -c 'expandable_segments=true' "$out/old.html")" -eq 0 ]
    ./fraglab report tests/data/snapshots/oom.pickle -o "$out/new.html"
    grep -q 'expandable_segments=true' "$out/new.html"
}

@test "the page is one file of the same bytes for any number of threads" {
    ./fraglab report $S/truncated.pickle.zst $S/model-parallel.pickle.zst -j 1 -o "$out/a.html"
    ./fraglab report $S/truncated.pickle.zst $S/model-parallel.pickle.zst -j 4 -o "$out/b.html"
    cmp "$out/a.html" "$out/b.html"
    run grep -nE '(src|href)="(https?:)?//' "$out/a.html"
    [ "$status" -eq 1 ]
    run ./fraglab report $S/truncated.pickle.zst -o "$out/a.html"
    [ "$status" -ne 0 ]
    cmp "$out/a.html" "$out/b.html"
}

@test "tables hold the figures of run without any script" {
    ./fraglab report $S/gpt-varlen.pickle.zst --policy pytorch,best-fit,direct --bounds -o "$out/page.html"
    ./fraglab run $S/gpt-varlen.pickle.zst --policy pytorch,best-fit,direct --bounds --format jsonl >"$out/rows"
    for path in reserved:peak/reserved_bytes allocated:peak/allocated_bytes segments:fragmentation/segments_at_peak \
        hole:fragmentation/largest_hole_at_peak_bytes requested:decomposition_at_peak/requested_bytes \
        holes:decomposition_at_peak/holes_bytes slack:decomposition_at_peak/page_slack_bytes; do
        grep -v 'class="bound"' "$out/page.html" | grep -o "<td class=\"${path%%:*}\" data-value=\"[0-9]*\"" |
            sed 's/.*value="//; s/"//' >"$out/shown"
        field "${path#*:}" <"$out/rows" >"$out/wanted"
        diff "$out/shown" "$out/wanted"
    done
    grep -q "$(field bounds/packing_bytes <"$out/rows" | head -n 1)" "$out/page.html"
    grep -q "$(field trace/digest <"$out/rows" | head -n 1)" "$out/page.html"
}

@test "the map at any event is what the policy holds there" {
    need_browser
    for recording in prefetch-streams:0:5000:20000 cuda-graphs:500:6000; do
        file=$S/${recording%%:*}.pickle.zst
        ./fraglab report "$file" --policy best-fit,pytorch -f -o "$out/page.html"
        for event in $(tr : ' ' <<<"${recording#*:}"); do
            open_page "$out/page.html#policy=1&event=$event" >"$out/dom"
            [ ! -s "$out/console" ]
            grep -q "data-shown=\"0 1 $event\"" "$out/dom"
            figures <"$out/dom" >"$out/figures"
            ./fraglab run "$file" --policy pytorch --stats-at "$event" --format jsonl >"$out/row"
            for pair in reserved:reserved_bytes requested:requested_bytes allocated:allocated_bytes \
                block-count:active segment-count:segment; do
                [ "$(figure "${pair%%:*}" <"$out/figures")" = "$(field "memory_stats/${pair#*:}.all.current" <"$out/row")" ]
            done
            [ "$(figure holes <"$out/figures")" = "$(field memory_stats/inactive_split_bytes.all.current <"$out/row")" ]
        done
    done
}

@test "every policy's map adds up to its reserved bytes" {
    need_browser
    file=$S/prefetch-streams.pickle.zst
    policies="pytorch:expandable_segments=true cuda-async gmlake direct rmm-arena frugal"
    # shellcheck disable=SC2086 # one word per policy
    set -- $(printf -- '--policy %s ' $policies)
    ./fraglab report $file "$@" -o "$out/page.html"
    ./fraglab run $file "$@" --format jsonl >"$out/rows"
    number=0
    while read -r row; do
        event=$(field peak/reserved_at_event <<<"$row")
        open_page "$out/page.html#policy=$number&event=$event" >"$out/dom"
        figures <"$out/dom" >"$out/figures"
        [ "$(figure reserved <"$out/figures")" = "$(field peak/reserved_bytes <<<"$row")" ]
        for part in requested holes cached waiting unsplit; do
            [ "$(figure $part <"$out/figures")" = "$(field decomposition_at_peak/${part}_bytes <<<"$row")" ]
        done
        [ "$(figure largest-hole <"$out/figures")" = "$(field fragmentation/largest_hole_at_peak_bytes <<<"$row")" ]
        number=$((number + 1))
    done <"$out/rows"
    [ "$number" -eq 6 ]
}

@test "a page stays below 10 MB, whatever the recording" {
    python3 tests/report/page_trace.py 1300000 >"$out/large.txt"
    ./fraglab report "$out/large.txt" -o "$out/page.html"
    [ "$(wc -c <"$out/page.html")" -le 10000000 ]
    [ "$(wc -c <"$out/page.html")" -ge 7000000 ]
    grep -q 'lists and search hold events [0-9,]* to [0-9,]* of 1,[0-9,]*: the page would take' "$out/page.html"
    [ "$(grep -c '"is_drawn":true,"is_grown"' "$out/page.html")" -eq 4 ]
    run -2 ./fraglab report "$out/large.txt" --page-limit 999999 -f -o "$out/page.html"
    [ "$output" = "fraglab: --page-limit 999999: a page needs at least 1 MB" ]
}

@test "a part of the events shows what all of them show there" {
    need_browser
    python3 tests/report/page_trace.py 300000 >"$out/large.txt"
    for capacity in unlimited 4GiB; do
        ./fraglab report "$out/large.txt" --policy pytorch,best-fit --capacity $capacity -f -o "$out/whole.html"
        ./fraglab report "$out/large.txt" --policy pytorch,best-fit --capacity $capacity --page-limit 1MB -f -o "$out/part.html"
        grep -q '"all_events":' "$out/part.html"
        run grep -q '"all_events":' "$out/whole.html"
        [ "$status" -eq 1 ]
        [ "$(wc -c <"$out/part.html")" -le 1000000 ]
        first=$(grep -o '"first":[0-9]*' "$out/part.html" | cut -d: -f2)
        end=$(grep -o '"events":[0-9]*,"start"' "$out/part.html" | tr -dc 0-9)
        for event in "$first" $(((first + end) / 2)) $((end - 1)); do
            for page in whole part; do
                open_page "$out/$page.html#policy=1&event=$event" >"$out/dom"
                [ ! -s "$out/console" ]
                grep -q "data-shown=\"0 1 $event\"" "$out/dom"
                figures <"$out/dom" >"$out/$page"
            done
            [ "$(figure block-count <"$out/whole")" -gt 1000 ]
            diff "$out/whole" "$out/part"
        done
    done
}

@test "blocks from before the recording are on the map" {
    need_browser
    printf '%s\n' '# fraglab trace 1' 'segment_alloc 20971520 addr=0x10000000 initial' \
        'alloc 0 1048576 addr=0x10000000 block=1048576 initial' 'alloc 1 2097152 addr=0x10400000 block=2097152 initial' \
        'alloc 2 4194304' 'free 0' >"$out/held.txt"
    ./fraglab report "$out/held.txt" --policy pytorch -o "$out/page.html"
    open_page "$out/page.html#event=4" | figures >"$out/figures"
    [ "$(figure requested <"$out/figures")" = $((2097152 + 4194304)) ]
    [ "$(figure block-count <"$out/figures")" = 2 ]
    [ "$(figure segment-count <"$out/figures")" = 1 ]
}

@test "a run that ends in an OOM says where, and why, and what to do" {
    ./fraglab report $S/gpt-varlen-oom.pickle.zst --capacity 5GiB --policy pytorch -o "$out/page.html"
    ./fraglab run $S/gpt-varlen-oom.pickle.zst --capacity 5GiB --policy pytorch --format jsonl >"$out/row"
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --capacity 5GiB --format jsonl >"$out/explained"
    grep -q "<td class=\"oom\" data-value=\"$(field oom/event <"$out/row")\"" "$out/page.html"
    grep -q "<h3>Verdict: <strong>$(field verdict <"$out/explained")</strong>" "$out/page.html"
    grep -qF "$(field because <"$out/explained")" "$out/page.html"
    # A recording that did not run out and has room is explained by nothing.
    ./fraglab report $S/truncated.pickle.zst -f -o "$out/page.html"
    run grep -c 'class="verdict"' "$out/page.html"
    [ "$output" = 0 ]
}

@test "where memory ran out, and on what card, stand before the figures and the results" {
    ./fraglab report $S/gpt-varlen-oom.pickle.zst --policy offline -o "$out/page.html"
    sed 's/<[^>]*>/ /g; s/  */ /g' "$out/page.html" >"$out/text"
    grep -v '^ *$' "$out/text" | grep -A2 -x ' gpt-varlen-oom.pickle.zst ' >"$out/first"
    grep -q '^ out of memory when recorded event 3,056, asked 963.18 MiB' "$out/first"
    grep -q '^ capacity when recorded 5.42 GiB' "$out/first"
    grep -q '^ replayed on unlimited' "$out/text"
    run grep -c 'capacity unlimited' "$out/text"
    [ "$output" = 0 ]
    [ "$(grep -n 'class="verdict"' "$out/page.html" | cut -d: -f1)" -lt "$(grep -n 'class="results' "$out/page.html" | cut -d: -f1)" ]
    ./fraglab report $S/gpt-varlen-oom.pickle.zst --capacity 5GiB --policy offline -f -o "$out/page.html"
    sed 's/<[^>]*>/ /g; s/  */ /g' "$out/page.html" | grep -q '^ capacity 5.00 GiB'
}

@test "call sites have the names that explain and the plots give them" {
    printf '%s\n' '# fraglab trace 1' 'frame "allocate" "allocator.cpp" 1' \
        'frame "linear" "site-packages/torch/nn/linear.py" 2' 'frame "forward" "model.py" 3' 'site 0 1' 'site 0 1 2' \
        'alloc 0 2000000 site=1' 'alloc 1 3000000 site=2' 'alloc 2 1000000' >"$out/trace"
    ./fraglab report "$out/trace" -o "$out/page.html"
    site_names "$out/page.html" >"$out/sites"
    [ "$(cat "$out/sites")" = $'without a call stack 0\nlinear.py:2 linear 2\nmodel.py:3 forward 3' ]
    names "$out/page.html" | grep -qF '["linear.py:2 linear","site-packages/torch/nn/linear.py"]'
    ./fraglab plot sites "$out/trace" --format csv >"$out/csv"
    grep -qF 'linear (linear.py:2)' "$out/csv"
    grep -qF 'forward (model.py:3)' "$out/csv"
}

# A recording whose every name is an attack: markup, ends of scripts, quotes, line ends of JavaScript, broken UTF-8.
hostile_recording() {
    attack='</script><script>document.title=`pwned`</script><!--<img src=http://attacker.invalid/x onerror=document.title=`pwned`>'
    printf '# fraglab trace 1\nframe "%s" "\\xff%s\\xe2\\x80\\xa8" 1\nsite 0\n' "$attack" "$attack"
    printf 'mark "%s" begin\nalloc 0 1048576 site=1\nalloc 1 2097152 site=1\nmark "\\"];alert(1);//\\x00\\x1b" end\nfree 0\n' "$attack"
}

@test "hostile names stay text, and nothing leaves the page" {
    need_browser
    hostile_recording >"$out/"$'<img src=x onerror=alert(1)>\xff.txt'
    ./fraglab report "$out/"$'<img src=x onerror=alert(1)>\xff.txt' --title '</title><script>document.title=`pwned`</script>' \
        --policy pytorch --label '"><svg onload=document.title=`pwned`> </script>' -o "$out/page.html"
    python3 - "$out/page.html" <<'PYTHON'
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()  # valid UTF-8 or an exception
data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1)
assert "<" not in data and "\u2028" not in data
json.loads(data)
PYTHON
    names "$out/page.html" >"$out/names"
    python3 -c 'import json, sys; assert any("attacker.invalid" in text for frame in json.load(open(sys.argv[1]))["frames"] for text in frame)' "$out/names"
    run grep -c '[<>&]' "$out/names"
    [ "$output" = 0 ]
    # Only the page's own elements are there.
    open_page "$out/page.html#event=2" --log-net-log="$out/net.json" >"$out/dom"
    grep -q 'data-shown="0 0 2"' "$out/dom"
    [ ! -s "$out/console" ]
    run grep -ciE '<img|onload="|onerror="|<title>pwned' "$out/dom"
    [ "$output" = 0 ]
    [ -s "$out/net.json" ]
    [ "$(grep -o '<script' "$out/dom" | wc -l)" -eq 5 ]
    [ "$(grep -o '<svg' "$out/dom" | wc -l)" -eq 2 ]
    run grep -c attacker.invalid "$out/net.json"
    [ "$output" = 0 ]
}

@test "the page's policy lets no other script run" {
    need_browser
    ./fraglab report $S/truncated.pickle.zst --policy pytorch -o "$out/page.html"
    sed 's|</main>|<script>document.title="pwned"</script><img src="x" onerror="document.title=1"></main>|' \
        "$out/page.html" >"$out/broken.html"
    open_page "$out/broken.html" >"$out/dom"
    grep -q '<title>fraglab report</title>' "$out/dom"
    [ "$(grep -c 'Content Security Policy' "$out/console")" -ge 2 ]
}

@test "figures beyond what a page can count are left to the table" {
    need_browser
    printf '# fraglab trace 1\nalloc 0 36028797018963968\nalloc 1 512\n' >"$out/large.txt"
    ./fraglab report "$out/large.txt" --policy best-fit -o "$out/page.html"
    open_page "$out/page.html" >"$out/dom"
    [ ! -s "$out/console" ]
    grep -q 'data-value="36028797018' "$out/dom"
}

@test "traces of one event and of none are shown" {
    need_browser
    printf '# fraglab trace 1\n' >"$out/none.txt"
    printf '# fraglab trace 1\nmark "only"\n' >"$out/mark.txt"
    printf '# fraglab trace 1\nalloc 0 512\n' >"$out/one.txt"
    for name in none mark one; do
        ./fraglab report "$out/$name.txt" --policy pytorch,best-fit -o "$out/$name.html"
        open_page "$out/$name.html" >"$out/dom"
        cat "$out/console"
        [ ! -s "$out/console" ]
        grep -q 'id="problem" role="alert" hidden' "$out/dom"
    done
}

# ---- result files

# Rows of several traces, devices and policies.
write_rows() { # format, file
    ./fraglab run $S/gpt-varlen-oom.pickle.zst $S/model-parallel.pickle.zst --policy pytorch:max_split_size_mb=64 \
        --policy pytorch:recorded --policy rmm-pool:initial_pool_size=64MiB --policy best-fit --label 'best, "fit"' \
        --gpu a100-40gb --capacity 11GiB --bounds --format "$1" -f -o "$2"
}

@test "rows of a file are printed as the command that wrote them prints them" {
    write_rows jsonl "$out/rows.jsonl"
    for format in table csv jsonl markdown; do
        write_rows $format "$out/wanted"
        ./fraglab report "$out/rows.jsonl" --format $format | cmp - "$out/wanted"
    done
}

@test "a row of a policy that is not there has its options as the row says" {
    ./fraglab run $S/unet.pickle.zst --policy rmm-arena --format jsonl | sed 's/"name":"rmm-arena"/"name":"mine"/' >"$out/rows.jsonl"
    ./fraglab report "$out/rows.jsonl" --format csv | grep -q ',mine,rmm-arena,arena_size=0;size_classes=false,sim,'
}

@test "rows of a card and rows of none stand in tables of their own" {
    for order in "--gpu=a100-40gb --capacity=8GiB" "--capacity=8GiB --gpu=a100-40gb"; do
        : >"$out/rows.jsonl"
        : >"$out/wanted"
        for options in $order; do
            # The one and then the other, each with the same capacity.
            [ "$options" = --capacity=8GiB ] || options="$options --capacity=8GiB"
            ./fraglab run $S/unet.pickle.zst --policy best-fit $options --format jsonl >>"$out/rows.jsonl"
            [ ! -s "$out/wanted" ] || echo >>"$out/wanted"
            ./fraglab run $S/unet.pickle.zst --policy best-fit $options --format table >>"$out/wanted"
        done
        ./fraglab report "$out/rows.jsonl" --format table | diff - "$out/wanted"
    done
}

@test "a page from rows draws the runs whose recording is at hand" {
    write_rows jsonl "$out/rows.jsonl"
    cp $S/gpt-varlen-oom.pickle.zst "$out"
    (cd "$out" && "$OLDPWD/fraglab" report rows.jsonl -o page.html)
    [ "$(grep -c '"is_drawn":true,"is_grown"' "$out/page.html")" -eq 4 ]
    [ "$(grep -o 'its recording is not at hand' "$out/page.html" | wc -l)" -eq 8 ]
    # Named, it need not lie beside the file; then it is not shown on its own.
    ./fraglab report "$out/rows.jsonl" $S/model-parallel.pickle.zst -f -o "$out/page.html"
    [ "$(grep -c '"is_drawn":true,"is_grown"' "$out/page.html")" -eq 12 ]
    [ "$(grep -c '<section class="trace"' "$out/page.html")" -eq 3 ]
    # Another recording of that name is not taken for it.
    cp $S/truncated.pickle.zst "$out/gpt-varlen-oom.pickle.zst"
    (cd "$out" && "$OLDPWD/fraglab" report rows.jsonl -f -o page.html)
    [ "$(grep -o 'its recording is not at hand' "$out/page.html" | wc -l)" -eq 12 ]
}

@test "a row that is not what this version computes is shown, not drawn" {
    cp $S/truncated.pickle.zst "$out"
    ./fraglab run "$out/truncated.pickle.zst" --policy pytorch,best-fit --format jsonl >"$out/rows.jsonl"
    sed -i '1s/"peak":{"requested_bytes":[0-9]*/"peak":{"requested_bytes":512/' "$out/rows.jsonl"
    sed -i '2s/"name":"best-fit"/"name":"no-fit"/' "$out/rows.jsonl"
    ./fraglab report "$out/rows.jsonl" -o "$out/page.html"
    grep -q 'replays it differently' "$out/page.html"
    grep -q 'not replayed: the policy no-fit is not built in' "$out/page.html"
    run grep -c '"is_drawn":true,"is_grown"' "$out/page.html"
    [ "$output" = 0 ]
}

@test "rows lead to no file outside, and load no policy" {
    mkdir "$out/rows" "$out/other"
    cp $S/truncated.pickle.zst "$out/other"
    ./fraglab run "$out/other/truncated.pickle.zst" --policy best-fit --format jsonl |
        sed 's|"name":"truncated|"name":"../other/truncated|' >"$out/rows/rows.jsonl"
    ./fraglab report "$out/rows/rows.jsonl" -o "$out/page.html"
    grep -q 'its recording is not at hand' "$out/page.html"
    ./fraglab run "$out/other/truncated.pickle.zst" --policy best-fit --format jsonl |
        sed 's|"policy":{"name":"best-fit","label":"best-fit"|"policy":{"name":"./evil.so","label":"./evil.so"|' >"$out/other/rows.jsonl"
    ./fraglab report "$out/other/rows.jsonl" -f -o "$out/page.html"
    grep -q 'not replayed: the policy ./evil.so is not built in' "$out/page.html"
}

@test "a file that is not a file of rows, or is broken, is refused by name and line" {
    ./fraglab run $S/truncated.pickle.zst --policy best-fit --format jsonl >"$out/rows.jsonl"
    run -2 --separate-stderr ./fraglab report $S/truncated.pickle.zst --format csv
    [[ "$stderr" == *"is not a file of rows"* ]]
    cut -c1-400 "$out/rows.jsonl" >"$out/cut.jsonl"
    run -3 --separate-stderr ./fraglab report "$out/rows.jsonl" "$out/cut.jsonl" -o "$out/page.html"
    [[ "$stderr" == *"cut.jsonl:1:"* ]]
    [ ! -e "$out/page.html" ]
    ./fraglab min-capacity $S/truncated.pickle.zst --policy best-fit --format jsonl >>"$out/rows.jsonl"
    run -3 --separate-stderr ./fraglab report "$out/rows.jsonl" --format table
    [[ "$stderr" == *"rows.jsonl:2:"*"fraglab.min-capacity/1"* ]]
    sed '$d; s/"label":"[^"]*"/"label":7/' "$out/rows.jsonl" >"$out/kind.jsonl"
    run -3 --separate-stderr ./fraglab report "$out/kind.jsonl" --format table
    [[ "$stderr" == *"kind.jsonl:1:"*"policy.label of the row is 7; expected a text"* ]]
    run -3 --separate-stderr ./fraglab report "$out/absent.jsonl" -o "$out/page.html"
    [ ! -e "$out/page.html" ]
}
