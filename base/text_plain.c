/* Replaces control characters in text. In a file of its own because error.c needs only this part of
 * text. */
#include "base/text.h"

void frag_text_make_plain(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        /* C2 80 to C2 9F are control characters, too. */
        bool is_pair =
            byte == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0;
        if (is_pair)
            *text++ = '?';
        if (byte < 0x20 || byte == 0x7f || is_pair)
            *text = '?';
    }
}
