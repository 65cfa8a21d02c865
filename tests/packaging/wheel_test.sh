#!/usr/bin/env bash
# The wheel as people get it: tests/packaging/wheel_test.sh FOLDER [PYTHON...]          (make wheel-test)
#
# FOLDER has the wheel. Two builds must give the same bytes. It is installed into a bare environment of every
# PYTHON (else of every Python 3.9 to 3.14 that is found), where the program explains, replays and goes
# without a trace; and into a bare Debian (SUITES, fetched by debootstrap) if this account may.
# TORCH_PYTHON=path of a Python that has PyTorch for CUDA: a dry run too.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(cd "$1" && pwd)
shift
wheel=$(ls "$folder"/fraglab-*-manylinux_2_17_"$(uname -m)".whl)
work=$(mktemp -d "${TMPDIR:-/tmp}/fraglab-wheel-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
message='torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 22.40 GiB memory in use. Of the allocated memory 18.00 GiB is allocated by PyTorch, and 3.90 GiB is reserved by PyTorch but unallocated.'

note() { # result, name
    echo "$1  $2"
    case $1 in passed) passed=$((passed + 1)) ;; failed) failed=$((failed + 1)) ;; *) skipped=$((skipped + 1)) ;; esac
}
check() { # name, command...
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then note passed "$name"; else note failed "$name" && tail -n 20 "$work/log"; fi
}

same_bytes() {
    cp "$wheel" "$work/first.whl"
    rm -rf "build/wheel/$(uname -m)-linux-gnu.2.17/source/build"
    MAKE="${MAKE:-make}" bash packaging/wheel.sh
    cmp "$work/first.whl" "$wheel"
}

# Runs in any environment with the wheel: what a first user does.
try_out() { # python
    local bin=${1%/*}
    local begin end
    begin=$(date +%s%N)
    "$bin/fraglab" explain - <<<"$message" | grep fragmentation
    end=$(date +%s%N)
    [ $(((end - begin) / 1000000)) -lt 1000 ] || { echo "explain took $(((end - begin) / 1000000)) ms; expected less than 1000"; return 1; }
    samples=$("$1" -c 'import fraglab, os; print(os.path.join(os.path.dirname(fraglab.find_bin()), "../share/fraglab/samples"))')
    # The plugin is what pytest of this environment would load; without the option it imports nothing of the library.
    "$1" -c 'import importlib.metadata as m, sys; assert "[pytest11]\nfraglab = fraglab.pytest_plugin" in m.distribution("fraglab").read_text("entry_points.txt")'
    [ -z "${TORCH_PYTHON:-}" ] || "$1" -c 'import fraglab; assert callable(fraglab.record("x.pickle").start)'
    "$1" -m fraglab run "$samples/unet.pickle.zst" --policy pytorch:recorded --gpu rtx4090 --format jsonl | grep '"reserved_bytes"'
    "$bin/fraglab" plot timeline "$samples/gpt-varlen-oom.pickle.zst" --format csv | grep reserved
    "$bin/fraglab" report "$samples/gpt-varlen-oom.pickle.zst" -o "$work/page.html" && grep -q '</html>' "$work/page.html"
    [ -z "${TORCH_PYTHON:-}" ] || { echo 'import torch; torch.ones(1024, device="cuda")' >"$work/t.py"; "$bin/fraglab" dryrun "$TORCH_PYTHON" "$work/t.py" | grep 'dry run'; }
}

environment() { # python
    local target=$work/environment
    rm -rf "$target"
    "$1" -m venv "$target"
    find "$target" ! -type d | sort >"$work/before"
    "$target/bin/pip" install -q --disable-pip-version-check --no-index "$wheel"
    try_out "$target/bin/python"
    "$target/bin/pip" uninstall -q -y --disable-pip-version-check fraglab
    find "$target" ! -type d ! -path '*/pip/*' | sort >"$work/after"
    comm -13 "$work/before" "$work/after" >"$work/left"
    [ ! -s "$work/left" ] || { echo "pip uninstall left:" && cat "$work/left"; return 1; }
}

system() { # suite
    local root=$work/root
    debootstrap --variant=minbase --include=python3,python3-pip,python3-venv "$1" "$root" &&
        cp "$wheel" "$root/" && chroot "$root" python3 -m venv /venv && chroot "$root" sh -c '/venv/bin/pip install -q --no-index /*.whl' &&
        chroot "$root" /venv/bin/fraglab explain - <<<"$message" | grep fragmentation &&
        chroot "$root" sh -c '/venv/bin/fraglab run $(find /venv -name unet.pickle.zst) --format jsonl' | grep -q reserved_bytes &&
        chroot "$root" sh -c 'cd /tmp && sample=$(find /venv -name gpt-varlen-oom.pickle.zst) && /venv/bin/fraglab plot timeline $sample --format csv | grep -q reserved &&
            /venv/bin/fraglab report $sample -o page.html && grep -q "</html>" page.html && { /venv/bin/fraglab plot timeline $sample -o a.svg 2>&1 || true; } | grep -q "gnuplot is not installed"' &&
        chroot "$root" /venv/bin/python -c 'import fraglab; print(fraglab.open(fraglab.find_samples() + "/unet.pickle.zst").run().peak.reserved_bytes)' &&
        chroot "$root" sh -c '/venv/bin/pip uninstall -q -y fraglab && test -z "$(find /venv -name "*fraglab*")"'
    local code=$?
    rm -rf "$root"
    return $code
}

[ -n "${QUICK:-}" ] || check "two builds give the same bytes" same_bytes
if [ $# = 0 ]; then
    for minor in 9 10 11 12 13 14; do
        for python in "$HOME/.pyenv/versions/3.$minor".*/bin/python3 "$(command -v python3.$minor || true)"; do
            # A shim that names no version that is set answers with an error.
            if [ -x "$python" ] && "$python" -c '' 2>/dev/null; then
                set -- "$@" "$python"
                break
            fi
        done
    done
fi
for python in "$@"; do
    check "$("$python" --version) in a bare environment" environment "$python"
done
for suite in ${SUITES-bookworm}; do
    if command -v debootstrap >/dev/null && [ "$(id -u)" = 0 ]; then
        check "a bare Debian $suite" system "$suite"
    else
        note skipped "a bare Debian $suite: needs debootstrap and root"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
