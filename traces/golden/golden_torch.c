/* The lines of golden logs of PyTorch: requests with their device calls and trace events,
 * statistics, segments. */
#include "traces/golden/golden_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/json.h"
#include "base/memory.h"
#include "sim/device.h"

#define MALLOC_BASE "0x700000000000"
#define RESERVE_BASE "0x600000000000"

/* Calls that only look or wait: known, and not kept. */
static const char *const idle_calls[] = {"meminfo", "erecord", "equery",
                                         "esync",   "ssync",   "capmode"};

/* Addresses and bytes of device calls are below 2^62, as the software device's are. */
#define NUMBER_BITS_MAX 62

/* ---- members of a line */

static bool parse_address(const frag_json_value *value, uint64_t *address)
{
    const char *text = NULL;
    if (!frag_json_read_text(value, &text) || strncmp(text, "0x", 2) != 0)
        return false;
    size_t length = strlen(text + 2);
    if (length == 0 || strspn(text + 2, "0123456789abcdef") != length)
        return false;
    *address = strtoull(text + 2, NULL, 16);
    return *address >> NUMBER_BITS_MAX == 0;
}

static bool read_address(const frag_golden_reader *reader, const char *key, uint64_t *address)
{
    return parse_address(frag_json_at(reader->json, key), address) ||
           frag_golden_fail_member(reader, key,
                                   "an address such as \"0x700000000000\", of 62 bits at most");
}

/* A pool is named by a pair of numbers. */
static bool read_pool(const frag_golden_reader *reader, const char *key, frag_pool_id *pool)
{
    const frag_json_value *pair = frag_json_at(reader->json, key);
    return (frag_json_count(pair) == 2 &&
            frag_json_read_number(frag_json_item(pair, 0), &pool->high) &&
            frag_json_read_number(frag_json_item(pair, 1), &pool->low)) ||
           frag_golden_fail_member(reader, key, "two whole numbers");
}

static bool read_device(const frag_golden_reader *reader, uint32_t *device)
{
    uint64_t number = 0;
    if (frag_json_at(reader->json, "dev") == NULL)
        return true;
    if (!frag_golden_read_count(reader, "dev", reader->log->device_count - 1, &number))
        return false;
    *device = (uint32_t)number;
    return true;
}

/* ---- device calls */

static bool parse_malloc(const frag_json_value *entry, frag_golden_call *call)
{
    uint64_t code = 0;
    if (frag_json_count(entry) != 4 ||
        !frag_json_read_number(frag_json_item(entry, 2), &call->bytes) ||
        !frag_json_read_number(frag_json_item(entry, 3), &code))
        return false;
    call->is_refused = code != 0;
    uint64_t none = 0;
    return call->is_refused ? frag_json_read_number(frag_json_item(entry, 1), &none) && none == 0
                            : parse_address(frag_json_item(entry, 1), &call->address);
}

/* create, release: page, count, result; map, unmap: address, page, count. */
static bool parse_pages(const frag_json_value *entry, frag_golden_call *call)
{
    bool is_placed = call->kind == FRAG_GOLDEN_CALL_MAP || call->kind == FRAG_GOLDEN_CALL_UNMAP;
    size_t at = is_placed ? 2 : 1;
    uint64_t code = 0;
    uint64_t total = 0;
    if (frag_json_count(entry) != 4 ||
        !frag_json_read_number(frag_json_item(entry, at), &call->bytes) ||
        !frag_json_read_number(frag_json_item(entry, at + 1), &call->count) || call->bytes == 0 ||
        call->count == 0 || !frag_multiply(call->bytes, call->count, &total) ||
        total >> NUMBER_BITS_MAX != 0)
        return false;
    if (is_placed)
        return parse_address(frag_json_item(entry, 1), &call->address);
    if (!frag_json_read_number(frag_json_item(entry, 3), &code))
        return false;
    call->is_refused = code != 0;
    return true;
}

static bool parse_call(const frag_json_value *entry, frag_golden_call *call)
{
    call->count = 1;
    switch (call->kind) {
    case FRAG_GOLDEN_CALL_MALLOC:
        return parse_malloc(entry, call);
    case FRAG_GOLDEN_CALL_FREE:
        return frag_json_count(entry) == 3 &&
               parse_address(frag_json_item(entry, 1), &call->address);
    case FRAG_GOLDEN_CALL_RESERVE:
    case FRAG_GOLDEN_CALL_VFREE:
        return frag_json_count(entry) == 3 &&
               parse_address(frag_json_item(entry, 1), &call->address) &&
               frag_json_read_number(frag_json_item(entry, 2), &call->bytes) &&
               call->bytes >> NUMBER_BITS_MAX == 0;
    default:
        return parse_pages(entry, call);
    }
}

static bool is_idle(const char *name)
{
    for (size_t i = 0; i < sizeof idle_calls / sizeof idle_calls[0]; i++)
        if (strcmp(idle_calls[i], name) == 0)
            return true;
    return false;
}

static bool read_calls(frag_golden_reader *reader, frag_golden_list *list)
{
    frag_golden_log *log = reader->log;
    const frag_json_value *entries = frag_json_at(reader->json, "drv");
    *list = (frag_golden_list){log->call_count, 0};
    if (entries != NULL && !frag_json_is_array(entries))
        return frag_golden_fail_member(reader, "drv", "an array of device calls");
    for (size_t i = 0; i < frag_json_count(entries); i++) {
        const frag_json_value *entry = frag_json_item(entries, i);
        const char *name = "";
        frag_json_read_text(frag_json_item(entry, 0), &name);
        if (is_idle(name))
            continue;
        uint32_t kind = frag_golden_call_find(name);
        frag_golden_call call = {.kind = (frag_golden_call_kind)kind};
        if (kind > FRAG_GOLDEN_CALL_UNMAP || !parse_call(entry, &call))
            return frag_fail_line(reader->error, reader->line, 0,
                                  "entry %zu of \"drv\" is not a known device call; expected "
                                  "malloc, free, reserve, vfree, create, release, map, unmap, "
                                  "meminfo, erecord, equery, esync, ssync or capmode",
                                  i + 1);
        if (list->count > 0 && frag_golden_call_merge(&log->calls[log->call_count - 1], &call))
            continue;
        frag_golden_keep_call(reader, &call);
        list->count++;
    }
    return true;
}

/* ---- trace events */

static bool parse_note(const frag_json_value *entry, frag_golden_note *note)
{
    const char *name = "";
    frag_json_read_text(frag_json_item(entry, 0), &name);
    uint32_t kind = frag_golden_note_find(name);
    note->kind = (frag_golden_note_kind)kind;
    if (kind == FRAG_GOLDEN_NOTE_COUNT || frag_json_count(entry) != 4 ||
        !frag_json_read_number(frag_json_item(entry, 2), &note->bytes) ||
        !frag_json_read_number(frag_json_item(entry, 3), &note->stream))
        return false;
    return kind == FRAG_GOLDEN_NOTE_OOM
               ? frag_json_read_number(frag_json_item(entry, 1), &note->address)
               : parse_address(frag_json_item(entry, 1), &note->address);
}

static bool read_notes(frag_golden_reader *reader, frag_golden_line *line)
{
    frag_golden_log *log = reader->log;
    const frag_json_value *entries = frag_json_at(reader->json, "ev");
    line->notes = (frag_golden_list){log->note_count, frag_json_count(entries)};
    line->has_notes = entries != NULL;
    if (entries != NULL && !frag_json_is_array(entries))
        return frag_golden_fail_member(reader, "ev", "an array of trace events");
    for (size_t i = 0; i < line->notes.count; i++) {
        frag_golden_note note = {0};
        if (!parse_note(frag_json_item(entries, i), &note))
            return frag_fail_line(
                reader->error, reader->line, 0,
                "entry %zu of \"ev\" is not a trace event; expected [kind, address, "
                "bytes, stream] with one of A, FR, FC, SA, SF, SM, SU, OOM",
                i + 1);
        *FRAG_APPEND(log->notes, log->note_count, reader->note_capacity) = note;
    }
    return true;
}

/* ---- requests */

static bool read_alloc(frag_golden_reader *reader, frag_golden_line *line)
{
    const char *message = NULL;
    line->is_oom = frag_json_find_text(reader->json, "oom.message", &message);
    if (line->is_oom)
        line->text = frag_golden_keep_text(reader, message);
    else if (frag_json_at(reader->json, "oom") != NULL)
        return frag_json_at_path(reader->json, "oom.message") != NULL
                   ? frag_golden_fail_member(reader, "oom.message", "a text")
                   : frag_golden_fail_member(reader, "oom", "an object with the \"message\"");
    else if (!read_address(reader, "addr", &line->address))
        return false;
    return frag_golden_read_size(reader, &line->bytes) &&
           frag_golden_read_count(reader, "stream", INT64_MAX, &line->stream) &&
           frag_golden_take_id(reader, line);
}

static bool read_pool_begin(frag_golden_reader *reader, frag_golden_line *line)
{
    const frag_json_value *stream = frag_json_at(reader->json, "stream");
    if (!read_pool(reader, "pool", &line->pool))
        return false;
    line->is_stream_all = stream != NULL && frag_json_is_null(stream);
    return line->is_stream_all ||
           frag_golden_read_count(reader, "stream", INT64_MAX, &line->stream);
}

static bool read_request(frag_golden_reader *reader, frag_golden_line *line)
{
    const char *text = NULL;
    switch (line->op) {
    case FRAG_GOLDEN_ALLOC:
        return read_alloc(reader, line);
    case FRAG_GOLDEN_FREE:
        return frag_golden_find_id(reader, line);
    case FRAG_GOLDEN_RECORD_STREAM:
        return frag_golden_find_id(reader, line) &&
               frag_golden_read_count(reader, "stream", INT64_MAX, &line->stream);
    case FRAG_GOLDEN_COMPLETE:
        return frag_golden_read_count(reader, "stream", INT64_MAX, &line->stream);
    case FRAG_GOLDEN_EMPTY_CACHE:
        line->has_pool = frag_json_at(reader->json, "pool") != NULL;
        return !line->has_pool || read_pool(reader, "pool", &line->pool);
    case FRAG_GOLDEN_FRACTION:
        return frag_golden_read_fraction(reader, line);
    case FRAG_GOLDEN_POOL_BEGIN:
        return read_pool_begin(reader, line);
    case FRAG_GOLDEN_POOL_USE_ON_OOM:
        return read_pool(reader, "pool", &line->pool) &&
               frag_golden_read_flag(reader, "on", &line->is_on);
    case FRAG_GOLDEN_POOL_CREATE:
    case FRAG_GOLDEN_POOL_END:
    case FRAG_GOLDEN_POOL_RELEASE:
    case FRAG_GOLDEN_POOL_NO_SPLIT:
        return read_pool(reader, "pool", &line->pool);
    case FRAG_GOLDEN_SETTINGS:
        if (!frag_golden_read_text(reader, "conf", &text))
            return false;
        line->text = frag_golden_keep_text(reader, text);
        return true;
    default:
        return true;
    }
}

/* ---- statistics, segments */

/* [current, peak, allocated, freed] */
static bool add_four(frag_golden_reader *reader, const char *name, const frag_json_value *four)
{
    static const char *const fields[] = {"current", "peak", "allocated", "freed"};
    if (frag_json_count(four) != 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        char full[96];
        int64_t value = 0;
        if (!frag_json_read_signed(frag_json_item(four, i), &value))
            return false;
        snprintf(full, sizeof full, "%s.%s", name, fields[i]);
        frag_golden_keep_figure(reader, full, value);
    }
    return true;
}

static bool add_statistic(frag_golden_reader *reader, const char *name,
                          const frag_json_value *value)
{
    static const char *const pools[] = {"all", "small_pool", "large_pool"};
    int64_t number = 0;
    if (frag_json_read_signed(value, &number)) {
        frag_golden_keep_figure(reader, name, number);
        return true;
    }
    if (!frag_json_is_array(frag_json_item(value, 0)))
        return add_four(reader, name, value);
    bool ok = frag_json_count(value) == 3;
    for (size_t i = 0; ok && i < 3; i++) {
        char full[80];
        snprintf(full, sizeof full, "%s.%s", name, pools[i]);
        ok = add_four(reader, full, frag_json_item(value, i));
    }
    return ok;
}

static bool visit_statistic(void *context, const char *key, const frag_json_value *value)
{
    frag_golden_reader *reader = context;
    if (strcmp(key, "op") == 0 || strcmp(key, "at") == 0 || strcmp(key, "dev") == 0)
        return true;
    if (strlen(key) < 48 && add_statistic(reader, key, value))
        return true;
    return frag_fail_line(reader->error, reader->line, 0,
                          "\"%.48s\" is not a statistic; expected a number, or current, peak, "
                          "allocated and freed, each by itself or for all, small and large",
                          key);
}

static bool read_figures(frag_golden_reader *reader, frag_golden_line *line)
{
    line->items.first = reader->log->figure_count;
    if (!frag_json_each(reader->json, visit_statistic, reader))
        return false;
    line->items.count = reader->log->figure_count - line->items.first;
    return true;
}

static bool read_blocks(frag_golden_reader *reader, frag_golden_line *line)
{
    frag_golden_log *log = reader->log;
    const frag_json_value *blocks = frag_json_at(reader->json, "blocks");
    if (!frag_json_is_array(blocks))
        return frag_golden_fail_member(reader, "blocks", "an array");
    line->items = (frag_golden_list){log->block_count, frag_json_count(blocks)};
    for (size_t i = 0; i < line->items.count; i++) {
        const frag_json_value *entry = frag_json_item(blocks, i);
        frag_golden_block block = {0};
        const char *state = "";
        if (frag_json_count(entry) != 4 ||
            !parse_address(frag_json_item(entry, 0), &block.address) ||
            !frag_json_read_number(frag_json_item(entry, 1), &block.bytes) ||
            !frag_json_read_number(frag_json_item(entry, 2), &block.requested_bytes) ||
            !frag_json_read_text(frag_json_item(entry, 3), &state) || strlen(state) != 1 ||
            strchr("API", state[0]) == NULL)
            return frag_fail_line(
                reader->error, reader->line, 0,
                "entry %zu of \"blocks\" is not a block; expected [address, bytes, "
                "requested, \"A\", \"P\" or \"I\"]",
                i + 1);
        block.state = state[0];
        *FRAG_APPEND(log->blocks, log->block_count, reader->block_capacity) = block;
    }
    return true;
}

static bool read_segment(frag_golden_reader *reader, frag_golden_line *line)
{
    frag_golden_log *log = reader->log;
    frag_golden_segment segment = {0};
    const char *pool = NULL;
    if (!read_address(reader, "addr", &segment.address) ||
        !frag_golden_read_count(reader, "size", INT64_MAX, &segment.bytes) ||
        !frag_golden_read_count(reader, "stream", INT64_MAX, &segment.stream) ||
        !frag_golden_read_text(reader, "pool", &pool) ||
        !frag_golden_read_flag(reader, "expandable", &segment.is_expandable) ||
        !read_pool(reader, "private", &segment.pool) ||
        !frag_golden_read_count(reader, "allocated", INT64_MAX, &segment.allocated_bytes) ||
        !frag_golden_read_count(reader, "active", INT64_MAX, &segment.active_bytes) ||
        !frag_golden_read_count(reader, "requested", INT64_MAX, &segment.requested_bytes))
        return false;
    segment.is_small = strcmp(pool, "small") == 0;
    if (!segment.is_small && strcmp(pool, "large") != 0)
        return frag_golden_fail_member(reader, "pool", "\"small\" or \"large\"");
    line->segment = log->segment_count;
    *FRAG_APPEND(log->segments, log->segment_count, reader->segment_capacity) = segment;
    return read_blocks(reader, line);
}

/* ---- lines */

static bool read_op(frag_golden_reader *reader, frag_golden_line *line)
{
    const char *name = NULL;
    if (!frag_golden_read_text(reader, "op", &name))
        return false;
    line->op = (uint8_t)frag_golden_op_find(name);
    if (line->op < FRAG_GOLDEN_OP_COUNT)
        return true;
    const char *nearest = frag_golden_op_nearest(name);
    return frag_fail_line(reader->error, reader->line, 0, "op '%.40s' is not known; %s%s", name,
                          nearest != NULL ? "the nearest is " : "expected alloc, free, ...",
                          nearest != NULL ? nearest : "");
}

bool frag_golden_torch_read_line(frag_golden_reader *reader)
{
    frag_golden_line line = {0};
    const char *message = NULL;
    bool ok = read_op(reader, &line) && read_device(reader, &line.device) &&
              read_calls(reader, &line.calls) && read_notes(reader, &line);
    if (ok && frag_golden_is_request(line.op)) {
        ok = read_request(reader, &line);
    } else if (ok && (line.op == FRAG_GOLDEN_STATS || line.op == FRAG_GOLDEN_END)) {
        ok = read_figures(reader, &line);
    } else if (ok && line.op == FRAG_GOLDEN_SNAPSHOT) {
        ok = frag_golden_read_count(reader, "segments", UINT32_MAX, &line.bytes);
    } else if (ok && line.op == FRAG_GOLDEN_SEGMENT) {
        ok = read_segment(reader, &line);
    } else if (ok) {
        ok = frag_golden_read_text(reader, "message", &message);
        line.text = ok ? frag_golden_keep_text(reader, message) : 0;
    }
    if (!ok)
        return false;
    frag_golden_keep_line(reader, &line);
    return true;
}

/* A head of a log made under rules that are not the simulated device's. */
static bool refuse_head(const frag_golden_reader *reader)
{
    const char *base = "";
    uint64_t number = 0;
    if (!frag_json_find_number(reader->json, "schema", &number) || number != 1)
        return frag_golden_fail_member(reader, "schema", "1");
    if (!frag_json_find_number(reader->json, "granularity", &number) ||
        number != FRAG_DEVICE_PAGE_BYTES)
        return frag_golden_fail_member(reader, "granularity", "2097152");
    if (!frag_json_find_text(reader->json, "malloc_base", &base) || strcmp(base, MALLOC_BASE) != 0)
        return frag_golden_fail_member(reader, "malloc_base", "\"" MALLOC_BASE "\"");
    if (!frag_json_find_text(reader->json, "vmm_base", &base) || strcmp(base, RESERVE_BASE) != 0)
        return frag_golden_fail_member(reader, "vmm_base", "\"" RESERVE_BASE "\"");
    return true;
}

bool frag_golden_torch_read_head(frag_golden_reader *reader)
{
    frag_golden_log *log = reader->log;
    const char *torch = NULL;
    const char *conf = NULL;
    const char *rule = NULL;
    uint64_t devices = 0;
    if (!refuse_head(reader) || !frag_golden_read_text(reader, "torch", &torch) ||
        !frag_golden_read_text(reader, "conf", &conf) ||
        !frag_golden_read_text(reader, "va", &rule) ||
        !frag_golden_read_count(reader, "capacity", FRAG_REQUEST_BYTES_MAX, &log->capacity_bytes) ||
        !frag_golden_read_count(reader, "devices", FRAG_GOLDEN_DEVICES_MAX, &devices) ||
        !frag_golden_read_flag(reader, "events", &log->has_events))
        return false;
    if (devices == 0)
        return frag_golden_fail_member(reader, "devices", "1 or more");
    if (strlen(torch) >= sizeof log->torch || strspn(torch, "0123456789.") != strlen(torch))
        return frag_golden_fail_member(reader, "torch", "a version such as \"2.9.1\"");
    log->is_bump = strcmp(rule, "bump") == 0;
    if (!log->is_bump && strcmp(rule, "firstfit") != 0)
        return frag_golden_fail_member(reader, "va", "\"firstfit\" or \"bump\"");
    memcpy(log->torch, torch, strlen(torch) + 1);
    log->device_count = (uint32_t)devices;
    log->conf = frag_golden_keep_text(reader, conf);
    log->page_bytes = FRAG_DEVICE_PAGE_BYTES;
    return true;
}
