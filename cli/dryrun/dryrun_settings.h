/* What the command line asks of the script's processes: settings.json of the Python half. */
#ifndef FRAG_DRYRUN_DRYRUN_SETTINGS_H
#define FRAG_DRYRUN_DRYRUN_SETTINGS_H

#include "cli/command.h"

typedef struct frag_dryrun_wishes {
    bool has_stacks;
    bool has_progress; /* processes write how far they are */
} frag_dryrun_wishes;

/* --follow, or its default. false: it cannot be read, or is too large. */
bool frag_dryrun_read_followed(const frag_arguments *arguments, uint64_t *bytes, frag_error *error);

/* false: --steps, --until, --value, --follow or --rounds cannot be read, or the file cannot be
 * written. */
bool frag_dryrun_settings_write(const frag_arguments *arguments, const frag_dryrun_wishes *wishes,
                                const char *folder, frag_error *error);

#endif
