# docs/claims.md: the page is what its rows say, and the generated figures are those of this program.

here=tests/workload/claims

@test "docs/claims.md is what the rows say" {
    python3 $here/claims.py page >"$BATS_TEST_TMPDIR/claims.md"
    diff docs/claims.md "$BATS_TEST_TMPDIR/claims.md"
}

@test "the generated figures of each row are what fraglab plan says now" {
    run python3 $here/claims.py check ./fraglab
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "${lines[-1]}" == [1-9]*" settings, 0 differ" ]]
}

@test "allocated peaks of generated traces are those of the dry runs" {
    # setting, allocated, reserved, settled, made_allocated, ...
    awk -F'\t' 'NR > 1 && $5 != "-" && $7 == "fits" { count++; apart = $5 / $2 - 1; if (apart > 0.03 || apart < -0.03) { print $1, apart; bad = 1 } } END { exit bad || count < 20 }' $here/rows.tsv
}
