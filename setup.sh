#!/bin/sh
# Finds out which packages fraglab needs and installs what is missing:
#
#     setup.sh build|harness|test|demo|fuzz
#
# build: the program; harness: test programs in C; test: everything `make test` cannot do without; demo:
# the plots; fuzz: libFuzzer. Packages that only some tests use are installed when WITH asks for them:
# WITH=all, or their names as in WITH="chromium clang". Else they are listed, and those tests skipped.
# What is looked for is the tool or the header itself, so any distribution that has them will do;
# only installing them is for Debian and Ubuntu.
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

# Optional packages that are missing, and for each a line that says what its absence means.
optional=
reasons=
want_optional() { # found?, package, what is skipped without it
    [ "$1" = 0 ] && return
    optional="$optional $2"
    reasons="$reasons
    $2: $3"
}
has_command() {
    command -v "$1" >/dev/null 2>&1
    echo $?
}
has_browser() { # any of these opens the pages of fraglab report
    for browser in chromium chromium-browser google-chrome; do
        [ "$(has_command "$browser")" = 0 ] && echo 0 && return
    done
    echo 1
}
has_mpi() {
    for tool in mpirun mpicc; do
        [ "$(has_command "$tool")" = 0 ] || { echo 1 && return; }
    done
    echo 0
}

case $purpose in
build) ;;
harness) want_header cmocka.h libcmocka-dev ;;
test)
    want_header cmocka.h libcmocka-dev
    want_command bats bats
    want_command python3 python3
    want_command zstd zstd
    want_command gnuplot gnuplot-nox
    want_command pkg-config pkg-config
    python3 -c 'import pytest, xdist' 2>/dev/null || /usr/bin/python3 -c 'import pytest, xdist' 2>/dev/null ||
        missing="$missing python3-pytest python3-pytest-xdist"
    want_optional "$(has_command clang)" clang "whether gcc and clang give the same rows"
    want_optional "$(has_browser)" chromium "the report page in a browser (tests/report/report.bats)"
    want_optional "$(has_mpi)" "openmpi-bin libopenmpi-dev" "sweeps over MPI (tests/studies/sweep.bats)"
    ;;
demo) want_command gnuplot gnuplot-nox ;;
fuzz)
    want_header cmocka.h libcmocka-dev
    want_command clang clang
    ;;
*)
    echo "setup.sh: unknown purpose '$purpose'; expected build, harness, test, demo or fuzz" >&2
    exit 2
    ;;
esac

# Which optional packages are to be installed: all, or those that WITH names.
wanted=
for package in $optional; do
    case " ${WITH:-} " in
    *" all "* | *" $package "*) wanted="$wanted $package" ;;
    esac
done
if [ -n "$optional" ] && [ "$wanted" != "$optional" ]; then
    echo "optional packages that are not installed, and what is skipped without them:$reasons" >&2
    echo "make test WITH=all installs them; or name some, as in make test WITH=chromium" >&2
fi

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

[ -z "$missing$wanted" ] && finish

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

# FRAG_SETUP_INSTALL=no: only say what is missing, as pip does when it builds.
can_install() {
    [ "${FRAG_SETUP_INSTALL:-yes}" = yes ] || return 1
    command -v apt-get >/dev/null 2>&1 || return 1
    [ -z "$as_root" ] && return 0
    command -v sudo >/dev/null 2>&1 || return 1
    [ -t 0 ] || sudo -n true 2>/dev/null
}

case $purpose in
build) why="to build" ;;
demo) why="to build and to draw" ;;
fuzz) why="for libFuzzer" ;;
*) why="to build and for tests" ;;
esac
if [ -n "$missing" ]; then
    if ! can_install; then
        echo "fraglab needs packages that are not installed, and they cannot be installed from here; run" >&2
        echo "    $as_root $install$missing" | sed 's/^     /    /' >&2
        echo "(Debian and Ubuntu names; other systems have them under similar ones)" >&2
        exit 1
    fi
    echo "required $why:$missing; installing with ${as_root:+$as_root }apt-get" >&2
    if ! run_apt "$missing"; then
        echo "apt-get failed; what is needed is" >&2
        echo "    $as_root $install$missing" | sed 's/^     /    /' >&2
        exit 1
    fi
fi

if [ -n "$wanted" ]; then
    if can_install; then
        echo "optional, asked for with WITH=$WITH:$wanted; installing with ${as_root:+$as_root }apt-get" >&2
        # What one system lacks must not keep the others away: then one by one.
        run_apt "$wanted" || for package in $wanted; do
            run_apt "$package" || echo "not available: $package; the tests that use it will be skipped" >&2
        done
    else
        echo "this account cannot install packages; for the optional ones run" >&2
        echo "    $as_root $install$wanted" | sed 's/^     /    /' >&2
    fi
fi
finish
