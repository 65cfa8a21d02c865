#!/bin/sh
# Dry runs of the programs in tests/dryrun/{programs,models,parts} with PyTorch itself:
#
#     sh tests/dryrun/dryrun_test.sh FRAGLAB RELEASES [PROGRAM...]
#
# RELEASES is a list such as 2.9.1,2.15.0. The wheels of each go into build/dryrun/torch-RELEASE, if they
# are not there yet (FRAG_DRYRUN_VENV: a folder with ready ones, venv-RELEASE); their size is said first.
# A program ends with comments that say what is expected of it:
#
#     # gpu: 8GiB                             the card (default: rtx4090)
#     # options: --gpus 2                     more options of fraglab dryrun
#     # run: torchrun --nproc-per-node 2      what runs it instead of python
#     # needs: transformers peft              packages; without them it is skipped
#     # expect: fits=true status=0 steps=3 ended_by=exit exception=WORD processes=2 identical again gaps
#
# Blanks of a value are written as _. "decisions=N": lines at which the script decides by values of the GPU. "identical": fraglab verify says so of the recording; "again": a second run makes the
# same requests at the same addresses, in every process; "gaps": it turns the recording off for a while, so that its replay
# differs; without it no replay may. Without a status 0 is expected. The script exits 77 when no
# release can be had.
set -u
fraglab=$(realpath "$1")
releases=$2
shift 2
here=$(dirname "$(realpath "$0")")
seconds=${FRAG_DRYRUN_SECONDS:-300}
failed=0
passed=0
skipped=0

# shellcheck source=tests/dryrun/get_torch.sh
. "$here/get_torch.sh"

# What a program says of itself.
says() { sed -n "s/^# $1: //p" "$2"; }

has() { # packages
    for package in $1; do
        "$venv/bin/python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$package') is None)" || return 1
    done
}

fail() {
    failed=$((failed + 1))
    echo "FAILED  $release $name: $1"
    grep -v '^$' "$out/stderr" | tail -n 6 | sed 's/^/        /'
}

# One value of the report's first line, with _ for blanks.
reported() {
    "$venv/bin/python" -S -c 'import json, sys
value = json.loads(open(sys.argv[1]).readline()).get(sys.argv[2])
print(value if isinstance(value, str) else json.dumps(value))' "$out/report" "$1" 2>/dev/null | tr ' ' _
}

start() { # program, recording, report
    gpu=$(says gpu "$1")
    launcher=$(says run "$1")
    # shellcheck disable=SC2046,SC2086
    PATH=$venv/bin:$PATH "$fraglab" dryrun --gpu "${gpu:-rtx4090}" --timeout "$seconds" -o "$2" --report "$3" \
        $(says options "$1") -- ${launcher:-python} "$1" >"$out/stdout" 2>"$out/stderr" </dev/null
}

# All of a recording but the time of events, which is the machine's.
events_of() { "$fraglab" trace convert "$1" - --to text -q | sed 's/ time=[0-9]*//'; }

is_same_again() { # program
    start "$1" "$out/again.pickle" "$out/report-again"
    for recording in "$out"/run.pickle*; do
        events_of "$recording" >"$out/first"
        events_of "$out/again.pickle${recording#"$out/run.pickle"}" >"$out/second"
        [ -s "$out/first" ] && cmp -s "$out/first" "$out/second" || return 1
    done
}

check() { # program, status
    wanted=0
    repeated=yes
    for expected in $(says expect "$1"); do
        case $expected in
        status=*) wanted=${expected#*=} ;;
        processes=*) [ "$(wc -l <"$out/report")" = "${expected#*=}" ] || { fail "the report has $(wc -l <"$out/report") processes, expected ${expected#*=}"; return; } ;;
        identical) "$fraglab" verify "$out/run.pickle" 2>&1 | grep -q identical || { fail "its recording does not verify"; return; } ;;
        gaps) repeated=no ;;
        decisions=*) [ "$(grep -o '"kind":"decision"' "$out/report" | wc -l)" = "${expected#*=}" ] || { fail "decisions by values of the GPU: $(grep -c '"kind":"decision"' "$out/report")"; return; } ;;
        again) is_same_again "$1" || { fail "a second run makes other requests"; return; } ;;
        *)
            found=$(reported "${expected%%=*}")
            [ "$found" = "${expected#*=}" ] || { fail "${expected%%=*} is $found, expected ${expected#*=}"; return; }
            ;;
        esac
    done
    [ "$2" = "$wanted" ] || { fail "status $2, expected $wanted"; return; }
    [ "$repeated" = no ] || [ "$(reported is_repeated)" != false ] || { fail "its replay differs"; return; }
    passed=$((passed + 1))
    echo "ok      $release $name: $(reported requests) requests, $(grep -o '"reserved_bytes":[0-9]*' "$out/report" | head -n 1 | tr -dc 0-9) bytes reserved"
}

try() { # program
    name=${1##*/programs/}
    name=${name%.py}
    needs=$(says needs "$1")
    has "$needs" || { skipped=$((skipped + 1)); echo "skipped $release $name: it needs $needs"; return; }
    rm -f "$out"/*
    start "$1" "$out/run.pickle" "$out/report"
    check "$1" $?
}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[ $# -gt 0 ] || set -- "$here"/programs/*.py "$here"/programs/ranks/*.py "$here"/models/*.py "$here"/parts/*.py
for release in $(echo "$releases" | tr ',' ' '); do
    get "$release" || { skipped=$((skipped + $#)); echo "skipped $release: its wheel cannot be had"; continue; }
    for program; do
        try "$program"
    done
done
echo "dry runs: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 77
