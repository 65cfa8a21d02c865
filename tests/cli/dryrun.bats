# fraglab dryrun with a stand-in for PyTorch (tests/programs/stub_dryrun), which needs no wheel: its
# requests go through the software CUDA of the dry run.

bats_require_minimum_version 1.5.0

setup() {
    command -v python3 >/dev/null || skip "python3 is not installed"
    make --no-print-directory -s software-cuda >/dev/null
    out=$BATS_TEST_TMPDIR
    export PYTHONPATH=$PWD/tests/programs/stub_dryrun PYTHONDONTWRITEBYTECODE=1 TMPDIR=$out
    fraglab=$PWD/fraglab
    # Only what the stand-in loads.
    mkdir "$out/cuda"
    for name in libcuda.so.1 libcudart.so.12; do
        echo "$PWD/build/release/software-cuda/12/$name"
    done >"$out/cuda/preload"
    cat >"$out/train.py" <<'END'
import os, sys, torch
mib = int(sys.argv[1]) if len(sys.argv) > 1 else 100
print("hash seed", os.environ["PYTHONHASHSEED"], "card", os.environ["FRAGLAB_SOFTWARE_CUDA"].count("RTX 4090"))
weights = torch.empty(mib)
model, optimizer = torch.nn.modules.module.Module(), torch.optim.Optimizer()
state = None
for step in range(4):
    model()
    activation = torch.empty(2 * mib)
    state = state or torch.empty(mib)
    optimizer.step()
    del activation
print("done")
END
}

dry() { "$fraglab" dryrun --software "$out/cuda" "$@"; }

# The value of a path in the only line of the report.
reported() { python3 -c 'import json, sys
value = json.loads(open(sys.argv[1]).readline())
for key in sys.argv[2].split("."): value = value[int(key) if key.isdigit() else key]
print(json.dumps(value))' "$out/report" "$1"; }

@test "output and exit code are the script's, and the answer has its peaks to the byte" {
    dry --gpu rtx4090 -o "$out/run.pickle" --report "$out/report" -- python3 "$out/train.py" >"$out/stdout" 2>"$out/stderr"
    [ "$(cat "$out/stdout")" = $'hash seed 0 card 1\ndone' ]
    [ "$(reported fits)" = true ]
    [ "$(reported oom)" = null ]
    [ "$(reported peak.requested_bytes)" = $((400 << 20)) ]
    [ "$(reported peak.reserved_bytes)" = $((400 << 20)) ]
    [ "$(reported uncertain_bytes.high)" = 0 ]
    [ "$(reported remaining_bytes)" = $(((24207 - 500 - 400) << 20)) ]
    [ "$(reported torch)" = '"2.9.1+cu128"' ]
    [ "$(reported steps)" = 4 ]
    [ "$(reported is_repeated)" = true ]
    grep -q "^answer     fits on NVIDIA GeForce RTX 4090, 22.76 GiB left (sure: no request's size is uncertain)" "$out/stderr"
    "$fraglab" verify "$out/run.pickle" | grep -q identical
    ! ls -d "$out"/fraglab-dryrun-* || false
}

@test "peaks come by phase: load, first step, steady step" {
    dry --gpu 24GiB --report "$out/report" -- python3 "$out/train.py" 2>/dev/null
    [ "$(reported phases.0.name)" = '"load"' ]
    [ "$(reported phases.0.requested_bytes)" = $((100 << 20)) ]
    [ "$(reported phases.1.name)" = '"first step"' ]
    [ "$(reported phases.1.requested_bytes)" = $((400 << 20)) ]
    [ "$(reported phases.2.name)" = '"steady step"' ]
}

@test "a script that sets PyTorch's counters to 0 is recorded, and its phases stay" {
    sed 's/^    optimizer.step()/&; torch.cuda.reset_accumulated_memory_stats()/; $a torch.cuda.reset_accumulated_memory_stats()' "$out/train.py" >"$out/reset.py"
    for program in train reset; do
        rm -f "$out/report"
        dry --gpu 24GiB --report "$out/report" -- python3 "$out/$program.py" >/dev/null 2>&1
        reported phases >"$out/$program.phases"
    done
    grep -q steady "$out/train.phases"
    cmp "$out/train.phases" "$out/reset.phases"
}

@test "a script that runs out of memory says what the card would say, and exits with its code" {
    run --separate-stderr dry --gpu 1GiB --report "$out/report" -- python3 "$out/train.py" 400
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"OutOfMemoryError: CUDA out of memory. Tried to allocate 800.00 MiB. GPU 0 has a total capacity of 1.00 GiB of which 624.00 MiB is free."* ]]
    [[ "$stderr" == *"answer     does not fit on GPU of 1GiB (sure: no request's size is uncertain)"* ]]
    [[ "$stderr" == *"verdict    shortage"* ]]
    [[ "$stderr" == *"what to do"* ]]
    [ "$(reported fits)" = false ]
    [ "$(reported oom.requested_bytes)" = $((800 << 20)) ]
    [ "$(reported oom.is_caught)" = false ]
    [ "$(reported ended_by)" = '"oom"' ]
    [ "$(reported verdict)" = '"shortage"' ]
}

@test "memory that ran out is seen where the script catches the error" {
    cat >"$out/caught.py" <<'END'
import torch
kept = torch.empty(100)
try:
    torch.empty(4096)
except torch.cuda.OutOfMemoryError:
    print("caught")
END
    run --separate-stderr dry --gpu 1GiB --report "$out/report" -- python3 "$out/caught.py"
    [ "$status" -eq 0 ]
    [ "$output" = caught ]
    [ "$(reported fits)" = false ]
    [ "$(reported oom.is_caught)" = true ]
    [[ "$stderr" == *"the script caught the error and went on"* ]]
    run dry --gpu 1GiB --fail-on-oom -q -- python3 "$out/caught.py"
    [ "$status" -eq 1 ]
}

@test "a script that fails for its own reasons fails the same way" {
    cat >"$out/fails.py" <<'END'
import sys, torch
block = torch.empty(64)
if sys.argv[1:] == ["raise"]:
    raise ValueError("no such data")
sys.exit(7)
END
    run --separate-stderr dry --gpu rtx4090 --report "$out/report" -- python3 "$out/fails.py"
    [ "$status" -eq 7 ]
    run --separate-stderr dry --gpu rtx4090 -f --report "$out/report" -- python3 "$out/fails.py" raise
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"ValueError: no such data"* ]]
    [ "$(reported fits)" = null ]
    [ "$(reported exception)" = '"ValueError: no such data"' ]
}

@test "--conf is set under both names, so that no release warns of one" {
    unset PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF
    echo 'import os, torch; torch.empty(10); print(os.environ.get("PYTORCH_ALLOC_CONF"), os.environ.get("PYTORCH_CUDA_ALLOC_CONF"))' >"$out/conf.py"
    run --separate-stderr dry --gpu 1GiB --conf max_split_size_mb:64 -- python3 "$out/conf.py"
    [ "$output" = "max_split_size_mb:64 max_split_size_mb:64" ]
    PYTORCH_ALLOC_CONF=backend:native run --separate-stderr dry --gpu 1GiB -- python3 "$out/conf.py"
    [ "$output" = "backend:native None" ]
}

@test "--steps and --until end the script, and its finally blocks run" {
    sed -i 's/^for step/try:\n  for step/; s/^    \(.*\)/      \1/; s/^print("done")/finally:\n  print("cleaned up")/' "$out/train.py"
    run --separate-stderr dry --gpu rtx4090 --steps 2 --report "$out/report" -- python3 "$out/train.py"
    [ "$status" -eq 0 ]
    [[ "$output" == *"cleaned up" ]]
    [ "$(reported steps)" = 2 ]
    [ "$(reported ended_by)" = '"steps"' ]
    run --separate-stderr dry --gpu rtx4090 --until torch:empty=3 -f --report "$out/report" -- python3 "$out/train.py"
    [ "$(reported ended_by)" = '"until"' ]
    [ "$(reported requests)" = 3 ]
}

@test "a recording is left by os._exit, by a signal and by --timeout" {
    cat >"$out/ends.py" <<'END'
import os, signal, sys, time, torch
block = torch.empty(64)
if sys.argv[1] == "exit":
    os._exit(3)
if sys.argv[1] == "term":
    os.kill(os.getpid(), signal.SIGTERM)
time.sleep(100)
END
    run dry --gpu rtx4090 -q --report "$out/report" -- python3 "$out/ends.py" exit
    [ "$status" -eq 3 ]
    [ "$(reported requests)" = 1 ]
    run dry --gpu rtx4090 -q -f --report "$out/report" -- python3 "$out/ends.py" term
    [ "$status" -eq 143 ]
    [ "$(reported ended_by)" = '"signal 15"' ]
    run dry --gpu rtx4090 --timeout 2 -f --report "$out/report" -- python3 "$out/ends.py" sleep
    [ "$status" -eq 143 ]
    [[ "$output" == *"the script was ended after 2 s, as --timeout says"* ]]
    [ "$(reported requests)" = 1 ]
}

@test "a fork without CUDA records nothing, and every process that uses it is recorded" {
    cat >"$out/forks.py" <<'END'
import os, torch
def child(use):
    pid = os.fork()
    if pid == 0:
        if use:
            block = torch.empty(32)
        os._exit(0)
    os.waitpid(pid, 0)
child(False)
child(True)
block = torch.empty(64)
child(False)
END
    dry --gpu rtx4090 -q -o "$out/run.pickle" --report "$out/report" -- python3 "$out/forks.py"
    [ "$(wc -l <"$out/report")" = 2 ]
    [ "$(ls "$out"/run.pickle* | wc -l)" = 2 ]
}

@test "ranks have a recording each, in their order" {
    cat >"$out/ranks.sh" <<END
#!/bin/sh
for rank in 1 0; do RANK=\$rank WORLD_SIZE=2 python3 "$out/train.py" \$((rank * 100 + 100)); done
END
    chmod +x "$out/ranks.sh"
    dry --gpu rtx4090 -q -o "$out/run.pickle" --report "$out/report" -- "$out/ranks.sh"
    [ "$(reported rank)" = 0 ]
    [ "$(reported peak.requested_bytes)" = $((400 << 20)) ]
    [ -e "$out/run.pickle" ] && [ -e "$out/run.pickle-rank1" ]
    tail -n 1 "$out/report" | grep -q '"rank":1'
}

@test "a loop that waits for a value of the device ends with its line, or takes the value given" {
    cat >"$out/loop.py" <<'END'
import torch
loss = torch.Tensor()
while loss.item() < 0.5:
    block = torch.empty(10)
print("left the loop")
END
    run --separate-stderr dry --gpu rtx4090 --rounds 20 --report "$out/report" -- python3 "$out/loop.py"
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"loop.py:3 waits in a loop for a value that only the GPU would compute; it was read 20 times"* ]]
    [ "$(reported ended_by)" = '"loop"' ]
    run --separate-stderr dry --gpu rtx4090 --value loop.py:3=0.75 -f --report "$out/report" -- python3 "$out/loop.py"
    [ "$status" -eq 0 ]
    [ "$output" = "left the loop" ]
}

@test "a mask of the device selects every element, and what hangs on that is said" {
    printf 'import torch\nchosen = torch.Tensor().nonzero()\nagain = torch.Tensor().nonzero()\n' >"$out/mask.py"
    run --separate-stderr dry --gpu rtx4090 --report "$out/report" -- python3 "$out/mask.py"
    [ "$status" -eq 0 ]
    [ "$(reported peak.requested_bytes)" = $(((64 + 64 + 10) << 20)) ]
    [ "$(reported selections)" = '[{"where": "mask.py:2", "elements": 64, "count": 1}, {"where": "mask.py:3", "elements": 64, "count": 1}]' ]
    [[ "$stderr" == *"fits on"*"(with as many elements as masks are said to select, see below)"* ]]
    [[ "$stderr" == *"mask       mask.py:2: how many of 64 elements it selects only a GPU would know; all were taken, 1 time"* ]]
    run --separate-stderr dry --gpu rtx4090 --selected 25 --value mask.py:3=4 -f --report "$out/report" -- python3 "$out/mask.py"
    [ "$(reported peak.requested_bytes)" = $(((16 + 4 + 10) << 20)) ]
    [[ "$stderr" == *"25 % were taken"* ]]
    # Fewer elements might fit.
    run --separate-stderr dry --gpu 100MiB -f --report "$out/report" -- python3 "$out/mask.py"
    [ "$status" -eq 1 ]
    [ "$(reported fits)" = null ]
    [[ "$stderr" == *"hangs on masks of the GPU"* ]]
    run --separate-stderr dry --gpu 100MiB --selected 90 -f --report "$out/report" -- python3 "$out/mask.py"
    [ "$(reported fits)" = false ]
}

@test "a value is known in a process that the script forks too" {
    cat >"$out/forks.py" <<'END'
import os, torch
def look():
    print(torch.Tensor().item(), flush=True)
child = os.fork()
if child == 0:
    look()
    os._exit(0)
os.waitpid(child, 0)
look()
END
    run --separate-stderr dry --gpu rtx4090 --value forks.py:3=0.75 -- python3 "$out/forks.py"
    [ "$status" -eq 0 ]
    [ "$output" = $'0.75\n0.75' ]
}

@test "--max finds the largest value that fits" {
    run --separate-stderr dry --gpu 1GiB --max '{}' --from 10 -- python3 "$out/train.py"
    [ "$status" -eq 0 ]
    # Four times the value, in segments of whole pages of 2 MiB.
    [ "${lines[-1]}" = 256 ]
    [[ "$stderr" == *"257: out of memory"* ]]
    # Two runs that scale, the value that replays of them say, and the next.
    [[ "$stderr" == *"replays of the requests with 10 and 20, scaled: 256 should be the largest"* ]]
    [[ "$stderr" == *"the largest that fits on GPU of 1GiB is 256, 4 runs"* ]]
    run dry --gpu 1GiB --max '--batch' -- python3 "$out/train.py"
    [ "$status" -eq 2 ]
    [[ "$output" == *"--max: it has no {} for the value"* ]]
}

@test "--max finds the largest value of a script that does not scale as two runs say" {
    # Above 100 a block is three times as large, which no replay of smaller ones knows.
    sed -i 's/^weights = .*/&\nif mib > 100: more = torch.empty(8 * mib)/' "$out/train.py"
    run --separate-stderr dry --gpu 1GiB --max '{}' --from 10 -- python3 "$out/train.py"
    [ "${lines[-1]}" = 100 ]
    [[ "$stderr" == *"100: fits"* ]]
    [[ "$stderr" == *"101: out of memory"* ]]
    # Requests in another order with odd values: nothing is guessed.
    sed -i 's/^if mib > 100.*/if mib % 4 == 1: more = torch.empty(20)/' "$out/train.py"
    run --separate-stderr dry --gpu 512MiB --max '{}' --from 99 --to 300 -- python3 "$out/train.py"
    [ "${lines[-1]}" = 128 ]
}

@test "other settings, allocators and cards by replay" {
    run --separate-stderr dry --gpu rtx4090 --compare expandable_segments:True --policy best-fit --matrix t4,rtx2060 -- python3 "$out/train.py" 1700
    [ "$status" -eq 0 ]
    [[ "$stderr" == *"as it was run"*"6.64 GiB"*"expandable_segments:True"*"best-fit"* ]]
    [[ "$stderr" == *"NVIDIA T4"*"fits"* ]]
    [[ "$stderr" == *"NVIDIA GeForce RTX 2060"*"out of memory at event"* ]]
}

@test "a peak above the baseline fails, the same peak does not" {
    dry --gpu rtx4090 -q --report "$out/base" -- python3 "$out/train.py"
    run dry --gpu rtx4090 --baseline "$out/base" --fail-above 0 -- python3 "$out/train.py"
    [ "$status" -eq 0 ]
    [[ "$output" == *"baseline   peak reserved   419,430,400 bytes, then 419,430,400: +0.000 %"* ]]
    run dry --gpu rtx4090 --baseline "$out/base" --fail-above 0 -- python3 "$out/train.py" 101
    [ "$status" -eq 1 ]
    [[ "$output" == *"+1.000 %  ABOVE"* ]]
    run dry --gpu rtx4090 --baseline "$out/base" --fail-above 2 -- python3 "$out/train.py" 101
    [ "$status" -eq 0 ]
    echo '{"a":1}' >"$out/bad"
    run dry --gpu rtx4090 --baseline "$out/bad" -- python3 "$out/train.py"
    [ "$status" -eq 3 ]
    [[ "$output" == *"bad:1"*"expected an answer of a dry run, as --report writes"* ]]
}

@test "the workflow of docs/dry-run.md passes unchanged again and again, and fails when a peak grows by a MiB" {
    mkdir "$out/bin" "$out/project"
    printf '#!/bin/sh\n[ "$1" = dryrun ] && shift && exec "%s" dryrun --software "%s" "$@"\nexec "%s" "$@"\n' "$fraglab" "$out/cuda" "$fraglab" >"$out/bin/fraglab"
    printf '#!/bin/sh\necho pip "$@"\n' >"$out/bin/pip"
    ln -s "$(command -v python3)" "$out/bin/python"
    chmod +x "$out/bin/fraglab" "$out/bin/pip"
    # The steps' commands, one script each.
    python3 -S -c 'import re, sys
text = open("docs/dry-run.md").read().split("```yaml")[1].split("```")[0]
steps = re.findall(r"- run: (.*(?:\n {10}.*)*)", text)
print("\n".join(line.strip() for step in steps for line in step.removeprefix("|").splitlines()))' >"$out/steps"
    grep -q "^pip install" "$out/steps"
    grep -q "^fraglab dryrun .*--baseline mem.json --fail-above 0" "$out/steps"
    cp "$out/train.py" "$out/project/train.py"
    once=$(sed -n 's/ *# once, committed$//p' docs/dry-run.md)
    export PATH=$out/bin:$PATH
    cd "$out/project"
    bash -e -c "$once" >/dev/null 2>&1
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        bash -e "$out/steps" >"$out/log" 2>&1
    done
    sed -i 's/state or torch.empty(mib)/state or torch.empty(mib + 1)/' train.py
    run bash -e "$out/steps"
    [ "$status" -eq 1 ]
    [[ "$output" == *"baseline   peak reserved"*"ABOVE"* ]]
}

@test "what cannot be run is said before anything runs" {
    refused() { # status, words, arguments...
        local expected=$1 words=$2
        shift 2
        run dry "$@"
        [ "$status" -eq "$expected" ]
        [[ "$output" == *"$words"* ]]
    }
    refused 4 "cannot be run (No such file or directory); name one with --python" -- /nowhere/python train.py
    PYTHONPATH='' refused 4 "has no torch; install PyTorch for CUDA there" --python "$(command -v python3)" -- python3 x.py
    cp -r tests/programs/stub_dryrun "$out/cpu"
    printf "__version__ = '2.9.1+cpu'\ncuda = None\n" >"$out/cpu/torch/version.py"
    PYTHONPATH=$out/cpu refused 4 "torch 2.9.1+cpu of" -- python3 x.py
    printf "__version__ = '2.2.0+cu118'\ncuda: str = '11.8'\n" >"$out/cpu/torch/version.py"
    PYTHONPATH=$out/cpu refused 4 "is built for CUDA 11.8; a dry run needs CUDA 12 or 13" -- python3 x.py
    printf "__version__ = '2.9.1+rocm6'\ncuda = None\nhip = '6.4'\n" >"$out/cpu/torch/version.py"
    PYTHONPATH=$out/cpu refused 4 "is built for ROCm" -- python3 x.py
    refused 2 "MI300X is a card for ROCm" --gpu mi300x -- python3 x.py
    refused 2 "--gpu" --gpu rtx9999 -- python3 x.py
    refused 2 "--until: 'backward' names no function" --until backward -- python3 "$out/train.py"
    refused 2 "--follow: '1GiB' is not a size from 1 byte to 64MiB" --follow 1GiB -- python3 x.py
    refused 2 "--value: 'x=3' is not a value" --value x=3 -- python3 "$out/train.py"
    refused 2 "stdout is the script's own" -o - -- python3 x.py
    refused 2 "python3 -I leaves out what a dry run puts before the script's own modules" -- python3 -I "$out/train.py"
    refused 2 "python3 -S leaves out" -- python3 -u -X dev -BS "$out/train.py"
    refused 2 "--gpu" --gpu rtx9999 -- python3 x.py -I
    run dry -q --gpu 1GiB -- python3 -c 'import sys, torch; torch.empty(10); print(sys.argv)' -I
    [ "$status" -eq 0 ]
    [ "$output" = "['-c', '-I']" ]
}

@test "libraries of other sources than this fraglab's are used with a warning" {
    words="was built from other sources than this fraglab, so that the answer may be wrong; 'make fraglab software-cuda' builds both anew"
    run dry --gpu 1GiB -- python3 -c 'import torch; torch.empty(10)'
    [[ "$output" != *"other sources"* ]]
    cp build/release/software-cuda/12/sources "$out/cuda/sources"
    run dry --gpu 1GiB -- python3 -c 'import torch; torch.empty(10)'
    [[ "$output" != *"other sources"* ]]
    echo 1 >"$out/cuda/sources"
    run dry --gpu 1GiB -- python3 -c 'import torch; torch.empty(10)'
    [ "$status" -eq 0 ]
    [[ "$output" == *"the software CUDA in $out/cuda $words"* ]]
    # Beside a fraglab older ones are found, which have no digest.
    mkdir -p "$out/moved/software-cuda/12" && cp fraglab "$out/moved/" && cp "$out/cuda/preload" "$out/moved/software-cuda/12/"
    ln -s "$PWD/gpu_replay" "$PWD/devices" "$PWD/share" "$out/moved/"
    run "$out/moved/fraglab" dryrun --gpu 1GiB -- python3 -c 'import torch; torch.empty(10)'
    [[ "$output" == *"the software CUDA in $out/moved/software-cuda/12 $words"* ]]
}

@test "nothing recorded is said, and is a finding" {
    run dry --gpu rtx4090 -- python3 -c 'print("no torch")'
    [ "$status" -eq 1 ]
    [[ "$output" == *"nothing was recorded: no process of the script used CUDA"* ]]
    run dry --gpu rtx4090 -- python3 -c 'raise SystemExit(3)'
    [ "$status" -eq 3 ]
    [[ "$output" == *"nothing was recorded: the script ended with exit code 3, and no process of it had used CUDA"* ]]
}

@test "the script's own sitecustomize runs, and nvidia-smi shows the card" {
    mkdir "$out/site"
    echo 'print("own sitecustomize")' >"$out/site/sitecustomize.py"
    PYTHONPATH=$out/site:$PYTHONPATH run --separate-stderr dry --gpu rtx4090 -- python3 -c 'import torch, subprocess
torch.empty(10)
for form in "csv,noheader", "csv,noheader,nounits":
    for fields in "name,memory.total", "utilization.gpu,temperature.gpu,power.draw,clocks.mem":
        print(subprocess.run(["nvidia-smi", "--query-gpu=" + fields, "--format=" + form], capture_output=True, text=True).stdout.strip())'
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "own sitecustomize" ]
    [ "${lines[1]}" = "NVIDIA GeForce RTX 4090, 24576 MiB" ]
    [ "${lines[2]}" = "0 %, 30, 50.00 W, 1215 MHz" ]
    [ "${lines[4]}" = "0, 30, 50.00, 1215" ]
}

@test "nvidia-smi shows what the processes on each card hold" {
    cat >"$out/smi.py" <<'END'
import os, subprocess, sys, torch
def smi(*words):
    return subprocess.run(["nvidia-smi", *words], capture_output=True, text=True, check=True).stdout.splitlines()
usage = "--query-gpu=memory.used,memory.free,memory.total", "--format=csv,noheader,nounits"
print(smi(*usage))
held = torch.empty(300)
print(smi(*usage))
child = "import torch, time; held = torch.empty(100); print(1, flush=True); time.sleep(60)"
other = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
other.stdout.readline()
print(smi(*usage))
names = {os.getpid(): "own", other.pid: "other"}
for line in smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader"):
    print(names[int(line.split(",")[0])], line.split(",")[1])
other.kill()  # not waited for: a zombie holds nothing
other.stdout.read()
print(smi(*usage))
print(any(" 800 MiB" in line for line in smi()))
END
    run --separate-stderr dry --gpu rtx4090 -- python3 "$out/smi.py"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "['0, 24207, 24576']" ]
    [ "${lines[1]}" = "['800, 23407, 24576']" ]
    [ "${lines[2]}" = "['1400, 22807, 24576']" ]
    [ "$(printf '%s\n' "${lines[@]:3:2}" | sort | tr '\n' ';')" = "other  600 MiB;own  800 MiB;" ]
    [ "${lines[5]}" = "['800, 23407, 24576']" ]
    [ "${lines[6]}" = True ]
}

@test "sizes that a library decides are replayed at their other end" {
    cat >"$out/workspace.py" <<'END'
import ctypes, sys, torch
first = torch.empty(int(sys.argv[1]))
note = ctypes.CDLL("libcuda.so.1").frag_software_note_uncertain
note.restype = ctypes.c_uint64
note.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64]
workspace = torch._allocator.Block(note(b"cudnnGetWorkspace", b"convolution", 20 << 20, 400 << 20))
END
    dry --gpu 1GiB --report "$out/report" -- python3 "$out/workspace.py" 100 2>"$out/stderr"
    [ "$(reported fits)" = true ]
    [ "$(reported uncertain_bytes)" = "{\"low\": $((20 << 20)), \"high\": $((400 << 20))}" ]
    [ "$(reported peak_interval)" = "{\"reserved_low_bytes\": $((120 << 20)), \"reserved_high_bytes\": $((500 << 20)), \"draws\": 15, \"draws_served\": 15}" ]
    grep -q "(sure: with the smallest and the largest of 1 uncertain size, and 15 draws between)" "$out/stderr"
    grep -q "^uncertain  cudnnGetWorkspace (convolution): 20.00 MiB to 400.00 MiB" "$out/stderr"
    # Those of one purpose share a line.
    printf '%s\n' 'note(b"other", b"sums", 4 << 20, 4 << 20)' 'note(b"cudnnGetWorkspace", b"convolution", 8 << 20, 16 << 20)' >"$out/more"
    dry --gpu 1GiB -- python3 <(cat "$out/workspace.py" "$out/more") 100 2>"$out/stderr"
    [ "$(grep "^uncertain" "$out/stderr")" = "uncertain  cudnnGetWorkspace (convolution): 2 sizes, 8.00 MiB to 400.00 MiB
uncertain  other (sums): 4.00 MiB to 4.00 MiB" ]
    # Out of memory at the upper end only, and at both.
    run --separate-stderr dry --gpu 1GiB -f --report "$out/report" -- python3 "$out/workspace.py" 900
    [ "$(reported fits)" = null ]
    [[ "$stderr" == *"hangs on sizes that NVIDIA's libraries decide"* ]]
    [[ "$stderr" == *"running it with those, its output is not shown"* ]]
    [[ "$stderr" == *"run with the smallest it fits, 104.00 MiB left"* ]]
    [ "$(reported low_run.fits)" = true ]
    [ "$(reported low_run.reserved_bytes)" = $((920 << 20)) ]
    [ "$(reported peak_interval.draws_served)" -gt 0 ]
    [ "$(reported peak_interval.draws_served)" -lt 15 ]
    run dry --gpu 1GiB --workspaces low -q -f --report "$out/report" -- python3 "$out/workspace.py" 900
    [ "$(reported fits)" = true ]
    run dry --gpu 1GiB -q -f --report "$out/report" -- python3 "$out/workspace.py" 1010
    [ "$(reported fits)" = false ]
}

@test "what runs out of memory later with the smallest sizes too does not fit, surely" {
    cat >"$out/later.py" <<'END'
import ctypes, torch
first = torch.empty(900)
note = ctypes.CDLL("libcuda.so.1").frag_software_note_uncertain
note.restype = ctypes.c_uint64
note.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64]
workspace = torch._allocator.Block(note(b"cudnnGetWorkspace", b"convolution", 20 << 20, 400 << 20))
print("past the workspace")
second = torch.empty(200)
END
    run --separate-stderr dry --gpu 1GiB --report "$out/report" -- python3 "$out/later.py"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [ "$(reported fits)" = false ]
    [ "$(reported low_run.fits)" = false ]
    [[ "$stderr" == *"does not fit on GPU of 1GiB (sure: with the smallest and the largest of 1 uncertain size)"* ]]
    # Said which end is wanted, it is run once.
    run --separate-stderr dry --gpu 1GiB --workspaces high -f --report "$out/report" -- python3 "$out/later.py"
    [ "$(reported fits)" = null ]
    [ "$(reported low_run)" = null ]
}

@test "^C twice leaves the recording, and so does a full disk the facts" {
    cat >"$out/long.py" <<'END'
import os, pickle, time, torch
blocks = [torch.empty(1) for i in range(2000)]
dump = pickle.dump
def slow(*arguments):
    open(os.environ["TMPDIR"] + "/writing", "w").close()
    time.sleep(1)
    dump(*arguments)
pickle.dump = slow
open(os.environ["TMPDIR"] + "/ready", "w").close()
time.sleep(30)
END
    setsid "$fraglab" dryrun --software "$out/cuda" -q -o "$out/run.pickle" -- python3 "$out/long.py" >/dev/null 2>&1 3>&- &
    for _ in $(seq 100); do [ -e "$out/ready" ] && break || sleep 0.1; done
    kill -INT -- "-$!"
    for _ in $(seq 100); do [ -e "$out/writing" ] && break || sleep 0.1; done
    kill -INT -- "-$!"
    wait "$!" || true
    "$fraglab" trace check "$out/run.pickle"
    sed -i 's/^    dump(.*/    raise OSError(28, "No space left on device")/; s/^time.sleep.*//' "$out/long.py"
    run --separate-stderr dry --gpu 4GiB --report "$out/report" -- python3 "$out/long.py"
    [ "$(reported fits)" = null ]
    [[ "$stderr" == *"answer     not known: the recording cannot be written to $out/fraglab-dryrun-"*"(No space left on device); TMPDIR names another folder"* ]]
}

@test "progress has a line of its own on a terminal, and is nowhere else" {
    cat >"$out/slow.py" <<'END'
import time, torch
optimizer = torch.optim.Optimizer()
block = torch.empty(64)
for step in range(3):
    print("line", step, flush=True)
    optimizer.step()
    time.sleep(0.7)
END
    cat >"$out/terminal.py" <<'END'
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
try:
    while True:
        part = os.read(terminal, 65536)
        if not part:
            break
        sys.stdout.buffer.write(part)
except OSError:
    pass
END
    python3 -c 'import pty; pty.openpty()' 2>/dev/null || skip "no terminal to be had here"
    export TERM=xterm
    python3 "$out/terminal.py" "$fraglab" dryrun --software "$out/cuda" --gpu 1GiB -- python3 "$out/slow.py" >"$out/screen"
    # Save the cursor, go to the last line, which does not scroll, write, go back.
    grep -qaP '\x1b7\x1b\[24;1H\x1b\[2Kdry run +[12] s, step 3, 1 request, 64.00 MiB reserved at the peak\x1b8' "$out/screen"
    grep -qaP '\x1b\[1;23r' "$out/screen"
    grep -qaP '\x1b7\x1b\[r\x1b\[24;1H\x1b\[2K\x1b8' "$out/screen"
    grep -qaP '^(\x1b[^l]*)*line 2\r$' "$out/screen"
    python3 "$out/terminal.py" "$fraglab" dryrun --software "$out/cuda" --gpu 1GiB -q -- python3 "$out/slow.py" >"$out/screen"
    ! grep -qa $'\x1b' "$out/screen" || false
    dry --gpu 1GiB -- python3 "$out/slow.py" >"$out/screen" 2>&1
    ! grep -qa $'\x1b' "$out/screen" || false
}

@test "a process that allocates nothing is none, and one without history says why" {
    cat >"$out/none.py" <<'END'
import os, torch
if os.fork() == 0:
    torch._allocator.device.begin()
    os._exit(0)
os.wait()
if "history" not in os.environ:
    torch.empty(10)
else:
    def refuse(*arguments, **named):
        raise RuntimeError("cudaMallocAsync does not yet support recordHistory")
    torch.cuda.memory._record_memory_history = refuse
    torch.empty(10)
END
    dry --gpu rtx4090 -q --report "$out/report" -- python3 "$out/none.py"
    [ "$(wc -l <"$out/report")" = 1 ]
    history=no run --separate-stderr dry --gpu rtx4090 -f --report "$out/report" -- python3 "$out/none.py"
    [ "$status" -eq 0 ]
    [ "$(reported fits)" = null ]
    [[ "$stderr" == *"answer     not known: cudaMallocAsync does not yet support recordHistory"* ]]
}

@test "chosen ranks of a large world run one after the other, each with its number" {
    cat >"$out/ranks.py" <<'END'
import os, torch
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")
print(*(os.environ[name] for name in names), os.environ["FRAGLAB_SOFTWARE_CUDA"].count("devices=8"))
kept = torch.empty(100 + int(os.environ["RANK"]))
END
    dry --gpu rtx4090 --ranks 64 --only 63,0 -o "$out/run.pickle" --report "$out/report" -- python3 "$out/ranks.py" >"$out/stdout" 2>/dev/null
    [ "$(cat "$out/stdout")" = $'0 64 0 8 0 1\n63 64 7 8 7 1' ]
    [ "$(wc -l <"$out/report")" = 2 ]
    [ "$(reported rank)" = 0 ]
    [ "$(reported peak.requested_bytes)" = $((100 << 20)) ]
    [ -s "$out/run.pickle-rank63" ]
    dry --ranks 6 --gpus 4 --only 5 -- python3 "$out/ranks.py" >"$out/stdout" 2>/dev/null
    [ "$(cat "$out/stdout")" = "5 6 1 4 1 0" ]
}

@test "a rank that fails leaves the others to run, and its code" {
    printf 'import os, sys, torch\nkept = torch.empty(10)\nsys.exit(3 if os.environ["RANK"] == "0" else 0)\n' >"$out/ranks.py"
    run --separate-stderr dry --ranks 2 --only 0,1 --report "$out/report" -- python3 "$out/ranks.py"
    [ "$status" -eq 3 ]
    [ "$(wc -l <"$out/report")" = 2 ]
}

@test "lists of ranks that cannot be meant are refused" {
    refused() {
        run dry "${@:2}"
        [ "$status" -eq 2 ]
        [[ "$output" == *"$1"* ]]
    }
    refused "--only: 4 is out of range; expected 0 to 3" --ranks 4 --only 0,4 -- python3 x.py
    refused "--only: rank 1 is there twice" --ranks 4 --only 1,0,1 -- python3 x.py
    refused "--only: '0,' has an empty place" --ranks 4 --only 0, -- python3 x.py
    refused "--only: '' has an empty place" --ranks 4 --only "" -- python3 x.py
    refused "--only: 'a' is not a whole number" --ranks 4 --only 0,a -- python3 x.py
    refused "--only: --ranks must say how many ranks there are" --only 0 -- python3 x.py
    refused "--ranks: 0 is out of range" --ranks 0 -- python3 x.py
    refused "--ranks: 'torchrun' starts ranks itself" --ranks 4 -- torchrun x.py
}

@test "a script's own snapshot holds what a card would have recorded for it, and the recording stays whole" {
    cat >"$out/own.py" <<'END'
import pickle, torch
from torch.cuda.memory import _record_memory_history as record, _snapshot, _dump_snapshot
def actions(): return [entry["action"] for entry in _snapshot()["device_traces"][0]]
first = torch.empty(100)
assert actions() == [], "nothing was asked for"
record(max_entries=3)
second = torch.empty(200)
assert actions() == ["segment_alloc", "alloc"], "from its start on"
del second
_dump_snapshot("own.pickle")
kept = pickle.load(open("own.pickle", "rb"))
assert [entry["action"] for entry in kept["device_traces"][0]] == ["snapshot", "free_requested", "free_completed"], "the last three"
assert kept["segments"] == _snapshot()["segments"] and len(kept["segments"]) == 2
record(max_entries=100, clear_history=True)
assert actions() == []
third = torch.empty(300)
record("state")
assert actions() == ["alloc"], "one entry"
try:
    record("alles")
except RuntimeError:
    print("refused")
record(None)
assert actions() == [], "at its end it is cleared"
record()
fourth = torch.empty(200)
assert actions() == ["alloc"]
END
    cd "$out"
    run --separate-stderr dry --gpu rtx4090 -o "$out/run.pickle" --report "$out/report" -- python3 "$out/own.py"
    [ "$status" -eq 0 ]
    [ "$output" = refused ]
    [ "$(reported requests)" = 4 ]
    [ "$(reported is_repeated)" = true ]
    [ "$(reported peak.requested_bytes)" = $((600 << 20)) ]
}

@test "a call of empty_cache is not taken for memory that a request needed" {
    cat >"$out/emptied.py" <<'END'
import torch
torch.cuda.empty_cache()  # before CUDA is initialised
for mib in 100, 300, 500:
    block = torch.empty(mib)
    del block
    torch.cuda.empty_cache()
block = torch.empty(700)
END
    for more in -q --stacks; do
        dry --gpu rtx4090 $more -f -o "$out/run.pickle" --report "$out/report" -- python3 "$out/emptied.py"
        [ "$(reported is_repeated)" = true ]
        [ "$(reported peak.reserved_bytes)" = $((700 << 20)) ]
        "$fraglab" verify "$out/run.pickle" | grep -q identical
        run "$fraglab" trace check -v "$out/run.pickle"
        [[ "$output" != *"empty-cache-or-retry"* ]]
    done
}

@test "processes on one card see each other's memory, and the answer says who held what" {
    cat >"$out/two.py" <<'END'
import subprocess, sys, torch
if len(sys.argv) > 1:
    a = torch.empty(100)
    torch.empty(2000)
else:
    weights = torch.empty(3000)
    sys.exit(subprocess.run([sys.executable, sys.argv[0], "child"]).returncode)
END
    status=0
    dry --gpu 4GiB --report "$out/report" -- python3 "$out/two.py" >/dev/null 2>"$out/stderr" || status=$?
    [ "$status" = 1 ]
    grep -q "^note       GPU 0 had no 1.95 GiB left for process [0-9]*; it was held by process [0-9]* 2.93 GiB, process [0-9]* 100.00 MiB" "$out/stderr"
    grep -q "^why        other processes held 2.93 GiB of the card then (below); alone on it this one fits" "$out/stderr"
    grep -q "3.03 GiB  held by all processes on it together, at most" "$out/stderr"
    [ "$(grep -c '"fits":false' "$out/report")" = 1 ]
    [ "$(grep -c "\"remaining_bytes\":$(((4096 - 3100) << 20))," "$out/report")" = 2 ]
    status=0
    dry --gpu 8GiB -- python3 "$out/two.py" >/dev/null 2>&1 || status=$?
    [ "$status" = 0 ]
}

@test "the script chooses among the cards by CUDA_VISIBLE_DEVICES, as with real ones" {
    printf 'import os, torch\nos.environ["CUDA_VISIBLE_DEVICES"] = "2"\na = torch.empty(100)\nprint("done")\n' >"$out/choose.py"
    dry --gpu 24GiB --report "$out/report" -- python3 "$out/choose.py" >/dev/null 2>&1
    [ "$(reported fits)" = true ]
    sed -i 's/"2"/""/' "$out/choose.py"
    status=0
    dry --gpu 24GiB -- python3 "$out/choose.py" >/dev/null 2>&1 || status=$?
    [ "$status" = 1 ]
}

@test "before Python 3.11 the part of a condition that reads a value is told by its jump" {
    for old in python3.10 python3.9 python3.8; do "$old" -c 'import ast' 2>/dev/null && break; old=; done
    [ -n "$old" ] || skip "no Python before 3.11 is here"
    cat >"$out/parts.py" <<'END'
import ast
import sys

sys.path.insert(0, sys.argv[1])
from fraglab_dryrun import values

found = []


class Value:
    """Says that it is true, and where it was asked."""
    def __bool__(self):
        found.append(values.place_in(sys._getframe(1), test))
        return True


v = Value()
for line, columns in (("not v or v and not v or (v and v)", [4, 9, 19, 25, 31]), ("not (v if v else v) or v", [0, 0, 0])):
    test = ast.parse(line, mode="eval").body
    del found[:]
    exec(compile("if " + line + ": pass", "x", "exec"))
    assert found == [(1, column) for column in columns], (line, found, columns)
END
    "$old" "$out/parts.py" gpu_replay/dryrun/site
}
