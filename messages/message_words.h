/* The words and numbers of a message, for what no wording of the table describes. */
#ifndef FRAG_MESSAGES_MESSAGE_WORDS_H
#define FRAG_MESSAGES_MESSAGE_WORDS_H

#include "messages/message_facts.h"
#include "messages/message_text.h"

/* What a word can be about; several at once. */
enum {
    FRAG_WORD_MEMORY = 1,    /* memory, VRAM */
    FRAG_WORD_DEVICE = 2,    /* gpu, cuda, npu, ... */
    FRAG_WORD_ALLOCATE = 4,  /* allocate, malloc, ... */
    FRAG_WORD_FAIL = 8,      /* fail, cannot, unable, ... */
    FRAG_WORD_LACK = 16,     /* insufficient, exhausted, ... */
    FRAG_WORD_EXCEED = 32,   /* exceeds, larger, more, ... */
    FRAG_WORD_ERROR = 64,    /* error, exception, fatal, ... */
    FRAG_WORD_HOST = 128,    /* cpu, host, heap, pinned, ... */
    FRAG_WORD_PROSE = 256,   /* of a sentence that talks about a failure */
    FRAG_WORD_WARNING = 512, /* warning, retry, skipping, ... */
    FRAG_WORD_UNIT = 1024,   /* tensor, buffer, bytes: what is allocated */
    FRAG_WORD_NUMBER = 2048,
    FRAG_WORD_SIZE = 4096,  /* a number with its unit */
    FRAG_WORD_CODE = 8192,  /* of a source that deals with a failure: except, define, ... */
    FRAG_WORD_OTHER = 16384 /* of another failure: illegal, invalid, ... */
};

typedef struct frag_message_word {
    size_t at;
    size_t end;
    uint32_t kinds;     /* FRAG_WORD_* */
    frag_amount amount; /* of a number or a size */
} frag_message_word;

enum { FRAG_MESSAGE_WORDS_MAX = 256 };

/* Splits the text from from to to at blanks, signs and capitals ("cudaMalloc" is two words).
 * Returns how many words there are, at most FRAG_MESSAGE_WORDS_MAX. */
size_t frag_message_words(const frag_message_text *text, size_t from, size_t to,
                          frag_message_word *words);

bool frag_message_word_is(const frag_message_text *text, const frag_message_word *word,
                          const char *name);

#endif
