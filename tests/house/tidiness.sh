#!/usr/bin/env bash
# The rules of the house that a program can check: tests/house/tidiness.sh [ROOT [RULE]]
# Prints one line for every place that breaks one, "rule: file:line: why"; exits 1 if there is any.
set -u
cd "${1:-.}" || exit 2
only=${2:-}
export LC_ALL=C.UTF-8

if [ -e .git ]; then
    list() { git ls-files -co --exclude-standard -- "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done | sort -u; }
else
    list() { find . -type f -not -path './build/*' -not -path './.git/*' | sed 's|^\./||' | sort | grep -E "$(printf '%s\n' "$@" | sed 's/\./\\./g; s/\*/.*/g; s/$/$/' | paste -sd'|')"; }
fi
mapfile -t code < <(list '*.c' '*.h')
mapfile -t text < <(list '*.c' '*.h' '*.sh' '*.bats' '*.md' '*.gp' '*.yaml' '*.js' '*.css' '*.html' 'Makefile')
mapfile -t all < <(list '*')
mapfile -t core < <(printf '%s\n' "${code[@]}" | grep -vE '^(api|cli|tests|gpu_replay|cluster|examples)/')

broken=$(mktemp)
trap 'rm -f "$broken"' EXIT
say() { sed "s|^|$1: |" >>"$broken"; }
rule() { [ -z "$only" ] || [ "$only" = "$1" ]; }

# Who may include whom, by room: a folder of the top, or one of gpu_replay/. Nobody includes cli/.
if rule include-direction; then
    grep -nH '^ *# *include *"' "${code[@]}" | awk -F: '
        function room(path,  part) {
            split(path, part, "/")
            return part[1] == "gpu_replay" ? part[1] "/" part[2] : part[1]
        }
        BEGIN {
            may["base"] = "base"
            may["messages"] = "base messages"
            may["sim"] = "base sim"
            may["planner"] = "base sim planner"
            may["allocators"] = "base sim planner allocators"
            may["traces"] = "base sim traces"
            may["workload"] = "base sim traces workload"
            may["studies"] = "base messages sim planner allocators traces workload studies cluster"
            may["plots"] = may["studies"] " plots"
            may["report"] = may["studies"] " plots report"
            may["api"] = may["report"] " api include"
            may["cli"] = may["report"] " api include cli"
            may["viewer"] = "base include viewer"
            may["cluster"] = "base sim cluster"
            may["examples"] = "base sim include"
            may["include"] = "include"
            may["gpu_replay/device"] = "base sim gpu_replay/device"
            may["gpu_replay/software"] = "base sim gpu_replay/device gpu_replay/software"
            may["gpu_replay/recorder"] = "base sim gpu_replay/device gpu_replay/recorder"
            may["gpu_replay/torch"] = "base sim allocators traces gpu_replay/device gpu_replay/torch"
        }
        {
            file = $1; split($0, part, "\""); target = part[2]
            if (file ~ /^include\// && target !~ /\//) target = "include/" target # installed, they lie in one folder
            from = room(file); to = room(target)
            ok = from == "tests" || index(" " may[from] " ", " " to " ") > 0
            if (target ~ /\.\./ || target !~ /\// || (getline line < target) < 0) ok = 0
            close(target)
            if (!ok) print file ":" $2 ": " from "/ may not include \"" target "\" (or it is not there)"
        }' | say include-direction
fi

# Files that need each other cannot be read, or changed, one at a time: foo.c and foo.h are one module, and no module comes back to
# itself by way of others. Nor does a folder of a room by way of the room's other folders; at the top of a room lie the contracts that
# its folders share.
if rule no-circle; then
    printf '%s\n' "${code[@]}" | grep -v '^tests/' | xargs -r grep -nHE '^ *# *include *"' | awk '
        function module(path) { sub(/\.[ch]$/, "", path); return path }
        function folder(path) { sub(/\/[^\/]*$/, "", path); return path "/" }
        function room(path,  part) { split(path, part, "/"); return part[1] == "gpu_replay" ? part[1] "/" part[2] : part[1] }
        function is_top(a) { return a == room(a) "/" }
        function are_apart(a, b) { return room(a) == room(b) && a != b && !is_top(a) && !is_top(b) }
        function edge(from, to) {
            if (from == to || (from, to) in known) return
            known[from, to] = 1
            next_of[from, ++count[from]] = to
            file[from] = at_line
        }
        function walk(at,  i) {
            if (at in seen) return
            seen[at] = 1
            for (i = 1; i <= count[at]; i++) walk(next_of[at, i])
        }
        {
            split($0, part, "\""); split($0, place, ":")
            at_line = place[1] ":" place[2]
            edge(module(place[1]), module(part[2]))
            if (are_apart(folder(place[1]), folder(part[2]))) edge(folder(place[1]), folder(part[2]))
        }
        END {
            for (from in count) {
                split("", seen)
                for (i = 1; i <= count[from]; i++) walk(next_of[from, i])
                if (from in seen) print file[from] ": " from " includes itself by way of others"
            }
        }' | sort | say no-circle
fi

# A folder that is read at a glance.
if rule folder-files; then
    printf '%s\n' "${all[@]}" | grep -E '\.(c|h|js|css|html|map|sh|py|cpp|hpp|bats|gp)$' | grep -v '^tests/data/' | sed 's|/[^/]*$||' | sort | uniq -c |
        awk '$1 > 30 { print $2 ":1: has " $1 " files; expected at most 30" }' | say folder-files
fi

if rule guard; then
    for file in "${code[@]}"; do
        [[ $file != *.h ]] || echo "$file"
    done | xargs -r awk '
        FNR == 1 {
            count = split(FILENAME, part, "/")
            name = part[count]; sub(/\.h$/, "", name)
            guard = toupper("FRAG_" (count > 1 ? part[count - 1] : ".") "_" name "_H"); gsub(/[.-]/, "_", guard)
            guards[FILENAME] = guard; seen[FILENAME] = 0; is_first = 1
        }
        /^#/ {
            if (is_first && $0 != "#ifndef " guard) seen[FILENAME] = -9
            is_first = 0
            if ($0 == "#ifndef " guard || $0 == "#define " guard) seen[FILENAME]++
        }
        END { for (file in guards) if (seen[file] != 2) print file ":1: the include guard is not " guards[file] }' | sort | say guard
fi

if rule own-header-first; then
    for file in "${code[@]}"; do
        [[ $file != *.c || ! -f ${file%.c}.h ]] || echo "$file"
    done | xargs -r awk '
        FNR == 1 { wanted = FILENAME; sub(/c$/, "h", wanted); is_known = 0; wrong[FILENAME] }
        !is_known && /^ *# *include/ { is_known = 1; if ($0 == "#include \"" wanted "\"") delete wrong[FILENAME] }
        END { for (file in wrong) print file ":1: its own header is not included first" }' | sort | say own-header-first
fi

# Every file opens with a sentence that says what it is for; that of a .c with a header of its own may stand there.
if rule purpose; then
    for file in "${code[@]}"; do
        IFS= read -r head <"$file"
        [[ $file == *.c && -f ${file%.c}.h && $head != '/*'* ]] && continue
        [[ $head =~ ^'/* '[^-].*\ .*\ [^/] ]] || echo "$file:1: does not open with a comment that says what the file is for"
    done | say purpose
fi

if rule unique-name; then
    printf '%s\n' "${code[@]}" | awk -F/ '{ if ($NF in seen) print $0 ":1: has the name of " seen[$NF]; seen[$NF] = $0 }' |
        say unique-name
fi

# Conditions live in base/, gpu_replay and the header for other languages; elsewhere only the guard of a header stays.
if rule no-condition; then
    printf '%s\n' "${code[@]}" | grep -vE '^(base|gpu_replay|include)/' | xargs -r grep -nHE '^ *# *(if|ifdef|ifndef|elif)\b' |
        grep -vE '^[^:]*\.h:[0-9]+:#ifndef FRAG_[A-Z0-9_]*_H$' | say no-condition
fi

# A library is known to one file. Tests may use jansson to check what was printed, and sqlite3 to write databases.
if rule one-file-per-library; then
    known() { # header, pattern of the files that may include it
        printf '%s\n' "${code[@]}" | grep -vE "$2" | xargs -r grep -nHE "^ *# *include *<$1>" | sed 's/$/ (only one file knows this library)/'
    }
    {
        known 'yaml\.h' '^base/formats/yaml\.c$'
        known 'zstd(_errors)?\.h' '^base/formats/codec\.c$'
        known 'zlib\.h' '^base/formats/codec\.c$'
        known 'xxhash\.h' '^base/digest\.c$'
        known 'sqlite3\.h' '^(base/formats/sqlite_file\.c|tests/.*)$'
        known 'mpi\.h' '^cluster/mpi_ranks\.c$'
        known 'jansson\.h' '^(base/json\.c|tests/.*)$'
        known 'getopt\.h' '^cli/arguments\.c$'
    } | say one-file-per-library
fi

# Time, chance and surroundings belong to the command line alone, and to what asks the system for it.
if rule no-surroundings; then
    printf '%s\n' "${core[@]}" | grep -v '^base/system/' | xargs grep -nHE '(^|[^A-Za-z0-9_>.])(time|rand|srand|random|getenv|isatty|clock|clock_gettime|gettimeofday)\(' |
        say no-surroundings
fi

# What a call of the library has acquired is known to base/scope.c by base/memory.c, which therefore sees every release.
if rule frees-known; then
    printf '%s\n' "${code[@]}" | grep -E '^(base|messages|sim|planner|allocators|traces|workload|studies|plots|report|api|cli)/' | grep -vE '^base/(memory|scope|system/spill)\.c$' |
        xargs -r grep -nHE '^[[:space:]]*((if|for|while) .*\)[[:space:]]*)?free\(' | sed 's/$/ (expected frag_free)/' | say frees-known
fi

if rule no-loose-number; then
    printf '%s\n' "${code[@]}" | grep -v '^tests/' | xargs -r grep -nHE '(^|[^A-Za-z0-9_])(atoi|atol|atoll|atof|sscanf|fscanf)\(' |
        say no-loose-number
fi

if rule no-builtin; then
    printf '%s\n' "${code[@]}" | grep -v '^base/' | xargs -r grep -nHE '__builtin_|__typeof__|__extension__' | say no-builtin
fi

if rule nothing-unfinished; then
    grep -nHwE 'TO''DO|FIX''ME|X''XX|HA''CK' "${text[@]}" | say nothing-unfinished
fi

if rule file-length; then
    wc -l "${code[@]}" | awk '$2 != "total" && $1 > 900 { print $2 ":900: has " $1 " lines; expected at most 900" }' | say file-length
fi

if rule file-bytes; then
    printf '%s\0' "${all[@]}" | xargs -0 stat -c '%s %n' |
        awk '$1 > 2097152 { bytes = $1; sub(/^[0-9]* /, ""); print $0 ":1: has " bytes " bytes; expected at most 2 MiB" }' | say file-bytes
fi

if rule tree-bytes; then
    total=$(printf '%s\0' "${all[@]}" | xargs -0 stat -c %s | awk '{ sum += $1 } END { print sum }')
    [ "$total" -lt 24000000 ] || echo "all files have $total bytes; expected less than 24 MB" | say tree-bytes
fi

if rule blanks; then
    {
        grep -nHP '\t|[ \r]$' "${code[@]}" | sed 's/:.*$/&  (a tab, or a blank at the end)/'
        grep -LPz '\n\z' "${code[@]}" | sed 's/$/:1: its last line has no end/'
    } | say blanks
fi

if rule line-length; then
    grep -nHE '^.{101,}' "${code[@]}" | cut -d: -f1,2 | sed 's/$/: has more than 100 columns/' | say line-length
fi

# Bash goes on behind a command with "!" in front, whatever came of it.
if rule tests-fail; then
    mapfile -t bats < <(list 'tests/*/*.bats')
    [ ${#bats[@]} = 0 ] || grep -nHE '^ *! ' "${bats[@]}" | grep -v '|| false$' | cut -d: -f1,2 |
        sed 's/$/: what must not succeed does not fail the test; end the line in "|| false"/' | say tests-fail
fi

if rule tests-built; then
    make --no-print-directory -n -B BUILD=build/plan test-programs fuzz-programs 2>/dev/null | grep -o -- '-c -o build/plan/[^ ]*\.o' |
        sed 's|.*build/plan/||; s/o$/c/' | grep -vxFf - <(printf '%s\n' "${all[@]}" | grep -E '^tests/([^/]*/test_|fuzz/fuzz_).*\.c$') |
        sed "s/\$/:1: is not built by 'make test-programs fuzz-programs'/" | say tests-built
fi

cat "$broken"
if [ -s "$broken" ]; then
    echo "tidiness: places that break a rule:" >&2
    cut -d: -f1 "$broken" | sort | uniq -c >&2
    exit 1
fi
