# The package for Python over the library of the tree. `make wheel-test` tries the installed one.

setup() { cd "$BATS_TEST_DIRNAME/../.."; }

@test "python: figures are the command's; wrong arguments from eight threads only raise; Ctrl-C ends a call" {
    make --no-print-directory -s fraglab library >/dev/null
    python3 tests/python/test_api.py
}

@test "python: a policy written in Python does what the same one in C does; its mistakes end the run with a sentence" {
    make --no-print-directory -s fraglab library >/dev/null
    python3 tests/python/test_policy.py
}
