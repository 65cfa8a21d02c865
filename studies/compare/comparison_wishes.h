/* What is to be compared, and by how much a metric may get worse, as people write it: "1%",
 * "16MiB,2%", "device_calls.*=5%". */
#ifndef FRAG_COMPARE_COMPARISON_WISHES_H
#define FRAG_COMPARE_COMPARISON_WISHES_H

#include "studies/compare/comparison.h"

/* A list of texts, borrowed. name: what errors call it. */
typedef struct frag_wish_texts {
    const char *name;
    const char *const *texts;
    size_t count;
} frag_wish_texts;

typedef struct frag_comparison_wishes {
    frag_comparison_options options; /* what follows, as a comparison takes it */
    frag_wish_texts metrics;
    frag_wish_texts thresholds; /* METRIC=AMOUNT */
    frag_threshold *amounts;    /* of each threshold */
    char **patterns;            /* owned, of the thresholds */
} frag_comparison_wishes;

/* general: an AMOUNT; NULL: 1%. false: FRAG_E_USAGE. The caller destroys, either way. */
bool frag_comparison_wishes_parse(const char *general_name, const char *general,
                                  const frag_wish_texts *thresholds, const frag_wish_texts *metrics,
                                  frag_comparison_wishes *wishes, frag_error *error);
void frag_comparison_wishes_destroy(frag_comparison_wishes *wishes);

/* false: a pattern that means nothing in these rows; a misspelling that would let everything pass.
 */
bool frag_comparison_wishes_check(const frag_comparison_wishes *wishes,
                                  const frag_comparison *comparison, frag_error *error);

#endif
