/* Memory against what it costs: the settings that nothing tried beats in both. */
#ifndef FRAG_TUNE_TUNE_FRONT_H
#define FRAG_TUNE_TUNE_FRONT_H

#include "studies/tune/tune_search.h"

/* The settings that serve every request and that nothing tried beats in both memory and cost,
 * device calls or their modelled time: ascending memory, descending cost. The caller frees *points.
 */
size_t frag_tune_front(const frag_tune_found *found, bool is_by_time,
                       const frag_tune_point ***points);

#endif
