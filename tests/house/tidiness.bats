# The tree keeps the rules of tests/house/tidiness.sh, and each rule notices when it is broken.

setup_file() {
    export COPY=$BATS_FILE_TMPDIR/copy
    mkdir -p "$COPY"
    git ls-files -co --exclude-standard | grep -v '^traces/samples/' |
        while read -r file; do [ -f "$file" ] && echo "$file"; done | tar -cf - -T - | tar -xf - -C "$COPY"
}

# notices RULE FILE: the rule names the file that was broken, in a copy of the tree.
notices() {
    run bash tests/house/tidiness.sh "$COPY" "$1"
    echo "$output"
    [ "$status" -eq 1 ]
    grep -q "^$1: $2" <<<"$output"
}

@test "the tree keeps every rule" {
    run bash tests/house/tidiness.sh .
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "notices an include in the wrong direction" {
    printf '#include "traces/load.h"\n' >"$COPY/base/wrong_direction.c"
    notices include-direction base/wrong_direction.c
    printf '#include "cli/command.h"\n' >"$COPY/allocators/wrong_direction2.c"
    notices include-direction allocators/wrong_direction2.c
    printf '#include "allocators/registry.h"\n' >"$COPY/traces/wrong_direction3.c"
    notices include-direction traces/wrong_direction3.c
    printf '#include "error.h"\n' >"$COPY/sim/wrong_direction4.c"
    notices include-direction sim/wrong_direction4.c
}

@test "notices files that include each other in a circle" {
    printf '#include "sim/circle2.h"\n' >"$COPY/sim/circle1.h"
    printf '#include "sim/circle3.h"\n' >"$COPY/sim/circle2.h"
    printf '#include "sim/circle1.h"\n' >"$COPY/sim/circle3.c"
    notices no-circle sim/circle1.h
    notices no-circle sim/circle3.c
    printf '#include "base/text.h"\n' >"$COPY/sim/circle3.c"
    run bash tests/house/tidiness.sh "$COPY" no-circle
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "notices folders of a room that include each other in a circle" {
    printf '#include "sim/replay/replay.h"\n' >"$COPY/sim/trace/folder_circle.h"
    notices no-circle "sim/trace/folder_circle.h:1: sim/trace/ includes itself"
    grep -q "sim/replay/ includes itself" <<<"$output"
    rm "$COPY/sim/trace/folder_circle.h"
}

@test "notices a folder that includes the one around it, below the top of a room" {
    printf '#include "traces/torch/snapshot_emit.h"\n' >"$COPY/traces/torch/pools/folder_circle.h"
    notices no-circle "traces/torch/torch_snapshot.c:[0-9]*: traces/torch/ includes itself"
    rm "$COPY/traces/torch/pools/folder_circle.h"
}

@test "notices a wrong include guard" {
    printf '#ifndef FRAG_WRONG_H\n#define FRAG_WRONG_H\n#endif\n' >"$COPY/sim/wrong_guard.h"
    notices guard sim/wrong_guard.h
    printf 'int x;\n' >"$COPY/sim/no_guard.h"
    notices guard sim/no_guard.h
}

@test "notices a header that is not included first" {
    printf '#ifndef FRAG_SIM_SECOND_H\n#define FRAG_SIM_SECOND_H\n#endif\n' >"$COPY/sim/second.h"
    printf '#include <stdio.h>\n\n#include "sim/second.h"\n' >"$COPY/sim/second.c"
    notices own-header-first sim/second.c
}

@test "notices a file that does not say what it is for" {
    printf '#include <stdio.h>\n\n/* Later is too late. */\n' >"$COPY/sim/silent.c"
    notices purpose sim/silent.c
    printf '#ifndef FRAG_SIM_SILENT2_H\n#define FRAG_SIM_SILENT2_H\n#endif\n' >"$COPY/sim/silent2.h"
    notices purpose sim/silent2.h
    printf '/* ---- a heading is not a sentence */\n' >"$COPY/sim/silent3.c"
    notices purpose sim/silent3.c
    printf '/* silent */\n' >"$COPY/sim/silent4.c"
    notices purpose sim/silent4.c
}

@test "notices memory that is released past the table of what a call holds" {
    printf '/* Gives back what it was given. */\nvoid give(char *text)\n{\n    if (text != NULL)\n        free(text);\n}\n' >"$COPY/sim/gives_back.c"
    notices frees-known sim/gives_back.c
}

@test "notices a file name that is used twice" {
    printf 'int x;\n' >"$COPY/traces/error.c"
    notices unique-name traces/error.c
}

@test "notices a condition outside base" {
    printf '#ifdef __linux__\n#endif\n' >"$COPY/sim/condition.c"
    notices no-condition sim/condition.c
}

@test "notices a library that two files know" {
    for header in yaml zstd zlib xxhash jansson sqlite3; do
        printf '#include <%s.h>\n' "$header" >"$COPY/traces/knows_$header.c"
        notices one-file-per-library "traces/knows_$header.c"
    done
}

@test "notices time, chance and surroundings in the core" {
    for call in 'time(NULL)' 'rand()' 'getenv("HOME")' 'isatty(1)' 'clock_gettime(0, &t)'; do
        printf 'int f(void)\n{\n    return %s;\n}\n' "$call" >"$COPY/sim/surroundings.c"
        notices no-surroundings sim/surroundings.c:3
    done
}

@test "notices loose parsing of numbers" {
    printf 'int f(void)\n{\n    return atoi("1");\n}\n' >"$COPY/cli/loose.c"
    notices no-loose-number cli/loose.c:3
    printf 'int f(void)\n{\n    return sscanf("1", "");\n}\n' >"$COPY/traces/loose2.c"
    notices no-loose-number traces/loose2.c:3
}

@test "notices a compiler builtin outside base" {
    printf 'int f(void)\n{\n    return __builtin_ctz(8);\n}\n' >"$COPY/sim/built_in.c"
    notices no-builtin sim/built_in.c:3
}

@test "notices unfinished work" {
    printf '/* TO%s: later */\n' DO >"$COPY/sim/unfinished.c"
    notices nothing-unfinished sim/unfinished.c
}

@test "notices a file that is too long" {
    yes 'int x;' | head -n 901 >"$COPY/sim/long.c"
    notices file-length sim/long.c
}

@test "notices a large file and a large tree" {
    head -c 2097153 /dev/zero >"$COPY/large.bin"
    notices file-bytes large.bin
    head -c 24000000 /dev/zero >"$COPY/larger.bin"
    notices tree-bytes 'all files'
    rm "$COPY/large.bin" "$COPY/larger.bin"
}

@test "notices tabs, blanks at the end, a missing last line end" {
    printf '\tint x;\n' >"$COPY/sim/tab.c"
    notices blanks sim/tab.c
    printf 'int x; \n' >"$COPY/sim/blank.c"
    notices blanks sim/blank.c
    printf 'int x;' >"$COPY/sim/end.c"
    notices blanks sim/end.c
}

@test "notices a line that is too long, and counts characters" {
    printf '/* %s */\n' "$(printf '%095d' 0)" >"$COPY/sim/wide.c"
    notices line-length sim/wide.c
    printf '/* %s */\n' "$(printf '%047d' 0 | sed 's/0/é/g')$(printf '%047d' 0 | sed 's/0/é/g')" >"$COPY/sim/wide.c"
    run bash tests/house/tidiness.sh "$COPY" line-length
    ! grep -q sim/wide.c <<<"$output" || false
}

@test "notices a test that is not built" {
    printf 'int main(void)\n{\n}\n' >"$COPY/tests/base/test_forgotten.c"
    sed -i 's|^TESTS = .*|TESTS = tests/base/test_error.c|' "$COPY/Makefile"
    notices tests-built tests/base/test_forgotten.c
}

@test "notices a line of a test that cannot fail it" {
    printf '@test "nothing is there" {\n    ! ls\n    ls\n}\n' >"$COPY/tests/cli/vain.bats"
    notices tests-fail tests/cli/vain.bats:2
}
