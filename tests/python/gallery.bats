# The notebooks of examples/notebooks run, and check their own answers.

setup() { cd "$BATS_TEST_DIRNAME/../.."; }

@test "notebooks: six problems solved end to end" {
    make --no-print-directory -s fraglab library >/dev/null
    python3 tests/python/test_gallery.py
}
