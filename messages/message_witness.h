/* What a person tells of a program that ran out of memory: "the game crashed with an error saying
 * I've run out of video memory". */
#ifndef FRAG_MESSAGES_MESSAGE_WITNESS_H
#define FRAG_MESSAGES_MESSAGE_WITNESS_H

#include "messages/message_failure.h"

/* Where a sentence of the line tells of it as something that happened, not as what may happen, is
 * asked or was mended: leaves what follows "crashed" in read. Not found: nobody tells of it. */
frag_message_failure frag_message_find_witness(frag_message_split_line *read);

#endif
