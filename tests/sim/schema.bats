# `fraglab help --schema` describes what is printed, all of it and nothing else.

bats_require_minimum_version 1.5.0

SMALL=traces/samples/pr193400.pickle.zst

setup() {
    SCHEMA=$BATS_TEST_TMPDIR/schema.json
    ROWS=$BATS_TEST_TMPDIR/rows
    ./fraglab help --schema >"$SCHEMA"
}

# fits [KIND...]: the rows fit the schema, and each kind is among them.
fits() {
    python3 tests/sim/check_schema.py "$SCHEMA" <"$ROWS" >"$BATS_TEST_TMPDIR/said" || { cat "$BATS_TEST_TMPDIR/said"; return 1; }
    for kind in "$@"; do grep -qF "'fraglab.$kind/1'" "$BATS_TEST_TMPDIR/said" || { cat "$BATS_TEST_TMPDIR/said"; return 1; }; done
}

@test "rows of run fit the schema, with and without an out of memory" {
    ./fraglab run "$SMALL" traces/samples/gpt-varlen-oom.pickle.zst --policy all --format jsonl >"$ROWS"
    ./fraglab run "$SMALL" --policy pytorch,direct --capacity 100MiB --timing --format jsonl >>"$ROWS"
    ./fraglab run "$SMALL" --policy pytorch,offline --bounds --gpu a100-40gb --stats-at peak --format jsonl >>"$ROWS"
    fits run
    grep -q '"oom":null' "$ROWS"
    grep -q '"oom":{' "$ROWS"
}

@test "rows of min-capacity and sweep fit the schema" {
    ./fraglab min-capacity "$SMALL" --policy pytorch,direct --format jsonl >"$ROWS"
    cat >"$BATS_TEST_TMPDIR/experiment.yaml" <<END
traces: $PWD/$SMALL
policies: [pytorch, {policy: best-fit, options: {align: [512, 768]}}]
capacities: [unlimited, 100MiB]
END
    ./fraglab sweep "$BATS_TEST_TMPDIR/experiment.yaml" -o "$BATS_TEST_TMPDIR/sweep.jsonl"
    cat "$BATS_TEST_TMPDIR/sweep.jsonl" >>"$ROWS"
    fits min-capacity run refused
}

@test "rows of a card and the comparison with it fit the schema" {
    [ -f fraglab_cuda.so ] || skip "built with CUDA=no: there is no module for GPUs"
    make -s --no-print-directory software-cuda >/dev/null
    folder=$(make -s --no-print-directory software-cuda | sed 's/ .*//')
    FRAGLAB_SOFTWARE_CUDA=capacity=64GiB ./fraglab run --device sim,cuda "$SMALL" --policy pytorch \
        --cudart "${folder%/12}/13/libcudart.so.13" --format jsonl >"$ROWS"
    fits run comparison
    grep -q '"card":{' "$ROWS"
}

@test "a field that is missing, not described or of another type is noticed" {
    ./fraglab run "$SMALL" --policy direct --format jsonl >"$BATS_TEST_TMPDIR/good"
    for change in 's/"seed":null,//' 's/"seed":null/"seed":null,"more":1/' 's/"holes_bytes":0/"holes_bytes":"0"/' \
        's/"holes_bytes":0/"holes_bytes":-1/' 's/"events":514/"events":null/' 's/"holes_bytes"/"hole_bytes"/' 's|run/1|run/2|'; do
        sed "$change" "$BATS_TEST_TMPDIR/good" >"$ROWS"
        if cmp -s "$BATS_TEST_TMPDIR/good" "$ROWS"; then echo "$change changes nothing"; false; fi
        run -1 python3 tests/sim/check_schema.py "$SCHEMA" <"$ROWS"
    done
    cp "$BATS_TEST_TMPDIR/good" "$ROWS"
    fits run
}

@test "the schema and docs/result-format.md have the same fields, of the same types" {
    python3 - "$SCHEMA" <<'END'
import json, re, sys
TYPES = {"bytes": "integer", "number": "integer", "ns": "integer", "ratio": "number", "text": "string", "flag": "boolean",
         "true, false": "boolean", "null": "null", "object": "object"}
schema = json.load(open(sys.argv[1]))["$defs"]
page = open("docs/result-format.md", encoding="utf-8").read()
bad = []
for kind, title in (("run", "## A row of a run"), ("comparison", "## A row that compares two devices"), ("min_capacity", "## A row of min-capacity")):
    text = page[page.index(title) + 3:]
    text = text[:text.index("\n## ")]
    rows = dict(re.findall(r"^\| `([^`]+)` \| ([^|]*?) \|", text, re.M))
    fields = {}
    for name, inner in schema[kind]["properties"].items():
        if "properties" in inner:
            fields.update({f"{name}.{key}": value for key, value in inner["properties"].items()})
        else:
            fields[name] = inner
    bad += [f"{kind}: {path} is in one of both only" for path in set(rows) ^ set(fields)]
    for path in set(rows) & set(fields):
        name = rows[path].removesuffix(" or null")
        expected = [TYPES[name], "null"] if name != rows[path] else TYPES[name]
        if "const" not in fields[path] and fields[path]["type"] != expected:
            bad.append(f"{kind}: {path} is {rows[path]} on the page, {fields[path]['type']} in the schema")
        if not fields[path].get("description"):
            bad.append(f"{kind}: {path} has no description")
print("\n".join(bad))
sys.exit(bool(bad))
END
}
