/* The command line: the commands, what the parser hands to them, and how they talk to people. Each
 * command is one file that exports one frag_command. */
#ifndef FRAG_CLI_COMMAND_H
#define FRAG_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "base/error.h"
#include "studies/command_table.h"

extern const frag_command frag_command_run;
extern const frag_command frag_command_verify;
extern const frag_command frag_command_min_capacity;
extern const frag_command frag_command_explain;
extern const frag_command frag_command_sweep;
extern const frag_command frag_command_tune;
extern const frag_command frag_command_plan;
extern const frag_command frag_command_compare;
extern const frag_command frag_command_diff;
extern const frag_command frag_command_leaks;
extern const frag_command frag_command_ranks;
extern const frag_command frag_command_plot;
extern const frag_command frag_command_report;
extern const frag_command frag_command_trace;
extern const frag_command frag_command_record;
extern const frag_command frag_command_dryrun;
extern const frag_command frag_command_bisect;
extern const frag_command frag_command_policies;
extern const frag_command frag_command_device;
extern const frag_command frag_command_doctor;
extern const frag_command frag_command_help;

/* The whole table, in the order of `fraglab --help`; ends with NULL. */
extern const frag_command *const frag_commands[];

/* ---- what the parser hands to a command */
/* The command that was named, the innermost. */
const frag_command *frag_arguments_command(const frag_arguments *arguments);
size_t frag_arguments_operand_count(const frag_arguments *arguments);
const char *frag_arguments_operand(const frag_arguments *arguments, size_t index);
/* Does one of the operands come from a folder that was named? */
bool frag_arguments_has_folder(const frag_arguments *arguments);
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
/* What else there is to say while a program runs; not with -q. */
void frag_tell(const frag_arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
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
