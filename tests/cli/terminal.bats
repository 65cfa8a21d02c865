# What only a person at a terminal sees, and what ^C does.

setup_file() {
    export BIG=$BATS_FILE_TMPDIR/big.txt
    write_trace 200000 >"$BIG"
}

write_trace() { # requests
    awk -v count="$1" 'BEGIN {
        print "# fraglab trace 1"; print "device 0"
        for (i = 0; i < count; i++) {
            slot = i % 5000
            if (i >= 5000) print "free " slot
            print "alloc " slot " " 512 + (i * 7919) % 3000000
        }
    }'
}

# Runs a command line on a terminal of its own, with everything it says in $output.
on_terminal() {
    command -v script >/dev/null || skip "no 'script' here"
    script -qec true /dev/null >/dev/null 2>&1 || skip "no terminal to be had here"
    run script -qec "$1" /dev/null
}

@test "progress is drawn on a terminal and erased before the rows and at the end" {
    on_terminal "TERM=xterm ./fraglab run $BIG $BIG --policy all"
    [ "$status" -eq 0 ]
    [[ "$output" == *$'\r\x1b[Kreplaying'* ]]
    # On what is left of each line after its last erasure, no progress remains.
    ! sed 's/.*\x1b\[K//' <<<"$output" | grep -q replaying || false
}

@test "what to type next can be pasted as it is" {
    cp docs/scenarios/live-tensors.trace "$BATS_TEST_TMPDIR/my run.trace"
    on_terminal "TERM=xterm ./fraglab run '$BATS_TEST_TMPDIR/my run.trace' --policy pytorch --label mine"
    [ "$status" -eq 0 ]
    [[ "$output" == *"next:  fraglab plot timeline '$BATS_TEST_TMPDIR/my run.trace' --policy pytorch"* ]]
    # What came by a pipe is gone.
    on_terminal "cat docs/scenarios/live-tensors.trace | TERM=xterm ./fraglab run - --policy pytorch"
    [ "$status" -eq 0 ]
    [[ "$output" != *"next:"* ]]
}

# binary_refused WORDS COMMAND...: on a terminal the command says so, and nothing else; into a pipe it writes.
binary_refused() {
    on_terminal "TERM=dumb ./fraglab $2"
    echo "$output"
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "${lines[0]}" == "fraglab: $1"* ]]
    bytes=$(eval "./fraglab $2" 2>/dev/null | head -c 100000 | wc -c)
    [ "$bytes" -gt 100 ]
}

@test "what is no text is not written to a terminal" {
    trace=docs/scenarios/live-tensors.trace
    binary_refused "a terminal cannot show a .fgt file; redirect stdout, name a file, or add --to text" "trace convert $trace -"
    binary_refused "a terminal cannot show a .fgt file; " "trace convert $trace -f -o /dev/stdout"
    binary_refused "a terminal cannot show a .fgt file; " "trace cut $trace --events 0.. -o -"
    binary_refused "a terminal cannot show a png; redirect stdout, name a file with -o, or leave --format out" "plot timeline $trace --format png"
    binary_refused "a terminal cannot show a pdf; " "plot timeline $trace --format pdf -o -"
    binary_refused "--snapshot: a terminal cannot show a snapshot; name a file" "run $trace --policy pytorch -o /dev/null --snapshot -"
    # The terminal by another name; what is text is written.
    on_terminal "./fraglab trace convert $trace /dev/tty"
    [ "$status" -eq 2 ]
    on_terminal "./fraglab trace convert --to text $trace -"
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "# fraglab trace 2"* ]]
    on_terminal "./fraglab plot timeline $trace --format svg"
    [ "$status" -eq 0 ]
}

@test "no progress with -q, on a dumb terminal, or into a pipe" {
    on_terminal "TERM=xterm ./fraglab run $BIG $BIG --policy all -q"
    [[ "$output" != *$'\x1b'* ]]
    on_terminal "TERM=dumb ./fraglab run $BIG $BIG --policy all"
    [[ "$output" != *$'\x1b'* ]]
    ! TERM=xterm ./fraglab run "$BIG" --policy all 2>&1 | grep -q $'\x1b' || false
}

@test "an interrupt ends with 130 and whole rows" {
    # A job of a shell that is not interactive would ignore the signal.
    env --default-signal=INT ./fraglab run "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" \
        "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" --policy all --format jsonl -j 1 \
        >"$BATS_TEST_TMPDIR/rows" 2>"$BATS_TEST_TMPDIR/said" &
    child=$!
    while [ ! -s "$BATS_TEST_TMPDIR/rows" ] && kill -0 "$child"; do sleep 0.05; done
    kill -INT "$child"
    status=0
    wait "$child" || status=$?
    [ "$status" -eq 130 ]
    [ "$(cat "$BATS_TEST_TMPDIR/said")" = "fraglab: interrupted" ]
    while read -r row; do
        [[ "$row" == {*} ]]
    done <"$BATS_TEST_TMPDIR/rows"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -lt 144 ]
}

# Starts a command, sends it the signal when it works, and leaves its exit code in $status.
interrupted() { # signal, command...
    env --default-signal=INT,TERM,HUP "${@:2}" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" &
    child=$!
    sleep 0.4
    kill -"$1" "$child"
    status=0
    wait "$child" || status=$?
}

@test "a run that was interrupted or ended leaves an older output file as it was, and nothing beside it" {
    folder=$BATS_TEST_TMPDIR/outputs
    for signal in INT TERM HUP; do
        rm -rf "$folder"
        mkdir "$folder"
        echo older >"$folder/rows"
        interrupted $signal ./fraglab run "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" "$BIG" --policy all -f -o "$folder/rows"
        [ "$status" -eq $((128 + $(kill -l $signal))) ]
        [ "$(cat "$folder/rows")" = older ]
        [ "$(ls -A "$folder")" = rows ] || [ "$signal" != INT ]
    done
}

@test "an interrupt is heard while a file besides the rows is made" {
    write_trace 2000000 >"$BATS_TEST_TMPDIR/long.txt" # seconds of work on the fastest machine
    for option in chrome snapshot; do
        interrupted INT ./fraglab run "$BATS_TEST_TMPDIR/long.txt" --policy direct --$option "$BATS_TEST_TMPDIR/beside"
        [ "$status" -eq 130 ]
        [ ! -e "$BATS_TEST_TMPDIR/beside" ]
    done
}
