#!/bin/sh
# Installs the compiler that packaging/compiler.txt pins by its checksum, and prints the path of its program:
#
#     packaging/compiler.sh FOLDER
#
# What is in FOLDER already is kept until the pin changes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=$1
if ! cmp -s "$here/compiler.txt" "$folder/pinned"; then
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    python3 -m venv "$folder"
    "$folder/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r "$here/compiler.txt"
    cp "$here/compiler.txt" "$folder/pinned"
fi
echo "$folder"/lib/python3*/site-packages/ziglang/zig
