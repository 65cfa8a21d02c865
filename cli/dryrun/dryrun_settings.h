/* What the command line asks of the script's processes: settings.json of the Python half. */
#ifndef FRAG_DRYRUN_DRYRUN_SETTINGS_H
#define FRAG_DRYRUN_DRYRUN_SETTINGS_H

#include "cli/command.h"

/* false: --steps, --until, --value or --rounds cannot be read, or the file cannot be written. */
bool frag_dryrun_settings_write(const frag_arguments *arguments, bool has_stacks,
                                const char *folder, frag_error *error);

#endif
