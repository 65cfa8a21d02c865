/* What a fuzzer asks of every reader. */
#ifndef FRAG_SUPPORT_ROUND_TRIP_H
#define FRAG_SUPPORT_ROUND_TRIP_H

#include "traces/load.h"

/* Reads the bytes, from a copy at whose end a sanitizer sees a byte too much. Asserts that what is
 * read passes every check of a trace and comes back from its text form, and that what is refused is
 * refused as bad input, with a sentence, and leaves nothing behind. Returns the refusal; its code
 * is FRAG_E_NONE when there was none. */
frag_error frag_test_round_trip(const void *bytes, size_t count, frag_format_reader *read);

#endif
