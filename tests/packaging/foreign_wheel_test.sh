#!/usr/bin/env bash
# A wheel for other machines beside this machine's own: tests/packaging/foreign_wheel_test.sh FOLDER TARGET          (make foreign-wheel-test TARGET=...)
#
# FOLDER has both wheels; TARGET is as of packaging/wheel.sh. Packages of Debian for that architecture, with Python and
# musl, are fetched and unpacked into a folder (ROOT=folder: those that are there already), and run by
# qemu-aarch64-static where this machine cannot run them itself. pip of that Python installs the wheel, and
# program and API must print what this machine's wheel prints, byte by byte. The program is started
# by its path, as a folder without /proc starts nothing itself: `python -m fraglab` is not tried.
# Exits with 77 where something is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(cd "$1" && pwd)
target=$2
arch=${target%%-*}
case $arch in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; *) echo "no such architecture: $arch" >&2; exit 2 ;; esac
case $target in *-musl) tag=musllinux_1_2_$arch ;; *) tag=manylinux_2_17_$arch ;; esac
qemu=
if [ "$arch" != "$(uname -m)" ]; then
    qemu=$(command -v "qemu-$arch-static") || { echo "skipped: needs qemu-$arch-static (Debian: qemu-user-static)"; exit 77; }
fi
command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || { echo "skipped: needs apt-get and root (chroot)"; exit 77; }
wheel=$(ls "$folder"/fraglab-*-"$tag".whl)
own=$(ls "$folder"/fraglab-*-manylinux_2_17_"$(uname -m)".whl)
work=$(mktemp -d "${TMPDIR:-/tmp}/fraglab-foreign-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
passed=0 failed=0
check() { # name, command...
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "passed  $name" && passed=$((passed + 1))
    else
        echo "failed  $name" && failed=$((failed + 1)) && tail -n 20 "$work/log"
    fi
}
# In the folder, by its own path names.
inside() { chroot "$root" ${qemu:+/usr/bin/${qemu##*/}} "$@"; }

fetch() { # packages...
    local apt=$work/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root"
    : >"$apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<EOF
APT::Architecture "$debian";
APT::Architectures { "$debian"; };
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::SourceList "$apt/sources.list";
Dir::State::Lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
EOF
    APT_CONFIG=$apt/apt.conf apt-get -q update
    APT_CONFIG=$apt/apt.conf apt-get -q install -y --download-only --no-install-recommends "$@"
    for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
}
make_root() {
    if [ -n "${ROOT:-}" ]; then cp -a "$ROOT" "$root"; else fetch python3 python3-pip musl libstdc++6 libgomp1; fi
    [ -z "$qemu" ] || cp "$qemu" "$root/usr/bin/"
    mkdir -p "$root/tmp" "$root/wheel" "$root/own"
}

# The tags of this Python are those of glibc, so of a wheel for musl only the files are unpacked.
install_wheel() {
    cp "$wheel" "$root/tmp/"
    case $tag in
    musllinux*) python3 -m zipfile -e "$wheel" "$root/wheel" && chmod 755 "$root"/wheel/fraglab/_root/bin/fraglab ;;
    *) inside /usr/bin/python3 -m pip install -q --no-index --no-compile --root-user-action=ignore --target /wheel "/tmp/${wheel##*/}" ;;
    esac
    mkdir "$work/own" && python3 -m zipfile -e "$own" "$work/own" && chmod 755 "$work/own/fraglab/_root/bin/fraglab"
}

# What both print; each reads the file $given.
given=/dev/null
both() { # arguments of fraglab; $S: the samples
    local program=/wheel/fraglab/_root/bin/fraglab
    (cd "$root" && inside "$program" "${@//\$S//wheel/fraglab/_root/share/fraglab/samples}") <"$given" >"$work/theirs"
    (cd "$root" && "$work/own/fraglab/_root/bin/fraglab" "${@//\$S/$root/wheel/fraglab/_root/share/fraglab/samples}") <"$given" >"$work/ours"
    [ -s "$work/ours" ] && cmp "$work/ours" "$work/theirs"
}
rows() { # arguments of run: every sample
    for sample in "$root"/wheel/fraglab/_root/share/fraglab/samples/*.zst; do
        both run "\$S/${sample##*/}" "$@" --format jsonl || return 1
    done
}
finds_card() { # with a card, and statistics
    both run '$S/gpt-varlen.pickle.zst' --policy pytorch --gpu rtx4090 --stats-at peak --check 1000 --format jsonl
}
page() { # its path is in it, so it is a relative one
    local sample=wheel/fraglab/_root/share/fraglab/samples/gpt-varlen-oom.pickle.zst
    (cd "$root" && inside /wheel/fraglab/_root/bin/fraglab report "$sample" -o tmp/page.html && mv tmp/page.html "$work/theirs.html" &&
        "$work/own/fraglab/_root/bin/fraglab" report "$sample" -o tmp/page.html && cmp tmp/page.html "$work/theirs.html")
}
explain() {
    given=$work/message
    echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 22.40 GiB memory in use. Of the allocated memory 18.00 GiB is allocated by PyTorch, and 3.90 GiB is reserved by PyTorch but unallocated.' >"$given"
    both explain - || return 1
    grep -q fragmentation "$work/ours"
}

cat >"$work/api.py" <<'EOF'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import fraglab, os
samples = os.path.join(os.path.dirname(fraglab.find_bin()), "../share/fraglab/samples/")
class Direct(fraglab.Policy):
    def alloc(self, bytes, stream, pool):
        return self.device.malloc(bytes)
    def free(self, address, stream):
        self.device.free(address)
recording = fraglab.open(samples + "gpt-varlen-oom.pickle.zst")
for policy in ("pytorch:recorded", "best-fit", Direct):
    result = recording.run(policy)
    print(result.to_json(), result.timeline().placements.address.tolist()[:1000])
    # How many runs a search takes is not the answer: qemu does not tell which pages were written, so that each begins anew.
    print({name: value for name, value in recording.min_capacity(policy).to_dict().items() if name != "runs"})
print(recording.verify().to_dict(), recording.explain(), fraglab.explain("CUDA out of memory. Tried to allocate 20.00 MiB"))
try:
    fraglab.open(b"nonsense")
except fraglab.InputError as error:
    print(error)
EOF
api() {
    cp "$work/api.py" "$root/tmp/"
    (cd "$root" && inside /usr/bin/python3 /tmp/api.py /wheel) >"$work/theirs"
    python3 "$work/api.py" "$work/own" >"$work/ours"
    [ -s "$work/ours" ] && cmp "$work/ours" "$work/theirs"
}

check "a root of $debian" make_root
check "the wheel installs" install_wheel
check "explain of a message" explain
check "rows of the usual policies, every sample" rows
check "rows of all bundled policies, one sample" both run '$S/gpt-varlen-oom.pickle.zst' --policy all --format jsonl
check "a card, statistics and audits" finds_card
check "verify" both verify '$S/unet.pickle.zst' --format jsonl
check "min-capacity" both min-capacity '$S/resnet-vary.pickle.zst' --policy pytorch --format jsonl
check "tune" both tune '$S/gpt-varlen-oom.pickle.zst' --format jsonl
check "the table of a figure" both plot timeline '$S/gpt-varlen-oom.pickle.zst' --format csv
check "the page of a report" page
case $tag in
musllinux*) echo "skipped  the API: Debian has no Python for musl" ;;
*) check "the API" api ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
