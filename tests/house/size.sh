#!/usr/bin/env bash
# How large the house is: lines of C by room, without tests and what stands in for other programs (the software CUDA, recorders,
# a running PyTorch), and the bytes of the program if it is built.
#     tests/house/size.sh [ROOT]
#     tests/house/size.sh --features [COMMIT]
# --features counts by feature instead: those of tests/house/features.txt, and the rest; beside each how many of its lines stood in
# some C file of the commit, letter for letter (lines of twelve letters or more), and last all lines of that commit.
set -u
export LC_ALL=C
not_ours='(^|/)(tests|gpu_replay/(software|recorder|torch|oracle|dryrun))/'

files() { git ls-files -co --exclude-standard -- '*.c' '*.h' | grep -vE "$not_ours" | while read -r file; do [ ! -f "$file" ] || echo "$file"; done; }
lines_of() { # COMMIT
    git ls-tree -r --format='%(objectname) %(path)' "$1" | grep -E '\.[ch]$' | grep -vE " ${not_ours#(^|/)}" | cut -d' ' -f1 | git cat-file --batch='%(objecttype)'
}

if [ "${1:-}" = --features ]; then
    commit=${2:-d16da4e}
    git cat-file -e "$commit^{commit}" 2>/dev/null || { echo "size.sh: commit $commit is not in this clone; expected one with its history" >&2; exit 2; }
    { lines_of "$commit" | sed 's/^/0 /'; files | while read -r file; do sed "s|^|1 $file |" "$file"; done; } | awk '
        BEGIN {
            while ((getline line < "tests/house/features.txt") > 0) {
                if (line ~ /^#/ || split(line, part, ": ") < 2) continue
                names[++features] = part[1]
                count = split(part[2], glob, " ")
                for (i = 1; i <= count; i++) { gsub(/\./, "\\.", glob[i]); gsub(/\*/, ".*", glob[i]); patterns[features] = patterns[features] "|^" glob[i] "$" }
                patterns[features] = substr(patterns[features], 2)
            }
            names[++features] = "the rest"; patterns[features] = "."
        }
        function plain(text) { gsub(/[ \t]+/, " ", text); sub(/^ /, "", text); return length(text) < 12 ? "" : text }
        $1 == 0 { then += $0 == "0 blob" ? -1 : 1; # behind each blob stands an empty line
            stood[plain(substr($0, 3))] = 1; next }
        {
            if (!($2 in of)) for (of[$2] = 1; $2 !~ patterns[of[$2]]; of[$2]++) ;
            lines[of[$2]]++; all++
            text = plain(substr($0, length($2) + 4))
            if (text != "" && text in stood) { kept[of[$2]]++; all_kept++ }
        }
        END {
            print "lines  stood  feature"
            for (i = 1; i <= features; i++) printf "%6d %6d  %s\n", lines[i], kept[i], names[i] | "sort -rn"
            close("sort -rn")
            printf "%6d %6d  all\n%6d         all at '"$commit"'\n", all, all_kept, then
        }'
    exit
fi

cd "${1:-.}" || exit 2
files | while read -r file; do
    echo "${file%%/*} $(wc -l <"$file")"
done | awk '{ lines[$1] += $2; all += $2 } END { for (room in lines) print lines[room], room; print all, "lines of C" }' | sort -n
[ ! -f build/release/fraglab ] || size build/release/fraglab
