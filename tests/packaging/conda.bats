# The recipe for conda agrees with the tree, and its script installs what its test asks for. The recipe itself is not built here.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    recipe=packaging/conda/recipe.yaml
    python3 -c 'import yaml' 2>/dev/null || skip "Python has no yaml"
}

@test "the recipe is YAML of the version and licence of the tree, and needs the libraries that make links" {
    python3 - $recipe <<'PROGRAM'
import re, sys, yaml
recipe = yaml.safe_load(open(sys.argv[1]))
makefile = open("Makefile").read()
assert recipe["context"]["version"] == re.search(r"^VERSION = (\S+)$", makefile, re.M).group(1), recipe["context"]
assert recipe["about"]["license"] == "MIT" and open("LICENSE").read().startswith("MIT License")
# What conda calls the packages of -lNAME; the others are of the C library.
packages = {"zstd": "zstd", "z": "zlib", "xxhash": "xxhash", "jansson": "jansson", "yaml": "yaml", "sqlite3": "libsqlite"}
linked = set(re.search(r"^LIBS = (.*)$", makefile, re.M).group(1).replace("-l", "").split()) - {"m", "pthread", "dl"}
assert {packages[name] for name in linked} == set(recipe["requirements"]["host"]) - {"python"}, linked
PROGRAM
}

@test "the script of the recipe, run in a shell, installs a program, a module and samples that work" {
    [ "${FRAG_RECIPE:-}" = 1 ] || [ -x build/release/library/libfraglab.so.0 ] || skip "the library is not built"
    prefix=$BATS_TEST_TMPDIR/prefix
    version=$(python3 -c "import sys; print('%d.%d' % sys.version_info[:2])")
    python3 -c 'import sys, yaml; print("\n".join(yaml.safe_load(open(sys.argv[1]))["build"]["script"]))' $recipe >"$BATS_TEST_TMPDIR/script"
    mkdir "$BATS_TEST_TMPDIR/bin"
    ln -s "$(command -v python3)" "$BATS_TEST_TMPDIR/bin/python"
    # Not optimised, which is of no matter here. BUILD keeps the objects of another prefix apart; conda has a fresh copy of the tree.
    git ls-files -z | grep -zvE '^(tests/data|tests/fuzz/corpus|docs/figures)/' | xargs -0 cp --parents -t "$(mkdir "$BATS_TEST_TMPDIR/tree" && echo "$BATS_TEST_TMPDIR/tree")"
    cd "$BATS_TEST_TMPDIR/tree"
    PATH="$BATS_TEST_TMPDIR/bin:$PATH" CPU_COUNT=2 CC=gcc CFLAGS=-O0 LDFLAGS= PREFIX=$prefix SP_DIR=$prefix/lib/python$version/site-packages sh -e "$BATS_TEST_TMPDIR/script"
    "$prefix/bin/fraglab" run "$prefix/share/fraglab/samples/unet.pickle.zst" --policy pytorch:recorded --gpu rtx4090 --check 1000
    cd /
    LD_LIBRARY_PATH=$prefix/lib PYTHONPATH=$prefix/lib/python$version/site-packages python3 -c "
import fraglab, importlib.metadata
assert fraglab.open('$prefix/share/fraglab/samples/unet.pickle.zst').run('pytorch').to_dict()['peak']['reserved_bytes'] > 0
assert '$prefix' in fraglab.__file__ and importlib.metadata.distribution('fraglab').read_text('INSTALLER').strip() == 'conda'"
}
