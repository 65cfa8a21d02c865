/* What a person tells of a program that ran out of memory: "it crashed with OOM", "I still run out
 * of VRAM". */
#ifndef FRAG_GUESS_MESSAGE_WITNESS_H
#define FRAG_GUESS_MESSAGE_WITNESS_H

#include "messages/guess/message_failure.h"

enum { FRAG_MESSAGE_LETTER_LINES = 12 }; /* of so few what a person writes */

/* Told as something that happened, not as what may happen, is asked or was mended: leaves what
 * follows "crashed" in read. is_found is false where nothing of that kind is told. */
frag_message_failure frag_message_find_witness(frag_message_split_line *read);

#endif
