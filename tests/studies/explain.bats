# fraglab explain: a message alone, in a log, in quotes; recordings with and without the rest.

bats_require_minimum_version 1.5.0
S=traces/samples

setup() { cd "$BATS_TEST_DIRNAME/../.." && out=$BATS_TEST_TMPDIR; }

message='torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.77 GiB of which 514.19 MiB is free. Process 562167 has 15.25 GiB memory in use. Of the allocated memory 13.73 GiB is allocated by PyTorch, and 736.86 MiB is reserved by PyTorch but unallocated.'

verdict() { grep -o '"verdict": *"[a-z-]*"' | cut -d'"' -f4; }

# Of a segment of 60 MiB 20 are idle, and of 90 MiB 30 are free, when 40 are asked for.
broken_up() {
    printf '%s\n' '# fraglab trace 1' 'alloc 0 62914560' 'free 0' 'alloc 0 20971520' 'alloc 1 20971520' \
        'alloc 2 41943040' >"$1"
}

@test "a message is read from stdin, from a file and from the command line" {
    [ "$(./fraglab explain --format jsonl - <<<"$message" | verdict)" = fragmentation ]
    printf 'step 1\nstep 2\n%s\nstep 3\n' "$message" >"$out/log"
    [ "$(./fraglab explain --format jsonl "$out/log" | verdict)" = fragmentation ]
    [ "$(./fraglab explain --format jsonl "$message" | verdict)" = fragmentation ]
    [ "$(./fraglab explain --format jsonl '报错OOM，怎么办' | verdict)" = no-figures ]
    run -3 ./fraglab explain '日志.log'
    gzip "$out/log"
    [ "$(./fraglab explain --format jsonl "$out/log.gz" | verdict)" = fragmentation ]
}

@test "the line of the message is told" {
    printf 'one\n\ntwo\n%s\n' "$message" | ./fraglab explain - | grep -q '^message .* line 4$'
}

@test "a failure that the program survived is not denied" {
    ./fraglab explain 'CUDA out of memory, falling back to CPU' >"$out/text"
    grep -q '^verdict  *not-an-oom (likely): memory ran out, but the program went on without it$' "$out/text"
    ./fraglab explain - <<<'MemoryError' | grep -q '^verdict  *not-an-oom .*no GPU ran out of memory here$'
}

@test "of several messages each is told with its line" {
    for i in 0 1 2; do printf '[rank%d]: %s\n\n' $i "${message/GPU 0/GPU $i}"; done >"$out/log"
    ./fraglab explain "$out/log" >"$out/text"
    grep -q '^message .* line 1; of 3 messages the one that says most$' "$out/text"
    grep -q '^  line 5  *fragmentation  *546.00 MiB  GPU 2, PyTorch$' "$out/text"
    ./fraglab explain --format jsonl "$out/log" | grep -q '"found":\[{"line":1,.*{"line":3,.*{"line":5,'
}

@test "one object is printed, with bytes and advice" {
    ./fraglab explain --format jsonl "$message" >"$out/row"
    [ "$(wc -l <"$out/row")" = 1 ]
    grep -q '"requested_bytes":572522496,' "$out/row"
    grep -q '"limit_bytes":null,' "$out/row"
    grep -q '"advice":\[{"action":"expandable-segments","setting":"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"' "$out/row"
}

@test "advice is for the platform of the message" {
    other='Tried to allocate 4.50 GiB. GPU 0 has a total capacity of 15.98 GiB of which 1.40 GiB is free. Of the allocated memory 1.26 GiB is allocated by PyTorch, and 152.50 MiB is reserved by PyTorch but unallocated.'
    ./fraglab explain "HIP out of memory. $other" >"$out/hip"
    grep -q 'rocm-smi' "$out/hip"
    grep -q 'HIP_VISIBLE_DEVICES=N' "$out/hip"
    ! grep -q 'nvidia\|CUDA' "$out/hip" || false
    ./fraglab explain "CUDA out of memory. $other" >"$out/cuda"
    grep -q 'CUDA_VISIBLE_DEVICES=N' "$out/cuda"
    ! grep -q 'rocm\|xpu' "$out/cuda" || false
}

@test "where the device is nearly full a setting is not the only advice" {
    full='CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.77 GiB of which 514.19 MiB is free. Of the allocated memory 13.73 GiB is allocated by PyTorch, and 736.86 MiB is reserved by PyTorch but unallocated.'
    ./fraglab explain "$full" | grep -q '^  2. The device is nearly full besides'
    ! ./fraglab explain "${full/13.73/3.73}" | grep -q 'nearly full' || false
}

@test "text about nothing is no out of memory" {
    [ "$(./fraglab explain --format jsonl - </dev/null | verdict)" = not-an-oom ]
    ./fraglab explain /dev/null | grep -q 'why *The input is empty'
    for text in LICENSE docs/architecture.md docs/sweep.md docs/offline.md docs/metrics.md docs/adding-a-policy.md \
        docs/plots.md docs/tune.md docs/report.md docs/scenarios.md docs/trace-format.md docs/real-replay.md; do
        [ "$(./fraglab explain --format jsonl "$text" | verdict)" = not-an-oom ]
    done
    [ "$(head -c 100000 /dev/urandom | tr -d '\200\211' | ./fraglab explain --format jsonl - | verdict)" = not-an-oom ]
}

@test "what is only for recordings is said to be unused where a message is explained" {
    for unused in "--capacity 8GiB" "--policy best-fit" "traces/samples/unet.pickle.zst"; do
        ./fraglab explain "CUDA out of memory. Tried to allocate 2.00 GiB" $unused 2>&1 >/dev/null | grep -q 'warning: a message is explained by its own figures'
    done
    run --separate-stderr ./fraglab explain "CUDA out of memory. Tried to allocate 2.00 GiB"
    [ -z "$stderr" ]
}

@test "several logs are refused with what to do, and one may begin with a date in brackets" {
    mkdir "$out/logs"
    for i in 0 1 2; do printf '[2026-01-02 12:00:00] step 1\n%s\n' "$message" >"$out/logs/rank$i.log"; done
    [ "$(./fraglab explain --format jsonl "$out/logs/rank0.log" | verdict)" = fragmentation ]
    for files in "rank0.log rank1.log" "rank0.log rank1.log rank2.log"; do
        run -3 ./fraglab explain $(printf "$out/logs/%s " $files)
        [[ $output == *'.log: it is text, and logs are explained one at a time; for several: cat FILE... | fraglab explain -'* ]]
    done
    run -3 ./fraglab explain $S/gpt-varlen-oom.pickle.zst "$out/logs/rank0.log"
    [[ $output == *"rank0.log: it is text, and logs are explained one at a time"* ]]
    run -3 ./fraglab explain "$out/logs"
    [[ $output == *"no recording is in the folder;"*"(logs are explained one at a time; for several: cat FILE... |"* ]]
    [ "$(cat "$out"/logs/*.log | ./fraglab explain --format jsonl - | verdict)" = fragmentation ]
    run -3 ./fraglab run "$out/logs/rank0.log"
    [[ $output == *"the format is not known"* ]]
}

@test "a file that is not there is told from a message" {
    run ./fraglab explain "$out/nothing.log"
    [ "$status" = 3 ]
    [[ $output == *"nothing.log"* ]]
    [ "$(./fraglab explain --format jsonl "nothing there" | verdict)" = not-an-oom ]
}

@test "a recording that ran out says what would have got past it" {
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst >"$out/text"
    grep -q '^verdict    fragmentation' "$out/text"
    grep -q '^when       event 3,056, where the recorded run failed too$' "$out/text"
    grep -q 'as recorded  *fails at event 3,056' "$out/text"
    grep -q 'expandable_segments:True  *gets past it, .* to spare' "$out/text"
    grep -q 'is the least on which the recorded settings get past it' "$out/text"
    ! grep -q ' fits, ' "$out/text" || false
}

@test "a recording that ran out says what an ideal allocator would need" {
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst >"$out/text"
    grep -q '^    5.14 GiB  the live data at its peak' "$out/text"
    grep -q '^    5.14 GiB  offline, .*: 290.00 MiB to spare$' "$out/text"
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --with $S/gpt-varlen.pickle.zst >"$out/text"
    grep -q '^    5.80 GiB  offline, .*: 388.00 MiB more than there is$' "$out/text"
    broken_up "$out/trace"
    ./fraglab explain "$out/trace" --capacity 90MiB --format jsonl >"$out/row"
    grep -q '"ideals":\[{"policy":"offline","needs_bytes":83886080,"fits":true},' "$out/row"
    grep -q '"live_peak_bytes":83886080,' "$out/row"
    grep -q '"halved":\[{"gets_past":true,"fits":true,' "$out/row"
}

@test "policies that are asked for are tried too, each once" {
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --policy tlsf --policy buddy --policy size-class --policy buddy >"$out/text"
    for policy in tlsf buddy size-class; do
        [ "$(grep -c "^  $policy (another allocator)" "$out/text")" -eq 1 ]
    done
}

@test "the rest of a program comes from another recording of it" {
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --with $S/gpt-varlen.pickle.zst >"$out/text"
    grep -q 'would these have fitted? (to the end of the other recording)' "$out/text"
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --format jsonl | grep -q '"fits":null'
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --with $S/gpt-varlen.pickle.zst --format jsonl >"$out/row"
    ! sed 's/"halved":.*//' "$out/row" | grep -q '"fits":null' || false
}

@test "what is neither text nor a recording is said to be so, but for a message in it" {
    printf 'PK\003\004\000\000nothing' >"$out/model.pt"
    ./fraglab explain "$out/model.pt" | grep -q 'It is neither text nor a recording that fraglab knows'
    printf '\000\000CUDA out of memory. Tried to allocate 2.00 GiB.\n' >"$out/rotated.log"
    ./fraglab explain "$out/rotated.log" | grep -q 'asked *2.00 GiB'
    printf '\377\376o\000k\000\n\000' >"$out/utf16.log"
    ./fraglab explain "$out/utf16.log" | grep -q 'The text shows no error'
}

@test "a device that serves the request which failed must serve what came later, too" {
    printf '%s\n' '# fraglab trace 1' 'alloc 0 4194304' 'alloc - 8388608 failed' 'free 0' 'alloc 0 33554432' 'alloc 1 33554432' >"$out/on"
    ./fraglab explain "$out/on" --capacity 32MiB --format jsonl >"$out/row"
    grep -q '"verdict":"shortage",.*"rest":"recorded",.*"oom":{"event":4,' "$out/row"
    ./fraglab explain "$out/on" --capacity 64MiB --format jsonl | grep -q '"verdict":"not-an-oom",.*What the program would have asked after it'
    printf '%s\n' '# fraglab trace 1' 'alloc 0 4194304' 'alloc - 8388608 failed' >"$out/ends"
    printf '%s\n' '# fraglab trace 1' 'alloc 0 4194304' 'alloc 1 8388608' 'alloc 2 33554432' >"$out/whole"
    ./fraglab explain "$out/ends" --with "$out/whole" --capacity 32MiB --format jsonl >"$out/row"
    grep -q '"source":{"kind":"recording","name":"whole",.*"verdict":"shortage",.*"oom":{"event":2,' "$out/row"
    ./fraglab explain "$out/ends" --with "$out/whole" --capacity 64MiB | grep -q 'On a device of 64.00 MiB nothing fails'
}

# PyTorch records the request that failed as roundup_power2_divisions rounds it: 9 MiB in steps of 2.
@test "a request that failed was rounded by the settings, and is that of the other recording" {
    printf '%s\n' '# fraglab trace 1' 'alloc 0 62914560' 'alloc 1 9437184' 'free 1' >"$out/whole"
    for bytes in 10485760 8388608 20971520; do
        printf '%s\n' '# fraglab trace 1' 'alloc 0 62914560' "alloc - $bytes failed" >"$out/$bytes"
    done
    ./fraglab explain "$out/10485760" --with "$out/whole" --capacity 64MiB
    run ./fraglab explain "$out/8388608" --with "$out/whole" --capacity 64MiB
    [ "$status" = 3 ]
    run ./fraglab explain "$out/20971520" --with "$out/whole" --capacity 64MiB
    [ "$status" = 3 ]
}

@test "with the rest known, other settings are tried with the size that was asked for" {
    settings='meta "torch.conf" "roundup_power2_divisions:4"'
    printf '%s\n' '# fraglab trace 1' "$settings" 'device 0' 'streams 0x0' 'alloc 0 62914560' 'alloc - 41943040 failed' >"$out/cut"
    printf '%s\n' '# fraglab trace 1' 'alloc 0 62914560' 'alloc 1 34603008' 'free 1' >"$out/whole"
    ./fraglab explain "$out/cut" --with "$out/whole" --capacity 98MiB >"$out/text"
    grep -q 'as recorded  *fails at event 1' "$out/text"
    grep -q 'defaults  *fits, 4.00 MiB to spare' "$out/text"
}

@test "a wait before the failure does not hide how large the device was" {
    printf '%s\n' '# fraglab trace 1' 'device 0' 'streams 0x0 0x40' 'segment_alloc 62914560 addr=0x100000' \
        'alloc 0 62914560 addr=0x100000' 'use 0 stream=1' 'free 0 deferred addr=0x100000' 'alloc - 83886080 failed' \
        'complete 0 addr=0x100000' 'oom 83886080 addr=0x200000' >"$out/waits"
    ./fraglab explain "$out/waits"
}

@test "a recording of another program cannot be the rest" {
    run ./fraglab explain $S/gpt-varlen-oom.pickle.zst --with $S/unet.pickle.zst
    [ "$status" = 3 ]
    [[ $output == *"unet.pickle.zst: its request "*" is not that of the recording to explain"* ]]
    run ./fraglab explain $S/gpt-varlen-oom.pickle.zst --with $S/gpt-varlen-oom.pickle.zst
    [ "$status" = 3 ]
    [[ $output == *"it ran out of memory itself"* ]]
}

@test "requests of one line are one call site, however they were called" {
    printf '%s\n' '# fraglab trace 1' 'frame "f" "model.py" 3' 'frame "a" "train.py" 4' 'frame "b" "train.py" 5' \
        'site 0 1' 'site 0 2' 'alloc 0 1048576 site=1' 'alloc 1 1048576 site=2' 'alloc 2 8388608 site=2' >"$out/lines.txt"
    ./fraglab explain "$out/lines.txt" --capacity 4MiB >"$out/text"
    [ "$(grep -c '^ .*model.py:3 f' "$out/text")" -eq 1 ]
    grep -q '2.00 MiB in  *2 blocks  model.py:3 f' "$out/text"
}

@test "a snapshot without history cannot tell whether memory ran out" {
    run ./fraglab explain tests/data/snapshots/no-history.pickle
    [ "$status" = 2 ]
    [[ $output == *"it holds no history of requests, so it cannot tell whether memory ran out; call torch.cuda.memory._record_memory_history() before"* ]]
    ./fraglab explain tests/data/snapshots/no-history.pickle --capacity 1MiB --format jsonl | verdict
}

@test "a recording that did not run out needs a capacity" {
    run ./fraglab explain $S/gpt-varlen.pickle.zst
    [ "$status" = 2 ]
    [[ $output == *"it did not run out of memory; --capacity asks what would happen"* ]]
    ./fraglab explain $S/gpt-varlen.pickle.zst --capacity 6500MiB >"$out/text"
    grep -q 'expandable_segments:True  *fits, ' "$out/text"
    [ "$(./fraglab explain $S/gpt-varlen.pickle.zst --capacity 80GiB --format jsonl | verdict)" = not-an-oom ]
}

@test "where nothing fails, what the recorded settings reserve is told in bytes" {
    broken_up "$out/trace"
    ./fraglab explain "$out/trace" --capacity 200MiB --format jsonl >"$out/row"
    grep -q '"verdict":"not-an-oom",.*"oom":null,"candidates":\[{"policy":"pytorch",[^]]*"is_recorded":true,"gets_past":true,"fits":true,"peak_reserved_bytes":104857600,"spare_bytes":104857600,"oom":null}\]' "$out/row"
    printf '%s\n' '# fraglab trace 1' 'alloc 0 4194304' 'alloc - 8388608 failed' >"$out/ends"
    ./fraglab explain "$out/ends" --capacity 64MiB --format jsonl | grep -q '"gets_past":true,"fits":null,"peak_reserved_bytes":'
}

@test "a text trace of a few events is explained" {
    broken_up "$out/trace"
    ./fraglab explain "$out/trace" --capacity 90MiB >"$out/text"
    grep -q '^verdict    fragmentation' "$out/text"
    grep -q '^idle        20.00 MiB  in 1 hole of 1 segment in use, the largest 20.00 MiB$' "$out/text"
    grep -q ' 20.00 MiB held open by  40.00 MiB  blocks of 20.00 MiB$' "$out/text"
    grep -q 'expandable_segments:True  *fits, 10.00 MiB to spare$' "$out/text"
    grep -q 'if the 1 biggest size above asked for half: fits, 30.00 MiB to spare$' "$out/text"
    grep -q 'a device of 100.00 MiB is the least on which the recorded settings fit: 10.00 MiB more$' "$out/text"
}

# At 90 MiB the first failure is the 40 MiB that its holes could hold; 165 MiB are live at once later on.
@test "a program that needs more than the device at its peak lacks memory, whatever its first failure shows" {
    broken_up "$out/trace"
    printf '%s\n' 'alloc 3 89128960' >>"$out/trace"
    ./fraglab explain "$out/trace" --capacity 90MiB >"$out/text"
    grep -q '^verdict    shortage (clear)' "$out/text"
    grep -q 'At its peak the program has 165.00 MiB in use at once, and the device has 90.00 MiB' "$out/text"
    grep -q 'at least 75.00 MiB must go' "$out/text"
    # what the peak leaves is still a matter of pieces
    ./fraglab explain "$out/trace" --capacity 170MiB | grep -q '^verdict    fragmentation'
    # the device would do, but not what the program allowed itself
    printf '%s\n' '# fraglab trace 1' 'alloc 0 78643200' 'alloc 1 78643200' 'free 0' 'free 1' 'alloc 0 47185920' 'alloc 1 47185920' \
        'alloc 2 57671680' 'alloc 3 52428800' >"$out/limited"
    ./fraglab explain "$out/limited" --capacity 200MiB --memory-fraction 0.95 --format jsonl |
        grep -q '"verdict":"limit","confidence":"high","because":"At its peak .* 195.00 MiB .*190.00 MiB is allowed: at least 5.00 MiB short'
    ./fraglab explain "$out/limited" --capacity 150MiB --memory-fraction 0.9 --format jsonl |
        grep -q '"verdict":"shortage",.*the device has 150.00 MiB, of which 135.00 MiB is allowed: at least 60.00 MiB short'
    # nothing is known behind a request that failed when recorded, which itself is counted
    printf '%s\n' 'alloc - 10485760 failed' >>"$out/trace"
    ./fraglab explain "$out/trace" --capacity 90MiB --format jsonl |
        grep -q '"verdict":"shortage",.*Up to the request that failed when recorded the program has 175.00 MiB'
    # and the other recording says how much the rest needs
    broken_up "$out/whole"
    sed 's/^alloc 2 41943040/alloc - 41943040 failed/' "$out/whole" >"$out/cut"
    printf '%s\n' 'alloc 3 89128960' >>"$out/whole"
    ./fraglab explain "$out/cut" --capacity 90MiB | grep -q '^verdict    fragmentation'
    ./fraglab explain "$out/cut" --with "$out/whole" --capacity 90MiB | grep -q '^verdict    shortage (clear)'
}

@test "policies of one's own are tried too" {
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst -p buddy -p pytorch:max_split_size_mb=256 >"$out/text"
    grep -q '^  buddy ' "$out/text"
    grep -q '^  pytorch:max_split_size_mb=256 ' "$out/text"
}

@test "the output is the same for any number of threads" {
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --format jsonl -j 1 >"$out/one"
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --format jsonl -j 4 >"$out/four"
    cmp "$out/one" "$out/four"
}

@test "of a recording the verdict and what to do come before what they rest on" {
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst >"$out/text"
    [ "$(grep -n -E '^(verdict|asked|missing|what to do|recording|when|what holds|would these)' "$out/text" | sed 's/^[0-9]*://; s/ .*//; s/what/what/' | uniq | tr '\n' ' ')" = \
        "verdict asked missing what recording when what would " ]
    grep -q '^missing    186.00 MiB  to get past it with the recorded settings$' "$out/text"
    ./fraglab explain --format jsonl $S/gpt-varlen-oom.pickle.zst | grep -q '"missing_bytes":195035136'
}

@test "call sites tell what the memory is for, and what was asked for" {
    printf '%s\n' '# fraglab trace 1' 'frame "convert" "/x/torch/nn/modules/module.py" 1' \
        'frame "_init_group" "/x/torch/optim/adam.py" 2' 'frame "forward" "/home/me/model.py" 3' \
        'frame "main" "/home/me/train.py" 4' 'site 0 3' 'site 1 3' 'site 2 3' \
        'alloc 0 20971520 site=1' 'alloc 1 41943040 site=2' 'alloc 2 10485760 site=3' 'alloc 3 31457280 site=3' >"$out/sites"
    ./fraglab explain "$out/sites" --capacity 90MiB >"$out/text"
    grep -q '^asked       30.00 MiB  in one request, by model.py:3 forward, for activations$' "$out/text"
    [ "$(grep -c '^held for' "$out/text")" = 3 ]
    grep -q '^held for    40.00 MiB  the optimizer: its state and what its step needs$' "$out/text"
    grep -q '^held for    20.00 MiB  weights$' "$out/text"
    grep -q '^held for    10.00 MiB  activations$' "$out/text"
    ./fraglab explain "$out/sites" --capacity 90MiB --format jsonl >"$out/row"
    grep -q '"purposes":\[{"purpose":"weights","live_bytes":20971520},{"purpose":"optimizer","live_bytes":41943040},' "$out/row"
}

@test "a share of the card is advised as the number to type" {
    ./fraglab explain 'ValueError: Free memory on device (35.6/39.6 GiB) on startup is less than desired GPU memory utilization (0.95, 37.6 GiB). Decrease GPU memory utilization' >"$out/text"
    grep -q -- '--gpu-memory-utilization 0.89 is 35.24 GiB' "$out/text"
    # the share itself, not what is free
    ./fraglab explain --format jsonl 'ValueError: Free memory on device (17.95/23.64 GiB) on startup is less than desired GPU memory utilization (0.9, 21.28 GiB).' |
        grep -q '"setting":"--gpu-memory-utilization 0.75","gain_bytes":190374[0-9]*,"text":"[^"]*0.75 is 17.73 GiB'
}

@test "the longest context that vLLM names is advised as the number to type" {
    longest() { ./fraglab explain --format jsonl "ValueError: $1" | grep -o '"action":"shorter-context","setting":[^,]*'; }
    needed='(4.00 GiB KV cache is needed, which is larger than the available KV cache memory (1.35 GiB).'
    [ "$(longest "$needed Based on the available memory, the estimated maximum model length is 11040. Try")" = '"action":"shorter-context","setting":"--max-model-len 11040"' ]
    [ "$(longest "$needed Try")" = '"action":"shorter-context","setting":null' ]
    stored="The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache"
    [ "$(longest "$stored (18432). Try")" = '"action":"shorter-context","setting":"--max-model-len 18432"' ]
    [ -z "$(longest "$stored. Try")" ]
}

@test "several ranks on one device are not sent to another device" {
    other='CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0 has a total capacity of 22.07 GiB of which 20.62 MiB is free. Process 157 has 7.00 GiB memory in use. Process 451 has 7.16 GiB memory in use. Including non-PyTorch memory, this process has 7.12 GiB memory in use. Of the allocated memory 6.00 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated.'
    ./fraglab explain "[rank1]: torch.OutOfMemoryError: $other" >"$out/ranks"
    grep -q '^  1. Several ranks run on the same device' "$out/ranks"
    ! grep -q 'CUDA_VISIBLE_DEVICES' "$out/ranks" || false
    ./fraglab explain "torch.OutOfMemoryError: $other" | grep -q 'CUDA_VISIBLE_DEVICES'
}

@test "a model that does not fit while it is loaded is offloaded or quantised first" {
    full='torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 90.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Of the allocated memory 7.13 GiB is allocated by PyTorch, and 327.09 MiB is reserved by PyTorch but unallocated.'
    printf '  File "a.py", line 3, in <module>\n    pipe = pipe.to(device)\n%s\n' "$full" | ./fraglab explain - >"$out/loading"
    grep -q '^  1. It ran out while a model was put on the device' "$out/loading"
    ! ./fraglab explain "$full" | grep -q 'while a model was put' || false
}

@test "memory that a message does not call free is not taken for none" {
    xpu='torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 15.91 GiB. Of the allocated memory 11.45 GiB is allocated by PyTorch, and 1.25 GiB is reserved by PyTorch but unallocated.'
    # 3.21 GiB may be free, and with 1.25 GiB idle that may even be enough
    ./fraglab explain --format jsonl "$xpu" >"$out/row"
    grep -q '"verdict":"shortage","confidence":"low","because":"4.00 GiB were asked for. How much was free, it does not say: at most 3.21 GiB, beside 1.25 GiB idle' "$out/row"
    grep -q '"missing_bytes":null' "$out/row"
    # where nearly all is in use, that is less likely
    full=${xpu/11.45/13.95}
    ./fraglab explain --format jsonl "${full/4.00/1.80}" | grep -q '"verdict":"shortage","confidence":"medium",.*at most 727.04 MiB'
    # 5 GiB are too much, whatever is free
    ./fraglab explain --format jsonl "${xpu/4.00/5.00}" >"$out/row"
    grep -q '"verdict":"shortage","confidence":"high","because":"At most 3.21 GiB free + 1.25 GiB idle in the cache is less than the 5.00 GiB asked: at least 552.96 MiB short' "$out/row"
    grep -q '"missing_bytes":579820[0-9]*' "$out/row"
    # and what the process or others hold besides is not free
    ./fraglab explain --format jsonl "$xpu This process has 14.70 GiB memory in use." | grep -q '"confidence":"high","because":"At most 1.21 GiB free'
}

@test "of what is not the allocator's no more than others hold is to be gained from them" {
    head='torch.OutOfMemoryError: CUDA out of memory. Tried to allocate'
    tail='is allocated by PyTorch, and 40.00 MiB is reserved by PyTorch but unallocated.'
    others='Process 11 has 1.00 GiB memory in use. Process 12 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 1.25 GiB memory in use.'
    ./fraglab explain --format jsonl "$head 1.00 GiB. GPU 0 has a total capacity of 4.75 GiB of which 512.00 MiB is free. $others Of the allocated memory 900.00 MiB $tail" >"$out/row"
    grep -q '"verdict":"other-memory",.*"others_bytes":3221225472,.*"action":"find-others","setting":null,"gain_bytes":3221225472,' "$out/row"
    # what this process holds beside its allocator is not somebody else's
    own='Process 99 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 20.35 GiB memory in use.'
    text="$head 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.30 GiB is free. $own Of the allocated memory 17.50 GiB $tail"
    ./fraglab explain "$text" | tr -s '\n ' ' ' >"$out/own"
    grep -q '^verdict other-memory (likely): this process holds the memory, but not in its allocator' "$out/own"
    grep -q ' 1. Look what else in this process takes .*; up to 2.81 GiB, less what the driver needs. 2. Look with nvidia-smi who else holds .*; up to 2.00 GiB. 3' "$out/own"
    ! grep -q 'CUDA_VISIBLE_DEVICES' "$out/own" || false
    # where the driver counts all of it to this process, there are no others
    alone="$head 138.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 67.06 MiB is free. Including non-PyTorch memory, this process has 23.57 GiB memory in use. Of the allocated memory 22.70 GiB $tail"
    [ "$(./fraglab explain --format jsonl "$alone" | verdict)" = shortage ]
    ! ./fraglab explain --format jsonl "$alone" | grep -q 'find-others' || false
}

@test "an error that only an out of memory leads to is one without figures" {
    zero='RuntimeError: No executable batch size found, reached zero.'
    ./fraglab explain --format jsonl "$zero" | grep -q '"verdict":"no-figures","confidence":"high",.*"framework":"pytorch"'
    # the message before it says more
    [ "$(printf '%s\n\n%s\n' "$message" "$zero" | ./fraglab explain --format jsonl - | verdict)" = fragmentation ]
    [ "$(./fraglab explain --format jsonl '    if batch_size == 0: raise RuntimeError("No executable batch size found, reached zero.")' | verdict)" = not-an-oom ]
}

@test "words of one program that others use, too, are of the one that prints them" {
    framework() { ./fraglab explain --format jsonl "$1" | grep -o '"framework":"[a-z-]*","release' | cut -d'"' -f4; }
    for call in cudaMallocAsync ::cudaMallocAsync; do
        [ "$(framework "[TensorRT-LLM][ERROR] CUDA runtime error in $call(ptr, n, mMemPool->getPool(), mCudaStream->get()): out of memory")" = tensorrt-llm ]
    done
    worker='/workspace/src/common/device_helpers.cuh:428: Memory allocation error on worker 0: std::bad_alloc: cudaErrorMemoryAllocation: out of memory'
    [ "$(framework "$worker")" = unknown ]
    [ "$(framework "MemoryError: std::bad_alloc: out_of_memory: RMM failure at: pool.hpp:123: Maximum pool size exceeded")" = rmm ]
}

@test "a program that nobody knows is read, and said to be guessed" {
    ./fraglab explain --format jsonl 'FooEngine: ERROR: could not allocate 3,221,291,008 bytes of GPU memory (free: 1.50 GiB, total: 8.00 GiB)' >"$out/row"
    [ "$(verdict <"$out/row")" = shortage ]
    for field in '"confidence":"low"' '"is_guess":true' '"requested_bytes":3221291008' '"free_bytes":1610612736' '"total_bytes":8589934592' \
        '"because":"It looks like an out of memory of a program that fraglab does not know.'; do
        grep -q "$field" "$out/row"
    done
}

@test "a log of JSON objects is read as a message, whatever brackets are around it" {
    local message='"message":"RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 7.79 GiB total capacity; 6.10 GiB already allocated; 400.06 MiB free; 6.50 GiB reserved in total by PyTorch)"'
    printf '[{"level":"info","message":"start"},\n {"level":"error",%s}]' "$message" >"$out/array.json"
    printf '{"level":"info","message":"start"}\n{"level":"error",%s}\n' "$message" >"$out/lines.json"
    for file in array lines; do
        ./fraglab explain --format jsonl "$out/$file.json" >"$out/row"
        [ "$(verdict <"$out/row")" = shortage ]
        grep -q '"line":2,' "$out/row"
    done
    # but a trace of a profiler is still one
    run ./fraglab trace check tests/fuzz/corpus/kineto_trace/array.json
    [ "$status" -eq 0 ]
}

@test "an error of another kind is clear, and a text without one is not" {
    ./fraglab explain --format jsonl 'RuntimeError: CUDA error: device-side assert triggered' >"$out/row"
    [ "$(verdict <"$out/row")" = not-an-oom ]
    grep -q '"confidence":"high"' "$out/row"
    ./fraglab explain --format jsonl 'the memory allocator of this program is fast' >"$out/row"
    [ "$(verdict <"$out/row")" = not-an-oom ]
    grep -q '"confidence":"low"' "$out/row"
}

@test "memory that is not a device's is named, with what to do" {
    while IFS='|' read -r memory action text; do
        ./fraglab explain --format jsonl "$text" >"$out/row"
        [ "$(verdict <"$out/row")" = not-an-oom ]
        grep -q "\"memory\":\"$memory\"" "$out/row"
        grep -q "\"action\":\"$action\"" "$out/row"
    done <<'EOF'
on-chip|smaller-kernel|triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98304, Hardware limit: 65536.
shared|more-shared-memory|RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.
pinned|less-pinned|ggml_cuda_host_malloc: failed to allocate 16607.35 MiB of pinned memory: out of memory
disk|free-disk|OSError: [Errno 28] No space left on device
host|less-host-memory|[1.5] Out of memory: Killed process 1234 (python) total-vm:90000000kB, anon-rss:60000000kB
EOF
}

@test "a size that no device has is called a size that went wrong" {
    ./fraglab explain 'RuntimeError: CUDA out of memory. Tried to allocate 3.98 EiB. GPU 0 has a total capacity of 79.18 GiB of which 70.08 GiB is free.' >"$out/text"
    grep -q '^verdict    oversized-request (clear)' "$out/text"
    grep -q 'a size went wrong' "$out/text"
    grep -q '^asked        3.98 EiB' "$out/text"
}

@test "a figure stands in one line" {
    ./fraglab explain 'jax.errors: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes. Stats: Limit: 0 InUse: 133401018532' >"$out/text"
    [ "$(grep -c '^in use' "$out/text")" = 1 ]
    ! grep -q 'in use, it does not say' "$out/text" || false
}

# The recording begins with segments of 2 and 20 MiB, of which 19 MiB are in use.
@test "a device too small for what a recording begins with is told so, with what is missing" {
    {
        printf '%s\n' '# fraglab trace 1' 'segment_alloc 2097152 initial addr=0x700000000000' \
            'alloc 0 1000 initial addr=0x700000000000 block=1024' \
            'segment_alloc 20971520 initial addr=0x700000200000' \
            'alloc 1 19922944 initial addr=0x700000200000 block=19922944' 'alloc 2 512' 'free 2'
    } >"$out/late"
    ./fraglab explain "$out/late" --capacity 10MiB >"$out/text"
    grep -q '^verdict    shortage (clear)' "$out/text"
    grep -q 'The start of the recording alone does not fit: when it begins, 22.00 MiB' "$out/text"
    grep -q '^held        22.00 MiB  when the recording begins, 19.00 MiB in use$' "$out/text"
    grep -q '^missing     12.00 MiB  for the start alone$' "$out/text"
    grep -q '^when       at the start, before any recorded request$' "$out/text"
    ! grep -q '^asked\|^in use\|asked for half' "$out/text" || false
    # Its 19 MiB in use would fit without the rest of their segments.
    ./fraglab explain "$out/late" --capacity 20MiB --format jsonl >"$out/row"
    grep -q '"verdict":"shortage","confidence":"medium","because":".*22.00 MiB are held.*What is in use would fit' "$out/row"
    grep -q '"start":{"held_bytes":23068672,"live_bytes":19923968,"missing_bytes":2097152}' "$out/row"
    grep -q '"advice":\[.*"action":"smaller-start"' "$out/row"
    ./fraglab explain "$out/late" --capacity 22MiB --format jsonl | grep -q '"verdict":"not-an-oom".*"start":null'
}
