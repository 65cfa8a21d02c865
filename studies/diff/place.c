#include "studies/diff/place.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "traces/cut.h"

static bool read_events(const frag_trace *trace, const char *text, frag_use_range *range,
                        bool *is_range, frag_error *error)
{
    frag_error ignored = {0};
    const char *dots = strstr(text, "..");
    uint64_t count = trace->event_count;
    if (dots == NULL) {
        if (!frag_count_parse(text, 0, UINT64_MAX, &range->moment, &ignored))
            return false;
        *is_range = false;
        if (range->moment >= count)
            frag_fail(error, FRAG_E_USAGE, "there is no event %" PRIu64 "; the trace has %" PRIu64,
                      range->moment, count);
        return true;
    }
    char *first = frag_copy_text(text);
    first[dots - text] = '\0';
    bool ok = frag_count_parse(first, 0, UINT64_MAX, &range->first, &ignored) &&
              frag_count_parse(dots + 2, 0, UINT64_MAX, &range->end, &ignored);
    frag_free(first);
    if (ok && (range->first >= range->end || range->end > count))
        frag_fail(error, FRAG_E_USAGE,
                  "%s are no events of the trace; expected A..B with A below B and B at most "
                  "%" PRIu64,
                  text, count);
    return ok;
}

static bool is_begin(const frag_place_source *source, uint64_t event, const char *name,
                     size_t length)
{
    const frag_event *mark = &source->trace->events[event];
    if (mark->op != FRAG_OP_MARK || (mark->flags & FRAG_EVENT_END) != 0)
        return false;
    const char *text = frag_strings_get(&source->recording->strings, mark->slot);
    return strncmp(text, name, length) == 0 && text[length] == '\0';
}

/* "NAME[N]": from the N-th mark of that name up to the next, or to the end of the trace. false: the
 * text is no such place. */
static bool find_nth_mark(const frag_place_source *source, const char *text, frag_use_range *range,
                          frag_error *error)
{
    frag_error ignored = {0};
    const char *open = strrchr(text, '[');
    size_t length = strlen(text);
    uint64_t wanted = 0;
    uint64_t seen = 0;
    if (open == NULL || open == text || text[length - 1] != ']')
        return false;
    char *digits = frag_copy_text(open + 1);
    digits[strlen(digits) - 1] = '\0';
    bool is_number = frag_count_parse(digits, 1, UINT64_MAX, &wanted, &ignored);
    frag_free(digits);
    if (!is_number)
        return false;
    for (uint64_t i = 0; i < source->trace->event_count; i++) {
        if (!is_begin(source, i, text, (size_t)(open - text)))
            continue;
        seen++;
        if (seen == wanted)
            range->first = i;
        if (seen == wanted + 1)
            range->end = i;
    }
    if (seen < wanted)
        frag_fail(error, FRAG_E_USAGE, "there %s %" PRIu64 " mark%s '%.*s', and no %s",
                  seen == 1 ? "is" : "are", seen, seen == 1 ? "" : "s", (int)(open - text), text,
                  open);
    return true;
}

static bool has_marks(const frag_trace *trace)
{
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_MARK)
            return true;
    return false;
}

/* A place other than the peak and the end. */
static bool read_place(const frag_place_source *source, const char *at, frag_use_range *range,
                       bool *is_range, frag_error *error)
{
    frag_cut_range found;
    if (read_events(source->trace, at, range, is_range, error) ||
        find_nth_mark(source, at, range, error))
        return error->code == FRAG_E_NONE;
    if (!has_marks(source->trace))
        return frag_fail(error, FRAG_E_USAGE,
                         "'%.100s' is not in the trace, which has no marks; expected peak, end, "
                         "the number of an event or A..B",
                         at);
    if (!frag_cut_find_marks(source->recording, source->trace, at, NULL, &found, error))
        return false;
    range->first = found.first;
    range->end = found.end;
    return true;
}

bool frag_place_find(const frag_place_source *source, const char *at, frag_use_range *range,
                     frag_error *error)
{
    const frag_trace *trace = source->trace;
    bool is_range = true;
    *range = (frag_use_range){0, trace->event_count, 0};
    if (strcmp(at, "end") == 0) {
        range->moment = trace->event_count - 1;
        return true;
    }
    if (strcmp(at, "peak") != 0 && !read_place(source, at, range, &is_range, error))
        return false;
    if (is_range)
        range->moment = frag_uses_peak_event(trace, range->first, range->end, false);
    return true;
}
