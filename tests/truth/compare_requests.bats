# tests/truth/compare_requests.py: two recordings compared request by request, on small ones of our own.

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

# compare EXPECTED_STATUS DRY [SIZES and options]
compare() {
    local status=0 expected=$1
    shift
    python3 tests/truth/compare_requests.py ./fraglab "$BATS_TEST_TMPDIR/real" "$@" >"$BATS_TEST_TMPDIR/out" || status=$?
    cat "$BATS_TEST_TMPDIR/out"
    [ "$status" -eq "$expected" ]
}

says() {
    grep -qxF "$1" "$BATS_TEST_TMPDIR/out"
}

# A dry run of three steps, 40 requests each, as text; $1 steps of it are the recording of a GPU, from step $2 on.
steps() {
    awk -v count="$1" -v first="${2:-0}" 'BEGIN {
        print "# fraglab trace 2\ndevice 0\nstreams 0x0\npools 0:0"
        print(first ? "alloc 0 4096 initial addr=0x1000 block=4096" : "alloc 0 4096 addr=0x1000")
        for (step = first; step < first + count; step++)
            for (i = 1; i <= 40; i++) {
                address = sprintf("0x%x", 65536 * (40 * step + i))
                print "alloc", 40 * step + i, 1000 * i + (i == 7 ? 100 * step : 0), "addr=" address
                print "free", 40 * step + i, "addr=" address
            }
    }'
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

@test "a recording that holds the end is compared with the end" {
    steps 3 >"$BATS_TEST_TMPDIR/dry"
    steps 2 1 >"$BATS_TEST_TMPDIR/real"
    compare 0 "$BATS_TEST_TMPDIR/dry"
    says "window: requests 42 to 121 of 121 of the dry run, its last ones; the sizes are so at no other place"
    says "requests: 80 real, 80 dry, 80 equal, 0 of uncertain size"
    says "frees: 80 real, 80 dry, 80 equal"
    says "peak requested: 44,096 real, 44,096 dry, +0"
}

@test "a recording from the middle is found, and other places are counted" {
    steps 3 >"$BATS_TEST_TMPDIR/dry"
    steps 1 1 >"$BATS_TEST_TMPDIR/real"
    compare 0 "$BATS_TEST_TMPDIR/dry"
    says "window: requests 42 to 81 of 121 of the dry run; the sizes are so at no other place"
    sed -i 's/ 7[012]00 / 7000 /' "$BATS_TEST_TMPDIR/dry" "$BATS_TEST_TMPDIR/real"
    compare 0 "$BATS_TEST_TMPDIR/dry"
    says "window: requests 82 to 121 of 121 of the dry run, its last ones; the sizes are so at 2 other places"
}

@test "a window does not hide what differs in it" {
    steps 3 >"$BATS_TEST_TMPDIR/dry"
    steps 2 1 | sed 's/ 7100 / 7777 /' >"$BATS_TEST_TMPDIR/real"
    compare 1 "$BATS_TEST_TMPDIR/dry"
    says "window: requests 42 to 121 of 121 of the dry run, its last ones"
    says "requests: 80 real, 80 dry, 79 equal, 0 of uncertain size"
    says "request 7 has 7,777 bytes, in the dry run 7,100"
    steps 2 1 | sed '/^alloc 60 /d; /^free 60 /d' >"$BATS_TEST_TMPDIR/real"
    compare 1 "$BATS_TEST_TMPDIR/dry"
    says "requests: 79 real, 80 dry, 79 equal, 0 of uncertain size"
    steps 2 1 | sed '/^free 60 /d' >"$BATS_TEST_TMPDIR/real"
    compare 1 "$BATS_TEST_TMPDIR/dry"
    says "the free of request 20 comes after request 20 in the dry run only"
}

@test "--window whole compares all, --json has every difference" {
    steps 3 >"$BATS_TEST_TMPDIR/dry"
    steps 2 1 >"$BATS_TEST_TMPDIR/real"
    compare 1 "$BATS_TEST_TMPDIR/dry" --window whole --json
    python3 - "$BATS_TEST_TMPDIR/out" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
assert found["requests"] == {"real": 80, "dry": 121, "equal": 80, "uncertain": 0}, found["requests"]
assert found["window"] == {"first": 1, "last": 121, "of": 121, "other_places": None}
assert sum("in the dry run only" in line for line in found["differences"]) >= 41
PYTHON
    compare 0 "$BATS_TEST_TMPDIR/dry" --window last
}

@test "one device of several is compared" {
    sed '1d; s/^device 0/device 1/; s/^alloc 3 3000/alloc 3 3500/' "$BATS_TEST_TMPDIR/real" >"$BATS_TEST_TMPDIR/second"
    cat "$BATS_TEST_TMPDIR/real" "$BATS_TEST_TMPDIR/second" >"$BATS_TEST_TMPDIR/both"
    compare 0 "$BATS_TEST_TMPDIR/both"
    compare 2 "$BATS_TEST_TMPDIR/both" --device 1
    cp "$BATS_TEST_TMPDIR/both" "$BATS_TEST_TMPDIR/real"
    compare 0 "$BATS_TEST_TMPDIR/both" --device 1
    sed -i 's/ 3500 / 3600 /' "$BATS_TEST_TMPDIR/both"
    compare 0 "$BATS_TEST_TMPDIR/both"
    compare 1 "$BATS_TEST_TMPDIR/both" --device 1
    says "request 3 has 3,500 bytes, in the dry run 3,600"
}
