# fraglab trace generate of statistical workloads: the same bytes always, errors that name the place, and how far off they are.

files=traces/workloads/statistical

setup() {
    out=$BATS_TEST_TMPDIR
}

digest() {
    ./fraglab trace info "$1" --format jsonl | grep -o '"digest":"[0-9a-f]*"' | cut -d'"' -f4
}

@test "every bundled description is a clean trace, the same everywhere" {
    local expected=(checkerboard 0ec895513b7ee250da4b40fb6060e84e phases cc68ea9268c80a75e99e9df7ebb4446b robson 758b174dbd99f0ddbdf1194aa439e58d sawtooth aaac1710cb58c6571b3c717e15dde19b)
    [ "$(echo $files/*.yaml | wc -w)" -eq 4 ]
    for ((i = 0; i < 8; i += 2)); do
        ./fraglab trace generate "$files/${expected[i]}.yaml" -f -o "$out/a.fgt"
        ./fraglab trace check "$out/a.fgt"
        echo "${expected[i]} $(digest "$out/a.fgt")"
        [ "$(digest "$out/a.fgt")" = "${expected[i + 1]}" ]
    done
    ./fraglab trace generate $files/phases.yaml --seed 2 -f -o "$out/b.fgt"
    [ "$(digest "$out/b.fgt")" != "${expected[3]}" ]
}

peak() { # policy, trace
    ./fraglab run "$2" --policy "$1" --format jsonl | grep -o '"peak":{[^}]*' | grep -o '"reserved_bytes":[0-9]*' | cut -d: -f2
}

@test "a checkerboard and Robson's program need what theory says" {
    ./fraglab trace generate $files/checkerboard.yaml -o "$out/board.fgt"
    # 512 MiB of which every second MiB is a hole, and 256 MiB above it
    [ "$(peak best-fit "$out/board.fgt")" -eq $((768 << 20)) ]
    [ "$(peak offline "$out/board.fgt")" -eq $((512 << 20)) ]
    ./fraglab trace generate $files/robson.yaml -o "$out/robson.fgt"
    # M (1 + log2(n) / 2) - n + 1 words of 512 bytes, in pages of 2 MiB
    for policy in first-fit best-fit worst-fit; do
        [ "$(peak $policy:grow=2MiB "$out/robson.fgt")" -eq $((((4096 * 4 - 64 + 1) * 512 + (2 << 20) - 1) >> 21 << 21)) ]
    done
    for policy in pytorch buddy tlsf next-fit; do
        [ "$(peak $policy "$out/robson.fgt")" -ge $(((4096 * 4 - 64 + 1) * 512)) ]
    done
}

@test "what is like a recording has its peak, and says the same as a file" {
    for recording in traces/samples/*.zst; do
        ./fraglab trace generate --like "$recording" -f -o "$out/a.fgt"
        ./fraglab trace generate --like "$recording" --to yaml -f -o "$out/a.yaml"
        ./fraglab trace generate "$out/a.yaml" -f -o "$out/b.fgt"
        [ "$(digest "$out/a.fgt")" = "$(digest "$out/b.fgt")" ]
        ./fraglab trace check "$out/a.fgt"
        live() { ./fraglab trace info "$1" --format jsonl | grep -o '"peak_requested_bytes":[0-9]*' | cut -d: -f2 | sort -n | tail -1; }
        [ "$(live "$out/a.fgt")" -le "$(live "$recording")" ]
        [ "$(live "$out/a.fgt")" -ge $(($(live "$recording") * 99 / 100)) ]
    done
    # The GPU that requests most, or the one named.
    ./fraglab trace generate --like traces/samples/model-parallel.pickle.zst --trace-device 1 -f -o "$out/b.fgt"
    [ "$(./fraglab trace info "$out/b.fgt" --format jsonl | grep -o '"requests":[0-9]*' | head -1)" != "" ]
    # A longer one is about as long as is asked.
    ./fraglab trace generate --like traces/samples/unet.pickle.zst --requests 50000 -f -o "$out/b.fgt"
    count=$(./fraglab trace convert "$out/b.fgt" --to text - | grep -c ^alloc)
    [ "$count" -gt 49000 ] && [ "$count" -le 50100 ]
}

@test "how far off statistical workloads are is what the page says" {
    tests/workload/likeness.py ./fraglab traces/samples/{pr193400,llm-inference}.pickle.zst >"$out/table"
    grep -F "| llm-inference |" "$out/table"
    grep -qxF "$(grep -F '| pr193400 |' "$out/table")" docs/workloads.md
    grep -qxF "$(grep -F '| llm-inference |' "$out/table")" docs/workloads.md
}

refuse() { # sentence; the file's text is on stdin
    cat >"$out/bad.yaml"
    run ./fraglab trace generate "$out/bad.yaml" -o "$out/never.fgt"
    echo "$output"
    [ "$status" -eq 3 ]
    [ "$output" = "fraglab: $out/bad.yaml$1" ]
    [ ! -e "$out/never.fgt" ]
}

@test "bad input is refused with its place, what was found and what would be right" {
    drawn="a list of up to 64, MIN..MAX, doubling MIN..MAX, exponential MEAN or lognormal MEDIAN FACTOR"
    printf 'statistical:\n  bytez: 8\n' | refuse ":2:3: unknown key 'bytez'; did you mean bytes"
    printf 'statistical:\n  requests: 8\n' | refuse ":2:3: a class of requests has no 'bytes'; expected sizes, such as 'bytes: 512..1MiB'"
    for bytes in 0 2TiB 9..8 '[]' 'normal 4KiB' 'lognormal 4KiB' 'lognormal 4KiB 0.5' 'exponential 1..2' 'doubling 8' forever 1.5 '1..2..3' '8,'; do
        printf 'statistical: {bytes: "%s"}\n' "$bytes" | refuse ":1:22: bytes is '$bytes'; expected a size of 1 B to 1 TiB, $drawn"
    done
    for lifetime in -1 10000001 1KiB '1..forever' 'exponential forever' '1,,2'; do
        printf 'statistical: {bytes: 8, lifetime: "%s"}\n' "$lifetime" |
            refuse ":1:35: lifetime is '$lifetime'; expected requests, 0 to 10000000, or forever, $drawn"
    done
    printf 'statistical: {bytes: 8, stream: 65535}\n' | refuse ":1:33: stream is '65535'; expected a number 0 to 65534, $drawn"
    printf 'statistical: {bytes: 8, live: "1GiB,2GiB"}\n' | refuse ":1:31: live is '1GiB,2GiB'; expected a size up to 1 TiB, or FIRST..LAST"
    printf 'statistical: {bytes: 8, multiple: 2GiB}\n' | refuse ":1:35: multiple is '2GiB'; expected a size 1 B to 1.00 GiB"
    printf 'statistical: {bytes: 8, name: %s}\n' "$(printf 'n%.0s' {1..64})" |
        refuse ":1:31: name is '$(printf 'n%.0s' {1..64})'; expected 1 to 63 letters"
    printf 'statistical: {bytes: 8, pattern: tetris}\n' | refuse ":1:34: pattern is 'tetris'; expected mixture or robson"
    printf 'statistical: {bytes: 8, survivors: 1.5}\n' | refuse ":1:36: survivors is '1.5'; expected a number 0 to 1"
    printf 'statistical:\n  phases: []\n' | refuse ":2:11: phases has 0 items; expected 1 to 64"
    printf 'statistical:\n  phases: [{bytes: 8, phases: []}]\n' | refuse ":2:23: unknown key 'phases'; expected one of name, pattern, requests, repeat, live, release, stretch, survivors, holes, largest, share, count, bytes, multiple, lifetime, stream, classes"
    printf 'statistical:\n  bytes: 8\n  classes: [4]\n' | refuse ":3:13: 'a class' is a single value; expected 'key: value' lines"
    printf 'statistical:\n  requests: 5\n  classes: [{bytes: 8, count: 6}]\n' |
        refuse ":2:3: requests is 5, and classes have a count of 6 in all; expected as many, or a class with a share"
    printf 'statistical:\n  requests: 5\n  classes: [{bytes: 8, count: 6}, {bytes: 8}]\n' |
        refuse ":2:3: requests is 5, and classes have a count of 6 in all; expected at most as many"
    printf 'statistical: {bytes: 8, requests: 5000000, repeat: 3}\n' |
        refuse ": all phases and rounds have more than 10000000 requests; expected at most as many"
    printf 'statistical: {pattern: robson, bytes: 8, largest: 64}\n' |
        refuse ":1:14: pattern is robson; expected one size as 'bytes', and 'live' and 'largest', no classes"
    printf 'statistical: {pattern: robson, bytes: 8, largest: 24, live: 48}\n' |
        refuse ":1:14: bytes 8, largest 24 and live 48 are given; expected largest a power of two times bytes, live a multiple of largest and at most 1048576 times bytes"
    printf 'statistical: {bytes: 8}\nmodel: {family: gpt2}\n' | refuse ":2:1: unknown key 'model'; expected one of statistical"
}

@test "what does not go together is refused" {
    refuse_options() { # words of the error, options
        words=$1
        shift
        run ./fraglab trace generate "$@" -f -o "$out/never.fgt"
        echo "$output"
        [ "$status" -eq 2 ]
        [[ "$output" == *"$words"* ]]
        [ ! -e "$out/never.fgt" ]
    }
    sample=traces/samples/pr193400.pickle.zst
    refuse_options "the file describes requests, not a network; leave --batch out" $files/phases.yaml --batch 2
    refuse_options "--like describes requests, not a network; leave --steps out" --like $sample --steps 2
    refuse_options "expected MODEL, a workload file or config.json, or --like RECORDING"
    refuse_options "expected either MODEL or --like RECORDING" $files/phases.yaml --like $sample
    refuse_options "--phases is of recordings; add --like RECORDING" $files/phases.yaml --phases 2
    refuse_options "--to yaml writes what describes a recording; add --like RECORDING" $files/phases.yaml --to yaml
    refuse_options "--gpu is of networks; leave it out" --like $sample --gpu rtx3060
    refuse_options "--phases" --like $sample --phases 65
    refuse_options "--requests" $files/phases.yaml --requests 0
    run ./fraglab trace generate $files/robson.yaml --requests 100 -f -o "$out/never.fgt"
    [ "$status" -eq 3 ]
    [[ "$output" == *"--requests: pattern is robson, which has as many requests as follow from live"* ]]
    run ./fraglab plan $files/phases.yaml --gpu rtx3060
    [ "$status" -eq 3 ]
    [ "$output" = "fraglab: $files/phases.yaml:2:1: 'statistical' describes requests, and a plan is of a network; expected 'model' ('fraglab trace generate' and 'fraglab run --capacity' say what fits)" ]
    # A recording is not written over.
    ./fraglab trace generate $files/checkerboard.yaml -o "$out/kept.fgt"
    run ./fraglab trace generate --like "$out/kept.fgt" -f -o "$out/kept.fgt"
    [ "$status" -eq 2 ]
    ./fraglab trace check "$out/kept.fgt"
    printf '# fraglab trace 2\n' >"$out/empty.txt"
    run ./fraglab trace generate --like "$out/empty.txt" -f -o "$out/never.fgt"
    echo "$output"
    [ "$status" -eq 3 ]
}
