#include "cli/site_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

enum { COLUMNS = 6 };

void frag_byte_change_add(frag_text *text, uint64_t before, uint64_t after)
{
    if (before == after)
        frag_text_add(text, "0 B");
    else
        frag_text_add(text, "%c%s", after > before ? '+' : '-',
                      FRAG_BYTES(after > before ? after - before : before - after));
}

void frag_byte_change_cell(frag_text_table *table, uint64_t before, uint64_t after)
{
    frag_byte_change_add(frag_text_table_cell(table), before, after);
}

/* "20", or "20 then 22"; nothing where neither side has one. */
static void add_lines(frag_text *cell, const frag_site_change *change)
{
    uint32_t before = change->before.line, after = change->after.line;
    if (before != 0 && after != 0 && before != after)
        frag_text_add(cell, "%" PRIu32 " then %" PRIu32, before, after);
    else if (before != 0 || after != 0)
        frag_text_add(cell, "%" PRIu32, before != 0 ? before : after);
}

static void add_change(frag_text_table *table, const frag_site_change *change)
{
    uint64_t before = change->before.live_bytes, after = change->after.live_bytes;
    bool is_inner = change->inner != NULL;
    frag_text_add(frag_text_table_cell(table), "%s%s", is_inner ? "  " : "",
                  is_inner ? change->inner : change->caller);
    frag_text_table_add(table, FRAG_BYTES(before));
    frag_text_table_add(table, FRAG_BYTES(after));
    frag_byte_change_cell(table, before, after);
    frag_text_add(frag_text_table_cell(table), "%" PRIu64 " then %" PRIu64,
                  change->before.live_count, change->after.live_count);
    if (table->columns == COLUMNS)
        add_lines(frag_text_table_cell(table), change);
}

/* "autograd thread (no Python stack)" once is enough. */
static bool is_said(const frag_site_change *change)
{
    return change->inner != NULL && !change->has_place &&
           strcmp(change->inner, change->caller) == 0;
}

void frag_site_table_print(FILE *stream, const char *const titles[5],
                           const frag_site_change *changes, size_t count)
{
    frag_text_table table = {.columns = titles[4] != NULL ? COLUMNS : COLUMNS - 1};
    const char *const all[] = {titles[0], titles[1], titles[2], "change", titles[3], titles[4]};
    frag_text_table_add_line(&table, all);
    for (size_t i = 0; i < count; i++)
        if (!is_said(&changes[i]))
            add_change(&table, &changes[i]);
    frag_text_table_print(&table, false, stream);
}
