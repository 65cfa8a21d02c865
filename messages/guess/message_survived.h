/* Did the program go on after memory ran out? */
#ifndef FRAG_GUESS_MESSAGE_SURVIVED_H
#define FRAG_GUESS_MESSAGE_SURVIVED_H

#include "messages/message_line.h"

/* Does the line say what the program does instead ("out of memory, retrying with half"), or the
 * line below it, and is no end of the program near? at: a byte of the line. */
bool frag_message_goes_on(const frag_message_split_line *read, size_t at);

#endif
