/* What comes of runs with all that a device can be: calls that take time, mallocs that take what
 * the driver of a card gives them, each rule of addresses, state taken over from before, steps that
 * repeat; of the least capacities; and the room that each policy asks for. What has to be so
 * whatever the answers are is checked on the way. What was changed on purpose is pinned anew:
 *
 *   test_run_answers            compares with tests/data/answers/runs.txt.zst
 *   test_run_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/device/device_description.h"
#include "sim/device/echo_device.h"
#include "sim/replay/lifetimes.h"
#include "sim/replay/timeline.h"
#include "sim/run.h"
#include "sim/trace/demand.h"
#include "sim/trace/repeats.h"
#include "sim/trace/trace_figures.h"
#include "sim/trace/trace_opening.h"
#include "tests/support/made_snapshot.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"
#include "traces/cut.h"

enum {
    ROOMS = 200,
    TRACES = 90,
    PIECES = 60,
    LOOPS = 90,
    LONG_LOOPS = 12,
    LONG_EVENTS = 3500, /* from where on it is looked for what repeats */
    EVENTS_MAX = 400,
    PLANNED_EVENTS_MAX = 200, /* plans of longer ones take long, but of what repeats */
    CHECK_EVERY = 16
};

/* What cannot be is no answer: it fails whatever is pinned. */
static unsigned wrong_count;

static void expect(bool is_so, const char *what, const policy_case *of)
{
    if (is_so)
        return;
    fprintf(stderr, "%s: %s on %" PRIu64 "/%" PRIu64 "\n", what, of->policy, of->capacity_bytes,
            of->page_bytes);
    wrong_count++;
}

static uint64_t draw(uint64_t *bits, uint64_t limit)
{
    return xorshift_next(bits) % limit;
}

/* ---- rooms */

/* Any number of so many bits or fewer, all lengths alike. */
static uint64_t draw_bits(uint64_t *bits, unsigned count)
{
    uint64_t unused = 64 - count + draw(bits, count);
    return xorshift_next(bits) >> unused;
}

static frag_policy_limits draw_limits(uint64_t *bits)
{
    frag_policy_limits limits;
    limits.request_count = 1 + draw_bits(bits, 40);
    limits.live_count_max = 1 + (uint32_t)draw_bits(bits, 31);
    limits.stream_count = 1 + (uint32_t)draw_bits(bits, 6);
    limits.pool_count = 1 + (uint32_t)draw_bits(bits, 6);
    limits.requested_bytes_total = draw_bits(bits, 44);
    limits.peak_requested_bytes = draw_bits(bits, 40);
    limits.initial_segment_count = (uint32_t)draw_bits(bits, 10);
    limits.use_count = draw_bits(bits, 14);
    return limits;
}

static void tell_rooms(frag_text *out)
{
    const frag_trace trace = {.stats.peak_requested_bytes = FRAG_GIB};
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15u;
        uint64_t sum = 0;
        for (int k = 0; k < ROOMS; k++) {
            policy_case what = policy_case_draw(ops, &trace, &bits);
            const frag_policy_limits limits = draw_limits(&bits);
            frag_policy_spec spec;
            frag_error error = {0};
            if (frag_policy_spec_parse(what.policy, &spec, &error)) {
                pinned_add(&sum, ops->arena_bytes(&limits, spec.values));
                frag_policy_spec_destroy(&spec);
            }
            free(what.policy);
        }
        frag_text_add(out, "room of %s: %08" PRIx32 "\n", ops->name, (uint32_t)(sum >> 32));
    }
}

/* ---- runs */

typedef struct told_case {
    policy_case what;
    frag_policy_spec spec;
    frag_device_spec device;
    const frag_recording *recording;
    const frag_trace *trace;
    const frag_repeats *repeats;
    frag_timeline *timeline;
} told_case;

static void add_level(uint64_t *sum, const frag_level *level)
{
    pinned_add(sum, level->requested_bytes);
    pinned_add(sum, level->allocated_bytes);
    pinned_add(sum, level->active_bytes);
    pinned_add(sum, level->reserved_bytes);
}

static void add_oom(uint64_t *sum, const frag_oom *oom)
{
    pinned_add(sum, oom->has_happened);
    pinned_add(sum, oom->event);
    pinned_add(sum, oom->requested_bytes);
    pinned_add(sum, oom->segment_bytes);
    pinned_add(sum, oom->free_bytes);
    pinned_add(sum, oom->largest_hole_bytes);
    pinned_add(sum, oom->total_hole_bytes);
    pinned_add(sum, oom->hole_count);
    add_level(sum, &oom->level);
    pinned_add_text(sum, oom->message);
}

static void add_replay(uint64_t *sum, const frag_replay_result *result)
{
    add_level(sum, &result->peak);
    add_level(sum, &result->final);
    add_level(sum, &result->at_reserved_peak);
    pinned_add(sum, result->peak_requested_event);
    pinned_add(sum, result->reserved_at_event);
    pinned_add(sum, result->events);
    pinned_add(sum, result->requests);
    pinned_add(sum, result->failed_requests);
    add_oom(sum, &result->oom);
    pinned_add(sum, result->requested_sum.low);
    pinned_add(sum, result->allocated_sum.low);
    pinned_add(sum, result->reserved_sum.low);
    pinned_add(sum, (uint64_t)(result->external_ratio_max * 1e6));
    pinned_add(sum, result->initial);
    pinned_add(sum, result->ignored_events);
}

static void add_decomposition(uint64_t *sum, const frag_decomposition *parts)
{
    pinned_add(sum, parts->requested_bytes);
    pinned_add(sum, parts->rounding_bytes);
    pinned_add(sum, parts->unsplit_bytes);
    pinned_add(sum, parts->holes_bytes);
    pinned_add(sum, parts->cached_bytes);
    pinned_add(sum, parts->waiting_bytes);
    pinned_add(sum, parts->page_slack_bytes);
    pinned_add(sum, parts->reserved_bytes);
    pinned_add(sum, parts->largest_hole_bytes);
    pinned_add(sum, parts->hole_count);
    pinned_add(sum, parts->segment_count);
}

static uint64_t sum_of_run(const frag_run_result *result)
{
    uint64_t sum = 0;
    add_replay(&sum, &result->replay);
    if (result->has_at_peak)
        add_decomposition(&sum, &result->at_peak);
    for (int i = 0; i < FRAG_DEVICE_CALL_COUNT; i++) {
        pinned_add(&sum, result->calls[i]);
        pinned_add(&sum, result->failed_calls[i]);
    }
    pinned_add(&sum, frag_run_memory_calls(result));
    pinned_add(&sum, (uint64_t)(result->modelled_time_ns * 1000));
    pinned_add(&sum, result->address_rule);
    pinned_add(&sum, result->need_max_bytes);
    pinned_add(&sum, result->refused_need_min_bytes);
    pinned_add(&sum, result->is_capacity_read);
    if (result->has_plan) {
        pinned_add_text(&sum, result->plan.answer);
        pinned_add(&sum, result->plan.peak_bytes);
        pinned_add(&sum, result->plan.bound_bytes);
        pinned_add(&sum, result->plan.load_bytes);
    }
    return sum;
}

/* Requested <= allocated <= active at each event, and what is active is in reserved memory. */
static void look_at(void *context, const frag_replay *replay, uint64_t event,
                    const frag_level *level)
{
    told_case *at = context;
    expect(level->requested_bytes <= level->allocated_bytes &&
               level->allocated_bytes <= level->active_bytes &&
               level->active_bytes <= level->reserved_bytes,
           "levels are out of order", &at->what);
    frag_timeline_observe(at->timeline, replay, event, level);
}

static void add_timeline(uint64_t *sum, frag_timeline *timeline)
{
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(timeline, &count);
    for (size_t i = 0; i < count; i++) {
        pinned_add(sum, samples[i].event);
        add_level(sum, &samples[i].level);
    }
}

/* false: refused. */
static bool run(told_case *at, const frag_run_options *options, frag_run_result *result)
{
    frag_error error = {0};
    const frag_run_setup setup = {at->recording, at->trace, at->spec.ops, at->spec.values,
                                  &at->device};
    bool ok = frag_run(&setup, options, result, &error);
    expect(ok || strncmp(error.sentence, "--check", 7) != 0, error.sentence, &at->what);
    return ok;
}

/* Memory of runs before, which no answer shows. */
static frag_arena_spare *spare;

/* Once more, with something besides; both passes or one. */
static void run_again(told_case *at, const frag_run_options *options, uint64_t sum, const char *how)
{
    frag_run_result result;
    expect(run(at, options, &result) && sum_of_run(&result) == sum, how, &at->what);
}

/* With a log and audits, and somebody looking on. Returns a sum of what was seen. */
static uint64_t look(told_case *at, const frag_run_result *plain)
{
    char *log = NULL;
    size_t log_bytes = 0;
    uint64_t seen = 0;
    frag_run_result counted = *plain;
    counted.has_at_peak = false;
    at->timeline = frag_timeline_create(at->trace->event_count,
                                        FRAG_TIMELINE_SAMPLES_MIN + plain->replay.events % 40);
    const frag_run_options options = {.is_oom_skipped = at->what.is_oom_skipped,
                                      .is_layout_skipped = true,
                                      .spare = spare,
                                      .check_every = CHECK_EVERY,
                                      .observer = look_at,
                                      .observer_context = at};
    at->device.driver_log = open_memstream(&log, &log_bytes);
    run_again(at, &options, sum_of_run(&counted), "another run that is looked at");
    fclose(at->device.driver_log);
    at->device.driver_log = NULL;
    pinned_add_text(&seen, log);
    add_timeline(&seen, at->timeline);
    frag_timeline_destroy(at->timeline);
    free(log);
    return seen;
}

/* Steps that repeat are left out, and nothing comes of it. */
static bool tell_run(frag_text *out, told_case *at, frag_run_result *plain)
{
    const frag_run_options usual = {.is_oom_skipped = at->what.is_oom_skipped};
    if (!run(at, &usual, plain)) {
        frag_text_add(out, "refused\n");
        return false;
    }
    uint64_t sum = sum_of_run(plain);
    frag_run_options options = usual;
    options.spare = spare;
    options.repeats = at->repeats;
    if (at->repeats->count > 0)
        run_again(at, &options, sum, "another run with repeats");
    uint64_t seen = at->trace->event_count < LONG_EVENTS ? look(at, plain) : 0;
    frag_text_add(out, "%" PRIu64 " failed, %" PRIu64 " reserved, %08" PRIx32 ", seen %08" PRIx32,
                  plain->replay.failed_requests, plain->replay.peak.reserved_bytes,
                  (uint32_t)(sum >> 32), (uint32_t)(seen >> 32));
    return true;
}

/* ---- a second run on the answers of the first */

static frag_device *open_kept(void *context, const frag_trace *trace,
                              const frag_sim_device_options *rule, frag_error *error)
{
    (void)trace;
    (void)error;
    frag_device *device = frag_sim_device_create(rule);
    device->watch.on_answer = frag_answer_list_keep;
    device->watch.on_answer_context = context;
    return device;
}

static frag_device *open_echo(void *context, const frag_trace *trace,
                              const frag_sim_device_options *rule, frag_error *error)
{
    (void)error;
    uint64_t free_bytes = rule->capacity_bytes;
    if (free_bytes != FRAG_UNLIMITED)
        free_bytes -=
            rule->used_by_others_bytes < free_bytes ? rule->used_by_others_bytes : free_bytes;
    const frag_echo_options options = {.answers = context,
                                       .capacity_bytes = rule->capacity_bytes,
                                       .free_bytes = free_bytes,
                                       .page_bytes = rule->page_bytes,
                                       .ordinal = trace->device};
    return frag_echo_device_create(&options);
}

static void check_echo(told_case *at, const frag_run_result *plain)
{
    frag_answer_list answers = {0};
    const frag_device_opener kept = {.open = open_kept, .context = &answers};
    const frag_device_opener echo = {.open = open_echo, .context = &answers};
    const frag_device_opener *openers[] = {&kept, &echo};
    const frag_device_spec device = at->device;
    uint64_t sums[2] = {0};
    for (int i = 0; i < 2; i++) {
        frag_run_result result = {.need_max_bytes = 0};
        const frag_run_options options = {
            .is_oom_skipped = at->what.is_oom_skipped, .is_layout_skipped = true, .spare = spare};
        at->device.opener = openers[i];
        if (run(at, &options, &result))
            add_replay(&sums[i], &result.replay);
    }
    at->device = device;
    uint64_t sum = 0;
    add_replay(&sum, &plain->replay);
    expect(sums[0] == sum, "another run on a device whose answers are kept", &at->what);
    expect(sums[1] == sum || plain->is_capacity_read, "another run on an echo", &at->what);
    frag_answer_list_destroy(&answers);
}

/* ---- capacities */

/* After so many questions; a search among sizes of 2^60 would take days. */
static bool cancels(void *user)
{
    unsigned *left = user;
    return *left == 0 || --*left == 0;
}

static bool survives(told_case *at, uint64_t capacity_bytes)
{
    frag_run_result result;
    const uint64_t kept = at->device.capacity_bytes;
    at->device.capacity_bytes = capacity_bytes;
    bool ok = run(at, &(frag_run_options){.is_layout_skipped = true, .spare = spare}, &result);
    at->device.capacity_bytes = kept;
    return ok && !result.replay.oom.has_happened;
}

static void check_capacity(told_case *at, const frag_capacity_result *found)
{
    const uint64_t page = frag_device_page(&at->device, at->trace);
    expect(found->capacity_bytes % page == 0, "a capacity of part of a page", &at->what);
    expect(found->capacity_bytes >= frag_trace_bound_bytes(at->trace), "a capacity below the bound",
           &at->what);
    expect(survives(at, found->capacity_bytes), "the least capacity fails", &at->what);
    expect(!found->has_below || !survives(at, found->capacity_bytes - page),
           "one page less survives, too", &at->what);
    expect(found->is_monotone || !survives(at, found->failing_above_bytes),
           "what should fail above survives", &at->what);
    expect(found->is_capacity_read || survives(at, found->enough_bytes), "enough is not enough",
           &at->what);
}

static void tell_capacity(frag_text *out, told_case *at)
{
    unsigned questions = 30;
    uint64_t sum = 0;
    frag_error error = {0};
    frag_capacity_result found;
    frag_capacity_result least;
    const frag_context context = {.is_cancelled = cancels, .user = &questions};
    const frag_run_setup setup = {at->recording, at->trace, at->spec.ops, at->spec.values,
                                  &at->device};
    if (!frag_find_capacity(&setup, at->repeats, &context, &found, &error))
        return;
    bool is_done = questions > 0;
    if (is_done && found.is_found)
        check_capacity(at, &found);
    add_oom(&sum, &found.below);
    add_level(&sum, &found.peak);
    frag_text_add(out,
                  "    capacity: %d %" PRIu64 ", below %d, %d %" PRIu64 " %" PRIu64 ", %" PRIu64
                  " runs, %08" PRIx32,
                  found.is_found, found.capacity_bytes, found.has_below, found.is_monotone,
                  found.failing_above_bytes, found.enough_bytes, found.runs, (uint32_t)(sum >> 32));
    questions = 30;
    if (frag_find_least_capacity(&setup, at->repeats, FRAG_UNLIMITED, &context, &least, &error))
        expect(!is_done || questions == 0 || !found.is_found ||
                   least.capacity_bytes == found.capacity_bytes,
               "two least capacities", &at->what);
    questions = 30;
    uint64_t events = at->trace->event_count * (at->what.page_bytes % 3) * 2;
    if (frag_find_border_capacity(&setup, events, 1024, &context, &least, &error)) {
        if (questions > 0 && least.is_found && !least.is_capacity_read)
            expect(survives(at, least.capacity_bytes), "the border fails", &at->what);
        frag_text_add(out, ", border %d %" PRIu64 " %" PRIu64 ", %" PRIu64 " runs", least.is_found,
                      least.capacity_bytes, least.enough_bytes, least.runs);
    }
    frag_text_add(out, "\n");
}

/* ---- cases */

static void tell_case(frag_text *out, told_case *at, bool has_capacity)
{
    frag_error error = {0};
    frag_run_result plain;
    frag_text_add(out, "  %s on %" PRIu64 "/%" PRIu64 "%s: ", at->what.policy,
                  at->what.capacity_bytes, at->what.page_bytes,
                  at->what.is_oom_skipped ? " skip" : "");
    if (!frag_policy_spec_parse(at->what.policy, &at->spec, &error)) {
        frag_text_add(out, "no such options\n");
        return;
    }
    if (tell_run(out, at, &plain)) {
        frag_text_add(out, "\n");
        if (at->device.gpu == NULL && at->trace->event_count % 4 == 0)
            check_echo(at, &plain);
        if (has_capacity)
            tell_capacity(out, at);
    }
    frag_policy_spec_destroy(&at->spec);
}

/* The footprint and the latencies of a card that there is not. */
static void draw_card(frag_device_description *card, uint64_t *bits)
{
    frag_device_description_clear(card);
    snprintf(card->name, sizeof card->name, "card");
    card->footprint.unit_bytes = (uint64_t)1 << (9 + draw(bits, 13));
    uint64_t up_to = 0;
    for (uint64_t left = draw(bits, 5); left > 0; left--) {
        up_to += 1 + draw(bits, 64 * FRAG_KIB);
        uint64_t more = draw(bits, 2) == 0 ? draw(bits, 4096) : 0;
        card->footprint.classes[card->footprint.count++] =
            (frag_footprint_class){.up_to_bytes = up_to, .takes_bytes = up_to + more};
    }
    card->reuse = (frag_reuse)draw(bits, FRAG_REUSE_OTHER + 1);
    card->has_latency = draw(bits, 2) == 0;
    for (int i = 0; card->has_latency && i < FRAG_DEVICE_CALL_COUNT; i++) {
        frag_latency *latency = &card->latency.calls[i];
        uint64_t bytes = draw(bits, 2) * 4096;
        for (uint64_t left = draw(bits, 4); left > 0; left--) {
            double median = (double)(1 + draw(bits, 100000)) * 1000;
            latency->points[latency->count++] =
                (frag_latency_point){bytes, median, median / 2, median * 2, 1 + draw(bits, 9)};
            bytes += 1 + draw(bits, 1u << draw(bits, 28));
        }
        frag_latency_extend(latency);
    }
}

/* What is a text keeps its default where it is not known how it is written: classes are a number or
 * a list, which has to ascend by 512 bytes. */
static void draw_classes(char **policy, uint64_t *bits)
{
    frag_text text = {0};
    uint64_t size = 0;
    frag_text_add(&text, "%s%cclasses=", *policy, strchr(*policy, ':') != NULL ? ',' : ':');
    if (draw(bits, 2) == 0) {
        frag_text_add(&text, "%" PRIu64, draw(bits, 70));
    } else {
        for (uint64_t left = 1 + draw(bits, 6); left > 0; left--) {
            size += draw(bits, 12) != 0 ? 512 * (1 + draw(bits, 2000)) : draw(bits, 1024);
            frag_text_add(&text, "%s%" PRIu64, text.bytes[text.length - 1] == '=' ? "[" : ",",
                          size);
        }
        frag_text_add(&text, "]");
    }
    free(*policy);
    *policy = text.bytes;
}

static void draw_device(told_case *at, frag_device_description *card, uint64_t *bits)
{
    frag_device_spec *device = &at->device;
    *device = (frag_device_spec){.capacity_bytes = at->what.capacity_bytes,
                                 .page_bytes = at->what.page_bytes,
                                 .fail_call = at->what.fail_call};
    if (draw(bits, 3) == 0)
        device->used_by_others_bytes = draw(bits, 8 * FRAG_MIB);
    device->is_rule_given = draw(bits, 2) == 0;
    device->address_rule = (frag_address_rule)draw(bits, FRAG_ADDRESS_RECORDED + 1);
    if (draw(bits, 3) == 0)
        return;
    draw_card(card, bits);
    at->device.gpu = card;
    at->device.latency = card->has_latency ? &card->latency : NULL;
}

/* Every policy once, on devices and with options by chance. */
static void tell_policies(frag_text *out, const frag_recording *recording, uint64_t seed,
                          uint64_t planned_max)
{
    const frag_trace *trace = &recording->traces[0];
    uint64_t bits = (seed + 1) * 0x9e3779b97f4a7c15u;
    frag_repeats repeats = {.items = NULL};
    frag_repeats_find(trace, &repeats);
    for (size_t i = 0; i < repeats.count; i++)
        frag_text_add(out, "  repeats %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                      repeats.items[i].first, repeats.items[i].period, repeats.items[i].end);
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        frag_device_description card;
        told_case at = {.what = policy_case_draw(ops, trace, &bits),
                        .recording = recording,
                        .trace = trace,
                        .repeats = &repeats};
        draw_device(&at, &card, &bits);
        if (strcmp(ops->name, "size-class") == 0 && draw(&bits, 2) == 0)
            draw_classes(&at.what.policy, &bits);
        bool has_capacity = draw(&bits, 4) == 0;
        if (frag_policy_engine_of(ops)->planner == NULL || trace->event_count <= planned_max)
            tell_case(out, &at, has_capacity);
        free(at.what.policy);
    }
    frag_repeats_destroy(&repeats);
}

/* ---- traces */

static void tell_openings(frag_text *out, const frag_trace *trace)
{
    uint64_t sum = 0;
    frag_opening *opening = frag_opening_create(trace);
    for (uint64_t event = 0; event <= trace->event_count; event += 1 + trace->event_count / 20) {
        size_t count = 0;
        frag_opening_follow_to(opening, event);
        frag_open_event *list = frag_opening_list(opening, &count);
        for (size_t i = 0; i < count; i++) {
            pinned_add(&sum, list[i].event);
            pinned_add(&sum, list[i].address);
            pinned_add(&sum, list[i].bytes);
        }
        frag_free(list);
    }
    frag_opening_destroy(opening);
    frag_text_add(out, "  openings %08" PRIx32, (uint32_t)(sum >> 32));
}

/* The most that is held by the events one after the other is the peak that reading them found. */
static void tell_demand(frag_text *out, const frag_trace *trace)
{
    uint64_t sum = 0;
    uint64_t held = 0;
    uint64_t peak = 0;
    frag_demand demand;
    frag_demand_change change;
    frag_demand_begin(&demand, trace);
    for (uint64_t event = 0; event < trace->event_count; event++) {
        if (!frag_demand_step(&demand, event, &change))
            continue;
        held = change.is_free ? held - change.bytes : held + change.bytes;
        peak = held > peak ? held : peak;
        pinned_add(&sum, event << 1 | change.is_free);
        pinned_add(&sum, change.alloc_event);
        pinned_add(&sum, change.bytes);
    }
    frag_demand_end(&demand);
    if (peak != trace->stats.peak_requested_bytes || held != trace->stats.end_requested_bytes) {
        fprintf(stderr, "held by the events: %" PRIu64 " at most\n", peak);
        wrong_count++;
    }
    frag_text_add(out, ", demand %08" PRIx32, (uint32_t)(sum >> 32));
}

static void tell_figures(frag_text *out, const frag_recording *recording, const frag_trace *trace)
{
    uint64_t sum = 0;
    frag_trace_figures *found = frag_trace_figures_find(recording, trace);
    const char *doubt = frag_trace_figures_doubt(found, recording, trace);
    if (doubt != NULL) {
        fprintf(stderr, "figures: %s\n", doubt);
        wrong_count++;
    }
    for (size_t i = 0; i < FRAG_SIZE_CLASSES; i++)
        pinned_add(&sum, found->sizes[i].count ^ found->sizes[i].bytes << 20);
    for (size_t i = 0; i < FRAG_LIFETIME_QUANTILES; i++)
        pinned_add(&sum, found->lifetimes[i]);
    pinned_add(&sum, found->freed_count);
    pinned_add(&sum, found->unfreed_count);
    pinned_add(&sum, found->inferred_count);
    pinned_add(&sum, found->guessed_count);
    for (uint32_t i = 0; i < found->stream_count; i++)
        pinned_add(&sum, found->streams[i].count ^ found->streams[i].bytes << 20);
    for (uint32_t i = 0; i < found->pool_count; i++)
        pinned_add(&sum, found->pools[i].count ^ found->pools[i].bytes << 20);
    for (uint32_t i = 0; i < found->mark_count; i++)
        pinned_add(&sum, found->marks[i].count << 32 ^ found->marks[i].first_event);
    frag_free(found);
    frag_text_add(out, ", figures %08" PRIx32, (uint32_t)(sum >> 32));
}

static void tell_lifetimes(frag_text *out, const frag_recording *recording, const frag_trace *trace)
{
    uint64_t sum = 0;
    uint64_t count = 0;
    frag_error error = {0};
    frag_lifetime *found = frag_lifetimes_find(recording, trace, &count, &error);
    for (uint64_t i = 0; found != NULL && i < count; i++) {
        pinned_add(&sum, found[i].lower);
        pinned_add(&sum, found[i].upper);
        pinned_add(&sum, found[i].bytes);
        pinned_add(&sum, found[i].alignment);
    }
    frag_free(found);
    frag_text_add(out, ", lifetimes %d %08" PRIx32 "\n", found != NULL, (uint32_t)(sum >> 32));
}

static void tell_recording(frag_text *out, const frag_recording *recording, uint64_t seed,
                           uint64_t planned_max)
{
    const frag_trace *trace = &recording->traces[0];
    tell_openings(out, trace);
    tell_demand(out, trace);
    tell_figures(out, recording, trace);
    tell_lifetimes(out, recording, trace);
    tell_policies(out, recording, seed, planned_max);
}

static void tell_text(frag_text *out, const char *text, uint64_t seed, uint64_t planned_max)
{
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(text, &recording, &findings);
    tell_recording(out, &recording, seed, planned_max);
    frag_recording_destroy(&recording);
}

static void tell_random(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 31001; count < TRACES; seed++) {
        frag_text text = {0};
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        frag_text_add(out, "trace %" PRIu64 ", %zu events\n", seed, trace.count);
        random_trace_write(&trace, &text);
        tell_text(out, text.bytes, seed, PLANNED_EVENTS_MAX);
        pinned_fold(out, from, "trace");
        frag_text_destroy(&text);
        count++;
    }
    random_trace_destroy(&trace);
}

/* ---- pieces of what PyTorch's policy did: memory held from before */

static void tell_piece(frag_text *out, const frag_recording *whole, uint64_t seed)
{
    const frag_trace *trace = &whole->traces[0];
    uint64_t count = trace->event_count;
    uint64_t first = count * (1 + seed % 3) / 4;
    frag_recording piece;
    frag_error error = {0};
    if (!frag_cut(whole, trace, (frag_cut_range){first, count}, &piece, &error))
        return;
    frag_text_add(out, "from %" PRIu64 ", %" PRIu64 " blocks before\n", first,
                  piece.traces[0].stats.initial_count);
    tell_recording(out, &piece, seed, PLANNED_EVENTS_MAX);
    frag_recording_destroy(&piece);
}

static void tell_made(frag_text *out, const frag_recording *recording, uint64_t seed)
{
    static const char *const settings[] = {"pytorch", "pytorch:expandable_segments=true",
                                           "pytorch:max_split_size_mb=21",
                                           "pytorch:roundup_power2_divisions=4"};
    frag_policy_spec spec;
    frag_error error = {0};
    made_snapshot of = {0};
    const frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    assert_true(frag_policy_spec_parse(settings[seed % 4], &spec, &error));
    const frag_run_setup setup = {recording, &recording->traces[0], spec.ops, spec.values, &device};
    if (made_snapshot_make(&of, &setup, &error)) {
        frag_text text = {0};
        frag_recording whole;
        frag_findings findings;
        const made_snapshot_loss lost = {.has_pools = seed % 2 == 0};
        made_snapshot_write(&text, &of, &lost);
        if (frag_test_load(text.bytes, text.length, FRAG_FORMAT_SNAPSHOT, &whole, &findings,
                           &error)) {
            tell_piece(out, &whole, seed);
            frag_recording_destroy(&whole);
        }
        frag_text_destroy(&text);
    }
    made_snapshot_destroy(&of);
    frag_policy_spec_destroy(&spec);
}

static void tell_pieces(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 32001; count < PIECES; seed++) {
        frag_text text = {0};
        frag_recording recording;
        frag_findings findings;
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        random_trace_write(&trace, &text);
        frag_test_load_well(text.bytes, &recording, &findings);
        tell_made(out, &recording, seed);
        pinned_fold(out, from, "piece");
        frag_recording_destroy(&recording);
        frag_text_destroy(&text);
        count++;
    }
    random_trace_destroy(&trace);
}

/* ---- programs that do the same again, mostly */

enum { LOOP_SLOTS = 24, BODY_MAX = 60 };

typedef struct loop_body {
    uint32_t slots[BODY_MAX]; /* an alloc where it is free, else a free */
    uint64_t bytes[BODY_MAX];
    uint64_t streams[BODY_MAX];
    uint64_t count;
} loop_body;

static void draw_body(loop_body *body, uint64_t *bits)
{
    uint64_t slots = 2 + draw(bits, LOOP_SLOTS - 2);
    uint64_t streams = draw(bits, 3) == 0 ? 2 : 1;
    uint64_t doublings = 8 + draw(bits, 18);
    body->count = 4 + draw(bits, BODY_MAX - 4);
    for (uint64_t i = 0; i < body->count; i++) {
        body->slots[i] = (uint32_t)draw(bits, slots);
        body->bytes[i] = 1 + draw_bits(bits, (unsigned)doublings);
        body->streams[i] = draw(bits, streams);
    }
}

static void write_step(frag_text *text, bool *is_live, uint32_t slot, uint64_t bytes,
                       uint64_t stream)
{
    if (is_live[slot])
        frag_text_add(text, "free %" PRIu32 "\n", slot);
    else
        frag_text_add(text, "alloc %" PRIu32 " %" PRIu64 " stream=%" PRIu64 "\n", slot, bytes,
                      stream);
    is_live[slot] = !is_live[slot];
}

/* So many events or more. One time is another one now and then; most bodies end with nothing held.
 */
static void write_loop(frag_text *text, uint64_t *bits, uint64_t events)
{
    loop_body body;
    bool is_live[LOOP_SLOTS + 1] = {false};
    draw_body(&body, bits);
    uint64_t times = 2 + draw(bits, 20) + events / body.count;
    uint64_t odd = draw(bits, 2) == 0 ? draw(bits, times) : times;
    bool is_emptied = draw(bits, 5) != 0;
    for (uint64_t i = 0; i < times; i++) {
        frag_text_add(text, "mark \"step\"\n");
        for (uint64_t k = 0; k < body.count; k++) {
            bool is_odd = i == odd && draw(bits, 8) == 0;
            write_step(text, is_live, body.slots[k], body.bytes[k] + (is_odd ? 700 : 0),
                       body.streams[k]);
            if (is_odd)
                write_step(text, is_live, LOOP_SLOTS, 3000, 0);
        }
        for (uint32_t k = 0; k < LOOP_SLOTS; k++)
            if (is_emptied && is_live[k])
                write_step(text, is_live, k, 0, 0);
        if (i == odd && draw(bits, 4) == 0)
            frag_text_add(text, "empty_cache\n");
    }
    for (uint32_t k = 0; k <= LOOP_SLOTS; k++)
        if (is_live[k])
            write_step(text, is_live, k, 0, 0);
}

static void tell_loops(frag_text *out)
{
    for (uint64_t seed = 1; seed <= LOOPS + LONG_LOOPS; seed++) {
        frag_text text = {0};
        uint64_t bits = seed * 0x9e3779b97f4a7c15u;
        size_t from = out->length;
        frag_text_add(&text, "# fraglab trace 1\n");
        for (uint64_t phases = 1 + draw(&bits, 2); phases > 0; phases--)
            write_loop(&text, &bits, seed > LOOPS ? LONG_EVENTS : 0);
        frag_text_add(out, "loops %" PRIu64 "\n", seed);
        tell_text(out, text.bytes, seed, FRAG_UNLIMITED);
        pinned_fold(out, from, "loops");
        frag_text_destroy(&text);
    }
}

static void tell_all(frag_text *out)
{
    spare = frag_arena_spare_create();
    tell_rooms(out);
    tell_random(out);
    tell_pieces(out);
    tell_loops(out);
    frag_arena_spare_destroy(spare);
}

static const pinned_lines pinned = {"tests/data/answers/runs.txt.zst", tell_all, "answers-golden"};

int main(int argc, char **argv)
{
    int failed = pinned_lines_test(&pinned, argc, argv);
    return wrong_count > 0 ? 1 : failed;
}
