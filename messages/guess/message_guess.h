/* Messages of programs whose wording nobody wrote down: lines that speak of memory and of failure
 * in the form of an error, not of a sentence about one. */
#ifndef FRAG_GUESS_MESSAGE_GUESS_H
#define FRAG_GUESS_MESSAGE_GUESS_H

#include "messages/message_facts.h"
#include "messages/message_text.h"

typedef struct frag_message_guess {
    frag_message_kind kind; /* never NONE */
    size_t start;
    size_t end;
    uint32_t says;     /* FRAG_SAYS_*: which other memory than a device's */
    bool is_of_device; /* the line names a device, and nothing of the computer */
} frag_message_guess;

/* How sure the form of a line has to be. */
typedef enum frag_message_rigour {
    FRAG_MESSAGE_REPORTED, /* the form of an error */
    FRAG_MESSAGE_LIKELY,   /* a failed allocation or a lack of memory, and no sentence */
    FRAG_MESSAGE_PRESUMED, /* memory and failing, and nothing shows that it is something else */
    FRAG_MESSAGE_WITNESSED /* a person tells that it happened */
} frag_message_rigour;

/* The first such line at or behind from. false: there is none. Calls that go on at guess->end take
 * linear time together. Sets *has_failure where a line speaks of memory that ran out, in whatever
 * form. */
bool frag_message_guess_next(const frag_message_text *text, size_t from, frag_message_rigour rigour,
                             frag_message_guess *guess, bool *has_failure);

/* Does the line from from to to speak of a failed allocation, so that it may belong to the message
 * before it? */
bool frag_message_guess_goes_on(const frag_message_text *text, size_t from, size_t to);

/* Does the line at at go on with what the program does now ("out of memory, retrying with half"),
 * and show no error? */
bool frag_message_is_survived(const frag_message_text *text, size_t at);

/* Does the line at at explain what the error at at means ("The 'CUDA out of memory' error occurs
 * when
 * ...")? */
bool frag_message_is_explained_at(const frag_message_text *text, size_t at);

/* Does the text show an error, or words of memory, at all? FRAG_SCENE_OTHER_ERROR and
 * FRAG_SCENE_MEMORY. */
uint32_t frag_message_scenes(const frag_message_text *text);

#endif
