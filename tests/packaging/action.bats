# The GitHub Action, the template for GitLab and the hooks for pre-commit, with a runner's environment faked and a stand-in for the wheel.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    ROOT=$PWD
    mkdir -p "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/temp"
    ln -s "$ROOT/fraglab" "$BATS_TEST_TMPDIR/bin/fraglab"
    export GITHUB_OUTPUT=$BATS_TEST_TMPDIR/output GITHUB_PATH=$BATS_TEST_TMPDIR/path
    export GITHUB_STEP_SUMMARY=$BATS_TEST_TMPDIR/summary RUNNER_TEMP=$BATS_TEST_TMPDIR/temp
    PATH=$BATS_TEST_TMPDIR/bin:$PATH
    SAMPLE=$ROOT/traces/samples/pr193400.pickle.zst
    cd "$BATS_TEST_TMPDIR"
}

action() { FRAGLAB_RUN=$1 python3 "$ROOT/action/run.py"; }

@test "commands run, file names are expanded, and the summary shows what they print" {
    mkdir recordings
    cp "$SAMPLE" recordings/a.pickle.zst
    cp "$SAMPLE" "recordings/b c.pickle.zst"
    run action "run recordings/*.zst --policy direct --format jsonl -o new.jsonl
# a comment
compare new.jsonl new.jsonl"
    [ "$status" -eq 0 ]
    [ "$(wc -l <new.jsonl)" -eq 2 ]
    [[ "$output" =~ "::group::fraglab compare new.jsonl new.jsonl" ]]
    [[ ! "$output" =~ "::error" ]]
    grep -qx '#### fraglab compare new.jsonl new.jsonl' summary
    grep -qx 'findings=0' output
}

@test "a finding fails the job once, with the annotations of compare" {
    "$ROOT/fraglab" run "$SAMPLE" --policy direct --format jsonl -o base.jsonl
    sed 's/"peak":{"requested_bytes":/&9/' base.jsonl >new.jsonl
    run action "compare base.jsonl new.jsonl --annotate github"
    [ "$status" -eq 1 ]
    # Behind the end of the group, where the runner reads commands again.
    [[ "${output##*::endgroup::}" =~ "::error title=fraglab%3A pr193400.pickle.zst::direct: peak.requested_bytes is worse" ]]
    [ "$(grep -c '^::error' <<<"${output##*::endgroup::}")" -eq 1 ]
    grep -qx 'findings=1' output
    grep -qx '#### exit 1: fraglab compare base.jsonl new.jsonl --annotate github' summary
    run action "compare base.jsonl new.jsonl"
    [[ "$output" =~ "::error title=fraglab::fraglab compare base.jsonl new.jsonl ended with exit 1 (a finding)" ]]
}

@test "a file that is wrong is annotated at its line" {
    printf 'traces: [a.fgt]\npolicies: [direct]\ncapacity: 3\n' >experiment.yaml
    run action "sweep --check experiment.yaml"
    [ "$status" -eq 3 ]
    [[ "$output" =~ "::error file=experiment.yaml,line=3,col=1,title=fraglab::" ]]
    run action "explain 'not closed"
    [ "$status" -eq 2 ]
    [[ "$output" =~ "No closing quotation" ]]
    run action "# nothing"
    [ "$status" -eq 2 ]
    [[ "$output" =~ "::error title=fraglab::run: there is no command" ]]
}

@test "nothing that a command prints is a command to the runner, or ends the text in the summary" {
    printf '#!/bin/sh\nprintf "::set-env name=A::b\\n::error::planted\\n\\140\\140\\140\\n<b>\\n::stop-commands::x\\n"\n' >bin/fraglab2
    chmod +x bin/fraglab2
    ln -sf fraglab2 bin/fraglab
    run action "run x"
    [ "$status" -eq 0 ]
    token=$(sed -n 's/^::stop-commands::\([0-9a-f]\{32\}\)$/\1/p' <<<"$output")
    [ "${#token}" -eq 32 ]
    # What is printed stands between the two lines of the token.
    between=$(sed -n "/^::stop-commands::$token\$/,/^::$token::\$/p" <<<"$output")
    [ "$(grep -c '^::\(set-env\|error\)' <<<"$between")" -eq 2 ]
    [ "$(grep -c '^::\(set-env\|error\)' <<<"$output")" -eq 2 ]
    [ "$(grep -cx '````' summary)" -eq 1 ]
    grep -qx '````text' summary
}

@test "a command that a signal ends fails the job, beside commands that end well" {
    printf '#!/bin/sh\n[ "$1" != killed ] || kill -9 $$\n' >bin/fraglab2
    chmod +x bin/fraglab2
    ln -sf fraglab2 bin/fraglab
    run action $'--version\nkilled x\n--version'
    [ "$status" -eq 137 ]
    [[ "$output" =~ "::error title=fraglab::fraglab killed x ended with exit 137 (signal 9)" ]]
    grep -qx '#### exit 137: fraglab killed x' summary
}

@test "nothing of a shell is done" {
    run action 'run $(touch touched) `touch touched`; touch touched'
    [ "$status" -ne 0 ]
    [ ! -e touched ]
}

@test "install: the version is that of the action; what is cached and starts is kept, else it is made anew" {
    version=$(sed -n 's/^VERSION = //p' "$ROOT/Makefile")
    bash "$ROOT/action/install.sh" version
    grep -qx "version=$version" output
    folder=$(sed -n 's/^folder=//p' output)
    mkdir -p "$folder/bin"
    ln -s "$ROOT/fraglab" "$folder/bin/fraglab"
    FRAGLAB_VERSION=$version FRAGLAB_FOLDER=$folder bash "$ROOT/action/install.sh" install
    [ "$(cat path)" = "$folder/bin" ]
    python3 -c 'import ensurepip' 2>/dev/null || skip "Python makes no environments (package python3-venv)"
    # Another version in the cache is not used. There is no index here, so that the failure is what shows it.
    FRAGLAB_VERSION=0.0.1 FRAGLAB_FOLDER=$folder PIP_NO_INDEX=1 run bash "$ROOT/action/install.sh" install
    [ "$status" -eq 2 ]
    [[ "$output" =~ "::error title=fraglab::fraglab 0.0.1 cannot be installed; give the input wheel" ]]
    FRAGLAB_VERSION='1;rm' run bash "$ROOT/action/install.sh" version
    [ "$status" -eq 2 ]
    [[ "$output" =~ "'1;rm' is no version; write one like 0.1.0" ]]
}

@test "hooks: recordings over a size and files that fraglab refuses" {
    head -c 2000 /dev/zero >a.pickle
    run "$ROOT/action/check_files.py" size --most=1KiB a.pickle
    [ "$status" -eq 1 ]
    [[ "$output" =~ "a.pickle: a recording of 2,000 bytes, at most 1,024 are allowed" ]]
    run "$ROOT/action/check_files.py" size a.pickle "$SAMPLE"
    [ "$status" -eq 0 ]
    printf 'traces: [%s]\npolicies: [direct]\n' "$SAMPLE" >good.yaml
    printf 'policies: [direct]\n' >bad.yaml
    run "$ROOT/action/check_files.py" experiment good.yaml bad.yaml
    [ "$status" -eq 1 ]
    [[ "$output" =~ "bad.yaml:1:1: has no traces" ]]
    [[ ! "$output" =~ "good.yaml" ]]
    run "$ROOT/action/check_files.py" latency "$ROOT/docs/latency-example.yaml"
    [ "$status" -eq 0 ]
    run "$ROOT/action/check_files.py" latency bad.yaml
    [ "$status" -eq 1 ]
    [[ "$output" =~ "bad.yaml:1:" ]]

    "$ROOT/action/check_files.py" workload "$ROOT/traces/workloads/gpt2-small.yaml"
    run "$ROOT/action/check_files.py" workload bad.yaml
    [ "$status" -eq 1 ]
    [[ "$output" =~ "bad.yaml:1:" ]]
    PATH=/usr/bin:/bin run "$ROOT/action/check_files.py" workload bad.yaml
    [[ "$output" =~ "pip install fraglab" ]]
}

@test "the files are YAML, and what they start is there and may be started" {
    python=$(for python in python3 /usr/bin/python3; do "$python" -c 'import yaml' 2>/dev/null && echo "$python" && break; done || true)
    [ -n "$python" ] || skip "no yaml module"
    "$python" - "$ROOT" <<'END'
import os, re, sys, yaml
root = sys.argv[1]
action = yaml.safe_load(open(f"{root}/action.yml"))
docs = open(f"{root}/docs/ci.md").read()
assert action["runs"]["using"] == "composite"
for name in action["inputs"]:
    assert re.search(rf"`{name}`", docs), f"docs/ci.md does not describe the input {name}"
for step in action["runs"]["steps"]:
    if "run" in step:
        assert step["shell"] == "bash" and "${{" not in step["run"], "an input in a script is run"
        path = re.search(r"GITHUB_ACTION_PATH/([\w./]+)", step["run"])[1]
        assert os.path.isfile(f"{root}/{path}"), path
hooks = yaml.safe_load(open(f"{root}/.pre-commit-hooks.yaml"))
for hook in hooks:
    assert os.access(f"{root}/{hook['entry'].split()[0]}", os.X_OK), hook["id"]
    assert f"`{hook['id']}`" in docs, hook["id"]
    re.compile(hook["files"])
spec, job = yaml.safe_load_all(open(f"{root}/action/gitlab.yml"))
for used in re.findall(r"inputs\.(\w+)", open(f"{root}/action/gitlab.yml").read()):
    assert used in spec["spec"]["inputs"], used
version = re.search(r"^VERSION = (\S+)", open(f"{root}/Makefile").read(), re.M)[1]
assert spec["spec"]["inputs"]["version"]["default"] == version
END
}
