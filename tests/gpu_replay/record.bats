# fraglab record on the software CUDA: what was recorded is what the device saw, call for call, however
# the program made its calls and however it ended.

bats_require_minimum_version 1.5.0

setup_file() {
    [ -e libfraglab_record.so ] || skip "built with CUDA=no"
    make --no-print-directory -s record-programs >/dev/null
}

setup() {
    programs=$PWD/build/release/tests/programs
    out=$BATS_TEST_TMPDIR
    cuda=12
    export FRAGLAB_SOFTWARE_CUDA=devices=2,log-calls=memory,log=$out/calls
}

# recorded WHAT...: under the recorder, its messages in $out/said; logs are kept.
recorded() {
    rm -rf "$out"/x.* "$out"/x-* "$out/calls"
    LD_LIBRARY_PATH=$PWD/build/release/software-cuda/$cuda \
        ./fraglab record --by preload --keep-logs -o "$out/x.fgt" "$programs/recorded-$cuda" "$@" 2>"$out/said"
}

logs() { ls "$out"/x.fgt.logs-*/*.devlog; }

# What the device saw, without sequence, thread and the recorder's own question after a failure.
seen() { sed 's/^[0-9]* [0-9]* //' "$1" | grep -v '^cudaMemGetInfo\|^cuMemGetInfo'; }

# The device's log says more in two places than a call's arguments do.
plain() { sed -E 's/^(cuMemRelease handle=[^ ]*) bytes=[0-9]*/\1/'; }

same_calls() { # log
    diff <("$programs/device_log_lines" "$1") <(seen "$out/calls" | plain)
}

@test "every call is recorded, however the program came to it, with CUDA 12 and 13" {
    for cuda in 12 13; do
        for what in plain fail leak devices pools virtual-by-entry virtual-by-dlsym virtual-by-link; do
            echo "$cuda $what"
            recorded "$what"
            same_calls "$(logs)"
            ./fraglab trace check "$(logs)"
            ./fraglab trace check "$out/x.fgt"
        done
    done
}

@test "the recording holds the requests, or the segments when they are asked for" {
    recorded plain devices fail
    ./fraglab trace convert "$out/x.fgt" - --to text | grep -E '^(alloc|free|oom|device)' | cut -d' ' -f1-3 >"$out/requests"
    diff - "$out/requests" <<'END'
device 0
alloc 0 3145728
alloc 1 1000
free 0 bytes=3145728
alloc 0 5242880
free 1 bytes=1000
free 0 bytes=5242880
alloc 0 1048576
free 0 bytes=1048576
oom 1125899906842624 free=85899345920
alloc - 1125899906842624
device 1
alloc 0 2097152
free 0 bytes=2097152
END
    ./fraglab trace convert --from device-segments "$(logs)" - --to text | grep -c '^segment_' | grep -qx 10
    LD_LIBRARY_PATH=$PWD/build/release/software-cuda/12 \
        ./fraglab record -q --as segments --to text -o "$out/x.txt" "$programs/recorded-12" virtual-by-entry
    [ "$(grep -c '^segment_map 2097152' "$out/x.txt")" -eq 2 ]
    [ "$(grep -c '^alloc' "$out/x.txt")" -eq 0 ]
}

@test "threads lose nothing and get their order right" {
    recorded threads
    diff <("$programs/device_log_lines" "$(logs)" | sort) <(seen "$out/calls" | sort)
    [ "$(seen "$out/calls" | wc -l)" -eq 16000 ]
    # An address given out before its free was written would be an inconsistency.
    ./fraglab trace check "$(logs)" | grep -q '16000 events, 0 inconsistencies'
}

@test "a program that is killed or aborts loses nothing" {
    for end in kill abort; do
        run recorded plain $end
        [ "$status" -eq "$([ $end = kill ] && echo 137 || echo 134)" ]
        [ "$("$programs/device_log_lines" "$(logs)" | wc -l)" -eq 6 ]
        ./fraglab trace check -v "$(logs)" | grep -q 'no-end'
        ./fraglab trace check "$out/x.fgt" | grep -q ': ok, 6 events'
    done
}

@test "a log that was cut is read as far as it goes" {
    recorded plain
    head -c 4300 "$(logs)" >"$out/cut.devlog"
    ./fraglab trace check -v "$out/cut.devlog" >"$out/checked"
    grep -q 'ok, 3 events, 0 inconsistencies' "$out/checked"
    grep -q 'tail-missing: the log was cut' "$out/checked"
    grep -q ': 3 of 6 calls' "$out/checked"
}

@test "children and programs that become others have logs of their own" {
    recorded fork leak plain
    [ "$(logs | wc -l)" -eq 2 ]
    ./fraglab trace check "$out/x.fgt" | grep -q 'ok, 7 events'
    ./fraglab trace check "$out"/x-*-0.fgt | grep -q 'ok, 2 events'
    # A log that was begun already stays the parent's.
    recorded leak fork plain
    [ "$(logs | wc -l)" -eq 2 ]
    ./fraglab trace check "$out/x.fgt" | grep -q 'ok, 7 events'
    for log in $(logs); do "$programs/device_log_lines" "$log" | grep -c .; done | sort -n | tr '\n' ' ' | grep -qx '2 7 '
    recorded plain leak exec
    [ "$(logs | sed 's/.*-//' | tr '\n' ' ')" = "0.devlog 1.devlog " ]
    ./fraglab trace check "$out/x.fgt" | grep -q 'ok, 7 events'
    ./fraglab trace info "$out"/x-*-1.fgt >/dev/null
}

@test "the exit code is the program's" {
    run recorded plain exit-7
    [ "$status" -eq 7 ]
    run recorded plain interrupt
    [ "$status" -eq 130 ]
    ./fraglab trace check "$out/x.fgt" | grep -q 'ok, 6 events'
    run -127 ./fraglab record -o "$out/y.fgt" no-such-program
    [[ "$output" == *"'no-such-program' cannot be run (No such file or directory)"* ]]
    run -126 ./fraglab record -o "$out/y.fgt" "$out"
    [ -z "$(ls -d "$out"/y* 2>/dev/null)" ]
}

@test "a program without device calls is told, and leaves nothing" {
    run ./fraglab record -o "$out/y.fgt" true
    [ "$status" -eq 1 ]
    [[ "$output" == *"nothing was recorded: no process made a device call"* ]]
    [ -z "$(ls -d "$out"/y* 2>/dev/null)" ]
    run ./fraglab record -o "$out/y.fgt" sh -c 'exit 5'
    [ "$status" -eq 5 ]
}

@test "the program's streams, options and descriptors are its own" {
    run ./fraglab record -q -o "$out/y.fgt" sh -c 'echo "$1"; cat' - -v <<<"typed"
    [ "$output" = "-v
typed" ]
    recorded close-all plain threads
    [ "$("$programs/device_log_lines" "$(logs)" | wc -l)" -eq 16006 ]
}

@test "dlsym means the same to a recorded program, and calls within calls are not recorded" {
    mkdir "$out/layers"
    LD_PRELOAD=$PWD/libfraglab_record.so FRAGLAB_RECORD=$out/layers "$programs/layered"
    [ "$("$programs/device_log_lines" "$out"/layers/*)" = "cudaMalloc bytes=1 address=0x100000 = 0" ]
}

@test "an output that exists is refused before the program runs" {
    echo old >"$out/y.fgt"
    run ./fraglab record -o "$out/y.fgt" touch "$out/ran"
    [ "$status" -ne 0 ]
    [ ! -e "$out/ran" ]
    [ "$(cat "$out/y.fgt")" = old ]
    run ./fraglab record -o - true
    [ "$status" -eq 2 ]
    [[ "$output" == *"stdout is the program's own"* ]]
}

@test "a log that cannot be written disturbs nobody" {
    LD_LIBRARY_PATH=$PWD/build/release/software-cuda/12 LD_PRELOAD=$PWD/libfraglab_record.so FRAGLAB_RECORD=$out/nowhere \
        run "$programs/recorded-12" plain exit-7
    [ "$status" -eq 7 ]
    [ "$(grep -c 'recording of process' <<<"$output")" -eq 1 ]
}

@test "a log that cannot grow ends, and says so" {
    mkdir "$out/logs"
    unset FRAGLAB_SOFTWARE_CUDA
    LD_LIBRARY_PATH=$PWD/build/release/software-cuda/12 LD_PRELOAD=$PWD/libfraglab_record.so FRAGLAB_RECORD=$out/logs \
        run bash -c 'ulimit -f 300; exec "$1" threads exit-7' - "$programs/recorded-12"
    [ "$status" -eq 7 ]
    [[ "$output" == *"recording of process "*"File too large"* ]]
    ./fraglab trace check -v "$out"/logs/* >"$out/checked"
    grep -q 'stopped: the log could not grow' "$out/checked"
    [ "$("$programs/device_log_lines" "$out"/logs/* | wc -l)" -eq 4096 ]
}

@test "by hand: the preloaded library alone writes a log" {
    mkdir "$out/by-hand"
    LD_LIBRARY_PATH=$PWD/build/release/software-cuda/12 LD_PRELOAD=$PWD/libfraglab_record.so FRAGLAB_RECORD=$out/by-hand \
        "$programs/recorded-12" plain
    ./fraglab run "$out"/by-hand/*.devlog --policy best-fit --format jsonl | grep -q '"requests":3'
}

@test "the recorder says which it is and why" {
    recorded plain
    grep -q '^fraglab: recording by preload, as it was asked for$' "$out/said"
    LD_LIBRARY_PATH=$PWD/build/release/software-cuda/12 ./fraglab record -o "$out/y.fgt" "$programs/recorded-12" plain 2>"$out/said" || true
    grep -qE '^fraglab: recording by (cupti|preload), as ' "$out/said"
}

has_cupti() { [ -e libfraglab_cupti.so ] || skip "built without CUPTI"; }

@test "the recorder in CUPTI follows every kind of driver call" {
    has_cupti
    mkdir "$out/logs"
    FRAGLAB_RECORD=$out/logs LD_LIBRARY_PATH=$programs "$programs/injected" ./libfraglab_cupti.so
    diff - <("$programs/device_log_lines" "$out"/logs/*) <<'END'
cuMemAlloc_v2 bytes=3145728 address=0x1000 = 0
cuMemAllocAsync bytes=2097152 stream=0x70 address=0x2000 = 0
cuMemAlloc_v2 bytes=943718400 address=0x0 = 2
cuMemFree_v2 address=0x1000 = 0
cuMemFreeAsync address=0x2000 stream=0x2 = 0
cuMemAddressReserve bytes=8388608 alignment=0 address=0x600000000000 = 0
cuMemCreate bytes=2097152 device=1 handle=0x10 = 0
cuMemMap address=0x600000000000 bytes=2097152 handle=0x10 = 0
cuMemSetAccess address=0x600000000000 bytes=2097152 = 0
cuMemUnmap address=0x600000000000 bytes=2097152 = 0
cuMemRelease handle=0x10 = 0
cuMemAddressFree address=0x600000000000 bytes=8388608 = 0
cuMemPoolCreate pool=0x5500 = 0
cuMemPoolSetAttribute pool=0x5500 attribute=4 = 0
cuMemAllocFromPoolAsync bytes=1048576 pool=0x5500 stream=0x2 address=0x3000 = 0
cuMemPoolTrimTo pool=0x5500 bytes=5 = 0
cuMemPoolDestroy pool=0x5500 = 0
activity_alloc
END
    ./fraglab trace check "$out"/logs/*
    ./fraglab trace convert "$out"/logs/* - --to text | grep -qx 'meta "record.by" "cupti"'
}

@test "the recorder in CUPTI does no harm where there is no driver" {
    has_cupti
    [ ! -e /dev/nvidiactl ] || skip "a GPU driver is here"
    mkdir "$out/logs"
    FRAGLAB_RECORD=$out/logs run "$programs/injected" ./libfraglab_cupti.so
    [ "$status" -eq 0 ]
    [[ "$output" == *"nothing is recorded, as CUPTI refuses"* ]]
    [ -z "$(ls "$out/logs")" ]
}
