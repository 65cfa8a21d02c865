# The same script twice gives the same requests, byte for byte: with PyTorch itself, where a release for CUDA is there already.
# make dryrun-test fetches one.

setup() {
    make --no-print-directory -s software-cuda >/dev/null
    # shellcheck source=tests/dryrun/get_torch.sh
    . tests/dryrun/get_torch.sh
    for release in 2.9.1 2.11.0 2.15.0 2.6.0; do
        is_ready "$release" && return
    done
    skip "no PyTorch for CUDA is there (FRAG_DRYRUN_VENV, build/dryrun)"
}

again() {
    run sh tests/dryrun/dryrun_test.sh ./fraglab "$release" "tests/dryrun/programs/$1.py"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"1 passed, 0 failed"* ]]
}

@test "a perceptron makes the same requests twice" { again mlp; }

@test "autocast, whose cache frees in an order of addresses, makes the same requests twice" { again mlp_amp; }

@test "autocast after backward passes, whose thread frees when it comes to it, makes the same requests twice" { again gpt; }

@test "two ranks make the same requests twice" { again ranks/ddp; }
