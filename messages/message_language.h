/* Messages of computers that do not speak English: the words that say what ran out, in the
 * languages in which systems and programs print them most, stand for English ones, so that one
 * grammar reads all of them. */
#ifndef FRAG_MESSAGES_MESSAGE_LANGUAGE_H
#define FRAG_MESSAGES_MESSAGE_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAG_LANGUAGE_PHRASES_MAX = 640 };

/* Which phrases begin with a byte. */
typedef struct frag_language {
    uint16_t first[256]; /* of the phrases that begin with this byte, from 1; 0: none does */
    uint16_t next[FRAG_LANGUAGE_PHRASES_MAX];
} frag_language;

void frag_language_init(frag_language *language);

/* False for most bytes of a log, which is cheap to ask. */
static inline bool frag_language_may_begin(const frag_language *language, unsigned char byte)
{
    return language->first[byte >= 'A' && byte <= 'Z' ? byte + 0x20 : byte] != 0;
}

/* The longest phrase that stands at a place, and in *english what it stands for, which is never
 * longer. A unit ("Mo", "МБ") is one only behind a number, where is_foreign says that the line
 * holds other words of the table. Returns how many bytes it takes, 0: none. */
size_t frag_language_phrase(const frag_language *language, const unsigned char *text, size_t length,
                            size_t at, bool is_foreign, const char **english);

#endif
