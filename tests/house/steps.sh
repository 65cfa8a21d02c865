# shellcheck shell=sh
# Steps of a long run: each is counted by name as passed, failed or skipped, side by side where they
# need nothing of each other. Sourced by tests/all.sh, which sets logs, a folder, and jobs.
# FRAG_LIMIT: seconds after which a step is taken for hung (0: never). By default half an hour, and
# longer on a machine that is slow, or busy with other things, when the run starts.
passed=0
failed=
skipped=
rm -rf "$logs"
mkdir -p "$logs/numbers"

pass() { passed=$((passed + 1)); }
fail() {
    failed="$failed $1"
    echo "FAILED: $1"
}
skip() { # name, reason
    [ -z "$is_counting" ] || return 0
    skipped="$skipped
  $1 ($2)"
    echo "skipped: $1 ($2)"
}

# ---- how long a step may take
# A loop that takes a second on an idle machine of 2023, timed: how much slower is this one, now?
now() { date +%s; }
slowness() {
    begin=$(now)
    awk 'BEGIN { for (i = 0; i < 12000000; i++) s += i; exit s == 0 }'
    echo $(($(now) - begin + 1))
}
limit=${FRAG_LIMIT:-$((1800 * $(slowness)))}
# Runs a command; ends it when it has taken longer than the limit.
limited() {
    if [ "$limit" = 0 ]; then
        "$@"
    else
        timeout -k 5 "$limit" "$@"
    fi
}

# ---- steps
# The first pass over all steps only counts them, so that each can say which of how many it is.
is_counting=
total=0
# The number of a step that has ended: the first that no other has taken.
next_number() {
    number=1
    while ! mkdir "$logs/numbers/$number" 2>/dev/null; do number=$((number + 1)); done
    echo "$number"
}
# perform NAME COMMAND...: runs it into its log, keeps its exit code, and says that it has ended.
perform() {
    name=$1
    shift
    begin=$(now)
    limited_or_function "$@" >"$logs/$name.log" 2>&1
    code=$?
    seconds=$(($(now) - begin))
    echo "$code $seconds" >"$logs/$name.code"
    outcome=ok
    [ "$code" = 0 ] || outcome="exit $code"
    printf '[%*d/%d] %-40s %5d s  %s\n' ${#total} "$(next_number)" "$total" "$name" "$seconds" "$outcome"
}
# A function of this script cannot be run by timeout(1); what it starts ends by itself.
limited_or_function() {
    case $(command -v "$1") in
    /* | */*) limited "$@" ;;
    *) "$@" ;;
    esac
}

# step NAME COMMAND...: only its line when it passes, the end of what it printed when it does not.
step() {
    if [ -n "$is_counting" ]; then
        total=$((total + 1))
        return 0
    fi
    perform "$@"
    verdict "$1"
}
verdict() { # name
    if [ ! -f "$logs/$1.code" ]; then
        fail "$1"
        echo "---- $1: it was ended before it finished"
        return 1
    fi
    read -r code seconds <"$logs/$1.code"
    if [ "$code" = 0 ]; then
        pass
        return 0
    fi
    fail "$1"
    case $code in
    124 | 137) [ "$seconds" -lt "$limit" ] || echo "---- $1 timed out after $seconds s; FRAG_LIMIT=seconds allows more, FRAG_LIMIT=0 any time" ;;
    esac
    echo "---- $1: exit $code after $seconds s; the end of $logs/$1.log:"
    tail -n 40 "$logs/$1.log"
    echo "----"
    return 1
}

# side_by_side FUNCTION: the function says `beside NAME COMMAND...` for steps that need nothing of
# each other. As many shells as there are jobs go through it, each taking what no other has taken;
# then the verdicts are given in order.
side_by_side() {
    is_over=
    if [ -n "$is_counting" ]; then
        "$1"
        return
    fi
    worker=0
    while [ "$worker" -lt "$jobs" ]; do
        "$1" &
        worker=$((worker + 1))
    done
    wait
    is_over=yes
    "$1"
}
beside() {
    if [ -n "$is_counting" ]; then
        total=$((total + 1))
    elif [ -n "$is_over" ]; then
        verdict "$1"
    elif mkdir "$logs/$1.taken" 2>/dev/null; then
        perform "$@"
    fi
}
group() { [ -n "$is_counting" ] || echo "== $1"; }
# run_steps FUNCTION: counts its steps, runs them, and prints how many passed. 1: one failed.
run_steps() {
    is_counting=yes
    "$1"
    is_counting=
    echo "$total steps, $jobs at a time; logs in $logs"
    "$1"
    # What a test skipped inside itself is a skip too.
    inner=$(grep -hE '^ok .* # skip|\[  SKIPPED \] [a-z]' "$logs"/*.log | sed 's/^/  /')
    [ -z "$inner" ] || skipped="$skipped
$inner"
    echo
    count() { printf '%s' "$1" | grep -c .; }
    failed_count=0
    for name in $failed; do failed_count=$((failed_count + 1)); done
    echo "$passed passed, $failed_count failed, $(count "$skipped") skipped"
    [ -z "$failed" ] || echo "failed:$failed"
    [ -z "$skipped" ] || echo "skipped:$skipped"
    [ "$failed_count" = 0 ] || return 1
    if [ "${FRAG_STRICT:-0}" = 1 ] && [ -n "$skipped" ]; then
        echo "FRAG_STRICT=1: a skip is an error"
        return 1
    fi
}
