/* Tests of memory_plan.c: when a plan is sure, what one that is not hangs on, what limits lengths,
 * and how many traces one takes. */
#include "studies/plan/memory_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/run.h"

static void a_doubt_says_what_it_hangs_on(void **state)
{
    (void)state;
    static const struct {
        bool is_sure;
        bool is_workspace_split;
        frag_fits fits;
        bool is_fitting; /* as it is */
        uint64_t needed;
        const char *doubt; /* NULL: none; of 1,000 usable bytes */
    } cases[] = {
        {true, true, FRAG_FITS_UNKNOWN, false, 900, NULL},
        {false, true, FRAG_FITS_UNKNOWN, false, 900, "workspaces that cuDNN takes"},
        {false, false, FRAG_FITS_UNKNOWN, false, 900, "lengths that are drawn"},
        {false, false, FRAG_FITS_NO, false, 900, "on some smaller cards it fits"},
        {false, false, FRAG_FITS_NO, false, 1000, "on some smaller cards it fits"},
        {false, false, FRAG_FITS_NO, false, 1001, "the context of another driver"},
        {false, false, FRAG_FITS_YES, true, 900, "the context of another driver"},
    };
    static frag_memory_plan plan;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&plan, 0, sizeof plan);
        plan.verdict.is_sure = cases[i].is_sure;
        plan.verdict.is_workspace_split = cases[i].is_workspace_split;
        plan.verdict.fits = cases[i].fits;
        plan.usable_bytes = 1000;
        plan.as_is.fits = cases[i].is_fitting;
        plan.as_is.result.needed_bytes = cases[i].needed;
        const char *doubt = frag_plan_doubt(&plan, &plan.as_is, &plan.verdict);
        assert_int_equal(frag_plan_margin(&plan, &plan.as_is), 1000 - (int64_t)cases[i].needed);
        if (cases[i].doubt == NULL)
            assert_null(doubt);
        else if (doubt == NULL || strstr(doubt, cases[i].doubt) == NULL)
            fail_msg("%zu: %s", i, doubt);
    }
}

/* The caller frees it. */
static frag_memory_plan *plan_on(const char *yaml, const char *card)
{
    frag_workload workload;
    frag_dryrun_gpu gpu;
    frag_error error = {0};
    frag_workload_init(&workload);
    if (!frag_workload_parse(yaml, strlen(yaml), &workload, NULL, &error))
        fail_msg("%s", error.sentence);
    assert_true(frag_dryrun_gpu_find(card, &gpu, NULL, &error));
    frag_fitter *fitter = frag_fitter_create(NULL, NULL, &error);
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    assert_true(frag_memory_plan_make(fitter, &workload, NULL, &gpu, "model", plan, &error));
    frag_fitter_destroy(fitter);
    return plan;
}

/* Of a small model on a card of so many MiB. The caller frees it. */
static frag_memory_plan *plan_of(uint64_t positions, uint64_t tokens, uint64_t card_mib)
{
    char yaml[200];
    char card[32];
    snprintf(yaml, sizeof yaml,
             "model: {family: llama, vocabulary: 512, width: 64, inner: 256, layers: 1, heads: 4, "
             "positions: %llu}\nrun: {task: evaluate, tokens: %llu}\n",
             (unsigned long long)positions, (unsigned long long)tokens);
    snprintf(card, sizeof card, "%lluMiB", (unsigned long long)card_mib);
    return plan_on(yaml, card);
}

static frag_plan_largest largest_of(uint64_t positions)
{
    frag_memory_plan *plan = plan_of(positions, 64, 1024);
    frag_plan_largest largest = plan->largest;
    frag_free(plan);
    return largest;
}

static void what_is_needed_decides_where_it_is_not_close(void **state)
{
    (void)state;
    frag_memory_plan *plan = plan_of(1 << 20, 100000, 1024);
    uint64_t context = FRAG_GIB - plan->usable_bytes;
    uint64_t needed_mib = (plan->as_is.result.needed_bytes + context) / FRAG_MIB;
    uint64_t unsure_mib = FRAG_PLAN_UNSURE_BYTES / FRAG_MIB;
    assert_int_equal((plan->as_is.result.needed_bytes + context) % FRAG_MIB, 0);
    frag_free(plan);
    const struct {
        uint64_t card_mib;
        frag_fits fits;
        bool is_sure;
    } cases[] = {{needed_mib - unsure_mib, FRAG_FITS_NO, true},
                 {needed_mib - unsure_mib + 1, FRAG_FITS_NO, false},
                 {needed_mib - 1, FRAG_FITS_NO, false},
                 {needed_mib, FRAG_FITS_YES, false},
                 {needed_mib + unsure_mib - 1, FRAG_FITS_YES, false},
                 {needed_mib + unsure_mib, FRAG_FITS_YES, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan = plan_of(1 << 20, 100000, cases[i].card_mib);
        assert_int_equal(plan->verdict.fits, cases[i].fits);
        assert_int_equal(plan->verdict.is_sure, cases[i].is_sure);
        frag_free(plan);
    }
}

static void lengths_are_limited_by_memory_up_to_the_positions_of_the_model(void **state)
{
    (void)state;
    frag_plan_largest free = largest_of(1 << 20);
    assert_false(free.is_tokens_limited);
    for (uint64_t more = 0; more < 3; more++) {
        frag_plan_largest found = largest_of(free.tokens + more);
        assert_int_equal(found.tokens, free.tokens);
        assert_int_equal(found.is_tokens_limited, more == 0);
    }
    assert_int_equal(largest_of(100).tokens, 100);
}

static uint64_t count_traces(frag_fitter *fitter, const frag_workload *workload, uint64_t mib)
{
    frag_error error = {0};
    frag_dryrun_gpu gpu;
    char size[32];
    uint64_t before = frag_fitter_trace_count(fitter);
    snprintf(size, sizeof size, "%uMiB", (unsigned)mib);
    assert_true(frag_dryrun_gpu_find(size, &gpu, NULL, &error));
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    assert_true(frag_memory_plan_make(fitter, workload, NULL, &gpu, "model", plan, &error));
    assert_true(plan->largest.batch > 0 && plan->largest.tokens > 0);
    frag_free(plan);
    return frag_fitter_trace_count(fitter) - before;
}

/* The clock of a slow machine would say nothing: a plan takes its time for traces. */
static void a_plan_takes_few_traces(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_workload workload;
    frag_workload_init(&workload);
    assert_true(
        frag_workload_load("tests/workload/models/qwen2-tiny.json", &workload, NULL, &error));
    assert_true(frag_workload_set(&workload, "task", "rlhf", &error));
    frag_fitter *fitter = frag_fitter_create(NULL, NULL, &error);
    assert_non_null(fitter);
    assert_in_range(count_traces(fitter, &workload, 1024), 1, 30);
    /* The same on another card: only what lies near its edge. */
    assert_in_range(count_traces(fitter, &workload, 2048), 1, 12);
    frag_fitter_destroy(fitter);
}

static void a_trace_can_end_early(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_fit_attempt attempt;
    uint64_t bound = 0;
    frag_memory_plan *plan = plan_of(64, 64, 1024);
    const frag_fix_base *of = &plan->base;
    frag_fitter *fitter = frag_fitter_create(NULL, NULL, &error);
    assert_true(frag_fit_try(fitter, &of->setting, &of->card, 4096, &attempt, &error));
    assert_true(!attempt.fits && attempt.is_bound_part && attempt.bound_bytes > 4096);
    assert_true(frag_fit_bound(fitter, &of->setting, &of->card, &bound, &error));
    assert_int_equal(bound, plan->as_is.result.peak.requested_bytes);
    frag_fitter_destroy(fitter);
    frag_free(plan);
}

/* By a search through all capacities, and a run at the card's size, of the whole trace. */
static frag_plan_trial replay_all(const frag_memory_plan *plan, const frag_fit_setting *setting)
{
    frag_error error = {0};
    frag_recording recording = {0};
    frag_policy_spec policy;
    frag_plan_trial trial = {.fits = true};
    assert_true(
        frag_workload_generate(&setting->workload, &plan->base.card, "all", &recording, &error));
    assert_true(frag_policy_spec_parse(setting->is_expandable
                                           ? "pytorch:expandable_segments:True,version=2.9"
                                           : "pytorch:version=2.9",
                                       &policy, &error));
    for (uint32_t i = 0; i < recording.trace_count; i++) {
        frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
        const frag_run_setup setup = {&recording, &recording.traces[i], policy.ops, policy.values,
                                      &device};
        frag_capacity_result least;
        frag_run_result run;
        assert_true(frag_find_capacity(&setup, NULL, NULL, &least, &error));
        if (least.capacity_bytes > trial.result.needed_bytes)
            trial.result = (frag_fit_result){least.peak, least.capacity_bytes, .rank = i};
        device.capacity_bytes = plan->usable_bytes;
        assert_true(
            frag_run_count(&setup, &(frag_run_options){.is_layout_skipped = true}, &run, &error));
        trial.fits = trial.fits && !run.replay.oom.has_happened;
    }
    frag_policy_spec_destroy(&policy);
    frag_recording_destroy(&recording);
    return trial;
}

/* What an answer's first token says of a size is what a replay of the whole answer says. */
static void an_answer_that_fails_at_once_fails(void **state)
{
    (void)state;
    uint32_t at_once = 0;
    frag_memory_plan *plan = plan_on("model: {family: llama, layers: 2, heads: 4, width: 256}\n"
                                     "run: {task: generate, tokens: 900, new_tokens: 40}",
                                     "80GiB");
    const frag_fix_base *of = &plan->base;
    uint64_t most = plan->as_is.result.needed_bytes + 4 * FRAG_MIB;
    for (plan->usable_bytes = 2 * FRAG_MIB; plan->usable_bytes <= most;
         plan->usable_bytes += 2 * FRAG_MIB) {
        frag_error error = {0};
        frag_fit_attempt attempt;
        frag_fitter *fitter = frag_fitter_create(NULL, NULL, &error);
        assert_true(
            frag_fit_try(fitter, &of->setting, &of->card, plan->usable_bytes, &attempt, &error));
        assert_int_equal(attempt.fits, replay_all(plan, &of->setting).fits);
        assert_true(attempt.bound_bytes <= plan->as_is.result.peak.requested_bytes);
        at_once += attempt.is_bound_part && attempt.bound_bytes <= plan->usable_bytes;
        frag_fitter_destroy(fitter);
    }
    assert_true(at_once > 0);
    frag_free(plan);
}

static void expect_as_replayed(const frag_memory_plan *plan, const frag_plan_trial *trial)
{
    frag_plan_trial all = replay_all(plan, &trial->setting);
    assert_int_equal(trial->result.needed_bytes, all.result.needed_bytes);
    assert_int_equal(trial->result.rank, all.result.rank);
    assert_int_equal(trial->fits, all.fits);
    assert_memory_equal(&trial->result.peak, &all.result.peak, sizeof all.result.peak);
}

/* The largest batch fits and one more does not; of the combination no fix can be left out. */
static void expect_best(const frag_memory_plan *plan)
{
    frag_fit_setting setting;
    for (uint64_t more = plan->largest.batch > 0 ? 0 : 1; more < 2; more++) {
        memcpy(&setting, &plan->base.setting, sizeof setting);
        setting.workload.batch = plan->largest.batch + more;
        assert_int_equal(replay_all(plan, &setting).fits, more == 0);
    }
    assert_int_equal(plan->answer.fits, plan->fixed.fits);
    for (size_t fix = 0; plan->answer.fits && fix < frag_fix_count(); fix++) {
        frag_fix_choice less = plan->answer.choice;
        less.levels[fix] = 0;
        frag_fix_apply_all(&plan->base, &less, &setting);
        assert_true(plan->answer.choice.levels[fix] == 0 || !replay_all(plan, &setting).fits);
    }
}

/* Weights of 4 bits are computed with under autocast where adapters are, and in training; else as
 * they are. */
static void quantised_weights_have_the_precision_that_their_adapters_need(void **state)
{
    (void)state;
    static const struct {
        const char *run;
        frag_precision precision;
    } cases[] = {
        {"{task: evaluate}", FRAG_PRECISION_BF16},
        {"{task: evaluate, lora_rank: 4}", FRAG_PRECISION_AMP_BF16},
        {"{task: evaluate, precision: fp16}", FRAG_PRECISION_FP16},
        {"{task: train}", FRAG_PRECISION_AMP_BF16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_text yaml = {0};
        frag_text_add(&yaml, "model: {family: llama, layers: 2, heads: 4, width: 64}\nrun: %s",
                      cases[i].run);
        frag_memory_plan *plan = plan_on(yaml.bytes, "80GiB");
        const frag_fix *fix = frag_fix_named("quantize", NULL);
        frag_fit_setting setting;
        memcpy(&setting, &plan->base.setting, sizeof setting);
        assert_int_equal(fix->count_levels(&plan->base), 1);
        fix->apply(&plan->base, 1, &setting);
        assert_int_equal(setting.workload.precision, cases[i].precision);
        assert_int_equal(setting.workload.lora_rank > 0, i % 2 == 1);
        frag_text_destroy(&yaml);
        frag_free(plan);
    }
}

/* Whatever a plan does not replay, it says the same. */
static void a_plan_says_what_whole_replays_say(void **state)
{
    (void)state;
#define MODEL(FAMILY) "model: {family: " FAMILY ", layers: 2, heads: 4, width: 64}\nrun: "
    static const struct {
        const char *yaml;
        uint64_t percent; /* of what it needs, as the card's size */
    } cases[] = {
        {MODEL("gpt2") "{batch: 8}", 40},
        {MODEL("gpt2") "{batch: 8}", 5000},
        {MODEL("gpt2") "{tokens: 9..64, parallel: ddp, devices: 4}", 90},
        {MODEL("llama") "{task: generate, new_tokens: 24, batch: 16}", 90},
        {MODEL("qwen2") "{task: rlhf, new_tokens: 16, batch: 8}", 80},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char card[32];
        frag_memory_plan *plan = plan_on(cases[i].yaml, "80GiB");
        uint64_t bytes = plan->as_is.result.needed_bytes / 100 * cases[i].percent;
        snprintf(card, sizeof card, "%lluB", (unsigned long long)bytes);
        frag_free(plan);
        plan = plan_on(cases[i].yaml, card);
        expect_as_replayed(plan, &plan->as_is);
        for (size_t k = 0; k < plan->fix_count; k++)
            expect_as_replayed(plan, &plan->fixes[k].trial);
        for (size_t k = 0; k < plan->answer.step_count; k++)
            expect_as_replayed(plan, &plan->steps[k]);
        expect_as_replayed(plan, &plan->fixed);
        expect_best(plan);
        frag_free(plan);
    }
}

static bool is_asked_out(void *user)
{
    unsigned *questions = user;
    *questions -= *questions > 0;
    return *questions == 0;
}

/* Whenever it is interrupted, it says so and leaves nothing behind. */
static void a_plan_can_be_interrupted_at_any_time(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_workload workload;
    frag_dryrun_gpu gpu;
    const char *yaml = "model: {family: gpt2, layers: 1, heads: 2, width: 16}\nrun: {tokens: 8}\n";
    frag_workload_init(&workload);
    assert_true(frag_workload_parse(yaml, strlen(yaml), &workload, NULL, &error));
    assert_true(frag_dryrun_gpu_find("1GiB", &gpu, NULL, &error));
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    unsigned interrupted = 0;
    for (unsigned after = 1, ok = 0; ok == 0; after++) {
        unsigned questions = after;
        const frag_context context = {
            .is_cancelled = is_asked_out, .user = &questions, .threads = 1};
        frag_fitter *fitter = frag_fitter_create(&context, NULL, &error);
        ok = frag_memory_plan_make(fitter, &workload, NULL, &gpu, "model", plan, &error);
        interrupted += ok == 0;
        assert_true(ok != 0 || error.code == FRAG_E_SYSTEM);
        frag_fitter_destroy(fitter);
    }
    assert_true(interrupted > 20);
    frag_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_doubt_says_what_it_hangs_on),
        cmocka_unit_test(what_is_needed_decides_where_it_is_not_close),
        cmocka_unit_test(lengths_are_limited_by_memory_up_to_the_positions_of_the_model),
        cmocka_unit_test(a_plan_takes_few_traces),
        cmocka_unit_test(a_trace_can_end_early),
        cmocka_unit_test(an_answer_that_fails_at_once_fails),
        cmocka_unit_test(a_plan_says_what_whole_replays_say),
        cmocka_unit_test(quantised_weights_have_the_precision_that_their_adapters_need),
        cmocka_unit_test(a_plan_can_be_interrupted_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
