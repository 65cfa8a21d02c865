/* Phases of a statistical workload, one after the other. The requests of a mixture are dealt as
 * cards: each class has exactly its share of them, their order is drawn. */
#include "workload/statistical/phases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "workload/statistical/draw.h"
#include "workload/statistical/robson.h"

#define BYTES_MAX ((uint64_t)1 << 40)
#define REQUESTS_MAX FRAG_STATISTICAL_REQUESTS_MAX

static void add_mark(frag_live_set *set, const char *name, uint8_t flags)
{
    uint32_t string = frag_builder_string(set->builder, name, strlen(name));
    frag_builder_add(set->builder,
                     &(frag_build_event){.op = FRAG_OP_MARK, .flags = flags, .slot = string});
}

/* A class for each request of a phase, shuffled. */
static void deal(const frag_request_phase *phase, uint16_t *cards, uint64_t *random)
{
    uint64_t rest = phase->requests, share_sum = 0, dealt = 0, shares = 0;
    for (uint32_t i = 0; i < phase->class_count; i++) {
        rest -= phase->classes[i].count;
        share_sum += phase->classes[i].count > 0 ? 0 : phase->classes[i].share;
    }
    uint64_t by_share = 0;
    for (uint32_t i = 0; i < phase->class_count; i++) {
        uint64_t count = phase->classes[i].count;
        if (count == 0 && share_sum > 0) {
            shares += phase->classes[i].share;
            count = rest * shares / share_sum - by_share;
            by_share += count;
        }
        for (; count > 0; count--)
            cards[dealt++] = (uint16_t)i;
    }
    FRAG_ASSERT(dealt == phase->requests);
    for (uint64_t i = dealt; i > 1; i--) {
        uint64_t other = frag_draw_below(i, random);
        uint16_t card = cards[i - 1];
        cards[i - 1] = cards[other];
        cards[other] = card;
    }
}

static void run_mixture(frag_live_set *set, const frag_request_phase *phase, uint64_t *random)
{
    uint16_t *cards = frag_alloc((size_t)phase->requests, sizeof *cards);
    deal(phase, cards, random);
    for (uint64_t i = 0; i < phase->requests; i++) {
        const frag_request_class *of = &phase->classes[cards[i]];
        uint64_t bytes = frag_draw_next(&of->bytes, BYTES_MAX, random);
        bytes = frag_round_up(bytes > 0 ? bytes : 1, of->multiple);
        uint64_t lifetime = frag_draw_next(&of->lifetime, REQUESTS_MAX, random);
        if (lifetime != FRAG_UNLIMITED)
            lifetime = (uint64_t)((double)lifetime * phase->stretch);
        uint64_t stream = frag_draw_next(&of->stream, UINT16_MAX - 1, random);
        frag_live_set_expire(set);
        if (phase->live.count > 0) {
            uint64_t live_max = frag_draw_at(&phase->live, i, phase->requests);
            frag_live_set_shrink(set, live_max > bytes ? live_max - bytes : 0,
                                 (frag_release)phase->release, random);
        }
        frag_live_set_request(set, bytes, stream, lifetime);
    }
    frag_free(cards);
}

/* Of the phase's live blocks every so many go, and of all of them the share that does not survive,
 * which is chosen as Knuth's algorithm S does (The Art of Computer Programming 2, 3.4.2). */
static void end_phase(frag_live_set *set, const frag_request_phase *phase, uint32_t first,
                      uint64_t *random)
{
    uint64_t left = 0, number = 0;
    frag_live_set_expire(set);
    for (uint32_t at = set->newest; at != FRAG_NO_BLOCK && at >= first; at = set->blocks[at].older)
        left++;
    uint64_t going = left - (uint64_t)(phase->survivors * (double)left);
    for (uint32_t at = first; at < set->block_count && left > 0; at++) {
        if (set->blocks[at].place == FRAG_NO_BLOCK)
            continue;
        bool is_hole = phase->holes > 0 && ++number % phase->holes == 0;
        bool is_going = going > 0 && frag_draw_below(left, random) < going;
        left--;
        going -= is_going;
        if (is_hole || is_going)
            frag_live_set_release(set, at);
    }
}

static void run_phase(frag_live_set *set, const frag_request_phase *phase, uint64_t *random)
{
    uint32_t first = set->block_count;
    if (phase->pattern == FRAG_PATTERN_ROBSON)
        frag_robson_run(set, phase);
    else
        run_mixture(set, phase, random);
    end_phase(set, phase, first, random);
}

static void name_phase(const frag_statistical *description, uint32_t index, uint64_t number,
                       char name[2 * FRAG_NAME_BYTES])
{
    const frag_request_phase *phase = &description->phases[index];
    char plain[FRAG_NAME_BYTES];
    snprintf(plain, sizeof plain, "phase %" PRIu32, index + 1);
    const char *of = phase->name[0] != '\0' ? phase->name : plain;
    if (phase->repeat * description->rounds > 1)
        snprintf(name, 2 * FRAG_NAME_BYTES, "%s %" PRIu64, of, number);
    else
        snprintf(name, 2 * FRAG_NAME_BYTES, "%s", of);
}

static void run_all(const frag_statistical *description, frag_live_set *set)
{
    uint64_t random = description->seed;
    for (uint64_t round = 0; round < description->rounds; round++)
        for (uint32_t i = 0; i < description->phase_count; i++) {
            const frag_request_phase *phase = &description->phases[i];
            for (uint64_t repeat = 0; repeat < phase->repeat; repeat++) {
                char name[2 * FRAG_NAME_BYTES];
                name_phase(description, i, round * phase->repeat + repeat + 1, name);
                add_mark(set, name, FRAG_EVENT_BEGIN);
                run_phase(set, phase, &random);
                add_mark(set, name, FRAG_EVENT_END);
            }
        }
}

bool frag_statistical_generate(const frag_statistical *description, const char *name,
                               frag_recording *recording, frag_error *error)
{
    frag_builder *builder = frag_builder_create(recording);
    frag_builder_metadata(builder, "generated", "statistical");
    frag_builder_device(builder, 0);
    frag_live_set set;
    uint64_t requests = frag_statistical_requests(description);
    FRAG_ASSERT(requests <= FRAG_STATISTICAL_REQUESTS_MAX);
    frag_live_set_begin(&set, builder, requests);
    run_all(description, &set);
    frag_live_set_end(&set);
    return frag_builder_finish(builder, name, error);
}
