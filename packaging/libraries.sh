#!/bin/sh
# Builds the six libraries that fraglab is linked to as static archives, from Debian's source packages:
#
#     packaging/libraries.sh CC FOLDER [SOURCES [WITHOUT]]
#
# CC is the compiler to use. FOLDER gets include/, lib/ and licences/. The packages are those of
# packaging/libraries.sha256: a .dsc lists the checksums of the other files of its package. They are taken
# from SOURCES where they are there, else fetched by apt-get into it (FOLDER/sources). WITHOUT is a library
# that is not built: sqlite3, or none. AR: a program that knows the objects of CC, where ar does not.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cc=$(realpath "$1")
mkdir -p "$2"
folder=$(cd "$2" && pwd)
sources=${3:-$folder/sources}
mkdir -p "$sources"
sources=$(cd "$sources" && pwd)
without=${4:-}
flags="-O3 -g0 -w -fPIC -fvisibility=hidden -DNDEBUG"

fail() {
    echo "libraries.sh: $*" >&2
    exit 1
}

for tool in dpkg-source tclsh; do
    command -v $tool >/dev/null || fail "$tool is not installed (Debian: dpkg-dev, tcl)"
done

# apt-get with lists of its own, so that neither root nor deb-src lines in the machine's lists are needed.
apt_sources() {
    apt=$folder/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources.d"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        [ -r "$file" ] || continue
        case $file in
        *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" ;;
        *.list) sed -n 's/^deb /deb-src /p' "$file" ;;
        esac >"$apt/sources.d/$(basename "$file")"
    done
    # Only what Debian signs: other archives do not have these packages.
    for file in "$apt"/sources.d/*.sources; do
        grep -q debian-archive-keyring "$file" 2>/dev/null || rm -f "$file"
    done
    cat >"$apt/apt.conf" <<EOF
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$apt/sources.d";
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
EOF
    APT_CONFIG=$apt/apt.conf
    export APT_CONFIG
}

is_whole() { (cd "$sources" && sha256sum --status -c "$here/libraries.sha256" 2>/dev/null); }

if ! is_whole; then
    command -v apt-get >/dev/null || fail "the source packages of packaging/libraries.sha256 are not in $sources, and there is no apt-get to fetch them"
    apt_sources
    apt-get -q update >"$folder/apt.log" 2>&1 || fail "apt-get update failed; see $folder/apt.log"
    while read -r _ dsc; do
        name=${dsc%%_*}
        version=${dsc#*_}
        version=${version%.dsc}
        # The .dsc leaves out the epoch of a version.
        full=$(apt-cache showsrc --only-source "$name" 2>/dev/null | sed -n 's/^Version: //p' | grep -E "^([0-9]+:)?$(printf %s "$version" | sed 's/[.+]/\\&/g')\$" | head -n 1)
        [ -n "$full" ] || fail "the archive has no $name $version any more; check its successor and put the checksum of that .dsc into packaging/libraries.sha256, or pass a folder that has the package as SOURCES="
        (cd "$sources" && apt-get -q source --download-only --only-source "$name=$full" >>"$folder/apt.log" 2>&1) ||
            fail "$name $full cannot be fetched; see $folder/apt.log"
    done <"$here/libraries.sha256"
    is_whole || fail "a source package in $sources is not the one of packaging/libraries.sha256"
fi

work=$folder/work
rm -rf "$work" "$folder/lib" "$folder/include" "$folder/licences"
mkdir -p "$work" "$folder/lib" "$folder/include" "$folder/licences"

unpack() { # name
    dpkg-source --no-check -x "$sources/$(sed -n "s/^[0-9a-f]*  \($1_.*\)/\1/p" "$here/libraries.sha256")" "$work/$1" >"$work/$1.log" 2>&1 ||
        fail "$1 cannot be unpacked; see $work/$1.log"
}

archive() { # library, flags, files...; in the folder of its source
    library=$1
    options=$2
    shift 2
    objects=
    for file in "$@"; do
        object=$work/$library-$(echo "$file" | tr / -).o
        # shellcheck disable=SC2086
        "$cc" $flags $options -c -o "$object" "$file"
        objects="$objects $object"
    done
    # shellcheck disable=SC2086
    ${AR:-ar} rcsD "$folder/lib/lib$library.a" $objects
}

headers() { cp "$@" "$folder/include/"; }
licence() { cp "$2" "$folder/licences/$1.txt"; }

unpack zlib
cd "$work/zlib"
archive z "-DHAVE_UNISTD_H -D_LARGEFILE64_SOURCE=1 -Dfdopen=fdopen" adler32.c compress.c crc32.c deflate.c infback.c inffast.c inflate.c inftrees.c \
    trees.c uncompr.c zutil.c gzclose.c gzlib.c gzread.c gzwrite.c
headers zlib.h zconf.h
licence zlib LICENSE

unpack libzstd
cd "$work/libzstd/lib"
archive zstd "-DXXH_NAMESPACE=ZSTD_ -DZSTD_LEGACY_SUPPORT=0 -DZSTDLIB_VISIBLE= -DZSTDERRORLIB_VISIBLE= -I. -Icommon" common/*.c compress/*.c decompress/*.c decompress/huf_decompress_amd64.S
headers zstd.h zstd_errors.h
licence zstd ../LICENSE

unpack xxhash
cd "$work/xxhash"
archive xxhash "" xxhash.c
headers xxhash.h xxh3.h
licence xxhash LICENSE

unpack jansson
cd "$work/jansson/src"
sed 's/@json_inline@/inline/; s/@json_have_[a-z_]*@/1/' jansson_config.h.in >jansson_config.h
: >jansson_private_config.h
archive jansson "-I. -DHAVE_STDINT_H -DHAVE_SYS_TYPES_H -DHAVE_UNISTD_H -DHAVE_FCNTL_H -DHAVE_SYS_TIME_H -DHAVE_SYS_PARAM_H -DHAVE_LOCALE_H
    -DHAVE_GETTIMEOFDAY -DHAVE_GETPID -DHAVE_OPEN -DHAVE_CLOSE -DHAVE_READ -DHAVE_SCHED_H -DHAVE_SCHED_YIELD -DHAVE_LOCALECONV -DHAVE_STRTOLL
    -DHAVE_ATOMIC_BUILTINS -DHAVE_SYNC_BUILTINS -DUSE_URANDOM -DINITIAL_HASHTABLE_ORDER=3" *.c
headers jansson.h jansson_config.h
licence jansson ../LICENSE

unpack libyaml
cd "$work/libyaml"
archive yaml '-Iinclude -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5 -DYAML_VERSION_STRING="0.2.5"' src/*.c
headers include/yaml.h
licence libyaml License

if [ "$without" != sqlite3 ]; then
    # SQLite is compiled as the one file that its own makefile puts together.
    unpack sqlite3
    mkdir "$work/sqlite3/out"
    cd "$work/sqlite3/out"
    { ../configure --disable-tcl --disable-readline && make sqlite3.c; } >"$work/sqlite3.log" 2>&1 || fail "sqlite3.c cannot be made; see $work/sqlite3.log"
    archive sqlite3 "-DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_API=" sqlite3.c
    headers sqlite3.h
    licence sqlite ../LICENSE.md
fi

rm -rf "$work"
cp "$here/libraries.sha256" "$folder/built.sha256"
