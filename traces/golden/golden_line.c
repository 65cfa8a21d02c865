/* The lines of a golden log as text, and the names used in them. */
#include <string.h>

#include "traces/golden/golden_log.h"

#define LINE_BYTES_MAX ((size_t)1 << 24)

static const char *const op_names[FRAG_GOLDEN_OP_COUNT] = {FRAG_GOLDEN_OPS(FRAG_SECOND_OF_2)};

static const char *const call_names[FRAG_GOLDEN_CALL_COUNT] = {FRAG_GOLDEN_CALLS(FRAG_SECOND_OF_2)};

static const char *const note_names[FRAG_GOLDEN_NOTE_COUNT] = {
    [FRAG_GOLDEN_NOTE_A] = "A",   [FRAG_GOLDEN_NOTE_FR] = "FR",   [FRAG_GOLDEN_NOTE_FC] = "FC",
    [FRAG_GOLDEN_NOTE_SA] = "SA", [FRAG_GOLDEN_NOTE_SF] = "SF",   [FRAG_GOLDEN_NOTE_SM] = "SM",
    [FRAG_GOLDEN_NOTE_SU] = "SU", [FRAG_GOLDEN_NOTE_OOM] = "OOM",
};

static uint32_t find_name(const char *name, const char *const *names, uint32_t count)
{
    uint32_t at = 0;
    while (at < count && strcmp(names[at], name) != 0)
        at++;
    return at;
}

const char *frag_golden_call_name(frag_golden_call_kind kind)
{
    return call_names[kind];
}

const char *frag_golden_note_name(frag_golden_note_kind kind)
{
    return note_names[kind];
}

uint32_t frag_golden_op_find(const char *name)
{
    return find_name(name, op_names, FRAG_GOLDEN_OP_COUNT);
}

uint32_t frag_golden_call_find(const char *name)
{
    return find_name(name, call_names, FRAG_GOLDEN_CALL_COUNT);
}

uint32_t frag_golden_note_find(const char *name)
{
    return find_name(name, note_names, FRAG_GOLDEN_NOTE_COUNT);
}

const char *frag_golden_op_nearest(const char *name)
{
    return frag_nearest_name(name, op_names, FRAG_GOLDEN_OP_COUNT);
}

bool frag_golden_next_line(frag_input *input, const char **bytes, size_t *length, size_t *consumed,
                           frag_error *error)
{
    const unsigned char *visible = NULL;
    const unsigned char *end = NULL;
    size_t count = 0;
    size_t wanted = (size_t)1 << 12;
    for (;; wanted *= 2) {
        if (!frag_input_peek(input, wanted, &visible, &count, error))
            return false;
        end = count > 0 ? memchr(visible, '\n', count) : NULL;
        if (end != NULL || count < wanted)
            break;
        if (wanted == LINE_BYTES_MAX)
            return frag_fail(error, FRAG_E_INPUT,
                             "the line is longer than 16 MiB; expected one request a line");
    }
    *bytes = (const char *)visible;
    *length = end != NULL ? (size_t)(end - visible) : count;
    *consumed = end != NULL ? *length + 1 : count;
    return true;
}
