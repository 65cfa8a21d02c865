# fraglab bisect with stand-ins for pip and PyTorch (tests/programs/stub_pip, stub_dryrun): the peak
# changes with release 2.8.0.

bats_require_minimum_version 1.5.0

setup() {
    command -v python3 >/dev/null || skip "python3 is not installed"
    make --no-print-directory -s software-cuda >/dev/null
    out=$BATS_TEST_TMPDIR
    export PYTHONPATH=$PWD/tests/programs/stub_pip PYTHONDONTWRITEBYTECODE=1 TMPDIR=$out
    export XDG_CACHE_HOME=$out/cache PIP_INDEX_URL=http://127.0.0.1:9
    fraglab=$PWD/fraglab
    mkdir "$out/cuda"
    for name in libcuda.so.1 libcudart.so.12; do
        echo "$PWD/build/release/software-cuda/12/$name"
    done >"$out/cuda/preload"
    cat >"$out/train.py" <<'END'
import torch
def load():
    return torch.empty(40)
def forward():
    return torch.empty(100)
weights = load()
for step in range(2):
    activation = forward()
    del activation
print("done")
END
}

bisect() { "$fraglab" bisect --software "$out/cuda" "$@"; }

# The value of a path in the last line.
field() { python3 -S -c 'import json, sys
value = json.loads(sys.argv[1].splitlines()[-1])
for key in sys.argv[2].split("."): value = value[int(key) if key.isdigit() else key]
print(json.dumps(value))' "$1" "$2"; }

environments() { find "$XDG_CACHE_HOME/fraglab/environments" -name complete 2>/dev/null | wc -l; }

@test "finds the first release whose peak differs, by halving, and names the call sites" {
    run --separate-stderr bisect --torch 2.6..2.10 --by requested --yes -- python3 "$out/train.py"
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "torch      2.6.0      peak requested 146,800,640 bytes (140.00 MiB)" ]
    [ "${lines[1]}" = "torch      2.10.0     peak requested 148,897,792 bytes (142.00 MiB)" ]
    [[ "$output" == *"torch 2.8.0 is the first release whose peak requested differs: 148,897,792 bytes, and 146,800,640 with 2.7.1 (+1.429 %)"* ]]
    [[ "$output" == *"forward (train.py)"*"100.00 MiB"*"101.00 MiB"*"+1.00 MiB"*"1 then 1"* ]]
    [[ "$output" == *"load (train.py)"*"40.00 MiB"*"41.00 MiB"* ]]
    [[ "$output" != *done* ]]
    # Both ends and two or three between; 2.5.1 and 2.11.0rc1 are none of the range.
    [ "$(environments)" -le 5 ]
    [ "$(find "$XDG_CACHE_HOME" -type d \( -name 2.5.1 -o -name 2.11.0rc1 \) | wc -l)" = 0 ]
    # They are kept: no --yes is needed, pip installs nothing.
    STUB_PIP=breaks run --separate-stderr bisect --torch 2.6..2.10 --by requested --format jsonl -- python3 "$out/train.py"
    [ "$status" -eq 1 ]
    [ "$(field "$output" found)" = '"2.8.0"' ]
    [ "$(field "$output" before)" = '"2.7.1"' ]
    [ "$(field "$output" bytes_after)" = $((142 << 20)) ]
    [ "$(field "$output" sites.0.caller)" = '"forward (train.py)"' ]
    [ "$(field "$output" sites.0.bytes_before)" = $((100 << 20)) ]
    [ "$(field "$output" sites.0.bytes_after)" = $((101 << 20)) ]
    [ "$(field "${lines[0]}" kind)" = '"bisect-step"' ]
    [ "$(field "${lines[0]}" peak.requested_bytes)" = $((140 << 20)) ]
}

@test "moved lines of the script and the same peak are no change" {
    run --separate-stderr bisect --torch 2.6..2.7 --yes -- python3 "$out/train.py"
    [ "$status" -eq 0 ]
    [[ "$output" == *"the peak reserved is the same at both ends"* ]]
    [ "$(environments)" = 2 ]
    run --separate-stderr bisect --torch 2.6..2.7 --all --yes --format jsonl -- python3 "$out/train.py"
    [ "$status" -eq 0 ]
    [ "$(field "$output" runs)" = 3 ]
    [ "$(field "$output" found)" = null ]
    # 2 MiB of 140 are 1.43 %.
    run --separate-stderr bisect --torch 2.7.1..2.8.0 --by requested --above 1.5 --yes -- python3 "$out/train.py"
    [ "$status" -eq 0 ]
}

@test "nothing is fetched unasked, and sizes are said first" {
    run --separate-stderr bisect --torch 2.6..2.10 -- python3 "$out/train.py"
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [[ "$stderr" == *"torch      2.7.1      to fetch, size unknown"* ]]
    [[ "$stderr" == *"at most 5 environments would be made in $XDG_CACHE_HOME/fraglab/environments/torch-python"*"go on with --yes, or give ready ones with --environments"* ]]
    [ "$(environments)" = 0 ]
    # An index that says sizes, as PEP 691 has them.
    mkdir "$out/index"
    tag=$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
    echo '{"files": [{"filename": "torch-2.6.0-'"$tag-$tag"'-linux_x86_64.whl", "size": 786432000}]}' >"$out/index/index.html"
    cat >"$out/wheels.py" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import environments_under_test as environments
environments.index_page = lambda package: __import__("json").load(open(sys.argv[2]))
print(environments.find_sizes("torch"))
END
    sed '$d' gpu_replay/dryrun/environments.py >"$out/environments_under_test.py"
    if PYTHONPATH='' python3 -c 'import pip._vendor.packaging.tags' 2>/dev/null; then
        [ "$(PYTHONPATH='' python3 "$out/wheels.py" "$out" "$out/index/index.html")" = "{'2.6.0': 786432000}" ]
    fi
}

@test "a fetch that fails or is interrupted leaves no half environment" {
    STUB_PIP=breaks run --separate-stderr bisect --torch 2.6..2.7 --yes -- python3 "$out/train.py"
    [ "$status" -eq 4 ]
    [[ "$stderr" == *"pip could not install torch==2.6.0"*"the environment of torch 2.6.0 cannot be made"* ]]
    [ "$(find "$XDG_CACHE_HOME" -name 'pyvenv.cfg' | wc -l)" = 0 ]
    STUB_PIP=waits setsid "$fraglab" bisect --software "$out/cuda" --torch 2.6..2.7 --yes -- python3 "$out/train.py" >/dev/null 2>&1 3>&- &
    for _ in $(seq 150); do [ -e "$out/waiting" ] && break || sleep 0.1; done
    [ -e "$out/waiting" ]
    [ "$(find "$XDG_CACHE_HOME" -name 'pyvenv.cfg' | wc -l)" = 1 ]
    kill -INT -- "-$!"
    status=0
    wait "$!" || status=$?
    [ "$status" -eq 130 ]
    for _ in $(seq 50); do [ "$(find "$XDG_CACHE_HOME" -name pyvenv.cfg | wc -l)" = 0 ] && break || sleep 0.1; done
    [ "$(find "$XDG_CACHE_HOME" -name 'pyvenv.cfg' | wc -l)" = 0 ]
    # What a kill left behind is made anew.
    folder=$(dirname "$(find "$XDG_CACHE_HOME" -name '2.6.0.lock')")
    mkdir -p "$folder/2.6.0/bin"
    run --separate-stderr bisect --torch 2.6..2.7 --yes -- python3 "$out/train.py"
    [ "$status" -eq 0 ]
}

@test "a release that does not run is passed by, and named when the change hides behind it" {
    STUB_PIP_BROKEN=2.8.0 run --separate-stderr bisect --torch 2.6..2.9 --all --yes -- python3 "$out/train.py"
    [ "$status" -eq 1 ]
    [[ "$output" == *"torch      2.8.0      does not run: AttributeError: module 'torch' has no attribute 'empty'"* ]]
    [[ "$output" == *"torch 2.9.0 is the first release whose peak reserved differs"*"or one of the 1 between them, which did not run"* ]]
    sed -i 's/^print.*/raise SystemExit("no data")/' "$out/train.py"
    run --separate-stderr bisect --torch 2.6..2.7 --yes -- python3 "$out/train.py"
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"no two releases of torch run the script; of 2.7.0: no data"* ]]
}

@test "ready environments are used as they are" {
    bisect --torch 2.7.1..2.8.0 --yes -- python3 "$out/train.py" >/dev/null 2>&1 || [ $? -eq 1 ]
    folder=$(dirname "$(dirname "$(find "$XDG_CACHE_HOME" -name complete | head -n 1)")")
    mv "$folder" "$out/ready"
    STUB_PIP=breaks run --separate-stderr bisect --torch 2.6..2.10 --environments "$out/ready" -- python3 "$out/train.py"
    [ "$status" -eq 1 ]
    [[ "$output" == *"torch 2.8.0 is the first release"* ]]
    run --separate-stderr bisect --torch 2.6..2.10 --environments "$out/ready" --good 2.8.0 -- python3 "$out/train.py"
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"--good 2.8.0 is not before --bad 2.8.0"* ]]
    run bisect --torch 3.0..3.1 --environments "$out/ready" -- python3 "$out/train.py"
    [ "$status" -eq 3 ]
    [[ "$output" == *"no release of torch from 3.0 to 3.1 is among the environments of that folder; a bisection needs two or more"* ]]
}

@test "what is no range is said before anything runs" {
    refused() { # words, arguments...
        local words=$1
        shift
        run bisect "$@" -- python3 "$out/train.py"
        [ "$status" -eq 2 ]
        [[ "$output" == *"$words"* ]]
    }
    refused "which releases? Write either --torch 2.6..2.15 or --package NAME==FIRST..LAST"
    refused "which releases?" --torch 2.6..2.7 --package numpy==1..2
    refused "--torch: '2.6' is no range of releases; write FIRST..LAST, such as 2.6..2.15" --torch 2.6
    refused "--torch: 2.9 comes after 2.6; write the earlier release first" --torch 2.9..2.6
    refused "--torch: '2.6..2.x' is no range of releases" --torch 2.6..2.x
    refused "--package: 'numpy' names no package" --package numpy
    refused "--package: '--index-url==1..2' names no package" --package=--index-url==1..2
    refused "--good: there is no release 2.6.7; the first is 2.6.0, the last 2.7.1" --torch 2.6..2.7 --good 2.6.7
    run bisect --package nothing==1..2 -- python3 "$out/train.py"
    [ "$status" -eq 4 ]
    [[ "$output" == *"the releases of nothing cannot be listed by"*"ERROR: No matching distribution found for nothing"* ]]
}
