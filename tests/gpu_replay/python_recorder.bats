# share/fraglab_record.py with a stand-in for torch of several releases.

bats_require_minimum_version 1.5.0

setup() {
    command -v python3 >/dev/null || skip "python3 is not installed"
    out=$BATS_TEST_TMPDIR
    export PYTHONPATH=$PWD/tests/programs/stub_torch PYTHONDONTWRITEBYTECODE=1
    cat >"$out/train.py" <<'END'
import sys, os, helper, torch
print("arguments", sys.argv[1:], __name__)
torch.cuda.begin()
if "oom" in sys.argv:
    torch.cuda.run_out()
if "term" in sys.argv:
    os.kill(os.getpid(), 15)
sys.exit(5 if "five" in sys.argv else 0)
END
    echo "import sys" >"$out/helper.py"
}

record() { python3 share/fraglab_record.py "$@"; }

held() { python3 -c 'import pickle, sys; print(pickle.load(open(sys.argv[1], "rb"))["calls"])' "$1"; }

@test "a snapshot of any release holds what was recorded" {
    STUB_TORCH=2.15.0 record -o "$out/new.pickle" "$out/train.py" -o 3
    held "$out/new.pickle" | grep -qF "('all', 'all', {'context': None, 'stacks': 'python'})"
    STUB_TORCH=2.1.2 record --stacks -o "$out/new.pickle" "$out/train.py"
    held "$out/new.pickle" | grep -qF "'context': 'alloc'"
    STUB_TORCH=2.0.1 record -o "$out/old.pickle" "$out/train.py"
    held "$out/old.pickle" | grep -qF "('trace', True, 1099511627776)"
    STUB_TORCH=1.13.1 run record -o "$out/oldest.pickle" "$out/train.py"
    [[ "$output" == *"torch 1.13.1 keeps no history of events"* ]]
    held "$out/oldest.pickle" | grep -qF "('live', True)"
}

@test "arguments, output and exit code are the program's own" {
    STUB_TORCH=2.9.1 run record -o "$out/s.pickle" "$out/train.py" five -o x --stacks
    [ "$status" -eq 5 ]
    [[ "$output" == *"arguments ['five', '-o', 'x', '--stacks'] __main__"* ]]
    [ -s "$out/s.pickle" ]
    cd "$out"
    STUB_TORCH=2.9.1 run python3 "$OLDPWD/share/fraglab_record.py" -o m.pickle -m train five
    [ "$status" -eq 5 ]
    [ -s m.pickle ]
}

@test "running out of memory leaves two snapshots" {
    STUB_TORCH=2.9.1 run record -o "$out/s.pickle" "$out/train.py" oom
    [ "$status" -eq 1 ]
    [[ "$output" == *"OutOfMemoryError: CUDA out of memory"* ]]
    [ -s "$out/s.pickle" ]
    [ -s "$out/s.pickle.oom" ]
}

@test "a program that is asked to end still leaves its snapshot" {
    STUB_TORCH=2.9.1 run record -o "$out/s.pickle" "$out/train.py" term
    [ "$status" -eq 143 ]
    [ -s "$out/s.pickle" ]
}

@test "torch without CUDA, and programs that do not use it, are told" {
    STUB_TORCH=2.9.1+cpu run record -o "$out/s.pickle" "$out/train.py"
    [ "$status" -eq 1 ]
    [ "$output" = "fraglab_record: torch 2.9.1 is CPU only: it has no GPU memory to record" ]
    STUB_TORCH=2.9.1 run record -o "$out/s.pickle" "$out/helper.py"
    [ "$status" -eq 0 ]
    [[ "$output" == *"the program used no CUDA in this process"* ]]
    [ ! -e "$out/s.pickle" ]
    PYTHONPATH= run record -o "$out/s.pickle" "$out/train.py"
    if python3 -c 'import torch' 2>/dev/null; then skip "torch is installed"; fi
    [ "$status" -eq 1 ]
    [[ "$output" == *"torch cannot be imported"* ]]
}
