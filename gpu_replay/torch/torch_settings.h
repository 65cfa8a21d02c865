/* Settings of the library, read from the environment of the program it is loaded into. */
#ifndef FRAG_TORCH_TORCH_SETTINGS_H
#define FRAG_TORCH_TORCH_SETTINGS_H

#include "allocators/registry.h"
#include "base/error.h"

typedef struct frag_torch_settings {
    frag_policy_spec policy; /* FRAGLAB_POLICY; "pytorch:env" without it */
    uint64_t capacity_bytes; /* FRAGLAB_CAPACITY; FRAG_UNLIMITED: the card's own end */
    char *stats_path;        /* FRAGLAB_STATS: a file or "stderr"; NULL: no printout */
    char *record_path;       /* FRAGLAB_RECORD: a .fgt; NULL: nothing is recorded */
    char *runtime_path;      /* FRAGLAB_CUDART: the file of libcudart; NULL: found by name */
    char *torch_version;     /* FRAGLAB_TORCH_VERSION: "2.9"; "" when not known */
} frag_torch_settings;

/* Reads the environment. In paths %p becomes the number of the process. Everything is tried that
 * can be: the policy is created once on a simulated device, the files are opened for writing.
 * false: the error names the variable; settings are empty. */
bool frag_torch_settings_read(frag_torch_settings *settings, frag_error *error);
void frag_torch_settings_destroy(frag_torch_settings *settings);

#endif
