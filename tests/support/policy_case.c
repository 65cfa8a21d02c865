#include "tests/support/policy_case.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/replay/checkpoint.h"
#include "tests/support/checked_policy.h"
#include "tests/support/xorshift.h"

/* The slow device keeps a byte for each page that is reserved (policies reserve 8 TiB at most), and
 * goes over those of each block. */
#define SLOW_PAGE_MIN FRAG_MIB
#define SLOW_PAGES_MAX 4096 /* of all that is live */

static uint64_t draw(uint64_t *bits, uint64_t limit)
{
    return limit == 0 ? 0 : xorshift_next(bits) % limit;
}

/* Every order of size alike, and the ends often. */
static uint64_t draw_between(uint64_t *bits, uint64_t min, uint64_t max)
{
    uint64_t top = max > (uint64_t)1 << 36 ? (uint64_t)1 << 36 : max;
    if (draw(bits, 8) == 0)
        return draw(bits, 2) == 0 ? min : max;
    uint64_t number = (uint64_t)1 << draw(bits, 37);
    number += draw(bits, 4) != 0 ? 0 : draw(bits, number); /* many have to be powers of two */
    return number < min ? min : number > top ? top : number;
}

static void add_choice(frag_text *text, const char *choices, uint64_t *bits)
{
    uint64_t count = 1;
    for (const char *at = choices; *at != '\0'; at++)
        count += *at == '|';
    const char *from = choices;
    for (uint64_t skip = draw(bits, count); skip > 0; skip--)
        from = strchr(from, '|') + 1;
    frag_text_add_bytes(text, from, strcspn(from, "|"));
}

/* Options in words of their own, by key; what else is a text keeps its default. */
static const char *draw_words(const char *key, uint64_t *bits)
{
    static const struct {
        const char *key;
        const char *words[6];
    } known[] = {
        {"version", {"2.1", "2.4", "2.8", "2.9", "2.12", "2.13"}},
        {"roundup_power2_divisions", {"2", "4", "8", "16", "1", "4"}},
        {"expandable_segments_reserve", {"1GiB", "64GiB", "1TiB", "20MiB", "2MiB", "3GiB"}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].key, key) == 0)
            return known[i].words[draw(bits, 6)];
    return NULL;
}

/* More blocks, or steps of a search, take long and show nothing else. */
#define COUNT_MAX ((uint64_t)1 << 16)

static void add_value(frag_text *text, const frag_option *option, uint64_t *bits)
{
    switch (option->type) {
    case FRAG_OPTION_BYTES:
    case FRAG_OPTION_COUNT: {
        bool is_large = option->type == FRAG_OPTION_COUNT && option->max > COUNT_MAX;
        uint64_t number = draw_between(bits, option->min, is_large ? COUNT_MAX : option->max);
        if (number == FRAG_UNLIMITED)
            frag_text_add(text, "unlimited");
        else
            frag_text_add(text, "%llu", (unsigned long long)number);
        break;
    }
    case FRAG_OPTION_RATIO: {
        double part = (double)draw(bits, 101) / 100;
        double most = option->ratio_max > 1e6 ? 1e6 : option->ratio_max;
        frag_text_add(text, "%.6f", option->ratio_min + part * (most - option->ratio_min));
        break;
    }
    case FRAG_OPTION_FLAG:
        frag_text_add(text, draw(bits, 2) == 0 ? "true" : "false");
        break;
    case FRAG_OPTION_ENUM:
        add_choice(text, option->choices, bits);
        break;
    case FRAG_OPTION_TEXT:
        break;
    }
}

static char *draw_policy(const frag_policy_ops *ops, uint64_t *bits)
{
    frag_text text = {0};
    frag_text_add(&text, "%s", ops->name);
    uint64_t option_count = frag_policy_option_count(ops);
    uint64_t wanted = draw(bits, 3) == 0 ? 0 : 1 + draw(bits, 4);
    char mark = ':';
    for (const frag_option *option = ops->options; option != NULL && option->key != NULL;
         option++) {
        if (draw(bits, option_count) >= wanted)
            continue;
        const char *words = option->type == FRAG_OPTION_TEXT ? draw_words(option->key, bits) : "";
        if (words == NULL)
            continue;
        frag_text_add(&text, "%c%s=%s", mark, option->key, words);
        add_value(&text, option, bits);
        mark = ',';
    }
    return text.bytes;
}

static uint64_t draw_capacity(uint64_t peak, uint64_t *bits)
{
    switch (draw(bits, 5)) {
    case 0:
        return FRAG_UNLIMITED;
    case 1: /* tight: much fails */
        return peak / 4 + draw(bits, peak) + 1;
    case 2:
        return peak + draw(bits, 64 * FRAG_MIB) + 1;
    default: /* around the peak */
        return peak - peak / 10 + draw(bits, peak / 2 + 4 * FRAG_MIB) + 1;
    }
}

policy_case policy_case_draw(const frag_policy_ops *ops, const frag_trace *trace, uint64_t *bits)
{
    static const uint64_t pages[] = {2 * FRAG_MIB,  2 * FRAG_MIB, 2 * FRAG_MIB, 16 * FRAG_MIB,
                                     64 * FRAG_KIB, 4096,         512,          1};
    policy_case what = {.policy = draw_policy(ops, bits)};
    what.capacity_bytes = draw_capacity(trace->stats.peak_requested_bytes, bits);
    what.page_bytes = pages[draw(bits, sizeof pages / sizeof pages[0])];
    what.fail_call = draw(bits, 6) == 0 ? 1 + draw(bits, 30) : 0;
    what.refuse_every = draw(bits, 4) == 0 ? 2 + draw(bits, 20) : 0;
    what.is_oom_skipped = draw(bits, 4) != 0;
    return what;
}

/* ---- running */

typedef struct case_run {
    const policy_case *what;
    const frag_recording *recording;
    const frag_policy_spec *spec;
    uint64_t check_every;
    policy_outcome *outcome;
} case_run;

static void keep_result(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    (void)replay;
    *(frag_replay_result *)context = *result;
}

static void ignore_note(void *context, const frag_note *note)
{
    (void)context;
    (void)note;
}

/* Our bugs are found by --check; all else is a setting that does not fit, or too little memory. */
static void take_error(policy_outcome *outcome, const frag_error *error)
{
    char text[POLICY_PROBLEM_BYTES];
    frag_error_text(error, text, sizeof text);
    if (strncmp(text, "--check", 7) == 0)
        snprintf(outcome->problem, sizeof outcome->problem, "%s", text);
    else
        outcome->is_refused = true;
}

static bool run_once(const case_run *at, const frag_policy_ops *ops, const frag_device_spec *device,
                     bool is_watched, frag_replay_result *result)
{
    frag_replay_options options = {
        .is_oom_skipped = at->what->is_oom_skipped,
        .stop_after = FRAG_UNLIMITED,
        .check_every = at->check_every,
        .on_note = is_watched ? ignore_note : NULL,
        .keeps_stats = is_watched,
    };
    frag_error error = {0};
    *result = (frag_replay_result){0};
    bool ok = frag_run_look(
        &(frag_run_setup){at->recording, &at->recording->traces[0], ops, at->spec->values, device},
        &options, keep_result, result, &error);
    if (!ok)
        take_error(at->outcome, &error);
    at->outcome->events += result->events;
    return ok;
}

static void compare(const frag_replay_result *plain, const frag_replay_result *watched,
                    const char *how, policy_outcome *outcome)
{
    const struct {
        const char *what;
        uint64_t plain;
        uint64_t watched;
    } figures[] = {
        {"events", plain->events, watched->events},
        {"requests", plain->requests, watched->requests},
        {"failed requests", plain->failed_requests, watched->failed_requests},
        {"first OOM", plain->oom.event, watched->oom.event},
        {"peak of allocated", plain->peak.allocated_bytes, watched->peak.allocated_bytes},
        {"peak of active", plain->peak.active_bytes, watched->peak.active_bytes},
        {"peak of reserved", plain->peak.reserved_bytes, watched->peak.reserved_bytes},
        {"requested at the end", plain->final.requested_bytes, watched->final.requested_bytes},
        {"reserved at the end", plain->final.reserved_bytes, watched->final.reserved_bytes},
        {"sum of reserved", plain->reserved_sum.low, watched->reserved_sum.low},
        {"ignored events", plain->ignored_events, watched->ignored_events},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        if (figures[i].plain != figures[i].watched && outcome->problem[0] == '\0')
            snprintf(outcome->problem, sizeof outcome->problem, "%s: %llu in a run, %llu when %s",
                     figures[i].what, (unsigned long long)figures[i].plain,
                     (unsigned long long)figures[i].watched, how);
}

/* Goes on to the end from where the replay stands, and compares. */
static bool end_as(const case_run *at, const frag_replay_result *plain, const char *how,
                   frag_replay *replay)
{
    frag_error error = {0};
    frag_replay_result result;
    if (!frag_replay_advance(replay, UINT64_MAX, &error)) {
        take_error(at->outcome, &error);
        return false;
    }
    frag_replay_finish(replay, &result);
    at->outcome->events += result.events;
    compare(plain, &result, how, at->outcome);
    return at->outcome->problem[0] == '\0';
}

/* Keeps its state on the way, and goes on from there three times; the middle one leaves traces that
 * must not stay. */
static void run_and_return(const case_run *at, const frag_replay_result *plain, frag_device *device,
                           frag_replay *replay)
{
    frag_error error = {0};
    frag_checkpoint *checkpoint = frag_checkpoint_create();
    uint64_t stop = at->recording->traces[0].event_count * (1 + at->what->capacity_bytes % 7) / 8;
    if (!frag_replay_advance(replay, stop, &error)) {
        take_error(at->outcome, &error);
    } else if (frag_checkpoint_keep(checkpoint, replay) &&
               end_as(at, plain, "its state was kept on the way", replay)) {
        frag_checkpoint_return(checkpoint, replay);
        device->capacity_bytes /= 2;
        (void)frag_replay_advance(replay, UINT64_MAX, &error);
        frag_checkpoint_return(checkpoint, replay);
        (void)end_as(at, plain, "it has returned", replay);
    }
    frag_checkpoint_destroy(checkpoint);
}

static void run_returning(const case_run *at, const frag_device_spec *spec,
                          const frag_replay_result *plain)
{
    const frag_trace *trace = &at->recording->traces[0];
    frag_replay_options options = {.is_oom_skipped = at->what->is_oom_skipped,
                                   .stop_after = FRAG_UNLIMITED,
                                   .check_every = at->check_every};
    frag_error error = {0};
    frag_recorded_segment *segments = NULL;
    frag_device *device = frag_device_open(trace, spec, &segments, &error);
    frag_run_setup setup = {at->recording, trace, at->spec->ops, at->spec->values, NULL};
    frag_replay *replay = frag_replay_create(&setup, device, &error);
    if (replay != NULL && frag_replay_start(replay, &options, &error))
        run_and_return(at, plain, device, replay);
    else
        take_error(at->outcome, &error);
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    frag_free(segments);
}

/* On other devices that give the very same run, as it says (sim/run.h). */
static void run_elsewhere(const case_run *at, const frag_device_spec *spec,
                          const frag_replay_result *plain)
{
    frag_device_spec device = *spec;
    const frag_run_setup setup = {at->recording, &at->recording->traces[0], at->spec->ops,
                                  at->spec->values, &device};
    const frag_run_options options = {.is_oom_skipped = at->what->is_oom_skipped,
                                      .is_layout_skipped = true};
    frag_run_result run;
    frag_error error = {0};
    if (!frag_run_count(&setup, &options, &run, &error)) {
        take_error(at->outcome, &error);
        return;
    }
    uint64_t page = frag_device_page(spec, setup.trace);
    uint64_t least = frag_round_up(run.need_max_bytes > 0 ? run.need_max_bytes : 1, page);
    uint64_t most = run.refused_need_min_bytes == FRAG_UNLIMITED
                        ? spec->capacity_bytes / 2 + least
                        : (run.refused_need_min_bytes - 1) / page * page;
    uint64_t tried[] = {least, most, least + (most - least) / 3 / page * page};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        frag_replay_result other;
        device.capacity_bytes = tried[i];
        if (run.is_capacity_read || tried[i] < least || tried[i] > most ||
            at->outcome->problem[0] != '\0' || !run_once(at, at->spec->ops, &device, false, &other))
            return;
        compare(plain, &other, "another device should do the same", at->outcome);
    }
}

static bool run_plain(const case_run *at)
{
    frag_device_spec device = {.capacity_bytes = at->what->capacity_bytes,
                               .page_bytes = at->what->page_bytes,
                               .fail_call = at->what->fail_call};
    frag_replay_result plain;
    frag_replay_result watched;
    if (!run_once(at, at->spec->ops, &device, false, &plain) ||
        !run_once(at, at->spec->ops, &device, true, &watched))
        return false;
    compare(&plain, &watched, "it is watched", at->outcome);
    if (at->outcome->problem[0] == '\0')
        run_returning(at, &device, &plain);
    if (at->outcome->problem[0] == '\0' && at->what->fail_call == 0)
        run_elsewhere(at, &device, &plain);
    return at->outcome->problem[0] == '\0';
}

static uint64_t slow_page_bytes(const case_run *at)
{
    uint64_t peak = at->recording->traces[0].stats.peak_requested_bytes;
    uint64_t page = at->what->page_bytes < SLOW_PAGE_MIN ? SLOW_PAGE_MIN : at->what->page_bytes;
    while (peak / page > SLOW_PAGES_MAX && page < FRAG_GIB)
        page *= 2;
    return page;
}

static void run_checked(const case_run *at)
{
    checked_policy checked;
    checked_policy_create(&checked, at->spec->ops, at->what->refuse_every, at->check_every);
    frag_device_spec device = {.capacity_bytes = at->what->capacity_bytes,
                               .page_bytes = slow_page_bytes(at),
                               .opener = &checked.opener};
    frag_replay_result result;
    (void)run_once(at, &checked.ops, &device, false, &result);
    if (checked_policy_problem(&checked)[0] != '\0')
        snprintf(at->outcome->problem, sizeof at->outcome->problem, "%s",
                 checked_policy_problem(&checked));
    checked_policy_destroy(&checked);
}

void policy_case_run(const policy_case *what, const frag_recording *recording, uint64_t check_every,
                     policy_outcome *outcome)
{
    *outcome = (policy_outcome){0};
    frag_policy_spec spec;
    frag_error error = {0};
    if (!frag_policy_spec_parse(what->policy, &spec, &error)) {
        outcome->is_refused = true;
        return;
    }
    case_run at = {what, recording, &spec, check_every, outcome};
    if (run_plain(&at))
        run_checked(&at);
    frag_policy_spec_destroy(&spec);
}
