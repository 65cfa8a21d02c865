#!/bin/sh
# Known regressions, each a few lines that need more memory, or less, with one release of PyTorch or a package than with another; run
# under both by `fraglab bisect` on the real PyTorch with software CUDA:
#
#     sh tests/regressions/regressions.sh FRAGLAB [PROGRAM...]
#
# A program in programs/ begins with what is known of it:
#
#     # a sentence
#     # source: where it is known from
#     # package: NAME BEFORE AFTER           the two releases
#     # with: REQUIREMENT...                 what the releases of the package need besides; "with RELEASE:" is said of one
#     # torch: 2.6.0                         the release of PyTorch, where the package is another
#     # gpu: h100
#
# expected.tsv has what each gave: program, bytes allocated at the peak before and after, and the call site with the largest change then ("-": none
# holds more or less). RECORD=yes writes the line of a program that has none. PyTorch comes from where the dry runs have it (tests/dryrun/get_torch.sh); what a
# package needs is fetched into build/regressions and kept. Prints a line for each; 1: one differs, 77: no release could be had.
set -u
fraglab=$(realpath "$1")
shift
here=$(dirname "$(realpath "$0")")
cd "$here/../.." || exit 1
# shellcheck source=tests/dryrun/get_torch.sh
. tests/dryrun/get_torch.sh
expected=$here/expected.tsv
made=$PWD/build/regressions
work=$(mktemp -d "${TMPDIR:-/tmp}/fraglab-regressions-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
found=0 all=0 skipped=0

# What a program says of itself.
says() { sed -n "s/^# $1: //p" "$program"; }

# Leaves the environments of both releases in the folder $work/both.
environments() { # package, before, after
    rm -rf "$work/both" && mkdir "$work/both" || return 1
    for release in "$2" "$3"; do
        if [ "$1" = torch ]; then
            get "$release" || return 1
        else
            get "$(says torch)" || return 1
            # shellcheck disable=SC2046
            "$venv/bin/python" gpu_replay/dryrun/environments.py make "$made/$name-$release" "$1" "$release" $(says with) $(says "with $release") >"$work/log" 2>&1 || return 1
            venv=$made/$name-$release
        fi
        ln -s "$(realpath "$venv")" "$work/both/$release"
    done
}

# "before<tab>after<tab>site of the largest change" of the answer, or what went wrong.
summary() {
    python3 -S - "$work/answer" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
failures = [line["failure"] for line in lines if line.get("failure")]
end = lines[-1] if lines and lines[-1]["kind"] == "bisect" else None
if failures or end is None:
    sys.exit("; ".join(failures) or "no answer")
sites = sorted(end["sites"], key=lambda site: -abs(site["bytes_after"] - site["bytes_before"]))
print(end["bytes_before"], end["bytes_after"], "%s: %s" % (sites[0]["caller"], sites[0]["site"]) if sites else "-", sep="\t")
END
}

judge() {
    read -r package before after <<END
$(says package)
END
    if ! environments "$package" "$before" "$after"; then
        skipped=$((skipped + 1))
        echo "skipped $name: $package $before and $after could not be had"
        return
    fi
    all=$((all + 1))
    HF_HUB_OFFLINE=1 "$fraglab" bisect -q --package "$package==$before..$after" --environments "$work/both" --by allocated --gpu "$(says gpu)" \
        --timeout 300 --format jsonl -- python "$program" >"$work/answer" 2>"$work/log"
    if ! measured=$(summary 2>"$work/why"); then
        echo "not ok $name: $(head -n 1 "$work/why") $(head -n 1 "$work/log")"
        return
    fi
    [ "${RECORD:-}" != yes ] || grep -q "^$name	" "$expected" || printf '%s\t%s\n' "$name" "$measured" >>"$expected"
    wanted=$(sed -n "s/^$name	//p" "$expected")
    if [ "$(echo "$measured" | cut -f 1)" = "$(echo "$measured" | cut -f 2)" ]; then
        echo "not ok $name: $package $before and $after allocate the same: $measured"
    elif [ "$measured" = "$wanted" ]; then
        found=$((found + 1))
        echo "ok $name: $package $before $after: $measured"
    else
        echo "not ok $name: $measured, expected ${wanted:-a line in expected.tsv}"
    fi
}

for program in "$here"/programs/*.py; do
    name=$(basename "$program" .py)
    [ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
    judge
done
echo "$found of $all found, $skipped skipped"
[ "$all" -gt 0 ] || exit 77
[ "$found" -eq "$all" ]
