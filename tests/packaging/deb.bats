# The files of packaging/debian agree with the tree, and so with each other. `make deb` builds the packages; `make deb-test` installs them.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    control=packaging/debian
}

# The names of the packages of debian/control.
packages() { sed -n 's/^Package: //p' "${1:-$control}/control"; }

@test "the version of the package is that of the tree" {
    version=$(sed -n 's/^VERSION = //p' Makefile)
    first=$(sed -n '1s/^fraglab (\([^)]*\)-[0-9]*) .*/\1/p' $control/changelog)
    [ "$first" = "$version" ] || { echo "debian/changelog says '$first', the Makefile '$version'"; return 1; }
}

@test "the text of the licence is that of the tree" {
    sed -n '/^ Permission/,$s/^ \.\{0,1\}//p' $control/copyright >"$BATS_TEST_TMPDIR/packaged"
    diff "$BATS_TEST_TMPDIR/packaged" <(sed -n '/^Permission/,$p' LICENSE)
}

# Which package takes a path that `make install` or debian/rules writes: prints its name, or nothing.
taken_by() { # path, folder of control
    for package in $(packages "$2"); do
        for entry in $(awk '{ print $1 }' "$2/$package.install"); do
            # shellcheck disable=SC2053 # a pattern
            [[ $1 == $entry || $1 == $entry/* ]] && echo "$package"
        done
    done
}
# Paths of the tree below PREFIX=/usr that are installed, without building: what make would do.
installed() {
    make -n install SETUP=no MPI=no CUDA_INCLUDE= CUPTI_LIBRARIES= BUILD=build/release PREFIX=/usr LIB=lib/x86_64-linux-gnu DESTDIR=/D 2>/dev/null |
        grep -o '/D/usr/[^" ]*' | sed 's|^/D/||; s|/$||' | sort -u | grep -vE '^usr/(share/fraglab|lib/x86_64-linux-gnu|share/doc/fraglab/LICENSE|share/doc/fraglab/CHANGELOG.md|include/fraglab/(sim|base))$' || true
}

# Every path that is installed is in just one package; prints those that are not.
untaken() { # folder of control
    for path in $(installed); do
        [ "$(taken_by "$path" "$1" | sort -u | wc -l)" = 1 ] || echo "$path is in '$(taken_by "$path" "$1" | xargs)'"
    done
}

@test "every installed file is in one package, and a list that lacks one is noticed" {
    [ "$(installed | wc -l)" -gt 20 ]
    run untaken $control
    [ -z "$output" ] || { echo "$output"; return 1; }
    cp -r $control "$BATS_TEST_TMPDIR/lacks"
    sed -i '/schemas/d' "$BATS_TEST_TMPDIR/lacks/fraglab-data.install"
    run untaken "$BATS_TEST_TMPDIR/lacks"
    [[ $output == *usr/share/fraglab/schemas* ]]
}

@test "every list of files and every test of the package is of one that control names" {
    for file in $control/*.install; do
        packages | grep -qx "$(basename "$file" .install)" || { echo "$file is of no package"; return 1; }
    done
    for name in $(sed -n 's/^Tests: //p' $control/tests/control); do
        [ -x "$control/tests/$name" ] || { echo "tests/$name is not there or may not be run"; return 1; }
        sh -n "$control/tests/$name"
    done
}

@test "the tests of the packages that need nothing installed pass on this build" {
    [ -x ./fraglab ] || skip "./fraglab is not built"
    mkdir -p "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/run"
    ln -s "$PWD/fraglab" "$BATS_TEST_TMPDIR/bin/fraglab"
    sed "s|/usr/share/fraglab/samples|$PWD/traces/samples|" $control/tests/explain >"$BATS_TEST_TMPDIR/explain"
    PATH="$BATS_TEST_TMPDIR/bin:$PATH" AUTOPKGTEST_TMP="$BATS_TEST_TMPDIR/run" sh "$BATS_TEST_TMPDIR/explain"
}

@test "lintian finds nothing in the source package" {
    for tool in dpkg-source lintian dh; do
        command -v $tool >/dev/null || skip "$tool is not installed"
    done
    version=$(sed -n 's/^VERSION = //p' Makefile)
    cd "$BATS_TEST_TMPDIR"
    mkdir -p "fraglab-$version"
    cp -r "$OLDPWD/packaging" "fraglab-$version/"
    tar -czf "fraglab_$version.orig.tar.gz" "fraglab-$version"
    cp -r "fraglab-$version/packaging/debian" "fraglab-$version/debian"
    dpkg-source -b "fraglab-$version"
    lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs ./*.dsc
}
