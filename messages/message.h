/* Reads out-of-memory messages of the frameworks out of any text: a pasted line, a traceback, a
 * whole log.
 *
 * Nothing is concluded here: a message is what was found and the figures that stand in it. What
 * they mean is studies/explain/verdict.h's. */
#ifndef FRAG_MESSAGES_MESSAGE_H
#define FRAG_MESSAGES_MESSAGE_H

#include "messages/message_facts.h"

/* A log can hold millions; so many are kept, the one that says most among them. */
enum { FRAG_MESSAGES_KEPT_MAX = 1024 };

typedef struct frag_messages {
    frag_message *items; /* those kept, in order */
    size_t count;
    size_t capacity;
    size_t best;      /* index of the one that says most */
    size_t oom_count; /* messages of an OOM, kept or not */
    bool is_on[FRAG_SETTING_COUNT];
    bool is_windows;                    /* paths of Windows stand in the text */
    uint32_t scenes;                    /* FRAG_SCENE_* */
    bool is_matched[FRAG_WORDINGS_MAX]; /* which wordings of the table were found, by index */
    frag_message rest;                  /* the sizes of a text without a message */
} frag_messages;

/* Finds every message of a text, in order; any bytes are welcome. Time is linear in length. */
void frag_messages_read(frag_messages *messages, const char *text, size_t length);
void frag_messages_destroy(frag_messages *messages);

/* The same, as if the table of wordings were empty: what the rules for programs that nobody knows
 * find by themselves. Tests measure the rules by it, on messages that the rules were not made for.
 */
void frag_messages_guess(frag_messages *messages, const char *text, size_t length);

/* The one that says most: an OOM before anything else, of those the one with most figures, of
 * those the first. NULL: there is none. */
const frag_message *frag_messages_best(const frag_messages *messages);

#endif
