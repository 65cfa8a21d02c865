# fraglab ranks: who is which rank, who is alike, how uneven they are, and who is out of memory first.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    command -v python3 >/dev/null || skip "python3 is not installed"
    job=$BATS_TEST_TMPDIR/job
    mkdir "$job"
}

# rank FILE BYTES [STEPS]: 8 MiB of weights, then steps that each take one block of BYTES (in KiB, times the step with "+") and give it back.
rank() {
    python3 -S - "$2" "${3:-6}" >"$job/$1" <<'END'
import sys
size, steps = sys.argv[1], int(sys.argv[2])
print("# fraglab trace 2\nalloc 0 8388608")
for step in range(1, steps + 1):
    size_now = int(size.rstrip("+")) * 1024 * (step if size.endswith("+") else 1)
    print(f'mark "step {step}"\nalloc 1 {size_now}\nfree 1')
END
}

field() { python3 -S -c 'import json, sys
value = json.loads(sys.argv[1])
for key in sys.argv[2].split("."): value = value[int(key) if key.isdigit() else key]
print(json.dumps(value))' "$1" "$2"; }

@test "ranks that request the same are one line, the others have theirs, and the imbalance is said" {
    for i in 0 1 3; do rank "run.fgt-rank$i" 4096; done
    rank run.fgt-rank2 20480
    run ./fraglab ranks "$job"
    [ "$status" -eq 0 ]
    [[ "$output" == *"4 ranks, replayed with pytorch"* ]]
    [[ "$output" == *$'\n0-1,3 '*" 12.00 MiB "* ]]
    [[ "$output" == *$'\n2 '*" 28.00 MiB "* ]]
    # 28 over the mean of 16 is 75 % more.
    [[ "$output" == *"requested        12.00 MiB, rank 0   16.00 MiB   28.00 MiB, rank 2            75.0 %"* ]]
    [[ "$output" == *"blocks of 20.00 MiB (20,971,520 bytes)"*"0 B   20.00 MiB   +20.00 MiB   0 then 1"* ]]
}

@test "the rank that is out of memory in the earlier step is first, whatever the order of events" {
    rank rank0.fgt 1024+ 12
    rank rank1.fgt 4096+ 12
    rank rank2.fgt 1024 12
    run ./fraglab ranks "$job" --policy best-fit --capacity 20MiB
    [ "$status" -eq 1 ]
    [[ "$output" == *"in 20.00 MiB 1 of 3 ranks runs out of memory, rank 1 first: step 4"* ]]
    run ./fraglab ranks "$job" --policy best-fit --capacity 16MiB --format jsonl
    [ "$status" -eq 1 ]
    [ "$(field "$output" first_oom_rank)" = 1 ]
    [ "$(field "$output" ranks.0.oom.step)" = 9 ]
    [ "$(field "$output" ranks.1.oom.step)" = 3 ]
    [ "$(field "$output" ranks.2.oom)" = null ]
    run ./fraglab ranks "$job" --policy best-fit --capacity 64MiB
    [ "$status" -eq 0 ]
    [[ "$output" == *"all ranks fit in 64.00 MiB"* ]]
}

@test "stages are told apart, and a stage is uneven by itself" {
    for i in 0 1; do rank "rank$i.fgt" 4096; done
    rank rank2.fgt 20480
    rank rank3.fgt 21504
    run ./fraglab ranks "$job" --stage 0-1 --format jsonl
    [ "$status" -eq 0 ]
    [ "$(field "$output" stages.0.ranks)" = "[0, 1]" ]
    [ "$(field "$output" stages.1.ranks)" = "[2, 3]" ]
    [ "$(field "$output" stages.0.requested_bytes.imbalance_ratio)" = 0.0 ]
    [ "$(field "$output" stages.1.requested_bytes.most_rank)" = 3 ]
    [ "$(field "$output" stages.1.sites.0.most_rank_bytes)" = 22020096 ]
    run ./fraglab ranks "$job" --stage 0-1 --stage 2-3 --format jsonl
    [ "$status" -eq 0 ]
    [ "$(field "$output" stages.0.ranks)" = "[0, 1]" ]
    [ "$(field "$output" stages.1.ranks)" = "[2, 3]" ]
    [[ "$output" != *'"stages.2'* ]] # no rank is in none
    run ./fraglab ranks "$job" --stage 0-1 --fail-above 10%
    [ "$status" -eq 0 ]
    run ./fraglab ranks "$job" --stage 0-1 --fail-above 1%
    [ "$status" -eq 1 ]
    run ./fraglab ranks "$job" --fail-above 10%
    [ "$status" -eq 1 ]
}

@test "threads change nothing, and a recording of several devices is a job" {
    for i in 0 1 2 3 4; do rank "rank$i.fgt" $((1024 * (i + 1))); done
    ./fraglab ranks "$job" --format jsonl -j 1 >"$BATS_TEST_TMPDIR/one"
    ./fraglab ranks "$job" --format jsonl -j 4 | cmp - "$BATS_TEST_TMPDIR/one"
    recording=$(ls tests/data/snapshots/* | while read -r file; do
        [ "$(./fraglab trace info "$file" --format jsonl 2>/dev/null | grep -c .)" -gt 1 ] && echo "$file" && break
    done)
    [ -n "$recording" ] || skip "no recording of several devices"
    run ./fraglab ranks "$recording" --format jsonl
    [ "$status" -eq 0 ]
    [ "$(field "$output" ranks.1.device)" != "$(field "$output" ranks.0.device)" ]
}

@test "short jobs have the steps of their marks, and what the figures leave out is said" {
    rank rank0.fgt 4096+ 4
    rank rank1.fgt 4096 2
    rank rank4.fgt 1024 1
    run ./fraglab ranks "$job" --policy best-fit --capacity 16MiB
    [ "$status" -eq 1 ]
    [[ "$output" == *$'\n0 '*"step 4          step 3"* ]]
    [[ "$output" == *"a step begins at each mark 'step #'"* ]]
    [[ "$output" == *"no recording of rank 2-3"* ]]
    [[ "$output" == *"a rank that runs out of memory are its peaks until then"* ]]
    # Rank 1 has other marks, and many more of them: steps are not compared, but how much was replayed.
    sed -i 's/step/half step/' "$job/rank1.fgt"
    for i in 1 2 3 4; do printf 'mark "half step %d"\nalloc 1 524288\nfree 1\n' $i; done >>"$job/rank1.fgt"
    printf 'mark "half step 5"\nalloc 1 20971520\nfree 1\n' >>"$job/rank1.fgt"
    run ./fraglab ranks "$job" --policy best-fit --capacity 16MiB
    [[ "$output" == *"of rank 0, but at each mark 'half step #' of rank 1: their numbers do not compare"* ]]
    [[ "$output" == *"2 of 3 ranks run out of memory, rank 0 first: step 3"* ]]
}

@test "what is no job is refused with a sentence, and nothing is half written" {
    refuses() { # CODE TEXT ARGUMENTS...
        local code=$1 text=$2
        shift 2
        run ./fraglab ranks "$@"
        [ "$status" -eq "$code" ] && [[ "$output" == *"$text"* ]] || { echo "ranks $*: $status: $output"; return 1; }
    }
    refuses 3 "no recording is in the folder" "$job"
    rank rank0.fgt 1024
    refuses 2 "the recording is of one device; expected the recordings of several ranks" "$job"
    rank rank00.fgt 1024
    refuses 2 "rank0.fgt and rank00.fgt are both rank 0" "$job"
    rm "$job/rank00.fgt"
    rank rank1.fgt 1024
    refuses 2 "there is no rank 2 to be in a stage; the ranks are 0 to 1" "$job" --stage 1-2
    refuses 2 "rank 1 is in two stages" "$job" --stage 0-1 --stage 1
    refuses 2 "--stage: 'x' is not a list of ranks" "$job" --stage x
    refuses 2 "--fail-above" "$job" --fail-above much
    refuses 3 "none.fgt" "$job/none.fgt" "$job/rank0.fgt"
    printf '# fraglab trace 2\nmark "a"\n' >"$job/rank2.fgt"
    refuses 3 "rank2.fgt: the trace requests nothing" "$job"
    printf 'garbage' >"$job/rank2.fgt"
    echo old >"$BATS_TEST_TMPDIR/out"
    refuses 3 "rank2.fgt" "$job" -o "$BATS_TEST_TMPDIR/out" -f
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = old ]
}

@test "a job is explained: who is out first, and the setting with which no rank is" {
    for i in 0 1 10; do rank "rank$i.fgt" 1024; done
    rank rank2.fgt 1024+ 12
    run ./fraglab explain "$job" --capacity 40MiB
    [ "$status" -eq 0 ]
    [[ "$output" == *"all ranks fit in 40.00 MiB"* && "$output" != *"verdict"* ]]
    run ./fraglab explain "$job" --capacity 20MiB -p best-fit
    [ "$status" -eq 0 ]
    [[ "$output" == *"4 of 4 ranks run out of memory, rank 2 first: step 1"*"rank 2, the first"*"recording  rank2.fgt"* ]]
    [[ "$output" == *$'\npytorch:max_split_size_mb:128 '*" rank 0 and 3 more "* ]]
    [[ "$output" == *"on all ranks: best-fit, 0 B to spare on rank 2;"* ]]
    run ./fraglab explain "$job" --capacity 20MiB -p best-fit --format jsonl
    [ "${#lines[@]}" -eq 2 ]
    [ "$(field "${lines[0]}" best_policy)" = '"best-fit"' ]
    [ "$(field "${lines[0]}" ranks.2.needed_bytes)" = 23068672 ]
    [ "$(field "${lines[1]}" source.name)" = '"rank2.fgt"' ]
    # Two ranks are a job, a recording and the whole program are not.
    run ./fraglab explain "$job/rank0.fgt" "$job/rank2.fgt" --capacity 40MiB
    [[ "$output" == "2 ranks, "* ]]
    mkdir "$BATS_TEST_TMPDIR/rank2"
    cp "$job/rank2.fgt" "$BATS_TEST_TMPDIR/rank2/oom8.fgt"
    cp "$job/rank2.fgt" "$BATS_TEST_TMPDIR/rank2/whole9.fgt"
    run ./fraglab explain "$BATS_TEST_TMPDIR/rank2/oom8.fgt" "$BATS_TEST_TMPDIR/rank2/whole9.fgt" --capacity 40MiB
    [[ "$output" == "verdict "* ]]
    run ./fraglab explain "$job"
    [ "$status" -eq 2 ]
    [[ "$output" == *"no rank ran out of memory"*"--capacity"* ]]
    run ./fraglab explain "$job" --capacity 40MiB --memory-fraction 0.5
    [ "$status" -eq 2 ]
}

@test "run and tune take a folder, in the order of ranks, and refuse an empty one" {
    for i in 10 2; do rank "rank$i.fgt" 1024; done
    run ./fraglab run "$job" -p best-fit --format jsonl
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *'"rank2.fgt"'* && "${lines[1]}" == *'"rank10.fgt"'* ]]
    run ./fraglab tune "$job" --runs 5
    [[ "$output" == *"tried on 2 traces"* ]]
    rm "$job"/*
    run ./fraglab run "$job" -p best-fit
    [ "$status" -eq 3 ]
    [[ "$output" == *"no recording is in the folder"* ]]
}
