/* The settings of a policy that a search may choose among, and what they are called. */
#ifndef FRAG_TUNE_TUNE_SPACE_H
#define FRAG_TUNE_TUNE_SPACE_H

#include "allocators/registry.h"
#include "base/text.h"
#include "studies/tune/tune_search.h"

typedef struct frag_tune_axis {
    const char *key; /* of the policy's options */
    char *values[FRAG_TUNE_VALUES_MAX];
    uint32_t count;
} frag_tune_axis;

typedef struct frag_tune_space {
    const frag_policy_spec *base; /* borrowed: the policy with what the user has fixed */
    bool is_literal;              /* settings are written as PYTORCH_CUDA_ALLOC_CONF */
    frag_tune_axis axes[FRAG_TUNE_AXES_MAX];
    uint32_t value_counts[FRAG_TUNE_AXES_MAX];
    uint32_t axis_count;
    frag_tune_point starts[10]; /* known good ones, and what guides advise */
    size_t start_count;
    frag_tune_point advised; /* max_split_size_mb:128 */
    bool has_advised;
} frag_tune_space;

/* Numbers go on a logarithmic ladder about their default; flags and names take every value. Left
 * out: what the user has fixed, what does nothing to device memory, and what the program relies on
 * (alignment). has_capacity: settings that only work below a limit are worth trying. */
void frag_tune_space_create(const frag_policy_spec *base, bool has_capacity,
                            frag_tune_space *space);
void frag_tune_space_destroy(frag_tune_space *space);

/* "expandable_segments:True,large_segment_size_mb:64" for pytorch, else "grow=4MiB,sli=3"; "" for
 * the default. Without the memory fraction, which a program sets by a call. */
void frag_tune_space_setting(const frag_tune_space *space, const frag_tune_point *point,
                             frag_text *setting);

/* Of set_per_process_memory_fraction, or NULL. */
const char *frag_tune_space_fraction(const frag_tune_space *space, const frag_tune_point *point);

/* As after --policy. */
void frag_tune_space_label(const frag_tune_space *space, const frag_tune_point *point,
                           frag_text *label);

/* The policy with these settings; the caller destroys it. */
bool frag_tune_space_spec(const frag_tune_space *space, const frag_tune_point *point,
                          frag_policy_spec *spec, frag_error *error);

#endif
