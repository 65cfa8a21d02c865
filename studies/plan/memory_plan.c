#include "studies/plan/memory_plan.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "sim/device/uncertain_size.h"
#include "workload/tape_card.h"

enum { SEEDS = 7 };

#define BATCH_MAX ((uint64_t)1 << 20)
#define TOKENS_MAX ((uint64_t)1 << 24)
#define DRAWN_EVENTS ((uint64_t)2000000) /* with workspaces of sizes that are drawn */

/* A plan that is being made. */
typedef struct planner {
    frag_fitter *fitter;
    frag_memory_plan *plan;
    frag_error *error;
} planner;

/* Of long traces, to which part of their bound it is found what is needed: as it is, where that may
 * decide, and with fixes. */
enum { NEEDED_PARTS = 1024, FIXED_PARTS = 64 };

/* Of a card beside the context, as far as the program may reserve it. */
static uint64_t count_usable(const frag_dryrun_card *memory, double fraction)
{
    uint64_t total = memory->capacity_bytes;
    uint64_t rest = total > memory->context_bytes ? total - memory->context_bytes : 0;
    uint64_t limit = (uint64_t)((double)total * fraction);
    return limit < rest ? limit : rest;
}

static bool try_setting(planner *of, const frag_fit_setting *setting, frag_plan_trial *trial)
{
    frag_memory_plan *plan = of->plan;
    frag_fit_attempt attempt = {.fits = false};
    bool is_base = memcmp(setting, &plan->base.setting, sizeof *setting) == 0;
    const frag_fit_precision to = {is_base ? NEEDED_PARTS : FIXED_PARTS,
                                   is_base ? FRAG_UNLIMITED : plan->usable_bytes};
    memcpy(&trial->setting, setting, sizeof *setting);
    bool ok =
        frag_fit_measure(of->fitter, setting, &plan->base.card, &to, &trial->result, of->error) &&
        frag_fit_try(of->fitter, setting, &plan->base.card, plan->usable_bytes, &attempt,
                     of->error);
    trial->fits = attempt.fits;
    /* Where some more memory is worse, the search may have found more than the card has. */
    if (trial->fits && trial->result.needed_bytes > plan->usable_bytes)
        trial->result.needed_bytes = plan->usable_bytes;
    return ok;
}

/* Is a choice of fixes none that is generated? With several devices some are not. */
static bool is_choice_refused(const frag_memory_plan *plan, const frag_fix_choice *choice)
{
    frag_fit_setting setting;
    frag_fix_apply_all(&plan->base, choice, &setting);
    return !frag_workload_check(&setting.workload, NULL);
}

static bool try_choice(planner *of, const frag_fix_choice *choice, frag_plan_trial *trial)
{
    frag_fit_setting setting;
    frag_fix_apply_all(&of->plan->base, choice, &setting);
    return try_setting(of, &setting, trial);
}

/* The most of a fix, or 0 where it does not apply. */
static uint32_t count_levels(const frag_memory_plan *plan, size_t fix)
{
    frag_fix_choice choice = {{0}};
    choice.levels[fix] = frag_fixes[fix].count_levels(&plan->base);
    while (choice.levels[fix] > 0 && is_choice_refused(plan, &choice))
        choice.levels[fix]--;
    return choice.levels[fix];
}

static bool judge(void *context, const frag_fix_choice *choice, frag_fix_score *score)
{
    planner *of = context;
    frag_fit_setting setting;
    frag_plan_trial trial;
    if (is_choice_refused(of->plan, choice))
        return true;
    frag_fix_apply_all(&of->plan->base, choice, &setting);
    if (frag_fit_known_bound(of->fitter, &setting, &of->plan->base.card) >= score->needed_bytes)
        return true;
    if (!try_setting(of, &setting, &trial))
        return false;
    *score = (frag_fix_score){trial.result.needed_bytes, trial.fits};
    return true;
}

/* Whether it fits, without what it needs, where a run at the card's size says so. */
static bool try_fits(planner *of, const frag_fit_setting *setting, bool *fits)
{
    frag_fit_attempt attempt;
    frag_plan_trial trial;
    if (!frag_fit_try(of->fitter, setting, &of->plan->base.card, of->plan->usable_bytes, &attempt,
                      of->error))
        return false;
    *fits = attempt.fits;
    if (!attempt.fits || attempt.most_bytes != FRAG_UNLIMITED)
        return true;
    bool ok = try_setting(of, setting, &trial);
    *fits = ok && trial.fits;
    return ok;
}

static bool check(void *context, const frag_fix_choice *choice, bool *fits)
{
    planner *of = context;
    frag_fit_setting setting;
    *fits = false;
    if (is_choice_refused(of->plan, choice))
        return true;
    frag_fix_apply_all(&of->plan->base, choice, &setting);
    return try_fits(of, &setting, fits);
}

/* ---- what is tried on several threads */
typedef struct job_list job_list;

/* false: error says why. */
typedef bool take_job(planner *of, const job_list *jobs, uint64_t index);

struct job_list {
    const planner *of;
    take_job *take;
    void *context;
    frag_error *errors; /* by job */
    bool *are_done;
};

static void run_job(void *context, uint64_t index)
{
    const job_list *jobs = context;
    planner of = *jobs->of;
    of.error = &jobs->errors[index];
    jobs->are_done[index] = jobs->take(&of, jobs, index);
}

/* The jobs ask for the same whatever the others have found; the first that fails says why. */
static bool run_jobs(const planner *of, take_job *take, void *context, uint64_t count)
{
    job_list jobs = {of, take, context, frag_alloc((size_t)count, sizeof *jobs.errors),
                     frag_alloc((size_t)count, sizeof *jobs.are_done)};
    frag_for_each(frag_fitter_threads(of->fitter), count, run_job, &jobs);
    uint64_t done = 0;
    while (done < count && jobs.are_done[done])
        done++;
    if (done < count)
        *of->error = jobs.errors[done];
    frag_free(jobs.errors);
    frag_free(jobs.are_done);
    return done == count;
}

/* ---- each fix alone */
/* The least level that fits, or the strongest, which is not refused. What it needs is asked of that
 * one only. */
static bool try_fix(planner *of, uint32_t level_max, size_t fix)
{
    frag_fix_choice choice = {{0}};
    frag_plan_fix *kept = &of->plan->fixes[fix];
    kept->fix = fix;
    if (level_max == 0)
        return true;
    if (!frag_fix_first_level(check, of, fix, level_max, &choice))
        return false;
    kept->level = choice.levels[fix];
    return try_choice(of, &choice, &kept->trial);
}

/* ---- lengths that are drawn */
/* Draws of a setting. */
typedef struct draw_trials {
    const frag_fit_setting *setting;
    frag_workload longest;
    uint64_t count; /* 0: nothing is drawn */
    bool are_served[SEEDS + 1];
} draw_trials;

static void begin_draws(const frag_fit_setting *setting, draw_trials *draws)
{
    *draws = (draw_trials){.setting = setting};
    if (frag_workload_is_drawn(&setting->workload, &draws->longest))
        draws->count = SEEDS + 1;
}

/* Another seed, the first of which is the workload's own; the last is the longest batch every time.
 */
static bool try_draw(planner *of, const draw_trials *draws, uint64_t draw, bool *fits)
{
    frag_fit_setting setting;
    memcpy(&setting, draws->setting, sizeof setting);
    if (draw < SEEDS)
        setting.workload.seed += draw;
    else
        setting.workload = draws->longest;
    return try_fits(of, &setting, fits);
}

/* ---- workspaces of convolutions and singular value decompositions, taken at their most */
static bool has_workspaces(const frag_workload *workload)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    return family->has_images || family->has_sounds ||
           workload->optimizer == FRAG_OPTIMIZER_GALORE_ADAMW;
}

/* At their least, and between, as a dry run draws them. */
static bool try_other_workspaces(planner *of, const frag_plan_trial *trial, bool *is_split)
{
    const frag_memory_plan *plan = of->plan;
    frag_tape_card card = plan->base.card;
    uint64_t last = has_workspaces(&trial->setting.workload) ? 1 : 0;
    *is_split = false;
    for (card.workspace_draw = 1; card.workspace_draw <= last && !*is_split;
         card.workspace_draw++) {
        frag_fit_attempt attempt;
        if (!frag_fit_try(of->fitter, &trial->setting, &card, plan->usable_bytes, &attempt,
                          of->error))
            return false;
        *is_split = attempt.fits != trial->fits;
        if (card.workspace_draw == 1 && attempt.requests > 0) /* else not even the least fits */
            last += frag_uncertain_draws(2 * attempt.requests, DRAWN_EVENTS);
    }
    return true;
}

/* ---- gradients that are copied to the host, which a dry run takes no time for */
static bool try_no_copies(planner *of, const frag_plan_trial *trial, bool *is_split)
{
    frag_fit_setting setting;
    frag_fit_attempt attempt = {.fits = trial->fits};
    memcpy(&setting, &trial->setting, sizeof setting);
    bool has_copies = (setting.workload.offload & FRAG_OFFLOAD_GRADIENTS) != 0;
    setting.workload.offload &= ~(uint64_t)FRAG_OFFLOAD_GRADIENTS;
    bool ok = !has_copies || !trial->fits ||
              frag_fit_try(of->fitter, &setting, &of->plan->base.card, of->plan->usable_bytes,
                           &attempt, of->error);
    *is_split = attempt.fits != trial->fits;
    return ok;
}

/* ---- what is said of a trial */
bool frag_plan_is_close(const frag_memory_plan *plan, const frag_plan_trial *trial)
{
    int64_t margin = frag_plan_margin(plan, trial);
    int64_t unsure = (int64_t)FRAG_PLAN_UNSURE_BYTES;
    return trial->fits ? margin < unsure : margin > -unsure;
}

static void conclude(const frag_memory_plan *plan, const frag_plan_trial *trial, draw_trials *draws,
                     frag_plan_verdict *verdict)
{
    draws->are_served[0] = trial->fits;
    verdict->draws = draws->count;
    for (uint64_t i = 0; i < draws->count; i++)
        verdict->draws_served += draws->are_served[i];
    verdict->is_longest_served = draws->are_served[SEEDS];
    bool is_split = verdict->draws_served > 0 && verdict->draws_served < verdict->draws;
    bool is_unknown = is_split || verdict->is_workspace_split || verdict->is_copy_split;
    verdict->fits = is_unknown ? FRAG_FITS_UNKNOWN : trial->fits ? FRAG_FITS_YES : FRAG_FITS_NO;
    verdict->is_sure = !is_unknown && !frag_plan_is_close(plan, trial);
}

/* ---- what does not wait for anything else: the workload as it is, draws of it, fixes */
typedef struct single_trials {
    uint32_t levels[FRAG_FIXES_MAX];
    draw_trials draws;
} single_trials;

static bool try_as_is(planner *of)
{
    frag_memory_plan *plan = of->plan;
    if (!try_setting(of, &plan->base.setting, &plan->as_is) ||
        !try_other_workspaces(of, &plan->as_is, &plan->verdict.is_workspace_split) ||
        !try_no_copies(of, &plan->as_is, &plan->verdict.is_copy_split))
        return false;
    plan->parts = frag_fit_divide(of->fitter, &plan->base.setting, &plan->base.card);
    return true;
}

static bool try_single(planner *of, const job_list *jobs, uint64_t index)
{
    single_trials *trials = jobs->context;
    if (index == 0)
        return try_as_is(of);
    draw_trials *draws = &trials->draws;
    if (index < draws->count)
        return try_draw(of, draws, index, &draws->are_served[index]);
    size_t fix = (size_t)(index - (draws->count > 0 ? draws->count : 1));
    return try_fix(of, trials->levels[fix], fix);
}

static bool try_singles(planner *of, single_trials *trials)
{
    frag_memory_plan *plan = of->plan;
    begin_draws(&plan->base.setting, &trials->draws);
    uint64_t firsts = trials->draws.count > 0 ? trials->draws.count : 1;
    if (!run_jobs(of, try_single, trials, firsts + frag_fix_count()))
        return false;
    conclude(plan, &plan->as_is, &trials->draws, &plan->verdict);
    for (size_t i = 0; i < frag_fix_count(); i++)
        if (trials->levels[i] > 0)
            plan->fixes[plan->fix_count++] = plan->fixes[i];
    return true;
}

/* ---- the largest */
/* The largest value up to max that fits, if smaller ones do; 0: not even 1. */
typedef struct bisection {
    void (*set)(frag_fit_setting *setting, uint64_t value);
    const frag_fit_setting *from;
    uint64_t max;
    uint64_t first;    /* where it is begun: what the setting has */
    bool may_be_rough; /* where so much is replayed, it is found to a part */
} bisection;

/* A value that was tried. */
typedef struct probe {
    uint64_t value;
    uint64_t bound_bytes; /* FRAG_UNLIMITED: not known */
    uint64_t most_bytes;  /* these are of frag_fit_attempt */
    uint64_t requests;
    bool is_bound_part;
    bool fits;
} probe;

/* false: the generator does not take it. */
static bool set_value(const bisection *over, uint64_t value, frag_fit_setting *setting)
{
    memcpy(setting, over->from, sizeof *setting);
    over->set(setting, value);
    return frag_workload_check(&setting->workload, NULL);
}

static bool try_value(planner *of, const bisection *over, probe *tried)
{
    frag_fit_setting setting;
    frag_fit_attempt attempt = {.bound_bytes = FRAG_UNLIMITED, .most_bytes = FRAG_UNLIMITED};
    bool ok = !set_value(over, tried->value, &setting) ||
              frag_fit_try(of->fitter, &setting, &of->plan->base.card, of->plan->usable_bytes,
                           &attempt, of->error);
    tried->bound_bytes = attempt.bound_bytes;
    tried->most_bytes = attempt.most_bytes;
    tried->is_bound_part = attempt.is_bound_part;
    tried->requests = attempt.requests;
    tried->fits = attempt.fits;
    return ok;
}

static bool find_bound(planner *of, const bisection *over, probe *tried)
{
    frag_fit_setting setting;
    if (!tried->is_bound_part || !set_value(over, tried->value, &setting))
        return true;
    tried->is_bound_part = false;
    return frag_fit_bound(of->fitter, &setting, &of->plan->base.card, &tried->bound_bytes,
                          of->error);
}

/* By how much what is said of a value may be wrong: a quarter of all there is; of answers, which
 * take long to try and have a cache that grows evenly, half of what one has more than another that
 * was tried, and twice what that needed beyond its bound. */
static double doubt_of_guess(const planner *of, const probe *low, double distance, double beyond)
{
    double usable = (double)of->plan->usable_bytes;
    if (!frag_fit_answers(&of->plan->base.setting.workload) || low->most_bytes == FRAG_UNLIMITED)
        return usable / 4;
    double beyond_low = (double)low->most_bytes - (double)low->bound_bytes;
    double doubt = distance / 2 + 2 * (beyond > beyond_low ? beyond : beyond_low);
    return doubt < usable / 4 ? doubt : usable / 4;
}

/* What a value needs is about linear: between two that were tried, and above them. more: how much
 * more than its bound it needs. */
static bool is_far(const planner *of, const probe *low, const probe *high, double more,
                   probe *tried)
{
    double usable = (double)of->plan->usable_bytes;
    double part = ((double)tried->value - (double)low->value) / (double)(high->value - low->value);
    double bound =
        (double)low->bound_bytes + part * ((double)high->bound_bytes - (double)low->bound_bytes);
    double needed = bound * more;
    double from_low = fabs(bound - (double)low->bound_bytes);
    double from_high = fabs(bound - (double)high->bound_bytes);
    double doubt =
        doubt_of_guess(of, low, from_low < from_high ? from_low : from_high, needed - bound);
    tried->fits = needed < usable;
    return fabs(needed - usable) > doubt + (double)FRAG_PLAN_UNSURE_BYTES;
}

/* How much more than its bound a value needs: between these. */
typedef struct surplus {
    double least;
    double most;
} surplus;

/* Those whose need is far from what there is are not tried; both ends have to say the same. */
static bool is_plain(const planner *of, const probe *low, const probe *high, const surplus *more,
                     probe *tried)
{
    probe other = *tried;
    if (low->value == 0 || high->bound_bytes == FRAG_UNLIMITED)
        return false;
    return is_far(of, low, high, more->least, tried) && is_far(of, low, high, more->most, &other) &&
           tried->fits == other.fits;
}

/* Of a value that fits. Where lengths are drawn, what is needed jumps: it is found exactly there.
 */
static bool find_surplus(planner *of, const bisection *over, const probe *low, surplus *more)
{
    frag_fit_setting setting;
    frag_fit_result result;
    frag_workload longest;
    double bound = (double)low->bound_bytes;
    if (low->bound_bytes == 0 || !set_value(over, low->value, &setting))
        return true;
    if (!frag_workload_is_drawn(&setting.workload, &longest)) {
        more->most = (double)low->most_bytes / bound;
        return true;
    }
    const frag_fit_precision to = {FIXED_PARTS, FRAG_UNLIMITED};
    if (!frag_fit_measure(of->fitter, &setting, &of->plan->base.card, &to, &result, of->error))
        return false;
    more->least = more->most = (double)result.needed_bytes / bound;
    return true;
}

/* Where a try replays so many requests, a length is found to such a part of it. */
enum { ROUGH_REQUESTS = 1 << 20, ROUGH_PARTS = 256 };

/* Is it found, where low fits and high does not? */
static bool is_near(const bisection *over, uint64_t requests, uint64_t low, uint64_t high)
{
    bool is_rough = over->may_be_rough && requests > ROUGH_REQUESTS;
    return high - low <= 1 || (is_rough && high - low <= low / ROUGH_PARTS);
}

/* Where a batch is answered, which takes long: values whose first token fits, and does not, with
 * nothing to be tried between them. It takes little time. */
static bool find_ceiling(planner *of, const bisection *over, uint64_t *low, uint64_t *high)
{
    for (uint64_t value = over->first; !is_near(over, UINT64_MAX, *low, *high);) {
        frag_fit_setting setting;
        bool may_fit = false;
        if (set_value(over, value, &setting) &&
            !frag_fit_try_first(of->fitter, &setting, &of->plan->base.card, of->plan->usable_bytes,
                                &may_fit, of->error))
            return false;
        *(may_fit ? low : high) = value;
        bool is_doubled = may_fit && value <= (*high - 1) / 2;
        value = is_doubled ? 2 * value : *low + (*high - *low) / 2;
    }
    return true;
}

/* A probe that fits is the new low, another the new high. */
static bool try_between(planner *of, const bisection *over, probe *low, probe *high, probe *tried)
{
    if (!try_value(of, over, tried))
        return false;
    *(tried->fits ? low : high) = *tried;
    return true;
}

/* From what the setting has, or below, on: twice as much each time, or half as much, until one fits
 * and another does not. */
static bool find_ends(planner *of, const bisection *over, probe *low, probe *high)
{
    const surplus none = {1, 1};
    probe tried = {.value = 1};
    uint64_t most = over->first < high->value ? over->first : high->value - 1;
    while (tried.value <= most / 2)
        tried.value *= 2;
    while (tried.value > low->value && tried.value < high->value) {
        const probe below = *low;
        if (!try_between(of, over, low, high, &tried))
            return false;
        if (!tried.fits && low->value > 0 && frag_fit_answers(&over->from->workload))
            break;
        if (!tried.fits) {
            tried.value /= 2;
            continue;
        }
        do
            tried.value *= 2;
        while (tried.value < high->value / 2 && is_plain(of, &below, low, &none, &tried) &&
               tried.fits);
    }
    return true;
}

/* Both ends, then halves in between. Less than half of what fits is held to fit too. */
static bool find_largest(planner *of, const bisection *over, uint64_t *largest)
{
    probe low = {.value = 0};
    probe high = {.value = over->max + 1, .bound_bytes = FRAG_UNLIMITED};
    surplus more = {1, 1};
    if (frag_fit_answers(&over->from->workload)) {
        probe most = {.value = 0};
        if (!find_ceiling(of, over, &most.value, &high.value))
            return false;
        /* Of long prompts the first token asks for the most. */
        if (over->may_be_rough && most.value > 0 && !try_between(of, over, &low, &high, &most))
            return false;
    }
    if (!find_ends(of, over, &low, &high))
        return false;
    uint64_t above = high.value;
    *largest = low.value;
    if (low.value > 0 && !is_near(over, low.requests, low.value, above) &&
        (!find_surplus(of, over, &low, &more) || !find_bound(of, over, &high)))
        return false;
    while (!is_near(over, low.requests, *largest, above)) {
        probe tried = {.value = *largest + (above - *largest) / 2};
        if (!is_plain(of, &low, &high, &more, &tried) && !try_value(of, over, &tried))
            return false;
        *(tried.fits ? largest : &above) = tried.value;
    }
    return true;
}

/* Of so many, times what there is, multiples make up the workload's unit of tokens. */
static uint64_t find_rest(const frag_workload *workload, uint64_t there)
{
    uint64_t unit = frag_workload_token_unit(workload);
    for (; unit > 1 && there % 2 == 0; there /= 2)
        unit /= 2;
    return unit;
}

static uint64_t find_token_unit(const frag_workload *workload)
{
    return find_rest(workload, workload->batch);
}

/* What is dealt out takes so many sequences and multiples of them. */
static uint64_t find_batch_unit(const frag_workload *workload)
{
    uint64_t unit = 1;
    for (uint32_t i = 0; i < workload->tokens.count; i++) {
        uint64_t rest = find_rest(workload, workload->tokens.values[i]);
        unit = rest > unit ? rest : unit;
    }
    if (unit > 1)
        return unit;
    if (workload->parallel == FRAG_PARALLEL_DATA)
        return workload->devices;
    return workload->parallel == FRAG_PARALLEL_PIPELINE ? frag_workload_microbatches(workload) : 1;
}

static uint64_t count_batches(const frag_workload *workload)
{
    uint64_t units = workload->batch / find_batch_unit(workload);
    return units > 0 ? units : 1;
}

static void set_batch(frag_fit_setting *setting, uint64_t value)
{
    setting->workload.batch = value * find_batch_unit(&setting->workload);
}

/* The longest batch becomes that long; what was longer or as long does too. */
static void set_tokens(frag_fit_setting *setting, uint64_t value)
{
    frag_workload *workload = &setting->workload;
    uint64_t longest = frag_fix_longest(workload);
    value *= find_token_unit(workload);
    frag_fix_shorten(workload, value);
    for (uint32_t i = 0; i < workload->tokens.count; i++)
        if (workload->tokens.values[i] == longest)
            workload->tokens.values[i] = value;
}

static bool is_refused(const bisection *over, uint64_t value)
{
    frag_fit_setting setting;
    memcpy(&setting, over->from, sizeof setting);
    over->set(&setting, value);
    return value > over->max || !frag_workload_check(&setting.workload, NULL);
}

/* ---- the combination of fixes */
/* Leaves out fixes that later ones overrule, such as one optimizer before another. */
static void drop_overruled(frag_memory_plan *plan)
{
    frag_fit_setting whole;
    frag_fix_apply_all(&plan->base, &plan->answer.choice, &whole);
    for (size_t i = 0; i < frag_fix_count(); i++) {
        frag_fix_choice without = plan->answer.choice;
        frag_fit_setting rest;
        without.levels[i] = 0;
        frag_fix_apply_all(&plan->base, &without, &rest);
        if (memcmp(&rest, &whole, sizeof rest) == 0)
            plan->answer.choice.levels[i] = 0;
    }
}

static bool search_fixes(planner *of, const uint32_t *levels)
{
    frag_memory_plan *plan = of->plan;
    frag_fix_search search = {
        .count = frag_fix_count(), .judge = judge, .check = check, .context = of};
    memcpy(search.levels_max, levels, sizeof search.levels_max);
    if (!frag_fix_find(&search, &plan->answer))
        return false;
    drop_overruled(plan);
    if (!try_choice(of, &plan->answer.choice, &plan->fixed))
        return false;
    for (size_t i = 0; i < plan->answer.step_count; i++)
        if (!try_choice(of, &plan->answer.steps[i].choice, &plan->steps[i]))
            return false;
    return true;
}

/* What is searched for, and the largest that was found: a batch, then a length. */
typedef struct largest_search {
    bisection over[2];
    uint64_t found[2];
    bool is_limited[2];
    const uint32_t *levels; /* of fixes, whose combination is searched for beside; NULL: none */
} largest_search;

static bool search_one(planner *of, const job_list *jobs, uint64_t index)
{
    largest_search *search = jobs->context;
    if (index == 0)
        return search->levels == NULL || search_fixes(of, search->levels);
    const bisection *over = &search->over[index - 1];
    if (over->set == set_tokens && !frag_workload_has_tokens(&over->from->workload))
        return true;
    if (!find_largest(of, over, &search->found[index - 1]))
        return false;
    search->is_limited[index - 1] = is_refused(over, search->found[index - 1] + 1);
    return true;
}

static bool find_both(planner *of, const frag_fit_setting *from, const uint32_t *levels,
                      frag_plan_largest *largest)
{
    const frag_network *network = &from->workload.network;
    uint64_t positions = network->positions > 0 ? network->positions : TOKENS_MAX;
    uint64_t unit = find_token_unit(&from->workload);
    largest_search search = {
        .over = {{set_batch, from, BATCH_MAX, count_batches(&from->workload), false},
                 {set_tokens, from, (positions < TOKENS_MAX ? positions : TOKENS_MAX) / unit,
                  frag_fix_longest(&from->workload) / unit, true}},
        .levels = levels};
    if (!run_jobs(of, search_one, &search, 3))
        return false;
    largest->batch = search.found[0] * find_batch_unit(&from->workload);
    largest->is_batch_limited = search.is_limited[0];
    largest->tokens = search.found[1] * unit;
    largest->is_tokens_limited = search.is_limited[1];
    return true;
}

bool frag_plan_largest_batch(frag_fitter *fitter, const frag_fit_setting *setting,
                             const frag_dryrun_card *memory, uint64_t *batch, frag_error *error)
{
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    planner of = {fitter, plan, error};
    const bisection over = {set_batch, setting, BATCH_MAX, count_batches(&setting->workload),
                            false};
    plan->base.card = frag_tape_card_usual;
    plan->usable_bytes = count_usable(memory, setting->workload.memory_fraction);
    bool ok = find_largest(&of, &over, batch);
    frag_free(plan);
    return ok;
}

/* What the combination is without the fixes that give a smaller batch or length. */
static bool find_fixed(planner *of)
{
    frag_memory_plan *plan = of->plan;
    frag_fix_choice choice = plan->answer.choice;
    frag_fit_setting setting;
    for (size_t i = 0; i < frag_fix_count(); i++) {
        const char *name = frag_fixes[i].name;
        if (strcmp(name, "accumulate") == 0 || strcmp(name, "batch") == 0 ||
            strcmp(name, "tokens") == 0)
            choice.levels[i] = 0;
        plan->has_largest_fixed = plan->has_largest_fixed || choice.levels[i] > 0;
    }
    frag_fix_apply_all(&plan->base, &choice, &setting);
    return !plan->has_largest_fixed || find_both(of, &setting, NULL, &plan->largest_fixed);
}

static bool try_fixed_draw(planner *of, const job_list *jobs, uint64_t index)
{
    draw_trials *draws = jobs->context;
    return index == 0 || try_draw(of, draws, index, &draws->are_served[index]);
}

/* What is said of the combination, as of the workload as it is. */
static bool judge_fixed(planner *of)
{
    frag_memory_plan *plan = of->plan;
    frag_plan_verdict *verdict = &plan->fixed_verdict;
    draw_trials draws;
    *verdict = plan->verdict;
    if (plan->as_is.fits) /* nothing was added */
        return true;
    *verdict = (frag_plan_verdict){.draws = 0};
    begin_draws(&plan->fixed.setting, &draws);
    if (!plan->fixed.fits)
        draws.count = 0;
    if (!run_jobs(of, try_fixed_draw, &draws, draws.count) ||
        !try_other_workspaces(of, &plan->fixed, &verdict->is_workspace_split) ||
        !try_no_copies(of, &plan->fixed, &verdict->is_copy_split))
        return false;
    conclude(plan, &plan->fixed, &draws, verdict);
    return true;
}

/* ---- the whole */
bool frag_memory_plan_make(frag_fitter *fitter, const frag_workload *workload, const char *conf,
                           const frag_dryrun_gpu *gpu, const char *name, frag_memory_plan *plan,
                           frag_error *error)
{
    planner of = {fitter, plan, error};
    single_trials trials = {.levels = {0}};
    memset(plan, 0, sizeof *plan);
    if (workload->task == FRAG_TASK_SERVE)
        return frag_fail(error, FRAG_E_INPUT,
                         "task is serve, and a plan is of what repeats; expected another task "
                         "('fraglab trace generate' and 'fraglab run --capacity' say what fits)");
    plan->name = strcmp(name, "-") == 0 ? "stdin" : name;
    plan->gpu = *gpu;
    plan->base.conf = conf;
    memcpy(&plan->base.setting.workload, workload, sizeof *workload);
    plan->usable_bytes = count_usable(&gpu->memory, workload->memory_fraction);
    plan->base.setting.workload.memory_fraction = 1; /* it is in there */
    if (!frag_tape_card_read(&gpu->card, gpu->card.name, &plan->base.card, error))
        return false;
    for (size_t i = 0; i < frag_fix_count(); i++)
        trials.levels[i] = count_levels(plan, i);
    return try_singles(&of, &trials) &&
           find_both(&of, &plan->base.setting, trials.levels, &plan->largest) && judge_fixed(&of) &&
           find_fixed(&of);
}

int64_t frag_plan_margin(const frag_memory_plan *plan, const frag_plan_trial *trial)
{
    return (int64_t)plan->usable_bytes - (int64_t)trial->result.needed_bytes;
}

static const char doubt_of_copies[] =
    "gradients go when they are on the host, and the GPU may make them faster than that";

/* Where more or less memory decides than drivers and programs differ by. */
static const char *doubt_of_margin(const frag_memory_plan *plan, const frag_plan_trial *trial)
{
    if (!trial->fits && frag_plan_margin(plan, trial) >= 0)
        return "on some smaller cards it fits: more memory lets PyTorch cache what then lies in "
               "the way";
    return "so little may be decided by the context of another driver, or a display";
}

const char *frag_plan_doubt(const frag_memory_plan *plan, const frag_plan_trial *trial,
                            const frag_plan_verdict *verdict)
{
    if (verdict->is_sure)
        return NULL;
    if (verdict->is_workspace_split)
        return trial->setting.workload.optimizer == FRAG_OPTIMIZER_GALORE_ADAMW
                   ? "it hangs on the workspaces that cuSOLVER takes for decompositions"
                   : "it hangs on the workspaces that cuDNN takes for convolutions";
    if (verdict->is_copy_split)
        return doubt_of_copies;
    return verdict->fits == FRAG_FITS_UNKNOWN ? "it hangs on the lengths that are drawn"
                                              : doubt_of_margin(plan, trial);
}

const char *frag_plan_fix_doubt(const frag_memory_plan *plan, const frag_plan_trial *trial)
{
    frag_workload longest;
    if (frag_plan_is_close(plan, trial))
        return doubt_of_margin(plan, trial);
    if (trial->fits && (trial->setting.workload.offload & FRAG_OFFLOAD_GRADIENTS) != 0)
        return doubt_of_copies;
    return frag_workload_is_drawn(&trial->setting.workload, &longest)
               ? "lengths are drawn, and of a fix alone one draw is tried"
               : NULL;
}
