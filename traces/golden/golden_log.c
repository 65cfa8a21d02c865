#include "traces/golden/golden_log.h"

#include <string.h>

#include "base/memory.h"

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

bool frag_golden_call_merge(frag_golden_call *last, const frag_golden_call *next)
{
    bool has_pages = next->kind == FRAG_GOLDEN_CALL_CREATE ||
                     next->kind == FRAG_GOLDEN_CALL_RELEASE || next->kind == FRAG_GOLDEN_CALL_MAP ||
                     next->kind == FRAG_GOLDEN_CALL_UNMAP || next->kind == FRAG_GOLDEN_CALL_ALIAS ||
                     next->kind == FRAG_GOLDEN_CALL_UNALIAS;
    if (!has_pages || last->kind != next->kind || last->bytes != next->bytes ||
        last->is_refused != next->is_refused)
        return false;
    if (next->address != 0 && next->address != last->address + last->count * last->bytes)
        return false;
    last->count += next->count;
    return true;
}

void frag_golden_log_destroy(frag_golden_log *log)
{
    frag_free(log->lines);
    frag_free(log->calls);
    frag_free(log->notes);
    frag_free(log->figures);
    frag_free(log->blocks);
    frag_free(log->segments);
    frag_strings_destroy(&log->strings);
    *log = (frag_golden_log){0};
}
