#!/bin/sh
# A dry run: PyTorch for CUDA itself over software CUDA, with no GPU: training on PyTorch's own allocator and on fraglab's policies,
# over the software CUDA, and what both ask the driver for compared call by call.
#
#     sh gpu_replay/dryrun/dryrun.sh BUILD TORCH [FOLDER]
#
# BUILD is the folder of libfraglab_torch.so and software-cuda/, TORCH a release such as 2.9.1. Its
# wheel (about 1 GB, without NVIDIA's own) goes into FOLDER/venv, if it is not there yet, from the
# package index that pip uses. Exits 77 where it cannot be had: skipped.
set -u
here=$(dirname "$0")
build=$1
version=$2
folder=${3:-build/dryrun/torch-$version}
limit="timeout -k 5 ${FRAG_DRYRUN_SECONDS:-300}"

skip() {
    echo "skipped: torch $version ($1)"
    exit 77
}

get_torch() {
    [ -e "$folder/venv/complete" ] && return 0
    mkdir -p "$folder" || return 1
    rm -rf "$folder/venv"
    python3 -m venv "$folder/venv" || return 1
    "$folder/venv/bin/pip" install -q numpy filelock typing_extensions sympy networkx jinja2 fsspec setuptools &&
        "$folder/venv/bin/pip" install -q --no-deps "torch==$version" && touch "$folder/venv/complete"
}

# The program on the software CUDA: log of the driver's calls, PyTorch's settings, program.
run() {
    log=$1
    conf=$2
    shift 2
    env FRAGLAB_SOFTWARE_CUDA="addresses=snapshot,capacity=16GiB,log=$log" ${conf:+PYTORCH_CUDA_ALLOC_CONF="$conf"} \
        LD_PRELOAD="$(sed "s|^|$libraries/|" "$libraries/preload" | paste -sd:)" FRAGLAB_TORCH_LIBRARY="$build/libfraglab_torch.so" \
        FRAGLAB_STATS="$folder/stats" FRAGLAB_RECORD="$folder/recording.fgt" \
        $limit "$folder/venv/bin/python" -W ignore "$@" >"$folder/output" 2>&1
}

# What moves memory; not how the context is made, nor what only looks.
calls() {
    sed -nE 's/^[0-9]+ [0-9]+ ((cudaMalloc|cudaFree|cuMem(Address(Reserve|Free)|Create|Map|SetAccess|Unmap|Release)) .*)/\1/p' "$1" |
        grep -vE '^cudaFree address=0x0 |= 801$'
}

# Are all calls of PyTorch's own allocator made by fraglab too, the same ones in the same order? What
# fraglab gives back at the end of the program, PyTorch leaves to the end of the process.
same() {
    count=$(wc -l <"$folder/own.calls")
    [ "$count" -gt 0 ] && head -n "$count" "$folder/fraglab.calls" | cmp -s "$folder/own.calls" - &&
        ! tail -n "+$((count + 1))" "$folder/fraglab.calls" | grep -qvE '^(cudaFree|cuMem(Unmap|Release|AddressFree)) '
}

# Does the simulated device with that policy do what was done? A recording does not tell of address
# ranges that were reserved for a request which then failed, so with these it is only read.
replays() {
    case $conf in
    expandable*) "$build/fraglab" trace check "$folder/recording.fgt" >"$folder/output" 2>&1 ;;
    *) "$build/fraglab" verify "$folder/recording.fgt" --policy "$1" >"$folder/output" 2>&1 && grep -q identical "$folder/output" ;;
    esac
}

failed=0
fail() {
    failed=$((failed + 1))
    echo "FAILED: $1"
    tail -n 5 "$folder/output"
}

command -v python3 >/dev/null || skip "there is no python3"
get_torch || skip "the wheel is not here and cannot be had"
site=$("$folder/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
major=$(ls "$site/torch/lib" | grep -q 'libcudart' && echo bundled ||
    readelf -d "$site/torch/lib/libc10_cuda.so" | sed -n 's/.*libcudart\.so\.\([0-9]*\).*/\1/p')
[ "$major" = 12 ] || [ "$major" = 13 ] || skip "it wants a CUDA runtime of another kind: ${major:-none}"
libraries=$(cd "$build/software-cuda/$major" && pwd) || exit 1

install=$here/../torch/fraglab_torch.py
train=$here/train.py
for model in mlp cnn transformer; do
    extra=$([ $model != mlp ] || echo --graph)
    for conf in "" expandable_segments:True max_split_size_mb:32,roundup_power2_divisions:4; do
        name="$model with '${conf:-the defaults}'"
        run "$folder/own.log" "$conf" "$train" --model $model --streams --oom $extra && grep -q '^done$' "$folder/output" ||
            { fail "$name on PyTorch's own allocator"; continue; }
        run "$folder/fraglab.log" "$conf" "$install" "$train" --model $model --streams --oom $extra &&
            grep -q '^done$' "$folder/output" || { fail "$name on the policy pytorch"; continue; }
        calls "$folder/own.log" >"$folder/own.calls"
        calls "$folder/fraglab.log" >"$folder/fraglab.calls"
        if same; then
            replays pytorch:recorded || fail "the recording of $name"
            echo "$name: $(wc -l <"$folder/own.calls") device calls, the same ones"
        else
            diff "$folder/own.calls" "$folder/fraglab.calls" | head -n 10
            fail "$name: PyTorch (<) and the policy pytorch (>) ask for different things"
        fi
    done
    conf=
    for policy in best-fit size-class; do
        run "$folder/fraglab.log" "" "$install" --policy $policy "$train" --model $model --streams --oom &&
            grep -q '^done$' "$folder/output" || { fail "$model on $policy"; continue; }
        replays $policy || fail "the recording of $model on $policy"
        echo "$model on $policy: $(sed -n 's/^  reserved *//p' "$folder/stats")"
    done
done
[ "$failed" = 0 ] || { echo "torch $version: $failed failed" && exit 1; }
