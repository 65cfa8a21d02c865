/* Tests of what a snapshot says in another order, and beside its history: the order of the keys of
 * an entry means nothing, annotations count by their times, pinned memory is told, a history of a
 * round number of entries may be cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text_stream.h"
#include "tests/support/text_recording.h"
#include "traces/pickle/pickle_write.h"

enum { KEYS = 5 };

/* Which order of the keys an entry has: they begin with another one, or behind the first the others
 * stand turned round. */
typedef unsigned key_order(unsigned entry, unsigned place);

static unsigned plain(unsigned entry, unsigned place)
{
    (void)entry;
    return place;
}

static unsigned turned(unsigned entry, unsigned place)
{
    return (entry / 3 + place) % KEYS;
}

static unsigned behind_first(unsigned entry, unsigned place)
{
    return entry % 4 < 2 || place == 0 ? place : KEYS - place;
}

/* Entries that lack one of the two keys which an entry may lack. */
static unsigned without_stream(unsigned entry, unsigned place)
{
    (void)entry;
    return place == 3 ? KEYS : place;
}

static unsigned without_time(unsigned entry, unsigned place)
{
    (void)entry;
    return place == 4 ? KEYS : place;
}

static void put_entry(frag_pickle_writer *pickle, unsigned number, key_order *order)
{
    static const char *const keys[KEYS] = {"action", "addr", "size", "stream", "time_us"};
    static const char *const actions[] = {"segment_alloc", "alloc", "free_requested",
                                          "free_completed"};
    unsigned action = number == 0 ? 0 : 1 + (number - 1) % 3;
    unsigned round = number == 0 ? 0 : (number - 1) / 3;
    const uint64_t values[KEYS] = {0, 0x7f0000000000, number == 0 ? 2097152 : 512 * (round % 9 + 1),
                                   0, 1000 + number};
    frag_pickle_dict_begin(pickle);
    for (unsigned place = 0; place < KEYS; place++) {
        unsigned key = order(number, place);
        if (key == KEYS)
            continue;
        frag_pickle_put_text(pickle, keys[key]);
        if (key == 0)
            frag_pickle_put_text(pickle, actions[action]);
        else
            frag_pickle_put_unsigned(pickle, values[key]);
    }
    frag_pickle_dict_end(pickle);
}

static void put_number(frag_pickle_writer *pickle, const char *key, uint64_t value)
{
    frag_pickle_put_text(pickle, key);
    frag_pickle_put_unsigned(pickle, value);
}

static void put_segment(frag_pickle_writer *pickle)
{
    frag_pickle_dict_begin(pickle);
    put_number(pickle, "device", 0);
    put_number(pickle, "address", 0x7f0000000000);
    put_number(pickle, "total_size", 2097152);
    put_number(pickle, "stream", 0);
    frag_pickle_put_text(pickle, "segment_type");
    frag_pickle_put_text(pickle, "small");
    frag_pickle_put_text(pickle, "blocks");
    frag_pickle_list_begin(pickle);
    frag_pickle_list_item(pickle);
    frag_pickle_dict_begin(pickle);
    put_number(pickle, "address", 0x7f0000000000);
    put_number(pickle, "size", 2097152);
    put_number(pickle, "requested_size", 0);
    frag_pickle_put_text(pickle, "state");
    frag_pickle_put_text(pickle, "inactive");
    frag_pickle_dict_end(pickle);
    frag_pickle_list_end(pickle);
    frag_pickle_dict_end(pickle);
}

/* At these times, in this order of the file. */
static void put_annotations(frag_pickle_writer *pickle, const unsigned *times, unsigned count)
{
    frag_pickle_put_text(pickle, "external_annotations");
    frag_pickle_list_begin(pickle);
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "mark %u", times[i]);
        frag_pickle_list_item(pickle);
        frag_pickle_dict_begin(pickle);
        put_number(pickle, "device", 0);
        put_number(pickle, "time_us", times[i]);
        frag_pickle_put_text(pickle, "name");
        frag_pickle_put_text(pickle, name);
        frag_pickle_put_text(pickle, "stage");
        frag_pickle_put_text(pickle, "START");
        frag_pickle_dict_end(pickle);
    }
    frag_pickle_list_end(pickle);
}

/* Two lists of entries, one for each device. */
static void put_host(frag_pickle_writer *pickle, unsigned count)
{
    frag_pickle_put_text(pickle, "host_traces");
    frag_pickle_list_begin(pickle);
    for (unsigned device = 0; device < 2; device++) {
        frag_pickle_list_item(pickle);
        frag_pickle_list_begin(pickle);
        for (unsigned i = 0; i < count; i++) {
            frag_pickle_list_item(pickle);
            put_entry(pickle, i, plain);
        }
        frag_pickle_list_end(pickle);
    }
    frag_pickle_list_end(pickle);
}

typedef struct made {
    key_order *order;
    unsigned entry_count;
    const unsigned *times; /* of annotations */
    unsigned time_count;
    unsigned host_count;
} made;

static void load(const made *of, frag_recording *recording, frag_findings *findings)
{
    frag_text_stream *stream = frag_text_stream_open();
    frag_pickle_writer pickle;
    frag_error error = {0};
    frag_pickle_writer_begin(&pickle, frag_text_stream_file(stream));
    frag_pickle_dict_begin(&pickle);
    frag_pickle_put_text(&pickle, "device_traces");
    frag_pickle_list_begin(&pickle);
    frag_pickle_list_item(&pickle);
    frag_pickle_list_begin(&pickle);
    for (unsigned i = 0; i < of->entry_count; i++) {
        frag_pickle_list_item(&pickle);
        put_entry(&pickle, i, of->order);
    }
    frag_pickle_list_end(&pickle);
    frag_pickle_list_end(&pickle);
    frag_pickle_put_text(&pickle, "segments");
    frag_pickle_list_begin(&pickle);
    frag_pickle_list_item(&pickle);
    put_segment(&pickle);
    frag_pickle_list_end(&pickle);
    if (of->time_count > 0)
        put_annotations(&pickle, of->times, of->time_count);
    if (of->host_count > 0)
        put_host(&pickle, of->host_count);
    frag_pickle_dict_end(&pickle);
    frag_pickle_writer_end(&pickle);
    size_t count = 0;
    char *bytes = frag_text_stream_close(stream, &count);
    if (!frag_test_load(bytes, count, FRAG_FORMAT_SNAPSHOT, recording, findings, &error))
        fail_msg("%s", error.sentence);
    frag_free(bytes);
}

static void neither_order_nor_lack_of_keys_matters(void **state)
{
    (void)state;
    key_order *const orders[] = {plain, turned, behind_first, without_stream, without_time};
    char digest[FRAG_DIGEST_TEXT_BYTES] = "";
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const made of = {.order = orders[i], .entry_count = 61};
        frag_recording recording;
        frag_findings findings;
        load(&of, &recording, &findings);
        assert_int_equal(recording.traces[0].stats.request_count, 20);
        assert_int_equal(findings.count, 0);
        const uint64_t *times = recording.traces[0].times_ns;
        assert_true(orders[i] == without_time ? times == NULL || times[0] == 0
                                              : times[0] == 1000000);
        if (i == 0)
            memcpy(digest, recording.traces[0].digest, sizeof digest);
        if (orders[i] != without_stream && orders[i] != without_time)
            assert_string_equal(recording.traces[0].digest, digest);
        assert_int_equal(recording.traces[0].event_count, 61 - 20);
        assert_int_equal(recording.traces[0].stats.requested_bytes_total, 512 * (2 * 45 + 1 + 2));
        frag_recording_destroy(&recording);
    }
}

static void annotations_count_by_their_times(void **state)
{
    (void)state;
    const unsigned times[] = {1007, 1001, 1013, 1004, 1004};
    const made of = {.order = plain, .entry_count = 19, .times = times, .time_count = 5};
    frag_recording recording;
    frag_findings findings;
    frag_text names = {0};
    load(&of, &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_MARK)
            frag_text_add(&names, "%s;",
                          frag_strings_get(&recording.strings, trace->events[i].slot));
    assert_string_equal(names.bytes, "mark 1001;mark 1004;mark 1004;mark 1007;mark 1013;");
    frag_text_destroy(&names);
    frag_recording_destroy(&recording);
}

static void pinned_memory_and_round_histories_are_told(void **state)
{
    (void)state;
    static const struct {
        unsigned entries;
        unsigned host;
        bool is_round;
    } cases[] = {{1000, 0, true}, {1001, 3, false}, {2000, 1, true}, {1010, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const made of = {
            .order = plain, .entry_count = cases[i].entries, .host_count = cases[i].host};
        frag_recording recording;
        frag_findings findings;
        load(&of, &recording, &findings);
        assert_int_equal(frag_test_found(&findings, "history-may-be-cut"), cases[i].is_round);
        assert_int_equal(frag_test_found(&findings, "host-memory"), cases[i].host > 0);
        for (uint32_t f = 0; f < findings.count; f++)
            if (strcmp(findings.items[f].kind, "host-memory") == 0) {
                char expected[32];
                snprintf(expected, sizeof expected, "%u entries", 2 * cases[i].host);
                assert_non_null(strstr(findings.items[f].first, expected));
            }
        frag_recording_destroy(&recording);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neither_order_nor_lack_of_keys_matters),
        cmocka_unit_test(annotations_count_by_their_times),
        cmocka_unit_test(pinned_memory_and_round_histories_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
