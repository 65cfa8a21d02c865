/* Logs of RMM's logging_resource_adaptor: CSV with the columns Thread, Time, Action, Pointer, Size,
 * Stream, one row for each request, release or request that failed. Sizes are those that the
 * program asked for, pointers and streams are hexadecimal.
 * Source: rapidsai/rmm, cpp/src/mr/detail/logging_resource_adaptor_impl.cpp.
 *
 * Also its text log (RMM_DEBUG_LOG_FILE, by default rmm_log.txt), where RMM was built with level
 * TRACE: a line for each request that was served, and for each release; failures are in it at every
 * level.
 *
 * A log is one trace, of device 0, as it does not say of which device it is. Rows are put in the
 * order of their times; docs/exchange.md tells what else is done with what logs are known to have.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "base/text.h"
#include "traces/exchange/csv_lines.h"
#include "traces/exchange/live_blocks.h"
#include "traces/format_look.h"
#include "traces/formats.h"

#define CSV_HEADER "Thread,Time,Action,Pointer,Size,Stream"

#define SECOND_NS UINT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define DAY_NS (24 * 60 * MINUTE_NS)
/* A step back in time by more than this is the clock, one by less a row that was written late. */
#define LATE_NS_MAX MINUTE_NS
/* Unix seconds of the year 2262, beyond which nanoseconds have no room. */
#define SECONDS_MAX UINT64_C(9223372036)

enum { FIELD_THREAD, FIELD_TIME, FIELD_ACTION, FIELD_POINTER, FIELD_SIZE, FIELD_STREAM, FIELDS };

typedef enum action { ALLOCATE, FAILURE, FREE, ACTIONS } action;

static const char *const action_names[ACTIONS] = {"allocate", "allocate failure", "free"};

typedef struct log_row {
    uint64_t time_ns;
    uint64_t number; /* from 0, in the file */
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    action action;
} log_row;

typedef struct log_reader {
    frag_csv_lines lines;
    frag_error *error;
    frag_findings *findings;
    const char *text; /* the current line */
    log_row *rows;
    size_t row_count;
    size_t row_capacity;
    uint64_t shift_ns;     /* between the clock of the rows and a time that goes on */
    uint64_t time_last_ns; /* the latest so far */
    bool is_in_order;
    frag_text failure; /* the first line of the text log that says that a request failed */
} log_reader;

/* ---- fields */

static bool begins_csv(const unsigned char *bytes, size_t count)
{
    size_t length = sizeof CSV_HEADER - 1;
    return count >= length && memcmp(bytes, CSV_HEADER, length) == 0 &&
           (count == length || bytes[length] == '\n' || bytes[length] == '\r');
}

static bool fail_field(const log_reader *reader, const frag_csv_field *at, const char *expected)
{
    return frag_fail_line(reader->error, reader->lines.line,
                          (uint64_t)(at->bytes - reader->text) + 1, "found '%.*s'; expected %s",
                          (int)(at->length < 40 ? at->length : 40), at->bytes, expected);
}

/* Digits behind the point, as nanoseconds. */
static bool read_fraction(frag_csv_field part, uint64_t *ns)
{
    if (part.length > 9 || !frag_csv_number(&part, SECOND_NS - 1, ns))
        return false;
    for (size_t i = part.length; i < 9; i++)
        *ns *= 10;
    return true;
}

/* Hours, minutes and seconds of a day (older releases have a colon before the fraction), or Unix
 * seconds; both with or without a fraction. */
static bool read_time(const frag_csv_field *at, uint64_t *time_ns, bool *is_of_day)
{
    static const uint64_t day_max[] = {23, 59, 60};
    uint64_t parts[3] = {0};
    uint64_t fraction = 0;
    int count = 0;
    size_t start = 0;
    bool has_fraction = false;
    for (size_t i = 0; i <= at->length && !has_fraction; i++) {
        if (i < at->length && at->bytes[i] != ':' && at->bytes[i] != '.')
            continue;
        frag_csv_field part = {at->bytes + start, i - start};
        if (count == 3 || !frag_csv_number(&part, SECONDS_MAX, &parts[count++]))
            return false;
        start = i + 1;
        has_fraction = i < at->length && (at->bytes[i] == '.' || count == 3);
    }
    if (has_fraction &&
        !read_fraction((frag_csv_field){at->bytes + start, at->length - start}, &fraction))
        return false;
    *is_of_day = count == 3;
    if (count == 2)
        return false;
    for (int i = 0; count == 3 && i < 3; i++)
        if (parts[i] > day_max[i])
            return false;
    uint64_t seconds = count == 3 ? (parts[0] * 60 + parts[1]) * 60 + parts[2] : parts[0];
    *time_ns = seconds * SECOND_NS + fraction;
    return true;
}

/* ---- times */

static void note_row(log_reader *reader, uint64_t number, bool is_inconsistency, const char *kind,
                     const char *meaning, const char *text, size_t length)
{
    frag_findings_add(reader->findings, kind, meaning, is_inconsistency, 0, number, "%.*s",
                      (int)(length < 120 ? length : 120), text);
}

/* Rows have the time of day: it begins anew at midnight, and threads that write at once may pass
 * each other. */
static uint64_t place_in_time(log_reader *reader, uint64_t clock_ns, bool is_of_day,
                              uint64_t number, size_t length)
{
    uint64_t last = reader->time_last_ns;
    uint64_t time = clock_ns + reader->shift_ns;
    if (reader->row_count == 0) {
        reader->time_last_ns = time;
        return time;
    }
    if (is_of_day && time + DAY_NS / 2 < last) {
        reader->shift_ns += DAY_NS;
        time += DAY_NS;
    } else if (is_of_day && time >= DAY_NS && time - DAY_NS < last &&
               last - (time - DAY_NS) <= LATE_NS_MAX) {
        time -= DAY_NS; /* written late, about midnight */
    }
    if (is_of_day && time < last && last - time > LATE_NS_MAX) {
        note_row(reader, number, false, "clock-set-back",
                 "the clock went back by more than a minute; from there on the rows follow the "
                 "time before",
                 reader->text, length);
        reader->shift_ns += last - time;
        time = last;
    } else if (time < last) {
        note_row(reader, number, false, "row-out-of-order",
                 "a row has an earlier time than one above it; rows are taken in the order of "
                 "their times",
                 reader->text, length);
        reader->is_in_order = false;
    }
    reader->time_last_ns = time > last ? time : last;
    return time;
}

/* ---- rows */

static bool read_action(const frag_csv_field *at, action *is)
{
    for (int i = 0; i < ACTIONS; i++)
        if (frag_csv_is(at, action_names[i])) {
            *is = (action)i;
            return true;
        }
    return false;
}

static bool read_pointer(const frag_csv_field *at, uint64_t *address)
{
    *address = 0;
    return frag_csv_is(at, "(nil)") || frag_csv_hexadecimal(at, address);
}

static bool read_row(log_reader *reader, size_t length)
{
    frag_csv_field fields[FIELDS];
    log_row row = {.number = reader->lines.line - 2};
    uint64_t thread = 0;
    uint64_t clock_ns = 0;
    bool is_of_day = false;
    int count = frag_csv_split(reader->text, length, fields, FIELDS);
    if (count != FIELDS)
        return frag_fail_line(reader->error, reader->lines.line, 0,
                              "the row has %s fields than the header has columns; expected %d",
                              count < 0 ? "more" : "fewer", FIELDS);
    if (!frag_csv_number(&fields[FIELD_THREAD], UINT64_MAX, &thread))
        return fail_field(reader, &fields[FIELD_THREAD], "the number of a thread");
    if (!read_time(&fields[FIELD_TIME], &clock_ns, &is_of_day))
        return fail_field(reader, &fields[FIELD_TIME], "a time such as 15:47:02.841961");
    if (!read_action(&fields[FIELD_ACTION], &row.action))
        return fail_field(reader, &fields[FIELD_ACTION], "allocate, allocate failure or free");
    if (!read_pointer(&fields[FIELD_POINTER], &row.address))
        return fail_field(reader, &fields[FIELD_POINTER], "a pointer such as 0x7f8a40000000");
    if (!frag_csv_number(&fields[FIELD_SIZE], FRAG_REQUEST_BYTES_MAX, &row.bytes))
        return fail_field(reader, &fields[FIELD_SIZE], "a whole number from 0 to 2^56 - 1");
    if (!read_pointer(&fields[FIELD_STREAM], &row.stream))
        return fail_field(reader, &fields[FIELD_STREAM], "a stream in hexadecimal");
    if (row.action == ALLOCATE && row.address == 0 && row.bytes > 0)
        return fail_field(reader, &fields[FIELD_POINTER],
                          "the address of memory, as the request was served");
    row.time_ns = place_in_time(reader, clock_ns, is_of_day, row.number, length);
    *FRAG_APPEND(reader->rows, reader->row_count, reader->row_capacity) = row;
    return true;
}

/* The program may have ended while it wrote: what is left of a row at the end of the file is not
 * the file's fault. */
static bool read_rows(log_reader *reader)
{
    size_t length = 0;
    while (frag_csv_next(&reader->lines, &reader->text, &length, reader->error)) {
        if (reader->lines.line == 1) {
            if (!begins_csv((const unsigned char *)reader->text, length))
                return frag_fail_line(reader->error, 1, 1,
                                      "expected a log of RMM with the header " CSV_HEADER);
            continue;
        }
        bool is_return = length == 0 && !reader->lines.is_ended; /* at the end of the file */
        if (is_return || read_row(reader, length))
            continue;
        if (reader->lines.is_ended)
            return false;
        *reader->error = (frag_error){0};
        note_row(reader, reader->lines.line - 2, false, "row-cut-off",
                 "the file ends inside a row, as when a program is killed; that row was left out",
                 "the last line", sizeof "the last line");
    }
    if (reader->lines.has_failed)
        return false;
    return reader->lines.line > 0 ||
           frag_fail_at(reader->error, 0, "the file is empty; expected the header " CSV_HEADER);
}

/* ---- events */

static int compare_rows(const void *one, const void *other)
{
    const log_row *a = one;
    const log_row *b = other;
    return frag_compare_then(frag_compare(a->time_ns, b->time_ns),
                             frag_compare(a->number, b->number));
}

static void add_events(log_reader *reader, frag_builder *builder)
{
    frag_live_blocks live = {.builder = builder, .findings = reader->findings};
    if (!reader->is_in_order)
        qsort(reader->rows, reader->row_count, sizeof *reader->rows, compare_rows);
    for (size_t i = 0; i < reader->row_count; i++) {
        const log_row *row = &reader->rows[i];
        frag_live_call call = {
            .time_ns = row->time_ns,
            .address = row->address,
            .bytes = row->bytes,
            .stream = row->stream,
            .entry = row->number,
            .text = action_names[row->action],
        };
        if (row->bytes == 0 || (row->action == FREE && row->address == 0))
            frag_findings_add(reader->findings, "request-of-nothing",
                              "no memory was asked for or given back; the row was left out", false,
                              0, row->number, "%s of %" PRIu64 " bytes", call.text, row->bytes);
        else if (row->action == ALLOCATE)
            frag_live_alloc(&live, &call);
        else if (row->action == FREE)
            frag_live_free(&live, &call);
        else
            frag_live_alloc_failed(&live, &call);
    }
    frag_live_destroy(&live);
}

/* ---- the text log: "[thread][time][level] [A][stream 0x1][1024B][0x7f8a40000000]" */

enum { PART_THREAD, PART_TIME, PART_LEVEL, PART_LETTER, PART_STREAM, PART_BYTES, PART_LAST, PARTS };

/* Does a text log begin here that has requests in it? */
static bool begins_text(const unsigned char *bytes, size_t count)
{
    size_t seen = count < FRAG_FORMAT_LOOK_BYTES ? count : FRAG_FORMAT_LOOK_BYTES;
    return seen > 0 && bytes[0] == '[' &&
           (frag_look_contains(bytes, seen, "[trace ] [A][stream ") ||
            frag_look_contains(bytes, seen, "[trace ] [D][stream "));
}

/* Does one that has none, but perhaps failures? */
static bool begins_failures(const unsigned char *bytes, size_t count)
{
    size_t seen = count < FRAG_FORMAT_LOOK_BYTES ? count : FRAG_FORMAT_LOOK_BYTES;
    return seen > 0 && bytes[0] == '[' &&
           (frag_look_contains(bytes, seen, "----- RMM LOG BEGIN") ||
            frag_look_contains(bytes, seen, "B][FAILURE max"));
}

/* What stands in brackets, one pair behind the other; returns how many there are. */
static int split_brackets(const char *text, size_t length, frag_csv_field parts[PARTS])
{
    int count = 0;
    for (size_t at = 0; count < PARTS && at < length;) {
        while (at < length && text[at] == ' ')
            at++;
        const char *end =
            at < length && text[at] == '[' ? memchr(text + at, ']', length - at) : NULL;
        if (end == NULL)
            return count;
        const char *start = text + at + 1;
        while (start < end && *start == ' ')
            start++;
        parts[count++] = (frag_csv_field){start, (size_t)(end - start)};
        at = (size_t)(end - text) + 1;
    }
    return count;
}

static bool has_start(const frag_csv_field *part, const char *start)
{
    size_t length = strlen(start);
    return part->length >= length && memcmp(part->bytes, start, length) == 0;
}

/* "1024B", or "Upstream 1024B". */
static bool read_size(const frag_csv_field *part, const char *start, uint64_t *bytes)
{
    size_t skipped = strlen(start);
    if (!has_start(part, start) || part->length < skipped + 2 ||
        part->bytes[part->length - 1] != 'B')
        return false;
    frag_csv_field digits = {part->bytes + skipped, part->length - skipped - 1};
    return frag_csv_number(&digits, FRAG_REQUEST_BYTES_MAX, bytes);
}

/* What a line is: a request that was served or failed, or a release. false: anything else, such as
 * a request on its way to the pool, or what the pool asked its upstream for. */
static bool is_of_memory(const frag_csv_field parts[PARTS], int count, action *is)
{
    bool is_alloc = count == PARTS && frag_csv_is(&parts[PART_LETTER], "A");
    bool is_free = count == PARTS && frag_csv_is(&parts[PART_LETTER], "D");
    bool is_failure = is_alloc && has_start(&parts[PART_LAST], "FAILURE");
    *is = is_free ? FREE : is_failure ? FAILURE : ALLOCATE;
    return is_failure || ((is_alloc || is_free) && has_start(&parts[PART_STREAM], "stream ") &&
                          has_start(&parts[PART_LAST], "0x"));
}

static bool read_text_row(log_reader *reader, size_t length)
{
    frag_csv_field parts[PARTS];
    log_row row = {.number = reader->lines.line - 1};
    uint64_t clock_ns = 0;
    bool is_of_day = false;
    int count = split_brackets(reader->text, length, parts);
    if (!is_of_memory(parts, count, &row.action))
        return true;
    const size_t word = sizeof "stream " - 1;
    frag_csv_field stream = parts[PART_STREAM];
    if (stream.length < word)
        return fail_field(reader, &stream, "a stream");
    stream = (frag_csv_field){stream.bytes + word, stream.length - word};
    if (!read_time(&parts[PART_TIME], &clock_ns, &is_of_day))
        return fail_field(reader, &parts[PART_TIME], "a time such as 15:47:02:841961");
    if (!read_pointer(&stream, &row.stream))
        return fail_field(reader, &stream, "a stream in hexadecimal");
    if (!read_size(&parts[PART_BYTES], row.action == FAILURE ? "Upstream " : "", &row.bytes))
        return fail_field(reader, &parts[PART_BYTES], "bytes such as 1024B, below 2^56");
    if (row.action != FAILURE && !read_pointer(&parts[PART_LAST], &row.address))
        return fail_field(reader, &parts[PART_LAST], "a pointer such as 0x7f8a40000000");
    if (row.action == FAILURE && reader->failure.length == 0)
        frag_text_add_bytes(&reader->failure, reader->text, length);
    row.time_ns = place_in_time(reader, clock_ns, is_of_day, row.number, length);
    *FRAG_APPEND(reader->rows, reader->row_count, reader->row_capacity) = row;
    return true;
}

static bool read_text_rows(log_reader *reader)
{
    size_t length = 0;
    while (frag_csv_next(&reader->lines, &reader->text, &length, reader->error))
        if (!read_text_row(reader, length))
            return false;
    if (reader->lines.has_failed)
        return false;
    return reader->row_count > 0 ||
           frag_fail(reader->error, FRAG_E_INPUT,
                     "the log has no requests; expected lines of level trace, or RMM's CSV log");
}

/* ---- both */

static bool peek_is_text(frag_input *input, bool *is_text, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(input, 1, &bytes, &count, error))
        return false;
    *is_text = count > 0 && bytes[0] == '[';
    return true;
}

static bool read_log(frag_input *input, const frag_load_options *options, frag_recording *recording,
                     frag_findings *findings, frag_error *error)
{
    (void)options;
    log_reader reader = {
        .lines = {.input = input},
        .error = error,
        .findings = findings,
        .is_in_order = true,
    };
    *recording = (frag_recording){0};
    bool is_text = false;
    bool ok = peek_is_text(input, &is_text, error) &&
              (is_text ? read_text_rows(&reader) : read_rows(&reader));
    ok = ok && (reader.row_count < FRAG_SLOT_NONE / 4 ||
                frag_fail(error, FRAG_E_INPUT, "there are more than 2^30 rows"));
    if (ok) {
        frag_builder *builder = frag_builder_create(recording);
        frag_builder_metadata(builder, "source", "rmm-log");
        if (reader.failure.length > 0)
            frag_builder_metadata(builder, "rmm.failure", reader.failure.bytes);
        frag_builder_device(builder, 0);
        add_events(&reader, builder);
        ok = frag_builder_finish(builder, frag_input_name(input), error);
    }
    frag_free(reader.rows);
    frag_text_destroy(&reader.failure);
    return ok;
}

/* A CSV log, or a text log with requests in it. */
static bool is_like_rmm(const unsigned char *bytes, size_t count)
{
    return begins_csv(bytes, count) || begins_text(bytes, count);
}

static const char *lacks_requests(const unsigned char *bytes, size_t count)
{
    return begins_failures(bytes, count)
               ? "the file is RMM's log of failures, which has no requests; 'fraglab explain' "
                 "reads what failed, and requests are in RMM's CSV log"
               : NULL;
}

const frag_format frag_format_rmm = {
    .what = "log of RMM's logging adaptor, CSV, or its text log of level trace",
    .page = "exchange.md#rmm-logs",
    .is_like = is_like_rmm,
    .lacks = lacks_requests,
    .read = read_log,
};
