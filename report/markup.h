/* Text of any origin, written into HTML and into JSON inside HTML so that it stays text.
 *
 * Names of files, call sites and marks come from strangers. Bytes that are not UTF-8 become U+FFFD,
 * and so do control characters. */
#ifndef FRAG_REPORT_MARKUP_H
#define FRAG_REPORT_MARKUP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* As content of an element or inside the double quotes of an attribute. */
void frag_markup_text(FILE *stream, const char *text);

/* A JSON string with its quotes, which no script element can be ended with: '<', '>' and '&' are
 * escaped, and the line ends that older JavaScript does not allow. NULL: null. */
void frag_markup_json(FILE *stream, const char *text);

#endif
