# What help says is pinned: `make help-golden` writes it anew, for review.

GOLDEN=tests/data/help

# Every command, and every subcommand as group/name.
commands() {
    local command inner
    for command in $(listed ./fraglab --help); do
        echo "$command"
        for inner in $(listed ./fraglab "$command" --help); do
            echo "$command/$inner"
        done
    done
}

listed() { "$@" | sed -n '/^commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'; }

# group/name as it is typed, and as a file is named.
words() { tr / ' ' <<<"$1"; }
file_name() { tr / - <<<"$1"; }

pinned() { # file, command...
    local file
    file=$GOLDEN/$(file_name "$1").txt
    shift
    "$@" >"$BATS_TEST_TMPDIR/now"
    if [ "${FRAG_UPDATE_GOLDEN:-}" = 1 ]; then
        mkdir -p "$GOLDEN"
        cp "$BATS_TEST_TMPDIR/now" "$file"
    fi
    diff -u "$file" "$BATS_TEST_TMPDIR/now"
}

@test "help is what it was" {
    pinned fraglab ./fraglab --help
    for name in $(commands); do
        # shellcheck disable=SC2046
        pinned "$name" ./fraglab $(words "$name") --help
    done
}

@test "nothing pinned has gone" {
    for file in "$GOLDEN"/*.txt; do
        name=$(basename "$file" .txt)
        [ "$name" = fraglab ] || commands | tr / - | grep -qx -- "$name"
    done
}

@test "fraglab help COMMAND is COMMAND --help" {
    for name in $(commands); do
        # shellcheck disable=SC2046
        diff <(./fraglab help $(words "$name")) <(./fraglab $(words "$name") --help)
    done
    diff <(./fraglab help) <(./fraglab --help)
}

@test "help fits 80 columns" {
    for name in $(commands); do
        # shellcheck disable=SC2046
        ! ./fraglab $(words "$name") --help | sed '/^examples:/,/^$/d' | LC_ALL=C.UTF-8 grep -E '^.{81,}' || false
    done
}

@test "the man page knows every command and option, and is good roff" {
    ./fraglab help --man >"$BATS_TEST_TMPDIR/man"
    for name in $(commands); do
        # shellcheck disable=SC2046
        for option in $(./fraglab $(words "$name") --help | grep -oE '^  (-.,|   ) --[a-z-]+' | grep -oE '[a-z-]+$' | sed 's/^--//'); do
            grep -qF -- "\\-\\-${option//-/\\-}" "$BATS_TEST_TMPDIR/man"
        done
    done
    if command -v groff >/dev/null; then
        run groff -man -Tascii -ww -z "$BATS_TEST_TMPDIR/man"
        echo "$output"
        [ -z "$output" ]
    fi
}

# What bash would offer behind these words.
offered() {
    COMP_WORDS=("$@")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _fraglab || true
    printf '%s\n' "${COMPREPLY[@]}"
}

@test "completion offers commands, options and choices" {
    ./fraglab help --completion >"$BATS_TEST_TMPDIR/completion"
    bash -n "$BATS_TEST_TMPDIR/completion"
    complete() { :; }
    source "$BATS_TEST_TMPDIR/completion"
    offered fraglab do | grep -qx doctor
    offered fraglab policies --fo | grep -qx -- --format
    offered fraglab policies --format js | grep -qx jsonl
    ! offered fraglab policies --format js | grep -qx table || false
    offered fraglab --ver | grep -qx -- --version
    offered fraglab run --policy best | grep -qx best-fit
    offered fraglab plot timeline x -p tl | grep -qx tlsf
    offered ./fraglab run --gpu h1 | grep -qx h100-80gb
    # No file where a command is expected, but where an argument is.
    [ "$(offered fraglab plo)" = plot ]
    offered fraglab run READ | grep -qx README.md
    # Nor where one of some words is.
    [ "$(offered fraglab run --format '' | xargs)" = 'table jsonl csv markdown' ]
    [ "$(offered fraglab run --policy pytorch:expandable_segments= | xargs)" = 'pytorch:expandable_segments=true pytorch:expandable_segments=false' ]
    [ "$(offered fraglab help plo)" = plot ]
    [ -z "$(offered fraglab help READ)" ]
    offered fraglab run --policy READ | grep -qx README.md
}

@test "completion offers the settings of every policy and their values" {
    compopt() { :; }
    complete() { :; }
    source <(./fraglab help --completion)
    for policy in $(./fraglab policies --format jsonl | python3 -c 'import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(":".join([row["name"]] + [option["key"] for option in row["options"]]))'); do
        name=${policy%%:*}
        [ "$policy" != "$name" ] || continue
        expected=$(tr : '\n' <<<"${policy#*:}" | sed 's/$/=/' | sort)
        # As bash splits what is typed, and unsplit where COMP_WORDBREAKS was changed.
        [ "$(offered fraglab run x --policy "$name" : | sort)" = "$expected" ]
        [ "$(offered fraglab run x --policy "$name:" | sort)" = "$(sed "s/^/$name:/" <<<"$expected")" ]
    done
    offered fraglab run --policy pytorch : expand | grep -qx expandable_segments=
    [ "$(offered fraglab run --policy pytorch : expandable_segments = | xargs)" = "true false" ]
    [ "$(offered fraglab run --policy pytorch : expandable_segments = t)" = true ]
    [ "$(offered fraglab run --policy pytorch : version = 2.9,max_s)" = 2.9,max_split_size_mb= ]
    offered fraglab run --policy pytorch,bes | grep -qx pytorch,best-fit
    [ "$(offered ./fraglab run --gpu = h100-80)" = h100-80gb ]
    [ "$(offered ./fraglab run --gpu=h100-80)" = --gpu=h100-80gb ]
    [ "$(offered ./fraglab plot timeline x --gpu h100-80)" = h100-80gb ]
}

@test "fish completion offers commands, options, choices, settings and cards" {
    ./fraglab help --completion fish >"$BATS_TEST_TMPDIR/completion.fish"
    grep -qF "case 'pytorch:expandable_segments=' " "$BATS_TEST_TMPDIR/completion.fish"
    command -v fish >/dev/null || skip "fish is not installed"
    fish_offers() { PATH=$PWD:$PATH HOME=$BATS_TEST_TMPDIR fish --no-config -c "source $BATS_TEST_TMPDIR/completion.fish; complete -C '$1'" | cut -f1; }
    fish_offers 'fraglab do' | grep -qx doctor
    fish_offers 'fraglab policies --fo' | grep -qx -- --format
    fish_offers 'fraglab policies --format js' | grep -qx jsonl
    fish_offers 'fraglab plot time' | grep -qx timeline
    fish_offers 'fraglab run x --policy best' | grep -qx best-fit
    fish_offers 'fraglab run x --policy pytorch:max_sp' | grep -qx pytorch:max_split_size_mb=
    fish_offers 'fraglab run x --policy pytorch:version=2.9,expandable_segments=tr' | grep -qx pytorch:version=2.9,expandable_segments=true
    fish_offers 'fraglab run --gpu h100-80' | grep -qx h100-80gb
}

@test "zsh completion is that of bash, loaded from a folder of fpath" {
    mkdir -p "$BATS_TEST_TMPDIR/functions"
    ./fraglab help --completion zsh >"$BATS_TEST_TMPDIR/functions/_fraglab"
    [ "$(head -1 "$BATS_TEST_TMPDIR/functions/_fraglab")" = '#compdef fraglab' ]
    ! ./fraglab help --completion tcsh || false
    command -v zsh >/dev/null || skip "zsh is not installed"
    zsh -n "$BATS_TEST_TMPDIR/functions/_fraglab"
    # A terminal of zsh's own, into which a tab is typed.
    cat >"$BATS_TEST_TMPDIR/type" <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; echo rea''dy"
zpty -r -m shell line '*ready*'
zpty -w -n shell $'fraglab run x --policy pytorch:max_sp\t'
zpty -r -m shell line '*max_split_size_mb=*' && print found
zpty -w -n shell $'\x15fraglab run x --gpu=h100-8\t'
zpty -r -m shell line '*h100-80gb*' && print card
zpty -d shell
END
    PATH=$PWD:$PATH HOME=$BATS_TEST_TMPDIR timeout 60 zsh -f "$BATS_TEST_TMPDIR/type" "$BATS_TEST_TMPDIR/functions" >"$BATS_TEST_TMPDIR/out" </dev/null
    grep -qx found "$BATS_TEST_TMPDIR/out"
    grep -qx card "$BATS_TEST_TMPDIR/out"
}

# The names in calls such as frag_arguments_has(arguments, "capacity").
# Those of `trace generate` go by the table of knobs, all of them.
asked_for() {
    asked_by_name
    sed -n '/^const frag_field frag_knobs/,/^};/s/^    {"\([a-z_]*\)".*/\1/p' workload/description/knobs.c | tr _ -
}
asked_by_name() {
    grep -rhE -A1 --include='*.c' '(frag_(arguments_(has|is|value|value_at|value_count|value_position|bytes|count|number)|plot_setting_(text|at|count))|values_of|is_setting)\(|open_file\(arguments' cli plots |
        tr -d '\n' | sed -E 's/frag_(arguments|plot_setting)_|(values_of|is_setting)\(|open_file\(arguments/\n&/g' |
        sed -nE 's/^(frag_(arguments|plot_setting)_[a-z_]+|values_of|is_setting|open_file)\([^"();]*"([a-z-]+)".*/\3/p' | sort -u
}

@test "the code asks for options of the tables, and for all of them" {
    for name in $(commands); do
        # shellcheck disable=SC2046
        ./fraglab $(words "$name") --help
    done | sed -nE 's/^  (-.,|   ) --([a-z-]+).*/\2/p' | sort -u >"$BATS_TEST_TMPDIR/listed"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/listed")" -ge 60 ]
    asked_for | sort -u >"$BATS_TEST_TMPDIR/asked"
    echo "asked for, and in no table of options:"
    comm -13 "$BATS_TEST_TMPDIR/listed" "$BATS_TEST_TMPDIR/asked" | tee "$BATS_TEST_TMPDIR/unknown"
    [ ! -s "$BATS_TEST_TMPDIR/unknown" ]
    echo "in a table of options, and never asked for:"
    comm -23 "$BATS_TEST_TMPDIR/listed" "$BATS_TEST_TMPDIR/asked" | grep -vxE 'help|quiet|verbose' | tee "$BATS_TEST_TMPDIR/unused"
    [ ! -s "$BATS_TEST_TMPDIR/unused" ]
}
