/* Whose memory ran out: the computer's or a device's? */
#ifndef FRAG_GUESS_MESSAGE_HOST_H
#define FRAG_GUESS_MESSAGE_HOST_H

#include "messages/guess/message_failure.h"

/* Is it the computer's memory that failed in the line? at: a byte of the line, found: what was
 * found in it, is_witnessed: a
 * person tells of it in a short text. */
bool frag_message_is_of_host(const frag_message_split_line *read, const frag_message_failure *found,
                             size_t at, bool is_witnessed);

/* Which of the computer's memory, or of a chip's, ran out: FRAG_SAYS_PINNED, FRAG_SAYS_ON_CHIP, 0.
 */
uint32_t frag_message_host_says(const frag_message_split_line *read);

#endif
