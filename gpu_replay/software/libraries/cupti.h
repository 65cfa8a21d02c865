/* CUPTI: names of results. */
#ifndef FRAG_LIBRARIES_CUPTI_H
#define FRAG_LIBRARIES_CUPTI_H

#include <stdint.h>

const char *frag_cupti_result_name(int32_t result);

#endif
