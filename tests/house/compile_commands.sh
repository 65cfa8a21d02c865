#!/usr/bin/env bash
# compile_commands.json for editors and clang-tidy: how make would compile each C file. Usage: ... [MAKE]
set -eu
make=${1:-make}
# An empty build folder, so that everything is to be made; version.stamp and the page are written by rules of their own.
$make --no-print-directory -n -B V=1 BUILD=build/plan build/plan/fraglab test-programs fuzz-programs 2>/dev/null |
    grep -E -- ' -c -o [^ ]+\.o [^ ]+\.c$' | awk -v folder="$PWD" '
        { file = $NF }
        file ~ /^build\// || file in seen { next }
        {
            seen[file] = 1
            gsub(/\\/, "\\\\"); gsub(/"/, "\\\"")
            gsub(/build\/plan\//, "build/release/")
            printf "%s\n  {\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", n++ ? "," : "[", folder, file, $0
        }
        END { print n ? "\n]" : "[]" }'
