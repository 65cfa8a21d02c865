/* What guides print by hand, computed: the largest batch of well-known models on cards of 8 to 80
 * GiB. */
#ifndef FRAG_PLAN_GALLERY_TABLE_H
#define FRAG_PLAN_GALLERY_TABLE_H

#include <stdio.h>

#include "studies/plan/fit_trial.h"

/* A line a model and task. Every card is an A100 of that size, with a context of 512 MiB. */
bool frag_gallery_print(frag_fitter *fitter, bool is_markdown, FILE *stream, frag_error *error);
/* The same as one JSON object a model, task and card. */
bool frag_gallery_print_json(frag_fitter *fitter, FILE *stream, frag_error *error);

#endif
