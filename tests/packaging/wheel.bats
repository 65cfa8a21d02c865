# The wheel and the source distribution: how they are written and checked. `make wheel-test` installs the real one.

@test "the wheel: same bytes twice, only what it needs, installed and taken away by pip" {
    cd "$BATS_TEST_DIRNAME/../.."
    python3 tests/packaging/test_wheel.py
}
