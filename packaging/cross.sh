#!/usr/bin/env bash
# Builds the program for another system, with the compiler of the wheel and the libraries linked statically:
#
#     packaging/cross.sh TARGET [SOURCES]
#
# TARGET is as zig names it: aarch64-macos (make macos-proof). The result is
# build/cross/TARGET/fraglab, without the modules that drive or stand in for a GPU. SOURCES is a folder with
# the source packages of packaging/libraries.sha256; without it they are fetched.
set -euo pipefail

cd "$(dirname "$0")/.."
target=$1
work=$PWD/build/cross/$target
mkdir -p "$work"
zig=$(sh packaging/compiler.sh "$PWD/build/wheel/compiler")

# Warnings of the ordinary build are errors there; here they are printed.
for name in cc ar; do
    arguments=$([ $name = ar ] || echo "-target $target")
    cat >"$work/zig-$name" <<EOF
#!/bin/sh
ZIG_GLOBAL_CACHE_DIR=$work/zig-cache ZIG_LOCAL_CACHE_DIR=$work/zig-cache
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
exec "$zig" $name $arguments "\$@"
EOF
    chmod +x "$work/zig-$name"
done

if ! cmp -s packaging/libraries.sha256 "$work/libraries/built.sha256"; then
    AR="$work/zig-ar" sh packaging/libraries.sh "$work/zig-cc" "$work/libraries" "${2:-$PWD/build/wheel/sources}"
fi
${MAKE:-make} --no-print-directory -s -j"${JOBS:-2}" SETUP=no CC="$work/zig-cc" AR="$work/zig-ar" BUILD="build/cross/$target/objects" CUDA=no MPI=no \
    CFLAGS="-g0 -Wno-error -isystem $work/libraries/include" LDFLAGS="-L$work/libraries/lib" "build/cross/$target/objects/fraglab"
cp "$work/objects/fraglab" "$work/fraglab"
file "$work/fraglab" 2>/dev/null || ls -l "$work/fraglab"
