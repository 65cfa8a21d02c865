#!/bin/sh
# How long dry runs of some programs take, and how much host memory: sh tests/dryrun/dryrun_bench.sh FRAGLAB RELEASE [RUNS]
# Exits 77 when the release cannot be had, 1 when Llama 3 8B goes past its limits.
set -u
fraglab=$(realpath "$1")
release=$2
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/dryrun/get_torch.sh
. "$here/get_torch.sh"
get "$release" || { echo "dryrun_bench: torch $release cannot be had"; exit 77; }
exec python3 "$here/dryrun_bench.py" "$fraglab" "$venv/bin/python" "${3:-3}" "$here/programs/mlp.py" "$here/programs/gpt.py" \
    "$here/parts/optimizers.py" "$here/programs/resnet.py" "$here/programs/hf_trainer.py" "$here/models/llama_8b.py"
