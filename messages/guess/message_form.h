/* Is "out of memory" here an error that a GPU's program printed, or a sentence about one?
 *
 * Programs that check the runtime's return code print its text, "out of memory", in a form of their
 * own: behind the name of a call, a colon, a code, or before a place in the source. So the form
 * and a mark of a GPU nearby tell it; no list of programs could. */
#ifndef FRAG_GUESS_MESSAGE_FORM_H
#define FRAG_GUESS_MESSAGE_FORM_H

#include "messages/message_text.h"

#include <stdbool.h>
#include <stddef.h>

/* The name of an error code from at to end: reported, or only defined, compared or described? */
bool frag_message_is_reported(const char *text, size_t at, size_t end);

/* Of plain text (messages/message_text.h) the words from at to end. */
bool frag_message_is_error(const char *text, size_t at, size_t end);

/* Do the words at stand in quotes in a line of a source ('raise RuntimeError("out of memory")'), or
 * in a page that says below what to do about them ("**Solution**:")? */
bool frag_message_is_of_page(const frag_message_text *text, size_t at);

#endif
