#!/usr/bin/env bash
# The five-minute loop: unit tests whose programs changed since they last passed, and the rules of the tree.
# Usage: check.sh FOLDER_OF_TEST_PROGRAMS PROGRAM...
set -u
passed=$1/passed
shift
mkdir -p "$passed"
ran=0 failed=0
for program in "$@"; do
    name=$(basename "$program")
    digest=$(sha1sum <"$program")
    [ "$digest" = "$(cat "$passed/$name" 2>/dev/null)" ] && continue
    ran=$((ran + 1))
    if "$program" >"$passed/$name.log" 2>&1; then
        echo "$digest" >"$passed/$name"
    else
        failed=$((failed + 1))
        echo "== $name failed"
        grep -vE '^\[ +(RUN|OK) ' "$passed/$name.log" | tail -n 30
    fi
done
bash tests/house/tidiness.sh . || failed=$((failed + 1))
echo "check: $ran of $# unit tests had changed; $failed failed. 'make test' runs everything."
[ "$failed" = 0 ]
