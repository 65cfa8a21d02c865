/* The names used in golden logs. */
#include <string.h>

#include "traces/golden/golden_log.h"

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
