# A policy in a shared object: built as docs/adding-a-policy.md says, loaded, or refused with a reason.
bats_require_minimum_version 1.5.0

RECORDING=traces/samples/pr193400.pickle.zst
WARNINGS="-Wpedantic -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror"

# build FILE.c FILE.so [FLAG...]
build() {
    local source=$1 object=$2
    shift 2
    # shellcheck disable=SC2086
    "${CC:-gcc}" -std=c11 -O2 $WARNINGS -fPIC -shared "$@" -o "$object" "$source"
}

# refuses SENTENCE POLICY: exit 3 or 2, nothing on stdout, the sentence on stderr.
refuses() {
    local code=$1 sentence=$2 status=0
    ./fraglab run "$RECORDING" --policy "$3" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
    cat "$BATS_TEST_TMPDIR/err"
    [ "$status" -eq "$code" ]
    [ ! -s "$BATS_TEST_TMPDIR/out" ]
    grep -qF -- "$sentence" "$BATS_TEST_TMPDIR/err"
}

setup() {
    X=$BATS_TEST_TMPDIR/x.so
}

@test "the example of the documentation is built, loaded and keeps its invariants" {
    build examples/my_policy.c "$X" -I.
    for recording in traces/samples/*.zst; do
        ./fraglab run "$recording" --policy "$X" --check 200 --capacity 12GiB
    done
}

@test "its rows carry its name and options, and add up" {
    build examples/my_policy.c "$X" -I.
    ./fraglab run "$RECORDING" --policy "$X:align=4MiB" --format jsonl >"$BATS_TEST_TMPDIR/row"
    cat "$BATS_TEST_TMPDIR/row"
    grep -q '"policy":{"name":"my-policy","label":"[^"]*x.so:align=4MiB","options":{"align":4194304}}' \
        "$BATS_TEST_TMPDIR/row"
    grep -q '"failed_requests":0' "$BATS_TEST_TMPDIR/row"
}

@test "its page has the rules and options of its own table" {
    build examples/my_policy.c "$X" -I.
    ./fraglab policies "$X" >"$BATS_TEST_TMPDIR/page"
    cat "$BATS_TEST_TMPDIR/page"
    grep -q '^  takes .*the cached segment of exactly the rounded size that was freed last' "$BATS_TEST_TMPDIR/page"
    grep -q '^checked not by fraglab itself' "$BATS_TEST_TMPDIR/page"
    grep -q '^  align=2MiB' "$BATS_TEST_TMPDIR/page"
    # Without rules there is none of that, also under the name of a policy of ours.
    sed 's/"my-policy"/"best-fit"/; /\.rules =/d; /^static const frag_policy_rules/,/^};/d' examples/my_policy.c \
        >"$BATS_TEST_TMPDIR/bare.c"
    build "$BATS_TEST_TMPDIR/bare.c" "$X" -I.
    ./fraglab policies "$X" >"$BATS_TEST_TMPDIR/page"
    run grep '^rules' "$BATS_TEST_TMPDIR/page"
    [ "$status" -eq 1 ]
}

@test "the command of the documentation builds it" {
    command=$(sed -n 's/^\(gcc .*examples\/my_policy\.c\)$/\1/p' docs/adding-a-policy.md)
    [ -n "$command" ]
    mkdir -p build
    ${CC:-gcc} ${command#gcc }
    ./fraglab run "$RECORDING" --policy ./build/my_policy.so
}

@test "the conformance test takes it, and finds a policy that breaks the contract" {
    make --no-print-directory -s build/release/tests/test_conformance >/dev/null
    build examples/my_policy.c "$X" -I.
    build/release/tests/test_conformance "$X:align=1MiB" 1048576
    sed 's/block_bytes = bytes/block_bytes = bytes - 1/' examples/my_policy.c >"$BATS_TEST_TMPDIR/broken.c"
    build "$BATS_TEST_TMPDIR/broken.c" "$BATS_TEST_TMPDIR/broken.so" -I.
    run build/release/tests/test_conformance "$BATS_TEST_TMPDIR/broken.so"
    [ "$status" -ne 0 ]
    [[ "$output" == *"a block is smaller than the rounded request"* ]]
    run build/release/tests/test_conformance "$X" no-number
    [ "$status" -eq 2 ]
}

# breaks SENTENCE SED...: the example, changed so, is told of under --check 1, by name and event.
breaks() {
    local sentence=$1
    sed "${@:2}" examples/my_policy.c >"$BATS_TEST_TMPDIR/broken.c"
    build "$BATS_TEST_TMPDIR/broken.c" "$X" -I.
    run -3 --separate-stderr ./fraglab run "$RECORDING" --policy "$X" --check 1
    [ -z "$output" ]
    echo "$stderr"
    [[ "$stderr" =~ ": --check after event "[0-9]+": the policy my-policy of $X breaks its contract: "$sentence ]]
}

@test "--check finds blocks that are not as granted, too small, in one place or of one handle" {
    breaks "the walk shows another block than was granted" 's/block_bytes = bytes,/block_bytes = bytes * 2,/'
    breaks "a block is smaller than its request" 's/block_bytes = bytes,/block_bytes = request->bytes - 1,/'
    breaks "the walk shows another block than was granted" 's/address = policy->segments\[id\]/address = policy->segments[0]/'
    breaks "two live blocks have one handle" 's/\.handle = id}/.handle = id \& ~1u}/'
    breaks "the handle of a block is not below 2\^28" 's/\.handle = id}/.handle = 0xfffffff0}/'
    breaks "the walk shows a block that is not live, or twice" 's/span.handle = id;/span.handle = id + 1;/'
    breaks "the walk shows 0 blocks; 1 are live" 's/at->state == SEGMENT_UNUSED)/at->state != SEGMENT_CACHED)/'
    breaks "the walk leaves a gap" '/span.handle = id;/s/^/span.address += 8;/'
    breaks "blocks and holes do not fill their segment" '/span.handle = id;/s/^/span.bytes -= at->state == SEGMENT_CACHED ? 8 : 0;/'
    breaks "the layout holds [0-9]+ bytes; the device gave [0-9]+" 's/at->state == SEGMENT_UNUSED)/at->state != SEGMENT_GRANTED)/'
    breaks "its own check fails, and does not say why" 's/^    uint32_t listed = 0;/return false;&/'
}

# ends SED...: the example, changed so, ends in an assertion, which says whose mistake it is.
ends() {
    sed "$@" examples/my_policy.c >"$BATS_TEST_TMPDIR/broken.c"
    build "$BATS_TEST_TMPDIR/broken.c" "$X" -I.
    run -134 --separate-stderr ./fraglab run "$RECORDING" --policy "$X"
    echo "$stderr"
    [[ "$stderr" == *"fraglab: the policy my-policy of $X breaks its contract, as seen at "*".c:"*"' does not hold;"* ]]
    [[ "$stderr" != *"please report"* ]]
}

@test "an assertion that fails in a run of it blames it, not fraglab" {
    ends 's/span.handle = id;/span.handle = id + 7;/'
    ends 's/^    return sizeof(frag_policy) + .*;/    (void)record_max(limits); return 64;/'
    ends 's/^    at->state = SEGMENT_CACHED;/&(void)frag_device_free(policy->device, at->address + 512, at->bytes);/'
    ends 's/FRAG_ASSERT(at->state == SEGMENT_GRANTED)/FRAG_ASSERT(at->state == SEGMENT_CACHED)/'
}

@test "a policy that is not created is told of by its name, whatever runs it" {
    sed 's/^    frag_policy \*policy = frag_arena_take/    if (align > 0)\n        return NULL;\n&/' examples/my_policy.c >"$BATS_TEST_TMPDIR/none.c"
    build "$BATS_TEST_TMPDIR/none.c" "$X" -I.
    sentence="create of the policy my-policy returned nothing, and no error; expected one of both"
    refuses 3 "$sentence" "$X"
    run -3 --separate-stderr ./fraglab run "$RECORDING" --policy tlsf --policy "$X"
    [[ "$stderr" == *"$sentence"* ]]
    run -3 --separate-stderr ./fraglab min-capacity "$RECORDING" --policy "$X"
    [[ "$stderr" == *"$sentence"* ]]
    printf 'traces: [%s]\npolicies: [%s]\n' "$PWD/$RECORDING" "$X" >"$BATS_TEST_TMPDIR/sweep.yaml"
    run ./fraglab sweep "$BATS_TEST_TMPDIR/sweep.yaml" -o "$BATS_TEST_TMPDIR/rows"
    grep -F '"problem":"' "$BATS_TEST_TMPDIR/rows" | grep -qF "$sentence"
}

@test "it finds the least capacity" {
    build examples/my_policy.c "$X" -I.
    ./fraglab min-capacity "$RECORDING" --policy "$X" --format jsonl | grep -q '"capacity_bytes":[0-9]'
}

@test "a wrong option is refused as for any policy" {
    build examples/my_policy.c "$X" -I.
    refuses 2 "my-policy has no option 'algn'; did you mean 'align'?" "$X:algn=4MiB"
    refuses 2 "my-policy has no option 'other'; expected one of align" "$X:other=4MiB"
    refuses 2 "align=1000 is not a multiple of 512" "$X:align=1000"
}

@test "an object built for another ABI is refused" {
    abi=$(sed -n 's/^#define FRAG_POLICY_ABI //p' sim/policy.h)
    sed "s/^FRAG_POLICY_EXPORT/#undef FRAG_POLICY_ABI\n#define FRAG_POLICY_ABI $((abi + 1))\n&/" \
        examples/my_policy.c >"$BATS_TEST_TMPDIR/other.c"
    build "$BATS_TEST_TMPDIR/other.c" "$X" -I.
    refuses 3 "was built for policy ABI $((abi + 1)); this fraglab has $abi: build it anew" "$X"
}

@test "a table that lacks what is needed is refused, and the field is named" {
    lacks() { # sed script for the example, sentence, more options of the compiler
        sed "$1" examples/my_policy.c >"$BATS_TEST_TMPDIR/lacks.c"
        build "$BATS_TEST_TMPDIR/lacks.c" "$X" -I. "${@:3}"
        refuses 3 "$2" "$X"
    }
    for field in name summary source bound arena_bytes create alloc free walk; do
        lacks "/^    \.$field = .*,\$/d" "the table of its policy has no .$field; docs/adding-a-policy.md says what it needs" -Wno-unused-function
        run -3 --separate-stderr ./fraglab policies "$X"
    done
    lacks 's/\.bound = "",/&.conf_option = "conf",/' "has no option that .conf_option names;"
    lacks 's/\.bound = "",/&.fraction_option = "fraction",/' "has no option that .fraction_option names;"
    lacks 's/^    \.name = .*,$/    .name = "",/' "the table of its policy has no .name;"
    lacks '/\.cuts = /d' "has no .rules->cuts;"
    lacks 's/FRAG_OPTION_BYTES, "2MiB"/FRAG_OPTION_ENUM, "2MiB"/' "has no option 'align' with .choices;"
    # With choices it is taken.
    sed 's/FRAG_OPTION_BYTES, "2MiB"/FRAG_OPTION_ENUM, "2MiB", .choices = "2MiB|4MiB"/' examples/my_policy.c >"$BATS_TEST_TMPDIR/has.c"
    build "$BATS_TEST_TMPDIR/has.c" "$X" -I.
    ./fraglab policies "$X" >"$BATS_TEST_TMPDIR/has.txt"
}

@test "an object without the export, or no object, is refused" {
    echo 'extern int nothing; int nothing;' >"$BATS_TEST_TMPDIR/nothing.c"
    build "$BATS_TEST_TMPDIR/nothing.c" "$X"
    refuses 3 "exports no 'frag_policy_exported'" "$X"
    echo "not an object" >"$X"
    refuses 3 "cannot be loaded" "$X"
    refuses 3 "cannot be loaded" "$BATS_TEST_TMPDIR/missing.so"
}
