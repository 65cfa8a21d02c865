# Commands on kept recordings answer as before: numbers, names and exit codes of commands.txt. Sentences are left
# out, since they are for people and change more often. FRAG_UPDATE_GOLDEN=1 pins the answers anew.

PINNED=tests/data/answers/commands.txt.zst

# Of every command its exit code and what it prints, without sentences, the tool's version, and times of this machine.
answers() {
    local S=traces/samples R=tests/data/recordings D=tests/data/snapshots T=$BATS_TEST_TMPDIR/made line status
    mkdir -p "$T"
    while read -r line; do
        case $line in '#'*) continue ;; esac
        status=0
        eval "./fraglab $line" >"$BATS_TEST_TMPDIR/out" 2>/dev/null || status=$?
        echo "== $line: $status"
        sed 's/"tool":{[^{}]*},//; s/"\(wall_ns\|host_bytes\|events_per_second\|seconds\)":[^,}]*//g; s/"\(because\|text\|tried\)":"\([^"\\]\|\\.\)*"/"\1":""/g' "$BATS_TEST_TMPDIR/out"
    done <tests/answers/commands.txt
}

@test "commands answer as before" {
    answers >"$BATS_TEST_TMPDIR/now"
    if [ "${FRAG_UPDATE_GOLDEN:-}" = 1 ] && ! zstd -dc "$PINNED" | cmp -s - "$BATS_TEST_TMPDIR/now"; then
        zstd -q -19 -f -o "$PINNED" "$BATS_TEST_TMPDIR/now"
    fi
    zstd -dc "$PINNED" >"$BATS_TEST_TMPDIR/before"
    cmp -s "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/now" || {
        diff "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/now" | cut -c 1-600 | head -n 12
        echo "if on purpose: make answers-golden, and read the difference"
        false
    }
}

@test "every command of the list has an answer" {
    zstd -dc "$PINNED" >"$BATS_TEST_TMPDIR/before"
    run grep '^== .*: [234]$' "$BATS_TEST_TMPDIR/before"
    [ "$status" -eq 1 ]
    [ "$(grep -c '^== ' "$BATS_TEST_TMPDIR/before")" -eq "$(grep -vc '^#' tests/answers/commands.txt)" ]
}
