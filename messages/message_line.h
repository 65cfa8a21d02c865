/* One line of a text, as words: what the rules for programs without a wording look at. */
#ifndef FRAG_MESSAGES_MESSAGE_LINE_H
#define FRAG_MESSAGES_MESSAGE_LINE_H

#include "messages/message_text.h"
#include "messages/message_words.h"

typedef struct frag_message_split_line {
    const frag_message_text *text;
    frag_message_word words[FRAG_MESSAGE_WORDS_MAX];
    size_t count;
    uint32_t kinds; /* of all its words */
} frag_message_split_line;

/* Reads the words from from to to. A word that is a call ("what(): ") is not of a sentence, and a
 * small name of two words ("malloc_failed") is no failure. */
void frag_message_line_read(frag_message_split_line *read, const frag_message_text *text,
                            size_t from, size_t to);

/* Any index is welcome, one before the first word too: where there is no word nothing is true. */
bool frag_message_line_is(const frag_message_split_line *read, size_t index, const char *name);
bool frag_message_line_ends(const frag_message_split_line *read, size_t index, const char *ending);
bool frag_message_line_has(const frag_message_split_line *read, size_t index, uint32_t kinds);

/* Is the word i of one small name with the word before it ("malloc_failed")? */
bool frag_message_line_is_joined(const frag_message_split_line *read, size_t i);

/* Is the word i the letter or two of a name such as "T4" and "A100", which end in digits? */
bool frag_message_line_is_model(const frag_message_split_line *read, size_t i);

/* Does any word from from to before to have one of the kinds? */
bool frag_message_line_has_within(const frag_message_split_line *read, size_t from, size_t to,
                                  uint32_t kinds);

/* Words that end with NULL; one that ends in * is the beginning of a word. */
typedef const char *const frag_word_list[];

/* Is the word i one of them? Is any word from from to before to? */
bool frag_message_line_is_any(const frag_message_split_line *read, size_t i,
                              const char *const *words);
bool frag_message_line_has_any(const frag_message_split_line *read, size_t from, size_t to,
                               const char *const *words);

/* Part of a line, from the word from to before the word to. */
typedef struct frag_word_range {
    size_t from;
    size_t to;
} frag_word_range;

/* The words of the sentence in which the word i stands; signs: what ends one, with a blank behind.
 */
frag_word_range frag_message_line_sentence(const frag_message_split_line *read, size_t i,
                                           const char *signs);

/* Does one of the names, which end with NULL, stand in the text around at? */
bool frag_message_stands_near(const frag_message_text *text, size_t at, const char *const *names);

/* The same, up to the end of the line of at. */
bool frag_message_stands_before(const frag_message_text *text, size_t at, const char *const *names);

/* Does the text around at name a device or its interface? */
bool frag_message_is_about_device(const frag_message_text *text, size_t at);

#endif
