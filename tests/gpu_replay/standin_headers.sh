#!/usr/bin/env bash
# Do the tables of the stand-ins say what the vendor's headers say? standin_headers.sh INCLUDE [MAJOR]
# For each library whose header is in the folder INCLUDE: number, order and kinds of parameters of all functions that
# the header declares. One line for each that differs; exit code 1 if there is one, 77 if nothing could be compared.
set -u
include=$1
major=${2:-13}
root=$(cd "$(dirname "$0")/../.." && pwd)
tables=$root/gpu_replay/software/libraries
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declare -A headers=(
    [cublas]=cublas_api.h [cublasLt]=cublasLt.h [cudnn]=cudnn.h [cufft]="cufft.h cufftXt.h" [cupti]=cupti.h [curand]=curand.h
    [cusolver]=cusolverDn.h [cusparse]=cusparse.h [nccl]=nccl.h [nvJitLink]=nvJitLink.h [nvrtc]=nvrtc.h [cusparseLt]=cusparseLt.h
    [cufile]=cufile.h
)
compared=0
differing=0
for table in "$tables"/tables/*.calls; do
    name=$(basename "$table" .calls)
    source=$work/$name.cpp
    for header in ${headers[$name]:-}; do
        [ -e "$include/$header" ] && echo "#include <$header>"
    done >"$source"
    [ -s "$source" ] || continue
    g++ -std=c++17 -E -P -isystem "$include" "$source" 2>/dev/null | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$work/words"
    echo "#include \"$root/tests/gpu_replay/standin_headers.hpp\"" >>"$source"
    echo 'int main() {' >>"$source"
    awk -v what=compare -v "major=$major" -f "$tables/generate.awk" "$table" |
        awk 'NR == FNR { declared[$1]; next } { name = $0; sub(/^FRAG_COMPARE\(/, "", name); sub(/,.*/, "", name); if (name in declared) print $0 ";" }' \
            "$work/words" - | grep -vE '\((cublasGemm(Batched|StridedBatched)?Ex|cublas[SG]etEmulationStrategy),' >"$work/lines" # overloaded in C++
    cat "$work/lines" >>"$source"
    echo 'return frag_differing > 0; }' >>"$source"
    if ! g++ -std=c++17 -w -isystem "$include" -o "$work/program" "$source" 2>"$work/errors"; then
        head -n 5 "$work/errors"
        differing=1
        continue
    fi
    "$work/program" || differing=1
    compared=$((compared + $(wc -l <"$work/lines")))
done
[ "$compared" -gt 0 ] || { echo "skipped: no header of a CUDA library in $include" && exit 77; }
echo "$compared functions compared"
exit "$differing"
