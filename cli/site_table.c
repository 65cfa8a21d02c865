#include "cli/site_table.h"

#include <inttypes.h>

#include "base/bytes.h"

enum { COLUMNS = 5 };

void frag_byte_change_cell(frag_text_table *table, uint64_t before, uint64_t after)
{
    frag_text *cell = frag_text_table_cell(table);
    if (before == after)
        frag_text_add(cell, "0 B");
    else
        frag_text_add(cell, "%c%s", after > before ? '+' : '-',
                      FRAG_BYTES(after > before ? after - before : before - after));
}

static void add_change(frag_text_table *table, const frag_site_change *change)
{
    uint64_t before = change->before.live_bytes, after = change->after.live_bytes;
    bool is_inner = change->inner != NULL;
    frag_text_add(frag_text_table_cell(table), "%s%s", is_inner ? "  " : "",
                  is_inner ? change->inner : change->caller);
    frag_text_add(frag_text_table_cell(table), "%s", FRAG_BYTES(before));
    frag_text_add(frag_text_table_cell(table), "%s", FRAG_BYTES(after));
    frag_byte_change_cell(table, before, after);
    frag_text_add(frag_text_table_cell(table), "%" PRIu64 " then %" PRIu64,
                  change->before.live_count, change->after.live_count);
}

void frag_site_table_print(FILE *stream, const char *const titles[3],
                           const frag_site_change *changes, size_t count)
{
    frag_text_table table = {.columns = COLUMNS};
    const char *const all[COLUMNS] = {titles[0], titles[1], titles[2], "change", "blocks"};
    for (size_t i = 0; i < COLUMNS; i++)
        frag_text_add(frag_text_table_cell(&table), "%s", all[i]);
    for (size_t i = 0; i < count; i++)
        add_change(&table, &changes[i]);
    frag_text_table_print(&table, false, stream);
}
