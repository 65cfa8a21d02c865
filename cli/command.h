/* The command line: one table of commands and options, from which parsing, --help, the man page and
 * shell completion are all made. Each subcommand is one file that exports one frag_command. */
#ifndef FRAG_CLI_COMMAND_H
#define FRAG_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "base/error.h"

typedef enum frag_output_scope {
    FRAG_OF_ALL_RUNS,
    FRAG_OF_ONE_DEVICE, /* simulated or real */
    FRAG_OF_ONE_RUN     /* of one trace, too */
} frag_output_scope;

typedef struct frag_command_option {
    const char *name;     /* without dashes: "capacity" */
    const char *argument; /* "SIZE"; NULL: a flag */
    char letter;          /* 'o' for -o; 0: none */
    const char *help;     /* one or more lines' worth of text; wrapped when printed */
    const char *choices;  /* "table|jsonl": for completion, and checked by the parser; NULL: any */
    /* Of an option that takes a count: the parser checks it. max 0: it takes something else. */
    uint64_t min;
    uint64_t max;
    /* Of an option that names a file to write: what goes there, and how many runs it can hold.
     * NULL: it names none. No two go to one place. */
    const char *writes;
    frag_output_scope scope;
} frag_command_option;

typedef struct frag_arguments frag_arguments;

typedef struct frag_command {
    const char *name;
    const char *operands;               /* "TRACE..." */
    const char *summary;                /* one line */
    const char *description;            /* paragraphs separated by an empty line; may be NULL */
    const char *examples;               /* lines of "command  # what it does"; may be NULL */
    const frag_command_option *options; /* ends with name NULL; may be NULL */
    const struct frag_command *const *subcommands; /* ends with NULL; NULL: none */
    uint32_t operand_min;
    uint32_t operand_max; /* UINT32_MAX: any number */
    bool takes_command;   /* the operands are a command: options behind the first are not ours */
    int (*run)(const frag_arguments *arguments); /* exit code */
} frag_command;

extern const frag_command frag_command_run;
extern const frag_command frag_command_verify;
extern const frag_command frag_command_min_capacity;
extern const frag_command frag_command_explain;
extern const frag_command frag_command_sweep;
extern const frag_command frag_command_tune;
extern const frag_command frag_command_compare;
extern const frag_command frag_command_plot;
extern const frag_command frag_command_report;
extern const frag_command frag_command_trace;
extern const frag_command frag_command_record;
extern const frag_command frag_command_policies;
extern const frag_command frag_command_device;
extern const frag_command frag_command_doctor;
extern const frag_command frag_command_help;

/* The whole table, in the order of `fraglab --help`; ends with NULL. */
extern const frag_command *const frag_commands[];

/* ---- what the parser hands to a command */
size_t frag_arguments_operand_count(const frag_arguments *arguments);
const char *frag_arguments_operand(const frag_arguments *arguments, size_t index);
bool frag_arguments_has(const frag_arguments *arguments, const char *option);
/* The last value given, or NULL. */
const char *frag_arguments_value(const frag_arguments *arguments, const char *option);
/* Is this choice the last value given? */
bool frag_arguments_is(const frag_arguments *arguments, const char *option, const char *choice);
/* All values of a repeated option in order of the command line. */
size_t frag_arguments_value_count(const frag_arguments *arguments, const char *option);
const char *frag_arguments_value_at(const frag_arguments *arguments, const char *option,
                                    size_t index);
/* Place of the n-th value among all arguments, for options whose order against others matters. */
size_t frag_arguments_value_position(const frag_arguments *arguments, const char *option,
                                     size_t index);
/* The number of an option whose count the parser has checked; without the option: otherwise. */
uint64_t frag_arguments_number(const frag_arguments *arguments, const char *option,
                               uint64_t otherwise);
/* Has the command such an option? Those that it has not are never given. */
bool frag_arguments_knows(const frag_arguments *arguments, const char *option);
/* Has any command such an option? To ask for the value of one that no table has is a bug. */
bool frag_option_is_known(const char *name);
/* Global switches: -q, -v. */
bool frag_arguments_is_quiet(const frag_arguments *arguments);
bool frag_arguments_is_verbose(const frag_arguments *arguments);
/* What computations get: a thread for each core, SIGINT, progress and warnings on stderr. */
const frag_context *frag_arguments_context(const frag_arguments *arguments);

/* Typed access: *value keeps its default when the option is absent; false: usage error filled. */
bool frag_arguments_bytes(const frag_arguments *arguments, const char *option, uint64_t *value,
                          frag_error *error);
bool frag_arguments_count(const frag_arguments *arguments, const char *option, uint64_t min,
                          uint64_t max, uint64_t *value, frag_error *error);

/* ---- talking to the person (all on stderr) */
/* "fraglab: where:line:col: sentence"; returns the exit code that goes with it. */
int frag_report(const frag_error *error);
void frag_warn(const frag_arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void frag_print_warning(const char *sentence); /* with -q too */
void frag_say(const frag_arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* -v */

/* Set by SIGINT; commands stop at the next row and return 130. */
bool frag_is_interrupted(void);
/* Called once by main: from here on SIGINT sets that flag, and a second one kills. */
void frag_watch_signals(void);

/* Monotonic nanoseconds. */
uint64_t frag_clock_ns(void);

bool frag_is_terminal(int descriptor); /* isatty, honouring TERM=dumb */
bool frag_has_colour(int descriptor);  /* terminal, and NO_COLOR not set */

#endif
