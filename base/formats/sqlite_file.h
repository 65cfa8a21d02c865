/* Reading tables of an SQLite database that nobody vouches for: the only file that knows sqlite3.
 *
 * Nothing in the database runs and nothing is written, not even beside it: it is opened read-only
 * as a file that does not change, with no triggers, no views, no extensions and no functions of
 * the schema's own. Rows come in the order in which the database has them. Work and memory are
 * bounded by the size of the file, whatever its pages say. */
#ifndef FRAG_FORMATS_SQLITE_FILE_H
#define FRAG_FORMATS_SQLITE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

/* What every database begins with. */
#define FRAG_SQLITE_MAGIC "SQLite format 3"
#define FRAG_SQLITE_MAGIC_BYTES 16 /* with the zero byte */

#define FRAG_SQLITE_COLUMNS_MAX 16u

typedef struct frag_sqlite frag_sqlite;

/* A column that holds whole numbers. */
typedef struct frag_sqlite_column {
    const char *name;
    bool is_optional; /* it may be missing from the table, and be null in a row */
} frag_sqlite_column;

typedef struct frag_sqlite_number {
    int64_t value;
    bool is_given; /* false: the column is missing, or null here */
} frag_sqlite_number;

/* From a plain file by its path, else from memory, into which all of the input is read; the input
 * must be at its start. FRAG_E_INPUT for what is no database; NULL on failure. */
frag_sqlite *frag_sqlite_open(frag_input *input, frag_error *error);
void frag_sqlite_close(frag_sqlite *database);

/* Is there a table of this name? false: FRAG_E_INPUT, the database cannot be read. */
bool frag_sqlite_has_table(frag_sqlite *database, const char *table, bool *has, frag_error *error);

/* Begins to read the columns of a table; ends what was read before. The names are plain words and
 * must stay where they are. FRAG_E_INPUT where it is no ordinary table or lacks a column. */
bool frag_sqlite_select(frag_sqlite *database, const char *table, const frag_sqlite_column *columns,
                        size_t column_count, frag_error *error);
/* The next row; *has false: there are no more. FRAG_E_INPUT names table, row and column of what is
 * no whole number, and says what is wrong with a damaged database. */
bool frag_sqlite_next(frag_sqlite *database, frag_sqlite_number *numbers, bool *has,
                      frag_error *error);

const char *frag_sqlite_library_version(void);

#endif
