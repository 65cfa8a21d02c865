/* Tables for people: columns as wide as their widest cell, or Markdown.
 *
 * The first column stands to the left, the others to the right; the last to the left where it is
 * text. Cells are added line by line; the first line is the header. */
#ifndef FRAG_BASE_TEXT_TABLE_H
#define FRAG_BASE_TEXT_TABLE_H

#include "base/text.h"

#define FRAG_TEXT_TABLE_COLUMNS_MAX 10

/* Starts as {.columns = N, .is_last_text = ...}. */
typedef struct frag_text_table {
    size_t columns; /* at most FRAG_TEXT_TABLE_COLUMNS_MAX */
    bool is_last_text;
    frag_text *cells;
    size_t count;
    size_t capacity;
} frag_text_table;

/* Columns of a terminal: UTF-8 continuation bytes take none. */
int frag_text_width(const char *text);

/* The next cell, empty: text is added to it before the next one is asked for. */
frag_text *frag_text_table_cell(frag_text_table *table);

/* The next cell, with that text. */
void frag_text_table_add(frag_text_table *table, const char *text);
/* A whole line: a text for each column. */
void frag_text_table_add_line(frag_text_table *table, const char *const *texts);

/* Every line must be whole. Frees the cells, so that the table can be filled again. */
void frag_text_table_print(frag_text_table *table, bool is_markdown, FILE *stream);

#endif
