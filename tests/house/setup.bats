# Getting what is needed, and installing, without touching this machine.

# A PATH with the plainest tools, as on a bare system, and an apt-get that notes what it is asked.
setup() {
    BARE=$BATS_TEST_TMPDIR/bare
    mkdir -p "$BARE"
    for tool in sh env id sed echo cat ls; do
        ln -s "$(command -v "$tool")" "$BARE/$tool"
    done
}

note_apt() {
    printf '#!/bin/sh\necho "$*" >>"%s/asked"\nexit %s\n' "$BATS_TEST_TMPDIR" "$1" >"$BARE/apt-get"
    chmod +x "$BARE/apt-get"
}

@test "nothing is asked for when everything is there" {
    run sh setup.sh build
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "missing packages are named and installed" {
    [ "$(id -u)" = 0 ] || skip "not root"
    note_apt 0
    run env PATH="$BARE" sh setup.sh build
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"required to build:"*" gcc"*"apt-get"* ]]
    grep -q -- "install -y --no-install-recommends .*gcc" "$BATS_TEST_TMPDIR/asked"
}

@test "lists that are out of date are refreshed once, and failure tells the command" {
    [ "$(id -u)" = 0 ] || skip "not root"
    note_apt 100
    run env PATH="$BARE" sh setup.sh build
    echo "$output"
    [ "$status" -eq 1 ]
    grep -q "^update" "$BATS_TEST_TMPDIR/asked"
    [[ "$output" == *"apt-get install -y --no-install-recommends"*"gcc"* ]]
}

@test "without apt-get the exact command is printed and nothing is built" {
    run env PATH="$BARE" sh setup.sh build
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"apt-get install -y --no-install-recommends"*"gcc"* ]]
}

@test "a bats that is too old for the tests is told, and only for them" {
    printf '#!/bin/sh\necho "Bats $VERSION_OF_BATS"\n' >"$BARE/bats"
    chmod +x "$BARE/bats"
    for version in 0.4.0 1.2.1 1.4; do
        run env VERSION_OF_BATS=$version PATH="$BARE:$PATH" sh setup.sh test
        [ "$status" -eq 1 ]
        [[ "$output" == *"need bats 1.5 or newer, and $version is here"* ]]
        VERSION_OF_BATS=$version PATH="$BARE:$PATH" sh setup.sh build
    done
    for version in 1.5.0 1.10.0 1.11.1 2.0; do
        VERSION_OF_BATS=$version PATH="$BARE:$PATH" sh setup.sh test
    done
}

@test "packages that only some tests use are named with their use, and installed only when asked for" {
    [ "$(id -u)" = 0 ] || skip "not root"
    note_apt 0
    for tool in gcc ar bats python3 zstd gnuplot pkg-config; do ln -s /bin/true "$BARE/$tool"; done
    # `make test WITH=all` passes WITH on to this test.
    run env PATH="$BARE" WITH= sh setup.sh test
    echo "$output"
    [[ "$output" == *"chromium: the report page in a browser"*"make test WITH=all installs them"* ]]
    touch "$BATS_TEST_TMPDIR/asked"
    ! grep -q "chromium\|openmpi\|clang" "$BATS_TEST_TMPDIR/asked" || false
    run env PATH="$BARE" WITH=clang sh setup.sh test
    grep -q "clang" "$BATS_TEST_TMPDIR/asked"
    ! grep -q "chromium\|openmpi" "$BATS_TEST_TMPDIR/asked" || false
    run env PATH="$BARE" WITH=all sh setup.sh test
    echo "$output"
    grep -q "clang chromium openmpi-bin libopenmpi-dev" "$BATS_TEST_TMPDIR/asked"
}

@test "what needs no test library installs none: the dry run asks for what the build needs" {
    [ "$(id -u)" = 0 ] || skip "not root"
    make -n torch-dryrun | grep -q "setup.sh build"
    ! make -n torch-dryrun | grep -q "setup.sh test" || false
    note_apt 0
    run env PATH="$BARE" sh setup.sh demo
    [[ "$output" == *"gnuplot-nox"* ]]
    ! grep -q "chromium\|openmpi\|clang\|bats\|cmocka" "$BATS_TEST_TMPDIR/asked" || false
}

@test "an unknown purpose is refused" {
    run sh setup.sh dinner
    [ "$status" -eq 2 ]
}

@test "install puts everything below DESTDIR and uninstall takes it away" {
    ROOT=$BATS_TEST_TMPDIR/root
    make --no-print-directory -s DESTDIR="$ROOT" install >/dev/null
    "$ROOT/usr/local/bin/fraglab" --version
    [ -s "$ROOT/usr/local/share/man/man1/fraglab.1" ]
    bash -n "$ROOT/usr/local/share/bash-completion/completions/fraglab"
    [ -s "$ROOT/usr/local/share/zsh/site-functions/_fraglab" ]
    [ -s "$ROOT/usr/local/share/fish/vendor_completions.d/fraglab.fish" ]
    doc=$ROOT/usr/local/share/doc/fraglab
    [ -s "$doc/LICENSE" ]
    cmp README.md "$doc/README.md"
    # Whatever the pages link to among themselves is there.
    for page in README.md docs/README.md docs/plots.md docs/scenarios.md; do
        grep -o '](\(docs/\)\?[a-z][a-z/.-]*)' "$page" | tr -d '()]' | while read -r link; do
            [ -e "$doc/$(dirname "$page")/$link" ] || [ ! -e "docs/${link#docs/}" ]
        done
    done
    make --no-print-directory -s DESTDIR="$ROOT" uninstall >/dev/null
    [ -z "$(find "$ROOT" -type f)" ]
}

@test "a policy can be compiled against the installed headers alone" {
    ROOT=$BATS_TEST_TMPDIR/root
    make --no-print-directory -s DESTDIR="$ROOT" install >/dev/null
    printf '#include "sim/policy.h"\nextern const frag_policy_ops mine;\nconst frag_policy_ops mine = {.name = "mine"};\n' \
        >"$BATS_TEST_TMPDIR/mine.c"
    cd "$BATS_TEST_TMPDIR"
    gcc -std=c11 -Wall -Werror -fPIC -shared -I "$ROOT/usr/local/include/fraglab" -o mine.so mine.c
}

@test "the template is built against the installed headers, and replays" {
    ROOT=$BATS_TEST_TMPDIR/root
    make --no-print-directory -s DESTDIR="$ROOT" install >/dev/null
    cp "$ROOT"/usr/local/share/fraglab/examples/* "$BATS_TEST_TMPDIR"
    mv "$BATS_TEST_TMPDIR/my_policy.c" "$BATS_TEST_TMPDIR/mine.c"
    printf '# fraglab trace 1\nalloc 0 1000\nfree 0\n' >"$BATS_TEST_TMPDIR/t.trace"
    [ "$(grep '^PREFIX' "$BATS_TEST_TMPDIR/Makefile")" = "PREFIX ?= /usr/local" ]
    make -s -C "$BATS_TEST_TMPDIR" try POLICY=mine TRACE=t.trace PREFIX="$ROOT/usr/local" \
        FRAGLAB="$ROOT/usr/local/bin/fraglab" >"$BATS_TEST_TMPDIR/out"
    grep -q '^./mine.so *2.00 MiB' "$BATS_TEST_TMPDIR/out"
}

# A copy of the tree without its repository, with what is built already.
copy_tree() {
    TREE=$BATS_TEST_TMPDIR/tree
    mkdir -p "$TREE"
    git ls-files -z | tar --null -T - -c | tar -x -C "$TREE"
    mkdir -p "$TREE/build"
    cp -a build/release "$TREE/build/"
}

@test "a tarball knows the commit and its date, and so does its man page" {
    copy_tree
    printf 'commit 0123abc4567d\ndate 2026-01-31\n' >"$TREE/VERSION.commit"
    make -C "$TREE" --no-print-directory -s MPI=no fraglab >/dev/null
    "$TREE/fraglab" --version | grep -q '^fraglab [0-9.]* (0123abc4567d)$'
    "$TREE/fraglab" help --man | head -n 1 | grep -q '"2026-01-31"'
    # git archive fills the file in.
    grep -q '^VERSION.commit export-subst' .gitattributes
    grep -qxF 'commit $Format:%h$' VERSION.commit
}

@test "a library of MPI that comes after the program is taken by the next make, and installed" {
    pkg-config --exists ompi-c || pkg-config --exists mpich || skip "no MPI"
    copy_tree
    rm -f "$TREE/build/release/fraglab_mpi.so" "$TREE/fraglab_mpi.so"
    make -C "$TREE" --no-print-directory -s MPI=no >/dev/null
    make -C "$TREE" --no-print-directory -s DESTDIR="$BATS_TEST_TMPDIR/root" install >/dev/null
    [ -x "$BATS_TEST_TMPDIR/root/usr/local/lib/fraglab/fraglab_mpi.so" ]
}
