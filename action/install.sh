#!/usr/bin/env bash
# Installs the wheel for a runner: `install.sh version` says which and where, `install.sh install` puts it there and into PATH.
set -eu

fail() {
    echo "::error title=fraglab::$1"
    exit 2
}

here=$(cd "$(dirname "$0")/.." && pwd)

say_version() {
    version=${FRAGLAB_VERSION:-$(sed -n 's/^VERSION = //p' "$here/Makefile")}
    case $version in
        '' | *[!0-9A-Za-z.+]*) fail "version: '$version' is no version; write one like 0.1.0" ;;
    esac
    echo "version=$version" >>"$GITHUB_OUTPUT"
    echo "folder=${RUNNER_TEMP:?}/fraglab-$version" >>"$GITHUB_OUTPUT"
}

# A cached environment of another Python does not start; then it is made anew.
is_there() {
    [ -z "${FRAGLAB_WHEEL:-}" ] && [ "$("$FRAGLAB_FOLDER/bin/fraglab" --version 2>/dev/null | awk 'NR == 1 { print $2 }')" = "$FRAGLAB_VERSION" ]
}

install() {
    if ! is_there; then
        python3 -m venv --clear "$FRAGLAB_FOLDER" ||
            fail "python3 makes no virtual environment; install the package python3-venv"
        "$FRAGLAB_FOLDER/bin/python" -m pip install --quiet --disable-pip-version-check "${FRAGLAB_WHEEL:-fraglab==$FRAGLAB_VERSION}" ||
            fail "${FRAGLAB_WHEEL:-fraglab $FRAGLAB_VERSION} cannot be installed; give the input wheel a path or an address, or build it with make wheel"
    fi
    "$FRAGLAB_FOLDER/bin/fraglab" --version
    echo "$FRAGLAB_FOLDER/bin" >>"$GITHUB_PATH"
}

case ${1:-} in
    version) say_version ;;
    install) install ;;
    *) fail "'${1:-}' is unknown; expected version or install" ;;
esac
