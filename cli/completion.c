#include "cli/completion.h"

#include <string.h>

#include "allocators/registry.h"
#include "cli/arguments.h"

static void print_option_words(FILE *stream, const frag_command_option *options)
{
    for (; options != NULL && options->name != NULL; options++)
        fprintf(stream, " --%s", options->name);
}

static void print_choice_cases(FILE *stream, const char *path, const frag_command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (options->choices == NULL)
            continue;
        fprintf(stream, "    '%s --%s') words='", path, options->name);
        for (const char *c = options->choices; *c != '\0'; c++)
            fputc(*c == '|' ? ' ' : *c, stream);
        fputs("' ;;\n", stream);
    }
}

/* ---- policies and their settings: _fraglab_policy TEXT sets words */

static bool has_choices(const frag_option *option)
{
    return option->type == FRAG_OPTION_FLAG || option->type == FRAG_OPTION_ENUM;
}

static void print_setting_cases(FILE *stream, const frag_policy_ops *ops)
{
    for (const frag_option *o = ops->options; o != NULL && o->key != NULL; o++) {
        if (!has_choices(o))
            continue;
        fprintf(stream, "    '%s:%s') words='", ops->name, o->key);
        for (const char *c = o->type == FRAG_OPTION_FLAG ? "true|false" : o->choices; *c != '\0';
             c++)
            fputc(*c == '|' ? ' ' : *c, stream);
        fputs("' ;;\n", stream);
    }
    fprintf(stream, "    '%s:') words='", ops->name);
    for (const frag_option *o = ops->options; o != NULL && o->key != NULL; o++)
        fprintf(stream, "%s%s=", o == ops->options ? "" : " ", o->key);
    fputs("' ;;\n", stream);
}

/* "pytorch:a=1,b=": before the value stand policy and key, before a key the policy, and names may
 * be joined by commas. What is typed already is put in front of each word. */
static void print_policy_function(FILE *stream)
{
    fputs("_fraglab_policy()\n"
          "{\n"
          "    local name='' key='' typed item\n"
          "    case $1 in\n"
          "    *:*)\n"
          "        name=${1%%:*}: item=${1#*:}\n"
          "        item=${item##*,}\n"
          "        case $item in *=*) key=${item%%=*} item=${item#*=} ;; esac ;;\n"
          "    *) item=${1##*,} ;;\n"
          "    esac\n"
          "    typed=${1%\"$item\"}\n"
          "    is_file=''\n"
          "    case $name$key in\n"
          "    '') is_file=1 words='all",
          stream);
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        fprintf(stream, " %s", frag_policy_table[i]->name);
    fputs("' ;;\n", stream);
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        print_setting_cases(stream, frag_policy_table[i]);
    fputs("    esac\n"
          "    [ -z \"$name\" ] || compopt +o filenames 2>/dev/null\n"
          "    case $words in *=) compopt -o nospace 2>/dev/null ;; esac\n"
          "    [ -z \"$typed\" ] || words=$(printf \"$typed%s \" $words)\n"
          "}\n",
          stream);
}

/* What an option takes that is not written in its own table. */
static void print_values(FILE *stream, const char *name)
{
    if (strcmp(name, "policy") == 0) {
        fputs(") is_file=1; _fraglab_policy \"$word\" ;;\n", stream);
    } else if (strcmp(name, "gpu") == 0) {
        fputs(") is_file=1 words=$(\"${COMP_WORDS[0]}\" device list 2>/dev/null | awk 'NR > 1 { "
              "print $1 }') ;;\n",
              stream);
    } else {
        fputs(") is_file=1 ;;\n", stream);
    }
}

static void print_value_options(FILE *stream, const char *path, const frag_command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (options->argument == NULL || options->choices != NULL)
            continue;
        fprintf(stream, "    '%s --%s'", path, options->name);
        if (options->letter != 0)
            fprintf(stream, " | '%s -%c'", path, options->letter);
        print_values(stream, options->name);
    }
}

static void for_each_command(FILE *stream, void (*print)(FILE *stream, const char *path,
                                                         const frag_command *command))
{
    for (size_t i = 0; frag_commands[i] != NULL; i++) {
        const frag_command *command = frag_commands[i];
        print(stream, command->name, command);
        for (size_t k = 0; command->subcommands != NULL && command->subcommands[k] != NULL; k++) {
            char path[96];
            snprintf(path, sizeof path, "%s %s", command->name, command->subcommands[k]->name);
            print(stream, path, command->subcommands[k]);
        }
    }
}

static void print_values_of(FILE *stream, const char *path, const frag_command *command)
{
    print_choice_cases(stream, path, command->options);
    print_value_options(stream, path, command->options);
}

static void print_words_of(FILE *stream, const char *path, const frag_command *command)
{
    fprintf(stream, "    '%s') words='", path);
    if (command->subcommands != NULL)
        for (size_t i = 0; command->subcommands[i] != NULL; i++)
            fprintf(stream, "%s%s", i == 0 ? "" : " ", command->subcommands[i]->name);
    print_option_words(stream, command->options);
    print_option_words(stream, frag_global_options);
    fputs("' ;;\n", stream);
}

static void print_command_names(FILE *stream)
{
    for (size_t i = 0; frag_commands[i] != NULL; i++)
        fprintf(stream, "%s%s", i == 0 ? "" : " ", frag_commands[i]->name);
}

/* Behind these stands a command, never a file. */
static void print_groups(FILE *stream)
{
    fputs("''", stream);
    for (size_t i = 0; frag_commands[i] != NULL; i++)
        if (frag_commands[i]->subcommands != NULL)
            fprintf(stream, " | %s", frag_commands[i]->name);
}

static void print_bash(FILE *stream)
{
    print_policy_function(stream);
    fputs("_fraglab()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD before split='' front=''\n"
          "    local verb='' words='' is_file='' is_word='' i\n"
          "    # bash splits words at : and =; they are one here.\n"
          "    while ((at > 1)); do\n"
          "        case ${COMP_WORDS[at-1]}/${COMP_WORDS[at]} in *[:=]/* | */[:=]*) ;; *) break "
          ";; esac\n"
          "        at=$((at - 1)) word=${COMP_WORDS[at]}$word\n"
          "    done\n"
          "    before=${COMP_WORDS[at-1]}\n"
          "    if ((at < COMP_CWORD)); then\n"
          "        case ${COMP_WORDS[COMP_CWORD]} in [:=]) split=$word ;; *) "
          "split=${word%\"${COMP_WORDS[COMP_CWORD]}\"} ;; esac\n"
          "        case $word in --*=*) before=${word%%=*} word=${word#*=} split=${split#*=} ;; "
          "esac\n"
          "    else\n"
          "        case $word in --*=*) before=${word%%=*} front=${word%%=*}= word=${word#*=} ;; "
          "esac\n"
          "    fi\n"
          "    COMPREPLY=()\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case \"$verb\" in ",
          stream);
    print_groups(stream);
    fputs(
        ") ;; *) break ;; esac\n"
        "        case ${COMP_WORDS[i]} in -*) ;; *) verb=${verb:+$verb }${COMP_WORDS[i]} ;; esac\n"
        "    done\n"
        "    case \"$verb $before\" in\n",
        stream);
    for_each_command(stream, print_values_of);
    /* Where one of some words is expected, or a command, no file is. */
    fputs("    esac\n"
          "    [ -n \"$words\" ] && [ -z \"$is_file\" ] || [ \"$verb\" = help ] && is_word=1\n"
          "    if [ -z \"$words$is_file\" ]; then\n"
          "    case $verb in\n"
          "    '') words='",
          stream);
    print_command_names(stream);
    print_option_words(stream, frag_global_options);
    fputs(" --version' ;;\n    'help') words='", stream);
    print_command_names(stream);
    print_option_words(stream, frag_command_help.options);
    fputs("' ;;\n", stream);
    for_each_command(stream, print_words_of);
    fputs("    esac\n"
          "    fi\n"
          "    [ -n \"$words\" ] && COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    [ -n \"$split\" ] && COMPREPLY=(\"${COMPREPLY[@]#\"$split\"}\")\n"
          "    case \"$verb\" in ",
          stream);
    print_groups(stream);
    fputs(") return ;; esac\n"
          "    [ -n \"$is_word\" ] || case $word in -*) ;; *) COMPREPLY+=($(compgen -f -- "
          "\"$word\")) ;; esac\n"
          "    [ -n \"$front\" ] && COMPREPLY=(\"${COMPREPLY[@]/#/$front}\")\n"
          "}\n"
          "complete -o filenames -F _fraglab fraglab\n",
          stream);
}

/* zsh runs the functions of bash (in which no variable may be called path: zsh's PATH). In a folder
 * of fpath the file is the body of _fraglab, which the first completion runs: it has to answer too.
 */
static void print_zsh(FILE *stream)
{
    fputs("#compdef fraglab\n"
          "# zsh completion for fraglab; printed by 'fraglab help --completion zsh'\n"
          "autoload -U +X bashcompinit && bashcompinit\n",
          stream);
    print_bash(stream);
    fputs("[[ $funcstack[1] != _fraglab ]] || _bash_complete -o filenames -F _fraglab\n", stream);
}

/* ---- fish */

/* In single quotes fish escapes these two alone. */
static void print_quoted(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'' || *c == '\\')
            fputc('\\', stream);
        fputc(*c == '|' ? ' ' : *c, stream);
    }
    fputc('\'', stream);
}

/* condition: in the words of fish; "" for every place. */
static void print_fish_options(FILE *stream, const char *condition,
                               const frag_command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        fprintf(stream, "complete -c fraglab%s -l %s", condition, options->name);
        if (options->letter != 0)
            fprintf(stream, " -s %c", options->letter);
        if (options->choices != NULL) {
            fputs(" -x -a ", stream);
            print_quoted(stream, options->choices);
        } else if (strcmp(options->name, "policy") == 0) {
            fputs(" -r -a '(__fraglab_policy)'", stream);
        } else if (strcmp(options->name, "gpu") == 0) {
            fputs(" -r -a '(__fraglab_cards)'", stream);
        } else if (options->argument != NULL) {
            fputs(" -r", stream);
        }
        fputs(" -d ", stream);
        print_quoted(stream, options->help);
        fputc('\n', stream);
    }
}

static void print_fish_command(FILE *stream, const char *path, const frag_command *command)
{
    char condition[256];
    const char *blank = strchr(path, ' ');
    snprintf(condition, sizeof condition, " -n '__fish_seen_subcommand_from %.*s%s%s'",
             blank != NULL ? (int)(blank - path) : (int)strlen(path), path,
             blank != NULL ? "; and __fish_seen_subcommand_from" : "", blank != NULL ? blank : "");
    if (blank == NULL)
        fputs("complete -c fraglab -n __fish_use_subcommand", stream);
    else
        fprintf(stream, "complete -c fraglab -n '__fish_seen_subcommand_from %.*s'",
                (int)(blank - path), path);
    fprintf(stream, " -f -a %s -d ", command->name);
    print_quoted(stream, command->summary);
    fputc('\n', stream);
    print_fish_options(stream, condition, command->options);
}

/* The value patterns come first: fish takes the first case that fits. */
static void print_fish_settings(FILE *stream, const frag_policy_ops *ops)
{
    if (ops->options == NULL)
        return;
    for (const frag_option *o = ops->options; o->key != NULL; o++) {
        if (!has_choices(o))
            continue;
        fprintf(stream, "        case '%s:%s=' '%s:*,%s='\n            printf \"$typed%%s\\n\"",
                ops->name, o->key, ops->name, o->key);
        fputc(' ', stream);
        for (const char *c = o->type == FRAG_OPTION_FLAG ? "true|false" : o->choices; *c != '\0';
             c++)
            fputc(*c == '|' ? ' ' : *c, stream);
        fputc('\n', stream);
    }
    fprintf(stream, "        case '%s:' '%s:*,'\n            printf \"$typed%%s\\n\"", ops->name,
            ops->name);
    for (const frag_option *o = ops->options; o->key != NULL; o++)
        fprintf(stream, " %s=", o->key);
    fputc('\n', stream);
}

static void print_fish(FILE *stream)
{
    fputs("# fish completion for fraglab; printed by 'fraglab help --completion fish'\n"
          "function __fraglab_cards\n"
          "    set -l words (commandline -opc)\n"
          "    $words[1] device list 2>/dev/null | awk 'NR > 1 { print $1 }'\n"
          "end\n"
          "function __fraglab_policy\n"
          "    set -l typed (string replace -r '[^,:=]*$' '' -- (commandline -ct | string replace "
          "-r '^--policy=' ''))\n"
          "    switch $typed\n",
          stream);
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        print_fish_settings(stream, frag_policy_table[i]);
    fputs("        case ''\n            printf '%s\\n' all", stream);
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        fprintf(stream, " %s", frag_policy_table[i]->name);
    fputs("\n    end\nend\n", stream);
    for_each_command(stream, print_fish_command);
    fputs("complete -c fraglab -n '__fish_seen_subcommand_from help' -f -a '", stream);
    print_command_names(stream);
    fputs("'\n", stream);
    print_fish_options(stream, "", frag_global_options);
}

bool frag_completion_print(FILE *stream, const char *shell)
{
    if (strcmp(shell, "bash") == 0) {
        fputs("# bash completion for fraglab; printed by 'fraglab help --completion'\n", stream);
        print_bash(stream);
    } else if (strcmp(shell, "zsh") == 0) {
        print_zsh(stream);
    } else if (strcmp(shell, "fish") == 0) {
        print_fish(stream);
    } else {
        return false;
    }
    return true;
}
