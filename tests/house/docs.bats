# What the documentation says is so: commands run, shown output is what is printed, links lead somewhere,
# every field and option is described. After a change of what fraglab prints: tests/house/docs.sh update FILE...

setup_file() {
    mkdir -p build
    # The object that docs/adding-a-policy.md speaks of.
    ${CC:-gcc} -std=c11 -O2 -fPIC -shared -I. -o build/my_policy.so examples/my_policy.c
    # The libraries that docs/software-cuda.md speaks of.
    MAKEFLAGS= make -s software-cuda >/dev/null
}

pages() { ls README.md allocators/README.md traces/samples/README.md docs/*.md; }

# run_commands MINIMUM GREP-OPTION...: runs the commands that grep picks.
run_commands() {
    local minimum=$1 count=0 page command
    shift
    for page in $(pages); do
        while IFS= read -r command; do
            count=$((count + 1))
            echo "$page: $command"
            bash -c "$command" >"$BATS_TEST_TMPDIR/out" 2>&1 </dev/null || { cat "$BATS_TEST_TMPDIR/out"; false; }
        done < <(bash tests/house/docs.sh commands "$page" | grep "$@")
    done
    [ "$count" -ge "$minimum" ]
}

@test "every command in a sh block runs" {
    run_commands 15 -v '^./fraglab plot'
}

@test "every plot command in a sh block runs" {
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    run_commands 3 -E '^(mkdir|./fraglab plot) '
}

@test "output shown in a console block is what is printed now" {
    for page in $(pages); do
        bash tests/house/docs.sh render "$page" >"$BATS_TEST_TMPDIR/now"
        diff "$page" "$BATS_TEST_TMPDIR/now"
    done
}

@test "relative links lead somewhere" {
    for page in $(pages); do
        bash tests/house/docs.sh links "$page"
    done >"$BATS_TEST_TMPDIR/broken"
    cat "$BATS_TEST_TMPDIR/broken"
    [ ! -s "$BATS_TEST_TMPDIR/broken" ]
}

@test "every page of docs is in its index" {
    for page in docs/*.md docs/*.c docs/*.yaml; do
        [ "$page" = docs/README.md ] || grep -qF "(${page#docs/})" docs/README.md || { echo "$page"; false; }
    done
}

@test "a page that shows something else is noticed" {
    printf '```console\n$ echo one\ntwo\n```\n[x](nowhere.md)\n[y](#nothing)\n' >"$BATS_TEST_TMPDIR/page.md"
    [ "$(bash tests/house/docs.sh render "$BATS_TEST_TMPDIR/page.md" | sed -n 3p)" = one ]
    [ "$(bash tests/house/docs.sh links "$BATS_TEST_TMPDIR/page.md" | wc -l)" -eq 2 ]
}

@test "every field of a row is described" {
    ./fraglab run traces/samples/pr193400.pickle.zst --policy pytorch --format csv | head -1 | tr , '\n' >"$BATS_TEST_TMPDIR/paths"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/paths")" -ge 70 ]
    while IFS= read -r path; do
        grep -qF "| \`$path\` |" docs/result-format.md || { echo "run: $path is not described"; false; }
    done <"$BATS_TEST_TMPDIR/paths"
}

# Every name in the object is that of a described field, or a part of its path.
described_keys() { # rows, section of the page
    sed -n "/^## $2\$/,/^## /p" docs/result-format.md | sed -n 's/^| `\([a-z_.]*\)` |.*/\1/p' | tr . '\n' | sort -u >"$BATS_TEST_TMPDIR/known"
    grep -oE '"[a-z_]+":' "$1" | tr -d '":' | sort -u | comm -23 - "$BATS_TEST_TMPDIR/known" >"$BATS_TEST_TMPDIR/unknown"
    cat "$BATS_TEST_TMPDIR/unknown"
    [ -s "$BATS_TEST_TMPDIR/known" ]
    [ ! -s "$BATS_TEST_TMPDIR/unknown" ]
}

@test "every key of a JSON row is described" {
    ./fraglab run traces/samples/gpt-varlen-oom.pickle.zst --policy direct --capacity 5552MiB --format jsonl >"$BATS_TEST_TMPDIR/run"
    described_keys "$BATS_TEST_TMPDIR/run" "A row of a run"
    ./fraglab min-capacity traces/samples/pr193400.pickle.zst --policy direct --format jsonl >"$BATS_TEST_TMPDIR/capacity"
    described_keys "$BATS_TEST_TMPDIR/capacity" "A row of min-capacity"
    ./fraglab verify traces/samples/gpt-varlen-oom.pickle.zst --format jsonl >"$BATS_TEST_TMPDIR/verify"
    described_keys "$BATS_TEST_TMPDIR/verify" "A row of verify"
}

# Each row has the fields of the section's table, and no others. "list" and "object" are not looked into.
as_described() { # rows, section of the page
    python3 - "$1" "$2" <<'PYTHON'
import json, re, sys
rows, section = sys.argv[1:]
page = open("docs/result-format.md").read()
[text] = re.findall(r"^#+ %s\n(.*?)(?=^#|\Z)" % re.escape(section), page, re.S | re.M)
types = dict(re.findall(r"^\| `([\w.]+)` \| ([^|]*) \|", text, re.M))
assert types, "no table"
kinds = {"text": str, "flag": bool, "number": int, "bytes": int, "ns": int, "ratio": (int, float), "object": dict,
         "list": list, "null": type(None), "true": bool, "false": bool}
complaints = set()

def look(value, path):
    kind = types.get(path)
    if kind is not None:
        words = [word for word in re.split(r", | or ", kind.strip()) if word in kinds]
        if not any(isinstance(value, kinds[word]) for word in words) or isinstance(value, bool) and kind[:4] in ("byte", "numb"):
            complaints.add("%s is %r, not %s" % (path, value, kind))
        seen.add(path)
    elif isinstance(value, dict):
        for key in value:
            look(value[key], (path + "." if path else "") + key)
    elif value is None and any(name.startswith(path + ".") for name in types):
        seen.update(name for name in types if name.startswith(path + "."))
    else:
        complaints.add("%s is not described" % path)

count = 0
for line in open(rows):
    seen = set()
    look(json.loads(line), "")
    complaints.update("%s is described, and not there" % path for path in types if path not in seen)
    count += 1
print("\n".join(sorted(complaints)))
sys.exit(len(complaints) > 0 or count == 0)
PYTHON
}

@test "JSON rows hold what the page says, no less and nothing else" {
    command -v python3 >/dev/null || skip "python3 is not installed"
    oom=traces/samples/gpt-varlen-oom.pickle.zst
    small=traces/samples/pr193400.pickle.zst
    rows=$BATS_TEST_TMPDIR/rows
    { ./fraglab run $oom $small --policy direct,pytorch,offline --capacity 5552MiB --format jsonl --stats-at oom --timing --gpu l4
      ./fraglab run $small --policy pytorch --format jsonl --bounds --stats-at end --latency docs/latency-example.yaml; } >"$rows"
    as_described "$rows" "A row of a run"
    ./fraglab min-capacity $small docs/scenarios/*.trace --policy direct,pytorch,rmm-fixed-size --format jsonl >"$rows"
    ./fraglab min-capacity $small --policy direct --bounds --format jsonl >>"$rows"
    as_described "$rows" "A row of min-capacity"
    ./fraglab verify $oom $small --format jsonl >"$rows"
    ./fraglab verify $oom --policy best-fit --format jsonl >>"$rows" || [ $? -eq 1 ]
    as_described "$rows" "A row of verify"
    ./fraglab trace info traces/samples/*.zst docs/scenarios/*.trace --format jsonl >"$rows"
    as_described "$rows" "A row of trace info"
    ./fraglab policies --format jsonl >"$rows"
    as_described "$rows" "A row of policies"
    ./fraglab device list --format jsonl >"$rows"
    as_described "$rows" "A row of device list"
    # A row that says more or less is noticed.
    sed '1s/"gpu":/"card":/' "$rows" >"$rows.other"
    run as_described "$rows.other" "A row of device list"
    [ "$status" -eq 1 ]
    [ "${lines[*]}" = "card is not described gpu is described, and not there" ]
}

@test "every option of a policy is on its page and in its rows" {
    for name in $(./fraglab policies --format jsonl | sed 's/^{"name":"\([^"]*\)".*/\1/'); do
        ./fraglab run traces/samples/pr193400.pickle.zst --policy "$name" --format jsonl >"$BATS_TEST_TMPDIR/row"
        ./fraglab policies "$name" >"$BATS_TEST_TMPDIR/page"
        sed -n 's/.*"options":{\([^}]*\)}.*/\1/p' "$BATS_TEST_TMPDIR/row" | grep -oE '"[a-z_0-9]+":' | tr -d '":' | sort >"$BATS_TEST_TMPDIR/in-row"
        sed -n 's/^  \([a-z_0-9]*\)=.*/\1/p' "$BATS_TEST_TMPDIR/page" | sort >"$BATS_TEST_TMPDIR/on-page"
        diff "$BATS_TEST_TMPDIR/in-row" "$BATS_TEST_TMPDIR/on-page"
    done
}

@test "every policy is in allocators/README.md" {
    for name in $(./fraglab policies --format jsonl | sed 's/^{"name":"\([^"]*\)".*/\1/'); do
        grep -qF "| \`$name\` |" allocators/README.md || { echo "$name"; false; }
    done
}
