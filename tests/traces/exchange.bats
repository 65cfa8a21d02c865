# Formats of other tools: recordings that are read, runs that are written.

setup() { cd "$BATS_TEST_DIRNAME/../.." && out=$BATS_TEST_TMPDIR; }

@test "recordings of other tools are known by content, compressed too" {
    for file in rmm.csv kineto.json stalloc.txt nsys.sqlite nvprof.sqlite trace_plot-2.0.html; do
        gzip -c "tests/data/exchange/$file" >"$out/recording.gz"
        ./fraglab trace convert "$out/recording.gz" "$out/$file.fgt"
        [ "$(./fraglab trace info "$out/$file.fgt" | grep digest)" = "$(./fraglab trace info "tests/data/exchange/$file" | grep digest)" ]
    done
}

@test "a snapshot in JSON or in a page of _memory_viz is read as the pickle is" {
    for file in snapshot.json.gz trace_plot.html.gz; do
        ./fraglab verify "tests/data/exchange/$file" | grep -q 'identical: 120 requests'
        ./fraglab trace convert --to text "tests/data/exchange/$file" - | grep -v '^name' >"$out/${file%%.*}.txt"
    done
    cmp "$out/snapshot.txt" "$out/trace_plot.txt"
    [ "$(grep -c 'model.py' "$out/snapshot.txt")" -gt 0 ]
    run ./fraglab explain --capacity 190MiB tests/data/exchange/trace_plot.html.gz
    [ "$status" -eq 0 ]
    [[ $output == *"fragmentation (likely)"*"model.py:20 forward"* ]]
    ./fraglab report tests/data/exchange/snapshot.json.gz -o "$out/report.html"
    grep -q 'snapshot.json.gz' "$out/report.html"
}

@test "every sample that PyTorch wrote is the same as JSON and as a page" {
    command -v python3 >/dev/null || skip "no python3"
    for name in truncated gpt-varlen-oom; do
        zstd -dqc traces/samples/$name.pickle.zst >"$out/$name.pickle"
        python3 - "$out/$name" <<'END'
import base64, json, pickle, sys
data = open(sys.argv[1] + ".pickle", "rb").read()
json.dump({"a": [pickle.loads(data)]}, open(sys.argv[1] + ".json", "w"), indent=1)
open(sys.argv[1] + ".html", "w").write('<html><script>const local_files = [{"name": "x", "base64": "'
    + base64.b64encode(data).decode() + '"}]\nadd_local_files(local_files)</script></html>')
END
        for form in pickle json html; do
            ./fraglab trace convert --to text "$out/$name.$form" - | grep -v '^name' >"$out/$form.txt"
        done
        cmp "$out/pickle.txt" "$out/json.txt"
        cmp "$out/pickle.txt" "$out/html.txt"
    done
}

@test "the drawing of PyTorch 2.0 is a trace, and says what it lacks" {
    page=tests/data/exchange/trace_plot-2.0.html
    ./fraglab run "$page" -p pytorch | grep -q '120 requests . peak requested 170.75 MiB'
    ./fraglab trace check -v "$page" | grep -q 'drawing-only: .*no streams, addresses, segments or times'
    run ./fraglab verify "$page"
    [ "$status" -eq 3 ]
    [[ $output == *"there is nothing to verify"* ]]
}

@test "releases without addresses are paired by size, and every row says that it is a guess" {
    for file in kineto-2021.json.gz timeline.raw.json.gz; do
        run ./fraglab trace check -v "tests/data/exchange/$file"
        [ "$status" -eq 0 ]
        [[ $output == *"release-paired-by-size:"*"which is a guess"* ]]
        ./fraglab trace info "tests/data/exchange/$file" | grep -q 'releases paired by size (a guess)'
        ./fraglab run "tests/data/exchange/$file" -p pytorch --format jsonl |
            grep -q '"recorded_by":"releases paired by size (a guess)"'
        ./fraglab run "tests/data/exchange/$file" -p pytorch | grep -q 'a guess) . 120 requests . peak requested 170.75 MiB'
        ./fraglab explain --capacity 190MiB "tests/data/exchange/$file" | grep -q 'a guess'
        run ./fraglab verify "tests/data/exchange/$file"
        [ "$status" -eq 3 ]
        [[ $output == *"there is nothing to verify"* ]]
    done
    ./fraglab explain --capacity 190MiB tests/data/exchange/timeline.raw.json.gz | grep -q ' blocks  activation'
    ./fraglab report tests/data/exchange/timeline.raw.json.gz -o "$out/report.html"
    grep -q 'releases paired by size (a guess)' "$out/report.html"
}

@test "sums and pictures of a memory timeline say what to export instead" {
    echo '[[10, 20], [[0, 512, 0], [0, 0, 512]]]' | gzip -c >"$out/sums.json.gz"
    printf '<html>\n<head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title></head>\n' >"$out/picture.html"
    for file in sums.json.gz picture.html; do
        run ./fraglab trace info "$out/$file"
        [ "$status" -eq 3 ]
        [ "${#lines[@]}" -eq 1 ]
        [[ $output == *"$file: "*'export_memory_timeline("NAME.raw.json.gz"), or record a snapshot' ]]
    done
}

@test "JSON and pages that hold no snapshot are refused in one sentence" {
    gzip -dc tests/data/exchange/snapshot.json.gz | head -c 100000 >"$out/cut.json"
    run ./fraglab run "$out/cut.json" -p pytorch
    [ "$status" -eq 3 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"cut.json: byte 100000: the file ends early"* ]] || [[ $output == *"cut.json:"*"the file ends early"* ]]
    echo '<html>"base64": "%%%%"</html>' >"$out/bad.html"
    run ./fraglab trace info "$out/bad.html"
    [ "$status" -eq 3 ]
    [[ $output == *"bad.html"*"expected base64"* ]]
}

@test "--from reads an event array that does not look like a trace of a profiler" {
    printf '{"x": 1, "y": [], "traceEvents": []}' >"$out/none.json"
    run ./fraglab trace check --from kineto "$out/none.json"
    [ "$status" -eq 3 ]
    [[ $output == *"profile_memory=True"* ]]
}

@test "explain takes recordings of other tools" {
    for file in rmm.csv kineto.json stalloc.txt nsys.sqlite nvprof.sqlite; do
        run ./fraglab explain --capacity 1GiB "tests/data/exchange/$file"
        [ "$status" -eq 0 ]
        [[ $output == *"recording  $file, device 0"* ]]
    done
}

@test "a bad row of a log of RMM is named by file, line and column" {
    sed '2s/allocate/deallocate/' tests/data/exchange/rmm.csv >"$out/bad.csv"
    run ./fraglab trace check "$out/bad.csv"
    [ "$status" -eq 3 ]
    [[ $output == *"bad.csv:2:"*"found 'deallocate'; expected allocate"* ]]
}

@test "RMM's text log is a trace where it has requests, and a message where it has failures" {
    ./fraglab trace check tests/data/exchange/rmm_log.txt | grep -q 'ok, 4 events'
    grep -v trace tests/data/exchange/rmm_log.txt >"$out/rmm_log.txt"
    run ./fraglab trace info "$out/rmm_log.txt"
    [ "$status" -eq 3 ]
    [[ $output == *"rmm_log.txt: "*"'fraglab explain' reads what failed"* ]]
    run ./fraglab explain "$out/rmm_log.txt"
    [ "$status" -eq 0 ]
    [[ $output == *"limit (clear)"*"RMM, line 3"*"33.32 MiB  in one request"*"maximum_pool_size"* ]]
    gzip -c "$out/rmm_log.txt" | ./fraglab explain --format jsonl - | grep -q '"requested_bytes":34940672'
}

@test "a report of Nsight Systems is read from file, pipe and either side of device calls" {
    report=tests/data/exchange/nsys.sqlite
    ./fraglab trace convert --to text "$report" - >"$out/file.txt"
    ./fraglab trace convert --to text --from nsys - - <"$report" >"$out/pipe.txt"
    cmp "$out/file.txt" "$out/pipe.txt"
    ./fraglab trace convert --to text --from device-log "$report" - | cmp - "$out/file.txt"
    ./fraglab trace convert --to text --from device-segments "$report" - >"$out/segments.txt"
    [ "$(grep -c '^alloc' "$out/file.txt")" -eq 24 ]
    [ "$(grep -c '^segment_alloc' "$out/segments.txt")" -eq 24 ]
    [ "$(grep -c '^alloc' "$out/segments.txt")" -eq 0 ]
}

@test "a file of nvprof is read as requests, or as segments" {
    file=tests/data/exchange/nvprof.sqlite
    ./fraglab run "$file" -p best-fit | grep -q '24 requests'
    [ "$(./fraglab trace convert --to text --from device-segments "$file" - | grep -c '^segment_alloc')" -eq 24 ]
    ./fraglab trace check -v "$file" | grep -q '1  memory-of-the-host-pinned'
    run ./fraglab verify "$file"
    [ "$status" -eq 3 ]
}

@test "a damaged report is refused in one sentence and nothing is left beside it" {
    cp tests/data/exchange/nsys.sqlite "$out/report.sqlite"
    truncate -s 3000 "$out/report.sqlite"
    run ./fraglab trace check "$out/report.sqlite"
    [ "$status" -eq 3 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"report.sqlite"*"malformed"* ]]
    [ "$(ls "$out" | grep -c report)" -eq 1 ]
}

@test "a compressed report that grows without end is not read into memory" {
    { head -c 4096 tests/data/exchange/nsys.sqlite && head -c 150000000 /dev/zero; } | gzip -c >"$out/bomb.gz"
    run ./fraglab trace check "$out/bomb.gz"
    [ "$status" -eq 3 ]
    [[ $output == *"decompress it first"* ]]
}

@test "a bad line of a trace of STAlloc is named by file, line and column" {
    sed '3s/^1 /1 x/' tests/data/exchange/stalloc.txt >"$out/bad.txt"
    run ./fraglab trace check "$out/bad.txt"
    [ "$status" -eq 3 ]
    [[ $output == *"bad.txt:3:3: found 'x"*"expected a pointer"* ]]
}

@test "a run as a Chrome trace has its levels, requests, segments, device calls and OOM" {
    printf '# fraglab trace 1\nalloc 0 1000\nalloc 1 5000000\nfree 0\nalloc 2 90000000\n' >"$out/in.txt"
    ./fraglab run "$out/in.txt" --policy pytorch --capacity 64MiB --chrome "$out/run.json" >"$out/table"
    ./fraglab run "$out/in.txt" --policy pytorch --capacity 64MiB --chrome - -o "$out/table" -f >"$out/again.json"
    cmp "$out/run.json" "$out/again.json"
    [ "$(grep -c '"ph":"b".*"cat":"request"' "$out/run.json")" -eq 2 ]
    [ "$(grep -c '"ph":"e".*"ts":2.*"cat":"request"' "$out/run.json")" -eq 1 ]
    [ "$(grep -c '"ph":"b".*"cat":"segment"' "$out/run.json")" -eq 2 ]
    [ "$(grep -c '"ph":"i","name":"out of memory"' "$out/run.json")" -eq 1 ]
    grep -q '"ph":"C","name":"requested","pid":1,"tid":1,"ts":1,"args":{"bytes":5001000}' "$out/run.json"
    grep -q '"ph":"C","name":"allocated","pid":1,"tid":1,"ts":1,"args":{"bytes":5001216}' "$out/run.json"
    ./fraglab run "$out/in.txt" --policy pytorch --capacity 64MiB --latency docs/latency-example.yaml --chrome "$out/timed.json" >/dev/null
    [ "$(grep -c '"ph":"X","name":"malloc".*"result":"ok","modelled_ns":' "$out/timed.json")" -eq 2 ]
    [ "$(grep -c '"ph":"X","name":"malloc".*"result":"out of memory"' "$out/timed.json")" -ge 1 ]
    # Whole JSON: the reader of Chrome traces goes through it to the end and misses only what it is for.
    run ./fraglab trace check "$out/run.json"
    [ "$status" -eq 3 ]
    [[ $output == *"no [memory] events"* ]]
}

@test "a Chrome trace is of one run" {
    run ./fraglab run tests/data/exchange/rmm.csv --policy pytorch,best-fit --chrome "$out/run.json"
    [ "$status" -eq 2 ]
    [[ $output == *"--chrome"*"one trace and one policy"* ]]
    [ ! -e "$out/run.json" ]
}

@test "explain says of a log with a failure what the log says, without a capacity" {
    ./fraglab explain tests/data/exchange/rmm.csv >"$BATS_TEST_TMPDIR/text"
    grep -q '^verdict    no-figures' "$BATS_TEST_TMPDIR/text"
    grep -q '^asked        4.00 GiB  in one request, at event 60$' "$BATS_TEST_TMPDIR/text"
    grep -q '^in use     467.97 MiB  by live requests$' "$BATS_TEST_TMPDIR/text"
    grep -q 'with --capacity SIZE' "$BATS_TEST_TMPDIR/text"
    ./fraglab explain tests/data/exchange/rmm_log.txt --format jsonl >"$BATS_TEST_TMPDIR/row"
    grep -q '"verdict":"limit".*held 256 B then.*"requested_bytes":34940672,"allocated_bytes":256' "$BATS_TEST_TMPDIR/row"
    grep -q 'maximum_pool_size' "$BATS_TEST_TMPDIR/row"
    ./fraglab explain tests/data/exchange/rmm.csv --capacity 1GiB | grep -q '^verdict    oversized-request'
}
