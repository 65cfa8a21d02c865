#!/bin/sh
# docs/figures/fixes.png: the memory of two steps of training before and after each fix of `fraglab plan`, on one
# scale. Needs gnuplot.
#
#     sh tests/workload/fixes_figure.sh FRAGLAB FIGURE.png
set -eu
fraglab=$1
figure=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

strip() { # NAME KNOB...
    name=$1
    shift
    "$fraglab" trace generate traces/workloads/gpt2-small.yaml --gpu rtx4090 --precision fp32 --batch 8 --tokens 512 --steps 2 "$@" -o "$folder/$name.fgt"
    echo "$folder/$name.fgt" >>"$folder/list"
}

strip "as it is"
strip "eager attention" --attention eager
strip "fused optimizer" --optimizer-loop fused
strip "accumulate" --batch 4 --accumulate 2
strip "autocast" --precision amp-bf16
strip "chunked loss" --loss chunked
strip "checkpoint" --checkpoint blocks
strip "checkpoint, sqrt" --checkpoint sqrt
strip "checkpoint, selective" --checkpoint selective
strip "optimizer, 8 bits" --optimizer adamw-8bit
strip "bf16 weights" --precision bf16
strip "offload activations" --offload activations
strip "offload optimizer" --offload optimizer
strip "offload gradients too" --offload optimizer,gradients
strip "LoRA" --lora-rank 16
strip "QLoRA" --lora-rank 16 --precision amp-bf16 --quantize nf4-double
strip "SGD" --optimizer sgd
strip "half the batch" --batch 4
strip "half the tokens" --tokens 256
set --
while IFS= read -r path; do set -- "$@" "$path"; done <"$folder/list"
"$fraglab" plot ranks "$@" --labels file --title "GPT-2 small, 8 x 512 tokens, two steps" --width 800 --samples 250 -q -f -o "$figure"
