#!/bin/sh
# Dry runs against figures that others measured on real cards and published:
#
#     sh tests/truth/truth.sh FRAGLAB [WORD]
#
# Runs the series of tests/truth/points.tsv (those in whose first column WORD stands) and prints a table. Environments are
# those of tests/dryrun (FRAG_DRYRUN_VENV); what is fetched is said first. The script exits 77 when nothing can be had.
set -u
fraglab=$(realpath "$1")
word=${2:-}
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/dryrun/get_torch.sh
. "$here/../dryrun/get_torch.sh"

releases=$(grep -v '^#' "$here/points.tsv" | awk -F '\t' -v word="$word" 'index($1, word) { print $3 }' | sort -u)
[ -n "$releases" ] || { echo "truth: no series has $word in its name"; exit 77; }
missing=0
for release in $releases; do
    is_ready "$release" || missing=$((missing + 1))
done
[ "$missing" = 0 ] || echo "truth: $missing releases of PyTorch to fetch, about $((missing * wheel_megabytes)) MB; $((missing * 2500)) MB on disk"
places=
for release in $releases; do
    get "$release" && places="$places $release=$venv" || echo "truth: torch $release cannot be had; its series are left out"
done
[ -n "$places" ] || exit 77
# shellcheck disable=SC2086
exec python3 "$here/truth.py" "$fraglab" "$here" "$word" $places
