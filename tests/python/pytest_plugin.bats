# The plugin for pytest over the stand-in for PyTorch. FRAG_TORCH_PYTHON=path of a Python with PyTorch and pytest: real PyTorch tests too.

setup() { cd "$BATS_TEST_DIRNAME/../.."; }

@test "pytest --fraglab: limits, baselines, leaks, outcomes, xdist, the page" {
    make --no-print-directory -s fraglab library software-cuda >/dev/null
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import pytest' 2>/dev/null && break
    done
    "$python" -m pytest -q -p pytester -p no:cacheprovider tests/python/test_pytest_plugin.py
}
