# The JSON Schemas of schemas/ against what the commands print.

setup() { cd "$BATS_TEST_DIRNAME/../.."; }

@test "schemas: they are what the tables of the docs say, and rows of every sample are valid" {
    make --no-print-directory -s fraglab software-cuda >/dev/null
    python3 tests/python/test_schemas.py
}

@test "schemas: they are installed" {
    make --no-print-directory -s -n install DESTDIR="$BATS_TEST_TMPDIR/root" | grep -q 'schemas/verify.json'
}
