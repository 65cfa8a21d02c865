/* Fixes that put something on the host, for fix_table.c, and what of them is not tried. */
#ifndef FRAG_PLAN_FIX_OFFLOAD_H
#define FRAG_PLAN_FIX_OFFLOAD_H

#include "base/text.h"
#include "studies/plan/fix_base.h"

uint32_t frag_fix_count_activations(const frag_fix_base *base);
void frag_fix_apply_activations(const frag_fix_base *base, uint32_t level,
                                frag_fit_setting *setting);

/* Levels: the optimizer's state and step; gradients too. */
uint32_t frag_fix_count_host_optimizer(const frag_fix_base *base);
void frag_fix_apply_host_optimizer(const frag_fix_base *base, uint32_t level,
                                   frag_fit_setting *setting);
void frag_fix_describe_host_optimizer(const frag_fit_setting *setting, frag_text *text);
void frag_fix_line_host_optimizer(const frag_fix_base *base, const frag_fit_setting *setting,
                                  frag_fix_place place, frag_text *text);

uint32_t frag_fix_count_host_shards(const frag_fix_base *base);
void frag_fix_apply_host_shards(const frag_fix_base *base, uint32_t level,
                                frag_fit_setting *setting);

uint32_t frag_fix_count_host_weights(const frag_fix_base *base);
/* Would it apply, and is not tried because that would take long? */
bool frag_fix_is_host_left_out(const frag_fix_base *base);
void frag_fix_apply_host_weights(const frag_fix_base *base, uint32_t level,
                                 frag_fit_setting *setting);
void frag_fix_line_host_weights(const frag_fix_base *base, const frag_fit_setting *setting,
                                frag_fix_place place, frag_text *text);

#endif
