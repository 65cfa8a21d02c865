# Descriptions of cards: what --gpu and --latency take from them, and what is refused.

RECORDING=traces/samples/unet.pickle.zst

# value FIELD ROW: a number or text of a row.
value() {
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" <<<"$2"
}

# card LINE...: writes a description of 8 GiB with these lines added.
card() {
    printf '%s\n' "name: Test" "origin: software" "memory:" "  total: 8GiB" "$@" >"$BATS_TEST_TMPDIR/card.yaml"
    CARD=$BATS_TEST_TMPDIR/card.yaml
}

row() {
    ./fraglab run "$RECORDING" --format jsonl "$@"
}

@test "every bundled card is listed, and runs by its name" {
    ./fraglab device list >"$BATS_TEST_TMPDIR/list"
    cat "$BATS_TEST_TMPDIR/list"
    [ "$(($(wc -l <"$BATS_TEST_TMPDIR/list") - 1))" -eq "$(ls devices/*.yaml | wc -l)" ]
    grep -q '^l4  *22.03 GiB  *reported  *24.00 GiB  *240.00 MiB  *58  *8.9  *NVIDIA L4$' "$BATS_TEST_TMPDIR/list"
    ./fraglab device list --format jsonl | grep -q '^{"gpu":"a10","name":"NVIDIA A10","origin":"reported",'
    got=$(row --policy direct --gpu l4)
    [ "$(value capacity_bytes "$got")" -eq $((22558 << 20)) ]
    [ "$(value gpu "$got")" = "NVIDIA L4" ]
    [ "$(value gpu_origin "$got")" = reported ]
    ./fraglab run "$RECORDING" --policy direct --gpu l4 | grep -q '^device   sim · NVIDIA L4 · 22.03 GiB · 240.00 MiB used by others$'
}

@test "what is of a data sheet alone is called nominal in rows, tables and the page" {
    got=$(row --policy direct --gpu rtx4070)
    [ "$(value gpu_origin "$got")" = nominal ]
    echo "$got" >"$BATS_TEST_TMPDIR/rows.jsonl"
    ./fraglab run "$RECORDING" --policy direct --gpu rtx4070 | grep -q '^device   sim · NVIDIA GeForce RTX 4070 (nominal) · 12.00 GiB'
    ./fraglab report --format table "$BATS_TEST_TMPDIR/rows.jsonl" | grep -q '· NVIDIA GeForce RTX 4070 (nominal) · 12.00 GiB'
    ./fraglab report "$RECORDING" --policy direct --gpu rtx4070 -o "$BATS_TEST_TMPDIR/page.html"
    grep -q 'card, nominal memory' "$BATS_TEST_TMPDIR/page.html"
    row --policy direct | grep -q '"gpu_origin":null'
}

@test "a card has the names that people give it, and no name is of two cards" {
    is_card() { # NAME CARD
        [ "$(value gpu "$(./fraglab run traces/samples/pr193400.pickle.zst --policy direct --format jsonl -q --gpu "$1")")" = "$2" ]
    }
    for name in rtx4090 4090 "RTX 4090" rtx-4090 RTX_4090 "NVIDIA GeForce RTX 4090"; do
        is_card "$name" "NVIDIA GeForce RTX 4090"
    done
    for name in a100-80 a100-80gb "A100 80GB" "NVIDIA A100-SXM4-80GB" "NVIDIA A100 80GB PCIe"; do
        is_card "$name" "NVIDIA A100 80 GB"
    done
    is_card h100-sxm "NVIDIA H100 80 GB SXM"
    is_card "Tesla T4" "NVIDIA T4"
    is_card "AMD Instinct MI300X" "AMD Instinct MI300X"
    # One that is of several takes one, and says so.
    run ./fraglab run traces/samples/pr193400.pickle.zst --policy direct --gpu A100
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "fraglab: warning: --gpu: 'A100' is taken for a100-40gb; other cards of that name: a100-80gb" ]]
    [[ "$output" == *"sim · NVIDIA A100 40 GB · 39.39 GiB"* ]]
    # What a listed card is called is its own: file, name, aliases and what it stands for.
    ./fraglab device list --format jsonl >"$BATS_TEST_TMPDIR/cards"
    while IFS= read -r line; do
        own=$(value gpu "$line")
        printf '%s\n' "$own" "$(value name "$line")"
        sed -n 's/.*"aliases":"\([^"]*\)".*/\1/p; ' <<<"$line" | sed 's/, /\n/g'
        sed -n 's/.*"means":"\([^"]*\)".*/\1/p; ' <<<"$line" | sed 's/, /\n/g'
    done <"$BATS_TEST_TMPDIR/cards" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9]//g; s/^(nvidia|amd)//; s/^geforce//; s/^tesla//; s/^instinct//; s/^jetson//' |
        sort >"$BATS_TEST_TMPDIR/names"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/names")" -gt 200 ]
    # A file and its name may read alike; no other two may.
    while IFS= read -r line; do
        { value gpu "$line"; value name "$line"; } | tr '[:upper:]' '[:lower:]' |
            sed -E 's/[^a-z0-9]//g; s/^(nvidia|amd)//; s/^geforce//; s/^tesla//; s/^instinct//; s/^jetson//' | sort | uniq -d
    done <"$BATS_TEST_TMPDIR/cards" >"$BATS_TEST_TMPDIR/alike"
    sort "$BATS_TEST_TMPDIR/alike" >"$BATS_TEST_TMPDIR/alike-sorted"
    uniq -d "$BATS_TEST_TMPDIR/names" | comm -23 - "$BATS_TEST_TMPDIR/alike-sorted" >"$BATS_TEST_TMPDIR/twice"
    cat "$BATS_TEST_TMPDIR/twice"
    [ ! -s "$BATS_TEST_TMPDIR/twice" ]
    [ -z "$(uniq -c "$BATS_TEST_TMPDIR/names" | awk '$1 > 2')" ]
}

@test "the cards are found from another folder and after make install" {
    program=$PWD/fraglab
    cd "$BATS_TEST_TMPDIR"
    [ "$("$program" device list | wc -l)" -gt 2 ]
    cd - >/dev/null
    make --no-print-directory -s install DESTDIR="$BATS_TEST_TMPDIR/root" PREFIX=/usr >/dev/null
    cp -r "$BATS_TEST_TMPDIR/root/usr" "$BATS_TEST_TMPDIR/moved"
    cd "$BATS_TEST_TMPDIR"
    moved/bin/fraglab device list | diff - <("$program" device list)
}

@test "total and context are taken from the card, a capacity of one's own from the user" {
    card "  context: 500MiB"
    got=$(row --policy direct --gpu "$CARD")
    [ "$(value capacity_bytes "$got")" -eq $((8 << 30)) ]
    [ "$(value used_by_others_bytes "$got")" -eq $((500 << 20)) ]
    got=$(row --policy direct --gpu "$CARD" --used-by-others 100MiB)
    [ "$(value used_by_others_bytes "$got")" -eq $((600 << 20)) ]
    got=$(row --policy direct --gpu "$CARD" --capacity 6GiB)
    [ "$(value capacity_bytes "$got")" -eq $((6 << 30)) ]
    [ "$(value used_by_others_bytes "$got")" -eq 0 ]
    ./fraglab min-capacity "$RECORDING" --policy best-fit --gpu "$CARD" --format jsonl >"$BATS_TEST_TMPDIR/with"
    ./fraglab min-capacity "$RECORDING" --policy best-fit --format jsonl >"$BATS_TEST_TMPDIR/without"
    with=$(value capacity_bytes "$(cat "$BATS_TEST_TMPDIR/with")")
    without=$(value capacity_bytes "$(cat "$BATS_TEST_TMPDIR/without")")
    [ "$with" -eq $((without + (500 << 20))) ]
}

@test "mallocs take the pages of the card" {
    printf '# fraglab trace 1\nalloc 0 4096\nalloc 1 3000000\n' >"$BATS_TEST_TMPDIR/small.txt"
    RECORDING=$BATS_TEST_TMPDIR/small.txt
    card "  page: 64KiB"
    # 64 KiB + 46 x 64 KiB
    row --policy direct --gpu "$CARD" --capacity $((3008 << 10)) --fail-on-oom
    run row --policy direct --gpu "$CARD" --capacity $((3007 << 10)) --fail-on-oom
    [ "$status" -eq 1 ]
    # Policies round to what can be mapped.
    card "  page: 64KiB" "vmm: {granularity: 2MiB}"
    [ "$(value page_bytes "$(row --policy direct --gpu "$CARD")")" -eq $((2 << 20)) ]
}

@test "times come from the card, or from another file" {
    card "calls: {malloc: {base_us: 2}}"
    got=$(row --policy pytorch --gpu "$CARD")
    [ "$(value modelled_time_ns "$got")" -eq $((2000 * $(value malloc "$got"))) ]
    [ "$(value latency "$got")" = Test ]
    got=$(row --policy pytorch --gpu "$CARD" --latency docs/latency-example.yaml)
    [ "$(value latency "$got")" != Test ]
    alone=$(row --policy pytorch --capacity 8GiB --latency docs/latency-example.yaml)
    [ "$(value modelled_time_ns "$got")" -eq "$(value modelled_time_ns "$alone")" ]
}

@test "the table shows modelled time where time is modelled, and only there" {
    ns=$(value modelled_time_ns "$(row --policy direct --latency docs/latency-example.yaml)")
    ms=$(awk -v ns="$ns" 'BEGIN { printf "%.3f ms", ns / 1e6 }')
    table=$(./fraglab run "$RECORDING" --policy direct --latency docs/latency-example.yaml)
    [[ $table == *"device calls   modelled time   OOM"* ]]
    [[ $table == *" $ms   –"* ]]
    [[ $(./fraglab run "$RECORDING" --policy direct) == *"device calls   OOM"* ]]
}

@test "a digest stands for what a description says, not for how it is written" {
    card "  context: 500MiB"
    one=$(value gpu_digest "$(row --policy direct --gpu "$CARD")")
    printf 'memory: {context: 524288000, total: 8192MiB} # the same\norigin: "software"\nname: Test\n' >"$CARD"
    [ "$(value gpu_digest "$(row --policy direct --gpu "$CARD")")" = "$one" ]
    card "  context: 501MiB"
    [ "$(value gpu_digest "$(row --policy direct --gpu "$CARD")")" != "$one" ]
}

@test "a card that serves no scattered pages is warned about" {
    card "malloc: {serves_scattered: false}"
    run row --policy direct --gpu "$CARD"
    [ "$status" -eq 0 ]
    grep -q "serves no large malloc from scattered pages" <<<"$output"
    run row -q --policy direct --gpu "$CARD"
    ! grep -q "scattered" <<<"$output" || false
}

@test "a card that never reuses addresses makes them ascend" {
    card "malloc: {reuse: never}"
    printf '# fraglab trace 1\nalloc 0 4096\n' >"$BATS_TEST_TMPDIR/none.txt"
    RECORDING=$BATS_TEST_TMPDIR/none.txt
    [ "$(value address_rule "$(row --policy direct --gpu "$CARD")")" = bump ]
    [ "$(value address_rule "$(row --policy direct --gpu "$CARD" --address-rule lowest)")" = lowest ]
}

# refuses CODE SENTENCE ARGUMENT...
refuses() {
    local code=$1 sentence=$2 status=0
    shift 2
    row --policy direct "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
    cat "$BATS_TEST_TMPDIR/err"
    [ "$status" -eq "$code" ]
    [ ! -s "$BATS_TEST_TMPDIR/out" ]
    grep -qF -- "$sentence" "$BATS_TEST_TMPDIR/err"
}

@test "what is no card, and no table of times, is refused with its place" {
    refuses 2 "--gpu: no card is called 'l44'; did you mean l4?" --gpu l44
    refuses 2 "--gpu: no card is called 'rtx4o90'; did you mean rtx4090?" --gpu rtx4o90
    refuses 2 "'fraglab device list' prints them" --gpu something-else
    refuses 3 "none.yaml" --gpu ./none.yaml
    refuses 3 "docs/latency-example.yaml: it says nothing of memory" --gpu docs/latency-example.yaml
    refuses 3 "devices/l4.yaml: it has no 'calls'" --latency devices/l4.yaml
    card "  context: 9GiB"
    refuses 3 "card.yaml:5:12: context: 9GiB is out of range; expected 0 B to 8.00 GiB" --gpu "$CARD"
    card "  footprint: []" "calls: {malloc: {base: 3}}"
    refuses 3 "card.yaml:6:18: unknown key 'base'" --gpu "$CARD"
    card 'aliases: ["a", "b/c"]'
    refuses 3 "card.yaml:5:16: aliases: 'b/c' has a character that no name of a card has" --gpu "$CARD"
    card 'aliases: [a, b, c, d, e, f, g, h, i]'
    refuses 3 "card.yaml:5:10: aliases has 9 names; expected at most 8" --gpu "$CARD"
    card 'compute:' '  multiprocessors: 0'
    refuses 3 "card.yaml:6:" --gpu "$CARD"
    card 'compute:' '  shared_per_block: 5TiB'
    refuses 3 "card.yaml:6:" --gpu "$CARD"
    sed -i 's/origin: software/origin: reported/' "$BATS_TEST_TMPDIR/card.yaml"
    card
    sed -i 's/origin: software/origin: reported/' "$CARD"
    refuses 3 "'source' is missing" --gpu "$CARD"
}
