# Real devices, driven over the software CUDA: a program cannot tell it from NVIDIA's libraries, and it
# knows what is held when it is unloaded. "13" and "12" stand for the runtimes of these versions.

bats_require_minimum_version 1.5.0

POLICIES="--policy all --policy pytorch:expandable_segments=true --policy gmlake:fragLimit=2MiB"
SMALL=traces/samples/pr193400.pickle.zst
RECORDING=traces/samples/gpt-varlen.pickle.zst

setup_file() {
    make -s --no-print-directory software-cuda >/dev/null
    software=$(make -s --no-print-directory software-cuda | sed 's/ .*//')
    export SOFTWARE=$PWD/${software%/12}
}

setup() {
    [ -f fraglab_cuda.so ] || skip "built with CUDA=no: there is no module for GPUs"
    LEAKS=$BATS_TEST_TMPDIR/leaks
}

# on VERSION SETTINGS COMMAND...: with the software CUDA of that version.
on() {
    local version=$1 settings=$2
    shift 2
    FRAGLAB_SOFTWARE_CUDA="leaks=$LEAKS${settings:+,}$settings" "$@" --cudart "$SOFTWARE/$version/libcudart.so.$version"
}

held_nothing() {
    cat "$LEAKS"
    [ "$(cat "$LEAKS")" = "held: nothing" ]
}

# What a row says but for where it ran and how long that took.
bare() {
    sed -E 's/"device":\{[^}]*\},//; s/"card":(null|\{[^}]*\}),//; s/"measured_time_ns":[^}]*//; s/"device_times":(null|\{[^}]*\}),//'
}

# agree ROWS: every row of the simulated device has one of the card beside it that is the same, and a
# comparison that says so.
agree() {
    local sim cuda
    sim=$(grep -c '"device":{"name":"sim"' "$1")
    cuda=$(grep -c '"device":{"name":"cuda"' "$1")
    [ "$sim" -gt 0 ] && [ "$sim" -eq "$cuda" ]
    [ "$(grep -c '"schema":"fraglab.comparison/1".*"is_same":true' "$1")" -eq "$sim" ]
    diff <(grep '"device":{"name":"sim"' "$1" | bare) <(grep '"device":{"name":"cuda"' "$1" | bare)
}

RECORDINGS=$(echo traces/samples/*.zst)

both() { # VERSION SETTINGS OPTION...: every policy and recording on both devices
    local version=$1 settings=$2
    shift 2
    # shellcheck disable=SC2086
    on "$version" "$settings" ./fraglab run --device sim,cuda $RECORDINGS $POLICIES --format jsonl "$@" >"$BATS_TEST_TMPDIR/rows"
    agree "$BATS_TEST_TMPDIR/rows"
    held_nothing
}

@test "every policy does the same on the card as simulated, on every recording" {
    both 13 capacity=64GiB,context=300MiB
}

@test "a budget is kept alike, with the runtime of CUDA 12 too" {
    both 12 capacity=64GiB --capacity 1GiB
    grep -q '"limit":"budget"' "$BATS_TEST_TMPDIR/rows"
    both 13 capacity=64GiB,context=300MiB --capacity 700MiB --on-oom skip
}

@test "with a ballast the card runs out where the simulation does" {
    both 13 capacity=64GiB,context=301MiB --capacity 1GiB --ballast
    grep -q '"limit":"ballast"' "$BATS_TEST_TMPDIR/rows"
    ! grep -q '"ballast_bytes":0,' "$BATS_TEST_TMPDIR/rows" || false
    both 12 capacity=64GiB --capacity 200MiB --ballast --touch
}

@test "a card that is smaller than the recording runs out where the simulation does" {
    both 13 capacity=3GiB,context=500MiB
    grep -q '"limit":"card"' "$BATS_TEST_TMPDIR/rows"
    grep -q '"oom":{"event":' "$BATS_TEST_TMPDIR/rows"
}

@test "streams that lag behind and memory that is written change nothing" {
    RECORDINGS=$(echo traces/samples/{prefetch-streams,cuda-graphs,truncated,pr193400}.pickle.zst)
    both 13 capacity=64GiB,lag=7 --touch
    both 12 capacity=64GiB,lag=2,lag-unit=calls --touch --address-rule driver --capacity 2GiB
}

@test "verify --against cuda finds every call and every block the same" {
    # shellcheck disable=SC2086
    on 13 capacity=64GiB,context=300MiB ./fraglab verify --against cuda traces/samples/*.zst $POLICIES \
        >"$BATS_TEST_TMPDIR/text"
    [ "$(grep -c 'on Software GPU: identical: [0-9,]* requests, [0-9,]* device calls' "$BATS_TEST_TMPDIR/text")" -eq \
        "$(wc -l <"$BATS_TEST_TMPDIR/text")" ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/text")" -ge 130 ]
    held_nothing
    # shellcheck disable=SC2086
    on 12 capacity=64GiB,context=301MiB ./fraglab verify --against cuda traces/samples/*.zst $POLICIES \
        --capacity 1GiB --ballast --touch --format jsonl >"$BATS_TEST_TMPDIR/jsonl"
    ! grep -v '"is_identical":true' "$BATS_TEST_TMPDIR/jsonl" || false
    held_nothing
}

@test "verify --against cuda shows the first call that differs" {
    run -1 on 13 capacity=64GiB,fail=cudaMalloc:20:2 ./fraglab verify --against cuda "$RECORDING" --policy pytorch
    echo "$output"
    [[ ${lines[0]} == *"pytorch on Software GPU: different at event "* ]]
    [[ $output == *"  card       malloc of 20.00 MiB: out of memory"* ]]
    [[ $output == *"  simulated  malloc of 20.00 MiB: ok"* ]]
    run -1 on 13 capacity=64GiB,addresses=bump,others=62GiB@300 ./fraglab verify --against cuda "$RECORDING" --policy best-fit
    [[ $output == *"out of memory"* ]]
    held_nothing
}

# The first call of each kind is the one that warms up.
@test "a call that the driver refuses for lack of memory is met as the simulated refusal of it is" {
    for n in 1 2 7 30; do
        on 13 "capacity=64GiB,fail=cudaMalloc:$((n + 1)):2" ./fraglab run --device cuda "$RECORDING" --capacity 32GiB \
            --policy pytorch,direct --policy pytorch:max_split_size_mb=64 --format jsonl | bare >"$BATS_TEST_TMPDIR/card"
        held_nothing
        ./fraglab run "$RECORDING" --capacity 32GiB --policy pytorch,direct --policy pytorch:max_split_size_mb=64 \
            --fail-call "$n" --format jsonl | bare | diff - "$BATS_TEST_TMPDIR/card"
        on 12 "capacity=64GiB,fail=cuMemSetAccess:$((n + 1)):2" ./fraglab run --device cuda "$RECORDING" --capacity 32GiB \
            --policy best-fit,tlsf --policy pytorch:expandable_segments=true --format jsonl | bare >"$BATS_TEST_TMPDIR/card"
        held_nothing
        ./fraglab run "$RECORDING" --capacity 32GiB --policy best-fit,tlsf --policy pytorch:expandable_segments=true \
            --fail-call "$n" --format jsonl | bare | diff - "$BATS_TEST_TMPDIR/card"
    done
}

@test "random refusals end no run, and nothing stays held" {
    for call in cudaMalloc cuMemCreate cuMemMap; do
        on 13 "capacity=64GiB,random=$call:9:2:5" ./fraglab run --device cuda traces/samples/*.zst \
            --policy pytorch,best-fit,rmm-arena --policy pytorch:expandable_segments=true --on-oom skip \
            --format jsonl >"$BATS_TEST_TMPDIR/rows"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -ge 50 ]
        grep -q '"oom":{"event"' "$BATS_TEST_TMPDIR/rows"
        held_nothing
    done
}

@test "memory that another program takes meanwhile is told" {
    on 13 capacity=8GiB,others=2GiB@100 ./fraglab run --device sim,cuda "$RECORDING" --policy pytorch \
        >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/warning"
    cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/warning"
    grep -q "warning: gpt-varlen.pickle.zst: pytorch: other programs took 2.00 GiB of the card's memory" \
        "$BATS_TEST_TMPDIR/warning"
    held_nothing
}

@test "any other refusal ends the run in the driver's words, and all is given back" {
    for call in cudaMalloc cudaFree; do
        run -4 on 13 "capacity=64GiB,fail=$call:4:1" ./fraglab run --device cuda "$RECORDING" --policy pytorch \
            --capacity 2GiB --on-oom skip
        echo "$output"
        [[ $output == "fraglab: gpt-varlen.pickle.zst: pytorch on cuda: the run ended at event "*": $call: invalid argument (cudaErrorInvalidValue, 1)" ]]
        held_nothing
    done
    for call in cuMemAddressReserve cuMemCreate cuMemMap cuMemSetAccess cuMemUnmap cuMemRelease; do
        run -4 on 12 "capacity=64GiB,fail=$call:2:1" ./fraglab run --device cuda "$RECORDING" --capacity 6GiB \
            --policy pytorch:expandable_segments=true
        echo "$output"
        [[ $output == *"$call: invalid argument (cudaErrorInvalidValue, 1)"* ]]
        held_nothing
    done
}

@test "a broken context ends one run; those before and after it have their rows" {
    run -4 on 13 capacity=64GiB,sticky=700@120 ./fraglab run --device sim,cuda "$SMALL" "$RECORDING" \
        --policy pytorch --format jsonl
    echo "$output"
    [[ $output == *"gpt-varlen.pickle.zst: pytorch on cuda: the run ended at event "*": cudaMalloc: an illegal memory access was encountered (cudaErrorIllegalAddress, 700)"* ]]
    [ "$(grep -c '"name":"sim"' <<<"$output")" -eq 2 ]
    [ "$(grep -c '"device":{"name":"cuda"' <<<"$output")" -eq 1 ]
}

@test "the driver log holds what the driver was asked" {
    for policy in pytorch direct pytorch:expandable_segments=true; do
        rm -f "$BATS_TEST_TMPDIR/log"
        on 13 "capacity=64GiB,log=$BATS_TEST_TMPDIR/calls" ./fraglab run --device cuda --address-rule driver "$RECORDING" \
            --policy "$policy" --capacity 6GiB --driver-log "$BATS_TEST_TMPDIR/log" >/dev/null
        awk -F '\t' '
            BEGIN { name["malloc"] = "cudaMalloc"; name["free"] = "cudaFree"; name["map"] = "cuMemSetAccess"
                    name["reserve"] = "cuMemAddressReserve" }
            NR == 1 { if ($6 != "ns") exit 1 }
            $6 !~ /^[0-9]+$/ && NR > 1 { print "no time: " $0 }
            $2 in name && $5 == "ok" { print name[$2], $3, $2 == "free" ? 0 : $4 }' "$BATS_TEST_TMPDIR/log" \
            >"$BATS_TEST_TMPDIR/asked"
        # What comes before the pool is set up warms up; what comes behind the run gives back.
        awk '
            $3 == "cudaMemPoolSetAttribute" { delete line; count = 0 }
            / = 0$/ && $3 ~ /^(cudaMalloc|cudaFree|cuMemSetAccess|cuMemAddressReserve)$/ {
                address = bytes = 0
                for (i = 4; i <= NF; i++) {
                    if ($i ~ /^address=/) address = substr($i, 9)
                    if ($i ~ /^bytes=/) bytes = substr($i, 7)
                }
                line[count++] = $3 " " address " " ($3 == "cudaFree" ? 0 : bytes)
            }
            END { for (i = 0; i < count; i++) print line[i] }' "$BATS_TEST_TMPDIR/calls" >"$BATS_TEST_TMPDIR/done"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/asked")" -gt 10 ]
        head -n "$(wc -l <"$BATS_TEST_TMPDIR/asked")" "$BATS_TEST_TMPDIR/done" | diff "$BATS_TEST_TMPDIR/asked" -
    done
}

@test "the driver is asked for pages of expandable segments as PyTorch asks" {
    on 13 "capacity=64GiB,log=$BATS_TEST_TMPDIR/calls" ./fraglab run --device cuda "$RECORDING" --capacity 6GiB \
        --policy pytorch:expandable_segments=true --format jsonl >/dev/null
    awk '$3 == "cudaMemPoolSetAttribute" { seen = 1; delete kinds } seen && $3 == "cuMemCreate" { kinds[$4]++ }
        END { for (kind in kinds) print kind }' "$BATS_TEST_TMPDIR/calls" | LC_ALL=C sort >"$BATS_TEST_TMPDIR/kinds"
    diff "$BATS_TEST_TMPDIR/kinds" <(printf 'bytes=2097152\nbytes=20971520\n')
    # All pieces are created, then all mapped, then made accessible in one call.
    awk '$3 == "cudaMemPoolSetAttribute" { order = "" }
        $3 == "cuMemCreate" { order = order "c" } $3 == "cuMemMap" { order = order "m" }
        $3 == "cuMemSetAccess" { order = order "a;" }
        END { gsub(/ccc*/, "c", order); gsub(/mmm*/, "m", order); print order }' "$BATS_TEST_TMPDIR/calls" >"$BATS_TEST_TMPDIR/order"
    [ -s "$BATS_TEST_TMPDIR/order" ]
    grep -qxE '(cma;)+' "$BATS_TEST_TMPDIR/order"
}

@test "statistics, snapshot and layout of a run on the card are those of the simulated one" {
    options="$RECORDING --policy pytorch --capacity 6GiB"
    # shellcheck disable=SC2086
    on 13 capacity=64GiB ./fraglab run --device sim,cuda $options --stats-at peak --format jsonl >"$BATS_TEST_TMPDIR/rows"
    grep -q '"memory_stats":{' "$BATS_TEST_TMPDIR/rows"
    agree "$BATS_TEST_TMPDIR/rows"
    # shellcheck disable=SC2086
    on 13 capacity=64GiB ./fraglab run --device cuda $options --snapshot "$BATS_TEST_TMPDIR/card.pickle" >/dev/null
    # shellcheck disable=SC2086
    ./fraglab run $options --snapshot "$BATS_TEST_TMPDIR/sim.pickle" >/dev/null
    cmp "$BATS_TEST_TMPDIR/card.pickle" "$BATS_TEST_TMPDIR/sim.pickle"
}

@test "the table shows both devices and how they differ" {
    on 13 capacity=8GiB ./fraglab run --device sim,cuda "$SMALL" --policy best-fit --capacity 300MiB --ballast >"$BATS_TEST_TMPDIR/table"
    cat "$BATS_TEST_TMPDIR/table"
    grep -q '^device   sim · 300.00 MiB$' "$BATS_TEST_TMPDIR/table"
    grep -q '^device   cuda:0 · Software GPU · 300.00 MiB by ballast$' "$BATS_TEST_TMPDIR/table"
    grep -qE '^best-fit  +same  +same  +[0-9.]+ ms  +same, event [0-9,]+$' "$BATS_TEST_TMPDIR/table"
}

@test "rows of cards can be compared and drawn like others" {
    for name in base new; do
        on 13 capacity=8GiB ./fraglab run --device sim,cuda "$SMALL" --policy best-fit --format jsonl >"$BATS_TEST_TMPDIR/$name"
    done
    ./fraglab compare "$BATS_TEST_TMPDIR/base" "$BATS_TEST_TMPDIR/new" | tee "$BATS_TEST_TMPDIR/text"
    grep -q '^0 of [0-9]* metrics worse, 0 better; 2 rows compared$' "$BATS_TEST_TMPDIR/text"
    ./fraglab plot bars "$BATS_TEST_TMPDIR/new" --format csv -o "$BATS_TEST_TMPDIR/bars.csv"
    [ "$(grep -c 'best-fit' "$BATS_TEST_TMPDIR/bars.csv")" -ge 2 ]
}

@test "cards are told apart by number" {
    on 13 devices=2,capacity=5GiB/1 ./fraglab run --device cuda:1 "$SMALL" --policy best-fit --format jsonl |
        grep -q '"card":{"name":"Software GPU","ordinal":1,.*"total_bytes":5368709120'
    run -4 on 13 devices=2 ./fraglab run --device cuda:2 "$SMALL" --policy best-fit
    [[ $output == "fraglab: there is no GPU number 2; the runtime shows 2, counted from 0" ]]
    on 12 devices=2 ./fraglab doctor | grep -q '^cuda:1  *Software GPU, .*runtime 12'
}

@test "where the newest runtime does not serve, an older one does" {
    export LD_LIBRARY_PATH=$SOFTWARE/12 FRAGLAB_SOFTWARE_CUDA="leaks=$LEAKS"
    ./fraglab run --device cuda "$SMALL" --policy best-fit --format jsonl >"$BATS_TEST_TMPDIR/row"
    grep -q '"runtime_version":"12\.' "$BATS_TEST_TMPDIR/row"
}

@test "what is missing is said, before anything is written" {
    run -4 ./fraglab run --device cuda --cudart /nowhere/libcudart.so.13 "$SMALL" --policy best-fit -o "$BATS_TEST_TMPDIR/out"
    [[ $output == "fraglab: the CUDA runtime cannot be opened: "*"/nowhere/libcudart.so.13"* ]]
    [ ! -e "$BATS_TEST_TMPDIR/out" ]
    run -4 ./fraglab run --device cuda --cudart "$SOFTWARE/13/libcuda.so.1" "$SMALL" --policy best-fit
    [[ $output == *"expected a CUDA runtime of 12 or 13"* ]]
    # shellcheck disable=SC2086
    run -4 on 13 nonsense=1 ./fraglab run --device cuda "$SMALL" --policy best-fit
    [[ $output == *"cudaGetDeviceCount: "* ]]
    run -4 on 13 capacity=1GiB,context=600MiB ./fraglab run --device cuda "$SMALL" --policy best-fit --capacity 900MiB --ballast
    [[ $output == *"the card has 424.00 MiB free, and 900.00 MiB are to be left of it; ask for less"* ]]
    held_nothing
}

@test "the machine's own runtime is driven, or says why not" {
    [ ! -e /dev/nvidia0 ] || skip "there is a GPU"
    run -4 ./fraglab run --device cuda "$SMALL" --policy best-fit
    echo "$output"
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"no NVIDIA driver is loaded on this machine" || $output == *"no CUDA runtime is found"* ]]
    ./fraglab doctor | grep -q '^cuda:0 '
}

@test "the machine's own card does what the simulated device does" {
    [ -e /dev/nvidia0 ] || skip "no GPU here"
    # shellcheck disable=SC2086
    ./fraglab run --device sim,cuda traces/samples/*.zst $POLICIES --capacity 1GiB --ballast --touch --format jsonl \
        >"$BATS_TEST_TMPDIR/rows"
    agree "$BATS_TEST_TMPDIR/rows"
    # shellcheck disable=SC2086
    ./fraglab verify --against cuda traces/samples/*.zst $POLICIES --capacity 1GiB
}

@test "the module is found where make install puts it" {
    mkdir -p "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/lib/fraglab"
    cp fraglab "$BATS_TEST_TMPDIR/bin/"
    cp fraglab_cuda.so "$BATS_TEST_TMPDIR/lib/fraglab/"
    on 13 "" "$BATS_TEST_TMPDIR/bin/fraglab" run --device cuda "$SMALL" --policy best-fit | grep -q 'Software GPU'
    held_nothing
}

@test "without the module all but the card works" {
    cp fraglab "$BATS_TEST_TMPDIR/"
    "$BATS_TEST_TMPDIR/fraglab" run "$SMALL" --policy best-fit >/dev/null
    run -4 "$BATS_TEST_TMPDIR/fraglab" run --device cuda "$SMALL" --policy best-fit
    [[ $output == *"there is no fraglab_cuda.so in "*"was built with CUDA=no" ]]
}

@test "what goes with no card, or not together, is refused" {
    refuse() { # sentence, option...
        local sentence=$1
        shift
        run -2 ./fraglab run "$SMALL" --policy best-fit "$@"
        echo "$output"
        [[ $output == *"$sentence"* ]]
    }
    refuse "'tpu' is not a device; expected sim, cuda, cuda:N or both as sim,cuda" --device tpu
    refuse "'' is not a device" --device sim,
    refuse "cuda is named twice" --device cuda,cuda:1
    refuse "--device: " --device cuda:x
    refuse "--ballast is about a real card; add --device cuda, or leave it out" --ballast
    refuse "--touch is about a real card" --touch
    refuse "--cudart is about a real card" --cudart x
    refuse "no driver that gives addresses" --address-rule driver
    refuse "--ballast leaves a capacity; say which with --capacity" --device cuda --ballast
    refuse "what others use of a card is as it is" --device cuda --used-by-others 1GiB
    refuse "--driver-log holds one run; name one device" --device sim,cuda --driver-log "$BATS_TEST_TMPDIR/log"
    run -2 ./fraglab verify "$SMALL" --ballast
    [[ $output == *"--ballast goes with --against cuda; leave it out"* ]]
    run -2 ./fraglab verify "$SMALL" --against cuda --device sim,cuda
    [[ $output == *"name that: --device cuda:N"* ]]
}

@test "an interrupt ends the run on the card and gives everything back" {
    many=$(for i in $(seq 400); do echo "$RECORDING"; done)
    export FRAGLAB_SOFTWARE_CUDA="capacity=64GiB,leaks=$LEAKS"
    # A job of a shell that is not interactive would ignore it.
    # shellcheck disable=SC2086
    env --default-signal=INT \
        ./fraglab run --device cuda $many --policy direct --format jsonl -j 2 \
        --cudart "$SOFTWARE/13/libcudart.so.13" >"$BATS_TEST_TMPDIR/rows" &
    child=$!
    while [ ! -s "$BATS_TEST_TMPDIR/rows" ] && kill -0 "$child"; do sleep 0.05; done
    kill -INT "$child"
    code=0
    wait "$child" || code=$?
    [ "$code" -eq 130 ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rows")" -lt 400 ]
    ! grep -v '}$' "$BATS_TEST_TMPDIR/rows" || false
    held_nothing
}
