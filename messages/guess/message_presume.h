/* Messages of the strangest programs: where neither a wording nor the form of an error was found, a
 * sentence that speaks of memory and of failing is presumed to report an out of memory, unless the
 * text shows what else it is: source, documentation, advice, a question, something that may happen,
 * a program that went on, another failure. */
#ifndef FRAG_GUESS_MESSAGE_PRESUME_H
#define FRAG_GUESS_MESSAGE_PRESUME_H

#include "messages/guess/message_failure.h"
#include "messages/message_line.h"

/* The first words of the line that tell such a failure. */
frag_message_failure frag_message_presume(const frag_message_split_line *read);

#endif
