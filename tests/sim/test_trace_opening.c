/* Tests of trace_opening.c: what has a say at an event, against books that are kept page by page
 * and slot by slot. */
#include "sim/trace/trace_opening.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/xorshift.h"
#include "traces/builder.h"

enum { PAGES = 48, PAGE = 4096, SLOTS = 6, EVENTS = 300, TRACES = 40 };
#define NOBODY UINT64_MAX

/* The events that a page and a slot have from; NOBODY: none. */
typedef struct books {
    uint64_t pages[PAGES];
    bool is_mapped[PAGES];
    uint64_t allocs[SLOTS];
    uint64_t waits[SLOTS]; /* the deferred free */
    uint64_t limit;        /* the last */
} books;

static void begin(books *now)
{
    memset(now, 0xff, sizeof *now);
    memset(now->is_mapped, 0, sizeof now->is_mapped);
}

static frag_build_event of_pages(frag_op op, uint32_t first, uint32_t count)
{
    return (frag_build_event){
        .op = op, .address = (uint64_t)(1000 + first) * PAGE, .bytes = (uint64_t)count * PAGE};
}

/* Memory that nobody holds is got, mapped memory is given back in any pieces, other memory as it
 * was got. */
static void draw_pages(books *now, uint64_t event, uint64_t *bits, frag_build_event *build)
{
    uint32_t first = (uint32_t)(xorshift_next(bits) % PAGES);
    uint32_t most = PAGES - first < 8 ? PAGES - first : 8;
    uint32_t count = 1 + (uint32_t)(xorshift_next(bits) % most);
    bool is_mapped = xorshift_next(bits) % 4 != 0;
    if (now->pages[first] == NOBODY) {
        for (uint32_t i = first; i < first + count; i++)
            if (now->pages[i] != NOBODY)
                count = i - first;
        for (uint32_t i = first; i < first + count; i++) {
            now->pages[i] = event;
            now->is_mapped[i] = is_mapped;
        }
        *build = of_pages(is_mapped ? FRAG_OP_SEGMENT_MAP : FRAG_OP_SEGMENT_ALLOC, first, count);
        return;
    }
    if (!now->is_mapped[first]) {
        uint64_t got = now->pages[first];
        while (first > 0 && now->pages[first - 1] == got)
            first--;
        for (count = 0; first + count < PAGES && now->pages[first + count] == got; count++)
            now->pages[first + count] = NOBODY;
        *build = of_pages(FRAG_OP_SEGMENT_FREE, first, count);
        return;
    }
    *build = of_pages(FRAG_OP_SEGMENT_UNMAP, first, count);
    for (uint32_t i = first; i < first + count; i++)
        if (now->is_mapped[i])
            now->pages[i] = NOBODY;
}

static void draw_slot(books *now, uint64_t event, uint64_t *bits, frag_build_event *build)
{
    uint32_t slot = (uint32_t)(xorshift_next(bits) % SLOTS);
    build->slot = slot;
    if (now->allocs[slot] == NOBODY) {
        build->op = FRAG_OP_ALLOC;
        build->bytes = 1 + xorshift_next(bits) % 1000;
        now->allocs[slot] = event;
    } else if (now->waits[slot] != NOBODY) {
        build->op = FRAG_OP_COMPLETE;
        now->allocs[slot] = now->waits[slot] = NOBODY;
    } else {
        bool is_deferred = xorshift_next(bits) % 2 == 0;
        build->op = FRAG_OP_FREE;
        build->flags = is_deferred ? FRAG_EVENT_DEFERRED : 0;
        now->waits[slot] = is_deferred ? event : NOBODY;
        now->allocs[slot] = is_deferred ? now->allocs[slot] : NOBODY;
    }
}

static void draw(books *now, uint64_t event, uint64_t *bits, frag_build_event *build)
{
    uint64_t kind = xorshift_next(bits) % 20;
    *build = (frag_build_event){.op = FRAG_OP_MARK};
    if (kind < 10) {
        draw_pages(now, event, bits, build);
    } else if (kind < 18) {
        draw_slot(now, event, bits, build);
    } else {
        build->op = FRAG_OP_LIMIT;
        build->bytes = 1;
        now->limit = event;
    }
}

static void assert_held(const frag_opening *opening, const books *now)
{
    books seen;
    size_t count = 0;
    const frag_held_range *held = frag_opening_held(opening, &count);
    begin(&seen);
    for (size_t i = 0; i < count; i++) {
        assert_true(held[i].bytes > 0);
        for (uint64_t at = held[i].address; at < held[i].address + held[i].bytes; at += PAGE) {
            uint64_t page = at / PAGE - 1000;
            assert_true(page < PAGES && seen.pages[page] == NOBODY);
            seen.pages[page] = held[i].event;
            assert_int_equal(held[i].is_mapped, now->is_mapped[page]);
        }
    }
    assert_memory_equal(seen.pages, now->pages, sizeof seen.pages);
}

static void assert_blocks(const frag_opening *opening, const books *now, uint32_t slot_count)
{
    const frag_open_block *blocks = frag_opening_blocks(opening);
    for (uint32_t slot = 0; slot < slot_count; slot++) {
        bool is_waiting = now->waits[slot] != NOBODY;
        assert_int_equal(blocks[slot].is_waiting, is_waiting);
        assert_int_equal(blocks[slot].is_live, !is_waiting && now->allocs[slot] != NOBODY);
        if (now->allocs[slot] != NOBODY)
            assert_int_equal(blocks[slot].alloc_event, now->allocs[slot]);
        if (is_waiting)
            assert_int_equal(blocks[slot].free_event, now->waits[slot]);
    }
}

/* Each event that has a say is listed, and no other, in ascending order. */
static void assert_listed(frag_opening *opening, const books *now)
{
    size_t count = 0;
    size_t held_count = 0;
    size_t wanted = now->limit != NOBODY ? 1 : 0;
    frag_open_event *events = frag_opening_list(opening, &count);
    (void)frag_opening_held(opening, &held_count);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        wanted += (now->allocs[slot] != NOBODY ? 1u : 0u) + (now->waits[slot] != NOBODY ? 1u : 0u);
    assert_int_equal(count, wanted + held_count);
    for (size_t i = 1; i < count; i++)
        assert_true(
            events[i].event > events[i - 1].event ||
            (events[i].event == events[i - 1].event && events[i].address > events[i - 1].address));
    frag_free(events);
    const uint64_t *in_force = frag_opening_in_force(opening, &count);
    assert_int_equal(count, now->limit != NOBODY ? 1 : 0);
    if (count > 0)
        assert_int_equal(in_force[0], now->limit);
}

static void what_has_a_say_is_what_the_books_say(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        static books after[EVENTS + 1];
        uint64_t bits = seed * 0x9e3779b97f4a7c15u;
        frag_recording recording = {0};
        frag_error error = {0};
        frag_builder *builder = frag_builder_create(&recording);
        begin(&after[0]);
        for (uint32_t i = 0; i < SLOTS; i++)
            frag_builder_slot_take(builder);
        for (uint64_t event = 0; event < EVENTS; event++) {
            frag_build_event build;
            after[event + 1] = after[event];
            draw(&after[event + 1], event, &bits, &build);
            frag_builder_add(builder, &build);
        }
        if (!frag_builder_finish(builder, "made", &error))
            fail_msg("%s", error.sentence);
        const frag_trace *trace = &recording.traces[0];
        assert_int_equal(trace->event_count, EVENTS);
        frag_opening *opening = frag_opening_create(trace);
        for (uint64_t event = 0; event <= EVENTS; event += 1 + xorshift_next(&bits) % 3) {
            frag_opening_follow_to(opening, event);
            assert_held(opening, &after[event]);
            assert_blocks(opening, &after[event], trace->slot_count);
            assert_listed(opening, &after[event]);
        }
        frag_opening_destroy(opening);
        frag_recording_destroy(&recording);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_has_a_say_is_what_the_books_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
