#!/bin/sh
# fuzz.sh SECONDS: every target for so long, with libFuzzer where clang has it, else with our own driver.
set -u
seconds=${1:-60}
make=${MAKE:-make}
mkdir -p build
printf 'int LLVMFuzzerTestOneInput(const unsigned char *b, unsigned long n);\nint LLVMFuzzerTestOneInput(const unsigned char *b, unsigned long n) { return b == 0 && n; }\n' >build/probe.c
if command -v clang >/dev/null 2>&1 && clang -fsanitize=fuzzer,address build/probe.c -o build/probe 2>/dev/null; then
    folder=build/fuzz
    $make --no-print-directory -j"${JOBS:-2}" CC=clang MODE=asan BUILD=$folder CFLAGS=-fsanitize=fuzzer-no-link \
        fuzz_main= fuzz_flags=-fsanitize=fuzzer fuzz-programs || exit 1
    run() {
        mkdir -p "build/corpus/$1"
        "$folder/tests/fuzz_$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
            -artifact_prefix="build/fuzz_$1-" "build/corpus/$1" "tests/fuzz/corpus/$1"
    }
else
    echo "clang has no libFuzzer here; using tests/fuzz/fuzz_main.c"
    $make --no-print-directory -j"${JOBS:-2}" MODE=asan fuzz-programs || exit 1
    run() { build/asan/tests/fuzz_"$1" --seconds "$seconds" --seed "$(date +%s)" --keep "build/fuzz_$1.input" "tests/fuzz/corpus/$1"; }
fi
failed=
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    name=${name#fuzz_}
    [ "$name" = main ] && continue
    echo "== $name, $seconds s"
    run "$name" || failed="$failed $name"
done
[ -z "$failed" ] || { echo "failed:$failed; the inputs are in build/" && exit 1; }
