# fraglab verify --against golden: the policy against logs of PyTorch's own library, request by request.

D=build/golden

setup_file() {
    sh tests/golden_logs.sh
}

setup() {
    out=$BATS_TEST_TMPDIR
}

# A log with five requests, as small as one can be.
small_log() {
    cat <<'LOG'
{"golden":"c10","schema":1,"torch":"2.9.1","conf":"","capacity":67108864,"granularity":2097152,"devices":1,"va":"firstfit","malloc_base":"0x700000000000","vmm_base":"0x600000000000","events":true}
{"op":"alloc","id":0,"size":1000,"stream":0,"addr":"0x700000000000","drv":[["malloc","0x700000000000",2097152,0]],"ev":[["SA","0x700000000000",2097152,0],["A","0x700000000000",1000,0]]}
{"op":"alloc","id":1,"size":0,"stream":0,"addr":"0x0"}
{"op":"alloc","id":2,"size":512,"stream":0,"addr":"0x700000000400"}
{"op":"free","id":0}
{"op":"free","id":1}
{"op":"snapshot","at":5,"segments":1}
{"op":"segment","dev":0,"addr":"0x700000000000","size":2097152,"stream":0,"pool":"small","expandable":false,"private":[0,0],"allocated":512,"active":512,"requested":512,"blocks":[["0x700000000000",1024,0,"I"],["0x700000000400",512,512,"A"],["0x700000000600",2095616,0,"I"]]}
{"op":"end","done":5,"mallocs":1,"malloc_fails":0,"frees":0,"creates":0,"create_fails":0,"unmaps":0,"ooms":0}
LOG
}

@test "every log of the library itself is followed request by request" {
    run ./fraglab verify --against golden --check 500 $D
    [ "$status" -eq 0 ]
    [ "$(ls $D/*.zst | wc -l)" -ge 142 ]
    [[ "${lines[0]}" =~ ^"identical: "[0-9,]+" requests, "[0-9,]+" device events, ".*" in $(ls $D/*.zst | wc -l) logs"$ ]]
    [ "$(grep -c ': identical: ' <<<"$output")" -eq "$(ls $D/*.zst | wc -l)" ]
}

@test "every log of a hard script is followed request by request" {
    run ./fraglab verify --against golden --check 500 tests/data/golden-nasty
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "identical: "*" in $(ls tests/data/golden-nasty/*.zst | wc -l) logs" ]]
    [ "$(ls tests/data/golden-nasty/*.zst | wc -l)" -ge 60 ]
    [ "$(du -sk tests/data/golden-nasty | cut -f 1)" -le 600 ]
}

# The library and the policy refuse the same settings; other words are told as what they are.
@test "settings that the library refuses at its start are refused in the same words" {
    zstdcat tests/data/golden-nasty/refused-2.12.1.jsonl.zst >"$out/refused.jsonl"
    run ./fraglab verify --against golden "$out/refused.jsonl"
    [ "$status" -eq 0 ]
    [ "$output" = "identical: 0 requests, 0 device events (the log ends where the library failed)" ]
    sed -i 's/must be >= 64/must be >= 65/' "$out/refused.jsonl"
    run ./fraglab verify --against golden "$out/refused.jsonl"
    [ "$status" -ne 0 ]
    [[ "$output" == *"max_non_split_rounding_mb too small, must be >= 64"* ]]
}

@test "one log is one line, and a small log is compared whole" {
    small_log >"$out/small.jsonl"
    run ./fraglab verify --against golden "$out/small.jsonl"
    [ "$status" -eq 0 ]
    [ "$output" = "identical: 5 requests, 1 device events, 5 trace events, 1 segments" ]
    gzip "$out/small.jsonl"
    run ./fraglab verify --against golden - <"$out/small.jsonl.gz"
    [ "$status" -eq 0 ]
    run ./fraglab verify --against golden - $D/2.9.1-tiny-def-1.jsonl.zst <"$out/small.jsonl.gz"
    [[ "${lines[1]}" == "stdin: identical: 5 requests, "* ]]
}

@test "a difference is told with its line, both sides and what was asked" {
    small_log | sed '4s/0400"/0200"/' >"$out/other.jsonl"
    run ./fraglab verify --against golden "$out/other.jsonl" $D/2.9.1-tiny-def-1.jsonl.zst
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == "different: 1 of 2 logs; "* ]]
    [ "${lines[1]}" = "other.jsonl:4: different in address, after 2 identical requests" ]
    [ "${lines[2]}" = "  library: 0x700000000200" ]
    [ "${lines[3]}" = "  fraglab: 0x700000000400" ]
    [[ "$output" == *'           4  {"op":"alloc","id":2,'* ]]
    [[ "$output" == *"2.9.1-tiny-def-1.jsonl.zst: identical: "* ]]
}

@test "a log is called by its name, without its folder or with none" {
    small_log >"$out/tiny.jsonl"
    ./fraglab verify --against golden "$out/tiny.jsonl" $D/2.9.1-tiny-def-1.jsonl.zst | grep -q '^tiny.jsonl: identical'
    (cd "$out" && "$OLDPWD/fraglab" verify --against golden tiny.jsonl tiny.jsonl) | grep -q '^tiny.jsonl: identical'
}

@test "a policy without the settings of the log is told of them" {
    log=2.1.2-gc-gc8-1.jsonl.zst
    run ./fraglab verify --against golden --policy pytorch $D/$log
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "  likely: the log was made with other settings; try pytorch:recorded" ]
    run ./fraglab verify --against golden --policy best-fit $D/$log
    [ "$status" -eq 1 ]
    [[ "$output" != *likely* ]]
}

@test "every kind of difference is seen" {
    differs() { # kind, sed expression
        small_log | sed "$2" >"$out/log.jsonl"
        run ./fraglab verify --against golden "$out/log.jsonl"
        [ "$status" -eq 1 ]
        [[ "${lines[1]}" == *": different in $1, after "* ]]
    }
    differs address '2s/"addr":"0x700000000000"/"addr":"0x700000000200"/'
    differs oom '4s/"addr":"[^"]*"/"oom":{"message":"none left"}/'
    differs "device calls" '2s/2097152,0\]\],"ev"/4194304,0]],"ev"/'
    differs "device calls" '5s/}$/,"drv":[["free","0x700000000000",0]]}/'
    differs "trace events" '2s/\["A","0x700000000000",1000,0\]/["A","0x700000000000",1001,0]/'
    differs "trace events" '5s/}$/,"ev":[["FR","0x700000000000",1000,0]]}/'
    differs segments '7s/1}/2}/'
    differs segments '8s/1024,0,"I"/1024,0,"P"/'
    differs segments '8s/"large"/"small"/;8s/"small"/"large"/'
    differs end '9s/"mallocs":1/"mallocs":2/'
    small_log | sed '6a {"op":"stats","at":5,"dev":0,"allocation":[[1,2,2,2],[1,2,2,1],[0,0,0,0]]}' >"$out/log.jsonl"
    run ./fraglab verify --against golden "$out/log.jsonl"
    [ "$status" -eq 1 ]
    [ "${lines[2]}" = "  library: allocation.all.freed is 2" ]
    [ "${lines[3]}" = "  fraglab: 1" ]
}

@test "with --format jsonl each log is an object" {
    small_log >"$out/small.jsonl"
    small_log | sed '9s/"frees":0/"frees":7/' >"$out/other.jsonl"
    run ./fraglab verify --against golden --format jsonl "$out/small.jsonl" "$out/other.jsonl"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 2 ]
    [[ "${lines[0]}" == *'"against":"golden","is_identical":true,"requests":5,'*'"first":{"kind":null,'* ]]
    [[ "${lines[1]}" == *'"is_identical":false,'*'"first":{"kind":"end","line":9,"library":"7 frees","fraglab":"0"}'* ]]
}

@test "a log that is no log is exit 3 with its line" {
    small_log | sed '5s/"free"/"fre"/' >"$out/bad.jsonl"
    run ./fraglab verify --against golden "$out/bad.jsonl"
    [ "$status" -eq 3 ]
    [ "$output" = "fraglab: $out/bad.jsonl:5: op 'fre' is not known; the nearest is free" ]
    run ./fraglab verify --against golden traces/samples/unet.pickle.zst
    [ "$status" -eq 3 ]
    [[ "$output" == *"unet.pickle.zst:1: not a golden log; expected "* ]]
    run ./fraglab verify --against golden /dev/null
    [ "$status" -eq 3 ]
    [ "$output" = "fraglab: /dev/null:1: the file is empty; expected a golden log" ]
    mkdir "$out/empty"
    run ./fraglab verify --against golden "$out/empty"
    [ "$status" -eq 3 ]
    [[ "$output" == *"the folder holds no logs"* ]]
    head -c 9000 $D/2.9.1-tiny-def-1.jsonl.zst >"$out/cut.jsonl.zst"
    run ./fraglab verify --against golden "$out/cut.jsonl.zst"
    [ "$status" -eq 3 ]
    [[ "$output" =~ "cut.jsonl.zst:"[0-9]+ ]]
}

@test "a good log is told of beside a bad one" {
    small_log >"$out/small.jsonl"
    small_log | head -4 >"$out/short.jsonl"
    run ./fraglab verify --against golden "$out/short.jsonl" "$out/small.jsonl"
    [ "$status" -eq 3 ]
    [[ "$output" == *"identical: 5 requests"* ]]
    [[ "$output" == *"short.jsonl:5: the log stops without its \"end\" line; it was cut short"* ]]
}

@test "what would contradict the log is a usage error" {
    for option in "--capacity 1GiB" "--count" "--from golden" "--policy all"; do
        # shellcheck disable=SC2086
        run ./fraglab verify --against golden $option $D/2.9.1-tiny-def-1.jsonl.zst
        [ "$status" -eq 2 ]
    done
    run ./fraglab verify --check 10 $D/2.9.1-tiny-def-1.jsonl.zst
    [ "$status" -eq 2 ]
}

@test "a golden log is a recording like others" {
    for log in 2.9.1-graph-def-2 2.6.0-twodev-exp-1 2.12.1-mempool-exp-1 2.1.2-streams-exp-2; do
        ./fraglab trace check $D/$log.jsonl.zst
        ./fraglab trace convert $D/$log.jsonl.zst "$out/a.fgt" -f
        ./fraglab trace convert "$out/a.fgt" "$out/a.txt" --to text -f
        ./fraglab trace convert $D/$log.jsonl.zst "$out/b.txt" --to text -f
        cmp "$out/a.txt" "$out/b.txt"
    done
    run ./fraglab verify $D/2.9.1-powerlaw-def-2.jsonl.zst $D/2.15.0-graph-def-2.jsonl.zst $D/2.12.1-twodev-def-1.jsonl.zst
    [ "$status" -eq 0 ]
    [ "$(grep -c 'identical: ' <<<"$output")" -eq 4 ]
}
