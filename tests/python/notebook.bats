# What notebooks show, and their magics, with a stand-in for IPython's shell, and with IPython itself where it is installed.

setup() { cd "$BATS_TEST_DIRNAME/../.."; }

@test "notebook: pages hold tables and pictures and nothing that runs; magics run commands and record cells" {
    make --no-print-directory -s fraglab library software-cuda >/dev/null
    python3 tests/python/test_notebook.py
}
