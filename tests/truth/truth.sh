#!/bin/sh
# Dry runs against figures that others measured on real cards and published:
#
#     sh tests/truth/truth.sh FRAGLAB [WORD]
#
# Runs the series of tests/truth/points.tsv (those in whose first column WORD stands) and prints a table. Environments are
# those of tests/dryrun (FRAG_DRYRUN_VENV), with the packages that tests/truth/packages.txt names; what is fetched is said
# first. The script exits 77 when nothing can be had.
set -u
fraglab=$(realpath "$1")
word=${2:-}
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/dryrun/get_torch.sh
. "$here/../dryrun/get_torch.sh"

# What pip installs beside PyTorch for series whose release is RELEASE+NAME: sets packages to their folder.
get_packages() { # name
    if [ -n "${FRAG_DRYRUN_VENV:-}" ]; then packages=$FRAG_DRYRUN_VENV/packages-$1; else packages=$PWD/build/dryrun/packages-$1; fi
    [ -e "$packages/complete" ] && return 0
    wanted=$(awk -v name="$1" '$1 == name { sub(name " ", ""); print }' "$here/packages.txt")
    [ -n "$wanted" ] || { echo "truth: packages.txt does not name $1" >&2; return 1; }
    echo "truth: packages of $1, up to 300 MB on disk in $packages"
    rm -rf "$packages"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install -q --no-deps --target "$packages" $wanted && touch "$packages/complete"
}

places=$(grep -v '^#' "$here/points.tsv" | awk -F '\t' -v word="$word" 'index($1, word) { print $3 }' | sort -u)
[ -n "$places" ] || { echo "truth: no series has $word in its name"; exit 77; }
missing=0
for release in $(echo "$places" | sed 's/+.*//' | sort -u); do
    is_ready "$release" || missing=$((missing + 1))
done
[ "$missing" = 0 ] || echo "truth: $missing releases of PyTorch to fetch, about $((missing * wheel_megabytes)) MB; $((missing * 2500)) MB on disk"
had=
for place in $places; do
    packages=
    if get "${place%%+*}" && { [ "$place" = "${place#*+}" ] || get_packages "${place#*+}"; }; then
        had="$had $place=$venv,$packages"
    else
        echo "truth: torch $place cannot be had; its series are left out"
    fi
done
[ -n "$had" ] || exit 77
# shellcheck disable=SC2086
exec python3 "$here/truth.py" "$fraglab" "$here" "$word" $had
