# make gpu-report, over the software CUDA: the report is whole, agrees, and touches no page; and what it
# would do with the figures of a real card.

SOFTWARE=build/release/software-cuda

setup() {
    export DOCS=$BATS_TEST_TMPDIR/page.md DEVICES=$BATS_TEST_TMPDIR
    cp docs/real-device.md "$DOCS"
    OUT=$BATS_TEST_TMPDIR/out
}

@test "without a GPU it says so, exits 4 and writes nothing" {
    nvidia-smi >/dev/null 2>&1 && skip "this machine has a GPU"
    run bash gpu_replay/report.sh "$OUT"
    [ "$status" -eq 4 ]
    grep -q "^gpu-report: the card cannot be measured: fraglab: " <<<"$output"
    [ ! -e "$OUT/report.md" ]
    diff docs/real-device.md "$DOCS"
}

@test "over the software CUDA the report is whole and simulated and real agree" {
    make --no-print-directory -s MODE=release software-cuda >/dev/null
    RECORDINGS=traces/samples/pr193400.pickle.zst POLICIES="pytorch direct" LD_LIBRARY_PATH=$SOFTWARE/13 \
        FRAGLAB_SOFTWARE_CUDA=capacity=8GiB,context=300MiB bash gpu_replay/report.sh "$OUT" 2>"$BATS_TEST_TMPDIR/err"
    cat "$BATS_TEST_TMPDIR/err" "$OUT/report.md"
    for part in "The card" "Latencies" "Simulated against real" "Call by call" "In a running PyTorch" "The recorder"; do
        grep -qx "## $part" "$OUT/report.md"
    done
    grep -q '^| `total` | 8GiB |$' "$OUT/report.md"
    grep -qE '^\| malloc \| 2MiB \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \| [0-9]+ \|$' "$OUT/report.md"
    # Three capacities, two policies; at the smallest nothing fits.
    [ "$(grep -c '^| pr193400 |' "$OUT/report.md")" -eq 6 ]
    grep -qx "The same in calls of every kind, peak and OOM event: 6 of 6." "$OUT/report.md"
    grep -qE '^\| pr193400 \| 360.00 \| direct \| 360.00 \| 360.00 \| 0.00 \| ([0-9]+) \| \1 \| 409 \| 409 \| [0-9.]+ \| [0-9.]+ \|$' "$OUT/report.md"
    grep -q "^pr193400.pickle.zst direct on Software GPU: identical: 301 requests" "$OUT/report.md"
    grep -q "software CUDA: $DOCS stays as it is" "$BATS_TEST_TMPDIR/err"
    diff docs/real-device.md "$DOCS"
}

@test "figures of a real card go into the page and among the descriptions, again and again" {
    mkdir -p "$OUT"
    sed 's/^name: .*/name: NVIDIA GeForce RTX 4090/' tests/data/device/everything.yaml >"$OUT/card.yaml"
    echo "first" >"$OUT/report.md"
    bash gpu_replay/report.sh publish "$OUT"
    printf 'second\nline\n' >"$OUT/report.md"
    bash gpu_replay/report.sh publish "$OUT"
    diff "$OUT/card.yaml" "$DEVICES/rtx4090.yaml"
    sed -n '/gpu-report: begin/,/gpu-report: end/p' "$DOCS" >"$BATS_TEST_TMPDIR/part"
    printf '<!-- gpu-report: begin -->\nsecond\nline\n<!-- gpu-report: end -->\n' | diff - "$BATS_TEST_TMPDIR/part"
    diff <(sed '/gpu-report: begin/,$d' docs/real-device.md) <(sed '/gpu-report: begin/,$d' "$DOCS")
}
