#include "traces/window.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

/* Splits "A..B" in a copy that is the caller's; *second is NULL when there is no "..". */
static char *split_range(const char *text, char **second)
{
    char *first = frag_copy_text(text);
    char *dots = strstr(first, "..");
    *second = NULL;
    if (dots != NULL) {
        *dots = '\0';
        *second = dots + 2;
    }
    return first;
}

static bool read_pair(const char *option, const char *text, frag_window *window, frag_error *error)
{
    char *second = NULL;
    char *first = split_range(text, &second);
    bool ok = second != NULL ||
              frag_fail(error, FRAG_E_USAGE, "'%s' is not a range; expected A..B", text);
    /* An end left out is that of the trace. */
    ok = ok &&
         (first[0] == '\0' || frag_count_parse(first, 0, UINT64_MAX, &window->first, error)) &&
         (second[0] == '\0' || frag_count_parse(second, 0, UINT64_MAX, &window->end, error));
    frag_free(first);
    return ok || frag_error_in(error, option);
}

bool frag_window_parse(const frag_window_texts *texts, frag_window *window, frag_error *error)
{
    *window = (frag_window){.end = UINT64_MAX, .device_option = texts->device_option};
    uint64_t device = 0;
    int given = (texts->events != NULL) + (texts->time != NULL) + (texts->marks != NULL);
    if (given > 1)
        return frag_fail(error, FRAG_E_USAGE, "expected one of --events, --time and --marks");
    if (texts->device != NULL && !frag_count_parse(texts->device, 0, UINT32_MAX, &device, error))
        return frag_error_in(error, texts->device_option);
    window->has_device = texts->device != NULL;
    window->device = (uint32_t)device;
    if (texts->events != NULL) {
        window->kind = FRAG_WINDOW_EVENTS;
        return read_pair("--events", texts->events, window, error);
    }
    if (texts->time != NULL) {
        window->kind = FRAG_WINDOW_TIMES;
        return read_pair("--time", texts->time, window, error);
    }
    if (texts->marks != NULL) {
        char *last = NULL;
        window->kind = FRAG_WINDOW_MARKS;
        window->marks = split_range(texts->marks, &last);
        window->first_mark = window->marks;
        window->last_mark = last;
    }
    return true;
}

void frag_window_destroy(frag_window *window)
{
    frag_free(window->marks);
    *window = (frag_window){0};
}
