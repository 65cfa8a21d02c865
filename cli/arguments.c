#include "cli/arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/system/spill.h"
#include "base/text.h"
#include "studies/ranks/job.h"

typedef struct frag_given {
    const frag_command_option *option;
    const char *value;
    size_t position; /* among all arguments, operands included */
} frag_given;

const frag_command_option frag_global_options[] = {
    {"quiet", .letter = 'q', .help = "no progress and no warnings on stderr"},
    {"verbose", .letter = 'v', .help = "explain on stderr what is done and why"},
    {"help", .letter = 'h', .help = "print this help"},
    {.name = NULL},
};

const frag_command frag_program = {
    .name = "fraglab",
    .operands = "COMMAND",
    .summary = "replay GPU memory traces against allocator policies",
    .description =
        "fraglab replays recorded GPU allocation traces against pluggable allocator policies and "
        "shows what each of them reserves, wastes, and where it runs out of memory.\n"
        "\n"
        "Data goes to stdout, everything else to stderr. A file named - is stdin or stdout. Sizes "
        "are written 64KiB, 1.5GiB, 2MB or as plain bytes.\n"
        "\n"
        "Exit codes: 0 ok, 1 a finding, 2 wrong usage, 3 bad input, 4 the system or the GPU "
        "refused, 130 interrupted.",
    .subcommands = frag_commands,
    .operand_max = UINT32_MAX,
};

/* Codes of long options start where no letter is, so that both kinds share one switch. */
enum { OPERAND_CODE = 1, LONG_CODE = 256, OPTIONS_MAX = 80 };

typedef struct option_list {
    const frag_command_option *items[OPTIONS_MAX];
    size_t count;
} option_list;

static void collect_options(option_list *list, const frag_command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        FRAG_ASSERT(list->count < OPTIONS_MAX);
        list->items[list->count++] = options;
    }
}

/* Few enough to be listed at once. */
static void fail_among(const char *name, const char *const names[], size_t count, frag_error *error)
{
    frag_text list = {0};
    for (size_t i = 0; i < count; i++)
        frag_text_add(&list, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", names[i]);
    frag_fail(error, FRAG_E_USAGE, "unknown command '%s'; expected %s", name, list.bytes);
    frag_text_destroy(&list);
}

/* What people type in the place of a command: one of another command, a file, a message. */
static void fail_at_root(const char *name, frag_error *error)
{
    for (size_t i = 0; frag_commands[i] != NULL; i++) {
        const frag_command *const *below = frag_commands[i]->subcommands;
        for (; below != NULL && *below != NULL; below++)
            if (strcmp((*below)->name, name) == 0) {
                frag_fail(error, FRAG_E_USAGE, "unknown command '%s'; did you mean '%s %s'?", name,
                          frag_commands[i]->name, name);
                return;
            }
    }
    if (strpbrk(name, "./ ") != NULL)
        frag_fail(error, FRAG_E_USAGE,
                  "unknown command '%s'; 'fraglab explain' reads a message, a log or a recording",
                  name);
    else if (strcmp(name, "mcp") == 0)
        frag_fail(error, FRAG_E_USAGE,
                  "the command 'mcp' comes with the Python package: python3 -m fraglab mcp");
    else
        frag_fail(error, FRAG_E_USAGE, "unknown command '%s'; 'fraglab help' lists them", name);
}

const frag_command *frag_command_find(const frag_command *const *commands, const char *name,
                                      frag_error *error)
{
    const char *names[OPTIONS_MAX];
    size_t count = 0;
    for (; commands[count] != NULL; count++) {
        if (strcmp(commands[count]->name, name) == 0)
            return commands[count];
        FRAG_ASSERT(count < OPTIONS_MAX);
        names[count] = commands[count]->name;
    }
    const char *nearest = frag_nearest_name(name, names, count);
    if (nearest != NULL)
        frag_fail(error, FRAG_E_USAGE, "unknown command '%s'; did you mean '%s'?", name, nearest);
    else if (commands == frag_commands)
        fail_at_root(name, error);
    else
        fail_among(name, names, count, error);
    return NULL;
}

static const frag_command *last_command(const frag_arguments *arguments)
{
    return arguments->path[arguments->path_length - 1];
}

/* "fraglab trace info", for sentences that say where help is. */
static const char *path_text(const frag_arguments *arguments, char text[96])
{
    text[0] = '\0';
    for (size_t i = 0; i < arguments->path_length; i++) {
        size_t used = strlen(text);
        snprintf(text + used, 96 - used, "%s%s", i == 0 ? "" : " ", arguments->path[i]->name);
    }
    return text;
}

/* letter: of a short option; 0: token is a long one. */
static bool fail_unknown(const frag_arguments *arguments, const option_list *list, int letter,
                         const char *token, frag_error *error)
{
    char path[96];
    char name[64];
    if (letter == 0) {
        snprintf(name, sizeof name, "%s", token + 2);
        name[strcspn(name, "=")] = '\0';
        const char *names[OPTIONS_MAX] = {NULL};
        for (size_t i = 0; i < list->count; i++)
            names[i] = list->items[i]->name;
        const char *nearest = frag_nearest_name(name, names, list->count);
        /* A word cut short is no edit away: look for the one option it begins. */
        for (size_t i = 0; i < list->count && nearest == NULL && strlen(name) > 1; i++)
            if (strncmp(names[i], name, strlen(name)) == 0)
                nearest = names[i];
        if (nearest != NULL)
            return frag_fail(error, FRAG_E_USAGE, "unknown option '--%s'; did you mean '--%s'?",
                             name, nearest);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(token, "="), token);
    } else {
        snprintf(name, sizeof name, "-%c", letter);
    }
    return frag_fail(error, FRAG_E_USAGE, "unknown option '%s'; '%s --help' lists the options",
                     name, path_text(arguments, path));
}

/* Is value one of "a|b|c"? Otherwise says which there are. */
static bool check_choice(const frag_command_option *option, const char *value, frag_error *error)
{
    char *copy = frag_copy_text(option->choices);
    const char *names[OPTIONS_MAX];
    size_t count = 0;
    bool is_found = false;
    char *rest = NULL;
    for (char *name = strtok_r(copy, "|", &rest); name != NULL; name = strtok_r(NULL, "|", &rest)) {
        FRAG_ASSERT(count < OPTIONS_MAX);
        is_found = is_found || strcmp(name, value) == 0;
        names[count++] = name;
    }
    if (!is_found) {
        const char *nearest = frag_nearest_name(value, names, count);
        if (nearest != NULL)
            frag_fail(error, FRAG_E_USAGE, "--%s does not know '%s'; did you mean '%s'?",
                      option->name, value, nearest);
        else
            frag_fail(error, FRAG_E_USAGE, "--%s does not know '%s'; expected one of %s",
                      option->name, value, option->choices);
    }
    frag_free(copy);
    return is_found;
}

/* Notes an option. true: it was one that every command has. */
static bool take_global(frag_arguments *arguments, const frag_command_option *option)
{
    if (option < frag_global_options || option >= frag_global_options + 3)
        return false;
    arguments->is_quiet = arguments->is_quiet || option->letter == 'q';
    arguments->is_verbose = arguments->is_verbose || option->letter == 'v';
    arguments->is_help = arguments->is_help || option->letter == 'h';
    return true;
}

/* Options before the name of a command; only the global ones can stand there. Leaves *at behind the
 * names of the command and its subcommand. */
static bool find_command(frag_arguments *arguments, int argc, char **argv, int *at,
                         frag_error *error)
{
    option_list list = {.count = 0};
    collect_options(&list, frag_global_options);
    while (last_command(arguments)->subcommands != NULL && *at < argc) {
        const char *token = argv[(*at)++];
        if (token[0] != '-') {
            const frag_command *found =
                frag_command_find(last_command(arguments)->subcommands, token, error);
            if (found == NULL)
                return false;
            FRAG_ASSERT(arguments->path_length < FRAG_COMMAND_DEPTH_MAX);
            arguments->path[arguments->path_length++] = found;
            continue;
        }
        if (strcmp(token, "--version") == 0) {
            arguments->is_version = true;
            continue;
        }
        bool is_known = false;
        for (size_t i = 0; i < list.count && !is_known; i++) {
            const frag_command_option *option = list.items[i];
            bool is_long = strncmp(token, "--", 2) == 0 && strcmp(token + 2, option->name) == 0;
            bool is_short = token[1] == option->letter && token[2] == '\0';
            is_known = (is_long || is_short) && take_global(arguments, option);
        }
        if (!is_known)
            return fail_unknown(arguments, &list, token[1] == '-' ? 0 : token[1], token, error);
    }
    return true;
}

/* getopt's tables, made from ours. */
static void fill_tables(const option_list *list, bool stops_at_operand,
                        struct option long_options[OPTIONS_MAX + 1],
                        char letters[OPTIONS_MAX * 2 + 3])
{
    size_t used = 0;
    /* '-': operands come in order, as arguments of code 1; '+': the first one ends the options;
     * ':': a missing value is told apart. */
    letters[used++] = stops_at_operand ? '+' : '-';
    letters[used++] = ':';
    for (size_t i = 0; i < list->count; i++) {
        const frag_command_option *option = list->items[i];
        long_options[i] = (struct option){
            option->name, option->argument != NULL ? required_argument : no_argument, NULL,
            LONG_CODE + (int)i};
        if (option->letter == 0)
            continue;
        letters[used++] = option->letter;
        if (option->argument != NULL)
            letters[used++] = ':';
    }
    long_options[list->count] = (struct option){0};
    letters[used] = '\0';
}

static const frag_command_option *option_of_code(const option_list *list, int code)
{
    if (code >= LONG_CODE)
        return list->items[code - LONG_CODE];
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i]->letter == code)
            return list->items[i];
    return NULL;
}

static bool takes_message(const frag_command *command)
{
    return command->operands != NULL && strncmp(command->operands, "MESSAGE", 7) == 0;
}

static bool add_operand(frag_arguments *arguments, const char *operand, frag_error *error)
{
    char path[96];
    if (arguments->operand_count >= last_command(arguments)->operand_max && !arguments->is_help)
        return frag_fail(
            error, FRAG_E_USAGE, "unexpected argument '%s'; %ssee '%s --help'", operand,
            takes_message(last_command(arguments)) ? "put a message of several words in quotes; "
                                                   : "",
            path_text(arguments, path));
    arguments->operands[arguments->operand_count++] = operand;
    return true;
}

/* An error of a value is about its option, as typed. */
static bool fail_in_option(frag_error *error, const char *option)
{
    char where[64];
    snprintf(where, sizeof where, "--%s", option);
    return frag_error_in(error, where);
}

static bool add_option(frag_arguments *arguments, const frag_command_option *option,
                       const char *value, frag_error *error)
{
    uint64_t count = 0;
    if (option->max > 0 && !frag_count_parse(value, option->min, option->max, &count, error))
        return fail_in_option(error, option->name);
    if (option->choices != NULL && option->argument != NULL && !check_choice(option, value, error))
        return false;
    if (take_global(arguments, option))
        return true;
    arguments->given = frag_grow(arguments->given, &arguments->given_capacity,
                                 arguments->given_count + 1, sizeof *arguments->given);
    size_t position = arguments->given_count + arguments->operand_count;
    arguments->given[arguments->given_count++] = (frag_given){option, value, position};
    return true;
}

/* One answer of getopt_long. argv[optind - 1] is the last argument it consumed. */
static bool take_answer(frag_arguments *arguments, const option_list *list, int code, char **argv,
                        frag_error *error)
{
    char path[96];
    if (code == OPERAND_CODE)
        return add_operand(arguments, optarg, error);
    const char *token = argv[optind - 1];
    if (code == ':')
        return frag_fail(error, FRAG_E_USAGE, "option '--%s' needs a value; see '%s --help'",
                         option_of_code(list, optopt)->name, path_text(arguments, path));
    if (code == '?' && optopt > 0 && optopt < LONG_CODE)
        return fail_unknown(arguments, list, optopt, NULL, error);
    if (code == '?') {
        /* getopt also answers '?' to --flag=value; the name is right then, so say what is wrong. */
        const frag_command_option *known =
            optopt >= LONG_CODE ? option_of_code(list, optopt) : NULL;
        if (known != NULL && strncmp(token + 2, known->name, strlen(known->name)) == 0)
            return frag_fail(error, FRAG_E_USAGE,
                             "option '--%s' takes no value; leave out what follows the '='",
                             known->name);
        return fail_unknown(arguments, list, 0, token, error);
    }
    const frag_command_option *option = option_of_code(list, code);
    FRAG_ASSERT(option != NULL);
    if (code >= LONG_CODE) {
        /* getopt accepts any unique beginning of a name; a script that uses one breaks when another
         * option is added, so only whole names are ours. */
        const char *given = option->argument != NULL && optarg == token ? argv[optind - 2] : token;
        size_t length = strlen(option->name);
        if (strncmp(given + 2, option->name, length) != 0 ||
            (given[length + 2] != '\0' && given[length + 2] != '='))
            return fail_unknown(arguments, list, 0, given, error);
    }
    return add_option(arguments, option, optarg, error);
}

static bool parse_options(frag_arguments *arguments, int argc, char **argv, frag_error *error)
{
    option_list list = {.count = 0};
    collect_options(&list, last_command(arguments)->options);
    collect_options(&list, frag_global_options);
    struct option long_options[OPTIONS_MAX + 1];
    char letters[OPTIONS_MAX * 2 + 3];
    fill_tables(&list, last_command(arguments)->takes_command, long_options, letters);
    arguments->operands = frag_alloc((size_t)argc, sizeof *arguments->operands);
    opterr = 0;
    optind = 0;
    int code;
    while ((code = getopt_long(argc, argv, letters, long_options, NULL)) != -1)
        if (!take_answer(arguments, &list, code, argv, error))
            return false;
    for (int i = optind; i < argc; i++)
        if (!add_operand(arguments, argv[i], error))
            return false;
    return true;
}

/* Of two that read from a pipe each would get a part. */
static bool check_stdin(const frag_arguments *arguments, frag_error *error)
{
    const frag_command *command = last_command(arguments);
    bool is_read = false;
    for (size_t i = 0; i < arguments->operand_count; i++) {
        bool is_stdin = strcmp(arguments->operands[i], "-") == 0;
        if (is_stdin && is_read && command->operand_max == UINT32_MAX && !command->takes_command)
            return frag_fail(error, FRAG_E_USAGE, "'-' is named twice; stdin can be read once");
        is_read = is_read || is_stdin;
    }
    return true;
}

/* A folder stands for the recordings in it. */
static bool expand_folders(frag_arguments *arguments, frag_error *error)
{
    if (strstr(last_command(arguments)->operands, "FOLDER") == NULL)
        return true;
    for (size_t i = 0; i < arguments->operand_count; i++) {
        size_t count = 0;
        char **paths = NULL;
        if (!frag_is_folder(arguments->operands[i]))
            continue;
        if ((paths = frag_job_folder(arguments->operands[i], &count, error)) == NULL)
            return false;
        size_t behind = arguments->operand_count - i - 1;
        size_t owned = arguments->folder_path_count;
        arguments->operand_count += count - 1;
        arguments->operands = frag_realloc(arguments->operands, arguments->operand_count,
                                           sizeof *arguments->operands);
        arguments->folder_path_count += count;
        arguments->folder_paths = frag_realloc(
            arguments->folder_paths, arguments->folder_path_count, sizeof *arguments->folder_paths);
        memmove(&arguments->operands[i + count], &arguments->operands[i + 1],
                behind * sizeof *arguments->operands);
        for (size_t k = 0; k < count; k++)
            arguments->operands[i + k] = arguments->folder_paths[owned + k] = paths[k];
        frag_free(paths);
        i += count - 1;
    }
    return true;
}

/* --memory, wherever a command has it. */
static bool limit_memory(const frag_arguments *arguments, frag_error *error)
{
    const char *value = frag_arguments_value(arguments, "memory");
    if (value == NULL)
        return true;
    uint64_t bytes = 0;
    return frag_arguments_bytes(arguments, "memory", &bytes, error) &&
           frag_spill_begin(bytes, NULL, error);
}

bool frag_arguments_parse(frag_arguments *arguments, int argc, char **argv, frag_error *error)
{
    char path[96];
    *arguments = (frag_arguments){.path = {&frag_program}, .path_length = 1};
    int at = 1;
    if (!find_command(arguments, argc, argv, &at, error))
        return false;
    const frag_command *command = last_command(arguments);
    if (arguments->is_help || arguments->is_version)
        return true;
    if (command->subcommands != NULL)
        return frag_fail(error, FRAG_E_USAGE, "no command is given; '%s --help' lists them",
                         path_text(arguments, path));
    /* getopt skips the word before the first argument. */
    bool ok = parse_options(arguments, argc - at + 1, argv + at - 1, error);
    if (arguments->is_help)
        return true;
    if (ok && arguments->operand_count < command->operand_min)
        ok = frag_fail(error, FRAG_E_USAGE, "%s is missing; see '%s --help'", command->operands,
                       path_text(arguments, path));
    arguments->context = frag_context_make(arguments->is_quiet, &arguments->status);
    return ok && limit_memory(arguments, error) && check_stdin(arguments, error) &&
           (command->operands == NULL || expand_folders(arguments, error));
}

void frag_arguments_destroy(frag_arguments *arguments)
{
    frag_free(arguments->operands);
    frag_folder_names_destroy(arguments->folder_paths, arguments->folder_path_count);
    frag_free(arguments->given);
    *arguments = (frag_arguments){0};
}

const frag_command *frag_arguments_command(const frag_arguments *arguments)
{
    return last_command(arguments);
}

size_t frag_arguments_operand_count(const frag_arguments *arguments)
{
    return arguments->operand_count;
}

bool frag_arguments_has_folder(const frag_arguments *arguments)
{
    return arguments->folder_path_count > 0;
}

const char *frag_arguments_operand(const frag_arguments *arguments, size_t index)
{
    FRAG_ASSERT(index < arguments->operand_count);
    return arguments->operands[index];
}

static bool is_listed(const frag_command_option *options, const char *name)
{
    while (options != NULL && options->name != NULL && strcmp(options->name, name) != 0)
        options++;
    return options != NULL && options->name != NULL;
}

bool frag_arguments_knows(const frag_arguments *arguments, const char *option)
{
    return is_listed(last_command(arguments)->options, option) ||
           is_listed(frag_global_options, option);
}

static bool has_option(const frag_command *command, const char *name)
{
    bool has = is_listed(command->options, name);
    for (size_t i = 0; !has && command->subcommands != NULL && command->subcommands[i] != NULL; i++)
        has = has_option(command->subcommands[i], name);
    return has;
}

bool frag_option_is_known(const char *name)
{
    return is_listed(frag_global_options, name) || has_option(&frag_program, name);
}

/* The index-th given of an option, or NULL. */
static const frag_given *find_given(const frag_arguments *arguments, const char *option,
                                    size_t index)
{
    FRAG_ASSERT(frag_option_is_known(option));
    for (size_t i = 0; i < arguments->given_count; i++)
        if (strcmp(arguments->given[i].option->name, option) == 0 && index-- == 0)
            return &arguments->given[i];
    return NULL;
}

size_t frag_arguments_value_count(const frag_arguments *arguments, const char *option)
{
    size_t count = 0;
    while (find_given(arguments, option, count) != NULL)
        count++;
    return count;
}

bool frag_arguments_has(const frag_arguments *arguments, const char *option)
{
    return find_given(arguments, option, 0) != NULL;
}

const char *frag_arguments_value_at(const frag_arguments *arguments, const char *option,
                                    size_t index)
{
    const frag_given *given = find_given(arguments, option, index);
    FRAG_ASSERT(given != NULL);
    return given->value;
}

size_t frag_arguments_value_position(const frag_arguments *arguments, const char *option,
                                     size_t index)
{
    const frag_given *given = find_given(arguments, option, index);
    FRAG_ASSERT(given != NULL);
    return given->position;
}

const char *frag_arguments_value(const frag_arguments *arguments, const char *option)
{
    size_t count = frag_arguments_value_count(arguments, option);
    return count == 0 ? NULL : frag_arguments_value_at(arguments, option, count - 1);
}

bool frag_arguments_is(const frag_arguments *arguments, const char *option, const char *choice)
{
    const char *value = frag_arguments_value(arguments, option);
    return value != NULL && strcmp(value, choice) == 0;
}

bool frag_arguments_is_quiet(const frag_arguments *arguments)
{
    return arguments->is_quiet;
}

const frag_context *frag_arguments_context(const frag_arguments *arguments)
{
    return &arguments->context;
}

bool frag_arguments_is_verbose(const frag_arguments *arguments)
{
    return arguments->is_verbose;
}

bool frag_arguments_bytes(const frag_arguments *arguments, const char *option, uint64_t *value,
                          frag_error *error)
{
    const char *text = frag_arguments_value(arguments, option);
    return text == NULL || frag_bytes_parse(text, value, error) || fail_in_option(error, option);
}

bool frag_arguments_count(const frag_arguments *arguments, const char *option, uint64_t min,
                          uint64_t max, uint64_t *value, frag_error *error)
{
    const char *text = frag_arguments_value(arguments, option);
    return text == NULL || frag_count_parse(text, min, max, value, error) ||
           fail_in_option(error, option);
}

uint64_t frag_arguments_number(const frag_arguments *arguments, const char *option,
                               uint64_t otherwise)
{
    const char *text = frag_arguments_value(arguments, option);
    uint64_t number = otherwise;
    frag_error none = {0};
    FRAG_ASSERT(text == NULL || frag_count_parse(text, 0, UINT64_MAX, &number, &none));
    return number;
}
