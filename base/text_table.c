#include "base/text_table.h"

#include "base/memory.h"

frag_text *frag_text_table_cell(frag_text_table *table)
{
    frag_text *cell = FRAG_APPEND(table->cells, table->count, table->capacity);
    *cell = (frag_text){.bytes = NULL};
    frag_text_add(cell, "%s", "");
    return cell;
}

void frag_text_table_add(frag_text_table *table, const char *text)
{
    frag_text_add(frag_text_table_cell(table), "%s", text);
}

void frag_text_table_add_line(frag_text_table *table, const char *const *texts)
{
    for (size_t i = 0; i < table->columns; i++)
        frag_text_table_add(table, texts[i]);
}

int frag_text_width(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80 ? 1 : 0;
    return width;
}

static bool is_left(const frag_text_table *table, size_t column)
{
    return column == 0 || (column + 1 == table->columns && table->is_last_text);
}

static void print_line(FILE *stream, const frag_text_table *table, const frag_text *line,
                       const int *widths)
{
    for (size_t i = 0; i < table->columns; i++) {
        int pad = widths[i] - frag_text_width(line[i].bytes);
        fputs(i > 0 ? "   " : "", stream);
        if (!is_left(table, i))
            fprintf(stream, "%*s%s", pad, "", line[i].bytes);
        else
            fprintf(stream, "%s%*s", line[i].bytes, i + 1 < table->columns ? pad : 0, "");
    }
    fputc('\n', stream);
}

static void print_markdown(FILE *stream, const frag_text_table *table, const frag_text *line)
{
    for (size_t i = 0; i < table->columns; i++) {
        fputs(i == 0 ? "| " : " | ", stream);
        for (const char *at = line[i].bytes; *at != '\0'; at++) {
            if (*at == '|')
                fputc('\\', stream);
            fputc(*at, stream);
        }
    }
    fputs(" |\n", stream);
}

static void print_rule(FILE *stream, const frag_text_table *table)
{
    for (size_t i = 0; i < table->columns; i++)
        fprintf(stream, "%s %s |", i == 0 ? "|" : "", is_left(table, i) ? "---" : "---:");
    fputc('\n', stream);
}

void frag_text_table_print(frag_text_table *table, bool is_markdown, FILE *stream)
{
    int widths[FRAG_TEXT_TABLE_COLUMNS_MAX] = {0};
    FRAG_ASSERT(table->columns > 0 && table->columns <= FRAG_TEXT_TABLE_COLUMNS_MAX);
    FRAG_ASSERT(table->count % table->columns == 0);
    for (size_t i = 0; i < table->count; i++) {
        int width = frag_text_width(table->cells[i].bytes);
        int *widest = &widths[i % table->columns];
        *widest = width > *widest ? width : *widest;
    }
    for (size_t i = 0; i < table->count; i += table->columns) {
        if (is_markdown)
            print_markdown(stream, table, &table->cells[i]);
        else
            print_line(stream, table, &table->cells[i], widths);
        if (is_markdown && i == 0)
            print_rule(stream, table);
    }
    for (size_t i = 0; i < table->count; i++)
        frag_text_destroy(&table->cells[i]);
    frag_free(table->cells);
    *table = (frag_text_table){.columns = table->columns, .is_last_text = table->is_last_text};
}
