# How `make test` runs its steps: all are counted, each says that it has ended, what hangs is ended and named.

run_with() { # the body of the function that names the steps
    printf 'set -u\nlogs=%s/logs\njobs=2\n. tests/house/steps.sh\nsteps() {\n%s\n}\nrun_steps steps\n' "$BATS_TEST_TMPDIR" "$1" \
        >"$BATS_TEST_TMPDIR/steps"
    run sh "$BATS_TEST_TMPDIR/steps"
    echo "$output"
}

@test "each step says which of how many it is, how long it took and how it ended" {
    run_with 'both() { beside first true; beside second sh -c "exit 0"; }; side_by_side both; step third true'
    [ "$status" -eq 0 ]
    [[ "$output" == *"3 steps, 2 at a time"* ]]
    # The two side by side may end, and say so, in either order.
    [ "$(grep -cE '^\[[12]/3\] (first|second) +[0-9]+ s  ok$' <<<"$output")" -eq 2 ]
    [[ "$output" == *"[1/3] "* && "$output" == *"[2/3] "* && "$output" == *" first "* && "$output" == *" second "* ]]
    [[ "$output" == *"[3/3] third "*" s  ok"* ]]
    [[ "$output" == *"3 passed, 0 failed, 0 skipped"* ]]
}

@test "a step that hangs is ended, and the message says after how long" {
    export FRAG_LIMIT=1
    run_with 'step hung sleep 300'
    [ "$status" -eq 1 ]
    [[ "$output" == *"hung timed out after "*" s; FRAG_LIMIT=seconds allows more"* ]]
    [[ "$output" == *"0 passed, 1 failed"*"failed: hung"* ]]
}

@test "a failed step shows what it printed, and the others run" {
    run_with 'step broken sh -c "echo why; exit 3"; step sound true'
    [ "$status" -eq 1 ]
    [[ "$output" == *"broken: exit 3 after "*"why"*"[2/2] sound"*"1 passed, 1 failed"* ]]
}

@test "a skip is counted, once, and is an error when FRAG_STRICT asks for that" {
    run_with 'step sound true; skip missing "not installed"'
    [ "$status" -eq 0 ]
    [[ "$output" == *"1 passed, 0 failed, 1 skipped"*"missing (not installed)"* ]]
    export FRAG_STRICT=1
    run_with 'skip missing "not installed"'
    [ "$status" -eq 1 ]
}
