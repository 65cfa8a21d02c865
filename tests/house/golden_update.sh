#!/usr/bin/env bash
# Writes what the tests pin anew, after a change on purpose: golden_update.sh [WHAT...]
# WHAT: help, results, statistics, fields (tables of docs/result-format.md), explain, answers, docs (output that pages
# show); without one all of them. Files whose content stays are left alone; the diff is to be read.
set -eu
cd "$(dirname "$0")/../.."
programs=build/release/tests

build() { ${MAKE:-make} --no-print-directory -s MODE=release "$@"; }

run_bats() { FRAG_UPDATE_GOLDEN=1 bats -f "$2" "$1" >/dev/null || FRAG_UPDATE_GOLDEN=1 bats -f "$2" "$1"; }

# pin PROGRAM FILE: what the test program writes, compressed.
pin() {
    build "$programs/$1"
    "$programs/$1" --write >"$2.tmp"
    if ! [ -f "$2" ] || ! zstd -qdc "$2" | cmp -s - "$2.tmp"; then
        zstd -q --ultra -22 -f -o "$2" "$2.tmp"
    fi
    rm -f "$2.tmp"
}

[ $# -gt 0 ] || set -- help results statistics fields explain answers docs
for what in "$@"; do
    echo "$what" >&2
    case $what in
    help) run_bats tests/cli/help.bats 'help is what it was' ;;
    results) FRAG_UPDATE_GOLDEN=1 bats -f 'known results' tests/sim/results.bats ;;
    statistics) run_bats tests/sim/statistics.bats 'the table is that of' ;;
    fields)
        build $programs/test_row_fields
        $programs/test_row_fields --write
        ;;
    explain) pin test_oom_answers tests/data/oom-messages/answers.txt.zst ;;
    answers)
        sh tests/golden_logs.sh
        for pair in policy:policies reader:readers snapshot:snapshots trace:traces message:messages sentence:sentences plan:plans verify:verify row:rows explain:explanations study:studies border:borders fix:fixes golden:golden program:programs sweep:sweeps form:forms damage:damages database:databases byte:bytes setup:setups evidence:evidence log:logs value:values rank:ranks run:runs; do
            pin "test_${pair%:*}_answers" "tests/data/answers/${pair#*:}.txt.zst"
        done
        run_bats tests/answers/commands.bats .
        ;;
    docs)
        mkdir -p build
        ${CC:-gcc} -std=c11 -O2 -fPIC -shared -I. -o build/my_policy.so examples/my_policy.c
        bash tests/house/docs.sh update README.md allocators/README.md traces/samples/README.md docs/*.md
        ;;
    *)
        echo "$0: '$what' is not pinned; expected help, results, statistics, fields, explain, answers or docs" >&2
        exit 2
        ;;
    esac
done
git status --short -- README.md docs allocators traces/samples tests/data 2>/dev/null || true
