#!/bin/sh
# demo.sh FOLDER RECORDING...: what fraglab shows, from recordings to pictures. `make demo` calls it; FRAGLAB names another program than ./fraglab.
set -eu
fraglab=${FRAGLAB:-./fraglab}
folder=$1
shift
if [ $# -eq 0 ]; then
    echo "demo.sh: no recordings in traces/samples/" >&2
    exit 1
fi
mkdir -p "$folder"
show() {
    echo "\$ $*"
    "$@"
    echo
}
# Every policy, and PyTorch's with the settings people try first.
tuned="--policy pytorch:expandable_segments=true --policy pytorch:max_split_size_mb=128
    --policy pytorch:roundup_power2_divisions=8"
for recording in "$@"; do
    name=$(basename "$recording")
    name=${name%%.*}
    # shellcheck disable=SC2086
    show "$fraglab" run "$recording" --policy all $tuned --format jsonl -f -o "$folder/$name.jsonl"
    show "$fraglab" plot timeline "$recording" --policy pytorch,best-fit -f -o "$folder/$name-timeline.svg"
    show "$fraglab" plot map "$recording" --policy pytorch -f -o "$folder/$name-map.png"
    show "$fraglab" plot bars "$folder/$name.jsonl" -f -o "$folder/$name-bars.svg"
    # shellcheck disable=SC2086
    show "$fraglab" plot front "$recording" --policy all $tuned -f -o "$folder/$name-front.svg"
    show "$fraglab" plot survival "$recording" --policy pytorch,best-fit -f -o "$folder/$name-survival.svg"
done
# shellcheck disable=SC2086 # one word per option
show "$fraglab" run "$@" --policy all $tuned
show "$fraglab" report "$@" -f -o "$folder/report.html"
echo "drawn:"
ls -l "$folder" | awk 'NR > 1 { print "  " $5 "  '"$folder"'/" $9 }'
