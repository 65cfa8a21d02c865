# fraglab verify --against golden: the policies that model other frameworks' pools against logs of the real
# libraries, request by request.

D=tests/data/golden-peers

setup_file() {
    sh tests/golden_logs.sh
}

setup() {
    out=$BATS_TEST_TMPDIR
    log=small_log # what is changed
}

# A pool on two streams: a block that is stolen, lists that are merged, growth, and a free elsewhere.
small_log() {
    cat <<'LOG'
{"golden":"rmm-pool","version":"25.10.0","params":{"initial":4096,"maximum":null,"event_order":"up"},"capacity":8388608,"va":"up","va_base":123145302310912,"gran":2097152,"gap":2097152,"profile":"small","seed":1,"drv":[["malloc",123145302310912,4096,0]]}
{"op":"alloc","id":0,"size":1000,"stream":0,"addr":123145302310912}
{"op":"alloc","id":1,"size":1024,"stream":1,"addr":123145302311936,"drv":[["wait",4096,6291472]]}
{"op":"free","id":1,"stream":1}
{"op":"alloc","id":2,"size":4000,"stream":0,"addr":123145306505216,"drv":[["wait",1,6291488],["malloc",123145306505216,4096,0]]}
{"op":"alloc","id":3,"size":0,"stream":0,"addr":0}
{"op":"alloc","id":4,"size":100000000,"stream":0,"oom":true,"drv":[["malloc",0,100000000,2]]}
{"op":"free","id":0,"stream":1}
{"summary":{"requests":6,"allocs":5,"frees":2,"ooms":1,"driver_mallocs":3,"driver_refusals":1,"driver_frees":0,"reserved_end":8192,"peak_reserved":8192,"event_records":2,"stream_waits":2,"syncs":0}}
LOG
}

# A log with one thing changed differs there: kind, line, sed expression.
differs() {
    $log | sed "$3" >"$out/log.jsonl"
    run ./fraglab verify --against golden "$out/log.jsonl"
    [ "$status" -eq 1 ]
    [[ "${lines[1]}" == "log.jsonl:$2: different in $1, after "* ]]
}

# ... or is refused there: line, words, sed expression.
refused() {
    $log | sed "$3" >"$out/bad.jsonl"
    run ./fraglab verify --against golden "$out/bad.jsonl"
    [ "$status" -eq 3 ]
    [[ "$output" == "fraglab: $out/bad.jsonl:$1: "*"$2"* ]]
}

@test "every log of the libraries themselves is followed request by request" {
    run ./fraglab verify --against golden --check 500 $D
    [ "$status" -eq 0 ]
    [ "$(ls $D/*.zst | wc -l)" -ge 106 ]
    [[ "${lines[0]}" =~ ^"identical: "[0-9,]+" requests, "[0-9,]+" device events, "[0-9,]+" OOM in $(ls $D/*.zst | wc -l) logs"$ ]]
    [ "$(grep -c ': identical: ' <<<"$output")" -eq "$(ls $D/*.zst | wc -l)" ]
}

@test "logs of several libraries stand side by side" {
    run ./fraglab verify --against golden $D/cupy-limit.jsonl.zst build/golden/2.9.1-tiny-def-1.jsonl.zst $D/tf-bfc-oom-g1.jsonl.zst
    [ "$status" -eq 0 ]
    [ "$(grep -c ': identical: ' <<<"$output")" -eq 3 ]
}

@test "a small log is compared whole" {
    small_log >"$out/small.jsonl"
    run ./fraglab verify --against golden --check 1 "$out/small.jsonl"
    [ "$status" -eq 0 ]
    [ "$output" = "identical: 7 requests, 5 device events, 1 OOM" ]
    run ./fraglab verify --against golden --format jsonl "$out/small.jsonl"
    [[ "$output" == *'"trace":{"name":"small.jsonl","torch":null,"conf":null,"library":"rmm-pool 25.10.0"},'* ]]
    [[ "$output" == *'"policy":{"name":"rmm-pool","label":"rmm-pool:initial_pool_size=4096,event_order=up"},'* ]]
}

# Two segments that are freed and stitched, a request that the device refuses, and all given back.
stitched_log() {
    cat <<'LOG'
{"golden":"gmlake","version":"fb24ee8","params":{"fragLimit":4194304},"capacity":62914560,"va":"lowest","va_base":123145302310912,"gran":2097152,"gap":0,"profile":"small","seed":1}
{"op":"alloc","id":0,"size":20971520,"stream":0,"addr":105553116266496,"drv":[["reserve",105553116266496,20971520],["create",2097152,10,0],["map",105553116266496,2097152,10]]}
{"op":"alloc","id":1,"size":22000000,"stream":0,"addr":105553137238016,"drv":[["reserve",105553137238016,23068672],["create",2097152,11,0],["map",105553137238016,2097152,11]]}
{"op":"free","id":0,"stream":0}
{"op":"free","id":1,"stream":0}
{"op":"alloc","id":2,"size":41943040,"stream":0,"addr":105553160306688,"drv":[["reserve",105553160306688,41943040],["alias",105553160306688,2097152,20]]}
{"op":"alloc","id":3,"size":25165824,"stream":0,"oom":true,"drv":[["create",2097152,9,0],["create",2097152,1,2],["release",2097152,9,0],["create",2097152,9,0],["create",2097152,1,2],["release",2097152,9,0]]}
{"op":"free","id":2,"stream":0}
{"op":"trim","drv":[["unalias",105553160306688,2097152,20],["vfree",105553160306688,41943040],["unmap",105553116266496,2097152,10],["vfree",105553116266496,20971520],["unmap",105553137238016,2097152,11],["vfree",105553137238016,23068672]]}
{"summary":{"requests":8,"allocs":4,"frees":3,"ooms":1,"driver_mallocs":0,"driver_refusals":0,"driver_frees":0,"reserved_end":0,"peak_reserved":44040192,"whole":1}}
LOG
}

@test "chunks that are mapped for a second time are compared" {
    log=stitched_log
    stitched_log >"$out/small.jsonl"
    run ./fraglab verify --against golden --check 1 "$out/small.jsonl"
    [ "$status" -eq 0 ]
    [ "$output" = "identical: 8 requests, 20 device events, 1 OOM" ]
    differs "device calls" 6 '6s/2097152,20/2097152,21/'
    differs "device calls" 6 '6s/"alias"/"map"/'
    differs "device calls" 7 '7s/"release",2097152,9/"release",2097152,8/'
    differs "device calls" 9 '9s/"unalias"/"unmap"/'
    differs "device calls" 9 '9s/\["unalias",[0-9]*,2097152,20\],//'
    differs end 10 '10s/44040192/44040193/'
    refused 1 '"gap" is 1; expected 0, as "va" is "lowest"' '1s/"gap":0/"gap":1/'
    refused 6 'entry 2 of "drv" is not a known device call' '6s/2097152,20/2097152,0/'
    refused 6 'entry 1 of "drv" is not a known device call' '6s/"reserve",105553160306688,/"reserve",/'
    ./fraglab trace convert "$out/small.jsonl" "$out/a.txt" --to text -f
    [ "$(grep -c segment_map "$out/a.txt")" -eq 2 ]
}

@test "every kind of difference is seen" {
    differs "device calls" 1 '1s/912,4096,0/912,8192,0/'
    differs address 2 '2s/310912/311168/'
    differs oom 5 '5s/"addr":[0-9]*/"oom":true/'
    differs oom 7 '7s/"oom":true/"addr":123145302310912/'
    differs "device calls" 3 '3s/"wait",4096/"wait",8192/'
    differs "device calls" 3 '3s/6291472/6291488/'
    differs "device calls" 3 '3s/,"drv.*]]//'
    differs "device calls" 5 '5s/"wait",1,/"wait",0,/'
    differs "device calls" 8 '8s/}$/,"drv":[["sync",4096,0]]}/'
    differs end 9 '9s/"event_records":2/"event_records":3/'
    differs end 9 '9s/"stream_waits":2/"stream_waits":1/'
    differs end 9 '9s/"peak_reserved":8192/"peak_reserved":8193/'
}

@test "another policy can be held against a log" {
    run ./fraglab verify --against golden --policy best-fit:space=segments $D/rmm-pool-train-i0.jsonl.zst
    [ "$status" -eq 1 ]
    [[ "${lines[1]}" == *": different in device calls, after 0 identical requests" ]]
    run ./fraglab verify --against golden --policy rmm-pool:event_order=down $D/rmm-pool-streams3-train.jsonl.zst
    [ "$status" -eq 1 ]
}

@test "releases of MXNet part where a request takes all that is free" {
    for pool in naive round; do
        log=$D/mxnet-$pool-2.0-edge-r0.jsonl.zst
        run ./fraglab verify --against golden --policy mxnet-$pool:reserve=0,version=2.0 "$log"
        [ "$status" -eq 0 ]
        run ./fraglab verify --against golden --policy mxnet-$pool:reserve=0,version=1.9 "$log"
        [ "$status" -eq 1 ]
        [[ "${lines[1]}" == *": different in device calls, after "* ]]
    done
}

@test "a log that ends where the library did not return is followed up to there" {
    head='{"golden":"tf-bfc","version":"2.21.0","params":{"memory_limit":1073741824,"allow_growth":true},"capacity":2097152,"va":"up","va_base":123145302310912,"gran":2097152,"gap":2097152}'
    first='{"op":"alloc","id":0,"size":2097152,"stream":0,"addr":123145302310912,"drv":[["malloc",123145302310912,2097152,0]]}'
    hang=$(printf '["malloc",0,%s,2],' 4194304 3774976 3397632 3057920 2752256 2477056 2229504 2006784 1806336 1625856 1463296 1317120 1185536 \
        1067008 960512 864512 778240 700416 630528 567552 510976 460032 414208 372992 335872 302336 272128 244992 \
        220672 198656 178944 161280 145152 130816 117760 105984 95488 86016 77568 69888 62976 56832 51200 46080 \
        41472 37376 33792 30464 27648 25088 22784 20736 18688 16896 15360 13824 12544 11520 10496 9472 8704 7936 \
        7168 6656 6144 5632 5120 4608 4352 4096 3840 3584 3328 3072 2816 2560 2304 2304 2304)
    printf '%s\n%s\n{"op":"alloc","id":1,"size":2000,"stream":0,"hang":true,"drv":[%s]}\n' "$head" "$first" "${hang%,}" >"$out/hang.jsonl"
    run ./fraglab verify --against golden "$out/hang.jsonl"
    [ "$status" -eq 0 ]
    [ "$output" = "identical: 2 requests, 78 device events, 1 OOM (the log ends where the library failed)" ]
    sed 's/,2560,2\]/,2559,2]/' "$out/hang.jsonl" >"$out/other.jsonl"
    run ./fraglab verify --against golden "$out/other.jsonl"
    [ "$status" -eq 1 ]
    printf '{"op":"free","id":0,"stream":0}\n' >>"$out/hang.jsonl"
    run ./fraglab verify --against golden "$out/hang.jsonl"
    [ "$status" -eq 3 ]
    [[ "$output" == *"hang.jsonl:4: a request follows one that has no answer"* ]]
}

@test "a bad log is exit 3 with its line" {
    refused 1 "log of 'jemalloc', for which there is no policy" '1s/rmm-pool/jemalloc/'
    refused 1 "rmm-pool has no parameter 'bogus'" '1s/"initial"/"bogus"/'
    refused 1 "parameter 'initial' is neither a number, a flag nor a word" '1s/4096,"max/[],"max/'
    refused 1 '"params" is 5; expected an object' '1s/"params":{[^}]*}/"params":5/'
    refused 1 '"va" is "left"; expected "up", "down" or "lowest"' '1s/"va":"up"/"va":"left"/'
    refused 1 '"gran" is 0; expected 1 or more' '1s/"gran":2097152/"gran":0/'
    refused 3 "stream" '3s/"stream":1/"stream":-1/'
    refused 3 "entry 1 of \"drv\" is not a known device call" '3s/"wait"/"map"/'
    refused 4 "id 9 is not in use" '4s/"id":1/"id":9/'
    refused 7 '"oom" is 5; expected true or false' '7s/"oom":true/"oom":5/'
    refused 7 '"hang" is "no"; expected true or false' '7s/"oom":true/"hang":"no"/'
    refused 5 '"size" is -1;' '5s/"size":[0-9]*/"size":-1/'
    refused 5 '"addr" is -1;' '5s/"addr":[0-9]*/"addr":-1/'
    refused 4 "op 'fre' is not known; expected alloc, free, trim or fraction" '4s/"free"/"fre"/'
    refused 9 'the log stops without its "summary" line; it was cut short' '9d'
    small_log | sed '1s/4096,"max/4097,"max/' >"$out/bad.jsonl"
    run ./fraglab verify --against golden "$out/bad.jsonl"
    [ "$status" -eq 2 ]
    [[ "$output" == *"must be multiples of 256"* ]]
}

@test "a head without one of its members, or with another kind of value, is refused" {
    for key in version params capacity va va_base gran gap; do
        refused 1 "\"$key\" is missing" "1s/\"$key\":/\"no\":/"
        refused 1 "\"$key\" is true;" "1s/\"$key\":\([^,{]*\|{[^}]*}\)/\"$key\":true/"
    done
    refused 1 '"params.event_order" is "left"; expected "up" or "down"' '1s/"event_order":"up"/"event_order":"left"/'
    refused 1 '"params.event_order" is 5; expected "up" or "down"' '1s/"event_order":"up"/"event_order":5/'
    refused 1 '"va_base" is 0; expected 1 or more' '1s/"va_base":[0-9]*/"va_base":0/'
    refused 1 '"gap" is 2097152; expected 0, as "va" is "lowest"' '1s/"va":"up"/"va":"lowest"/'
}

@test "another strategy, size or budget of the Vulkan Memory Allocator is seen" {
    differs() { # log, options in place of those of the log
        policy=$(./fraglab trace info $D/$1.jsonl.zst | sed -n 's/.*golden.policy = //p')
        run ./fraglab verify --against golden --policy "$policy,$2" $D/$1.jsonl.zst
        [ "$status" -eq 1 ]
    }
    for other in default min_time min_offset; do
        differs vma-buffers-power-min-memory strategy=$other
        differs vma-virtual-bound-min-memory strategy=$other
    done
    differs vma-buffers-power-min-time strategy=default
    differs vma-virtual-power-min-time strategy=default
    differs vma-virtual-aligned align=2MiB
    differs vma-virtual-train align=128
    differs vma-virtual-power-min-time round=true
    differs vma-buffers-budget memory_budget=false
    differs vma-buffers-limit heap_size_limit=unlimited
    differs vma-buffers-count max_memory_allocation_count=25
    differs vma-buffers-pool max_block_count=7
    differs vma-buffers-pool min_block_count=2
    differs vma-buffers-oom heap_size=3GB
    differs vma-buffers-train preferred_block_size=255MiB
    differs vma-buffers-train align=512
}

@test "another alignment or pool of tlsf.c is seen" {
    for other in align=16 size=1GB; do
        run ./fraglab verify --against golden --policy tlsf-conte:size=1GiB,$other $D/tlsf-conte-train.jsonl.zst
        [ "$status" -eq 1 ]
    done
    run ./fraglab verify --against golden --policy tlsf:align=8 $D/tlsf-conte-train.jsonl.zst
    [ "$status" -eq 1 ]
}

@test "such a log is a recording like others" {
    for log in rmm-pool-streams4 cupy-limit paddle-trim rmm-arena-oom vma-buffers-oom; do
        ./fraglab trace check $D/$log.jsonl.zst
        ./fraglab trace convert $D/$log.jsonl.zst "$out/a.fgt" -f
        ./fraglab trace convert "$out/a.fgt" "$out/a.txt" --to text -f
        ./fraglab trace convert $D/$log.jsonl.zst "$out/b.txt" --to text -f
        cmp "$out/a.txt" "$out/b.txt"
    done
    run ./fraglab trace info $D/rmm-pool-streams4.jsonl.zst
    [[ "$output" == *"golden.policy = rmm-pool:initial_pool_size=1073741824,event_order=up"* ]]
    # The policy of the log reserves what the library reserved.
    run ./fraglab run $D/rmm-pool-streams4.jsonl.zst --policy rmm-pool:initial_pool_size=1GiB --format csv
    [[ "$output" == *",8589934592,"* ]]
}

@test "a default stream that the program never names owns what construction took" {
    printf '# fraglab trace 1\nalloc 0 1000 stream=0x1000\nfree 0\nalloc 0 1000 stream=0x1000\n' >"$out/trace.txt"
    for policy in rmm-pool:initial_pool_size=1MiB rmm-fixed-size rmm-binning:upstream=cuda; do
        run ./fraglab run "$out/trace.txt" --policy "$policy" --check 1 --format jsonl
        [ "$status" -eq 0 ]
        # The block is the default stream's at first, and the program's own when it is freed.
        [[ "$output" == *'"event_record":1,'*'"event_wait":1,'* ]]
    done
}

@test "a policy's page says what it is checked against, and from which version" {
    for policy in rmm-pool rmm-binning rmm-fixed-size rmm-arena tf-bfc ort-arena cupy paddle-auto-growth mxnet-naive mxnet-round vma tlsf-vma tlsf-conte gmlake; do
        run ./fraglab policies "$policy"
        [[ "$output" =~ source\ \ [A-Za-z\ ]+[0-9]+\.[0-9]+ ]]
        [[ "$output" == *$'\n'"checked against the library's own logs, request by request"* ]]
        folder=$(sed -n 's/^.*(\(tests[^*]*\)\*)$/\1/p' <<<"$output")
        [ -n "$folder" ]
        ls "$folder"*.zst >/dev/null
    done
    run ./fraglab policies cuda-async
    [[ "$output" == *$'\n'"checked not against a library"* ]]
}
