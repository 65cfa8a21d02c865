#!/bin/sh
# Generated traces against dry runs of the same workload on PyTorch itself (real PyTorch, software CUDA):
#
#     sh tests/workload/truth.sh FRAGLAB RELEASE [CASE...]
#
# Cases stand in tests/workload/cases. For each, a row: requests of the dry run and generated, the peaks of allocated
# memory in MiB, their difference, and whether all requests and releases are equal, one by one. Then peaks of reserved
# memory under three settings, generated against the dry run's, and at the end a line for each bar. KEEP=FOLDER keeps lists of requests there. Exits 1 when a peak
# differs by more than 3 %, 77 when the release is not there (FRAG_DRYRUN_VENV: a folder with venv-RELEASE).
# DRAWN="COUNT [SEED [FAMILY...]]": cases that tests/workload/drawn.py draws, in place of those.
set -u
fraglab=$(realpath "$1")
python=${FRAG_DRYRUN_VENV:-build/dryrun/torch-$2}/venv-$2/bin/python
[ -x "$python" ] || python=build/dryrun/torch-$2/venv/bin/python
[ -x "$python" ] || { echo "torch $2 is not there; 'make dryrun-test TORCH=$2' fetches it"; exit 77; }
shift 2
here=$(dirname "$(realpath "$0")")
settings="pytorch pytorch:max_split_size_mb=128 pytorch:expandable_segments=true"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cases=$here/cases
if [ -n "${DRAWN:-}" ]; then
    cases=$out/cases
    # shellcheck disable=SC2086
    "$python" "$here/drawn.py" "$fraglab" "$out" $DRAWN >"$cases" || exit 1
fi

reserved() { # trace: MiB under each setting, of the first device
    for setting in $settings; do
        "$fraglab" run "$1" --policy "$setting" --format jsonl | sed -n '1s/.*"peak":{[^}]*"reserved_bytes":\([0-9]*\).*/\1/p'
    done | awk '{ printf "%s%.0f", NR == 1 ? "" : " ", $1 / 1048576 }'
}

options() { # KNOB=VALUE...
    for knob; do
        echo "--$(echo "${knob%%=*}" | tr _ -) ${knob#*=}"
    done
}

try() { # name, config, card, knobs
    name=$1 card=$3
    case $2 in /*) model=$2 ;; *) model=$here/models/$2 ;; esac
    shift 3
    ranks=0
    launcher="$(dirname "$python")/torchrun --nproc-per-node"
    case " $* " in *' parallel='*)
        ranks=$(echo " devices=2 $*" | sed 's/.* devices=\([0-9]*\).*/\1/') ;;
    esac
    case " $* " in *' parallel=dp '*) launcher= ;; esac # one process has all devices
    start() { # WORDS...: Python, or a Python for each rank
        if [ "$ranks" = 0 ]; then "$fraglab" dryrun --follow 4MiB --gpu "$card" -f -o "$out/truth.pickle" -- "$python" "$@"
        elif [ -z "$launcher" ]; then "$fraglab" dryrun --follow 4MiB --gpu "$card" --gpus "$ranks" -f -o "$out/truth.pickle" -- "$python" "$@"
        else "$fraglab" dryrun --follow 4MiB --gpu "$card" --gpus "$ranks" -f -o "$out/truth.pickle" -- $launcher "$ranks" "$@"; fi
    }
    start "$here/program.py" "$model" "$@" >"$out/log" 2>&1 </dev/null ||
        { tail -n 5 "$out/log"; echo "$name: the dry run failed"; return 1; }
    # shellcheck disable=SC2046
    "$fraglab" trace generate "$model" --gpu "$card" $(options "$@") --to text -f -o "$out/made.txt" || return 1
    [ -z "${KEEP:-}" ] || "$python" "$here/compare.py" store "$out/truth.pickle" >"$KEEP/$name.list"
    "$python" "$here/compare.py" row "$name" "$out/truth.pickle" "$out/made.txt" 0.03 >"$out/row"
    status=$?
    cat "$out/row"
    rank=1
    while [ "$rank" -lt "$ranks" ]; do
        truth=$out/truth.pickle-rank$rank.pickle
        if [ -z "$launcher" ]; then truth=$out/truth.pickle#$rank; else mv "$out/truth.pickle-rank$rank" "$truth"; fi
        [ -z "${KEEP:-}" ] || "$python" "$here/compare.py" store "$truth" >"$KEEP/$name-rank$rank.list"
        "$python" "$here/compare.py" row "$name, rank $rank" "$truth" "$out/made.txt#$rank" 0.03 || status=1
        rank=$((rank + 1))
    done
    is=$(reserved "$out/truth.pickle") made=$(reserved "$out/made.txt")
    echo "    reserved, MiB ($settings): $is | $made"
    echo "$model $card $* | $(tr -d , <"$out/row" | awk '{ print $4, $5 }') | $is | $made" >>"$out/rows"
    return $status
}

printf '%-44s %8s %8s %10s %10s\n' "case" "requests" "made" "MiB" "made MiB"
failed=0
while read -r name rest; do
    case $name in '' | '#'*) continue ;; esac
    [ $# -eq 0 ] || echo " $* " | grep -q " $name " || continue
    # shellcheck disable=SC2086
    try "$name" $rest || failed=$((failed + 1))
done <"$cases"
[ ! -s "$out/rows" ] || "$python" "$here/compare.py" bars "$out/rows"
echo "workloads: $failed failed"
[ "$failed" = 0 ]
