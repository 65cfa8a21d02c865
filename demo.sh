#!/bin/sh
# demo.sh FOLDER RECORDING...: what fraglab shows, from recordings to pictures. `make demo` calls it.
set -eu
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
show ./fraglab run "$@" --policy all
for recording in "$@"; do
    name=$(basename "$recording")
    name=${name%%.*}
    show ./fraglab run "$recording" --policy all --format jsonl -f -o "$folder/$name.jsonl"
    show ./fraglab plot timeline "$recording" --policy pytorch,best-fit -f -o "$folder/$name-timeline.svg"
    show ./fraglab plot map "$recording" --policy pytorch -f -o "$folder/$name-map.png"
    show ./fraglab plot bars "$folder/$name.jsonl" -f -o "$folder/$name-bars.svg"
    show ./fraglab plot survival "$recording" --policy pytorch,best-fit -f -o "$folder/$name-survival.svg"
done
echo "drawn:"
ls -l "$folder" | awk 'NR > 1 { print "  " $5 "  '"$folder"'/" $9 }'
