#include "tests/support/database_bytes.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

unsigned char *frag_database_bytes(const char *statements, size_t *count)
{
    sqlite3 *database = NULL;
    char *problem = NULL;
    sqlite3_int64 bytes = 0;
    FRAG_ASSERT(sqlite3_open(":memory:", &database) == SQLITE_OK);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    FRAG_ASSERT(sqlite3_exec(database, "PRAGMA page_size = 512", NULL, NULL, NULL) == SQLITE_OK);
    if (sqlite3_exec(database, statements, NULL, NULL, &problem) != SQLITE_OK)
        fprintf(stderr, "%s: %s\n", statements, problem);
    FRAG_ASSERT(problem == NULL);
    unsigned char *serial = sqlite3_serialize(database, "main", &bytes, 0);
    FRAG_ASSERT(serial != NULL);
    unsigned char *copy = frag_alloc((size_t)bytes, 1);
    memcpy(copy, serial, (size_t)bytes);
    sqlite3_free(serial);
    sqlite3_close(database);
    *count = (size_t)bytes;
    return copy;
}
