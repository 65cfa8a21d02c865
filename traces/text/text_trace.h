/* What the reader and the writer of the text form share; docs/trace-format.md describes the form.
 */
#ifndef FRAG_TEXT_TEXT_TRACE_H
#define FRAG_TEXT_TEXT_TRACE_H

#include <stdio.h>

#include "sim/trace/trace.h"

#define FRAG_TEXT_START "# fraglab trace "
#define FRAG_TEXT_VERSION 2 /* what is written; files of version 1 are read too */
#define FRAG_TEXT_FIRST_LINE FRAG_TEXT_START "2"

/* What follows the name of an op on its line, before the attributes. */
typedef enum frag_text_shape {
    FRAG_TEXT_NOTHING,
    FRAG_TEXT_SLOT,
    FRAG_TEXT_SLOT_BYTES,
    FRAG_TEXT_BYTES,
    FRAG_TEXT_LIMIT, /* bytes, or with RATIO a share of the capacity */
    FRAG_TEXT_POOL,
    FRAG_TEXT_POOL_OR_NOTHING,
    FRAG_TEXT_STRING,
} frag_text_shape;

frag_text_shape frag_text_shape_of(frag_op op);

/* The word for one flag bit, or NULL. */
const char *frag_text_flag_name(uint8_t flag);

bool frag_text_write(const frag_recording *recording, FILE *stream, frag_error *error);

#endif
