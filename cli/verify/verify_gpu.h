/* fraglab verify --against cuda: the simulated device against a real card, call by call. */
#ifndef FRAG_VERIFY_VERIFY_GPU_H
#define FRAG_VERIFY_VERIFY_GPU_H

#include "cli/inputs.h"

/* Exit code: 0 identical, 1 a difference, else as frag_report. */
int frag_verify_gpu(const frag_arguments *arguments, const frag_policy_list *policies,
                    uint64_t capacity_bytes, frag_trace_format format, bool is_json);

#endif
