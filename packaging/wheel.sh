#!/usr/bin/env bash
# Builds the wheel that runs on any Linux of its architecture with glibc 2.17 (2012) or newer, into build/wheel:
#
#     packaging/wheel.sh [SOURCES]          (make wheel, make wheel SOURCES=folder)
#
# The compiler is the one of the package ziglang, which brings the old glibc's symbols along; every other
# library is linked statically. SOURCES is a folder with the source packages of packaging/libraries.sha256;
# without it they are fetched. Compiler and libraries are kept in build/wheel and built again only when
# what pins them changes.
set -euo pipefail

cd "$(dirname "$0")/.."
work=$PWD/build/wheel
arch=$(uname -m)
[ "$arch" = x86_64 ] || { echo "wheel.sh: this machine is $arch; the wheel is built on x86_64" >&2; exit 1; }
mkdir -p "$work"

zig=$(sh packaging/compiler.sh "$work/compiler")
# Paths of this machine stay out of what is compiled; nothing here is debugged by its symbols. Its linker binds
# all of a library's own names inside, where ours are asked to bind only functions.
cat >"$work/zig-cc.new" <<EOF
#!/bin/sh
ZIG_GLOBAL_CACHE_DIR=$work/zig-cache ZIG_LOCAL_CACHE_DIR=$work/zig-cache
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
for argument; do
    shift
    [ "\$argument" != -Wl,-Bsymbolic-functions ] || argument=-Wl,-Bsymbolic
    set -- "\$@" "\$argument"
done
exec "$zig" cc -target x86_64-linux-gnu.2.17 "\$@" -g0 -Wl,-s -w -ffile-prefix-map=$work/source/= -ffile-prefix-map=$work/= -ffile-prefix-map=$PWD/=
EOF
chmod +x "$work/zig-cc.new"
cmp -s "$work/zig-cc.new" "$work/zig-cc" || mv "$work/zig-cc.new" "$work/zig-cc"

# ---- the libraries
if ! cmp -s packaging/libraries.sha256 "$work/libraries/built.sha256"; then
    sh packaging/libraries.sh "$work/zig-cc" "$work/libraries" "${1:-$work/libraries/sources}"
fi

# ---- fraglab itself, in a copy of the tree, so that ./fraglab stays what it is; without what needs files of
# this machine: MPI, and CUPTI's recorder
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Makefile)}"
export SOURCE_DATE_EPOCH
source=$work/source
mkdir -p "$source"
find "$source" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
if [ -e .git ]; then git ls-files -z -co --exclude-standard; else find . -type f ! -path './build/*' -print0; fi |
    while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
    tar --null -T - -cf - | tar -xf - -C "$source"
rm -rf "$work/tree"
${MAKE:-make} --no-print-directory -s -j"${JOBS:-2}" -C "$source" install SETUP=no CC="$work/zig-cc" BUILD=build/release CUDA=auto CUDA_INCLUDE= \
    CUPTI_LIBRARIES= MPI=no CFLAGS="-isystem $work/libraries/include" LDFLAGS="-L$work/libraries/lib" \
    DESTDIR="$work/tree" PREFIX=/usr/local >"$work/make.log" 2>&1 || { tail -n 30 "$work/make.log" >&2; exit 1; }

# ---- the file
rm -f "$work"/*.whl
wheel=$(python3 packaging/wheel.py --prefix "$work/tree/usr/local" --licences "$work/libraries/licences" \
    --tag py3-none-manylinux_2_17_x86_64 --out "$work")
python3 packaging/check_wheel.py --glibc 2.17 --bytes 12000000 --without "$PWD" "$wheel"
