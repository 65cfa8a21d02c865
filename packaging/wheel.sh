#!/usr/bin/env bash
# Builds the wheel that runs on any Linux of its architecture with glibc 2.17 (2012) or newer, into build/wheel:
#
#     packaging/wheel.sh [SOURCES [TARGET]]     (make wheel, make wheel SOURCES=folder, make wheel TARGET=aarch64-linux-musl)
#
# TARGET is as zig names it: x86_64 or aarch64 with -linux-gnu.2.17, or with -linux-musl for musl 1.2; without one glibc and
# this machine's architecture. The compiler is the one of the package ziglang, which brings
# the old glibc's symbols along; every other library is linked statically. SOURCES is a folder with the source packages of
# packaging/libraries.sha256; without it they are fetched. Compiler and libraries are kept in build/wheel and
# built again only when what pins them changes.
set -euo pipefail

cd "$(dirname "$0")/.."
target=${2:-$(uname -m)-linux-gnu.2.17}
arch=${target%%-*}
case $target in
x86_64-linux-gnu.2.17 | aarch64-linux-gnu.2.17) tag=py3-none-manylinux_2_17_$arch limits=(--glibc 2.17) ;;
x86_64-linux-musl | aarch64-linux-musl) tag=py3-none-musllinux_1_2_$arch limits=(--musl) ;;
*) echo "wheel.sh: no wheel is built for '$target'; expected x86_64 or aarch64 with -linux-gnu.2.17 or -linux-musl" >&2; exit 1 ;;
esac
out=$PWD/build/wheel
work=$out/$target
mkdir -p "$work"

zig=$(sh packaging/compiler.sh "$out/compiler")
# Paths of this machine stay out of what is compiled; nothing here is debugged by its symbols. Its linker binds
# all of a library's own names inside, where ours are asked to bind only functions. Programs for musl are not static, as they open modules.
cat >"$work/zig-cc.new" <<EOF
#!/bin/sh
ZIG_GLOBAL_CACHE_DIR=$out/zig-cache ZIG_LOCAL_CACHE_DIR=$out/zig-cache
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
for argument; do
    shift
    [ "\$argument" != -Wl,-Bsymbolic-functions ] || argument=-Wl,-Bsymbolic
    set -- "\$@" "\$argument"
done
exec "$zig" cc -target $target -dynamic "\$@" -g0 -Wl,-s -w -ffile-prefix-map=$work/source/= -ffile-prefix-map=$work/= -ffile-prefix-map=$out/= -ffile-prefix-map=$PWD/=
EOF
printf '#!/bin/sh\nexec "%s" ar "$@"\n' "$zig" >"$work/zig-ar"
chmod +x "$work/zig-cc.new" "$work/zig-ar"
cmp -s "$work/zig-cc.new" "$work/zig-cc" || mv "$work/zig-cc.new" "$work/zig-cc"

# ---- the libraries
if ! cmp -s packaging/libraries.sha256 "$work/libraries/built.sha256"; then
    AR="$work/zig-ar" sh packaging/libraries.sh "$work/zig-cc" "$work/libraries" "${1:-$out/sources}"
fi

# ---- fraglab itself, in a copy of the tree, so that ./fraglab stays what it is; without what needs files of
# this machine: MPI, and CUPTI's recorder. A dry run needs x86_64, and PyTorch for musl has no CUDA, so what stands in for a GPU is left out there.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Makefile)}"
export SOURCE_DATE_EPOCH
source=$work/source
rm -rf "$work/fresh"
mkdir -p "$source" "$work/fresh"
if [ -e .git ]; then git ls-files -z -co --exclude-standard; else find . -type f ! -path './build/*' -print0; fi |
    while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
    tar --null -T - -cf - | tar -xf - -C "$work/fresh"
# What changed gets the time of now, as a file that was put back is older than the object made from it.
(cd "$source" && find . -path ./build -prune -o ! -type d -print0) | while IFS= read -r -d '' file; do
    cmp -s "$work/fresh/$file" "$source/$file" || rm "$source/$file"
done
(cd "$work/fresh" && find . ! -type d -print0) | while IFS= read -r -d '' file; do
    [ -e "$source/$file" ] || { mkdir -p "$source/${file%/*}" && cp -P "$work/fresh/$file" "$source/$file"; }
done
rm -rf "$work/tree"
case $target in
x86_64-linux-gnu*) parts=(CUDA=auto) ;;
*-gnu*) parts=(CUDA=auto DRYRUN=no) ;;
*) parts=(CUDA=no DRYRUN=no) ;;
esac
# The manual page and completions are printed by a program that runs here: that of this machine's own wheel.
own=$(uname -m)-linux-gnu.2.17
if [ "$target" != "$own" ]; then
    bash packaging/wheel.sh "${1:-}" "$own" >/dev/null
    parts+=(PAGES_FROM="$out/$own/tree/usr/local/bin/fraglab")
fi
${MAKE:-make} --no-print-directory -s -j"${JOBS:-2}" -C "$source" install SETUP=no CC="$work/zig-cc" AR="$work/zig-ar" BUILD=build/release CUDA_INCLUDE= \
    CUPTI_LIBRARIES= MPI=no STATIC=no CFLAGS="-isystem $work/libraries/include" LDFLAGS="-L$work/libraries/lib" "${parts[@]}" \
    DESTDIR="$work/tree" PREFIX=/usr/local >"$work/make.log" 2>&1 || { tail -n 30 "$work/make.log" >&2; exit 1; }

# ---- the file
rm -f "$out"/*-"$tag".whl
wheel=$(python3 packaging/wheel.py --prefix "$work/tree/usr/local" --licences "$work/libraries/licences" --tag "$tag" --out "$out")
python3 packaging/check_wheel.py "${limits[@]}" --bytes 12000000 --without "$PWD" "$wheel"
