#!/usr/bin/env bash
# Keeps what README.md and docs/ show in step with what fraglab prints.
#
#   tests/house/docs.sh render FILE   prints the file with the output of every command in a ```console block
#                               (lines after "$ ") as it is now
#   tests/house/docs.sh update FILE...  writes that into the files
#   tests/house/docs.sh commands FILE   prints the lines of ```sh blocks that start with ./fraglab, mkdir or make -s -C;
#                               "```sh not-run" marks blocks that speak of files nobody has
#   tests/house/docs.sh links FILE    prints every relative link that leads nowhere
set -u
export LC_ALL=C.UTF-8

render() {
    local state=text line
    while IFS= read -r line; do
        case $state in
        text)
            printf '%s\n' "$line"
            if [ "$line" = '```console' ]; then
                state=console
            fi
            ;;
        console)
            if [ "$line" = '```' ]; then
                state=text
                printf '%s\n' "$line"
            elif [ "${line:0:2}" = '$ ' ]; then
                printf '%s\n' "$line"
                bash -c "${line:2}" 2>&1 </dev/null
            fi
            ;;
        esac
    done <"$1"
    [ "$state" = text ] # else the last block has no end
}

commands() {
    awk '/^```/ { inside = !inside && $0 == "```sh"; next } inside && /^(\.\/fraglab|mkdir|make -s -C) /' "$1"
}

# The anchor that a heading gets: lower case, blanks as dashes, no other punctuation.
anchors() {
    sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

links() {
    local folder target path anchor
    folder=$(dirname "$1")
    grep -oE '\]\([^)]+\)' "$1" | sed 's/^](//; s/)$//' | while IFS= read -r target; do
        case $target in
        http://* | https://* | mailto:*) continue ;;
        esac
        path=${target%%#*}
        anchor=
        [ "$target" = "$path" ] || anchor=${target#*#}
        path=${path:+$folder/$path}
        path=${path:-$1}
        if [ ! -e "$path" ]; then
            echo "$1: $target is not there"
        elif [ -n "$anchor" ] && ! anchors "$path" | grep -qxF -- "$anchor"; then
            echo "$1: $target: no such heading"
        fi
    done
}

case ${1:-} in
render | commands | links)
    [ $# = 2 ] || exit 2
    "$1" "$2"
    ;;
update)
    shift
    for file in "$@"; do
        render "$file" >"$file.tmp" && cat "$file.tmp" >"$file" && rm -f "$file.tmp"
    done
    ;;
*)
    echo "tests/house/docs.sh: expected render, update, commands or links" >&2
    exit 2
    ;;
esac
