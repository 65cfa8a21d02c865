/* Golden logs of the pools of other frameworks: RMM, TensorFlow, ONNX Runtime, CuPy, Paddle, MXNet,
 * GMLake, and of the Vulkan Memory Allocator and tlsf.c.
 *
 * Their head has the parameters of the pool, which become the options of the policy that models it,
 * and the rules of the device (docs/trace-format.md, "golden logs"). Streams are the script's
 * numbers; the raw handle of stream k is 4096 k. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "traces/golden/golden_reader.h"

#define STREAM_HANDLE_STEP 4096u
#define STREAMS_MAX 60000u
#define BYTES_MAX ((uint64_t)1 << 56)
#define ADDRESS_MAX ((uint64_t)1 << 47)
#define LOWEST_BASE ((uint64_t)0x700000000000)

/* The same thing in the log and as an option. */
typedef struct peer_parameter {
    const char *name;
    const char *option;
} peer_parameter;

typedef struct peer_library {
    const char *name; /* in the log */
    const char *policy;
    peer_parameter parameters[16]; /* ends with name NULL */
} peer_library;

static const peer_library libraries[] = {
    {"rmm-pool",
     "rmm-pool",
     {{"initial", "initial_pool_size"},
      {"maximum", "maximum_pool_size"},
      {"event_order", "event_order"}}},
    {"rmm-fixed",
     "rmm-fixed-size",
     {{"block_size", "block_size"},
      {"blocks_to_preallocate", "blocks_to_preallocate"},
      {"event_order", "event_order"}}},
    {"rmm-binning",
     "rmm-binning",
     {{"min_exp", "min_size_exponent"},
      {"max_exp", "max_size_exponent"},
      {"upstream", "upstream"},
      {"pool_initial", "initial_pool_size"},
      {"pool_maximum", "maximum_pool_size"},
      {"event_order", "event_order"}}},
    {"rmm-arena", "rmm-arena", {{"arena_size", "arena_size"}, {"size_classes", "size_classes"}}},
    {"tf-bfc",
     "tf-bfc",
     {{"memory_limit", "memory_limit"},
      {"allow_growth", "allow_growth"},
      {"garbage_collection", "garbage_collection"},
      {"fragmentation_fraction", "fragmentation_fraction"},
      {"sub_allocator_coalesces", "sub_allocator_coalesces"}}},
    {"ort-bfc",
     "ort-arena",
     {{"arena_extend_strategy", "arena_extend_strategy"},
      {"initial_chunk_size_bytes", "initial_chunk_size_bytes"},
      {"initial_growth_chunk_size_bytes", "initial_growth_chunk_size_bytes"},
      {"max_dead_bytes_per_chunk", "max_dead_bytes_per_chunk"},
      {"max_mem", "max_mem"},
      {"max_power_of_two_extend_bytes", "max_power_of_two_extend_bytes"}}},
    {"cupy", "cupy", {{"limit", "limit"}}},
    {"paddle-auto-growth",
     "paddle-auto-growth",
     {{"chunk_size", "chunk_size"},
      {"alignment", "alignment"},
      {"free_idle_chunk", "free_idle_chunk"},
      {"free_when_no_cache_hit", "free_when_no_cache_hit"},
      {"small_pool_size_in_mb", "small_pool_size_in_mb"},
      {"small_pool_auto_growth_chunk_size_in_mb", "small_pool_auto_growth_chunk_size_in_mb"},
      {"large_pool_auto_growth_chunk_size_in_mb", "large_pool_auto_growth_chunk_size_in_mb"}}},
    {"mxnet-naive",
     "mxnet-naive",
     {{"version", "version"},
      {"page_size", "page_size"},
      {"large_alloc_round_size", "large_alloc_round_size"},
      {"reserve", "reserve"}}},
    {"mxnet-round",
     "mxnet-round",
     {{"version", "version"},
      {"page_size", "page_size"},
      {"round_linear_cutoff", "round_linear_cutoff"},
      {"reserve", "reserve"}}},
    {"tlsf-conte", "tlsf-conte", {{"size", "size"}, {"align", "align"}}},
    {"vma-virtual",
     "tlsf-vma",
     {{"size", "size"}, {"align", "align"}, {"round", "round"}, {"strategy", "strategy"}}},
    {"vma",
     "vma",
     {{"heap_size", "heap_size"},
      {"heap_size_limit", "heap_size_limit"},
      {"preferred_block_size", "preferred_block_size"},
      {"pool_block_size", "pool_block_size"},
      {"min_block_count", "min_block_count"},
      {"max_block_count", "max_block_count"},
      {"strategy", "strategy"},
      {"dedicated", "dedicated"},
      {"align", "align"},
      {"max_memory_allocation_count", "max_memory_allocation_count"},
      {"memory_budget", "memory_budget"},
      {"within_budget", "within_budget"}}},
    {"gmlake",
     "gmlake",
     {{"fragLimit", "fragLimit"},
      {"reuseLimit", "reuseLimit"},
      {"defragLevel", "defragLevel"},
      {"autoGC", "autoGC"}}},
};

static const peer_library *find_library(const char *name)
{
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (strcmp(libraries[i].name, name) == 0)
            return &libraries[i];
    return NULL;
}

/* ---- the head */

typedef struct parameter_scan {
    frag_golden_reader *reader;
    const peer_library *library;
    frag_text *policy;
    uint32_t count;
} parameter_scan;

static const char *option_of(const peer_library *library, const char *name)
{
    for (const peer_parameter *at = library->parameters; at->name != NULL; at++)
        if (strcmp(at->name, name) == 0)
            return at->option;
    return NULL;
}

/* null and -1 stand for the library's default, which is the policy's. Returns whether the value is
 * one that can be written down. */
static bool write_value(frag_text *text, const frag_json_value *value)
{
    uint64_t number = 0;
    double ratio = 0;
    bool flag = false;
    const char *word = NULL;
    if (frag_json_read_number(value, &number))
        frag_text_add(text, "%" PRIu64, number);
    else if (frag_json_read_flag(value, &flag))
        frag_text_add(text, "%s", flag ? "true" : "false");
    else if (frag_json_read_ratio(value, &ratio))
        frag_text_add(text, "%.17g", ratio);
    else if (frag_json_read_text(value, &word) && strpbrk(word, ",=:[]") == NULL)
        frag_text_add(text, "%s", word);
    else
        return false;
    return true;
}

static bool take_parameter(void *context, const char *key, const frag_json_value *value)
{
    parameter_scan *scan = context;
    const char *option = option_of(scan->library, key);
    if (option == NULL)
        return frag_fail_line(scan->reader->error, 1, 0, "%s has no parameter '%.60s' known here",
                              scan->library->name, key);
    int64_t number = 0;
    const char *word = "";
    bool is_upstream = strcmp(key, "upstream") == 0;
    if (!is_upstream &&
        (frag_json_is_null(value) || (frag_json_read_signed(value, &number) && number == -1)))
        return true;
    frag_text_add(scan->policy, "%s%s=", scan->count++ == 0 ? ":" : ",", option);
    /* Binning stands on a pool, or on the device by whatever name. */
    if (is_upstream && (!frag_json_read_text(value, &word) || strcmp(word, "pool") != 0)) {
        frag_text_add(scan->policy, "cuda");
        return true;
    }
    return write_value(scan->policy, value) ||
           frag_fail_line(scan->reader->error, 1, 0,
                          "parameter '%.60s' is neither a number, a flag nor a word", key);
}

static bool read_parameters(frag_golden_reader *reader, const peer_library *library)
{
    frag_text policy = {.bytes = NULL};
    parameter_scan scan = {.reader = reader, .library = library, .policy = &policy};
    const frag_json_value *parameters = frag_json_at(reader->json, "params");
    frag_text_add(&policy, "%s", library->policy);
    reader->error->code = FRAG_E_NONE;
    bool ok = frag_json_each_in(parameters, take_parameter, &scan);
    if (!ok && reader->error->code == FRAG_E_NONE)
        ok = frag_golden_fail_member(reader, "params", "an object");
    if (ok)
        reader->log->policy = frag_golden_keep_text(reader, policy.bytes);
    frag_text_destroy(&policy);
    return ok;
}

static bool read_direction(const frag_golden_reader *reader, const char *word, const char *key,
                           const char *expected, bool *is_down)
{
    *is_down = strcmp(word, "down") == 0;
    return *is_down || strcmp(word, "up") == 0 || frag_golden_fail_member(reader, key, expected);
}

static bool read_device_rules(frag_golden_reader *reader)
{
    frag_golden_log *log = reader->log;
    static const char event_order[] = "params.event_order";
    const char *direction = "";
    const char *order = "up";
    log->capacity_bytes = UINT64_MAX;
    if (!frag_json_is_null(frag_json_at(reader->json, "capacity")) &&
        !frag_golden_read_count(reader, "capacity", BYTES_MAX, &log->capacity_bytes))
        return false;
    if (!frag_golden_read_text(reader, "va", &direction))
        return false;
    log->is_bump = strcmp(direction, "lowest") != 0;
    if ((log->is_bump && !read_direction(reader, direction, "va", "\"up\", \"down\" or \"lowest\"",
                                         &log->is_descending)) ||
        !frag_golden_read_count(reader, "va_base", ADDRESS_MAX, &log->malloc_base) ||
        !frag_golden_read_count(reader, "gran", (uint64_t)1 << 30, &log->page_bytes) ||
        !frag_golden_read_count(reader, "gap", (uint64_t)1 << 40, &log->gap_bytes))
        return false;
    if (log->page_bytes == 0)
        return frag_golden_fail_member(reader, "gran", "1 or more");
    if (log->malloc_base == 0)
        return frag_golden_fail_member(reader, "va_base", "1 or more");
    /* The simulated device looks for the lowest place in its own spaces alone. */
    if (!log->is_bump && log->malloc_base != LOWEST_BASE)
        return frag_golden_fail_member(reader, "va_base",
                                       "123145302310912, as \"va\" is \"lowest\"");
    if (!log->is_bump && log->gap_bytes != 0)
        return frag_golden_fail_member(reader, "gap", "0, as \"va\" is \"lowest\"");
    const frag_json_value *given = frag_json_at_path(reader->json, event_order);
    if (given != NULL && !frag_json_is_null(given) && !frag_json_read_text(given, &order))
        return frag_golden_fail_member(reader, event_order, "\"up\" or \"down\"");
    return read_direction(reader, order, event_order, "\"up\" or \"down\"",
                          &log->are_events_descending);
}

/* ---- device calls */

/* create, release: page, count, result; the others: address, page, count. */
static bool parse_pages(const frag_json_value *entry, frag_golden_call *call)
{
    bool is_placed =
        call->kind != FRAG_GOLDEN_CALL_CREATE && call->kind != FRAG_GOLDEN_CALL_RELEASE;
    size_t at = is_placed ? 2 : 1;
    uint64_t number = 0;
    uint64_t total = 0;
    if (frag_json_count(entry) != 4 ||
        !frag_json_read_number(frag_json_item(entry, is_placed ? 1 : 3), &number) ||
        !frag_json_read_number(frag_json_item(entry, at), &call->bytes) ||
        !frag_json_read_number(frag_json_item(entry, at + 1), &call->count) || call->bytes == 0 ||
        call->count == 0 || !frag_multiply(call->bytes, call->count, &total) || total > BYTES_MAX)
        return false;
    if (is_placed)
        call->address = number;
    else
        call->is_refused = number != 0;
    return number <= ADDRESS_MAX;
}

static bool parse_call(const frag_json_value *entry, frag_golden_call *call)
{
    uint64_t code = 0;
    size_t count = frag_json_count(entry);
    const frag_json_value *first = frag_json_item(entry, 1);
    const frag_json_value *second = frag_json_item(entry, 2);
    call->count = 1;
    switch (call->kind) {
    case FRAG_GOLDEN_CALL_MALLOC:
    case FRAG_GOLDEN_CALL_FREE:
        if (count != 4 || !frag_json_read_number(first, &call->address) ||
            !frag_json_read_number(second, &call->bytes) ||
            !frag_json_read_number(frag_json_item(entry, 3), &code))
            return false;
        call->is_refused = code != 0;
        return call->address <= ADDRESS_MAX && call->bytes <= BYTES_MAX;
    case FRAG_GOLDEN_CALL_RESERVE:
    case FRAG_GOLDEN_CALL_VFREE:
        return count == 3 && frag_json_read_number(first, &call->address) &&
               frag_json_read_number(second, &call->bytes) && call->address <= ADDRESS_MAX &&
               call->bytes <= BYTES_MAX;
    case FRAG_GOLDEN_CALL_CREATE:
    case FRAG_GOLDEN_CALL_RELEASE:
    case FRAG_GOLDEN_CALL_MAP:
    case FRAG_GOLDEN_CALL_UNMAP:
    case FRAG_GOLDEN_CALL_ALIAS:
    case FRAG_GOLDEN_CALL_UNALIAS:
        return parse_pages(entry, call);
    case FRAG_GOLDEN_CALL_WAIT:
        return count == 3 && frag_json_read_number(first, &call->address) &&
               frag_json_read_number(second, &call->bytes);
    case FRAG_GOLDEN_CALL_SYNC:
        return count == 3 && frag_json_read_number(first, &call->address);
    default:
        return count == 1;
    }
}

static int compare_addresses(const void *left, const void *right)
{
    const frag_golden_call *a = left;
    const frag_golden_call *b = right;
    return frag_compare(a->address, b->address);
}

/* If the order in which memory is given back depends on host pointers, it is sorted by address. */
static void sort_frees(frag_golden_log *log, frag_golden_list list)
{
    size_t end = list.first + list.count;
    for (size_t from = list.first; from < end;) {
        size_t to = from;
        while (to < end && log->calls[to].kind == FRAG_GOLDEN_CALL_FREE)
            to++;
        if (to > from)
            qsort(&log->calls[from], to - from, sizeof *log->calls, compare_addresses);
        from = to > from ? to : from + 1;
    }
}

static bool read_calls(frag_golden_reader *reader, frag_golden_list *list)
{
    const frag_json_value *entries = frag_json_at(reader->json, "drv");
    *list = (frag_golden_list){reader->log->call_count, frag_json_count(entries)};
    if (entries != NULL && !frag_json_is_array(entries))
        return frag_golden_fail_member(reader, "drv", "an array of device calls");
    for (size_t i = 0; i < list->count; i++) {
        const frag_json_value *entry = frag_json_item(entries, i);
        const char *name = "";
        frag_json_read_text(frag_json_item(entry, 0), &name);
        uint32_t kind = frag_golden_call_find(name);
        frag_golden_call call = {.kind = (frag_golden_call_kind)kind};
        if (kind == FRAG_GOLDEN_CALL_COUNT || !parse_call(entry, &call))
            return frag_fail_line(reader->error, reader->line, 0,
                                  "entry %zu of \"drv\" is not a known device call; expected "
                                  "malloc, free, reserve, vfree, create, release, map, unmap, "
                                  "alias, unalias, wait, sync or devsync",
                                  i + 1);
        frag_golden_keep_call(reader, &call);
    }
    if (reader->log->is_choice_free)
        sort_frees(reader->log, *list);
    return true;
}

bool frag_golden_peer_read_head(frag_golden_reader *reader)
{
    frag_golden_log *log = reader->log;
    const char *name = NULL;
    const char *version = NULL;
    if (!frag_golden_read_text(reader, "golden", &name) ||
        !frag_golden_read_text(reader, "version", &version))
        return false;
    const peer_library *library = find_library(name);
    if (library == NULL)
        return frag_fail_line(reader->error, 1, 0,
                              "this is a log of '%.40s', for which there is no policy; expected "
                              "one of PyTorch (\"torch\" in the head), rmm-pool, rmm-fixed, "
                              "mxnet-naive, mxnet-round, tlsf-conte, vma-virtual, vma or gmlake",
                              name);
    if (!read_device_rules(reader) || !read_parameters(reader, library) ||
        !read_calls(reader, &log->start_calls))
        return false;
    frag_text title = {.bytes = NULL};
    frag_text_add(&title, "%s %.20s", name, version);
    log->library = frag_golden_keep_text(reader, title.bytes);
    frag_text_destroy(&title);
    log->device_count = 1;
    log->is_choice_free = strcmp(name, "cupy") == 0;
    log->creates_first = strcmp(name, "gmlake") == 0;
    log->has_waits = !log->creates_first;
    return true;
}

/* ---- the other lines */

static bool read_stream(frag_golden_reader *reader, frag_golden_line *line)
{
    uint64_t stream = 0;
    if (!frag_golden_read_count(reader, "stream", STREAMS_MAX, &stream))
        return false;
    line->stream = stream * STREAM_HANDLE_STEP;
    return true;
}

static bool read_alloc(frag_golden_reader *reader, frag_golden_line *line)
{
    bool is_oom = false;
    if (frag_json_at(reader->json, "hang") != NULL &&
        !frag_golden_read_flag(reader, "hang", &line->is_hang))
        return false;
    if (frag_json_at(reader->json, "oom") != NULL && !frag_golden_read_flag(reader, "oom", &is_oom))
        return false;
    /* A request that has no answer is one from which the library did not return. */
    const frag_json_value *address = frag_json_at(reader->json, "addr");
    if (!frag_golden_read_size(reader, &line->bytes))
        return false;
    line->is_hang = line->is_hang || (!is_oom && address == NULL && line->bytes > 0);
    line->is_oom = is_oom || line->is_hang;
    if (!line->is_oom && address != NULL && !frag_json_is_null(address) &&
        !frag_golden_read_count(reader, "addr", ADDRESS_MAX, &line->address))
        return false;
    return read_stream(reader, line) && frag_golden_take_id(reader, line);
}

typedef struct figure_scan {
    frag_golden_reader *reader;
    size_t count;
} figure_scan;

/* Whole numbers are figures; a pool's own statistics lie one level below and have names apart. The
 * flag "hang" says that the library did not return, and that what was counted is no end. */
static bool take_figure(void *context, const char *key, const frag_json_value *value)
{
    figure_scan *scan = context;
    int64_t number = 0;
    bool has_hung = false;
    if (strcmp(key, "hang") == 0 && frag_json_read_flag(value, &has_hung))
        scan->reader->log->has_hung = scan->reader->log->has_hung || has_hung;
    if (frag_json_read_signed(value, &number)) {
        frag_golden_keep_figure(scan->reader, key, number);
        scan->count++;
    }
    return true;
}

static bool read_summary(frag_golden_reader *reader, frag_golden_line *line)
{
    figure_scan scan = {.reader = reader};
    line->op = FRAG_GOLDEN_END;
    line->items.first = reader->log->figure_count;
    if (!frag_json_each_in(frag_json_at(reader->json, "summary"), take_figure, &scan))
        return frag_golden_fail_member(reader, "summary", "an object");
    (void)take_figure(&scan, "hang", frag_json_at(reader->json, "hang"));
    line->items.count = scan.count;
    return true;
}

bool frag_golden_peer_read_line(frag_golden_reader *reader)
{
    frag_golden_line line = {0};
    const char *op = "";
    bool is_request = frag_json_at(reader->json, "op") != NULL;
    if (is_request && reader->log->has_hung)
        return frag_fail_line(reader->error, reader->line, 0,
                              "a request follows one that has no answer; expected \"addr\" or "
                              "\"oom\" there, or the summary here");
    bool ok = read_calls(reader, &line.calls);
    if (!ok)
        return false;
    if (frag_json_at(reader->json, "summary") != NULL) {
        ok = read_summary(reader, &line);
    } else if (!is_request && frag_json_at(reader->json, "hang") != NULL) {
        line.op = FRAG_GOLDEN_ERROR;
    } else if (!frag_golden_read_text(reader, "op", &op)) {
        return false;
    } else if (strcmp(op, "alloc") == 0) {
        line.op = FRAG_GOLDEN_ALLOC;
        ok = read_alloc(reader, &line);
        reader->log->has_hung = line.is_hang;
    } else if (strcmp(op, "free") == 0) {
        line.op = FRAG_GOLDEN_FREE;
        ok = frag_golden_find_id(reader, &line) && read_stream(reader, &line);
    } else if (strcmp(op, "trim") == 0) {
        line.op = FRAG_GOLDEN_EMPTY_CACHE;
    } else if (strcmp(op, "fraction") == 0) {
        line.op = FRAG_GOLDEN_FRACTION;
        ok = frag_golden_read_fraction(reader, &line);
    } else {
        return frag_fail_line(reader->error, reader->line, 0,
                              "op '%.40s' is not known; expected alloc, free, trim or fraction",
                              op);
    }
    if (ok)
        frag_golden_keep_line(reader, &line);
    return ok;
}
