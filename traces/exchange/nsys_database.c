#include "traces/exchange/nsys_database.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/formats/sqlite_file.h"
#include "base/memory.h"
#include "traces/formats.h"

#define EVENTS "CUDA_GPU_MEMORY_USAGE_EVENTS"
#define SESSION "TARGET_INFO_SESSION_START_TIME"
/* What the exporter writes where a call has no stream. */
#define STREAM_NONE UINT32_MAX

enum {
    COLUMN_START,
    COLUMN_PROCESS,
    COLUMN_DEVICE,
    COLUMN_ADDRESS,
    COLUMN_BYTES,
    COLUMN_KIND,
    COLUMN_OPERATION,
    COLUMN_STREAM,
    COLUMN_POOL,
    COLUMNS
};

/* How a profiler keeps the same things. nvprof and the Visual Profiler write records of CUPTI as
 * they are: one for an allocation with its release, or (MEMORY2) one for each. */
typedef struct memory_table {
    const char *name;
    const char *source; /* of the recording */
    frag_sqlite_column columns[COLUMNS];
    int64_t operation_max;
    int64_t operation_first; /* of an allocation; its release is the next */
    const char *operations;  /* for people */
    int64_t kind_first;      /* of pageable memory; the one before it, modulo, is not known */
    bool is_lifetime;        /* COLUMN_OPERATION is the time of the release, 0: none */
    bool has_global_pid;
} memory_table;

static const memory_table tables[] = {
    {
        .name = EVENTS,
        .source = "nsys",
        .columns =
            {
                [COLUMN_START] = {"start", false},
                [COLUMN_PROCESS] = {"globalPid", true},
                [COLUMN_DEVICE] = {"deviceId", false},
                [COLUMN_ADDRESS] = {"address", false},
                [COLUMN_BYTES] = {"bytes", false},
                [COLUMN_KIND] = {"memKind", false},
                [COLUMN_OPERATION] = {"memoryOperationType", false},
                [COLUMN_STREAM] = {"streamId", true},
                [COLUMN_POOL] = {"localMemoryPoolAddress", true},
            },
        .operation_max = 1,
        .operations = "0 (allocation) or 1 (release)",
        .has_global_pid = true,
    },
    {
        .name = "CUPTI_ACTIVITY_KIND_MEMORY2",
        .source = "nvprof",
        .columns =
            {
                [COLUMN_START] = {"timestamp", false},
                [COLUMN_PROCESS] = {"processId", true},
                [COLUMN_DEVICE] = {"deviceId", false},
                [COLUMN_ADDRESS] = {"address", false},
                [COLUMN_BYTES] = {"bytes", false},
                [COLUMN_KIND] = {"memoryKind", false},
                [COLUMN_OPERATION] = {"memoryOperationType", false},
                [COLUMN_STREAM] = {"streamId", true},
                [COLUMN_POOL] = {"isAsync", true},
            },
        .operation_max = 2,
        .operation_first = 1,
        .operations = "1 (allocation) or 2 (release)",
        .kind_first = 1,
    },
    {
        .name = "CUPTI_ACTIVITY_KIND_MEMORY",
        .source = "nvprof",
        .columns =
            {
                [COLUMN_START] = {"start", false},
                [COLUMN_PROCESS] = {"processId", true},
                [COLUMN_DEVICE] = {"deviceId", false},
                [COLUMN_ADDRESS] = {"address", false},
                [COLUMN_BYTES] = {"bytes", false},
                [COLUMN_KIND] = {"memoryKind", false},
                [COLUMN_OPERATION] = {"end", false},
                [COLUMN_STREAM] = {"streamId", true},
                [COLUMN_POOL] = {"isAsync", true},
            },
        .operation_max = INT64_MAX,
        .operations = "nanoseconds, or 0 where it was not released",
        .kind_first = 1,
        .is_lifetime = true,
    },
};

/* ENUM_CUDA_MEM_KIND */
enum { KIND_DEVICE = 2, KINDS = 8 };

/* Kinds that are left out, each under the name of its finding. */
static const struct {
    const char *finding;
    const char *meaning;
} left_out[KINDS] = {
    {"memory-of-the-host", "pageable memory of the host is not device memory; it was left out"},
    {"memory-of-the-host-pinned",
     "pinned memory of the host is not device memory; it was left out"},
    {NULL, NULL},
    {"memory-of-arrays",
     "arrays lie as the driver likes, in memory that no allocator cuts; they were left out"},
    {"managed-memory", "memory that host and device share has no fixed place; it was left out"},
    {"static-memory",
     "variables of a module come and go with it, without a request; they were left out"},
    {"static-managed-memory",
     "variables of a module that host and device share have no fixed place; they were left out"},
    {"memory-of-unknown-kind",
     "the profiler does not say what kind of memory it is; it was left out"},
};

typedef struct memory_row {
    frag_device_record record;
    uint64_t number; /* from 0, in the table */
    uint32_t process;
} memory_row;

/* The memory of one process on one device: a trace. */
typedef struct owner {
    uint32_t process;
    uint16_t device; /* the process's own number for it */
} owner;

typedef struct nsys_reader {
    frag_sqlite *database;
    frag_error *error;
    frag_findings *findings;
    memory_row *rows;
    size_t row_count;
    size_t row_capacity;
    const memory_table *table;
    uint64_t read_count;    /* rows of the table, those left out included */
    uint64_t start_unix_ns; /* 0: not known */
    owner owners[FRAG_DEVICE_LOG_DEVICES_MAX];
    size_t owner_count;
} nsys_reader;

/* ---- rows */

bool frag_nsys_is_like(const unsigned char *bytes, size_t count)
{
    return count >= FRAG_SQLITE_MAGIC_BYTES &&
           memcmp(bytes, FRAG_SQLITE_MAGIC, FRAG_SQLITE_MAGIC_BYTES) == 0;
}

static bool fail_row(const nsys_reader *reader, int column, int64_t value, const char *expected)
{
    return frag_fail(reader->error, FRAG_E_INPUT,
                     "row %" PRIu64 " of the table %s has %" PRId64 " in \"%s\"; expected %s",
                     reader->read_count, reader->table->name, value,
                     reader->table->columns[column].name, expected);
}

static bool check_row(const nsys_reader *reader, const frag_sqlite_number *numbers)
{
    const memory_table *table = reader->table;
    const struct {
        int column;
        int64_t min;
        int64_t max;
        const char *expected;
    } ranges[] = {
        {COLUMN_START, 0, INT64_MAX, "nanoseconds"},
        {COLUMN_DEVICE, 0, FRAG_DEVICE_LOG_DEVICES_MAX - 1, "the number of a device, 0 to 255"},
        {COLUMN_BYTES, 0, (int64_t)FRAG_REQUEST_BYTES_MAX, "a whole number from 0 to 2^56 - 1"},
        {COLUMN_KIND, 0, KINDS - 1, "a kind of memory, 0 to 7"},
        {COLUMN_OPERATION, table->operation_first, table->operation_max, table->operations},
        {COLUMN_STREAM, 0, UINT32_MAX, "the number of a stream"},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const frag_sqlite_number *number = &numbers[ranges[i].column];
        if (number->is_given && (number->value < ranges[i].min || number->value > ranges[i].max))
            return fail_row(reader, ranges[i].column, number->value, ranges[i].expected);
    }
    return true;
}

/* A serialised process: hardware in the highest byte, then the machine, the process in the middle
 * three, a thread in the lowest three. */
static uint32_t process_of(const nsys_reader *reader, const frag_sqlite_number *number)
{
    if (!number->is_given)
        return 0;
    return (uint32_t)(reader->table->has_global_pid ? (uint64_t)number->value >> 24 & 0xffffff
                                                    : (uint64_t)number->value);
}

static void add_row(nsys_reader *reader, const frag_sqlite_number *numbers, int64_t time_ns,
                    bool is_free)
{
    const frag_sqlite_number *stream = &numbers[COLUMN_STREAM];
    const frag_sqlite_number *pool = &numbers[COLUMN_POOL];
    bool has_stream = stream->is_given && stream->value != (int64_t)STREAM_NONE;
    /* Records of CUPTI name a stream only where the call had one. */
    bool is_async = reader->table->has_global_pid ? pool->is_given && pool->value != 0 : has_stream;
    *FRAG_APPEND(reader->rows, reader->row_count, reader->row_capacity) = (memory_row){
        .record =
            {
                .time_ns = (uint64_t)time_ns,
                .address = (uint64_t)numbers[COLUMN_ADDRESS].value,
                .bytes = (uint64_t)numbers[COLUMN_BYTES].value,
                .stream = has_stream && is_async ? (uint64_t)stream->value : 0,
                .device = (uint16_t)numbers[COLUMN_DEVICE].value,
                .call = is_free ? (is_async ? FRAG_LOG_FREE_ASYNC : FRAG_LOG_FREE)
                                : (is_async ? FRAG_LOG_MALLOC_ASYNC : FRAG_LOG_MALLOC),
            },
        .number = reader->read_count - 1,
        .process = process_of(reader, &numbers[COLUMN_PROCESS]),
    };
}

static bool add_rows(nsys_reader *reader, const frag_sqlite_number *numbers)
{
    const memory_table *table = reader->table;
    int64_t start = numbers[COLUMN_START].value;
    int64_t operation = numbers[COLUMN_OPERATION].value;
    if (!table->is_lifetime) {
        add_row(reader, numbers, start, operation != table->operation_first);
        return true;
    }
    if (operation > 0 && operation < start)
        return fail_row(reader, COLUMN_OPERATION, operation,
                        "a time behind that of the allocation, or 0");
    add_row(reader, numbers, start, false);
    if (operation > 0)
        add_row(reader, numbers, operation, true);
    return true;
}

static bool take_row(nsys_reader *reader, const frag_sqlite_number *numbers)
{
    const memory_table *table = reader->table;
    reader->read_count++;
    if (!check_row(reader, numbers))
        return false;
    int64_t kind = (numbers[COLUMN_KIND].value - table->kind_first + KINDS) % KINDS;
    uint64_t address = (uint64_t)numbers[COLUMN_ADDRESS].value;
    bool is_free = !table->is_lifetime && numbers[COLUMN_OPERATION].value != table->operation_first;
    if (kind != KIND_DEVICE) {
        frag_findings_add(reader->findings, left_out[kind].finding, left_out[kind].meaning, false,
                          (uint32_t)numbers[COLUMN_DEVICE].value, reader->read_count - 1,
                          "%s, address 0x%" PRIx64 ", %" PRIu64 " bytes",
                          is_free ? "release" : "allocation", address,
                          (uint64_t)numbers[COLUMN_BYTES].value);
        return true;
    }
    if (address == 0)
        return fail_row(reader, COLUMN_ADDRESS, 0, "the address of device memory");
    return add_rows(reader, numbers);
}

/* The first table that there is. */
static bool find_table(nsys_reader *reader)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        bool has = false;
        if (!frag_sqlite_has_table(reader->database, tables[i].name, &has, reader->error))
            return false;
        if (has) {
            reader->table = &tables[i];
            return true;
        }
    }
    return frag_fail(
        reader->error, FRAG_E_INPUT,
        "the database has no table " EVENTS
        " and no CUPTI_ACTIVITY_KIND_MEMORY; expected the export of a report made with nsys "
        "profile --cuda-memory-usage=true, or a file of nvprof --track-memory-allocations on");
}

static bool read_rows(nsys_reader *reader)
{
    frag_sqlite_number numbers[COLUMNS];
    bool has = false;
    if (!find_table(reader) || !frag_sqlite_select(reader->database, reader->table->name,
                                                   reader->table->columns, COLUMNS, reader->error))
        return false;
    while (frag_sqlite_next(reader->database, numbers, &has, reader->error)) {
        if (!has && reader->row_count == 0)
            return frag_fail(
                reader->error, FRAG_E_INPUT,
                "the report has no events of device memory; expected at least one in the table %s",
                reader->table->name);
        if (!has)
            return reader->row_count < FRAG_SLOT_NONE / 4 ||
                   frag_fail(reader->error, FRAG_E_INPUT,
                             "there are more than 2^30 events of device memory");
        if (!take_row(reader, numbers))
            return false;
    }
    return false;
}

/* Where the report says when its session began, times become those of a clock. */
static bool read_session(nsys_reader *reader)
{
    static const frag_sqlite_column start = {"utcEpochNs", true};
    frag_sqlite_number number = {0};
    bool has = false;
    if (!frag_sqlite_has_table(reader->database, SESSION, &has, reader->error))
        return false;
    if (!has)
        return true;
    if (!frag_sqlite_select(reader->database, SESSION, &start, 1, reader->error) ||
        !frag_sqlite_next(reader->database, &number, &has, reader->error))
        return false;
    if (has && number.is_given && number.value > 0)
        reader->start_unix_ns = (uint64_t)number.value;
    return true;
}

/* ---- who has which device */

static int compare_owners(const owner *a, const owner *b)
{
    return frag_compare_then(frag_compare(a->device, b->device),
                             frag_compare(a->process, b->process));
}

static bool add_owner(nsys_reader *reader, owner added)
{
    size_t at = 0;
    while (at < reader->owner_count && compare_owners(&reader->owners[at], &added) < 0)
        at++;
    if (at < reader->owner_count && compare_owners(&reader->owners[at], &added) == 0)
        return true;
    if (reader->owner_count == FRAG_DEVICE_LOG_DEVICES_MAX)
        return frag_fail(reader->error, FRAG_E_INPUT,
                         "the report has device memory of more than %u processes; expected fewer",
                         FRAG_DEVICE_LOG_DEVICES_MAX);
    memmove(&reader->owners[at + 1], &reader->owners[at],
            (reader->owner_count - at) * sizeof *reader->owners);
    reader->owners[at] = added;
    reader->owner_count++;
    return true;
}

/* The number of the trace: the device's own, unless processes share a device. */
static uint16_t trace_of(const nsys_reader *reader, owner wanted, bool is_shared)
{
    for (size_t i = 0; is_shared && i < reader->owner_count; i++)
        if (compare_owners(&reader->owners[i], &wanted) == 0)
            return (uint16_t)i;
    return wanted.device;
}

static bool find_owners(nsys_reader *reader, frag_builder *builder)
{
    bool is_shared = false;
    for (size_t i = 0; i < reader->row_count; i++) {
        const memory_row *row = &reader->rows[i];
        if (!add_owner(reader, (owner){row->process, row->record.device}))
            return false;
    }
    for (size_t i = 1; i < reader->owner_count; i++)
        is_shared |= reader->owners[i].device == reader->owners[i - 1].device;
    if (is_shared)
        frag_findings_add(reader->findings, "processes-share-a-device",
                          "several processes had memory of a device of the same number; each has a "
                          "trace of its own, and the metadata nsys.trace.N say whose trace N is",
                          false, 0, 0, "%zu traces", reader->owner_count);
    for (size_t i = 0; i < reader->row_count; i++) {
        memory_row *row = &reader->rows[i];
        row->record.device = trace_of(reader, (owner){row->process, row->record.device}, is_shared);
    }
    for (size_t i = 0; i < reader->owner_count; i++) {
        const owner *one = &reader->owners[i];
        char key[32];
        char value[64];
        snprintf(key, sizeof key, "nsys.trace.%u", trace_of(reader, *one, is_shared));
        snprintf(value, sizeof value, "process %" PRIu32 ", device %u", one->process, one->device);
        frag_builder_metadata(builder, key, value);
    }
    return true;
}

/* ---- traces */

static int compare_rows(const void *one, const void *other)
{
    const memory_row *a = one;
    const memory_row *b = other;
    return frag_compare_then(frag_compare(a->process, b->process),
                             frag_compare_then(frag_compare(a->record.time_ns, b->record.time_ns),
                                               frag_compare(a->number, b->number)));
}

/* Processes have addresses of their own: each becomes a log. */
static void build_traces(nsys_reader *reader, frag_device_log_view view, frag_builder *builder)
{
    size_t log_count = 0;
    frag_device_log *logs = frag_alloc(reader->owner_count, sizeof *logs);
    frag_device_record *records = frag_alloc(reader->row_count, sizeof *records);
    if (reader->row_count > 1)
        qsort(reader->rows, reader->row_count, sizeof *reader->rows, compare_rows);
    for (size_t i = 0; i < reader->row_count; i++) {
        records[i] = reader->rows[i].record;
        records[i].number = (uint32_t)reader->rows[i].number + 1;
        if (i == 0 || reader->rows[i].process != reader->rows[i - 1].process)
            logs[log_count++] = (frag_device_log){
                .records = &records[i],
                /* Without a clock, times stay those since the session began. */
                .header = {.pid = reader->rows[i].process,
                           .start_unix_ns = reader->start_unix_ns > 0 ? reader->start_unix_ns : 1,
                           .start_monotonic_ns = reader->start_unix_ns > 0 ? 0 : 1,
                           .end_monotonic_ns = 1},
            };
        logs[log_count - 1].record_count++;
        logs[log_count - 1].header.begun_count++;
    }
    frag_device_logs_build(logs, log_count, view, builder, reader->findings);
    frag_free(records);
    frag_free(logs);
}

bool frag_nsys_read(frag_input *input, frag_device_log_view view, frag_recording *recording,
                    frag_findings *findings, frag_error *error)
{
    nsys_reader *reader = frag_alloc(1, sizeof *reader);
    *reader = (nsys_reader){.error = error, .findings = findings};
    *recording = (frag_recording){0};
    reader->database = frag_sqlite_open(input, error);
    bool ok = reader->database != NULL && read_rows(reader) && read_session(reader);
    if (ok) {
        frag_builder *builder = frag_builder_create(recording);
        frag_builder_metadata(builder, "source", reader->table->source);
        ok = find_owners(reader, builder);
        if (ok)
            build_traces(reader, view, builder);
        ok = frag_builder_end(builder, ok, input, error);
    }
    frag_sqlite_close(reader->database);
    frag_free(reader->rows);
    frag_free(reader);
    return ok;
}

static bool read_format(frag_input *input, const frag_load_options *options,
                        frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    return frag_nsys_read(input, FRAG_DEVICE_LOG_AS_REQUESTS, recording, findings, error);
}

const frag_format frag_format_nsys = {
    .what = "exported report of Nsight Systems or file of nvprof, SQLite",
    .page = "exchange.md#reports-of-nsight-systems",
    .is_like = frag_nsys_is_like,
    .read = read_format,
};
