#!/usr/bin/env bash
# Builds the viewer into build/viewer/fraglab-viewer.html, one page with everything in it:
#
#     viewer/build.sh [SOURCES]          (make viewer, make viewer SOURCES=folder)
#
# The compiler is the one of `make wheel`, here for WebAssembly; the libraries are those of
# packaging/libraries.sha256 but SQLite. SOURCES is a folder with their source packages; without it they are
# fetched. Compiler and libraries are kept and built again only when what pins them changes.
set -euo pipefail

cd "$(dirname "$0")/.."
work=$PWD/build/viewer
mkdir -p "$work"
zig=$(sh packaging/compiler.sh "$PWD/build/wheel/compiler")

# Nothing is loaded at run time: no position-independent code. Warnings are those of the ordinary build.
cat >"$work/zig-cc.new" <<EOF
#!/bin/sh
ZIG_GLOBAL_CACHE_DIR=$work/zig-cache ZIG_LOCAL_CACHE_DIR=$work/zig-cache
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
for argument; do
    shift
    [ "\$argument" = -fPIC ] || set -- "\$@" "\$argument"
done
exec "$zig" cc -target wasm32-wasi "\$@" -g0 -w -ffile-prefix-map=$PWD/=
EOF
chmod +x "$work/zig-cc.new"
cmp -s "$work/zig-cc.new" "$work/zig-cc" || mv "$work/zig-cc.new" "$work/zig-cc"

if ! cmp -s packaging/libraries.sha256 "$work/libraries/built.sha256"; then
    sh packaging/libraries.sh "$work/zig-cc" "$work/libraries" "${1:-$PWD/build/wheel/sources}" sqlite3
fi

# Deep recursion is rare, but a stack of 1 MiB is what the code is used to; memory may grow to all that 32 bits reach.
${MAKE:-make} --no-print-directory -s -j"${JOBS:-2}" SETUP=no CC="$work/zig-cc" BUILD=build/viewer/objects CUDA=no MPI=no PIC= \
    CFLAGS="-D_GNU_SOURCE -Iviewer/wasi -include viewer/wasi/missing.h -isystem $work/libraries/include" \
    LDFLAGS="-L$work/libraries/lib -mexec-model=reactor -Wl,--max-memory=4294901760 -Wl,-z,stack-size=8388608 -Wl,-s" \
    build/viewer/objects/viewer.wasm

python3 viewer/page/assemble.py build/viewer/objects build/viewer/fraglab-viewer.html
