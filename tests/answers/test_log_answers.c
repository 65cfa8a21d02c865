/* What is read of logs and traces of other tools that are drawn at random: device logs, RMM's,
 * STAlloc's, profiler traces, memory timelines, packing problems. Few addresses, so that blocks
 * meet; equal times; numbers on borders. What was changed on purpose is pinned anew:
 *
 *   test_log_answers            compares with tests/data/answers/logs.txt.zst
 *   test_log_answers --write    prints what that file should hold (make answers-golden);
 *                               with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "tests/support/device_log_bytes.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum { LOGS = 5000, GROUP = 125, RECORDS_MAX = 60 };

typedef struct drawing {
    uint64_t bits;
    frag_text text;
    uint64_t places;  /* so many addresses */
    uint64_t strange; /* one value in so many is a strange one */
    uint64_t time;
} drawing;

static uint64_t draw(drawing *of, uint64_t limit)
{
    return xorshift_next(&of->bits) % limit;
}

static bool one_in(drawing *of, uint64_t count)
{
    return draw(of, count) == 0;
}

static uint64_t draw_strange(drawing *of)
{
    static const uint64_t values[] = {0,          1,          2,
                                      255,        256,        UINT16_MAX,
                                      UINT32_MAX, UINT64_MAX, (uint64_t)UINT32_MAX + 1,
                                      4096,       INT64_MAX,  (uint64_t)1 << 56};
    return values[draw(of, sizeof values / sizeof *values)] - one_in(of, 4);
}

static uint64_t draw_address(drawing *of)
{
    if (one_in(of, of->strange))
        return draw_strange(of);
    return ((uint64_t)0x7f00 << 32) + draw(of, of->places) * 1024;
}

static uint64_t draw_size(drawing *of)
{
    static const uint64_t sizes[] = {512, 1024, 1024, 2048, 4096, 1, 2097152};
    if (one_in(of, of->strange))
        return draw_strange(of);
    return sizes[draw(of, sizeof sizes / sizeof *sizes)];
}

static uint64_t draw_time(drawing *of)
{
    of->time += draw(of, 3) * 50;
    return one_in(of, 20) ? of->time - 100 : of->time;
}

/* ---- device logs */

static frag_device_record draw_record(drawing *of)
{
    static const uint8_t calls[] = {
        FRAG_LOG_MALLOC,       FRAG_LOG_FREE,           FRAG_LOG_MALLOC_ASYNC,
        FRAG_LOG_FREE_ASYNC,   FRAG_LOG_RESERVE,        FRAG_LOG_UNRESERVE,
        FRAG_LOG_CREATE,       FRAG_LOG_RELEASE,        FRAG_LOG_MAP,
        FRAG_LOG_UNMAP,        FRAG_LOG_RETAIN,         FRAG_LOG_POOL_CREATE,
        FRAG_LOG_POOL_DESTROY, FRAG_LOG_POOL_TRIM,      FRAG_LOG_POOL_SET,
        FRAG_LOG_MANAGED,      FRAG_LOG_ACTIVITY_ALLOC, FRAG_LOG_ACTIVITY_FREE};
    bool is_frequent = !one_in(of, 3);
    frag_device_record record = {
        .time_ns = 1000 + draw_time(of),
        .address = draw_address(of),
        .bytes = draw_size(of),
        .stream = one_in(of, 2) ? 0 : draw(of, 4),
        .other = draw(of, 5),
        .thread = (uint32_t)draw(of, 3),
        .duration_ns = (uint32_t)draw(of, 200),
        .device = (uint16_t)(one_in(of, 4) ? draw(of, 3) : 0),
        .call = calls[draw(of, is_frequent ? 10 : sizeof calls)],
    };
    if (one_in(of, 60))
        record.call = (uint8_t)draw(of, 26);
    if (one_in(of, 15))
        record.result = (int32_t)draw(of, 4);
    if (one_in(of, 12))
        record.flags = (uint8_t)draw(of, 4);
    if (one_in(of, 40))
        record.device = FRAG_DEVICE_UNKNOWN;
    if (one_in(of, 200))
        record.device = (uint16_t)draw_strange(of);
    if (one_in(of, 50))
        record.number = UINT32_MAX;
    return record;
}

static void change_header(drawing *of, unsigned char *bytes)
{
    frag_device_log_header header;
    memcpy(&header, bytes, sizeof header);
    switch (draw(of, 8)) {
    case 0:
        header.begun_count += draw(of, 4) - 1;
        break;
    case 1:
        header.end_monotonic_ns = 0;
        break;
    case 2:
        header.flags = draw(of, 4);
        break;
    case 3:
        header.recorded_by = (uint32_t)draw(of, 4);
        break;
    case 4:
        header.runtime_version = (uint32_t)(draw(of, 3) * 12085);
        header.driver_version = (uint32_t)(draw(of, 3) * 13001);
        break;
    case 5:
        header.start_unix_ns = draw_strange(of);
        break;
    case 6:
        header.start_monotonic_ns = draw_strange(of);
        break;
    default:
        header.minor = 1;
    }
    memcpy(bytes, &header, sizeof header);
}

static void add_device_log(drawing *of)
{
    frag_device_record records[RECORDS_MAX];
    size_t bytes = 0;
    size_t count = (size_t)draw(of, RECORDS_MAX);
    for (size_t i = 0; i < count; i++)
        records[i] = draw_record(of);
    unsigned char *log = frag_device_log_bytes(records, count, &bytes);
    if (one_in(of, 2))
        change_header(of, log);
    if (one_in(of, 8) && bytes > FRAG_DEVICE_LOG_HEADER_BYTES)
        bytes -= (size_t)draw(of, bytes - FRAG_DEVICE_LOG_HEADER_BYTES);
    frag_text_add_bytes(&of->text, (const char *)log, bytes);
    frag_free(log);
}

/* ---- text */

static void add_rmm_time(drawing *of, const char *between)
{
    uint64_t time = draw_time(of);
    uint64_t second = (86390 + time / 1000) % 86400; /* about midnight */
    if (one_in(of, 90))
        second = (second + draw(of, 86400)) % 86400;
    if (one_in(of, of->strange))
        frag_text_add(&of->text, "%" PRIu64 ".%" PRIu64, draw_strange(of), draw(of, 2000));
    else
        frag_text_add(&of->text, "%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "%s%06" PRIu64,
                      second / 3600, second / 60 % 60, second % 60 + 60 * one_in(of, 900), between,
                      time % 1000000);
}

static void add_rmm_csv(drawing *of)
{
    static const char *const actions[] = {"allocate",         "free",   "allocate", "free",
                                          "allocate failure", "nothing"};
    frag_text_add(&of->text, "Thread,Time,Action,Pointer,Size,Stream\n");
    for (uint64_t i = draw(of, RECORDS_MAX); i-- > 0;) {
        frag_text_add(&of->text, "%" PRIu64 ",", 7 + draw(of, 3));
        add_rmm_time(of, ".");
        frag_text_add(&of->text, ",%s,", actions[draw(of, one_in(of, 300) ? 6 : 4)]);
        if (one_in(of, 400))
            frag_text_add(&of->text, "(nil)");
        else
            frag_text_add(&of->text, "0x%" PRIx64, draw_address(of));
        frag_text_add(&of->text, ",%" PRIu64 ",0x%" PRIx64 "\n", draw_size(of), draw(of, 3));
    }
}

static void add_rmm_log(drawing *of)
{
    for (uint64_t i = draw(of, RECORDS_MAX); i-- > 0;) {
        bool is_alloc = one_in(of, 2);
        frag_text_add(&of->text, "[%6" PRIu64 "][", 24740 + draw(of, 2));
        add_rmm_time(of, ":");
        frag_text_add(&of->text, "][%s] [%s][%stream 0x%" PRIx64 "]",
                      one_in(of, 9) ? "error" : "trace ", is_alloc ? "A" : "D",
                      one_in(of, 9) ? "S" : "s", draw(of, 3));
        if (one_in(of, 9))
            frag_text_add(&of->text, "[Upstream %" PRIu64 "B]%s\n", draw_size(of),
                          one_in(of, 2) ? "[FAILURE max pool size exceeded]" : "");
        else
            frag_text_add(&of->text, "[%" PRIu64 "B][0x%" PRIx64 "]\n", draw_size(of),
                          draw_address(of));
    }
}

static void add_stalloc(drawing *of)
{
    static const char *const words[] = {
        "layer 4 forward start", "end", "micro-batch : F",    "micro-batch : B",
        "Iteration Index : 0",   "",    "Iteration Index : 1"};
    for (uint64_t i = 1 + draw(of, RECORDS_MAX); i-- > 0;)
        if (one_in(of, 9))
            frag_text_add(&of->text, "%s\n", words[draw(of, sizeof words / sizeof *words)]);
        else
            frag_text_add(&of->text,
                          one_in(of, 5) ? "%" PRIu64 " 0x%" PRIx64 " %" PRIu64 " 0x%" PRIx64 "\n"
                                        : "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                          draw(of, 2), draw_address(of), draw_size(of), draw(of, 3));
}

/* Larger numbers are refused in words of the library that reads JSON. */
static uint64_t whole(uint64_t number)
{
    return number & INT64_MAX;
}

static void add_kineto(drawing *of)
{
    bool has_addresses = !one_in(of, 5);
    frag_text_add(&of->text,
                  "{\"schemaVersion\":1,\"baseTimeNanoseconds\":%" PRIu64
                  ",\"traceEvents\":[\n{\"ph\":\"M\"}",
                  one_in(of, 2) ? 0 : whole(draw_strange(of)));
    for (uint64_t i = draw(of, RECORDS_MAX); i-- > 0;) {
        static const uint64_t latest[] = {INT64_MAX / 10, INT64_MAX, INT64_MAX / 1000};
        uint64_t time = draw_time(of);
        uint64_t us = one_in(of, of->strange) ? latest[draw(of, 3)] + draw(of, 5) - 2 : time / 7;
        bool is_oom = one_in(of, 16);
        bool is_free = !(is_oom && !one_in(of, 30)) && one_in(of, 2);
        frag_text_add(&of->text,
                      ",\n{\"ph\":\"i\",\"name\":\"%s\",\"ts\":%" PRIu64 ".%03" PRIu64
                      ",\"args\":{\"Device Type\":%d,\"Device Id\":%" PRIu64
                      ",\"Bytes\":%s%" PRIu64,
                      is_oom ? "[OutOfMemory]" : "[memory]", us, time % 1000, !one_in(of, 9),
                      one_in(of, 5) ? draw(of, 3) : 0, is_free ? "-" : "", whole(draw_size(of)));
        if (has_addresses && !is_oom && !one_in(of, 400))
            frag_text_add(&of->text, ",\"Addr\":%" PRIu64, whole(draw_address(of)));
        if (one_in(of, 2))
            frag_text_add(&of->text, ",\"Total Reserved\":%" PRIu64 ",\"Total Allocated\":%" PRIu64,
                          whole(draw_size(of)), whole(draw_size(of)));
        frag_text_add(&of->text, "}}");
    }
    frag_text_add(&of->text, "]}");
}

static void add_change(drawing *of, uint64_t time, uint64_t action, bool is_less, uint64_t bytes)
{
    if (of->text.length > 1)
        frag_text_add(&of->text, ", ");
    if (time == 0)
        frag_text_add(&of->text, "[-1");
    else
        frag_text_add(&of->text, "[%" PRIu64, time);
    frag_text_add(&of->text, ", %" PRIu64 ", %s%" PRIu64 ", %" PRIu64 "]", action,
                  is_less ? "-" : "", bytes, draw(of, one_in(of, 200) ? 12 : 8));
}

/* 1 was there before, 2 is created, 3 is written to, in two halves, 4 is destroyed. */
static void add_timeline(drawing *of)
{
    uint64_t count = draw(of, RECORDS_MAX);
    frag_text_add(&of->text, "[");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t action = one_in(of, of->strange) ? draw(of, 6) : 1 + draw(of, 4);
        uint64_t bytes = whole(draw_size(of));
        uint64_t time = action == 1 && !one_in(of, 90) ? 0 : 1000 + draw_time(of);
        bool is_less = (action >= 3) != one_in(of, of->strange);
        add_change(of, time, action, is_less, bytes);
        if (action == 3 && !one_in(of, 90))
            add_change(of, time + one_in(of, 90), action, !is_less, bytes + 512 * one_in(of, 90));
    }
    frag_text_add(&of->text, "]");
}

static void add_problem(drawing *of)
{
    static const char *const heads[] = {
        "id,lower,upper,size",           "buffer,start,end,size",
        "id,lower,upper,size,offset",    "id,lower,upper,size,alignment",
        "size,id,upper,lower",           "id,lower,upper,size,gaps",
        "hint,id,lower,upper,size",      "offset,id,lower,upper,size",
        "alignment,id,lower,upper,size", "gaps,id,lower,upper,size"};
    static const char *const first[4][4] = {{"-1", "7", "-2", "x1"},
                                            {"0", "512", "1024", "-1"},
                                            {"1", "512", "8", "0"},
                                            {"", "", "", "1-2"}};
    size_t head = (size_t)draw(of, sizeof heads / sizeof *heads);
    frag_text_add(&of->text, "%s\n", heads[head]);
    for (uint64_t i = 0; i < 1 + of->places; i++) {
        uint64_t lower = draw(of, 9);
        uint64_t upper = lower + draw(of, 9) + !one_in(of, 40);
        uint64_t size = draw_size(of);
        if (head > 5)
            frag_text_add(&of->text, "%s,", first[head - 6][draw(of, one_in(of, 30) ? 4 : 2)]);
        if (head == 4)
            frag_text_add(&of->text, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", size,
                          one_in(of, 60) ? 0 : i, upper, lower);
        else
            frag_text_add(&of->text, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                          one_in(of, 60) ? 0 : i, lower, upper, size);
        if (head == 2)
            frag_text_add(&of->text, ",%" PRIu64, 512 * draw(of, 30));
        if (head == 3)
            frag_text_add(&of->text, ",%" PRIu64, (uint64_t)1 << draw(of, 9));
        if (head == 5 && one_in(of, 60))
            frag_text_add(&of->text, ",%" PRIu64 "-%" PRIu64, lower + draw(of, 3),
                          lower + draw(of, 6));
        else if (head == 5)
            frag_text_add(&of->text, ",");
        if (head != 4)
            frag_text_add(&of->text, "\n");
    }
}

/* ---- ends */

/* Lines may end as on Windows, all or some; a file may end anywhere. */
static void change_ends(drawing *of, bool is_text)
{
    uint64_t what = draw(of, 12);
    frag_text changed = {0};
    if (of->text.length == 0)
        return;
    if (what == 0 || what == 1)
        of->text.length -= what == 0 ? 1 : (size_t)draw(of, of->text.length);
    if (what > 3 || !is_text || what < 2)
        return;
    for (size_t i = 0; i < of->text.length; i++) {
        if (of->text.bytes[i] == '\n' && (what == 2 || one_in(of, 2)))
            frag_text_add_bytes(&changed, "\r", 1);
        frag_text_add_bytes(&changed, &of->text.bytes[i], 1);
    }
    frag_text_destroy(&of->text);
    of->text = changed;
}

/* ---- answers */

typedef void adder(drawing *of);

static const struct {
    const char *name;
    adder *add;
} kinds[] = {
    {"device log", add_device_log}, {"RMM's CSV", add_rmm_csv},     {"RMM's log", add_rmm_log},
    {"STAlloc's log", add_stalloc}, {"profiler trace", add_kineto}, {"timeline", add_timeline},
    {"problem", add_problem},
};

static void tell_log(frag_text *out, size_t kind, uint64_t seed)
{
    drawing of = {.bits = (seed + 1) * 0x9e3779b97f4a7c15u};
    for (int i = 0; i < 4; i++)
        (void)draw(&of, 2);
    of.places = 1 + draw(&of, 12);
    of.strange = one_in(&of, 3) ? 60 : 1000000;
    of.time = 5000 + draw(&of, 6000);
    kinds[kind].add(&of);
    change_ends(&of, kind > 0);
    for (int as_segments = 0; as_segments < 1 + (kind == 0); as_segments++) {
        frag_load_options options = {.with_sites = true, .with_columns = true};
        options.format = as_segments ? FRAG_FORMAT_DEVICE_SEGMENTS : FRAG_FORMAT_AUTO;
        pinned_tell_load(out, of.text.length > 0 ? of.text.bytes : "", of.text.length, &options);
    }
    frag_text_destroy(&of.text);
}

static void tell_all(frag_text *out)
{
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (uint64_t seed = 0; seed < LOGS;) {
            size_t from = out->length;
            for (int i = 0; i < GROUP; i++)
                tell_log(out, kind, seed++);
            pinned_fold(out, from, kinds[kind].name);
        }
}

static const pinned_lines pinned = {"tests/data/answers/logs.txt.zst", tell_all, "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
