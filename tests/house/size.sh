#!/usr/bin/env bash
# How large the house is: lines of C by room, without tests and what stands in for other programs (the software CUDA, recorders,
# a running PyTorch), and the bytes of the program if it is built. tests/house/size.sh [ROOT]
set -u
cd "${1:-.}" || exit 2
export LC_ALL=C

git ls-files -co --exclude-standard -- '*.c' '*.h' | grep -vE '^(tests|gpu_replay/(software|recorder|torch|oracle|dryrun))/' | while read -r file; do
    [ ! -f "$file" ] || echo "${file%%/*} $(wc -l <"$file")"
done | awk '{ lines[$1] += $2; all += $2 } END { for (room in lines) print lines[room], room; print all, "lines of C" }' | sort -n
[ ! -f build/release/fraglab ] || size build/release/fraglab
