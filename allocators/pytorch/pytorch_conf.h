/* The settings string of PyTorch, PYTORCH_CUDA_ALLOC_CONF, as each release reads it.
 *
 * Releases differ in the keys they know, in what they check and in what they overlook: a string is
 * taken or refused here as the release in settings->version does, with its own words. */
#ifndef FRAG_PYTORCH_PYTORCH_CONF_H
#define FRAG_PYTORCH_PYTORCH_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/pytorch/pytorch_settings.h"
#include "base/context.h"
#include "base/error.h"

/* The message about backend:cudaMallocAsync. */
#define FRAG_PYTORCH_OTHER_BACKEND                                                                 \
    "is another allocator than PyTorch's native one; use the policy cuda-async"

/* The settings string that a release finds in the environment; NULL: none. Releases before
 * FRAG_PYTORCH_SEVERAL_NAMES look for PYTORCH_CUDA_ALLOC_CONF alone. */
#define FRAG_PYTORCH_SEVERAL_NAMES 210u
const char *frag_pytorch_conf_of(uint32_t version, const frag_context *context);

/* Applies a settings string as the release does: keys that are not named go back to their defaults
 * (max_split_size_mb, garbage_collection_threshold, roundup_power2_divisions, from 2.11 also
 * max_non_split_rounding_mb) or keep their value (the others). per_process_memory_fraction changes
 * key_fraction only. settings must come from frag_pytorch_settings_reset or _create, and may be
 * given again and again. false: FRAG_E_USAGE with the release's words, error->column is the
 * character (from 1) they are about, and settings are as before. Source: the compiled libraries of
 * PyTorch 2.1 to 2.15, asked string by string. */
bool frag_pytorch_conf_parse(frag_pytorch_settings *settings, const char *text, frag_error *error);

/* Reads the value of roundup_power2_divisions alone; otherwise as frag_pytorch_conf_parse. */
bool frag_pytorch_conf_divisions(frag_pytorch_settings *settings, const char *text,
                                 frag_error *error);

/* The first release that knows a key, as 2.13 is 213; 0: none does. */
uint32_t frag_pytorch_conf_since(const char *key);

/* The least max_split_size_mb and max_non_split_rounding_mb that the release accepts. */
uint64_t frag_pytorch_conf_split_mib_min(const frag_pytorch_settings *settings);

#endif
