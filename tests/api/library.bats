# libfraglab as installed: what it shows, the examples, a program of 30 lines beside `fraglab run`, C++, Python.

bats_require_minimum_version 1.5.0
S=traces/samples

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.."
    export ROOT=$BATS_FILE_TMPDIR/root
    make --no-print-directory -s install DESTDIR="$ROOT" PREFIX=/usr/local >/dev/null
    export PKG_CONFIG_PATH=$ROOT/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$ROOT LIB=$ROOT/usr/local/lib
}

setup() { cd "$BATS_TEST_DIRNAME/../.." && out=$BATS_TEST_TMPDIR; }

# build NAME SOURCE: against the installed tree alone.
build() { ${CC:-cc} -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags fraglab) -o "$out/$1" "$2" $(pkg-config --libs fraglab) -Wl,-rpath,"$LIB"; }

@test "a program over the installed header prints the rows of fraglab run, byte by byte" {
    build two_policies "$ROOT/usr/local/share/fraglab/examples/two_policies.c"
    [ "$(wc -l <examples/two_policies.c)" -le 40 ]
    for name in gpt-varlen-oom unet model-parallel; do
        "$out/two_policies" "$S/$name.pickle.zst" >"$out/rows"
        ./fraglab run "$S/$name.pickle.zst" --policy pytorch:recorded --policy best-fit --format jsonl >"$out/expected"
        [ -s "$out/rows" ]
        cmp "$out/rows" "$out/expected"
    done
    run -3 "$out/two_policies" no/such/file
    [[ "$output" == "no/such/file: cannot be opened"* ]]
}

@test "the example of own events gives peaks; expandable segments need less" {
    build own_events "$ROOT/usr/local/share/fraglab/examples/own_events.c"
    run -0 "$out/own_events"
    [[ "${lines[0]}" == "pytorch: "*" MiB reserved for 107 MiB requested" ]]
    [[ "${lines[1]}" == "pytorch:expandable_segments=true: "* ]]
    plain=$(grep -oE '[0-9]+' <<<"${lines[0]}" | head -n 1)
    expandable=$(grep -oE '[0-9]+' <<<"${lines[1]}" | head -n 1)
    [ "$expandable" -lt "$plain" ]
}

@test "a policy in C serves the library as it serves the program" {
    build policy_in_c "$ROOT/usr/local/share/fraglab/examples/policy_in_c.c"
    cp "$ROOT"/usr/local/share/fraglab/examples/my_policy.c "$ROOT"/usr/local/share/fraglab/examples/Makefile "$out"
    make -s -C "$out" HEADERS="$ROOT/usr/local/include/fraglab"
    run -0 "$out/policy_in_c" $S/truncated.pickle.zst "$out/my_policy.so"
    bytes=$(./fraglab min-capacity $S/truncated.pickle.zst --policy "$out/my_policy.so" --format jsonl | grep -oE '"capacity_bytes":[0-9]+' | grep -oE '[0-9]+')
    [ -n "$bytes" ]
    [ "$output" = "my-policy needs $bytes bytes" ]
}

@test "the example that explains and tunes says what the commands say" {
    build explain_and_tune "$ROOT/usr/local/share/fraglab/examples/explain_and_tune.c"
    "$out/explain_and_tune" $S/gpt-varlen-oom.pickle.zst >"$out/said" 2>"$out/progress"
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst >"$out/explained"
    head -n "$(wc -l <"$out/explained")" "$out/said" | cmp - "$out/explained"
    setting=$(./fraglab tune $S/gpt-varlen-oom.pickle.zst --runs 100 --format jsonl | grep -oE '"setting":"[^"]*"' | head -n 1 | cut -d'"' -f4)
    [ -n "$setting" ]
    grep -qxF "PYTORCH_CUDA_ALLOC_CONF=$setting" "$out/said"
    grep -qE '^device 0: [0-9]+ MiB reserved, [0-9]+ MiB with the default$' "$out/said"
    grep -q 'tuning: 100 of 100 runs' "$out/progress"
    run -0 "$out/explain_and_tune" $S/truncated.pickle.zst
    [[ "$output" == *PYTORCH_CUDA_ALLOC_CONF=* && "$output" != *verdict* ]]
}

@test "only functions of the library and of the policy contract show" {
    nm -D --defined-only "$LIB/libfraglab.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$out/shown"
    nm --defined-only --extern-only "$LIB/libfraglab.a" | awk 'NF == 3 { print $3 }' | sort >"$out/archived"
    cmp "$out/shown" "$out/archived"
    grep -ohE '\bfraglab_[a-z_0-9]+\(' include/*.h | tr -d '(' | sort -u >"$out/declared"
    grep '^fraglab_' "$out/shown" >"$out/ours"
    cmp "$out/ours" "$out/declared"
    grep -v '^fraglab_' "$out/shown" >"$out/contract"
    while read -r name; do
        grep -rqw "$name" "$ROOT/usr/local/include/fraglab" || { echo "$name is in no installed header" && false; }
    done <"$out/contract"
    [[ "$(objdump -p "$LIB/libfraglab.so" | grep SONAME)" == *"libfraglab.so.0" ]]
}

@test "the program shows no more than policies and its modules call" {
    nm -D --defined-only ./fraglab | awk '{ print $3 }' | grep '^frag_' | sort >"$out/program"
    for module in fraglab_cuda.so fraglab_mpi.so; do
        [ ! -f $module ] || nm -D --undefined-only $module | awk '{ print $2 }' | grep '^frag_'
    done | sort -u >"$out/called"
    run -0 comm -23 "$out/called" "$out/program"
    [ -z "$output" ]
    comm -23 "$out/program" "$out/called" >"$out/rest"
    while read -r name; do
        grep -rqw "$name" "$ROOT/usr/local/include/fraglab" || { echo "no header of policies has $name" && false; }
    done <"$out/rest"
}

@test "the archive links with what fraglab.pc says" {
    # shellcheck disable=SC2046
    ${CC:-cc} $(pkg-config --cflags fraglab) -o "$out/static" examples/own_events.c "$LIB/libfraglab.a" $(pkg-config --static --libs-only-l fraglab | sed 's/-lfraglab//')
    "$out/static" | grep -q 'pytorch: '
}

@test "each header is enough alone" {
    for header in fraglab fraglab_policy; do
        printf '#include <%s.h>\n' "$header" >"$out/$header.c"
        ${CC:-cc} -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags fraglab) -fsyntax-only "$out/$header.c"
    done
}

@test "the header is one of C++ too" {
    command -v g++ >/dev/null || skip "no g++"
    printf '#include <fraglab.h>\n#include <cstdio>\nint main() { fraglab_error error = FRAGLAB_ERROR_INIT; fraglab_policy *policy = nullptr;\n    if (fraglab_policy_parse("tlsf", &policy, &error) != FRAGLAB_OK) return 1;\n    std::puts(fraglab_policy_name(policy)); fraglab_policy_destroy(policy); }\n' >"$out/main.cpp"
    # shellcheck disable=SC2046
    g++ -std=c++17 -Wall -Wextra -Werror $(pkg-config --cflags fraglab) -o "$out/cpp" "$out/main.cpp" $(pkg-config --libs fraglab) -Wl,-rpath,"$LIB"
    [ "$("$out/cpp")" = tlsf ]
}

@test "Python's ctypes runs a policy, one in C too, and finds the cards" {
    make -s -C examples -f Makefile POLICY="$out/my_policy" HEADERS=.. "$out/my_policy.so" 2>/dev/null ||
        ${CC:-cc} -std=c11 -O1 -fPIC -shared -I. -o "$out/my_policy.so" examples/my_policy.c
    run -0 python3 tests/api/library_ctypes.py "$LIB/libfraglab.so.0" $S/truncated.pickle.zst "$out/my_policy.so"
    ./fraglab run $S/truncated.pickle.zst --policy best-fit --policy "$out/my_policy.so" --format jsonl >"$out/expected"
    head -n 2 <<<"$output" | cmp - "$out/expected"
    [ "${lines[2]}" = "$(./fraglab device list --format jsonl | head -n 1)" ]
}

@test "tables and explanations are those of the program" {
    run -0 python3 - "$LIB/libfraglab.so.0" <<'PY'
import ctypes, subprocess, sys
library = ctypes.CDLL(sys.argv[1])
text = ctypes.c_void_p()
def take():
    value = ctypes.string_at(text.value)
    library.fraglab_free(text)
    return value
def printed(*words):
    return subprocess.run(["./fraglab", *words], stdout=subprocess.PIPE, check=True).stdout
assert library.fraglab_policies_json(None, ctypes.byref(text), None) == 0
assert take() == printed("policies", "--format", "jsonl")
assert library.fraglab_cards_json(ctypes.byref(text), None) == 0
assert take() == printed("device", "list", "--format", "jsonl")
message = b"CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 20.00 GiB already allocated; 1.00 GiB free; 21.00 GiB reserved in total by PyTorch)"
assert library.fraglab_explain_text(message, ctypes.c_size_t(len(message)), ctypes.byref(text), None) == 0
assert take() == printed("explain", "--format", "jsonl", message.decode())
PY
}

@test "studies say what the commands print, byte by byte" {
    run -0 python3 tests/api/library_studies.py "$LIB/libfraglab.so.0" "$out"
    [ "${lines[0]}" = explain ]
    [ "${#lines[@]}" -eq 12 ]
}

@test "files that the library writes are those of the commands, byte by byte" {
    run -0 python3 tests/api/library_files.py "$LIB/libfraglab.so.0" "$out"
    [ "${lines[0]}" = snapshot ]
    [ "${#lines[@]}" -eq 17 ]
}

@test "drawings that the library makes are those of the command, byte by byte" {
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    run -0 python3 tests/api/library_files.py "$LIB/libfraglab.so.0" "$out" drawings
    [ "${lines[-1]}" = drawings ]
}

@test "the locale of a program changes nothing" {
    mkdir "$out/locales"
    localedef -i de_DE -f UTF-8 "$out/locales/de_DE.UTF-8" 2>/dev/null || [ -e "$out/locales/de_DE.UTF-8/LC_CTYPE" ] || skip "no localedef, or no definition of de_DE"
    build locale tests/programs/library_locale.c
    LOCPATH=$out/locales run -0 "$out/locale" $S/gpt-varlen-oom.pickle.zst
    [ "${lines[0]}" = "1,5" ]
    ./fraglab run $S/gpt-varlen-oom.pickle.zst -p pytorch:garbage_collection_threshold=0.8 --format jsonl >"$out/expected"
    ./fraglab explain $S/gpt-varlen-oom.pickle.zst --format jsonl >>"$out/expected"
    tail -n +2 <<<"$output" | cmp - "$out/expected"
}

@test "memory that fails below the library, too, is an error and is given back" {
    build memory tests/programs/library_memory.c
    run -0 "$out/memory"
    [ -z "$output" ]
}
