#include "sim/cli/completion.h"

#include <string.h>

#include "allocators/registry.h"
#include "sim/cli/arguments.h"

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

/* Behind these stands a command, never a file. */
static void print_groups(FILE *stream)
{
    fputs("''", stream);
    for (size_t i = 0; frag_commands[i] != NULL; i++)
        if (frag_commands[i]->subcommands != NULL)
            fprintf(stream, " | %s", frag_commands[i]->name);
}

void frag_completion_print(FILE *stream)
{
    fputs("# bash completion for fraglab; printed by 'fraglab help --completion'\n", stream);
    print_policy_function(stream);
    fputs("_fraglab()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD before split=''\n"
          "    local path='' words='' is_file='' i\n"
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
          "    fi\n"
          "    COMPREPLY=()\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case \"$path\" in ",
          stream);
    print_groups(stream);
    fputs(
        ") ;; *) break ;; esac\n"
        "        case ${COMP_WORDS[i]} in -*) ;; *) path=${path:+$path }${COMP_WORDS[i]} ;; esac\n"
        "    done\n"
        "    case \"$path $before\" in\n",
        stream);
    for_each_command(stream, print_values_of);
    fputs("    esac\n"
          "    if [ -z \"$words$is_file\" ]; then\n"
          "    case $path in\n"
          "    '') words='",
          stream);
    for (size_t i = 0; frag_commands[i] != NULL; i++)
        fprintf(stream, "%s%s", i == 0 ? "" : " ", frag_commands[i]->name);
    print_option_words(stream, frag_global_options);
    fputs(" --version' ;;\n", stream);
    for_each_command(stream, print_words_of);
    fputs("    esac\n"
          "    fi\n"
          "    [ -n \"$words\" ] && COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    [ -n \"$split\" ] && COMPREPLY=(\"${COMPREPLY[@]#\"$split\"}\")\n"
          "    case \"$path\" in ",
          stream);
    print_groups(stream);
    fputs(") return ;; esac\n"
          "    case $word in -*) ;; *) COMPREPLY+=($(compgen -f -- \"$word\")) ;; esac\n"
          "}\n"
          "complete -o filenames -F _fraglab fraglab\n",
          stream);
}
