#include "traces/format_look.h"

#include <string.h>

bool frag_look_starts(const unsigned char *bytes, size_t count, const char *start)
{
    size_t length = strlen(start);
    return count >= length && memcmp(bytes, start, length) == 0;
}

bool frag_look_begins(const unsigned char *bytes, size_t count, const char *letters)
{
    size_t at = frag_look_past_space(bytes, count, 0);
    return at < count && bytes[at] != '\0' && strchr(letters, bytes[at]) != NULL;
}

bool frag_look_contains(const unsigned char *bytes, size_t count, const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= count; i++)
        if (bytes[i] == (unsigned char)text[0] && memcmp(bytes + i, text, length) == 0)
            return true;
    return false;
}

size_t frag_look_past_space(const unsigned char *bytes, size_t count, size_t at)
{
    while (at < count &&
           (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\n' || bytes[at] == '\r'))
        at++;
    return at;
}
