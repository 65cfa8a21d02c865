#!/usr/bin/env bash
# The packages for Debian as people get them: tests/packaging/deb_test.sh FOLDER          (make deb-test)
#
# FOLDER has the packages. In a bare Debian (SUITE, fetched by debootstrap) they are installed with all that
# they need; the tests of packaging/debian/tests run there, by autopkgtest where it is installed; and after
# `apt-get purge` no file of theirs is left. Nothing is mounted there: the second time they run without /proc. ROOT=folder of a bare Debian that is there is copied instead.
# Exits with 77 where debootstrap or the rights for it are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(cd "$1" && pwd)
suite=${SUITE:-bookworm}
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "skipped: needs root and debootstrap"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/fraglab-deb-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
passed=0 failed=0

check() { # name, command...
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "passed  $name" && passed=$((passed + 1))
    else
        echo "failed  $name" && failed=$((failed + 1)) && tail -n 20 "$work/log"
    fi
}
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive "$@"; }

bare() {
    if [ -n "${ROOT:-}" ]; then cp -a "$ROOT" "$root"; else debootstrap --variant=minbase "$suite" "$root"; fi
    cp /etc/resolv.conf "$root/etc/" || true
    inside apt-get -q update
}
install_packages() {
    mkdir "$root/packages"
    cp "$folder"/*.deb "$root/packages/"
    rm -f "$root"/packages/*-dbgsym_*
    inside sh -c 'apt-get -q install -y --no-install-recommends /packages/*.deb'
}
# What a test of the packages depends on beside them is installed for it, as autopkgtest does.
one_test() { # name
    local needs
    needs=$(sed -n "/^Tests: $1\$/,/^\$/s/^Depends: //p" packaging/debian/tests/control | tr -d ,)
    # shellcheck disable=SC2086
    inside apt-get -q install -y --no-install-recommends $needs
    cp "packaging/debian/tests/$1" "$root/packages/"
    inside sh -c "mkdir /tmp/$1 && AUTOPKGTEST_TMP=/tmp/$1 /packages/$1"
}
leaves_nothing() {
    inside apt-get -q purge -y '^(lib|python3-)?fraglab'
    (cd "$root" && find etc usr var -path '*fraglab*' ! -path 'var/cache/*') >"$work/left"
    [ ! -s "$work/left" ] || { echo "apt-get purge left:" && cat "$work/left" && return 1; }
}

check "a bare Debian $suite" bare
if command -v autopkgtest >/dev/null; then
    cp -a "$root" "$work/testbed"
    check "autopkgtest" autopkgtest --quiet "$folder"/*.changes -- chroot "$work/testbed"
    rm -rf "$work/testbed"
fi
check "the packages install" install_packages
for name in $(sed -n 's/^Tests: //p' packaging/debian/tests/control | tr -d ,); do
    check "test $name" one_test "$name"
done
check "apt-get purge leaves nothing" leaves_nothing
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
