#!/bin/sh
# Finds out which packages fraglab needs and gets what is missing: setup.sh build|test|demo|fuzz
# What is looked for is the tool or the header itself, so any distribution that has them will do;
# only getting them is for Debian and Ubuntu.
set -u

purpose=${1:-build}
missing=

want_command() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
want_header() {
    for folder in /usr/include /usr/local/include /usr/include/*-linux-gnu*; do
        [ -e "$folder/$1" ] && return
    done
    missing="$missing $2"
}

case "${CC:-gcc}" in
*clang*) want_command "${CC%% *}" clang ;;
*) want_command gcc gcc ;;
esac
want_command ar binutils
want_header stdio.h libc6-dev
want_header zstd.h libzstd-dev
want_header zlib.h zlib1g-dev
want_header xxhash.h libxxhash-dev
want_header jansson.h libjansson-dev
want_header yaml.h libyaml-dev
want_header sqlite3.h libsqlite3-dev

# Tests do without these, and then say what they skipped.
optional=
case $purpose in
build) ;;
test)
    want_header cmocka.h libcmocka-dev
    want_command bats bats
    want_command python3 python3
    needed=$missing
    missing=
    want_command gnuplot gnuplot-nox
    want_command clang clang
    # Any of these opens the pages of fraglab report.
    command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
        want_command chromium chromium
    want_command mpirun openmpi-bin
    want_command pkg-config pkg-config
    want_command mpicc libopenmpi-dev
    optional=$missing
    missing=$needed
    ;;
demo) want_command gnuplot gnuplot-nox ;;
fuzz) want_command clang clang ;;
*)
    echo "setup.sh: unknown purpose '$purpose'; expected build, test, demo or fuzz" >&2
    exit 2
    ;;
esac

# The bats of Ubuntu 22.04 lacks what the tests say in it; every test would fail, and none say why.
finish() {
    [ "$purpose" = test ] || exit 0
    version=$(bats --version 2>/dev/null | sed 's/^[^0-9]*//')
    case $version in
    0.* | 1.[0-4] | 1.[0-4].*)
        echo "the tests need bats 1.5 or newer, and $version is here; get it from https://github.com/bats-core/bats-core" >&2
        exit 1
        ;;
    esac
    exit 0
}

[ -z "$missing$optional" ] && finish

install="apt-get install -y --no-install-recommends"
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo

run_apt() {
    export DEBIAN_FRONTEND=noninteractive
    options="-q -o DPkg::Lock::Timeout=120"
    keep="DEBIAN_FRONTEND=noninteractive"
    # Lists may be absent or too old to name a package that can still be had: refresh them once.
    # shellcheck disable=SC2086
    $as_root env $keep $install $options $1 ||
        { $as_root env $keep apt-get update $options && $as_root env $keep $install $options $1; }
}

can_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ -z "$as_root" ] && return 0
    command -v sudo >/dev/null 2>&1 || return 1
    [ -t 0 ] || sudo -n true 2>/dev/null
}

if [ -n "$missing" ]; then
    if ! can_install; then
        echo "fraglab needs packages that are not here, and they cannot be installed from this account; run" >&2
        echo "    $as_root $install$missing" | sed 's/^     /    /' >&2
        echo "(Debian and Ubuntu names; other systems have them under similar ones)" >&2
        exit 1
    fi
    echo "fraglab needs these packages to $purpose:$missing; installing them with $as_root apt-get" >&2
    if ! run_apt "$missing"; then
        echo "apt-get failed; what is needed is" >&2
        echo "    $as_root $install$missing" | sed 's/^     /    /' >&2
        exit 1
    fi
fi

if [ -n "$optional" ] && can_install; then
    echo "some tests also use:$optional; installing with $as_root apt-get" >&2
    # One by one: what one system lacks must not keep the others away.
    for package in $optional; do
        run_apt "$package" || echo "not available: $package; the tests that use it will be skipped" >&2
    done
fi
finish
