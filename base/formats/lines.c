#include "base/formats/lines.h"

#include <string.h>

bool frag_line_find(frag_input *input, const frag_line_limit *limit, frag_line *line,
                    frag_error *error)
{
    const unsigned char *bytes = NULL;
    const unsigned char *end = NULL;
    size_t count = 0;
    line->number++;
    for (size_t wanted = 4096;; wanted *= 2) {
        if (!frag_input_peek(input, wanted, &bytes, &count, error))
            return false;
        end = count > 0 ? memchr(bytes, '\n', count) : NULL;
        if (end != NULL || count < wanted)
            break;
        bool is_mebi = limit->bytes >> 20 > 0;
        if (wanted >= limit->bytes)
            return frag_fail_line(
                error, line->number, 0, "the line has more than %zu %s; expected %s",
                limit->bytes >> (is_mebi ? 20 : 10), is_mebi ? "MiB" : "KiB", limit->expected);
    }
    line->bytes = (const char *)bytes;
    line->length = end != NULL ? (size_t)(end - bytes) : count;
    line->is_ended = end != NULL;
    line->taken = line->length + (end != NULL ? 1 : 0);
    if (line->length > 0 && bytes[line->length - 1] == '\r')
        line->length--;
    return true;
}

bool frag_each_line(frag_input *input,
                    bool (*take)(void *context, const char *line, size_t length, frag_error *error),
                    void *context, frag_error *error)
{
    static const frag_line_limit limit = {FRAG_LINE_BYTES_MAX, "a row"};
    frag_line line = {0};
    for (;;) {
        bool ok = frag_line_find(input, &limit, &line, error);
        if (ok && line.taken == 0)
            return true;
        if (!ok || (line.length > 0 && !take(context, line.bytes, line.length, error))) {
            error->line = line.number;
            return false;
        }
        frag_input_skip(input, line.taken);
    }
}
