# fraglab compare: exit codes, what is printed where, and what is refused.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    BASE=$BATS_TEST_TMPDIR/base.jsonl
    NOW=$BATS_TEST_TMPDIR/now.jsonl
    ./fraglab run traces/samples/pr193400.pickle.zst traces/samples/unet.pickle.zst \
        --policy pytorch,best-fit --format jsonl >"$BASE"
}

# worse FACTOR: the base with the first peak of reserved bytes multiplied.
worse() {
    awk -v factor="$1" 'NR == 1 { match($0, /"peak":\{[^}]*"reserved_bytes":[0-9]+/)
        head = substr($0, 1, RSTART + RLENGTH - 1); tail = substr($0, RSTART + RLENGTH)
        match(head, /[0-9]+$/)
        $0 = substr(head, 1, RSTART - 1) int(substr(head, RSTART) * factor) tail } { print }' "$BASE" >"$NOW"
}

@test "the same commands give the same rows, and compare has no finding" {
    ./fraglab run traces/samples/pr193400.pickle.zst traces/samples/unet.pickle.zst \
        --policy pytorch,best-fit --format jsonl >"$NOW"
    run ./fraglab compare "$BASE" "$NOW" --fail-above 0%
    [ "$status" -eq 0 ]
    [[ "$output" =~ ^"0 of "[0-9]+" metrics worse, 0 better; 4 rows compared"$ ]]
}

@test "two percent more are a finding; below the threshold they are none" {
    worse 1.02
    run ./fraglab compare "$BASE" "$NOW"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" =~ ^"worse " ]]
    [[ "${lines[1]}" =~ "pr193400.pickle.zst  pytorch  peak.reserved_bytes".*"+2.00%" ]]
    run ./fraglab compare "$BASE" "$NOW" --fail-above 3%
    [ "$status" -eq 0 ]
    run ./fraglab compare "$BASE" "$NOW" --fail-above 1%,1GiB
    [ "$status" -eq 0 ]
    run ./fraglab compare "$BASE" "$NOW" --threshold 'peak.*=5%'
    [ "$status" -eq 0 ]
    run ./fraglab compare "$BASE" "$NOW" --metric 'device_calls.*'
    [ "$status" -eq 0 ]
    run ./fraglab compare "$NOW" "$BASE"
    [ "$status" -eq 0 ]
    [[ "$output" =~ "1 better" ]]
}

@test "a row that is gone is a finding unless that is allowed; a new one is not" {
    head -n 3 "$BASE" >"$NOW"
    run ./fraglab compare "$BASE" "$NOW"
    [ "$status" -eq 1 ]
    [[ "$output" =~ "not compared: unet.pickle.zst, best-fit: the new results have no such row" ]]
    run ./fraglab compare "$BASE" "$NOW" --allow-missing
    [ "$status" -eq 0 ]
    run ./fraglab compare "$NOW" "$BASE"
    [ "$status" -eq 0 ]
    [[ "$output" =~ "new: unet.pickle.zst, best-fit" ]]
}

@test "findings become annotations, a JUnit file and Markdown" {
    worse 1.02
    run ./fraglab compare "$BASE" "$NOW" --annotate github --junit "$BATS_TEST_TMPDIR/junit.xml" \
        --format markdown -o "$BATS_TEST_TMPDIR/comment.md"
    [ "$status" -eq 1 ]
    [[ "$output" =~ ^"::error title=fraglab%3A pr193400.pickle.zst::pytorch: peak.reserved_bytes is worse: ".*"(+2.00%25)"$ ]]
    grep -q '^| pr193400.pickle.zst | pytorch | peak.reserved\\_bytes | .* | +2.00% |$' "$BATS_TEST_TMPDIR/comment.md"
    cases=$(grep -c '<testcase' "$BATS_TEST_TMPDIR/junit.xml")
    [ "$cases" -gt 100 ]
    grep -q "tests=\"$cases\" failures=\"1\" skipped=\"0\"" "$BATS_TEST_TMPDIR/junit.xml"
    [ "$(grep -c '<failure' "$BATS_TEST_TMPDIR/junit.xml")" -eq 1 ]
}

@test "names that would be markup are only text" {
    cp traces/samples/pr193400.pickle.zst "$BATS_TEST_TMPDIR/<b>&|\"x\".pickle.zst"
    (cd "$BATS_TEST_TMPDIR" && "$OLDPWD/fraglab" run '<b>&|"x".pickle.zst' --policy direct --format jsonl) >"$BASE"
    worse 1.5
    run ./fraglab compare "$BASE" "$NOW" --junit "$BATS_TEST_TMPDIR/junit.xml" --format markdown
    [ "$status" -eq 1 ]
    [[ "$output" =~ '\<b\>&\|"x".pickle.zst' ]]
    grep -q 'classname="&lt;b&gt;&amp;|&quot;x&quot;.pickle.zst · direct"' "$BATS_TEST_TMPDIR/junit.xml"
}

@test "one object a metric, and a summary" {
    worse 1.02
    run ./fraglab compare "$BASE" "$NOW" --format jsonl
    [ "$status" -eq 1 ]
    [ "$(grep -c '"verdict":"worse"' <<<"$output")" -eq 1 ]
    [[ "${lines[-1]}" =~ ^'{"schema":"fraglab.compare-summary/1","rows":{"compared":4,"not_compared":0,"new":0},"metrics":{' ]]
}

@test "a metric that only a later row has can be asked for" {
    ./fraglab run traces/samples/unet.pickle.zst --policy best-fit --format jsonl >"$NOW"
    ./fraglab run traces/samples/unet.pickle.zst --policy tlsf --bounds --format jsonl | head -1 >>"$NOW"
    run ./fraglab compare "$NOW" "$NOW" --metric 'bounds.packing_bytes' --threshold 'bounds.packing_bytes=1%'
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = "0 of 1 metrics worse, 0 better; 2 rows compared" ]
}

@test "what is no file of rows, no amount or no metric is refused" {
    echo '{"a":1}' >"$NOW"
    run ./fraglab compare "$BASE" "$NOW"
    [ "$status" -eq 3 ]
    [[ "$output" =~ "now.jsonl:1: is not a result row" ]]
    for other in traces/samples/unet.pickle.zst docs/ci.md; do
        run ./fraglab compare $other "$BASE"
        [ "$status" -eq 3 ]
        [ "$output" = "fraglab: $other:1: is not a result row; expected lines as 'fraglab run --format jsonl' writes ('fraglab diff' compares recordings)" ]
    done
    run ./fraglab compare "$BASE" "$BASE" --fail-above 1e5%
    [ "$status" -eq 2 ]
    run ./fraglab compare "$BASE" "$BASE" --fail-above -1%
    [ "$status" -eq 2 ]
    run ./fraglab compare "$BASE" "$BASE" --threshold peak.reserved_bytes
    [ "$status" -eq 2 ]
    run ./fraglab compare "$BASE" "$BASE" --metric peak.reservd_bytes
    [ "$status" -eq 2 ]
    [[ "$output" =~ "no row has a metric 'peak.reservd_bytes'" ]]
    run ./fraglab compare "$BASE"
    [ "$status" -eq 2 ]
}

# The lines of the step's `run`, as a shell would get them.
step() { # name
    sed -n '/^```yaml$/,/^```$/{p;/^```$/q}' docs/ci.md | awk -v name="$1" '
        /^      - / { inside = 0 }
        $0 == "      - name: " name { inside = 1 }
        inside && /^        run: [|>]$/ { is_run = 1; folded = $2 == ">"; next }
        is_run && !/^          / { exit }
        is_run { sub(/^ */, ""); printf "%s%s", $0, folded ? " " : "\n" }'
}

@test "the workflow of docs/ci.md can be copied: its steps run, and a worse row fails it" {
    cd "$BATS_TEST_TMPDIR"
    root=$OLDPWD
    mkdir -p bin recordings ci
    ln -s "$root/fraglab" bin/fraglab
    PATH=$PWD/bin:$PATH
    cp "$root/traces/samples/pr193400.pickle.zst" recordings/
    replay=$(cd "$root" && step replay)
    compare=$(cd "$root" && step compare)
    [[ $replay == *"fraglab run recordings/"*--capacity* ]]
    [[ $compare == *"fraglab compare ci/baseline.jsonl new.jsonl"*--junit* ]]
    bash -euc "$replay"
    [ "$(wc -l <new.jsonl)" -eq 3 ]
    cp new.jsonl ci/baseline.jsonl
    bash -euc "$compare"
    [ -s comment.md ] && [ -s junit.xml ]
    sed -i 's/"peak":{\(.*\)"reserved_bytes":421527552/"peak":{\1"reserved_bytes":521527552/' new.jsonl
    rm comment.md junit.xml
    run bash -euc "$compare"
    [ "$status" -eq 1 ]
    [[ $output == *::error* ]]
    [ -s comment.md ] && [ -s junit.xml ]
}

@test "the workflow of docs/ci.md is YAML" {
    # Another reader of YAML objects to its first foreign key, once all of it has been parsed.
    sed -n '/^```yaml$/,/^```$/{p;/^```$/q}' docs/ci.md | sed '/^```/d' >"$BATS_TEST_TMPDIR/workflow.yml"
    run ./fraglab sweep "$BATS_TEST_TMPDIR/workflow.yml"
    [ "$status" -eq 3 ]
    [[ $output == *"unknown key 'on'"* ]]
    sed '$s/^ */   /' "$BATS_TEST_TMPDIR/workflow.yml" >"$BATS_TEST_TMPDIR/broken.yml"
    run ./fraglab sweep "$BATS_TEST_TMPDIR/broken.yml"
    [[ $output == *"not YAML"* ]]
}

@test "any change of a fact of the trace is worse, unless a threshold names it" {
    ./fraglab run traces/samples/pr193400.pickle.zst --policy best-fit --format jsonl >"$BATS_TEST_TMPDIR/base"
    peak=$(grep -o '"bounds":{"peak_requested_bytes":[0-9]*' "$BATS_TEST_TMPDIR/base" | grep -o '[0-9]*$')
    sed "s/\"bounds\":{\"peak_requested_bytes\":$peak/\"bounds\":{\"peak_requested_bytes\":$((peak - 10))/" "$BATS_TEST_TMPDIR/base" >"$BATS_TEST_TMPDIR/now"
    run ./fraglab compare "$BATS_TEST_TMPDIR/base" "$BATS_TEST_TMPDIR/now"
    [ "$status" -eq 1 ]
    [[ "${lines[-1]}" = "1 of "*" metrics worse, 0 better; 1 row compared" ]]
    ./fraglab compare "$BATS_TEST_TMPDIR/base" "$BATS_TEST_TMPDIR/now" --threshold bounds.peak_requested_bytes=1%
}

@test "rows of min-capacity tell other options and devices" {
    capacity() { ./fraglab min-capacity traces/samples/pr193400.pickle.zst --policy "$@" --label x --format jsonl; }
    capacity best-fit >"$BATS_TEST_TMPDIR/base"
    capacity best-fit:align=4096 >"$BATS_TEST_TMPDIR/now"
    run ./fraglab compare "$BATS_TEST_TMPDIR/base" "$BATS_TEST_TMPDIR/now"
    [[ "$output" = *"other options: align=512 against align=4096"* ]]
    capacity best-fit --address-rule bump >"$BATS_TEST_TMPDIR/now"
    run ./fraglab compare "$BATS_TEST_TMPDIR/base" "$BATS_TEST_TMPDIR/now"
    [ "$status" -eq 1 ]
    [[ "$output" = *"address_rule"* ]]
}
