/* Result rows as CSV with the policies' own statistics behind them. Which there are depends on the
 * policy and on the version it follows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/rows/result.h"

typedef struct kept_row {
    char *fields; /* the line of a row without statistics */
    uint64_t event;
    frag_stats values;
} kept_row;

struct frag_stats_columns {
    kept_row *rows;
    size_t count;
    size_t capacity;
};

frag_stats_columns *frag_stats_columns_create(void)
{
    return frag_alloc(1, sizeof(frag_stats_columns));
}

/* What frag_result_begin or frag_result_write print, without the end of the line. */
static char *render(const frag_row *row)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&bytes, &size);
    FRAG_ASSERT(stream != NULL);
    if (row == NULL)
        frag_result_begin(FRAG_RESULT_CSV, stream);
    else
        frag_result_write(FRAG_RESULT_CSV, stream, row);
    fclose(stream);
    FRAG_ASSERT(size > 0);
    bytes[size - 1] = '\0';
    return bytes;
}

void frag_stats_columns_add(frag_stats_columns *columns, const frag_row *row)
{
    kept_row *kept = FRAG_APPEND(columns->rows, columns->count, columns->capacity);
    *kept = (kept_row){.fields = render(row), .event = row->stats->event};
    const frag_stats *from = &row->stats->values;
    for (uint32_t i = 0; i < from->names.count; i++)
        frag_stats_add(&kept->values, frag_strings_get(&from->names, i), from->values[i]);
}

static int compare_names(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

/* Every name of any row, sorted: so rows of different versions of a policy have one order. The
 * names live as long as *all. */
static const char **collect_names(const frag_stats_columns *columns, frag_strings *all)
{
    for (size_t i = 0; i < columns->count; i++) {
        const frag_strings *names = &columns->rows[i].values.names;
        for (uint32_t j = 0; j < names->count; j++)
            frag_strings_add(all, frag_strings_get(names, j), frag_strings_length(names, j));
    }
    const char **sorted = frag_alloc(all->count, sizeof *sorted);
    for (uint32_t i = 0; i < all->count; i++)
        sorted[i] = frag_strings_get(all, i);
    qsort(sorted, all->count, sizeof *sorted, compare_names);
    return sorted;
}

static void write_row(const kept_row *row, const char *const *names, uint32_t name_count,
                      FILE *stream)
{
    fprintf(stream, "%s,", row->fields);
    if (row->event != FRAG_UNLIMITED)
        fprintf(stream, "%" PRIu64, row->event);
    for (uint32_t i = 0; i < name_count; i++) {
        int64_t value = 0;
        fputc(',', stream);
        if (frag_stats_find(&row->values, names[i], &value))
            fprintf(stream, "%" PRId64, value);
    }
    fputc('\n', stream);
}

void frag_stats_columns_write(frag_stats_columns *columns, FILE *stream)
{
    frag_strings all = {0};
    const char **names = collect_names(columns, &all);
    char *header = render(NULL);
    fprintf(stream, "%s,memory_stats_event", header);
    for (uint32_t i = 0; i < all.count; i++) {
        frag_text name = {0};
        frag_text_add(&name, "memory_stats.%s", names[i]);
        fputc(',', stream);
        frag_text_write_csv(stream, name.bytes);
        frag_text_destroy(&name);
    }
    fputc('\n', stream);
    for (size_t i = 0; i < columns->count; i++) {
        write_row(&columns->rows[i], names, all.count, stream);
        frag_stats_destroy(&columns->rows[i].values);
        frag_free(columns->rows[i].fields);
    }
    frag_free(header);
    frag_free(names);
    frag_strings_destroy(&all);
    frag_free(columns->rows);
    frag_free(columns);
}
