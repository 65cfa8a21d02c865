/* cuSPARSE: names of errors, and the rule of its buffers. */
#ifndef FRAG_LIBRARIES_CUSPARSE_H
#define FRAG_LIBRARIES_CUSPARSE_H

#include <stdint.h>

/* The most bytes that an operation with this sparse matrix is thought to take: two indices of 8
 * bytes for each row and nonzero, and 64 KiB. */
uint64_t frag_cusparse_buffer(const void *matrix);

const char *frag_cusparse_error_name(int32_t status);
const char *frag_cusparse_error_string(int32_t status);

#endif
