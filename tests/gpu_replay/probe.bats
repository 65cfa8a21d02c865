# fraglab device probe over the software CUDA: it finds what that was told to be, a run on what it
# wrote agrees with the device it was measured on, and nothing is ever held afterwards.

SOFTWARE=build/release/software-cuda

setup_file() {
    make --no-print-directory -s MODE=release software-cuda >/dev/null
}

# probe SETTINGS MAJOR ARGUMENT...: the description goes to card.yaml, what was held at exit to leaks.
probe() {
    local settings=$1 major=$2
    shift 2
    rm -f "$BATS_TEST_TMPDIR/leaks"
    FRAGLAB_SOFTWARE_CUDA="$settings,leaks=$BATS_TEST_TMPDIR/leaks" LD_LIBRARY_PATH=$SOFTWARE/$major \
        timeout 1800 ./fraglab device probe --cudart "$SOFTWARE/$major/libcudart.so.$major" "$@" >"$BATS_TEST_TMPDIR/card.yaml"
}

# finds LINE...: the description has these lines, whatever stands before them.
finds() {
    for line; do
        grep -qE "^ *(- )?$line\$" "$BATS_TEST_TMPDIR/card.yaml" || { cat "$BATS_TEST_TMPDIR/card.yaml"; echo "has no line: $line"; return 1; }
    done
}

# row ARGUMENT...
row() {
    ./fraglab run traces/samples/unet.pickle.zst --policy direct --format jsonl "$@"
}

value() {
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" <<<"$2"
}

@test "finds what the software CUDA is when nothing is set, with either runtime" {
    for major in 12 13; do
        probe capacity=8GiB $major
        finds "origin: software" "total: 8GiB" "page: 2MiB" "alignment: 2MiB" "large_alignment: 2MiB" "reuse: lowest" \
            "serves_scattered: true" "granularity: 2MiB" "recommended: 2MiB" "first: 32MiB" "step: 32MiB" \
            "releases_at_synchronize: true" "keeps_below_threshold: true"
        ! grep -qE "footprint|context" "$BATS_TEST_TMPDIR/card.yaml" || false
        finds "cuda: '$major\\..*"
        [ "$(cat "$BATS_TEST_TMPDIR/leaks")" = "held: nothing" ]
    done
}

@test "finds other settings, to the byte" {
    probe capacity=24GiB,context=300MiB,footprint=classes,addresses=bump,pool-growth=64MiB,granularity=64KiB 12
    # A request takes a sixteenth more in steps of 8 KiB, up to 512 KiB; then up to 1 MiB that.
    finds "total: 24GiB" "context: 300MiB" "page: 64KiB" "granularity: 64KiB" "reuse: never" "first: 64MiB" "step: 64MiB" \
        "\{up_to: 7711, takes: 8KiB\}" "\{up_to: 15421, takes: 16KiB\}" "\{up_to: 512KiB, takes: 544KiB\}" "\{up_to: 1MiB, takes: 1MiB\}"
    [ "$(grep -c up_to "$BATS_TEST_TMPDIR/card.yaml")" -eq 69 ]
    grep -A1 "up_to: 1MiB" "$BATS_TEST_TMPDIR/card.yaml" | grep -q "^malloc:"
    [ "$(cat "$BATS_TEST_TMPDIR/leaks")" = "held: nothing" ]
}

@test "what others use is not taken for the context" {
    probe capacity=8GiB,context=300MiB,others=1GiB 13
    finds "total: 8GiB" "context: 300MiB"
}

@test "another card of several is measured" {
    probe capacity=8GiB,devices=2,capacity=2GiB/1 13 --device cuda:1
    finds "total: 2GiB" "page: 2MiB"
}

@test "a run takes over what was measured" {
    probe capacity=6GiB,context=400MiB 13
    got=$(row --gpu "$BATS_TEST_TMPDIR/card.yaml")
    [ "$(value capacity_bytes "$got")" -eq $((6 << 30)) ]
    [ "$(value used_by_others_bytes "$got")" -eq $((400 << 20)) ]
    [ "$(value gpu "$got")" = "Software GPU" ]
    [ "$(value modelled_time_ns "$got")" -gt 0 ]
}

@test "the card and its simulation by the measured description agree, where memory runs out too" {
    settings=capacity=6GiB,context=400MiB,footprint=classes,granularity=64KiB
    probe $settings 13
    for arguments in "" "--capacity 401MiB" "--capacity 380MiB --ballast"; do
        # shellcheck disable=SC2086
        FRAGLAB_SOFTWARE_CUDA=$settings LD_LIBRARY_PATH=$SOFTWARE/13 ./fraglab run traces/samples/pr193400.pickle.zst \
            --device sim,cuda --gpu "$BATS_TEST_TMPDIR/card.yaml" --policy pytorch,best-fit,direct,rmm-pool $arguments \
            --format jsonl >"$BATS_TEST_TMPDIR/rows"
        grep -o '"label.*' "$BATS_TEST_TMPDIR/rows" | grep is_same || true
        [ "$(grep -c '"is_same":true' "$BATS_TEST_TMPDIR/rows")" -eq 4 ]
    done
    [ "$(grep -c '"sim_event":[0-9]' "$BATS_TEST_TMPDIR/rows")" -ge 2 ]
}

@test "doctor sees the software GPU, and who uses it" {
    FRAGLAB_SOFTWARE_CUDA=capacity=8GiB,others=1GiB LD_LIBRARY_PATH=$SOFTWARE/13 ./fraglab doctor >"$BATS_TEST_TMPDIR/out"
    cat "$BATS_TEST_TMPDIR/out"
    grep -qx "nvml         driver 580.0+software, CUDA up to 13.0" "$BATS_TEST_TMPDIR/out"
    grep -q "^gpu 0        Software GPU, 8.00 GiB, 1.00 GiB used, .*, 7.00 GiB free$" "$BATS_TEST_TMPDIR/out"
}

@test "with --no-fill all memory is never taken, and the question stays open" {
    probe capacity=8GiB,log="$BATS_TEST_TMPDIR/log" 13 --no-fill
    ! grep -q serves_scattered "$BATS_TEST_TMPDIR/card.yaml" || false
    finds "reuse: lowest"
    # 1 GiB at most in one malloc, and at most 2 GiB of 8.
    ! grep -qE "cudaMalloc .*bytes=([0-9]{11,}|[2-9][0-9]{9})" "$BATS_TEST_TMPDIR/log" || false
}

@test "a call that fails is told in the driver's words, and nothing is held" {
    for fault in malloc:1:2 malloc:100:999 free:50:999 free:700:999 MemPoolCreate:1:801 mallocFromPoolAsync:3:2 \
        mallocFromPoolAsync:20:999 freeAsync:2:999 freeAsync:60:999 cuMemMap:2:999 cuMemSetAccess:4:999 cuMemUnmap:3:999 \
        cuMemRelease:4:999 cuMemAddressFree:2:999 MemGetInfo:7:999 EventRecord:2:999 StreamCreateWithFlags:1:2; do
        status=0
        probe capacity=4GiB,fail=$fault 13 2>"$BATS_TEST_TMPDIR/err" || status=$?
        echo "$fault: $status $(cat "$BATS_TEST_TMPDIR/err" "$BATS_TEST_TMPDIR/leaks")"
        [ "$status" -eq 4 ]
        [ ! -s "$BATS_TEST_TMPDIR/card.yaml" ]
        [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ]
        [ "$(cat "$BATS_TEST_TMPDIR/leaks")" = "held: nothing" ]
    done
    grep -q "cudaStreamCreateWithFlags: .*(cudaError.*, 2)" "$BATS_TEST_TMPDIR/err"
}

# refuses SENTENCE SETTINGS ARGUMENT...
refuses() {
    local sentence=$1 settings=$2 status=0
    shift 2
    probe "$settings" 13 "$@" 2>"$BATS_TEST_TMPDIR/err" || status=$?
    cat "$BATS_TEST_TMPDIR/err"
    [ "$status" -eq 4 ]
    grep -qF -- "$sentence" "$BATS_TEST_TMPDIR/err"
}

@test "a card that cannot be measured is refused with the reason" {
    refuses "the probe needs 512.00 MiB of free memory and the card has 200.00 MiB" capacity=200MiB
    refuses "an illegal memory access was encountered (cudaErrorIllegalAddress, 700)" capacity=4GiB,sticky=700@500
    refuses "there is no GPU number 1" capacity=4GiB --device cuda:1
    refuses "a byte more than 64 MiB took 4.00 MiB more" capacity=4GiB,granularity=4MiB
}

@test "what is no GPU, and no runtime, is refused" {
    run ./fraglab device probe --device sim
    [ "$status" -eq 2 ] && [ "$output" = "fraglab: --device: 'sim' is not a GPU; expected cuda or cuda:N" ]
    run ./fraglab device probe --device cuda:x
    [ "$status" -eq 2 ]
    run ./fraglab device probe --cudart ./none.so
    [ "$status" -eq 4 ]
    grep -q "the CUDA runtime cannot be opened" <<<"$output"
}

@test "an older description stays when the probe fails" {
    echo old >"$BATS_TEST_TMPDIR/kept.yaml"
    status=0
    probe capacity=4GiB,fail=malloc:1:2 13 -f -o "$BATS_TEST_TMPDIR/kept.yaml" 2>/dev/null || status=$?
    [ "$status" -eq 4 ]
    [ "$(cat "$BATS_TEST_TMPDIR/kept.yaml")" = old ]
    probe capacity=4GiB 13 -f -o "$BATS_TEST_TMPDIR/kept.yaml"
    ./fraglab run traces/samples/pr193400.pickle.zst --policy direct --gpu "$BATS_TEST_TMPDIR/kept.yaml" >/dev/null
}
