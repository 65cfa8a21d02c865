/* Shared by the functions that detect formats: access to the first bytes of a file. */
#ifndef FRAG_TRACES_FORMAT_LOOK_H
#define FRAG_TRACES_FORMAT_LOOK_H

#include <stdbool.h>
#include <stddef.h>

/* Do the bytes begin with the text? */
bool frag_look_starts(const unsigned char *bytes, size_t count, const char *start);
/* Is the first byte behind white space one of the letters? */
bool frag_look_begins(const unsigned char *bytes, size_t count, const char *letters);
/* Is the text anywhere in the bytes? */
bool frag_look_contains(const unsigned char *bytes, size_t count, const char *text);
/* The first place from at on that is no white space of JSON; count: there is none. */
size_t frag_look_past_space(const unsigned char *bytes, size_t count, size_t at);

#endif
