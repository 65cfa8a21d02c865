#include "cli/help.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/completion.h"
#include "sim/rows/result_schema.h"
#include "sim/version.h"

enum { COLUMNS = 80, OPTION_INDENT = 2, HELP_COLUMN = 28 };

static void print_wrapped(FILE *stream, const char *text, size_t length, size_t column, size_t at)
{
    size_t used = at;
    bool is_first = true;
    for (size_t i = 0; i < length;) {
        size_t word = 0;
        while (i + word < length && text[i + word] != ' ')
            word++;
        if (word > 0 && !is_first && used + 1 + word > COLUMNS) {
            fputc('\n', stream);
            used = 0;
            is_first = true;
        }
        if (word > 0) {
            if (is_first && used < column) {
                fprintf(stream, "%*s", (int)(column - used), "");
                used = column;
            } else if (!is_first) {
                fputc(' ', stream);
                used++;
            }
            fwrite(text + i, 1, word, stream);
            used += word;
            is_first = false;
        }
        i += word + 1;
    }
    fputc('\n', stream);
}

void frag_help_print_wrapped(FILE *stream, const char *text, unsigned column, unsigned at)
{
    print_wrapped(stream, text, strlen(text), column, at);
}

/* Paragraphs are apart by an empty line; a line that begins with a space is kept as it is. */
static void print_paragraphs(FILE *stream, const char *text)
{
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (line[0] == ' ')
            fprintf(stream, "%.*s\n", (int)length, line);
        else
            print_wrapped(stream, line, length, 0, 0);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
}

static void print_row(FILE *stream, const char *left, const char *help)
{
    size_t used = (size_t)fprintf(stream, "%*s%s", OPTION_INDENT, "", left);
    if (used + 2 > HELP_COLUMN) {
        fputc('\n', stream);
        used = 0;
    }
    print_wrapped(stream, help, strlen(help), HELP_COLUMN, used);
}

/* What stands for a value: its choices where they are few, else the name of its kind. */
static const char *value_text(const frag_command_option *option)
{
    bool is_short = option->choices != NULL && strlen(option->choices) <= 40;
    return is_short && strchr(option->choices, '|') != NULL ? option->choices : option->argument;
}

static void print_options(FILE *stream, const frag_command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        char left[128];
        char letter[8] = "    ";
        if (options->letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", options->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, options->name,
                 options->argument != NULL ? " " : "",
                 options->argument != NULL ? value_text(options) : "");
        print_row(stream, left, options->help);
    }
}

static void print_commands(FILE *stream, const frag_command *const *commands)
{
    for (; *commands != NULL; commands++)
        print_row(stream, (*commands)->name, (*commands)->summary);
}

static void print_path(FILE *stream, const frag_command *const *path, size_t path_length)
{
    for (size_t i = 0; i < path_length; i++)
        fprintf(stream, "%s%s", i == 0 ? "" : " ", path[i]->name);
}

static void print_usage(FILE *stream, const frag_command *const *path, size_t path_length)
{
    const frag_command *command = path[path_length - 1];
    fputs("usage: ", stream);
    print_path(stream, path, path_length);
    bool has_options = command->options != NULL && command->options->name != NULL;
    fprintf(stream, "%s",
            command->subcommands != NULL ? " COMMAND"
            : has_options                ? " [OPTION...]"
                                         : "");
    if (command->subcommands == NULL && command->operands != NULL && command->operands[0] != '\0')
        fprintf(stream, " %s", command->operands);
    else if (command->subcommands != NULL)
        fputs(" ...", stream);
    fputc('\n', stream);
}

void frag_help_print(FILE *stream, const frag_command *const *path, size_t path_length)
{
    const frag_command *command = path[path_length - 1];
    print_usage(stream, path, path_length);
    fputc('\n', stream);
    print_paragraphs(stream,
                     command->description != NULL ? command->description : command->summary);
    if (command->subcommands != NULL) {
        fputs("\ncommands:\n", stream);
        print_commands(stream, command->subcommands);
    }
    fputs("\noptions:\n", stream);
    print_options(stream, command->options);
    print_options(stream, frag_global_options);
    if (path_length == 1)
        print_row(stream, "    --version", "print the version and the commit it was built from");
    if (command->examples != NULL) {
        fputs("\nexamples:\n", stream);
        for (const char *line = command->examples; *line != '\0';) {
            size_t length = strcspn(line, "\n");
            fprintf(stream, "  %.*s\n", (int)length, line);
            line += length + (line[length] == '\n' ? 1 : 0);
        }
    }
    if (command->subcommands != NULL) {
        fputs("\n'", stream);
        print_path(stream, path, path_length);
        fputs(" COMMAND --help' explains one command.\n", stream);
    }
}

/* ---- the man page */

/* roff reads a leading point or quote and every backslash and dash as its own. */
static void print_roff(FILE *stream, const char *text, size_t length)
{
    bool is_line_start = true;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (is_line_start && (c == '.' || c == '\''))
            fputs("\\&", stream);
        if (c == '\\')
            fputs("\\e", stream);
        else if (c == '-')
            fputs("\\-", stream);
        else
            fputc(c, stream);
        is_line_start = c == '\n';
    }
}

static void print_roff_text(FILE *stream, const char *text)
{
    print_roff(stream, text, strlen(text));
}

static void print_roff_paragraphs(FILE *stream, const char *text)
{
    bool is_kept = false;
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if ((line[0] == ' ') != is_kept) {
            is_kept = !is_kept;
            fputs(is_kept ? ".nf\n" : ".fi\n", stream);
        }
        if (length == 0) {
            fputs(".PP\n", stream);
        } else {
            print_roff(stream, line, length);
            fputc('\n', stream);
        }
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    if (is_kept)
        fputs(".fi\n", stream);
}

static void print_roff_options(FILE *stream, const frag_command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        fputs(".TP\n\\fB", stream);
        if (options->letter != 0)
            fprintf(stream, "\\-%c\\fR, \\fB", options->letter);
        fputs("\\-\\-", stream);
        print_roff_text(stream, options->name);
        fputs("\\fR", stream);
        if (options->argument != NULL) {
            fputs(" \\fI", stream);
            print_roff_text(stream, value_text(options));
            fputs("\\fR", stream);
        }
        fputc('\n', stream);
        print_roff_text(stream, options->help);
        fputc('\n', stream);
    }
}

static void print_roff_command(FILE *stream, const char *prefix, const frag_command *command)
{
    fputs(".SS \"", stream);
    print_roff_text(stream, prefix);
    print_roff_text(stream, command->name);
    if (command->operands != NULL && command->operands[0] != '\0' && command->subcommands == NULL) {
        fputc(' ', stream);
        print_roff_text(stream, command->operands);
    }
    fputs("\"\n", stream);
    print_roff_paragraphs(stream,
                          command->description != NULL ? command->description : command->summary);
    print_roff_options(stream, command->options);
    if (command->examples != NULL) {
        fputs(".PP\nExamples:\n.PP\n.nf\n", stream);
        print_roff_text(stream, command->examples);
        fputs("\n.fi\n", stream);
    }
    for (size_t i = 0; command->subcommands != NULL && command->subcommands[i] != NULL; i++) {
        char inner[64];
        snprintf(inner, sizeof inner, "%s%s ", prefix, command->name);
        print_roff_command(stream, inner, command->subcommands[i]);
    }
}

/* The whole program as a page for man(1), section 1. */
static void print_man(FILE *stream)
{
    fprintf(stream, ".TH FRAGLAB 1 \"%s\" \"fraglab %s\" \"User Commands\"\n", frag_commit_date(),
            frag_version());
    fputs(".SH NAME\nfraglab \\- ", stream);
    print_roff_text(stream, frag_program.summary);
    fputs("\n.SH SYNOPSIS\n.B fraglab\n.I COMMAND\n[\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n.SH "
          "DESCRIPTION\n",
          stream);
    print_roff_paragraphs(stream, frag_program.description);
    fputs(".SH OPTIONS\nEvery command understands:\n", stream);
    print_roff_options(stream, frag_global_options);
    fputs(".SH COMMANDS\n", stream);
    for (size_t i = 0; frag_commands[i] != NULL; i++)
        print_roff_command(stream, "", frag_commands[i]);
    fputs(".SH EXIT STATUS\n.TP\n.B 0\nOk.\n.TP\n.B 1\nA finding: a threshold, a mismatch, an "
          "out\\-of\\-memory point that was to fail.\n.TP\n.B 2\nThe command line is "
          "wrong.\n.TP\n.B 3\nAn input is wrong.\n.TP\n.B 4\n"
          "The system or the GPU refused.\n.TP\n.B 130\nInterrupted; rows that were finished are "
          "on stdout, a file behind \\-o is as it was.\n",
          stream);
    fputs(".SH ENVIRONMENT\nNo variable changes a figure, but for the first.\n.TP\n"
          ".B PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF\nSettings for the policy pytorch:env, "
          "and for no other.\n.TP\n.B NO_COLOR\nSet: no colour.\n.TP\n.B TERM\ndumb, or not set: "
          "neither colour nor a progress line.\n.TP\n.B TMPDIR\nWhere plots are prepared, and "
          "files of --memory lie.\n"
          ".TP\n.B PATH\nWhere gnuplot is looked for.\n",
          stream);
}

/* ---- fraglab help */

static const frag_command_option help_options[] = {
    {"man", .help = "print the man page, for 'man -l -'"},
    {"schema", .help = "print the JSON Schema of result rows (run, sweep, min-capacity)"},
    {"completion",
     .help = "print a completion script for the shell named after it: bash (default), zsh or fish"},
    {.name = NULL},
};

static int run_help(const frag_arguments *arguments)
{
    frag_error error = {.code = FRAG_E_NONE};
    const frag_command *path[FRAG_COMMAND_DEPTH_MAX] = {&frag_program};
    size_t length = 1;
    if (frag_arguments_has(arguments, "man")) {
        print_man(stdout);
        return 0;
    }
    if (frag_arguments_has(arguments, "schema")) {
        frag_row_schema_write(stdout);
        return 0;
    }
    if (frag_arguments_has(arguments, "completion")) {
        const char *shell = "bash";
        if (frag_arguments_operand_count(arguments) > 0)
            shell = frag_arguments_operand(arguments, 0);
        if (frag_completion_print(stdout, shell))
            return 0;
        frag_fail(&error, FRAG_E_USAGE, "no completion for '%s'; expected bash, zsh or fish",
                  shell);
        return frag_report(&error);
    }
    for (size_t i = 0; i < frag_arguments_operand_count(arguments); i++) {
        const char *name = frag_arguments_operand(arguments, i);
        if (path[length - 1]->subcommands == NULL) {
            frag_fail(&error, FRAG_E_USAGE, "'%s' has no commands of its own; leave out '%s'",
                      path[length - 1]->name, name);
            return frag_report(&error);
        }
        path[length] = frag_command_find(path[length - 1]->subcommands, name, &error);
        if (path[length] == NULL)
            return frag_report(&error);
        length++;
    }
    frag_help_print(stdout, path, length);
    return 0;
}

const frag_command frag_command_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "explain a command; print the man page or shell completion",
    .options = help_options,
    .examples = "fraglab help run            # what 'fraglab run --help' prints\n"
                "fraglab help --man | man -l -",
    .operand_max = FRAG_COMMAND_DEPTH_MAX - 1,
    .run = run_help,
};
