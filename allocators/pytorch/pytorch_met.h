/* Between which values a setting could have lain without a run of the pytorch policy coming out
 * another way.
 *
 * A setting acts through comparisons of sizes with it, and a run notes how near they came
 * (frag_policy_met). Whoever looks for a setting then need not try two values of one interval. */
#ifndef FRAG_PYTORCH_PYTORCH_MET_H
#define FRAG_PYTORCH_PYTORCH_MET_H

#include "sim/policy_engine.h"

/* Bytes from least to most, both included; most may be FRAG_UNLIMITED. */
typedef struct frag_pytorch_interval {
    uint64_t least;
    uint64_t most;
} frag_pytorch_interval;

/* Of the mark above which garbage is collected: the threshold's share of the memory limit. The run
 * had one. */
frag_pytorch_interval frag_pytorch_met_mark(const frag_policy_met *met);
/* Of the memory limit. */
frag_pytorch_interval frag_pytorch_met_limit(const frag_policy_met *met);
/* Of max_split_size, with which the run was made. */
frag_pytorch_interval frag_pytorch_met_split(const frag_policy_met *met);
/* Of max_non_split_rounding, beside a max_split_size. */
frag_pytorch_interval frag_pytorch_met_slack(const frag_policy_met *met);

#endif
