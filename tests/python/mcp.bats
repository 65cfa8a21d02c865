# fraglab mcp: what agents and editors may ask, and what they may not.

setup() { cd "$BATS_TEST_DIRNAME/../.."; }

@test "mcp: tools answer as the package does; nothing outside the folders is read; hostile lines get an answer" {
    make --no-print-directory -s fraglab library >/dev/null
    python3 tests/python/test_mcp.py
}

@test "mcp: every page that llms.txt names is there, and docs/mcp.md names every tool" {
    grep -o '](\(docs/\)\?[A-Za-z-]*\.md)' llms.txt | tr -d '])(' | while read -r page; do [ -f "$page" ] || { echo "$page"; exit 1; }; done
    for tool in $(PYTHONPATH=python python3 -c 'from fraglab import mcp; print(*mcp.Tools(mcp.Folders(["."])).all)'); do
        grep -q "^| \`$tool\` |" docs/mcp.md || { echo "$tool"; return 1; }
    done
}
