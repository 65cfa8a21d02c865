/* Experiments: which traces, policies, options and capacities a sweep goes through. A YAML file;
 * docs/sweep.md describes it. */
#ifndef FRAG_SWEEP_EXPERIMENT_H
#define FRAG_SWEEP_EXPERIMENT_H

#include "allocators/registry.h"

typedef struct frag_experiment {
    char **traces; /* paths, relative ones taken from the experiment's folder; "-" is no trace */
    size_t trace_count;
    frag_policy_spec *policies; /* every combination, in order of the file */
    size_t policy_count;
    uint64_t *capacities; /* FRAG_UNLIMITED: without limit; ascending order is the file's affair */
    size_t capacity_count;
    bool is_oom_skipped;
    bool has_bounds; /* rows tell the packing of their trace */
} frag_experiment;

/* false: FRAG_E_INPUT with file, line and column. The caller destroys, either way. */
bool frag_experiment_load(const char *path, frag_experiment *experiment, frag_error *error);
/* The same of such a text, YAML or JSON. folder stands before relative paths: "runs/"; "": the
 * current one. */
bool frag_experiment_parse(const char *text, size_t length, const char *folder,
                           frag_experiment *experiment, frag_error *error);
void frag_experiment_destroy(frag_experiment *experiment);

#endif
