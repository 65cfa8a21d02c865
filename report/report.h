/* A report: one HTML page about recordings and stored rows, for `fraglab report` and the library.
 */
#ifndef FRAG_REPORT_REPORT_H
#define FRAG_REPORT_REPORT_H

#include <stdio.h>

#include "report/report_wishes.h"

/* false: an operand cannot be read or replayed. Nothing is written when the context is cancelled.
 * Errors of writing stay with the stream. */
bool frag_report_write(const frag_report_wishes *wishes, FILE *stream, frag_error *error);

#endif
