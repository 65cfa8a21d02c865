# tests/truth/requests.py: two recordings compared request by request, on small ones of our own.

setup() {
    cat >"$BATS_TEST_TMPDIR/real" <<'TEXT'
# fraglab trace 2
device 0
streams 0x0
pools 0:0
alloc 0 4096 initial addr=0x1000 block=4096
alloc 1 1000 addr=0x2000
alloc 2 2000 addr=0x3000
free 1 addr=0x2000
alloc 3 3000 addr=0x4000
free 0 addr=0x1000
TEXT
}

# compare EXPECTED_STATUS DRY [SIZES]
compare() {
    local status=0
    python3 tests/truth/requests.py ./fraglab "$BATS_TEST_TMPDIR/real" "$2" ${3:+"$3"} >"$BATS_TEST_TMPDIR/out" || status=$?
    cat "$BATS_TEST_TMPDIR/out"
    [ "$status" -eq "$1" ]
}

says() {
    grep -qxF "$1" "$BATS_TEST_TMPDIR/out"
}

@test "a recording equals itself" {
    compare 0 "$BATS_TEST_TMPDIR/real"
    says "requests: 3 real, 3 dry, 3 equal, 0 of uncertain size"
    says "frees: 2 real, 2 dry, 2 equal"
    says "peak requested: 9,096 real, 9,096 dry, +0"
    says "peak allocated: 9,216 real, 9,216 dry, +0"
}

@test "a request of another size is named, unless its size is uncertain" {
    sed 's/^alloc 2 2000/alloc 2 2040/' "$BATS_TEST_TMPDIR/real" >"$BATS_TEST_TMPDIR/dry"
    compare 1 "$BATS_TEST_TMPDIR/dry"
    says "requests: 3 real, 3 dry, 2 equal, 0 of uncertain size"
    says "request 2 has 2,000 bytes, in the dry run 2,040"
    compare 0 "$BATS_TEST_TMPDIR/dry" 512,2040
    says "requests: 3 real, 3 dry, 2 equal, 1 of uncertain size"
}

@test "a request too few is named, the others stay equal" {
    sed '/^alloc 2/d' "$BATS_TEST_TMPDIR/real" >"$BATS_TEST_TMPDIR/dry"
    compare 1 "$BATS_TEST_TMPDIR/dry"
    says "requests: 3 real, 2 dry, 2 equal, 0 of uncertain size"
    says "request 2 of 2,000 bytes is in the real recording only"
}

@test "a free that moved is named with both places" {
    sed '/^free 1/d; $a free 1 addr=0x2000' "$BATS_TEST_TMPDIR/real" >"$BATS_TEST_TMPDIR/dry"
    compare 1 "$BATS_TEST_TMPDIR/dry"
    says "frees: 2 real, 2 dry, 1 equal"
    says "the free of request 1 comes after request 2 in the real recording only"
    says "the free of request 1 comes after request 3 in the dry run only"
}

@test "what is no recording is refused" {
    echo nonsense >"$BATS_TEST_TMPDIR/dry"
    compare 2 "$BATS_TEST_TMPDIR/dry"
}
