#!/bin/sh
# Unpacks the golden logs of PyTorch's allocator, so that each is a file of its own in build/golden,
# and the recordings of tests/data/predictions in build/predictions:
#
#     sh tests/golden_logs.sh
#     sh tests/golden_logs.sh pack FOLDER         # the other way: packs the logs of a folder
#     sh tests/golden_logs.sh recordings FOLDER   # packs its recordings, *.fgt
#
# They are kept in a few archives, those of one script or program side by side, because the releases
# answer most of them nearly alike: packed one by one they take almost twice as much room.
set -eu
packed=tests/data/golden

archive() { # folder, what tar reads there
    tar --owner=0 --group=0 --numeric-owner --mode=0644 --mtime=@0 --format=ustar -cf - -C "$@" |
        python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read(), preset=9 | lzma.PRESET_EXTREME))'
}

pack() { # folder
    plain=$(mktemp -d)
    trap 'rm -rf "$plain"' EXIT
    for log in "$1"/*.jsonl.zst; do
        zstd -q -d "$log" -o "$plain/$(basename "$log" .zst)"
    done
    # By script, then release; a new part begins with a new script.
    (cd "$plain" && wc -c -- *.jsonl) | awk '$2 != "total" { release = $2; sub(/-.*/, "", release); script = substr($2, length(release) + 2)
        print script, release, $1 }' | LC_ALL=C sort |
        awk -v most=27000000 -v order="$plain/.order" '$1 != last && sum > most { part++; sum = 0 }
            { last = $1; sum += $3; print $2 "-" $1 > (order "-" part + 1) }'
    rm -f "$packed"/logs-*.tar.*
    for order in "$plain"/.order-*; do
        archive "$plain" -T "$order" >"$packed/logs-${order##*-}.tar.xz"
    done
}

if [ "${1:-}" = pack ]; then
    pack "$2"
    exit
fi
if [ "${1:-}" = recordings ]; then
    archive "$2" $(cd "$2" && LC_ALL=C ls -- *.fgt) >tests/data/predictions/recordings.tar.xz
    exit
fi

unpack() { # folder, archives: each file packed again, quickly
    folder=$1
    shift
    [ -e "$folder/.unpacked" ] && [ -z "$(find "$@" -newer "$folder/.unpacked")" ] && return
    # Aside first: tests that run beside each other may both find that it is missing.
    aside=$(mktemp -d "$(mkdir -p build && echo build)/unpacked.XXXXXX")
    for archive in "$@"; do # which python3 unpacks where xz is not there
        python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer, 1 << 20)' "$archive" | tar --no-same-owner -xf - -C "$aside"
    done
    zstd -q -1 --rm "$aside"/*
    chmod 755 "$aside"
    touch "$aside/.unpacked"
    rm -rf "$folder"
    mv -T "$aside" "$folder" 2>/dev/null || rm -rf "$aside"
}

unpack build/golden "$packed"/logs-*.tar.xz
unpack build/predictions tests/data/predictions/recordings.tar.xz
