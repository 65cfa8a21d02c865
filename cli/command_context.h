/* The command line's context: Ctrl-C cancels, progress is a line on stderr, warnings go there too.
 */
#ifndef FRAG_CLI_COMMAND_CONTEXT_H
#define FRAG_CLI_COMMAND_CONTEXT_H

#include "base/context.h"
#include "cli/command.h"

/* When the progress line was drawn last, on the monotonic clock. */
typedef struct frag_cli_status {
    uint64_t drawn_ns;
} frag_cli_status;

/* With a thread for each core. status lives as long as the context. */
frag_context frag_context_make(bool is_quiet, frag_cli_status *status);

#endif
