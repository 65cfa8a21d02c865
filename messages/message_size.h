/* Numbers and sizes as messages print them. */
#ifndef FRAG_MESSAGES_MESSAGE_SIZE_H
#define FRAG_MESSAGES_MESSAGE_SIZE_H

#include "messages/message_facts.h"

/* Each reads at text (lower case, ends with a zero, see messages/message_text.h) and
 * returns how many bytes it took, 0 when there is no such thing. Units count in 1024s, "GB" too:
 * frameworks that write GB count so. What is beyond 64 bits is read, but not known: it stands for
 * no limit. */

/* "1.39gib", "563.62mb", "0bytes", "25,600,000bytes", "1900,00mib"; a line may end inside. Of
 * "7.35g(7889485824bytes)" the first is read, as many bytes as the second says. */
size_t frag_message_size(const char *text, frag_amount *amount);
/* "(gib):140.06": the number at at, whose unit stands in the name before it. */
size_t frag_message_size_named(const char *text, size_t at, frag_amount *amount);
/* "5520758552", "25,600,000", "1.07374e+09"; it ends with the line. */
size_t frag_message_number(const char *text, frag_amount *amount);
/* "[1098,16,128,128,3]andtypefloat": the bytes of such a tensor. */
size_t frag_message_shape(const char *text, frag_amount *amount);

#endif
