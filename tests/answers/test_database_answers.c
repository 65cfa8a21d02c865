/* What is read of databases of profilers that are drawn at random: tables and columns that are not
 * there, processes and devices in any number, rows in any order, numbers on the borders of what
 * they may be. What was changed on purpose is pinned anew:
 *
 *   test_database_answers            compares with tests/data/answers/databases.txt.zst
 *   test_database_answers --write    prints what that file should hold (make answers-golden);
 *                                    with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tests/support/database_bytes.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum { DATABASES = 1500, GROUP = 25, COLUMNS = 9, MANY_PROCESSES = 258 };

typedef struct table {
    const char *name;
    const char *columns[COLUMNS];
    uint64_t needed; /* a bit for each that there has to be */
    bool has_global_pid;
    bool is_lifetime;
} table;

static const table tables[] = {
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     {"start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType",
      "streamId", "localMemoryPoolAddress"},
     0x7d,
     true,
     false},
    {"CUPTI_ACTIVITY_KIND_MEMORY2",
     {"timestamp", "processId", "deviceId", "address", "bytes", "memoryKind", "memoryOperationType",
      "streamId", "isAsync"},
     0x7d,
     false,
     false},
    {"CUPTI_ACTIVITY_KIND_MEMORY",
     {"start", "processId", "deviceId", "address", "bytes", "memoryKind", "end", "streamId",
      "isAsync"},
     0x7d,
     false,
     true},
};

enum { TABLES = sizeof tables / sizeof *tables };

typedef struct database {
    uint64_t bits;
    frag_text statements;
    uint64_t processes; /* so many at most */
    uint64_t devices;
    uint64_t addresses;
    uint64_t strange; /* one value in so many */
} database;

static uint64_t draw(database *of, uint64_t limit)
{
    return xorshift_next(&of->bits) % limit;
}

static bool one_in(database *of, uint64_t count)
{
    return draw(of, count) == 0;
}

static void add_strange(database *of)
{
    static const char *const values[] = {"NULL",
                                         "-1",
                                         "0",
                                         "1",
                                         "2",
                                         "3",
                                         "7",
                                         "8",
                                         "9",
                                         "255",
                                         "256",
                                         "4294967294",
                                         "4294967295",
                                         "4294967296",
                                         "72057594037927935",
                                         "'x'",
                                         "1.5",
                                         "-2",
                                         "x'00'",
                                         "72057594037927936",
                                         "4096",
                                         "9223372036854775807",
                                         "-9223372036854775807"};
    frag_text_add(&of->statements, "%s", values[draw(of, sizeof values / sizeof *values)]);
}

static void add_value(database *of, const table *in, int column, uint64_t row)
{
    static const uint64_t sizes[] = {0, 512, 4096, 2097152, (uint64_t)1 << 55};
    uint64_t value = 0;
    switch (column) {
    case 0:
        value = one_in(of, 4) ? draw(of, 9) : 10 + row / 2 * 5;
        break;
    case 1:
        value = (40 + draw(of, of->processes)) << (in->has_global_pid ? 24 : 0);
        value += in->has_global_pid ? draw(of, 3) + (draw(of, 2) << 50) : 0;
        break;
    case 2:
        value = draw(of, of->devices);
        break;
    case 3:
        value = 4096 * (1 + draw(of, of->addresses));
        break;
    case 4:
        value = sizes[draw(of, sizeof sizes / sizeof *sizes)];
        break;
    case 5:
        value = one_in(of, 6) ? draw(of, 8) : in->has_global_pid ? 2 : 3;
        break;
    case 6:
        value = in->is_lifetime ? (one_in(of, 3) ? 0 : 10 + row / 2 * 5 + draw(of, 40))
                                : draw(of, 2) + !in->has_global_pid;
        break;
    case 7:
        value = one_in(of, 2) ? UINT32_MAX : draw(of, 20);
        break;
    default:
        value = one_in(of, 2) ? 0 : 77;
    }
    frag_text_add(&of->statements, "%" PRIu64, value);
}

static void add_table(database *of, const table *in, uint64_t rows)
{
    uint64_t columns = (1 << COLUMNS) - 1;
    for (int i = 0; i < COLUMNS; i++)
        if (one_in(of, (in->needed >> i & 1) != 0 ? 150 : 6))
            columns &= ~((uint64_t)1 << i);
    frag_text_add(&of->statements, "CREATE TABLE %s(other INT", in->name);
    for (int i = 0; i < COLUMNS; i++)
        if ((columns >> i & 1) != 0)
            frag_text_add(&of->statements, ", %s INT", in->columns[i]);
    frag_text_add(&of->statements, ");\n");
    for (uint64_t row = 0; row < rows; row++) {
        frag_text_add(&of->statements, "INSERT INTO %s VALUES (%" PRIu64, in->name, row);
        for (int i = 0; i < COLUMNS; i++) {
            if ((columns >> i & 1) == 0)
                continue;
            frag_text_add(&of->statements, ", ");
            if (one_in(of, of->strange))
                add_strange(of);
            else
                add_value(of, in, i, row);
        }
        frag_text_add(&of->statements, ");\n");
    }
}

static void add_session(database *of)
{
    static const char *const values[] = {"0", "-5", "1700000000000000000", "1", "NULL", "'noon'"};
    frag_text_add(&of->statements, "CREATE TABLE TARGET_INFO_SESSION_START_TIME(%s INT);\n",
                  one_in(of, 5) ? "utcTime" : "utcEpochNs");
    if (!one_in(of, 6))
        frag_text_add(&of->statements, "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (%s);\n",
                      values[draw(of, sizeof values / sizeof *values)]);
}

static void tell_database(frag_text *out, uint64_t seed)
{
    database of = {.bits = (seed + 1) * 0x9e3779b97f4a7c15u};
    size_t count = 0;
    for (int i = 0; i < 4; i++)
        (void)draw(&of, 2);
    of.processes = 1 + draw(&of, 3);
    of.devices = 1 + draw(&of, 3);
    of.addresses = 1 + draw(&of, 12);
    of.strange = one_in(&of, 2) ? 100000 : 120;
    uint64_t rows = draw(&of, 40);
    if (seed % 100 == 7) { /* as many traces as there may be, or one more */
        of.processes = MANY_PROCESSES;
        rows = 900 + seed;
    }
    size_t first = (size_t)draw(&of, TABLES);
    add_table(&of, &tables[first], rows);
    if (one_in(&of, 4))
        add_table(&of, &tables[(first + 1) % TABLES], draw(&of, 6));
    if (one_in(&of, 2))
        add_session(&of);
    unsigned char *bytes = frag_database_bytes(of.statements.bytes, &count);
    for (int as_segments = 0; as_segments < 2; as_segments++) {
        frag_load_options options = {.with_sites = true, .with_columns = true};
        options.format = as_segments ? FRAG_FORMAT_DEVICE_SEGMENTS : FRAG_FORMAT_AUTO;
        pinned_tell_load(out, bytes, count, &options);
    }
    free(bytes);
    frag_text_destroy(&of.statements);
}

static void tell_all(frag_text *out)
{
    for (uint64_t seed = 0; seed < DATABASES;) {
        size_t from = out->length;
        for (int i = 0; i < GROUP; i++)
            tell_database(out, seed++);
        pinned_fold(out, from, "databases");
    }
}

static const pinned_lines pinned = {"tests/data/answers/databases.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
