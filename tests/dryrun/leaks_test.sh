#!/bin/sh
# `fraglab leaks` on programs of ours under the real PyTorch on software CUDA: each kind of leak is found as what it is, and what looks
# like one is none. Prints a line for each, then how many are right; exit 1 unless all are.
#
#     sh tests/dryrun/leaks_test.sh ./fraglab PYTHON [KIND...]
set -u
fraglab=$1 python=$2
shift 2
folder=$(mktemp -d "${TMPDIR:-/tmp}/fraglab-leaks-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT INT TERM
program=$(dirname "$0")/leaks/program.py
"$python" "$program" --list >"$folder/list"
right=0 all=0
while read -r kind wanted; do
    [ $# -eq 0 ] || case " $* " in *" $kind "*) ;; *) continue ;; esac
    all=$((all + 1))
    if ! "$fraglab" dryrun --stacks -o "$folder/run.pickle" -f -- "$python" "$program" "$kind" >"$folder/log" 2>&1; then
        echo "$kind: did not run"
        tail -n 3 "$folder/log"
        continue
    fi
    "$fraglab" leaks "$folder/run.pickle" --format json >"$folder/found"
    found=$("$python" -c 'import json, sys
leaks = json.load(open(sys.argv[1]))["leaks"]
print(leaks[0]["kind"] if leaks else "-")' "$folder/found")
    if [ "$found" = "$wanted" ]; then
        right=$((right + 1))
        echo "ok $kind: $found"
    else
        echo "not ok $kind: $found, expected $wanted"
    fi
done <"$folder/list"
echo "$right of $all right"
[ "$right" -eq "$all" ]
