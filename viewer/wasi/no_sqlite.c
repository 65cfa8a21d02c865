/* Stands in for base/formats/sqlite_file.c in the viewer, which carries no SQLite: a database is
 * refused in a sentence. */
#include "base/formats/sqlite_file.h"

frag_sqlite *frag_sqlite_open(frag_input *input, frag_error *error)
{
    (void)input;
    frag_fail(error, FRAG_E_INPUT,
              "is an SQLite database, which the viewer cannot read; write a trace of it with "
              "'fraglab trace convert' and open that");
    return NULL;
}

void frag_sqlite_close(frag_sqlite *database)
{
    (void)database;
}

/* Nothing below is reached: no database was opened. */

bool frag_sqlite_has_table(frag_sqlite *database, const char *table, bool *has, frag_error *error)
{
    (void)database, (void)table, (void)error;
    *has = false;
    return true;
}

bool frag_sqlite_select(frag_sqlite *database, const char *table, const frag_sqlite_column *columns,
                        size_t column_count, frag_error *error)
{
    (void)database, (void)table, (void)columns, (void)column_count;
    return frag_fail(error, FRAG_E_INPUT, "no database is open");
}

bool frag_sqlite_next(frag_sqlite *database, frag_sqlite_number *numbers, bool *has,
                      frag_error *error)
{
    (void)database, (void)numbers, (void)error;
    *has = false;
    return true;
}

const char *frag_sqlite_library_version(void)
{
    return "none";
}
