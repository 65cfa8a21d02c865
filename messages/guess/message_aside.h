/* What is no message although it speaks of memory that ran out: sentences, questions, tables,
 * items of lists, sources. */
#ifndef FRAG_GUESS_MESSAGE_ASIDE_H
#define FRAG_GUESS_MESSAGE_ASIDE_H

#include "messages/guess/message_failure.h"
#include "messages/message_line.h"

/* Words of a sentence before the failure or right behind it; anywhere in the line. */
bool frag_message_is_prose(const frag_message_split_line *read, const frag_message_failure *found);
bool frag_message_has_prose(const frag_message_split_line *read);

/* "Failed to create the image because we ran out of memory": does the word i give the reason of a
 * failure? */
bool frag_message_is_reason(const frag_message_split_line *read, size_t i);

/* "%s", "XXXX bytes": the form of a message. */
bool frag_message_has_placeholder(const frag_message_split_line *read);

/* "when allocating" from the word i on: what a program did, not when that happens. */
bool frag_message_is_doing(const frag_message_split_line *read, size_t i);

/* Of a line that has words. */
bool frag_message_is_table_row(const frag_message_split_line *read);
bool frag_message_is_item(const frag_message_split_line *read);

/* "Is it failing with an out of memory error, or something else?" */
bool frag_message_is_asked(const frag_message_split_line *read, frag_word_range sentence);

bool frag_message_is_question(const frag_message_split_line *read);
bool frag_message_is_handled(const frag_message_split_line *read); /* "handles out of memory" */
bool frag_message_is_sought(const frag_message_split_line *read, size_t at); /* "look for OOM" */

/* Is the number of the error that the word i names defined ("OUT_OF_MEMORY = 2")? */
bool frag_message_is_defined(const frag_message_split_line *read, size_t i);

/* A line of a source whatever it says; a line that looks like one, but may be an error. */
bool frag_message_is_statement(const frag_message_split_line *read);
bool frag_message_is_source(const frag_message_split_line *read);

/* Bytes of a text, from from to before to. */
typedef struct frag_text_range {
    size_t from;
    size_t to;
} frag_text_range;

/* "it stops with `device memory allocation failed` now": is the word at set in code, with others?
 * That is the message. Sets what stands between the signs. */
bool frag_message_find_quote(const frag_message_split_line *read, size_t at,
                             frag_text_range *quote);

/* "The RuntimeError: CUDA out of memory occurs when ...", "you may see out of memory": does the
 * line explain the failure at the word at? Where a mark stands in it, only behind an article. */
bool frag_message_is_explained(const frag_message_split_line *read, size_t at);

/* Is the failure at the word at told by a person: in a change of a source, in a sentence with names
 * set in code, as what an error means? Not where a mark says that it is an error. */
bool frag_message_is_narrated(const frag_message_split_line *read, size_t at);

#endif
