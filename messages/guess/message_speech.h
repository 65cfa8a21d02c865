/* How persons put it in short: "It OOMs at step 20", "VRAM fills up and it crashes", "won't fit
 * into my 12 GB". */
#ifndef FRAG_GUESS_MESSAGE_SPEECH_H
#define FRAG_GUESS_MESSAGE_SPEECH_H

#include "messages/guess/message_failure.h"

/* Said as something that happened, not as what may happen, is asked or was mended. is_found is
 * false where nothing of that kind is said. */
frag_message_failure frag_message_find_speech(const frag_message_split_line *read);

/* "GPU memory error", "VRAM issues", "allocation on device": does the word i begin a name that
 * persons give it, in a text about a device? Not "illegal memory access", not a leak. */
bool frag_message_is_memory_trouble(const frag_message_split_line *read, size_t i);

#endif
