#include "base/formats/sqlite_file.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>

#include "base/memory.h"
#include "base/scope.h"
#include "base/text.h"

/* No value or statement of an exported report comes near. */
#define VALUE_BYTES_MAX (1 << 20)
/* Steps of sqlite3's machine: a row takes fewer than two for each of its columns and has at least
 * a byte for each, so that only a database that leads in circles needs more. */
#define STEPS_BASE (UINT64_C(1) << 22)
#define STEPS_PER_BYTE UINT64_C(32)
#define STEPS_BETWEEN_LOOKS 1024
/* A row takes at least two bytes for its place and three for itself. */
#define ROW_BYTES_MIN 5
/* A compressed database is in memory whole; one that grows beyond this is no honest one. */
#define EXPANSION_MAX UINT64_C(256)
#define EXPANSION_BYTES_FREE (UINT64_C(64) << 20)
/* Where the header says whether there is a log beside the database. */
enum { WRITE_VERSION_OFFSET = 18, READ_VERSION_OFFSET = 19 };

struct frag_sqlite {
    sqlite3 *connection;
    sqlite3_stmt *statement;
    unsigned char *bytes; /* NULL: read from the file */
    uint64_t bytes_count;
    uint64_t steps_left;
    const char *table;
    const frag_sqlite_column *columns;
    size_t column_count;
    int places[FRAG_SQLITE_COLUMNS_MAX]; /* in the result; -1: the table lacks it */
    uint64_t row;                        /* the current one, from 1 */
};

static bool fail_database(frag_sqlite *database, frag_error *error)
{
    int code = sqlite3_errcode(database->connection);
    if (code == SQLITE_INTERRUPT)
        return frag_fail(error, FRAG_E_INPUT,
                         "the database takes more steps to read than its %" PRIu64
                         " bytes can need; it is damaged, export it again",
                         database->bytes_count);
    if (code == SQLITE_NOMEM)
        frag_scope_fail(1, 1);
    if (database->row > 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "the table %s cannot be read behind row %" PRIu64
                         " (%.200s); export the database again",
                         database->table, database->row, sqlite3_errmsg(database->connection));
    return frag_fail(error, FRAG_E_INPUT, "the database cannot be read (%.200s); export it again",
                     sqlite3_errmsg(database->connection));
}

static int count_steps(void *context)
{
    frag_sqlite *database = context;
    if (database->steps_left < STEPS_BETWEEN_LOOKS)
        return 1;
    database->steps_left -= STEPS_BETWEEN_LOOKS;
    return 0;
}

/* The path as the name of a file that sqlite3 takes as not changing. */
static char *file_uri(const char *path)
{
    frag_text uri = {0};
    frag_text_add(&uri, "file:%s", path[0] == '/' ? "" : "./");
    for (const char *at = path; *at != '\0'; at++) {
        bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                        (*at >= '0' && *at <= '9') || *at == '/' || *at == '.' || *at == '_';
        if (is_plain)
            frag_text_add_bytes(&uri, at, 1);
        else
            frag_text_add(&uri, "%%%02x", (unsigned)(unsigned char)*at);
    }
    frag_text_add(&uri, "?immutable=1");
    return uri.bytes;
}

static bool read_all(frag_sqlite *database, frag_input *input, frag_error *error)
{
    size_t capacity = 0;
    size_t used = 0;
    for (;;) {
        const unsigned char *visible = NULL;
        size_t count = 0;
        if (!frag_input_peek(input, 1, &visible, &count, error))
            return false;
        if (count == 0)
            break;
        database->bytes = frag_grow(database->bytes, &capacity, used + count, 1);
        memcpy(database->bytes + used, visible, count);
        frag_input_skip(input, count);
        used += count;
        if (frag_input_outgrows(input, used, EXPANSION_BYTES_FREE, EXPANSION_MAX))
            return frag_fail_at(error, used,
                                "the compressed database is more than %" PRIu64
                                " times as large as its file; decompress it first",
                                EXPANSION_MAX);
    }
    database->bytes_count = used;
    return true;
}

static bool open_file(frag_sqlite *database, const char *path)
{
    char *uri = file_uri(path);
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE;
    int result = sqlite3_open_v2(uri, &database->connection, flags, NULL);
    frag_free(uri);
    return result == SQLITE_OK;
}

static bool open_memory(frag_sqlite *database)
{
    if (database->bytes_count > READ_VERSION_OFFSET) {
        database->bytes[WRITE_VERSION_OFFSET] = 1; /* a log could only be beside a file */
        database->bytes[READ_VERSION_OFFSET] = 1;
    }
    return sqlite3_open_v2(":memory:", &database->connection, SQLITE_OPEN_READWRITE, NULL) ==
               SQLITE_OK &&
           sqlite3_deserialize(
               database->connection, "main", database->bytes, (sqlite3_int64)database->bytes_count,
               (sqlite3_int64)database->bytes_count, SQLITE_DESERIALIZE_READONLY) == SQLITE_OK;
}

static void restrain(frag_sqlite *database)
{
    sqlite3 *connection = database->connection;
    sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    sqlite3_limit(connection, SQLITE_LIMIT_SQL_LENGTH, VALUE_BYTES_MAX);
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(connection, SQLITE_LIMIT_EXPR_DEPTH, 100);
    database->steps_left = STEPS_BASE + STEPS_PER_BYTE * database->bytes_count;
    sqlite3_progress_handler(connection, STEPS_BETWEEN_LOOKS, count_steps, database);
}

static void release(void *thing, size_t bytes)
{
    frag_sqlite *database = thing;
    (void)bytes;
    sqlite3_finalize(database->statement);
    sqlite3_close(database->connection);
}

frag_sqlite *frag_sqlite_open(frag_input *input, frag_error *error)
{
    frag_sqlite *database = frag_alloc(1, sizeof *database);
    frag_scope_own(database, 0, release);
    const char *path = frag_input_plain_path(input);
    bool ok = path != NULL || read_all(database, input, error);
    if (ok && path != NULL)
        database->bytes_count = frag_input_raw_bytes(input);
    if (ok) {
        ok = path != NULL ? open_file(database, path) : open_memory(database);
        ok = ok || fail_database(database, error);
    }
    if (ok) {
        restrain(database);
        return database;
    }
    frag_sqlite_close(database);
    return NULL;
}

void frag_sqlite_close(frag_sqlite *database)
{
    if (database == NULL)
        return;
    frag_scope_disown(database);
    release(database, 0);
    frag_free(database->bytes);
    frag_free(database);
}

static bool prepare(frag_sqlite *database, const char *statement, frag_error *error)
{
    sqlite3_finalize(database->statement);
    database->statement = NULL;
    database->row = 0;
    return sqlite3_prepare_v2(database->connection, statement, -1, &database->statement, NULL) ==
               SQLITE_OK ||
           fail_database(database, error);
}

static bool step(frag_sqlite *database, bool *has, frag_error *error)
{
    int result = sqlite3_step(database->statement);
    *has = result == SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE || fail_database(database, error);
}

/* A virtual table has no page of its own, a view is of another type. */
static bool look_up(frag_sqlite *database, const char *table, bool *has, bool *is_ordinary,
                    frag_error *error)
{
    if (!prepare(database,
                 "SELECT type = 'table' AND rootpage > 0 FROM sqlite_master WHERE name = ?1 AND "
                 "type IN ('table', 'view')",
                 error))
        return false;
    sqlite3_bind_text(database->statement, 1, table, -1, SQLITE_STATIC);
    if (!step(database, has, error))
        return false;
    *is_ordinary = *has && sqlite3_column_int(database->statement, 0) == 1;
    return true;
}

bool frag_sqlite_has_table(frag_sqlite *database, const char *table, bool *has, frag_error *error)
{
    bool is_ordinary = false;
    return look_up(database, table, has, &is_ordinary, error);
}

/* A generated column would be an expression of the schema's own. */
static bool find_columns(frag_sqlite *database, bool *is_there, frag_error *error)
{
    bool has = true;
    for (size_t i = 0; i < database->column_count; i++)
        is_there[i] = false;
    if (!prepare(database, "SELECT name, hidden FROM pragma_table_xinfo(?1)", error))
        return false;
    sqlite3_bind_text(database->statement, 1, database->table, -1, SQLITE_STATIC);
    while (step(database, &has, error) && has) {
        const char *name = (const char *)sqlite3_column_text(database->statement, 0);
        if (name == NULL || sqlite3_column_int(database->statement, 1) != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "a column of the table %s is not stored but computed; expected a "
                             "table as the exporter writes it",
                             database->table);
        for (size_t i = 0; i < database->column_count; i++)
            is_there[i] = is_there[i] || strcmp(database->columns[i].name, name) == 0;
    }
    if (has)
        return false;
    for (size_t i = 0; i < database->column_count; i++)
        if (!is_there[i] && !database->columns[i].is_optional)
            return frag_fail(
                error, FRAG_E_INPUT,
                "the table %s has no column \"%s\"; expected one as the exporter writes it",
                database->table, database->columns[i].name);
    return true;
}

bool frag_sqlite_select(frag_sqlite *database, const char *table, const frag_sqlite_column *columns,
                        size_t column_count, frag_error *error)
{
    bool has = false;
    bool is_ordinary = false;
    bool is_there[FRAG_SQLITE_COLUMNS_MAX];
    FRAG_ASSERT(column_count <= FRAG_SQLITE_COLUMNS_MAX);
    if (!look_up(database, table, &has, &is_ordinary, error))
        return false;
    if (!has)
        return frag_fail(error, FRAG_E_INPUT, "the database has no table %s", table);
    if (!is_ordinary)
        return frag_fail(
            error, FRAG_E_INPUT,
            "%s is a view or a virtual table; expected a table as the exporter writes it", table);
    database->table = table;
    database->columns = columns;
    database->column_count = column_count;
    if (!find_columns(database, is_there, error))
        return false;
    frag_text statement = {0};
    int place = 0;
    for (size_t i = 0; i < column_count; i++) {
        database->places[i] = is_there[i] ? place : -1;
        if (is_there[i])
            frag_text_add(&statement, "%s\"%s\"", place++ == 0 ? "SELECT " : ", ", columns[i].name);
    }
    if (place == 0) /* all are optional, and none is there */
        frag_text_add(&statement, "SELECT NULL");
    frag_text_add(&statement, " FROM \"%s\" NOT INDEXED", table);
    bool ok = prepare(database, statement.bytes, error);
    frag_text_destroy(&statement);
    return ok;
}

bool frag_sqlite_next(frag_sqlite *database, frag_sqlite_number *numbers, bool *has,
                      frag_error *error)
{
    static const char *const type_names[] = {
        [SQLITE_INTEGER] = "a whole number",
        [SQLITE_FLOAT] = "a fraction",
        [SQLITE_TEXT] = "text",
        [SQLITE_BLOB] = "bytes",
        [SQLITE_NULL] = "nothing",
    };
    if (!step(database, has, error))
        return false;
    if (*has && ++database->row > database->bytes_count / ROW_BYTES_MIN)
        return frag_fail(error, FRAG_E_INPUT,
                         "the table %s has more rows than %" PRIu64
                         " bytes have room for; its pages lead in circles, export it again",
                         database->table, database->bytes_count);
    for (size_t i = 0; *has && i < database->column_count; i++) {
        int place = database->places[i];
        int type = place >= 0 ? sqlite3_column_type(database->statement, place) : SQLITE_NULL;
        numbers[i] = (frag_sqlite_number){.is_given = type == SQLITE_INTEGER};
        if (numbers[i].is_given)
            numbers[i].value = sqlite3_column_int64(database->statement, place);
        else if (type != SQLITE_NULL || !database->columns[i].is_optional)
            return frag_fail(
                error, FRAG_E_INPUT,
                "row %" PRIu64 " of the table %s has %s in \"%s\"; expected a whole number",
                database->row, database->table, type_names[type], database->columns[i].name);
    }
    return true;
}

const char *frag_sqlite_library_version(void)
{
    return sqlite3_libversion();
}
