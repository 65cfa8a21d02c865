/* A command and its options as a table, from which parsing, --help, the man page and shell
 * completion are all made. */
#ifndef FRAG_STUDIES_COMMAND_TABLE_H
#define FRAG_STUDIES_COMMAND_TABLE_H

#include <stdbool.h>
#include <stdint.h>

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
    /* Returns the exit code. NULL: that of the command above runs it. */
    int (*run)(const frag_arguments *arguments);
} frag_command;

#endif
