#!/bin/sh
# What `make test` runs once everything needed is installed. Every step is counted by name as passed,
# failed or skipped; a skip says why, and with FRAG_STRICT=1 it is a failure.
set -u
export LC_ALL=C.UTF-8
make=${MAKE:-make}
export jobs="${JOBS:-2}" logs=build/test-logs
fuzz_seconds=${FRAG_FUZZ_SECONDS:-3}
. tests/house/steps.sh

build() { $make --no-print-directory -j"$jobs" "$@"; }

unit_tests() { # mode
    for source in tests/*/test_*.c; do
        name=$(basename "$source" .c)
        beside "$1-$name" "build/$1/tests/$name"
    done
}

# Random traces through every policy: so many events, the same ones every time.
fuzz_policies() { # mode, events
    beside "$1-policy_fuzzer" "build/$1/tests/policy_fuzzer" --events "$2" --keep "build/$1-policy_fuzzer.trace"
}

all_steps() {
    group "release build"
    step build-release build MODE=release all test-programs || return 1
    group "unit tests, command line, tidiness"
    release_tests() {
        for file in tests/*/*.bats; do
            # Made by hand, as it needs a compiler of its own.
            case $file in tests/viewer/*) [ -f "$viewer" ] || continue ;; esac
            beside "bats-$(basename "$file" .bats)" bats "$file"
        done
        unit_tests release
        fuzz_policies release 4e6
    }
    viewer=build/viewer/fraglab-viewer.html
    side_by_side release_tests
    [ -f "$viewer" ] || skip viewer "not built; make viewer-test builds it and runs its tests"

    group "address and undefined-behaviour sanitizers; fuzzing, $fuzz_seconds s for each reader"
    export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
    asan_tests() {
        unit_tests asan
        fuzz_policies asan 3e5
        for source in tests/fuzz/fuzz_*.c; do
            name=$(basename "$source" .c)
            [ "$name" = fuzz_main ] && continue
            beside "$name" "build/asan/tests/$name" --seconds "$fuzz_seconds" --keep "build/$name.input" "tests/fuzz/corpus/${name#fuzz_}"
        done
    }
    step build-asan build MODE=asan build/asan/fraglab test-programs fuzz-programs && side_by_side asan_tests

    samples=$(ls traces/samples/*.pickle* traces/samples/*.fgt 2>/dev/null | sort -u)
    replay() { # binary, threads
        # shellcheck disable=SC2086
        "$1" run $samples --policy all -j "$2" --format jsonl | sed 's/"tool":{[^{}]*},//'
    }

    group "threads"
    # With many bits of address randomisation the thread sanitizer of older compilers cannot start.
    plain=
    setarch -R true 2>/dev/null && plain="setarch -R"
    library_tests=$(for source in tests/api/test_*.c; do name=${source##*/}; echo "build/tsan/tests/${name%.c}"; done)
    if [ -z "$samples" ]; then
        skip threads "no sample recordings"
    elif step build-tsan build MODE=tsan build/tsan/fraglab build/tsan/tests/test_threads $library_tests; then
        small=$(ls -S $samples | tail -n 1)
        same_for_every_thread_count() {
            replay ./fraglab 1 >build/threads-1.jsonl
            replay ./fraglab 4 >build/threads-4.jsonl
            [ -s build/threads-1.jsonl ] && cmp build/threads-1.jsonl build/threads-4.jsonl
        }
        printf 'traces: %s\npolicies: [best-fit, {policy: pytorch, options: {max_split_size_mb: [64, 128]}}]\ncapacities: [1GiB, 2GiB]\n' \
            "$PWD/$small" >build/tsan-sweep.yaml
        # shellcheck disable=SC2086
        thread_tests() {
            tsan="env TSAN_OPTIONS=halt_on_error=1 $plain build/tsan/fraglab"
            beside tsan-test_threads $plain build/tsan/tests/test_threads
            for program in $library_tests; do beside "tsan-${program##*/}" env TSAN_OPTIONS=halt_on_error=1 $plain "$program"; done
            beside tsan-run $tsan run $samples --policy pytorch,best-fit -j 4 --format jsonl
            beside tsan-min-capacity $tsan min-capacity "$small" --policy pytorch,best-fit,tlsf -j 4
            beside tsan-sweep $tsan sweep build/tsan-sweep.yaml -j 4
            beside same-output-for-every-thread-count same_for_every_thread_count
        }
        side_by_side thread_tests
    fi

    group "the other compiler"
    if ! command -v clang >/dev/null 2>&1; then
        skip gcc-and-clang-agree "clang is not installed"
    else
        step clang-warnings build CC=clang MODE=syntax syntax
    fi
    if command -v clang >/dev/null 2>&1 && step build-clang build CC=clang MODE=release build/release-clang/fraglab; then
        # What is drawn, too, and the order in which strings get their numbers, are not the compiler's to choose.
        for name in plan policy program form sentence; do
            answers=build/release-clang/tests/test_${name}_answers
            step "build-clang-$name" build CC=clang MODE=release "$answers" && step "clang-$name-answers" "$answers"
        done
        step clang-help sh -c './fraglab --help >build/help-gcc; build/release-clang/fraglab --help | cmp - build/help-gcc'
        if [ -z "$samples" ]; then
            skip gcc-and-clang-agree "no sample recordings"
        else
            compilers_agree() {
                replay ./fraglab 2 >build/with-gcc.jsonl
                replay build/release-clang/fraglab 2 >build/with-clang.jsonl
                [ -s build/with-gcc.jsonl ] && cmp build/with-gcc.jsonl build/with-clang.jsonl
            }
            step gcc-and-clang-agree compilers_agree
        fi
    fi
}

run_steps all_steps
