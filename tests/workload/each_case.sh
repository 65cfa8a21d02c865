#!/bin/sh
# Generates every small case of tests/workload/cases with a program that a sanitizer watches:
#
#     sh tests/workload/each_case.sh build/asan/fraglab
#
# What comes out is compared elsewhere (generate.bats); here nothing may be read or written that is not there.
set -u
here=$(dirname "$0")
failed=0 count=0
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
while read -r name config card knobs; do
    case $config in *-tiny.*) ;; *) continue ;; esac
    # shellcheck disable=SC2046,SC2086
    "$1" trace generate "$here/models/$config" --gpu "$card" $(for knob in $knobs; do echo "--$(echo "${knob%%=*}" | tr _ -) ${knob#*=}"; done) \
        -q -f -o "$out/made.fgt" 2>"$out/said" </dev/null || { echo "$name:" && head -n 20 "$out/said" && failed=$((failed + 1)); }
    count=$((count + 1))
done <"$here/cases"
echo "$count cases, $failed failed"
[ "$failed" = 0 ] && [ "$count" -gt 500 ]
