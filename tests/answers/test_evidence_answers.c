/* What recordings show of the settings that they were made with: of events that are drawn at
 * random, with sizes that are limits of the policy or beside them, blocks side by side, segments
 * that begin and end there. What was changed on purpose is pinned anew:
 *
 *   test_evidence_answers            compares with tests/data/answers/evidence.txt.zst
 *   test_evidence_answers --write    prints what that file should hold (make answers-golden);
 *                                    with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "studies/verify/verify_evidence.h"
#include "studies/verify/verify_rounding.h"
#include "studies/verify/verify_supposed.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum { TRACES = 40000, GROUP = 1000, EVENTS_MAX = 70, BLOCKS = 24, PLACES = 40 };

typedef struct history {
    uint64_t bits;
    frag_text text;
    uint64_t next; /* address behind the last block */
    uint64_t unit; /* of sizes */
    bool is_live[BLOCKS];
} history;

static uint64_t draw(history *of, uint64_t limit)
{
    return xorshift_next(&of->bits) % limit;
}

static bool one_in(history *of, uint64_t count)
{
    return draw(of, count) == 0;
}

static uint64_t draw_size(history *of)
{
    static const uint64_t limits[] = {512,           FRAG_MIB / 2,  FRAG_MIB,
                                      2 * FRAG_MIB,  10 * FRAG_MIB, 20 * FRAG_MIB,
                                      40 * FRAG_MIB, 64 * FRAG_MIB, 512 * FRAG_MIB};
    uint64_t bytes = limits[draw(of, sizeof limits / sizeof *limits)];
    switch (draw(of, 6)) {
    case 0:
        return bytes + 512;
    case 1:
        return bytes > 512 ? bytes - 512 : bytes;
    case 2:
        return bytes + bytes / 8 * draw(of, 8);
    case 3:
        return bytes + of->unit * draw(of, 6);
    case 4:
        return bytes + 1 + draw(of, 600);
    default:
        return bytes;
    }
}

/* Mostly as one of the divisions rounds it, or as it is. */
static uint64_t round_size(history *of, uint64_t bytes)
{
    uint64_t way = one_in(of, 12) ? 0 : of->unit / 512 % 8;
    uint64_t power = 512;
    while (2 * power <= bytes)
        power *= 2;
    uint64_t step = way < 2 || power >> (way - 1) < 512 ? 512 : power >> (way - 1);
    return way == 1 ? bytes : (bytes + step - 1) / step * step;
}

static uint64_t draw_address(history *of)
{
    return ((uint64_t)0x7f00 << 32) + draw(of, PLACES) * 2 * FRAG_MIB * (1 + of->unit % 3);
}

static void add_alloc(history *of, uint64_t block)
{
    uint64_t bytes = draw_size(of);
    bool is_taken = one_in(of, 4);
    uint64_t address = one_in(of, 4) || is_taken ? draw_address(of) : of->next;
    uint64_t rounded = round_size(of, bytes);
    if (is_taken) {
        uint64_t segment = bytes <= FRAG_MIB       ? 2 * FRAG_MIB
                           : bytes < 10 * FRAG_MIB ? 20 * FRAG_MIB
                                                   : (rounded / FRAG_MIB + 2) / 2 * 2 * FRAG_MIB;
        frag_text_add(&of->text, "segment_%s %" PRIu64 " addr=0x%" PRIx64 "\n",
                      one_in(of, 4) ? "map" : "alloc", one_in(of, 3) ? draw_size(of) : segment,
                      one_in(of, 8) ? draw_address(of) : address);
    }
    frag_text_add(&of->text, "alloc %" PRIu64 " %" PRIu64, block, bytes);
    if (!one_in(of, 30))
        frag_text_add(&of->text, " addr=0x%" PRIx64, address);
    frag_text_add(&of->text, "\n");
    of->next = address + rounded;
}

static void add_event(history *of)
{
    uint64_t block = draw(of, BLOCKS);
    switch (draw(of, 16)) {
    case 0:
        frag_text_add(&of->text, "empty_cache%s\n", one_in(of, 3) ? "" : " inferred");
        break;
    case 1:
    case 2:
        frag_text_add(&of->text, "segment_free %" PRIu64 " addr=0x%" PRIx64 "\n", draw_size(of),
                      draw_address(of));
        break;
    case 3:
        frag_text_add(&of->text, "segment_%s %" PRIu64 " addr=0x%" PRIx64 "\n",
                      one_in(of, 2) ? "map" : "unmap", draw_size(of), draw_address(of));
        break;
    case 4:
        frag_text_add(&of->text, "segment_alloc %" PRIu64 " addr=0x%" PRIx64 "\n", draw_size(of),
                      draw_address(of));
        break;
    case 5:
        if (one_in(of, 2))
            frag_text_add(&of->text, "oom %" PRIu64 " free=%" PRIu64 "\n", draw_size(of),
                          draw(of, 3) * draw_size(of));
        else if (one_in(of, 2))
            frag_text_add(&of->text, "limit 0.%" PRIu64 " ratio\n", 1 + draw(of, 9));
        break;
    default:
        if (of->is_live[block])
            frag_text_add(&of->text, "free %" PRIu64 "\n", block);
        else
            add_alloc(of, block);
        of->is_live[block] = !of->is_live[block];
    }
}

/* ---- what is concluded */

static void tell_rounding(frag_text *out, const frag_trace *trace)
{
    frag_rounding rounding;
    char text[FRAG_ROUNDING_TEXT_BYTES];
    frag_rounding_read(trace, &rounding);
    for (int i = 0; i < FRAG_ROUNDING_OCTAVES; i++)
        frag_text_add(out, "%" PRIu32 ":%" PRIx32 " ", rounding.ways[i], rounding.possible[i]);
    frag_rounding_text(&rounding, text);
    frag_text_add(out, "%d '%s'\n", frag_rounding_is_old(&rounding), text);
}

static void tell_supposed(frag_text *out, const frag_trace *trace)
{
    for (int is_large_only = 0; is_large_only < 2; is_large_only++) {
        frag_trace copy;
        uint64_t sum = 0;
        uint64_t count = frag_supposed_leave_out(trace, is_large_only != 0, &copy);
        for (uint64_t i = 0; i < copy.event_count; i++)
            pinned_add(&sum, copy.events[i].op);
        frag_text_add(out, "%" PRIu64 " left out, %" PRIx64 "\n", count, sum);
        frag_supposed_destroy(&copy);
    }
}

static void tell_trace(frag_text *out, const frag_trace *trace)
{
    uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX];
    bool is_on = false;
    uint32_t count = frag_evidence_segment_sizes(trace, sizes);
    for (uint32_t i = 0; i < count; i++)
        frag_text_add(out, "%" PRIu64 " ", sizes[i]);
    frag_text_add(out, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %.9g", frag_evidence_capacity(trace),
                  frag_evidence_range_distance(trace), frag_evidence_unit(trace),
                  frag_evidence_limit_ratio(trace));
    uint64_t changed = frag_evidence_switch(trace, &is_on);
    frag_text_add(out, " %" PRIu64 " %d\n", changed, changed != 0 && is_on);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        uint64_t held = 0;
        bool collects = frag_evidence_collects(trace, i, &held);
        if (collects)
            frag_text_add(out, "%" PRIu64 ":%" PRIx64 " ", i, held);
    }
    frag_text_add(out, "\n");
    tell_rounding(out, trace);
    tell_supposed(out, trace);
}

static void tell_drawn(frag_text *out, uint64_t seed)
{
    history of = {.bits = (seed + 1) * 0x9e3779b97f4a7c15u};
    frag_recording recording;
    frag_findings findings;
    for (int i = 0; i < 4; i++)
        (void)draw(&of, 2);
    of.unit = 512 * (1 + draw(&of, 4096));
    of.next = draw_address(&of);
    uint64_t events = 2 + draw(&of, EVENTS_MAX);
    frag_text_add(&of.text, "# fraglab trace 2\n");
    for (uint64_t i = 0; i < events; i++)
        add_event(&of);
    if (one_in(&of, 8))
        frag_text_add(&of.text, "config \"max_split_size_mb:32\"\n");
    for (uint64_t i = 0; i < 6; i++)
        add_event(&of);
    frag_test_load_well(of.text.bytes, &recording, &findings);
    if (recording.trace_count > 0)
        tell_trace(out, &recording.traces[0]);
    frag_recording_destroy(&recording);
    frag_text_destroy(&of.text);
}

static void tell_all(frag_text *out)
{
    for (uint64_t seed = 0; seed < TRACES;) {
        size_t from = out->length;
        for (int i = 0; i < GROUP; i++)
            tell_drawn(out, seed++);
        pinned_fold(out, from, "traces");
    }
}

static const pinned_lines pinned = {"tests/data/answers/evidence.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
