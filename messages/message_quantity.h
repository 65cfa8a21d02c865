/* Every size that stands in a message, with what the words around it say it is: the figures of
 * programs whose wording nobody wrote down. */
#ifndef FRAG_MESSAGES_MESSAGE_QUANTITY_H
#define FRAG_MESSAGES_MESSAGE_QUANTITY_H

#include "messages/message_facts.h"
#include "messages/message_text.h"

/* Adds the sizes of the text from from to to. A number without a unit is one where the words before
 * it say so: "alloc size : 8589934592". Time is linear in the length. */
void frag_message_quantities(const frag_message_text *text, size_t from, size_t to,
                             frag_message *message);

/* The same of the lines behind end that only name figures: "Out of memory\n  free: 100 MB\n  total:
 * 8192 MB". Returns where they end; end: there are none. */
size_t frag_message_quantities_below(const frag_message_text *text, size_t end,
                                     frag_message *message);

/* The first device that a line from from to to names by its number ("GPU 0", "DEVICE [1]"). */
bool frag_message_device(const frag_message_text *text, size_t from, size_t to, uint64_t *device);

#endif
