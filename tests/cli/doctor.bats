# What doctor tells of GPUs, over a stand-in for the driver's library.

# stub NAME...: builds it without the functions of these names, and puts it where it is found first.
stub() {
    local memory=nvmlDeviceGetMemoryInfo_v2 third=nvmlDeviceGetComputeRunningProcesses_v3
    local second=nvmlDeviceGetComputeRunningProcesses_v2
    for absent; do
        case $absent in
        memory_v2) memory=absent_memory ;;
        processes_v3) third=absent_third ;;
        processes_v2) second=absent_second ;;
        esac
    done
    export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR
    "${CC:-gcc}" -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -fPIC -shared -DMEMORY_NEW=$memory -DPROCESSES_3=$third \
        -DPROCESSES_2=$second -o "$BATS_TEST_TMPDIR/libnvidia-ml.so.1" tests/data/device/nvml_stub.c
}

# says LINE: the output has this line.
says() {
    grep -qxF -- "$1" <<<"$output" || { echo "$output"; echo "has no line: $1"; return 1; }
}

# Rows of what is printed, whose schema has every member and kind of them.
are_of_schema() {
    PYTHONPATH=tests/python python3 -c '
import json, sys, test_schemas
rows = [json.loads(line) for line in sys.stdin]
faults = [test_schemas.fault(row, test_schemas.schema("gpu")) for row in rows]
sys.exit(str(faults) if not rows or any(faults) else 0)'
}

ME=$(id -un)

@test "without the driver's library doctor says so and exits 0" {
    ldconfig -p 2>/dev/null | grep -q libnvidia-ml.so.1 && skip "this machine has NVML"
    run ./fraglab doctor
    [ "$status" -eq 0 ]
    says "nvml         libnvidia-ml.so.1 is not found; it comes with the NVIDIA driver"
    run ./fraglab doctor --watch 1
    [ "$status" -eq 4 ]
    [ "$output" = "fraglab: libnvidia-ml.so.1 is not found; it comes with the NVIDIA driver" ]
}

@test "memory is told by process, yours or not, and what no process accounts for" {
    stub
    NVML_STUB_PID=$$ run ./fraglab doctor
    [ "$status" -eq 0 ]
    says "nvml         driver 550.54.15, CUDA up to 12.4"
    says "gpu 0        NVIDIA Stub, 24.00 GiB, 2.93 GiB used, 600.00 MiB reserved by the driver, 20.48 GiB free"
    grep -qx "  $$ *1.46 GiB  bash, yours" <<<"$output"
    says "  4194303    1.00 GiB  not seen from here (another container, or it has ended)"
    says "  in all     0 B with PyTorch, 2.46 GiB in other programs, 1.00 GiB not yours; 476.00 MiB used by no process listed"
}

@test "a process with PyTorch's library is known by it" {
    stub
    printf 'int none(void);\nint none(void) { return 0; }\n' >"$BATS_TEST_TMPDIR/none.c"
    "${CC:-gcc}" -shared -fPIC -o "$BATS_TEST_TMPDIR/libc10_cuda.so" "$BATS_TEST_TMPDIR/none.c"
    LD_PRELOAD=$BATS_TEST_TMPDIR/libc10_cuda.so sleep 60 3>&- &
    sleeper=$!
    sleep 0.2
    NVML_STUB_PID=$sleeper run ./fraglab doctor
    kill "$sleeper"
    grep -qx "  $sleeper *1.46 GiB  sleep, yours, with PyTorch" <<<"$output"
    says "  in all     1.46 GiB with PyTorch, 1.00 GiB in other programs, 1.00 GiB not yours; 476.00 MiB used by no process listed"
}

@test "older drivers are asked by the names they have" {
    for absent in "memory_v2" "memory_v2 processes_v3" "memory_v2 processes_v3 processes_v2"; do
        # shellcheck disable=SC2086
        stub $absent
        run ./fraglab doctor
        [ "$status" -eq 0 ]
        says "gpu 0        NVIDIA Stub, 24.00 GiB, 3.52 GiB used, 20.48 GiB free (used holds what the driver reserves)"
        says "  in all     0 B with PyTorch, 2.46 GiB in other programs, 1.00 GiB not yours; 1.05 GiB used by no process listed"
    done
}

@test "what the driver does not tell is unknown, never 0" {
    stub
    NVML_STUB="no lists" run ./fraglab doctor
    says "  processes  the driver does not list them"
    NVML_STUB="no lists" run ./fraglab doctor --format jsonl
    grep -q '"pytorch_bytes":null,"other_bytes":null,"not_mine_bytes":null,"unlisted_bytes":null,"processes":null}' <<<"$output"
    are_of_schema <<<"$output"
    NVML_STUB="no amounts" run ./fraglab doctor
    says "  4194303    unknown  not seen from here (another container, or it has ended)"
    ! grep -q "no process listed" <<<"$output" || false
}

@test "a GPU divided by MIG is told by its instances" {
    stub
    NVML_STUB=mig run ./fraglab doctor
    grep -q "^gpu 0 .*NVIDIA Stub divided by MIG, 24.00 GiB" <<<"$output"
    grep -q "^gpu 0 mig 2  NVIDIA Stub MIG 1g.6gb, 6.00 GiB" <<<"$output"
    NVML_STUB="no permission" run ./fraglab doctor
    says "gpu 0        NVIDIA Stub divided by MIG, memory not reported; see its instances"
    NVML_STUB=mig run ./fraglab doctor --format jsonl
    grep -q '"gpu":0,"mig":2,' <<<"$output"
    are_of_schema <<<"$output"
    NVML_STUB="no permission" ./fraglab doctor --format jsonl | are_of_schema
}

@test "refusals are told in the driver's words" {
    stub
    NVML_STUB="no driver" run ./fraglab doctor
    [ "$status" -eq 0 ]
    says "nvml         nvmlInit_v2: Driver Not Loaded (9)"
    NVML_STUB="lost" run ./fraglab doctor --watch 1
    [ "$status" -eq 4 ]
    [ "$output" = "fraglab: nvmlDeviceGetCount_v2: Some Reason (15)" ]
    NVML_STUB="no gpu" run ./fraglab doctor --format jsonl
    [ "$status" -eq 4 ]
    [ "$output" = "fraglab: the driver 550.54.15 shows no GPU" ]
}

@test "watching prints a line an interval until it is interrupted" {
    stub
    status=0
    timeout --preserve-status -s INT 1 ./fraglab doctor --watch 0.2 >"$BATS_TEST_TMPDIR/out" || status=$?
    cat "$BATS_TEST_TMPDIR/out"
    lines=$(wc -l <"$BATS_TEST_TMPDIR/out")
    [ "$lines" -ge 2 ] && [ "$lines" -le 6 ]
    ! grep -vqE '^20[0-9-]+T[0-9:]+Z  gpu 0  used 2\.93 GiB  free 20\.48 GiB  PyTorch 0 B  others 2\.46 GiB  not listed 476\.00 MiB  not yours 1\.00 GiB$' "$BATS_TEST_TMPDIR/out" || false
    [ "$status" -eq 130 ]
    row=$(timeout -s INT 0.5 ./fraglab doctor --watch 0.2 --format jsonl | head -1)
    [[ "$row" == '{'*'"used_bytes":'$((3000 << 20))','*'}' ]]
    [ "$(grep -o '"pid":' <<<"$row" | wc -l)" -eq 2 ]
    are_of_schema <<<"$row"
}

@test "intervals that are none are refused" {
    for interval in 0 -1 x nan 1e9; do
        run ./fraglab doctor --watch "$interval"
        [ "$status" -eq 2 ]
        grep -q "^fraglab: --watch: " <<<"$output"
    done
}
