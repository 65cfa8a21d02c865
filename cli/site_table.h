/* Who holds memory, before and after: the table that diff and bisect print. */
#ifndef FRAG_CLI_SITE_TABLE_H
#define FRAG_CLI_SITE_TABLE_H

#include <stdio.h>

#include "base/text_table.h"
#include "studies/diff/site_uses.h"

/* "+1.5 MiB", "-512 B", "0 B". */
void frag_byte_change_add(frag_text *text, uint64_t before, uint64_t after);
void frag_byte_change_cell(frag_text_table *table, uint64_t before, uint64_t after);

/* The titles of all columns but that of the change (of that of lines of code NULL: it is left out),
 * and a line a change: a caller, and indented below it its groups. */
void frag_site_table_print(FILE *stream, const char *const titles[5],
                           const frag_site_change *changes, size_t count);

#endif
