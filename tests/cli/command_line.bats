# How fraglab reads its command line and speaks: streams, exit codes, one sentence for each mistake.
bats_require_minimum_version 1.5.0

# fails CODE SENTENCE ARGUMENT...: nothing on stdout, exactly this on stderr.
fails() {
    local code=$1 sentence=$2 status=0
    shift 2
    ./fraglab "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
    cat "$BATS_TEST_TMPDIR/err"
    [ "$status" -eq "$code" ]
    [ ! -s "$BATS_TEST_TMPDIR/out" ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = "fraglab: $sentence" ]
}

@test "without arguments it explains itself on stderr and exits 2" {
    status=0
    ./fraglab >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || status=$?
    [ "$status" -eq 2 ]
    [ ! -s "$BATS_TEST_TMPDIR/out" ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = "$(./fraglab --help)" ]
}

@test "the version is one line with the commit" {
    run ./fraglab --version
    [ "$status" -eq 0 ]
    [[ "$output" =~ ^fraglab\ [0-9]+\.[0-9]+\.[0-9]+\ \([0-9a-z-]+\)$ ]]
}

@test "an unknown command names the nearest" {
    fails 2 "unknown command 'dcotor'; did you mean 'doctor'?" dcotor
    fails 2 "unknown command 'something-else'; 'fraglab help' lists them" something-else
    fails 2 "unknown command ''; 'fraglab help' lists them" ''
    fails 2 "unknown command 'info'; did you mean 'trace info'?" info run.pickle
    fails 2 "unknown command 'CUDA out of memory'; 'fraglab explain' reads a message, a log or a recording" 'CUDA out of memory'
    fails 2 "the command 'mcp' comes with the Python package: python3 -m fraglab mcp" mcp recordings
    fails 2 "no command is given; 'fraglab --help' lists them" -q
}

@test "an unknown option names the nearest" {
    fails 2 "unknown option '--fromat'; did you mean '--format'?" policies --fromat jsonl
    fails 2 "unknown option '--fromat'; did you mean '--format'?" policies --fromat=jsonl
    fails 2 "unknown option '--capacity'; 'fraglab doctor --help' lists the options" doctor --capacity 3
    fails 2 "unknown option '-z'; 'fraglab doctor --help' lists the options" doctor -z
    fails 2 "unknown option '-z'; 'fraglab doctor --help' lists the options" doctor -qz
    fails 2 "unknown option '--capacity'; 'fraglab --help' lists the options" --capacity=3 doctor
}

@test "a part of a name is not the name" {
    fails 2 "unknown option '--form'; did you mean '--format'?" policies --form jsonl
    fails 2 "unknown option '--form'; did you mean '--format'?" policies --form=jsonl
    fails 2 "unknown option '--quie'; did you mean '--quiet'?" doctor --quie
}

@test "an unknown choice names the nearest, or all" {
    fails 2 "--format does not know 'jsnl'; did you mean 'jsonl'?" policies --format jsnl
    fails 2 "--format does not know 'xml'; expected one of table|jsonl" policies --format=xml
    fails 2 "--format does not know ''; expected one of table|jsonl" policies --format=
}

@test "a missing value, a value too many, an argument too many are told apart" {
    fails 2 "option '--format' needs a value; see 'fraglab policies --help'" policies --format
    fails 2 "option '--quiet' takes no value; leave out what follows the '='" policies --quiet=yes
    fails 2 "unexpected argument 'extra'; see 'fraglab doctor --help'" doctor extra
    fails 2 "unexpected argument '--format'; see 'fraglab policies --help'" policies best-fit -- --format
    fails 2 "TRACE|FOLDER... is missing; see 'fraglab run --help'" run
}

@test "options may stand before, between and behind operands, and the last of two wins" {
    ./fraglab policies best-fit --format jsonl >"$BATS_TEST_TMPDIR/a"
    ./fraglab policies --format=jsonl best-fit >"$BATS_TEST_TMPDIR/b"
    ./fraglab -q policies --format table --format jsonl -v best-fit >"$BATS_TEST_TMPDIR/c"
    ./fraglab policies --format jsonl -- best-fit >"$BATS_TEST_TMPDIR/d"
    cmp "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
    cmp "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/c"
    cmp "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/d"
}

@test "--help wins over what is missing or too much" {
    for arguments in "run --help" "run -h" "doctor --help extra" "--help run" "-h run"; do
        # shellcheck disable=SC2086
        run ./fraglab $arguments
        [ "$status" -eq 0 ]
        [[ "$output" == "usage: fraglab "* ]]
    done
}

@test "policies lists every policy once, in both forms" {
    run ./fraglab policies --format jsonl
    [ "$status" -eq 0 ]
    count=${#lines[@]}
    [ "$count" -ge 5 ]
    [ "$(./fraglab policies | grep -c '^[a-z]')" -eq "$count" ]
    names=$(sed -E 's/^\{"name":"([^"]*)".*/\1/' <<<"$output")
    [ "$(sort -u <<<"$names" | wc -l)" -eq "$count" ]
    for name in $names; do
        run ./fraglab policies "$name"
        [ "$status" -eq 0 ]
        [[ "${lines[0]}" == "$name - "* ]]
        [[ "$output" == *$'\n'"source  "?* ]]
        [[ "$output" == *$'\n'"bound   "?* ]]
        [[ "$output" == *$'\n'"checked "?* ]]
        [ "$(grep -cE '^  (rounding|takes|splits|coalesces|grows|streams) +[^ ]' <<<"$output")" -eq 6 ]
    done
    [ "$(./fraglab policies --format jsonl | grep -c '"rules":{"rounding":"[^"]')" -eq "$count" ]
}

@test "an unknown policy names the nearest" {
    fails 2 "there is no policy 'bestfit'; did you mean 'best-fit'?" policies bestfit
    fails 2 "there is no policy 'something'; 'fraglab policies' lists them" policies something
    fails 2 "--policy: there is no policy 'best-fit,tlsf'; only names without options may be joined by commas: repeat --policy" \
        run traces/samples/pr193400.pickle.zst --policy best-fit,tlsf:sli=3
    # A line as a guide has it, and the settings behind a comma.
    for typed in PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True pytorch,expandable_segments:True; do
        fails 2 "--policy: there is no policy '${typed%:*}'; settings of PyTorch stand behind pytorch and a colon, as in pytorch:expandable_segments:True" \
            run traces/samples/pr193400.pickle.zst --policy $typed
    done
    fails 2 "--policy: pytorch has no option 'PYTORCH_ALLOC_CONF'; write only what is set, as in pytorch:expandable_segments:True" \
        run traces/samples/pr193400.pickle.zst --policy pytorch:PYTORCH_ALLOC_CONF=expandable_segments:True
}

@test "of several failures the first gives the exit code of verify" {
    echo '{' >"$BATS_TEST_TMPDIR/bad"
    # Its settings are not known.
    bare=$BATS_TEST_TMPDIR/bare
    printf '# fraglab trace 1\nsegment_alloc 2097152 addr=0x1000000\nalloc 0 512 addr=0x1000000\n' >"$bare"
    run ./fraglab verify "$bare" "$BATS_TEST_TMPDIR/bad" --policy pytorch:recorded
    [ "$status" -eq 2 ]
    run ./fraglab verify "$BATS_TEST_TMPDIR/bad" "$bare" --policy pytorch:recorded
    [ "$status" -eq 3 ]
}

@test "of several failures the first gives the exit code of trace check" {
    echo '{' >"$BATS_TEST_TMPDIR/bad"
    # A packing problem with a placement in which two buffers share bytes.
    printf 'id,lower,upper,size,offset\na,0,2,8,0\nb,1,3,8,4\n' >"$BATS_TEST_TMPDIR/inconsistent"
    run ./fraglab trace check "$BATS_TEST_TMPDIR/inconsistent" "$BATS_TEST_TMPDIR/bad"
    [ "$status" -eq 1 ]
    run ./fraglab trace check "$BATS_TEST_TMPDIR/bad" "$BATS_TEST_TMPDIR/inconsistent"
    [ "$status" -eq 3 ]
}

@test "a recording of requests alone has nothing to verify, whatever the policy" {
    for policy in pytorch:recorded pytorch all; do
        fails 3 "docs/scenarios/live-tensors.trace: it holds requests, but no segments that an allocator took for them; there is nothing to verify" \
            verify docs/scenarios/live-tensors.trace --policy $policy
    done
}

@test "a policy behind settings of another is told from a setting" {
    fails 2 "--policy: 'best-fit' is a policy, behind settings of another; give it a --policy of its own" \
        run x.fgt --policy pytorch:recorded,best-fit
    fails 2 "--policy: 'best' has no value; write best=value" run x.fgt --policy pytorch:recorded,best
}

@test "doctor says what a bug report needs and exits 0" {
    run ./fraglab doctor
    [ "$status" -eq 0 ]
    for fact in "fraglab " "libraries " "gnuplot " "gpu driver " "system " "machine "; do
        grep -q "^$fact" <<<"$output"
    done
}

@test "a full disk is an error, not a success" {
    [ -e /dev/full ] || skip "no /dev/full here"
    status=0
    ./fraglab policies >/dev/full 2>"$BATS_TEST_TMPDIR/err" || status=$?
    [ "$status" -eq 4 ]
    grep -q "stdout could not be written" "$BATS_TEST_TMPDIR/err"
    # Long output fails before its end, and the reason is still said.
    for output in "-o /dev/full" ""; do
        status=0
        # shellcheck disable=SC2086
        LC_ALL=C ./fraglab plot timeline traces/samples/unet.pickle.zst --format svg $output >/dev/full 2>"$BATS_TEST_TMPDIR/err" || status=$?
        [ "$status" -eq 4 ]
        grep -q "No space left on device" "$BATS_TEST_TMPDIR/err"
    done
}

@test "a reader that goes away ends it quietly" {
    ./fraglab help --man 2>"$BATS_TEST_TMPDIR/err" | head -n 1
    [ ! -s "$BATS_TEST_TMPDIR/err" ]
}

@test "no terminal: no escape sequence anywhere" {
    for arguments in "--help" "policies" "doctor" "nothing"; do
        ! { ./fraglab $arguments 2>&1 || true; } | grep -q $'\x1b' || false
    done
}

@test "two outputs in one place are refused, and a run that cannot begin leaves no file" {
    trace=traces/samples/truncated.pickle.zst
    out=$BATS_TEST_TMPDIR/place
    fails 2 "the snapshot and the rows cannot both go to $out; name a file for one" \
        run $trace -p pytorch -o "$out" --snapshot "$out"
    fails 2 "the snapshot and the driver log cannot both go to stdout; name a file for one" \
        run $trace -p pytorch -o "$out" --driver-log - --snapshot -
    fails 2 "the driver log and the rows cannot both go to stdout; name a file for one" \
        run $trace -p pytorch --driver-log -
    fails 2 "the name of an output file is empty; name one" run $trace -p pytorch --snapshot ""
    fails 4 "$out/x: cannot be written (No such file or directory); choose a writable place" \
        run $trace -p pytorch --driver-log "$out.log" --snapshot "$out/x"
    fails 4 "$out/x: cannot be written (No such file or directory); choose a writable place" \
        run $trace -p pytorch --driver-log "$out.log" -o "$out/x"
    [ -z "$(find "$BATS_TEST_TMPDIR" -name 'place*')" ]
    ./fraglab run $trace -p pytorch -o /dev/null --snapshot /dev/null --driver-log /dev/null
}

@test "the driver log of several devices is refused, not mixed" {
    for threads in 1 2; do
        fails 2 "model-parallel.pickle.zst: the recording holds 2 traces, and --driver-log is about one run: cut out a device first (fraglab trace cut --device N)" \
            run traces/samples/model-parallel.pickle.zst -p pytorch --driver-log "$BATS_TEST_TMPDIR/calls" -j $threads
    done
    [ ! -e "$BATS_TEST_TMPDIR/calls" ]
    ./fraglab trace cut traces/samples/model-parallel.pickle.zst --device 1 -o "$BATS_TEST_TMPDIR/one.fgt"
    ./fraglab run "$BATS_TEST_TMPDIR/one.fgt" -p pytorch --driver-log "$BATS_TEST_TMPDIR/calls"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/calls")" -eq 153 ]
}

@test "threads change neither the order of errors nor the exit code" {
    echo '{' >"$BATS_TEST_TMPDIR/bad"
    both="$BATS_TEST_TMPDIR/bad docs/scenarios/live-tensors.trace"
    for threads in 1 2; do
        # shellcheck disable=SC2086
        run ./fraglab run $both -p pytorch --stats-at 520 -j $threads
        [ "$status" -eq 3 ]
        [[ "${lines[0]}" == *"bad: byte 0:"* ]]
        [[ "${lines[1]}" == *"live-tensors.trace: the trace has no event 520;"* ]]
        run ./fraglab run docs/scenarios/live-tensors.trace "$BATS_TEST_TMPDIR/bad" -p pytorch --stats-at 520 -j $threads
        [ "$status" -eq 2 ]
    done
}

@test "a settings string that PyTorch refuses is refused with its words" {
    trace=traces/samples/unet.pickle.zst
    fails 2 "unet.pickle.zst: PyTorch 2.9 refuses these settings at character 1: Unrecognized CachingAllocator option: large_segment_size_mb" \
        run "$trace" --policy pytorch:large_segment_size_mb:25
    fails 2 "unet.pickle.zst: PyTorch 2.11 refuses these settings at character 19: CachingAllocator option max_split_size_mb too small, must be >= 20" \
        run "$trace" --policy pytorch:max_split_size_mb:19,version=2.11
    fails 2 "unet.pickle.zst: large_segment_size_mb came with PyTorch 2.11; version 2.9 does not have it" \
        run "$trace" --policy pytorch:large_segment_size_mb=25
}

@test "pytorch:env reads the variables that the release reads, in its order" {
    # conf VERSION VARIABLE...: the settings string of a run.
    conf() {
        local version=$1
        shift
        env -u PYTORCH_CUDA_ALLOC_CONF -u PYTORCH_HIP_ALLOC_CONF -u PYTORCH_ALLOC_CONF "$@" ./fraglab run traces/samples/unet.pickle.zst \
            --policy "pytorch:env,version=$version" --format jsonl 2>&1 |
            sed -n 's/.*"conf":"\([^"]*\)".*/\1/p; s/^fraglab: //p'
    }
    cuda=PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64
    hip=PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:65
    any=PYTORCH_ALLOC_CONF=max_split_size_mb:66
    [ "$(conf 2.9 "$any" "$hip" "$cuda")" = max_split_size_mb:64 ]
    [ "$(conf 2.10 "$any" "$hip" "$cuda")" = max_split_size_mb:64 ]
    [ "$(conf 2.10 "$any" "$hip")" = max_split_size_mb:65 ]
    [ "$(conf 2.10 "$any")" = max_split_size_mb:66 ]
    [ "$(conf 2.9 "$any")" = "--policy: pytorch:env finds no PYTORCH_CUDA_ALLOC_CONF; set it or leave :env out (PyTorch 2.9 reads no other variable)" ]
    [ "$(conf 2.10 X=1)" = "--policy: pytorch:env finds no PYTORCH_CUDA_ALLOC_CONF; set it or leave :env out" ]
}

@test "more streams and pools than any policy could tell apart are refused" {
    trace=$BATS_TEST_TMPDIR/many.txt
    awk 'BEGIN {
        print "# fraglab trace 1"
        printf "streams"
        for (i = 0; i < 60000; i++)
            printf " %d", i
        printf "\npools 0:0"
        for (i = 1; i < 60000; i++)
            printf " 1:%d", i
        print "\nalloc 0 512 stream=59999 pool=59999"
    }' >"$trace"
    fails 3 "many.txt: the trace has 60000 streams and 60000 pools, which would need 7200000000 free lists; expected at most 2097152" \
        run "$trace" --policy pytorch
    ./fraglab run "$trace" --policy direct -q
}

@test "whatever is read or named as a file to read is never overwritten, and two outputs never go to one file" {
    cd "$BATS_TEST_TMPDIR"
    fraglab=$OLDPWD/fraglab
    printf '# fraglab trace 2\nalloc 0 3000000\nfree 0\n' >mine.trace
    cp mine.trace other.trace
    cp "$OLDPWD/docs/latency-example.yaml" slow.yaml
    "$fraglab" run mine.trace --policy pytorch --format jsonl -o rows.jsonl
    echo 'print(1)' >train.py
    md5sum mine.trace other.trace slow.yaml rows.jsonl train.py >sums
    lost="this is an input, and would be lost; name another file"
    both="cannot both go to same; name a file for one"
    refuses() { # sentence, command line
        run -2 "$fraglab" "${@:2}"
        [[ $output == *"$1"* ]] || { echo "$*: $output"; false; }
        md5sum -c --quiet sums
    }
    refuses "$lost" plot timeline mine.trace -f -o a.csv --format svg --data mine.trace
    refuses "$lost" plot timeline mine.trace -f --script ./mine.trace
    refuses "$lost" plot bars rows.jsonl -f -o a.svg --data rows.jsonl
    refuses "$lost" diff mine.trace other.trace -f --stacks other.trace
    refuses "$lost" compare rows.jsonl rows.jsonl -f --junit rows.jsonl
    refuses "$lost" tune mine.trace --held-out other.trace -f -o other.trace
    refuses "$lost" run mine.trace --policy pytorch --latency slow.yaml -f -o slow.yaml
    refuses "$lost" explain mine.trace --capacity 2MiB --with other.trace -f -o other.trace
    refuses "$lost" dryrun -f -o train.py -- python3 train.py
    refuses "$lost" record -f -o train.py -- python3 train.py
    refuses "$both" run mine.trace --policy pytorch -o same --chrome ./same
    refuses "$both" diff mine.trace other.trace -o same --stacks same
    refuses "$both" compare rows.jsonl rows.jsonl -o same --junit same
    refuses "$both" plot timeline mine.trace -o same --format svg --data same
    refuses "$both" plot timeline mine.trace -o same --format svg --script same
    refuses "$both" dryrun -o same --report same -- python3 train.py
    # A picture beside a script is named by no option.
    cp mine.trace s.gp.rgb
    md5sum s.gp.rgb >>sums
    refuses "$lost" plot map s.gp.rgb -f --script s.gp
    refuses "cannot both go to s.gp.rgb; name a file for one" plot map mine.trace -f --script s.gp --format svg -o s.gp.rgb
    refuses "cannot both go to stdout" plot timeline mine.trace --format svg --data -
    [ ! -e same ]
}

@test "a recording is never overwritten by what was made of it" {
    cp traces/samples/pr193400.pickle.zst "$BATS_TEST_TMPDIR/mine.zst"
    ln -s mine.zst "$BATS_TEST_TMPDIR/alias.zst"
    for place in mine.zst alias.zst ../"${BATS_TEST_TMPDIR##*/}"/mine.zst; do
        for option in -o --snapshot --chrome --driver-log; do
            run -2 ./fraglab run "$BATS_TEST_TMPDIR/mine.zst" --policy pytorch -f $option "$BATS_TEST_TMPDIR/$place"
            [[ $output == *"this is an input, and would be lost"* ]]
        done
        run -2 ./fraglab min-capacity "$BATS_TEST_TMPDIR/mine.zst" --policy pytorch -f -o "$BATS_TEST_TMPDIR/$place"
        run -2 ./fraglab explain "$BATS_TEST_TMPDIR/mine.zst" --capacity 1GiB -f -o "$BATS_TEST_TMPDIR/$place"
        run -2 ./fraglab trace cut "$BATS_TEST_TMPDIR/mine.zst" --events 0..5 -f -o "$BATS_TEST_TMPDIR/$place"
        run -2 ./fraglab trace convert "$BATS_TEST_TMPDIR/mine.zst" "$BATS_TEST_TMPDIR/$place" -f
    done
    cmp "$BATS_TEST_TMPDIR/mine.zst" traces/samples/pr193400.pickle.zst
}

@test "the other backend is refused with the policy to use" {
    trace=traces/samples/unet.pickle.zst
    words="cudaMallocAsync is another allocator than PyTorch's native one; use the policy cuda-async"
    fails 2 "unet.pickle.zst: backend=$words" run $trace --policy pytorch:backend=cudaMallocAsync
    printf '# fraglab trace 2\nmeta "torch.conf" "backend:cudaMallocAsync"\nalloc 0 512\n' >"$BATS_TEST_TMPDIR/async.txt"
    fails 2 "async.txt: backend=$words" run "$BATS_TEST_TMPDIR/async.txt" --policy pytorch:recorded
}

@test "garbage collection without a limit to it is warned of" {
    trace=traces/samples/pr193400.pickle.zst
    for policy in pytorch:garbage_collection_threshold=0.5 pytorch:garbage_collection_threshold:0.5; do
        ./fraglab run $trace --policy $policy 2>"$BATS_TEST_TMPDIR/err" >/dev/null
        [ "$(cat "$BATS_TEST_TMPDIR/err")" = "fraglab: warning: pr193400.pickle.zst: $policy: garbage_collection_threshold does nothing without a memory limit; add per_process_memory_fraction=F and --capacity" ]
        ./fraglab run -q $trace --policy $policy 2>"$BATS_TEST_TMPDIR/err" >/dev/null
        [ ! -s "$BATS_TEST_TMPDIR/err" ]
    done
    ./fraglab run $trace --policy pytorch:garbage_collection_threshold=0.5,per_process_memory_fraction=0.9 --capacity 1GiB \
        2>"$BATS_TEST_TMPDIR/err" >/dev/null
    [ ! -s "$BATS_TEST_TMPDIR/err" ]
    ./fraglab run $trace --policy pytorch:garbage_collection_threshold=0 2>"$BATS_TEST_TMPDIR/err" >/dev/null
    [ ! -s "$BATS_TEST_TMPDIR/err" ]
    # The limit may be the program's own.
    printf '# fraglab trace 2\nlimit 0.8 ratio\nalloc 0 512\n' >"$BATS_TEST_TMPDIR/limit.txt"
    ./fraglab run "$BATS_TEST_TMPDIR/limit.txt" --policy pytorch:garbage_collection_threshold=0.5 --capacity 1GiB \
        2>"$BATS_TEST_TMPDIR/err" >/dev/null
    [ ! -s "$BATS_TEST_TMPDIR/err" ]
}

@test "stdin is read once" {
    for command in "run --policy pytorch" "trace check" "trace info" "verify" "tune"; do
        # shellcheck disable=SC2086
        fails 2 "'-' is named twice; stdin can be read once" $command - - <traces/samples/pr193400.pickle.zst
    done
    ./fraglab trace convert - - <traces/samples/pr193400.pickle.zst | ./fraglab trace check -
}

@test "a run without any row leaves an older output file as it was" {
    echo older >"$BATS_TEST_TMPDIR/rows"
    run -3 ./fraglab run nosuch.fgt --policy pytorch -f -o "$BATS_TEST_TMPDIR/rows"
    run -3 ./fraglab min-capacity nosuch.fgt --policy pytorch -f -o "$BATS_TEST_TMPDIR/rows"
    [ "$(cat "$BATS_TEST_TMPDIR/rows")" = older ]
    # One recording that cannot be read does not take the rows of the others away.
    run -3 ./fraglab run nosuch.fgt traces/samples/pr193400.pickle.zst --policy pytorch --format jsonl -f -o "$BATS_TEST_TMPDIR/rows"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -eq 1 ]
}

@test "output that is lost is told once, and /dev/stdout is stdout" {
    ./fraglab run traces/samples/pr193400.pickle.zst --policy pytorch -o /dev/stdout >"$BATS_TEST_TMPDIR/rows"
    [ -s "$BATS_TEST_TMPDIR/rows" ]
    [ -c /dev/full ] || skip "no /dev/full here"
    for command in "run traces/samples/pr193400.pickle.zst --policy pytorch" "trace convert traces/samples/pr193400.pickle.zst -" \
        "help" "policies"; do
        status=0
        # shellcheck disable=SC2086
        ./fraglab $command >/dev/full 2>"$BATS_TEST_TMPDIR/err" || status=$?
        [ "$status" -eq 4 ]
        [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ]
    done
}

@test "what files and recordings call themselves cannot command a terminal" {
    trace=$BATS_TEST_TMPDIR/$'na\x1b[31mme\n.trace'
    printf '# fraglab trace 1\nmeta "k\\x1b" "v\\x1b"\nframe "f\\x1b[31m" "x\\x1b.py" 3\nsite 0\nalloc 0 4096 site=1\nalloc 1 9000000 site=1\n' >"$trace"
    for command in "run --policy pytorch" "min-capacity --policy pytorch" "explain --capacity 4MiB" "trace info" "trace check" "verify"; do
        # shellcheck disable=SC2086
        ./fraglab $command "$trace" >"$BATS_TEST_TMPDIR/out" 2>&1 || true
        [ -s "$BATS_TEST_TMPDIR/out" ]
        ! grep -q $'\x1b' "$BATS_TEST_TMPDIR/out" || false
    done
    fails 2 "--label: 'a?b' holds a control character; write one line of text" run "$trace" --policy pytorch --label $'a\nb'
    fails 2 "--label: the label is empty; write a name for the row" run "$trace" --policy pytorch --label ''
}

@test "a message without quotes and an unknown command of a group are told what to do" {
    fails 2 "unexpected argument 'of'; put a message of several words in quotes; see 'fraglab explain --help'" explain CUDA out of memory
    ./fraglab plot something-else 2>&1 | grep -q "expected timeline, .* or "
}

@test "a difference of a policy that made no recording is not laid to PyTorch's settings" {
    run ./fraglab verify traces/samples/unet.pickle.zst --policy best-fit
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "  likely: the recording was made by another allocator, or by this one with other options" ]
}

@test "run without a policy takes those that a reader compares first" {
    ./fraglab run traces/samples/unet.pickle.zst --format csv >"$BATS_TEST_TMPDIR/rows"
    [ "$(grep -c unet "$BATS_TEST_TMPDIR/rows")" -eq 4 ]
    ./fraglab run traces/samples/unet.pickle.zst | grep -q '^pytorch:expandable_segments=true '
    fails 2 "--label: there is no --policy for it to name; add --policy NAME" run traces/samples/unet.pickle.zst --label x
}

@test "a capacity of a few bytes asks whether GiB were meant" {
    fails 2 "--capacity: 7 means 7 bytes, less than any device has; did you mean 7GiB? (7B says bytes)" run traces/samples/unet.pickle.zst -p pytorch --capacity 7
    ./fraglab run traces/samples/unet.pickle.zst -p pytorch --capacity 7B >/dev/null
}

# Bad input ends with 3; 4 would say that the system refused.
@test "a device of any number can be replayed by every policy" {
    printf '%s\n' '# fraglab trace 1' 'device 255' 'alloc 0 50000000' >"$BATS_TEST_TMPDIR/numbered"
    ./fraglab run "$BATS_TEST_TMPDIR/numbered" --policy all --format jsonl >"$BATS_TEST_TMPDIR/rows"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" = "$(./fraglab policies --format jsonl | wc -l)" ]
}

@test "a state at the start at impossible addresses is bad input or placed anew" {
    start() { # address, bytes
        printf '%s\n' '# fraglab trace 1' "segment_alloc $2 initial addr=$1" \
            "alloc 0 100 initial addr=$1 block=512" 'alloc 1 100' >"$BATS_TEST_TMPDIR/start"
    }
    start 0x400000000000 140737488355328
    run -3 ./fraglab run "$BATS_TEST_TMPDIR/start" --policy pytorch
    [[ $output == *"event 0 of device 0: an address is out of range"* ]]
    start 0x0 139637976727552
    ./fraglab run "$BATS_TEST_TMPDIR/start" --policy pytorch
}

@test "of a thousand changed files each is read or refused as input" {
    python3 tests/cli/mutated_files.py --count 1000 ./fraglab tests/data/snapshots/*.pickle \
        tests/fuzz/corpus/text_trace/*.txt tests/data/exchange/rmm.csv
}
