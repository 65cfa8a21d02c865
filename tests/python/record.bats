# fraglab.record over the stand-in for PyTorch; `make dryrun-test` runs it with PyTorch itself (tests/dryrun/programs/recording*.py).

setup() { cd "$BATS_TEST_DIRNAME/../.."; }

@test "record: phases, steps, out of memory and callbacks over the software CUDA; importing takes under 50 ms" {
    make --no-print-directory -s fraglab library software-cuda >/dev/null
    python3 tests/python/test_record.py
}
