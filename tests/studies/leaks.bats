# fraglab leaks: what is a leak and what is none, of which kind, and in which step the device is full. Real programs:
# tests/dryrun/leaks_test.sh.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    command -v python3 >/dev/null || skip "python3 is not installed"
    trace=$BATS_TEST_TMPDIR/run.txt
    # loop KIND STEPS [MARKS]: weights, and steps that each take and give back activations; then what the kind keeps.
    cat >"$BATS_TEST_TMPDIR/loop.py" <<'END'
import sys
kind, steps, marks = sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3
slots, free = 0, []
def alloc(size, stream=""):
    global slots
    slot = free.pop() if free else slots
    slots += slot == slots
    print(f"alloc {slot} {size}{stream}")
    return slot
def drop(slot):
    print(f"free {slot}")
    free.append(slot)
print("# fraglab trace 2")
for _ in range(4):
    alloc(1 << 20)
kept, size = [], 4096
for step in range(steps):
    if marks:
        print(f'mark "step {step + 1}"')
    live = [alloc(s) for s in (5 << 19, 1000000, 70000, 3 << 20) if kind != "streams"]
    if kind == "streams":
        alloc(1 << 20)
        slot = alloc(2 << 20)
        print(f"use {slot} stream=7\nfree {slot} deferred\ncomplete {slot}")
    if kind == "kept" or kind == "late" and step >= steps // 2 or kind == "third" and step % 3 == 0:
        alloc(262144)
    elif kind == "pools": # their numbers are those of slots, too
        print("pool_begin 6")
        alloc(262144)
        print("pool_end 6")
    elif kind == "scalar":
        alloc(4)
    elif kind == "growing":
        size += 65536
        new = alloc(size)
        for old in kept:
            drop(old)
        kept = [new]
    elif kind == "once" and step == 9:
        alloc(5 << 20)
    elif kind == "fills" and step in (0, 1, 2, 3, 5, 8):
        alloc(131072)
    elif kind == "ring":
        kept.append(alloc(131072))
        if len(kept) > 3:
            drop(kept.pop(0))
    for slot in reversed(live):
        drop(slot)
END
}

loop() { python3 -S "$BATS_TEST_TMPDIR/loop.py" "$@" >"$trace"; }

field() { python3 -S -c 'import json, sys
value = json.loads(sys.argv[1])
for key in sys.argv[2].split("."): value = value[int(key) if key.isdigit() else key]
print(json.dumps(value))' "$1" "$2"; }

@test "a block more in each step is a leak, with its rate and its first step" {
    loop kept 20 marks
    run ./fraglab leaks "$trace"
    echo "$output"
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "19 steps, by the marks 'step #'" ]
    [[ "$output" =~ "blocks of 256.00 KiB (262,144 bytes)"\ +"256.00 KiB"\ +1\ +"4.50 MiB"\ +2\ +sure\ +kept ]]
    run ./fraglab leaks "$trace" --format json
    [ "$status" -eq 1 ]
    [ "$(field "$output" steps.count)" = 19 ]
    [ "$(field "$output" leaks.0.bytes_per_step)" = 262144.0 ]
    [ "$(field "$output" leaks.0.blocks_per_step)" = 1.0 ]
    [ "$(field "$output" leaks.0.confidence)" = '"high"' ]
    [ "$(field "$output" forecast)" = null ]
}

@test "as rows: each leak, and nothing where nothing leaks" {
    loop kept 20 marks
    run ./fraglab leaks "$trace" --format jsonl
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [ "$(field "$output" site)" = '"blocks of 256.00 KiB (262,144 bytes)"' ]
    [ "$(field "$output" bytes_per_step)" = 262144.0 ]
    [ "$(field "$output" first_step)" = 2 ]
    loop plain 20 marks
    run ./fraglab leaks "$trace" --format jsonl
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "steps are found without marks" {
    loop kept 20
    run ./fraglab leaks "$trace" --format json
    [ "$status" -eq 1 ]
    [ "$(field "$output" steps.by)" = '"requests"' ]
    [ "$(field "$output" steps.count)" -ge 18 ]
    [ "$(field "$output" leaks.0.bytes_per_step)" = 262144.0 ]
}

@test "every kind is found as what it is" {
    for pair in scalar:scalar growing:growing late:kept third:kept; do
        loop "${pair%:*}" 30 marks
        run ./fraglab leaks "$trace" --format json
        echo "$pair $output"
        [ "$status" -eq 1 ]
        [ "$(field "$output" leaks.0.kind)" = "\"${pair#*:}\"" ]
    done
    loop late 30 marks
    run ./fraglab leaks "$trace" --format json
    [ "$(field "$output" leaks.0.first_step)" = 17 ]
}

@test "a step that its mark ends is whole, and steps are told by their marks" {
    awk 'BEGIN { print "# fraglab trace 2"; for (step = 0; step < 10; step++)
        printf "mark \"step %d\" begin\nalloc %d 52428800\nalloc 99 1048576\nfree 99\nmark \"step %d\" end\n", step, step, step }' >"$trace"
    run ./fraglab leaks "$trace"
    echo "$output"
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "10 steps, by the marks 'step #'" ]
    [[ "$output" == *" 450.00 MiB   2 ('step 1') "* ]]
}

@test "what rises once, fills or comes and goes is none, and is listed apart" {
    for kind in plain once fills ring; do
        loop "$kind" 30 marks
        run ./fraglab leaks "$trace" --format json
        echo "$kind $output"
        [ "$status" -eq 0 ]
        [ "$(field "$output" leaks)" = "[]" ]
    done
    loop once 30 marks
    run ./fraglab leaks "$trace"
    [[ "$output" == *"blocks of 5.00 MiB (5,242,880 bytes): 5.00 MiB, once, in step 11"* ]]
    loop fills 30 marks
    run ./fraglab leaks "$trace"
    [[ "$output" == *"levels off; its last rise is in step 10"* ]]
}

@test "the step in which the device is full is that of a longer run" {
    for kind in kept growing third streams pools; do
        capacity=64MiB
        [ $kind != streams ] || capacity=400MiB # many times what the recording requests
        loop "$kind" 24 marks
        run ./fraglab leaks "$trace" --capacity $capacity --format json
        forecast=$(field "$output" forecast.oom_step)
        [ "$(field "$output" forecast.is_recorded)" = false ]
        loop "$kind" 1000 marks
        event=$(field "$(./fraglab run "$trace" -p pytorch --capacity $capacity --format jsonl)" oom.event)
        # Marks of steps before the event that runs out; lines are events, the first line is the head.
        step=$(head -n $((event + 1)) "$trace" | grep -c '^mark')
        echo "$kind: forecast $forecast, step $step"
        [ "$forecast" -eq "$step" ]
    done
    loop kept 100 marks
    run ./fraglab leaks "$trace" --capacity 20MiB --format json
    [ "$(field "$output" forecast.is_recorded)" = true ]
    # A request that begins to grow by 1 GiB a step: many times more than a trace may ask for, before what is kept fills the device.
    awk 'BEGIN { print "# fraglab trace 2"; for (step = 1; step <= 9; step++)
        printf "mark \"step %d\"\nalloc %d 512\nalloc 0 %.0f\nfree 0\n", step, step, 2 ^ 26 + (step == 8) * 2 ^ 30 }' >"$trace"
    run ./fraglab leaks "$trace" --capacity 1000GiB --format json
    [ "$(field "$output" forecast.oom_step)" -eq 1007 ]
}

@test "an allocator that reserves ever more is told from a program that keeps more" {
    # Blocks that grow a little never fit into the segments of the steps before; nothing is kept.
    python3 -S - >"$trace" <<'END'
print("# fraglab trace 2")
print("alloc 0 1048576")
for step in range(40):
    print('mark "step"')
    print(f"alloc 1 {3 + 2 * step << 20}")
    print("free 1")
END
    run ./fraglab leaks "$trace" -p pytorch --format json
    echo "$output"
    [ "$status" -eq 1 ]
    [ "$(field "$output" leaks.0.kind)" = '"fragmentation"' ]
    run ./fraglab leaks "$trace" -p pytorch:expandable_segments=true
    [ "$status" -eq 0 ]
}

@test "what cannot be looked at is said" {
    loop kept 3 marks
    run ./fraglab leaks "$trace"
    [ "$status" -eq 3 ]
    [[ "$output" == *"too few to find steps in"* ]]
    printf '# fraglab trace 2\nalloc 0 1\n' >"$trace"
    run ./fraglab leaks "$trace"
    [[ "$output" == *": 1 request without marks is too few to find steps in" ]]
    # A model that is loaded is no leak.
    { echo "# fraglab trace 2"; for i in $(seq 0 199); do echo "alloc $i $((1000000 + i))"; done; } >"$trace"
    run ./fraglab leaks "$trace"
    [ "$status" -eq 3 ]
    [[ "$output" == *"the thirds of the trace are not alike"* ]]
    loop kept 20 marks
    run ./fraglab leaks "$trace" --mark epoch
    [ "$status" -eq 2 ]
    [[ "$output" == *"there are 0 marks 'epoch'; expected 5 or more"* ]]
    run ./fraglab leaks "$trace" --mark 'step 7'
    [ "$status" -eq 1 ]
    run ./fraglab leaks "$trace" --trace-device 4
    [ "$status" -eq 2 ]
    run ./fraglab leaks "$trace" -p best-fit,pytorch
    [ "$status" -eq 2 ]
}
