#!/usr/bin/env bash
# The Containerfile without a container engine: tests/packaging/container_test.sh          (make container-test)
#
# Each image is a folder that debootstrap fills (ROOT=folder of a bare Debian 12 that is there is copied instead), its instructions are carried out there by
# chroot, one after the other, and then the default command. What that draws is in build/container. An instruction
# beyond FROM, RUN, COPY, WORKDIR, ENV and CMD is an error. Exits with 77 where debootstrap or the rights for it are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "skipped: needs root and debootstrap"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/fraglab-container-test-XXXXXX")
trap 'rm -rf "$work"' EXIT

bare() { # folder
    if [ -n "${ROOT:-}" ]; then cp -a "$ROOT" "$1"; else
        [ -d "$work/bare" ] || debootstrap --variant=minbase bookworm "$work/bare" >"$work/log" 2>&1
        cp -a "$work/bare" "$1"
    fi
    cp /etc/resolv.conf "$1/etc/"
}
# COPY [--from=image] source... target; what .containerignore names stays behind.
copy() {
    local from=.
    case $1 in --from=*) from=$work/${1#--from=} && shift ;; esac
    local target=$root${!#}
    case ${!#} in /*) ;; *) target=$root$place/${!#} ;; esac
    while [ $# -gt 1 ]; do
        if [ "$from" = . ] && [ "$1" = . ]; then
            mkdir -p "$target" && tar -cf - --exclude-from=.containerignore . | tar -xf - -C "$target" --no-same-owner
        elif [ -d "$from/$1" ]; then mkdir -p "$target" && cp -a "$from/$1/." "$target/"
        else mkdir -p "$(dirname "$target")" && cp "$from/$1" "$target"; fi
        shift
    done
}
inside() { chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "${variables[@]}" sh -c "cd '$place' && $1"; }

root='' place=/ variables=(_=) command=''
while read -r word rest; do
    case $word in
    '' | '#'*) ;;
    FROM)
        [[ $rest =~ ^debian:bookworm-slim( AS ([a-z]+))?$ ]] || { echo "FROM $rest: expected debian:bookworm-slim"; exit 1; }
        root=$work/${BASH_REMATCH[2]:-last} place=/ variables=(_=)
        bare "$root" ;;
    RUN) echo "RUN $rest" && inside "$rest" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; } ;;
    COPY) # shellcheck disable=SC2086
        copy $rest ;;
    WORKDIR) place=$rest && mkdir -p "$root$rest" ;;
    ENV) variables+=("$rest") ;;
    CMD) command=$(python3 -c 'import json, shlex, sys; print(shlex.join(json.loads(sys.argv[1])))' "$rest") ;;
    *) echo "$word: no instruction that this test knows" && exit 1 ;;
    esac
done <Containerfile
inside "$command" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
rm -rf build/container && mkdir -p build/container && cp "$root"/out/* build/container/
[ "$(ls build/container/*.svg build/container/*.png build/container/report.html | wc -l)" = 16 ] || { ls build/container; exit 1; }
inside 'python3 -c "import fraglab; print(fraglab.open(\"samples/unet.pickle.zst\").run().peak.reserved_bytes)"'
echo "the images build, and the default command draws $(ls build/container | wc -l) files"
