#include "base/lines.h"

#include <string.h>

/* The next line, and how many bytes it and its end have; 0: the input has no more. */
static bool find_line(frag_input *input, const char **line, size_t *length, size_t *taken,
                      frag_error *error)
{
    const unsigned char *bytes = NULL;
    const unsigned char *end = NULL;
    size_t count = 0;
    for (size_t wanted = 4096;; wanted *= 2) {
        if (!frag_input_peek(input, wanted, &bytes, &count, error))
            return false;
        end = count > 0 ? memchr(bytes, '\n', count) : NULL;
        if (end != NULL || count < wanted)
            break;
        if (wanted >= FRAG_LINE_BYTES_MAX)
            return frag_fail(error, FRAG_E_INPUT, "the line has more than %zu MiB; expected a row",
                             FRAG_LINE_BYTES_MAX >> 20);
    }
    *line = (const char *)bytes;
    *length = end != NULL ? (size_t)(end - bytes) : count;
    *taken = *length + (end != NULL ? 1 : 0);
    if (*length > 0 && bytes[*length - 1] == '\r')
        --*length;
    return true;
}

bool frag_each_line(frag_input *input,
                    bool (*take)(void *context, const char *line, size_t length, frag_error *error),
                    void *context, frag_error *error)
{
    for (uint64_t number = 1;; number++) {
        const char *line = NULL;
        size_t length = 0;
        size_t taken = 0;
        bool ok = find_line(input, &line, &length, &taken, error);
        if (ok && taken == 0)
            return true;
        if (!ok || (length > 0 && !take(context, line, length, error))) {
            error->line = number;
            return false;
        }
        frag_input_skip(input, taken);
    }
}
