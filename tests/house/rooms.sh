#!/usr/bin/env bash
# The picture of docs/architecture.md, drawn from the includes: each room (a folder of the top, or one of gpu_replay/) stands
# on the highest line that is above all rooms it includes, with its folders, and behind it the rooms that it includes.
set -u
cd "${1:-.}" || exit 2
export LC_ALL=C

list() { if [ -e .git ]; then git ls-files -co --exclude-standard -- '*.c' '*.h'; else find . -name '*.[ch]' | sed 's|^\./||'; fi; }
list | grep -E '^(include|api|base|messages|sim|planner|allocators|traces|workload|studies|plots|report|cli|cluster|gpu_replay|viewer)/' | sort | while read -r file; do
    [ -f "$file" ] && grep -HE '^ *# *include *"' "$file"
done | awk -F: '
    function room(path,  part) {
        split(path, part, "/")
        return part[1] == "gpu_replay" ? part[1] "/" part[2] : part[1]
    }
    function level_of(name,  other, most) {
        if (name in level) return level[name]
        level[name] = 0 # a circle ends here; tests/house/tidiness.sh finds it
        for (other in rooms)
            if ((name, other) in uses && level_of(other) + 1 > most) most = level_of(other) + 1
        return level[name] = most + 0
    }
    {
        from = room($1); split($0, part, "\""); to = part[2] ~ "/" ? room(part[2]) : from
        rooms[from] = 1; rooms[to] = 1
        if (from != to) uses[from, to] = 1
        folder = $1; sub("/[^/]*$", "", folder)
        if (folder != from && !(folder in seen)) {
            seen[folder] = 1; inner = folder; sub("^" from "/", "", inner)
            if (inner !~ "/") inside[from] = inside[from] " " inner
        }
    }
    END {
        for (name in rooms) if (level_of(name) > top) top = level_of(name)
        for (i = top; i >= 0; i--) {
            n = 0
            for (name in rooms) if (level[name] == i) names[++n] = name
            for (a = 1; a <= n; a++) for (b = a + 1; b <= n; b++)
                if (names[b] < names[a]) { swap = names[a]; names[a] = names[b]; names[b] = swap }
            for (a = 1; a <= n; a++) {
                below = ""
                for (j = i - 1; j >= 0; j--) {
                    m = 0
                    for (name in rooms) if (level[name] == j && (names[a], name) in uses) found[++m] = name
                    for (b = 1; b <= m; b++) for (c = b + 1; c <= m; c++)
                        if (found[c] < found[b]) { swap = found[b]; found[b] = found[c]; found[c] = swap }
                    for (b = 1; b <= m; b++) below = below " " found[b]
                }
                printf "%d  %-20s <-%s\n", i, names[a], below == "" ? " nothing of ours" : below
                if (inside[names[a]] != "") printf "   %-20s    (%s)\n", "", substr(inside[names[a]], 2)
            }
        }
    }'
