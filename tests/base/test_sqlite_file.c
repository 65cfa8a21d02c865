/* Tests of sqlite_file.c: reading SQLite databases, damaged ones included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/formats/sqlite_file.h"
#include "base/memory.h"
#include "tests/support/database_bytes.h"

#define PAGE_BYTES ((size_t)512)

static const frag_sqlite_column two_columns[] = {{"a", false}, {"b", true}};

/* Reads table t to its end; the sum of a times 1000 and b, where there is one. */
static bool read_input(frag_input *input, int64_t *sum, frag_error *error)
{
    frag_sqlite_number numbers[2];
    bool has = true;
    *sum = 0;
    *error = (frag_error){0};
    frag_sqlite *database = frag_sqlite_open(input, error);
    bool ok = database != NULL && frag_sqlite_has_table(database, "t", &has, error);
    if (ok && !has)
        ok = frag_fail(error, FRAG_E_INPUT, "no table");
    ok = ok && frag_sqlite_select(database, "t", two_columns, 2, error);
    while (ok && has) {
        ok = frag_sqlite_next(database, numbers, &has, error);
        if (ok && has)
            *sum += numbers[0].value * 1000 + (numbers[1].is_given ? numbers[1].value : 0);
    }
    frag_sqlite_close(database);
    return ok;
}

static bool read_bytes(const unsigned char *bytes, size_t count, int64_t *sum, frag_error *error)
{
    frag_input *input = frag_input_from_memory(bytes, count, "t.sqlite");
    bool ok = read_input(input, sum, error);
    frag_input_close(input);
    return ok;
}

static bool read_statements(const char *statements, int64_t *sum, frag_error *error)
{
    size_t count = 0;
    unsigned char *bytes = frag_database_bytes(statements, &count);
    bool ok = read_bytes(bytes, count, sum, error);
    free(bytes);
    return ok;
}

static void rows_come_with_the_numbers_they_have(void **state)
{
    (void)state;
    int64_t sum = 0;
    frag_error error;
    assert_true(read_statements(
        "CREATE TABLE t(b INT, a INT); INSERT INTO t VALUES (1, 2), (NULL, 3)", &sum, &error));
    assert_int_equal(sum, 5001);
    assert_true(
        read_statements("CREATE TABLE t(a INT); INSERT INTO t VALUES (2), (-3)", &sum, &error));
    assert_int_equal(sum, -1000);
    assert_true(read_statements("CREATE TABLE t(a INT PRIMARY KEY, b INT) WITHOUT ROWID;"
                                "INSERT INTO t VALUES (7, 1)",
                                &sum, &error));
    assert_int_equal(sum, 7001);
}

static void a_file_is_read_in_place_and_left_alone(void **state)
{
    (void)state;
    char path[64];
    char beside[2][80];
    snprintf(path, sizeof path, "build/test %ld?file%%#.sqlite", (long)getpid());
    snprintf(beside[0], sizeof beside[0], "%s-shm", path);
    snprintf(beside[1], sizeof beside[1], "%s-wal", path);
    size_t count = 0;
    int64_t sum = 0;
    frag_error error = {0};
    unsigned char *bytes =
        frag_database_bytes("CREATE TABLE t(a INT, b INT); INSERT INTO t VALUES (1, 2)", &count);
    /* The header of a database with a log beside it, which an unfinished export leaves. */
    bytes[18] = 2;
    bytes[19] = 2;
    assert_true(read_bytes(bytes, count, &sum, &error));
    assert_int_equal(sum, 1002);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
    frag_input *input = frag_input_open(path, &error);
    assert_non_null(input);
    assert_non_null(frag_input_plain_path(input));
    if (!read_input(input, &sum, &error))
        fail_msg("%s", error.sentence);
    frag_input_close(input);
    assert_int_equal(sum, 1002);
    unlink(path);
    assert_int_not_equal(unlink(beside[0]), 0); /* there is none */
    assert_int_not_equal(unlink(beside[1]), 0);
    free(bytes);
}

static void what_is_no_stored_number_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *statements;
        const char *says;
    } cases[] = {
        {"CREATE TABLE u(a INT)", "no table"},
        {"CREATE VIEW t AS SELECT 1 AS a, 2 AS b", "is a view or a virtual table"},
        {"CREATE TABLE u(a INT); PRAGMA writable_schema = 1; INSERT INTO sqlite_master VALUES "
         "('table', 't', 't', 0, 'CREATE VIRTUAL TABLE t USING elsewhere(a)')",
         "is a view or a virtual table"},
        {"CREATE TABLE t(b INT)", "has no column \"a\""},
        {"CREATE TABLE t(c INT, a INT AS (c + 1))", "not stored but computed"},
        {"CREATE TABLE t(a INT, b INT); INSERT INTO t VALUES (1, 2), (NULL, 2)",
         "row 2 of the table t has nothing in \"a\""},
        {"CREATE TABLE t(a INT, b INT); INSERT INTO t VALUES (1, 'x')",
         "row 1 of the table t has text in \"b\""},
        {"CREATE TABLE t(a, b INT); INSERT INTO t VALUES (1.5, 2)", "has a fraction in \"a\""},
        {"CREATE TABLE t(a, b INT); INSERT INTO t VALUES (x'00', 2)", "has bytes in \"a\""},
        {"CREATE TABLE t(a, b INT); INSERT INTO t VALUES (zeroblob(2000000), 2)",
         "string or blob too big"},
        {"CREATE TABLE t(a INT); PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = "
         "'CREATE "
         "TABLE t(a INT'",
         "malformed database schema"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t sum = 0;
        frag_error error;
        if (read_statements(cases[i].statements, &sum, &error))
            fail_msg("taken: %s", cases[i].statements);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (strstr(error.sentence, cases[i].says) == NULL)
            fail_msg("%s: %s", cases[i].statements, error.sentence);
    }
}

static void put_number(unsigned char *bytes, size_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* A page of a table that only names other pages: sixty times the same. */
static void write_inner_page(unsigned char *page, size_t child)
{
    enum { CHILDREN = 60, HEADER_BYTES = 12, CELL_BYTES = 5 };
    memset(page, 0, PAGE_BYTES);
    size_t content = PAGE_BYTES - CHILDREN * CELL_BYTES;
    page[0] = 5;
    page[4] = CHILDREN;
    page[5] = (unsigned char)(content >> 8);
    page[6] = (unsigned char)content;
    put_number(page + 8, child);
    for (size_t i = 0; i < CHILDREN; i++) {
        size_t cell = content + i * CELL_BYTES;
        page[HEADER_BYTES + 2 * i] = (unsigned char)(cell >> 8);
        page[HEADER_BYTES + 2 * i + 1] = (unsigned char)cell;
        put_number(page + cell, child);
        page[cell + 4] = (unsigned char)i;
    }
}

static void pages_that_lead_in_circles_come_to_an_end(void **state)
{
    (void)state;
    size_t count = 0;
    int64_t sum = 0;
    frag_error error;
    unsigned char *bytes =
        frag_database_bytes("CREATE TABLE u(a INT); CREATE TABLE t(a INT, b INT);"
                            "INSERT INTO u VALUES (1);"
                            "CREATE TABLE v(a INT); CREATE TABLE w(a INT);"
                            "CREATE TABLE x(a INT); CREATE TABLE y(a INT)",
                            &count);
    assert_true(count >= 7 * PAGE_BYTES);
    /* t is on page 3; 60^4 rows of u on page 2. */
    for (size_t page = 3; page < 7; page++)
        write_inner_page(bytes + (page - 1) * PAGE_BYTES, page < 6 ? page + 1 : 2);
    assert_false(read_bytes(bytes, count, &sum, &error));
    assert_non_null(strstr(error.sentence, "more rows than"));
    /* And a page below itself. */
    write_inner_page(bytes + 2 * PAGE_BYTES, 3);
    assert_false(read_bytes(bytes, count, &sum, &error));
    assert_non_null(strstr(error.sentence, "malformed"));
    free(bytes);
}

static void damage_is_refused_and_never_crashes(void **state)
{
    (void)state;
    size_t count = 0;
    int64_t sum = 0;
    frag_error error;
    uint32_t refused = 0;
    unsigned char *bytes = frag_database_bytes(
        "CREATE TABLE t(a INT, b INT);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
        "INSERT INTO t SELECT i, i FROM n;"
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t; END",
        &count);
    for (size_t cut = 0; cut < count; cut += 97)
        refused += !read_bytes(bytes, cut, &sum, &error);
    assert_true(refused > 0);
    uint32_t placed = 0; /* pages that begin as no page of a table does */
    for (size_t page = PAGE_BYTES; page < count; page += PAGE_BYTES) {
        unsigned char before = bytes[page];
        bytes[page] = 99;
        assert_false(read_bytes(bytes, count, &sum, &error));
        placed += strstr(error.sentence, "the table t cannot be read behind row ") != NULL;
        bytes[page] = before;
    }
    assert_true(placed > 0);
    for (size_t at = 0; at < count; at++) {
        unsigned char before = bytes[at];
        bytes[at] = (unsigned char)(at * 151 + 7);
        if (!read_bytes(bytes, count, &sum, &error))
            assert_int_equal(error.code, FRAG_E_INPUT);
        bytes[at] = before;
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_with_the_numbers_they_have),
        cmocka_unit_test(a_file_is_read_in_place_and_left_alone),
        cmocka_unit_test(what_is_no_stored_number_is_refused),
        cmocka_unit_test(pages_that_lead_in_circles_come_to_an_end),
        cmocka_unit_test(damage_is_refused_and_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
