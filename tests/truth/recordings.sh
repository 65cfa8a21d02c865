#!/bin/sh
# Dry runs against recordings that others made of real GPUs and published with their scripts:
#
#     sh tests/truth/recordings.sh FRAGLAB [WORD]
#
# Clones the repositories of tests/truth/recordings.tsv (those with WORD in repository or recording), runs the scripts and prints how many requests
# are equal. Environments are those of tests/dryrun (FRAG_DRYRUN_VENV), with the packages of the table; FRAG_RECORDINGS names a
# folder of ready clones, OWNER+NAME. The script exits 77 when nothing can be had.
set -u
fraglab=$(realpath "$1")
word=${2:-}
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/dryrun/get_torch.sh
. "$here/../dryrun/get_torch.sh"

rows() { grep -v '^#' "$here/recordings.tsv" | awk -F '\t' -v word="$word" 'index($1 " " $3, word)'; }

releases=$(rows | cut -f 5 | sort -u)
[ -n "$releases" ] || { echo "recordings: none has $word in its name"; exit 77; }
missing=0
for release in $releases; do
    is_ready "$release" || missing=$((missing + 1))
done
[ "$missing" = 0 ] || echo "recordings: $missing releases of PyTorch to fetch, about $((missing * wheel_megabytes)) MB; $((missing * 2500)) MB on disk"
places=
for release in $releases; do
    get "$release" || { echo "recordings: torch $release cannot be had"; continue; }
    packages=$(rows | awk -F '\t' -v release="$release" '$5 == release && $7 != "-" { print $7 }' | tr ' ' '\n' | sort -u)
    # shellcheck disable=SC2086
    [ -n "${FRAG_DRYRUN_VENV:-}" ] || "$venv/bin/pip" install -q $packages
    places="$places $release=$venv"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2086
python3 "$here/recordings.py" "$fraglab" "$here" "$scratch" "$word" $places
