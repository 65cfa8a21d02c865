#!/usr/bin/env bash
# The report on a real card, docs/real-device.md: `make gpu-report` calls this from the root of the tree.
#
#   gpu_replay/report.sh FOLDER           measures, writes FOLDER/report.md and, of a real card, publishes it
#   gpu_replay/report.sh publish FOLDER   puts the report into docs/real-device.md, the card into devices/
#
# Everything it makes on the way lies in FOLDER. What is missing here (Python with CUDA, the recorder, a part
# that was not built) is named in the report as skipped.
#
#   DEVICE=cuda:1        the card (cuda:0)
#   CUDART=FILE          the CUDA runtime (as the loader finds it)
#   RECORDINGS="A B"     instead of all of traces/samples
#   POLICIES="A B"       instead of those below
#   DOCS=FILE            instead of docs/real-device.md; DEVICES=FOLDER instead of devices
set -u
export LC_ALL=C.UTF-8
what=measure
if [ "${1:-}" = publish ]; then
    what=publish
    shift
fi
folder=${1:?expected the folder to write to}
device=${DEVICE:-cuda:0}
docs=${DOCS:-docs/real-device.md}
devices=${DEVICES:-devices}
policies=${POLICIES:-pytorch pytorch:expandable_segments=true best-fit tlsf size-class direct}
recordings=${RECORDINGS:-$(echo traces/samples/*.pickle.zst)}
cudart=()
[ -z "${CUDART:-}" ] || cudart=(--cudart "$CUDART")
fraglab=./fraglab
card=$folder/card.yaml
report=$folder/report.md
mkdir -p "$folder"

say() { echo "gpu-report: $*" >&2; }

# The value of a line "key: 'value'" of the description; of keys inside groups too.
fact() {
    sed -n "s/^ *$1: *'\{0,1\}\(.*[^']\)'\{0,1\}\$/\1/p" "$card" | sed "s/''/'/g" | head -n 1
}

# The value of a key in a line of JSON; keys that occur once, or the last one of that name.
value() {
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" <<<"$2"
}

mib() { awk -v bytes="$1" 'BEGIN { if (bytes == "" || bytes == "null") print "–"; else printf "%.2f\n", bytes / 1048576 }'; }
milliseconds() { awk -v ns="$1" 'BEGIN { if (ns == "" || ns == "null") print "–"; else printf "%.3f\n", ns / 1e6 }'; }
event() { [ "$1" = null ] && echo "–" || echo "$1"; }

# ---- the card
measure_card() {
    rm -f "$card"
    "$fraglab" device probe --device "$device" "${cudart[@]}" -f -o "$card" 2>"$folder/probe.err" && return
    say "the card cannot be measured: $(cat "$folder/probe.err")"
    return 1
}

print_card() {
    echo "## The card"
    echo
    echo "| | |"
    echo "| --- | --- |"
    local key
    for key in name origin driver cuda date hardware total context page alignment large_alignment reuse serves_scattered \
        granularity recommended first step releases_at_synchronize keeps_below_threshold; do
        [ -z "$(fact "$key")" ] || echo "| \`$key\` | $(fact "$key") |"
    done
    echo
    echo "[device-description.md](device-description.md) says what these are. What small mallocs take:"
    echo
    if grep -q up_to "$card"; then
        echo "| up to | takes |"
        echo "| ---: | ---: |"
        sed -n 's/^ *- {up_to: \(.*\), takes: \(.*\)}/| \1 | \2 |/p' "$card"
    else
        echo "whole pages, whatever their size."
    fi
    echo
    echo "## Latencies"
    echo
    echo "Microseconds of one call on the idle card: median, with a tenth below and a tenth above."
    echo
    echo "| call | bytes | median | 10 % | 90 % | calls timed |"
    echo "| --- | ---: | ---: | ---: | ---: | ---: |"
    awk '/^  [a-z_]+:$/ { call = $1; sub(":", "", call) }
        /^    - \{bytes/ {
            gsub(/[{},]/, ""); printf "| %s | %s | %s | %s | %s | %s |\n", call, $3, $5, $7, $9, $11 }' "$card"
    echo
}

# ---- simulated against real
# The three capacities: a quarter more than pytorch needs, exactly that, and a tenth less.
capacities_of() {
    local least
    least=$("$fraglab" min-capacity "$1" --policy pytorch --format jsonl 2>/dev/null |
        sed -n 's/.*"capacity_bytes":\([0-9]*\).*/\1/p' | sort -n | tail -n 1)
    [ -n "$least" ] || return 1
    local page=$((2 << 20))
    echo $((least * 5 / 4 / page * page)) "$least" $((least * 9 / 10 / page * page))
}

# compare RECORDING CAPACITY: a line of the table for each policy and device of the recording.
compare() {
    local recording=$1 capacity=$2 arguments=() policy row sim real name
    for policy in $policies; do arguments+=(--policy "$policy"); done
    if ! "$fraglab" run "$recording" --device "sim,$device" "${cudart[@]}" "${arguments[@]}" --capacity "$capacity" --ballast \
        --latency "$card" --format jsonl >"$folder/rows.jsonl" 2>"$folder/rows.err"; then
        echo "| $(basename "$recording" .pickle.zst) | $(mib "$capacity") | failed: $(head -n 1 "$folder/rows.err") | | | | | | | | |"
    fi
    cat "$folder/rows.jsonl" >>"$folder/all.jsonl"
    name=$(basename "$recording" .pickle.zst)
    while read -r row; do
        case $row in
        *'"device":{"name":"sim"'*) sim=$row ;;
        *'"device":{"name":"cuda"'*) real=$row ;;
        *fraglab.comparison/*)
            # Of several devices each has a line.
            [ "$(value device "$row")" = 0 ] || name=$(basename "$recording" .pickle.zst)/$(value device "$row")
            echo "| $name | $(mib "$capacity") | $(value label "$row") |" \
                "$(mib "$(value sim_bytes "$row")") | $(mib "$(value cuda_bytes "$row")") |" \
                "$(mib "$(value difference_bytes "$row")") | $(value sim "$row") | $(value cuda "$row") |" \
                "$(event "$(value sim_event "$row")") | $(event "$(value cuda_event "$row")") |" \
                "$(milliseconds "$(value modelled_time_ns "$sim")") | $(milliseconds "$(value measured_time_ns "$real")") |"
            ;;
        esac
    done <"$folder/rows.jsonl"
}

print_comparison() {
    local recording capacity capacities
    echo "## Simulated against real"
    echo
    if ! "$fraglab" run --help | grep -q -- --ballast; then
        echo "Skipped: this fraglab has no \`--device cuda\`."
        echo
        return
    fi
    echo "Each recording at three capacities: a quarter more than the \`pytorch\` policy needs, exactly that, and a tenth less. A"
    echo "ballast fills the rest of the card, so that out of memory is the driver's own word. Peak reserved in MiB; device"
    echo "calls; the event of the first request that could not be served; milliseconds in device calls, by the latencies above"
    echo "and as measured."
    echo
    echo "| recording | capacity | policy | peak, simulated | peak, real | difference | calls, simulated | calls, real | OOM at, simulated | OOM at, real | ms, modelled | ms, measured |"
    echo "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    : >"$folder/all.jsonl"
    for recording in $recordings; do
        say "$(basename "$recording")"
        if ! capacities=$(capacities_of "$recording"); then
            echo "| $(basename "$recording" .pickle.zst) | skipped: no capacity is enough for pytorch | | | | | | | | | | |"
            continue
        fi
        for capacity in $capacities; do compare "$recording" "$capacity"; done
    done
    echo
    local all same
    all=$(grep -c 'fraglab.comparison/' "$folder/all.jsonl")
    same=$(grep -c '"is_same":true' "$folder/all.jsonl")
    echo "The same in calls of every kind, peak and OOM event: $same of $all."
    echo
}

print_verify() {
    local recording policy arguments=()
    echo "## Call by call"
    echo
    if ! "$fraglab" verify --help | grep -q cuda; then
        echo "Skipped: this fraglab has no \`verify --against cuda\`."
        echo
        return
    fi
    for policy in $policies; do arguments+=(--policy "$policy"); done
    echo "What \`fraglab verify --against cuda\` says, with the addresses that the driver gives:"
    echo
    echo '```'
    for recording in $recordings; do
        "$fraglab" verify --against cuda --device "$device" "${cudart[@]}" "$recording" "${arguments[@]}" 2>&1
    done
    echo '```'
    echo
}

# ---- a running PyTorch, and the recorder
print_torch() {
    local library=libfraglab_torch.so policy
    echo "## In a running PyTorch"
    echo
    if [ ! -e "$library" ]; then
        echo "Skipped: \`$library\` is not built."
    elif ! python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
        echo "Skipped: there is no PyTorch with CUDA here."
    else
        cat >"$folder/train.py" <<'PYTHON'
import os, torch
allocator = torch.cuda.memory.CUDAPluggableAllocator(os.path.abspath("libfraglab_torch.so"), "fraglab_alloc", "fraglab_free")
torch.cuda.memory.change_current_allocator(allocator)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    loss = model(torch.randn(64 + 32 * (step % 5), 1024, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
print(f"torch {torch.__version__}, loss after 20 steps {loss.item():.6f}")
PYTHON
        echo "Twenty steps of training, served by \`$library\`:"
        echo
        echo '```'
        for policy in pytorch best-fit; do
            echo "$policy: $(FRAGLAB_POLICY=$policy FRAGLAB_RECORD=$folder/torch-$policy.fgt python3 "$folder/train.py" 2>&1 | tail -n 1)"
            [ ! -e "$folder/torch-$policy.fgt" ] || "$fraglab" trace check "$folder/torch-$policy.fgt" 2>&1
        done
        echo '```'
    fi
    echo
}

print_recorder() {
    echo "## The recorder"
    echo
    if ! "$fraglab" record --help >/dev/null 2>&1; then
        echo "Skipped: this fraglab has no recorder."
    else
        echo "\`fraglab record\` on \`fraglab device probe --no-fill\`, and what it recorded:"
        echo
        echo '```'
        rm -f "$folder/probe.fgt"
        "$fraglab" record -o "$folder/probe.fgt" -- "$fraglab" device probe --device "$device" "${cudart[@]}" --no-fill -f \
            -o "$folder/probe-again.yaml" 2>&1
        [ ! -e "$folder/probe.fgt" ] || "$fraglab" trace info "$folder/probe.fgt" 2>&1
        echo '```'
    fi
    echo
}

# Puts the report between its marks in the page.
insert_report() {
    awk -v report="$report" '
        /^<!-- gpu-report: end -->$/ { skipping = 0 }
        !skipping { print }
        /^<!-- gpu-report: begin -->$/ { skipping = 1; while ((getline line < report) > 0) print line }' "$docs" >"$folder/page.md" &&
        cp "$folder/page.md" "$docs"
}

# "NVIDIA GeForce RTX 4090": rtx4090; "NVIDIA A100-SXM4-80GB": a100-sxm4-80gb
file_name() {
    fact name | tr '[:upper:]' '[:lower:]' | sed 's/^nvidia *//; s/geforce *//; s/^\(rtx\|gtx\) /\1/; s/[^a-z0-9]/-/g; s/--*/-/g; s/^-//; s/-$//'
}

publish() {
    if [ "$(fact origin)" != measured ]; then
        say "the figures in $folder are of a software CUDA: $docs stays as it is"
        return
    fi
    cp "$card" "$devices/$(file_name).yaml" && insert_report || exit 4
    say "written into $docs, and $devices/$(file_name).yaml"
}

measure() {
    measure_card || exit 4
    say "$(fact name), driver $(fact driver)"
    {
        echo "Measured by \`make gpu-report\` of $("$fraglab" --version) on $(fact date)."
        echo
        print_card
        print_comparison
        print_verify
        print_torch
        print_recorder
    } >"$report"
    say "the report is $report"
    publish
}

"$what"
