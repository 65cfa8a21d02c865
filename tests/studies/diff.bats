# fraglab diff: who holds what in two recordings, where their requests part, exit codes.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    out=$BATS_TEST_TMPDIR
    before=$out/before.txt after=$out/after.txt
    # Weights, then two steps; in the second recording the activation is half and a loss is kept.
    cat >"$before" <<'END'
# fraglab trace 2
frame "_apply" "/usr/lib/python3/site-packages/torch/nn/modules/module.py" 900
frame "main" "/home/a/train.py" 10
frame "forward" "/usr/lib/python3/site-packages/torch/nn/modules/linear.py" 116
frame "step" "/home/a/train.py" 20
site 0 1
site 2 3 1
alloc 0 4194304 site=1
mark "step"
alloc 1 2097152 site=2
free 1
mark "step"
alloc 1 2097152 site=2
free 1
END
    cat >"$after" <<'END'
# fraglab trace 2
frame "_apply" "/opt/venv/lib/site-packages/torch/nn/modules/module.py" 950
frame "main" "/opt/b/train.py" 12
frame "forward" "/opt/venv/lib/site-packages/torch/nn/modules/linear.py" 120
frame "step" "/opt/b/train.py" 22
site 0 1
site 2 3 1
site 3 1
alloc 0 4194304 site=1
mark "step"
alloc 1 1048576 site=2
free 1
alloc 1 512 site=3
mark "step"
alloc 2 1048576 site=2
free 2
END
}

# The value of a path in the JSON object of a diff.
field() { python3 -S -c 'import json, sys
value = json.loads(sys.argv[1])
for key in sys.argv[2].split("."): value = value[int(key) if key.isdigit() else key]
print(json.dumps(value))' "$1" "$2"; }

@test "counts are grouped by thousands, their change too, and none has no sign" {
    ./fraglab diff traces/samples/unet.pickle.zst traces/samples/gpt-train.pickle.zst >"$BATS_TEST_TMPDIR/table"
    grep -Eq '^requests +16,226 +8,904 +-7,322 +-45.1 %' "$BATS_TEST_TMPDIR/table"
    ./fraglab diff traces/samples/unet.pickle.zst traces/samples/unet.pickle.zst >"$BATS_TEST_TMPDIR/table"
    grep -Eq '^device calls +296 +296 +0 *$' "$BATS_TEST_TMPDIR/table"
}

@test "the largest change stands first, and moved lines and folders are none" {
    run ./fraglab diff "$before" "$after"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "before  before.txt, event 2" ]]
    [[ "$output" =~ "held at the peak"\ +"6.00 MiB"\ +"5.00 MiB"\ +"-1023.50 KiB"\ +"-16.7 %" ]]
    [[ "$output" =~ "1 request is equal one by one" ]]
    [[ "$output" == *"  before  event 2, 2,097,152 bytes, step (train.py:20)"* ]]
    [[ "$output" == *"  after   event 2, 1,048,576 bytes, step (train.py:22)"* ]]
    [[ "$output" =~ "step (train.py)"\ +"2.00 MiB"\ +"1.00 MiB"\ +"-1023.50 KiB"\ +"1 then 2"\ +"20 then 22" ]]
    [[ "$output" =~ "forward (torch/nn/modules/linear.py)"\ +"2.00 MiB"\ +"1.00 MiB"\ +"-1.00 MiB" ]]
    [[ "$output" != *"_apply"* ]]
}

@test "frames that a dry run wraps around functions of PyTorch name no call site" {
    sed 's|^frame "step"|frame "indexed" "/opt/f/site/fraglab_dryrun/counts.py" 126\n&|; s/^site 2 3 1/site 3 2 4 1/; s/^site 3 1/site 3 4 1/' "$after" >"$out/wrapped.txt"
    run ./fraglab diff "$out/wrapped.txt" "$after" --format json
    [ "$status" -eq 0 ]
    [[ "$output" != *indexed* ]]
    run ./fraglab diff "$before" "$out/wrapped.txt"
    [[ "$output" =~ "step (train.py)"\ +"2.00 MiB"\ +"1.00 MiB" ]]
}

@test "the object has every group with what it held, most, asked for and kept" {
    run ./fraglab diff "$before" "$after" --at end --format json
    [ "$status" -eq 0 ]
    [ "$(field "$output" kind)" = '"diff"' ]
    [ "$(field "$output" groups.0.inner)" = '"step (train.py)"' ]
    [ "$(field "$output" groups.0.after.line)" = 22 ]
    [ "$(field "$output" groups.0.after.live_bytes)" = 512 ]
    [ "$(field "$output" groups.0.before.requests)" = 0 ]
    [ "$(field "$output" groups.2.inner)" = '"forward (torch/nn/modules/linear.py)"' ]
    [ "$(field "$output" groups.2.before.live_bytes)" = 0 ]
    [ "$(field "$output" groups.2.before.most_bytes)" = 2097152 ]
    [ "$(field "$output" groups.2.before.requests)" = 2 ]
    [ "$(field "$output" groups.2.before.request_bytes)" = 4194304 ]
    [ "$(field "$output" groups.2.before.freed)" = 2 ]
    [ "$(field "$output" groups.2.before.mean_lifetime_events)" = 1.0 ]
    [ "$(field "$output" sides.1.peak.reserved_bytes)" -gt 4194304 ]
    [ "$(field "$output" requests.part.1.event)" = 2 ]
}

@test "as rows: each call site that changed, the largest change first" {
    ./fraglab diff "$before" "$after" --format jsonl >"$out/rows"
    python3 - "$out/rows" <<'CHECK'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert rows and all(row["kind"] == "diff-site" and row["site"] for row in rows)
changes = [abs(row["bytes_after"] - row["bytes_before"]) for row in rows]
assert changes == sorted(changes, reverse=True) and min(changes) > 0, changes
assert any("linear.py" in row["inner"] and row["bytes_before"] == 2097152 and row["bytes_after"] == 1048576 for row in rows), rows
CHECK
    run ./fraglab diff "$after" "$after" --format jsonl
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

# A trace of the lines given; frames of /a/x.py are named by their letters: 1 is a, 2 is b, 3 the autograd thread.
trace() {
    printf '%s\n' '# fraglab trace 2' 'frame "a" "/a/x.py" 1' 'frame "b" "/a/x.py" 2' 'frame "autograd thread (no Python stack)" "" 0' \
        'site 0' 'site 1' 'site 2' "${@:2}" >"$out/$1"
}

@test "what has no line of code stands last, and its bytes are said, also where rows are cut" {
    trace from 'alloc 0 3145728 site=1' 'alloc 1 9437184 site=3'
    trace to 'alloc 0 2097152 site=1' 'alloc 1 6291456 site=3'
    run ./fraglab diff "$out/from" "$out/to"
    echo "$output"
    [ "$(grep -o '^a (x.py)\|^ *autograd thread' <<<"$output" | paste -sd,)" = "a (x.py),autograd thread" ]
    [[ "$output" == *"without a line of code, so last: -3.00 MiB in all"* ]]
    run ./fraglab diff "$out/from" "$out/to" --rows 1
    [[ "$output" == *"more lines, -3.00 MiB: --rows N"*"so last: -3.00 MiB in all"* ]]
    ./fraglab diff "$out/from" "$out/to" --format jsonl >"$out/rows"
    [ "$(grep -o '"has_place":[a-z]*' "$out/rows" | paste -sd,)" = '"has_place":true,"has_place":false' ]
    sed -i '/site=1/d' "$out/from" "$out/to"
    run ./fraglab diff "$out/from" "$out/to"
    [[ "$output" == *"without a line of code: -3.00 MiB in all"* ]]
}

@test "comprehensions are their function's, linked backward passes their forward pass's" {
    trace from 'alloc 0 4096 site=1' 'alloc 1 2048 site=2' 'alloc 2 1024 site=2'
    trace to 'frame "<listcomp>" "/a/x.py" 1' 'frame "backward of b" "/a/x.py" 2' 'site 3 0' 'site 4' 'alloc 0 8192 site=4' 'alloc 1 2048 site=5' 'alloc 2 1024 site=2'
    run ./fraglab diff "$out/from" "$out/to"
    echo "$output"
    [[ "$output" =~ "a (x.py)"\ +"4.00 KiB"\ +"8.00 KiB"\ +"+4.00 KiB" ]]
    [ "$(sed -n '/^held there/,$p' <<<"$output" | wc -l)" = 3 ]
    ./fraglab diff "$out/from" "$out/to" --by stack --stacks "$out/stacks" >/dev/null
    grep -qx 'a (x.py) 4096 8192' "$out/stacks"
}

@test "frames of C++ change nothing but for the names of the backward pass" {
    run ./fraglab diff tests/data/recordings/stacks-{all,python}-2.9.pickle.zst
    echo "$output"
    [[ "$output" =~ "backward of Addmm"\ +"8.39 MiB"\ +"0 B"\ +"-8.39 MiB" ]]
    [[ "$output" != *unwind* && "$output" != *.py* ]]
}

@test "a program in a file of another name is compared as the same" {
    sed 's|/opt/b/train.py|/opt/b/train_mended.py|' "$after" >"$out/renamed.txt"
    run ./fraglab diff "$before" "$out/renamed.txt"
    [[ "$output" =~ "step (train_mended.py)"\ +"2.00 MiB"\ +"1.00 MiB"\ +"-1023.50 KiB"\ +"1 then 2" ]]
    [[ "$output" == *"train.py is compared with train_mended.py as one file"* ]]
    # With no function in common it is another program.
    sed -i 's/frame "main"/frame "begin"/; s/frame "step"/frame "pace"/' "$out/renamed.txt"
    run ./fraglab diff "$before" "$out/renamed.txt"
    [[ "$output" != *"as one file"* && "$output" == *"step (train.py) "* ]]
}

@test "a program in a file of another name is found beside a file that both share" {
    for side in before after; do # a third function, whose name comes last
        sed "s|^site 0 1|frame \"zip\" \"/home/a/helper.py\" 3\n&|; 0,/^alloc/s/^alloc/site 4\n&/" "${!side}" |
            sed "0,/^mark/s/^mark/alloc 9 1024 site=$([ $side = before ] && echo 3 || echo 4)\n&/" >"$out/$side-helped.txt"
    done
    sed -i 's|/opt/b/train.py|/opt/b/train_mended.py|' "$out/after-helped.txt"
    run ./fraglab diff "$out/before-helped.txt" "$out/after-helped.txt"
    echo "$output"
    [[ "$output" =~ "step (train_mended.py)"\ +"2.00 MiB"\ +"1.00 MiB" ]]
}

@test "where both hold the same at the peak, what each call site held itself at most is compared" {
    trace from 'alloc 0 9000 site=1' 'free 0' 'alloc 0 3000 site=2' 'free 0'
    trace to 'alloc 0 9000 site=1' 'free 0' 'alloc 0 1000 site=2' 'free 0'
    run ./fraglab diff "$out/from" "$out/to"
    echo "$output"
    [[ "$output" == *"both hold the same there"*"most it held itself, at any time"* ]]
    [[ "$output" =~ "b (x.py)"\ +"2.93 KiB"\ +"1000 B"\ +"-1.95 KiB"\ +"1 then 1" ]]
    [[ "$output" != *"a (x.py) "* ]]
    # Bytes that moved: what is gone first, or what came where all grew.
    trace from 'alloc 0 9000 site=2'
    trace to 'alloc 0 9000 site=1'
    ./fraglab diff "$out/from" "$out/to" --format jsonl | head -1 | grep '"site":"b (x.py)"'
    echo 'alloc 1 100 site=3' >>"$out/to"
    ./fraglab diff "$out/from" "$out/to" --format jsonl | head -1 | grep '"site":"a (x.py)"'
}

@test "lines that move little and against the whole stand behind what has none" {
    trace from 'alloc 0 2097152 site=1' 'alloc 1 20971520 site=3'
    trace to 'alloc 0 3145728 site=1' 'alloc 1 4194304 site=3'
    first() { ./fraglab diff "$out/from" "$out/to" | grep -A1 '^held there' | tail -1; }
    [[ "$(first)" == "autograd thread "*"-16.00 MiB"* ]]
    # Half of it is a change of its own; so is one that goes the same way.
    trace to 'alloc 0 10485760 site=1' 'alloc 1 4194304 site=3'
    [[ "$(first)" == "a (x.py) "*"+8.00 MiB"* ]]
    trace to 'alloc 0 1048576 site=1' 'alloc 1 4194304 site=3'
    [[ "$(first)" == "a (x.py) "*"-1.00 MiB"* ]]
}

@test "of a real pair the mended function is first, though most of the change is in the backward pass" {
    run ./fraglab diff tests/data/recordings/upsampled-{before,after}.txt.zst
    echo "$output"
    [[ "$(grep -A1 '^held there' <<<"$output")" =~ "head (segment.py)"\ +"256.00 MiB"\ +"0 B"\ +"-256.00 MiB"\ +"1 then 0"\ +10$ ]]
    [[ "$output" == *"without a line of code, so last: -516.26 MiB in all"* ]]
    [[ "$(grep -A1 '^most it held' <<<"$output")" =~ "head (segment.py)"\ +"528.01 MiB"\ +"12.26 MiB"\ +"-515.75 MiB"\ +"6 then 6"$ ]]
}

@test "two moments of one recording: what a step left behind" {
    run ./fraglab diff "$after" --at 1 --at end
    [ "$status" -eq 0 ]
    [[ "$output" =~ "held there"\ +"4.00 MiB"\ +"4.00 MiB"\ +"+512 B" ]]
    [[ "$output" =~ "step (train.py)"\ +"0 B"\ +"512 B"\ +"+512 B" ]]
    [[ "$output" != *requests* ]]
    # The N-th mark of a name, up to the next.
    run ./fraglab diff "$after" --at 'step[1]' --at 'step[2]' --format json
    [ "$(field "$output" sides.0.first_event)" = 1 ]
    [ "$(field "$output" sides.0.end_event)" = 5 ]
    [ "$(field "$output" sides.1.first_event)" = 5 ]
    [ "$(field "$output" sides.1.end_event)" = 8 ]
    [ "$(field "$output" sides.1.requested_bytes)" = $((4194304 + 512 + 1048576)) ]
    [ "$(field "$output" sides.1.policy)" = null ]
    run ./fraglab diff "$after" --at 1..3 --at 3..8 --format json
    [ "$(field "$output" sides.0.moment_event)" = 2 ]
    [ "$(field "$output" sides.1.moment_event)" = 6 ]
}

@test "without call stacks blocks are added up by size, which is said" {
    sed '/^frame\|^site/d; s/ site=.*//' "$after" >"$out/plain.txt"
    run ./fraglab diff "$before" "$out/plain.txt"
    [ "$status" -eq 0 ]
    [[ "$output" =~ "blocks of 1.00 MiB (1,048,576 bytes)"\ +"0 B"\ +"1.00 MiB" ]]
    [[ "$output" == *"by size, since not both recordings hold call stacks"* ]]
}

@test "sizes are paired, whatever order their names have" {
    for kind in a b; do
        echo "# fraglab trace 2"
        slot=0
        for size in 10485760 2097152 1048576 9437184 512; do
            [ "$kind$size" != b9437184 ] || continue
            echo "alloc $slot $size"
            slot=$((slot + 1))
        done
    done >"$out/both"
    csplit -s -f "$out/kind" "$out/both" '/^#/' '/^#/'
    run ./fraglab diff "$out/kind01" "$out/kind02"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^blocks of' <<<"$output")" = 1 ]
    [[ "$output" =~ "blocks of 9.00 MiB (9,437,184 bytes)"\ +"9.00 MiB"\ +"0 B" ]]
}

@test "by purpose, by stack, and collapsed stacks with the bytes of both" {
    run ./fraglab diff "$before" "$after" --by purpose
    [[ "$output" =~ activations\ +"2.00 MiB"\ +"1.00 MiB"\ +"-1.00 MiB" ]]
    ./fraglab diff "$before" "$after" --by stack --stacks "$out/stacks" >/dev/null
    [ "$(grep -c . "$out/stacks")" = 3 ]
    grep -qx 'main (train.py);_apply (torch/nn/modules/module.py) 4194304 4194304' "$out/stacks"
    grep -qx 'main (train.py);step (train.py) 0 512' "$out/stacks"
    grep -qx 'main (train.py);step (train.py);forward (torch/nn/modules/linear.py) 2097152 1048576' "$out/stacks"
    run ./fraglab diff "$before" "$after" --stacks "$out/stacks"
    [ "$status" -eq 2 ]
    run ./fraglab diff "$before" "$after" --stacks "$before" -f
    [ "$status" -eq 2 ]
}

@test "--fail-above is exceeded by growth alone" {
    half=$out/half.txt
    sed 's/alloc 1 2097152/alloc 1 1572864/' "$before" >"$half"
    run ./fraglab diff "$before" "$half" --fail-above 0%
    [ "$status" -eq 0 ]
    run ./fraglab diff "$half" "$before" --fail-above 0%
    [ "$status" -eq 1 ]
    run ./fraglab diff "$half" "$before" --fail-above 20%
    [ "$status" -eq 0 ]
    run ./fraglab diff "$half" "$before" --fail-above 0%,512KiB -p best-fit
    [ "$status" -eq 0 ]
    # What the program holds is less; what the allocator reserves for it is more.
    run ./fraglab diff "$before" "$after" --fail-above 0%
    [ "$status" -eq 1 ]
}

@test "a recording is equal to itself" {
    sample=traces/samples/unet.pickle.zst
    run ./fraglab diff "$sample" "$sample" --fail-above 0%
    [ "$status" -eq 0 ]
    [[ "$output" == *"all requests are equal one by one"* ]]
    [[ "$output" == *"both hold the same there"* ]]
}

@test "what cannot be compared is said" {
    run ./fraglab diff "$before"
    [ "$status" -eq 2 ]
    [[ "$output" == *"one recording needs two moments"* ]]
    run ./fraglab diff "$before" "$after" --at 99
    [ "$status" -eq 2 ]
    [[ "$output" == *"before.txt: there is no event 99; the trace has 7"* ]]
    run ./fraglab diff "$before" "$after" --at 5..2
    [ "$status" -eq 2 ]
    run ./fraglab diff "$before" "$after" --at stp
    [ "$status" -eq 2 ]
    [[ "$output" == *"did you mean 'step'"* ]]
    run ./fraglab diff "$before" "$after" --at 'step[3]'
    [ "$status" -eq 2 ]
    [[ "$output" == *"there are 2 marks 'step', and no [3]"* ]]
    run ./fraglab diff "$before" "$after" --trace-device 3
    [ "$status" -eq 2 ]
    run ./fraglab diff "$before" "$after" -p best-fit,pytorch
    [ "$status" -eq 2 ]
    printf '# fraglab trace 2\nmark "a"\n' >"$out/empty.txt"
    run ./fraglab diff "$before" "$out/empty.txt"
    [ "$status" -eq 3 ]
    [[ "$output" == *"the trace requests nothing"* ]]
}

@test "a mark that is not there is looked for among those that are" {
    # The first event is no mark.
    run ./fraglab diff "$before" --at step "$after" --at sleep
    echo "$output"
    [ "$status" -eq 2 ]
    [[ "$output" == *"'sleep'"* ]]
    [[ "$output" != *"has no marks"* ]]
}

@test "requests that failed are counted alike above and below, as by trace info" {
    printf '# fraglab trace 2\nalloc 0 512\nalloc - 4096 failed\nalloc 1 1\n' >"$out/failed.txt"
    run ./fraglab diff "$out/failed.txt" "$out/failed.txt"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"requests "*" 3 "*" 3 "* ]]
    [[ "$output" == *"all requests are equal one by one, in size and stream: 3"* ]]
    printf '# fraglab trace 2\nalloc 0 512\nalloc 1 3\n' >"$out/other.txt"
    run ./fraglab diff "$out/other.txt" "$out/failed.txt"
    echo "$output"
    [[ "$output" == *"event 1, 3 bytes"*"event 1, 4,096 bytes"* ]]
    [[ "$output" == *"blocks of 1 B (1 byte) "* ]]
}
